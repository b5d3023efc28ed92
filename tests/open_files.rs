//! `innodb_open_files`: many tables through few descriptors, also after a start, and renamed while they are
//! closed.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::path::{Path, PathBuf};

use untorn::asynchronous::Database;
use untorn::engine::Durability;
use untorn::schema::{ColumnDef, TableDef};
use untorn::types::{Collation, ColumnType, Value};
use untorn::{Options, Range};

const TABLES: i64 = 40;
const OPEN: usize = 10;

struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn options(directory: &Path) -> Options {
    let mut options = Options::new(directory).page_size(4096).buffer_pool_bytes(8 << 20);
    options.redo_capacity_bytes = 8 << 20;
    options.open_files = OPEN;
    options
}

/// Descriptors of tables' files in this process.
fn open_tables(directory: &Path) -> usize {
    let entries = std::fs::read_dir("/proc/self/fd").unwrap();
    let targets = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets.filter(|path| path.starts_with(directory) && path.extension().is_some_and(|e| e == "ibd")).count()
}

/// Everything is synced, so no more are open than may be.
fn settled(db: &Database, directory: &Path) {
    disk::block_on(db.store().flush_all()).unwrap();
    // Each is looked at twice: whether it was used since.
    for _ in 0..2 {
        db.environment().storage().set_open_files_max(OPEN);
    }
    assert!(open_tables(directory) <= OPEN, "{} open", open_tables(directory));
}

async fn insert(db: &Database, number: i64, id: i64) {
    let table = db.table("test", &format!("t{number}")).unwrap();
    let mut transaction = db.transaction();
    transaction.begin();
    transaction.insert(&table, &[Value::Int(id), Value::Int(number)]).await.unwrap();
    transaction.commit(Durability::Sync).await.unwrap();
}

async fn rows(db: &Database, number: i64) -> usize {
    let table = db.table("test", &format!("t{number}")).unwrap();
    let mut count = 0;
    let all = Range::all();
    let mut transaction = db.transaction();
    let each = transaction.for_each(&table, &all, |row| {
        assert_eq!(row[1], Value::Int(number));
        count += 1;
        true
    });
    each.await.unwrap();
    count
}

#[test]
fn many_tables_go_through_few_descriptors() {
    let place = Place(std::env::temp_dir().join(format!("untorn-open-files-{}", std::process::id())));
    let _ = std::fs::remove_dir_all(&place.0);
    let def = || {
        TableDef::new(vec![
            ColumnDef::new("id", ColumnType::bigint()),
            ColumnDef::new("n", ColumnType::bigint()),
        ])
        .primary_key(&["id"])
    };
    let db = untorn::engine::block_on(Database::open(options(&place.0))).unwrap();
    disk::block_on(async {
        db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
        for number in 0..TABLES {
            db.create_table("test", &format!("t{number}"), def()).await.unwrap();
            insert(&db, number, 1).await;
        }
        db.store().flush_all().await.unwrap();
        for number in 0..TABLES {
            assert_eq!(rows(&db, number).await, 1);
        }
    });
    settled(&db, &place.0);
    untorn::engine::block_on(db.close()).unwrap();
    drop(db);
    let db = untorn::engine::block_on(Database::open(options(&place.0))).unwrap();
    assert_eq!(open_tables(&place.0), 0, "a start opens none");
    disk::block_on(async {
        for number in 0..TABLES {
            assert_eq!(rows(&db, number).await, 1);
            insert(&db, number, 2).await;
        }
        // Renamed while its file may be closed.
        db.rename_table(("test", "t0"), ("test", "moved")).await.unwrap();
        for number in 1..TABLES {
            assert_eq!(rows(&db, number).await, 2);
        }
        db.rename_table(("test", "moved"), ("test", "t0")).await.unwrap();
        assert_eq!(rows(&db, 0).await, 2);
    });
    untorn::engine::block_on(db.close()).unwrap();
    drop(db);
    let db = untorn::engine::block_on(Database::open(options(&place.0))).unwrap();
    disk::block_on(async {
        for number in 0..TABLES {
            assert_eq!(rows(&db, number).await, 2);
        }
    });
    settled(&db, &place.0);
    untorn::engine::block_on(db.close()).unwrap();
}
