//! A start after a crash goes on before all pages have the changes that the redo log has of them: what is
//! read is right at once, DDL and a stop in between too, and a database that is dropped meanwhile gives the
//! directory back.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::sync::Arc;
use std::time::Duration;

use disk::{Environment, SimulatedEnvironment, SimulatedStorage};
use untorn::asynchronous::Database;
use untorn::engine::Durability;
use untorn::schema::{ColumnDef, TableDef};
use untorn::types::{Collation, ColumnType, Value};
use untorn::{Error, Options, Range};

const ROWS: i64 = 6000;

fn options() -> Options {
    Options::new("/data").buffer_pool_bytes(16 << 20).redo_capacity_bytes(16 << 20)
}

fn table_def() -> TableDef {
    TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("counter", ColumnType::int()),
        ColumnDef::new("filler", ColumnType::varchar(400)),
    ])
    .primary_key(&["id"])
}

async fn insert(database: &Database, table: &str, ids: std::ops::Range<i64>, counter: i64) {
    let table = database.table("test", table).unwrap();
    let mut transaction = database.transaction();
    transaction.begin();
    for id in ids {
        let row = [Value::Int(id), Value::Int(counter), Value::from("x".repeat(300))];
        transaction.insert(&table, &row).await.unwrap();
    }
    transaction.commit(Durability::Sync).await.unwrap();
}

async fn sum(database: &Database, table: &str) -> i64 {
    let table = database.table("test", table).unwrap();
    let mut sum = 0;
    let mut transaction = database.transaction();
    let whole = Range::all();
    let rows = transaction.for_each(&table, &whole, |row| {
        let Value::Int(counter) = row[1] else { panic!("{row:?}") };
        sum += counter;
        true
    });
    rows.await.unwrap();
    sum
}

/// Two tables in their files, each row of which the log has changed since: its counter was 0 and is 1.
fn crashed(seed: u64) -> Arc<SimulatedStorage> {
    let environment = SimulatedEnvironment::new(seed);
    let shared: Arc<dyn Environment> = environment.clone();
    environment.run_until_complete(async {
        let database = Database::open_in(shared, options()).await.unwrap();
        database.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
        for table in ["t", "other"] {
            database.create_table("test", table, table_def()).await.unwrap();
            insert(&database, table, 0..ROWS, 0).await;
        }
        database.close().await.unwrap();
    });
    let disk = environment.disk().crash(seed + 1);
    environment.shutdown();
    let (environment, database) = open(&disk, seed + 2);
    environment.run_until_complete(async {
        for name in ["t", "other"] {
            let table = database.table("test", name).unwrap();
            let mut transaction = database.transaction();
            transaction.begin();
            for id in 0..ROWS {
                transaction.update(&table, &[Value::Int(id)], &[("counter", Value::Int(1))]).await.unwrap();
            }
            transaction.commit(Durability::Sync).await.unwrap();
        }
    });
    let disk = environment.disk().crash(seed + 3);
    environment.shutdown();
    drop(database);
    disk
}

fn open(disk: &Arc<SimulatedStorage>, seed: u64) -> (Arc<SimulatedEnvironment>, Database) {
    let environment = SimulatedEnvironment::with_storage(seed, disk.clone());
    let shared: Arc<dyn Environment> = environment.clone();
    let database = environment.run_until_complete(Database::open_in(shared, options())).unwrap();
    (environment, database)
}

/// Pages that have not got their changes yet.
fn left(database: &Database) -> u64 {
    let values = database.status();
    let found = values.into_iter().find(|(name, _)| *name == "Untorn_recovery_pages_left");
    found.expect("a status variable").1
}

#[test]
fn what_is_read_and_changed_before_all_is_applied_is_right_and_stays() {
    let mut disk = crashed(1);
    for round in 0..4 {
        let (environment, database) = open(&disk, 10 + round);
        assert!(database.report().recovery_pages_left > 0 && left(&database) > 0, "round {round}");
        environment.run_until_complete(async {
            assert_eq!(sum(&database, "t").await, ROWS + round as i64);
            insert(&database, "t", ROWS + round as i64..ROWS + round as i64 + 1, 1).await;
            if round == 3 {
                // Nobody waits for the other table's pages, and a dropped one takes them with it.
                database.create_table("test", "new", table_def()).await.unwrap();
                database.definitions().timeout(Duration::ZERO).drop_table("test", "other").await.unwrap();
                database.close().await.unwrap();
            }
        });
        disk = environment.disk().crash(20 + round);
        environment.shutdown();
        drop(database);
    }
    let (environment, database) = open(&disk, 30);
    assert_eq!((database.report().recovery_pages_left, left(&database)), (0, 0), "it was closed");
    assert_eq!(environment.run_until_complete(sum(&database, "t")), ROWS + 4);
    drop(database);
    environment.shutdown();
}

#[test]
fn a_database_that_is_dropped_meanwhile_gives_the_directory_back() {
    let (environment, database) = open(&crashed(2), 3);
    assert!(left(&database) > 0);
    drop(database);
    let shared: Arc<dyn Environment> = environment.clone();
    let mut patience = 100_000;
    let again = loop {
        match environment.run_until_complete(Database::open_in(shared.clone(), options())) {
            Ok(database) => break database,
            Err(Error::DirectoryInUse { .. }) => {
                patience -= 1;
                assert!(patience > 0 && environment.step(), "the directory is not given back");
            }
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(environment.run_until_complete(sum(&again, "other")), ROWS);
    drop(again);
    environment.shutdown();
}
