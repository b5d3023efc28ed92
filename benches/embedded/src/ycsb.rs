//! The Yahoo! Cloud Serving Benchmark's workloads A to F, a load of almost only reads, and one where
//! everybody changes the same pair; each for some seconds with 1, 8 and 32 threads.
//!
//! Every operation is a transaction of its own, and one that writes is on the disk when it returns. Pairs are
//! chosen by YCSB's scrambled Zipfian distribution (exponent 0.99) over the loaded ones, in D by age.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use crate::engine::{Change, Engine, Key, Reads, Session};
use crate::measure::{counted, resident_bytes, timed};
use crate::pairs::{is_value, key, mixed, new_version, put};
use crate::workload::write_all;
use crate::zipf::Zipf;

const THREADS: [u64; 3] = [1, 8, 32];
const MOST_SCANNED: u64 = 100;

#[derive(Clone, Copy)]
enum Operation {
    Read,
    /// A read of a pair that is likely to be new.
    ReadLatest,
    Update,
    Insert,
    /// From a pair on, up to [`MOST_SCANNED`] of them.
    Scan,
    /// Read, change, write, as one transaction.
    Modify,
    /// [`Operation::Modify`] of pair 0: counts in it.
    Count,
}

/// A workload: one operation, and another for this many in a thousand.
struct Mix {
    name: &'static str,
    mostly: Operation,
    otherwise: (u64, Operation),
}

const fn mix(name: &'static str, mostly: Operation, share: u64, other: Operation) -> Mix {
    Mix { name, mostly, otherwise: (share, other) }
}

/// Those that make the database larger come last.
const MIXES: [Mix; 8] = [
    mix("C: reads", Operation::Read, 0, Operation::Read),
    mix("99 % reads, 1 % updates", Operation::Read, 10, Operation::Update),
    mix("B: 95 % reads, 5 % updates", Operation::Read, 50, Operation::Update),
    mix("A: reads and updates", Operation::Read, 500, Operation::Update),
    mix("F: reads and changes", Operation::Read, 500, Operation::Modify),
    mix("changes of one pair", Operation::Count, 0, Operation::Count),
    mix("D: 95 % reads of new, 5 % inserts", Operation::ReadLatest, 50, Operation::Insert),
    mix("E: 95 % scans, 5 % inserts", Operation::Scan, 50, Operation::Insert),
];

#[derive(Clone, Copy)]
pub struct Sizes {
    /// Pairs that are loaded.
    pub keys: u64,
    pub seed: u64,
    /// The most pairs of a transaction of the bulk load.
    pub transaction_pairs: u64,
    /// Of each workload with each number of threads.
    pub time: Duration,
}

/// Loads the pairs and runs all workloads; the resident memory at the end.
pub fn run(engine: &dyn Engine, sizes: Sizes) -> Result<u64> {
    let mut session = engine.session(1)?;
    timed("bulk load", sizes.keys, || {
        write_all(&mut *session, 0..sizes.keys, sizes.transaction_pairs, |n| put(sizes.seed, n))
    })?;
    drop(session);
    let zipf = Zipf::new(sizes.keys);
    let mut next = sizes.keys;
    for mix in &MIXES {
        for threads in THREADS {
            let plural = if threads == 1 { "thread" } else { "threads" };
            let name = format!("{}, {threads} {plural}", mix.name);
            let before = count_of_pair_0(engine, sizes)?;
            let sessions = engine.sessions(threads)?;
            let (done, sessions) = counted(&name, || {
                let (done, sessions) = run_mix(sessions, sizes, &zipf, mix, &mut next)?;
                Ok(((done, sessions), done))
            })?;
            drop(sessions);
            if matches!(mix.mostly, Operation::Count) {
                let counted = count_of_pair_0(engine, sizes)?.wrapping_sub(before);
                ensure!(counted == done, "{done} changes of a pair were acknowledged, {counted} are there");
            }
        }
    }
    Ok(resident_bytes())
}

/// What [`Operation::Count`] has counted.
fn count_of_pair_0(engine: &dyn Engine, sizes: Sizes) -> Result<u64> {
    let mut count = 0;
    engine.session(1)?.read(&mut |reads: &mut dyn Reads| {
        ensure!(reads.get(&key(sizes.seed, 0), &mut |value| count = counter(value))?, "pair 0 is lost");
        Ok(())
    })?;
    Ok(count)
}

/// The number behind the bytes that the key decides.
fn counter(value: &[u8]) -> u64 {
    value.get(8..16).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// Runs one workload for its time, in a thread for each session: the operations that were done, and the
/// sessions, which the caller closes.
fn run_mix<'e>(
    sessions: Vec<Box<dyn Session + 'e>>,
    sizes: Sizes,
    zipf: &'e Zipf,
    mix: &Mix,
    next: &mut u64,
) -> Result<(u64, Vec<Box<dyn Session + 'e>>)> {
    let (stop, done, inserted) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let (first, threads) = (*next, sessions.len() as u64);
    let work = |thread: u64, session: Box<dyn Session + 'e>| -> Result<Box<dyn Session + 'e>> {
        let mut client = Client {
            session,
            sizes,
            zipf,
            first: first + thread,
            step: threads,
            inserted: 0,
            random: mixed(sizes.seed ^ first, thread ^ (threads << 32)),
        };
        let mut operations = 0;
        while !stop.load(Ordering::Relaxed) {
            let other = mixed(client.next_random(), 0) % 1000 < mix.otherwise.0;
            client.run(if other { mix.otherwise.1 } else { mix.mostly })?;
            operations += 1;
        }
        done.fetch_add(operations, Ordering::Relaxed);
        inserted.fetch_max(client.inserted, Ordering::Relaxed);
        Ok(client.session)
    };
    let work = &work;
    let sessions = std::thread::scope(|scope| {
        let started: Vec<_> = std::iter::zip(0.., sessions)
            .map(|(thread, session)| scope.spawn(move || work(thread, session)))
            .collect();
        std::thread::sleep(sizes.time);
        stop.store(true, Ordering::Relaxed);
        let ended = started.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(_) => bail!("a thread panicked"),
        });
        ended.collect::<Result<_>>()
    })?;
    *next = first + inserted.into_inner() * threads;
    Ok((done.into_inner(), sessions))
}

/// A thread with its session. It inserts the pairs `first`, `first + step` and so on.
struct Client<'e> {
    session: Box<dyn Session + 'e>,
    sizes: Sizes,
    zipf: &'e Zipf,
    first: u64,
    step: u64,
    inserted: u64,
    random: u64,
}

impl Client<'_> {
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed(self.random, 1)
    }

    /// A loaded pair; popular ones are all over the keys.
    fn popular(&mut self) -> u64 {
        let rank = self.zipf.rank(self.next_random());
        mixed(self.sizes.seed ^ 3, rank) % self.sizes.keys
    }

    /// A pair that this thread inserted lately, or a loaded one.
    fn latest(&mut self) -> u64 {
        let rank = self.zipf.rank(self.next_random());
        match self.inserted.checked_sub(rank + 1) {
            Some(own) => self.first + own * self.step,
            None => self.sizes.keys - 1 - (rank - self.inserted),
        }
    }

    fn run(&mut self, operation: Operation) -> Result<()> {
        match operation {
            Operation::Read => {
                let pair = self.popular();
                self.read(pair)
            }
            Operation::ReadLatest => {
                let pair = self.latest();
                self.read(pair)
            }
            Operation::Scan => self.scan(),
            Operation::Update => {
                let (pair, version) = (self.popular(), self.next_random());
                let value = new_version(self.sizes.seed, pair, version);
                self.write(Change::Put(key(self.sizes.seed, pair), Box::new(value)))
            }
            Operation::Insert => {
                let pair = self.first + self.inserted * self.step;
                self.write(put(self.sizes.seed, pair))?;
                self.inserted += 1;
                Ok(())
            }
            Operation::Modify => {
                let (pair, version) = (self.popular(), self.next_random());
                let new = new_version(self.sizes.seed, pair, version);
                self.session.modify(&key(self.sizes.seed, pair), &mut |value| value.copy_from_slice(&new))
            }
            Operation::Count => self.session.modify(&key(self.sizes.seed, 0), &mut |value| {
                let count = counter(value).wrapping_add(1);
                value[8..16].copy_from_slice(&count.to_le_bytes());
            }),
        }
    }

    fn write(&mut self, change: Change) -> Result<()> {
        self.session.write(&mut std::iter::once(change))
    }

    fn read(&mut self, pair: u64) -> Result<()> {
        let seed = self.sizes.seed;
        self.session.read(&mut |reads: &mut dyn Reads| {
            let mut right = false;
            let found = reads.get(&key(seed, pair), &mut |value| right = is_value(seed, pair, value))?;
            ensure!(found && right, "pair {pair} is not what was written");
            Ok(())
        })
    }

    fn scan(&mut self) -> Result<()> {
        let from = key(self.sizes.seed, self.popular());
        let most = 1 + self.next_random() % MOST_SCANNED;
        self.session.read(&mut |reads: &mut dyn Reads| {
            let (mut last, mut ordered) = (None::<Key>, true);
            reads.range(&from, most as usize, &mut |key, _| {
                ordered &= last.is_none_or(|last| &last[..] < key);
                last = key.try_into().ok();
            })?;
            ensure!(ordered && last.is_some(), "a scan is out of order");
            Ok(())
        })
    }
}
