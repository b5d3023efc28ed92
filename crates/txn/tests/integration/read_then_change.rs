//! A row locked by its key and changed at once: the change goes straight to where the read found the row, and
//! only if nothing there has changed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::*;
use pagestore::PageSize;
use untorn_txn::*;

/// Locks a row in the way of an UPDATE by primary key: its change is part of the same statement.
async fn lock_in_statement(session: &mut Session, id: i32) {
    let (table, range) = (session.table.clone(), KeyRange::equal(key(id)));
    let mut scan = Scan::new(table, ScanIndex::Clustered, range, Direction::Forward, for_update(), false);
    let mut found = 0;
    let each = &mut |_: &Row<'_>| {
        found += 1;
        Control::Continue
    };
    scan.run(&mut session.trx, each).await.unwrap();
    assert_eq!(found, 1);
}

fn requests(world: &World) -> u64 {
    world.store.status().read_requests
}

/// A tree of several levels.
fn world(seed: u64) -> World {
    let world = World::with(seed, 4 << 20, PageSize::new(4096).unwrap(), false);
    world.fill(&(0..4000).map(|id| (id * 2, id)).collect::<Vec<_>>());
    world
}

#[test]
fn the_change_needs_no_second_descent() {
    let world = world(500);
    let mut session = world.session();
    let mut counts = Vec::new();
    for seen in [true, false] {
        world.run(async {
            session.begin();
            // Warm: the undo slot is taken.
            session.update(10, 1).await.unwrap();
            lock_in_statement(&mut session, 5000).await;
            if !seen {
                session.trx.end_statement();
            }
            let before = requests(&world);
            session.set_v(5000, Some(b"changed")).await.unwrap();
            counts.push(requests(&world) - before);
            session.trx.end_statement();
            session.commit().await;
            assert_eq!(session.read_v(5000).await.unwrap(), b"changed");
            session.begin();
            session.set_v(5000, None).await.unwrap();
            session.commit().await;
        });
    }
    assert!(counts[0] < counts[1], "pages asked for with and without what was seen: {counts:?}");
    world.check();
}

#[test]
fn a_page_that_changed_since_is_searched_anew() {
    let world = world(501);
    let (mut session, mut other) = (world.session(), world.session());
    world.run(async {
        session.begin();
        other.begin();
        // A neighbour grows: the record's place on the page may be another.
        lock_in_statement(&mut session, 5000).await;
        other.set_v(5002, Some(&[7; 700])).await.unwrap();
        session.set_v(5000, Some(b"first")).await.unwrap();
        // The page is split: the record may be on another page.
        lock_in_statement(&mut session, 5000).await;
        for id in 4980..5020 {
            if id % 2 == 1 {
                other.insert_all(id, 0, None, Some(&[8; 500])).await.unwrap();
            }
        }
        session.update(5000, 77).await.unwrap();
        // Neighbours go and are purged away.
        other.commit().await;
        lock_in_statement(&mut session, 5000).await;
        other.begin();
        for id in (4900..5100).filter(|id| id % 2 == 0 && *id != 5000) {
            other.delete(id).await.unwrap();
        }
        other.commit().await;
        world.system.purge_all().await.unwrap();
        session.update(5000, 78).await.unwrap();
        // Another row than the one that was locked.
        lock_in_statement(&mut session, 5000).await;
        session.update(20, 79).await.unwrap();
        lock_in_statement(&mut session, 5000).await;
        session.delete(5000).await.unwrap();
        session.commit().await;
        assert_eq!(session.read(5000).await, None);
        assert_eq!(session.read(20).await, Some(79));
        assert_eq!(session.pairs().await.len(), 4000 - 100 + 20);
    });
    world.check();
}
