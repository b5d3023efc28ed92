//! AUTO_INCREMENT through crashes: no number twice, and no small type used up.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use disk::{Environment, SimulatedEnvironment};
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Waker};
use untorn::asynchronous::Database;
use untorn::engine::Durability;
use untorn::schema::{ColumnDef, KeyKind, TableDef};
use untorn::types::{Collation, ColumnType, Value};
use untorn::{Error, Lock, Options, Range};

async fn open(environment: &Arc<SimulatedEnvironment>) -> Database {
    let shared: Arc<dyn Environment> = environment.clone();
    let mut options = Options::new("/data").page_size(4096).buffer_pool_bytes(96 * 4096);
    options.unchecked_sizes = true;
    options.redo_capacity_bytes = 2 << 20;
    options.log_buffer_bytes = 1 << 20;
    Database::open_in(shared, options).await.unwrap()
}

/// Inserts a row in a transaction of its own; the number it got.
async fn insert(db: &Database, value: Value<'static>) -> Result<u64, Error> {
    let table = db.table("test", "t")?;
    let mut transaction = db.transaction();
    transaction.begin();
    let number = transaction.insert(&table, &[value]).await?;
    transaction.commit(Durability::Sync).await?;
    Ok(number.unwrap_or(0))
}

/// What is left of an environment after this crash.
fn after_a_crash(environment: Arc<SimulatedEnvironment>, crash: u64) -> Arc<SimulatedEnvironment> {
    let disk = environment.disk().crash(crash);
    environment.shutdown();
    SimulatedEnvironment::with_storage(crash, disk)
}

fn counting(kind: ColumnType) -> TableDef {
    TableDef::new(vec![ColumnDef::new("id", kind).auto_increment()]).primary_key(&["id"])
}

async fn create(db: &Database, def: TableDef) {
    db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
    db.create_table("test", "t", def).await.unwrap();
}

/// A TINYINT counts to its end over as many crashes as it has numbers; a SMALLINT loses next to nothing.
#[test]
fn crashes_use_up_no_small_type() {
    for (kind, lost_max) in
        [(ColumnType::TinyInt { unsigned: false }, 0), (ColumnType::SmallInt { unsigned: false }, 20 * 4)]
    {
        let mut environment = SimulatedEnvironment::new(1);
        environment.run_until_complete(async {
            let db = open(&environment).await;
            create(&db, counting(kind.clone())).await;
            insert(&db, Value::Null).await.unwrap();
            std::mem::forget(db);
        });
        let mut last = 1;
        for crash in 0..20 {
            environment = after_a_crash(environment, crash);
            let number = environment.run_until_complete(async {
                let db = open(&environment).await;
                let number = insert(&db, Value::Null).await.unwrap();
                std::mem::forget(db);
                number
            });
            assert!(number > last, "{kind:?}: {number} after {last}");
            last = number;
        }
        assert!(last <= 21 + lost_max, "{kind:?}: 21 rows, and the next number after {last}");
    }
}

/// ALTER TABLE … AUTO_INCREMENT goes up as asked, and down to what the rows allow.
#[test]
fn the_counter_can_be_set_but_not_below_the_rows() {
    for secondary in [false, true] {
        let environment = SimulatedEnvironment::new(2);
        environment.run_until_complete(async {
            let db = open(&environment).await;
            let mut def = counting(ColumnType::int());
            if secondary {
                def.keys.clear();
                def = def.key("id", KeyKind::Secondary, &["id"]);
            }
            create(&db, def).await;
            let set = |next| db.set_auto_increment("test", "t", next);
            assert_eq!(insert(&db, Value::Null).await.unwrap(), 1);
            set(100).await.unwrap();
            assert_eq!(insert(&db, Value::Null).await.unwrap(), 100);
            set(5).await.unwrap();
            assert_eq!(insert(&db, Value::Null).await.unwrap(), 101);
            // A number far up that is gone again.
            insert(&db, Value::Int(2_147_483_647)).await.unwrap();
            let error = insert(&db, Value::Null).await.unwrap_err();
            assert!(matches!(error, Error::AutoIncrementExhausted), "{error}");
            if !secondary {
                let table = db.table("test", "t").unwrap();
                let mut transaction = db.transaction();
                transaction.begin();
                assert!(transaction.delete(&table, &[Value::Int(2_147_483_647)]).await.unwrap());
                transaction.commit(Durability::Sync).await.unwrap();
                set(1).await.unwrap();
                assert_eq!(insert(&db, Value::Null).await.unwrap(), 102);
            }
            db.close().await.unwrap();
        });
    }
}

/// An insert that was dropped while it waited for the counter's page, then the same one, and a crash.
#[test]
fn the_counter_goes_on_behind_what_was_committed() {
    let environment = SimulatedEnvironment::new(1);
    environment.run_until_complete(async {
        let db = open(&environment).await;
        create(&db, counting(ColumnType::int())).await;
        insert(&db, Value::Null).await.unwrap();
        let table = db.table("test", "t").unwrap();
        // Much is read, and the root page is in memory no longer: the insert waits for it, and is dropped
        // there.
        let def = TableDef::new(vec![
            ColumnDef::new("id", ColumnType::int()),
            ColumnDef::new("text", ColumnType::VarBinary { bytes: 2000 }),
        ]);
        db.create_table("test", "large", def.primary_key(&["id"])).await.unwrap();
        let large = db.table("test", "large").unwrap();
        let mut filler = db.transaction();
        filler.begin();
        for id in 0..600 {
            filler.insert(&large, &[Value::Int(id), Value::bytes(&[7; 1500]).into_owned()]).await.unwrap();
        }
        filler.commit(Durability::Sync).await.unwrap();
        for _ in 0..3 {
            filler.begin();
            filler.for_each(&large, &Range::all(), |_| true).await.unwrap();
            filler.commit(Durability::Sync).await.unwrap();
        }
        let mut cut = db.transaction();
        cut.begin();
        {
            let values = [Value::Int(5000)];
            let mut insert = Box::pin(cut.insert(&table, &values));
            assert!(insert.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        drop(cut);
        insert(&db, Value::Int(5000)).await.unwrap();
        std::mem::forget(db);
    });
    let environment = after_a_crash(environment, 1);
    environment.run_until_complete(async {
        let db = open(&environment).await;
        let table = db.table("test", "t").unwrap();
        let mut t = db.transaction();
        t.begin();
        assert!(t.get(&table, &[Value::Int(5000)], Lock::None).await.unwrap().is_some());
        let next = t.insert(&table, &[Value::Null]).await.unwrap();
        assert!(next > Some(5000), "the table has a row 5000, and the next number is {next:?}");
    });
}

/// A row that gets a greater number by an update counts like one that was inserted with it, over a crash too.
#[test]
fn an_update_counts_on() {
    let environment = SimulatedEnvironment::new(3);
    environment.run_until_complete(async {
        let db = open(&environment).await;
        create(&db, counting(ColumnType::int())).await;
        insert(&db, Value::Null).await.unwrap();
        let table = db.table("test", "t").unwrap();
        let mut transaction = db.transaction();
        for (from, to) in [(1, 3000), (3000, -7), (-7, 5)] {
            let (key, changes) = ([Value::Int(from)], [("id", Value::Int(to))]);
            transaction.begin();
            assert!(transaction.update(&table, &key, &changes).await.unwrap());
            transaction.commit(Durability::Sync).await.unwrap();
        }
        drop(transaction);
        assert_eq!(insert(&db, Value::Null).await.unwrap(), 3001);
        std::mem::forget((db, table));
    });
    let environment = after_a_crash(environment, 3);
    environment.run_until_complete(async {
        let db = open(&environment).await;
        assert!(insert(&db, Value::Null).await.unwrap() > 3001);
    });
}
