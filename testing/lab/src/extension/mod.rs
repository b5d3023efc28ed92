//! The buffer pool extension on a slow data disk: what it gives, what it costs, how warm it is after
//! `kill -9`. The soak is a campaign.
//!
//! The data disk is an XFS file system on a loop device, capped to a number of requests and bytes per second
//! ([`crate::capped_disk`]); the extension is a file outside it. Off and on are measured in turn on the
//! same running server, which is switched with `SET GLOBAL untorn_bpe`, so that a drift of the machine hits
//! both.

mod comparison;
mod cost;
mod interval;
mod ramp;
mod stage;
pub mod workload;

pub use comparison::{CompareSettings, compare};
pub use cost::{CostSettings, cost};
pub use ramp::ramp;

use crate::capped_disk::CapKind;
use crate::experiment::report::Files;
use crate::time_chart::{Chart, Line};
use anyhow::Result;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::PathBuf;

const MIB: u64 = 1 << 20;

/// Sizes and times of an experiment.
#[derive(clap::Args, Clone, Debug)]
pub struct Settings {
    /// MiB of the buffer pool; the data is 16 times as large, the extension 8 times.
    #[arg(long, default_value_t = 64)]
    pub pool_mib: u64,
    /// Seconds of a measurement.
    #[arg(long, default_value_t = 60)]
    pub seconds: u32,
    /// Seconds of load before a measurement.
    #[arg(long, default_value_t = 60)]
    pub warm_up: u32,
    /// Measurements of each kind.
    #[arg(long, default_value_t = 2)]
    pub rounds: u32,
    /// Clients.
    #[arg(long, default_value_t = 64)]
    pub threads: u32,
    /// What the cap of the data disk counts: reads and writes together, or each.
    #[arg(long, value_enum, default_value = "shared")]
    pub cap: CapKind,
    /// Flushes of the data disk are answered at once, as by a volume with a safe cache; with a shared cap.
    #[arg(long)]
    pub no_flushes: bool,
    /// Cap of the data disk: requests per second.
    #[arg(long, default_value_t = 3000)]
    pub iops: u64,
    /// Cap of the data disk: MB per second.
    #[arg(long, default_value_t = 160)]
    pub mb_per_second: u64,
    /// Where chart (`.svg`), table (`.md`), every second (`.csv`) and record (`.json`) go, without the
    /// ending.
    #[arg(long, value_name = "PATH", default_value = "target/extension")]
    pub output: PathBuf,
}

fn describe_machine(settings: &Settings) {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "machine: {cores} cores, Linux {}, load {}; data disk capped at {} requests/s and {} MB/s, {}{}; extension not capped",
        read("/proc/sys/kernel/osrelease").trim(),
        read("/proc/loadavg").split(' ').next().unwrap_or("?"),
        settings.iops,
        settings.mb_per_second,
        settings.cap,
        if settings.no_flushes { ", flushes answered at once" } else { "" },
    );
}

const UNIT: &str = "queries per second";

/// The seconds of the first of several runs.
fn line(name: &str, runs: &[workload::Run]) -> Line {
    Line::of_seconds(name, runs.first().map_or(&[][..], |run| &run.seconds))
}

/// Runs of load, with the words that say what each is.
type Named<'r> = (String, &'r workload::Run);

/// Prints and writes what an experiment has come to: the text, and every second of the runs.
fn publish(
    settings: &Settings,
    text: &str,
    charts: &[Chart],
    runs: &[Named<'_>],
    found: Value,
) -> Result<()> {
    let mut seconds = "run,second,queries,transactions_per_second_of_the_run,p99_ms_of_the_run\n".to_owned();
    for (name, run) in runs {
        for (at, queries) in run.seconds.iter().enumerate() {
            // Writing to a string does not fail.
            let _ = writeln!(
                seconds,
                "{},{},{queries},{},{}",
                name.replace(',', ";"),
                at + 1,
                run.transactions_per_second,
                run.p99
            );
        }
    }
    let record = json!({
        "setup": {
            "pool_mib": settings.pool_mib, "seconds": settings.seconds, "warm_up": settings.warm_up,
            "rounds": settings.rounds, "threads": settings.threads, "cap": settings.cap.to_string(),
            "flushes": !settings.no_flushes, "iops": settings.iops, "mb_per_second": settings.mb_per_second,
        },
        "found": found,
    });
    Files::at(&settings.output)?.write(text, charts, &seconds, record)
}
