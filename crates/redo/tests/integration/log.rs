//! The log on the real environment: files, rings and threads.

#![allow(clippy::unwrap_used)]

use crate::common::*;
use disk::{Environment, Random, RealEnvironment, RealOptions, block_on};
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use untorn_redo::{Error, Flush, Interrupt, Lsn, Options, RedoLog};

/// A directory of its own that goes away with the test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("untorn-redo-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Place(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn environment() -> Arc<dyn Environment> {
    Arc::new(RealEnvironment::new(RealOptions::default()).unwrap())
}

const LOAD: Load = Load { workers: 8, mini_transactions: 150, size: 3000, acknowledge_at: Flush::Sync };

#[test]
fn laps_with_checkpoints_and_orderly_and_abrupt_restarts() {
    let (env, place) = (environment(), Place::new("laps"));
    let truth = Arc::new(Mutex::new(Truth::default()));
    let mut log = RedoLog::create(&env, &place.0, small()).unwrap();
    for round in 0..4 {
        block_on(run(env.clone(), log.clone(), truth.clone(), LOAD, round));
        let status = log.status();
        assert_eq!(log.poisoned().map(|error| error.to_string()), None);
        assert!(status.current.0 > (round + 1) * (256 << 10), "several laps: {status:?}");
        assert!(status.groups_written < status.appends && status.checkpoints > 0, "{status:?}");
        if round % 2 == 0 {
            // Everything appended is written, so a process that ends now loses nothing.
            block_on(flush(&log, log.current(), Flush::Write)).unwrap();
        } else {
            block_on(log.move_checkpoint(log.current())).unwrap();
            block_on(log.close()).unwrap();
        }
        drop(log);
        let mut truth = truth.lock();
        let appended = truth.appended.len();
        log = recover(&env, &place.0, small(), &mut truth).unwrap();
        assert_eq!(truth.appended.len(), appended);
    }
}

#[test]
fn threads_that_block_share_groups() {
    let (env, place) = (environment(), Place::new("threads"));
    let options = Options { capacity: 8 << 20, ..small() };
    let log = RedoLog::create(&env, &place.0, options.clone()).unwrap();
    let truth = Arc::new(Mutex::new(Truth::default()));
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (log, truth) = (&log, &truth);
            scope.spawn(move || {
                let mut random = Random::new(seed);
                for _ in 0..100 {
                    let end = block_on(append(log, truth, 300, &mut random)).unwrap();
                    log.flush_blocking(end, Flush::Sync).unwrap();
                    assert!(log.flushed() >= end);
                    let mut truth = truth.lock();
                    truth.acknowledged = truth.acknowledged.max(end);
                }
            });
        }
    });
    drop(log);
    recover(&env, &place.0, options, &mut truth.lock()).unwrap();
}

#[test]
fn a_mini_transaction_larger_than_a_group_is_one_group_and_one_larger_than_the_log_is_refused() {
    let (env, place) = (environment(), Place::new("large"));
    let log = RedoLog::create(&env, &place.0, small()).unwrap();
    let truth = Mutex::new(Truth::default());
    let mut random = Random::new(1);
    let most = log.mini_transaction_bytes_max();
    assert!(most > 30_000, "{most}");
    for _ in 0..3 {
        block_on(append(&log, &truth, 100, &mut random)).unwrap();
        let serial = truth.lock().appended.len() as u64;
        let bytes: Vec<u8> = std::iter::repeat_with(|| records(serial, 20_000, &mut random))
            .find(|bytes| bytes.len() > 17_000)
            .unwrap();
        let _admission = log.admit(bytes.len()).unwrap();
        log.append(&bytes, |start, end| {
            truth.lock().appended.push(Appended { start, end, records: bytes.clone() })
        });
    }
    assert!(matches!(log.admit(10 << 20), Err(Interrupt::Error(Error::TooLarge { .. }))));
    block_on(flush(&log, log.current(), Flush::Sync)).unwrap();
    drop(log);
    let mut truth = truth.into_inner();
    recover(&env, &place.0, small(), &mut truth).unwrap();
    assert_eq!(truth.appended.len(), 6);
}

#[test]
fn a_larger_capacity_is_used_at_once_and_a_smaller_one_after_an_orderly_shutdown() {
    let (env, place) = (environment(), Place::new("resize"));
    let truth = Arc::new(Mutex::new(Truth::default()));
    let log = RedoLog::create(&env, &place.0, small()).unwrap();
    block_on(run(env.clone(), log.clone(), truth.clone(), LOAD, 1));
    block_on(flush(&log, log.current(), Flush::Sync)).unwrap();
    let before = log.capacity();
    drop(log);
    let larger = Options { capacity: 2 << 20, ..small() };
    let length = || std::fs::metadata(place.0.join("#untorn_redo")).unwrap().len();

    let log = recover(&env, &place.0, larger.clone(), &mut truth.lock()).unwrap();
    assert!(log.capacity() > 6 * before);
    block_on(with_a_lazy_cleaner(&log, &truth, 1 << 20));
    assert!(length() >= 1 << 20, "the circle grew");
    drop(log);

    let log = recover(&env, &place.0, small(), &mut truth.lock()).unwrap();
    assert!(log.capacity() > 2 * before, "it was not closed cleanly");
    block_on(run(env.clone(), log.clone(), truth.clone(), LOAD, 2));
    block_on(log.move_checkpoint(log.current())).unwrap();
    block_on(log.close()).unwrap();
    let end = log.current();
    drop(log);

    let log = recover(&env, &place.0, small(), &mut truth.lock()).unwrap();
    assert_eq!((log.capacity(), length()), (before, 256 << 10));
    assert!(log.current() >= end);
    block_on(run(env.clone(), log.clone(), truth.clone(), LOAD, 3));
    block_on(flush(&log, log.current(), Flush::Sync)).unwrap();
    drop(log);
    recover(&env, &place.0, small(), &mut truth.lock()).unwrap();
}

/// Appends and makes durable this many bytes. There is a checkpoint only where the log has gone round and
/// asks for one, because its circle cannot grow before.
async fn with_a_lazy_cleaner(log: &RedoLog, truth: &Mutex<Truth>, bytes: u64) {
    let (mut random, start) = (Random::new(21), log.current());
    while log.current().since(start) < bytes {
        if log.age_goal().is_some() && log.space_wanted().is_set() {
            log.move_checkpoint(log.current()).await.unwrap();
        }
        let end = append(log, truth, 3000, &mut random).await.unwrap();
        flush(log, end, Flush::Sync).await.unwrap();
        let mut truth = truth.lock();
        truth.acknowledged = truth.acknowledged.max(end);
    }
}

#[test]
fn the_file_is_as_large_as_the_age_of_the_checkpoint_asks_for() {
    let (env, place) = (environment(), Place::new("grow"));
    let truth = Mutex::new(Truth::default());
    let options = Options { capacity: 8 << 20, ..growing() };
    let length = || std::fs::metadata(place.0.join("#untorn_redo")).unwrap().len();
    let mut log = RedoLog::create(&env, &place.0, options.clone()).unwrap();
    let first = length();
    assert!(first < 140 << 10, "{first}");
    // The checkpoint keeps up: many laps of the circle there is.
    for _ in 0..100 {
        block_on(with_a_lazy_cleaner(&log, &truth, 20 << 10));
        block_on(log.move_checkpoint(log.current())).unwrap();
    }
    assert_eq!(length(), first);
    // It stays where it is: four times as large, and what is in it is found.
    block_on(with_a_lazy_cleaner(&log, &truth, 400 << 10));
    let grown = length();
    assert!(grown > 500 << 10 && grown < 1200 << 10, "{grown}");
    drop(log);
    log = recover(&env, &place.0, options.clone(), &mut truth.lock()).unwrap();
    assert_eq!(length(), grown);
    // Up to the capacity, and no further.
    block_on(with_a_lazy_cleaner(&log, &truth, 5 << 20));
    assert_eq!(length(), 8 << 20);
    block_on(log.move_checkpoint(log.current())).unwrap();
    block_on(log.close()).unwrap();
    // What was in use has room at once after the next start.
    assert_eq!(length(), 8 << 20);
    drop(log);
    log = recover(&env, &place.0, options.clone(), &mut truth.lock()).unwrap();
    assert_eq!(length(), 8 << 20);
    block_on(with_a_lazy_cleaner(&log, &truth, 300 << 10));
    block_on(log.move_checkpoint(log.current())).unwrap();
    block_on(log.close()).unwrap();
    // It was hardly in use: a sixteenth is kept.
    assert_eq!(length(), (512 << 10) + 8192);
    drop(log);
    log = recover(&env, &place.0, options, &mut truth.lock()).unwrap();
    assert_eq!(length(), (512 << 10) + 8192);
    block_on(with_a_lazy_cleaner(&log, &truth, 1 << 20));
}

/// Its file was written up to where the log was; the circle is that of the full capacity.
#[test]
fn a_log_of_an_earlier_program_in_its_first_lap_is_opened_and_grows() {
    let (env, place) = (environment(), Place::new("earlier"));
    let path = place.0.join("#untorn_redo");
    let truth = Mutex::new(Truth::default());
    let options = Options { capacity: 4 << 20, ..small() };
    let log = RedoLog::create(&env, &place.0, Options { first_size: 4 << 20, ..options.clone() }).unwrap();
    block_on(with_a_lazy_cleaner(&log, &truth, 700 << 10));
    drop(log);
    std::fs::File::options().write(true).open(&path).unwrap().set_len(1 << 20).unwrap();
    let log = recover(&env, &place.0, options.clone(), &mut truth.lock()).unwrap();
    block_on(with_a_lazy_cleaner(&log, &truth, 2 << 20));
    drop(log);
    let found = recover(&env, &place.0, options, &mut truth.lock()).unwrap();
    assert!(found.age() > 2600 << 10, "{}", found.age());
}

/// The last checkpoint is where the last mini-transaction ends; the group it is in is padded when it is
/// written.
#[test]
fn a_checkpoint_at_the_last_mini_transaction_closes_the_log() {
    let (env, place) = (environment(), Place::new("close"));
    let truth = Mutex::new(Truth::default());
    let mut random = Random::new(5);
    for (round, capacity) in [512 << 10, 256 << 10, 1 << 20].into_iter().enumerate() {
        let options = Options { capacity, ..small() };
        let log = match round {
            0 => RedoLog::create(&env, &place.0, options).unwrap(),
            _ => recover(&env, &place.0, options, &mut truth.lock()).unwrap(),
        };
        let fresh = Place::new("close-fresh");
        let wanted = RedoLog::create(&env, &fresh.0, Options { capacity, ..small() }).unwrap().capacity();
        assert_eq!(log.capacity(), wanted, "round {round}");
        for _ in 0..3 {
            let end = block_on(append(&log, &truth, 300, &mut random)).unwrap();
            block_on(log.move_checkpoint(end)).unwrap();
        }
        block_on(log.close()).unwrap();
    }
}

#[test]
fn after_closing_nothing_is_admitted_and_what_was_admitted_before_is_kept() {
    let (env, place) = (environment(), Place::new("late"));
    let log = RedoLog::create(&env, &place.0, small()).unwrap();
    let truth = Mutex::new(Truth::default());
    let mut random = Random::new(6);
    let end = block_on(append(&log, &truth, 300, &mut random)).unwrap();
    block_on(log.move_checkpoint(end)).unwrap();
    let admission = log.admit(100).unwrap();
    let bytes = records(77, 20, &mut random);
    std::thread::scope(|scope| {
        let closing = scope.spawn(|| block_on(log.close()));
        let refused = loop {
            match log.admit(100) {
                Ok(admission) => drop(admission),
                Err(Interrupt::Wait(wait)) => block_on(wait),
                Err(Interrupt::Error(error)) => break error,
            }
        };
        assert!(matches!(refused, Error::Closed), "{refused}");
        assert!(!closing.is_finished(), "somebody is admitted");
        log.append(&bytes, |start, end| {
            truth.lock().appended.push(Appended { start, end, records: bytes.clone() });
        });
        drop(admission);
        closing.join().unwrap().unwrap();
    });
    assert_eq!(log.flushed(), log.current());
    assert!(matches!(log.admit(100), Err(Interrupt::Error(Error::Closed))));
    block_on(log.close()).unwrap();
    drop(log);
    let mut truth = truth.into_inner();
    recover(&env, &place.0, small(), &mut truth).unwrap();
    assert_eq!(truth.appended.last().map(|last| last.records.clone()), Some(bytes));
}

#[test]
fn refuses_to_create_over_a_log_and_to_open_a_newer_or_foreign_one() {
    let (env, place) = (environment(), Place::new("refuse"));
    drop(RedoLog::create(&env, &place.0, small()).unwrap());
    let again = RedoLog::create(&env, &place.0, small()).err().unwrap().to_string();
    assert!(again.contains("already exists"), "{again}");
    let path = place.0.join("#untorn_redo");
    let original = std::fs::read(&path).unwrap();

    // A newer version: the field at 12, with a good checksum. Block of sequence 1 is the second one.
    let mut newer = original.clone();
    newer[4096 + 12] = 2;
    let crc = crc32c::crc32c(&newer[4096 + 12..4096 + 96]);
    newer[4096 + 8..4096 + 12].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(&path, &newer).unwrap();
    let error = RedoLog::open(&env, &place.0, small()).err().unwrap().to_string();
    assert!(error.contains("format version 2") && error.contains("#untorn_redo"), "{error}");

    let mut foreign = original.clone();
    foreign[4096..4100].fill(0);
    std::fs::write(&path, &foreign).unwrap();
    let error = RedoLog::open(&env, &place.0, small()).err().unwrap().to_string();
    assert!(error.contains("neither of its two checkpoint blocks"), "{error}");
    std::fs::write(&path, &original[..5000]).unwrap();
    assert!(RedoLog::open(&env, &place.0, small()).is_err());
}

/// Groups synced one by one, as (offset in file, bytes) of the log's area.
fn synced_groups(env: &Arc<dyn Environment>, place: &Place, count: usize) -> Vec<Lsn> {
    let log = RedoLog::create(env, &place.0, small()).unwrap();
    let truth = Mutex::new(Truth::default());
    let mut random = Random::new(3);
    let starts = (0..count).map(|_| {
        let start = log.current();
        let end = block_on(append(&log, &truth, 300, &mut random)).unwrap();
        block_on(flush(&log, end, Flush::Sync)).unwrap();
        start
    });
    starts.collect()
}

#[test]
fn damage_in_the_middle_is_refused_and_the_cut_off_last_group_is_an_end() {
    let (env, place) = (environment(), Place::new("damage"));
    let starts = synced_groups(&env, &place, 10);
    let path = place.0.join("#untorn_redo");
    let original = std::fs::read(&path).unwrap();
    // In the first lap the LSN is the place in the file. Header, body and a whole block.
    for (at, length) in [(0, 1), (30, 2), (40, 1), (0, 512)] {
        for group in [0, 4, 8] {
            let mut damaged = original.clone();
            let place_of = starts[group].0 as usize + at;
            damaged[place_of..place_of + length].iter_mut().for_each(|byte| *byte ^= 0x55);
            std::fs::write(&path, &damaged).unwrap();
            let log = RedoLog::open(&env, &place.0, small()).unwrap();
            let error = log.scan(|_, _, _| Ok::<(), Error>(()), |_, _| {}).unwrap_err();
            let Error::Damaged { lsn, offset, .. } = &error else { panic!("{error}") };
            assert_eq!((*lsn, *offset), (starts[group], starts[group].0));
            assert!(error.to_string().contains("#untorn_redo"), "{error}");
        }
        let mut cut_off = original.clone();
        let place_of = starts[9].0 as usize + at;
        cut_off[place_of..place_of + length].iter_mut().for_each(|byte| *byte ^= 0x55);
        std::fs::write(&path, &cut_off).unwrap();
        let log = RedoLog::open(&env, &place.0, small()).unwrap();
        let summary = log.scan(|_, _, _| Ok::<(), Error>(()), |_, _| {}).unwrap();
        assert_eq!((summary.end, summary.mini_transactions), (starts[9], 9));
    }
}

#[test]
fn the_background_sync_makes_durable_what_nobody_waits_for() {
    let (env, place) = (environment(), Place::new("background"));
    let options = Options { background_sync: std::time::Duration::from_millis(5), ..small() };
    let log = RedoLog::create(&env, &place.0, options).unwrap();
    let truth = Mutex::new(Truth::default());
    let end = block_on(append(&log, &truth, 300, &mut Random::new(9))).unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while log.flushed() < end {
        assert!(std::time::Instant::now() < deadline, "never synced");
        std::thread::yield_now();
    }
}

#[test]
fn scan_may_be_repeated_and_reports_progress() {
    let (env, place) = (environment(), Place::new("repeat"));
    synced_groups(&env, &place, 20);
    let log = RedoLog::open(&env, &place.0, small()).unwrap();
    let mut progress = Vec::new();
    let first = log.scan(|_, _, _| Ok::<(), Error>(()), |done, all| progress.push((done, all))).unwrap();
    let mut seen = Vec::new();
    let note = |start, end, records: &[u8]| {
        seen.push((start, end, records.to_vec()));
        Ok::<(), Error>(())
    };
    let second = log.scan(note, |_, _| {}).unwrap();
    assert_eq!(first, second);
    assert_eq!(first.mini_transactions, 20);
    assert_eq!(seen.len(), 20);
    // And from any mini-transaction on.
    for from in 0..seen.len() {
        let mut again = Vec::new();
        log.scan_again(
            seen[from].0,
            |start, end, records| {
                again.push((start, end, records.to_vec()));
                Ok::<(), Error>(())
            },
            |_, _| {},
        )
        .unwrap();
        assert!(again == seen[from..], "from {from} on: {} of {}", again.len(), seen.len() - from);
    }
    assert!(progress.is_sorted() && progress.iter().all(|(done, all)| done <= all), "{progress:?}");
}
