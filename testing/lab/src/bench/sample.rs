//! One sample: a script on a server for some seconds, between two readings of the server's counters.

use super::record::Sample;
use super::server_under_test::ServerUnderTest;
use super::summary::SYNCS;
use super::workload::Load;
use crate::server_process::{bytes_written, processor_time};
use crate::sysbench::{connected, figure, succeeded};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

/// Counters that a server may have. [`SYNCS`] includes the syncs of the redo log; `Innodb_data_written`
/// includes its bytes here and in MySQL, not in MariaDB.
const COUNTERS: [&str; 4] = ["Innodb_data_written", SYNCS, "Innodb_os_log_fsyncs", "Innodb_os_log_written"];

/// What a server has done so far.
struct Counters {
    processor: Option<Duration>,
    bytes_written: Option<u64>,
    status: BTreeMap<String, u64>,
}

impl Counters {
    fn of(server: &mut ServerUnderTest) -> Result<Counters> {
        Ok(Counters {
            processor: server.process.map(processor_time).transpose()?,
            // Another user's process does not show it.
            bytes_written: server.process.and_then(|process| bytes_written(process).ok()),
            status: server.counters(&COUNTERS)?,
        })
    }

    fn since(&self, before: &Counters) -> Counters {
        let moved = |now: u64, before: u64| now.saturating_sub(before);
        let status = self
            .status
            .iter()
            .filter_map(|(name, now)| Some((name.clone(), moved(*now, *before.status.get(name)?))));
        Counters {
            processor: self.processor.zip(before.processor).map(|(now, before)| now.saturating_sub(before)),
            bytes_written: self
                .bytes_written
                .zip(before.bytes_written)
                .map(|(now, before)| moved(now, before)),
            status: status.collect(),
        }
    }
}

/// What sysbench says about a run with `--percentile=99`.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Report {
    queries: u64,
    queries_per_second: f64,
    p99_ms: f64,
    ignored_errors: u64,
}

impl Report {
    fn parse(output: &str) -> Option<Report> {
        let queries = output.split_once(" queries:")?.1;
        Some(Report {
            queries: figure(queries, "")? as u64,
            queries_per_second: figure(queries, "(")?,
            p99_ms: figure(output, "99th percentile:")?,
            ignored_errors: figure(output, "ignored errors:")? as u64,
        })
    }
}

fn command(server: &ServerUnderTest, script: &str, load: &Load, seconds: u32, threads: u32) -> Command {
    let mut command = connected(script, server.account(), u64::from(seconds));
    command
        .arg(format!("--threads={threads}"))
        .arg(format!("--tables={}", load.tables))
        .arg(format!("--table-size={}", load.rows));
    command
}

/// Drops and loads the tables.
pub fn load_tables(server: &mut ServerUnderTest, load: &Load) -> Result<()> {
    let before = Counters::of(server)?;
    // Every script but bulk_insert makes the same tables.
    let on = |threads: u32| command(server, "oltp_read_write", load, 0, threads);
    succeeded(on(1).arg("cleanup"))?;
    succeeded(on(load.tables.min(load.threads)).arg("prepare"))?;
    let worked = Counters::of(server)?.since(&before);
    if let (Some(time), Some(process)) = (worked.processor, server.process) {
        ensure!(!time.is_zero(), "process {process} did nothing while {} was loaded", server.name);
    }
    Ok(())
}

/// Runs a script and reads what it took.
pub fn sample(server: &mut ServerUnderTest, script: &str, load: &Load, round: u32) -> Result<Sample> {
    let mut sysbench = command(server, script, load, load.seconds, load.threads);
    sysbench
        .arg(format!("--time={}", load.seconds))
        .args(["--percentile=99".to_owned(), format!("--rand-seed={round}")])
        .arg("run");
    let before = Counters::of(server)?;
    let output = succeeded(&mut sysbench)?;
    let did = Counters::of(server)?.since(&before);
    let report = Report::parse(&output).with_context(|| format!("sysbench {script} printed\n{output}"))?;
    Ok(Sample {
        script: script.to_owned(),
        round,
        server: server.name.clone(),
        queries: report.queries,
        queries_per_second: report.queries_per_second,
        p99_ms: report.p99_ms,
        ignored_errors: report.ignored_errors,
        processor_us: did.processor.map(|time| time.as_micros() as u64),
        bytes_written: did.bytes_written,
        status: did.status,
    })
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::{Counters, Report};
    use std::collections::BTreeMap;
    use std::time::Duration;

    /// What sysbench 1.0.20 printed after a second of oltp_read_write.
    const READ_WRITE: &str = include_str!("read_write.txt");

    #[test]
    fn the_report_of_a_run_is_read() {
        let expected =
            Report { queries: 10325, queries_per_second: 10167.70, p99_ms: 23.95, ignored_errors: 9 };
        assert_eq!(Report::parse(READ_WRITE), Some(expected));
    }

    #[test]
    fn a_run_that_was_cut_off_has_no_report() {
        let (begin, _) = READ_WRITE.split_once("Latency").expect("latencies");
        assert_eq!(Report::parse(begin), None);
    }

    #[test]
    fn counters_are_compared_where_both_readings_have_them() {
        let status = |pairs: &[(&str, u64)]| -> BTreeMap<String, u64> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
        };
        let before = Counters {
            processor: Some(Duration::from_millis(500)),
            bytes_written: None,
            status: status(&[("kept", 5)]),
        };
        let now = Counters {
            processor: Some(Duration::from_millis(700)),
            bytes_written: Some(10),
            status: status(&[("kept", 8), ("new", 1)]),
        };
        let did = now.since(&before);
        assert_eq!(did.processor, Some(Duration::from_millis(200)));
        assert_eq!((did.bytes_written, did.status), (None, status(&[("kept", 3)])));
    }
}
