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

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, ValueEnum};

use allocated::allocated;
use engine::Kind;
use measure::timed;
use memory_limit::MemoryLimit;
use report::{Part, Record, Run, Told, Workload};
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
    /// The most pairs that the bulk load, the removals and the reinsertion change in one transaction: all,
    /// and 1,000 with a limit of memory.
    #[arg(long)]
    transaction_pairs: Option<u64>,
    /// After this many minutes a process of an engine is killed, and its run has failed.
    #[arg(long, default_value_t = 60)]
    most_minutes: u64,
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

/// Most engines have all changes of a transaction in memory until the commit.
const TRANSACTION_PAIRS_IN_LITTLE_MEMORY: u64 = 1000;

impl Arguments {
    fn transaction_pairs(&self) -> Option<u64> {
        self.transaction_pairs.or(self.memory_mib.map(|_| TRANSACTION_PAIRS_IN_LITTLE_MEMORY))
    }
}

/// One process of one engine: tells its steps.
fn work(arguments: &Arguments, kind: Kind, phase: Phase) -> Result<()> {
    if let Some(group) = &arguments.group {
        memory_limit::join(group)?;
    }
    let cache = arguments.cache_mib << 20;
    let (keys, seed) = (arguments.keys, arguments.seed);
    let transaction_pairs = arguments.transaction_pairs.unwrap_or(u64::MAX);
    let sizes = Sizes { keys, seed, transaction_pairs };
    let directory = arguments.directory.join(kind.name());
    let name = match phase {
        Phase::Create => "create",
        Phase::Main | Phase::Ycsb => "open, empty",
        Phase::Reopen => "open after a close",
        Phase::Killed => "open before the writes",
        Phase::AfterKill => "open after a kill",
    };
    let engine = timed(name, 1, || kind.open(&directory, cache, arguments.group.is_some()))?;
    match phase {
        Phase::Create | Phase::Reopen => {}
        Phase::Main => Told::Resident(workload::run(kind, &*engine, sizes)?).tell()?,
        Phase::Ycsb => {
            let time = Duration::from_secs(arguments.seconds);
            let sizes = ycsb::Sizes { keys, seed, transaction_pairs, time };
            Told::Resident(ycsb::run(&*engine, sizes)?).tell()?;
        }
        Phase::Killed => workload::before_kill(&*engine, sizes)?,
        Phase::AfterKill => workload::after_kill(&*engine, sizes)?,
    }
    if phase == Phase::Killed {
        Told::Done.tell()?;
        loop {
            // Until the kill.
            std::thread::park();
        }
    }
    timed(&format!("close ({phase:?})"), 1, || engine.close())?;
    Told::Done.tell()
}

/// Gathers what a process tells until it is done (true), or has ended before that.
fn gather(lines: &Receiver<String>, time: Duration, part: &mut Part) -> Result<bool> {
    let end = Instant::now() + time;
    loop {
        let line = match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => bail!("not done after {} minutes", time.as_secs() / 60),
            Err(RecvTimeoutError::Disconnected) => return Ok(false),
        };
        match serde_json::from_str(&line)? {
            Told::Step(step) => part.steps.push(step),
            Told::Resident(bytes) => part.resident_bytes = Some(bytes),
            Told::Done => return Ok(true),
            Told::Failed(why) => bail!(why),
        }
    }
}

/// Starts a process for a phase and gathers what it tells.
fn start(arguments: &Arguments, limit: Option<&MemoryLimit>, run: &mut Run, phase: Phase) -> Result<()> {
    let phase_name = phase.to_possible_value().context("a phase without name")?;
    let mut command = Command::new(std::env::current_exe()?);
    if let Some(limit) = limit {
        command.arg("--group").arg(limit.processes());
        // With an area for each thread, glibc keeps in each what a cache has freed.
        command.env("MALLOC_ARENA_MAX", "1");
    }
    if let Some(pairs) = arguments.transaction_pairs() {
        command.args(["--transaction-pairs", &pairs.to_string()]);
    }
    let mut process = command
        .arg("--directory")
        .arg(&arguments.directory)
        .args(["--keys", &arguments.keys.to_string(), "--seed", &arguments.seed.to_string()])
        .args(["--cache-mib", &arguments.cache_mib.to_string()])
        .args(["--seconds", &arguments.seconds.to_string()])
        .args(["--engines", run.engine.name(), "--phase", phase_name.get_name()])
        .stdout(Stdio::piped())
        .spawn()?;
    let (teller, lines) = std::sync::mpsc::channel();
    let output = BufReader::new(process.stdout.take().context("no output")?);
    // Ends with the process.
    std::thread::spawn(move || {
        output.lines().map_while(Result::ok).try_for_each(|line| teller.send(line).map_err(drop))
    });
    let time = Duration::from_secs(60 * arguments.most_minutes);
    let gathered = gather(&lines, time, &mut run.part);
    if gathered.is_err() || phase == Phase::Killed {
        process.kill()?;
    }
    let status = process.wait()?;
    let done = gathered.and_then(|done| {
        ensure!(done && (phase == Phase::Killed || status.success()), "{status}");
        Ok(())
    });
    done.with_context(|| {
        let last = run.part.steps.last().map_or("the start", |step| &step.name);
        format!("after \"{last}\"")
    })
}

fn run(arguments: &Arguments, limit: Option<&MemoryLimit>, kind: Kind, round: u32) -> Result<Run> {
    eprintln!("{}, round {}", kind.name(), round + 1);
    let directory = arguments.directory.join(kind.name());
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    let part = Part::default();
    let mut run = Run { engine: kind, round, part, empty_bytes: None, disk_bytes: None, failed: None };
    if let Err(error) = phases(arguments, limit, &directory, &mut run) {
        let failed = format!("{error:#}");
        eprintln!("  failed {failed}");
        run.failed = Some(failed);
    }
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    Ok(run)
}

/// The processes of a run, one after the other.
fn phases(arguments: &Arguments, limit: Option<&MemoryLimit>, directory: &Path, run: &mut Run) -> Result<()> {
    let (main, after): (Phase, &[Phase]) = match arguments.workload {
        Workload::Steps => (Phase::Main, &[Phase::Reopen, Phase::Killed, Phase::AfterKill]),
        Workload::Ycsb => (Phase::Ycsb, &[]),
    };
    start(arguments, limit, run, Phase::Create)?;
    run.empty_bytes = Some(allocated(directory)?);
    start(arguments, limit, run, main)?;
    run.disk_bytes = Some(allocated(directory)?);
    after.iter().try_for_each(|phase| start(arguments, limit, run, *phase))
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(phase) = arguments.phase {
        let [kind] = arguments.engines[..] else { bail!("a phase needs one engine") };
        if let Err(error) = work(&arguments, kind, phase) {
            Told::Failed(format!("{error:#}")).tell()?;
            std::process::exit(1);
        }
        return Ok(());
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
        transaction_pairs: arguments.transaction_pairs(),
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
    ensure!(record.runs.iter().all(|run| run.failed.is_none()), "not every run got through");
    Ok(())
}
