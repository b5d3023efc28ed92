//! Functional key parts over restarts and crashes, and beside settings that change between sessions. What is
//! as in MySQL is in the golden script `79_functional_keys.test`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::engine::Engine;
use crate::support::{Client, all, code};

fn column(client: &mut Client, sql: &str, at: usize) -> Vec<Option<String>> {
    client.run(sql).unwrap().into_iter().map(|row| row[at].clone()).collect()
}

fn text(client: &mut Client, sql: &str) -> String {
    column(client, sql, 0)[0].clone().unwrap_or_default()
}

/// The index that a query reads.
fn read_index(client: &mut Client, sql: &str) -> Option<String> {
    column(client, &format!("EXPLAIN {sql}"), 6)[0].clone()
}

/// How a query reads its table: `ref`, `range`, or whole.
fn access(client: &mut Client, sql: &str) -> String {
    column(client, &format!("EXPLAIN {sql}"), 4)[0].clone().unwrap_or_default()
}

const TABLE: &str = "CREATE TABLE d.t (id INT PRIMARY KEY, name VARCHAR(40), a INT, b INT, \
                     KEY k ((LOWER(name)), b DESC), UNIQUE KEY u ((a + b)))";

#[test]
fn they_are_kept_over_a_restart() {
    let engine = Engine::start();
    let mut root = engine.root();
    let insert = "INSERT INTO d.t VALUES (1, 'Anna', 1, 2), (2, 'BERT', 3, 4), (3, NULL, NULL, 4)";
    all(&mut root, &["CREATE DATABASE d", TABLE, insert]);
    let shown = column(&mut root, "SHOW CREATE TABLE d.t", 1);
    drop(root);
    let engine = Engine::open(&engine.stop());
    let mut root = engine.root();
    assert_eq!(column(&mut root, "SHOW CREATE TABLE d.t", 1), shown);
    assert_eq!(code(&mut root, "INSERT INTO d.t VALUES (4, 'x', 2, 1)"), 1062);
    let find = "SELECT id FROM d.t WHERE LOWER(name) = 'bert'";
    assert_eq!(read_index(&mut root, find).as_deref(), Some("k"));
    assert_eq!(text(&mut root, find), "2");
    assert_eq!(column(&mut root, "CHECK TABLE d.t", 3), [Some("OK".to_owned())]);
    engine.finish();
}

/// What a session has not committed when the server is gone is taken back, in the index too.
#[test]
fn a_crash_leaves_the_index_as_the_rows() {
    let engine = Engine::start();
    let mut root = engine.root();
    all(&mut root, &["CREATE DATABASE d", TABLE, "INSERT INTO d.t VALUES (1, 'Anna', 1, 2)"]);
    let mut other = engine.root();
    all(
        &mut other,
        &[
            "BEGIN",
            "UPDATE d.t SET name = 'Zoe', a = 10 WHERE id = 1",
            "INSERT INTO d.t VALUES (2, 'Bert', 5, 5)",
        ],
    );
    // Makes the open transaction's changes durable, too.
    all(&mut root, &["CREATE TABLE d.u (id INT PRIMARY KEY)", "INSERT INTO d.u VALUES (1)"]);
    let copy = std::env::temp_dir().join(format!("untorn-functional-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&copy);
    copy_files(&engine.directory, &copy);
    let crashed = Engine::open(&copy);
    let mut after = crashed.root();
    assert_eq!(text(&mut after, "SELECT id FROM d.t WHERE LOWER(name) = 'anna'"), "1");
    for gone in ["LOWER(name) = 'zoe'", "LOWER(name) = 'bert'", "a + b > 3"] {
        assert!(column(&mut after, &format!("SELECT id FROM d.t WHERE {gone}"), 0).is_empty(), "{gone}");
    }
    assert_eq!(column(&mut after, "CHECK TABLE d.t", 3), [Some("OK".to_owned())]);
    drop(other);
    crashed.finish();
    engine.finish();
}

/// Files as they are, as a crash of the process leaves them: what was written is there.
fn copy_files(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_files(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Each statement answers the same with the index and without it, whatever has changed.
#[test]
fn an_index_answers_as_the_rows_do() {
    let engine = Engine::start();
    let mut root = engine.root();
    all(&mut root, &["CREATE DATABASE d", TABLE]);
    for id in 0..200 {
        let name = if id % 7 == 0 { "NULL".to_owned() } else { format!("'N{}'", id % 13) };
        all(&mut root, &[&format!("INSERT INTO d.t VALUES ({id}, {name}, {id}, {})", id % 5 * 1000)]);
    }
    let changes = [
        "UPDATE d.t SET name = 'n1' WHERE id % 10 = 3",
        "DELETE FROM d.t WHERE id % 11 = 0",
        "BEGIN; UPDATE d.t SET name = 'gone', a = a + 100000; ROLLBACK",
        "REPLACE INTO d.t VALUES (5, 'N5', 5, 7), (500, 'x', NULL, 1)",
        "INSERT INTO d.t VALUES (501, 'y', 5, 7) ON DUPLICATE KEY UPDATE name = 'twice'",
        "UPDATE d.t SET b = b + 1 ORDER BY id DESC",
        "ALTER TABLE d.t MODIFY name VARCHAR(60), ADD COLUMN c INT FIRST",
        "ALTER TABLE d.t RENAME INDEX k TO other, ADD KEY k ((b - a))",
        "ALTER TABLE d.t RENAME INDEX k TO third, RENAME INDEX other TO k",
        "TRUNCATE TABLE d.t",
    ];
    let conditions = [
        "LOWER(name) = 'n1'",
        "LOWER(name) >= 'n10' AND b > 1",
        "LOWER(name) IS NULL",
        "LOWER(name) LIKE 'n1%'",
        "LOWER(name) IN ('n2', 'twice', 'x')",
        "a + b BETWEEN 5 AND 1500",
        "a + b IS NULL",
        "b - a < 0",
    ];
    for change in changes {
        change.split("; ").for_each(|statement| all(&mut root, &[statement]));
        for condition in conditions {
            let ids = |hint: &str| format!("SELECT id FROM d.t {hint} WHERE {condition} ORDER BY id");
            let (by_index, by_rows) = (ids("FORCE INDEX (k, u)"), ids("USE INDEX ()"));
            let (by_index, by_rows) = (column(&mut root, &by_index, 0), column(&mut root, &by_rows, 0));
            assert_eq!(by_index, by_rows, "{change}: {condition}");
        }
        let order = "SELECT id FROM d.t FORCE INDEX (k) ORDER BY LOWER(name), b, id";
        let sorted = "SELECT id FROM d.t USE INDEX () ORDER BY LOWER(name), b, id";
        assert_eq!(column(&mut root, order, 0), column(&mut root, sorted, 0), "{change}");
        assert_eq!(column(&mut root, "CHECK TABLE d.t", 3), [Some("OK".to_owned())], "{change}");
    }
    engine.finish();
}

/// An index written in one session is not read by another in which the expression means something else.
#[test]
fn expressions_of_other_meaning_do_not_read_the_index() {
    let engine = Engine::start();
    let mut root = engine.root();
    all(
        &mut root,
        &[
            "CREATE DATABASE d",
            "CREATE TABLE d.t (id INT PRIMARY KEY, n INT, at TIMESTAMP NULL, f FLOAT, KEY c ((CONCAT(n, 'x'))), \
             KEY day ((DATE(at))), KEY name ((DAYNAME(at))), KEY third ((n / 3)))",
            "SET time_zone = '+00:00'",
            "INSERT INTO d.t VALUES (1, 1, '2020-01-01 23:00:00', 1)",
        ],
    );
    let concat = "SELECT id FROM d.t WHERE CONCAT(n, 'x') = '1X'";
    assert_eq!(column(&mut root, concat, 0).len(), 1);
    all(&mut root, &["SET NAMES utf8mb4 COLLATE utf8mb4_bin"]);
    assert!(column(&mut root, concat, 0).is_empty());
    all(&mut root, &["SET time_zone = '+02:00'"]);
    assert_eq!(text(&mut root, "SELECT id FROM d.t WHERE DATE(at) = '2020-01-02'"), "1");
    assert!(column(&mut root, "SELECT id FROM d.t WHERE DATE(at) = '2020-01-01'", 0).is_empty());
    assert_eq!(text(&mut root, "SELECT id FROM d.t WHERE DAYNAME(at) = 'Thursday'"), "1");
    let third = "SELECT id FROM d.t WHERE n / 3 = 0.3333";
    assert_eq!(text(&mut root, third), "1");
    all(&mut root, &["SET div_precision_increment = 8"]);
    assert!(column(&mut root, third, 0).is_empty());
    engine.finish();
}

/// A row that an outer join has made up has no entry in the index, and the expression a value.
#[test]
fn behind_an_outer_join_the_expression_is_not_the_column() {
    let engine = Engine::start();
    let mut root = engine.root();
    all(
        &mut root,
        &[
            "CREATE DATABASE d",
            "CREATE TABLE d.l (id INT PRIMARY KEY)",
            "CREATE TABLE d.r (id INT PRIMARY KEY, a INT, KEY k ((COALESCE(a, 0))))",
            "INSERT INTO d.l VALUES (1), (2)",
            "INSERT INTO d.r VALUES (1, 5)",
        ],
    );
    let left = "SELECT d.l.id FROM d.l LEFT JOIN d.r ON d.l.id = d.r.id";
    assert_eq!(text(&mut root, &format!("{left} WHERE COALESCE(d.r.a, 0) = 0")), "2");
    assert_eq!(text(&mut root, &format!("{left} WHERE COALESCE(d.r.a, 0) = 5")), "1");
    let on = "SELECT COUNT(d.r.id) FROM d.l LEFT JOIN d.r ON COALESCE(d.r.a, 0) = 5";
    assert_eq!(text(&mut root, on), "2");
    let joined = "SELECT d.l.id FROM d.l JOIN d.r ON COALESCE(d.r.a, 0) = d.l.id + 3";
    assert_eq!(text(&mut root, joined), "2");
    engine.finish();
}

/// HANDLER, views, prepared statements, LOAD DATA's like: whatever names columns knows none of the hidden.
#[test]
fn hidden_columns_are_hidden_everywhere() {
    let engine = Engine::start();
    let mut root = engine.root();
    all(
        &mut root,
        &["CREATE DATABASE d", "USE d", TABLE, "INSERT INTO t VALUES (1, 'B', 1, 2), (2, 'a', 2, 3)"],
    );
    all(&mut root, &["HANDLER t OPEN"]);
    let read = root.run("HANDLER t READ k FIRST").unwrap();
    assert_eq!(read[0].len(), 4);
    assert_eq!(read[0][0].as_deref(), Some("2"));
    assert_eq!(column(&mut root, "HANDLER t READ k NEXT", 0), [Some("1".to_owned())]);
    assert_eq!(column(&mut root, "HANDLER t READ k = ('b')", 0), [Some("1".to_owned())]);
    all(&mut root, &["HANDLER t CLOSE", "CREATE VIEW v AS SELECT * FROM t"]);
    assert_eq!(read_index(&mut root, "SELECT * FROM v WHERE LOWER(name) = 'a'").as_deref(), Some("k"));
    assert_eq!(column(&mut root, "SHOW COLUMNS FROM v", 0).len(), 4);
    assert_eq!(code(&mut root, "GRANT SELECT (`!hidden!k!0!0`) ON t TO root@localhost"), 1054);
    assert_eq!(code(&mut root, "SELECT `!hidden!k!0!0` FROM t"), 1054);
    all(&mut root, &["CREATE TABLE plain (id INT PRIMARY KEY, name VARCHAR(40), a INT, b INT)"]);
    all(&mut root, &["INSERT INTO plain SELECT * FROM t"]);
    let sums = column(&mut root, "CHECKSUM TABLE t, plain", 1);
    assert_eq!(sums[0], sums[1]);
    // The names of hidden columns give way to what somebody names.
    all(&mut root, &["ALTER TABLE t ADD COLUMN `!hidden!k!0!0` INT DEFAULT 7"]);
    assert_eq!(text(&mut root, "SELECT SUM(`!hidden!k!0!0`) FROM t WHERE LOWER(name) = 'a'"), "7");
    engine.finish();
}

#[test]
fn the_file_of_such_a_table_stays_here() {
    let engine = Engine::start();
    let mut root = engine.root();
    all(&mut root, &["CREATE DATABASE d", TABLE]);
    for statement in ["FLUSH TABLES d.t FOR EXPORT", "ALTER TABLE d.t DISCARD TABLESPACE"] {
        let (number, message) = root.run(statement).unwrap_err();
        assert_eq!(number, 1235, "{statement}");
        assert!(message.contains("table 'd.t' has the functional index 'k'"), "{message}");
    }
    engine.finish();
}

/// Sixteen parts, and an expression of many characters.
#[test]
fn as_large_as_they_may_be() {
    let engine = Engine::start();
    let mut root = engine.root();
    let parts: Vec<String> = (0..16).map(|number| format!("(a + {number})")).collect();
    let many = format!("COALESCE({})", vec!["a"; 2500].join(", "));
    all(
        &mut root,
        &[
            "CREATE DATABASE d",
            &format!("CREATE TABLE d.t (a INT, KEY k ({}))", parts.join(", ")),
            "INSERT INTO d.t VALUES (1), (2)",
            &format!("CREATE INDEX long_one ON d.t ((IF(a > 1, 'more', '{}')))", "x".repeat(400)),
        ],
    );
    assert_eq!(code(&mut root, &format!("CREATE INDEX m ON d.t ({}, (a + 16))", parts.join(", "))), 1070);
    assert_eq!(text(&mut root, "SELECT a FROM d.t WHERE a + 0 = 2"), "2");
    all(&mut root, &[&format!("CREATE INDEX first ON d.t (({many}))")]);
    let find = format!("SELECT a FROM d.t WHERE {many} = 2");
    assert_eq!(read_index(&mut root, &find).as_deref(), Some("first"));
    assert_eq!(text(&mut root, &find), "2");
    engine.finish();
}

/// What was written under other settings, or on another day, than what is read now: such an index answers as
/// the rows do, because it is not read. (MySQL reads it, and answers by what the writer saw.)
#[test]
fn values_that_settings_and_the_day_decide_are_not_read_from_the_index() {
    let engine = Engine::start();
    let mut root = engine.root();
    all(
        &mut root,
        &[
            "CREATE DATABASE d",
            "USE d",
            "CREATE TABLE t (id INT PRIMARY KEY, a INT, v VARCHAR(40), m DATETIME(3), t TIME,
               KEY k1 ((CAST(v AS DATE))), KEY k2 ((CAST(m AS TIME))), KEY k3 ((CAST(m AS DATETIME))),
               KEY k4 ((TO_DAYS(t))), KEY k5 ((CAST(t AS DATETIME))), KEY k6 ((DATE(t))), KEY k7 ((YEAR(t))),
               KEY k8 ((DATEDIFF(m, t))), KEY k9 ((GREATEST(m, t))), KEY k10 ((CAST(v AS DATETIME))),
               KEY k11 ((HOUR(v))), KEY k12 ((a / 3)), KEY k13 ((ROUND(a / 3, 2))),
               KEY k14 ((FLOOR(a / 3 * 1000))), KEY k15 ((a * 2)), KEY k16 ((YEAR(m))))",
            "SET timestamp = 86400 * 300, time_zone = '+00:00', div_precision_increment = 0,
               sql_mode = 'TIME_TRUNCATE_FRACTIONAL,ALLOW_INVALID_DATES'",
            "INSERT INTO t VALUES (1, 1, '2020-02-30', '2020-01-01 10:00:00.999', '10:00:00'),
               (2, 1, '0000-00-00', '2020-01-01 10:00:00.4', '11:00:00'),
               (3, 1, '2020-01-01 23:00:00+05:00', '2020-01-01 10:00:00.999', '10:00:00')",
            "SET timestamp = 86400 * 400, time_zone = '+05:00', div_precision_increment = 4, sql_mode = DEFAULT",
        ],
    );
    for (key, condition) in [
        ("k1", "CAST(v AS DATE) IS NULL"),
        ("k2", "CAST(m AS TIME) = '10:00:00'"),
        ("k3", "CAST(m AS DATETIME) = '2020-01-01 10:00:01'"),
        ("k4", "TO_DAYS(t) = 719928"),
        ("k5", "CAST(t AS DATETIME) = '1971-02-05 10:00:00'"),
        ("k6", "DATE(t) = '1971-02-05'"),
        ("k7", "YEAR(t) = 1971"),
        ("k8", "DATEDIFF(m, t) < 18000"),
        ("k9", "GREATEST(m, t) > '2020-01-01'"),
        ("k10", "CAST(v AS DATETIME) = '2020-01-01 23:00:00'"),
        ("k11", "HOUR(v) = 23"),
        ("k12", "a / 3 = 0.3333"),
        ("k13", "ROUND(a / 3, 2) = 0.33"),
        ("k14", "FLOOR(a / 3 * 1000) = 333"),
    ] {
        let by = |how: &str| format!("SELECT id FROM t {how} INDEX ({key}) WHERE {condition} ORDER BY id");
        let (forced, ignored) = (by("FORCE"), by("IGNORE"));
        assert_eq!(column(&mut root, &forced, 0), column(&mut root, &ignored, 0), "{condition}");
        let whole = access(&mut root, &forced);
        assert!(["ALL", "index"].contains(&whole.as_str()), "{condition}: {whole}");
    }
    for (key, condition) in [("k15", "a * 2 = 2"), ("k16", "YEAR(m) = 2020")] {
        let query = format!("SELECT id FROM t FORCE INDEX ({key}) WHERE {condition}");
        assert_eq!(access(&mut root, &query), "ref", "{condition}");
        assert_eq!(column(&mut root, &query, 0).len(), 3, "{condition}");
    }
    engine.finish();
}

/// A generated column that turns values into others (NULL into an empty text, a negative number into 0) is
/// not its expression.
#[test]
fn a_column_that_cannot_hold_each_value_is_not_the_expression() {
    let engine = Engine::start();
    let mut root = engine.root();
    all(
        &mut root,
        &[
            "CREATE DATABASE d",
            "USE d",
            "CREATE TABLE g (id INT PRIMARY KEY, m DECIMAL(10,3), a INT, v VARCHAR(20),
               h BIGINT AS (a + 1) STORED NOT NULL, g4 DECIMAL(10,3) UNSIGNED AS (-m) STORED,
               n VARCHAR(20) AS (LOWER(v)) STORED NOT NULL, b INT UNSIGNED,
               KEY (h), KEY (g4), KEY (n), KEY k ((CONCAT(-b))))",
            "INSERT IGNORE INTO g (id, m, a, v, b) VALUES (1, 1.5, 1, 'A', 4294967295), (2, -1.5, NULL, NULL, 5)",
        ],
    );
    for (condition, id) in [
        ("a + 1 IS NULL", Some("2")),
        ("a + 1 = 0", None),
        ("-m < 0", Some("1")),
        ("-m = 0", None),
        ("LOWER(v) IS NULL", Some("2")),
        ("LOWER(v) = ''", None),
        ("CONCAT(-b) = '-4294967295'", Some("1")),
    ] {
        for key in ["h", "g4", "n", "k"] {
            let query = format!("SELECT id FROM g FORCE INDEX ({key}) WHERE {condition}");
            let found: Vec<String> = column(&mut root, &query, 0).into_iter().flatten().collect();
            assert_eq!(found.first().map(String::as_str), id, "{query}");
        }
    }
    engine.finish();
}

/// Statements that differ only in their literals share a plan, but for those where a literal is a part of the
/// expression that the index has.
#[test]
fn a_literal_in_the_expression_is_no_value_of_a_shared_plan() {
    let engine = Engine::start();
    let mut root = engine.root();
    all(
        &mut root,
        &[
            "CREATE DATABASE d",
            "USE d",
            "CREATE TABLE x (id INT PRIMARY KEY, a INT)",
            "CREATE TABLE y (id INT PRIMARY KEY, a INT, KEY k ((a + 1)))",
            "INSERT INTO x WITH RECURSIVE s AS (SELECT 1 n UNION ALL SELECT n + 1 FROM s WHERE n < 500) SELECT n, n FROM s",
            "INSERT INTO y SELECT * FROM x",
            "ANALYZE TABLE x, y",
        ],
    );
    // Once planned and once more, as a plan that was kept.
    for (query, rows) in [
        ("SELECT COUNT(*) FROM x JOIN y ON y.a + 1 = x.a", "499"),
        ("SELECT COUNT(*) FROM x JOIN y ON y.a + 1 = x.a", "499"),
        ("SELECT COUNT(*) FROM y WHERE a + 1 = 7", "1"),
        ("SELECT COUNT(*) FROM y WHERE a + 1 = 8", "1"),
    ] {
        all(&mut root, &["FLUSH STATUS"]);
        assert_eq!(text(&mut root, query), rows, "{query}");
        let read = column(&mut root, "SHOW STATUS LIKE 'Handler_read_rnd_next'", 1)[0].clone();
        let read: u64 = read.unwrap_or_default().parse().unwrap();
        assert!(read <= 501, "{query}: {read} rows");
    }
    assert_eq!(text(&mut root, "SELECT COUNT(*) FROM y WHERE a + 2 = 8"), "1");
    engine.finish();
}
