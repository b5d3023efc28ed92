//! A slow disk with the data of all servers, and one run after the other on it.
//!
//! A directory is filled once, without a cap; runs with other settings start on the same data. A server that
//! stops writes its dirty pages, so starts and stops are not capped: they are no part of a run.

use super::Sizes;
use super::judgement::{self, Judged};
use super::seconds::{self, Phase, Second};
use super::servers::Contestant;
use crate::block_device::Counters;
use crate::capped_disk::{Cap, CapKind, CappedDisk, Profile};
use crate::server_process::{ServerProcess, processor_time};
use crate::sysbench::{self, Sysbench};
use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is asked of a server.
pub struct Trial<'t> {
    /// What the run is compared within: a chart is drawn of each group.
    pub group: String,
    /// The settings in a few words.
    pub setting: String,
    pub round: u32,
    /// The server.
    pub contestant: &'t Contestant,
    /// The disk.
    pub profile: Profile,
    /// sysbench's script.
    pub script: &'static str,
}

/// What came of it. Device figures are for a transaction.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    pub group: String,
    pub server: String,
    pub setting: String,
    pub round: u32,
    pub transactions_per_second: f64,
    pub coefficient_of_variation: f64,
    pub p99_ms: f64,
    pub pages_written_per_second: f64,
    pub log_bytes: f64,
    pub processor_us: f64,
    pub device_reads: f64,
    pub device_writes: f64,
    pub device_kib_written: f64,
    pub device_flushes: f64,
    /// In the CSV, not in the record.
    #[serde(skip)]
    pub seconds: Vec<Second>,
}

/// Which run it is.
pub struct Of<'r> {
    pub group: &'r str,
    pub server: &'r str,
    pub setting: &'r str,
    pub round: u32,
}

impl Run {
    /// What these seconds come to, with what the device did and the processor time that the server took.
    pub fn new(of: &Of<'_>, seconds: Vec<Second>, moved: &Counters, processor: Duration) -> Run {
        let transactions: f64 = seconds.iter().map(|second| second.transactions).sum();
        let Judged { mean, variation, p99_ms, pages, log_bytes_each, .. } = judgement::judge(&seconds);
        Run {
            group: of.group.to_owned(),
            server: of.server.to_owned(),
            setting: of.setting.to_owned(),
            round: of.round,
            transactions_per_second: mean,
            coefficient_of_variation: variation,
            p99_ms,
            pages_written_per_second: pages,
            log_bytes: log_bytes_each,
            processor_us: processor.as_secs_f64() * 1e6 / transactions,
            device_reads: moved.reads as f64 / transactions,
            device_writes: moved.writes as f64 / transactions,
            device_kib_written: moved.bytes_written as f64 / 1024.0 / transactions,
            device_flushes: moved.flushes as f64 / transactions,
            seconds,
        }
    }
}

/// The disk and what was filled on it.
pub struct Room<'r> {
    disk: CappedDisk,
    place: &'r Path,
    sizes: &'r Sizes,
    filled: BTreeSet<String>,
}

impl<'r> Room<'r> {
    /// A disk for so much that is to be there at a time. Flushes are real, or answered at once as by a volume
    /// with a safe cache.
    pub fn new(place: &'r Path, sizes: &'r Sizes, mib: u64, flushes: bool) -> Result<Room<'r>> {
        let disk = CappedDisk::create(place, mib << 20, CapKind::Shared, flushes)?;
        Ok(Room { disk, place, sizes, filled: BTreeSet::new() })
    }

    /// A directory beside the disk, without a cap.
    pub fn uncapped(&self) -> PathBuf {
        self.place.to_path_buf()
    }

    /// Fills the tables of a directory that was not filled yet.
    pub fn fill(&mut self, contestant: &Contestant) -> Result<()> {
        if self.filled.contains(&contestant.directory) {
            return Ok(());
        }
        println!("{}: filling {}", contestant.name, contestant.directory);
        let server = contestant.start(self.place, self.disk.path())?;
        sysbench::make_database(&server)?;
        self.load(&server, self.sizes.tables.min(8)).run("oltp_write_only", "prepare", &[])?;
        server.stop()?;
        self.filled.insert(contestant.directory.clone());
        Ok(())
    }

    /// Takes a directory away, for the room that it needs.
    pub fn clear(&mut self, contestant: &Contestant) -> Result<()> {
        self.filled.remove(&contestant.directory);
        let directory = self.disk.path().join(&contestant.directory);
        if directory.exists() {
            std::fs::remove_dir_all(&directory).with_context(|| directory.display().to_string())?;
        }
        Ok(())
    }

    fn load<'s>(&self, server: &'s ServerProcess, threads: u32) -> Sysbench<'s> {
        let (tables, table_size) = (Some(self.sizes.tables), self.sizes.rows);
        Sysbench { server, statement_mode: "auto", threads, tables, table_size }
    }

    /// One run, from the start of the server to its end.
    pub fn measure(&mut self, trial: &Trial<'_>) -> Result<Run> {
        self.fill(trial.contestant)?;
        let measured = self.measured(trial);
        // Whatever happened: what comes next starts without a cap.
        self.disk.limit(Cap::NONE)?;
        let run = measured.with_context(|| format!("{}, {}", trial.contestant.name, trial.setting))?;
        println!(
            "{}, {}, {}, round {}: {:.0} transactions/s",
            run.group, run.server, run.setting, run.round, run.transactions_per_second
        );
        Ok(run)
    }

    fn measured(&mut self, trial: &Trial<'_>) -> Result<Run> {
        let server = trial.contestant.start(self.place, self.disk.path())?;
        let device = self.disk.device()?.to_owned();
        self.disk.behave_as(&trial.profile)?;
        let (script, distribution, threads) = (trial.script, "uniform", self.sizes.threads);
        let load = self.load(&server, threads);
        if self.sizes.warm_up > 0 {
            let time = format!("--time={}", self.sizes.warm_up);
            load.run(script, "run", &[&*time, "--rand-type=uniform"])?;
        }
        // Full buckets: the run is the one that empties them.
        self.disk.behave_as(&trial.profile)?;
        let before = (Counters::of(&device)?, processor_time(server.id())?);
        let phase = Phase { script, threads, distribution, time: self.sizes.time };
        let seconds = seconds::seconds(&server, &device, &load, &phase)?;
        let moved = Counters::of(&device)?.since(&before.0);
        let processor = processor_time(server.id())?.saturating_sub(before.1);
        self.disk.limit(Cap::NONE)?;
        server.stop()?;
        let of = Of {
            group: &trial.group,
            server: &trial.contestant.name,
            setting: &trial.setting,
            round: trial.round,
        };
        Ok(Run::new(&of, seconds, &moved, processor))
    }
}

/// MiB of a disk for data, with the redo log and room to grow.
pub fn disk_mib(sizes: &Sizes, redo_mib: u64) -> u64 {
    sizes.data_mib() * 2 + 2 * redo_mib + 1024
}

/// The figures of the runs of a kind, in the order of the rounds.
pub fn figures(runs: &[&Run], of: impl Fn(&Run) -> f64) -> Vec<f64> {
    runs.iter().map(|run| of(run)).collect()
}

#[cfg(test)]
pub mod tests {
    use super::{Run, Second};

    /// A run of Untorn at an even rate, with a device write of 16 KiB for a transaction.
    pub fn run(group: &str, setting: &str, round: u32, rate: f64) -> Run {
        let second = Second { transactions: rate, ..Second::default() };
        Run {
            group: group.to_owned(),
            server: "Untorn".to_owned(),
            setting: setting.to_owned(),
            round,
            transactions_per_second: rate,
            coefficient_of_variation: 0.0,
            p99_ms: 5.0,
            pages_written_per_second: 1000.0,
            log_bytes: 500.0,
            processor_us: 100.0,
            device_reads: 0.0,
            device_writes: 1.0,
            device_kib_written: 16.0,
            device_flushes: 0.1,
            seconds: vec![second; 4],
        }
    }
}
