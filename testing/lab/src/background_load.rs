//! A second load beside that of a campaign: sysbench's `oltp_write_only` on tables many times the buffer
//! pool, so that the cleaner writes pages of all ages all the time while the server is taken away.
//!
//! Each of its transactions deletes a row and inserts it again: whatever happened, every table has as many
//! rows as at first, and its indexes agree.

use crate::command::Background;
use crate::server_process::ServerProcess;
use crate::sysbench::{self, Rows, Sysbench};
use anyhow::{Context, Result};
use std::process::Stdio;

const TABLES: u32 = 2;
const ROWS: u64 = 40_000;
const THREADS: u32 = 4;

/// Settings with which the tables do not fit the pool, the redo log goes round often, and pages are written
/// as soon as a few are dirty.
pub const SETTINGS: [&str; 4] = [
    "--innodb-buffer-pool-size=5M",
    "--innodb-redo-log-capacity=8M",
    "--innodb-max-dirty-pages-pct-lwm=1",
    "--innodb-io-capacity=4000",
];

/// sysbench at work; it ends when its server is gone.
pub struct BackgroundLoad {
    _sysbench: Background,
}

fn load(server: &ServerProcess, threads: u32) -> Sysbench<'_> {
    Sysbench { server, statement_mode: "auto", threads, tables: Some(TABLES), table_size: ROWS }
}

impl BackgroundLoad {
    /// Makes the tables.
    pub fn prepare(server: &ServerProcess) -> Result<()> {
        sysbench::make_database(server)?;
        load(server, TABLES).run("oltp_write_only", "prepare", &[]).map(drop)
    }

    /// Starts the load, which goes on until the server is gone.
    pub fn start(server: &ServerProcess, seed: u64) -> Result<BackgroundLoad> {
        let seed = format!("--rand-seed={}", seed % 1_000_000_000);
        let mut sysbench = load(server, THREADS).command(
            "oltp_write_only",
            "run",
            &["--time=600", "--rand-type=uniform", &seed],
        );
        let child = sysbench.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Ok(BackgroundLoad { _sysbench: Background(child.context("cannot run sysbench")?) })
    }

    /// What must hold after recovery.
    pub fn check(server: &ServerProcess) -> Result<()> {
        for table in 1..=TABLES {
            load(server, 1).check_rows(table, Rows::Same)?;
            sysbench::check_structure(server, table)?;
        }
        Ok(())
    }
}
