//! Changes that leave every field where it is: written over the record, found after the last one without a
//! descent, and as safe as any other.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::*;
use std::sync::Arc;

use btree::{Field, FieldDef, IndexDef, Tree};
use pagestore::{PageSize, PageStore, fsp};
use untorn_txn::*;

/// Every row's N, by id.
async fn numbers(session: &mut Session) -> Vec<(i32, Option<i32>)> {
    contents(session).await.into_iter().map(|(id, (n, _))| (id, n)).collect()
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
fn the_first_change_of_a_transaction_looks_for_its_row_once() {
    let world = world(605);
    let mut session = world.session();
    let requests = || world.store.status().read_requests;
    world.run(async {
        // The slot has a page.
        session.set_n(0, Some(-1)).await.unwrap();
        session.commit().await;
        for deletes in [false, true] {
            session.begin();
            let mut counts = Vec::new();
            for id in [1000, 3000] {
                let before = requests();
                match deletes {
                    true => session.delete(id).await.unwrap(),
                    false => session.set_n(id, Some(-1)).await.unwrap(),
                }
                counts.push(requests() - before);
            }
            // Of the undo page.
            assert!(counts[0] <= counts[1] + 1, "pages asked for, deletions {deletes}: {counts:?}");
            session.commit().await;
        }
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
            // All around it goes, so that what is left moves to another page. The old one keeps its bytes,
            // freed.
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

/// A change to what is there already writes nothing.
#[test]
fn a_change_of_nothing_is_none() {
    let world = world(605);
    let mut session = world.session();
    world.run(async {
        session.begin();
        session.set_n(10, Some(77)).await.unwrap();
        let before = world.redo.current();
        session.set_n(10, Some(77)).await.unwrap();
        assert_eq!(world.redo.current(), before);
        session.commit().await;
    });
}

#[test]
fn rows_deleted_in_order_need_no_descents() {
    let world = world(606);
    let mut session = world.session();
    let requests = || world.store.status().read_requests;
    world.run(async {
        let mut counts = Vec::new();
        for forward in [true, false] {
            session.begin();
            let order: Vec<i32> = if forward { ids().collect() } else { ids().rev().collect() };
            let before = requests();
            for id in order {
                // Not the entries of the other indexes, which are looked for as well: of those there are as
                // many either way.
                session.delete(id).await.unwrap();
            }
            counts.push(requests() - before);
            session.rollback().await;
        }
        assert!(counts[0] + 1500 < counts[1], "pages asked for upwards and downwards: {counts:?}");
    });
    world.check();
}

/// What N and C of each row are; C `None` is NULL.
type Model = std::collections::BTreeMap<i32, (Option<i32>, Option<Vec<u8>>)>;

async fn contents(session: &mut Session) -> Model {
    let mut rows = Model::new();
    let (table, all) = (session.table.clone(), KeyRange::all());
    let mut scan =
        Scan::new(table, ScanIndex::Clustered, all, Direction::Forward, ReadMode::Consistent, false);
    let each = &mut |row: &Row<'_>| {
        let value = |column| row.column(column).inline();
        rows.insert(to_int(value(ID).unwrap()), (value(N).map(to_int), value(C).map(<[u8]>::to_vec)));
        Control::Continue
    };
    scan.run(&mut session.trx, each).await.unwrap();
    session.trx.end_statement();
    rows
}

/// Columns of the same and of other lengths, NULLs, the same column twice, beside deletions; back to
/// savepoints, old views, crashes.
#[test]
fn any_change_is_what_the_model_says() {
    for seed in 610..622 {
        let mut random = disk::Random::new(seed);
        let mut world = world(seed);
        let mut model: Model = ids().map(|id| (id, (Some(id), None))).collect();
        for round in 0..3 {
            let (mut session, mut reader) = (world.session(), world.session());
            world.run(async {
                reader.begin();
                let old = contents(&mut reader).await;
                assert_eq!(old, model, "seed {seed}, round {round}");
                session.begin();
                let (mut new, mut saved) = (model.clone(), None);
                let mut id = 0;
                for step in 0..1500 {
                    id = if random.one_in(8) { random.below(2000) as i32 * 2 } else { (id + 2) % 4000 };
                    if step == 500 {
                        session.trx.savepoint("here");
                        saved = Some(new.clone());
                    }
                    let Some(row) = new.get_mut(&id) else { continue };
                    if random.one_in(20) {
                        session.delete(id).await.unwrap();
                        new.remove(&id);
                        continue;
                    }
                    let n = (!random.one_in(5)).then(|| random.below(3) as i32);
                    let c = (!random.one_in(5))
                        .then(|| vec![random.below(3) as u8; [3, 3, 3, 8, 0][random.below(5)]]);
                    let (number, other) = (n.map(int), int(-1));
                    let (n_field, c_field) = (number.as_ref().map(|n| &n[..]), c.as_deref());
                    let changes: &[(u16, Field<'_>)] = match random.below(5) {
                        0 => &[(N, n_field)],
                        1 => &[(C, c_field)],
                        2 => &[(C, c_field), (N, n_field)],
                        3 => &[(N, Some(&other)), (C, c_field), (N, n_field)],
                        _ => &[(N, n_field), (C, c_field)],
                    };
                    for (column, _) in changes {
                        match *column {
                            N => row.0 = n,
                            _ => row.1.clone_from(&c),
                        }
                    }
                    let key = int(id);
                    update(&mut session.trx, &session.table, &[Some(&key)], changes).await.unwrap();
                }
                assert_eq!(contents(&mut reader).await, old, "an older view, seed {seed}");
                if let (true, Some(saved)) = (random.one_in(2), saved) {
                    session.trx.rollback_to_savepoint("here").await.unwrap();
                    new = saved;
                }
                assert_eq!(contents(&mut session).await, new, "seed {seed}, round {round}");
                if random.one_in(4) {
                    session.rollback().await;
                } else {
                    session.commit().await;
                    model = new;
                }
                assert_eq!(contents(&mut reader).await, old, "an older view, seed {seed}");
                reader.commit().await;
                if random.one_in(2) {
                    world.system.purge_all().await.unwrap();
                }
            });
            drop((session, reader));
            world.check();
            if round == 1 {
                world = world.crash(seed + 1000);
            }
        }
    }
}

/// A row of a page of 4 KiB may have more columns than their old values fit into an undo page.
#[test]
fn a_change_with_too_much_to_remember_is_refused() {
    let world = World::with(630, 4 << 20, PageSize::new(4096).unwrap(), false);
    let (narrow, table) = world.run(narrow_table(&world.store, 900));
    let mut transaction = Transaction::new(&world.system);
    let (old, new, id) = ([1; 2], [2; 2], int(1));
    let row =
        |value| std::iter::once(Some(&id[..])).chain(std::iter::repeat_n(Some(value), narrow)).collect();
    world.run(async {
        transaction.begin();
        let row: Vec<Field<'_>> = row(&old[..]);
        insert(&mut transaction, &table, &row).await.unwrap();
        let change = |count: usize| (1..=count as u16).map(|column| (column, Some(&new[..]))).collect();
        let changes: Vec<(u16, Field<'_>)> = change(narrow);
        let refused = update(&mut transaction, &table, &[Some(&id)], &changes).await;
        assert!(matches!(refused, Err(Error::UndoRecordTooBig { .. })), "{refused:?}");
        let changes: Vec<(u16, Field<'_>)> = change(narrow / 2);
        update(&mut transaction, &table, &[Some(&id)], &changes).await.unwrap();
        transaction.rollback().await.unwrap();
    });
}

/// A table of `columns` columns of two bytes after its key, in a tablespace of its own.
async fn narrow_table(store: &Arc<PageStore>, columns: usize) -> (usize, Arc<Table>) {
    const OTHER: u32 = SPACE + 1;
    store.create_space(OTHER, std::path::Path::new("/data/narrow.ibd"), fsp::INITIAL_PAGES).unwrap();
    let system = [("id", 4), ("DB_TRX_ID", 6), ("DB_ROLL_PTR", 7)];
    let narrow = std::iter::repeat_n(("narrow", 2), columns);
    let fields = system.into_iter().chain(narrow).map(|(name, bytes)| FieldDef::fixed(name, bytes)).collect();
    let def = Arc::new(IndexDef::new(900, "PRIMARY", true, true, fields, 1, 1));
    let tree = again(|| {
        let mut mtr = store.mtr_sized(1 << 20)?;
        fsp::create_space_pages(&mut mtr, OTHER, fsp::INITIAL_PAGES)?;
        let tree = Tree::create(&mut mtr, store, OTHER, def.clone())?;
        mtr.commit();
        Ok(tree)
    })
    .await;
    let mut kinds = vec![ClusteredField::Column(0), ClusteredField::TrxId, ClusteredField::RollPtr];
    kinds.extend((1..=columns as u16).map(ClusteredField::Column));
    (columns, Arc::new(Table::new(900, Arc::new(tree), kinds, Vec::new(), columns + 1)))
}
