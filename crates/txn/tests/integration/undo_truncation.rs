//! The undo tablespace gives room back: while clients work, whatever fails, and over crashes at any moment of
//! it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::*;
use disk::{Crash, Environment, Fault, FaultKind, Moment, Random};
use pagestore::{PageSize, fsp};
use std::sync::Arc;
use untorn_txn::*;

/// Rows, each so long that a page of undo holds two of their old versions.
const ROWS: i32 = 40;
const LENGTH: usize = 1500;
const MIB: u64 = 1 << 20;

/// Rows, and a limit that is soon reached.
fn world(seed: u64, pool_bytes: usize, background_purge: bool) -> World {
    let world = World::with(seed, pool_bytes, PageSize::new(4096).unwrap(), background_purge);
    world.system.set_max_undo_log_size(2 * MIB);
    let mut session = world.session();
    world.run(async {
        session.begin();
        for id in 0..ROWS {
            session.insert_all(id, id, None, Some(&[1; LENGTH])).await.unwrap();
        }
        session.commit().await;
    });
    world
}

/// Changes all rows `rounds` times, in the transaction that is open.
async fn change_all(session: &mut Session, rounds: u8) {
    for round in 0..rounds {
        for id in 0..ROWS {
            session.set_v(id, Some(&[round; LENGTH])).await.unwrap();
        }
    }
}

async fn change_all_and_commit(session: &mut Session, rounds: u8) {
    session.begin();
    change_all(session, rounds).await;
    session.commit().await;
}

/// What purge, the page cleaner and time do together in the end.
async fn purge_and_write(world: &World) {
    for _ in 0..3 {
        world.system.purge_all().await.unwrap();
        world.store.checkpoint().await.unwrap();
    }
    world.system.purge_all().await.unwrap();
}

/// The structure of the undo tablespace is sound.
fn check_undo(world: &World) {
    let report = world.run(again(|| fsp::check(&world.store, UNDO_SPACE)));
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    // Longer than is known only while it grows.
    assert!(world.undo_bytes() >= u64::from(report.file_pages) * 4096);
    // All that slots have, and the directory.
    let usage: u64 = report.segments.iter().map(|segment| segment.usage.used).sum();
    assert_eq!(usage, world.system.status().undo_pages + 1);
}

#[test]
fn what_a_large_transaction_needed_is_given_back_while_others_work() {
    let world = world(600, 8 << 20, false);
    let (mut large, mut open, mut busy) = (world.session(), world.session(), world.session());
    world.run(async {
        large.begin();
        change_all(&mut large, 20).await;
        // Changed something when the file was large already, and stays.
        open.begin();
        open.insert_all(1000, 1000, None, Some(&[3; LENGTH])).await.unwrap();
        change_all(&mut large, 30).await;
        large.commit().await;
    });
    let largest = world.undo_bytes();
    assert!(largest > 5 * MIB, "{largest}");
    world.run(async {
        purge_and_write(&world).await;
        // With the open transaction's page not all can go.
        let left = world.undo_bytes();
        assert!(left < largest && left > 2 * MIB, "{left} bytes of {largest}");
        for id in 2000..2100 {
            busy.begin();
            busy.insert_all(id, id, None, None).await.unwrap();
            busy.set_v(id, Some(&[4; LENGTH])).await.unwrap();
            busy.commit().await;
        }
        open.insert_all(1001, 1001, None, None).await.unwrap();
        open.commit().await;
        purge_and_write(&world).await;
    });
    let status = world.system.status();
    assert!(world.undo_bytes() <= 4 * MIB, "{} bytes are left of {largest}", world.undo_bytes());
    assert!(status.undo_truncations >= 2);
    check_undo(&world);
    // It goes on from there, and grows again.
    world.run(async {
        change_all_and_commit(&mut large, 60).await;
        assert!(world.undo_bytes() > 5 * MIB);
        purge_and_write(&world).await;
    });
    assert!(world.undo_bytes() <= 4 * MIB);
    let given_back = world.system.status().undo_truncated_bytes;
    assert!(given_back > largest, "{given_back}");
    check_undo(&world);
    world.check();
}

/// By itself, in the background, with the page cleaner at its own pace; and the file system's end of a cut is
/// waited for by a growth.
#[test]
fn the_background_truncates_without_being_asked() {
    let world = world(601, 8 << 20, true);
    let mut session = world.session();
    world.run(change_all_and_commit(&mut session, 50));
    let largest = world.undo_bytes();
    for _ in 0..600 {
        after(&world, std::time::Duration::from_millis(200));
        if world.undo_bytes() <= 4 * MIB {
            break;
        }
    }
    assert!(world.undo_bytes() <= 4 * MIB, "{} of {largest} bytes are left", world.undo_bytes());
    world.run(change_all_and_commit(&mut session, 50));
    check_undo(&world);
}

#[test]
fn nothing_is_given_back_when_it_is_off_or_below_the_limit() {
    for (on, max, cut) in [(false, 2 * MIB, false), (true, 64 * MIB, false), (true, 2 * MIB, true)] {
        let world = world(602, 8 << 20, false);
        world.system.set_undo_log_truncate(on);
        world.system.set_max_undo_log_size(max);
        let mut session = world.session();
        world.run(async {
            change_all_and_commit(&mut session, 50).await;
            purge_and_write(&world).await;
        });
        assert_eq!(world.undo_bytes() <= 4 * MIB, cut, "on {on}, limit {max}: {}", world.undo_bytes());
    }
}

/// A snapshot that needs the history keeps it, and what is truncated meanwhile does not hurt it.
#[test]
fn a_snapshot_reads_what_it_must_over_a_truncation() {
    let world = world(603, 8 << 20, false);
    let (mut reader, mut writer) = (world.session(), world.session());
    world.run(async {
        change_all_and_commit(&mut writer, 50).await;
        reader.begin();
        let before = reader.read_v(7).await;
        change_all_and_commit(&mut writer, 1).await;
        for _ in 0..3 {
            purge_and_write(&world).await;
            change_all_and_commit(&mut writer, 1).await;
            assert_eq!(reader.read_v(7).await, before);
        }
        reader.commit().await;
        purge_and_write(&world).await;
    });
    assert!(world.undo_bytes() <= 4 * MIB);
    check_undo(&world);
}

/// Each call to the disk in the last part of a truncation fails: either the engine stops all changes, as
/// after any failed write or sync, or it goes on, and truncates another time.
#[test]
fn a_cut_that_fails_leaves_the_tablespace_usable() {
    let until_cut = |fault: Option<Fault>| {
        let world = world(604, 8 << 20, false);
        let mut session = world.session();
        world.run(async {
            change_all_and_commit(&mut session, 50).await;
            world.system.purge_all().await.unwrap();
            world.store.checkpoint().await.unwrap();
        });
        let calls = world.env.disk().calls();
        if let Some(fault) = fault {
            world.env.disk().plan(fault);
        }
        drop(world.run(world.system.purge_all()));
        drop(session);
        (calls..world.env.disk().calls(), world)
    };
    let (calls, world) = until_cut(None);
    assert_eq!(world.system.status().undo_truncations, 1);
    assert!(!calls.is_empty());
    let mut usable = 0;
    for call in calls {
        let (_, world) = until_cut(Some(Fault { call, kind: FaultKind::Eio }));
        if world.store.poisoned().is_some() {
            continue;
        }
        let mut session = world.session();
        let status = world.system.status();
        usable += u32::from(status.undo_truncations == 0);
        world.run(async {
            change_all_and_commit(&mut session, 50).await;
            world.env.sleep(std::time::Duration::from_secs(61)).await;
            purge_and_write(&world).await;
        });
        assert!(world.system.status().undo_truncations > status.undo_truncations);
        assert!(world.undo_bytes() <= 4 * MIB);
        check_undo(&world);
        world.check();
    }
    assert!(usable > 0, "no call was the cut");
}

/// Moments of truncations, each with the number of those that were over: the ends of syncs, and some between.
fn moments_of_truncations(world: &World) -> Vec<(Moment, u64)> {
    let moments = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let (into, system) = (moments.clone(), world.system.clone());
    world.env.disk().observe_syncs(move |moment| {
        let truncations = system.status().undo_truncations;
        into.lock().push((moment, truncations));
    });
    let (mut session, mut other) = (world.session(), world.session());
    let mut working = Box::pin(async {
        purge_and_write(world).await;
        // The room is wanted again at once.
        change_all_and_commit(&mut session, 20).await;
        for _ in 0..4 {
            purge_and_write(world).await;
        }
    });
    let mut inserting = Box::pin(async {
        for id in 5000..5400 {
            other.begin();
            other.insert_all(id, id, None, Some(&[6; 300])).await.unwrap();
            other.set_v(id, Some(&[7; 200])).await.unwrap();
            other.commit().await;
        }
        std::future::pending::<()>().await;
    });
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut steps = 0u64;
    while working.as_mut().poll(&mut context).is_pending() {
        let _ = inserting.as_mut().poll(&mut context);
        world.env.step();
        steps += 1;
        if steps.is_multiple_of(8) {
            moments.lock().push((world.env.disk().moment(), world.system.status().undo_truncations));
        }
    }
    drop((working, inserting));
    world.env.disk().stop_observing();
    drop((session, other));
    std::mem::take(&mut *moments.lock())
}

/// Rows that were committed durably cannot be told apart here from those that were not; that all agree, and
/// that undo is whole, can.
#[test]
fn a_crash_at_any_moment_of_a_truncation_loses_nothing() {
    let first = world(605, 2 << 20, false);
    let mut session = first.session();
    first.run(change_all_and_commit(&mut session, 40));
    let largest = first.undo_bytes();
    let moments = moments_of_truncations(&first);
    // Most of them around the cuts.
    const AROUND: usize = 5;
    let count = moments.len();
    let is_near_a_cut = |number: &usize| {
        let (from, to) = (number.saturating_sub(AROUND), (number + AROUND).min(count - 1));
        moments[from].1 != moments[to].1
    };
    let chosen: Vec<usize> =
        (0..count).filter(|number| number % (count / 12) == 0 || is_near_a_cut(number)).collect();
    assert!(chosen.len() > 30, "{} of {count} moments", chosen.len());
    let mut random = Random::new(606);
    let mut lengths = std::collections::BTreeSet::new();
    for (number, moment) in chosen.iter().map(|number| (*number, &moments[*number].0)) {
        // Nothing is torn: these stores write without a doublewrite file.
        for crash in [Crash::Exactly(random.next_u64()), Crash::ProcessOnly] {
            let world = first.after_crash(moment, crash, number as u64);
            lengths.insert(world.undo_bytes() / MIB);
            check_undo(&world);
            world.check();
            world.system.set_max_undo_log_size(2 * MIB);
            let mut session = world.session();
            world.run(async {
                for id in 0..ROWS {
                    let value = session.read_v(id).await.unwrap();
                    assert!(value.len() == LENGTH && value.iter().all(|byte| *byte == value[0]), "row {id}");
                }
                change_all_and_commit(&mut session, 2).await;
                purge_and_write(&world).await;
            });
            let status = world.system.status();
            assert_eq!((status.history_length, status.purge_skipped), (0, 0), "moment {number}, {crash:?}");
            assert!(world.undo_bytes() <= 4 * MIB, "moment {number}, {crash:?}: {}", world.undo_bytes());
            assert_eq!(world.deleted_records(), 0);
            check_undo(&world);
            world.check();
        }
    }
    println!("{} of {count} moments, files of {lengths:?} MiB, {largest} bytes at first", chosen.len());
    assert!(
        lengths.contains(&3) && lengths.last() > Some(&8),
        "no crash before the cut, or none after: {lengths:?}"
    );
}
