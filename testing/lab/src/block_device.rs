//! What a block device did: the kernel's own counters of it, and their differences over a run.

use anyhow::{Context, Result};
use std::fmt;
use std::time::Duration;

/// Counters of a block device, or what they moved by.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counters {
    /// Requests done.
    pub reads: u64,
    /// Of these requests.
    pub bytes_read: u64,
    /// Requests done.
    pub writes: u64,
    /// Of these requests.
    pub bytes_written: u64,
    /// Flushes of its cache; 0 before Linux 5.5.
    pub flushes: u64,
}

impl Counters {
    /// Those of a device (`/dev/loop3`) so far.
    pub fn of(device: &str) -> Result<Counters> {
        let name = device.rsplit('/').next().unwrap_or(device);
        let text = std::fs::read_to_string(format!("/sys/block/{name}/stat"))?;
        let fields: Vec<u64> =
            text.split_ascii_whitespace().map(str::parse).collect::<std::result::Result<_, _>>()?;
        // Documentation/block/stat.rst; sectors there are of 512 bytes.
        let [reads, _, sectors_read, _, writes, _, sectors_written, ..] = fields[..] else {
            return Err(anyhow::anyhow!("a short stat file")).context(name.to_owned());
        };
        // Since Linux 5.5.
        let flushes = fields.get(15).copied().unwrap_or(0);
        Ok(Counters {
            reads,
            bytes_read: sectors_read * 512,
            writes,
            bytes_written: sectors_written * 512,
            flushes,
        })
    }

    /// What came since.
    pub fn since(&self, before: &Counters) -> Counters {
        Counters {
            reads: self.reads.saturating_sub(before.reads),
            bytes_read: self.bytes_read.saturating_sub(before.bytes_read),
            writes: self.writes.saturating_sub(before.writes),
            bytes_written: self.bytes_written.saturating_sub(before.bytes_written),
            flushes: self.flushes.saturating_sub(before.flushes),
        }
    }

    /// Per second of `time` and for each of `transactions`.
    pub fn rates(self, time: Duration, transactions: f64) -> Rates {
        Rates { counters: self, seconds: time.as_secs_f64(), transactions }
    }
}

/// Counters to be shown as rates.
pub struct Rates {
    counters: Counters,
    seconds: f64,
    transactions: f64,
}

impl fmt::Display for Rates {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rates { counters, seconds, transactions } = self;
        let share = |count: u64, of: f64| if of > 0.0 { count as f64 / of } else { 0.0 };
        write!(
            out,
            "{:.0} reads/s, {:.0} writes/s, {:.1} MB/s read, {:.1} MB/s written, {:.0} flushes/s; for a transaction {:.2} reads, {:.2} writes, {:.1} kB read, {:.1} kB written",
            share(counters.reads, *seconds),
            share(counters.writes, *seconds),
            share(counters.bytes_read, *seconds) / 1e6,
            share(counters.bytes_written, *seconds) / 1e6,
            share(counters.flushes, *seconds),
            share(counters.reads, *transactions),
            share(counters.writes, *transactions),
            share(counters.bytes_read, *transactions) / 1e3,
            share(counters.bytes_written, *transactions) / 1e3,
        )
    }
}
