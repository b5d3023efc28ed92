//! Figures: the criterion benchmarks, and sysbench against this server and a stock MariaDB in the same run on the same
//! machine, so that the ratio means something even where the absolute figures do not.

use crate::scratch::Scratch;
use crate::server_process::{Program, ServerProcess};
use crate::steps::cargo;
use crate::sysbench::{self, Summary};
use anyhow::Result;

const SCRIPTS: [&str; 5] =
    ["oltp_point_select", "oltp_read_only", "oltp_update_non_index", "oltp_write_only", "oltp_read_write"];

/// Which figures.
#[derive(clap::Subcommand)]
pub enum Benchmark {
    /// The criterion benchmarks of every crate.
    Criterion,
    /// sysbench against this server and a stock MariaDB on the same machine.
    Compare {
        /// Seconds per script.
        #[arg(long, default_value_t = 10)]
        seconds: u32,
        /// Use this server program as it is instead of building one.
        #[arg(long)]
        server: Option<std::path::PathBuf>,
    },
}

/// Runs the criterion benchmarks.
pub fn criterion() -> Result<()> {
    cargo(&["bench", "--workspace"], &[])
}

/// Runs sysbench against both servers and prints queries per second, their ratio and the 99th percentiles.
pub fn compare(program: &Program, seconds: u32) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get());
    println!(
        "\n{cores} cores, client on the same machine, {seconds} s per script, 2 tables of 100000 rows, default durability"
    );
    println!(
        "{:<24}{:>8}{:>12}{:>12}{:>8}{:>12}{:>12}",
        "script", "threads", "untorn q/s", "MariaDB q/s", "ratio", "p99 ms", "MariaDB"
    );
    let mariadb = Program::mariadb()?;
    for threads in [1, 16, 64] {
        for script in SCRIPTS {
            let ours = measured(program, script, threads, seconds)?;
            let theirs = measured(&mariadb, script, threads, seconds)?;
            println!(
                "{script:<24}{threads:>8}{:>12.0}{:>12.0}{:>8.2}{:>12.2}{:>12.2}",
                ours.queries_per_second,
                theirs.queries_per_second,
                ours.queries_per_second / theirs.queries_per_second,
                ours.p99_ms,
                theirs.p99_ms
            );
        }
    }
    Ok(())
}

fn measured(program: &Program, script: &str, threads: u32, time: u32) -> Result<Summary> {
    Scratch::with("bench", |place| {
        let server = ServerProcess::start(program, place, &["--innodb-buffer-pool-size=512M"])?;
        sysbench::make_database(&server)?;
        let summary = sysbench::measured(&server, script, threads, time, 100_000)?;
        server.stop()?;
        Ok(summary)
    })
}
