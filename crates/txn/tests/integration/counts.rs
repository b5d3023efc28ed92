//! Counting the rows of a table: what a scan shows, leaf by leaf.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::*;
use pagestore::PageSize;
use untorn_txn::*;

/// How many rows the session sees, which is what its scan shows.
async fn counted(session: &mut Session) -> u64 {
    let table = session.table.clone();
    let read = session.trx.rows_read();
    let rows = count(&mut session.trx, &table).await.unwrap();
    assert_eq!(session.trx.rows_read() - read, rows);
    session.trx.end_statement();
    assert_eq!(rows, session.all().await.len() as u64);
    rows
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
