//! What a client hears when the storage fails, and what is left afterwards.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::PathBuf;
use std::sync::Arc;

use crate::support::engine::Engine;
use crate::support::faulty_disk::{FaultyEnvironment, Trouble};
use crate::support::{Client, all, one};
use untorn::Options;
use untorn::asynchronous::Database;

const MIB: u64 = 1 << 20;

/// A server over a disk that can be told to fail.
fn start(name: &str) -> (Engine, Arc<FaultyEnvironment>, Arc<Trouble>) {
    let directory = std::env::temp_dir().join(format!("untorn-trouble-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    open(directory)
}

fn open(directory: PathBuf) -> (Engine, Arc<FaultyEnvironment>, Arc<Trouble>) {
    let (environment, trouble) = FaultyEnvironment::new();
    let options = Options::new(&directory).buffer_pool_bytes(8 * MIB).redo_capacity_bytes(16 * MIB);
    let database = Database::open_in(environment.clone(), options);
    let database = untorn::engine::block_on(database).unwrap();
    (Engine::serve(database, &directory), environment, trouble)
}

fn rows(client: &mut Client, table: &str) -> u64 {
    one(client, &format!("SELECT COUNT(*) FROM {table}")).parse().unwrap()
}

/// INSERT of `count` rows of about 1 KiB from `first` on.
fn insert(table: &str, first: u64, count: u64) -> String {
    let text = "x".repeat(1000);
    let values: Vec<String> = (first..first + count).map(|id| format!("({id}, '{text}')")).collect();
    format!("INSERT INTO {table} VALUES {}", values.join(","))
}

fn sound(client: &mut Client, table: &str) {
    let checked = client.run(&format!("CHECK TABLE {table}")).unwrap();
    let status = checked.last().unwrap();
    assert_eq!((status[2].as_deref(), status[3].as_deref()), (Some("status"), Some("OK")), "{checked:?}");
}

#[test]
fn a_full_disk_costs_the_statement_only() {
    let (engine, environment, trouble) = start("full");
    let mut client = engine.root();
    all(
        &mut client,
        &[
            "CREATE DATABASE d",
            "CREATE TABLE d.t (id INT PRIMARY KEY, c VARCHAR(1000), KEY (c(20)))",
            "CREATE TABLE d.other (id INT PRIMARY KEY, c VARCHAR(1000))",
            &insert("d.t", 0, 100),
        ],
    );
    trouble.limit_room(4 * MIB);
    let mut next = 100;
    let (code, text) = loop {
        match client.run(&insert("d.t", next, 100)) {
            Ok(_) => next += 100,
            Err(error) => break error,
        }
        assert!(next < 1_000_000, "the disk never became full");
    };
    assert_eq!(code, 1114, "{text}");
    assert!(text.starts_with("The table 't' is full: "), "{text}");
    assert!(text.contains("free some space"), "{text}");
    // The statement left nothing, what was there is there, and the engine works on.
    assert_eq!(rows(&mut client, "d.t"), next);
    all(&mut client, &["UPDATE d.t SET c = 'changed' WHERE id = 5", "DELETE FROM d.t WHERE id = 7"]);
    // Inside a transaction only the statement is lost.
    all(&mut client, &["BEGIN", "UPDATE d.t SET c = 'twice' WHERE id = 5"]);
    let (code, _) = loop {
        match client.run(&insert("d.t", next, 100)) {
            Ok(_) => next += 100,
            Err(error) => break error,
        }
    };
    assert_eq!(code, 1114);
    all(&mut client, &["COMMIT"]);
    assert_eq!(one(&mut client, "SELECT c FROM d.t WHERE id = 5"), "twice");
    trouble.limit_room(0);
    let (code, text) = client.run("CREATE TABLE d.more (id INT PRIMARY KEY)").unwrap_err();
    assert!(code == 1114 || code == 1021, "{code} {text}");
    assert_eq!(client.run("SELECT * FROM d.more").unwrap_err().0, 1146);
    sound(&mut client, "d.t");
    // Room again: everything goes on.
    trouble.unlimited_room();
    all(&mut client, &[&insert("d.t", next, 300), "CREATE TABLE d.more (id INT PRIMARY KEY)"]);
    assert_eq!(rows(&mut client, "d.t"), next + 300 - 1);
    sound(&mut client, "d.t");
    assert_eq!(engine.database.store().poisoned(), None);
    drop(client);
    let directory = engine.stop();
    environment.shutdown();
    let (engine, environment, _) = open(directory);
    let mut client = engine.root();
    assert_eq!(rows(&mut client, "d.t"), next + 300 - 1);
    sound(&mut client, "d.t");
    drop(client);
    engine.finish();
    environment.shutdown();
}

#[test]
fn a_full_disk_while_the_redo_log_is_new() {
    // The log's file is made longer ahead of its use: without room it must wait, not stop for ever.
    let (engine, environment, trouble) = start("redo");
    let mut client = engine.root();
    all(&mut client, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, n INT)"]);
    all(&mut client, &["INSERT INTO d.t VALUES (1, 0)"]);
    trouble.limit_room(0);
    for round in 0..2000 {
        all(&mut client, &[&format!("UPDATE d.t SET n = {round}")]);
    }
    trouble.unlimited_room();
    all(&mut client, &[&insert_pairs(2, 5000)]);
    assert_eq!(rows(&mut client, "d.t"), 5001);
    drop(client);
    engine.finish();
    environment.shutdown();
}

/// Where blocks cannot be reserved files grow by zeros that are written; where there is no room for them, or
/// the device fails, the statement fails, and nothing else.
#[test]
fn blocks_that_cannot_be_reserved() {
    let (engine, environment, trouble) = start("blocks");
    let mut client = engine.root();
    all(&mut client, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, c VARCHAR(1000))"]);
    let mut next = 0;
    for code in [libc::EOPNOTSUPP, libc::ENOSPC, libc::EIO] {
        trouble.refuse_allocations(code);
        let before = trouble.allocations();
        let mut refused = None;
        let is_to_fail = code != libc::EOPNOTSUPP;
        while refused.is_none() && (is_to_fail || trouble.allocations() < before + 4) {
            match client.run(&insert("d.t", next, 100)) {
                Ok(_) => next += 100,
                Err(error) => refused = Some(error),
            }
            assert!(next < 1_000_000, "the file did not grow");
        }
        match code {
            libc::EOPNOTSUPP => assert_eq!(refused, None),
            libc::ENOSPC => assert_eq!(refused.unwrap().0, 1114),
            _ => assert_eq!(refused.unwrap().0, 1030),
        }
        trouble.heal();
        all(&mut client, &[&insert("d.t", next, 300)]);
        next += 300;
        assert_eq!(rows(&mut client, "d.t"), next);
        sound(&mut client, "d.t");
        assert_eq!(engine.database.store().poisoned(), None);
    }
    drop(client);
    engine.finish();
    environment.shutdown();
}

fn insert_pairs(first: u64, count: u64) -> String {
    let values: Vec<String> = (first..first + count).map(|id| format!("({id}, 0)")).collect();
    format!("INSERT INTO d.t VALUES {}", values.join(","))
}

/// Makes `d.bad` with 2,000 rows and `d.good` with 10, and stops.
fn a_bad_and_a_good_table(engine: Engine, environment: &FaultyEnvironment) -> PathBuf {
    let mut client = engine.root();
    all(
        &mut client,
        &[
            "CREATE DATABASE d",
            "CREATE TABLE d.bad (id INT PRIMARY KEY, c VARCHAR(1000))",
            "CREATE TABLE d.good (id INT PRIMARY KEY, c VARCHAR(1000))",
            &insert("d.bad", 0, 2000),
            &insert("d.good", 0, 10),
        ],
    );
    drop(client);
    let directory = engine.stop();
    environment.shutdown();
    // The next start would read what was in memory before anybody asks for it.
    let _ = std::fs::remove_file(directory.join("ib_buffer_pool"));
    directory
}

#[test]
fn an_unreadable_table_is_named_and_others_work() {
    let (engine, environment, _) = start("read");
    let directory = a_bad_and_a_good_table(engine, &environment);
    let (engine, environment, trouble) = open(directory);
    let mut client = engine.root();
    trouble.fail_reads("bad.ibd");
    let (code, text) = client.run("SELECT COUNT(*) FROM d.bad").unwrap_err();
    assert_eq!(code, 1030, "{text}");
    assert!(text.starts_with("Got error 5 - 'cannot read ") && text.contains("d/bad.ibd"), "{text}");
    assert!(text.contains("kernel log"), "{text}");
    assert_eq!(rows(&mut client, "d.good"), 10);
    trouble.heal();
    assert_eq!(rows(&mut client, "d.bad"), 2000);
    drop(client);
    engine.finish();
    environment.shutdown();
}

#[test]
fn a_corrupt_page_is_named() {
    let (engine, environment, _) = start("corrupt");
    let directory = a_bad_and_a_good_table(engine, &environment);
    // Without a copy of the page there is nothing to restore it from.
    for entry in std::fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension.to_string_lossy().contains("dblwr")) {
            std::fs::remove_file(path).unwrap();
        }
    }
    let path = directory.join("d/bad.ibd");
    let mut bytes = std::fs::read(&path).unwrap();
    // A leaf in the middle of the table.
    let page = 70 * 16384;
    bytes[page + 1000..page + 1010].copy_from_slice(b"scribbling");
    std::fs::write(&path, bytes).unwrap();
    let (engine, environment, _) = open(directory);
    let mut client = engine.root();
    let (code, text) = client.run("SELECT COUNT(*), MAX(c) FROM d.bad").unwrap_err();
    assert_eq!(code, 1034, "{text}");
    assert!(text.starts_with("Incorrect key file for table 'bad'; try to repair it: "), "{text}");
    assert!(text.contains("70") && text.contains("d/bad.ibd") && text.contains("backup"), "{text}");
    assert_eq!(rows(&mut client, "d.good"), 10);
    let checked = client.run("CHECK TABLE d.bad").unwrap();
    assert_eq!(checked.last().unwrap()[3].as_deref(), Some("Corrupt"), "{checked:?}");
    all(&mut client, &["INSERT INTO d.good VALUES (100, 'still')", "DROP TABLE d.bad"]);
    drop(client);
    engine.finish();
    environment.shutdown();
}

/// The client was told that its transaction is not committed: neither the next statement nor the next COMMIT
/// commits it.
#[test]
fn a_commit_that_failed_is_not_made_up_for() {
    let (engine, environment, trouble) = start("commit");
    let (mut client, mut other) = (engine.root(), engine.root());
    all(
        &mut client,
        &[
            "CREATE DATABASE d",
            "CREATE TABLE d.t (id INT PRIMARY KEY, c VARCHAR(1000))",
            "CREATE TABLE d.large (id INT PRIMARY KEY, c VARCHAR(1000))",
            &insert("d.t", 0, 600),
            // Its undo log goes on over many pages, and only the last of them is kept in the pool for it.
            "BEGIN",
            "UPDATE d.t SET c = REPLACE(c, 'x', 'y')",
        ],
    );
    for first in (0..16_000).step_by(500) {
        all(&mut other, &[&insert("d.large", first, 500)]);
    }
    trouble.fail_reads("undo_001");
    client.run("COMMIT").unwrap_err();
    trouble.heal();
    all(&mut client, &["INSERT INTO d.large VALUES (16000, 'y')", "COMMIT"]);
    assert_eq!(rows(&mut other, "d.large"), 16_001);
    assert_eq!(one(&mut other, "SELECT COUNT(*) FROM d.t WHERE c LIKE '%y%'"), "0");
    // It waits for the rollback, which goes on.
    all(&mut client, &["UPDATE d.t SET c = 'z' WHERE id = 1"]);
    assert_eq!(one(&mut other, "SELECT COUNT(*) FROM d.t WHERE c LIKE '%y%'"), "0");
    sound(&mut client, "d.t");
    assert_eq!(engine.database.store().poisoned(), None);
    drop((client, other));
    engine.finish();
    environment.shutdown();
}

#[test]
fn a_failed_log_write_ends_changes_until_a_restart() {
    let (engine, environment, trouble) = start("log");
    let mut client = engine.root();
    all(
        &mut client,
        &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1)"],
    );
    trouble.fail_writes("untorn_redo");
    let (code, text) = client.run("INSERT INTO d.t VALUES (2)").unwrap_err();
    assert_eq!(code, 1030, "{text}");
    trouble.heal();
    // Not retried: the failed write may or may not be there.
    let (code, text) = client.run("INSERT INTO d.t VALUES (3)").unwrap_err();
    assert_eq!(code, 1030, "{text}");
    assert!(text.starts_with("Got error 168 - '") && text.contains("restart"), "{text}");
    drop(client);
    let Engine { server, database, directory } = engine;
    server.stop();
    assert!(untorn::engine::block_on(database.close()).is_err(), "not a clean end");
    drop(database);
    environment.shutdown();
    let (engine, environment, _) = open(directory);
    let mut client = engine.root();
    // Acknowledged: 1. The second may be there or not; the third was refused.
    let ids = client.run("SELECT id FROM d.t ORDER BY id").unwrap();
    let ids: Vec<&str> = ids.iter().map(|row| row[0].as_deref().unwrap()).collect();
    assert!(ids == ["1"] || ids == ["1", "2"], "{ids:?}");
    all(&mut client, &["INSERT INTO d.t VALUES (10)"]);
    drop(client);
    engine.finish();
    environment.shutdown();
}
