//! The load, and what is seen in each of its seconds.

use super::Setup;
use crate::server_process::ServerProcess;
use crate::sysbench::{Sysbench, figure};
use anyhow::{Context, Result};
use mysql::Conn;
use mysql::prelude::Queryable;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// Seconds of a phase of a load that changes.
const PHASE: u32 = 60;

/// The phases of the load.
pub fn phases(setup: &Setup) -> Vec<Phase> {
    let phase = |script, threads, distribution, time| Phase { script, threads, distribution, time };
    if !setup.changing {
        return vec![phase("oltp_write_only", setup.threads, "uniform", setup.time)];
    }
    let turns = [
        phase("oltp_write_only", 4, "uniform", PHASE),
        phase("oltp_write_only", 64, "uniform", PHASE),
        phase("oltp_write_only", 16, "uniform", PHASE),
        phase("oltp_write_only", 4, "special", PHASE),
        phase("oltp_write_only", 64, "special", PHASE),
        phase("oltp_write_only", 16, "special", PHASE),
        phase("oltp_read_write", 4, "uniform", PHASE),
        phase("oltp_read_write", 64, "uniform", PHASE),
        phase("oltp_read_write", 16, "uniform", PHASE),
    ];
    turns.iter().cycle().take((setup.time / PHASE).max(1) as usize).cloned().collect()
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
}

/// What the server says of itself.
#[derive(Clone, Copy, Default)]
struct Seen {
    age: f64,
    age_max: f64,
    pages: f64,
    log_bytes: f64,
}

/// Runs the phase and watches the server from second to second.
pub fn seconds(server: &ServerProcess, sysbench: &Sysbench<'_>, phase: &Phase) -> Result<Vec<Second>> {
    let time = format!("--time={}", phase.time);
    let distribution = format!("--rand-type={}", phase.distribution);
    let over = AtomicBool::new(false);
    let (output, seen) = thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(server, &over));
        let more = [&*time, &*distribution, "--percentile=99", "--report-interval=1"];
        let output = sysbench.run(phase.script, "run", &more);
        over.store(true, Ordering::Release);
        (output, watcher.join())
    });
    let seen = seen.map_err(|_| anyhow::anyhow!("the watcher panicked"))??;
    Ok(combined(&output?, &seen))
}

/// What the server says, each second from now on.
fn watch(server: &ServerProcess, over: &AtomicBool) -> Result<Vec<Seen>> {
    let mut connection = server.connect(None)?;
    let begin = Instant::now();
    let mut seen = Vec::new();
    while !over.load(Ordering::Acquire) {
        seen.push(look(&mut connection)?);
        let next = begin + Duration::from_secs(seen.len() as u64);
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    seen.push(look(&mut connection)?);
    Ok(seen)
}

/// Seconds that a restart would take now, as the server thinks, if it says so.
pub fn recovery_estimate(server: &ServerProcess) -> Result<Option<f64>> {
    let mut connection = server.connect(None)?;
    let row: Option<(String, f64)> =
        connection.query_first("SHOW GLOBAL STATUS LIKE 'Untorn_recovery_estimate_ms'")?;
    Ok(row.map(|(_, milliseconds)| milliseconds / 1e3))
}

fn look(connection: &mut Conn) -> Result<Seen> {
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
    })
}

fn combined(output: &str, seen: &[Seen]) -> Vec<Second> {
    let reports = output.lines().filter(|line| line.starts_with("[ "));
    reports
        .zip(seen.windows(2))
        .map(|(line, pair)| Second {
            transactions: figure(line, " tps:").unwrap_or_default(),
            p99_ms: figure(line, "lat (ms,99%):").unwrap_or_default(),
            age: pair[1].age,
            age_max: pair[1].age_max,
            pages: pair[1].pages - pair[0].pages,
            log_bytes: pair[1].log_bytes - pair[0].log_bytes,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_a_report_with_what_was_seen_during_it() {
        let seen = |age, pages| Seen { age, age_max: 100.0, pages, log_bytes: 2.0 * pages };
        let output = "Threads started!\n\
            [ 1s ] thds: 16 tps: 50.00 qps: 300.00 (r/w/o: 0/200/100) lat (ms,99%): 3.30 err/s: 0.00\n\
            [ 2s ] thds: 16 tps: 70.00 qps: 420.00 (r/w/o: 0/280/140) lat (ms,99%): 4.00 err/s: 0.00\n";
        let seconds = combined(output, &[seen(0.0, 0.0), seen(10.0, 5.0), seen(30.0, 9.0)]);
        assert_eq!(seconds.len(), 2);
        assert_eq!((seconds[0].transactions, seconds[0].p99_ms, seconds[0].pages), (50.0, 3.3, 5.0));
        assert_eq!((seconds[1].transactions, seconds[1].age, seconds[1].log_bytes), (70.0, 30.0, 8.0));
    }

    #[test]
    fn all_scripts_are_known() {
        let known = crate::sysbench::SCRIPTS.map(|(script, _)| script);
        for script in ["oltp_write_only", "oltp_read_write"] {
            assert!(known.contains(&script));
        }
    }
}
