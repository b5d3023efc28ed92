//! Prepared statements of the protocol beside changes of the session's settings and of definitions.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::engine::Engine;
use crate::support::{Client, all, error_code, execute, one, prepare};

/// The bytes of the only row.
fn row(client: &mut Client, packet: &[u8]) -> Vec<u8> {
    let first = client.command(packet);
    let rows = client.rows(&first);
    assert_eq!(rows.len(), 1);
    rows[0].clone()
}

#[test]
fn a_text_means_what_it_meant_when_it_was_prepared() {
    let engine = Engine::start();
    let mut client = engine.root();
    all(&mut client, &["CREATE DATABASE d", "CREATE TABLE d.t (a INT)", "INSERT INTO d.t VALUES (1)"]);
    let statement = prepare(&mut client, "SELECT '1' || '0' AS r, \"x\" AS x FROM d.t");
    let before = row(&mut client, &execute(statement, &[]));
    assert!(before.ends_with(b"\x01x"), "{before:?}");
    all(&mut client, &["SET sql_mode = 'PIPES_AS_CONCAT,ANSI_QUOTES'", "ALTER TABLE d.t ADD b INT"]);
    assert_eq!(row(&mut client, &execute(statement, &[])), before);
    engine.finish();
}

#[test]
fn texts_among_parameters_have_the_connections_collation() {
    let engine = Engine::start();
    let mut client = engine.root();
    let statement = prepare(&mut client, "SELECT ? = ?");
    for (collation, equal) in [("utf8mb4_bin", 0), ("utf8mb4_general_ci", 1)] {
        client.run(&format!("SET NAMES utf8mb4 COLLATE {collation}")).unwrap();
        let row = row(&mut client, &execute(statement, &["a", "A"]));
        assert_eq!(row[2], equal, "{collation}: {row:?}");
    }
    engine.finish();
}

#[test]
fn the_digits_of_a_quotient_follow_the_session() {
    let engine = Engine::start();
    let mut client = engine.root();
    let statement = prepare(&mut client, "SELECT 1 / 3");
    for (digits, quotient) in [("4", "0.3333"), ("8", "0.33333333")] {
        client.run(&format!("SET div_precision_increment = {digits}")).unwrap();
        let row = row(&mut client, &execute(statement, &[]));
        assert_eq!(String::from_utf8_lossy(&row[3..]), quotient);
    }
    engine.finish();
}

/// The warnings are those of the statement, also where it fails before it is run.
#[test]
fn a_statement_that_cannot_be_planned_again_keeps_no_older_warnings() {
    let engine = Engine::start();
    let mut client = engine.root();
    all(&mut client, &["CREATE DATABASE d", "CREATE TABLE d.t (a INT)"]);
    let statement = prepare(&mut client, "SELECT a FROM d.t");
    all(&mut client, &["DROP TABLE d.t", "SELECT CAST('x' AS SIGNED)"]);
    assert_eq!(error_code(&client.command(&execute(statement, &[]))), 1146);
    assert_eq!(one(&mut client, "SELECT @@warning_count"), "1");
    engine.finish();
}
