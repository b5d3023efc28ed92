//! A short measurement of page writes and syncs in a directory, for users who ask what a verdict is worth
//! there.
//!
//! The file it writes has lost its name before the first byte is written, so nothing is left behind however
//! the measurement ends. Its blocks are filled with zeros first: writes into them allocate nothing, as in a
//! tablespace.

use crate::real::{RealOptions, RealStorage};
use crate::{AlignedBuf, Error, File, IoBuf, IoKind, OpenHow, Random, Result, Storage, block_on, submit_one};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Pages of the measured file.
const PAGES: usize = 256;
/// Most operations of a kind.
const WRITES: usize = 200;
const SYNCS: usize = 12;

/// What was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Bytes of the file that was made for it (and is gone).
    pub file_bytes: u64,
    /// `fdatasync` after the write of one page.
    pub sync: Latency,
    /// The write of one page, without sync.
    pub plain_write: Latency,
    /// The same with `RWF_ATOMIC`; `None` when it is refused.
    pub atomic_write: Option<Latency>,
    /// Why it is.
    pub atomic_refusal: Option<String>,
}

/// Times of one kind of operation, in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Latency {
    /// How many were done.
    pub count: usize,
    /// Half of them took no longer.
    pub median_us: f64,
    /// The longest.
    pub longest_us: f64,
}

/// Writes and syncs pages of `page_bytes` bytes in a file of its own in `directory`, through the same I/O as
/// the engine, one at a time. Each kind of operation takes `time` at most.
///
/// # Errors
/// When the file cannot be made, written or synced. A refused atomic write is a result.
pub fn measure(directory: &Path, page_bytes: usize, time: Duration) -> Result<Measured> {
    let storage = RealStorage::new(RealOptions::default())?;
    let path = directory.join(format!(".untorn-probe-{}", std::process::id()));
    let file = storage.open(&path, OpenHow::CREATE_NEW)?;
    storage.remove(&path)?;
    let file_bytes = (PAGES * page_bytes) as u64;
    file.write_zeros(0, file_bytes)?;
    file.sync_data()?;
    let mut bench = Bench { storage, file, page: page_bytes, random: Random::new(1), time };
    let mut syncs = Vec::new();
    let plain_write = bench.writes(false)?;
    let begin = Instant::now();
    while syncs.len() < SYNCS && (syncs.is_empty() || begin.elapsed() < time) {
        bench.write(false)?;
        let begin = Instant::now();
        bench.file.sync_data()?;
        syncs.push(begin.elapsed());
    }
    let (atomic_write, atomic_refusal) = match bench.writes(true) {
        Ok(latency) => (Some(latency), None),
        Err(error) if error.is_atomic_refusal() => (None, Some(error.io().to_string())),
        Err(error) => return Err(error),
    };
    Ok(Measured { file_bytes, sync: latency(syncs), plain_write, atomic_write, atomic_refusal })
}

struct Bench {
    storage: RealStorage,
    file: Arc<dyn File>,
    page: usize,
    random: Random,
    time: Duration,
}

impl Bench {
    fn writes(&mut self, atomic: bool) -> Result<Latency> {
        let mut times = Vec::new();
        let begin = Instant::now();
        while times.len() < WRITES && (times.is_empty() || begin.elapsed() < self.time) {
            times.push(self.write(atomic)?);
        }
        Ok(latency(times))
    }

    fn write(&mut self, atomic: bool) -> std::result::Result<Duration, Error> {
        let mut image = AlignedBuf::zeroed(self.page);
        image.fill(self.random.next_u64() as u8);
        let offset = (self.random.below(PAGES) * self.page) as u64;
        let kind = IoKind::Write { buf: IoBuf::owned(image), offset, atomic, sync: false };
        let begin = Instant::now();
        block_on(submit_one(&self.storage, &self.file, kind))?;
        Ok(begin.elapsed())
    }
}

fn latency(mut times: Vec<Duration>) -> Latency {
    times.sort_unstable();
    let micros = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_nanos() as f64 / 1000.0);
    Latency {
        count: times.len(),
        median_us: micros(times.get(times.len() / 2)),
        longest_us: micros(times.last()),
    }
}
