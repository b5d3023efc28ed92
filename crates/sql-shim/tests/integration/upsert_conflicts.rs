//! Upserts and REPLACE of rows that stand in the way, and the numbers that a statement takes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use crate::support::Client;
use crate::support::engine::Engine;

fn table(client: &mut Client) {
    for statement in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (u INT, big LONGTEXT, UNIQUE KEY (u))",
        "INSERT INTO d.t VALUES (1, REPEAT('a', 20000)), (2, REPEAT('b', 20000)), (3, 'short')",
    ] {
        client.run(statement).unwrap();
    }
}

fn rows(client: &mut Client) -> Vec<String> {
    let rows =
        client.run("SELECT CONCAT(u, ' ', LEFT(big, 1), ' ', LENGTH(big)) FROM d.t ORDER BY u").unwrap();
    rows.into_iter().map(|row| row[0].clone().unwrap()).collect()
}

/// The table has no primary key, and the row that stands in the way a value off-page.
#[test]
fn an_upsert_changes_the_row_that_has_the_key() {
    let engine = Engine::start();
    let mut client = engine.root();
    table(&mut client);
    let done = client.run("INSERT INTO d.t VALUES (2, 'x') ON DUPLICATE KEY UPDATE big = REPEAT('z', 30000)");
    let mut client = engine.root();
    assert_eq!(rows(&mut client), ["1 a 20000", "2 z 30000", "3 s 5"], "{done:?}");
}

#[test]
fn replace_replaces_the_row_that_has_the_key() {
    let engine = Engine::start();
    let mut client = engine.root();
    table(&mut client);
    let done = client.run("REPLACE INTO d.t VALUES (1, 'new')");
    let mut client = engine.root();
    assert_eq!(rows(&mut client), ["1 n 3", "2 b 20000", "3 s 5"], "{done:?}");
}

/// Inserts into a table whose AUTO_INCREMENT column has three numbers left.
fn insert_with_three_numbers_left(insert: &str) {
    let engine = Engine::start();
    let mut client = engine.root();
    for statement in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id TINYINT AUTO_INCREMENT PRIMARY KEY, n INT UNIQUE)",
        "INSERT INTO d.t VALUES (124, 0)",
    ] {
        client.run(statement).unwrap();
    }
    let done = client.run(insert);
    assert!(done.is_ok(), "{insert}: {done:?}");
}

/// Numbers are taken for rows that will not want one: the statement needs one of the three that are left.
#[test]
fn a_statement_needs_no_more_numbers_than_it_uses() {
    insert_with_three_numbers_left("INSERT INTO d.t VALUES (NULL, 1), (5, 2), (6, 3), (7, 4)");
}

/// Rows that are there already give their numbers back.
#[test]
fn ignored_rows_need_no_numbers() {
    insert_with_three_numbers_left("INSERT IGNORE INTO d.t (n) VALUES (0), (0), (0), (0), (1)");
}
