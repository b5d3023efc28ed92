//! VIRTUAL generated columns where they are not what MySQL's are, and over restarts. What is as in MySQL is
//! in the golden script `79_virtual_columns.test`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::engine::Engine;
use crate::support::{Client, all, code};

fn column(client: &mut Client, sql: &str, at: usize) -> Vec<Option<String>> {
    client.run(sql).unwrap().into_iter().map(|row| row[at].clone()).collect()
}

#[test]
fn the_word_is_kept_over_a_restart() {
    let engine = Engine::start();
    let mut root = engine.root();
    all(
        &mut root,
        &[
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT, v INT AS (a + 1), s INT AS (a + 2) STORED, UNIQUE (v))",
            "INSERT INTO d.t (a) VALUES (1), (2)",
        ],
    );
    let shown = column(&mut root, "SHOW CREATE TABLE d.t", 1);
    let extra = "SELECT GROUP_CONCAT(EXTRA ORDER BY ORDINAL_POSITION) FROM information_schema.COLUMNS \
                 WHERE TABLE_NAME = 't'";
    assert_eq!(column(&mut root, extra, 0), [Some(",VIRTUAL GENERATED,STORED GENERATED".to_owned())]);
    drop(root);
    let engine = Engine::open(&engine.stop());
    let mut root = engine.root();
    assert_eq!(column(&mut root, "SHOW CREATE TABLE d.t", 1), shown);
    all(&mut root, &["INSERT INTO d.t (a) VALUES (3)"]);
    assert_eq!(code(&mut root, "INSERT INTO d.t (a) VALUES (2)"), 1062);
    let sum = "SELECT CONCAT(SUM(v), ' ', SUM(s)) FROM d.t";
    assert_eq!(column(&mut root, sum, 0), [Some("9 12".to_owned())]);
    engine.finish();
}

/// Their values are in the file, where MySQL has none.
#[test]
fn the_file_of_such_a_table_stays_here() {
    let engine = Engine::start();
    let mut root = engine.root();
    all(
        &mut root,
        &[
            "CREATE DATABASE d",
            "CREATE TABLE d.t (id INT PRIMARY KEY, v INT AS (id + 1) VIRTUAL)",
            "INSERT INTO d.t (id) VALUES (1)",
        ],
    );
    for statement in ["FLUSH TABLES d.t FOR EXPORT", "ALTER TABLE d.t DISCARD TABLESPACE"] {
        let (number, message) = root.run(statement).unwrap_err();
        assert_eq!(number, 1235, "{statement}");
        assert!(message.contains("table 'd.t' has the VIRTUAL column 'v'"), "{message}");
    }
    assert_eq!(column(&mut root, "SELECT v FROM d.t", 0), [Some("2".to_owned())]);
    // One that was discarded before has none, and gets none with which it could no longer be imported.
    all(&mut root, &["CREATE TABLE d.u (id INT PRIMARY KEY)", "ALTER TABLE d.u DISCARD TABLESPACE"]);
    assert_eq!(code(&mut root, "ALTER TABLE d.u ADD v INT AS (id) VIRTUAL"), 1814);
    engine.finish();
}

/// The values of a column that is added are written, so they have to be such as can be.
#[test]
fn adding_one_writes_the_rows() {
    let engine = Engine::start();
    let mut root = engine.root();
    all(
        &mut root,
        &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1000), (1)"],
    );
    let add = "ALTER TABLE d.t ADD v INT AS (id + 1) VIRTUAL";
    assert_eq!(code(&mut root, &format!("{add}, ALGORITHM=INSTANT")), 1845);
    assert_eq!(code(&mut root, "ALTER TABLE d.t ADD v TINYINT AS (id) VIRTUAL"), 1264);
    all(&mut root, &[add]);
    assert_eq!(column(&mut root, "SELECT SUM(v) FROM d.t", 0), [Some("1003".to_owned())]);
    // A key may not set what one of them reads: the engine computes nothing.
    let key = "CREATE TABLE d.c (a INT, v INT AS (a + 1), FOREIGN KEY (a) REFERENCES d.t (id)";
    assert_eq!(code(&mut root, &format!("{key} ON UPDATE CASCADE)")), 1215);
    all(&mut root, &[&format!("{key} ON DELETE CASCADE)")]);
    engine.finish();
}
