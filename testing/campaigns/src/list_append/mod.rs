//! Histories of concurrent transactions, at each isolation level, and the anomalies in them; with `kill -9`
//! in between.
//!
//! Each level must show none that it forbids. A level that allows one must show it: a load or a checker that
//! finds nothing anywhere proves nothing. A stock server (`--server mariadb`) tests the harness.

mod check;
mod graph;
mod history;
mod workload;

pub use check::Level;

use crate::seed::seed_or_time;
use anyhow::{Result, ensure};
use disk::Random;
use history::{History, Outcome};
use lab::scratch::Scratch;
use lab::server_process::{Program, ServerProcess};
use std::path::Path;

/// What a run is like.
#[derive(clap::Args, Clone)]
pub struct Settings {
    /// Transactions for each level.
    #[arg(long, default_value_t = 100_000)]
    pub transactions: u64,
    /// `kill -9` for each level, evenly spread.
    #[arg(long, default_value_t = 10)]
    pub kills: u64,
    /// Clients at a time.
    #[arg(long, default_value_t = 16)]
    pub threads: usize,
    /// Only this level.
    #[arg(long, value_enum)]
    pub level: Option<Level>,
    /// Where the random numbers start; printed by every run.
    #[arg(long)]
    pub seed: Option<u64>,
}

/// The run of the test command.
pub const SHORT: Settings = Settings { transactions: 6_000, kills: 2, threads: 12, level: None, seed: None };

const SERVER_SETTINGS: [&str; 2] = ["--innodb-lock-wait-timeout=5", "--innodb-buffer-pool-size=64M"];

/// Runs each level, or the one asked for.
pub fn run(program: &Program, settings: &Settings) -> Result<()> {
    let seed = seed_or_time(settings.seed)?;
    println!(
        "{} transactions of {} clients for each level, {} kills, --seed {seed}",
        settings.transactions, settings.threads, settings.kills
    );
    let mut in_doubt = 0;
    let levels = settings.level.map_or_else(|| Level::ALL.to_vec(), |level| vec![level]);
    for level in levels {
        in_doubt += Scratch::with("list-append", |place| run_level(program, place, settings, level, seed))?;
    }
    // Few kills may all miss the moment of a COMMIT.
    ensure!(in_doubt > 0 || settings.kills < 8, "no COMMIT was under way at any kill");
    Ok(())
}

fn run_level(program: &Program, place: &Path, settings: &Settings, level: Level, seed: u64) -> Result<usize> {
    let mut random = Random::new(seed ^ level as u64);
    let mut server = ServerProcess::start(program, place, &SERVER_SETTINGS)?;
    workload::create_table(&server)?;
    let clients = workload::Clients::new(level, settings.threads);
    let mut history = History::default();
    let mut conflicts = workload::Conflicts::default();
    let stretches = settings.kills + 1;
    for stretch in 0..stretches {
        let transactions = settings.transactions / stretches + 1;
        let killed = stretch < settings.kills;
        let met = clients.run(&mut server, transactions, &mut random, &mut history, |server| {
            if killed {
                server.kill();
            }
        })?;
        conflicts.deadlocks += met.deadlocks;
        conflicts.timeouts += met.timeouts;
        if killed {
            drop(server);
            server = ServerProcess::start(program, place, &SERVER_SETTINGS)?;
        }
    }
    workload::read_all(&server, &mut history)?;
    server.stop()?;
    let findings = check::check(&history, level);
    let count = |outcome| history.transactions.iter().filter(|one| one.outcome == outcome).count();
    println!(
        "{:<16} {} committed, {} rolled back ({} deadlocks, {} timeouts), {} in doubt; found: {:?}",
        level.sql(),
        count(Outcome::Committed),
        count(Outcome::Aborted),
        conflicts.deadlocks,
        conflicts.timeouts,
        count(Outcome::Unknown),
        findings.counts,
    );
    let forbidden = findings.forbidden(level);
    ensure!(forbidden.is_empty(), "{} allows none of this:\n{}", level.sql(), forbidden.join("\n"));
    if let Some(expected) = level.expected() {
        ensure!(
            findings.count(expected) > 0,
            "{} allows {expected:?}, and none was found: the load or the checker is blind",
            level.sql()
        );
    }
    Ok(count(Outcome::Unknown))
}
