//! Foreign keys through the crate: what is checked, what follows, what is refused, and what happens to
//! transactions that meet.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::sync::Arc;

use crate::definitions::{child_of, columns};
use untorn::schema::{ColumnDef, ForeignKey, ForeignKeyRefusal, ReferentialAction, TableDef};
use untorn::types::{Collation, ColumnType, Value};
use untorn::{Database, Error, Options, Range, Table, Transaction};

use ReferentialAction::{Cascade, NoAction, SetNull};

fn db() -> Database {
    let db = Database::in_memory().unwrap();
    db.create_database("d", Collation::Utf8mb4Bin).unwrap();
    db
}

fn pair(on_delete: ReferentialAction, on_update: ReferentialAction) -> (Database, Arc<Table>, Arc<Table>) {
    let db = db();
    let parent = db.create_table("d", "p", columns()).unwrap();
    let child = db.create_table("d", "c", child_of("p", on_delete, on_update)).unwrap();
    (db, parent, child)
}

fn row(id: i64, up: i64) -> [Value<'static>; 2] {
    [Value::Int(id), if up == 0 { Value::Null } else { Value::Int(up) }]
}

fn rows(t: &mut Transaction, table: &Arc<Table>) -> Vec<(i64, i64)> {
    let number = |value: &Value<'_>| match value {
        Value::Int(number) => *number,
        _ => 0,
    };
    let scan = t.scan(table, &Range::all()).unwrap();
    scan.map(|row| row.unwrap()).map(|row| (number(&row[0]), number(&row[1]))).collect()
}

#[test]
fn a_row_needs_its_parent() {
    let (db, parent, child) = pair(NoAction, NoAction);
    let mut t = db.begin();
    let Err(Error::ForeignKeyParentMissing(broken)) = t.insert(&child, &row(1, 5)) else {
        panic!("no parent")
    };
    assert_eq!((&*broken.table, &*broken.key.name), ("c", "c_ibfk_1"));
    assert!(rows(&mut t, &child).is_empty(), "nothing is left of a refused row");
    t.insert(&child, &row(1, 0)).unwrap();
    t.insert(&parent, &row(5, 0)).unwrap();
    t.insert(&child, &row(2, 5)).unwrap();
    assert!(matches!(
        t.update(&child, &[Value::Int(1)], &[("up", Value::Int(6))]),
        Err(Error::ForeignKeyParentMissing(_))
    ));
    t.update(&child, &[Value::Int(1)], &[("up", Value::Int(5))]).unwrap();
    assert!(matches!(t.delete(&parent, &[Value::Int(5)]), Err(Error::ForeignKeyChildExists(_))));
    assert!(matches!(
        t.update(&parent, &[Value::Int(5)], &[("id", Value::Int(6))]),
        Err(Error::ForeignKeyChildExists(_))
    ));
    assert_eq!(rows(&mut t, &parent), [(5, 0)]);
    // A duplicate key is told first.
    assert!(t.insert(&child, &row(1, 77)).unwrap_err().is_duplicate_key());
    t.set_foreign_key_checks(false);
    t.insert(&child, &row(3, 77)).unwrap();
    t.delete(&parent, &[Value::Int(5)]).unwrap();
    t.commit().unwrap();
}

#[test]
fn cascades_follow_deletes_and_updates() {
    let (db, parent, child) = pair(Cascade, Cascade);
    let grandchild = db.create_table("d", "g", child_of("c", SetNull, Cascade)).unwrap();
    let mut t = db.begin();
    for id in 1..=3 {
        t.insert(&parent, &row(id, 0)).unwrap();
    }
    // More than are gathered at a time.
    for id in 0..200 {
        t.insert(&child, &row(100 + id, 1 + id % 3)).unwrap();
        t.insert(&grandchild, &row(id, 100 + id)).unwrap();
    }
    t.update(&parent, &[Value::Int(1)], &[("id", Value::Int(9))]).unwrap();
    assert_eq!(rows(&mut t, &child).iter().filter(|row| row.1 == 9).count(), 67);
    t.delete(&parent, &[Value::Int(9)]).unwrap();
    assert_eq!(rows(&mut t, &child).len(), 133);
    assert_eq!(rows(&mut t, &grandchild).iter().filter(|row| row.1 == 0).count(), 67);
    t.commit().unwrap();
    assert!(db.check_table("d", "c").unwrap().is_sound());
    assert!(db.check_table("d", "g").unwrap().is_sound());
}

#[test]
fn a_cascade_that_fails_midway_leaves_nothing() {
    let (db, parent, child) = pair(Cascade, NoAction);
    let grandchild = db.create_table("d", "g", child_of("c", NoAction, NoAction)).unwrap();
    let mut t = db.begin();
    t.insert(&parent, &row(1, 0)).unwrap();
    for id in 0..100 {
        t.insert(&child, &row(id, 1)).unwrap();
    }
    t.insert(&grandchild, &row(1, 99)).unwrap();
    t.savepoint("before");
    let Err(Error::ForeignKeyChildExists(broken)) = t.delete(&parent, &[Value::Int(1)]) else {
        panic!("the grandchild stops it")
    };
    assert_eq!(broken.table, "g");
    assert_eq!(rows(&mut t, &child).len(), 100);
    assert_eq!(rows(&mut t, &parent), [(1, 0)]);
    t.commit().unwrap();
}

#[test]
fn rows_refer_to_their_own_table() {
    let db = db();
    let tree = db.create_table("d", "t", child_of("t", Cascade, Cascade)).unwrap();
    let mut t = db.begin();
    t.insert(&tree, &row(1, 1)).unwrap();
    for id in 2..=40 {
        t.insert(&tree, &row(id, id / 2)).unwrap();
    }
    // An update that would come back to its own table is refused.
    assert!(matches!(
        t.update(&tree, &[Value::Int(2)], &[("id", Value::Int(99))]),
        Err(Error::ForeignKeyChildExists(_))
    ));
    t.delete(&tree, &[Value::Int(2)]).unwrap();
    let left: Vec<i64> = rows(&mut t, &tree).iter().map(|row| row.0).collect();
    assert_eq!(left, [1, 3, 6, 7, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31]);
    // Circles can be deleted.
    t.insert(&tree, &row(50, 0)).unwrap();
    t.insert(&tree, &row(51, 50)).unwrap();
    t.update(&tree, &[Value::Int(50)], &[("up", Value::Int(51))]).unwrap();
    t.delete(&tree, &[Value::Int(50)]).unwrap();
    assert_eq!(t.get(&tree, &[Value::Int(51)]).unwrap(), None);
    t.delete(&tree, &[Value::Int(1)]).unwrap();
    assert!(rows(&mut t, &tree).is_empty());
    // By one key a row is gone that another key comes to: 3 as a child of 2, and of 1.
    let twice = child_of("twice", Cascade, NoAction);
    let twice = TableDef {
        columns: [&twice.columns[..], &[ColumnDef::new("b", ColumnType::bigint()).nullable()]].concat(),
        ..twice
    };
    let twice = twice.foreign_key(ForeignKey::new(&["b"], "twice", &["id"]).on_delete(Cascade));
    t.commit().unwrap();
    let twice = db.create_table("d", "twice", twice).unwrap();
    let mut t = db.begin();
    for (id, a, b) in
        [(1, Value::Null, Value::Null), (2, Value::Int(1), Value::Null), (3, Value::Int(1), Value::Int(2))]
    {
        t.insert(&twice, &[Value::Int(id), a, b]).unwrap();
    }
    t.delete(&twice, &[Value::Int(1)]).unwrap();
    assert!(t.scan(&twice, &Range::all()).unwrap().next().is_none());
    // A cascade has a limit.
    for id in 1..=16 {
        t.insert(&tree, &row(id, id - 1)).unwrap();
    }
    assert!(matches!(t.delete(&tree, &[Value::Int(1)]), Err(Error::ForeignKeyDepth(15))));
    assert_eq!(rows(&mut t, &tree).len(), 16);
    t.delete(&tree, &[Value::Int(2)]).unwrap();
    t.commit().unwrap();
}

#[test]
fn definitions_are_checked() {
    let (db, ..) = pair(NoAction, NoAction);
    let refusal = |name: &str, key: ForeignKey| match db.create_table("d", name, columns().foreign_key(key)) {
        Err(Error::ForeignKeyRefused(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(matches!(
        refusal("x", ForeignKey::new(&["up"], "nowhere", &["id"])),
        ForeignKeyRefusal::NoParent(_)
    ));
    assert!(matches!(
        refusal("x", ForeignKey::new(&["up"], "p", &["nothing"])),
        ForeignKeyRefusal::NoParentColumn { .. }
    ));
    assert!(matches!(
        refusal("x", ForeignKey::new(&["up"], "p", &["up"])),
        ForeignKeyRefusal::NoParentIndex { .. }
    ));
    assert!(matches!(
        refusal("x", ForeignKey::new(&["id"], "p", &["id"]).on_delete(SetNull)),
        ForeignKeyRefusal::NotNull { .. }
    ));
    assert!(matches!(
        refusal("x", ForeignKey::new(&["up"], "p", &["id"]).named("C_ibfk_1")),
        ForeignKeyRefusal::Exists(_)
    ));
    let small = TableDef::new(vec![ColumnDef::new("up", ColumnType::int())]).foreign_key(ForeignKey::new(
        &["up"],
        "p",
        &["id"],
    ));
    assert!(matches!(
        db.create_table("d", "x", small),
        Err(Error::ForeignKeyRefused(ForeignKeyRefusal::Incompatible { .. }))
    ));
    assert!(matches!(
        db.drop_table("d", "p"),
        Err(Error::ForeignKeyRefused(ForeignKeyRefusal::DropParent { .. }))
    ));
    assert!(matches!(
        db.truncate_table("d", "p"),
        Err(Error::ForeignKeyRefused(ForeignKeyRefusal::TruncateParent(_)))
    ));
    assert!(matches!(
        db.drop_index("d", "c", "up"),
        Err(Error::ForeignKeyRefused(ForeignKeyRefusal::NeedsIndex(_)))
    ));
    db.drop_tables(&[("d", "p"), ("d", "c")]).unwrap();
}

#[test]
fn keys_follow_names_and_outlive_the_process() {
    let directory = std::env::temp_dir().join(format!("untorn-foreign-keys-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    let options = || Options::new(&directory).buffer_pool_bytes(8 << 20).redo_capacity_bytes(8 << 20);
    {
        let db = Database::open(options()).unwrap();
        db.create_database("d", Collation::Utf8mb4Bin).unwrap();
        db.create_database("e", Collation::Utf8mb4Bin).unwrap();
        db.create_table("d", "p", columns()).unwrap();
        let child = db.create_table("d", "c", child_of("p", Cascade, NoAction)).unwrap();
        db.rename_tables(&[(("d", "p"), ("e", "parent")), (("d", "c"), ("d", "child"))]).unwrap();
        assert_eq!(db.table("d", "child").unwrap().def.foreign_keys[0].name, "child_ibfk_1");
        let mut t = db.begin();
        assert!(matches!(t.insert(&child, &row(1, 1)), Err(Error::ForeignKeyParentMissing(_))));
        t.rollback().unwrap();
        assert!(matches!(db.drop_database("e"), Err(Error::ForeignKeyRefused(_))));
        // Columns get other names: the key follows on both sides.
        db.rename_column("d", "child", "up", "refers").unwrap();
        db.rename_column("e", "parent", "id", "key").unwrap();
        let refused = db.drop_column("e", "parent", "key").unwrap_err();
        assert!(
            matches!(&refused, Error::ForeignKeyRefused(ForeignKeyRefusal::DropParentColumn { column, .. }) if column == "key"),
            "{refused}"
        );
        let refused = db.drop_column("d", "child", "refers").unwrap_err();
        assert!(
            matches!(refused, Error::ForeignKeyRefused(ForeignKeyRefusal::DropColumn { .. })),
            "{refused}"
        );
        let key = &db.table("d", "child").unwrap().def.foreign_keys[0];
        assert_eq!((&*key.columns[0], &*key.referenced[0]), ("refers", "key"), "in memory");
        db.close().unwrap();
    }
    let db = Database::open(options()).unwrap();
    let (parent, child) = (db.table("e", "parent").unwrap(), db.table("d", "child").unwrap());
    let key = &child.def.foreign_keys[0];
    assert_eq!((&*key.columns[0], &*key.referenced[0]), ("refers", "key"), "in the catalog");
    let mut t = db.begin();
    assert!(matches!(t.insert(&child, &row(1, 1)), Err(Error::ForeignKeyParentMissing(_))));
    t.insert(&parent, &row(1, 0)).unwrap();
    t.insert(&child, &row(1, 1)).unwrap();
    t.delete(&parent, &[Value::Int(1)]).unwrap();
    assert!(rows(&mut t, &child).is_empty());
    t.commit().unwrap();
    db.drop_table("d", "child").unwrap();
    db.drop_database("e").unwrap();
    db.close().unwrap();
    drop((parent, child, db));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn keys_come_and_go() {
    let db = db();
    let parent = db.create_table("d", "p", columns()).unwrap();
    let child = db.create_table("d", "c", columns()).unwrap();
    let mut t = db.begin();
    t.insert(&parent, &row(1, 0)).unwrap();
    t.insert(&child, &row(1, 1)).unwrap();
    t.insert(&child, &row(2, 2)).unwrap();
    t.commit().unwrap();
    let key = || vec![ForeignKey::new(&["up"], "p", &["id"])];
    assert!(matches!(db.change_foreign_keys("d", "c", key(), &[]), Err(Error::ForeignKeyParentMissing(_))));
    let now = db.table("d", "c").unwrap();
    assert_eq!((now.def.foreign_keys.len(), now.def.keys.len()), (0, 1), "as it was");
    let mut t = db.begin();
    t.delete(&child, &[Value::Int(2)]).unwrap();
    t.commit().unwrap();
    db.change_foreign_keys("d", "c", key(), &[]).unwrap();
    let mut t = db.begin();
    assert!(matches!(t.delete(&parent, &[Value::Int(1)]), Err(Error::ForeignKeyChildExists(_))));
    t.rollback().unwrap();
    db.change_foreign_keys("d", "c", vec![], &["C_IBFK_1"]).unwrap();
    let mut t = db.begin();
    t.delete(&parent, &[Value::Int(1)]).unwrap();
    t.commit().unwrap();
}

/// Without the shared lock on the parent, or without the look at children behind the exclusive one, one of
/// the many rounds leaves a child without a parent.
#[test]
fn a_child_never_outlives_its_parent() {
    let (db, parent, child) = pair(NoAction, NoAction);
    for round in 1..=200 {
        db.transact(|t| t.put(&parent, &row(round, 0)).map(drop)).unwrap();
        std::thread::scope(|scope| {
            let inserts = scope.spawn(|| db.transact(|t| t.insert(&child, &row(round, round)).map(drop)));
            let deletes = scope.spawn(|| db.transact(|t| t.delete(&parent, &[Value::Int(round)]).map(drop)));
            match (inserts.join().unwrap(), deletes.join().unwrap()) {
                (Ok(()), Err(Error::ForeignKeyChildExists(_)))
                | (Err(Error::ForeignKeyParentMissing(_)), Ok(())) => {}
                other => panic!("round {round}: {other:?}"),
            }
        });
    }
    let mut t = db.begin();
    let parents: Vec<i64> = rows(&mut t, &parent).iter().map(|row| row.0).collect();
    assert!(rows(&mut t, &child).iter().all(|row| parents.contains(&row.1)));
    t.commit().unwrap();
}
