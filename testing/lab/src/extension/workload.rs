//! sysbench as load: tables of a given size, one script for some seconds, queries in each second.

use crate::command::captured;
use crate::server_process::ServerProcess;
use crate::sysbench::figure;
use anyhow::{Context, Result, bail};
use std::process::Command;

/// Bytes of a sysbench row on disk with its index entry, about: 15 pages of 16 KiB hold 1000 rows.
const ROW_BYTES: u64 = 240;
const TABLES: u64 = 4;
const DATABASE: &str = "sbtest";

/// The tables, and how they are hit.
#[derive(Clone)]
pub struct Load {
    /// Rows of each of the tables.
    pub rows: u64,
    /// Connections.
    pub threads: u32,
    /// sysbench's `--rand-*` options.
    pub distribution: Vec<String>,
}

/// What a run gave.
#[derive(Clone, Default)]
pub struct Run {
    /// All statements, BEGIN and COMMIT among them.
    pub queries_per_second: f64,
    /// Runs of the script's event.
    pub transactions_per_second: f64,
    /// Milliseconds.
    pub p99: f64,
    /// Queries in each second.
    pub seconds: Vec<f64>,
}

impl Load {
    /// About this number of bytes of data.
    pub fn of_bytes(bytes: u64, threads: u32) -> Load {
        let distribution = ["--rand-type=special", "--rand-spec-pct=15"].map(str::to_owned).to_vec();
        Load { rows: bytes / ROW_BYTES / TABLES, threads, distribution }
    }

    fn command(&self, server: &ServerProcess, script: &str, threads: u32) -> Command {
        let mut command = Command::new("sysbench");
        command
            .args([script, "--db-driver=mysql", "--mysql-host=127.0.0.1", "--mysql-user=root"])
            .args(["--percentile=99", "--report-interval=1"])
            // A server that is killed under it is not sysbench's affair.
            .arg("--mysql-ignore-errors=all")
            .arg(format!("--mysql-port={}", server.port))
            .arg(format!("--mysql-db={DATABASE}"))
            .arg(format!("--tables={TABLES}"))
            .arg(format!("--table-size={}", self.rows))
            .arg(format!("--threads={threads}"));
        command
    }

    /// Makes the tables.
    pub fn prepare(&self, server: &ServerProcess) -> Result<()> {
        server.feed("", &format!("CREATE DATABASE IF NOT EXISTS {DATABASE};"))?;
        captured(self.command(server, "oltp_read_write", TABLES as u32).arg("prepare")).map(drop)
    }

    /// The command of a run, for those who start it in the background.
    pub fn run_command(&self, server: &ServerProcess, script: &str, seconds: u32) -> Command {
        let mut command = self.command(server, script, self.threads);
        command.arg(format!("--time={seconds}")).args(&self.distribution).arg("run");
        command
    }

    /// Runs a script.
    pub fn run(&self, server: &ServerProcess, script: &str, seconds: u32) -> Result<Run> {
        let output = captured(&mut self.run_command(server, script, seconds))?;
        if let Some(line) = output.lines().find(|line| line.contains("FATAL")) {
            bail!("sysbench {script}: {line}");
        }
        let queries = figure(&output, "queries:").context("no queries: in the output")?;
        let transactions = figure(&output, "transactions:").context("no transactions: in the output")?;
        let total = figure(&output, "total time:").context("no total time: in the output")?;
        Ok(Run {
            queries_per_second: queries / total,
            transactions_per_second: transactions / total,
            p99: figure(&output, "99th percentile:").unwrap_or_default(),
            seconds: seconds_of(&output),
        })
    }
}

/// The reports of each second: `[ 3s ] thds: 64 tps: 71.00 qps: 1420.00 (r/w/o: ...`.
fn seconds_of(output: &str) -> Vec<f64> {
    let reports = output.lines().filter(|line| line.starts_with("[ "));
    reports.filter_map(|line| figure(line, " qps:")).collect()
}

/// One figure of SHOW GLOBAL STATUS.
pub fn status(server: &ServerProcess, name: &str) -> Result<f64> {
    let line = server.ask("", &format!("SHOW GLOBAL STATUS LIKE '{name}'"))?;
    let value = line.split('\t').nth(1).with_context(|| format!("no status {name}"))?;
    value.trim().parse().with_context(|| format!("{name} is {value:?}"))
}
