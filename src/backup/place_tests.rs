//! Where a backup lies and who may read it, on the real file system.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use disk::block_on;
use txn::Durability;

use super::tests::prepare;
use super::{BackupOptions, INCOMPLETE, MANIFEST, restore};
use crate::database::Database;
use crate::error::Error;
use crate::options::Options;
use crate::types::{Collation, Value};

/// A directory of a test's own, with a database in `data`.
fn place(name: &str) -> (PathBuf, Database) {
    let root = std::env::temp_dir().join(format!("untorn-backup-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).unwrap();
    let db = block_on(Database::open(settings(&root.join("data")))).unwrap();
    block_on(prepare(&db));
    (root, db)
}

fn settings(directory: &Path) -> Options {
    let mut options = Options::new(directory).page_size(4096).buffer_pool_bytes(5 << 20);
    options.redo_capacity_bytes = 8 << 20;
    options
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn is_refused<T: std::fmt::Debug>(outcome: Result<T, Error>, part: &str) {
    match outcome {
        Err(error @ Error::Backup { .. }) => assert!(error.to_string().contains(part), "{error}"),
        other => panic!("not refused with '{part}': {other:?}"),
    }
}

#[test]
fn nobody_may_read_in_a_backup_or_its_restoration_what_they_may_not_in_the_source() {
    let (root, db) = place("modes");
    let data = root.join("data");
    fs::write(data.join("accounts"), "secret").unwrap();
    set_mode(&data.join("accounts"), 0o600);
    for directory in [data.clone(), data.join("test")] {
        set_mode(&directory, 0o700);
    }
    let options = BackupOptions::default().small_file("accounts").small_file("missing");
    block_on(db.backup_with(root.join("copy"), options)).unwrap();
    block_on(db.close()).unwrap();
    restore(root.join("copy"), root.join("again"), |_| {}).unwrap();
    for made in [root.join("copy"), root.join("again")] {
        // Nothing sets this afterwards: it was made so.
        assert_eq!(mode(&made.join("accounts")), 0o600, "{}", made.display());
        assert_eq!(fs::read(made.join("accounts")).unwrap(), b"secret");
        assert_eq!((mode(&made), mode(&made.join("test"))), (0o700, 0o700), "{}", made.display());
        assert!(!made.join("missing").exists());
    }
    let db = block_on(Database::open(settings(&root.join("again")))).unwrap();
    assert!(db.table("test", "t").is_ok());
    block_on(db.close()).unwrap();
    fs::remove_dir_all(root).unwrap();
}

/// Side by side they may be moved together. A base that is elsewhere, or replaced, is named.
#[test]
fn the_base_of_a_backup_is_found_beside_it_or_where_it_was() {
    let (root, db) = place("base");
    let (copies, moved) = (root.join("copies"), root.join("moved"));
    fs::create_dir(&copies).unwrap();
    block_on(db.backup(copies.join("one"))).unwrap();
    block_on(db.backup(root.join("far"))).unwrap();
    for (name, base) in [("two", copies.join("one")), ("three", root.join("far"))] {
        block_on(db.backup_with(copies.join(name), BackupOptions::default().since(base))).unwrap();
    }
    // Alone elsewhere, one finds its base where that was.
    fs::create_dir(root.join("alone")).unwrap();
    let copied = std::process::Command::new("cp")
        .args(["-r".as_ref(), copies.join("two").as_os_str(), root.join("alone/two").as_os_str()])
        .status();
    assert!(copied.unwrap().success());
    restore(root.join("alone/two"), root.join("from-alone"), |_| {}).unwrap();
    // A damaged one beside it does not hide the good one.
    fs::create_dir(root.join("alone/one")).unwrap();
    fs::write(root.join("alone/one").join(MANIFEST), "half of i").unwrap();
    restore(root.join("alone/two"), root.join("beside-a-damaged-one"), |_| {}).unwrap();
    fs::rename(&copies, &moved).unwrap();
    is_refused(restore(root.join("alone/two"), root.join("again"), |_| {}), "the backup is damaged");
    for (number, name) in ["two", "three"].iter().enumerate() {
        restore(moved.join(name), root.join(number.to_string()), |_| {}).unwrap();
    }
    fs::rename(moved.join("one"), moved.join("hidden")).unwrap();
    is_refused(restore(moved.join("two"), root.join("again"), |_| {}), "its base");
    block_on(db.create_database("other", Collation::Utf8mb4Bin)).unwrap();
    block_on(db.backup(moved.join("one"))).unwrap();
    is_refused(restore(moved.join("two"), root.join("again"), |_| {}), "another backup");
    // Nothing is added to what cannot be restored.
    let four = BackupOptions::default().since(moved.join("two"));
    is_refused(block_on(db.backup_with(moved.join("four"), four)), "another backup");
    assert!(!root.join("again").exists(), "nothing was made");
    block_on(db.close()).unwrap();
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn a_backup_does_not_lie_in_its_data_directory_by_whatever_name() {
    let (root, db) = place("inside");
    let data = root.join("data");
    block_on(db.create_database("empty", Collation::Utf8mb4Bin)).unwrap();
    fs::create_dir_all(data.join("empty")).unwrap();
    symlink(&data, root.join("link")).unwrap();
    symlink(data.join("empty"), root.join("monday")).unwrap();
    for inside in [
        data.join("copy"),
        root.join("data/../data/copy"),
        root.join("link/copy"),
        root.join("monday"),
        root.clone(),
    ] {
        is_refused(block_on(db.backup(&inside)), "must not lie in");
    }
    assert!(!data.join("copy").exists());
    assert_eq!(fs::read_dir(data.join("empty")).unwrap().count(), 0);
    let upwards = block_on(db.backup(root.join("missing/../data/copy")));
    assert!(matches!(upwards, Err(Error::Disk(_))), "{upwards:?}");
    assert!(!root.join("missing").exists());

    block_on(db.backup(root.join("copy"))).unwrap();
    is_refused(restore(root.join("copy"), root.join("copy/data"), |_| {}), "must not lie in");
    symlink(root.join("copy"), root.join("other")).unwrap();
    is_refused(restore(root.join("copy"), root.join("other/data"), |_| {}), "must not lie in");
    assert!(!root.join("copy/data").exists());
    block_on(db.close()).unwrap();
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn a_callback_that_panics_ends_the_backup_and_nothing_else() {
    let (root, db) = place("panics");
    let options = BackupOptions::default().progress(|_| panic!("as it is meant to"));
    is_refused(block_on(db.backup_with(root.join("copy"), options)), "has panicked");
    block_on(db.create_database("other", Collation::Utf8mb4Bin)).unwrap();
    let task = db.run_to_the_end(async { panic!("as it is meant to") });
    let outcome: Result<(), Error> = block_on(task);
    assert!(matches!(outcome, Err(Error::Internal(_))), "{outcome:?}");
    block_on(db.close()).unwrap();
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn targets_that_are_there_already() {
    let (root, db) = place("there");
    let used = root.join("used");
    fs::create_dir_all(&used).unwrap();
    fs::write(used.join("letter"), "dear").unwrap();
    is_refused(block_on(db.backup(&used)), "not empty");
    fs::write(root.join("file"), "").unwrap();
    assert!(block_on(db.backup(root.join("file"))).is_err());
    assert!(block_on(db.backup(root.join("file/below"))).is_err());
    assert_eq!(fs::read_dir(&used).unwrap().count(), 1, "nothing was added");

    // The root of a file system of its own.
    let mount = root.join("mount");
    fs::create_dir_all(mount.join("lost+found")).unwrap();
    block_on(db.backup(root.join("copy"))).unwrap();
    is_refused(restore(root.join("copy"), &used, |_| {}), "not empty");
    restore(root.join("copy"), &mount, |_| {}).unwrap();
    block_on(db.close()).unwrap();
    let db = block_on(Database::open(settings(&mount))).unwrap();
    block_on(db.close()).unwrap();
    // A second time it is a data directory.
    is_refused(restore(root.join("copy"), &mount, |_| {}), "not empty");
    fs::remove_dir_all(root).unwrap();
}

/// A second one waits for the first; while it waits it has made nothing that would be in its way later.
#[test]
fn two_backups_at_a_time() {
    let (root, db) = place("two");
    let slow = BackupOptions::default().bytes_per_second(1 << 20);
    let first = {
        let (db, target) = (db.clone(), root.join("first"));
        std::thread::spawn(move || block_on(db.backup_with(target, slow)))
    };
    while !root.join("first").join(INCOMPLETE).exists() {
        std::thread::yield_now();
    }
    let at_once = BackupOptions::default().timeout(std::time::Duration::ZERO);
    let second = block_on(db.backup_with(root.join("second"), at_once));
    assert!(matches!(second, Err(Error::MetadataLockTimeout)), "{second:?}");
    assert!(!root.join("second").exists());
    is_refused(block_on(db.backup(root.join("first"))), "not empty");
    block_on(db.backup(root.join("second"))).unwrap();
    first.join().unwrap().unwrap();
    for name in ["first", "second"] {
        assert!(root.join(name).join(MANIFEST).exists());
    }
    block_on(db.close()).unwrap();
    fs::remove_dir_all(root).unwrap();
}

/// A database without tables has no file in the copy.
#[test]
fn an_empty_database_is_restored_too() {
    let (root, db) = place("empty");
    block_on(db.create_database("empty", Collation::Utf8mb4Bin)).unwrap();
    block_on(db.backup(root.join("copy"))).unwrap();
    block_on(db.close()).unwrap();
    restore(root.join("copy"), root.join("again"), |_| {}).unwrap();
    let db = block_on(Database::open(settings(&root.join("again")))).unwrap();
    block_on(async {
        db.create_table("empty", "u", super::tests::accounts()).await.unwrap();
        let table = db.table("empty", "u").unwrap();
        let mut transaction = db.begin();
        transaction.insert(&table, &[Value::Int(1), Value::Int(2)]).await.unwrap();
        transaction.commit(Durability::Sync).await.unwrap();
        db.drop_database("empty").await.unwrap();
        db.close().await.unwrap();
    });
    fs::remove_dir_all(root).unwrap();
}
