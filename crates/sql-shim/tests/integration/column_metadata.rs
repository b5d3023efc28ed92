//! What clients are told of a column's width: ORMs know a boolean by it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::Client;
use crate::support::engine::Engine;

const ZEROFILL: u16 = 64;

/// Length and flags of the only column.
fn shown(client: &mut Client, sql: &str) -> (u32, u16) {
    let first = client.query(sql);
    assert_eq!(first, [1], "{sql}");
    let definition = client.receive().unwrap();
    // Character set (2), length (4), type (1), flags (2), decimals (1), two zeros.
    let tail = &definition[definition.len() - 12..];
    let shown = (
        u32::from_le_bytes(tail[2..6].try_into().unwrap()),
        u16::from_le_bytes(tail[7..9].try_into().unwrap()),
    );
    // Of the definitions, and of the rows.
    for _ in 0..2 {
        while client.receive().unwrap().first() != Some(&0xfe) {}
    }
    shown
}

#[test]
fn widths_reach_the_client() {
    let engine = Engine::start();
    let mut client = engine.root();
    for statement in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (flag BOOL, small TINYINT, filled INT(5) ZEROFILL, f DOUBLE(10,2))",
        "INSERT INTO d.t VALUES (1, 2, 42, 1.005), (127, 3, 1234567, 7)",
    ] {
        client.run(statement).unwrap();
    }
    assert_eq!(shown(&mut client, "SELECT flag FROM d.t").0, 1);
    assert_eq!(shown(&mut client, "SELECT small FROM d.t").0, 4);
    let (length, flags) = shown(&mut client, "SELECT filled FROM d.t");
    assert_eq!((length, flags & ZEROFILL), (5, ZEROFILL));
    let texts = |client: &mut Client, sql: &str| -> Vec<String> {
        client.run(sql).unwrap().into_iter().map(|row| row[0].clone().unwrap()).collect()
    };
    assert_eq!(texts(&mut client, "SELECT filled FROM d.t"), ["00042", "1234567"]);
    assert_eq!(texts(&mut client, "SELECT CONCAT(filled) FROM d.t"), ["00042", "1234567"]);
    assert_eq!(texts(&mut client, "SELECT f FROM d.t"), ["1.00", "7.00"]);
    // The width says nothing of the values.
    assert_eq!(texts(&mut client, "SELECT flag FROM d.t UNION ALL SELECT 1.5"), ["1.0", "127.0", "1.5"]);
    for statement in [
        "CREATE TABLE d.z (d DECIMAL(8,2) ZEROFILL, f FLOAT ZEROFILL, g DOUBLE ZEROFILL, h FLOAT(9,3) ZEROFILL)",
        "INSERT INTO d.z VALUES (1.5, 1.5, 1e200, 1.5)",
    ] {
        client.run(statement).unwrap();
    }
    for (column, width, text) in [
        ("d", 9, "000001.50"),
        ("f", 12, "0000000001.5"),
        ("g", 22, "000000000000000001e200"),
        ("h", 9, "00001.500"),
    ] {
        let (length, flags) = shown(&mut client, &format!("SELECT {column} FROM d.z"));
        assert_eq!((length, flags & ZEROFILL), (width, ZEROFILL), "{column}");
        assert_eq!(texts(&mut client, &format!("SELECT {column} FROM d.z")), [text]);
    }
    engine.finish();
}
