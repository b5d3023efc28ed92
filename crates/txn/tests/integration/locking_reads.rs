//! What locking reads lock, and what they wait for.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::*;
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use untorn_txn::*;

type Boxed<'f, T> = Pin<Box<dyn Future<Output = T> + 'f>>;

fn ready<T>(world: &World, future: impl Future<Output = T>) -> T {
    let mut future: Boxed<'_, T> = Box::pin(future);
    match world.settle(&mut future) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the operation should go on"),
    }
}

/// `UPDATE t SET … WHERE k = ?` without an index on k, as far as its locking scan goes: the ids found.
async fn ids_with(session: &mut Session, k: i32) -> Result<Vec<i32>, Error> {
    let (table, all) = (session.table.clone(), KeyRange::all());
    let mut scan = Scan::new(table, ScanIndex::Clustered, all, Direction::Forward, for_update(), false);
    scan.look_before_waiting();
    let mut ids = Vec::new();
    scan.run(&mut session.trx, &mut |row| {
        let found = copy_row(row);
        if found.k != k {
            return Control::SkipUnlock;
        }
        if !row.is_peeked() {
            ids.push(found.id);
        }
        Control::Continue
    })
    .await?;
    Ok(ids)
}

#[test]
fn at_read_committed_rows_that_do_not_match_are_not_waited_for() {
    let world = World::new(31);
    world.fill(&[(1, 10), (2, 20), (3, 30)]);
    let mut a = world.session_at(Isolation::ReadCommitted);
    let mut b = world.session_at(Isolation::ReadCommitted);
    a.begin();
    b.begin();
    // One row changed so that it would match, one only locked, one new.
    world.run(a.update(1, 30)).unwrap();
    world.run(a.lock(2)).unwrap();
    world.run(a.insert(4, 30)).unwrap();
    assert_eq!(ready(&world, ids_with(&mut b, 30)).unwrap(), [3]);
    assert_eq!(b.trx.id(), None);
    world.run(a.commit());
    // Rows that did not match are free, the one that did is not.
    assert_eq!(world.system.status().locks, 1);
    world.run(b.commit());
    assert_eq!(world.run(ids_with(&mut b, 30)).unwrap(), [1, 3, 4]);
    world.run(b.commit());
    assert_eq!(world.system.status().locks, 0);
}

#[test]
fn a_row_that_matched_when_last_committed_is_waited_for_and_judged_again() {
    let world = World::new(32);
    world.fill(&[(1, 10), (2, 20)]);
    let mut a = world.session_at(Isolation::ReadCommitted);
    let mut b = world.session_at(Isolation::ReadCommitted);
    a.begin();
    b.begin();
    world.run(a.update(1, 11)).unwrap();
    let mut wait: Boxed<'_, _> = Box::pin(ids_with(&mut b, 10));
    assert!(world.settle(&mut wait).is_pending());
    world.run(a.commit());
    let Poll::Ready(found) = world.settle(&mut wait) else { panic!("it goes on") };
    assert_eq!(found.unwrap(), [] as [i32; 0]);
    drop(wait);
    // As in InnoDB a row that was waited for stays locked.
    assert_eq!(world.system.status().locks, 1);
    world.run(b.commit());
    assert_eq!(world.system.status().locks, 0);
}

#[test]
fn at_repeatable_read_every_row_is_waited_for() {
    let world = World::new(33);
    world.fill(&[(1, 10), (2, 20)]);
    let (mut a, mut b) = (world.session(), world.session());
    a.begin();
    b.begin();
    world.run(a.update(1, 11)).unwrap();
    let mut wait: Boxed<'_, _> = Box::pin(ids_with(&mut b, 20));
    assert!(world.settle(&mut wait).is_pending());
    world.run(a.rollback());
    let Poll::Ready(found) = world.settle(&mut wait) else { panic!("it goes on") };
    assert_eq!(found.unwrap(), [2]);
}

/// The caller pauses at a row with a long column, to fetch that; the scan goes on and must not lock what
/// follows.
#[test]
fn one_row_by_its_key_is_all_that_is_locked_though_the_scan_pauses_there() {
    let world = World::new(34);
    world.fill(&[(1, 10), (5, 50)]);
    let (mut a, mut b) = (world.session(), world.session());
    world.run(a.set_v(1, Some(&[7; 20_000]))).unwrap();
    world.run(a.commit());
    a.begin();
    let (table, one) = (a.table.clone(), KeyRange::equal(key(1)));
    let mut scan = Scan::new(table, ScanIndex::Clustered, one, Direction::Forward, for_update(), false);
    let mut shown = 0;
    world.run(async {
        while scan
            .run(&mut a.trx, &mut |_| {
                shown += 1;
                Control::Pause
            })
            .await
            .unwrap()
            == ScanState::Paused
        {}
    });
    assert_eq!(shown, 1);
    b.begin();
    ready(&world, b.insert(2, 20)).unwrap();
    world.run(b.commit());
    world.run(a.commit());
}

/// A scan downwards guards the gap above its range, which may reach over to the next leaf.
#[test]
fn a_backward_scan_guards_the_gap_above_its_range_across_leaves() {
    let world = World::new(35);
    let rows: Vec<(i32, i32)> = (0..2_000).map(|id| (id * 10, id)).collect();
    world.fill(&rows);
    let (mut a, mut b) = (world.session(), world.session());
    for upper in (0..20_000).step_by(370) {
        a.begin();
        let range = between(upper - 25, upper);
        let found = world.run(a.try_scan(ScanIndex::Clustered, range, Direction::Backward, for_update()));
        assert!(!found.unwrap().is_empty());
        b.begin();
        let mut wait: Boxed<'_, _> = Box::pin(b.insert(upper / 10 * 10 + 5, 0));
        assert!(world.settle(&mut wait).is_pending(), "a phantom above {upper}");
        world.run(a.commit());
        let Poll::Ready(inserted) = world.settle(&mut wait) else { panic!("it goes on") };
        inserted.unwrap();
        drop(wait);
        world.run(b.rollback());
    }
}

/// The transaction that deleted a row may bring it back. What changes a row by its key must not say before
/// that there is none.
#[test]
fn a_change_waits_for_a_deletion_that_is_not_committed() {
    type Operation = for<'s> fn(&'s mut Session) -> Boxed<'s, Result<(), Error>>;
    let operations: [Operation; 3] =
        [|b| Box::pin(b.update(2, 21)), |b| Box::pin(b.delete(2)), |b| Box::pin(b.set_id(2, 5))];
    for change in operations {
        for comes_back in [true, false] {
            let world = World::new(37);
            world.fill(&[(1, 10), (2, 20)]);
            let (mut a, mut b) = (world.session(), world.session());
            a.begin();
            b.begin();
            world.run(a.delete(2)).unwrap();
            let mut waits = change(&mut b);
            assert!(world.settle(&mut waits).is_pending());
            if comes_back {
                world.run(a.rollback());
                world.run(waits).unwrap();
            } else {
                world.run(a.commit());
                assert!(matches!(world.run(waits), Err(Error::RowNotFound { .. })));
            }
            world.run(b.commit());
        }
    }
}

#[test]
fn a_change_that_changes_nothing_locks_the_row() {
    let world = World::new(38);
    world.fill(&[(1, 10), (2, 20)]);
    let (mut a, mut b) = (world.session(), world.session());
    a.begin();
    b.begin();
    // A field of an index, and one that would be overwritten where it lies.
    world.run(a.update(1, 10)).unwrap();
    world.run(a.set_n(2, None)).unwrap();
    for id in [1, 2] {
        let mut waits: Boxed<'_, _> = Box::pin(b.delete(id));
        assert!(world.settle(&mut waits).is_pending(), "row {id}");
    }
    world.run(a.commit());
    world.run(b.rollback());
    assert_eq!(world.system.status().locks, 0);
}

/// The row is in, and its insertion waits in one index for another transaction, while a scan looks once more
/// at the row's entry in the next index: deleted, and locked by the scan.
#[test]
fn an_entry_that_a_scan_has_locked_does_not_come_to_life_again() {
    let world = World::new(39);
    let (mut scan, mut other, mut writer) = (world.session(), world.session(), world.session());
    world.run(async {
        writer.begin();
        for (id, v) in [(16, b"a"), (17, b"x"), (18, b"z")] {
            writer.insert_all(id, 1, Some(id), Some(v)).await.unwrap();
        }
        writer.commit().await;
        writer.begin();
        writer.delete(17).await.unwrap();
        writer.commit().await;
    });
    let index = ScanIndex::Secondary(INDEX_V);
    let x = || KeyRange::equal(btree::OwnedKey::from_fields(&[Some(b"x")]));
    scan.begin();
    other.begin();
    writer.begin();
    assert!(world.run(scan.scan(index, x(), for_share())).is_empty());
    world.run(other.insert_all(5, 1, Some(50), None)).unwrap();
    let mut waits: Boxed<'_, _> = Box::pin(writer.insert_all(17, 1, Some(50), Some(b"x")));
    assert!(world.settle(&mut waits).is_pending());
    assert!(world.run(scan.scan(index, x(), for_share())).is_empty());
    world.run(other.rollback());
    assert!(world.settle(&mut waits).is_pending(), "the scan has the entry locked");
    world.run(scan.commit());
    world.run(waits).unwrap();
    world.run(writer.commit());
}
