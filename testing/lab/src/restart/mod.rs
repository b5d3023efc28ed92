//! What a restart costs, beside stock servers.
//!
//! `warm.rs`: after a clean stop, how soon the rate is back, with the dump of the buffer pool loaded and
//! without. `recovery.rs`: after `kill -9` with a log that is nearly full, how fast the log is applied.

mod recovery;
mod warm;

use crate::experiment::report::{Files, points_as_csv};
use crate::experiment::servers::Peers;
use crate::experiment::{Sizes, in_place};
use crate::server_process::{Program, ServerProcess};
use crate::sysbench::Sysbench;
use crate::time_chart::Chart;
use anyhow::Result;
use serde_json::{Value, json};
use std::path::Path;

/// What the experiment is made of.
#[derive(clap::Args, Clone, Debug)]
pub struct Setup {
    #[command(flatten)]
    sizes: Sizes,
    #[command(flatten)]
    peers: Peers,
    /// Which half: both by default.
    #[arg(long, value_enum)]
    only: Option<Half>,
    /// Redo log in MiB, nearly full at the kill.
    #[arg(long, default_value_t = 200)]
    redo: u64,
    /// Size in GiB of the volume that is read after a clean stop: AWS gp2 with a full bucket of credits.
    #[arg(long, default_value_t = 1000)]
    volume: u64,
}

/// A half of the experiment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Half {
    /// After a clean stop.
    Warm,
    /// After `kill -9`.
    Recovery,
}

/// What a half found.
struct Found {
    /// What was done, the table, the conclusion.
    text: String,
    charts: Vec<Chart>,
    record: Value,
}

/// Runs both halves and reports.
pub fn run(program: &Program, setup: &Setup) -> Result<()> {
    in_place("restart", setup.sizes.place.as_deref(), |place| run_in(program, setup, place))
}

fn run_in(program: &Program, setup: &Setup, place: &Path) -> Result<()> {
    let setup = Setup { sizes: setup.sizes.settled(), ..setup.clone() };
    let servers = setup.peers.beside(program)?;
    let wanted = |half| setup.only.is_none_or(|only| only == half);
    let mut found = Vec::new();
    if wanted(Half::Warm) {
        found.push(("warm", warm::run(&servers, &setup, place)?));
    }
    if wanted(Half::Recovery) {
        found.push(("recovery", recovery::run(&servers, &setup, place)?));
    }
    let text: Vec<&str> = found.iter().map(|(_, found)| found.text.as_str()).collect();
    let records: serde_json::Map<String, Value> =
        found.iter().map(|(name, found)| ((*name).to_owned(), found.record.clone())).collect();
    let (text, sizes) = (text.join("\n"), &setup.sizes);
    let charts: Vec<Chart> = found.into_iter().flat_map(|(_, found)| found.charts).collect();
    let record = json!({
        "tables": sizes.tables, "rows": sizes.rows, "threads": sizes.threads, "time": sizes.time,
        "warm_up": sizes.warm_up, "rounds": sizes.rounds, "redo_mib": setup.redo,
        "volume_gib": setup.volume, "found": records,
    });
    let output = sizes.output.clone().unwrap_or_else(|| "target/restart".into());
    Files::at(&output)?.write(&text, &charts, &points_as_csv(&charts), record)
}

fn load<'s>(server: &'s ServerProcess, sizes: &Sizes, threads: u32) -> Sysbench<'s> {
    let (tables, table_size) = (Some(sizes.tables), sizes.rows);
    Sysbench { server, statement_mode: "auto", threads, tables, table_size }
}

/// Twice the data: all of it fits.
fn pool(sizes: &Sizes) -> String {
    format!("--innodb-buffer-pool-size={}M", (2 * sizes.data_mib()).max(128))
}
