//! What a close of the database leaves: a log with nothing to recover, which may have another size at the
//! next start, and an end to all changes, also for those who have not noticed.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::sync::Arc;

use disk::{Environment, OpenHow, SimulatedEnvironment, SimulatedStorage, Storage};
use untorn::asynchronous::Database;
use untorn::engine::Durability;
use untorn::schema::{ColumnDef, TableDef};
use untorn::types::{Collation, ColumnType, Value};
use untorn::{Options, Range};

fn options(redo_mib: u64) -> Options {
    Options::new("/data").buffer_pool_bytes(5 << 20).redo_capacity_bytes(redo_mib << 20)
}

/// Opens the database on the disk, does the work, and gives the environment back with its result.
fn run<T>(
    seed: u64,
    disk: Arc<SimulatedStorage>,
    options: Options,
    work: impl AsyncFnOnce(&Database) -> T,
) -> (Arc<SimulatedEnvironment>, T) {
    let environment = SimulatedEnvironment::with_storage(seed, disk);
    let shared: Arc<dyn Environment> = environment.clone();
    let result = environment.run_until_complete(async {
        let database = Database::open_in(shared, options).await.unwrap();
        let result = work(&database).await;
        drop(database);
        result
    });
    (environment, result)
}

async fn insert(database: &Database, ids: std::ops::Range<i64>) {
    let table = database.table("test", "t").unwrap();
    let mut transaction = database.transaction();
    transaction.begin();
    for id in ids {
        transaction.insert(&table, &[Value::Int(id)]).await.unwrap();
    }
    transaction.commit(Durability::Sync).await.unwrap();
}

async fn count(database: &Database) -> usize {
    let table = database.table("test", "t").unwrap();
    let mut transaction = database.transaction();
    let mut rows = 0;
    let all = Range::all();
    let each = transaction.for_each(&table, &all, |_| {
        rows += 1;
        true
    });
    each.await.unwrap();
    rows
}

async fn create(database: &Database) {
    database.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
    let table = TableDef::new(vec![ColumnDef::new("id", ColumnType::bigint())]).primary_key(&["id"]);
    database.create_table("test", "t", table).await.unwrap();
}

#[test]
fn the_redo_log_takes_another_size_after_a_close() {
    for seed in 0..10 {
        let mut disk = SimulatedStorage::new(seed);
        let mut capacities = Vec::new();
        for (start, redo_mib) in [8, 16, 16, 8].into_iter().enumerate() {
            let (environment, capacity) = run(seed, disk, options(redo_mib), async |database| {
                match start {
                    0 => create(database).await,
                    _ => assert_eq!(database.report().redo_applied, 0, "there is nothing to recover"),
                }
                let first = start as i64 * 50;
                insert(database, first..first + 50).await;
                assert_eq!(count(database).await, (start + 1) * 50);
                database.close().await.unwrap();
                database.redo().capacity()
            });
            capacities.push(capacity);
            disk = environment.disk().crash(seed);
            environment.shutdown();
        }
        assert!(capacities[1] > capacities[0] * 3 / 2, "seed {seed}: {capacities:?}");
        assert_eq!((capacities[1], capacities[0]), (capacities[2], capacities[3]), "seed {seed}");
    }
}

fn says_why(error: &str) -> bool {
    ["closed", "shut down"].iter().any(|word| error.contains(word))
}

#[test]
fn after_a_close_commits_and_changes_are_errors() {
    let (environment, ()) = run(1, SimulatedStorage::new(1), options(8), async |database| {
        create(database).await;
        insert(database, 0..10).await;
        let table = database.table("test", "t").unwrap();
        let mut late = database.transaction();
        late.begin();
        late.insert(&table, &[Value::Int(100)]).await.unwrap();
        database.close().await.unwrap();
        let error = late.insert(&table, &[Value::Int(101)]).await.unwrap_err().to_string();
        assert!(says_why(&error), "{error}");
        let error = late.commit(Durability::Sync).await.unwrap_err().to_string();
        assert!(says_why(&error), "{error}");
        let mut later = database.transaction();
        later.begin();
        let error = later.insert(&table, &[Value::Int(102)]).await.unwrap_err().to_string();
        assert!(says_why(&error), "{error}");
    });
    let disk = environment.disk().crash(1);
    environment.shutdown();
    let (_, rows) = run(2, disk, options(8), async |database| count(database).await);
    assert_eq!(rows, 10);
}

/// After an orderly shutdown no page is torn: the copies of the doublewrite, however many, are not read.
#[test]
fn a_start_after_a_close_does_not_read_the_doublewrite_files() {
    let (environment, ()) = run(3, SimulatedStorage::new(3), options(8), async |database| {
        create(database).await;
        insert(database, 0..10).await;
        database.close().await.unwrap();
    });
    let closed = environment.disk().crash(3);
    environment.shutdown();
    let calls = |longer: u64| {
        let disk = closed.crash(4);
        let path = std::path::Path::new("/data/#ib_16384_0.dblwr");
        let length = disk.content(path).unwrap().len() as u64;
        let file = disk.open(path, OpenHow::EXISTING).unwrap();
        file.write_zeros(length, length + longer).unwrap();
        let before = disk.calls();
        let (environment, rows) = run(5, disk, options(8), async |database| count(database).await);
        assert_eq!(rows, 10);
        let calls = environment.disk().calls() - before;
        environment.shutdown();
        calls
    };
    assert_eq!(calls(7 << 20), calls(16 << 10));
}
