//! The steps, each timed for itself, after redb's own benchmark: random keys of 24 bytes and values of 150.
//!
//! Pair `n` is made from the seed and `n`, so every process knows the pairs that the ones before it wrote. A
//! read checks the value that it is shown: an engine that answers fast and wrong fails.

use std::time::Instant;

use anyhow::{Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};

use crate::engine::{Change, Engine, KEY_BYTES, Key, Kind, Reads, Session, VALUE_BYTES, Value};
use crate::report::Step;

/// Sizes of the steps.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub keys: u64,
    pub seed: u64,
}

impl Sizes {
    fn singles(self) -> u64 {
        (self.keys / 200).max(100)
    }

    fn threaded(self) -> u64 {
        (self.keys / 100).max(320)
    }

    fn batch(self) -> u64 {
        (self.keys / 400).clamp(10, 1000)
    }

    fn reads(self) -> u64 {
        self.keys
    }

    fn ranges(self) -> u64 {
        self.keys / 5
    }

    /// Pairs after all steps that insert.
    fn inserted(self) -> u64 {
        self.keys + self.singles() + 2 * self.threaded() + 100 * self.batch()
    }
}

/// A random number that is a function of two others (splitmix64).
fn mixed(seed: u64, n: u64) -> u64 {
    let mut word = seed.wrapping_add(n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

fn fill(bytes: &mut [u8], seed: u64) {
    for (at, chunk) in bytes.chunks_mut(8).enumerate() {
        chunk.copy_from_slice(&mixed(seed, at as u64).to_le_bytes()[..chunk.len()]);
    }
}

pub fn key(seed: u64, n: u64) -> Key {
    let mut key = [0; KEY_BYTES];
    fill(&mut key, mixed(seed, n));
    key
}

fn value(seed: u64, n: u64) -> Value {
    let mut value = [0; VALUE_BYTES];
    fill(&mut value, !mixed(seed, n));
    value
}

pub fn put(seed: u64, n: u64) -> Change {
    Change::Put(key(seed, n), Box::new(value(seed, n)))
}

fn cpu_seconds() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

fn written_bytes() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

/// Memory of this process that belongs to no file.
pub fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// Runs a step and notes what it took.
pub fn timed<R>(steps: &mut Vec<Step>, name: &str, count: u64, f: impl FnOnce() -> Result<R>) -> Result<R> {
    let (cpu, written, begun) = (cpu_seconds()?, written_bytes(), Instant::now());
    let result = f()?;
    let seconds = begun.elapsed().as_secs_f64();
    let step = Step {
        name: name.to_owned(),
        count,
        seconds,
        cpu_seconds: cpu_seconds()? - cpu,
        written_bytes: written_bytes() - written,
    };
    eprintln!("  {:<28} {seconds:>9.3} s  {:>9.3} s CPU", step.name, step.cpu_seconds);
    steps.push(step);
    Ok(result)
}

/// Shares `count` numbers from `first` on among threads with a session each.
fn threaded(
    engine: &dyn Engine,
    threads: u64,
    first: u64,
    count: u64,
    work: impl Fn(&mut dyn Session, std::ops::Range<u64>) -> Result<()> + Sync,
) -> Result<()> {
    let (share, work) = (count / threads, &work);
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads)
            .map(|thread| {
                let begin = first + thread * share;
                scope.spawn(move || work(&mut *engine.session()?, begin..begin + share))
            })
            .collect();
        started.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(_) => anyhow::bail!("a thread panicked"),
        })
    })
}

fn random_reads(session: &mut dyn Session, sizes: Sizes, numbers: std::ops::Range<u64>) -> Result<()> {
    session.read(&mut |reads: &mut dyn Reads| {
        for n in numbers.clone() {
            let pair = mixed(sizes.seed ^ 1, n) % sizes.keys;
            let (mut right, expected) = (false, !mixed(sizes.seed, pair));
            let found = reads.get(&key(sizes.seed, pair), &mut |value| {
                right = value.len() == VALUE_BYTES && value[..8] == mixed(expected, 0).to_le_bytes();
            })?;
            ensure!(found && right, "pair {pair} is not what was written");
        }
        Ok(())
    })
}

fn random_ranges(session: &mut dyn Session, sizes: Sizes) -> Result<()> {
    session.read(&mut |reads: &mut dyn Reads| {
        for n in 0..sizes.ranges() {
            let from = key(sizes.seed, mixed(sizes.seed ^ 2, n) % sizes.keys);
            let mut last = from;
            let (mut pairs, mut ordered) = (0, true);
            reads.range(&from, 10, &mut |key, value| {
                ordered &= key >= &last[..] && value.len() == VALUE_BYTES;
                last.copy_from_slice(key);
                pairs += 1;
            })?;
            ensure!(ordered && pairs >= 1, "a range is out of order");
        }
        Ok(())
    })
}

/// The steps of the first process, up to the close.
pub fn run(kind: Kind, engine: &dyn Engine, sizes: Sizes, steps: &mut Vec<Step>) -> Result<u64> {
    let seed = sizes.seed;
    let mut session = engine.session()?;
    let single = |session: &mut dyn Session, n: u64| session.write(&mut std::iter::once(put(seed, n)));
    timed(steps, "bulk load", sizes.keys, || session.write(&mut (0..sizes.keys).map(|n| put(seed, n))))?;
    let mut next = sizes.keys;
    timed(steps, "durable writes", sizes.singles(), || {
        (next..next + sizes.singles()).try_for_each(|n| single(&mut *session, n))
    })?;
    next += sizes.singles();
    timed(steps, "batches", 100 * sizes.batch(), || {
        (0..100).try_for_each(|batch| {
            let first = next + batch * sizes.batch();
            session.write(&mut (first..first + sizes.batch()).map(|n| put(seed, n)))
        })
    })?;
    next += 100 * sizes.batch();
    for threads in [8, 32] {
        let name = format!("durable writes, {threads} threads");
        timed(steps, &name, sizes.threaded(), || {
            threaded(engine, threads, next, sizes.threaded(), |session, mut numbers| {
                numbers.try_for_each(|n| single(session, n))
            })
        })?;
        next += sizes.threaded() / threads * threads;
    }
    let pairs = timed(steps, "count", next, || engine.count())?;
    ensure!(pairs == next, "{} counts {pairs} of {next} pairs", kind.name());
    timed(steps, "random reads", sizes.reads(), || random_reads(&mut *session, sizes, 0..sizes.reads()))?;
    timed(steps, "ranges of 10", sizes.ranges(), || random_ranges(&mut *session, sizes))?;
    for threads in [4, 32] {
        let name = format!("random reads, {threads} threads");
        timed(steps, &name, sizes.reads(), || {
            threaded(engine, threads, 0, sizes.reads(), |session, numbers| {
                random_reads(session, sizes, numbers)
            })
        })?;
    }
    let resident = resident_bytes();
    let half = next / 2;
    timed(steps, "removals", half, || {
        session.write(&mut (0..half).map(|n| Change::Remove(key(seed, n * 2))))
    })?;
    timed(steps, "reinsertion", half, || session.write(&mut (0..half).map(|n| put(seed, n * 2))))?;
    Ok(resident)
}

/// Durable writes, before the process is killed.
pub fn before_kill(engine: &dyn Engine, sizes: Sizes, steps: &mut Vec<Step>) -> Result<()> {
    let mut session = engine.session()?;
    let first = sizes.inserted();
    timed(steps, "writes before the kill", 100 * sizes.batch(), || {
        (0..100).try_for_each(|batch| {
            let first = first + batch * sizes.batch();
            session.write(&mut (first..first + sizes.batch()).map(|n| put(sizes.seed, n)))
        })
    })
}

/// Whether the last pair written before the kill is there.
pub fn after_kill(engine: &dyn Engine, sizes: Sizes) -> Result<()> {
    let last = sizes.inserted() + 100 * sizes.batch() - 1;
    engine.session()?.read(&mut |reads: &mut dyn Reads| {
        ensure!(reads.get(&key(sizes.seed, last), &mut |_| {})?, "a pair that was durable is lost");
        Ok(())
    })
}
