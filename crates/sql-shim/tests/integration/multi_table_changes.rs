//! UPDATE and DELETE of joins: locks, privileges, and more rows than memory has room for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::engine::Engine;
use crate::support::{Client, all};

fn one(client: &mut Client, sql: &str) -> String {
    client.run(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"))[0][0].clone().unwrap_or_default()
}

const TABLES: [&str; 5] = [
    "CREATE DATABASE d",
    "CREATE TABLE d.a (id INT PRIMARY KEY, x INT)",
    "CREATE TABLE d.b (id INT PRIMARY KEY, x INT)",
    "INSERT INTO d.a VALUES (1, 10), (2, 20)",
    "INSERT INTO d.b VALUES (1, 100), (2, 200)",
];

#[test]
fn what_is_changed_is_locked_for_it_and_what_is_read_is_kept() {
    let engine = Engine::start();
    let (mut client, mut other) = (engine.root(), engine.root());
    all(&mut client, &TABLES);
    all(&mut client, &["BEGIN", "UPDATE d.a JOIN d.b USING (id) SET a.x = b.x WHERE a.id = 1"]);
    let nowait = |other: &mut Client, sql: &str| other.run(sql).map_err(|error| error.0);
    assert_eq!(nowait(&mut other, "SELECT * FROM d.a WHERE id = 1 FOR SHARE NOWAIT"), Err(3572));
    assert_eq!(nowait(&mut other, "SELECT * FROM d.b WHERE id = 1 FOR UPDATE NOWAIT"), Err(3572));
    assert!(nowait(&mut other, "SELECT * FROM d.b WHERE id = 1 FOR SHARE NOWAIT").is_ok());
    assert!(nowait(&mut other, "SELECT * FROM d.a WHERE id = 2 FOR UPDATE NOWAIT").is_ok());
    all(&mut client, &["ROLLBACK", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "BEGIN"]);
    all(&mut client, &["DELETE d.a FROM d.a JOIN d.b USING (id) WHERE a.id = 1"]);
    assert_eq!(nowait(&mut other, "SELECT * FROM d.a WHERE id = 1 FOR SHARE NOWAIT"), Err(3572));
    assert!(nowait(&mut other, "SELECT * FROM d.b WHERE id = 1 FOR UPDATE NOWAIT").is_ok());
    all(&mut client, &["ROLLBACK"]);
    assert_eq!(one(&mut client, "SELECT SUM(x) FROM d.a"), "30");
    engine.finish();
}

#[test]
fn the_newest_rows_are_read_that_others_have_committed() {
    let engine = Engine::start();
    let (mut client, mut other) = (engine.root(), engine.root());
    all(&mut client, &TABLES);
    all(&mut client, &["BEGIN", "SELECT * FROM d.a"]);
    all(&mut other, &["UPDATE d.b SET x = 101 WHERE id = 1"]);
    all(&mut client, &["UPDATE d.a JOIN d.b USING (id) SET a.x = b.x", "COMMIT"]);
    assert_eq!(one(&mut client, "SELECT SUM(x) FROM d.a"), "301");
    engine.finish();
}

#[test]
fn a_change_needs_its_privilege_and_reading_another() {
    let engine = Engine::start();
    let mut root = engine.root();
    all(&mut root, &TABLES);
    all(
        &mut root,
        &[
            "CREATE USER u@'%' IDENTIFIED WITH mysql_native_password BY 'p'",
            "GRANT UPDATE, DELETE ON d.a TO u@'%'",
        ],
    );
    let mut user = engine.login("u", "p", None).unwrap();
    let code = |user: &mut Client, sql: &str| user.run(sql).map(drop).map_err(|error| error.0);
    assert_eq!(code(&mut user, "UPDATE d.a, d.b SET a.x = 1 WHERE b.id = 1"), Err(1142));
    all(&mut root, &["GRANT SELECT ON d.b TO u@'%'"]);
    assert_eq!(code(&mut user, "UPDATE d.a, d.b SET a.x = 1 WHERE b.id = 1"), Ok(()));
    assert_eq!(code(&mut user, "UPDATE d.a, d.b SET a.x = 1 WHERE b.id = a.id"), Err(1143));
    assert_eq!(code(&mut user, "UPDATE d.a, d.b SET b.x = 1 WHERE b.id = 1"), Err(1143));
    assert_eq!(code(&mut user, "UPDATE d.b, d.none SET b.x = 1"), Err(1142));
    assert_eq!(code(&mut user, "DELETE d.b FROM d.a, d.b WHERE b.id = 1"), Err(1142));
    assert_eq!(code(&mut user, "DELETE d.a FROM d.a, d.b WHERE b.id = 7"), Ok(()));
    engine.finish();
}

/// 20,000 rows are found twice each, with a sort that keeps a few hundred of them in memory.
#[test]
fn more_rows_than_memory_are_changed_once_each() {
    let engine = Engine::start();
    let mut client = engine.root();
    all(
        &mut client,
        &[
            "CREATE DATABASE d",
            "CREATE TABLE d.a (id INT PRIMARY KEY, x INT, pad VARCHAR(100))",
            "CREATE TABLE d.twice (n INT PRIMARY KEY)",
            "INSERT INTO d.twice VALUES (1), (2)",
            "SET cte_max_recursion_depth = 100000",
            "INSERT INTO d.a WITH RECURSIVE n AS (SELECT 1 AS id UNION ALL SELECT id + 1 FROM n WHERE id < 20000)
             SELECT id, id, REPEAT('p', 50) FROM n",
            "SET sort_buffer_size = 32768, tmp_table_size = 1024",
            "UPDATE d.a JOIN d.twice SET a.x = a.x + 1, a.pad = CONCAT(a.pad, 'q')",
        ],
    );
    assert_eq!(one(&mut client, "SELECT SUM(x) FROM d.a"), "200030000");
    assert_eq!(one(&mut client, "SELECT SUM(LENGTH(pad)) FROM d.a"), "1020000");
    // The second row of the join would be an error if it were changed.
    all(&mut client, &["DELETE d.a FROM d.a JOIN d.twice WHERE a.id > 100"]);
    assert_eq!(one(&mut client, "SELECT COUNT(*) FROM d.a"), "100");
    engine.finish();
}

#[test]
fn statements_that_fail_change_nothing() {
    let engine = Engine::start();
    let mut client = engine.root();
    all(&mut client, &TABLES);
    all(&mut client, &["ALTER TABLE d.a ADD UNIQUE KEY (x)", "BEGIN", "INSERT INTO d.b VALUES (3, 300)"]);
    let failed = client.run("UPDATE d.a JOIN d.b USING (id) SET b.x = 1, a.x = 5");
    assert_eq!(failed.unwrap_err().1, "Duplicate entry '5' for key 'a.x'");
    assert_eq!(one(&mut client, "SELECT GROUP_CONCAT(x ORDER BY id) FROM d.a"), "10,20");
    assert_eq!(one(&mut client, "SELECT GROUP_CONCAT(x ORDER BY id) FROM d.b"), "100,200,300");
    all(&mut client, &["SET sql_safe_updates = 1"]);
    assert_eq!(client.run("UPDATE d.a JOIN d.b SET a.x = 5").unwrap_err().0, 1175);
    all(&mut client, &["UPDATE d.a JOIN d.b USING (id) SET a.x = 5 WHERE a.id = 1"]);
    engine.finish();
}
