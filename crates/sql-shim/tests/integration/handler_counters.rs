//! What SHOW STATUS says that a statement did with tables: the numbers are those of MySQL 9.7.
#![allow(clippy::unwrap_used)]

use crate::support::Client;
use crate::support::engine::Engine;

/// Statements, one a line, and what each has counted.
const STATEMENTS: &str = "
SELECT * FROM t => commit 1, read_first 1, read_key 1, read_rnd_next 101, scan 1
SELECT * FROM t WHERE a = 5 => commit 1, read_key 1
SELECT * FROM t WHERE a = 500 => commit 1, read_key 1
SELECT * FROM t WHERE b = 3 => commit 1, read_key 1, read_next 10
SELECT * FROM t WHERE b = 77 => commit 1, read_key 1
SELECT * FROM t WHERE a BETWEEN 10 AND 20 => commit 1, read_key 1, read_next 11, range 1
SELECT * FROM t WHERE a > 95 => commit 1, read_key 1, read_next 5, range 1
SELECT * FROM t WHERE a < 20 => commit 1, read_first 1, read_key 1, read_next 19, range 1
SELECT * FROM t LIMIT 5 => commit 1, read_first 1, read_key 1, read_rnd_next 5, scan 1
SELECT * FROM t ORDER BY a DESC LIMIT 5 => commit 1, read_key 1, read_last 1, read_prev 4, scan 1
SELECT * FROM t WHERE a < 50 ORDER BY a DESC LIMIT 3 => commit 1, read_key 1, read_prev 2, range 1
SELECT * FROM t ORDER BY c => commit 1, read_first 1, read_key 1, read_rnd_next 101, scan 1, rows 100, sorted 1
SELECT * FROM t ORDER BY c LIMIT 3 => commit 1, read_first 1, read_key 1, read_rnd_next 101, scan 1, rows 3, sorted 1
SELECT * FROM u JOIN t ON t.a = u.b => commit 1, read_first 1, read_key 11, read_rnd_next 11, scan 1
SELECT 1 =>
INSERT INTO u VALUES (100, 1) => commit 1, write 1
INSERT INTO u VALUES (101, 1), (102, 2) => commit 1, write 2
INSERT INTO u VALUES (1, 1) => rollback 1, write 1
REPLACE INTO u VALUES (100, 5) => commit 1, read_key 1, update 1, write 1
INSERT INTO u VALUES (100, 1) ON DUPLICATE KEY UPDATE b = 9 => commit 1, read_key 1, update 1, write 1
UPDATE u SET b = b + 1 WHERE a = 100 => commit 1, read_key 1, update 1
DELETE FROM u WHERE a = 101 => commit 1, delete 1, read_key 1
BEGIN =>
UPDATE u SET b = 3 WHERE a = 1 => commit 1, read_key 1, update 1
COMMIT =>
";

/// The names in short, in the order in which they are listed.
const NAMES: [(&str, &str); 15] = [
    ("Handler_commit", "commit"),
    ("Handler_delete", "delete"),
    ("Handler_read_first", "read_first"),
    ("Handler_read_key", "read_key"),
    ("Handler_read_last", "read_last"),
    ("Handler_read_next", "read_next"),
    ("Handler_read_prev", "read_prev"),
    ("Handler_read_rnd_next", "read_rnd_next"),
    ("Handler_rollback", "rollback"),
    ("Handler_update", "update"),
    ("Handler_write", "write"),
    ("Select_scan", "scan"),
    ("Select_range", "range"),
    ("Sort_rows", "rows"),
    ("Sort_scan", "sorted"),
];

fn counted(client: &mut Client, scope: &str) -> Vec<u64> {
    let rows = client.run(&format!("SHOW {scope} STATUS")).unwrap();
    let value = |name: &str| {
        let row = rows.iter().find(|row| row[0].as_deref() == Some(name)).unwrap();
        row[1].as_deref().unwrap().parse::<u64>().unwrap()
    };
    NAMES.map(|(name, _)| value(name)).to_vec()
}

#[test]
fn statements_count_what_they_do_with_tables() {
    let engine = Engine::start();
    let mut client = engine.root();
    let rows = |many: u32, row: fn(u32) -> String| (1..=many).map(row).collect::<Vec<_>>().join(",");
    client.run("CREATE DATABASE d").unwrap();
    client.run("USE d").unwrap();
    client.run("CREATE TABLE t (a INT PRIMARY KEY, b INT, c INT, KEY b (b))").unwrap();
    client.run("CREATE TABLE u (a INT PRIMARY KEY, b INT)").unwrap();
    let many = rows(100, |a| format!("({a}, {}, {})", a % 10, a % 7));
    client.run(&format!("INSERT INTO t VALUES {many}")).unwrap();
    client.run(&format!("INSERT INTO u VALUES {}", rows(10, |a| format!("({a}, {a})")))).unwrap();
    client.run("ANALYZE TABLE t, u").unwrap();
    for scope in ["SESSION", "GLOBAL"] {
        for line in STATEMENTS.lines().filter(|line| !line.is_empty()) {
            let (statement, expected) = line.split_once(" =>").unwrap();
            if scope == "GLOBAL" && !statement.starts_with("SELECT * FROM t") {
                continue;
            }
            let before = counted(&mut client, scope);
            let _ = client.run(statement);
            let after = counted(&mut client, scope);
            let more = before.iter().zip(&after).zip(NAMES).filter(|((before, after), _)| before != after);
            let more = more.map(|((before, after), (_, name))| format!("{name} {}", after - before));
            assert_eq!(more.collect::<Vec<_>>().join(", "), expected.trim(), "{scope}: {statement}");
        }
    }
    client.run("FLUSH STATUS").unwrap();
    assert_eq!(counted(&mut client, "SESSION").iter().sum::<u64>(), 0);
    engine.finish();
}
