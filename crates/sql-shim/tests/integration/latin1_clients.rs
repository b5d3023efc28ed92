//! Clients that write and read `latin1`, on the wire and in columns of any character set. What MySQL 9.7
//! answers to the same bytes.

use crate::support::engine::Engine;
use crate::support::{Client, all, error_code, execute, prepare};

/// A byte string with the texts between bars in code page 1252, whose letters are those of Latin-1 but for €.
fn bytes(text: &str) -> Vec<u8> {
    text.chars().map(|c| if c == '€' { 0x80 } else { u8::try_from(u32::from(c)).unwrap() }).collect()
}

fn send(client: &mut Client, sql: &str) -> Vec<u8> {
    client.command(&[&[3], &bytes(sql)[..]].concat())
}

/// The only value of a result set, and the definition of its column.
fn value(client: &mut Client, first: &[u8]) -> (Vec<u8>, Vec<u8>) {
    assert_eq!(first, [1], "{first:?}");
    let definition = client.receive().unwrap();
    client.receive().unwrap();
    let row = client.receive().unwrap();
    let end = client.receive().unwrap();
    assert_eq!((end[0], usize::from(row[0])), (0xfe, row.len() - 1));
    (definition, row[1..].to_vec())
}

fn ask(client: &mut Client, sql: &str) -> Vec<u8> {
    let first = send(client, sql);
    value(client, &first).1
}

fn start() -> (Engine, Client) {
    let engine = Engine::start();
    let mut client = engine.root();
    all(
        &mut client,
        &[
            "CREATE DATABASE d",
            "USE d",
            "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, l VARCHAR(9) CHARACTER SET latin1, \
             u VARCHAR(9) CHARACTER SET utf8mb4, b VARBINARY(9), `spalté` INT)",
            "SET NAMES latin1",
        ],
    );
    (engine, client)
}

#[test]
fn statements_are_read_and_texts_are_sent_in_latin1() {
    let (engine, mut client) = start();
    assert_eq!(send(&mut client, "INSERT INTO t (l, u, b) VALUES ('é€', 'é€', _binary'é€')")[0], 0);
    let hex =
        "SELECT CONCAT_WS(' ', HEX(l), HEX(u), HEX(b)) FROM t WHERE l = 'é€' AND u LIKE 'é_' AND b = 'é€'";
    assert_eq!(ask(&mut client, hex), b"E980 C3A9E282AC E980");
    for column in ["l", "u", "b"] {
        assert_eq!(ask(&mut client, &format!("SELECT {column} FROM t")), b"\xe9\x80", "{column}");
    }
    // A name, above its column; and what latin1 does not have.
    let first = send(&mut client, "SELECT `spalté` + 1 AS `größe` FROM t WHERE `spalté` IS NOT NULL");
    assert_eq!(first, [1]);
    let definition = client.receive().unwrap();
    assert!(definition.windows(5).any(|window| window == b"gr\xf6\xdfe"), "{definition:?}");
    client.receive().unwrap();
    client.receive().unwrap();
    assert_eq!(ask(&mut client, "SELECT CONCAT('é', CONVERT(x'E8A1A8' USING utf8mb4))"), b"\xe9?");
    // Documents are converted, although they are announced as bytes.
    assert_eq!(ask(&mut client, "SELECT JSON_OBJECT('é', 'é')"), b"{\"\xe9\": \"\xe9\"}");
    let refused = send(&mut client, "SELECT gibtsnochnïcht FROM t");
    assert_eq!(error_code(&refused), 1054);
    assert!(refused.windows(6).any(|window| window == b"n\xefcht'"), "{refused:?}");
    all(&mut client, &["SET NAMES utf8mb4"]);
    assert_eq!(client.text("SELECT l FROM t"), "é€");
    engine.finish();
}

#[test]
fn columns_of_text_are_announced_in_latin1() {
    let (engine, mut client) = start();
    let first = send(&mut client, "SELECT 'é'");
    let (definition, shown) = value(&mut client, &first);
    assert_eq!(shown, b"\xe9");
    // Behind the names: 12, the character set, the length in bytes.
    let at = definition.iter().rposition(|byte| *byte == 0x0c).unwrap();
    assert_eq!(definition[at + 1..at + 7], [8, 0, 1, 0, 0, 0], "{definition:?}");
    engine.finish();
}

#[test]
fn parameters_come_and_rows_of_prepared_statements_go_in_latin1() {
    let (engine, mut client) = start();
    let insert = prepare(&mut client, "INSERT INTO t (l, u) VALUES (?, ?)");
    let mut packet = execute(insert, &["xx", "yy"]);
    let at = packet.len();
    packet.splice(at - 2..at, *b"\xfc\x80");
    packet.splice(at - 5..at - 3, *b"\xe9\x80");
    assert_eq!(client.command(&packet)[0], 0);
    assert_eq!(ask(&mut client, "SELECT CONCAT_WS(' ', HEX(l), HEX(u)) FROM t"), b"E980 C3BCE282AC");
    let select = prepare(&mut client, "SELECT u FROM t");
    let first = client.command(&execute(select, &[]));
    assert_eq!(first, [1]);
    client.receive().unwrap();
    client.receive().unwrap();
    let row = client.receive().unwrap();
    assert_eq!(row, b"\x00\x00\x02\xfc\x80");
    client.receive().unwrap();
    engine.finish();
}

#[test]
fn a_literal_behind_an_introducer_is_meant_as_it_came() {
    let (engine, mut client) = start();
    // The bytes of é in UTF-8, which are two characters in latin1.
    assert_eq!(ask(&mut client, "SELECT HEX(_utf8mb4'Ã©')"), b"C3A9");
    assert_eq!(ask(&mut client, "SELECT HEX(_latin1'é')"), b"E9");
    assert_eq!(ask(&mut client, "SELECT HEX(_binary'é')"), b"E9");
    assert_eq!(ask(&mut client, "SELECT HEX('é')"), b"E9");
    // The plan of one is not taken for a client that writes in another character set.
    all(&mut client, &["SET NAMES utf8mb4"]);
    assert_eq!(client.text("SELECT HEX(_latin1'é')"), "C3A9");
    assert_eq!(client.text("SELECT HEX('é')"), "C3A9");
    engine.finish();
}

/// As mydumper asks for rows and loads them; it breaks where all is sent in UTF-8.
#[test]
fn columns_go_as_they_are_kept_where_nothing_is_to_be_converted() {
    let (engine, mut client) = start();
    assert_eq!(send(&mut client, "INSERT INTO t (l, u) VALUES ('é€', 'é€')")[0], 0);
    for setting in ["SET NAMES binary", "SET character_set_results = NULL"] {
        assert_eq!(send(&mut client, setting)[0], 0);
        assert_eq!(ask(&mut client, "SELECT l FROM t"), b"\xe9\x80", "{setting}");
        assert_eq!(ask(&mut client, "SELECT u FROM t"), "é€".as_bytes(), "{setting}");
    }
    assert_eq!(send(&mut client, "INSERT INTO t (id, l) VALUES (7, 'é€')")[0], 0);
    assert_eq!(ask(&mut client, "SELECT HEX(l) FROM t WHERE id = 7"), b"E980");
    engine.finish();
}
