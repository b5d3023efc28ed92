//! Counting the rows of a table: what a scan shows, leaf by leaf, or without going through them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::*;
use disk::Environment;
use pagestore::PageSize;
use untorn_txn::*;

/// How many rows the session sees, which is what its scan shows; and whether it went through them.
async fn counted_how(session: &mut Session) -> (u64, bool) {
    let table = session.table.clone();
    let read = session.trx.rows_read();
    let rows = count(&mut session.trx, &table).await.unwrap();
    let read = session.trx.rows_read() - read;
    assert!(read == rows || read == 0);
    session.trx.end_statement();
    assert_eq!(rows, session.all().await.len() as u64);
    (rows, read > 0)
}

async fn counted(session: &mut Session) -> u64 {
    counted_how(session).await.0
}

/// Rows that were deleted, changed and inserted, by transactions that are seen and by others; in a pool that
/// has neither the leaves nor the undo log.
#[test]
fn a_count_is_of_what_the_read_view_sees() {
    let world = World::with(800, 40 * 4096, PageSize::new(4096).unwrap(), false);
    let mut empty = world.session();
    assert_eq!(world.run(counted(&mut empty)), 0);
    world.fill(&(0..3000).map(|id| (id * 2, id)).collect::<Vec<_>>());
    let levels = [Isolation::ReadUncommitted, Isolation::ReadCommitted, Isolation::RepeatableRead];
    let mut before = levels.map(|level| world.session_at(level));
    let (mut writer, mut active) = (world.session(), world.session());
    world.run(async {
        for session in &mut before {
            session.begin();
            assert_eq!(counted(session).await, 3000);
        }
        writer.begin();
        for id in 0..1000 {
            writer.delete(id * 4).await.unwrap();
        }
        for id in 0..700 {
            writer.insert(id * 8 + 1, 7).await.unwrap();
        }
        writer.commit().await;
        active.begin();
        for id in 0..300 {
            active.delete(id * 4 + 2).await.unwrap();
        }
        for id in 6000..6200 {
            active.insert(id, 7).await.unwrap();
        }
        assert_eq!(counted(&mut active).await, 2600);
        let mut seen = Vec::new();
        for session in &mut before {
            seen.push(counted(session).await);
        }
        assert_eq!(seen, [2600, 2700, 3000]);
        active.rollback().await;
        assert_eq!(counted(&mut active).await, 2700);
        for session in &mut before {
            session.commit().await;
        }
    });
}

#[test]
fn a_count_gives_way_and_can_be_killed() {
    let world = World::new(801);
    world.fill(&(0..3000).map(|id| (id, id)).collect::<Vec<_>>());
    let mut session = world.session();
    let table = session.table.clone();
    session.trx.slice().measure_in_units(100);
    for polls in [1, 5] {
        assert!(
            world.run(for_polls(count(&mut session.trx, &table), polls)).is_none(),
            "after {polls} polls"
        );
    }
    assert_eq!(world.run(count(&mut session.trx, &table)).unwrap(), 3000);
    session.trx.kill_handle().kill();
    assert!(matches!(world.run(count(&mut session.trx, &table)), Err(Error::Killed)));
}

/// A few rows on one leaf, each of them with a history that the read view wants the beginning of.
fn with_histories(world: &World, rows: i32, changes: i32) -> Session {
    world.fill(&(0..rows).map(|id| (id, 0)).collect::<Vec<_>>());
    let (mut old, mut writer) = (world.session(), world.session());
    world.run(async {
        old.begin();
        assert_eq!(counted(&mut old).await, rows as u64);
        for change in 0..changes {
            writer.begin();
            for id in 0..rows {
                writer.set_n(id, Some(change)).await.unwrap();
            }
            writer.commit().await;
        }
        // Another number of rows, so that the old view is not told one that is known.
        writer.begin();
        writer.insert(1_000_000, 0).await.unwrap();
        writer.commit().await;
    });
    old
}

#[test]
fn a_count_gives_way_amid_a_page_of_long_histories() {
    let world = World::new(802);
    let mut old = with_histories(&world, 40, 100);
    let table = old.table.clone();
    old.trx.slice().measure_in_units(500);
    // 4,000 versions: eight slices. By rows it would be over with the first.
    assert!(world.run(for_polls(count(&mut old.trx, &table), 6)).is_none(), "it kept the leaf");
    assert_eq!(world.run(count(&mut old.trx, &table)).unwrap(), 40);
}

#[test]
fn what_was_looked_at_before_a_wait_is_counted_as_work() {
    let world = World::new(803);
    let mut old = with_histories(&world, 1, 600);
    let table = old.table.clone();
    old.trx.slice().begin();
    old.trx.slice().measure_in_units(500);
    // The walk along 600 versions lets go of the leaf after 512.
    assert!(world.run(for_polls(count(&mut old.trx, &table), 1)).is_none());
    assert!(old.trx.slice().spend(16), "512 versions were no work");
    assert_eq!(world.run(count(&mut old.trx, &table)).unwrap(), 1);
}

/// Known from the first count on, for all views that see the commits that it is made of, and no others.
#[test]
fn a_count_that_is_known_goes_through_no_rows() {
    let world = World::new(804);
    world.fill(&(0..100).map(|id| (id, id)).collect::<Vec<_>>());
    let (mut writer, mut old, mut reader) = (world.session(), world.session(), world.session());
    let mut uncommitted = world.session_at(Isolation::ReadUncommitted);
    world.run(async {
        assert_eq!(counted_how(&mut reader).await, (100, true));
        old.begin();
        assert_eq!(counted_how(&mut old).await, (100, false));
        writer.begin();
        writer.delete(7).await.unwrap();
        writer.delete(8).await.unwrap();
        writer.insert(8, 8).await.unwrap();
        writer.insert(1000, 0).await.unwrap();
        assert_eq!(counted_how(&mut writer).await, (100, false), "with its own changes");
        writer.insert(1001, 0).await.unwrap();
        assert!(matches!(writer.insert(1001, 0).await, Err(Error::DuplicateKey { .. })));
        writer.trx.savepoint("s");
        writer.insert(1002, 0).await.unwrap();
        writer.delete(9).await.unwrap();
        writer.delete(1001).await.unwrap();
        assert_eq!(counted_how(&mut writer).await, (100, false));
        assert!(writer.trx.rollback_to_savepoint("s").await.unwrap());
        assert_eq!(counted_how(&mut writer).await, (101, false));
        assert_eq!(counted_how(&mut reader).await, (100, false), "what is not committed does not count");
        assert_eq!(counted_how(&mut uncommitted).await, (101, true));
        writer.commit().await;
        assert_eq!(counted_how(&mut reader).await, (101, false));
        assert_eq!(counted_how(&mut old).await, (100, true), "the view of before");
        assert_eq!(counted_how(&mut reader).await, (101, false), "which has taught it nothing");
        writer.begin();
        writer.insert(2000, 0).await.unwrap();
        writer.rollback().await;
        drop(writer);
        assert_eq!(counted_how(&mut reader).await, (101, false));
    });
}

/// Changes and savepoints at random; a count is never anything else than what a scan shows, and goes through
/// the rows only where a view is older than a commit.
#[test]
fn a_known_count_is_what_a_scan_shows() {
    for seed in 0..20 {
        let world = World::new(810 + seed);
        world.system.set_row_count(&world.table, 0);
        let mut sessions = [world.session(), world.session_at(Isolation::ReadCommitted)];
        let mut went_through = 0;
        let below = |most: u64| (world.env.random_u64() >> 8) % most;
        world.run(async {
            for _ in 0..300 {
                // Ids of their own, so that nobody waits.
                let which = below(2) as usize;
                let id = (below(40) * 2) as i32 + which as i32;
                let session = &mut sessions[which];
                if !session.trx.is_active() {
                    session.begin();
                }
                match below(12) {
                    0..4 => _ = session.insert(id, 1).await,
                    4..7 => _ = session.delete(id).await,
                    7 => session.trx.savepoint("s"),
                    8 => _ = session.trx.rollback_to_savepoint("s").await.unwrap(),
                    // Cut somewhere: undone before anything else.
                    9 => _ = for_polls(session.insert(id, 2), 1 + below(3) as usize).await,
                    10 => session.commit().await,
                    _ => session.rollback().await,
                }
                for session in &mut sessions {
                    went_through += u64::from(counted_how(session).await.1);
                }
            }
        });
        assert!(went_through < 300, "{went_through}: mostly it is known");
    }
}

/// Nobody knows any more what a prepared transaction has inserted that a start has found.
#[test]
fn a_transaction_that_was_prepared_before_a_crash_makes_counts_unknown() {
    let world = World::new(830);
    world.fill(&[(1, 1), (2, 2)]);
    let mut session = world.session();
    world.run(async {
        session.begin();
        session.insert(3, 3).await.unwrap();
        session.trx.prepare(&Xid::new(1, b"a", b"").unwrap(), Durability::Sync).await.unwrap();
    });
    drop(session);
    let world = world.crash(831);
    let mut found = world.prepared.lock().pop().unwrap();
    let mut reader = world.session();
    world.run(async {
        assert_eq!(counted_how(&mut reader).await, (2, true));
        assert_eq!(counted_how(&mut reader).await, (2, false));
        found.transaction.commit(Durability::Sync).await.unwrap();
        assert_eq!(counted_how(&mut reader).await, (3, true));
        assert_eq!(counted_how(&mut reader).await, (3, false));
    });
}

/// A transaction with a view from before goes through the rows, also where as many were added as were
/// removed: its own transaction may have removed one of those that it does not see.
#[test]
fn rows_that_took_the_place_of_others_are_not_counted_by_an_older_view() {
    for is_known in [true, false] {
        let world = World::new(840);
        world.fill(&[(1, 1)]);
        let (mut old, mut other) = (world.session(), world.session());
        world.run(async {
            if is_known {
                assert_eq!(counted_how(&mut other).await.0, 1);
                other.commit().await;
            }
            old.begin();
            // Opens its view.
            assert_eq!(old.all().await.len(), 1);
            other.begin();
            other.delete(1).await.unwrap();
            other.insert(9, 9).await.unwrap();
            other.commit().await;
            old.delete(9).await.unwrap();
            assert_eq!(counted_how(&mut old).await, (1, true), "row 1 is there in its view");
            old.commit().await;
            assert_eq!(counted_how(&mut other).await.0, 0);
        });
    }
}
