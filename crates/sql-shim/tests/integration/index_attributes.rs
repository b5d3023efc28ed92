//! Comments, INVISIBLE and DESC of indexes: over a restart, without a rebuild, and in plans. What statements
//! answer is in the golden script `79_index_attributes.test`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::engine::Engine;
use crate::support::{Client, all, code, execute, one, prepare};

fn start() -> (Engine, Client) {
    let engine = Engine::start();
    let mut root = engine.root();
    all(&mut root, &["CREATE DATABASE d", "USE d"]);
    (engine, root)
}

/// The index by which each table of a statement is read.
fn indexes(client: &mut Client, sql: &str) -> Vec<String> {
    let rows = client.run(&format!("EXPLAIN {sql}")).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    rows.into_iter().map(|row| row[6].clone().unwrap_or_else(|| "-".into())).collect()
}

// Breaks with: what is said of a key is not written to the catalog, or definitions are written as they are
// shown and not as they are kept (the cast would lose its collation, and its index its order).
#[test]
fn definitions_are_the_same_after_a_restart() {
    let (engine, mut root) = start();
    all(
        &mut root,
        &[
            "CREATE TABLE t (id INT, a INT, b VARCHAR(20), c VARCHAR(20) AS (CAST(b AS CHAR(3) BINARY)) STORED, \
             x INT AS (CAST(b AS CHAR(3) BINARY) = 'abc') STORED, e VARCHAR(9) DEFAULT (CAST('x' AS CHAR(2) BYTE)), PRIMARY KEY (id DESC), \
             KEY a (a DESC, b) COMMENT 'it''s', KEY b (b) INVISIBLE COMMENT 'not read', KEY c (c DESC) INVISIBLE, \
             CHECK (CAST(b AS CHAR BINARY) <> 'No'))",
            "ALTER TABLE t ALTER INDEX c VISIBLE, ALTER INDEX a INVISIBLE",
            "CREATE INDEX later ON t (e DESC) COMMENT 'later' INVISIBLE",
            "INSERT INTO t (id, a, b) VALUES (1, 1, 'abc'), (2, 2, 'ABC'), (3, NULL, 'no')",
        ],
    );
    let read = |root: &mut Client| {
        let statements = [
            "SHOW CREATE TABLE d.t",
            "SHOW INDEX FROM d.t",
            "SELECT INDEX_NAME, SEQ_IN_INDEX, COLLATION, INDEX_COMMENT, IS_VISIBLE FROM \
             information_schema.STATISTICS WHERE TABLE_NAME = 't' ORDER BY 1, 2",
            "SELECT id, HEX(c), HEX(e), x FROM d.t ORDER BY id",
        ];
        statements.map(|statement| root.run(statement).unwrap())
    };
    let before = read(&mut root);
    let shown = before[0][0][1].clone().unwrap();
    for part in [
        "PRIMARY KEY (`id` DESC)",
        "KEY `a` (`a` DESC,`b`) COMMENT 'it''s' /*!80000 INVISIBLE */",
        "KEY `b` (`b`) COMMENT 'not read' /*!80000 INVISIBLE */",
        "KEY `c` (`c` DESC)",
        "KEY `later` (`e` DESC) COMMENT 'later' /*!80000 INVISIBLE */",
        "cast(`b` as char(3) binary)",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(one(&mut root, "SELECT GROUP_CONCAT(x ORDER BY id) FROM t"), "1,0,0");
    drop(root);
    let engine = Engine::open(&engine.stop());
    let mut root = engine.root();
    assert_eq!(read(&mut root), before);
    all(
        &mut root,
        &["USE d", "INSERT INTO t (id, a, b) VALUES (4, 4, 'abc'), (6, 1, 'ABC')", "HANDLER t OPEN"],
    );
    assert_eq!(code(&mut root, "INSERT INTO t (id, b) VALUES (5, 'No')"), 3819);
    assert_eq!(one(&mut root, "SELECT GROUP_CONCAT(x ORDER BY id) FROM t"), "1,0,0,1,0");
    assert_eq!(one(&mut root, "HANDLER t READ a FIRST"), "4");
    engine.finish();
}

// Breaks with: a key that is only said to be something else is taken for another one, and made once more.
#[test]
fn only_the_catalog_changes_where_an_index_is_shown_otherwise() {
    let (engine, mut root) = start();
    all(
        &mut root,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, KEY a (a) COMMENT 'x', KEY b (b DESC))",
            "INSERT INTO t VALUES (1, 2, 3), (2, 3, 4)",
        ],
    );
    let stored = |engine: &Engine| {
        let table = engine.database.table("d", "t").unwrap();
        let keys = table.def.keys.iter().map(|key| (key.name.clone(), key.id, key.root, key.born));
        (table.def.id, table.def.space, keys.collect::<Vec<_>>())
    };
    let before = stored(&engine);
    for alter in [
        "ALTER TABLE t ALTER INDEX a INVISIBLE",
        "ALTER TABLE t ALTER INDEX a VISIBLE, ALTER INDEX b INVISIBLE",
        "ALTER TABLE t ALTER INDEX b VISIBLE, COMMENT 'of the table'",
    ] {
        all(&mut root, &[alter]);
        assert_eq!(stored(&engine), before, "{alter}");
    }
    assert_eq!(one(&mut root, "SELECT COUNT(*) FROM t FORCE INDEX (b) WHERE b > 0"), "2");
    engine.finish();
}

fn examined(client: &mut Client) -> u64 {
    let sum = "SELECT COALESCE(SUM(SUM_ROWS_EXAMINED), 0) FROM \
               performance_schema.events_statements_summary_by_digest WHERE DIGEST_TEXT LIKE '%`looked_up`%' OR DIGEST_TEXT LIKE 'EXECUTE%'";
    one(client, sum).parse().unwrap()
}

// Breaks with: a plan that is kept is not made once more for a table that has another definition.
#[test]
fn prepared_statements_and_kept_plans_follow() {
    let (engine, mut root) = start();
    let mut other = engine.root();
    all(&mut root, &["CREATE TABLE looked_up (id INT PRIMARY KEY, a INT, KEY a (a))"]);
    let rows: Vec<String> = (0..200).map(|n| format!("({n}, {n})")).collect();
    all(&mut root, &[&format!("INSERT INTO looked_up VALUES {}", rows.join(", "))]);
    let statement = prepare(&mut root, "SELECT id FROM looked_up WHERE a = ?");
    all(&mut root, &["PREPARE s FROM 'SELECT id FROM looked_up WHERE a = 7'"]);
    let reads = |root: &mut Client, other: &mut Client| {
        let before = examined(other);
        let first = root.command(&execute(statement, &["7"]));
        assert_eq!(root.rows(&first).len(), 1);
        assert_eq!(one(root, "EXECUTE s"), "7");
        assert_eq!(one(root, "SELECT id FROM looked_up WHERE a = 7"), "7");
        examined(other) - before
    };
    for _ in 0..3 {
        assert_eq!(reads(&mut root, &mut other), 3);
    }
    all(&mut other, &["ALTER TABLE d.looked_up ALTER INDEX a INVISIBLE"]);
    for _ in 0..3 {
        assert_eq!(reads(&mut root, &mut other), 600);
    }
    all(&mut other, &["ALTER TABLE d.looked_up ALTER INDEX a VISIBLE"]);
    assert_eq!(reads(&mut root, &mut other), 3);
    engine.finish();
}

// Breaks with: an INVISIBLE index is left out of the choice for one table only.
#[test]
fn invisible_indexes_are_read_by_no_plan() {
    let (engine, mut root) = start();
    let create = "t (id INT PRIMARY KEY, a INT, b INT, c VARCHAR(99), KEY a (a), KEY b (b))";
    all(
        &mut root,
        &[&format!("CREATE TABLE {create}"), &format!("CREATE TEMPORARY TABLE temporary_{create}")],
    );
    all(&mut root, &["CREATE TABLE u (id INT PRIMARY KEY, a INT)"]);
    let rows: Vec<String> = (0..100).map(|n| format!("({n}, {n}, {n}, 'c')")).collect();
    for table in ["t", "temporary_t"] {
        all(&mut root, &[&format!("INSERT INTO {table} VALUES {}", rows.join(", "))]);
    }
    all(&mut root, &["INSERT INTO u VALUES (1, 1)", "ANALYZE TABLE t, u"]);
    let reading = [
        ("SELECT c FROM t WHERE a = 1", "a", 0),
        ("SELECT c FROM temporary_t WHERE a = 1", "a", 0),
        ("SELECT a FROM t", "a", 0),
        ("SELECT COUNT(*) FROM t", "a", 0),
        ("SELECT MAX(a) FROM t", "a", 0),
        ("SELECT MIN(a) FROM t", "a", 0),
        ("SELECT c FROM t ORDER BY a LIMIT 3", "a", 0),
        ("SELECT c FROM t WHERE a = 1 OR b = 2", "a,b", 0),
        ("SELECT t.c FROM u STRAIGHT_JOIN t ON t.a = u.a", "a", 1),
        ("SELECT t.c FROM u LEFT JOIN t ON t.a = u.a", "a", 1),
        ("UPDATE t SET c = 'd' WHERE a = 1", "a", 0),
        ("UPDATE u STRAIGHT_JOIN t ON t.a = u.a SET t.c = 'd'", "a", 1),
        ("DELETE FROM t WHERE a = 1", "a", 0),
        ("DELETE t FROM u STRAIGHT_JOIN t ON t.a = u.a", "a", 1),
    ];
    let keys = |root: &mut Client| reading.map(|(sql, _, at)| indexes(root, sql)[at].clone());
    let wanted = reading.map(|(_, key, _)| key.to_owned());
    assert_eq!(keys(&mut root), wanted);
    let alter = |root: &mut Client, word: &str| {
        for table in ["t", "temporary_t"] {
            all(root, &[&format!("ALTER TABLE {table} ALTER INDEX a {word}")]);
        }
    };
    alter(&mut root, "INVISIBLE");
    for ((sql, ..), key) in reading.iter().zip(keys(&mut root)) {
        assert!(!key.split(',').any(|key| key == "a"), "{sql}: {key}");
    }
    assert_eq!(code(&mut root, "SELECT * FROM temporary_t FORCE INDEX (a)"), 1176);
    alter(&mut root, "VISIBLE");
    assert_eq!(keys(&mut root), wanted);
    engine.finish();
}

// Breaks with: a file whose trees are ascending leaves without a word for a server that reads DESC.
#[test]
fn an_export_says_that_trees_are_ascending() {
    let (engine, mut root) = start();
    all(&mut root, &["CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, KEY a (a DESC), KEY b (b))"]);
    all(&mut root, &["FLUSH TABLES t FOR EXPORT"]);
    let warnings = root.run("SHOW WARNINGS").unwrap();
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    assert_eq!(warning[1].as_deref(), Some("1235"));
    assert!(warning[2].as_deref().unwrap().contains("key 'a' of table 't' is ascending"), "{warnings:?}");
    all(&mut root, &["UNLOCK TABLES"]);
    engine.finish();
}
