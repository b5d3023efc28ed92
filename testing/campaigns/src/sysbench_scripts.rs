//! All oltp scripts of sysbench and bulk_insert, with a look at what they left in the tables.
//!
//! Two ways to be sure of the contents. With one thread and a fixed seed a script does the same on every
//! server, so the tables afterwards must equal, row by row, those of a stock MariaDB. With many threads the
//! order is chance, but row counts, the agreement of both indexes and CHECK TABLE are not.

use anyhow::{Context, Result, bail, ensure};
use lab::scratch::Scratch;
use lab::server_process::{Program, ServerProcess};
use lab::sysbench::{DATABASE, Rows, SCRIPTS, Sysbench, check_structure, figure, make_database, tables_of};
use std::path::Path;

/// With and without prepared statements.
const STATEMENT_MODES: [&str; 2] = ["auto", "disable"];
const TABLE_SIZE: u64 = 2000;
const REFERENCE_SIZE: u64 = 500;

/// Everything, or only one script, on a fresh server.
pub fn all(program: &Program, only: Option<&str>) -> Result<()> {
    let wanted = |script: &str| only.is_none_or(|only| only == script);
    Scratch::with("sysbench", |place| all_in(program, wanted, place))
}

fn all_in(program: &Program, wanted: impl Fn(&str) -> bool, place: &Path) -> Result<()> {
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
pub fn one(program: &Program, script: &str, threads: u32) -> Result<()> {
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

/// One thread, fixed seed: the same contents as a stock MariaDB. Both start from the same dump, because what
/// `prepare` makes is not the same twice.
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
        for table in 1..=tables_of(script) {
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
    Sysbench::new(server, "auto", 1, TABLE_SIZE).check_rows(table, rows)?;
    check_structure(server, table)
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
