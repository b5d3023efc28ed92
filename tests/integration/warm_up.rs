//! What was in the buffer pool before a restart comes back, and what is left of that file never hurts.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::path::Path;
use std::sync::Arc;

use disk::{Environment, OpenHow, SimulatedEnvironment, SimulatedStorage, Storage};
use untorn::asynchronous::{Database, block_on};
use untorn::engine::Durability;
use untorn::schema::{ColumnDef, TableDef};
use untorn::types::{Collation, ColumnType, Value};
use untorn::{Options, Range};

const ROWS: i64 = 1500;
const FILE: &str = "/data/ib_buffer_pool";

/// Opens the database on the disk, does the work, closes it, and gives the disk as a power cut leaves it.
fn run<T>(disk: Arc<SimulatedStorage>, work: impl AsyncFnOnce(&Database) -> T) -> (Arc<SimulatedStorage>, T) {
    let environment = SimulatedEnvironment::with_storage(1, disk);
    let shared: Arc<dyn Environment> = environment.clone();
    let result = environment.run_until_complete(async {
        let options = Options::new("/data").buffer_pool_bytes(16 << 20).redo_capacity_bytes(8 << 20);
        let database = Database::open_in(shared, options).await.unwrap();
        let result = work(&database).await;
        database.close().await.unwrap();
        result
    });
    let disk = environment.disk().crash(1);
    environment.shutdown();
    (disk, result)
}

async fn fill(database: &Database) {
    database.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
    let columns = vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("v", ColumnType::VarBinary { bytes: 2000 }),
    ];
    database.create_table("test", "t", TableDef::new(columns).primary_key(&["id"])).await.unwrap();
    let table = database.table("test", "t").unwrap();
    let mut transaction = database.transaction();
    transaction.begin();
    for id in 0..ROWS {
        transaction.insert(&table, &[Value::Int(id), Value::from(&[7u8; 1500][..])]).await.unwrap();
    }
    transaction.commit(Durability::Sync).await.unwrap();
    database.dump_buffer_pool_at_close(100);
}

fn figure(database: &Database, name: &str) -> u64 {
    database.status().into_iter().find(|(known, _)| *known == name).unwrap().1
}

/// Pages that a scan of the table had to wait for.
async fn misses_of_a_scan(database: &Database) -> u64 {
    let before = figure(database, "Innodb_buffer_pool_reads");
    let table = database.table("test", "t").unwrap();
    let mut transaction = database.transaction();
    let mut rows = 0;
    let all = Range::all();
    let each = transaction.for_each(&table, &all, |_| {
        rows += 1;
        true
    });
    each.await.unwrap();
    assert_eq!(rows, ROWS);
    figure(database, "Innodb_buffer_pool_reads") - before
}

#[test]
fn pages_that_were_in_memory_are_there_again() {
    let (disk, ()) = run(SimulatedStorage::new(1), async |database| fill(database).await);
    let lines = String::from_utf8(disk.content(Path::new(FILE)).unwrap()).unwrap().lines().count();
    assert!(lines > 150, "{lines} pages");
    let (disk, warm) = run(disk, async |database| {
        assert_eq!(database.buffer_pool_load_status(), "Loading of buffer pool not started");
        database.load_buffer_pool().wait().await;
        assert_eq!(
            database.buffer_pool_load_status(),
            format!("Buffer pool(s) load completed: {lines} pages")
        );
        misses_of_a_scan(database).await
    });
    assert_eq!(warm, 0);
    // Negative control. That nobody asked for another file leaves the one that is there.
    let (disk, cold) = run(disk, async |database| misses_of_a_scan(database).await);
    assert!(cold > 0, "a scan of a cold pool misses no page");
    assert!(disk.content(Path::new(FILE)).is_some());
}

#[test]
fn a_file_that_makes_no_sense_is_a_cold_start() {
    let (disk, ()) = run(SimulatedStorage::new(2), async |database| fill(database).await);
    // Pages and tablespaces that are not there, and no text at all.
    for text in ["0,4294967295\n77,1\n1,99999\n", "\u{0}\u{1}nonsense", ""] {
        disk.remove(Path::new(FILE)).unwrap();
        let file = disk.open(Path::new(FILE), OpenHow::CREATE_NEW.buffered()).unwrap();
        file.write_at(text.as_bytes(), 0).unwrap();
        file.sync_data().unwrap();
        disk.sync_dir(Path::new("/data")).unwrap();
        let (_, status) = run(disk.crash(3), async |database| {
            database.load_buffer_pool().wait().await;
            misses_of_a_scan(database).await;
            database.buffer_pool_load_status()
        });
        assert!(status.starts_with("Buffer pool(s) load completed"), "{status}");
    }
    disk.remove(Path::new(FILE)).unwrap();
    let (_, status) = run(disk, async |database| {
        database.load_buffer_pool().wait().await;
        database.buffer_pool_load_status()
    });
    assert!(status.starts_with("Cannot read '/data/ib_buffer_pool'"), "{status}");
}

#[test]
fn a_file_without_end_and_a_directory_do_no_harm() {
    let directory = std::env::temp_dir().join(format!("untorn-warm-up-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let options = Options::new(&directory).buffer_pool_bytes(16 << 20).redo_capacity_bytes(8 << 20);
    let path = directory.join("ib_buffer_pool");
    block_on(async {
        let database = Database::open(options).await.unwrap();
        // 8 TiB of nothing.
        std::fs::File::create(&path).unwrap().set_len(8 << 40).unwrap();
        database.load_buffer_pool().wait().await;
        let status = database.buffer_pool_load_status();
        assert_eq!(status, "Buffer pool(s) load completed: 0 pages");
        // And what is no file at all.
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        database.load_buffer_pool().wait().await;
        assert!(database.buffer_pool_load_status().starts_with("Cannot read"));
        assert!(database.dump_buffer_pool(100).is_err());
        database.dump_buffer_pool_at_close(100);
        database.close().await.unwrap();
    });
    let left = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().ends_with(".new")).collect();
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(left.is_empty(), "{left:?}");
}

/// What could not be written takes no room: a disk that is full needs all there is.
#[test]
fn a_dump_to_a_full_disk_leaves_nothing_and_the_close_goes_on() {
    let environment = SimulatedEnvironment::with_storage(5, SimulatedStorage::new(5));
    let shared: Arc<dyn Environment> = environment.clone();
    environment.run_until_complete(async {
        let options = Options::new("/data").buffer_pool_bytes(16 << 20).redo_capacity_bytes(8 << 20);
        let database = Database::open_in(shared, options).await.unwrap();
        fill(&database).await;
        let names = || -> Vec<String> {
            let entries = environment.disk().list(Path::new("/data")).unwrap();
            entries.into_iter().map(|entry| entry.name).collect()
        };
        let before = names();
        environment.disk().fill_up(true);
        assert!(database.dump_buffer_pool(100).is_err());
        assert_eq!(names(), before);
        environment.disk().fill_up(false);
        database.close().await.unwrap();
    });
    environment.shutdown();
}

/// The list of a load that was cut short is the better one.
#[test]
fn a_close_during_a_load_leaves_the_list_of_before() {
    let (disk, ()) = run(SimulatedStorage::new(4), async |database| fill(database).await);
    let before = disk.content(Path::new(FILE)).unwrap();
    let (disk, ()) = run(disk, async |database| {
        database.dump_buffer_pool_at_close(100);
        drop(database.load_buffer_pool());
    });
    assert_eq!(disk.content(Path::new(FILE)).unwrap(), before);
    // One that is over is no reason.
    let (disk, ()) = run(disk, async |database| {
        database.dump_buffer_pool_at_close(1);
        database.load_buffer_pool().wait().await;
    });
    assert!(disk.content(Path::new(FILE)).unwrap().len() < before.len() / 10);
}

#[test]
fn a_list_longer_than_the_pool_is_not_taken_whole() {
    let (disk, ()) = run(SimulatedStorage::new(4), async |database| fill(database).await);
    disk.remove(Path::new(FILE)).unwrap();
    let file = disk.open(Path::new(FILE), OpenHow::CREATE_NEW.buffered()).unwrap();
    file.write_at("1,99999\n".repeat(100_000).as_bytes(), 0).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir(Path::new("/data")).unwrap();
    let (_, (frames, status)) = run(disk, async |database| {
        database.load_buffer_pool().wait().await;
        misses_of_a_scan(database).await;
        (figure(database, "Innodb_buffer_pool_pages_total"), database.buffer_pool_load_status())
    });
    assert_eq!(status, format!("Buffer pool(s) load completed: {frames} pages"));
}

#[test]
fn a_load_that_is_told_to_stop_or_meets_a_close_ends() {
    let (disk, ()) = run(SimulatedStorage::new(3), async |database| fill(database).await);
    let (disk, over) = run(disk, async |database| {
        let over = database.load_buffer_pool();
        assert!(database.load_buffer_pool().same(&over), "one at a time");
        database.abort_buffer_pool_load();
        over.wait().await;
        let status = database.buffer_pool_load_status();
        assert_eq!(status, "Buffer pool(s) load aborted on request");
        // And once more, into a close.
        database.load_buffer_pool()
    });
    drop(over);
    let (_, misses) = run(disk, async |database| misses_of_a_scan(database).await);
    assert!(misses > 0);
}
