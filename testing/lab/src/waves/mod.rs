//! How steady throughput is under sustained load: transactions in every second on a disk like a cloud volume,
//! with a redo log that is short for the load, so that pages must be written all the time. InnoDB's
//! throughput swings there while its checkpoint age runs against its maximum.
//!
//! Ours with doublewrite, with atomic writes and without protection, beside stock servers with their
//! doublewrite, one after the other on the same XFS image, capped for the server process alone. Two loads:
//! the same for the whole time, or one that changes each minute.

mod load;
mod report;

use crate::bench::provenance;
use crate::capped_disk::{Cap, Throttle};
use crate::command;
use crate::file_system::{FileSystem, FileSystemKind};
use crate::scratch::Scratch;
use crate::server_process::{Kind, Program, ServerProcess};
use crate::sysbench::{self, Sysbench};
use anyhow::{Context, Result};
use load::{Phase, Second};
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
    /// Without the MariaDB of this machine.
    #[arg(long)]
    without_mariadb: bool,
    /// Another stock server, `NAME=COMMAND`: a shell command that becomes the server (`exec`), on the
    /// directory $DATA (to be filled when it is empty), the port $PORT and the socket $SOCKET, with the
    /// options $SETTINGS and a root user without password.
    #[arg(long)]
    peer: Vec<String>,
    /// Where chart (`.svg`), table of every second (`.csv`) and record (`.json`) go, without the ending.
    #[arg(long, default_value = "target/waves")]
    output: PathBuf,
    /// Where the disk image is made.
    #[arg(long)]
    place: Option<PathBuf>,
}

/// One server with one way of protecting pages.
struct Contestant {
    name: String,
    program: Program,
    /// Its data directory on the disk; shared by the variants of a server.
    directory: String,
    settings: Vec<String>,
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
    /// From the start of the process to its first answer.
    seconds: f64,
}

/// Runs all contestants, prints the table and writes chart, seconds and record.
pub fn run(program: &Program, setup: &Setup) -> Result<()> {
    match &setup.place {
        Some(place) => {
            std::fs::create_dir_all(place)?;
            run_in(program, setup, place)
        }
        None => Scratch::with("experiment-waves", |place| run_in(program, setup, place)),
    }
}

fn contestants(program: &Program, setup: &Setup) -> Result<Vec<Contestant>> {
    let mut all = Vec::new();
    for mode in &setup.modes {
        let mut settings = vec![
            format!("--innodb-doublewrite={mode}"),
            format!("--innodb-redo-log-capacity={}M", setup.redo),
        ];
        settings.extend(setup.setting.iter().cloned());
        all.push(Contestant {
            name: format!("Untorn {mode}"),
            program: program.clone(),
            directory: "untorn".to_owned(),
            settings,
        });
    }
    let stock = |log: String| {
        let more = [
            "--innodb-doublewrite=ON",
            "--innodb-flush-method=O_DIRECT",
            "--innodb-flush-log-at-trx-commit=1",
            "--innodb-flush-neighbors=0",
            "--innodb-io-capacity=2000",
            "--innodb-io-capacity-max=4000",
            "--skip-log-bin",
        ];
        more.into_iter().map(str::to_owned).chain([log]).collect::<Vec<_>>()
    };
    if !setup.without_mariadb {
        let settings = stock(format!("--innodb-log-file-size={}M", setup.redo));
        let (name, directory) = ("MariaDB ON".to_owned(), "mariadb".to_owned());
        all.push(Contestant { name, program: Program::mariadb()?, directory, settings });
    }
    for peer in &setup.peer {
        let (name, shell) = peer.split_once('=').context("--peer NAME=COMMAND")?;
        all.push(Contestant {
            name: format!("{name} ON"),
            program: Program::new(Kind::Command, PathBuf::from(shell)),
            directory: name.to_lowercase(),
            settings: stock(format!("--innodb-redo-log-capacity={}M", setup.redo)),
        });
    }
    Ok(all)
}

fn run_in(program: &Program, setup: &Setup, place: &Path) -> Result<()> {
    let contestants = contestants(program, setup)?;
    let servers = 1 + u64::from(!setup.without_mariadb) + setup.peer.len() as u64;
    let data_mib = (u64::from(setup.tables) * setup.rows * 300) >> 20;
    let size = servers * (data_mib * 2 + 4 * setup.redo + 1024);
    let mut disk = FileSystem::create(place, "disk", FileSystemKind::Xfs, size)?;
    for (at, contestant) in contestants.iter().enumerate() {
        // The variants of a server share its data.
        if contestants[..at].iter().all(|before| before.directory != contestant.directory) {
            let server = start(contestant, setup, place, &disk)?;
            sysbench::make_database(&server)?;
            load(&server, setup, setup.tables.min(8)).run("oltp_write_only", "prepare", &[])?;
            server.stop()?;
        }
    }
    let throttle = Throttle::new(disk.device()?)?;
    throttle.limit(Cap { operations: setup.operations, bytes: setup.megabytes * 1_000_000 })?;
    let phases = load::phases(setup);
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
    report::print_table(setup, &phases, &runs);
    write_files(setup, &phases, &runs)
}

fn write_files(setup: &Setup, phases: &[Phase], runs: &[Run]) -> Result<()> {
    let path = |ending: &str| command::root().join(&setup.output).with_extension(ending);
    path("svg").parent().map_or(Ok(()), std::fs::create_dir_all)?;
    report::write_chart(&path("svg"), runs)?;
    std::fs::write(path("csv"), report::seconds_as_csv(runs))?;
    let machine = provenance::Machine::here()?;
    let (commit, changed) = provenance::commit()?;
    let record = report::record(setup, phases, runs, &machine, &commit, changed, &provenance::now()?);
    std::fs::write(path("json"), serde_json::to_string_pretty(&record)? + "\n")?;
    println!("chart {}, seconds .csv, record .json", path("svg").display());
    Ok(())
}

fn start(contestant: &Contestant, setup: &Setup, place: &Path, disk: &FileSystem) -> Result<ServerProcess> {
    let pool = format!("--innodb-buffer-pool-size={}M", setup.pool);
    let mut settings: Vec<&str> = vec![&pool, "--max-connections=200"];
    settings.extend(contestant.settings.iter().map(String::as_str));
    ServerProcess::start_on(&contestant.program, place, &disk.path().join(&contestant.directory), &settings)
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
    let mut server = start(contestant, setup, place, disk)?;
    let name = contestant.name.clone();
    let mut run = Run { name, phases: Vec::new(), restart: Restart::default() };
    for phase in phases {
        let sysbench = load(&server, setup, phase.threads);
        run.phases.push(load::seconds(&server, &sysbench, phase)?);
    }
    run.restart.estimate_seconds = load::recovery_estimate(&server)?;
    server.kill();
    run.restart.age = run.phases.iter().flatten().last().map_or(f64::NAN, |second| second.age);
    let server = start(contestant, setup, place, disk)?;
    run.restart.seconds = server.started_in.as_secs_f64();
    server.stop()?;
    Ok(run)
}
