//! Crashes on the simulated machine: whatever a power cut leaves of unsynced writes, what was acknowledged is
//! there, nothing is half there, and nothing of a dropped past comes back.

#![allow(clippy::unwrap_used)]

use crate::common::*;
use disk::{Environment, Event, Fault, FaultKind, Random, SimulatedEnvironment, SimulatedStorage};
use parking_lot::Mutex;
use std::sync::Arc;
use untorn_redo::{Error, Flush, Options, RedoLog};

/// One life of a log: opened (or created), loaded until the end or the planned fault, crashed.
struct Life {
    seed: u64,
    load: Load,
    options: Options,
    /// Fault after this many calls from the opening on.
    fault: Option<(u64, FaultKind)>,
    /// Ends with an orderly shutdown if nothing goes wrong.
    close: bool,
    /// Its capacity is changed all the time.
    resizes: bool,
}

/// What is left after a life: the disk after the power cut, and the number of calls it made.
struct Left {
    disk: Arc<SimulatedStorage>,
    calls: u64,
    poisoned: bool,
}

fn environment(
    seed: u64,
    disk: Option<Arc<SimulatedStorage>>,
) -> (Arc<SimulatedEnvironment>, Arc<dyn Environment>) {
    let env = match disk {
        Some(disk) => SimulatedEnvironment::with_storage(seed, disk),
        None => SimulatedEnvironment::new(seed),
    };
    (env.clone(), env)
}

/// Creates a log and returns the disk with it.
fn created(options: &Options) -> Arc<SimulatedStorage> {
    let (simulated, env) = environment(0, None);
    env.storage().create_dir_all(&dir()).unwrap();
    env.storage().sync_dir(std::path::Path::new("/")).unwrap();
    drop(RedoLog::create(&env, &dir(), options.clone()).unwrap());
    simulated.shutdown();
    simulated.disk().crash(0)
}

fn live(disk: Arc<SimulatedStorage>, truth: &mut Truth, life: &Life) -> Result<Left, String> {
    let (simulated, env) = environment(life.seed, Some(disk));
    let before = simulated.disk().calls();
    if let Some((call, kind)) = life.fault {
        simulated.disk().plan(Fault { call: before + call, kind });
    }
    let log = match recover(&env, &dir(), life.options.clone(), truth) {
        Ok(log) => Some(log),
        // The fault hit the opening.
        Err(error) if life.fault.is_some() && (error.contains("cannot") || error.contains("stopped")) => None,
        Err(error) => return Err(error),
    };
    let mut poisoned = false;
    if let Some(log) = log {
        let shared = Arc::new(Mutex::new(std::mem::take(truth)));
        let stop = Event::new();
        if life.resizes {
            let random = Random::new(life.seed);
            let changes = change_capacity(env.clone(), log.clone(), stop.clone(), random);
            env.spawn("changes the capacity", Box::pin(changes));
        }
        simulated.run_until_complete(run(env.clone(), log.clone(), shared.clone(), life.load, life.seed));
        if life.close {
            simulated.run_until_complete(async {
                if log.move_checkpoint(log.current()).await.is_ok() {
                    shared.lock().checkpoint = log.checkpoint_lsn();
                    let _ = log.close().await;
                }
            });
        }
        stop.set();
        poisoned = log.poisoned().is_some();
        *truth = shared.lock().clone();
        if poisoned && life.fault.is_none() {
            return Err(format!("poisoned without a fault: {:?}", log.poisoned()));
        }
    }
    let calls = simulated.disk().calls() - before;
    let disk = simulated.disk().crash(life.seed ^ 0xDEAD);
    simulated.shutdown();
    Ok(Left { disk, calls, poisoned })
}

const LOAD: Load = Load { workers: 6, mini_transactions: 12, size: 2500, acknowledge_at: Flush::Sync };

fn life(seed: u64) -> Life {
    Life { seed, load: LOAD, options: small(), fault: None, close: false, resizes: false }
}

/// Many lives in a row on one disk, each cut off somewhere, some in the middle of recovery.
#[test]
fn life_after_life_nothing_acknowledged_is_lost() {
    let (laps, poisonings) = lives(&small(), false);
    assert!(laps > seeds() / 2, "the circle was gone around, {laps} laps");
    assert!(poisonings > seeds(), "the power was cut, {poisonings} times");
}

/// The same with a circle that begins small.
#[test]
fn life_after_life_nothing_is_lost_by_growing() {
    lives(&growing(), false);
}

/// The same while the capacity changes both ways, and each life begins with another one.
#[test]
fn life_after_life_nothing_is_lost_by_changes_of_the_capacity() {
    lives(&resizing(), true);
}

/// All steps of growing and of becoming smaller are among these calls.
#[test]
fn a_crash_at_every_call_while_the_capacity_changes_is_recovered() {
    let load = Load { workers: 3, mini_transactions: 24, size: 12_000, ..LOAD };
    crash_at_every_call(&resizing(), load, true);
}

/// Steps as short as the lives.
fn resizing() -> Options {
    Options { resize_step: std::time::Duration::from_micros(30), ..growing() }
}

fn seeds() -> u64 {
    std::env::var("UNTORN_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(60)
}

/// Returns how often the log went over 256 KiB, and how often it was stopped by a fault.
fn lives(options: &Options, resizes: bool) -> (u64, u64) {
    let (mut laps, mut poisonings) = (0, 0);
    for seed in 0..seeds() {
        let mut random = Random::new(seed);
        let mut truth = Truth::default();
        let mut disk = created(options);
        for number in 0..8 {
            let fault = (!random.one_in(4)).then(|| (random.below(120) as u64, FaultKind::PowerLoss));
            let mut options = options.clone();
            if resizes {
                options.capacity = CAPACITIES[random.below(CAPACITIES.len())];
            }
            let close = random.one_in(3);
            let life = Life { fault, options, close, resizes, ..life(random.next_u64()) };
            let left = live(disk, &mut truth, &life)
                .unwrap_or_else(|error| panic!("seed {seed}, life {number}: {error}"));
            disk = left.disk;
            poisonings += u64::from(left.poisoned);
        }
        laps += truth.appended.last().map_or(0, |last| last.end.0 / (256 << 10));
    }
    (laps, poisonings)
}

/// Every call of one short life is the one at which the power goes, and what the cut leaves is tried in
/// several ways.
#[test]
fn a_crash_at_every_call_is_recovered() {
    crash_at_every_call(&small(), Load { workers: 3, mini_transactions: 8, ..LOAD }, false);
}

/// The load has the circle grow more than once, so these calls are the steps of growing, too.
#[test]
fn a_crash_at_every_call_while_the_circle_grows_is_recovered() {
    let load = Load { workers: 3, mini_transactions: 24, size: 12_000, ..LOAD };
    let left = crash_at_every_call(&growing(), load, false);
    let length = left.content(&dir().join("#untorn_redo")).map_or(0, |content| content.len());
    assert!(length > 300 << 10, "{length}");
}

/// Returns the disk of a life without a crash.
fn crash_at_every_call(options: &Options, load: Load, resizes: bool) -> Arc<SimulatedStorage> {
    let life = |seed, fault| Life { load, fault, resizes, options: options.clone(), ..life(seed) };
    let start = created(options);
    let whole = live(start.crash(1), &mut Truth::default(), &life(7, None)).unwrap();
    assert!(whole.calls > 15, "{}", whole.calls);
    for call in 0..whole.calls {
        for cut in 0..6 {
            let mut truth = Truth::default();
            let left =
                live(start.crash(1), &mut truth, &life(7, Some((call, FaultKind::PowerLoss)))).unwrap();
            // The second life begins with the recovery, is itself cut off, and the third sees what is left.
            let second = life(cut, Some((8 + cut, FaultKind::PowerLoss)));
            let left = live(left.disk.crash(cut), &mut truth, &second)
                .unwrap_or_else(|error| panic!("call {call}, cut {cut}: {error}"));
            live(left.disk, &mut truth, &life(cut, None))
                .unwrap_or_else(|error| panic!("call {call}, cut {cut}, third life: {error}"));
        }
    }
    whole.disk
}

/// A file that cannot grow is gone round in, and nobody waits for ever.
#[test]
fn on_a_full_disk_the_log_goes_round_in_the_circle_it_has_and_grows_when_there_is_room() {
    let disk = created(&growing());
    let (simulated, env) = environment(3, Some(disk));
    let log = recover(&env, &dir(), growing(), &mut Truth::default()).unwrap();
    let length = || simulated.disk().content(&dir().join("#untorn_redo")).map_or(0, |content| content.len());
    let first = length();
    let truth = Arc::new(Mutex::new(Truth::default()));
    let load = Load { workers: 3, mini_transactions: 80, size: 3000, acknowledge_at: Flush::Sync };
    simulated.disk().fill_up(true);
    simulated.run_until_complete(run(env.clone(), log.clone(), truth.clone(), load, 1));
    assert_eq!(log.poisoned().map(|error| error.to_string()), None);
    assert_eq!(length(), first);
    assert!(log.current().0 > 2 * first as u64, "several laps");
    simulated.disk().fill_up(false);
    simulated.advance(std::time::Duration::from_secs(2));
    let load = Load { size: 20_000, ..load };
    simulated.run_until_complete(run(env.clone(), log.clone(), truth.clone(), load, 2));
    assert!(length() > first);
    simulated.shutdown();
    let mut truth = truth.lock().clone();
    let (simulated, env) = environment(4, Some(simulated.disk().crash(1)));
    recover(&env, &dir(), growing(), &mut truth).unwrap();
    simulated.shutdown();
}

/// The same with failing calls instead of a power cut: the log stops at the first, and never acknowledges
/// after it.
#[test]
fn a_failing_call_stops_the_log_for_good() {
    let options = small();
    let load = Load { workers: 3, mini_transactions: 6, ..LOAD };
    let start = created(&options);
    let calls = live(start.crash(1), &mut Truth::default(), &Life { load, ..life(7) }).unwrap().calls;
    let mut stopped = 0;
    for call in 0..calls {
        for kind in [FaultKind::Eio, FaultKind::Enospc] {
            let mut truth = Truth::default();
            let left = live(start.crash(1), &mut truth, &Life { load, fault: Some((call, kind)), ..life(7) })
                .unwrap();
            stopped += u64::from(left.poisoned);
            live(left.disk, &mut truth, &Life { load, ..life(call) })
                .unwrap_or_else(|error| panic!("{kind:?} at call {call}: {error}"));
        }
    }
    assert!(stopped > calls, "{stopped} of {calls}");
}

#[test]
fn after_an_error_every_caller_gets_it_and_the_disk_is_left_alone() {
    let disk = created(&small());
    let (simulated, env) = environment(1, Some(disk));
    let log = recover(&env, &dir(), small(), &mut Truth::default()).unwrap();
    let truth = Mutex::new(Truth::default());
    let mut random = Random::new(1);
    simulated.disk().plan(Fault { call: simulated.disk().calls(), kind: FaultKind::Eio });
    let end = simulated.run_until_complete(append(&log, &truth, 300, &mut random)).unwrap();
    let error = simulated.run_until_complete(flush(&log, end, Flush::Sync)).unwrap_err();
    assert!(matches!(&error, Error::Poisoned { reason } if reason.contains("#untorn_redo")), "{error}");
    let calls = simulated.disk().calls();
    assert!(log.admit(100).is_err());
    assert!(simulated.run_until_complete(flush(&log, end, Flush::Write)).is_err());
    assert!(log.flush_blocking(end, Flush::Sync).is_err());
    assert!(simulated.run_until_complete(log.move_checkpoint(end)).is_err());
    assert!(simulated.run_until_complete(log.close()).is_err());
    simulated.advance(std::time::Duration::from_secs(5));
    assert_eq!(simulated.disk().calls(), calls, "a stopped log does not touch the disk");
    assert!(log.flushed() < end);
}

/// The checker can see a loss: a caller that takes "written" for durable loses acknowledged work in some of
/// these cuts.
#[test]
fn negative_control_taking_written_for_durable_is_detected() {
    let load = Load { acknowledge_at: Flush::Write, ..LOAD };
    let detected = (0..40).filter(|seed| {
        let mut truth = Truth::default();
        let fault = Some((20 + seed % 7, FaultKind::PowerLoss));
        let left = live(created(&small()), &mut truth, &Life { load, fault, ..life(*seed) }).unwrap();
        live(left.disk, &mut truth, &life(1)).is_err()
    });
    let detected = detected.count();
    assert!(detected > 5, "{detected} of 40");
}

/// Followers ride along: with everybody waiting for durability there are far fewer syncs than commits.
#[test]
fn many_committers_share_a_sync() {
    let disk = created(&Options { capacity: 8 << 20, ..small() });
    let (simulated, env) = environment(5, Some(disk));
    let log = recover(&env, &dir(), small(), &mut Truth::default()).unwrap();
    let before = log.status();
    let load = Load { workers: 64, mini_transactions: 10, size: 300, acknowledge_at: Flush::Sync };
    let truth = Arc::new(Mutex::new(Truth::default()));
    simulated.run_until_complete(run(env.clone(), log.clone(), truth.clone(), load, 5));
    let after = log.status();
    let (appends, syncs) = (after.appends - before.appends, after.syncs - before.syncs);
    assert_eq!(appends, 640);
    assert!(syncs * 8 < appends, "{syncs} syncs for {appends} mini-transactions");
    assert!(truth.lock().acknowledged <= log.flushed());
}

/// A group dropped by one recovery is whole on the disk and has the right LSN, and the log grows exactly up
/// to it: it must not come back. Built by hand, because chance rarely finds it.
#[test]
fn a_dropped_group_does_not_come_back_behind_one_of_the_same_length() {
    for checkpoint_between in [false, true] {
        let disk = created(&small());
        let path = dir().join("#untorn_redo");
        let mut random = Random::new(2);
        let mut truth = Truth::default();
        // Two groups in one opening; then the first is torn, as if both had been under way when the power
        // went.
        let (simulated, env) = environment(1, Some(disk));
        let log = recover(&env, &dir(), small(), &mut truth).unwrap();
        let first = log.current();
        for _ in 0..2 {
            let bytes = records(9, 1, &mut random);
            let end = log.append(&bytes, |_, _| {});
            // Not synced: the second group does not prove the first.
            simulated.run_until_complete(flush(&log, end, Flush::Write)).unwrap();
        }
        log.flush_blocking(log.current(), Flush::Sync).unwrap();
        assert!(simulated.disk().corrupt(&path, first.0 as usize + 40, &[0x55]));
        simulated.shutdown();
        // The next opening drops both and writes one group of the same length.
        let (simulated, env) = environment(2, Some(simulated.disk().crash(1)));
        let log = recover(&env, &dir(), small(), &mut truth).unwrap();
        assert_eq!(log.current(), first);
        let shared = Mutex::new(truth);
        let bytes = records(10, 1, &mut random);
        let end = log.append(&bytes, |start, end| {
            shared.lock().appended.push(Appended { start, end, records: bytes.clone() });
        });
        simulated.run_until_complete(flush(&log, end, Flush::Sync)).unwrap();
        let mut truth = shared.into_inner();
        truth.acknowledged = end;
        if checkpoint_between {
            // Recovery will start exactly where the dropped group lies.
            simulated.run_until_complete(log.move_checkpoint(log.current())).unwrap();
        }
        simulated.shutdown();
        let (simulated, env) = environment(3, Some(simulated.disk().crash(1)));
        recover(&env, &dir(), small(), &mut truth)
            .unwrap_or_else(|error| panic!("checkpoint {checkpoint_between}: {error}"));
        assert_eq!(truth.appended.len(), 1);
        simulated.shutdown();
    }
}

/// A damaged newer checkpoint block leads back to the older one, whose log was overwritten since: refused,
/// not "empty".
#[test]
fn a_damaged_checkpoint_block_does_not_make_the_log_look_empty() {
    let mut truth = Truth::default();
    let load = Load { workers: 4, mini_transactions: 100, ..LOAD };
    let left = live(created(&small()), &mut truth, &Life { load, ..life(3) }).unwrap();
    let path = dir().join("#untorn_redo");
    let content = left.disk.content(&path).unwrap();
    let sequence = |slot: usize| content[slot * 4096 + 16];
    let newest = usize::from(sequence(1) > sequence(0));
    let older = left.disk.crash(1);
    assert!(older.corrupt(&path, newest * 4096 + 50, &[0xff; 8]));
    let (simulated, env) = environment(1, Some(older));
    let error = recover(&env, &dir(), small(), &mut truth.clone()).err().unwrap();
    // Either the older block still reaches everything, in which case recovery is complete, or it is refused.
    assert!(error.contains("damaged") || error.contains("checkpoint"), "{error}");
    simulated.shutdown();
}

/// The cleaner of an engine that is just opening may ask for a checkpoint at what looks like the log's end.
/// What is before it has not been recovered yet, so the checkpoint must stay, on the disk, too.
#[test]
fn a_checkpoint_asked_for_before_the_scan_does_not_move() {
    let disk = created(&small());
    let mut truth = Truth::default();
    let left =
        live(disk, &mut truth, &Life { load: Load { mini_transactions: 3, ..LOAD }, ..life(4) }).unwrap();
    // Opened and scanned once, so that the checkpoint block knows of an end past the checkpoint.
    let (simulated, env) = environment(1, Some(left.disk));
    let before = recover(&env, &dir(), small(), &mut truth).unwrap().checkpoint_lsn();
    let log = RedoLog::open(&env, &dir(), small()).unwrap();
    assert!(log.needs_scan() && log.current() > log.checkpoint_lsn());
    simulated.run_until_complete(log.move_checkpoint(log.current())).unwrap();
    drop(log);
    simulated.shutdown();
    let (simulated, env) = environment(2, Some(simulated.disk().crash(1)));
    let log = recover(&env, &dir(), small(), &mut truth).unwrap();
    assert!(!log.needs_scan());
    assert_eq!(log.checkpoint_lsn(), before);
    simulated.shutdown();
}
