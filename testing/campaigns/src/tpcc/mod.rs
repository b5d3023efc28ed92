//! TPC-C, to the extent that a 1992 standard still applies to a server: its nine tables, its five
//! transactions in their mix without thinking and keying times, and its twelve consistency conditions. Ours,
//! and any stock server beside it by the same clients.
//!
//! What would prove the server wrong: a condition that does not hold after the load, or after `kill -9` in
//! the middle of one; an order that was acknowledged and is gone; an error that is neither a deadlock nor the
//! rollback that the standard asks for. Each condition is broken on purpose once in every run, and must
//! notice: a condition that cannot fail shows nothing.
//!
//! The tpmC printed are of no audited run: without waiting times a few clients stand for hundreds of
//! terminals, and only numbers of the same run compare.

mod conditions;
mod load;
mod schema;
mod transactions;
mod workload;

use crate::seed::seed_or_time;
use anyhow::{Context, Result, ensure};
use disk::Random;
use lab::bench::Peer;
use lab::scratch::Scratch;
use lab::server_process::{Program, ServerProcess};
use load::Scale;
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use std::path::Path;
use std::time::Duration;
use transactions::Kind;
use workload::{Figures, Load};

/// What a run is like.
#[derive(clap::Args, Clone)]
pub struct Settings {
    /// How many warehouses.
    #[arg(long, default_value_t = 1)]
    pub warehouses: u32,
    /// Clients at a time.
    #[arg(long, default_value_t = 8)]
    pub threads: usize,
    /// Seconds of load that are measured, and once more half as many before the kill.
    #[arg(long, default_value_t = 30)]
    pub seconds: u64,
    /// Items, customers and orders are one in this many of the standard's.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub fraction: u32,
    /// Buffer pool of our server, in MiB.
    #[arg(long, default_value_t = 512)]
    pub pool: u32,
    /// A running stock server of this machine, which gets the same load.
    #[arg(long, value_name = "NAME:PORT")]
    pub peer: Vec<Peer>,
    /// User of the peers.
    #[arg(long, default_value = "root")]
    pub user: String,
    /// Password of the peers.
    #[arg(long, default_value = "")]
    pub password: String,
    /// Database of the peers, which is dropped and made again.
    #[arg(long, default_value = "untorn_tpcc")]
    pub database: String,
    /// Where the random numbers start; printed by every run.
    #[arg(long)]
    pub seed: Option<u64>,
}

/// The run of the test command.
pub fn short() -> Settings {
    Settings {
        warehouses: 1,
        threads: 4,
        seconds: 7,
        fraction: 10,
        pool: 128,
        peer: Vec::new(),
        user: String::new(),
        password: String::new(),
        database: "tpcc".to_owned(),
        seed: None,
    }
}

/// A server and how to log in.
#[derive(Clone)]
struct Door {
    port: u16,
    user: String,
    password: String,
    database: String,
}

impl Door {
    fn connect(&self, database: Option<&str>) -> Result<Conn> {
        let options = OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(self.port)
            .user(Some(&self.user))
            .pass(Some(&self.password))
            .prefer_socket(false)
            .db_name(database)
            .stmt_cache_size(Some(100))
            .tcp_nodelay(true)
            .read_timeout(Some(Duration::from_secs(120)))
            .write_timeout(Some(Duration::from_secs(60)));
        Ok(Conn::new(options)?)
    }

    fn enter(&self) -> Result<Conn> {
        self.connect(Some(&self.database))
    }
}

/// Loads and measures ours, kills it, and measures the peers.
pub fn run(program: &Program, settings: &Settings) -> Result<()> {
    let seed = seed_or_time(settings.seed)?;
    ensure!(settings.warehouses > 0 && settings.threads > 0, "at least one warehouse and one client");
    println!(
        "{} warehouses (1/{} of the standard's rows), {} clients, {} s, --seed {seed}",
        settings.warehouses, settings.fraction, settings.threads, settings.seconds
    );
    let mut all = Vec::new();
    let ours = Scratch::with("tpcc", |place| run_ours(program, place, settings, seed))?;
    all.push(("untorn".to_owned(), ours));
    for peer in &settings.peer {
        let door = Door {
            port: peer.port,
            user: settings.user.clone(),
            password: settings.password.clone(),
            database: settings.database.clone(),
        };
        let figures = measure(&door, settings, seed).with_context(|| peer.name.clone())?;
        door.connect(None)?.query_drop(format!("DROP DATABASE {}", door.database))?;
        all.push((peer.name.clone(), figures));
    }
    print_table(&all);
    Ok(())
}

fn run_ours(program: &Program, place: &Path, settings: &Settings, seed: u64) -> Result<Figures> {
    let pool = format!("--innodb-buffer-pool-size={}M", settings.pool);
    let mut server = ServerProcess::start(program, place, &[&pool])?;
    let door = |server: &ServerProcess| Door {
        port: server.port,
        user: "root".to_owned(),
        password: String::new(),
        database: settings.database.clone(),
    };
    let here = door(&server);
    let figures = measure(&here, settings, seed)?;
    let scale = Scale::new(settings.warehouses, settings.fraction);
    let before = orders(&mut here.enter()?)?;
    let time = Duration::from_millis(500 * settings.seconds);
    let load = Load { door: &here, scale, threads: settings.threads, time, seed: seed ^ 1 };
    let seen = load.until(|| server.kill())?;
    server = ServerProcess::start(program, place, &[&pool]).context("the start after the kill")?;
    let here = door(&server);
    let mut connection = here.enter()?;
    conditions::check(&mut connection).context("after kill -9")?;
    let acknowledged = before + seen.of(Kind::NewOrder).latencies.len() as u64;
    let after = orders(&mut connection)?;
    // Each client may have had one COMMIT under way.
    let possible = acknowledged..=acknowledged + settings.threads as u64;
    ensure!(possible.contains(&after), "{after} orders after kill -9, {acknowledged} were acknowledged");
    println!(
        "kill -9 after {} transactions: restarted in {:.0} ms, twelve conditions hold, no order is lost",
        seen.transactions(),
        server.started_in.as_secs_f64() * 1e3
    );
    drop(connection);
    server.stop()?;
    Ok(figures)
}

fn orders(connection: &mut Conn) -> Result<u64> {
    connection.query_first("SELECT COUNT(*) FROM orders")?.context("no count of orders")
}

/// Makes and fills the tables, runs the load and checks, on any server.
fn measure(door: &Door, settings: &Settings, seed: u64) -> Result<Figures> {
    let scale = Scale::new(settings.warehouses, settings.fraction);
    let begin = std::time::Instant::now();
    let mut connection = door.connect(None)?;
    schema::create(&mut connection, &door.database)?;
    load::fill(door, scale, seed)?;
    println!("loaded in {:.1} s", begin.elapsed().as_secs_f64());
    conditions::check(&mut connection).context("after loading")?;
    conditions::check_as_loaded(&mut connection, scale)?;
    conditions::break_each(&mut connection)?;
    let time = Duration::from_secs(settings.seconds);
    let figures = Load { door, scale, threads: settings.threads, time, seed }.run()?;
    conditions::check(&mut connection).context("after the load")?;
    Ok(figures)
}

fn print_table(all: &[(String, Figures)]) {
    println!(
        "\n| server | tpmC | {} | deadlocks |",
        Kind::ALL.map(|kind| format!("{kind}, p95 ms")).join(" | ")
    );
    println!("|---|---:|{}---:|", "---:|".repeat(Kind::ALL.len()));
    for (name, figures) in all {
        let tails = Kind::ALL.map(|kind| format!("{:.1}", figures.of(kind).p95()));
        println!(
            "| {name} | {:.0} | {} | {} of {} |",
            figures.per_minute(),
            tails.join(" | "),
            figures.deadlocks,
            figures.transactions()
        );
    }
}

/// A random number with the standard's preference for some (NURand).
fn uneven(random: &mut Random, spread: usize, from: usize, to: usize) -> usize {
    let constant = 259 % (spread + 1);
    let mixed = random.below(spread + 1) | (from + random.below(to - from + 1));
    (mixed + constant) % (to - from + 1) + from
}

/// A last name of three syllables.
fn last_name(number: usize) -> String {
    const SYLLABLES: [&str; 10] =
        ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    [number / 100 % 10, number / 10 % 10, number % 10].map(|at| SYLLABLES[at]).concat()
}
