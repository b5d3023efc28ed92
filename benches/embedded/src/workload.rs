//! The steps of redb's own benchmark, each timed for itself.

use anyhow::{Result, ensure};

use crate::engine::{Change, Engine, Kind, Reads, Session, VALUE_BYTES};
use crate::measure::{resident_bytes, timed};
use crate::pairs::{is_value, key, mixed, put};

/// Sizes of the steps.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub keys: u64,
    pub seed: u64,
    /// The most changes of a transaction of the bulk load and the removals, and of the reinsertion.
    pub transaction_pairs: u64,
}

/// Makes a change of each of these numbers, in as few transactions as may be.
pub fn write_all(
    session: &mut dyn Session,
    numbers: std::ops::Range<u64>,
    transaction_pairs: u64,
    change: impl Fn(u64) -> Change,
) -> Result<()> {
    let mut first = numbers.start;
    while first < numbers.end {
        let end = numbers.end.min(first.saturating_add(transaction_pairs));
        session.write(&mut (first..end).map(&change))?;
        first = end;
    }
    Ok(())
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

/// Shares `count` numbers from `first` on among threads, one for each session.
fn threaded(
    sessions: &mut [Box<dyn Session + '_>],
    first: u64,
    count: u64,
    work: impl Fn(&mut dyn Session, std::ops::Range<u64>) -> Result<()> + Sync,
) -> Result<()> {
    let (share, work) = (count / sessions.len() as u64, &work);
    std::thread::scope(|scope| {
        let started: Vec<_> = std::iter::zip(0_u64.., sessions)
            .map(|(thread, session)| {
                let begin = first + thread * share;
                scope.spawn(move || work(&mut **session, begin..begin + share))
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
            let mut right = false;
            let found =
                reads.get(&key(sizes.seed, pair), &mut |value| right = is_value(sizes.seed, pair, value))?;
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
pub fn run(kind: Kind, engine: &dyn Engine, sizes: Sizes) -> Result<u64> {
    let seed = sizes.seed;
    let mut session = engine.session(1)?;
    let single = |session: &mut dyn Session, n: u64| session.write(&mut std::iter::once(put(seed, n)));
    let at_once = sizes.transaction_pairs;
    timed("bulk load", sizes.keys, || write_all(&mut *session, 0..sizes.keys, at_once, |n| put(seed, n)))?;
    let mut next = sizes.keys;
    timed("durable writes", sizes.singles(), || {
        (next..next + sizes.singles()).try_for_each(|n| single(&mut *session, n))
    })?;
    next += sizes.singles();
    timed("batches", 100 * sizes.batch(), || {
        (0..100).try_for_each(|batch| {
            let first = next + batch * sizes.batch();
            session.write(&mut (first..first + sizes.batch()).map(|n| put(seed, n)))
        })
    })?;
    next += 100 * sizes.batch();
    for threads in [8, 32] {
        let name = format!("durable writes, {threads} threads");
        let mut sessions = engine.sessions(threads)?;
        timed(&name, sizes.threaded(), || {
            threaded(&mut sessions, next, sizes.threaded(), |session, mut numbers| {
                numbers.try_for_each(|n| single(session, n))
            })
        })?;
        next += sizes.threaded() / threads * threads;
    }
    let pairs = timed("count", next, || engine.count())?;
    ensure!(pairs == next, "{} counts {pairs} of {next} pairs", kind.name());
    timed("random reads", sizes.reads(), || random_reads(&mut *session, sizes, 0..sizes.reads()))?;
    timed("ranges of 10", sizes.ranges(), || random_ranges(&mut *session, sizes))?;
    for threads in [4, 32] {
        let name = format!("random reads, {threads} threads");
        let mut sessions = engine.sessions(threads)?;
        timed(&name, sizes.reads(), || {
            threaded(&mut sessions, 0, sizes.reads(), |session, numbers| {
                random_reads(session, sizes, numbers)
            })
        })?;
    }
    let resident = resident_bytes();
    let half = next / 2;
    timed("removals", half, || {
        write_all(&mut *session, 0..half, at_once, |n| Change::Remove(key(seed, n * 2)))
    })?;
    timed("reinsertion", half, || write_all(&mut *session, 0..half, at_once, |n| put(seed, n * 2)))?;
    Ok(resident)
}

/// Durable writes, before the process is killed.
pub fn before_kill(engine: &dyn Engine, sizes: Sizes) -> Result<()> {
    let mut session = engine.session(1)?;
    let first = sizes.inserted();
    timed("writes before the kill", 100 * sizes.batch(), || {
        (0..100).try_for_each(|batch| {
            let first = first + batch * sizes.batch();
            session.write(&mut (first..first + sizes.batch()).map(|n| put(sizes.seed, n)))
        })
    })
}

/// Whether the last pair written before the kill is there, with its value.
pub fn after_kill(engine: &dyn Engine, sizes: Sizes) -> Result<()> {
    let last = sizes.inserted() + 100 * sizes.batch() - 1;
    engine.session(1)?.read(&mut |reads: &mut dyn Reads| {
        let mut right = false;
        let found =
            reads.get(&key(sizes.seed, last), &mut |value| right = is_value(sizes.seed, last, value))?;
        ensure!(found && right, "a pair that was durable is lost");
        Ok(())
    })
}
