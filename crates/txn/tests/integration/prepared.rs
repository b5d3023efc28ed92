//! Prepared transactions: over crashes, beside others, to their end.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::*;
use pagestore::PageSize;
use std::collections::BTreeMap;
use std::time::Duration;
use untorn_txn::*;

fn xid(name: &str) -> Xid {
    Xid::new(1, name.as_bytes(), b"").unwrap()
}

type Rows = BTreeMap<i32, i32>;

fn pairs(world: &World) -> Rows {
    let mut session = world.session();
    world.run(session.pairs()).into_iter().collect()
}

/// A session that changes many rows and is prepared, and the rows as they are with its changes.
fn prepare(world: &World, name: &str, mut rows: Rows, changes: i32) -> (Session, Rows) {
    let mut session = world.session();
    world.run(async {
        session.begin();
        for id in 0..changes {
            session.update(id, -1).await.unwrap();
            session.insert(id + 10_000, 5).await.unwrap();
            rows.extend([(id, -1), (id + 10_000, 5)]);
        }
        session.delete(150).await.unwrap();
        rows.remove(&150);
        session.trx.prepare(&xid(name), Durability::Sync).await.unwrap();
    });
    assert!(session.trx.is_prepared());
    (session, rows)
}

fn world(seed: u64, page_bytes: usize) -> (World, Rows) {
    let world = World::with(seed, 8 << 20, PageSize::new(page_bytes).unwrap(), false);
    let rows: Vec<(i32, i32)> = (0..200).map(|id| (id, id)).collect();
    world.fill(&rows);
    (world, rows.into_iter().collect())
}

#[test]
fn a_prepared_transaction_survives_crashes_until_it_is_ended() {
    for (seed, page_bytes) in [(1, 16384), (2, 4096), (3, 16384), (4, 4096), (5, 4096), (6, 16384)] {
        for (changes, commits) in [(0, true), (1, false), (3, true), (100, false), (100, true)] {
            let (mut world, before) = world(seed, page_bytes);
            let (session, after) = prepare(&world, "a", before.clone(), changes);
            drop(session);
            for again in 0..3 {
                if (seed + again) % 2 == 0 {
                    world.run(world.store.flush_all()).unwrap();
                    world.run(world.store.checkpoint()).unwrap();
                }
                world = world.crash(seed + again);
                assert_eq!((world.report.prepared, world.report.rolled_back), (1, 0));
                assert_eq!(pairs(&world), before, "nobody sees its changes");
                world.run(world.system.purge_all()).unwrap();
                let mut other = world.session();
                other.trx.set_lock_wait_timeout(Duration::from_millis(10));
                world.run(async {
                    other.begin();
                    let refused = other.update(150, 1).await;
                    assert!(matches!(refused, Err(Error::LockWaitTimeout)), "{refused:?}");
                    other.update(199, 199).await.unwrap();
                    other.commit().await;
                });
                world.check();
            }
            let mut found = std::mem::take(&mut *world.prepared.lock());
            let mut found = found.pop().unwrap();
            assert_eq!(found.xid, xid("a"));
            world.run(async {
                match commits {
                    true => found.transaction.commit(Durability::Sync).await.unwrap(),
                    false => found.transaction.rollback().await.unwrap(),
                }
            });
            drop(found);
            let mut expected = if commits { after } else { before };
            assert_eq!(pairs(&world), expected);
            // The slot is used again, and with its commit a rollback is durable.
            expected.insert(180, 7);
            let mut session = world.session();
            world.run(async {
                session.begin();
                session.update(180, 7).await.unwrap();
                session.commit().await;
                world.system.purge_all().await.unwrap();
            });
            world.check();
            let world = world.crash(seed + 10);
            assert_eq!(world.report.prepared, 0);
            assert_eq!(pairs(&world), expected);
            world.check();
        }
    }
}

#[test]
fn what_is_not_prepared_is_rolled_back_beside_what_is() {
    let (world, before) = world(20, 16384);
    let (session, after) = prepare(&world, "kept", before.clone(), 10);
    let mut lost = world.session();
    world.run(async {
        lost.begin();
        lost.insert(77_777, 1).await.unwrap();
        world.store.flush_all().await.unwrap();
    });
    std::mem::forget((session, lost));
    let world = world.crash(20);
    assert_eq!((world.report.prepared, world.report.rolled_back), (1, 1));
    assert_eq!(pairs(&world), before);
    let mut found = world.prepared.lock().pop().unwrap();
    world.run(found.transaction.commit(Durability::Sync)).unwrap();
    assert_eq!(pairs(&world), after);
}

/// A rollback that a crash cuts is gone on with: the transaction is no longer prepared.
#[test]
fn a_rollback_that_a_crash_cut_is_finished_by_the_start() {
    let (world, before) = world(30, 4096);
    let (mut session, _) = prepare(&world, "a", before.clone(), 100);
    let polls = world.run(async {
        let mut polls = 1;
        while for_polls(session.trx.rollback(), polls).await.is_none() && session.trx.is_prepared() {
            polls += 1;
        }
        world.store.flush_all().await.unwrap();
        polls
    });
    assert!(polls > 0);
    std::mem::forget(session);
    let world = world.crash(30);
    assert_eq!(world.report.prepared, 0);
    assert_eq!(pairs(&world), before);
    world.check();
}

#[test]
fn one_that_has_changed_nothing_keeps_its_name_and_no_locks() {
    let (world, before) = world(40, 16384);
    let (mut session, mut other) = (world.session(), world.session());
    world.run(async {
        session.begin();
        session.lock(5).await.unwrap();
        session.trx.prepare(&xid("empty"), Durability::Sync).await.unwrap();
        other.trx.set_lock_wait_timeout(Duration::from_millis(10));
        other.begin();
        other.update(5, 5).await.unwrap();
        other.commit().await;
    });
    drop(session);
    let world = world.crash(40);
    assert_eq!(world.report.prepared, 1);
    let mut found = world.prepared.lock().pop().unwrap();
    assert_eq!(found.xid, xid("empty"));
    world.run(found.transaction.commit(Durability::Sync)).unwrap();
    drop(found);
    let world = world.crash(41);
    assert_eq!(world.report.prepared, 0);
    assert_eq!(pairs(&world), before);
}

/// Purge goes on beside it, and keeps what its rows were before.
#[test]
fn purge_passes_by_and_keeps_what_a_prepared_transaction_replaced() {
    let (world, before) = world(50, 16384);
    let (mut session, _) = prepare(&world, "a", before.clone(), 50);
    let mut writer = world.session();
    world.run(async {
        for round in 0..20 {
            writer.begin();
            writer.update(190, round).await.unwrap();
            writer.delete(191).await.unwrap();
            writer.insert(191, round).await.unwrap();
            writer.commit().await;
        }
        world.system.purge_all().await.unwrap();
        assert_eq!(world.system.status().history_length, 0);
        session.trx.rollback().await.unwrap();
    });
    let mut expected = before;
    expected.extend([(190, 19), (191, 19)]);
    assert_eq!(pairs(&world), expected);
    world.check();
}
