//! Whole files lost or foreign: each kind of file of a data directory missing, empty, cut, older (put back
//! alone from a copy) or from another directory, after an orderly stop and after a crash.
//!
//! What must come of it: a start that is refused and names the file; or a table that is refused and names the
//! file, with everything else complete; or everything complete. Never less than was acknowledged without a
//! word.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use disk::{Crash, Environment, OpenHow, SimulatedEnvironment, SimulatedStorage, Storage};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use untorn::asynchronous::Database;
use untorn::engine::Durability;
use untorn::schema::{ColumnDef, TableDef};
use untorn::types::{Collation, ColumnType, Value};
use untorn::{Error, Options, Range};

const TABLES: [&str; 2] = ["t", "u"];

fn options() -> Options {
    let mut options = Options::new("/data").page_size(4096).buffer_pool_bytes(96 * 4096);
    options.unchecked_sizes = true;
    options.redo_capacity_bytes = 2 << 20;
    options.log_buffer_bytes = 1 << 20;
    options
}

async fn open(environment: &Arc<SimulatedEnvironment>) -> Result<Database, Error> {
    let shared: Arc<dyn Environment> = environment.clone();
    Database::open_in(shared, options()).await
}

fn table_def() -> TableDef {
    TableDef::new(vec![
        ColumnDef::new("id", ColumnType::bigint()),
        ColumnDef::new("counter", ColumnType::int()),
    ])
    .primary_key(&["id"])
}

async fn insert(db: &Database, name: &str, ids: std::ops::Range<i64>) -> Result<(), Error> {
    let table = db.table("test", name)?;
    let mut transaction = db.transaction();
    transaction.begin();
    for id in ids {
        transaction.insert(&table, &[Value::Int(id), Value::Int(id * 7)]).await?;
    }
    transaction.commit(Durability::Sync).await
}

async fn ids(db: &Database, name: &str) -> Result<Vec<i64>, Error> {
    let table = db.table("test", name)?;
    let mut ids = Vec::new();
    let mut transaction = db.transaction();
    let all = Range::all();
    transaction
        .for_each(&table, &all, |row| {
            let Value::Int(id) = row[0] else { panic!("a row of other types: {row:?}") };
            ids.push(id);
            true
        })
        .await?;
    Ok(ids)
}

/// A directory with rows up to `rows` in both tables, closed cleanly.
fn directory(seed: u64, rows: i64) -> Arc<SimulatedStorage> {
    let environment = SimulatedEnvironment::new(seed);
    environment.run_until_complete(async {
        let db = open(&environment).await.unwrap();
        db.create_database("test", Collation::Utf8mb4Bin).await.unwrap();
        for name in TABLES {
            db.create_table("test", name, table_def()).await.unwrap();
            insert(&db, name, 0..rows).await.unwrap();
        }
        db.close().await.unwrap();
    });
    environment.shutdown();
    environment.disk().crash(1)
}

/// How the last run ended.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Stop,
    Crash,
}

/// The directory after another run with more rows: some in files and behind the checkpoint, some in the log
/// only.
fn after_another_run(past: &SimulatedStorage, end: End) -> Arc<SimulatedStorage> {
    let environment = SimulatedEnvironment::with_storage(2, past.crash(1));
    environment.run_until_complete(async {
        let db = open(&environment).await.unwrap();
        for name in TABLES {
            insert(&db, name, 100..400).await.unwrap();
        }
        db.store().flush_all().await.unwrap();
        // The checkpoint moves behind these rows, and what was written is noted.
        environment.sleep(Duration::from_secs(30)).await;
        for name in TABLES {
            insert(&db, name, 400..410).await.unwrap();
        }
        if end == End::Stop {
            db.close().await.unwrap();
        }
    });
    let left = environment.disk().moment().crash(Crash::ProcessOnly).0;
    environment.shutdown();
    left
}

fn expected() -> Vec<i64> {
    (0..10).chain(100..410).collect()
}

fn bytes_of(storage: &SimulatedStorage, path: &Path) -> Option<Vec<u8>> {
    storage.content(path)
}

/// Puts a file in the place of what is there.
fn put(storage: &SimulatedStorage, path: &Path, bytes: Option<&[u8]>) {
    if storage.exists(path).unwrap() {
        storage.remove(path).unwrap();
    }
    if let Some(bytes) = bytes {
        let file = storage.open(path, OpenHow::CREATE_NEW.buffered()).unwrap();
        if !bytes.is_empty() {
            file.write_at(bytes, 0).unwrap();
        }
        file.sync_data().unwrap();
    }
    storage.sync_dir(path.parent().unwrap()).unwrap();
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Trouble {
    Missing,
    Empty,
    Cut,
    Older,
    Foreign,
}

const TROUBLES: [Trouble; 5] =
    [Trouble::Missing, Trouble::Empty, Trouble::Cut, Trouble::Older, Trouble::Foreign];

/// What came of a start.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// The start was refused.
    Refused,
    /// A table was refused.
    TableRefused,
    /// Nothing is missing.
    Complete,
}

fn names_file(error: &Error, file: &str) -> bool {
    error.to_string().contains(file)
}

/// Opens what is there and looks. Panics when rows are missing without a word.
fn outcome(disk: &SimulatedStorage, file: &str, what: &str) -> Outcome {
    let environment = SimulatedEnvironment::with_storage(3, disk.crash(1));
    let outcome = environment.run_until_complete(async {
        let db = match open(&environment).await {
            Ok(db) => db,
            Err(error) => {
                assert!(names_file(&error, file), "{what}: refused without the file's name: {error}");
                return Outcome::Refused;
            }
        };
        let mut refused = BTreeMap::new();
        for name in TABLES {
            match ids(&db, name).await {
                Ok(found) => assert_eq!(found, expected(), "{what}: rows of {name}"),
                Err(error) => {
                    assert!(
                        names_file(&error, file),
                        "{what}: {name} refused without the file's name: {error}"
                    );
                    refused.insert(name, error.to_string());
                }
            }
        }
        let Some((name, _)) = refused.first_key_value() else {
            db.close().await.unwrap();
            return Outcome::Complete;
        };
        assert_eq!(refused.len(), 1, "{what}: {refused:?}");
        assert!(file.ends_with(".ibd"), "{what}: {refused:?}");
        // The other one can be written, the refused one dropped and made again.
        insert(&db, TABLES.into_iter().find(|other| other != name).unwrap(), 1000..1010).await.unwrap();
        db.drop_table("test", name).await.unwrap();
        db.create_table("test", name, table_def()).await.unwrap();
        insert(&db, name, 0..5).await.unwrap();
        db.close().await.unwrap();
        Outcome::TableRefused
    });
    environment.shutdown();
    if outcome == Outcome::TableRefused {
        let environment = SimulatedEnvironment::with_storage(4, environment.disk().crash(1));
        environment.run_until_complete(async {
            let db = open(&environment).await.unwrap();
            assert_eq!(ids(&db, "t").await.unwrap(), (0..5).collect::<Vec<i64>>(), "{what}");
            db.close().await.unwrap();
        });
        environment.shutdown();
    }
    outcome
}

#[test]
fn a_file_that_is_missing_or_foreign_is_named_or_does_no_harm() {
    let past = directory(1, 10);
    let elsewhere = directory(77, 50);
    let files = ["#untorn_redo", "undo_001", "untorn.catalog", "test/t.ibd", "#ib_16384_0.dblwr"];
    let doublewrite = past
        .list(Path::new("/data"))
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .filter(|name| name.ends_with(".dblwr"))
        .collect::<Vec<_>>();
    let files = files
        .into_iter()
        .filter(|name| !name.ends_with(".dblwr"))
        .map(str::to_owned)
        .chain(doublewrite)
        .collect::<Vec<_>>();
    for end in [End::Stop, End::Crash] {
        let present = after_another_run(&past, end);
        assert_eq!(outcome(&present, "", "untouched"), Outcome::Complete);
        for file in &files {
            for trouble in TROUBLES {
                let what = format!("{file} {trouble:?} after a {end:?}");
                let path = PathBuf::from("/data").join(file);
                let disk = present.crash(1);
                let there = bytes_of(&disk, &path).unwrap();
                let bytes = match trouble {
                    Trouble::Missing => None,
                    Trouble::Empty => Some(Vec::new()),
                    Trouble::Cut => Some(there[..there.len() / 2 / 4096 * 4096].to_vec()),
                    Trouble::Older => bytes_of(&past, &path),
                    Trouble::Foreign => bytes_of(&elsewhere, &path),
                };
                put(&disk, &path, bytes.as_deref());
                let outcome = outcome(&disk, file, &what);
                println!("{what}: {outcome:?}");
                if file.ends_with(".dblwr") {
                    assert_eq!(outcome, Outcome::Complete, "{what}: nothing was torn");
                } else if file == "#untorn_redo" && trouble == Trouble::Missing && end == End::Stop {
                    assert_eq!(outcome, Outcome::Complete, "{what}");
                }
            }
        }
    }
}

#[test]
fn a_table_without_its_file_loses_its_redo_for_good_and_nobody_elses() {
    let present = after_another_run(&directory(1, 10), End::Crash);
    let path = Path::new("/data/test/t.ibd");
    let there = bytes_of(&present, path).unwrap();
    put(&present, path, None);
    let environment = SimulatedEnvironment::with_storage(3, present.crash(1));
    environment.run_until_complete(async {
        let db = open(&environment).await.unwrap();
        assert_eq!(ids(&db, "u").await.unwrap(), expected());
        assert!(names_file(&ids(&db, "t").await.unwrap_err(), "test/t.ibd"));
        db.close().await.unwrap();
    });
    environment.shutdown();
    // Put back: it is whole, but the log has given up what it lacks.
    let disk = environment.disk().crash(1);
    put(&disk, path, Some(&there));
    let environment = SimulatedEnvironment::with_storage(4, disk.crash(1));
    environment.run_until_complete(async {
        let db = open(&environment).await.unwrap();
        let error = ids(&db, "t").await.unwrap_err();
        assert!(names_file(&error, "test/t.ibd") && error.to_string().contains("lost changes"), "{error}");
        db.truncate_table("test", "t").await.unwrap();
        insert(&db, "t", 0..3).await.unwrap();
        assert_eq!(ids(&db, "t").await.unwrap(), [0, 1, 2]);
        db.close().await.unwrap();
    });
    environment.shutdown();
}

#[test]
fn a_page_of_a_later_time_than_the_log_is_noticed() {
    let past = directory(1, 10);
    let present = after_another_run(&past, End::Stop);
    // All of the past but the table's file, as if only that had been spared when the rest was put back.
    let path = Path::new("/data/test/t.ibd");
    let disk = past.crash(1);
    put(&disk, path, Some(&bytes_of(&present, path).unwrap()));
    let environment = SimulatedEnvironment::with_storage(3, disk);
    environment.run_until_complete(async {
        let db = open(&environment).await.unwrap();
        let error = ids(&db, "t").await.unwrap_err().to_string();
        assert!(error.contains("test/t.ibd") && error.contains("LSN"), "{error}");
        assert!(insert(&db, "t", 500..501).await.is_err());
        assert_eq!(ids(&db, "u").await.unwrap(), (0..10).collect::<Vec<i64>>());
        db.close().await.unwrap();
    });
    environment.shutdown();
}
