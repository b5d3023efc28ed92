//! A small directory on the simulated disk, for tests of statements that change definitions.
#![allow(dead_code)]

use disk::{Environment, SimulatedEnvironment, SimulatedStorage, Storage};
use std::sync::Arc;
use std::time::Duration;
use untorn::asynchronous::Database;
use untorn::engine::Durability;
use untorn::schema::{ColumnDef, ForeignKey, KeyDef, KeyKind, KeyPart, ReferentialAction, TableDef};
use untorn::types::{Collation, ColumnType, Value};
use untorn::{Error, Options, Range};

pub const PATIENCE: Duration = Duration::from_secs(1);

/// A table of a family: `id` is the primary key, `up` refers.
pub fn columns() -> TableDef {
    TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("up", ColumnType::bigint()).nullable(),
    ])
    .primary_key(&["id"])
}

/// Such a table, whose `up` refers to a parent's `id`.
pub fn child_of(parent: &str, on_delete: ReferentialAction, on_update: ReferentialAction) -> TableDef {
    columns().foreign_key(ForeignKey::new(&["up"], parent, &["id"]).on_delete(on_delete).on_update(on_update))
}

/// Small pages and a small pool.
pub fn options() -> Options {
    let mut options = Options::new("/data").page_size(4096).buffer_pool_bytes(96 * 4096);
    options.unchecked_sizes = true;
    options.redo_capacity_bytes = 2 << 20;
    options.log_buffer_bytes = 1 << 20;
    options
}

/// Names in the directory of a database.
pub fn names_in(environment: &SimulatedEnvironment, database: &str) -> Vec<String> {
    let path = std::path::Path::new("/data").join(database);
    environment.disk().list(&path).unwrap().into_iter().map(|file| file.name).collect()
}

pub async fn try_open(environment: &Arc<SimulatedEnvironment>) -> Result<Database, Error> {
    let shared: Arc<dyn Environment> = environment.clone();
    Database::open_in(shared, options()).await
}

pub async fn open(environment: &Arc<SimulatedEnvironment>) -> Database {
    try_open(environment).await.unwrap()
}

/// `id` and seven times that.
pub fn table_def() -> TableDef {
    TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("counter", ColumnType::int()),
    ])
    .primary_key(&["id"])
}

/// An index over `counter`.
pub fn key(name: &str) -> KeyDef {
    let parts = vec![KeyPart::whole(1)];
    KeyDef::new(name, KeyKind::Secondary, parts)
}

pub async fn insert_into(db: &Database, database: &str, name: &str, id: i64) -> Result<(), Error> {
    let mut transaction = db.transaction();
    transaction.begin();
    let table = transaction.open_table(database, name, 10 * PATIENCE).await?;
    transaction.insert(&table, &[Value::Int(id), Value::Int(id * 7)]).await?;
    transaction.commit(Durability::Sync).await
}

/// The ids of a table's rows.
pub async fn ids(db: &Database, database: &str, name: &str) -> Result<Vec<i64>, Error> {
    let table = db.table(database, name)?;
    let (mut ids, mut transaction, all) = (Vec::new(), db.transaction(), Range::all());
    let read = transaction.for_each(&table, &all, |row| {
        let Value::Int(id) = row[0] else { panic!("a row of other types: {row:?}") };
        ids.push(id);
        true
    });
    read.await?;
    Ok(ids)
}

/// A directory with these tables, closed cleanly. Each has this number of rows, with ids from its first one
/// on.
pub fn prepared(tables: &[(&str, &str, i64)], rows: i64) -> Arc<SimulatedStorage> {
    let environment = SimulatedEnvironment::new(1);
    environment.run_until_complete(async {
        let db = open(&environment).await;
        for (database, name, first) in tables {
            if db.database(database).is_none() {
                db.create_database(database, Collation::Utf8mb4Bin).await.unwrap();
            }
            db.create_table(database, name, table_def()).await.unwrap();
            for id in *first..*first + rows {
                insert_into(&db, database, name, id).await.unwrap();
            }
        }
        db.close().await.unwrap();
    });
    environment.shutdown();
    environment.disk().crash(1)
}
