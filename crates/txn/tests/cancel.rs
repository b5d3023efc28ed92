//! Futures dropped at any await, transactions dropped at any time: rows and indexes agree afterwards, nothing
//! leaks.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
use common::*;
use disk::{FaultKind, Misbehaviour, Random};
use pagestore::PageSize;
use std::future::Future;
use std::time::Duration;
use untorn_txn::*;

/// Rows of the world that is larger than its pool.
const ROWS: i32 = 2500;

fn scattered(id: i32) -> i32 {
    id.wrapping_mul(7919) % 100_003
}

/// A world whose indexes are several times its pool, so that operations wait for pages wherever they go.
fn cold_world(seed: u64) -> World {
    let world = World::with(seed, 40 * 4096, PageSize::new(4096).unwrap(), false);
    let mut session = world.session();
    world.run(async {
        session.begin();
        for id in 1..=ROWS {
            session.insert_all(id, scattered(id), Some(scattered(id)), Some(&[7; 60])).await.unwrap();
        }
        session.commit().await;
    });
    world
}

/// Reads so much that what was changed before leaves the pool.
async fn read_far_and_wide(session: &mut Session) {
    for id in (1..=ROWS).step_by(11) {
        session.read(id).await;
    }
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Insert,
    InsertLong,
    Update,
    Move,
    Delete,
}

async fn change(session: &mut Session, what: Operation, id: i32) -> Result<(), Error> {
    let (new, value) = (id + 50_000, scattered(id + 50_000));
    match what {
        Operation::Insert => session.insert_all(new, value, Some(value), None).await,
        Operation::InsertLong => session.insert_all(new, value, Some(value), Some(&[9; 30_000])).await,
        Operation::Update => session.set_u(id, Some(value)).await,
        Operation::Move => session.set_id(id, new).await,
        Operation::Delete => session.delete(id).await,
    }
}

#[test]
fn every_change_may_be_dropped_at_any_await() {
    use Operation::{Delete, Insert, InsertLong, Move, Update};
    for what in [Insert, InsertLong, Update, Move, Delete] {
        let world = cold_world(500);
        let mut random = Random::new(500);
        let mut session = world.session();
        let (mut cut, mut halves) = (0, 0);
        for round in 0..240 {
            // Every other row stays, to be changed afterwards.
            let id = 2 * (1 + random.below(ROWS as usize / 2 - 1) as i32);
            if world.run(session.read(id)).is_none() || world.run(session.read(id + 50_000)).is_some() {
                continue;
            }
            let before = world.run(session.read_row(id));
            session.begin();
            let done = world.run(for_polls(change(&mut session, what, id), 1 + round % 6));
            if done.is_none() {
                cut += 1;
                halves += usize::from(session.trx.has_changes());
            }
            world.run(async {
                session.update(id - 1, 5_000_000 + round as i32).await.unwrap();
                session.commit().await;
                assert_eq!(session.read(id - 1).await, Some(5_000_000 + round as i32));
                if done.is_none() {
                    assert_eq!(session.read_row(id).await, before, "{what:?}, round {round}");
                    assert_eq!(session.read(id + 50_000).await, None, "{what:?}, round {round}");
                }
            });
        }
        // Otherwise nothing was tested.
        assert!(cut >= 20 && halves >= 5, "{what:?}: {cut} cut, {halves} of them midway");
        world.check();
    }
}

/// An insertion cut while it waits for a lock on the second index: the row is there, the entry is not.
#[test]
fn a_change_cut_while_it_waits_for_a_lock_is_undone_by_commit() {
    let world = World::new(501);
    world.fill(&[(1, 10), (2, 20)]);
    let (mut holder, mut session) = (world.session(), world.session());
    holder.begin();
    world.run(holder.scan_k(between(11, 19), for_update()));
    session.begin();
    world.run(session.insert(5, 50)).unwrap();
    {
        let mut waits: std::pin::Pin<Box<dyn Future<Output = _>>> = Box::pin(session.insert(3, 15));
        assert!(world.settle(&mut waits).is_pending());
    }
    world.run(async {
        session.commit().await;
        holder.commit().await;
        assert_eq!(session.pairs().await, [(1, 10), (2, 20), (5, 50)]);
    });
    world.check();
    assert_eq!(world.system.status().locks, 0);
}

/// The marks of savepoints and statements lie before an operation that was cut.
#[test]
fn a_savepoint_after_a_cut_change_does_not_keep_its_half() {
    let world = World::new(502);
    world.fill(&[(1, 10), (2, 20)]);
    let (mut holder, mut session) = (world.session(), world.session());
    holder.begin();
    world.run(holder.scan_k(between(11, 19), for_update()));
    session.begin();
    {
        let mut waits: std::pin::Pin<Box<dyn Future<Output = _>>> = Box::pin(session.insert(3, 15));
        assert!(world.settle(&mut waits).is_pending());
    }
    session.trx.savepoint("s");
    world.run(async {
        session.insert(4, 40).await.unwrap();
        assert!(session.trx.rollback_to_savepoint("s").await.unwrap());
        session.insert(6, 60).await.unwrap();
        session.commit().await;
        holder.commit().await;
        assert_eq!(session.pairs().await, [(1, 10), (2, 20), (6, 60)]);
    });
    world.check();
}

#[test]
fn a_partial_rollback_cut_anywhere_is_finished_by_commit() {
    let world = cold_world(503);
    let mut random = Random::new(503);
    let (mut cut, mut session) = (0, world.session());
    for polls in 1..60 {
        let ids: Vec<i32> = (0..12).map(|_| 1 + random.below(ROWS as usize) as i32).collect();
        world.run(async {
            session.begin();
            session.update(ids[0], 6_000_000 + polls).await.unwrap();
            let mut before = Vec::new();
            for id in &ids {
                before.push(session.read_row(*id).await);
            }
            session.trx.savepoint("s");
            for id in &ids[1..] {
                let value = scattered(*id + 1_000_000 + polls);
                session.set_u(*id, Some(value)).await.unwrap();
                session.trx.savepoint("later");
            }
            session.update(ids[0], 6_100_000 + polls).await.unwrap();
            read_far_and_wide(&mut session).await;
            let undone = for_polls(session.trx.rollback_to_savepoint("s"), 1 + polls as usize % 6).await;
            cut += usize::from(undone.is_none());
            // A savepoint after the one that was gone back to names a place that is no end of anything any
            // more.
            assert!(!session.trx.rollback_to_savepoint("later").await.unwrap());
            session.commit().await;
            for (id, row) in ids.iter().zip(&before) {
                assert_eq!(session.read_row(*id).await, *row, "round {polls}");
            }
        });
    }
    assert!(cut > 5, "{cut}");
    world.check();
}

#[test]
fn a_rollback_cut_anywhere_is_never_committed() {
    let world = cold_world(504);
    let mut random = Random::new(504);
    let (mut cut, mut session) = (0, world.session());
    for polls in 1..60 {
        let ids: Vec<i32> = (0..10).map(|_| 1 + random.below(ROWS as usize) as i32).collect();
        world.run(async {
            let mut before = Vec::new();
            for id in &ids {
                before.push(session.read_row(*id).await);
            }
            session.begin();
            for id in &ids {
                session.set_u(*id, Some(scattered(*id + 2_000_000 + polls))).await.unwrap();
            }
            read_far_and_wide(&mut session).await;
            if for_polls(session.trx.rollback(), 1 + polls as usize % 6).await.is_none() {
                cut += 1;
                let error = session.trx.commit(Durability::Sync).await.unwrap_err();
                assert!(matches!(error, Error::RolledBack), "{error}");
                session.rollback().await;
            }
            for (id, row) in ids.iter().zip(&before) {
                assert_eq!(session.read_row(*id).await, *row, "round {polls}");
            }
        });
    }
    assert!(cut > 5, "{cut}");
    world.check();
    assert_eq!((world.system.status().active, world.system.status().locks), (0, 0));
}

/// The number of a commit that was dropped held purge back for ever.
#[test]
fn a_commit_dropped_anywhere_does_not_stop_purge() {
    let world = cold_world(505);
    let (mut session, mut cut) = (world.session(), 0);
    for polls in 1..12 {
        world.run(async {
            session.begin();
            // So much that the page with the log's header leaves the pool.
            for id in 1..=ROWS {
                session.update(id, 7_000_000 + id + polls).await.unwrap();
            }
            if for_polls(session.trx.commit(Durability::Sync), polls as usize).await.is_none()
                && session.trx.is_active()
            {
                cut += 1;
                session.rollback().await;
            }
        });
    }
    assert!(cut > 0, "no commit was cut before it was made");
    world.run(async {
        session.begin();
        session.update(1, 1).await.unwrap();
        session.commit().await;
        for _ in 0..3 {
            world.system.purge_all().await.unwrap();
        }
    });
    assert_eq!(world.system.status().history_length, 0);
    world.check();
}

/// What a purge that was dropped has handed to others ends before anybody else may purge, or rely on a pause.
#[test]
fn a_purge_dropped_anywhere_is_over_when_a_pause_begins() {
    // So many records that several are at work.
    const CHUNK: i32 = 200;
    let world = cold_world(510);
    let (mut session, mut at_work) = (world.session(), 0);
    for round in 0..ROWS / CHUNK {
        world.run(async {
            session.begin();
            for id in 1..=CHUNK {
                session.delete(round * CHUNK + id).await.unwrap();
            }
            session.commit().await;
            read_far_and_wide(&mut session).await;
            for_polls(world.system.purge_all(), 4 + round as usize).await;
        });
        // Mini-transactions, not the log's end: that moves on by what a write of the log fills its last block
        // with.
        let appends = || world.redo.status().appends;
        let before = appends();
        let pause = world.run(world.system.pause_purge());
        let paused = appends();
        world.env.run_until_idle();
        assert_eq!(appends(), paused, "somebody purges during a pause, round {round}");
        at_work += usize::from(paused > before);
        drop(pause);
        world.run(world.system.purge_all()).unwrap();
        assert_eq!((world.deleted_records(), world.system.status().history_length), (0, 0));
    }
    world.check();
    assert!(at_work > 1, "none was dropped while others were at work");
}

#[test]
fn a_lock_wait_that_is_given_up_is_counted_no_longer() {
    let world = World::new(513);
    world.fill(&[(1, 10)]);
    let (mut holder, mut waiter) = (world.session(), world.session());
    world.run(async {
        holder.begin();
        holder.update(1, 11).await.unwrap();
        waiter.begin();
        let mut waiting = Box::pin(waiter.update(1, 12));
        std::future::poll_fn(|context| {
            assert!(waiting.as_mut().poll(context).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        assert_eq!(world.system.status().lock_waits_current, 1);
        drop(waiting);
        assert_eq!(world.system.status().lock_waits_current, 0);
        holder.rollback().await;
        waiter.rollback().await;
    });
}

#[test]
fn nothing_is_purged_during_a_pause() {
    let world = World::new(511);
    world.fill(&[(1, 10), (2, 20)]);
    let mut session = world.session();
    world.run(async {
        session.begin();
        session.delete(1).await.unwrap();
        session.commit().await;
        let pause = world.system.pause_purge().await;
        // The holder of the pause may ask for it too: it is not waited for.
        assert_eq!(world.system.purge_all().await.unwrap(), 0);
        let deleted = world.system.status().history_length;
        assert_eq!(deleted, 1);
        drop(pause);
        world.system.purge_all().await.unwrap();
    });
    assert_eq!((world.deleted_records(), world.system.status().history_length), (0, 0));
}

/// A transaction rolled back by a deadlock cannot be taken for one that goes on.
#[test]
fn a_deadlock_is_heard_of_until_it_is_acknowledged() {
    let world = World::new(506);
    world.fill(&[(1, 10), (2, 20)]);
    let (mut a, mut b) = (world.session(), world.session());
    a.begin();
    b.begin();
    world.run(a.update(1, 11)).unwrap();
    world.run(b.update(2, 22)).unwrap();
    let error = {
        let mut a_waits: std::pin::Pin<Box<dyn Future<Output = _>>> = Box::pin(a.update(2, 12));
        assert!(world.settle(&mut a_waits).is_pending());
        let error = world.run(b.update(1, 21)).unwrap_err();
        world.run(a_waits).unwrap();
        error
    };
    assert!(matches!(error, Error::Deadlock), "{error}");
    world.run(async {
        let refused = |result: Result<(), Error>| {
            assert!(matches!(result, Err(Error::RolledBack)), "{result:?}");
        };
        refused(b.insert(3, 30).await);
        let range = KeyRange::equal(key(1));
        let read = b.try_scan(ScanIndex::Clustered, range, Direction::Forward, ReadMode::Consistent).await;
        refused(read.map(drop));
        refused(b.trx.commit(Durability::Sync).await);
        b.rollback().await;
        b.begin();
        b.insert(3, 30).await.unwrap();
        b.commit().await;
        a.commit().await;
        assert_eq!(a.pairs().await, [(1, 11), (2, 12), (3, 30)]);
    });
}

/// What a crash left unfinished is rolled back when the disk can be read again; a caller that closes the
/// engine does not wait for that.
#[test]
fn a_rollback_after_a_start_outlasts_reads_that_fail() {
    for closes in [false, true] {
        let world = cold_world(512);
        let (mut session, mut other) = (world.session(), world.session());
        world.run(async {
            session.begin();
            for id in 1..=200 {
                session.update(id, 8_000_000 + id).await.unwrap();
            }
            other.begin();
            other.update(ROWS, 1).await.unwrap();
            other.commit().await;
        });
        // Nothing is left for redo to bring into the pool.
        world.run(world.store.checkpoint()).unwrap();
        std::mem::forget(session);
        let world = world.crash_and_open(513);
        world.env.disk().misbehave("t.ibd", Misbehaviour::FailRead(FaultKind::Eio), 1);
        after(&world, Duration::from_secs(5));
        let status = || world.system.status();
        assert_eq!((status().active, status().unfinished_transactions), (1, 1));
        if closes {
            world.run(world.system.shutdown()).unwrap();
            assert_eq!(status().unfinished_transactions, 1);
            continue;
        }
        world.env.disk().behave();
        after(&world, Duration::from_secs(120));
        let status = world.system.status();
        assert_eq!((status.active, status.unfinished_transactions, status.unfinished_records), (0, 0, 0));
        assert_eq!(world.run(world.session().read(1)), Some(scattered(1)));
        world.check();
    }
}

/// A row that only its change kept locked stays locked when the change is taken back to a savepoint.
#[test]
fn locks_stay_after_rollback_to_a_savepoint() {
    let world = World::new(507);
    world.fill(&[(1, 10), (2, 20), (3, 30)]);
    let (mut a, mut b) = (world.session(), world.session());
    a.begin();
    a.trx.savepoint("s");
    world.run(async {
        a.update(1, 11).await.unwrap();
        a.delete(2).await.unwrap();
        assert!(a.trx.rollback_to_savepoint("s").await.unwrap());
    });
    b.trx.set_lock_wait_timeout(Duration::from_secs(1));
    b.begin();
    for id in [1, 2] {
        let error = world.run(b.update(id, 99)).unwrap_err();
        assert!(matches!(error, Error::LockWaitTimeout), "row {id}: {error}");
    }
    world.run(async {
        b.update(3, 33).await.unwrap();
        a.commit().await;
        b.update(1, 12).await.unwrap();
        b.commit().await;
        assert_eq!(b.pairs().await, [(1, 12), (2, 20), (3, 33)]);
    });
    assert_eq!(world.system.status().locks, 0);
}

/// What an abandoned transaction keeps lasts until it has been rolled back, and not longer.
#[test]
fn what_is_kept_for_a_rollback_lasts_as_long() {
    let world = World::new(508);
    world.fill(&[(1, 10), (2, 20)]);
    let mut session = world.session();
    session.begin();
    world.run(session.update(1, 11)).unwrap();
    let kept = std::sync::Arc::new(());
    session.trx.keep_for_rollback(Box::new(kept.clone()));
    drop(session);
    assert_eq!((std::sync::Arc::strong_count(&kept), world.system.status().active), (2, 1));
    world.env.run_until_idle();
    assert_eq!((std::sync::Arc::strong_count(&kept), world.system.status().active), (1, 0));
}

/// A rollback that meets an error of the disk ends when the disk is well again; its locks stay until then.
#[test]
fn a_rollback_that_failed_is_tried_again() {
    let world = cold_world(509);
    let (mut session, mut other) = (world.session(), world.session());
    session.begin();
    world.run(async {
        for id in (1..=ROWS).step_by(3) {
            session.update(id, 8_000_000 + id).await.unwrap();
        }
    });
    world.env.disk().misbehave("t.ibd", Misbehaviour::FailRead(FaultKind::Eio), 1);
    drop(session);
    world.env.run_until_idle();
    after(&world, Duration::from_secs(5));
    assert!(world.env.disk().misbehaved() > 1, "the rollback was not tried again");
    assert_eq!(world.system.status().active, 1);
    world.env.disk().behave();
    after(&world, Duration::from_secs(120));
    assert_eq!((world.system.status().active, world.system.status().locks), (0, 0));
    world.run(async {
        other.begin();
        other.update(1, 1).await.unwrap();
        other.commit().await;
        assert_eq!(other.read(4).await, Some(scattered(4)));
    });
    world.check();
}

/// A table dropped under a rollback (which only a start's can meet) takes its rows with it; the rest is
/// undone.
#[test]
fn a_rollback_passes_over_a_table_that_is_gone() {
    let world = World::new(510);
    world.fill(&[(1, 10), (2, 20)]);
    let mut session = world.session();
    session.begin();
    world.run(session.update(1, 11)).unwrap();
    world.run(world.store.drop_space(SPACE)).unwrap();
    drop(session);
    world.env.run_until_idle();
    assert_eq!((world.system.status().active, world.system.status().locks), (0, 0));
}
