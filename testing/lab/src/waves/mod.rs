//! How steady throughput is under sustained load: transactions in every second on a disk like a cloud volume,
//! with a redo log that is short for the load, so that pages must be written all the time. InnoDB's
//! throughput swings there while its checkpoint age runs against its maximum.
//!
//! Ours with doublewrite, with atomic writes and without protection, beside stock servers with their
//! doublewrite, one after the other on the same XFS image, capped for the server process alone. Two loads:
//! the same for the whole time, or one that changes each minute.

mod goals;
mod phases;
mod report;

use crate::capped_disk::{Cap, Throttle};
use crate::experiment::seconds::{self, Phase, Second};
use crate::experiment::servers::{Contestant, Peers, stock, wait_until_loaded};
use crate::experiment::{in_place, report::Files};
use crate::file_system::{FileSystem, FileSystemKind};
use crate::server_process::{Program, ServerProcess};
use crate::sysbench::{self, Sysbench};
use anyhow::{Context, Result};
use mysql::prelude::Queryable;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What the experiment is made of.
#[derive(clap::Args, Clone, Debug)]
pub struct Setup {
    /// Buffer pool in MiB; the data fit in.
    #[arg(long, default_value_t = 1024)]
    pool: u64,
    /// Redo log in MiB.
    #[arg(long, default_value_t = 200)]
    redo: u64,
    #[arg(long, default_value_t = 8)]
    tables: u32,
    /// Rows of each table.
    #[arg(long, default_value_t = 250_000)]
    rows: u64,
    /// Clients, when the load stays the same.
    #[arg(long, default_value_t = 16)]
    threads: u32,
    /// Seconds of the load on each server.
    #[arg(long, default_value_t = 600)]
    time: u32,
    /// Seconds at its beginning that are drawn but not judged; with --changing, of each phase 5.
    #[arg(long, default_value_t = 30)]
    settle: u32,
    /// The load changes each minute: clients, distribution, statements.
    #[arg(long)]
    changing: bool,
    /// Our ways of protecting pages.
    #[arg(long, value_delimiter = ',', default_values = ["AUTO", "ON", "OFF"])]
    modes: Vec<String>,
    /// Another setting of Untorn, `--name=value`.
    #[arg(long, allow_hyphen_values = true)]
    setting: Vec<String>,
    /// Operations per second of the disk, reads and writes each.
    #[arg(long, default_value_t = 4000)]
    operations: u64,
    /// MB read and written per second, each.
    #[arg(long, default_value_t = 50)]
    megabytes: u64,
    #[command(flatten)]
    peers: Peers,
    /// Where chart (`.svg`), table (`.md`), every second (`.csv`) and record (`.json`) go, without the
    /// ending.
    #[arg(long, default_value = "target/waves")]
    output: PathBuf,
    /// Where the disk image is made.
    #[arg(long)]
    place: Option<PathBuf>,
}

/// What one server did.
struct Run {
    name: String,
    phases: Vec<Vec<Second>>,
    restart: Restart,
}

/// `kill -9` at the end of the load, and the start after it, on the same capped disk.
#[derive(Clone, Copy, Default, Serialize)]
struct Restart {
    /// Bytes of log to be read.
    age: f64,
    /// What the server said that it would take, if it says so.
    estimate_seconds: Option<f64>,
    /// And what it may take.
    target_seconds: Option<f64>,
    /// From the start of the process to its first answer.
    seconds: f64,
}

/// Runs all contestants, prints the table and writes chart, seconds and record.
pub fn run(program: &Program, setup: &Setup) -> Result<()> {
    in_place("waves", setup.place.as_deref(), |place| run_in(program, setup, place))
}

fn contestants(program: &Program, setup: &Setup) -> Result<Vec<Contestant>> {
    let mut all = Vec::new();
    let pool = format!("--innodb-buffer-pool-size={}M", setup.pool);
    for server in setup.peers.beside(program)? {
        let modes: &[String] = if server.is_ours() { &setup.modes } else { &["ON".to_owned()] };
        for mode in modes {
            let mut settings = vec![pool.clone(), server.redo(setup.redo)];
            settings.push(format!("--innodb-doublewrite={mode}"));
            settings.extend(if server.is_ours() { setup.setting.clone() } else { stock(2000) });
            all.push(Contestant { name: format!("{} {mode}", server.name), ..server.with(settings) });
        }
    }
    Ok(all)
}

fn run_in(program: &Program, setup: &Setup, place: &Path) -> Result<()> {
    let contestants = contestants(program, setup)?;
    let servers = setup.peers.beside(program)?.len() as u64;
    let data_mib = (u64::from(setup.tables) * setup.rows * 300) >> 20;
    let size = servers * (data_mib * 2 + 4 * setup.redo + 1024);
    let mut disk = FileSystem::create(place, "disk", FileSystemKind::Xfs, size)?;
    for (at, contestant) in contestants.iter().enumerate() {
        // The variants of a server share its data.
        if contestants[..at].iter().all(|before| before.directory != contestant.directory) {
            let server = contestant.start(place, disk.path())?;
            sysbench::make_database(&server)?;
            load(&server, setup, setup.tables.min(8)).run("oltp_write_only", "prepare", &[])?;
            server.stop()?;
        }
    }
    let throttle = Throttle::new(disk.device()?)?;
    throttle.limit(Cap { operations: setup.operations, bytes: setup.megabytes * 1_000_000 })?;
    let phases = phases::phases(setup);
    let mut runs = Vec::new();
    for contestant in contestants {
        let program = throttle.around(&contestant.program, place)?;
        let contestant = Contestant { program, ..contestant };
        let run =
            measure(&contestant, setup, &phases, place, &disk).with_context(|| contestant.name.clone())?;
        println!("{}", report::line(&run, &phases, setup.settle));
        runs.push(run);
    }
    drop(throttle);
    disk.unmount()?;
    write_files(setup, &phases, &runs)
}

fn write_files(setup: &Setup, phases: &[Phase], runs: &[Run]) -> Result<()> {
    let (text, seconds) = (report::markdown(setup, phases, runs), report::seconds_as_csv(runs));
    let record = report::record(setup, phases, runs);
    Files::at(&setup.output)?.write(&text, &report::charts(runs), &seconds, record)
}

fn load<'s>(server: &'s ServerProcess, setup: &Setup, threads: u32) -> Sysbench<'s> {
    let (tables, table_size) = (Some(setup.tables), setup.rows);
    Sysbench { server, statement_mode: "auto", threads, tables, table_size }
}

fn measure(
    contestant: &Contestant,
    setup: &Setup,
    phases: &[Phase],
    place: &Path,
    disk: &FileSystem,
) -> Result<Run> {
    let mut server = contestant.start(place, disk.path())?;
    // What is read after a start is not what this is about.
    wait_until_loaded(&server)?;
    let name = contestant.name.clone();
    let mut run = Run { name, phases: Vec::new(), restart: Restart::default() };
    for phase in phases {
        let sysbench = load(&server, setup, phase.threads);
        run.phases.push(seconds::seconds(&server, disk.device()?, &sysbench, phase)?);
    }
    run.restart.estimate_seconds = seconds_told(&server, "Untorn_recovery_estimate_ms")?;
    run.restart.target_seconds = seconds_told(&server, "Untorn_recovery_target_ms")?;
    server.kill();
    run.restart.age = run.phases.iter().flatten().last().map_or(f64::NAN, |second| second.age);
    let server = contestant.start(place, disk.path())?;
    run.restart.seconds = server.started_in.as_secs_f64();
    server.stop()?;
    Ok(run)
}

/// Seconds by this status of milliseconds, if the server has it.
fn seconds_told(server: &ServerProcess, name: &str) -> Result<Option<f64>> {
    let mut connection = server.connect(None)?;
    let row: Option<(String, f64)> = connection.query_first(format!("SHOW GLOBAL STATUS LIKE '{name}'"))?;
    Ok(row.map(|(_, milliseconds)| milliseconds / 1e3))
}
