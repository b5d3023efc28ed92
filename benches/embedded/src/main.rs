//! Untorn beside other embedded stores, see README.md.
//!
//! This process only starts others and gathers what they print: each engine works in processes of its own,
//! so that memory, CPU and a kill are the engine's alone. Rounds are interleaved: every engine runs once
//! before any runs again.

mod allocated;
mod engine;
mod engines;
mod measure;
mod memory_limit;
mod pairs;
mod report;
mod workload;
mod ycsb;
mod zipf;

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, ValueEnum};

use allocated::allocated;
use engine::Kind;
use measure::timed;
use memory_limit::MemoryLimit;
use report::{Part, Record, Run, Workload};
use workload::Sizes;

#[derive(Parser)]
struct Arguments {
    /// Directory for the databases; what is in it of an earlier run is removed.
    #[arg(long)]
    directory: PathBuf,
    #[arg(long, default_value_t = 400_000)]
    keys: u64,
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Cache of the engines that have one, in MiB.
    #[arg(long, default_value_t = 512)]
    cache_mib: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, value_enum, default_value_t = Workload::Steps)]
    workload: Workload,
    /// Seconds of each of YCSB's workloads with each number of threads.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// The most memory that an engine's process may have, page cache included and no swap, in MiB (root).
    #[arg(long)]
    memory_mib: Option<u64>,
    /// Only these engines.
    #[arg(long, value_enum, value_delimiter = ',')]
    engines: Vec<Kind>,
    /// Where the record goes, as JSON.
    #[arg(long)]
    record: Option<PathBuf>,
    /// For the processes that this one starts.
    #[arg(long, value_enum, hide = true)]
    phase: Option<Phase>,
    /// The control group that they join.
    #[arg(long, hide = true)]
    group: Option<PathBuf>,
}

/// The work of one process.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Phase {
    Create,
    Main,
    Ycsb,
    Reopen,
    Killed,
    AfterKill,
}

/// One process of one engine: prints its part as one line.
fn work(arguments: &Arguments, kind: Kind, phase: Phase) -> Result<()> {
    if let Some(group) = &arguments.group {
        memory_limit::join(group)?;
    }
    let (sizes, cache) = (sizes(arguments), arguments.cache_mib << 20);
    let directory = arguments.directory.join(kind.name());
    let mut part = Part::default();
    let steps = &mut part.steps;
    let name = match phase {
        Phase::Create => "create",
        Phase::Main | Phase::Ycsb => "open, empty",
        Phase::Reopen => "open after a close",
        Phase::Killed => "open before the writes",
        Phase::AfterKill => "open after a kill",
    };
    let engine = timed(steps, name, 1, || kind.open(&directory, cache))?;
    match phase {
        Phase::Create | Phase::Reopen => {}
        Phase::Main => part.resident_bytes = Some(workload::run(kind, &*engine, sizes, steps)?),
        Phase::Ycsb => {
            let time = Duration::from_secs(arguments.seconds);
            let sizes = ycsb::Sizes { keys: sizes.keys, seed: sizes.seed, time };
            part.resident_bytes = Some(ycsb::run(&*engine, sizes, steps)?);
        }
        Phase::Killed => workload::before_kill(&*engine, sizes, steps)?,
        Phase::AfterKill => workload::after_kill(&*engine, sizes)?,
    }
    if phase == Phase::Killed {
        println!("{}", serde_json::to_string(&part)?);
        std::io::stdout().flush()?;
        loop {
            // Until the kill.
            std::thread::park();
        }
    }
    timed(&mut part.steps, &format!("close ({phase:?})"), 1, || engine.close())?;
    println!("{}", serde_json::to_string(&part)?);
    Ok(())
}

fn sizes(arguments: &Arguments) -> Sizes {
    Sizes { keys: arguments.keys, seed: arguments.seed }
}

/// Starts a process for a phase and gathers its part.
fn start(arguments: &Arguments, limit: Option<&MemoryLimit>, kind: Kind, phase: Phase) -> Result<Part> {
    let phase_name = phase.to_possible_value().context("a phase without name")?;
    let mut command = Command::new(std::env::current_exe()?);
    if let Some(limit) = limit {
        command.arg("--group").arg(limit.processes());
    }
    let mut process = command
        .arg("--directory")
        .arg(&arguments.directory)
        .args(["--keys", &arguments.keys.to_string(), "--seed", &arguments.seed.to_string()])
        .args(["--cache-mib", &arguments.cache_mib.to_string()])
        .args(["--seconds", &arguments.seconds.to_string()])
        .args(["--engines", kind.name(), "--phase", phase_name.get_name()])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(process.stdout.take().context("no output")?).read_line(&mut line)?;
    if phase == Phase::Killed {
        process.kill()?;
    }
    let status = process.wait()?;
    ensure!(phase == Phase::Killed || status.success(), "{} failed in {phase:?}", kind.name());
    serde_json::from_str(&line).with_context(|| format!("{} in {phase:?}", kind.name()))
}

fn run(arguments: &Arguments, limit: Option<&MemoryLimit>, kind: Kind, round: u32) -> Result<Run> {
    eprintln!("{}, round {}", kind.name(), round + 1);
    let directory = arguments.directory.join(kind.name());
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    let start = |phase| start(arguments, limit, kind, phase);
    let (main, after): (Phase, &[Phase]) = match arguments.workload {
        Workload::Steps => (Phase::Main, &[Phase::Reopen, Phase::Killed, Phase::AfterKill]),
        Workload::Ycsb => (Phase::Ycsb, &[]),
    };
    let mut part = start(Phase::Create)?;
    let empty_bytes = allocated(&directory)?;
    let main = start(main)?;
    let disk_bytes = allocated(&directory)?;
    part.resident_bytes = main.resident_bytes;
    part.steps.extend(main.steps);
    for phase in after {
        part.steps.extend(start(*phase)?.steps);
    }
    std::fs::remove_dir_all(&directory)?;
    Ok(Run { engine: kind, round, part, empty_bytes, disk_bytes })
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(phase) = arguments.phase {
        let [kind] = arguments.engines[..] else { bail!("a phase needs one engine") };
        return work(&arguments, kind, phase);
    }
    let all = Kind::value_variants();
    let engines = if arguments.engines.is_empty() { all } else { &arguments.engines };
    let (keys, seed) = (arguments.keys, arguments.seed);
    let limit = arguments.memory_mib.map(|mib| MemoryLimit::new(mib << 20)).transpose()?;
    let mut record = Record {
        workload: arguments.workload,
        keys,
        cache_bytes: arguments.cache_mib << 20,
        memory_bytes: arguments.memory_mib.map(|mib| mib << 20),
        seed,
        runs: Vec::new(),
    };
    for round in 0..arguments.rounds {
        for kind in engines {
            record.runs.push(run(&arguments, limit.as_ref(), *kind, round)?);
            if let Some(file) = &arguments.record {
                std::fs::write(file, serde_json::to_string_pretty(&record)?)?;
            }
        }
    }
    println!("{}", record.tables());
    Ok(())
}
