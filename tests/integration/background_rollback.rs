//! What had not committed before a crash is rolled back while clients are served: they see nothing of it,
//! tables that it changed keep their definitions, and a stop in between goes on at the next start.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use disk::{Environment, SimulatedEnvironment, SimulatedStorage, Storage};
use untorn::asynchronous::Database;
use untorn::engine::Durability;
use untorn::schema::{ColumnDef, TableDef};
use untorn::types::{Collation, ColumnType, Value};
use untorn::{Error, Options, Range};

const ROWS: i64 = 4000;

fn options() -> Options {
    Options::new("/data").buffer_pool_bytes(5 << 20).redo_capacity_bytes(8 << 20)
}

fn table_def() -> TableDef {
    TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("counter", ColumnType::int()),
    ])
    .primary_key(&["id"])
}

fn open(disk: &Arc<SimulatedStorage>, seed: u64) -> (Arc<SimulatedEnvironment>, Database) {
    let environment = SimulatedEnvironment::with_storage(seed, disk.clone());
    let shared: Arc<dyn Environment> = environment.clone();
    let database = environment.run_until_complete(Database::open_in(shared, options())).unwrap();
    (environment, database)
}

async fn insert(database: &Database, table: &str, ids: std::ops::Range<i64>) {
    let table = database.table("test", table).unwrap();
    let mut transaction = database.transaction();
    transaction.begin();
    for id in ids {
        transaction.insert(&table, &[Value::Int(id), Value::Int(1)]).await.unwrap();
    }
    transaction.commit(Durability::Sync).await.unwrap();
}

async fn sum(database: &Database, table: &str) -> i64 {
    let table = database.table("test", table).unwrap();
    let mut transaction = database.transaction();
    let mut sum = 0;
    transaction
        .for_each(&table, &Range::all(), |row| {
            let Value::Int(counter) = row[1] else { panic!("{row:?}") };
            sum += counter;
            true
        })
        .await
        .unwrap();
    sum
}

#[test]
fn clients_are_served_during_the_rollback_and_tables_stay_until_its_end() {
    let environment = SimulatedEnvironment::new(1);
    let shared: Arc<dyn Environment> = environment.clone();
    let (database, lost) = environment.run_until_complete(async {
        let database = Database::open_in(shared, options()).await.unwrap();
        database.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
        for table in ["t", "other"] {
            database.create_table("test", table, table_def()).await.unwrap();
            insert(&database, table, 0..ROWS).await;
        }
        let table = database.table("test", "t").unwrap();
        let mut lost = database.transaction();
        lost.begin();
        for id in 0..ROWS {
            lost.update(&table, &[Value::Int(id)], &[("counter", Value::Int(9))]).await.unwrap();
        }
        // Its sync takes the changes to the disk.
        insert(&database, "other", ROWS..ROWS + 1).await;
        (database, lost)
    });
    let mut disk = environment.disk().crash(1);
    environment.shutdown();
    drop((lost, database));
    let mut left = ROWS as u64 + 1;
    for round in 0..3 {
        let (environment, database) = open(&disk, 2 + round);
        let status = || database.transaction_system().status();
        assert_eq!(database.report().rolled_back, 1);
        assert_eq!(status().unfinished_transactions, 1, "round {round}: the start did not wait");
        assert!(status().unfinished_records < left, "round {round}: nothing of it was kept");
        left = status().unfinished_records;
        environment.run_until_complete(async {
            let at_once = Duration::ZERO;
            assert!(
                database.definitions().timeout(at_once).drop_table("test", "t").await.is_err(),
                "it is still changed"
            );
            if round == 2 {
                database.definitions().timeout(at_once).drop_table("test", "other").await.unwrap();
            }
            insert(&database, "t", ROWS + round as i64..ROWS + round as i64 + 1).await;
        });
        while status().unfinished_records + 1200 > left && round < 2 {
            assert!(environment.step(), "the rollback stands still");
        }
        if round == 0 {
            // An orderly stop does not wait for the end of it either.
            environment.run_until_complete(database.close()).unwrap();
            assert!(status().unfinished_transactions > 0);
        } else if round == 1 {
            environment.run_until_complete(insert(&database, "other", ROWS + 9..ROWS + 10));
        } else {
            environment.run_until_complete(async {
                assert_eq!(sum(&database, "t").await, ROWS + 3);
                database.transaction_system().rolled_back().await;
                assert_eq!(sum(&database, "t").await, ROWS + 3);
                database.definitions().timeout(Duration::ZERO).drop_table("test", "t").await.unwrap();
            });
        }
        disk = environment.disk().crash(3 + round);
        environment.shutdown();
        drop(database);
    }
}

/// What ends the wait for a file that a start did not find.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    PutBack,
    /// It is put back only after another start has missed it.
    PutBackLater,
    Dropped,
}

/// What an unfinished transaction did to a table is not taken for committed because its file was away when it
/// was to be undone.
#[test]
fn a_transaction_stays_unfinished_while_a_tables_file_is_away() {
    for ending in [Ending::PutBack, Ending::PutBackLater, Ending::Dropped] {
        let environment = SimulatedEnvironment::new(20);
        let shared: Arc<dyn Environment> = environment.clone();
        let (database, lost) = environment.run_until_complete(async {
            let database = Database::open_in(shared, options()).await.unwrap();
            database.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
            for table in ["t", "other"] {
                database.create_table("test", table, table_def()).await.unwrap();
                insert(&database, table, 0..ROWS).await;
            }
            let mut lost = database.transaction();
            lost.begin();
            // Each table's records lie between the other's.
            for id in 0..ROWS {
                for table in ["t", "other"] {
                    let table = database.table("test", table).unwrap();
                    lost.update(&table, &[Value::Int(id)], &[("counter", Value::Int(9))]).await.unwrap();
                }
            }
            // Redo has nothing to do with the tables, so a start does not need their files.
            database.store().checkpoint().await.unwrap();
            (database, lost)
        });
        let mut disk = environment.disk().crash(21);
        environment.shutdown();
        drop((lost, database));
        let (file, away) = (Path::new("/data/test/t.ibd"), Path::new("/data/test/away"));
        disk.rename(file, away).unwrap();
        disk.sync_dir(Path::new("/data/test")).unwrap();
        let mut opened = open(&disk, 22);
        let while_away = |environment: &SimulatedEnvironment, database: &Database| {
            environment.run_until_complete(environment.sleep(Duration::from_secs(200)));
            let status = database.transaction_system().status();
            assert_eq!((status.unfinished_transactions, status.active), (1, 1), "{ending:?}");
            assert_eq!(environment.run_until_complete(sum(database, "other")), ROWS, "{ending:?}");
            // The other table's rows are free.
            environment.run_until_complete(async {
                let table = database.table("test", "other").unwrap();
                let mut transaction = database.transaction();
                transaction.begin();
                transaction.update(&table, &[Value::Int(1)], &[("counter", Value::Int(1))]).await.unwrap();
                transaction.commit(Durability::Sync).await.unwrap();
            });
        };
        while_away(&opened.0, &opened.1);
        if ending == Ending::PutBackLater {
            let (environment, database) = opened;
            disk = environment.disk().crash(23);
            environment.shutdown();
            drop(database);
            opened = open(&disk, 24);
            while_away(&opened.0, &opened.1);
        }
        let (environment, database) = opened;
        environment.run_until_complete(async {
            if ending == Ending::Dropped {
                database.definitions().timeout(Duration::ZERO).drop_table("test", "t").await.unwrap();
            } else {
                disk.rename(away, file).unwrap();
                assert_eq!(sum(&database, "t").await, ROWS, "nobody sees what was not committed");
            }
            environment.sleep(Duration::from_secs(200)).await;
            let status = database.transaction_system().status();
            assert_eq!((status.unfinished_transactions, status.unfinished_records, status.active), (0, 0, 0));
            assert_eq!(sum(&database, "other").await, ROWS);
            if ending != Ending::Dropped {
                assert_eq!(sum(&database, "t").await, ROWS);
                // And its definition may change again.
                database.definitions().timeout(Duration::ZERO).drop_table("test", "t").await.unwrap();
            }
            database.close().await.unwrap();
        });
        environment.shutdown();
    }
}

/// A start has found it prepared, and its rollback cannot reach one of its tables: that one can be dropped.
#[test]
fn what_was_prepared_lets_go_of_a_table_whose_file_is_away() {
    let environment = SimulatedEnvironment::new(30);
    let shared: Arc<dyn Environment> = environment.clone();
    let xid = untorn::Xid::new(1, b"a", b"").unwrap();
    let database = environment.run_until_complete(async {
        let database = Database::open_in(shared, options()).await.unwrap();
        database.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
        let mut prepared = database.transaction();
        prepared.begin();
        for name in ["t", "other"] {
            database.create_table("test", name, table_def()).await.unwrap();
            insert(&database, name, 0..ROWS).await;
            let table = database.table("test", name).unwrap();
            prepared.update(&table, &[Value::Int(1)], &[("counter", Value::Int(9))]).await.unwrap();
        }
        prepared.prepare(&xid, Durability::Sync).await.unwrap();
        database.store().checkpoint().await.unwrap();
        database
    });
    let disk = environment.disk().crash(31);
    environment.shutdown();
    drop(database);
    disk.rename(Path::new("/data/test/t.ibd"), Path::new("/data/test/away")).unwrap();
    disk.sync_dir(Path::new("/data/test")).unwrap();
    let (environment, database) = open(&disk, 32);
    environment.run_until_complete(async {
        let started = database.transaction_system().transactions()[0].started.unwrap();
        assert!(started > Duration::from_secs(365 * 24 * 3600), "{started:?}");
        let quick = || database.definitions().timeout(Duration::ZERO);
        assert!(matches!(quick().drop_table("test", "t").await, Err(Error::MetadataLockTimeout)));
        database.rollback_prepared(&xid, Durability::Sync).await.unwrap_err();
        environment.sleep(Duration::from_secs(10)).await;
        assert_eq!(database.transaction_system().status().active, 1);
        assert!(matches!(quick().drop_table("test", "other").await, Err(Error::MetadataLockTimeout)));
        quick().drop_table("test", "t").await.unwrap();
        environment.sleep(Duration::from_secs(200)).await;
        assert_eq!(database.transaction_system().status().active, 0);
        assert_eq!(sum(&database, "other").await, ROWS);
        quick().drop_table("test", "other").await.unwrap();
        database.close().await.unwrap();
    });
    environment.shutdown();
}
