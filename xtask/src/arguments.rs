//! The command line: what each command is called, and what can be said to it.

use crate::steps::Steps;
use anyhow::Result;
use campaigns::clients::applications;
use campaigns::{differential, extension_soak, fuzz, list_append, round_trip, shutdown_cycles};
use campaigns::{sqllogictest, suites, torture, tpcc};
use clap::{Args, Parser, Subcommand};
use lab::capped_disk::{self, volume};
use lab::release_build::Profile;
use lab::server_process::{Kind, Program};
use lab::{bench, doublewrite, extension, io_capacity, ladder, latency, read_ahead, restart, tuning};
use lab::{volumes, waves};
use std::path::PathBuf;

/// The project's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask")]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Everything: format, lints, tests, documentation, end to end. What CI runs.
    Test {
        /// Without the end-to-end part.
        #[arg(long)]
        quick: bool,
    },
    /// The end-to-end part alone: sysbench, clients, a few kill cycles, import into MariaDB.
    E2e(Target),
    #[command(flatten)]
    Campaign(Campaign),
    /// Recovers thousands of states that crashes may leave on a simulated disk, and lets I/O calls fail.
    Crash(torture::CrashArguments),
    /// Builds every fuzz target and runs it for a while.
    Fuzz(fuzz::FuzzArguments),
    /// MariaDB's test suite, statement by statement, on this server, running, beside a running MariaDB and
    /// MySQL: a table and a list of differences.
    Suites(suites::Arguments),
    /// The corpus of sqllogictest on this server, running, beside a running MySQL and others: a table of
    /// answers and of times, and a list of differences.
    #[command(name = "sqllogictest")]
    SqlLogicTest(sqllogictest::Arguments),
    /// Random schemas, data, queries and changes on this server, running: beside a running MySQL, and without
    /// one against itself.
    Differential(differential::Arguments),
    /// Makes the weight tables of the Unicode collations from their sources, or checks them.
    CollationWeights(lab::collation_weights::Arguments),
    /// The unit tests of what is `unsafe`, interpreted by Miri (needs a nightly compiler).
    Miri,
    /// What thousands of tables cost: making them, a start after a stop and after `kill -9`, memory,
    /// descriptors.
    Tables {
        #[command(flatten)]
        target: Target,
        /// How many.
        #[arg(long, default_value_t = 10_000)]
        tables: u32,
    },
    /// Comparisons on a disk with limits (root).
    Experiment {
        #[command(subcommand)]
        experiment: Experiment,
    },
    /// The process behind a disk with a shared cap; started by the experiments themselves.
    #[command(name = volume::COMMAND, hide = true)]
    ServeVolume(volume::ServeArguments),
    /// Figures: the criterion benchmarks, sysbench beside running stock servers, tables and charts of
    /// recorded runs.
    Bench {
        #[command(subcommand)]
        benchmark: Benchmark,
    },
}

/// What is done to a server, and must not cost a row.
#[derive(Subcommand)]
pub enum Campaign {
    /// The command-line clients: a script, a dump and its restore, restarts. With --all an application for
    /// each client library too; --on runs these on another server: are they right there?
    Clients {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        settings: applications::Settings,
    },
    /// All sysbench scripts with content checks.
    Sysbench {
        #[command(flatten)]
        target: Target,
        /// Only this script.
        #[arg(long)]
        only: Option<String>,
    },
    /// Loads the server, kills it with SIGKILL, restarts it and compares, many times.
    CrashKill {
        #[command(flatten)]
        target: Target,
        /// How many kills.
        #[arg(long, default_value_t = 100)]
        cycles: u32,
        /// Where the random numbers start; printed by every run.
        #[arg(long)]
        seed: Option<u64>,
    },
    /// Full and failing disks, damaged files, newer versions, clients that talk nonsense (root).
    BadInput {
        #[command(flatten)]
        target: Target,
        /// Only this check.
        #[arg(long)]
        only: Option<String>,
        #[arg(long)]
        seed: Option<u64>,
    },
    /// Shuts the file system under the server down under load, again and again, as a power cut does (root).
    Shutdown {
        #[command(flatten)]
        target: Target,
        #[arg(long, default_value_t = 20)]
        cycles: u32,
        #[arg(long, value_enum, default_value_t = shutdown_cycles::Mode::Both)]
        mode: shutdown_cycles::Mode,
        #[arg(long)]
        seed: Option<u64>,
    },
    /// All sysbench scripts over four tables much larger than the pool; memory against what the settings
    /// promise.
    Memory {
        #[command(flatten)]
        target: Target,
        /// Rows per table.
        #[arg(long, default_value_t = 1_000_000)]
        rows: u64,
        /// Buffer pool in MiB.
        #[arg(long, default_value_t = 64)]
        pool: u64,
        /// Seconds per script.
        #[arg(long, default_value_t = 20)]
        time: u32,
    },
    /// Writes for a while with a redo log of 64 MiB, whose capacity must never be exceeded.
    RedoCapacity {
        #[command(flatten)]
        target: Target,
        #[arg(long, default_value_t = 10.0)]
        minutes: f64,
        #[arg(long, default_value_t = 32)]
        threads: u32,
    },
    /// The dashboard in a browser without a window, under load and with a blocked session.
    Dashboard {
        #[command(flatten)]
        target: Target,
        /// Where the pictures go; without it they are only checked.
        #[arg(long)]
        pictures: Option<PathBuf>,
    },
    /// The stock mysqld_exporter with all its collectors.
    Exporter(Target),
    /// A stock Prometheus reads a server under load, by its own endpoint and by mysqld_exporter: every scrape
    /// is taken, every expression of the Grafana dashboard has an answer, and its log has no complaint.
    Prometheus(Target),
    /// Clients, a sysbench script and kill cycles without io_uring.
    Epoll(Target),
    /// Golden scripts of interleaved sessions: anomalies per isolation level, row and gap locks, deadlocks.
    Isolation(Target),
    /// Histories of concurrent transactions at each isolation level, checked for the anomalies that it
    /// forbids; with kills.
    ListAppend {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        settings: list_append::Settings,
    },
    /// TPC-C: five transactions in the standard's mix, twelve consistency conditions, again after `kill -9`;
    /// stock servers beside.
    Tpcc {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        settings: tpcc::Settings,
    },
    /// Carries tables to a stock MariaDB and back by export and import, compares row by row, and runs
    /// innochecksum.
    ImportCheck(Target),
    /// Dumps databases and loads them: from MariaDB to us, from us to MySQL, and back. Contents and
    /// definitions must be equal.
    ///
    /// A MariaDB and our server are started for it. Without --mysql our server stands in for MySQL. A whole
    /// run, with MySQL on port 3307 and an account that may make databases:
    ///
    ///   cargo xtask round-trip --mysql 3307 --user me --password secret
    ///   --mysqldump /opt/mysql/bin/mysqldump --mysql-client /opt/mysql/bin/mysql
    ///
    /// MySQL's programs must be named: what Debian calls mysqldump is MariaDB's. The database at MySQL is
    /// called untorn_round_trip and is dropped at the end. Prints a table of steps and the differences of
    /// dialect that it met; fails if anything else differs.
    RoundTrip {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        arguments: round_trip::Arguments,
    },
    /// A soak of the buffer pool extension: switched, moved, resized, its file damaged and deleted, `kill
    /// -9`; contents checked.
    BpeSoak {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        settings: extension_soak::Settings,
    },
}

/// What is measured on a disk with limits.
#[derive(Subcommand)]
pub enum Experiment {
    /// What writing pages twice costs: doublewrite, atomic writes of the file system, no protection; stock
    /// servers beside.
    Doublewrite(Measured<doublewrite::Setup>),
    /// Does the cap of the slow disk hold, and what does it cost: direct reads and writes against requests
    /// and bytes per second.
    Disk(capped_disk::CheckArguments),
    /// What the buffer pool extension gives: reads, writes and both with it off and on; a table and a chart.
    Bpe(Measured<extension::CompareSettings>),
    /// What it costs where it cannot help.
    BpeCost(Measured<extension::CostSettings>),
    /// How long `SELECT 1` takes beside long statements; stock servers beside.
    Latency(Measured<latency::Setup>),
    /// Whether a load runs evenly while pages must be written all the time; stock servers beside.
    Waves(Measured<waves::Setup>),
    /// What a restart costs: the rate after a clean stop with the buffer pool's dump loaded and without, and
    /// recovery after `kill -9`; stock servers beside.
    Restart(Measured<restart::Setup>),
    /// What tuning gains: the defaults beside the best of a sweep over redo log, io_capacity, threads and
    /// buffer pool, on four kinds of machine; stock servers beside.
    Tuning(Measured<tuning::Setup>),
    /// Whether `innodb_io_capacity` and `_max` matter: eight settings beside the defaults; stock servers
    /// beside.
    IoCapacity(Measured<io_capacity::Setup>),
    /// What a transaction costs the device: page sizes by redo log sizes by doublewrite; stock servers
    /// beside.
    Ladder(Measured<ladder::Setup>),
    /// gp2 with its bucket of credits, io1, ESSD and RAID 0, simulated; stock servers beside.
    Volumes(Measured<volumes::Setup>),
    /// Whether read-ahead pays: cold scans and a load on few areas, with it on and off.
    ReadAhead(Measured<read_ahead::Setup>),
    /// How soon the server is warm after `kill -9`, with the extension kept and without.
    BpeRamp(Measured<extension::Settings>),
}

/// What an experiment is made of, and the server.
#[derive(Args)]
pub struct Measured<S: Args> {
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub setup: S,
}

/// What is measured, or made from a record.
#[derive(Subcommand)]
pub enum Benchmark {
    /// The criterion benchmarks of every crate.
    Criterion,
    /// sysbench on this server and on running stock servers, in turn: a table, a record, the history, a
    /// chart.
    Compare(bench::Arguments),
    /// Draws the chart of a record.
    Chart {
        /// A file of docs/benchmarks/runs.
        record: PathBuf,
        /// The SVG file; the one in the README by default.
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Prints the table of a record as Markdown.
    Table {
        /// A file of docs/benchmarks/runs.
        record: PathBuf,
    },
}

/// The server a command is for.
#[derive(Args, Clone)]
pub struct Target {
    /// Which server to test; `mariadb` tests the harness itself.
    #[arg(long, value_enum, default_value_t = Kind::Untorn)]
    server: Kind,
    /// Use this server program as it is instead of building one.
    #[arg(long)]
    program: Option<PathBuf>,
}

impl Target {
    /// The program, built when it is ours and none is given.
    pub fn program(&self, steps: &mut Steps) -> Result<Program> {
        match (&self.program, self.server) {
            (Some(path), kind) => Ok(Program::new(kind, path.clone())),
            (None, Kind::MariaDb) => Program::mariadb(),
            (None, _) => steps.build_server(Profile::Release),
        }
    }
}
