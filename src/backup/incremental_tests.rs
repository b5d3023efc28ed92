//! Backups that add to others: what is restored is a moment of the history, also after the histories of base
//! and directory have parted; what is missing or changed in any of them is noticed.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use disk::{Environment, OpenHow, SimulatedEnvironment};
use txn::Durability;

use super::manifest::Manifest;
use super::tests::{MIB, TARGET, accounts, history_of, options, prepare, restore_and_verify_from, seeds};
use super::{BackupOptions, BackupProgress, BackupReport, Broken, restore_in};
use crate::database::Database;
use crate::error::Error;
use crate::rows::{Lock, Range};
use crate::small_file::{read_whole, write_atomically};
use crate::types::Value;

const SECOND: &str = "/backups/two";
const THIRD: &str = "/backups/three";

async fn backup(db: &Database, target: &str, base: &str) -> BackupReport {
    db.backup_with(target, BackupOptions::default().since(base)).await.unwrap()
}

/// A table with this many rows of 400 bytes and more.
async fn fill(db: &Database, name: &str, rows: i64) {
    let table = db.create_table("test", name, accounts()).await.unwrap();
    let mut transaction = db.begin();
    for id in 0..rows {
        transaction.insert(&table, &[Value::Int(id), Value::Int(1)]).await.unwrap();
    }
    transaction.commit(Durability::Sync).await.unwrap();
}

/// Sets the balance of the rows from `from` up to `to`, in the file too.
async fn set(db: &Database, name: &str, from: i64, to: i64, balance: i64) {
    let table = db.table("test", name).unwrap();
    let mut transaction = db.begin();
    for id in from..to {
        let changes = [("balance", Value::Int(balance))];
        transaction.update(&table, &[Value::Int(id)], &changes).await.unwrap();
    }
    transaction.commit(Durability::Sync).await.unwrap();
    db.0.store.checkpoint().await.unwrap();
}

async fn balances(db: &Database, name: &str) -> Vec<i64> {
    let table = db.table("test", name).unwrap();
    let mut found = Vec::new();
    let mut transaction = db.begin();
    let all = Range::all();
    let read = transaction.for_each(&table, &all, |row| {
        let Value::Int(balance) = row[1] else { panic!("{row:?}") };
        found.push(balance);
        true
    });
    read.await.unwrap();
    transaction.rollback().await.unwrap();
    assert!(db.check_table("test", name).await.unwrap().is_sound(), "{name}");
    found
}

async fn open(shared: &Arc<dyn Environment>, directory: &str) -> Database {
    Database::open_in(shared.clone(), options(directory)).await.unwrap()
}

async fn restored(shared: &Arc<dyn Environment>, backup: &str, directory: &str) -> Database {
    let mut last = BackupProgress::default();
    let report = restore_in(&**shared.storage(), Path::new(backup), Path::new(directory), |progress| {
        assert!(progress.bytes >= last.bytes && progress.bytes <= progress.bytes_expected);
        last = progress;
    });
    assert_eq!(last.bytes, report.unwrap().bytes, "all of it was reported");
    open(shared, directory).await
}

/// Runs with an open database that has a table `u`.
fn with_rows<F: Future<Output = ()>>(rows: i64, run: impl FnOnce(Arc<dyn Environment>, Database) -> F) {
    let environment = SimulatedEnvironment::new(11);
    let shared: Arc<dyn Environment> = environment.clone();
    environment.run_until_complete(async {
        let db = open(&shared, "/data").await;
        prepare(&db).await;
        fill(&db, "u", rows).await;
        run(shared, db).await;
    });
}

#[test]
fn what_backups_that_add_to_others_hold_is_a_moment_of_the_history() {
    for seed in seeds(6) {
        println!("UNTORN_SEED={seed}");
        let history = history_of(&[TARGET, SECOND, THIRD], seed, u64::MAX, None);
        let report = history.report.as_ref().unwrap();
        assert!(report.bytes < report.bytes_restored, "{report:?}");
        restore_and_verify_from(THIRD, &history);
    }
}

#[test]
fn a_changed_page_that_is_left_out_is_noticed() {
    let history = history_of(&[TARGET, SECOND], 1, u64::MAX, Some(Broken::LeavesOutAPage));
    let storage = history.environment.storage().clone();
    let outcome = restore_in(&*storage, Path::new(SECOND), Path::new("/restored"), |_| {});
    assert!(matches!(outcome, Err(Error::Backup { .. })), "{outcome:?}");
}

#[test]
fn the_size_follows_what_was_changed() {
    with_rows(30_000, |shared, db| async move {
        set(&db, "u", 0, 30_000, 1).await;
        db.backup(TARGET).await.unwrap();
        set(&db, "u", 100, 110, 2).await;
        let few = backup(&db, SECOND, TARGET).await;
        set(&db, "u", 0, 30_000, 3).await;
        let all = backup(&db, THIRD, SECOND).await;
        let pages = |report: &BackupReport| report.bytes - report.redo_bytes;
        assert!(all.bytes_restored > MIB, "{all:?}");
        // Purge and undo change pages, too.
        assert!(pages(&few) < pages(&all) / 2, "{few:?} {all:?}");
        assert!(pages(&all) < all.bytes_restored / 4, "{all:?}");
        db.close().await.unwrap();
        let db = restored(&shared, SECOND, "/few").await;
        let expected = (0..30_000).map(|id| if (100..110).contains(&id) { 2 } else { 1 });
        assert_eq!(balances(&db, "u").await, expected.collect::<Vec<_>>());
        db.close().await.unwrap();
        let db = restored(&shared, THIRD, "/all").await;
        assert_eq!(balances(&db, "u").await, vec![3; 30_000]);
        db.close().await.unwrap();
    });
}

/// The base is of a directory whose LSNs went on elsewhere: the same tablespaces, other rows.
#[test]
fn a_base_from_another_branch_of_the_history_has_less_in_common_and_nothing_wrong() {
    with_rows(4_000, |shared, db| async move {
        db.backup(TARGET).await.unwrap();
        set(&db, "u", 0, 4_000, 2).await;
        backup(&db, SECOND, TARGET).await;
        db.close().await.unwrap();
        let other = restored(&shared, TARGET, "/other").await;
        set(&other, "u", 0, 2_000, 3).await;
        backup(&other, THIRD, SECOND).await;
        other.close().await.unwrap();
        let db = restored(&shared, THIRD, "/third").await;
        let expected = (0..4_000).map(|id| if id < 2_000 { 3 } else { 1 });
        assert_eq!(balances(&db, "u").await, expected.collect::<Vec<_>>());
        db.close().await.unwrap();
    });
}

#[test]
fn tables_that_came_went_grew_and_changed_their_names_are_as_they_were() {
    with_rows(3_000, |shared, db| async move {
        fill(&db, "goes", 500).await;
        fill(&db, "renamed", 500).await;
        fill(&db, "emptied", 3_000).await;
        db.backup(TARGET).await.unwrap();
        let definitions = db.definitions();
        definitions.drop_table("test", "goes").await.unwrap();
        fill(&db, "goes", 700).await;
        fill(&db, "comes", 600).await;
        definitions.rename_table(("test", "renamed"), ("test", "another")).await.unwrap();
        definitions.truncate_table("test", "emptied").await.unwrap();
        let table = db.table("test", "u").unwrap();
        let mut transaction = db.begin();
        for id in 3_000..20_000 {
            transaction.insert(&table, &[Value::Int(id), Value::Int(1)]).await.unwrap();
        }
        transaction.commit(Durability::Sync).await.unwrap();
        backup(&db, SECOND, TARGET).await;
        set(&db, "another", 0, 10, 5).await;
        backup(&db, THIRD, SECOND).await;
        db.close().await.unwrap();
        let db = restored(&shared, THIRD, "/third").await;
        assert_eq!(balances(&db, "u").await, vec![1; 20_000]);
        assert_eq!(balances(&db, "goes").await, vec![1; 700]);
        assert_eq!(balances(&db, "comes").await, vec![1; 600]);
        assert_eq!(balances(&db, "emptied").await, Vec::<i64>::new());
        let expected = (0..500).map(|id| if id < 10 { 5 } else { 1 });
        assert_eq!(balances(&db, "another").await, expected.collect::<Vec<_>>());
        db.close().await.unwrap();
    });
}

/// Makes 1500 bytes of undo of each of 40 rows, this many times.
async fn make_undo(db: &Database, rounds: u8) {
    let table = db.table("test", "t").unwrap();
    let mut transaction = db.begin();
    for round in 0..rounds {
        let text = [round; 1500];
        for id in 0..40 {
            let row = [Value::Int(id), Value::Int(i64::from(round)), Value::bytes(&text)];
            transaction.put(&table, &row).await.unwrap();
        }
    }
    transaction.commit(Durability::Sync).await.unwrap();
    db.0.store.checkpoint().await.unwrap();
}

/// Lets the undo tablespace, which nothing needs any more, be cut.
async fn cut_undo(db: &Database) {
    db.transaction_system().set_undo_log_truncate(true);
    for _ in 0..5 {
        db.transaction_system().purge_all().await.unwrap();
        db.0.store.checkpoint().await.unwrap();
    }
    db.transaction_system().set_undo_log_truncate(false);
    let pages = db.0.store.space(txn::UNDO_SPACE).unwrap().pages;
    assert!(u64::from(pages) * 4096 <= 4 * MIB, "{pages} pages of undo are left");
}

/// The undo tablespace is cut, grows, and is cut again. Where the second backup has unused pages the first
/// has used ones, and the third has no file: they are put together all the same.
#[test]
fn an_undo_tablespace_that_is_cut_again_and_again_is_put_together() {
    with_rows(100, |shared, db| async move {
        db.transaction_system().set_undo_log_truncate(false);
        db.transaction_system().set_max_undo_log_size(2 * MIB);
        make_undo(&db, 150).await;
        db.backup(TARGET).await.unwrap();
        cut_undo(&db).await;
        make_undo(&db, 100).await;
        backup(&db, SECOND, TARGET).await;
        cut_undo(&db).await;
        backup(&db, THIRD, SECOND).await;
        db.close().await.unwrap();
        let undo = |backup: &str| {
            let manifest = Manifest::read(&**shared.storage(), Path::new(backup)).unwrap();
            manifest.tablespace(txn::UNDO_SPACE).unwrap().clone()
        };
        let zeros = undo(SECOND).changed.unwrap().zeros;
        let last = zeros.last().map_or(0, |(first, count)| u64::from(first + count) * 4096);
        assert!(last > undo(THIRD).bytes, "the second's {zeros:?} do not lie behind the third's end");
        for (backup, directory) in [(SECOND, "/second"), (THIRD, "/third")] {
            let db = restored(&shared, backup, directory).await;
            let table = db.table("test", "t").unwrap();
            let mut transaction = db.begin();
            let row = transaction.get(&table, &[Value::Int(39)], Lock::None).await.unwrap().unwrap();
            assert_eq!(row[2], Value::bytes(&[99; 1500]));
            transaction.rollback().await.unwrap();
            assert_eq!(balances(&db, "u").await, vec![1; 100]);
            db.close().await.unwrap();
        }
    });
}

fn is_refused<T: std::fmt::Debug>(outcome: Result<T, Error>, part: &str) {
    match outcome {
        Err(error @ Error::Backup { .. }) => assert!(error.to_string().contains(part), "{error}"),
        other => panic!("not refused with '{part}': {other:?}"),
    }
}

#[test]
fn a_base_that_is_missing_or_no_backup_is_refused() {
    with_rows(100, |shared, db| async move {
        let storage = shared.storage().clone();
        let missing = BackupOptions::default().since("/backups/missing");
        is_refused(db.backup_with(TARGET, missing).await, "no such directory");
        assert!(!storage.exists(Path::new(TARGET)).unwrap(), "nothing was made");
        let data = BackupOptions::default().since("/data");
        is_refused(db.backup_with(TARGET, data).await, "it is no backup");
        db.backup(TARGET).await.unwrap();
        set(&db, "u", 0, 50, 2).await;
        let inside = format!("{TARGET}/inside");
        is_refused(db.backup_with(&inside, BackupOptions::default().since(TARGET)).await, "must not lie in");
        backup(&db, SECOND, TARGET).await;
        let outcome = restore_in(&*storage, Path::new(SECOND), Path::new("/backups/one/in"), |_| {});
        is_refused(outcome, "must not lie in");
        db.close().await.unwrap();
    });
}

/// Its name is as long as one can be: what belongs to its file has another.
#[test]
fn a_table_with_the_longest_name_is_copied() {
    with_rows(100, |shared, db| async move {
        let name = "\u{416}".repeat(50);
        fill(&db, &name, 100).await;
        db.backup(TARGET).await.unwrap();
        set(&db, &name, 0, 50, 2).await;
        backup(&db, SECOND, TARGET).await;
        db.close().await.unwrap();
        let db = restored(&shared, SECOND, "/second").await;
        assert_eq!(balances(&db, &name).await.iter().sum::<i64>(), 150);
        db.close().await.unwrap();
    });
}

/// What somebody makes of a file's entry.
type Change<'c> = (&'c str, &'c dyn Fn(&mut serde_json::Value));

/// A manifest that somebody wrote: its checksum is right, what it says is not.
#[test]
fn a_manifest_that_cannot_be_true_is_refused() {
    with_rows(3_000, |shared, db| async move {
        db.backup(TARGET).await.unwrap();
        set(&db, "u", 0, 3_000, 2).await;
        backup(&db, SECOND, TARGET).await;
        db.close().await.unwrap();
        let storage = shared.storage().clone();
        let path = Path::new(SECOND).join("untorn.backup");
        let text = String::from_utf8(read_whole(&*storage, &path).unwrap()).unwrap();
        let body = text[..text.trim_end().rfind('\n').unwrap()].to_owned();
        let mut value: serde_json::Value = serde_json::from_str(&body).unwrap();
        let at =
            value["files"].as_array().unwrap().iter().position(|file| file["path"] == "test/u.ibd").unwrap();
        let good = value.clone();
        let changes: [Change<'_>; 5] = [
            ("zeros far behind", &|file| {
                file["changed"]["zeros"] = serde_json::json!([[0, 4_000_000_000u32]])
            }),
            ("zeros again", &|file| file["changed"]["zeros"] = serde_json::json!([[0, 5], [0, 5]])),
            ("another length", &|file| file["bytes"] = serde_json::json!(1u64 << 62)),
            ("no whole pages", &|file| file["changed"]["bytes"] = serde_json::json!(4095)),
            ("another tablespace", &|file| file["tablespace"]["id"] = serde_json::json!(77_777)),
        ];
        for (number, (what, change)) in changes.iter().enumerate() {
            value = good.clone();
            change(&mut value["files"][at]);
            let mut forged = serde_json::to_vec_pretty(&value).unwrap();
            let sum = crc32c::crc32c(&forged);
            forged.extend_from_slice(format!("\n{sum:08x}\n").as_bytes());
            write_atomically(&*storage, &path, &forged).unwrap();
            let target = format!("/restored-{number}");
            let outcome = restore_in(&*storage, Path::new(SECOND), Path::new(&target), |_| {});
            assert!(matches!(outcome, Err(Error::Backup { .. })), "{what}: {outcome:?}");
        }
    });
}

#[test]
fn every_changed_byte_and_missing_file_of_a_chain_is_noticed() {
    with_rows(3_000, |shared, db| async move {
        db.backup(TARGET).await.unwrap();
        set(&db, "u", 0, 3_000, 2).await;
        backup(&db, SECOND, TARGET).await;
        let storage = shared.storage().clone();
        let id = db.table("test", "u").unwrap().def.space;
        let changed = format!("test/#{id}.changed");
        let files = ["one/test/u.ibd", "one/untorn.backup", "two/test/CHANGED", "two/untorn.backup"];
        for (number, file) in files.iter().enumerate() {
            let path = Path::new("/backups").join(file.replace("test/CHANGED", &changed));
            let opened = storage.open(&path, OpenHow::EXISTING.buffered()).unwrap();
            let at = opened.len().unwrap() / 3;
            let mut byte = [0];
            opened.read_at(&mut byte, at).unwrap();
            opened.write_at(&[byte[0] ^ 4], at).unwrap();
            let target = format!("/restored-{number}");
            let result = restore_in(&*storage, Path::new(SECOND), Path::new(&target), |_| {});
            assert!(matches!(result, Err(Error::Backup { .. })), "{file}: {result:?}");
            opened.write_at(&byte, at).unwrap();
        }
        let list = Path::new(SECOND).join("untorn.backup.pages");
        let opened = storage.open(&list, OpenHow::EXISTING.buffered()).unwrap();
        opened.write_at(&[1], 8).unwrap();
        let outcome = db.backup_with(THIRD, BackupOptions::default().since(SECOND)).await;
        is_refused(outcome, "the backup is damaged");
        storage.remove(&Path::new(SECOND).join(&changed)).unwrap();
        assert!(restore_in(&*storage, Path::new(SECOND), Path::new("/again"), |_| {}).is_err());
        restored(&shared, TARGET, "/first").await.close().await.unwrap();
        db.close().await.unwrap();
    });
}
