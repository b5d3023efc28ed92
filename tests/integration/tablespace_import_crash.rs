//! IMPORT TABLESPACE on a disk that fails: a power loss at every sync of an import, every call failing once,
//! and what is left in memory and in the buffer pool extension of the table's earlier file.
//!
//! Whatever happens, the table is discarded and the file to be imported is as it was, or the table is whole.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::path::Path;
use std::sync::Arc;

use disk::{Crash, Environment, Fault, FaultKind, Moment, OpenHow, SimulatedEnvironment, SimulatedStorage};
use parking_lot::Mutex;
use untorn::asynchronous::Database;
use untorn::engine::Durability;
use untorn::schema::{ColumnDef, KeyKind, TableDef};
use untorn::types::{Collation, ColumnType, SizeClass, Value};
use untorn::{Error, Options, Range};

const FILE: &str = "/data/test/t.ibd";
const MIB: u64 = 1 << 20;
const ROWS: i64 = 60;

fn options() -> Options {
    let mut options = Options::new("/data").page_size(4096).buffer_pool_bytes(128 * 4096);
    options.unchecked_sizes = true;
    options.redo_capacity_bytes = 2 * MIB;
    options.log_buffer_bytes = MIB;
    options
}

async fn open(environment: &Arc<SimulatedEnvironment>, options: Options) -> Database {
    let shared: Arc<dyn Environment> = environment.clone();
    Database::open_in(shared, options).await.unwrap()
}

fn definition() -> TableDef {
    TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()).auto_increment(),
        ColumnDef::new("v", ColumnType::int()),
        ColumnDef::new("doc", ColumnType::Blob { size: SizeClass::Long }).nullable(),
    ])
    .primary_key(&["id"])
    .key("by_v", KeyKind::Secondary, &["v"])
}

/// Rows `(id, id * factor)`, every seventh with an off-page value.
async fn fill(db: &Database, table: &str, factor: i64) {
    let table = db.table("test", table).unwrap();
    let mut transaction = db.transaction();
    transaction.begin();
    for id in 1..=ROWS {
        let doc = vec![id as u8; 6000];
        let doc = if id % 7 == 0 { Value::bytes(&doc) } else { Value::Null };
        transaction.insert(&table, &[Value::Int(id), Value::Int(id * factor), doc]).await.unwrap();
    }
    transaction.commit(Durability::Sync).await.unwrap();
}

async fn values(db: &Database) -> Result<Vec<i64>, Error> {
    let table = db.table("test", "t")?;
    let mut found = Vec::new();
    let mut transaction = db.transaction();
    transaction.begin();
    let all = Range::all();
    let read = transaction.for_each(&table, &all, |row| {
        let (Value::Int(id), Value::Int(value)) = (&row[0], &row[1]) else { panic!("other types") };
        let expected = vec![*id as u8; 6000];
        let whole = if id % 7 == 0 { row[2] == Value::bytes(&expected) } else { row[2] == Value::Null };
        assert!(whole, "row {id}: its off-page value is another");
        found.push(*value);
        true
    });
    let read = read.await;
    transaction.rollback().await.unwrap();
    read.map(|()| found)
}

fn imported() -> Vec<i64> {
    (1..=ROWS).map(|id| id * 3).collect()
}

/// A directory with a discarded table and a good file in its place, which is returned too.
fn prepared(options: &Options) -> (Arc<SimulatedStorage>, Vec<u8>) {
    let environment = SimulatedEnvironment::new(1);
    let file = environment.run_until_complete(async {
        let db = open(&environment, options.clone()).await;
        db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
        db.create_table("test", "t", definition()).await.unwrap();
        fill(&db, "t", 3).await;
        let file = {
            let _hold = db.export_table("test", "t").await.unwrap();
            environment.disk().content(Path::new(FILE)).unwrap()
        };
        db.discard_tablespace("test", "t").await.unwrap();
        db.close().await.unwrap();
        file
    });
    put(&environment, &file);
    environment.shutdown();
    (environment.disk().crash(1), file)
}

fn put(environment: &SimulatedEnvironment, bytes: &[u8]) {
    let storage = environment.storage();
    let file = storage.open(Path::new(FILE), OpenHow::CREATE_NEW.buffered()).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.sync_data().unwrap();
    storage.sync_dir(Path::new("/data/test")).unwrap();
}

/// Opens what a crash left: discarded with the file as it was, and then it can still be imported, or whole.
/// Says which.
fn is_whole_or_discarded(disk: Arc<SimulatedStorage>, file: &[u8], what: &str) -> bool {
    let environment = SimulatedEnvironment::with_storage(9, disk);
    let whole = environment.run_until_complete(async {
        let db = open(&environment, options()).await;
        let whole = match values(&db).await {
            Ok(found) => {
                assert_eq!(found, imported(), "{what}");
                true
            }
            Err(Error::TablespaceDiscarded(..)) => {
                assert!(
                    environment.disk().content(Path::new(FILE)).unwrap() == file,
                    "{what}: the file was changed"
                );
                db.import_tablespace("test", "t").await.unwrap();
                assert_eq!(values(&db).await.unwrap(), imported(), "{what}");
                false
            }
            Err(error) => panic!("{what}: {error}"),
        };
        let report = db.check_table("test", "t").await.unwrap();
        assert!(report.is_sound(), "{what}: {:?}", report.problems);
        let names = environment.storage().list(Path::new("/data/test")).unwrap();
        assert_eq!(names.len(), 1, "{what}: {names:?}");
        fill_more(&db).await;
        whole
    });
    environment.shutdown();
    whole
}

/// The counter goes on behind the greatest value.
async fn fill_more(db: &Database) {
    let table = db.table("test", "t").unwrap();
    let mut transaction = db.transaction();
    transaction.begin();
    let id = transaction.insert(&table, &[Value::Int(0), Value::Int(0), Value::Null]).await.unwrap();
    assert!(id.is_some_and(|id| id as i64 > ROWS), "{id:?}");
    transaction.commit(Durability::Sync).await.unwrap();
}

#[test]
fn a_power_loss_at_any_sync_leaves_the_table_discarded_or_whole() {
    let (start, file) = prepared(&options());
    let environment = SimulatedEnvironment::with_storage(2, start);
    let moments: Arc<Mutex<Vec<Moment>>> = Arc::default();
    environment.run_until_complete(async {
        let db = open(&environment, options()).await;
        let seen = moments.clone();
        environment.disk().observe_syncs(move |moment| seen.lock().push(moment));
        db.import_tablespace("test", "t").await.unwrap();
        environment.disk().stop_observing();
        moments.lock().push(environment.disk().moment());
    });
    environment.shutdown();
    let moments = moments.lock();
    assert!(moments.len() > 8, "{} syncs", moments.len());
    let (mut whole, mut states) = (0, 0);
    for (at, moment) in moments.iter().enumerate() {
        let crashes =
            [Crash::ProcessOnly, Crash::Exactly(0), Crash::Random(1), Crash::Random(2), Crash::Random(3)];
        for crash in crashes {
            let what = format!("sync {at} of {}, {crash:?}", moments.len());
            whole += u32::from(is_whole_or_discarded(moment.crash(crash).0, &file, &what));
            states += 1;
        }
    }
    assert!(whole > 5 && whole < states, "{whole} of {states} states had the whole table");
}

#[test]
fn any_failing_call_leaves_the_table_discarded_or_whole() {
    let (start, file) = prepared(&options());
    for kind in [FaultKind::Eio, FaultKind::Enospc] {
        for call in 0.. {
            let environment = SimulatedEnvironment::with_storage(call, start.crash(1));
            let disk = environment.disk().clone();
            let what = format!("call {call} failing ({kind:?})");
            let reached = environment.run_until_complete(async {
                let db = open(&environment, options()).await;
                let first = disk.calls();
                disk.plan(Fault { call: first + call, kind });
                let outcome = db.import_tablespace("test", "t").await;
                let reached = disk.calls() > first + call;
                if outcome.is_ok() {
                    assert_eq!(values(&db).await.unwrap(), imported(), "{what}");
                }
                reached
            });
            is_whole_or_discarded(disk.crash(call), &file, &what);
            environment.shutdown();
            if !reached {
                assert!(call > 20, "an import makes {call} calls");
                break;
            }
        }
    }
}

/// The table's rows before and after have the same keys: a page of the earlier file, were it found in the
/// buffer pool or in the buffer pool extension, would show.
#[test]
fn no_page_of_the_earlier_file_is_left_in_memory_or_in_the_extension() {
    let options = Options::new("/data").buffer_pool_bytes(5 * MIB).redo_capacity_bytes(8 * MIB);
    let options = options.extension("/fast/tier", 16 * MIB);
    let environment = SimulatedEnvironment::new(5);
    environment.storage().create_dir_all(Path::new("/fast")).unwrap();
    environment.run_until_complete(async {
        let db = open(&environment, options).await;
        db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
        for (name, factor) in [("t", 5), ("other", 3)] {
            db.create_table("test", name, definition()).await.unwrap();
            fill(&db, name, factor).await;
        }
        let file = {
            let _hold = db.export_table("test", "other").await.unwrap();
            environment.disk().content(Path::new("/data/test/other.ibd")).unwrap()
        };
        assert_eq!(values(&db).await.unwrap(), (1..=ROWS).map(|id| id * 5).collect::<Vec<_>>());
        let earlier = db.table("test", "t").unwrap().def.space;
        let resident = || db.store().resident_pages(usize::MAX).iter().any(|page| page.space == earlier);
        assert!(resident(), "the earlier file's pages are in memory");
        let dropped = db.extension().spaces_invalidated;
        db.discard_tablespace("test", "t").await.unwrap();
        assert!(!resident(), "they went with the file");
        assert_eq!(db.extension().spaces_invalidated, dropped + 1, "and the tier was told");
        put(&environment, &file);
        db.import_tablespace("test", "t").await.unwrap();
        assert_ne!(db.table("test", "t").unwrap().def.space, earlier);
        assert_eq!(values(&db).await.unwrap(), imported());
        assert!(!resident(), "nothing was read under the earlier tablespace id");
        db.close().await.unwrap();
    });
    environment.shutdown();
}
