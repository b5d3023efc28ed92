//! Random schemas, data, queries and changes, on ours and on stock servers.
//!
//! What would prove ours wrong: rows, contents, an error or a count of affected rows unlike MySQL's, where
//! `listed` has no reason for it; or, with no other server needed, a query that gives other rows without
//! indexes, or whose rows are not those for which its condition holds, does not hold, and is unknown
//! (ternary-logic partitioning). Each round makes tables (`schema`), fills them (`data`) and plays queries
//! (`query`, `expression`, `templates`) and changes (`change`); a difference is made small (`shrink`) and
//! printed as a script. Beside a MariaDB a difference counts where it and MySQL agree.

mod change;
mod data;
mod expression;
mod listed;
mod query;
mod round;
mod schema;
mod servers;
mod shrink;
mod templates;
mod tree;

use crate::peers::{Accounts, Address};
use crate::seed::seed_or_time;
use anyhow::{Context, Result, ensure};
use clap::Args;
use lab::scratch::Scratch;
use lab::server_process::{Program, ServerProcess};
use round::{Counts, Round};

/// What to play, and beside whom.
#[derive(Args, Clone)]
pub struct Arguments {
    /// Our server, running: its port on this machine.
    #[arg(long)]
    pub port: u16,
    /// Stock servers, running: NAME:PORT, MySQL first. Without one, ours is compared with itself.
    #[arg(long = "peer", num_args = 1)]
    pub peers: Vec<String>,
    #[command(flatten)]
    accounts: Accounts,
    /// Remade at each server for each round; one more has `_small` behind its name.
    #[arg(long, default_value = "untorn_differential")]
    database: String,
    #[command(flatten)]
    settings: Settings,
}

/// How much is played.
#[derive(Args, Clone)]
pub struct Settings {
    /// Statements, at least: a round is played to its end.
    #[arg(long, default_value_t = 100_000)]
    pub statements: u64,
    /// Statements of a round, which has tables of its own.
    #[arg(long, default_value_t = 400)]
    pub round: u64,
    /// The first round: with `--statements 1` that one alone.
    #[arg(long, default_value_t = 0)]
    pub first: u64,
    /// Findings after which it stops.
    #[arg(long, default_value_t = 20)]
    pub findings: usize,
    /// Only rows and contents count: errors and counts of affected rows are counted, and not shown.
    #[arg(long)]
    pub rows: bool,
    /// Numbers of warnings count too.
    #[arg(long)]
    pub warnings: bool,
    /// Where the random numbers start; printed by every run.
    #[arg(long)]
    pub seed: Option<u64>,
}

/// The run of the test command, whose only stock server is a MariaDB: ours follows MySQL where the two
/// differ, so it is compared with itself. The same each time; longer runs look further.
const SHORT: Settings = Settings {
    statements: 12_000,
    round: 400,
    first: 0,
    findings: 20,
    rows: false,
    warnings: false,
    seed: Some(97),
};

/// Plays on a server of its own, compared with itself.
pub fn check(program: &Program) -> Result<()> {
    Scratch::with("differential", |place| {
        let server = ServerProcess::start(program, place, &["--innodb-flush-log-at-trx-commit=0"])?;
        let (user, password) = ("root".to_owned(), String::new());
        let ours = Address { name: "ours".to_owned(), port: server.port, user, password };
        let result = play(&[ours], "untorn_differential", &SHORT);
        let stopped = server.stop();
        result.and(stopped.map(drop))
    })
}

/// Plays on servers that run.
pub fn run(arguments: &Arguments) -> Result<()> {
    let addresses = arguments.accounts.addresses(arguments.port, &arguments.peers)?;
    play(&addresses, &arguments.database, &arguments.settings)
}

fn play(addresses: &[Address], database: &str, settings: &Settings) -> Result<()> {
    let seed = seed_or_time(settings.seed)?;
    println!("{} statements, {} a round, --seed {seed}", settings.statements, settings.round);
    let mut counts = Counts::default();
    let mut number = settings.first;
    while counts.statements < settings.statements && counts.findings.len() < settings.findings {
        Round::play(addresses, database, settings, seed, number, &mut counts)
            .with_context(|| format!("round {number}"))?;
        number += 1;
    }
    println!("{}", counts.summary());
    ensure!(counts.findings.is_empty(), "{} findings, --seed {seed}", counts.findings.len());
    Ok(())
}
