//! Keys as long as pages of each size allow, and no longer: an entry that does not fit is an error before
//! anything happens.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use disk::{Environment, SimulatedEnvironment};
use std::sync::Arc;
use untorn::asynchronous::Database;
use untorn::engine::Durability;
use untorn::schema::{ColumnDef, KeyDef, KeyKind, KeyPart, SchemaError, TableDef};
use untorn::types::{Collation, ColumnType, Value};
use untorn::{Error, Options};

async fn open(environment: &Arc<SimulatedEnvironment>, page_size: u32) -> Database {
    let shared: Arc<dyn Environment> = environment.clone();
    let mut options =
        Options::new("/data").page_size(page_size).buffer_pool_bytes(128 * u64::from(page_size));
    options.unchecked_sizes = true;
    options.redo_capacity_bytes = 16 << 20;
    options.log_buffer_bytes = 4 << 20;
    Database::open_in(shared, options).await.unwrap()
}

fn table(primary: u32, other: u32) -> TableDef {
    TableDef::new(vec![
        ColumnDef::new("a", ColumnType::VarBinary { bytes: primary }),
        ColumnDef::new("b", ColumnType::VarBinary { bytes: other }),
    ])
    .primary_key(&["a"])
}

fn on_b() -> KeyDef {
    let parts = vec![KeyPart::whole(1)];
    KeyDef::new("b", KeyKind::Secondary, parts)
}

#[test]
fn keys_are_as_long_as_pages_allow() {
    for (page_size, most) in [(4096, 768), (8192, 1536), (16384, 3072)] {
        let environment = SimulatedEnvironment::new(1);
        environment.run_until_complete(async {
            let db = open(&environment, page_size).await;
            db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
            let too_long = |error: Error| match error {
                Error::Schema(SchemaError::KeyTooLong(limit)) => assert_eq!(limit, most),
                error => panic!("{page_size}: {error}"),
            };
            too_long(db.create_table("test", "t", table(most + 1, 10)).await.unwrap_err());
            db.create_table("test", "t", table(most, most + 1)).await.unwrap();
            too_long(db.create_index("test", "t", on_b()).await.unwrap_err());
            db.drop_table("test", "t").await.unwrap();

            // The longest entries there can be, by INSERT as well as by CREATE INDEX.
            let def = table(most, most).key("before", KeyKind::Secondary, &["b"]);
            db.create_table("test", "t", def).await.unwrap();
            let handle = db.table("test", "t").unwrap();
            let mut transaction = db.transaction();
            transaction.begin();
            for row in 0..40_u8 {
                let (a, b) = (vec![row; most as usize], vec![255 - row; most as usize]);
                transaction.insert(&handle, &[Value::bytes(&a), Value::bytes(&b)]).await.unwrap();
            }
            transaction.commit(Durability::Sync).await.unwrap();
            db.create_index("test", "t", on_b()).await.unwrap();
            let report = db.check_table("test", "t").await.unwrap();
            assert!(report.is_sound(), "{:?}", report.problems);
            assert_eq!(report.rows, 40);
            db.close().await.unwrap();
        });
    }
}
