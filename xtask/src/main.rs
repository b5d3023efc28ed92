//! The project's own commands: `cargo xtask <command>`.
//!
//! `cargo xtask test` is what CI runs and what to run before pushing: style, lints, unit and crate tests, documentation, and then the
//! release server end to end: real clients, `kill -9` under load, tables carried to a stock MariaDB. The end-to-end
//! parts can be run alone, and against a stock MariaDB (`--server mariadb`), which tests the harness itself.

mod bad_input;
mod ballast;
mod bench;
mod block_device;
mod clean_tier;
mod client_checks;
mod crash_states;
mod doublewrite_experiment;
mod file_system;
mod fuzz;
mod import;
mod isolation;
mod journal;
mod kill_cycles;
mod latency;
mod list_append;
mod many_tables;
mod memory;
mod miri;
mod packages;
mod redo_capacity;
mod scratch;
mod server_process;
mod shutdown_cycles;
mod statistics;
mod steps;
mod sysbench;
mod terminal;
mod throttle;
mod volume;

use anyhow::Result;
use bench::Benchmark;
use clap::{Parser, Subcommand};
use server_process::{Kind, Program};
use shutdown_cycles::Mode;
use std::time::Duration;
use steps::Steps;

/// The project's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything: format, lints, tests, documentation, end to end. What CI runs.
    Test {
        /// Without the end-to-end part.
        #[arg(long)]
        quick: bool,
    },
    /// The end-to-end part alone: sysbench, clients, a few kill cycles, import into MariaDB.
    E2e(Target),
    /// The command-line clients: a script, a dump and its restore, restarts.
    Clients(Target),
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
        #[arg(long, value_enum, default_value_t = Mode::Both)]
        mode: Mode,
        #[arg(long)]
        seed: Option<u64>,
    },
    /// All sysbench scripts over four tables much larger than the pool; memory against what the settings promise.
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
    /// What thousands of tables cost: making them, a start after a stop and after `kill -9`, memory, descriptors.
    Tables {
        #[command(flatten)]
        target: Target,
        /// How many.
        #[arg(long, default_value_t = 10_000)]
        tables: u32,
    },
    /// Clients, a sysbench script and kill cycles without io_uring.
    Epoll(Target),
    /// Recovers thousands of states that crashes may leave on a simulated disk, and lets I/O calls fail.
    Crash(crash_states::CrashArguments),
    /// Builds every fuzz target and runs it for a while.
    Fuzz(fuzz::FuzzArguments),
    /// The unit tests of what is `unsafe`, interpreted by Miri (needs a nightly compiler).
    Miri,
    /// Golden scripts of interleaved sessions: anomalies per isolation level, row and gap locks, deadlocks.
    Isolation(Target),
    /// Histories of concurrent transactions at each isolation level, checked for the anomalies that it forbids; with kills.
    ListAppend {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        settings: list_append::Settings,
    },
    /// Carries tables to a stock MariaDB and back by export and import, compares row by row, and runs innochecksum.
    ImportCheck(Target),
    /// Comparisons on a disk with limits (root).
    Experiment {
        #[command(subcommand)]
        experiment: Experiment,
    },
    /// A soak of the clean tier: switched, moved, resized, its file damaged and deleted, `kill -9`; contents checked.
    BpeSoak {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        settings: clean_tier::SoakSettings,
    },
    /// The process behind a disk with a shared cap; started by the experiments themselves.
    #[command(hide = true)]
    ServeVolume(volume::ServeArguments),
    /// Figures: the criterion benchmarks, sysbench beside running stock servers, tables and charts of recorded runs.
    Bench {
        #[command(subcommand)]
        benchmark: Benchmark,
    },
}

#[derive(Subcommand)]
enum Experiment {
    /// What writing pages twice costs: doublewrite, atomic writes of the file system, no protection; stock servers beside.
    Doublewrite {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        setup: doublewrite_experiment::Setup,
    },
    /// Does the cap of the slow disk hold, and what does it cost: direct reads and writes against requests and bytes per second.
    Disk(volume::CheckArguments),
    /// What the tier gives: reads, writes and both with the tier off and on; a table and a chart.
    Bpe(ExperimentArguments),
    /// What it costs where it cannot help.
    BpeCost {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        settings: clean_tier::CostSettings,
    },
    /// How long `SELECT 1` takes beside long statements; stock servers beside.
    Latency {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        setup: latency::Setup,
    },
    /// How soon the server is warm after `kill -9`, with the tier kept and without.
    BpeRamp(ExperimentArguments),
}

#[derive(clap::Args)]
struct ExperimentArguments {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    settings: clean_tier::Settings,
}

#[derive(clap::Args, Clone)]
struct Target {
    /// Which server to test; `mariadb` tests the harness itself.
    #[arg(long, value_enum, default_value_t = Kind::Untorn)]
    server: Kind,
    /// Use this server program as it is instead of building one.
    #[arg(long)]
    program: Option<std::path::PathBuf>,
}

impl Target {
    fn program(&self, steps: &mut Steps) -> Result<Program> {
        match (&self.program, self.server) {
            (Some(path), kind) => Ok(Program::new(kind, path.clone())),
            (None, Kind::MariaDb) => Program::mariadb(),
            (None, _) => steps.build_server(),
        }
    }
}

fn main() -> Result<()> {
    let mut steps = Steps::new();
    match Arguments::parse().command {
        Command::Test { quick } => {
            // Some crate tests drive the server with stock clients too.
            steps.step("packages", packages::install_missing);
            steps.sources();
            if !quick {
                steps.step("crash states", crash_states::quick);
                let short = fuzz::FuzzArguments { minutes: 0.5, target: None, seed: 0 };
                steps.step("fuzz targets", || fuzz::run(&short));
                let program = steps.build_server();
                steps.with(program, end_to_end);
            }
        }
        Command::E2e(target) => {
            let program = target.program(&mut steps);
            steps.with(program, end_to_end);
        }
        Command::Clients(target) => {
            let program = target.program(&mut steps)?;
            steps.step("clients", || client_checks::run(&program));
        }
        Command::Sysbench { target, only } => {
            let program = target.program(&mut steps)?;
            steps.step("sysbench", || sysbench::all_scripts(&program, only.as_deref()));
        }
        Command::CrashKill { target, cycles, seed } => {
            let program = target.program(&mut steps)?;
            steps.step("kill cycles", || kill_cycles::run(&program, cycles, seed));
        }
        Command::BadInput { target, only, seed } => {
            let program = target.program(&mut steps)?;
            let seed = kill_cycles::seed_or_time(seed)?;
            steps.step("bad input", || bad_input::run(&program, only.as_deref(), seed));
        }
        Command::Shutdown { target, cycles, mode, seed } => {
            let program = target.program(&mut steps)?;
            steps.step("file system shutdowns", || shutdown_cycles::run(&program, cycles, mode, seed));
        }
        Command::Memory { target, rows, pool, time } => {
            let program = target.program(&mut steps)?;
            steps.step("memory", || memory::run(&program, memory::Size { rows, pool, time }));
        }
        Command::RedoCapacity { target, minutes, threads } => {
            let program = target.program(&mut steps)?;
            let time = Duration::from_secs_f64(minutes * 60.0);
            steps.step("redo capacity", || redo_capacity::run(&program, time, threads));
        }
        Command::Epoll(target) => {
            let program = target.program(&mut steps)?;
            without_io_uring(&mut steps, &program.without_io_uring());
        }
        Command::Crash(arguments) => steps.step("crash states", || crash_states::run(&arguments)),
        Command::Fuzz(arguments) => steps.step("fuzz targets", || fuzz::run(&arguments)),
        Command::Miri => steps.step("Miri", miri::run),
        Command::Isolation(target) => {
            let program = target.program(&mut steps)?;
            steps.step("isolation", || isolation::run(&program));
        }
        Command::ListAppend { target, settings } => {
            let program = target.program(&mut steps)?;
            steps.step("list-append histories", || list_append::run(&program, &settings));
        }
        Command::Tables { target, tables } => {
            let program = target.program(&mut steps)?;
            steps.step("packages", packages::install_missing);
            steps.step("many tables", || many_tables::run(&program, tables));
        }
        Command::ImportCheck(target) => {
            let program = target.program(&mut steps)?;
            steps.step("import into MariaDB and back", || import::check(&program));
        }
        Command::Experiment { experiment: Experiment::Doublewrite { target, setup } } => {
            let program = target.program(&mut steps)?;
            steps.step("packages", packages::install_missing);
            steps.step("experiment", || doublewrite_experiment::run(&program, &setup));
        }
        Command::Experiment { experiment: Experiment::Latency { target, setup } } => {
            let program = target.program(&mut steps)?;
            steps.step("packages", packages::install_missing);
            steps.step("experiment", || latency::run(&program, &setup));
        }
        Command::Experiment { experiment: Experiment::Disk(arguments) } => {
            steps.step("packages", packages::install_missing);
            steps.step("disk with a cap", || volume::check(&arguments));
        }
        // Not a step: its output is its protocol.
        Command::ServeVolume(arguments) => return volume::serve(&arguments),
        Command::Experiment { experiment: Experiment::Bpe(arguments) } => {
            clean_tier_experiment(&mut steps, arguments, clean_tier::experiment)?;
        }
        Command::Experiment { experiment: Experiment::BpeCost { target, settings } } => {
            let program = target.program(&mut steps)?;
            steps.step("packages", packages::install_missing);
            steps.step("experiment", || clean_tier::cost(&program, &settings));
        }
        Command::Experiment { experiment: Experiment::BpeRamp(arguments) } => {
            clean_tier_experiment(&mut steps, arguments, clean_tier::ramp)?;
        }
        Command::BpeSoak { target, settings } => {
            let program = target.program(&mut steps)?;
            steps.step("soak of the clean tier", || clean_tier::soak(&program, &settings));
        }
        Command::Bench { benchmark } => bench::run(&benchmark, &mut steps)?,
    }
    steps.finish()
}

/// One of the measurements of the clean tier.
fn clean_tier_experiment(
    steps: &mut Steps,
    arguments: ExperimentArguments,
    run: fn(&Program, &clean_tier::Settings) -> Result<()>,
) -> Result<()> {
    let program = arguments.target.program(steps)?;
    steps.step("packages", packages::install_missing);
    steps.step("experiment", || run(&program, &arguments.settings));
    Ok(())
}

/// The parts that need a server.
fn end_to_end(steps: &mut Steps, program: &Program) {
    steps.step("packages", packages::install_missing);
    steps.step("clients", || client_checks::run(program));
    steps.step("sysbench", || sysbench::all_scripts(program, None));
    steps.step("memory", || memory::run(program, memory::SHORT));
    steps.step("redo capacity", || redo_capacity::run(program, Duration::from_secs(20), 16));
    steps.step("isolation", || isolation::run(program));
    steps.step("list-append histories", || list_append::run(program, &list_append::SHORT));
    steps.step("kill cycles", || kill_cycles::run(program, 10, None));
    steps.step("file system shutdowns", || shutdown_cycles::run(program, 20, Mode::Both, None));
    steps.step("bad input", || bad_input::run(program, None, kill_cycles::seed_or_time(None)?));
    steps.step("soak of the clean tier", || {
        clean_tier::soak(program, &clean_tier::SoakSettings { seconds: 8, kills: 2, seed: None })
    });
    steps.step("import into MariaDB and back", || import::check(program));
    if program.kind == Kind::Untorn {
        without_io_uring(steps, &program.without_io_uring());
    }
}

/// The same once more over epoll and threads, which take over where the kernel refuses io_uring.
fn without_io_uring(steps: &mut Steps, program: &Program) {
    steps.step("clients, without io_uring", || client_checks::run(program));
    steps.step("sysbench, without io_uring", || sysbench::one_script(program, "oltp_read_write", 16));
    steps.step("kill cycles, without io_uring", || kill_cycles::run(program, 2, None));
}
