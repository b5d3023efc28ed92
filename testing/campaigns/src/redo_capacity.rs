//! `innodb_redo_log_capacity` holds under a load that fills the log again and again: the checkpoint age and
//! the files stay below it, writers wait instead of failing, and the rows are right afterwards.

use anyhow::{Context, Result, ensure};
use lab::command::captured;
use lab::scratch::Scratch;
use lab::server_process::{Program, ServerProcess, status_number, variable_number};
use lab::sysbench::{self, Rows, Sysbench};
use mysql::Conn;
use std::path::Path;
use std::thread;
use std::time::Duration;

const CAPACITY: u64 = 64 << 20;
const MIB: u64 = 1 << 20;
/// Where a sample is taken, in time.
const INTERVAL: Duration = Duration::from_millis(50);

/// The most of everything seen.
#[derive(Default)]
struct Highest {
    samples: u64,
    age: u64,
    file_bytes: u64,
}

/// `oltp_write_only` for this long, changing rows all over the tables.
pub fn run(program: &Program, time: Duration, threads: u32) -> Result<()> {
    Scratch::with("redo-capacity", |place| run_in(program, time, threads, place))
}

fn run_in(program: &Program, time: Duration, threads: u32, place: &Path) -> Result<()> {
    let capacity = format!("--innodb-redo-log-capacity={CAPACITY}");
    let server = ServerProcess::start(program, place, &[&capacity, "--innodb-buffer-pool-size=128M"])?;
    sysbench::make_database(&server)?;
    let load =
        Sysbench { server: &server, statement_mode: "auto", threads, tables: Some(4), table_size: 50_000 };
    Sysbench { threads: 4, ..load }.run("oltp_write_only", "prepare", &[])?;
    let mut watcher = server.connect(None)?;
    ensure!(variable_number(&mut watcher, "innodb_redo_log_capacity")? == CAPACITY, "another capacity");
    let first_lsn = status_number(&mut watcher, "Innodb_lsn_current")?;
    let mut highest = Highest::default();
    let output = thread::scope(|scope| {
        let seconds = format!("--time={}", time.as_secs());
        let more = [&*seconds, "--rand-type=uniform", "--mysql-ignore-errors=1213"];
        let mut command = load.command("oltp_write_only", "run", &more);
        let sysbench = scope.spawn(move || captured(&mut command));
        let mut sampled = Ok(());
        while !sysbench.is_finished() {
            sampled = sampled.and_then(|()| sample(&server, &mut watcher, &mut highest));
            thread::sleep(INTERVAL);
        }
        sampled?;
        sysbench.join().map_err(|_| anyhow::anyhow!("the thread of sysbench panicked"))?
    })?;
    let transactions =
        sysbench::figure(&output, "transactions:").context("no transactions: in the output")?;
    // Two transactions that take rows in opposite order are a deadlock, which InnoDB answers with 1213, too.
    let errors = sysbench::figure(&output, "ignored errors:").context("no ignored errors: in the output")?;
    let deadlocks = status_number(&mut watcher, "Innodb_deadlocks")?;
    let written = status_number(&mut watcher, "Innodb_lsn_current")? - first_lsn;
    let waits = status_number(&mut watcher, "Untorn_log_room_waits")?;
    println!(
        "{transactions:.0} transactions of {threads} clients in {} s, {deadlocks} deadlocks, {} MiB of redo; \
         {} samples: checkpoint age at most {:.1} MiB, files at most {:.1} MiB of {} MiB; {waits} waits for room",
        time.as_secs(),
        written / MIB,
        highest.samples,
        highest.age as f64 / MIB as f64,
        highest.file_bytes as f64 / MIB as f64,
        CAPACITY / MIB
    );
    ensure!(errors == deadlocks as f64, "{errors} errors reached the clients, {deadlocks} were deadlocks");
    ensure!(written > CAPACITY, "the log did not go round once: {written} bytes of redo");
    for table in 1..=4 {
        load.check_rows(table, Rows::Same)?;
        sysbench::check_structure(&server, table)?;
    }
    server.stop()?;
    Ok(())
}

fn sample(server: &ServerProcess, watcher: &mut Conn, highest: &mut Highest) -> Result<()> {
    let age = status_number(watcher, "Innodb_checkpoint_age")?;
    let limit = status_number(watcher, "Innodb_checkpoint_max_age")?;
    let file_bytes = redo_bytes(&server.data)?;
    ensure!(limit <= CAPACITY, "the limit of the checkpoint age is {limit}");
    ensure!(age <= limit, "the checkpoint age is {age}, its limit {limit}");
    ensure!((1..=CAPACITY).contains(&file_bytes), "the redo files have {file_bytes} bytes");
    highest.samples += 1;
    highest.age = highest.age.max(age);
    highest.file_bytes = highest.file_bytes.max(file_bytes);
    Ok(())
}

/// Length of the redo files together.
fn redo_bytes(data: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(data)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().contains("redo") {
            bytes += entry.metadata()?.len();
        }
    }
    Ok(bytes)
}
