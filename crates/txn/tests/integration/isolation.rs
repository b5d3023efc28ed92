//! The Hermitage anomalies, interleaved by hand, with InnoDB's outcomes; locks, deadlocks, time-outs.
//!
//! Each case starts from rows 1 -> 10 and 2 -> 20 and runs two or three sessions on one thread.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::*;
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;
use untorn_txn::*;

use Isolation::{ReadCommitted, ReadUncommitted, RepeatableRead, Serializable};

const LEVELS: [Isolation; 4] = [ReadUncommitted, ReadCommitted, RepeatableRead, Serializable];

fn start(seed: u64) -> World {
    let world = World::new(seed);
    world.fill(&[(1, 10), (2, 20)]);
    world
}

type Boxed<'f, T> = Pin<Box<dyn Future<Output = T> + 'f>>;

fn boxed<'f, T>(future: impl Future<Output = T> + 'f) -> Boxed<'f, T> {
    Box::pin(future)
}

/// The operation must block.
fn blocks<'f, T>(world: &World, future: impl Future<Output = T> + 'f) -> Boxed<'f, T> {
    let mut future = boxed(future);
    assert!(world.settle(&mut future).is_pending(), "the operation should wait for a lock");
    future
}

fn ready<T>(world: &World, mut future: Boxed<'_, T>) -> T {
    match world.settle(&mut future) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the operation should go on"),
    }
}

/// What a SELECT in a transaction is at this level: SERIALIZABLE makes it a locking read.
async fn select(session: &mut Session) -> Result<Vec<(i32, i32)>, Error> {
    let mode = if session.trx.isolation() == Serializable { for_share() } else { ReadMode::Consistent };
    let rows = session.try_scan(ScanIndex::Clustered, KeyRange::all(), Direction::Forward, mode).await?;
    Ok(rows.iter().map(|row| (row.id, row.k)).collect())
}

/// G0: dirty write. Prevented at every level.
#[test]
fn dirty_writes_wait() {
    for level in LEVELS {
        let world = start(10);
        let (mut a, mut b) = (world.session_at(level), world.session_at(level));
        a.begin();
        b.begin();
        world.run(a.update(1, 11)).unwrap();
        let wait = blocks(&world, b.update(1, 12));
        world.run(a.update(2, 21)).unwrap();
        world.run(a.commit());
        ready(&world, wait).unwrap();
        world.run(b.update(2, 22)).unwrap();
        world.run(b.commit());
        assert_eq!(world.run(a.pairs()), [(1, 12), (2, 22)], "{level:?}");
    }
}

/// G1a: aborted read; G1b: intermediate read. Only READ UNCOMMITTED shows them.
#[test]
fn uncommitted_versions_show_at_read_uncommitted_only() {
    for level in LEVELS {
        let world = start(11);
        let (mut a, mut b) = (world.session_at(level), world.session_at(level));
        a.begin();
        b.begin();
        world.run(a.update(1, 101)).unwrap();
        let read = world.run(async { b.read(1).await });
        assert_eq!(read, Some(if level == ReadUncommitted { 101 } else { 10 }), "{level:?}");
        world.run(a.rollback());
        assert_eq!(world.run(b.read(1)), Some(10));
        world.run(b.commit());
    }
}

/// G1c: circular information flow. Prevented from READ COMMITTED on; SERIALIZABLE by a deadlock.
#[test]
fn information_does_not_flow_in_circles() {
    for level in [ReadCommitted, RepeatableRead] {
        let world = start(12);
        let (mut a, mut b) = (world.session_at(level), world.session_at(level));
        a.begin();
        b.begin();
        world.run(a.update(1, 11)).unwrap();
        world.run(b.update(2, 22)).unwrap();
        assert_eq!(world.run(a.read(2)), Some(20));
        assert_eq!(world.run(b.read(1)), Some(10));
        world.run(a.commit());
        world.run(b.commit());
    }
    let world = start(12);
    let (mut a, mut b) = (world.session_at(Serializable), world.session_at(Serializable));
    a.begin();
    b.begin();
    world.run(a.update(1, 11)).unwrap();
    world.run(b.update(2, 22)).unwrap();
    let wait = blocks(&world, select(&mut a));
    let error = world.run(select(&mut b)).unwrap_err();
    assert!(matches!(error, Error::Deadlock), "{error}");
    assert!(!b.trx.is_active(), "the victim has been rolled back");
    assert_eq!(ready(&world, wait).unwrap(), [(1, 11), (2, 20)]);
    world.run(a.commit());
}

/// OTV: observed transaction vanishes. From READ COMMITTED on a view shows a transaction wholly or not at
/// all.
#[test]
fn observed_transactions_do_not_vanish() {
    for level in [ReadCommitted, RepeatableRead] {
        let world = start(13);
        let (mut a, mut b, mut c) =
            (world.session_at(level), world.session_at(level), world.session_at(level));
        a.begin();
        b.begin();
        c.begin();
        world.run(a.update(1, 11)).unwrap();
        world.run(a.update(2, 19)).unwrap();
        let wait = blocks(&world, b.update(1, 12));
        world.run(a.commit());
        ready(&world, wait).unwrap();
        assert_eq!(world.run(c.read(1)), Some(11));
        world.run(b.update(2, 18)).unwrap();
        assert_eq!(world.run(c.read(2)), Some(19));
        world.run(b.commit());
        let expected = if level == ReadCommitted { [(1, 12), (2, 18)] } else { [(1, 11), (2, 19)] };
        assert_eq!(world.run(c.pairs()), expected, "{level:?}");
        world.run(c.commit());
    }
}

/// PMP: predicate-many-preceders, for reads. A view per statement shows the new row, one per transaction does
/// not.
#[test]
fn predicates_read_from_the_view() {
    for level in [ReadCommitted, RepeatableRead] {
        let world = start(14);
        let (mut a, mut b) = (world.session_at(level), world.session_at(level));
        a.begin();
        b.begin();
        assert_eq!(world.run(a.where_k(30)), []);
        world.run(b.insert(3, 30)).unwrap();
        world.run(b.commit());
        let expected: Vec<(i32, i32)> = if level == ReadCommitted { vec![(3, 30)] } else { vec![] };
        assert_eq!(world.run(a.where_k(30)), expected, "{level:?}");
        world.run(a.commit());
    }
    // SERIALIZABLE: the predicate is locked.
    let world = start(14);
    let (mut a, mut b) = (world.session_at(Serializable), world.session_at(Serializable));
    a.begin();
    b.begin();
    world.run(select(&mut a)).unwrap();
    let wait = blocks(&world, b.insert(3, 30));
    assert_eq!(world.run(select(&mut a)).unwrap(), [(1, 10), (2, 20)]);
    world.run(a.commit());
    ready(&world, wait).unwrap();
    world.run(b.commit());
}

/// PMP for writes: InnoDB's REPEATABLE READ changes rows that its view does not show.
#[test]
fn writes_see_the_newest_committed_rows() {
    for level in [ReadCommitted, RepeatableRead] {
        let world = start(15);
        let (mut a, mut b) = (world.session_at(level), world.session_at(level));
        a.begin();
        b.begin();
        assert_eq!(world.run(b.pairs()), [(1, 10), (2, 20)]);
        world.run(a.update(1, 20)).unwrap();
        world.run(a.update(2, 30)).unwrap();
        // DELETE FROM t WHERE k = 20, by a locking scan.
        let scan = blocks(
            &world,
            b.try_scan(ScanIndex::Clustered, KeyRange::all(), Direction::Forward, for_update()),
        );
        world.run(a.commit());
        let rows = ready(&world, scan).unwrap();
        let hits: Vec<i32> = rows.iter().filter(|row| row.k == 20).map(|row| row.id).collect();
        assert_eq!(hits, [1], "{level:?}: the newest committed value decides");
        world.run(b.delete(1)).unwrap();
        let seen = world.run(b.pairs());
        let expected: &[(i32, i32)] = if level == ReadCommitted { &[(2, 30)] } else { &[(2, 20)] };
        assert_eq!(seen, expected, "{level:?}");
        world.run(b.commit());
    }
}

/// P4: lost update. InnoDB allows it below SERIALIZABLE, where it is a deadlock.
#[test]
fn lost_updates_are_prevented_by_serializable_only() {
    for level in [ReadCommitted, RepeatableRead] {
        let world = start(16);
        let (mut a, mut b) = (world.session_at(level), world.session_at(level));
        a.begin();
        b.begin();
        assert_eq!(world.run(a.read(1)), Some(10));
        assert_eq!(world.run(b.read(1)), Some(10));
        world.run(a.update(1, 11)).unwrap();
        let wait = blocks(&world, b.update(1, 11));
        world.run(a.commit());
        ready(&world, wait).unwrap();
        world.run(b.commit());
    }
    let world = start(16);
    let (mut a, mut b) = (world.session_at(Serializable), world.session_at(Serializable));
    a.begin();
    b.begin();
    world.run(select(&mut a)).unwrap();
    world.run(select(&mut b)).unwrap();
    let wait = blocks(&world, a.update(1, 11));
    let error = world.run(b.update(1, 11)).unwrap_err();
    assert!(matches!(error, Error::Deadlock));
    ready(&world, wait).unwrap();
    world.run(a.commit());
    let deadlock = world.system.latest_deadlock().unwrap();
    assert_eq!(deadlock.members.len(), 2);
    // The one whose wait closed the circle, of two that had changed nothing.
    assert_eq!(deadlock.victim, 0);
    assert!(deadlock.members.iter().all(|member| member.waits_for.index() == "PRIMARY"), "{deadlock:?}");
}

/// G-single: read skew. One view per transaction prevents it for reads.
#[test]
fn read_skew_needs_a_view_per_statement() {
    for level in [ReadCommitted, RepeatableRead] {
        let world = start(17);
        let (mut a, mut b) = (world.session_at(level), world.session_at(level));
        a.begin();
        b.begin();
        assert_eq!(world.run(a.read(1)), Some(10));
        assert_eq!(world.run(b.pairs()), [(1, 10), (2, 20)]);
        world.run(b.update(1, 12)).unwrap();
        world.run(b.update(2, 18)).unwrap();
        world.run(b.commit());
        assert_eq!(world.run(a.read(2)), Some(if level == ReadCommitted { 18 } else { 20 }), "{level:?}");
        world.run(a.commit());
    }
}

/// G2-item: write skew; G2: anti-dependency cycles over a predicate. Only SERIALIZABLE prevents them.
#[test]
fn write_skew_is_prevented_by_serializable_only() {
    let world = start(18);
    let (mut a, mut b) = (world.session(), world.session());
    a.begin();
    b.begin();
    world.run(a.pairs());
    world.run(b.pairs());
    world.run(a.update(1, 11)).unwrap();
    world.run(b.update(2, 21)).unwrap();
    world.run(a.commit());
    world.run(b.commit());
    assert_eq!(world.run(a.pairs()), [(1, 11), (2, 21)]);

    let world = start(18);
    let (mut a, mut b) = (world.session_at(Serializable), world.session_at(Serializable));
    a.begin();
    b.begin();
    world.run(select(&mut a)).unwrap();
    world.run(select(&mut b)).unwrap();
    let wait = blocks(&world, a.insert(3, 30));
    let error = world.run(b.insert(4, 42)).unwrap_err();
    assert!(matches!(error, Error::Deadlock));
    ready(&world, wait).unwrap();
    world.run(a.commit());
    world.run(b.rollback());
    assert_eq!(world.run(b.pairs()), [(1, 10), (2, 20), (3, 30)]);
}

#[test]
fn gap_locks_stop_phantoms_in_repeatable_read_but_not_in_read_committed() {
    for level in [ReadCommitted, RepeatableRead] {
        let world = World::new(19);
        world.fill(&[(10, 1), (20, 2), (30, 3)]);
        let (mut a, mut b) = (world.session_at(level), world.session_at(level));
        a.begin();
        b.begin();
        let rows = world.run(a.scan(ScanIndex::Clustered, between(12, 25), for_update()));
        assert_eq!(rows.len(), 1);
        let mut inside = boxed(b.insert(15, 0));
        let stopped = world.settle(&mut inside).is_pending();
        assert_eq!(stopped, level == RepeatableRead, "{level:?}");
        drop(inside);
        if stopped {
            // The abandoned request is gone, and places outside the range are free.
            world.run(b.insert(35, 0)).unwrap();
            world.run(b.insert(5, 0)).unwrap();
            let wait = blocks(&world, b.insert(28, 0));
            world.run(a.commit());
            ready(&world, wait).unwrap();
        }
        world.run(b.commit());
    }
}

#[test]
fn backward_scans_and_secondary_indexes_lock_their_gaps() {
    let world = World::new(20);
    world.fill(&[(10, 100), (20, 200), (30, 300)]);
    let (mut a, mut b) = (world.session(), world.session());
    a.begin();
    b.begin();
    let index = ScanIndex::Secondary(INDEX_K);
    let rows = world.run(a.try_scan(index, between(150, 250), Direction::Backward, for_update())).unwrap();
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [20]);
    for k in [150, 199, 201, 250, 299] {
        drop(blocks(&world, b.insert(1000 + k, k)));
        world.run(b.rollback());
        b.begin();
    }
    world.run(b.insert(2000, 301)).unwrap();
    world.run(b.insert(2001, 50)).unwrap();
    world.run(b.commit());
    b.begin();
    // The row itself is locked through the clustered index too.
    let wait = blocks(&world, b.update(20, 201));
    world.run(a.commit());
    ready(&world, wait).unwrap();
    world.run(b.commit());
    world.check();
}

#[test]
fn a_unique_match_locks_the_record_only_and_a_miss_locks_the_gap() {
    let world = World::new(21);
    world.fill(&[(10, 1), (20, 2)]);
    let (mut a, mut b) = (world.session(), world.session());
    a.begin();
    b.begin();
    assert_eq!(world.run(a.lock(20)).unwrap(), Some(2));
    world.run(b.insert(15, 0)).unwrap();
    world.run(b.insert(25, 0)).unwrap();
    world.run(b.commit());
    b.begin();
    assert_eq!(world.run(a.lock(22)).unwrap(), None);
    drop(blocks(&world, b.insert(23, 0)));
    drop(blocks(&world, b.insert(22, 0)));
    world.run(b.insert(26, 0)).unwrap();
    world.run(a.commit());
    world.run(b.commit());
}

#[test]
fn lock_waits_time_out_and_only_the_statement_is_lost() {
    let world = start(22);
    let (mut a, mut b) = (world.session(), world.session());
    b.trx.set_lock_wait_timeout(Duration::from_secs(3));
    a.begin();
    b.begin();
    world.run(a.update(1, 11)).unwrap();
    world.run(b.update(2, 21)).unwrap();
    let mut wait = blocks(&world, b.update(1, 12));
    world.env.advance(Duration::from_millis(2900));
    assert!(world.settle(&mut wait).is_pending());
    world.env.advance(Duration::from_millis(200));
    let error = ready(&world, wait).unwrap_err();
    assert!(matches!(error, Error::LockWaitTimeout), "{error}");
    assert!(b.trx.is_active());
    world.run(b.commit());
    world.run(a.commit());
    assert_eq!(world.run(a.pairs()), [(1, 11), (2, 21)]);
    assert_eq!(world.system.status().lock_timeouts, 1);
    assert_eq!(world.system.status().locks, 0);
}

#[test]
fn the_transaction_with_least_work_is_the_victim() {
    let world = start(23);
    let (mut a, mut b) = (world.session(), world.session());
    a.begin();
    b.begin();
    world.run(a.update(1, 11)).unwrap();
    world.run(b.update(2, 21)).unwrap();
    for id in 100..110 {
        world.run(b.insert(id, 0)).unwrap();
    }
    // `a` waits first; the cycle is closed by `b`, which has done more: `a`, the waiter, is thrown out.
    let mut wait = blocks(&world, a.update(2, 12));
    let survivor = blocks(&world, b.update(1, 22));
    let Poll::Ready(result) = world.settle(&mut wait) else { panic!("the victim wakes") };
    assert!(matches!(result.unwrap_err(), Error::Deadlock));
    drop(wait);
    ready(&world, survivor).unwrap();
    assert!(!a.trx.is_active() && !a.trx.has_changes());
    world.run(b.commit());
    world.run(a.rollback());
    assert_eq!(world.run(a.read(1)), Some(22));
    world.check();
}

#[test]
fn nowait_skip_locked_and_kill() {
    let world = start(24);
    let (mut a, mut b) = (world.session(), world.session());
    a.begin();
    b.begin();
    world.run(a.lock(1)).unwrap();
    let scan = |wait| ReadMode::Locking { exclusive: true, wait };
    let all = KeyRange::all();
    let forward = Direction::Forward;
    let result = world.run(b.try_scan(ScanIndex::Clustered, all.clone(), forward, scan(WaitPolicy::NoWait)));
    assert!(matches!(result.unwrap_err(), Error::NoWaitLocked));
    let rows =
        world.run(b.try_scan(ScanIndex::Clustered, all, forward, scan(WaitPolicy::SkipLocked))).unwrap();
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [2]);
    let kill = b.trx.kill_handle();
    let wait = blocks(&world, b.update(1, 5));
    kill.kill();
    assert!(matches!(ready(&world, wait).unwrap_err(), Error::Killed));
    assert!(matches!(world.run(b.update(1, 5)).unwrap_err(), Error::Killed), "killed until cleared");
    b.trx.clear_kill();
    world.run(b.rollback());
    world.run(a.commit());
    assert_eq!(world.system.status().locks, 0);
}

#[test]
fn read_committed_gives_up_rows_that_fail_the_filter() {
    let world = start(25);
    let (mut a, mut b) = (world.session_at(ReadCommitted), world.session_at(ReadCommitted));
    a.begin();
    b.begin();
    let table = a.table.clone();
    let mut scan =
        Scan::new(table, ScanIndex::Clustered, KeyRange::all(), Direction::Forward, for_update(), false);
    world
        .run(scan.run(&mut a.trx, &mut |row| {
            if copy_row(row).k == 20 { Control::Continue } else { Control::SkipUnlock }
        }))
        .unwrap();
    world.run(b.update(1, 11)).unwrap();
    let wait = blocks(&world, b.update(2, 21));
    world.run(a.commit());
    ready(&world, wait).unwrap();
    world.run(b.commit());
}

#[test]
fn waiting_requests_are_served_in_order() {
    let world = start(26);
    let (mut a, mut b, mut c) = (world.session(), world.session(), world.session());
    a.begin();
    b.begin();
    c.begin();
    world.run(a.scan(ScanIndex::Clustered, KeyRange::equal(key(1)), for_share()));
    let exclusive = blocks(&world, b.lock(1));
    // A shared request is compatible with the holder but must not overtake the exclusive one.
    let shared = blocks(&world, c.scan(ScanIndex::Clustered, KeyRange::equal(key(1)), for_share()));
    world.run(a.commit());
    ready(&world, exclusive).unwrap();
    let mut shared = shared;
    assert!(world.settle(&mut shared).is_pending());
    world.run(b.commit());
    assert_eq!(ready(&world, shared).len(), 1);
    world.run(c.commit());
}

#[test]
fn concurrent_inserts_of_one_unique_key_come_one_after_the_other() {
    let world = start(27);
    let (mut a, mut b) = (world.session(), world.session());
    a.begin();
    b.begin();
    world.run(a.insert_all(5, 0, Some(7), None)).unwrap();
    let wait = blocks(&world, b.insert_all(6, 0, Some(7), None));
    world.run(a.rollback());
    ready(&world, wait).unwrap();
    a.begin();
    let wait = blocks(&world, a.insert_all(8, 0, Some(7), None));
    world.run(b.commit());
    assert!(matches!(ready(&world, wait).unwrap_err(), Error::DuplicateKey { .. }));
    world.run(a.commit());
    // The same for the primary key.
    a.begin();
    b.begin();
    world.run(a.insert(9, 0)).unwrap();
    let wait = blocks(&world, b.insert(9, 1));
    world.run(a.commit());
    assert!(matches!(ready(&world, wait).unwrap_err(), Error::DuplicateKey { .. }));
    world.run(b.commit());
    world.check();
}

#[test]
fn a_dropped_session_is_rolled_back_in_the_background() {
    let world = start(28);
    let mut a = world.session();
    a.begin();
    world.run(a.update(1, 99)).unwrap();
    world.run(a.insert(7, 7)).unwrap();
    drop(a);
    world.env.run_until_idle();
    let mut b = world.session();
    assert_eq!(world.run(b.pairs()), [(1, 10), (2, 20)]);
    assert_eq!(world.system.status().locks, 0);
    assert_eq!(world.system.status().active, 0);
}

/// Reads of one row count, too, in SHOW STATUS.
#[test]
fn a_row_read_in_an_older_version_is_counted() {
    let world = World::new(77);
    world.fill(&[(1, 10), (2, 20)]);
    let (mut reader, mut writer) = (world.session(), world.session());
    world.run(async {
        reader.begin();
        assert_eq!(reader.read(1).await, Some(10));
        writer.update(1, 11).await.unwrap();
        writer.delete(2).await.unwrap();
        assert_eq!((reader.read(1).await, reader.read(2).await), (Some(10), Some(20)));
        assert_eq!(writer.read(1).await, Some(11));
        reader.commit().await;
        writer.commit().await;
    });
    assert_eq!(world.system.status().versions_built, 2);
}
