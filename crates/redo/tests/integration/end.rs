//! The end of the log is told from damage in its middle, without reading the rest of the circle.

#![allow(clippy::unwrap_used)]

use crate::common::*;
use disk::{Environment, Fault, FaultKind, Random, SimulatedEnvironment};
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use untorn_redo::{Error, Flush, Interrupt, Lsn, Options, RedoLog, ScanSummary};

const FRONT: usize = 8192;
const MIB: usize = 1 << 20;
/// Bytes of a window of the scan, at most: no read is longer.
const WINDOW: u64 = 1 << 20;

struct Machine {
    simulated: Arc<SimulatedEnvironment>,
    env: Arc<dyn Environment>,
    options: Options,
    random: Random,
    truth: Mutex<Truth>,
}

/// The fields of the newest checkpoint block.
struct Block {
    checkpoint: u64,
    flushed: u64,
    reach: u64,
}

fn options(capacity: usize) -> Options {
    Options {
        capacity: capacity as u64,
        buffer_size: 1 << 20,
        first_size: capacity as u64,
        background_sync: Duration::ZERO,
        ..Options::default()
    }
}

impl Machine {
    fn new(seed: u64, capacity: usize) -> (Machine, Arc<RedoLog>) {
        let simulated = SimulatedEnvironment::new(seed);
        let env: Arc<dyn Environment> = simulated.clone();
        env.storage().create_dir_all(&dir()).unwrap();
        let options = options(capacity);
        let log = RedoLog::create(&env, &dir(), options.clone()).unwrap();
        let machine = Machine {
            simulated,
            env,
            options,
            random: Random::new(seed),
            truth: Mutex::new(Truth::default()),
        };
        (machine, log)
    }

    fn path() -> PathBuf {
        dir().join("#untorn_redo")
    }

    fn block(&self) -> Block {
        let content = self.simulated.disk().content(&Machine::path()).unwrap();
        let field = |block: usize, at: usize| {
            u64::from_le_bytes(content[block * 4096 + at..block * 4096 + at + 8].try_into().unwrap())
        };
        let newest = usize::from(field(1, 16) > field(0, 16));
        Block { checkpoint: field(newest, 48), flushed: field(newest, 64), reach: field(newest, 80) }
    }

    /// Appends up to `upto`, a group write after some mini-transactions. Returns where each of them ended.
    fn load(&mut self, log: &RedoLog, upto: Lsn, how: Flush) -> Vec<Lsn> {
        let mut ends = Vec::new();
        while log.current() < upto {
            for _ in 0..1 + self.random.below(12) {
                let appended = append(log, &self.truth, 40_000, &mut self.random);
                self.simulated.run_until_complete(appended).unwrap();
            }
            self.simulated.run_until_complete(flush(log, log.current(), how)).unwrap();
            ends.push(log.current());
        }
        ends
    }

    /// Opens and scans, without taking it into use when it is damaged.
    fn scan(&self) -> Result<ScanSummary, Error> {
        let log = RedoLog::open(&self.env, &dir(), self.options.clone())?;
        log.scan(|_, _, _| Ok::<(), Error>(()), |_, _| {})
    }
}

/// Damage of any size at any place is refused, if a group that was sealed after what it hit had become
/// durable is whole.
#[test]
fn damage_anywhere_in_the_log_is_refused() {
    for seed in 1..4 {
        let (mut machine, log) = Machine::new(seed, 32 * MIB);
        let start = log.current();
        machine.load(&log, start.plus(MIB as u64), Flush::Sync);
        machine.simulated.run_until_complete(log.move_checkpoint(log.current())).unwrap();
        let first = log.current();
        let mut ends = machine.load(&log, first.plus((14 * MIB) as u64), Flush::Sync);
        // Up to where the newest block is as old as it gets.
        while log.current().0 - machine.block().flushed < (3 * MIB / 2) as u64 {
            ends.extend(machine.load(&log, log.current().plus(1), Flush::Sync));
        }
        machine.simulated.run_until_idle();
        drop(log);
        let block = machine.block();
        assert_eq!((block.reach, block.checkpoint), (4 << 20, first.0));
        // The last two writes: what is durable before the first is proved by the second.
        let [.., proved, last, _] = ends[..] else { unreachable!() };
        let place = |lsn: u64| FRONT + (lsn - FRONT as u64) as usize;
        let content = machine.simulated.disk().content(&Machine::path()).unwrap();
        let (mut by_block, mut by_group) = (0, 0);
        for case in 0..150 {
            let sizes = [512, 4096, 64 << 10, 512 << 10, 2 * MIB, 5 * MIB];
            let size = sizes[machine.random.below(sizes.len())] as u64;
            // Half of them past what the checkpoint block knows of.
            let from = if case % 2 == 0 { first.0 } else { block.flushed };
            let at = from + machine.random.below((proved.0 - from) as usize / 512) as u64 * 512;
            let size = size.min(last.0 - at) as usize;
            let garbage: Vec<u8> = match case % 3 {
                0 => vec![0; size],
                _ => (0..size).map(|_| machine.random.next_u64() as u8).collect(),
            };
            machine.simulated.disk().corrupt(&Machine::path(), place(at), &garbage);
            match machine.scan() {
                Err(Error::Damaged { why, .. }) => {
                    by_block += u32::from(why.contains("checkpoint block"));
                    by_group += u32::from(why.contains("further on"));
                }
                other => panic!("seed {seed}: {size} bytes at {at} of {first}..{last}: {other:?}"),
            }
            let end = place(at) + size;
            machine.simulated.disk().corrupt(&Machine::path(), place(at), &content[place(at)..end]);
        }
        assert!(by_block > 20 && by_group > 50, "{by_block} by the block, {by_group} by a group");
        // A write that was cut off is no damage, nor is the log as it is.
        machine.simulated.disk().corrupt(&Machine::path(), place(last.0) + 100, &[0x55; 8]);
        assert_eq!(machine.scan().unwrap().end, last);
    }
}

/// What lies past the end is read as far as the log can have gone, and where that is not known to its end.
#[test]
fn the_rest_of_the_circle_is_not_read() {
    let (mut machine, log) = Machine::new(5, 128 * MIB);
    let first = log.current();
    // Once around, so that the rest is full of old groups.
    for lap in 1..12 {
        machine.load(&log, first.plus((lap * 12 * MIB) as u64), Flush::Sync);
        machine.simulated.run_until_complete(log.move_checkpoint(log.current())).unwrap();
    }
    assert!(log.current().0 > first.0 + (128 * MIB) as u64);
    machine.load(&log, log.current().plus(100_000), Flush::Sync);
    let end = log.current();
    drop(log);
    let machine_of = |damaged_block: bool| {
        let disk = machine.simulated.disk().crash(1);
        if damaged_block {
            let content = disk.content(&Machine::path()).unwrap();
            let older = usize::from(content[16] > content[4096 + 16]);
            disk.corrupt(&Machine::path(), older * 4096 + 20, &[0xFF; 4]);
        }
        let simulated = SimulatedEnvironment::with_storage(2, disk);
        let env: Arc<dyn Environment> = simulated.clone();
        let before = simulated.disk().calls();
        let log = RedoLog::open(&env, &dir(), machine.options.clone()).unwrap();
        let summary = log.scan(|_, _, _| Ok::<(), Error>(()), |_, _| {}).unwrap();
        assert_eq!(summary.end, end);
        let calls = simulated.disk().calls() - before;
        simulated.shutdown();
        calls
    };
    // No call reads more than a window; the reach is a sixteenth of the circle, here 8 MiB.
    let bytes = machine_of(false) * WINDOW;
    assert!(bytes <= (128 * MIB) as u64 / 8, "up to {bytes} bytes");
    // The other block is damaged: for all that is known it was the newer one.
    assert!(machine_of(true) > 100);
}

/// Each call of a scan fails once: the scan ends with that error or finds all of the log, around the end of
/// the circle too. Of what was read ahead it does not notice.
#[test]
fn a_read_ahead_that_fails_is_done_again() {
    let (mut machine, log) = Machine::new(8, 16 * MIB);
    let first = log.current();
    for lap in 1..6 {
        machine.load(&log, first.plus((lap * 2 * MIB) as u64), Flush::Sync);
        machine.simulated.run_until_complete(log.move_checkpoint(log.current())).unwrap();
    }
    machine.load(&log, first.plus((18 * MIB) as u64), Flush::Sync);
    let end = log.current();
    drop(log);
    let scan = |fault: Option<u64>| {
        let simulated = SimulatedEnvironment::with_storage(3, machine.simulated.disk().crash(1));
        let env: Arc<dyn Environment> = simulated.clone();
        let log = RedoLog::open(&env, &dir(), machine.options.clone()).unwrap();
        let before = simulated.disk().calls();
        if let Some(call) = fault {
            simulated.disk().plan(Fault { call: before + call, kind: FaultKind::Eio });
        }
        let (mut last, mut bytes) = (None, 0);
        let summary = log.scan(
            |start, end, records| {
                assert!(last.is_none_or(|last| last <= start));
                (last, bytes) = (Some(end), bytes + records.len() as u64);
                Ok::<(), Error>(())
            },
            |_, _| {},
        );
        let calls = simulated.disk().calls() - before;
        simulated.shutdown();
        (summary.map(|summary| (summary, bytes)), calls)
    };
    let (whole, calls) = scan(None);
    let (summary, bytes) = whole.unwrap();
    assert_eq!((summary.end, summary.bytes), (end, bytes));
    let mut unnoticed = 0;
    for call in 0..calls {
        match scan(Some(call)).0 {
            Ok(found) => {
                assert_eq!(found, (summary, bytes), "call {call}");
                unnoticed += 1;
            }
            Err(Error::Io(_)) => {}
            Err(other) => panic!("call {call}: {other}"),
        }
    }
    assert!(unnoticed > 5, "{unnoticed} of {calls} calls were reads ahead");
}

/// Where recovery begins when the newest checkpoint block is damaged.
#[test]
fn a_settled_checkpoint_is_in_both_blocks() {
    let begin = |settled: bool| {
        let (mut machine, log) = Machine::new(9, 8 * MIB);
        machine.load(&log, log.current().plus(MIB as u64), Flush::Sync);
        let since = log.current();
        machine.simulated.run_until_complete(log.move_checkpoint(since)).unwrap();
        if settled {
            let ahead = log.settle_checkpoint(since.plus(1));
            assert!(!machine.simulated.run_until_complete(ahead).unwrap(), "it is not so far");
            assert!(machine.simulated.run_until_complete(log.settle_checkpoint(since)).unwrap());
        }
        drop(log);
        let content = machine.simulated.disk().content(&Machine::path()).unwrap();
        let newest = usize::from(content[4096 + 16] > content[16]);
        machine.simulated.disk().corrupt(&Machine::path(), newest * 4096 + 20, &[0xFF; 4]);
        let log = RedoLog::open(&machine.env, &dir(), machine.options.clone()).unwrap();
        log.scan(|_, _, _| Ok::<(), Error>(()), |_, _| {}).unwrap();
        // A log without anything to recover goes on a little further.
        log.checkpoint_lsn() >= since
    };
    assert!(begin(true));
    assert!(!begin(false), "the older block was not damaged: this test tests nothing");
}

/// The promise of the checkpoint blocks: the log never ends further past the newest of them, whether
/// somebody asks for durability or not; and nobody waits for ever because of it.
#[test]
fn the_log_never_goes_further_than_its_newest_block_says() {
    for how in [Flush::Sync, Flush::Write] {
        let (mut machine, log) = Machine::new(6, 24 * MIB);
        let first = log.current();
        let mut marks = 0;
        let mut flushed = 0;
        while log.current() < first.plus((20 * MIB) as u64) {
            machine.load(&log, log.current().plus(1), how);
            let block = machine.block();
            assert_eq!(block.checkpoint, first.0, "no checkpoint was asked for");
            assert!(log.current().0 <= block.flushed + block.reach && block.reach == 4 << 20);
            marks += u32::from(block.flushed > flushed);
            flushed = block.flushed;
        }
        assert!((5..=20).contains(&marks), "{marks} marks for 20 MiB of log");
        assert_eq!(log.status().checkpoints, 0, "a mark is not a checkpoint");
    }
}

/// The largest mini-transactions fit in between two marks.
#[test]
fn the_largest_mini_transactions_are_admitted() {
    let (machine, log) = Machine::new(7, 24 * MIB);
    let bytes = log.mini_transaction_bytes_max();
    let records = vec![7; bytes];
    for _ in 0..30 {
        // What does not fit waits for the one before to become durable, and for the mark after it.
        machine.simulated.run_until_complete(async {
            loop {
                match log.admit(bytes) {
                    Ok(_admission) => break log.append(&records, |_, _| {}),
                    Err(Interrupt::Wait(wait)) => wait.await,
                    Err(Interrupt::Error(error)) => panic!("{error}"),
                }
            }
        });
    }
    assert!(log.poisoned().is_none() && log.current().0 > (14 * MIB) as u64);
}
