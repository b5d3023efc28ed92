//! `untorn-torture`: the crash campaign. `cargo xtask crash` builds and runs it.

use clap::{Parser, Subcommand};
use parking_lot::{Condvar, Mutex};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use untorn_torture::check::Wrong;
use untorn_torture::coverage::Coverage;
use untorn_torture::explore::{Budget, Effort, Explorer, Failure, LONG_FROM, catch, parse};
use untorn_torture::faults::{FAULTS_PER_CALL, Play, SCENES, Trouble};
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
        /// How many states. Above 200000 this is the long form: every moment with at most 12 unsynced writes
        /// is tried with every subset of them.
        #[arg(long, default_value_t = 40_000)]
        states: u64,
        /// Where the seeds of the histories begin.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Threads.
        #[arg(long)]
        threads: Option<usize>,
        /// States after which the next history is begun (the long form finishes the moment it is at).
        #[arg(long, default_value_t = 2_000)]
        per_history: u64,
    },
    /// Lets every I/O call of a scene fail once, in every way.
    Faults {
        /// Only every n-th call (1: all).
        #[arg(long, default_value_t = 1)]
        stride: u64,
        /// Where the seeds of the scenes begin.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How many seeds.
        #[arg(long, default_value_t = 3)]
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
        Command::Replay { state } => {
            // What the engine says of one state helps; of a million nobody reads it.
            tracing_subscriber::fmt().with_writer(std::io::stderr).without_time().with_ansi(false).init();
            replay(&state)
        }
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Time between two words on how far it is.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Totals {
    coverage: Coverage,
    failures: Vec<Failure>,
}

/// Runs `work` on this number of threads, and `progress` from time to time until all are done.
fn on_threads(threads: usize, work: impl Fn() + Sync, progress: impl Fn(Duration)) {
    let begin = Instant::now();
    let (left, over) = (Mutex::new(threads), Condvar::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                work();
                *left.lock() -= 1;
                over.notify_one();
            });
        }
        let mut left = left.lock();
        while *left > 0 {
            if over.wait_for(&mut left, PROGRESS_EVERY).timed_out() {
                progress(begin.elapsed());
            }
        }
    });
}

fn explore_states(states: u64, seed: u64, threads: usize, per_history: u64) -> ExitCode {
    let begin = Instant::now();
    let effort = if states > LONG_FROM { Effort::LONG } else { Effort::QUICK };
    println!("crash states: {states} from seed {seed}, {threads} threads, {effort:?}");
    // Histories are handed out one by one, states from one common store: all threads work to the end.
    let (next, budget) = (AtomicU64::new(seed), Budget::new(states));
    let totals = Mutex::new(Totals::default());
    let work = || {
        while budget.left() > 0 && totals.lock().failures.is_empty() {
            one_history(next.fetch_add(1, Ordering::Relaxed), effort, per_history, &budget, &totals);
        }
    };
    on_threads(threads, work, |elapsed| {
        let tried = states - budget.left();
        let rate = tried as f64 / elapsed.as_secs_f64();
        println!(
            "{:>5.0} s: {tried} of {states} states, {rate:.0} states/s, {:.0} s to go, history {}, {} failures",
            elapsed.as_secs_f64(),
            budget.left() as f64 / rate.max(1.0),
            next.load(Ordering::Relaxed),
            totals.lock().failures.len()
        );
    });
    let totals = totals.into_inner();
    let took = begin.elapsed().as_secs_f64();
    let tried = totals.coverage.count("states");
    println!("{}", totals.coverage);
    println!("{tried} states in {took:.1} s: {:.0} states/s", tried as f64 / took);
    report(&totals.failures)
}

/// Runs and explores one history.
fn one_history(seed: u64, effort: Effort, states: u64, budget: &Budget, totals: &Mutex<Totals>) {
    let plan = Plan::new(seed);
    let history = match catch(|| record(&plan)) {
        Ok(history) => history,
        Err(panic) => {
            println!("history {seed}: {panic}");
            let what = Wrong::Silent(panic);
            totals.lock().failures.push(Failure { replay: format!("{seed}/run"), what });
            return;
        }
    };
    let mut explorer = Explorer::new(&plan, &history, effort, states, 3).within(budget);
    if let Some(failure) = &history.failure {
        let what = Wrong::Silent(failure.clone());
        explorer.failures.push(Failure { replay: format!("{seed}/run"), what });
    }
    if let Some(Err(what)) = history.account(&plan).map(|account| account.settle()) {
        explorer.failures.push(Failure { replay: format!("{seed}/run"), what: Wrong::Silent(what) });
    }
    history.note(&plan, &mut explorer.coverage);
    explorer.run();
    let mut totals = totals.lock();
    totals.coverage.merge(&explorer.coverage);
    totals.failures.extend(explorer.failures);
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
    let (all, calls) = (work.len() * FAULTS_PER_CALL, work.len());
    println!("{calls} calls, {FAULTS_PER_CALL} faults each: {all} faults");
    let (work, totals) = (Mutex::new(work), Mutex::new(totals));
    let work_off = || {
        loop {
            let next = work.lock().pop();
            let Some((play, call)) = next else { return };
            for fault in play.faults(call) {
                let mut coverage = Coverage::default();
                let outcome = play.try_fault(fault, &mut coverage);
                let mut totals = totals.lock();
                totals.coverage.merge(&coverage);
                totals.failures.extend(outcome.err());
            }
        }
    };
    on_threads(threads, work_off, |elapsed| {
        let left = work.lock().len() * FAULTS_PER_CALL;
        let failures = totals.lock().failures.len();
        println!("{:>5.0} s: {} of {all} faults, {failures} failures", elapsed.as_secs_f64(), all - left);
    });
    let totals = totals.into_inner();
    println!("{}", totals.coverage);
    println!("{all} faults in {:.1} s, {} failures", begin.elapsed().as_secs_f64(), totals.failures.len());
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

/// `seed/scene/call:kind` or `seed/scene/call:kind:call`, as a failure of [`fail_calls`] printed it.
fn replay_fault(state: &str) -> Option<ExitCode> {
    let mut parts = state.splitn(3, '/');
    let seed = parts.next()?.parse().ok()?;
    let name = parts.next()?;
    let scene = SCENES.into_iter().find(|scene| format!("{scene:?}") == name)?;
    let fault = Trouble::parse(parts.next()?)?;
    let outcome = Play::new(scene, seed).and_then(|play| play.try_fault(fault, &mut Coverage::default()));
    Some(report(&outcome.err().into_iter().collect::<Vec<_>>()))
}
