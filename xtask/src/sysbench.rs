//! sysbench as it comes, all its oltp scripts and bulk_insert, with a look at what they left in the tables.
//!
//! Two ways to be sure of the contents. With one thread and a fixed seed a script does the same on every server, so
//! the tables afterwards must equal, row by row, those of a stock MariaDB. With many threads the order is chance, but
//! row counts, the agreement of both indexes and CHECK TABLE are not.

use crate::scratch::Scratch;
use crate::server_process::{Program, ServerProcess};
use crate::steps::captured;
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;
use std::process::Command;

/// What a script does to the number of rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    Same,
    Fewer,
    More,
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
/// With and without prepared statements.
const STATEMENT_MODES: [&str; 2] = ["auto", "disable"];
pub const DATABASE: &str = "sbtest";
/// Seconds a run may take longer than asked for.
const PATIENCE_S: u64 = 900;
const TABLE_SIZE: u64 = 2000;
const REFERENCE_SIZE: u64 = 500;

/// Two tables, except where the script supports only one.
fn tables(script: &str) -> u32 {
    if script.starts_with("select_random") { 1 } else { 2 }
}

/// One sysbench set-up against one server.
#[derive(Clone, Copy)]
pub struct Sysbench<'s> {
    pub server: &'s ServerProcess,
    pub statement_mode: &'s str,
    pub threads: u32,
    /// As many as the script supports of two, when `None`.
    pub tables: Option<u32>,
    pub table_size: u64,
}

impl<'s> Sysbench<'s> {
    fn new(
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
        sysbench
            .arg("--rand-seed=17")
            .arg(format!("--db-ps-mode={}", self.statement_mode))
            .arg(format!("--threads={}", self.threads))
            .args(more);
        if script != "bulk_insert" {
            sysbench
                .arg(format!("--tables={}", self.tables.unwrap_or_else(|| tables(script))))
                .arg(format!("--table-size={}", self.table_size));
        }
        sysbench.arg(command);
        sysbench
    }

    /// The rows of a table must be as a script that leaves them `rows` leaves them, with every index saying the same.
    pub fn check_rows(&self, table: u32, rows: Rows) -> Result<()> {
        check_rows(self.server, table, self.table_size, rows)
    }
}

/// Where sysbench connects to on this machine, and as whom.
#[derive(Clone, Copy)]
pub struct Account<'a> {
    pub port: u16,
    pub user: &'a str,
    pub password: &'a str,
    pub database: &'a str,
}

/// sysbench with a script on an account. It is ended when it takes much longer than `seconds`: a server that hangs
/// must not keep its caller for ever.
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

/// Everything, or only one script, on a fresh server.
pub fn all_scripts(program: &Program, only: Option<&str>) -> Result<()> {
    let wanted = |script: &str| only.is_none_or(|only| only == script);
    Scratch::with("sysbench", |place| all_scripts_in(program, wanted, place))
}

fn all_scripts_in(program: &Program, wanted: impl Fn(&str) -> bool, place: &Path) -> Result<()> {
    let server = ServerProcess::start(program, place, &["--max-connections=200"])?;
    make_database(&server)?;
    let mut failures = Vec::new();
    same_as_mariadb(&server, &wanted, &mut failures)?;
    server.feed("", &format!("DROP DATABASE {DATABASE};"))?;
    make_database(&server)?;
    for (script, rows) in SCRIPTS.into_iter().filter(|(script, _)| wanted(script)) {
        for statement_mode in STATEMENT_MODES {
            let done = concurrent(&server, script, rows, statement_mode, &[1, 16, 64]);
            note(&mut failures, script, statement_mode, done);
        }
    }
    for statement_mode in STATEMENT_MODES.into_iter().filter(|_| wanted("bulk_insert")) {
        note(&mut failures, "bulk_insert", statement_mode, bulk_insert(&server, statement_mode));
    }
    let stopped = server.stop().map(|took| println!("orderly stop in {:.2} s", took.as_secs_f64()));
    if let Err(error) = stopped {
        failures.push(format!("{error:#}"));
    }
    ensure!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    Ok(())
}

/// One script with content checks, in both statement modes, on a fresh server.
pub fn one_script(program: &Program, script: &str, threads: u32) -> Result<()> {
    let (_, rows) = SCRIPTS.into_iter().find(|(name, _)| *name == script).context("no such script")?;
    Scratch::with("sysbench-one", |place| {
        let server = ServerProcess::start(program, place, &[])?;
        make_database(&server)?;
        for statement_mode in STATEMENT_MODES {
            concurrent(&server, script, rows, statement_mode, &[threads])?;
        }
        server.stop().map(drop)
    })
}

fn note(failures: &mut Vec<String>, script: &str, statement_mode: &str, result: Result<()>) {
    if let Err(error) = result {
        println!("{script} ({statement_mode}): FAILED: {error:#}");
        failures.push(format!("{script} ({statement_mode}): {error:#}"));
    }
}

/// One thread, fixed seed: the same contents as a stock MariaDB. Both start from the same dump, because what `prepare`
/// makes is not the same twice.
fn same_as_mariadb(
    server: &ServerProcess,
    wanted: impl Fn(&str) -> bool,
    failures: &mut Vec<String>,
) -> Result<()> {
    Scratch::with("sysbench-reference", |place| same_as_mariadb_in(place, server, wanted, failures))
}

fn same_as_mariadb_in(
    place: &Path,
    server: &ServerProcess,
    wanted: impl Fn(&str) -> bool,
    failures: &mut Vec<String>,
) -> Result<()> {
    let reference = ServerProcess::start(&Program::mariadb()?, place, &[])?;
    make_database(&reference)?;
    let prepare = Sysbench::new(&reference, "auto", 1, REFERENCE_SIZE);
    prepare.run("oltp_read_write", "prepare", &[])?;
    let start = reference.dump(DATABASE)?;
    for statement_mode in STATEMENT_MODES {
        for (script, _) in SCRIPTS.into_iter().filter(|(script, _)| wanted(script)) {
            let compared = (|| {
                let ours = contents_after(server, &start, script, statement_mode)?;
                let theirs = contents_after(&reference, &start, script, statement_mode)?;
                if ours == theirs {
                    return Ok(());
                }
                let line = ours.lines().zip(theirs.lines()).find(|(ours, theirs)| ours != theirs);
                bail!("other contents than MariaDB: first difference {line:?}")
            })();
            note(failures, script, statement_mode, compared);
        }
    }
    println!("one thread, fixed seed: contents compared with MariaDB");
    reference.stop()?;
    Ok(())
}

/// All rows of all tables after a short run of a script on the tables of `start`.
fn contents_after(server: &ServerProcess, start: &str, script: &str, statement_mode: &str) -> Result<String> {
    server.feed(DATABASE, start).context("restoring the dump")?;
    let sysbench = Sysbench::new(server, statement_mode, 1, REFERENCE_SIZE);
    sysbench.run(script, "run", &["--events=150", "--time=0"])?;
    let mut contents = String::new();
    for table in [1, 2] {
        contents += &server.ask(DATABASE, &format!("SELECT * FROM sbtest{table} ORDER BY id"))?;
        contents.push('\n');
    }
    Ok(contents)
}

/// One run for each number of threads.
fn concurrent(
    server: &ServerProcess,
    script: &str,
    rows: Rows,
    statement_mode: &str,
    threads: &[u32],
) -> Result<()> {
    let prepare = Sysbench::new(server, statement_mode, 2, TABLE_SIZE);
    // What an earlier failure may have left.
    prepare.run(script, "cleanup", &[])?;
    prepare.run(script, "prepare", &[])?;
    prepare.run(script, "prewarm", &[]).context("prewarm")?;
    for &threads in threads {
        let output = Sysbench { threads, ..prepare }.run(script, "run", &["--time=2"])?;
        let transactions = figure(&output, "transactions:").context("no transactions: in the output")?;
        ensure!(transactions > 0.0, "{threads} threads: no transaction\n{output}");
        println!(
            "{script:<22} {statement_mode:<8} {threads:>3} threads {:>10.0} transactions/s",
            transactions / 2.0
        );
        for table in 1..=tables(script) {
            check_table(server, table, rows).with_context(|| format!("{threads} threads"))?;
        }
    }
    prepare.run(script, "cleanup", &[])?;
    let left = server.ask(DATABASE, "SHOW TABLES")?;
    ensure!(left.is_empty(), "tables left after cleanup: {left}");
    Ok(())
}

/// Counts, both indexes, CHECK TABLE.
fn check_table(server: &ServerProcess, table: u32, rows: Rows) -> Result<()> {
    check_rows(server, table, TABLE_SIZE, rows)?;
    check_structure(server, table)
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

fn bulk_insert(server: &ServerProcess, statement_mode: &str) -> Result<()> {
    for threads in [1, 4] {
        let sysbench = Sysbench::new(server, statement_mode, threads, 0);
        sysbench.run("bulk_insert", "cleanup", &[])?;
        sysbench.run("bulk_insert", "prepare", &[])?;
        let events = u64::from(threads) * 20_000;
        let output = sysbench.run("bulk_insert", "run", &[&format!("--events={events}"), "--time=0"])?;
        let seconds = figure(&output, "total time:").context("no total time: in the output")?;
        println!(
            "bulk_insert            {statement_mode:<8} {threads:>3} threads {:>10.0} rows/s",
            events as f64 / seconds
        );
        let mut total = 0;
        for table in 1..=threads {
            let sums = server.ask(
                DATABASE,
                &format!(
                    "SELECT COUNT(*), COALESCE(MAX(id), 0), COALESCE(SUM(k - id), 0) FROM sbtest{table}"
                ),
            )?;
            let [count, most, difference] = sums.split('\t').collect::<Vec<_>>()[..] else { bail!("{sums}") };
            ensure!(count == most && difference == "0", "sbtest{table}: {sums}");
            total += count.parse::<u64>()?;
        }
        ensure!(total == events, "{total} rows of {events}");
        sysbench.run("bulk_insert", "cleanup", &[])?;
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
