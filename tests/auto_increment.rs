//! AUTO_INCREMENT through crashes: no number twice, and no small type used up.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use disk::{Environment, SimulatedEnvironment};
use std::sync::Arc;
use std::time::Duration;
use untorn::asynchronous::Database;
use untorn::engine::Durability;
use untorn::schema::{ColumnDef, KeyKind, TableDef};
use untorn::types::{Collation, ColumnType, Value};
use untorn::{Error, Options};

const PATIENCE: Duration = Duration::from_secs(1);

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

fn counting(kind: ColumnType) -> TableDef {
    TableDef::new(vec![ColumnDef::new("id", kind).auto_increment()]).primary_key(&["id"])
}

async fn create(db: &Database, def: TableDef) {
    db.create_database("test", Collation::Utf8mb4Bin).unwrap();
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
            let disk = environment.disk().crash(crash);
            environment.shutdown();
            environment = SimulatedEnvironment::with_storage(crash, disk);
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
            let set = |next| db.set_auto_increment("test", "t", next, None, PATIENCE);
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
