//! A load, and what is seen in each of its seconds: by sysbench, by the server, by the device.

use crate::block_device::Counters;
use crate::processor_speed::{ProcessorSpeed, Steps};
use crate::server_process::ServerProcess;
use crate::sysbench::{Sysbench, figure};
use anyhow::{Context, Result};
use mysql::Conn;
use mysql::prelude::Queryable;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A stretch of the same load.
#[derive(Clone, Debug, Serialize)]
pub struct Phase {
    /// sysbench's script.
    pub script: &'static str,
    /// Clients.
    pub threads: u32,
    /// sysbench's `--rand-type`.
    pub distribution: &'static str,
    /// Seconds.
    pub time: u32,
}

/// One second.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Second {
    /// Transactions.
    pub transactions: f64,
    /// 99 of 100 took no longer, ms.
    pub p99_ms: f64,
    /// Bytes of log from the oldest change that is not in its file, at its end, where the server says so.
    pub age: f64,
    /// The most it may become.
    pub age_max: f64,
    /// Pages written to their files.
    pub pages: f64,
    /// Bytes written to the log.
    pub log_bytes: f64,
    /// Reads that the device did.
    pub device_reads: f64,
    /// Writes that the device did.
    pub device_writes: f64,
    /// Bytes of these writes.
    pub device_bytes_written: f64,
    /// How fast the processors were, in steps of a count that means nothing but beside another second's.
    pub processor: f64,
}

/// What processors, server and device say of themselves.
#[derive(Clone, Copy, Default)]
struct Seen {
    age: f64,
    age_max: f64,
    pages: f64,
    log_bytes: f64,
    device: Counters,
    processor: Steps,
}

/// Of each phase its own. A second run by the same numbers over the same tables would write what is there
/// already: four in five of its updates would change nothing.
static NEXT_SEED: AtomicU64 = AtomicU64::new(17);

/// Runs the phase and watches processors, server and device from second to second.
pub fn seconds(
    server: &ServerProcess,
    device: &str,
    sysbench: &Sysbench<'_>,
    phase: &Phase,
) -> Result<Vec<Second>> {
    let time = format!("--time={}", phase.time);
    let distribution = format!("--rand-type={}", phase.distribution);
    let seed = format!("--rand-seed={}", NEXT_SEED.fetch_add(1, Ordering::Relaxed));
    let over = AtomicBool::new(false);
    let (output, seen) = thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(server, device, &over));
        let more = [&*time, &*distribution, &*seed, "--percentile=99", "--report-interval=1"];
        let output = sysbench.run(phase.script, "run", &more);
        over.store(true, Ordering::Release);
        (output, watcher.join())
    });
    let seen = seen.map_err(|_| anyhow::anyhow!("the watcher panicked"))??;
    Ok(combined(&output?, &seen))
}

/// What they say, each second from now on.
fn watch(server: &ServerProcess, device: &str, over: &AtomicBool) -> Result<Vec<Seen>> {
    let mut connection = server.connect(None)?;
    let processors = ProcessorSpeed::watch();
    let begin = Instant::now();
    let mut seen = Vec::new();
    while !over.load(Ordering::Acquire) {
        seen.push(look(&mut connection, device, &processors)?);
        let next = begin + Duration::from_secs(seen.len() as u64);
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    seen.push(look(&mut connection, device, &processors)?);
    Ok(seen)
}

fn look(connection: &mut Conn, device: &str, processors: &ProcessorSpeed) -> Result<Seen> {
    let rows: Vec<(String, String)> = connection.query("SHOW GLOBAL STATUS LIKE 'Innodb%'")?;
    let number = |name: &str| {
        let row = rows.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        row.and_then(|(_, value)| value.parse::<f64>().ok())
    };
    let difference = |from: &str, to: &str| Some(number(to)? - number(from)?);
    Ok(Seen {
        // MySQL has no age, but both ends of it.
        age: number("Innodb_checkpoint_age")
            .or_else(|| difference("Innodb_redo_log_checkpoint_lsn", "Innodb_redo_log_current_lsn"))
            .unwrap_or(f64::NAN),
        age_max: number("Innodb_checkpoint_max_age")
            .or_else(|| number("Innodb_redo_log_capacity_resized"))
            .unwrap_or(f64::NAN),
        pages: number("Innodb_pages_written").context("no Innodb_pages_written")?,
        log_bytes: number("Innodb_os_log_written").unwrap_or(f64::NAN),
        device: Counters::of(device)?,
        processor: processors.steps(),
    })
}

fn combined(output: &str, seen: &[Seen]) -> Vec<Second> {
    let reports = output.lines().filter(|line| line.starts_with("[ "));
    reports
        .zip(seen.windows(2))
        .map(|(line, pair)| {
            let device = pair[1].device.since(&pair[0].device);
            Second {
                transactions: figure(line, " tps:").unwrap_or_default(),
                p99_ms: figure(line, "lat (ms,99%):").unwrap_or_default(),
                age: pair[1].age,
                age_max: pair[1].age_max,
                pages: pair[1].pages - pair[0].pages,
                log_bytes: pair[1].log_bytes - pair[0].log_bytes,
                device_reads: device.reads as f64,
                device_writes: device.writes as f64,
                device_bytes_written: device.bytes_written as f64,
                processor: pair[1].processor.speed_since(pair[0].processor),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_a_report_with_what_was_seen_during_it() {
        let seen = |age, pages| Seen {
            age,
            age_max: 100.0,
            pages,
            log_bytes: 2.0 * pages,
            device: Counters { writes: 3 * pages as u64, ..Counters::default() },
            processor: Steps::default(),
        };
        let output = "Threads started!\n\
            [ 1s ] thds: 16 tps: 50.00 qps: 300.00 (r/w/o: 0/200/100) lat (ms,99%): 3.30 err/s: 0.00\n\
            [ 2s ] thds: 16 tps: 70.00 qps: 420.00 (r/w/o: 0/280/140) lat (ms,99%): 4.00 err/s: 0.00\n";
        let seconds = combined(output, &[seen(0.0, 0.0), seen(10.0, 5.0), seen(30.0, 9.0)]);
        assert_eq!(seconds.len(), 2);
        assert_eq!((seconds[0].transactions, seconds[0].p99_ms, seconds[0].pages), (50.0, 3.3, 5.0));
        assert_eq!((seconds[1].transactions, seconds[1].age, seconds[1].log_bytes), (70.0, 30.0, 8.0));
        assert_eq!((seconds[0].device_writes, seconds[1].device_writes), (15.0, 12.0));
    }
}
