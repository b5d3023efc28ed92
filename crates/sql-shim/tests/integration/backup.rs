//! `BACKUP SERVER TO` over a socket: who may, where to, and what is restored.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use untorn::BackupOptions;

use crate::support::engine::Engine;
use crate::support::{all, code};

#[test]
fn a_backup_is_restored_with_its_accounts() {
    let engine = Engine::start();
    let backups = engine.directory.with_extension("backups");
    let restored = engine.directory.with_extension("restored");
    for directory in [&backups, &restored] {
        let _ = std::fs::remove_dir_all(directory);
    }
    let mut root = engine.root();
    all(
        &mut root,
        &[
            "CREATE DATABASE shop",
            "CREATE TABLE shop.item (id INT PRIMARY KEY, stock INT)",
            "INSERT INTO shop.item VALUES (1, 10), (2, 20)",
            "CREATE USER 'app'@'%' IDENTIFIED WITH mysql_native_password BY 'secret'",
        ],
    );
    assert_eq!(code(&mut root, "BACKUP SERVER TO 'monday'"), 1290, "no directory was allowed");
    let variables = &engine.server.server.variables;
    variables.set_at_start("untorn_backup_dir", backups.to_str().unwrap()).unwrap();
    assert_eq!(code(&mut root, "SET GLOBAL untorn_backup_dir = '/'"), 1238, "only at start");
    let mut app = engine.login("app", "secret", None).unwrap();
    assert_eq!(code(&mut app, "BACKUP SERVER TO 'monday'"), 1227);
    all(&mut root, &["GRANT BACKUP_ADMIN ON *.* TO 'app'@'%'"]);
    for outside in ["../monday", "/monday", "", ".."] {
        assert_eq!(code(&mut app, &format!("BACKUP SERVER TO '{outside}'")), 1105, "{outside}");
    }
    all(&mut app, &["BACKUP SERVER TO 'monday'"]);
    assert_eq!(code(&mut app, "BACKUP SERVER TO 'monday'"), 1105, "it is there");
    all(&mut root, &["INSERT INTO shop.item VALUES (3, 30)", "DROP USER 'app'@'%'"]);
    // What has changed since, from names in the same directory alone.
    for base in ["sunday", "../monday", ""] {
        let refused = code(&mut root, &format!("BACKUP SERVER TO 'tuesday' SINCE '{base}'"));
        assert_eq!(refused, 1105, "{base}");
    }
    all(&mut root, &["BACKUP SERVER TO 'tuesday' SINCE 'monday'"]);
    assert!(!backups.join("tuesday/shop/item.ibd").exists(), "what has changed of it at most");
    drop((root, app));
    engine.finish();
    untorn::restore(backups.join("tuesday"), backups.join("second"), |_| {}).unwrap();
    let second = Engine::open(&backups.join("second"));
    let rows = second.root().run("SELECT COUNT(*) FROM shop.item").unwrap();
    assert_eq!(rows[0][0].as_deref(), Some("3"));
    assert!(second.login("app", "secret", None).is_err(), "dropped by then");
    second.finish();

    untorn::restore(backups.join("monday"), &restored, |_| {}).unwrap();
    for copy in [backups.join("monday"), restored.clone()] {
        let accounts = std::fs::metadata(copy.join("untorn-accounts.json")).unwrap();
        assert_eq!(accounts.permissions().mode() & 0o777, 0o600, "{}", copy.display());
    }
    let engine = Engine::open(&restored);
    let mut app = engine.login("app", "secret", None).unwrap();
    assert_eq!(code(&mut app, "SELECT * FROM shop.item"), 1142);
    let rows = engine.root().run("SELECT id, stock FROM shop.item ORDER BY id").unwrap();
    let rows: Vec<Vec<String>> =
        rows.into_iter().map(|row| row.into_iter().map(Option::unwrap).collect()).collect();
    assert_eq!(rows, [["1", "10"], ["2", "20"]]);
    drop(app);
    engine.finish();
    std::fs::remove_dir_all(backups).unwrap();
}

/// KILL and SHUTDOWN end it whatever it waits for; it has made nothing that would be in the way of the next.
#[test]
fn a_backup_is_killed() {
    let engine = Engine::start();
    let backups = engine.directory.with_extension("killed-backups");
    let _ = std::fs::remove_dir_all(&backups);
    let variables = &engine.server.server.variables;
    variables.set_at_start("untorn_backup_dir", backups.to_str().unwrap()).unwrap();
    let (mut root, mut exporting, mut saving) = (engine.root(), engine.root(), engine.root());
    all(&mut root, &["CREATE DATABASE shop", "CREATE TABLE shop.item (id INT PRIMARY KEY)"]);
    // Until this is over definitions are under way.
    all(&mut exporting, &["FLUSH TABLES shop.item FOR EXPORT"]);
    let id = saving.run("SELECT CONNECTION_ID()").unwrap()[0][0].clone().unwrap();
    let waiting = std::thread::spawn(move || (code(&mut saving, "BACKUP SERVER TO 'monday'"), saving));
    let is_at_it = format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id} AND info LIKE 'BACKUP%'"
    );
    while root.run(&is_at_it).unwrap()[0][0].as_deref() != Some("1") {
        std::thread::yield_now();
    }
    all(&mut root, &[&format!("KILL QUERY {id}")]);
    let (error, mut saving) = waiting.join().unwrap();
    assert_eq!(error, 1317);
    all(&mut exporting, &["UNLOCK TABLES"]);
    all(&mut saving, &["BACKUP SERVER TO 'monday'"]);
    drop((root, exporting, saving));
    engine.finish();
    std::fs::remove_dir_all(backups).unwrap();
}

/// The copy stands still, and with it every change of definitions: a temporary table that is dropped keeps
/// nobody waiting, and is gone when the backup is over.
#[test]
fn a_commit_and_the_end_of_a_session_do_not_wait_for_a_backup() {
    let engine = Engine::start();
    let copy = engine.directory.with_extension("copy");
    let _ = std::fs::remove_dir_all(&copy);
    let (mut root, mut leaves) = (engine.root(), engine.root());
    all(&mut root, &["CREATE DATABASE shop", "USE shop", "CREATE TABLE item (id INT PRIMARY KEY)"]);
    for client in [&mut root, &mut leaves] {
        // A statement that waits fails.
        all(client, &["USE shop", "SET lock_wait_timeout = 1", "CREATE TEMPORARY TABLE t (id INT)"]);
    }
    all(&mut root, &["CREATE TEMPORARY TABLE u (id INT)"]);
    assert_eq!(engine.database.private_databases().len(), 3);

    let (begun, begins) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let goes_on = Mutex::new(goes_on);
    let options = BackupOptions::default().progress(move |_| {
        let _ = begun.send(());
        // At every stretch, until it is dropped.
        let _ = goes_on.lock().unwrap().recv();
    });
    let (database, target) = (engine.database.clone(), copy.clone());
    let backup =
        std::thread::spawn(move || untorn::engine::block_on(database.backup_with(target, options)).unwrap());
    begins.recv().unwrap();

    all(&mut root, &["START TRANSACTION", "INSERT INTO item VALUES (1)", "INSERT INTO t VALUES (1)"]);
    all(&mut root, &["DROP TEMPORARY TABLE t", "COMMIT", "DROP TEMPORARY TABLE u"]);
    assert_eq!(code(&mut root, "SELECT * FROM t"), 1146);
    assert_eq!(code(&mut root, "CREATE TEMPORARY TABLE t (id INT)"), 1205, "a new one has to wait");
    drop(leaves);
    let sessions = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'root'";
    while root.run(sessions).unwrap()[0][0].as_deref() != Some("1") {
        std::thread::yield_now();
    }
    assert_eq!(engine.database.private_databases().len(), 3, "the backup keeps them as they are");

    drop(go_on);
    backup.join().unwrap();
    let begin = Instant::now();
    while !engine.database.private_databases().is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(60), "they stay until the next start");
        std::thread::yield_now();
    }
    all(&mut root, &["CREATE TEMPORARY TABLE t (id INT)"]);
    drop(root);
    engine.finish();
    std::fs::remove_dir_all(copy).unwrap();
}
