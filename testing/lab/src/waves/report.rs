//! The table, the chart, the seconds and the record.

use super::load::{Phase, Second};
use super::{Restart, Run, Setup};
use crate::bench::provenance::Machine;
use crate::statistics::{coefficient_of_variation, mean};
use crate::time_chart::{self, Chart, Line};
use anyhow::Result;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Seconds of each phase of a changing load that are not judged.
const SETTLE_PHASE: usize = 5;

/// What a stretch of seconds comes to.
#[derive(Clone, Copy)]
struct Judged {
    mean: f64,
    variation: f64,
    /// The worst second, as a part of the mean.
    worst: f64,
    p99_ms: f64,
    /// Least and most age, as parts of its maximum.
    age: (f64, f64),
    pages: f64,
    log_bytes_each: f64,
}

fn judge(seconds: &[Second]) -> Judged {
    let rates: Vec<f64> = seconds.iter().map(|second| second.transactions).collect();
    let mean_rate = mean(&rates);
    let of = |figure: fn(&Second) -> f64| seconds.iter().map(figure).collect::<Vec<_>>();
    let ages = of(|second| second.age / second.age_max);
    Judged {
        mean: mean_rate,
        variation: coefficient_of_variation(&rates),
        worst: rates.iter().copied().fold(f64::INFINITY, f64::min) / mean_rate,
        p99_ms: crate::statistics::median(of(|second| second.p99_ms)),
        age: (
            ages.iter().copied().fold(f64::INFINITY, f64::min),
            ages.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        ),
        pages: mean(&of(|second| second.pages)),
        log_bytes_each: mean(&of(|second| second.log_bytes)) / mean_rate,
    }
}

/// The seconds of each phase that count.
fn counted<'r>(run: &'r Run, phases: &[Phase], settle: u32) -> Vec<&'r [Second]> {
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

/// Prints a line of a table for each run, or for each run and phase.
pub fn print_table(setup: &Setup, phases: &[Phase], runs: &[Run]) {
    println!(
        "\npool {} MiB, redo log {} MiB, {} × {} rows, XFS capped at {} operations/s and {} MB/s, reads and writes each\n",
        setup.pool, setup.redo, setup.tables, setup.rows, setup.operations, setup.megabytes
    );
    println!(
        "| server | load | transactions/s | CoV | worst second | p99 ms | age of maximum | pages written/s | log bytes each |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|");
    for run in runs {
        for (phase, seconds) in phases.iter().zip(counted(run, phases, setup.settle)) {
            let judged = judge(seconds);
            println!(
                "| {} | {}, {}, {} clients | {:.0} | {:.3} | {:.2} | {:.1} | {:.0}–{:.0} % | {:.0} | {:.0} |",
                run.name,
                phase.script,
                phase.distribution,
                phase.threads,
                judged.mean,
                judged.variation,
                judged.worst,
                judged.p99_ms,
                judged.age.0 * 100.0,
                judged.age.1 * 100.0,
                judged.pages,
                judged.log_bytes_each,
            );
        }
    }
    println!("\n| `kill -9` at the end | log to read, MB | restart s | estimated s |");
    println!("|---|---:|---:|---:|");
    for run in runs {
        let Restart { age, estimate_seconds, seconds } = run.restart;
        let estimate = estimate_seconds.map_or_else(String::new, |estimate| format!("{estimate:.1}"));
        println!("| {} | {:.0} | {seconds:.1} | {estimate} |", run.name, age / 1e6);
    }
    if let Some(sentence) = conclusion(phases, runs, setup.settle) {
        println!("\n{sentence}");
    }
}

/// The first run beside the first of another server, in a sentence.
fn conclusion(phases: &[Phase], runs: &[Run], settle: u32) -> Option<String> {
    let ours = runs.first()?;
    let theirs = runs.iter().find(|run| !run.name.starts_with("Untorn"))?;
    let judged = |run: &Run| judge(&counted(run, phases, settle).concat());
    let (one, other) = (judged(ours), judged(theirs));
    Some(format!(
        "{} runs {:.2} times as many transactions as {}; its worst second has {:.0} % of its mean, that of {} {:.0} %.",
        ours.name,
        one.mean / other.mean,
        theirs.name,
        one.worst * 100.0,
        theirs.name,
        other.worst * 100.0,
    ))
}

/// Transactions, age and page writes in each second.
pub fn write_chart(path: &Path, runs: &[Run]) -> Result<()> {
    let chart = |title: &str, unit, figure: fn(&Second) -> f64| {
        let lines = runs.iter().map(|run| {
            let figures: Vec<f64> = run.phases.iter().flatten().map(figure).collect();
            let drawable: Vec<f64> = figures.iter().map(|f| if f.is_finite() { *f } else { 0.0 }).collect();
            Line::of_seconds(&run.name, &drawable)
        });
        Chart { title: title.to_owned(), unit, lines: lines.collect() }
    };
    time_chart::write(
        path,
        &[
            chart("Transactions in each second", "transactions", |second| second.transactions),
            chart("Checkpoint age", "MB", |second| second.age / 1e6),
            chart("Pages written in each second", "pages", |second| second.pages),
        ],
    )
}

/// Every second of every run.
pub fn seconds_as_csv(runs: &[Run]) -> String {
    let mut text = "server,second,transactions,p99_ms,age,age_max,pages_written,log_bytes\n".to_owned();
    for run in runs {
        for (at, second) in run.phases.iter().flatten().enumerate() {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{}",
                run.name,
                at + 1,
                second.transactions,
                second.p99_ms,
                second.age,
                second.age_max,
                second.pages,
                second.log_bytes
            );
        }
    }
    text
}

/// What was run where, and what it came to.
pub fn record(
    setup: &Setup,
    phases: &[Phase],
    runs: &[Run],
    machine: &Machine,
    commit: &str,
    changed: bool,
    time: &str,
) -> Value {
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
            })
        });
        json!({ "server": run.name, "phases": phases.collect::<Vec<_>>(), "restart": run.restart })
    });
    json!({
        "time": time,
        "commit": commit,
        "sources_changed": changed,
        "machine": machine,
        "setup": {
            "pool_mib": setup.pool, "redo_mib": setup.redo, "tables": setup.tables, "rows": setup.rows,
            "settle_seconds": setup.settle, "operations_per_second": setup.operations,
            "megabytes_per_second": setup.megabytes, "settings": setup.setting,
        },
        "phases": phases,
        "results": results.collect::<Vec<_>>(),
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
    fn the_worst_second_is_a_part_of_the_mean() {
        let judged = judge(&seconds(&[10.0, 10.0, 4.0]));
        assert_eq!((judged.mean, judged.worst, judged.age), (8.0, 0.5, (0.9, 0.9)));
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
