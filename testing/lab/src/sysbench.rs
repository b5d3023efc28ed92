//! sysbench as it comes: its scripts, how it is started, what it printed, and what it left in its tables.

use crate::command::captured;
use crate::server_process::ServerProcess;
use anyhow::{Context, Result, bail, ensure};
use std::process::Command;

/// What a script does to the number of rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// As many as were prepared, with the same keys.
    Same,
    /// No more than were prepared.
    Fewer,
    /// No fewer than were prepared.
    More,
    /// Any number.
    Any,
}

/// All ten oltp scripts, in an order in which each finds the rows it needs.
pub const SCRIPTS: [(&str, Rows); 10] = [
    ("oltp_point_select", Rows::Same),
    ("oltp_read_only", Rows::Same),
    ("select_random_points", Rows::Same),
    ("select_random_ranges", Rows::Same),
    ("oltp_update_index", Rows::Same),
    ("oltp_update_non_index", Rows::Same),
    ("oltp_write_only", Rows::Same),
    ("oltp_read_write", Rows::Same),
    ("oltp_delete", Rows::Fewer),
    ("oltp_insert", Rows::More),
];
/// The database that [`make_database`] makes.
pub const DATABASE: &str = "sbtest";
/// Seconds a run may take longer than asked for.
const PATIENCE_S: u64 = 900;

/// Two tables, except where the script supports only one.
pub fn tables_of(script: &str) -> u32 {
    if script.starts_with("select_random") { 1 } else { 2 }
}

/// One sysbench set-up against one server.
#[derive(Clone, Copy)]
pub struct Sysbench<'s> {
    /// The server it connects to.
    pub server: &'s ServerProcess,
    /// `auto` (prepared statements) or `disable`.
    pub statement_mode: &'s str,
    /// Connections.
    pub threads: u32,
    /// As many as the script supports of two, when `None`.
    pub tables: Option<u32>,
    /// Rows of each table.
    pub table_size: u64,
}

impl<'s> Sysbench<'s> {
    /// As many tables as the script supports of two.
    pub fn new(
        server: &'s ServerProcess,
        statement_mode: &'s str,
        threads: u32,
        table_size: u64,
    ) -> Sysbench<'s> {
        Sysbench { server, statement_mode, threads, tables: None, table_size }
    }

    /// Runs one command (`prepare`, `run`, …) of a script; any error a client sees makes it fail.
    pub fn run(&self, script: &str, command: &str, more: &[&str]) -> Result<String> {
        succeeded(&mut self.command(script, command, more))
    }

    /// The program with its arguments, for callers that start it themselves.
    pub fn command(&self, script: &str, command: &str, more: &[&str]) -> Command {
        let time = more.iter().find_map(|option| option.strip_prefix("--time=")?.parse().ok()).unwrap_or(0);
        let root = Account { port: self.server.port, user: "root", password: "", database: DATABASE };
        let mut sysbench = connected(script, root, time);
        // Servers that are given the same commands have the same contents behind them.
        if !more.iter().any(|option| option.starts_with("--rand-seed=")) {
            sysbench.arg("--rand-seed=17");
        }
        sysbench
            .arg(format!("--db-ps-mode={}", self.statement_mode))
            .arg(format!("--threads={}", self.threads))
            .args(more);
        if script != "bulk_insert" {
            sysbench
                .arg(format!("--tables={}", self.tables.unwrap_or_else(|| tables_of(script))))
                .arg(format!("--table-size={}", self.table_size));
        }
        sysbench.arg(command);
        sysbench
    }

    /// The rows of a table must be as a script that leaves them `rows` leaves them, with every index saying
    /// the same.
    pub fn check_rows(&self, table: u32, rows: Rows) -> Result<()> {
        check_rows(self.server, table, self.table_size, rows)
    }
}

/// Where sysbench connects to on this machine, and as whom.
#[derive(Clone, Copy)]
pub struct Account<'a> {
    /// TCP port, on 127.0.0.1.
    pub port: u16,
    /// Name of the user.
    pub user: &'a str,
    /// Empty: without one.
    pub password: &'a str,
    /// Where the tables are.
    pub database: &'a str,
}

/// sysbench with a script on an account. It is ended when it takes much longer than `seconds`: a server that
/// hangs must not keep its caller for ever.
pub fn connected(script: &str, account: Account<'_>, seconds: u64) -> Command {
    let mut sysbench = Command::new("timeout");
    sysbench
        .arg((PATIENCE_S + seconds).to_string())
        .args(["sysbench", script, "--db-driver=mysql", "--mysql-host=127.0.0.1"])
        .arg(format!("--mysql-port={}", account.port))
        .arg(format!("--mysql-user={}", account.user))
        .arg(format!("--mysql-password={}", account.password))
        .arg(format!("--mysql-db={}", account.database));
    sysbench
}

/// What a run of sysbench printed; an error when a client saw one.
pub fn succeeded(sysbench: &mut Command) -> Result<String> {
    let output = captured(sysbench)?;
    if let Some(line) = output.lines().find(|line| line.contains("FATAL")) {
        bail!("{sysbench:?}: {line}");
    }
    Ok(output)
}

/// CHECK TABLE must say OK.
pub fn check_structure(server: &ServerProcess, table: u32) -> Result<()> {
    let verdict = server.ask(DATABASE, &format!("CHECK TABLE sbtest{table}"))?;
    ensure!(verdict.lines().last().is_some_and(|line| line.ends_with("OK")), "CHECK TABLE: {verdict}");
    Ok(())
}

fn check_rows(server: &ServerProcess, table: u32, prepared: u64, rows: Rows) -> Result<()> {
    let primary = server.ask(
        DATABASE,
        &format!("SELECT COUNT(*), COALESCE(SUM(k), 0) FROM sbtest{table} FORCE INDEX (PRIMARY)"),
    )?;
    let secondary = server.ask(
        DATABASE,
        &format!("SELECT COUNT(k), COALESCE(SUM(k), 0) FROM sbtest{table} FORCE INDEX (k_{table})"),
    )?;
    ensure!(primary == secondary, "sbtest{table}: primary key says {primary}, index k says {secondary}");
    let count: u64 = primary.split('\t').next().unwrap_or_default().parse()?;
    let fits = match rows {
        Rows::Same => count == prepared,
        Rows::Fewer => count <= prepared,
        Rows::More => count >= prepared,
        Rows::Any => true,
    };
    ensure!(fits, "sbtest{table} has {count} rows, {prepared} were prepared");
    if count > 0 {
        let ends = server.ask(DATABASE, &format!("SELECT MIN(id), MAX(id) FROM sbtest{table}"))?;
        let (least, most) = ends.split_once('\t').context("two columns")?;
        let row = server.ask(
            DATABASE,
            &format!("SELECT id, LENGTH(c), LENGTH(pad) FROM sbtest{table} WHERE id = {most}"),
        )?;
        ensure!(row == format!("{most}\t119\t59"), "sbtest{table}: row {most} is {row:?}");
        if rows == Rows::Same {
            ensure!((least, most) == ("1", &*prepared.to_string()), "sbtest{table}: ids {least} to {most}");
        }
    }
    Ok(())
}

/// The first number behind `name` in sysbench's output.
pub fn figure(output: &str, name: &str) -> Option<f64> {
    let rest = output.split_once(name)?.1.trim_start();
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// Makes the database sysbench works in.
pub fn make_database(server: &ServerProcess) -> Result<()> {
    server.feed("", &format!("CREATE DATABASE {DATABASE};"))
}
