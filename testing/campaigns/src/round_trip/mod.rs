//! Databases through dumps: from MariaDB to us, from us to MySQL, and back to us.
//!
//! Two databases have what people have: `common.sql` is made at a MariaDB, `everything.sql`, with what only
//! MySQL has, at a MySQL. Each is dumped and loaded from server to server by the programs that people use.
//! After each load contents must be equal, and definitions too: from `information_schema`, and word for word
//! from SHOW CREATE between us and MySQL. What would prove us wrong: a value, a key, a constraint or a word
//! of a definition that is not what it was, and is not among the differences of dialect in `dialect`; or
//! anything at all that is not, at the end, what it was when it first came to us.

mod dialect;
mod programs;
mod state;

use crate::peers::{Address, connect};
use anyhow::{Context, Result, ensure};
use clap::Args;
use lab::scratch::Scratch;
use lab::server_process::{Program, ServerProcess};
use mysql::prelude::Queryable;
use programs::{DumpProgram, Load};
use state::State;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

/// Made, dumped and loaded under this name at every server.
const DATABASE: &str = "untorn_round_trip";

/// What both have.
const COMMON: &str = include_str!("common.sql");

/// With what only MySQL has.
const EVERYTHING: &str = include_str!("everything.sql");

/// What the databases are made with: dates with zeros, and a 0 in an AUTO_INCREMENT column.
const SETTINGS: &str = "SET time_zone = '+00:00', \
    sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO'";

/// How many differences of a step are printed.
const DIFFERENCES_SHOWN: usize = 12;

/// Which servers and programs. mydumper and myloader are used where they are installed.
#[derive(Args, Clone, Default)]
pub struct Arguments {
    /// A stock MySQL, running: its port on this machine.
    #[arg(long)]
    pub mysql: Option<u16>,
    /// The account there.
    #[arg(long, default_value = "root")]
    pub user: String,
    /// Its password.
    #[arg(long, default_value = "")]
    pub password: String,
    /// How MySQL's mysqldump is called, words with spaces between.
    #[arg(long, requires = "mysql_client")]
    pub mysqldump: Option<String>,
    /// How MySQL's client is called.
    #[arg(long, requires = "mysqldump")]
    pub mysql_client: Option<String>,
    /// How mydumper is called; if not said, as `mydumper`, where there is one.
    #[arg(long, requires = "myloader")]
    pub mydumper: Option<String>,
    /// How myloader is called.
    #[arg(long, requires = "mydumper")]
    pub myloader: Option<String>,
    /// Only ways of dumping whose name has this in it (`mydumper`, `--order-by-primary`); more than one may
    /// be given.
    #[arg(long)]
    pub only: Vec<String>,
}

/// Whose server it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Ours,
    MySql,
    MariaDb,
}

/// A server that databases come from and go to.
struct Server {
    kind: Kind,
    address: Address,
}

/// What came of a step.
struct Outcome {
    database: &'static str,
    program: String,
    way: String,
    contents: &'static str,
    definitions: &'static str,
    seconds: f64,
}

/// What the test command runs: what needs no MySQL.
pub fn short() -> Arguments {
    Arguments { user: "root".to_owned(), only: vec!["mariadb-dump".to_owned()], ..Arguments::default() }
}

/// Plays all chains and prints a table.
pub fn run(program: &Program, arguments: &Arguments) -> Result<()> {
    Scratch::with("round-trip", |place| run_in(program, arguments, place))
}

fn run_in(program: &Program, arguments: &Arguments, place: &Path) -> Result<()> {
    let started = |program: &Program, name: &str| -> Result<ServerProcess> {
        let place = place.join(name);
        std::fs::create_dir_all(&place)?;
        ServerProcess::start(program, &place, &["--max-allowed-packet=64M"])
    };
    let ours = started(program, "ours")?;
    let theirs = started(&Program::mariadb()?, "mariadb")?;
    let local = |kind, name: &str, port| Server {
        kind,
        address: Address { name: name.to_owned(), port, user: "root".to_owned(), password: String::new() },
    };
    let mariadb = local(Kind::MariaDb, "MariaDB", theirs.port);
    let us = local(Kind::Ours, "us", ours.port);
    let mysql = match arguments.mysql {
        Some(port) => Server {
            kind: Kind::MySql,
            address: Address {
                name: "MySQL".to_owned(),
                port,
                user: arguments.user.clone(),
                password: arguments.password.clone(),
            },
        },
        None => local(Kind::Ours, "us", ours.port),
    };
    let programs: Vec<DumpProgram> = programs::all(arguments)
        .into_iter()
        .filter(|program| {
            arguments.only.is_empty() || arguments.only.iter().any(|part| program.name().contains(part))
        })
        .collect();
    ensure!(!programs.is_empty(), "no way of dumping has {:?} in its name", arguments.only);
    for maker in [&mysql, &mariadb] {
        has_account_of(&us, maker)?;
    }
    let mut run = Run { place, outcomes: Vec::new(), failures: Vec::new(), known: BTreeSet::new() };
    for program in &programs {
        let turn = if program.loads_into(mysql.kind) { &mysql } else { &us };
        run.chain(program, ("common", COMMON), &[&mariadb, &us, turn, &us]);
        let made_at = if program.reads(mysql.kind) { &mysql } else { &us };
        run.chain(program, ("everything", EVERYTHING), &[made_at, &us, turn, &us]);
    }
    for server in [&mysql, &us, &mariadb] {
        let mut connection = connect(&server.address, None)?;
        connection.query_drop(format!("DROP DATABASE IF EXISTS {DATABASE}"))?;
    }
    let stopped = ours.stop();
    run.finish()?;
    stopped.map(drop)
}

/// Views act for the account that made them, which must be where they are used.
fn has_account_of(us: &Server, maker: &Server) -> Result<()> {
    let account: Option<String> = connect(&maker.address, None)?.query_first("SELECT CURRENT_USER()")?;
    let account = account.context("CURRENT_USER() is nobody")?;
    let (user, host) = account.split_once('@').with_context(|| account.clone())?;
    let mut connection = connect(&us.address, None)?;
    connection.query_drop(format!("CREATE USER IF NOT EXISTS '{user}'@'{host}'"))?;
    connection.query_drop(format!("GRANT ALL ON *.* TO '{user}'@'{host}'"))?;
    Ok(())
}

/// The steps so far.
struct Run<'r> {
    place: &'r Path,
    outcomes: Vec<Outcome>,
    failures: Vec<String>,
    /// Differences of dialect that were met.
    known: BTreeSet<&'static str>,
}

impl Run<'_> {
    /// Makes a database at the first server and carries it to the others, one after the other.
    fn chain(&mut self, program: &DumpProgram, (name, sql): (&'static str, &str), stops: &[&Server]) {
        let made = make(stops[0], sql, program).and_then(|()| State::read(stops[0]));
        let mut before = match made {
            Ok(state) => state,
            Err(error) => {
                let what = format!("{name} cannot be made at {}: {error:#}", stops[0].address.name);
                return self.failures.push(what);
            }
        };
        // As it was when it first came to us: so it must be at the end.
        let mut first: Option<State> = None;
        for pair in stops.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            let program = if program.reads(from.kind) { program } else { &programs::of_mariadb() };
            let begin = Instant::now();
            let way = format!("{} → {}", from.address.name, to.address.name);
            let what = format!("{name}, {}, {way}", program.name());
            let carried = self.carry(program, from, to).with_context(|| what.clone());
            let mut outcome = Outcome {
                database: name,
                program: program.name(),
                way,
                contents: "-",
                definitions: "-",
                seconds: begin.elapsed().as_secs_f64(),
            };
            let after = match carried {
                Ok(state) => state,
                Err(error) => {
                    self.failures.push(format!("{error:#}"));
                    self.outcomes.push(outcome);
                    return;
                }
            };
            let mut differences = before.differences(&after, (from.kind, to.kind), &mut self.known);
            if to.kind == Kind::Ours {
                match &first {
                    Some(first) => {
                        let same = (Kind::Ours, Kind::Ours);
                        differences.extend(first.differences(&after, same, &mut self.known));
                    }
                    None => first = Some(after.clone()),
                }
            }
            let differs = |contents: bool| differences.iter().any(|found| found.is_contents() == contents);
            outcome.contents = if differs(true) { "DIFFERENT" } else { "equal" };
            outcome.definitions = if differs(false) { "DIFFERENT" } else { "equal" };
            self.outcomes.push(outcome);
            self.failures.extend(told(&what, &differences));
            before = after;
        }
    }

    fn carry(&self, program: &DumpProgram, from: &Server, to: &Server) -> Result<State> {
        let dump = self.place.join("dump");
        programs::remove(&dump)?;
        program.dump(from, DATABASE, &dump).context("dump")?;
        let collation = if from.kind == Kind::MariaDb { "general" } else { "0900_ai" };
        if program.load_makes_database() == Load::IntoDatabase {
            empty(to, &format!("utf8mb4_{collation}_ci"))?;
        } else {
            connect(&to.address, None)?.query_drop(format!("DROP DATABASE IF EXISTS {DATABASE}"))?;
        }
        program.load(to, DATABASE, &dump).context("load")?;
        State::read(to)
    }

    fn finish(self) -> Result<()> {
        println!("| database | program | way | contents | definitions | s |\n|---|---|---|---|---|---|");
        for Outcome { database, program, way, contents, definitions, seconds } in &self.outcomes {
            println!("| {database} | `{program}` | {way} | {contents} | {definitions} | {seconds:.1} |");
        }
        if !self.known.is_empty() {
            println!("\nDifferences of dialect that were met:");
        }
        for reason in &self.known {
            println!("- {reason}");
        }
        ensure!(self.failures.is_empty(), "{}", self.failures.join("\n"));
        Ok(())
    }
}

/// The first differences of a step, one a line.
fn told(what: &str, differences: &[state::Difference]) -> Vec<String> {
    let mut lines: Vec<String> =
        differences.iter().take(DIFFERENCES_SHOWN).map(|found| format!("{what}: {found}")).collect();
    if differences.len() > DIFFERENCES_SHOWN {
        lines.push(format!("{what}: and {} more", differences.len() - DIFFERENCES_SHOWN));
    }
    lines
}

/// An empty database.
fn empty(server: &Server, collation: &str) -> Result<()> {
    let mut connection = connect(&server.address, None)?;
    connection.query_drop(format!("DROP DATABASE IF EXISTS {DATABASE}"))?;
    connection.query_drop(format!(
        "CREATE DATABASE {DATABASE} DEFAULT CHARACTER SET utf8mb4 COLLATE {collation}"
    ))?;
    Ok(())
}

/// Makes a database by a script of statements, each of which ends with a line that ends with a semicolon.
/// Below a line that says so, one is for programs that carry what it makes.
fn make(server: &Server, sql: &str, program: &DumpProgram) -> Result<()> {
    let collation = if server.kind == Kind::MariaDb { "general" } else { "0900_ai" };
    empty(server, &format!("utf8mb4_{collation}_ci"))?;
    let mut connection = connect(&server.address, Some(DATABASE))?;
    connection.query_drop(SETTINGS)?;
    connection.query_drop(format!("SET NAMES utf8mb4 COLLATE utf8mb4_{collation}_ci"))?;
    let mut statement = String::new();
    let mut left_out = false;
    for line in sql.lines() {
        if line.starts_with("--") {
            left_out = line.starts_with("-- Not by mydumper") && program.is_mydumper();
            continue;
        }
        statement.push_str(line);
        statement.push('\n');
        if line.ends_with(';') {
            let sql = std::mem::take(&mut statement);
            let what = || sql.chars().take(100).collect::<String>();
            if !left_out {
                connection.query_drop(&sql).with_context(what)?;
            }
            left_out = false;
        }
    }
    Ok(())
}
