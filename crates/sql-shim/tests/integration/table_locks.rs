//! LOCK TABLES and FLUSH TABLES WITH READ LOCK between sessions.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::engine::Engine;
use crate::support::{Client, all, code, one};

const FOR_TABLE: &str = "Waiting for table metadata lock";
const FOR_READ_LOCK: &str = "Waiting for global read lock";

/// Sends a statement and returns once its session waits as `state` says.
fn send_and_wait(engine: &Engine, client: &mut Client, sql: &str, state: &str) {
    client.sequence = 0;
    client.send(&[&[3], sql.as_bytes()].concat());
    let connection = engine.server.server.connections.get(client.connection_id()).unwrap();
    while connection.activity().state != state {
        std::thread::yield_now();
    }
}

fn start() -> (Engine, Client, Client) {
    let engine = Engine::start();
    let (mut one, other) = (engine.root(), engine.root());
    all(
        &mut one,
        &[
            "CREATE DATABASE d",
            "CREATE TABLE d.t (id INT PRIMARY KEY, n INT)",
            "CREATE TABLE d.u (id INT PRIMARY KEY)",
            "INSERT INTO d.t VALUES (1, 0)",
        ],
    );
    (engine, one, other)
}

#[test]
fn a_read_lock_stops_writers_until_unlock() {
    let (engine, mut holder, mut other) = start();
    all(&mut holder, &["LOCK TABLES d.t READ", "SELECT * FROM d.t"]);
    assert_eq!(code(&mut holder, "UPDATE d.t SET n = 1"), 1099);
    assert_eq!(code(&mut holder, "SELECT * FROM d.u"), 1100);
    assert_eq!(code(&mut holder, "CREATE TABLE d.v (id INT)"), 1100);
    assert_eq!(code(&mut holder, "DROP DATABASE d"), 1192);
    // Others read; a second reader may lock as well; who wants to write waits.
    all(&mut other, &["SELECT * FROM d.t", "LOCK TABLES d.t READ", "UNLOCK TABLES"]);
    send_and_wait(&engine, &mut other, "UPDATE d.t SET n = 2", FOR_TABLE);
    assert_eq!(one(&mut holder, "SELECT n FROM d.t"), "0");
    all(&mut holder, &["UNLOCK TABLES"]);
    other.answer().unwrap();
    assert_eq!(one(&mut holder, "SELECT n FROM d.t"), "2");
    engine.finish();
}

#[test]
fn a_write_lock_is_for_one_session_and_ends_with_it() {
    let (engine, mut holder, mut other) = start();
    all(&mut holder, &["LOCK TABLES d.t WRITE, d.u READ", "UPDATE d.t SET n = 5", "SELECT * FROM d.u"]);
    assert_eq!(code(&mut holder, "INSERT INTO d.u VALUES (1)"), 1099);
    send_and_wait(&engine, &mut other, "SELECT n FROM d.t", FOR_TABLE);
    // DDL of the holder itself, on the table that it has alone.
    all(&mut holder, &["ALTER TABLE d.t ADD KEY (n)", "TRUNCATE TABLE d.t", "INSERT INTO d.t VALUES (7, 7)"]);
    drop(holder);
    assert_eq!(other.answer().unwrap()[0][0].as_deref(), Some("7"));
    engine.finish();
}

#[test]
fn locks_wait_for_open_transactions_and_give_up() {
    let (engine, mut holder, mut other) = start();
    all(&mut other, &["BEGIN", "UPDATE d.t SET n = 1"]);
    all(&mut holder, &["SET lock_wait_timeout = 1"]);
    assert_eq!(code(&mut holder, "LOCK TABLES d.t READ"), 1205);
    // Given up whole: nobody waits for it now.
    all(&mut other, &["UPDATE d.t SET n = 2", "COMMIT"]);
    all(&mut holder, &["LOCK TABLES d.t READ"]);
    // A new transaction lets go of LOCK TABLES.
    all(&mut holder, &["BEGIN"]);
    all(&mut other, &["UPDATE d.t SET n = 3"]);
    all(&mut holder, &["ROLLBACK"]);
    // A reader of an open transaction does not stop a read lock, and changes the table when it is gone.
    all(&mut other, &["BEGIN", "SELECT * FROM d.t"]);
    all(&mut holder, &["LOCK TABLES d.t READ"]);
    send_and_wait(&engine, &mut other, "UPDATE d.t SET n = 4", FOR_TABLE);
    all(&mut holder, &["UNLOCK TABLES"]);
    other.answer().unwrap();
    all(&mut other, &["COMMIT"]);
    // Killed while it waits.
    all(&mut other, &["LOCK TABLES d.t WRITE"]);
    all(&mut holder, &["SET lock_wait_timeout = 1000"]);
    send_and_wait(&engine, &mut holder, "SELECT * FROM d.t", FOR_TABLE);
    all(&mut other, &[&format!("KILL QUERY {}", holder.connection_id())]);
    assert_eq!(holder.answer().unwrap_err().0, 1317);
    engine.finish();
}

#[test]
fn the_global_read_lock_stops_changes_commits_and_ddl() {
    let (engine, mut holder, mut other) = start();
    let mut third = engine.root();
    all(&mut other, &["BEGIN", "UPDATE d.t SET n = 1"]);
    all(&mut holder, &["FLUSH TABLES WITH READ LOCK"]);
    assert_eq!(code(&mut holder, "INSERT INTO d.u VALUES (1)"), 1223);
    assert_eq!(code(&mut holder, "CREATE TABLE d.v (id INT)"), 1223);
    assert_eq!(code(&mut holder, "LOCK TABLES d.t WRITE"), 1223);
    all(&mut third, &["SELECT * FROM d.t"]);
    send_and_wait(&engine, &mut other, "COMMIT", FOR_READ_LOCK);
    send_and_wait(&engine, &mut third, "CREATE TABLE d.v (id INT PRIMARY KEY)", FOR_READ_LOCK);
    assert_eq!(one(&mut holder, "SELECT n FROM d.t"), "0");
    assert_eq!(code(&mut holder, "SELECT * FROM d.v"), 1146);
    all(&mut holder, &["UNLOCK TABLES"]);
    other.answer().unwrap();
    third.answer().unwrap();
    assert_eq!(one(&mut holder, "SELECT n FROM d.t"), "1");
    // The end of the connection lets go too.
    all(&mut holder, &["FLUSH TABLES WITH READ LOCK"]);
    send_and_wait(&engine, &mut other, "INSERT INTO d.u VALUES (1)", FOR_READ_LOCK);
    drop(holder);
    other.answer().unwrap();
    all(&mut other, &["LOCK TABLES d.u WRITE"]);
    assert_eq!(code(&mut other, "FLUSH TABLES WITH READ LOCK"), 1192);
    all(&mut other, &["UNLOCK TABLES", "FLUSH TABLES d.u WITH READ LOCK"]);
    assert_eq!(code(&mut other, "INSERT INTO d.u VALUES (2)"), 1099);
    engine.finish();
}

#[test]
fn a_cycle_of_metadata_locks_ends_in_1213() {
    let (engine, mut one, mut two) = start();
    let (mut three, mut four) = (engine.root(), engine.root());
    all(&mut one, &["BEGIN", "SELECT * FROM d.t"]);
    all(&mut two, &["BEGIN", "INSERT INTO d.u VALUES (5)"]);
    let mut probe = engine.root();
    all(&mut probe, &["SET lock_wait_timeout = 1"]);
    for (client, table) in [(&mut three, "d.t"), (&mut four, "d.u")] {
        client.sequence = 0;
        client.send(&[&[3], format!("TRUNCATE {table}").as_bytes()].concat());
        // It waits as soon as nobody else comes in.
        while probe.run(&format!("SELECT * FROM {table}")).is_ok() {
            std::thread::yield_now();
        }
    }
    send_and_wait(&engine, &mut one, "SELECT * FROM d.u", FOR_TABLE);
    match two.run("SELECT * FROM d.t") {
        Err(error) => {
            assert_eq!(error.0, 1213);
            // The victim's transaction is gone, with its row and its locks.
            four.answer().unwrap();
            // It was truncated after the reader's view was opened.
            assert_eq!(one.answer().unwrap_err().0, 1412);
            all(&mut one, &["COMMIT"]);
            three.answer().unwrap();
        }
        // The other wait was between two tries just then, and closed the cycle when it came back.
        Ok(_) => {
            assert_eq!(one.answer().unwrap_err().0, 1213);
            three.answer().unwrap();
            all(&mut two, &["COMMIT"]);
            four.answer().unwrap();
        }
    }
    assert_eq!(one_row_count(&mut two), "0");
    engine.finish();
}

fn one_row_count(client: &mut Client) -> String {
    one(client, "SELECT COUNT(*) FROM d.u")
}

#[test]
fn names_change_together_or_not_at_all() {
    let (engine, mut client, mut other) = start();
    all(&mut client, &["INSERT INTO d.u VALUES (9)"]);
    // A name that is taken fails the whole statement.
    assert_eq!(code(&mut client, "RENAME TABLE d.t TO d.x, d.x TO d.u"), 1050);
    assert_eq!(code(&mut client, "SELECT * FROM d.x"), 1146);
    all(&mut client, &["RENAME TABLE d.t TO d.x, d.u TO d.t, d.x TO d.u"]);
    assert_eq!(one(&mut other, "SELECT id FROM d.t"), "9");
    assert_eq!(one(&mut other, "SELECT id FROM d.u"), "1");
    // 51 characters of five bytes each in a file name.
    let long = "\u{8868}".repeat(51);
    assert_eq!(code(&mut client, &format!("RENAME TABLE d.t TO d.`{long}`")), 1059);
    assert_eq!(code(&mut client, &format!("CREATE TABLE d.`{long}` (id INT)")), 1059);
    assert_eq!(one(&mut other, "SELECT id FROM d.t"), "9");
    // Keys too, and dropped tables.
    all(&mut client, &["INSERT INTO d.u VALUES (2, 0)"]);
    assert_eq!(code(&mut client, "ALTER TABLE d.u ADD KEY k (n), ADD UNIQUE KEY doubles (n)"), 1062);
    assert_eq!(code(&mut client, "ALTER TABLE d.u ADD KEY k (n), ADD KEY k (id)"), 1061);
    assert_eq!(code(&mut client, "ALTER TABLE d.u DROP KEY k"), 1091);
    all(&mut client, &["ALTER TABLE d.u ADD KEY k (n), ADD KEY l (n, id)"]);
    all(&mut client, &["ALTER TABLE d.u DROP KEY k, ADD UNIQUE KEY k (id, n), DROP KEY l"]);
    assert_eq!(code(&mut client, "DROP TABLE d.t, d.missing"), 1051);
    assert_eq!(one(&mut other, "SELECT id FROM d.t"), "9");
    all(&mut client, &["DROP TABLE d.t, d.u"]);
    assert_eq!(code(&mut other, "SELECT * FROM d.t"), 1146);
    engine.finish();
}
