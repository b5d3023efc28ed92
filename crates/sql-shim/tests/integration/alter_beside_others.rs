//! ALTER TABLE while other sessions use the table, or those around it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::engine::Engine;
use crate::support::{Client, all, code, one};

const WAITS: &str = "Waiting for table metadata lock";

fn send(client: &mut Client, sql: &str) {
    client.sequence = 0;
    client.send(&[&[3], sql.as_bytes()].concat());
}

/// Sends a statement that changes a table and returns once it keeps writers out.
fn send_and_keep_out(engine: &Engine, client: &mut Client, sql: &str, table: &str) {
    send(client, sql);
    let mut writer = engine.root();
    all(&mut writer, &["SET lock_wait_timeout = 1"]);
    let write = format!("SELECT * FROM d.{table} FOR UPDATE");
    while let Ok(_rows) = writer.run(&write) {
        std::thread::yield_now();
    }
    assert_eq!(code(&mut writer, &write), 1205);
}

/// Sends a statement and returns once its session waits for a table.
fn send_and_wait(engine: &Engine, client: &mut Client, sql: &str) {
    send(client, sql);
    let connection = engine.server.server.connections.get(client.connection_id()).unwrap();
    while connection.activity().state != WAITS {
        std::thread::yield_now();
    }
}

fn columns(client: &mut Client, table: &str) -> usize {
    client.run(&format!("SHOW COLUMNS FROM d.{table}")).unwrap().len()
}

fn start() -> (Engine, Client, Client) {
    let engine = Engine::start();
    let (mut one, other) = (engine.root(), engine.root());
    all(
        &mut one,
        &[
            "CREATE DATABASE d",
            "CREATE TABLE d.p (id INT PRIMARY KEY, n INT)",
            "CREATE TABLE d.c (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES d.p (id))",
            "INSERT INTO d.p VALUES (1, 0), (2, 0)",
            "INSERT INTO d.c VALUES (1, 1)",
        ],
    );
    (engine, one, other)
}

/// The copy is made beside a reader; its end waits for the reader, and a writer for that.
#[test]
fn a_rebuild_waits_for_a_reader_only_at_its_end_and_writers_wait_for_it() {
    let (engine, mut altering, mut reader) = start();
    all(&mut reader, &["BEGIN", "SELECT * FROM d.p"]);
    let alter = "ALTER TABLE d.p ADD COLUMN m INT NOT NULL DEFAULT 5 FIRST";
    send_and_keep_out(&engine, &mut altering, alter, "p");
    // It is waited for, and reads on.
    assert_eq!(one(&mut reader, "SELECT COUNT(*) FROM d.p"), "2");
    let mut writer = engine.root();
    send_and_wait(&engine, &mut writer, "INSERT INTO d.p (id, n) VALUES (3, 3)");
    all(&mut reader, &["COMMIT"]);
    altering.answer().unwrap();
    writer.answer().unwrap();
    assert_eq!(one(&mut reader, "SELECT SUM(m) FROM d.p"), "15");
    engine.finish();
}

#[test]
fn one_that_waits_can_be_killed_and_gives_up_and_leaves_the_table_as_it_was() {
    let (engine, mut altering, mut holder) = start();
    all(&mut holder, &["BEGIN", "UPDATE d.p SET n = 1"]);
    all(&mut altering, &["SET lock_wait_timeout = 1"]);
    for alter in [
        "ALTER TABLE d.p ADD COLUMN m INT FIRST",
        "ALTER TABLE d.p RENAME COLUMN n TO m",
        "ALTER TABLE d.p ADD KEY (n)",
        "ALTER TABLE d.c ADD COLUMN m INT FIRST, ADD FOREIGN KEY (id) REFERENCES d.p (id)",
    ] {
        assert_eq!(code(&mut altering, alter), 1205, "{alter}");
    }
    // What the first one did not let in is let in now.
    all(&mut holder, &["COMMIT", "BEGIN", "SELECT * FROM d.p"]);
    all(&mut altering, &["SET lock_wait_timeout = 100"]);
    for (alter, table) in [
        ("ALTER TABLE d.p ADD COLUMN m INT FIRST", "p"),
        ("ALTER TABLE d.p RENAME COLUMN id TO m", "p"),
        ("ALTER TABLE d.c ADD COLUMN m INT FIRST, ADD FOREIGN KEY (id) REFERENCES d.p (id)", "c"),
    ] {
        send_and_keep_out(&engine, &mut altering, alter, table);
        let kill = format!("KILL QUERY {}", altering.connection_id());
        all(&mut holder, &[&kill]);
        assert_eq!(altering.answer().unwrap_err().0, 1317, "{alter}");
        assert_eq!((columns(&mut holder, "p"), columns(&mut holder, "c")), (2, 2), "{alter}");
        all(&mut holder, &["INSERT INTO d.p VALUES (7, 7)", "DELETE FROM d.p WHERE id = 7"]);
        all(&mut holder, &["COMMIT", "BEGIN", "SELECT * FROM d.p"]);
    }
    all(&mut holder, &["COMMIT"]);
    all(&mut altering, &["CHECK TABLE d.p, d.c", "ALTER TABLE d.p ADD COLUMN m INT FIRST"]);
    engine.finish();
}

/// A column of the parent gets another name only when nobody uses a child, and the child knows it then.
#[test]
fn a_name_that_children_use_changes_for_all_at_once() {
    let (engine, mut altering, mut holder) = start();
    all(&mut holder, &["BEGIN", "INSERT INTO d.c VALUES (2, 2)"]);
    send_and_keep_out(&engine, &mut altering, "ALTER TABLE d.p RENAME COLUMN id TO number", "p");
    all(&mut holder, &["ROLLBACK"]);
    altering.answer().unwrap();
    let shown = holder.run("SHOW CREATE TABLE d.c").unwrap()[0][1].clone().unwrap();
    assert!(shown.contains("REFERENCES `p` (`number`)"), "{shown}");
    assert_eq!(code(&mut holder, "INSERT INTO d.c VALUES (2, 9)"), 1452);
    assert_eq!(code(&mut holder, "DELETE FROM d.p WHERE number = 1"), 1451);
    engine.finish();
}

/// Whatever clause is refused, none of the statement has happened.
#[test]
fn a_statement_of_several_clauses_happens_whole_or_not_at_all() {
    let (engine, mut client, _other) = start();
    all(&mut client, &["INSERT INTO d.c VALUES (2, 1)"]);
    let before = client.run("SHOW CREATE TABLE d.c").unwrap();
    for (alter, error) in [
        ("ALTER TABLE d.c DROP FOREIGN KEY c_ibfk_1, ADD UNIQUE (up)", 1062),
        ("ALTER TABLE d.c DROP FOREIGN KEY c_ibfk_1, ADD KEY (nothing)", 1072),
        ("ALTER TABLE d.c ADD COLUMN m INT DEFAULT 8, ADD FOREIGN KEY (m) REFERENCES d.p (id)", 1452),
        ("ALTER TABLE d.c ADD COLUMN m INT, ADD FOREIGN KEY (m) REFERENCES d.p (nothing)", 3734),
        ("ALTER TABLE d.c ADD KEY (up, id), ADD FOREIGN KEY (id) REFERENCES d.c (up), DROP KEY up", 1452),
        ("ALTER TABLE d.c DROP FOREIGN KEY c_ibfk_1, DROP FOREIGN KEY nothing", 1091),
    ] {
        let found = client.run(alter).map_err(|error| error.0);
        assert_eq!(found.unwrap_err(), error, "{alter}");
        assert_eq!(client.run("SHOW CREATE TABLE d.c").unwrap(), before, "{alter}");
    }
    all(&mut client, &["UPDATE d.c SET up = 2 WHERE id = 2"]);
    assert_eq!(code(&mut client, "UPDATE d.c SET up = 9"), 1452);
    engine.finish();
}
