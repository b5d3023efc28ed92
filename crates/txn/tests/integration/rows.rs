//! Row operations of one transaction at a time: what is written is read, old versions, rollback, long values.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::*;
use untorn_txn::*;

#[test]
fn rows_inserted_changed_and_deleted_are_read_back() {
    let world = World::new(1);
    let mut session = world.session();
    world.run(async {
        session.begin();
        for id in 0..500 {
            session.insert_all(id, id / 10, Some(id), Some(b"value")).await.unwrap();
        }
        session.commit().await;
        session.begin();
        session.update(7, 1000).await.unwrap();
        session.delete(8).await.unwrap();
        session.set_id(9, 9000).await.unwrap();
        session.commit().await;
        assert_eq!(session.read(7).await, Some(1000));
        assert_eq!(session.read(8).await, None);
        assert_eq!(session.read(9).await, None);
        assert_eq!(session.read(9000).await, Some(0));
        let by_k = session.scan_k(KeyRange::equal(key(0)), ReadMode::Consistent).await;
        assert_eq!(by_k.iter().map(|row| row.id).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6, 9000]);
        let last = session
            .try_scan(
                ScanIndex::Secondary(INDEX_K),
                KeyRange::all(),
                Direction::Backward,
                ReadMode::Consistent,
            )
            .await
            .unwrap();
        assert_eq!(last[0].id, 7);
        assert_eq!(last.len(), 499);
    });
    world.check();
}

#[test]
fn rollback_restores_rows_and_indexes() {
    let world = World::new(2);
    let rows: Vec<(i32, i32)> = (0..300).map(|id| (id, id % 7)).collect();
    world.fill(&rows);
    let mut session = world.session();
    world.run(async {
        session.begin();
        for id in 0..300 {
            match id % 4 {
                0 => session.update(id, id + 5000).await.unwrap(),
                1 => session.delete(id).await.unwrap(),
                2 => session.insert_all(id + 1000, 1, Some(id), None).await.unwrap(),
                _ => {
                    session.delete(id).await.unwrap();
                    session.insert(id, 42).await.unwrap();
                    session.update(id, 43).await.unwrap();
                }
            }
        }
        assert_eq!(session.read(3).await, Some(43), "a transaction sees its own changes");
        session.rollback().await;
        assert_eq!(session.pairs().await, rows);
    });
    world.check();
    assert_eq!(world.system.status().active, 0);
    assert_eq!(world.system.status().locks, 0);
}

#[test]
fn statements_and_savepoints_roll_back_alone() {
    let world = World::new(3);
    let mut session = world.session();
    world.run(async {
        session.begin();
        session.insert(1, 10).await.unwrap();
        session.trx.savepoint("a");
        session.update(1, 11).await.unwrap();
        session.insert(2, 20).await.unwrap();
        session.trx.savepoint("b");
        session.delete(1).await.unwrap();
        let mark = session.trx.statement_mark();
        session.insert(3, 30).await.unwrap();
        session.trx.rollback_to(mark).await.unwrap();
        assert_eq!(session.pairs().await, [(2, 20)]);
        assert!(session.trx.rollback_to_savepoint("B").await.unwrap());
        assert_eq!(session.pairs().await, [(1, 11), (2, 20)]);
        assert!(session.trx.rollback_to_savepoint("a").await.unwrap());
        assert!(!session.trx.rollback_to_savepoint("b").await.unwrap(), "later savepoints are gone");
        session.insert(4, 40).await.unwrap();
        session.commit().await;
        assert_eq!(session.pairs().await, [(1, 10), (4, 40)]);
    });
    world.check();
}

#[test]
fn duplicate_keys_leave_nothing_behind() {
    let world = World::new(4);
    let mut session = world.session();
    world.run(async {
        session.insert_all(1, 1, Some(100), None).await.unwrap();
        session.insert_all(2, 2, None, None).await.unwrap();
        session.insert_all(3, 3, None, None).await.unwrap();
        session.commit().await;
        session.begin();
        let error = session.insert(1, 5).await.unwrap_err();
        assert!(matches!(error, Error::DuplicateKey { ref index, .. } if index == "PRIMARY"));
        let error = session.insert_all(9, 9, Some(100), None).await.unwrap_err();
        let expected = vec![Some(int(100).to_vec())];
        assert!(matches!(error, Error::DuplicateKey { ref index, ref entry } if index == "u" && *entry == expected));
        assert_eq!(session.read(9).await, None, "the row of a failed insert is gone");
        let error = session.set_u(2, Some(100)).await.unwrap_err();
        assert!(matches!(error, Error::DuplicateKey { .. }));
        session.set_u(1, Some(101)).await.unwrap();
        session.set_u(2, Some(100)).await.unwrap();
        session.commit().await;
    });
    world.check();
}

#[test]
fn long_values_go_off_page_and_come_back() {
    let world = World::new(5);
    let long: Vec<u8> = (0..60_000u32).map(|at| (at % 251) as u8).collect();
    let mut session = world.session();
    let mut reader = world.session();
    world.run(async {
        session.begin();
        session.insert_all(1, 1, None, Some(&long)).await.unwrap();
        session.insert_all(2, 2, None, Some(b"short")).await.unwrap();
        session.commit().await;
        assert_eq!(session.read_v(1).await.unwrap(), long);
        reader.begin();
        assert_eq!(reader.read_v(1).await.unwrap(), long);
        session.begin();
        session.set_v(1, Some(b"now short")).await.unwrap();
        session.set_v(2, Some(&long[..30_000])).await.unwrap();
        session.rollback().await;
        assert_eq!(session.read_v(1).await.unwrap(), long);
        assert_eq!(session.read_v(2).await.unwrap(), b"short");
        session.begin();
        session.set_v(1, Some(b"now short")).await.unwrap();
        session.set_v(2, Some(&long[..30_000])).await.unwrap();
        session.commit().await;
        world.system.purge_all().await.unwrap();
        assert_eq!(reader.read_v(1).await.unwrap(), long, "an open view keeps the old value");
        assert_eq!(session.read_v(2).await.unwrap(), &long[..30_000]);
        reader.commit().await;
        world.system.purge_all().await.unwrap();
        assert_eq!(world.system.status().history_length, 0);
        assert_eq!(session.read_v(1).await.unwrap(), b"now short");
    });
    world.check();
}
