//! How fast the log is applied after `kill -9`.
//!
//! Settings that keep a server from writing pages early let the age of the log grow near its maximum; then
//! it is killed. Every start is of a fresh copy of the files, on a disk without a cap. What a start of the
//! same files takes after a clean stop is taken off: what is left is recovery, by the same clock for all.

use super::{Found, Setup, load, pool};
use crate::command::captured;
use crate::experiment::seconds::{self, Phase};
use crate::experiment::servers::{Contestant, Server, stock};
use crate::experiment::table::Table;
use crate::file_system::{FileSystem, FileSystemKind};
use crate::server_process::{Kind, processor_time};
use crate::statistics::median;
use crate::sysbench;
use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

/// MB of log a second, beside MySQL.
const GOAL: f64 = 3.0;

/// One start after the kill.
#[derive(Clone, Serialize)]
struct Start {
    server: String,
    round: u32,
    /// Bytes of log since the checkpoint.
    log_bytes: f64,
    /// From the start of the process to its first answer, after the kill.
    seconds: f64,
    /// The same after a clean stop.
    clean_seconds: f64,
    /// Processor time until the first answer after the kill.
    processor_seconds: f64,
}

impl Start {
    fn recovery(&self) -> f64 {
        (self.seconds - self.clean_seconds).max(0.001)
    }
}

/// All servers: loaded and killed, then started in turn.
pub fn run(servers: &[Server], setup: &Setup, place: &Path) -> Result<Found> {
    let each = 4 * setup.sizes.data_mib() + 4 * setup.redo + 1024;
    let size = servers.len() as u64 * each;
    let mut disk = FileSystem::create(place, "recovery", FileSystemKind::Xfs, size)?;
    let mut killed = Vec::new();
    for server in servers {
        killed.push(loaded_and_killed(server, setup, place, &disk)?);
    }
    let mut starts = Vec::new();
    for round in 1..=setup.sizes.rounds {
        for (server, log_bytes) in servers.iter().zip(&killed) {
            let start = Start { round, log_bytes: *log_bytes, ..started(server, setup, place, disk.path())? };
            println!(
                "{}, round {round}: {:.2} s for {:.0} MB of log, {:.2} s after a clean stop",
                start.server,
                start.seconds,
                start.log_bytes / 1e6,
                start.clean_seconds
            );
            starts.push(start);
        }
    }
    disk.unmount()?;
    Ok(found(&starts, setup))
}

fn contestant(server: &Server, setup: &Setup) -> Contestant {
    let mut settings = vec![pool(&setup.sizes), server.redo(setup.redo)];
    settings.push("--innodb-doublewrite=OFF".to_owned());
    settings.push("--innodb-buffer-pool-dump-at-shutdown=OFF".to_owned());
    settings.push("--innodb-buffer-pool-load-at-startup=OFF".to_owned());
    if server.is_ours() {
        settings.push("--untorn-recovery-target=600".to_owned());
    } else {
        settings.extend(stock(100));
        settings.push("--innodb-adaptive-flushing=OFF".to_owned());
        settings.push("--innodb-max-dirty-pages-pct=99".to_owned());
        if server.program.kind == Kind::MariaDb {
            settings.push("--innodb-max-dirty-pages-pct-lwm=99".to_owned());
        } else {
            settings.push("--innodb-idle-flush-pct=0".to_owned());
            settings.push("--innodb-max-dirty-pages-pct-lwm=0".to_owned());
        }
    }
    server.with(settings)
}

/// The files as the kill left them.
fn killed(contestant: &Contestant, disk: &Path) -> PathBuf {
    disk.join(format!("{}-killed", contestant.directory))
}

/// Bytes of log that the start will find.
fn loaded_and_killed(server: &Server, setup: &Setup, place: &Path, disk: &FileSystem) -> Result<f64> {
    let (contestant, sizes) = (contestant(server, setup), &setup.sizes);
    println!("{}: filling the tables, then a load until the log is nearly full", server.name);
    let mut running = contestant.start(place, disk.path())?;
    sysbench::make_database(&running)?;
    load(&running, sizes, sizes.tables.min(8)).run("oltp_write_only", "prepare", &[])?;
    running.stop()?;
    running = contestant.start(place, disk.path())?;
    let (script, threads, distribution) = ("oltp_write_only", sizes.threads, "uniform");
    let phase = Phase { script, threads, distribution, time: sizes.time };
    let seconds = seconds::seconds(&running, disk.device()?, &load(&running, sizes, threads), &phase)?;
    running.kill();
    std::fs::rename(disk.path().join(&contestant.directory), killed(&contestant, disk.path()))?;
    let last = seconds.last().context("no second of load")?;
    println!("{}: killed at {:.0} of {:.0} MB", server.name, last.age / 1e6, last.age_max / 1e6);
    Ok(last.age)
}

/// A start of a copy of the killed files, and one after a clean stop.
fn started(server: &Server, setup: &Setup, place: &Path, disk: &Path) -> Result<Start> {
    let contestant = contestant(server, setup);
    let (directory, killed) = (disk.join(&contestant.directory), killed(&contestant, disk));
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    captured(Command::new("cp").args(["--archive", "--sparse=auto"]).arg(&killed).arg(&directory))?;
    captured(&mut Command::new("sync"))?;
    let running = contestant.start(place, disk)?;
    let (seconds, processor_seconds) =
        (running.started_in.as_secs_f64(), processor_time(running.id())?.as_secs_f64());
    running.stop()?;
    let running = contestant.start(place, disk)?;
    let clean_seconds = running.started_in.as_secs_f64();
    running.stop()?;
    let name = server.name.clone();
    Ok(Start { server: name, round: 0, log_bytes: 0.0, seconds, clean_seconds, processor_seconds })
}

fn found(starts: &[Start], setup: &Setup) -> Found {
    let sizes = &setup.sizes;
    let mut table = Table::new(
        &["server"],
        &[
            "log, MB",
            "start after the kill, s",
            "after a clean stop, s",
            "CPU of the start, s",
            "MB of log/s",
            "× Untorn",
        ],
    );
    let mut names: Vec<&str> = Vec::new();
    for start in starts {
        if !names.contains(&start.server.as_str()) {
            names.push(&start.server);
        }
    }
    let middle = |name: &str, figure: fn(&Start) -> f64| {
        median(starts.iter().filter(|start| start.server == name).map(figure).collect())
    };
    let speed = |name: &str| middle(name, |start| start.log_bytes / 1e6 / start.recovery());
    let ours = names.first().map_or(f64::NAN, |name| speed(name));
    let mut told = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let speed = speed(name);
        table.row(vec![
            (*name).to_owned(),
            format!("{:.0}", middle(name, |start| start.log_bytes / 1e6)),
            format!("{:.2}", middle(name, |start| start.seconds)),
            format!("{:.2}", middle(name, |start| start.clean_seconds)),
            format!("{:.2}", middle(name, |start| start.processor_seconds)),
            format!("{speed:.0}"),
            format!("{:.2}", speed / ours),
        ]);
        if at > 0 {
            told.push(format!("{:.1} times as fast as {name}", ours / speed));
        }
    }
    let told = if told.is_empty() { String::new() } else { format!("Untorn recovers {}", told.join(", ")) };
    let text = format!(
        "`kill -9` under oltp_write_only, uniform, {} × {} rows, {} clients, redo log {} MiB, no doublewrite, no cap; medians of {} starts, each of a fresh copy. The time of a start after a clean stop is taken off.\n\n{table}\n{told} (goal: {GOAL:.0} × MySQL).\n",
        sizes.tables, sizes.rows, sizes.threads, setup.redo, sizes.rounds
    );
    Found { text, charts: Vec::new(), record: json!({ "starts": starts }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovery_is_what_a_clean_start_does_not_take() {
        let start = Start {
            server: "Untorn".to_owned(),
            round: 1,
            log_bytes: 100e6,
            seconds: 1.5,
            clean_seconds: 0.5,
            processor_seconds: 1.0,
        };
        assert_eq!(start.recovery(), 1.0);
        assert!(Start { seconds: 0.4, ..start }.recovery() > 0.0);
    }
}
