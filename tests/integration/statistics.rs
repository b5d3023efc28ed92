//! What is known of tables: counted by ANALYZE, renewed as rows change, kept over a restart, and never
//! another table's.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use disk::{Environment, OpenHow, SimulatedEnvironment, SimulatedStorage};
use untorn::asynchronous::Database;
use untorn::engine::{Durability, ScanIndex};
use untorn::schema::{ColumnDef, KeyKind, TableDef};
use untorn::types::{Collation, ColumnType, Value};
use untorn::{Options, Table};

const FILE: &str = "/data/untorn-statistics";

/// Opens the database on the disk, does the work, closes it if asked to, and gives the disk as a power cut
/// leaves it.
fn run<T>(
    disk: Arc<SimulatedStorage>,
    closes: bool,
    work: impl AsyncFnOnce(&Database, &Arc<dyn Environment>) -> T,
) -> (Arc<SimulatedStorage>, T) {
    let environment = SimulatedEnvironment::with_storage(1, disk);
    let shared: Arc<dyn Environment> = environment.clone();
    let result = environment.run_until_complete(async {
        let options = Options::new("/data").buffer_pool_bytes(16 << 20).redo_capacity_bytes(8 << 20);
        let database = Database::open_in(shared.clone(), options).await.unwrap();
        let result = work(&database, &shared).await;
        if closes {
            database.close().await.unwrap();
        }
        result
    });
    let disk = environment.disk().crash(1);
    environment.shutdown();
    (disk, result)
}

async fn insert(database: &Database, table: &Arc<Table>, ids: std::ops::Range<i64>) {
    let mut transaction = database.transaction();
    transaction.begin();
    for id in ids {
        transaction.insert(table, &[Value::Int(id), Value::Int(id / 10), Value::Int(7)]).await.unwrap();
    }
    transaction.commit(Durability::Sync).await.unwrap();
}

async fn fill(database: &Database) -> Arc<Table> {
    database.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
    let columns = ["id", "a", "b"].map(|name| ColumnDef::new(name, ColumnType::bigint()));
    let def =
        TableDef::new(columns.to_vec()).primary_key(&["id"]).key("by_ab", KeyKind::Secondary, &["a", "b"]);
    database.create_table("test", "t", def).await.unwrap();
    let table = database.table("test", "t").unwrap();
    insert(database, &table, 0..400).await;
    table
}

fn distinct(table: &Table) -> Option<Vec<u64>> {
    Some(table.index_statistics(ScanIndex::Secondary(0))?.distinct)
}

fn new_disk() -> Arc<SimulatedStorage> {
    SimulatedStorage::new(1)
}

#[test]
fn analyzed_and_kept_over_a_crash() {
    let (disk, ()) = run(new_disk(), false, async |database, _| {
        let table = fill(database).await;
        assert_eq!((table.statistics(), table.lacks_statistics()), (None, true));
        let version = database.catalog_version();
        let found = database.analyze_table(&table).await.unwrap();
        assert_eq!(found.rows, 400);
        assert_eq!(distinct(&table), Some(vec![40, 40, 400]));
        assert!(!table.lacks_statistics());
        assert_ne!(database.catalog_version(), version, "plans must be made again");
        // What was not written down is lost in a crash, no more.
        insert(database, &table, 400..410).await;
        assert_eq!(table.row_count_estimate(), 410);
    });
    let (_, ()) = run(disk, true, async |database, _| {
        let table = database.table("test", "t").unwrap();
        assert_eq!((table.row_count_estimate(), distinct(&table)), (400, Some(vec![40, 40, 400])));
    });
}

#[test]
fn rows_are_known_after_an_orderly_stop() {
    let (disk, ()) = run(new_disk(), true, async |database, _| drop(fill(database).await));
    let (_, ()) = run(disk, true, async |database, _| {
        let table = database.table("test", "t").unwrap();
        assert_eq!((table.row_count_estimate(), table.statistics()), (400, None));
    });
}

#[test]
fn a_tenth_of_the_rows_is_enough_for_new_ones() {
    run(new_disk(), true, async |database, environment| {
        let table = fill(database).await;
        // Nobody has asked for any yet.
        environment.sleep(Duration::from_secs(1)).await;
        assert_eq!(table.statistics(), None);
        database.analyze_table(&table).await.unwrap();
        let version = database.catalog_version();
        insert(database, &table, 1000..1039).await;
        environment.sleep(Duration::from_secs(1)).await;
        assert_eq!(table.statistics().unwrap().rows, 400);
        insert(database, &table, 1040..1041).await;
        environment.sleep(Duration::from_secs(1)).await;
        assert_eq!(table.statistics().unwrap().rows, 400, "not every moment");
        environment.sleep(Duration::from_secs(10)).await;
        assert_eq!(table.statistics().unwrap().rows, 440);
        assert_eq!(database.catalog_version(), version, "plans stay good");
        // By and by they become others: what counts is what plans were made with.
        for more in 0..7 {
            insert(database, &table, 2000 + 60 * more..2060 + 60 * more).await;
            environment.sleep(Duration::from_secs(11)).await;
        }
        assert_eq!(table.statistics().unwrap().rows, 860);
        assert_ne!(database.catalog_version(), version);
    });
}

#[test]
fn what_is_said_of_a_table_is_said_of_no_other() {
    run(new_disk(), true, async |database, _| {
        let table = fill(database).await;
        database.analyze_table(&table).await.unwrap();
        database.rename_table(("test", "t"), ("test", "u")).await.unwrap();
        let renamed = database.table("test", "u").unwrap();
        assert_eq!(distinct(&renamed), Some(vec![40, 40, 400]));
        database.truncate_table("test", "u").await.unwrap();
        let empty = database.table("test", "u").unwrap();
        assert_eq!((empty.statistics(), empty.row_count_estimate()), (None, 0));
    });
}

#[test]
fn a_file_that_is_nonsense_is_none() {
    let (disk, ()) = run(new_disk(), true, async |database, _| {
        let table = fill(database).await;
        database.analyze_table(&table).await.unwrap();
    });
    let (disk, ()) = run(disk, false, async |_, environment| {
        let file = environment.storage().open(Path::new(FILE), OpenHow::EXISTING.buffered()).unwrap();
        file.write_at(b"table x", 30).unwrap();
        file.sync_data().unwrap();
    });
    run(disk, true, async |database, _| {
        let table = database.table("test", "t").unwrap();
        assert_eq!(table.statistics(), None);
        assert_eq!(database.analyze_table(&table).await.unwrap().rows, 400, "and can be counted again");
    });
}
