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

pub use comparison::compare;
pub use cost::{CostSettings, cost};
pub use ramp::ramp;

use crate::capped_disk::CapKind;
use crate::command;
use crate::time_chart::{self, Chart, Line};
use anyhow::Result;
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
    /// Also run a stock server on a disk like it: `mariadb` for the one of this machine, or `NAME=COMMAND`
    /// with a shell command that becomes the server (`exec`), on the directory $DATA (to be filled when it is
    /// empty), the port $PORT and the socket $SOCKET, with the options $SETTINGS and a root user without
    /// password.
    #[arg(long)]
    pub peer: Vec<String>,
    /// Where the chart goes.
    #[arg(long, default_value = "target/extension.svg")]
    pub chart: PathBuf,
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

fn write_charts(settings: &Settings, charts: &[Chart]) -> Result<()> {
    let path = command::root().join(&settings.chart);
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    time_chart::write(&path, charts)?;
    println!("chart: {}", path.display());
    Ok(())
}
