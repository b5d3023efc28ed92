//! A load on the log and the truth about it: what was appended, what was acknowledged, what recovery must
//! give back.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use disk::{Environment, Event, Random};
use page::PageId;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use untorn_redo::{Error, Flush, Interrupt, Lsn, Options, RecordWriter, RedoLog};

/// One appended mini-transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Appended {
    pub start: Lsn,
    pub end: Lsn,
    pub records: Vec<u8>,
}

/// What is known from outside about a log.
#[derive(Clone, Default)]
pub struct Truth {
    /// Everything appended, in LSN order.
    pub appended: Vec<Appended>,
    /// The highest LSN that was acknowledged as durable.
    pub acknowledged: Lsn,
    /// The highest checkpoint that was acknowledged.
    pub checkpoint: Lsn,
    /// Mini-transactions so far, for distinct contents.
    pub serial: u64,
}

pub fn dir() -> PathBuf {
    PathBuf::from("/data")
}

/// A log of 256 KiB, so that a few hundred mini-transactions go around it.
pub fn small() -> Options {
    Options { capacity: 256 << 10, buffer_size: 64 << 10, first_size: 256 << 10, ..Options::default() }
}

/// One that begins as small as can be, and may become eight times as large.
pub fn growing() -> Options {
    Options { capacity: 1 << 20, first_size: 0, ..small() }
}

/// Records that no other mini-transaction has, 8 to about `size` bytes.
pub fn records(serial: u64, size: usize, random: &mut Random) -> Vec<u8> {
    let mut writer = RecordWriter::new();
    let page = PageId::new(1, serial as u32);
    writer.write(page, 0, &serial.to_be_bytes());
    let mut body = vec![0; random.below(size.max(1))];
    for byte in &mut body {
        *byte = random.next_u64() as u8;
    }
    writer.write(page, 100, &body);
    writer.as_bytes().to_vec()
}

/// Awaits an admission of `bytes` and appends.
pub async fn append(
    log: &RedoLog,
    truth: &Mutex<Truth>,
    size: usize,
    random: &mut Random,
) -> Result<Lsn, Error> {
    let serial = {
        let mut truth = truth.lock();
        truth.serial += 1;
        truth.serial
    };
    let bytes = records(serial, size, random);
    loop {
        let wait = match log.admit(bytes.len()) {
            Ok(_admission) => {
                return Ok(log.append(&bytes, |start, end| {
                    truth.lock().appended.push(Appended { start, end, records: bytes.clone() });
                }));
            }
            Err(Interrupt::Wait(wait)) => wait,
            Err(Interrupt::Error(error)) => return Err(error),
        };
        wait.await;
    }
}

/// Awaits durability.
pub async fn flush(log: &RedoLog, upto: Lsn, how: Flush) -> Result<(), Error> {
    loop {
        let wait = match log.flush(upto, how) {
            Ok(()) => return Ok(()),
            Err(Interrupt::Wait(wait)) => wait,
            Err(Interrupt::Error(error)) => return Err(error),
        };
        wait.await;
    }
}

/// What the workers of a load do.
#[derive(Clone, Copy)]
pub struct Load {
    pub workers: usize,
    pub mini_transactions: usize,
    pub size: usize,
    /// What a worker takes for durable: `Flush::Write` is the planted mistake of the negative controls.
    pub acknowledge_at: Flush,
}

async fn worker(
    log: Arc<RedoLog>,
    truth: Arc<Mutex<Truth>>,
    load: Load,
    mut random: Random,
) -> Result<(), Error> {
    for _ in 0..load.mini_transactions {
        let end = append(&log, &truth, load.size, &mut random).await?;
        match random.below(4) {
            0 => {}
            1 => flush(&log, end, Flush::Write).await?,
            _ => {
                flush(&log, end, load.acknowledge_at).await?;
                let mut truth = truth.lock();
                truth.acknowledged = truth.acknowledged.max(end);
            }
        }
    }
    Ok(())
}

/// Moves the checkpoint to somewhere durable each time room is wanted.
async fn cleaner(log: Arc<RedoLog>, truth: Arc<Mutex<Truth>>, stop: Event, mut random: Random) {
    while !stop.is_set() && log.poisoned().is_none() {
        log.space_wanted().wait().await;
        let target = {
            let truth = truth.lock();
            let behind: Vec<Lsn> =
                truth.appended.iter().map(|one| one.end).filter(|end| *end > log.checkpoint_lsn()).collect();
            // The later half, so that there is progress; sometimes all of it.
            match behind.len() {
                0 => log.current(),
                length => behind[length / 2 + random.below(length - length / 2)],
            }
        };
        if log.move_checkpoint(target).await.is_ok() {
            let mut truth = truth.lock();
            truth.checkpoint = truth.checkpoint.max(target);
        }
    }
}

/// What the capacity is changed to.
pub const CAPACITIES: [u64; 4] = [256 << 10, 400 << 10, 800 << 10, 2 << 20];

/// Changes the capacity, now and then before the last change has come to its end.
pub async fn change_capacity(env: Arc<dyn Environment>, log: Arc<RedoLog>, stop: Event, mut random: Random) {
    while !stop.is_set() && log.poisoned().is_none() {
        let _ = log.set_capacity(CAPACITIES[random.below(CAPACITIES.len())]);
        let pauses = 1 << random.below(9);
        env.sleep(std::time::Duration::from_micros(random.below(100 * pauses) as u64)).await;
    }
}

/// Runs a load to its end or to the first error.
pub async fn run(
    env: Arc<dyn Environment>,
    log: Arc<RedoLog>,
    truth: Arc<Mutex<Truth>>,
    load: Load,
    seed: u64,
) {
    let mut random = Random::new(seed);
    let stop = Event::new();
    let cleaned = Event::new();
    {
        let task = cleaner(log.clone(), truth.clone(), stop.clone(), Random::new(random.next_u64()));
        let cleaned = cleaned.clone();
        env.spawn(
            "cleaner",
            Box::pin(async move {
                task.await;
                cleaned.set();
            }),
        );
    }
    let mut ends = Vec::new();
    for _ in 0..load.workers {
        let end = Event::new();
        ends.push(end.clone());
        let task = worker(log.clone(), truth.clone(), load, Random::new(random.next_u64()));
        env.spawn(
            "worker",
            Box::pin(async move {
                // An error ends the worker; what it had been told before is in the truth.
                let _ = task.await;
                end.set();
            }),
        );
    }
    for end in ends {
        end.wait().await;
    }
    stop.set();
    log.space_wanted().set();
    cleaned.wait().await;
}

/// Opens and scans, and holds the result against the truth, which is then cut to what recovery found.
pub fn recover(
    env: &Arc<dyn Environment>,
    dir: &Path,
    options: Options,
    truth: &mut Truth,
) -> Result<Arc<RedoLog>, String> {
    let log = RedoLog::open(env, dir, options).map_err(|error| format!("open: {error}"))?;
    let mut found = Vec::new();
    let summary = log
        .scan(
            |start, end, records| {
                found.push(Appended { start, end, records: records.to_vec() });
                Ok::<(), Error>(())
            },
            |_, _| {},
        )
        .map_err(|error| format!("scan: {error}"))?;
    if summary.checkpoint < truth.checkpoint {
        return Err(format!(
            "checkpoint {} was acknowledged, found {}",
            truth.checkpoint, summary.checkpoint
        ));
    }
    let expected: Vec<_> =
        truth.appended.iter().filter(|one| one.end > summary.checkpoint).cloned().collect();
    let kept = found.len();
    if kept > expected.len() {
        return Err(format!("{kept} mini-transactions found, {} appended", expected.len()));
    }
    if let Some(wrong) = (0..kept).find(|at| found[*at] != expected[*at]) {
        let (found, expected) = (&found[wrong], &expected[wrong]);
        return Err(format!(
            "mini-transaction {wrong}: found {}..{}, expected {}..{}",
            found.start, found.end, expected.start, expected.end
        ));
    }
    let end = found.last().map_or(summary.checkpoint, |last| last.end);
    if end < truth.acknowledged {
        return Err(format!("{} was acknowledged, the log ends at {end}", truth.acknowledged));
    }
    truth.appended.retain(|one| one.end <= end);
    truth.checkpoint = summary.checkpoint;
    Ok(log)
}
