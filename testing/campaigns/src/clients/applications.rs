//! Applications: one for each library that people reach a MySQL server by, in its own language, below
//! `testing/campaigns/clients`.
//!
//! Each is small and checks itself: migrations there and back, types, relations, JSON, upserts, pages, pools.
//! It knows the right answers and not which server it is on; that they are right shows where it passes on a
//! stock server (`--on`). A folder has
//!
//! - `setup.sh`, which fetches the library into the current directory, from its language's registry;
//! - `run.sh`, which does the work, on the server that the environment names (`CLIENT_HOST`, `_PORT`,
//!   `_USER`, `_PASSWORD`, `_DATABASE`): a line `ok   CHECK` or `FAIL CHECK: why` for each check, and 0
//!   when all were right;
//! - `packages`, where a program of the system is needed: `PACKAGE: COMMAND` in each line, by Debian's name;
//!   the package is there when the command succeeds.
//!
//! What would prove the server wrong: a check that fails here and not on MySQL.

use anyhow::{Context, Result, bail, ensure};
use lab::command::{captured, root, target_directory};
use lab::scratch::Scratch;
use lab::server_process::{Program, ServerProcess};
use lab::system_packages;
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Which applications, and on which server.
#[derive(clap::Args, Clone)]
pub struct Settings {
    /// The applications of testing/campaigns/clients, too: one for each client library. Their libraries come
    /// from the registries of their languages, and stay in target/clients.
    #[arg(long)]
    all: bool,
    /// Only these applications, and not the command-line clients.
    #[arg(long, value_name = "CLIENT")]
    only: Vec<String>,
    /// The applications alone, on a server that runs on this port of 127.0.0.1: what they ask for is right
    /// where they pass on a stock MySQL.
    #[arg(long, value_name = "PORT")]
    on: Option<u16>,
    /// An account there that may make databases.
    #[arg(long, default_value = "root", requires = "on")]
    user: String,
    #[arg(long, default_value = "", requires = "on")]
    password: String,
}

impl Settings {
    /// Whether the command-line clients are wanted.
    pub fn command_line(&self) -> bool {
        self.only.is_empty() && self.on.is_none()
    }

    /// Whether applications are.
    pub fn applications(&self) -> bool {
        self.all || !self.only.is_empty() || self.on.is_some()
    }

    /// Whether they get a server of their own.
    pub fn needs_program(&self) -> bool {
        self.on.is_none()
    }
}

/// What the test command runs: all that these need are packages of the system.
const SHORT: [&str; 2] = ["activerecord", "php-pdo"];

/// How long one may take, without what it fetches.
const LIMIT: Duration = Duration::from_secs(300);

/// Who the applications are on our server, and what they say to prove it.
const ACCOUNT: (&str, &str) = ("client", "a client's word");

/// A server that applications are run on.
struct Place {
    port: u16,
    user: String,
    password: String,
}

/// What became of an application.
struct Outcome {
    client: String,
    passed: usize,
    failed: Vec<String>,
    /// Why it did not come to its end.
    ended: Option<String>,
    took: Duration,
}

/// Runs them on the server named, or on one of their own.
pub fn run(program: Option<&Program>, settings: &Settings) -> Result<()> {
    let clients = wanted(&settings.only)?;
    match (settings.on, program) {
        (Some(port), _) => {
            let (user, password) = (settings.user.clone(), settings.password.clone());
            run_on(&Place { port, user, password }, &clients)
        }
        (None, Some(program)) => on_our_own(program, &clients),
        (None, None) => bail!("no server to run them on"),
    }
}

/// A few of them.
pub fn short(program: &Program) -> Result<()> {
    on_our_own(program, &wanted(&SHORT.map(str::to_owned))?)
}

fn on_our_own(program: &Program, clients: &[PathBuf]) -> Result<()> {
    Scratch::with("applications", |place| {
        let server = ServerProcess::start(program, place, &[])?;
        let (user, password) = ACCOUNT;
        let quoted = password.replace('\'', "''");
        server
            .feed("", &format!("CREATE USER {user} IDENTIFIED BY '{quoted}'; GRANT ALL ON *.* TO {user};"))?;
        let on = Place { port: server.port, user: user.to_owned(), password: password.to_owned() };
        run_on(&on, clients)?;
        server.stop().map(drop)
    })
}

/// The folders of the applications, by their names; all of them when none is named.
fn wanted(names: &[String]) -> Result<Vec<PathBuf>> {
    let folder = root().join("testing/campaigns/clients");
    let entries = std::fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut known = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.join("run.sh").exists() {
            known.push(path);
        }
    }
    known.sort();
    for name in names {
        let has = known.iter().any(|path| name_of(path) == *name);
        ensure!(has, "no application {name}; there are {}", names_of(&known).join(", "));
    }
    known.retain(|path| names.is_empty() || names.contains(&name_of(path)));
    Ok(known)
}

fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn names_of(folders: &[PathBuf]) -> Vec<String> {
    folders.iter().map(|folder| name_of(folder)).collect()
}

fn run_on(place: &Place, clients: &[PathBuf]) -> Result<()> {
    println!("{:<24} {:>6} {:>6} {:>8}", "client", "ok", "failed", "seconds");
    let mut bad = Vec::new();
    for folder in clients {
        let outcome = application(place, folder);
        println!("{}", line(&outcome));
        if !outcome.failed.is_empty() || outcome.ended.is_some() {
            bad.push(outcome.client);
        }
    }
    ensure!(bad.is_empty(), "{} of {} clients failed: {}", bad.len(), clients.len(), bad.join(", "));
    Ok(())
}

fn line(outcome: &Outcome) -> String {
    let Outcome { client, passed, failed, ended, took } = outcome;
    let mut text = format!("{client:<24} {passed:>6} {:>6} {:>8.1}", failed.len(), took.as_secs_f64());
    for why in failed.iter().chain(ended) {
        let _ = write!(text, "\n    {why}");
    }
    text
}

/// Fetches what an application needs, gives it an empty database, and runs it.
fn application(place: &Place, folder: &Path) -> Outcome {
    let client = name_of(folder);
    let begin = Instant::now();
    let told = set_up(folder).and_then(|directory| {
        let database = format!("client_{}", client.replace('-', "_"));
        let mut connection = connect(place)?;
        connection.query_drop(format!("DROP DATABASE IF EXISTS {database}"))?;
        connection.query_drop(format!("CREATE DATABASE {database} DEFAULT CHARACTER SET utf8mb4"))?;
        let told = checks_of(place, &directory, &database)?;
        connection.query_drop(format!("DROP DATABASE {database}"))?;
        Ok(told)
    });
    let (lines, ended) = told.unwrap_or_else(|error| (Vec::new(), Some(format!("{error:#}"))));
    let passed = lines.iter().filter(|line| line.starts_with("ok ")).count();
    let failed: Vec<String> = lines.into_iter().filter(|line| line.starts_with("FAIL ")).collect();
    let ended = ended.or_else(|| (passed + failed.len() == 0).then(|| "it checked nothing".to_owned()));
    Outcome { client, passed, failed, ended, took: begin.elapsed() }
}

fn connect(place: &Place) -> Result<Conn> {
    let options = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(place.port)
        .user(Some(&place.user))
        .pass(Some(&place.password))
        .prefer_socket(false);
    Conn::new(options).with_context(|| format!("cannot connect to port {} as {}", place.port, place.user))
}

/// The lines an application said, and why it ended, if not well.
fn checks_of(place: &Place, directory: &Path, database: &str) -> Result<(Vec<String>, Option<String>)> {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", &LIMIT.as_secs().to_string(), "sh", "run.sh"]).current_dir(directory);
    command.env("CLIENT_HOST", "127.0.0.1").env("CLIENT_PORT", place.port.to_string());
    command.env("CLIENT_USER", &place.user).env("CLIENT_PASSWORD", &place.password);
    command.env("CLIENT_DATABASE", database);
    let output = command.output().context("cannot run timeout(1)")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<String> = said.lines().map(str::to_owned).collect();
    let explained = lines.iter().any(|line| line.starts_with("FAIL "));
    let ended = match output.status.code() {
        Some(0) => None,
        Some(1) if explained => None,
        Some(124) => Some(format!("not done after {} s", LIMIT.as_secs())),
        _ => {
            let errors = String::from_utf8_lossy(&output.stderr);
            let last: Vec<&str> = errors.lines().rev().take(12).collect();
            let last = last.into_iter().rev().collect::<Vec<_>>().join("\n    ");
            Some(format!("{}, and said at last\n    {last}", output.status))
        }
    };
    Ok((lines, ended))
}

/// The directory an application is run in, with what it needs. What was fetched once stays until its folder
/// changes.
fn set_up(folder: &Path) -> Result<PathBuf> {
    packages_are_there(folder)?;
    let directory = target_directory().join("clients").join(name_of(folder));
    let stamp = directory.join(".set-up");
    let contents = contents(folder)?;
    if std::fs::read(&stamp).is_ok_and(|before| before == contents) {
        return Ok(directory);
    }
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    copy(folder, &directory)?;
    captured(Command::new("sh").arg("setup.sh").current_dir(&directory)).context("setup.sh")?;
    std::fs::write(&stamp, contents)?;
    Ok(directory)
}

/// The files below a folder, in the order of their names.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => found.extend(files(&path)?),
            false => found.push(path),
        }
    }
    found.sort();
    Ok(found)
}

/// Names and bytes of all of them: they are small, and nothing else says whether one changed.
fn contents(folder: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for path in files(folder)? {
        bytes.extend(path.strip_prefix(folder)?.to_string_lossy().as_bytes());
        bytes.push(0);
        bytes.extend(std::fs::read(&path)?);
        bytes.push(0);
    }
    Ok(bytes)
}

fn copy(folder: &Path, directory: &Path) -> Result<()> {
    for path in files(folder)? {
        let to = directory.join(path.strip_prefix(folder)?);
        std::fs::create_dir_all(to.parent().unwrap_or(directory))?;
        std::fs::copy(&path, &to)?;
    }
    Ok(())
}

/// Installs the packages of the system that an application names and that are missing.
fn packages_are_there(folder: &Path) -> Result<()> {
    let Ok(text) = std::fs::read_to_string(folder.join("packages")) else { return Ok(()) };
    let mut missing = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (package, command) = line.split_once(": ").with_context(|| format!("packages: {line:?}"))?;
        let there = Command::new("sh").args(["-c", command]).output().is_ok_and(|it| it.status.success());
        if !there {
            missing.push(package);
        }
    }
    system_packages::install(&missing)
}
