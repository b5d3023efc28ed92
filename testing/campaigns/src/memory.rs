//! Memory stays within what the settings promise while the data is many times the buffer pool.
//!
//! All oltp scripts with 64 connections over four tables that do not fit the pool; afterwards the most the
//! process ever had resident (VmHWM, kept by the kernel) against buffer pool + log buffer + 96 MiB + 0.5 MiB
//! per connection.

use anyhow::{Context, Result, ensure};
use lab::scratch::Scratch;
use lab::server_process::{Program, ServerProcess, variable_number};
use lab::sysbench::{self, Rows, SCRIPTS, Sysbench};
use std::path::Path;
use std::time::Instant;

const MIB: u64 = 1 << 20;
/// What the process may take besides pool, log buffer and connections.
const ALLOWANCE: u64 = 96 * MIB;
const PER_CONNECTION: u64 = MIB / 2;
const TABLES: u32 = 4;
const THREADS: u32 = 64;

/// How much data, and for how long.
#[derive(Clone, Copy)]
pub struct Size {
    /// Rows of each table.
    pub rows: u64,
    /// Buffer pool in MiB.
    pub pool: u64,
    /// Seconds per script.
    pub time: u32,
}

/// The form for every test run: 45 MiB of data and more, a pool of 16 MiB.
pub const SHORT: Size = Size { rows: 50_000, pool: 16, time: 2 };

/// Runs all scripts and compares.
pub fn run(program: &Program, size: Size) -> Result<()> {
    Scratch::with("memory", |place| run_in(program, size, place))
}

fn run_in(program: &Program, size: Size, place: &Path) -> Result<()> {
    let pool = format!("--innodb-buffer-pool-size={}M", size.pool);
    let server = ServerProcess::start(program, place, &[&pool, "--max-connections=200"])?;
    sysbench::make_database(&server)?;
    let load = Sysbench {
        server: &server,
        statement_mode: "auto",
        threads: THREADS,
        tables: Some(TABLES),
        table_size: size.rows,
    };
    let begin = Instant::now();
    Sysbench { threads: TABLES, ..load }.run("oltp_read_write", "prepare", &[])?;
    let on_disk = table_bytes(&server.data)?;
    println!(
        "{TABLES} tables of {} rows, {} MiB in files, prepared in {:.0} s",
        size.rows,
        on_disk / MIB,
        begin.elapsed().as_secs_f64()
    );
    ensure!(on_disk > 2 * size.pool * MIB, "the data has to be larger than the pool to test anything");
    for (script, rows) in SCRIPTS {
        let output = load.run(script, "run", &[&format!("--time={}", size.time)])?;
        let transactions =
            sysbench::figure(&output, "transactions:").context("no transactions: in the output")?;
        ensure!(transactions > 0.0, "{script}: no transaction\n{output}");
        if rows != Rows::Same || script.contains("write") || script.contains("update") {
            for table in 1..=TABLES {
                load.check_rows(table, after(script, rows)).with_context(|| format!("after {script}"))?;
            }
        }
        println!(
            "{script:<22} {:>9.0} transactions/s, {:>4} MiB resident at most",
            transactions / f64::from(size.time),
            server.peak_memory()? / MIB
        );
    }
    for table in 1..=TABLES {
        sysbench::check_structure(&server, table)?;
    }
    within_bounds(&server, size)?;
    server.stop()?;
    Ok(())
}

/// `oltp_insert` follows `oltp_delete`: there may be fewer rows than at first and more than after it.
fn after(script: &str, rows: Rows) -> Rows {
    if script == "oltp_insert" { Rows::Any } else { rows }
}

fn within_bounds(server: &ServerProcess, size: Size) -> Result<()> {
    let mut connection = server.connect(None)?;
    let pool = variable_number(&mut connection, "innodb_buffer_pool_size")?;
    let log_buffer = variable_number(&mut connection, "innodb_log_buffer_size")?;
    ensure!(pool == size.pool * MIB, "the pool is {pool} bytes");
    let bound = pool + log_buffer + ALLOWANCE + PER_CONNECTION * u64::from(THREADS);
    let peak = server.peak_memory()?;
    println!(
        "{} MiB resident at most; pool {} + log buffer {} + {} + {THREADS} connections x 0.5 = {} MiB",
        peak / MIB,
        pool / MIB,
        log_buffer / MIB,
        ALLOWANCE / MIB,
        bound / MIB
    );
    ensure!(peak <= bound, "{peak} bytes were resident, the bound is {bound}");
    Ok(())
}

fn table_bytes(data: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(data.join(sysbench::DATABASE))? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}
