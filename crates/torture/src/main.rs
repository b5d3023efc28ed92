//! `untorn-torture`: the crash campaign. `cargo xtask crash` builds and runs it.

use clap::{Parser, Subcommand};
use disk::{Fault, FaultKind};
use parking_lot::Mutex;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use untorn_torture::coverage::Coverage;
use untorn_torture::explore::{Effort, Explorer, Failure, parse};
use untorn_torture::faults::{KINDS, Play, SCENES};
use untorn_torture::history::{Plan, record};

/// Breaks the engine on purpose and checks what is left.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs histories and tries the states that crashes leave.
    States {
        /// How many states.
        #[arg(long, default_value_t = 40_000)]
        states: u64,
        /// Where the seeds of the histories begin.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Threads.
        #[arg(long)]
        threads: Option<usize>,
        /// States per history.
        #[arg(long, default_value_t = 2_000)]
        per_history: u64,
    },
    /// Lets every I/O call of a scene fail once, in every way.
    Faults {
        /// Only every so many-th call (1: all).
        #[arg(long, default_value_t = 1)]
        stride: u64,
        /// Where the seeds of the scenes begin.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How many seeds.
        #[arg(long, default_value_t = 1)]
        seeds: u64,
        /// Threads.
        #[arg(long)]
        threads: Option<usize>,
    },
    /// Tries one state again: `history/moment/crash`, as a failure printed it.
    Replay {
        /// The state.
        state: String,
    },
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::States { states, seed, threads, per_history } => {
            explore_states(states, seed, threads.unwrap_or_else(cores), per_history)
        }
        Command::Faults { stride, seed, seeds, threads } => {
            fail_calls(stride.max(1), seed, seeds, threads.unwrap_or_else(cores))
        }
        Command::Replay { state } => replay(&state),
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[derive(Default)]
struct Totals {
    coverage: Coverage,
    failures: Vec<Failure>,
}

fn explore_states(states: u64, seed: u64, threads: usize, per_history: u64) -> ExitCode {
    let begin = Instant::now();
    let effort = if states > 200_000 { Effort::LONG } else { Effort::QUICK };
    println!("crash states: {states} from seed {seed}, {threads} threads, {effort:?}");
    let (next, left) = (AtomicU64::new(seed), Mutex::new(states));
    let totals = Mutex::new(Totals::default());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let share = {
                        let mut left = left.lock();
                        let share = per_history.min(*left);
                        *left -= share;
                        share
                    };
                    if share == 0 || !totals.lock().failures.is_empty() {
                        return;
                    }
                    let unused = one_history(next.fetch_add(1, Ordering::Relaxed), effort, share, &totals);
                    *left.lock() += unused;
                }
            });
        }
    });
    let totals = totals.into_inner();
    let took = begin.elapsed().as_secs_f64();
    let tried = totals.coverage.count("states");
    println!("{}", totals.coverage);
    println!("{tried} states in {took:.1} s: {:.0} states/s", tried as f64 / took);
    report(&totals.failures)
}

/// Runs and explores one history; returns the states it did not need.
fn one_history(seed: u64, effort: Effort, states: u64, totals: &Mutex<Totals>) -> u64 {
    let plan = Plan::new(seed);
    let history = match untorn_torture::explore::catch(|| record(&plan)) {
        Ok(history) => history,
        Err(panic) => {
            println!("history {seed}: {panic}");
            let what = untorn_torture::check::Wrong::Silent(panic);
            totals.lock().failures.push(Failure { replay: format!("{seed}/run"), what });
            return 0;
        }
    };
    let mut explorer = Explorer::new(&plan, &history, effort, states, 3);
    if let Some(failure) = &history.failure {
        let what = untorn_torture::check::Wrong::Silent(failure.clone());
        explorer.failures.push(Failure { replay: format!("{seed}/run"), what });
    }
    explorer.coverage.add("histories", 1);
    explorer.coverage.add("I/O calls recorded", history.calls);
    for (name, value) in &history.figures {
        let what = match *name {
            "Innodb_deadlocks" => "deadlocks in histories",
            "Innodb_row_lock_waits" => "row lock waits in histories",
            "Untorn_checkpoints" => "checkpoints in histories",
            _ => continue,
        };
        explorer.coverage.add(what, *value);
    }
    explorer.run();
    let tried = explorer.coverage.count("states");
    let mut totals = totals.lock();
    totals.coverage.merge(&explorer.coverage);
    totals.failures.extend(explorer.failures);
    states.saturating_sub(tried)
}

fn fail_calls(stride: u64, seed: u64, seeds: u64, threads: usize) -> ExitCode {
    let begin = Instant::now();
    println!("failing calls: seeds {seed}..{}, every {stride}th call, {threads} threads", seed + seeds);
    let mut work = Vec::new();
    let mut totals = Totals::default();
    for scene in (seed..seed + seeds).flat_map(|seed| SCENES.map(|scene| (scene, seed))) {
        match Play::new(scene.0, scene.1) {
            Ok(play) => {
                println!("{:?} with seed {}: {} calls", scene.0, scene.1, play.calls);
                let play = Arc::new(play);
                let calls = (scene.1 % stride..play.calls).step_by(stride as usize);
                work.extend(calls.map(|call| (play.clone(), call)));
            }
            Err(failure) => totals.failures.push(failure),
        }
    }
    let (work, totals) = (Mutex::new(work), Mutex::new(totals));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let next = work.lock().pop();
                    let Some((play, call)) = next else { return };
                    for kind in KINDS {
                        let mut coverage = Coverage::default();
                        let outcome = play.try_fault(Fault { call, kind }, &mut coverage);
                        let mut totals = totals.lock();
                        totals.coverage.merge(&coverage);
                        totals.failures.extend(outcome.err());
                    }
                }
            });
        }
    });
    let totals = totals.into_inner();
    println!("{}", totals.coverage);
    println!("in {:.1} s, {} failures", begin.elapsed().as_secs_f64(), totals.failures.len());
    report(&totals.failures)
}

fn report(failures: &[Failure]) -> ExitCode {
    for failure in failures {
        println!("FAILED {}\n       {:?}", failure.replay, failure.what);
        println!("       again: cargo xtask crash --replay '{}'", failure.replay);
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn replay(state: &str) -> ExitCode {
    if let Some(code) = replay_fault(state) {
        return code;
    }
    let first = state.split('+').next().unwrap_or(state);
    let mut parts = first.splitn(3, '/');
    let numbers = (parts.next().and_then(|n| n.parse().ok()), parts.next().and_then(|n| n.parse().ok()));
    let ((Some(seed), Some(point)), Some(crash)) = (numbers, parts.next().and_then(parse)) else {
        println!("'{state}' does not name a state");
        return ExitCode::FAILURE;
    };
    let plan = Plan::new(seed);
    let history = record(&plan);
    println!(
        "history {seed}: {} moments, {} calls, digest {:016x}",
        history.points.len(),
        history.calls,
        history.digest
    );
    let mut explorer = Explorer::new(&plan, &history, Effort::LONG, u64::MAX, 10);
    explorer.try_one(point, crash);
    println!("{}", explorer.coverage);
    report(&explorer.failures)
}

/// `seed/scene/call:kind`, as a failure of [`fail_calls`] printed it.
fn replay_fault(state: &str) -> Option<ExitCode> {
    let mut parts = state.splitn(3, '/');
    let seed = parts.next()?.parse().ok()?;
    let name = parts.next()?;
    let scene = SCENES.into_iter().find(|scene| format!("{scene:?}") == name)?;
    let (call, kind) = parts.next()?.split_once(':')?;
    let kind = KINDS.into_iter().find(|known: &FaultKind| format!("{known:?}") == kind)?;
    let fault = Fault { call: call.parse().ok()?, kind };
    let outcome = Play::new(scene, seed).and_then(|play| play.try_fault(fault, &mut Coverage::default()));
    Some(report(&outcome.err().into_iter().collect::<Vec<_>>()))
}
