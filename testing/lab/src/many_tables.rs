//! What thousands of tables cost: making the first and the last of them, a start after a stop and after `kill
//! -9`, memory and descriptors. One server; a stock MariaDB with `--server mariadb`.
//!
//! A table is *idle* when nobody has used it since the start. Memory is what the process has resident beyond
//! an empty server that was started in the same way.

use crate::scratch::Scratch;
use crate::server_process::{Kind, Program, ServerProcess};
use anyhow::{Result, ensure};
use mysql::prelude::Queryable;
use std::path::Path;
use std::time::{Duration, Instant};

/// Tables whose making is timed, at the beginning and at the end.
const TIMED: u32 = 500;
/// One table in this many gets a row before the server is killed.
const WRITTEN: usize = 10;

/// The cost of the tables.
struct Cost {
    first: Duration,
    last: Duration,
    /// How many tables each of those two made.
    timed: u32,
    stop: Duration,
    started_after_stop: Duration,
    started_after_kill: Duration,
    /// Bytes an idle table, and one that was used.
    idle: f64,
    used: f64,
    /// Descriptors of an empty server, with idle tables, and when all were used.
    descriptors: [usize; 3],
    drop: Duration,
}

/// Runs the experiment and prints a table.
pub fn run(program: &Program, tables: u32) -> Result<()> {
    ensure!(tables > 0, "--tables 0 leaves nothing to measure");
    let cost = Scratch::with("many-tables", |place| measure(program, tables, place))?;
    let per = |time: Duration| time.as_secs_f64() * 1e3 / f64::from(cost.timed);
    println!("| {tables} tables | |\n|---|---|");
    println!("| CREATE TABLE, the first {} | {:.2} ms each |", cost.timed, per(cost.first));
    println!("| CREATE TABLE, the last {} | {:.2} ms each |", cost.timed, per(cost.last));
    println!("| orderly stop | {:.2} s |", cost.stop.as_secs_f64());
    println!("| start after it | {:.2} s |", cost.started_after_stop.as_secs_f64());
    println!(
        "| start after `kill -9`, one table in {WRITTEN} written | {:.2} s |",
        cost.started_after_kill.as_secs_f64()
    );
    println!("| resident memory of an idle table | {:.1} KiB |", cost.idle / 1024.0);
    println!("| … of one that was used | {:.1} KiB |", cost.used / 1024.0);
    let [empty, idle, used] = cost.descriptors;
    println!("| descriptors: empty server, tables idle, tables used | {empty}, {idle}, {used} |");
    println!("| DROP DATABASE | {:.2} s |", cost.drop.as_secs_f64());
    Ok(())
}

fn settings(program: &Program) -> Vec<&'static str> {
    match program.kind {
        Kind::Untorn => vec!["--innodb-redo-log-capacity=1G"],
        Kind::MariaDb => vec!["--innodb-log-file-size=1G", "--skip-log-bin"],
        Kind::Command => vec!["--innodb-redo-log-capacity=1G", "--skip-log-bin"],
    }
}

fn measure(program: &Program, tables: u32, place: &Path) -> Result<Cost> {
    let settings = settings(program);
    let start = || ServerProcess::start(program, place, &settings);
    let server = start()?;
    server.feed("", "CREATE DATABASE many")?;
    server.stop()?;
    // Started as later with the tables: the first start makes files.
    let server = start()?;
    let (memory_empty, descriptors_empty) = (resident(&server)?, descriptors(&server)?);
    let timed = TIMED.min(tables);
    let begin = Instant::now();
    create(&server, 0..timed)?;
    let first = begin.elapsed();
    create(&server, timed..(tables - timed).max(timed))?;
    let begin = Instant::now();
    let again = (tables - timed).max(timed)..tables;
    // With few tables there are no others at the end.
    let last = if again.is_empty() { first } else { create(&server, again).map(|()| begin.elapsed())? };
    let stop = server.stop()?;
    let mut server = start()?;
    let started_after_stop = server.started_in;
    let (memory_idle, descriptors_idle) = (resident(&server)?, descriptors(&server)?);
    let mut client = server.connect(Some("many"))?;
    for table in 0..tables {
        client.query_drop(format!("SELECT * FROM t{table}"))?;
    }
    let (memory_used, descriptors_used) = (resident(&server)?, descriptors(&server)?);
    for table in (0..tables).step_by(WRITTEN) {
        client.query_drop(format!("INSERT INTO t{table} VALUES (1, 1, 'a row')"))?;
    }
    drop(client);
    server.kill();
    let server = start()?;
    let started_after_kill = server.started_in;
    let mut client = server.connect(Some("many"))?;
    for table in (0..tables).step_by(WRITTEN) {
        let rows: Option<u64> = client.query_first(format!("SELECT COUNT(*) FROM t{table}"))?;
        ensure!(rows == Some(1), "table t{table} has {rows:?} rows after the kill");
    }
    drop(client);
    let begin = Instant::now();
    // By the stock client, which waits for as long as it takes.
    server.feed("", "DROP DATABASE many")?;
    let dropped_in = begin.elapsed();
    server.stop()?;
    let per_table = |memory: u64| memory.saturating_sub(memory_empty) as f64 / f64::from(tables);
    Ok(Cost {
        first,
        last,
        timed,
        stop,
        started_after_stop,
        started_after_kill,
        idle: per_table(memory_idle),
        used: per_table(memory_used),
        descriptors: [descriptors_empty, descriptors_idle, descriptors_used],
        drop: dropped_in,
    })
}

fn create(server: &ServerProcess, numbers: std::ops::Range<u32>) -> Result<()> {
    let mut client = server.connect(Some("many"))?;
    for table in numbers {
        client.query_drop(format!(
            "CREATE TABLE t{table} (id INT PRIMARY KEY, k INT NOT NULL, pad VARCHAR(60), KEY (k)) ENGINE=InnoDB"
        ))?;
    }
    Ok(())
}

/// Bytes that the process has resident now.
fn resident(server: &ServerProcess) -> Result<u64> {
    let pages = std::fs::read_to_string(format!("/proc/{}/statm", server.id()))?;
    let pages: u64 = pages.split_whitespace().nth(1).unwrap_or_default().parse()?;
    Ok(pages * 4096)
}

fn descriptors(server: &ServerProcess) -> Result<usize> {
    Ok(std::fs::read_dir(format!("/proc/{}/fd", server.id()))?.count())
}
