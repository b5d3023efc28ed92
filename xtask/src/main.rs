//! The project's own commands: `cargo xtask <command>`.
//!
//! `cargo xtask test` is what CI runs and what to run before pushing: style, lints, unit and crate tests,
//! documentation, and then the server, optimized, end to end: real clients, `kill -9` under load, tables
//! carried to a stock MariaDB. The end-to-end parts can be run alone, and against a stock MariaDB (`--server
//! mariadb`), which tests the harness itself.
//!
//! Only the command line and the steps of the test command (`test_command.rs`) are here. What a command does
//! is in `testing/campaigns`, or in `testing/lab` when it measures.

mod arguments;
mod steps;
mod test_command;

use anyhow::Result;
use arguments::{Arguments, Benchmark, Campaign, Command, Experiment, Target};
use campaigns::{
    bad_input, clients, dashboard, differential, exporter, extension_soak, fuzz, import, isolation,
    kill_cycles, list_append, memory, miri, prometheus, redo_capacity, round_trip, shutdown_cycles,
    sqllogictest, suites, sysbench_scripts, torture, tpcc,
};
use clap::Parser;
use lab::command::cargo;
use lab::release_build::Profile;
use lab::server_process::{Kind, Program};
use lab::{
    bench, capped_disk, collation_weights, doublewrite, extension, io_capacity, ladder, latency, many_tables,
    read_ahead, restart, system_packages, tuning, volumes, waves,
};
use std::time::Duration;
use steps::Steps;

fn main() -> Result<()> {
    let mut steps = Steps::new();
    match Arguments::parse().command {
        Command::Test { quick } => test_command::run(&mut steps, quick),
        Command::E2e(target) => {
            let program = target.program(&mut steps);
            steps.with(program, test_command::end_to_end);
        }
        Command::Campaign(campaign) => run_campaign(&mut steps, campaign)?,
        Command::Crash(arguments) => steps.step("crash states", || torture::run(&arguments)),
        Command::Fuzz(arguments) => steps.step("fuzz targets", || fuzz::run(&arguments)),
        Command::Suites(arguments) => steps.step("test suite", || suites::run(&arguments)),
        Command::SqlLogicTest(arguments) => steps.step("sqllogictest", || sqllogictest::run(&arguments)),
        Command::Differential(arguments) => steps.step("differential", || differential::run(&arguments)),
        Command::CollationWeights(arguments) => {
            steps.step("collation weights", || collation_weights::run(&arguments));
        }
        Command::Miri => steps.step("Miri", miri::run),
        Command::Tables { target, tables } => {
            let program = target.program(&mut steps)?;
            steps.step("packages", system_packages::install_missing);
            steps.step("many tables", || many_tables::run(&program, tables));
        }
        Command::Experiment { experiment } => run_experiment(&mut steps, experiment)?,
        // Not a step: its output is its protocol.
        Command::ServeVolume(arguments) => return capped_disk::volume::serve(&arguments),
        Command::Bench { benchmark } => run_benchmark(&mut steps, benchmark)?,
    }
    steps.finish()
}

fn run_campaign(steps: &mut Steps, campaign: Campaign) -> Result<()> {
    match campaign {
        Campaign::Clients { target, settings } => {
            let program = settings.needs_program().then(|| target.program(steps)).transpose()?;
            steps.step("clients", || clients::all(program.as_ref(), &settings));
        }
        Campaign::Sysbench { target, only } => {
            let program = target.program(steps)?;
            steps.step("sysbench", || sysbench_scripts::all(&program, only.as_deref()));
        }
        Campaign::CrashKill { target, cycles, seed } => {
            let program = target.program(steps)?;
            steps.step("kill cycles", || kill_cycles::run(&program, cycles, seed));
        }
        Campaign::BadInput { target, only, seed } => {
            let program = target.program(steps)?;
            steps.step("bad input", || bad_input::run(&program, only.as_deref(), seed));
        }
        Campaign::Shutdown { target, cycles, mode, seed } => {
            let program = target.program(steps)?;
            steps.step("file system shutdowns", || shutdown_cycles::run(&program, cycles, mode, seed));
        }
        Campaign::Memory { target, rows, pool, time } => {
            let program = target.program(steps)?;
            steps.step("memory", || memory::run(&program, memory::Size { rows, pool, time }));
        }
        Campaign::RedoCapacity { target, minutes, threads } => {
            let program = target.program(steps)?;
            let time = Duration::from_secs_f64(minutes * 60.0);
            steps.step("redo capacity", || redo_capacity::run(&program, time, threads));
        }
        Campaign::Dashboard { target, pictures } => {
            let program = target.program(steps)?;
            steps.step("dashboard", || dashboard::run(&program, pictures.as_deref()));
        }
        Campaign::Exporter(target) => {
            let program = target.program(steps)?;
            steps.step("mysqld_exporter", || exporter::run(&program));
        }
        Campaign::Prometheus(target) => {
            let program = target.program(steps)?;
            steps.step("Prometheus", || prometheus::run(&program));
        }
        Campaign::Epoll(target) => {
            let program = target.program(steps)?;
            test_command::without_io_uring(steps, &program.without_io_uring());
        }
        Campaign::Isolation(target) => {
            let program = target.program(steps)?;
            steps.step("isolation", || isolation::run(&program));
        }
        Campaign::ListAppend { target, settings } => {
            let program = target.program(steps)?;
            steps.step("list-append histories", || list_append::run(&program, &settings));
        }
        Campaign::Tpcc { target, settings } => {
            let program = target.program(steps)?;
            steps.step("TPC-C", || tpcc::run(&program, &settings));
        }
        Campaign::ImportCheck(target) => {
            let program = target.program(steps)?;
            steps.step("import into MariaDB and back", || import::check(&program));
        }
        Campaign::RoundTrip { target, arguments } => {
            let program = target.program(steps)?;
            steps.step("dumps there and back", || round_trip::run(&program, &arguments));
        }
        Campaign::BpeSoak { target, settings } => {
            let program = target.program(steps)?;
            steps.step("soak of the extension", || extension_soak::run(&program, &settings));
        }
    }
    Ok(())
}

fn run_experiment(steps: &mut Steps, experiment: Experiment) -> Result<()> {
    match experiment {
        Experiment::Doublewrite(it) => measure(steps, &it.target, |on| doublewrite::run(on, &it.setup)),
        Experiment::Disk(arguments) => {
            steps.step("packages", system_packages::install_missing);
            steps.step("disk with a cap", || capped_disk::check(&arguments));
            Ok(())
        }
        Experiment::Bpe(it) => measure(steps, &it.target, |on| extension::compare(on, &it.setup)),
        Experiment::BpeCost(it) => measure(steps, &it.target, |on| extension::cost(on, &it.setup)),
        Experiment::BpeRamp(it) => measure(steps, &it.target, |on| extension::ramp(on, &it.setup)),
        Experiment::ReadAhead(it) => measure(steps, &it.target, |on| read_ahead::run(on, &it.setup)),
        Experiment::Latency(it) => measure(steps, &it.target, |on| latency::run(on, &it.setup)),
        Experiment::Waves(it) => measure(steps, &it.target, |on| waves::run(on, &it.setup)),
        Experiment::Restart(it) => measure(steps, &it.target, |on| restart::run(on, &it.setup)),
        Experiment::Tuning(it) => measure(steps, &it.target, |on| tuning::run(on, &it.setup)),
        Experiment::IoCapacity(it) => measure(steps, &it.target, |on| io_capacity::run(on, &it.setup)),
        Experiment::Ladder(it) => measure(steps, &it.target, |on| ladder::run(on, &it.setup)),
        Experiment::Volumes(it) => measure(steps, &it.target, |on| volumes::run(on, &it.setup)),
    }
}

/// One experiment on the server program.
fn measure(steps: &mut Steps, target: &Target, run: impl FnOnce(&Program) -> Result<()>) -> Result<()> {
    let program = target.program(steps)?;
    steps.step("packages", system_packages::install_missing);
    steps.step("experiment", || run(&program));
    Ok(())
}

fn run_benchmark(steps: &mut Steps, benchmark: Benchmark) -> Result<()> {
    match benchmark {
        Benchmark::Criterion => {
            steps.step("criterion benchmarks", || cargo(&["bench", "--workspace"], &[]));
        }
        Benchmark::Compare(arguments) => {
            steps.step("packages", system_packages::install_missing);
            let comparison = bench::Comparison::new(&arguments)?;
            let program = match &arguments.server_binary {
                Some(path) => Program::new(Kind::Untorn, path.clone()),
                None => steps.build_server(Profile::Release)?,
            };
            steps.step("sysbench beside the peers", || comparison.run(&program));
        }
        Benchmark::Chart { record, output } => bench::chart_of(&record, output.as_deref())?,
        Benchmark::Table { record } => bench::table_of(&record)?,
    }
    Ok(())
}
