//! A table whose file no other server could read is not exchanged, whichever way it came to be discarded.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use disk::{Environment, SimulatedEnvironment};

use crate::database::Database;
use crate::error::Error;
use crate::options::Options;
use crate::schema::{ColumnDef, TableDef};
use crate::types::{Collation, ColumnType};

async fn open(environment: &Arc<SimulatedEnvironment>) -> Database {
    let shared: Arc<dyn Environment> = environment.clone();
    let options = Options::new("/data").buffer_pool_bytes(5 << 20).redo_capacity_bytes(8 << 20);
    Database::open_in(shared, options).await.unwrap()
}

fn definition(is_virtual: bool) -> TableDef {
    let mut twice = ColumnDef::new("twice", ColumnType::bigint()).nullable();
    (twice.generated, twice.is_virtual) = (Some("`id` * 2".to_owned()), is_virtual);
    TableDef::new(vec![ColumnDef::new("id", ColumnType::bigint()), twice]).primary_key(&["id"])
}

fn is_refused(error: Error, name: &str) {
    let Error::VirtualColumn { table, column } = &error else { panic!("{error}") };
    assert_eq!((table.as_str(), column.as_str()), (name, "twice"));
}

/// Fails without the check of an export, of a discard, and of an import.
#[test]
fn a_table_with_a_virtual_column_is_neither_exported_nor_discarded_nor_imported() {
    let environment = SimulatedEnvironment::new(7);
    environment.run_until_complete(async {
        let db = open(&environment).await;
        db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
        db.create_table("test", "computed", definition(true)).await.unwrap();
        is_refused(db.export_table("test", "computed").await.err().unwrap(), "test.computed");
        is_refused(db.discard_tablespace("test", "computed").await.unwrap_err(), "test.computed");
        // What a catalog of another time could say of a table that is discarded.
        db.create_table("test", "kept", definition(false)).await.unwrap();
        db.discard_tablespace("test", "kept").await.unwrap();
        let mut def = db.table("test", "kept").unwrap().def.clone();
        def.columns[1].is_virtual = true;
        db.0.catalog.change(|change| change.put_table("test", "kept", Arc::new(def))).unwrap();
        db.close().await.unwrap();
    });
    environment.shutdown();
    let environment = SimulatedEnvironment::with_storage(8, environment.disk().crash(1));
    environment.run_until_complete(async {
        let db = open(&environment).await;
        is_refused(db.import_tablespace("test", "kept").await.unwrap_err(), "test.kept");
        db.close().await.unwrap();
    });
    environment.shutdown();
}
