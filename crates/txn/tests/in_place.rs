//! Changes that leave every field where it is: written over the record, found behind the last one without a descent, and
//! as safe as any other.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
use common::*;
use pagestore::PageSize;
use untorn_txn::*;

/// Every row's N, by id.
async fn numbers(session: &mut Session) -> Vec<(i32, Option<i32>)> {
    let mut rows = Vec::new();
    let all = KeyRange::all();
    let mut scan = Scan::new(
        session.table.clone(),
        ScanIndex::Clustered,
        all,
        Direction::Forward,
        ReadMode::Consistent,
        false,
    );
    let each = &mut |row: &Row<'_>| {
        let id = to_int(row.column(ID).inline().unwrap());
        rows.push((id, row.column(N).inline().map(to_int)));
        Control::Continue
    };
    scan.run(&mut session.trx, each).await.unwrap();
    session.trx.end_statement();
    rows
}

/// A tree of several levels.
fn world(seed: u64) -> World {
    let world = World::with(seed, 4 << 20, PageSize::new(4096).unwrap(), false);
    world.fill(&(0..2000).map(|id| (id * 2, id)).collect::<Vec<_>>());
    world
}

fn numbered(ids: impl Iterator<Item = i32>, n: impl Fn(i32) -> Option<i32>) -> Vec<(i32, Option<i32>)> {
    ids.map(|id| (id, n(id))).collect()
}

fn ids() -> impl DoubleEndedIterator<Item = i32> {
    (0..2000).map(|id| id * 2)
}

#[test]
fn rows_changed_in_order_need_no_descents() {
    let world = world(600);
    let mut session = world.session();
    let requests = || world.store.status().read_requests;
    world.run(async {
        session.begin();
        let mut counts = Vec::new();
        for (round, forward) in [true, false].into_iter().enumerate() {
            let order: Vec<i32> = if forward { ids().collect() } else { ids().rev().collect() };
            let before = requests();
            for id in order {
                session.set_n(id, Some(id + 1 + round as i32)).await.unwrap();
            }
            counts.push(requests() - before);
        }
        assert!(counts[0] * 3 < counts[1] * 2, "pages asked for upwards and downwards: {counts:?}");
        session.commit().await;
        assert_eq!(numbers(&mut session).await, numbered(ids(), |id| Some(id + 2)));
    });
    world.check();
}

#[test]
fn versions_rollback_and_recovery_see_through_them() {
    let world = world(601);
    let (mut session, mut reader) = (world.session(), world.session());
    let old = numbered(ids(), Some);
    world.run(async {
        reader.begin();
        assert_eq!(numbers(&mut reader).await, old);
        session.begin();
        for id in ids() {
            session.set_n(id, Some(-id)).await.unwrap();
            // A value and none do not take the same room; the way back is not in place either.
            if id % 6 == 0 {
                session.set_n(id, None).await.unwrap();
            }
            if id % 10 == 0 {
                session.set_n(id, Some(7)).await.unwrap();
            }
        }
        session.trx.savepoint("here");
        for id in ids() {
            session.set_n(id, Some(99)).await.unwrap();
        }
        session.trx.rollback_to_savepoint("here").await.unwrap();
        assert_eq!(numbers(&mut reader).await, old, "an older read view");
        session.commit().await;
        assert_eq!(numbers(&mut reader).await, old, "an older read view");
        reader.commit().await;
    });
    let new = numbered(ids(), |id| match id {
        id if id % 10 == 0 => Some(7),
        id if id % 6 == 0 => None,
        id => Some(-id),
    });
    world.run(async {
        assert_eq!(numbers(&mut reader).await, new);
        reader.commit().await;
        world.system.purge_all().await.unwrap();
        session.begin();
        for id in ids() {
            session.set_n(id, Some(1234)).await.unwrap();
        }
    });
    world.redo.flush_blocking(world.redo.current(), redo::Flush::Sync).unwrap();
    drop((session, reader));
    let world = world.crash(602);
    let mut session = world.session();
    assert_eq!(world.run(numbers(&mut session)), new, "what had not committed is taken back");
    world.check();
}

#[test]
fn a_page_that_changed_since_the_last_row_is_searched_anew() {
    let world = world(603);
    let (mut session, mut other) = (world.session(), world.session());
    world.run(async {
        session.begin();
        other.begin();
        // A row comes in between: it is not the next one.
        session.set_n(1000, Some(1)).await.unwrap();
        other.insert(1001, 0).await.unwrap();
        session.set_n(1002, Some(2)).await.unwrap();
        // The page is split between two rows.
        session.set_n(1004, Some(3)).await.unwrap();
        for id in (900..1100).filter(|id| id % 2 == 1 && *id != 1001) {
            other.insert_all(id, 0, None, Some(&[8; 500])).await.unwrap();
        }
        session.set_n(1006, Some(4)).await.unwrap();
        // The next row was deleted by its own transaction, and is on the page still.
        session.set_n(1008, Some(5)).await.unwrap();
        session.delete(1010).await.unwrap();
        assert!(matches!(session.set_n(1010, Some(6)).await, Err(Error::RowNotFound { .. })));
        session.set_n(1012, Some(6)).await.unwrap();
        other.commit().await;
        session.commit().await;
        let found = numbers(&mut session).await;
        let of = |id: i32| found.iter().find(|row| row.0 == id).map(|row| row.1);
        let rows = [(1000, 1), (1002, 2), (1004, 3), (1006, 4), (1008, 5), (1012, 6)];
        for (id, n) in rows {
            assert_eq!(of(id), Some(Some(n)), "row {id}");
        }
        assert_eq!(of(1010), None);
        assert_eq!(of(1001), Some(Some(1001)));
        assert_eq!(found.len(), 2000 + 100 - 1);
    });
    world.check();
}

#[test]
fn a_page_that_was_merged_away_is_not_written_to() {
    let world = world(604);
    let (mut session, mut other) = (world.session(), world.session());
    let centers: Vec<i32> = (300..3800).step_by(500).collect();
    world.run(async {
        for center in &centers {
            session.begin();
            session.set_n(*center, Some(-1)).await.unwrap();
            // All around it goes, so that what is left moves to another page. The old one keeps its bytes, freed.
            other.begin();
            for id in
                (center - 200..center + 200).filter(|id| id % 2 == 0 && ![*center, center + 2].contains(id))
            {
                other.delete(id).await.unwrap();
            }
            other.commit().await;
            world.system.purge_all().await.unwrap();
            session.set_n(center + 2, Some(-2)).await.unwrap();
            session.commit().await;
        }
        let found = numbers(&mut session).await;
        for center in &centers {
            let rows: Vec<_> = found.iter().filter(|row| (row.0 - center).abs() < 200).collect();
            assert_eq!(rows, [&(*center, Some(-1)), &(center + 2, Some(-2))]);
        }
    });
    world.check();
}
