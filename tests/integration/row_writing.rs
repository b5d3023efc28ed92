//! The rules of a table's definition, as a program that writes rows meets them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::sync::Arc;

use untorn::asynchronous::Database;
use untorn::engine::{Durability, OnDuplicate};
use untorn::schema::{Check, ColumnDef, KeyKind, TableDef};
use untorn::types::{Collation, ColumnType, DateTime, Value};
use untorn::write::{EncodedRow, RowWriter, Written};
use untorn::{Error, Lock, Options, Table};

use disk::{Environment, SimulatedEnvironment};

struct World {
    environment: Arc<SimulatedEnvironment>,
    db: Database,
    table: Arc<Table>,
}

const AT: usize = 2;
const LATER: usize = 3;

impl World {
    fn new() -> World {
        let environment = SimulatedEnvironment::new(7);
        let shared: Arc<dyn Environment> = environment.clone();
        let mut options = Options::new("/data").page_size(4096).buffer_pool_bytes(96 * 4096);
        options.unchecked_sizes = true;
        options.redo_capacity_bytes = 2 << 20;
        options.log_buffer_bytes = 1 << 20;
        let db = environment.run_until_complete(Database::open_in(shared, options)).unwrap();
        let stamped =
            |name: &str, kind| ColumnDef { on_update_now: true, ..ColumnDef::new(name, kind).nullable() };
        let def = TableDef::new(vec![
            ColumnDef::new("id", ColumnType::int()).auto_increment(),
            ColumnDef::new("n", ColumnType::int()),
            stamped("at", ColumnType::Timestamp { fraction: 0 }),
            stamped("later", ColumnType::DateTime { fraction: 6 }),
        ])
        .primary_key(&["id"])
        .key("n", KeyKind::Unique, &["n"]);
        environment.run_until_complete(db.create_database("test", Collation::Utf8mb4Bin)).unwrap();
        environment.run_until_complete(db.create_table("test", "t", def)).unwrap();
        let table = db.table("test", "t").unwrap();
        World { environment, db, table }
    }

    fn now(&self) -> DateTime {
        let now = self.environment.unix_time();
        DateTime::from_unix(now.as_secs() as i64, now.subsec_micros())
    }
}

fn new_row(id: Value<'static>, n: Value<'static>) -> [Value<'static>; 4] {
    [id, n, Value::Null, Value::Null]
}

#[test]
fn a_changed_row_gets_the_time_in_columns_that_are_not_set() {
    let world = World::new();
    world.environment.run_until_complete(async {
        let mut t = world.db.transaction();
        t.begin();
        t.insert(&world.table, &new_row(Value::Int(1), Value::Int(10))).await.unwrap();
        let row = t.get(&world.table, &[Value::Int(1)], Lock::None).await.unwrap().unwrap();
        assert_eq!((&row[AT], &row[LATER]), (&Value::Null, &Value::Null), "an INSERT is no change");
        world.environment.sleep(std::time::Duration::from_micros(5_900_321)).await;
        let now = world.now();
        assert!(t.update(&world.table, &[Value::Int(1)], &[("n", Value::Int(11))]).await.unwrap());
        let row = t.get(&world.table, &[Value::Int(1)], Lock::None).await.unwrap().unwrap();
        assert_ne!(now.micros, 0);
        assert_eq!(row[LATER], Value::DateTime(now));
        assert_eq!(row[AT], Value::DateTime(DateTime { micros: 0, ..now }), "cut off, not rounded");
        // Nothing is set: nothing is stamped, and a row that is not there is not there.
        assert!(t.update(&world.table, &[Value::Int(1)], &[]).await.unwrap());
        assert!(!t.update(&world.table, &[Value::Int(2)], &[]).await.unwrap());
        world.environment.sleep(std::time::Duration::from_secs(100)).await;
        assert_eq!(t.get(&world.table, &[Value::Int(1)], Lock::None).await.unwrap(), Some(row));
        let early = Value::DateTime(DateTime::from_unix(1_000_000, 0));
        let set = [("n", Value::Int(12)), ("at", early.clone()), ("later", Value::Null)];
        assert!(t.update(&world.table, &[Value::Int(1)], &set).await.unwrap());
        let row = t.get(&world.table, &[Value::Int(1)], Lock::None).await.unwrap().unwrap();
        assert_eq!((&row[AT], &row[LATER]), (&early, &Value::Null));
        t.commit(Durability::Sync).await.unwrap();
    });
}

#[test]
fn null_is_refused_where_the_definition_has_none() {
    let world = World::new();
    world.environment.run_until_complete(async {
        let mut t = world.db.transaction();
        t.begin();
        let refused = |error: Error| matches!(error, Error::NullValue(column) if column == "n");
        let inserted = t.insert(&world.table, &new_row(Value::Int(1), Value::Null)).await;
        assert!(refused(inserted.unwrap_err()));
        t.insert(&world.table, &new_row(Value::Int(1), Value::Int(10))).await.unwrap();
        let updated = t.update(&world.table, &[Value::Int(1)], &[("n", Value::Null)]).await;
        assert!(refused(updated.unwrap_err()));
        // Fields that come encoded, as the server's do, meet the same rule.
        let mut writer = RowWriter::new(world.table.clone()).unwrap();
        let mut row = EncodedRow::default();
        row.push_bytes(&[0x80, 0, 0, 2]);
        (0..3).for_each(|_| row.push_null());
        assert!(refused(writer.insert(&mut t, &row.fields(), OnDuplicate::Refuse).await.unwrap_err()));
        let key: &[Option<&[u8]>] = &[Some(&[0x80, 0, 0, 1])];
        assert!(refused(writer.update(&mut t, key, &[(1, None)]).await.unwrap_err()));
        let short = writer.insert(&mut t, &row.fields()[..3], OnDuplicate::Refuse).await.unwrap_err();
        assert!(matches!(short, Error::WrongRowLength { given: 3, columns: 4 }));
        t.commit(Durability::Sync).await.unwrap();
        assert_eq!(world.table.row_count_estimate(), 1);
    });
}

#[test]
fn rows_that_only_sql_can_compute_are_refused() {
    let world = World::new();
    world.environment.run_until_complete(async {
        let column = |name| ColumnDef::new(name, ColumnType::int());
        let mut checked = TableDef::new(vec![column("id")]).primary_key(&["id"]);
        let check = |enforced| Check {
            name: "checked_chk_1".into(),
            expression: "(`id` > 0)".into(),
            enforced,
            column: None,
        };
        checked.checks.push(check(true));
        let doubled = ColumnDef { generated: Some("(`id` * 2)".into()), ..column("doubled") };
        let generated = TableDef::new(vec![column("id"), doubled]).primary_key(&["id"]);
        let mut lax = checked.clone();
        lax.checks[0] = check(false);
        for (name, def) in [("checked", checked), ("generated", generated), ("lax", lax)] {
            world.db.create_table("test", name, def.clone()).await.unwrap();
            let table = world.db.table("test", name).unwrap();
            let row: Vec<Value<'_>> = def.columns.iter().map(|_| Value::Int(1)).collect();
            let mut t = world.db.transaction();
            t.begin();
            let refused = |error: Error| matches!(error, Error::NeedsSql(_, table) if table == name);
            let inserted = t.insert(&table, &row).await;
            if name == "lax" {
                inserted.unwrap();
                t.commit(Durability::Sync).await.unwrap();
                continue;
            }
            assert!(refused(inserted.unwrap_err()));
            assert!(refused(t.insert_all(&table, &[row]).await.unwrap_err()));
            // What is there can be deleted: nothing is evaluated for that.
            assert!(!t.delete(&table, &[Value::Int(1)]).await.unwrap());
            assert!(refused(t.update(&table, &[Value::Int(1)], &[("id", Value::Int(2))]).await.unwrap_err()));
            t.commit(Durability::Sync).await.unwrap();
        }
        // A constraint that was named after its table goes on being so.
        world.db.rename_table(("test", "checked"), ("test", "renamed")).await.unwrap();
        let renamed = world.db.table("test", "renamed").unwrap();
        assert_eq!(renamed.def.checks[0].name, "renamed_chk_1");
    });
}

#[test]
fn a_duplicate_is_an_answer_and_its_number_goes_to_the_next_row() {
    let world = World::new();
    world.environment.run_until_complete(async {
        let mut t = world.db.transaction();
        t.begin();
        let mut writer = RowWriter::new(world.table.clone()).unwrap();
        writer.expect_rows(3);
        t.use_table(&world.table).unwrap_or_else(|_| panic!("nobody else is here"));
        let mut numbers = Vec::new();
        for n in [10u8, 10, 11] {
            let id = writer.generate().await.unwrap();
            let mut row = EncodedRow::default();
            row.push_bytes(&[0x80, 0, 0, id as u8]);
            row.push_bytes(&[0x80, 0, 0, n]);
            (0..2).for_each(|_| row.push_null());
            match writer.insert(&mut t, &row.fields(), OnDuplicate::Refuse).await.unwrap() {
                Written::Done => numbers.push(id),
                Written::Duplicate { index, entry } => {
                    assert_eq!((index.as_str(), entry), ("n", vec![Some(vec![0x80, 0, 0, 10])]));
                    writer.give_back(id);
                }
            }
        }
        assert_eq!(numbers, [1, 2]);
        writer.finish();
        // Three were taken: the third is lost, as in InnoDB.
        assert_eq!(t.insert(&world.table, &new_row(Value::Null, Value::Int(12))).await.unwrap(), Some(4));
        assert!(t.delete(&world.table, &[Value::Int(1)]).await.unwrap());
        t.commit(Durability::Sync).await.unwrap();
        assert_eq!(world.table.row_count_estimate(), 2);
    });
}
