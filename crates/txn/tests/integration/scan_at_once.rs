//! A range of the clustered index that is read in one go: it gives way where that would take long.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::*;
use untorn_txn::*;

/// Rows that the callback wants.
const WANTED: u32 = 16;

/// The first rows of a range, if they are read at once.
fn first_rows(session: &mut Session, direction: Direction) -> Option<Vec<i32>> {
    let mut rows = Vec::new();
    let mut take = |row: &Row<'_>| {
        rows.push(copy_row(row).id);
        Some(if rows.len() == WANTED as usize { Control::Pause } else { Control::Continue })
    };
    let table = session.table.clone();
    let state = scan_at_once(&mut session.trx, &table, &KeyRange::all(), direction, WANTED, &mut take);
    session.trx.end_statement();
    state.map(|_| rows)
}

#[test]
fn rows_that_nobody_sees_are_not_gone_through_at_once() {
    let world = World::new(700);
    let rows: Vec<(i32, i32)> = (0..4000).map(|id| (id, id)).collect();
    world.fill(&rows);
    let (mut reader, mut writer) = (world.session(), world.session());
    let first: Vec<i32> = (0..16).collect();
    let last: Vec<i32> = (3984..4000).rev().collect();
    assert_eq!(first_rows(&mut reader, Direction::Forward), Some(first.clone()));
    assert_eq!(first_rows(&mut reader, Direction::Backward), Some(last.clone()));

    // Some that are gone are nothing.
    world.run(async {
        writer.begin();
        for id in 0..10 {
            writer.delete(id).await.unwrap();
        }
        writer.commit().await;
    });
    assert_eq!(first_rows(&mut reader, Direction::Forward), Some((10..26).collect()));

    // All but the last ones: nobody purges them here.
    world.run(async {
        writer.begin();
        for id in 10..3984 {
            writer.delete(id).await.unwrap();
        }
        writer.commit().await;
    });
    assert_eq!(first_rows(&mut reader, Direction::Forward), None, "thousands of rows that were deleted");
    assert_eq!(first_rows(&mut reader, Direction::Backward), Some(last.clone()));

    // Those of a transaction that is active.
    world.run(async {
        writer.begin();
        for id in 4000..6000 {
            writer.insert(id, id).await.unwrap();
        }
    });
    assert_eq!(first_rows(&mut reader, Direction::Backward), None, "thousands of rows of somebody else");
    assert_eq!(first_rows(&mut writer, Direction::Backward), Some((5984..6000).rev().collect()));
    world.run(async {
        assert_eq!(reader.pairs().await.len(), 16, "a scan goes through them");
        writer.rollback().await;
    });
}
