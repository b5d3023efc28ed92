//! HANDLER: its place in indexes of all kinds, its privileges, memory and end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::engine::Engine;
use crate::support::{Client, all, code};

fn start() -> (Engine, Client) {
    let engine = Engine::start();
    let mut root = engine.root();
    all(&mut root, &["CREATE DATABASE d", "USE d"]);
    (engine, root)
}

/// The first column of what a statement gives.
fn firsts(client: &mut Client, sql: &str) -> Vec<String> {
    let rows = client.run(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    rows.into_iter().map(|row| row[0].clone().unwrap_or_else(|| "NULL".into())).collect()
}

/// Reads an index to its end and back, one row at a time, and compares the first columns.
fn walks(client: &mut Client, index: &str, wanted: &[&str]) {
    let mut seen = firsts(client, &format!("HANDLER t READ {index} FIRST"));
    while let [next] = &firsts(client, &format!("HANDLER t READ {index} NEXT"))[..] {
        seen.push(next.clone());
        assert!(seen.len() <= wanted.len(), "{index}: {seen:?}");
    }
    assert_eq!(seen, wanted, "{index}");
    let mut back = Vec::new();
    while let [previous] = &firsts(client, &format!("HANDLER t READ {index} PREV"))[..] {
        back.insert(0, previous.clone());
        assert!(back.len() <= wanted.len(), "{index}: {back:?}");
    }
    assert_eq!(back, wanted, "{index}, backwards");
}

// Breaks with: members compared by name, a kept key that is read as another value, a prefix taken for the
// whole.
#[test]
fn places_in_indexes_of_all_types() {
    let (engine, mut root) = start();
    all(
        &mut root,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, e ENUM('z','a','m'), s SET('z','a','m'), b BIT(9), \
             n DECIMAL(9,3), w DATETIME(3), v VARCHAR(9), p VARCHAR(100), y VARBINARY(9), \
             KEY e (e), KEY s (s), KEY b (b), KEY n (n), KEY w (w), KEY v (v), KEY p (p(2)), KEY y (y), \
             KEY many (e, n, v))",
            "INSERT INTO t VALUES (1, 'a', 'z,m', b'100000001', -1.5, '2020-01-01 00:00:00.5', 'b', 'abz', 'B'), \
             (2, 'z', 'a', b'10', 2.25, '2020-01-01', 'A', 'aby', 'a'), \
             (3, 'm', '', b'1', -1.501, NULL, 'a', 'aa', X'00FF'), \
             (4, NULL, NULL, NULL, NULL, '1999-12-31', 'B', 'b', NULL)",
            "HANDLER t OPEN",
        ],
    );
    for (index, wanted) in [
        ("e", ["4", "2", "1", "3"]),
        ("s", ["4", "3", "2", "1"]),
        ("b", ["4", "3", "2", "1"]),
        ("n", ["4", "3", "1", "2"]),
        ("w", ["3", "4", "2", "1"]),
        ("v", ["2", "3", "1", "4"]),
        ("p", ["3", "1", "2", "4"]),
        ("y", ["4", "3", "1", "2"]),
        ("many", ["4", "2", "1", "3"]),
    ] {
        walks(&mut root, index, &wanted);
    }
    for (key, wanted) in [
        ("e = ('m')", &["3"][..]),
        ("e = (2)", &["1"]),
        ("e = ('nosuch')", &[]),
        ("e = (NULL)", &["4"]),
        ("e > ('z')", &["1", "3"]),
        ("s = ('m,z')", &["1"]),
        ("s = ('')", &["3"]),
        ("s >= ('a')", &["2", "1"]),
        ("b = (2)", &["2"]),
        ("b = (b'100000001')", &["1"]),
        ("n = (-1.5)", &["1"]),
        ("n < (0)", &["1", "3", "4"]),
        ("w = ('2020-01-01')", &["2"]),
        ("v = ('a')", &["2", "3"]),
        ("p = ('abx')", &["1", "2"]),
        ("p > ('ab')", &["4"]),
        ("y = ('a')", &["2"]),
        ("many = ('a', -1.5)", &["1"]),
    ] {
        assert_eq!(firsts(&mut root, &format!("HANDLER t READ {key} LIMIT 9")), wanted, "{key}");
    }
    engine.finish();
}

// Breaks with: a moment kept as it is shown, without its zone.
#[test]
fn the_place_is_the_same_in_another_zone() {
    let (engine, mut root) = start();
    all(
        &mut root,
        &[
            "SET time_zone = '+00:00'",
            "CREATE TABLE t (id INT PRIMARY KEY, w TIMESTAMP, KEY (w))",
            "INSERT INTO t VALUES (1, '2020-01-01 00:00:00'), (2, '2020-01-01 01:00:00'), \
             (3, '2020-01-01 02:00:00'), (4, '2020-01-01 03:00:00')",
            "HANDLER t OPEN",
        ],
    );
    for (zone, read, wanted) in
        [("+00:00", "FIRST", "1"), ("-09:30", "NEXT", "2"), ("+05:30", "NEXT", "3"), ("-02:00", "PREV", "2")]
    {
        all(&mut root, &[&format!("SET time_zone = '{zone}'")]);
        assert_eq!(firsts(&mut root, &format!("HANDLER t READ w {read}")), [wanted], "{zone}");
    }
    engine.finish();
}

// Breaks with: values evaluated before they are counted.
#[test]
fn a_key_of_too_many_values_is_not_evaluated() {
    let (engine, mut root) = start();
    all(&mut root, &["CREATE TABLE t (id INT PRIMARY KEY)", "HANDLER t OPEN", "SET @x = 0"]);
    assert_eq!(code(&mut root, "HANDLER t READ `PRIMARY` = (1, @x := 1)"), 1070);
    assert_eq!(firsts(&mut root, "SELECT @x"), ["0"]);
    engine.finish();
}

// Breaks with: conditions of a place or a key that are no range of the index.
#[test]
fn a_read_looks_at_no_rows_before_its_place() {
    let (engine, mut root) = start();
    all(
        &mut root,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, n INT, v VARCHAR(9), KEY a (a), KEY n (n), KEY v (v, n))",
            "INSERT INTO t WITH RECURSIVE r AS (SELECT 1 i UNION ALL SELECT i + 1 FROM r WHERE i < 900) \
             SELECT i, i DIV 3, IF(i % 90 = 0, NULL, i), CONCAT('v', i + 1000) FROM r",
            "HANDLER t OPEN",
        ],
    );
    let examined = |client: &mut Client, read: &str, wanted: &[&str], most: u64| {
        all(client, &["TRUNCATE TABLE performance_schema.events_statements_summary_by_digest"]);
        assert_eq!(firsts(client, read), wanted, "{read}");
        let sum = "SELECT SUM(SUM_ROWS_EXAMINED) FROM performance_schema.events_statements_summary_by_digest \
                   WHERE DIGEST_TEXT LIKE 'HANDLER%'";
        let rows: u64 = firsts(client, sum)[0].parse().unwrap();
        assert!((1..=most).contains(&rows), "{read}: {rows} rows");
    };
    for (read, wanted, most) in [
        ("HANDLER t READ `PRIMARY` = (899)", &["899"][..], 2),
        ("HANDLER t READ `PRIMARY` NEXT", &["900"], 2),
        ("HANDLER t READ `PRIMARY` PREV", &["899"], 2),
        ("HANDLER t READ `PRIMARY` <= (5)", &["5"], 2),
        ("HANDLER t READ a > (298)", &["897"], 2),
        ("HANDLER t READ a NEXT", &["898"], 4),
        ("HANDLER t READ a PREV", &["897"], 4),
        ("HANDLER t READ n >= (880)", &["880"], 2),
        ("HANDLER t READ n NEXT", &["881"], 2),
        ("HANDLER t READ n = (NULL)", &["90"], 2),
        ("HANDLER t READ n NEXT", &["180"], 20),
        ("HANDLER t READ v >= ('v1890', 890)", &["890"], 3),
        ("HANDLER t READ v NEXT", &["891"], 3),
    ] {
        examined(&mut root, read, wanted, most);
    }
    engine.finish();
}

// Breaks with: an open table whose charge stays when another takes its name.
#[test]
fn a_table_that_has_changed_gives_its_place_to_the_next() {
    let (engine, mut root) = start();
    all(&mut root, &["SET untorn_statement_memory_limit = 1000000"]);
    for _ in 0..200 {
        all(&mut root, &["CREATE TEMPORARY TABLE x (id INT PRIMARY KEY)", "HANDLER x OPEN", "DROP TABLE x"]);
    }
    engine.finish();
}

// Breaks with: open tables that nothing is charged for, or whose charge is not given back.
#[test]
fn open_tables_are_bounded() {
    let (engine, mut root) = start();
    all(&mut root, &["CREATE TABLE t (id INT PRIMARY KEY)", "SET untorn_statement_memory_limit = 1000000"]);
    for _ in 0..2 {
        let mut opened = 0;
        let refused = loop {
            match root.run(&format!("HANDLER t OPEN AS h{opened}")) {
                Ok(_) => opened += 1,
                Err(error) => break error.0,
            }
        };
        assert_eq!(refused, 1041);
        assert!((10..100).contains(&opened), "{opened}");
        for number in 0..opened {
            all(&mut root, &[&format!("HANDLER h{number} CLOSE")]);
        }
    }
    all(&mut root, &["SET untorn_statement_memory_limit = DEFAULT"]);
    for number in 0..1024 {
        all(&mut root, &[&format!("HANDLER t OPEN AS h{number}")]);
    }
    assert_eq!(code(&mut root, "HANDLER t OPEN"), 1041);
    engine.finish();
}

// Breaks with: a place that two sessions share; rows of others that a read does not see.
#[test]
fn each_session_has_its_own_place() {
    let (engine, mut root) = start();
    all(
        &mut root,
        &["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (3)", "HANDLER t OPEN"],
    );
    let mut other = engine.root();
    all(&mut other, &["USE d", "HANDLER t OPEN"]);
    assert_eq!(firsts(&mut root, "HANDLER t READ FIRST"), ["1"]);
    assert_eq!(firsts(&mut other, "HANDLER t READ `PRIMARY` LAST"), ["3"]);
    all(&mut other, &["INSERT INTO t VALUES (2)", "DELETE FROM t WHERE id = 1"]);
    assert_eq!(firsts(&mut root, "HANDLER t READ NEXT"), ["2"]);
    assert_eq!(firsts(&mut other, "HANDLER t READ `PRIMARY` PREV"), ["2"]);
    all(&mut other, &["HANDLER t CLOSE"]);
    assert_eq!(firsts(&mut root, "HANDLER t READ NEXT"), ["3"]);
    engine.finish();
}

// Breaks with: a read that asks for no privilege, or only when the table is opened.
#[test]
fn privileges_are_asked_for_each_time() {
    let (engine, mut root) = start();
    all(
        &mut root,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY)",
            "INSERT INTO t VALUES (1)",
            "CREATE USER app IDENTIFIED WITH mysql_native_password BY 'pw'",
            "GRANT INSERT ON d.t TO app",
        ],
    );
    let mut app = engine.login("app", "pw", Some("d")).unwrap();
    assert_eq!(code(&mut app, "HANDLER t OPEN"), 1142);
    all(&mut root, &["GRANT SELECT ON d.t TO app"]);
    all(&mut app, &["HANDLER t OPEN"]);
    assert_eq!(firsts(&mut app, "HANDLER t READ FIRST"), ["1"]);
    all(&mut root, &["REVOKE SELECT ON d.t FROM app"]);
    assert_eq!(code(&mut app, "HANDLER t READ FIRST"), 1142);
    engine.finish();
}

// Breaks with: a read that no kill or time limit ends; a place that a failed read moves.
#[test]
fn a_kill_ends_a_read_and_leaves_its_place() {
    let (engine, mut root) = start();
    all(
        &mut root,
        &["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)", "HANDLER t OPEN"],
    );
    assert_eq!(firsts(&mut root, "HANDLER t READ FIRST"), ["1"]);
    let mut killer = engine.root();
    // Works for longer than a kill takes.
    let long = "WHERE EXTRACTVALUE(REPEAT('<a>x</a>', 50000), 'count(/a[/a = \"y\"])') = 1";
    let sql = format!("HANDLER t READ NEXT {long}");
    root.sequence = 0;
    root.send(&[b"\x03", sql.as_bytes()].concat());
    let connection = engine.server.server.connections.get(root.connection_id()).unwrap();
    while *connection.activity().statement() != *sql.as_bytes() {
        std::thread::yield_now();
    }
    all(&mut killer, &[&format!("KILL QUERY {}", root.connection_id())]);
    assert_eq!(root.answer().unwrap_err().0, 1317);
    assert_eq!(firsts(&mut root, "HANDLER t READ NEXT"), ["2"]);
    all(&mut root, &["SET max_execution_time = 20"]);
    assert_eq!(code(&mut root, &format!("HANDLER t READ FIRST {long}")), 3024);
    engine.finish();
}
