//! A run of the benchmark: ours on a fresh data directory beside running peers. Who runs when is in
//! `rounds.rs`; what is seen becomes a record.

use super::provenance::{Machine, commit, now};
use super::record::{FORMAT, Record, Server};
use super::rounds::samples;
use super::server_under_test::{OURS, Peer, ServerUnderTest};
use super::workload::Load;
use super::{draw, history, table};
use crate::command::{captured, root};
use crate::scratch::Scratch;
use crate::server_process::{Program, ServerProcess};
use crate::sysbench::DATABASE;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How ours is started; peers should be given as much.
const SETTINGS: [&str; 2] = ["--innodb-buffer-pool-size=1G", "--innodb-redo-log-capacity=1G"];

/// What is compared, and how.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// A running MySQL or MariaDB of this machine; with its process id, processor time and written bytes are
    /// measured too.
    #[arg(long, value_name = "NAME:PORT[:PID]")]
    peer: Vec<Peer>,
    /// User of the peers.
    #[arg(long, default_value = "root")]
    user: String,
    /// Password of the peers.
    #[arg(long, default_value = "")]
    password: String,
    /// Database of the peers, whose tables sbtest1, sbtest2 … are dropped and loaded again.
    #[arg(long, default_value = DATABASE)]
    database: String,
    #[command(flatten)]
    load: Load,
    /// Use this server program as it is instead of building one; the record is marked as not of a commit.
    #[arg(long, value_name = "PATH")]
    pub server_binary: Option<PathBuf>,
    /// Where the record goes (runs/), its chart, and a line for each script (history.csv); docs/benchmarks by
    /// default.
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
}

/// A comparison that has not been measured yet.
pub struct Comparison<'a> {
    arguments: &'a Arguments,
    record: Record,
    /// Where the record goes.
    path: PathBuf,
    history: PathBuf,
}

impl<'a> Comparison<'a> {
    /// Looks at the sources and the machine. What would waste a run is refused here, before anything is
    /// built.
    pub fn new(arguments: &'a Arguments) -> Result<Comparison<'a>> {
        let names: Vec<&str> = arguments.peer.iter().map(|peer| peer.name.as_str()).collect();
        ensure!(distinct(&names), "two peers have the same name: {}", names.join(", "));
        let scripts = &arguments.load.scripts;
        ensure!(distinct(scripts), "a script is named twice: {}", scripts.join(", "));
        let record = unmeasured(arguments)?;
        let out = arguments.out.clone().unwrap_or_else(|| root().join("docs/benchmarks"));
        let runs = out.join("runs");
        std::fs::create_dir_all(&runs).with_context(|| runs.display().to_string())?;
        let path = runs.join(record.file_name());
        ensure!(!path.exists(), "{} exists; a record is never overwritten", path.display());
        Ok(Comparison { arguments, record, path, history: out.join("history.csv") })
    }

    /// Measures, prints the table, and writes the record, the history and the chart.
    pub fn run(mut self, program: &Program) -> Result<()> {
        Scratch::with("bench", |place| self.measure(program, place))?;
        self.record.write(&self.path)?;
        println!("\n{}\n{}", table::markdown(&self.record), self.path.display());
        history::append(&self.history, &self.record)?;
        draw(&self.record, &self.path.with_extension("svg"))
    }

    /// Starts ours on a fresh data directory and measures all servers.
    fn measure(&mut self, program: &Program, place: &Path) -> Result<()> {
        let server = ServerProcess::start(program, place, &SETTINGS)?;
        let ours = Peer { name: OURS.to_owned(), port: server.port, process: Some(server.id()) };
        let mut servers = vec![ServerUnderTest::new(&ours, "root", "", DATABASE)?];
        let Arguments { user, password, database, .. } = self.arguments;
        for peer in &self.arguments.peer {
            servers.push(ServerUnderTest::new(peer, user, password, database)?);
        }
        for server in &mut servers {
            let described = server.describe()?;
            print_server(&described, server.process);
            self.record.servers.push(described);
        }
        self.record.samples = samples(&mut servers, &self.record.load)?;
        let ours = servers.first_mut().context("no server")?;
        let protection = ours.status("Untorn_page_protection")?;
        self.record.page_protection = protection.context("no status of the page protection")?;
        drop(servers);
        server.stop().map(drop)
    }
}

fn distinct<T: Ord>(values: &[T]) -> bool {
    values.iter().collect::<BTreeSet<_>>().len() == values.len()
}

/// The record of a run that begins now.
fn unmeasured(arguments: &Arguments) -> Result<Record> {
    let (commit, changed) = commit()?;
    let sysbench = captured(Command::new("sysbench").arg("--version"))?;
    Ok(Record {
        format: FORMAT,
        began: now()?,
        commit,
        dirty: changed || arguments.server_binary.is_some(),
        machine: Machine::here()?,
        page_protection: String::new(),
        sysbench: sysbench.trim().trim_start_matches("sysbench ").to_owned(),
        load: arguments.load.clone(),
        servers: Vec::new(),
        samples: Vec::new(),
    })
}

fn print_server(server: &Server, process: Option<u32>) {
    let process = process.map_or_else(
        || "process unknown: no processor time, no written bytes".to_owned(),
        |process| format!("process {process} ({})", program_name(process)),
    );
    println!("{}: {}, {process}", server.name, server.version);
    let settings: Vec<String> =
        server.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    println!("    {}", settings.join(" "));
}

fn program_name(process: u32) -> String {
    std::fs::read_to_string(format!("/proc/{process}/comm"))
        .map_or_else(|_| "not there".to_owned(), |name| name.trim().to_owned())
}
