//! The table, the chart, the seconds and the record.

use super::goals::conclusion;
use super::{Restart, Run, Setup};
use crate::experiment::judgement::judge;
use crate::experiment::seconds::{Phase, Second};
use crate::experiment::table::Table;
use crate::time_chart::{Chart, Line};
use serde_json::{Value, json};
use std::fmt::Write;

/// Seconds of each phase of a changing load that are not judged.
const SETTLE_PHASE: usize = 5;

/// The seconds of each phase that count.
pub fn counted<'r>(run: &'r Run, phases: &[Phase], settle: u32) -> Vec<&'r [Second]> {
    let skip = if phases.len() > 1 { SETTLE_PHASE } else { settle as usize };
    run.phases.iter().map(|seconds| seconds.get(skip..).unwrap_or(&[])).collect()
}

/// One line about a run.
pub fn line(run: &Run, phases: &[Phase], settle: u32) -> String {
    let mut text = format!("{}:", run.name);
    for seconds in counted(run, phases, settle) {
        let judged = judge(seconds);
        // Writing to a string does not fail.
        let _ = write!(
            text,
            " {:.0} transactions/s (CoV {:.3}, worst {:.2})",
            judged.mean, judged.variation, judged.worst
        );
    }
    text
}

/// A line of a table for each run, or for each run and phase; the restarts; the conclusion.
pub fn markdown(setup: &Setup, phases: &[Phase], runs: &[Run]) -> String {
    let mut loads = Table::new(
        &["server", "load"],
        &[
            "transactions/s",
            "CoV",
            "worst second",
            "p99 ms",
            "age of maximum",
            "pages written/s",
            "log bytes each",
            "processors' CoV",
            "processors' worst second",
        ],
    );
    let mut restarts =
        Table::new(&["`kill -9` at the end"], &["log to read, MB", "restart s", "estimated s", "target s"]);
    for run in runs {
        for (phase, seconds) in phases.iter().zip(counted(run, phases, setup.settle)) {
            let judged = judge(seconds);
            loads.row(vec![
                run.name.clone(),
                format!("{}, {}, {} clients", phase.script, phase.distribution, phase.threads),
                format!("{:.0}", judged.mean),
                format!("{:.3}", judged.variation),
                format!("{:.2}", judged.worst),
                format!("{:.1}", judged.p99_ms),
                format!("{:.0}–{:.0} %", judged.age.0 * 100.0, judged.age.1 * 100.0),
                format!("{:.0}", judged.pages),
                format!("{:.0}", judged.log_bytes_each),
                format!("{:.3}", judged.processor_variation),
                format!("{:.2}", judged.processor_worst),
            ]);
        }
        let Restart { age, estimate_seconds, target_seconds, seconds } = run.restart;
        let told = |seconds: Option<f64>| seconds.map_or_else(String::new, |seconds| format!("{seconds:.1}"));
        restarts.row(vec![
            run.name.clone(),
            format!("{:.0}", age / 1e6),
            format!("{seconds:.1}"),
            told(estimate_seconds),
            told(target_seconds),
        ]);
    }
    format!(
        "pool {} MiB, redo log {} MiB, {} × {} rows, XFS capped at {} operations/s and {} MB/s, reads and writes each\n\n{loads}\n{restarts}\n{}\n",
        setup.pool,
        setup.redo,
        setup.tables,
        setup.rows,
        setup.operations,
        setup.megabytes,
        conclusion(phases, runs, setup.settle)
    )
}

/// Transactions, age, page writes and the processors' speed in each second.
pub fn charts(runs: &[Run]) -> [Chart; 4] {
    let chart = |title: &str, unit, figure: fn(&Second) -> f64| {
        let lines = runs.iter().map(|run| {
            let figures: Vec<f64> = run.phases.iter().flatten().map(figure).collect();
            Line::of_seconds(&run.name, &figures)
        });
        Chart { title: title.to_owned(), unit, lines: lines.collect() }
    };
    [
        chart("Transactions in each second", "transactions", |second| second.transactions),
        chart("Checkpoint age", "MB", |second| second.age / 1e6),
        chart("Pages written in each second", "pages", |second| second.pages),
        chart("How fast the processors themselves were", "steps/µs", |second| second.processor),
    ]
}

/// Every second of every run.
pub fn seconds_as_csv(runs: &[Run]) -> String {
    let mut text =
        "server,second,transactions,p99_ms,age,age_max,pages_written,log_bytes,processor\n".to_owned();
    for run in runs {
        for (at, second) in run.phases.iter().flatten().enumerate() {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{},{}",
                run.name,
                at + 1,
                second.transactions,
                second.p99_ms,
                second.age,
                second.age_max,
                second.pages,
                second.log_bytes,
                second.processor
            );
        }
    }
    text
}

/// What was run, and what it came to.
pub fn record(setup: &Setup, phases: &[Phase], runs: &[Run]) -> Value {
    let results = runs.iter().map(|run| {
        let phases = counted(run, phases, setup.settle).into_iter().map(|seconds| {
            let judged = judge(seconds);
            json!({
                "transactions_per_second": judged.mean,
                "coefficient_of_variation": judged.variation,
                "worst_second_of_mean": judged.worst,
                "p99_ms": judged.p99_ms,
                "age_of_maximum": [judged.age.0, judged.age.1],
                "pages_written_per_second": judged.pages,
                "processor_coefficient_of_variation": judged.processor_variation,
                "processor_worst_second_of_mean": judged.processor_worst,
            })
        });
        json!({ "server": run.name, "phases": phases.collect::<Vec<_>>(), "restart": run.restart })
    });
    json!({
        "setup": {
            "pool_mib": setup.pool, "redo_mib": setup.redo, "tables": setup.tables, "rows": setup.rows,
            "settle_seconds": setup.settle, "operations_per_second": setup.operations,
            "megabytes_per_second": setup.megabytes, "settings": setup.setting,
        },
        "phases": phases,
        "results": results.collect::<Vec<_>>(),
        "conclusion": conclusion(phases, runs, setup.settle),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(rates: &[f64]) -> Vec<Second> {
        let second =
            |&transactions: &f64| Second { transactions, age: 9.0, age_max: 10.0, ..Second::default() };
        rates.iter().map(second).collect()
    }

    #[test]
    fn what_settles_is_not_judged() {
        let phase = Phase { script: "oltp_write_only", threads: 1, distribution: "uniform", time: 4 };
        let run = Run {
            name: "A".to_owned(),
            phases: vec![seconds(&[1.0, 1.0, 5.0, 5.0])],
            restart: Restart::default(),
        };
        assert_eq!(counted(&run, &[phase], 2)[0].len(), 2);
        assert!(line(&run, &[], 2).contains("5 transactions/s (CoV 0.000, worst 1.00)"));
    }
}
