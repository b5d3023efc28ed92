//! Statements that once took hours, gigabytes or the process, and statements that once ran outside all
//! rules.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::Client;
use crate::support::engine::Engine;

fn start() -> (Engine, Client) {
    let engine = Engine::start();
    let mut root = engine.root();
    for statement in [
        "CREATE DATABASE d",
        "USE d",
        "CREATE TABLE t (id INT PRIMARY KEY, n DECIMAL(10,2), KEY (n))",
        "INSERT INTO t VALUES (1, 1.5), (2, 2.5), (3, NULL)",
    ] {
        root.run(statement).unwrap();
    }
    (engine, root)
}

/// The only value of a statement, or the number of its error.
fn value(client: &mut Client, sql: &str) -> Result<Option<String>, u16> {
    client.run(sql).map(|rows| rows[0][0].clone()).map_err(|error| error.0)
}

#[test]
fn numbers_of_any_size_take_no_time() {
    let (engine, mut root) = start();
    let nines = "9".repeat(65);
    for (sql, wanted) in [
        ("CAST('1e1000000000' AS DECIMAL)", Ok(Some("9999999999"))),
        ("CAST('-1e1000000000' AS DECIMAL(65))", Ok(Some(&*format!("-{nines}")))),
        ("CAST('1e-1000000000' AS DECIMAL(10,5))", Ok(Some("0.00000"))),
        ("'1e1000000000' DIV 1", Err(1690)),
        ("'1e1000000000' MOD 7 IS NULL", Ok(Some("0"))),
        ("LENGTH(FORMAT('1e999999999', 2))", Ok(Some("414"))),
        ("ROUND('1e999999999', 1000000000) IS NULL", Ok(Some("0"))),
        ("TRUNCATE(1.5, -1000000000)", Ok(Some("0"))),
        ("(SELECT COUNT(*) FROM t WHERE id = '1e999999999')", Ok(Some("0"))),
        ("(SELECT COUNT(*) FROM t WHERE n < '1e999999999')", Ok(Some("2"))),
        ("(SELECT COUNT(*) FROM t WHERE n BETWEEN '1e-999999999' AND '1e999999999')", Ok(Some("2"))),
        (&*format!("{nines} * {nines}"), Err(1690)),
    ] {
        let got = value(&mut root, &format!("SELECT {sql}"));
        assert_eq!(got, wanted.map(|text| text.map(str::to_owned)), "{}", &sql[..sql.len().min(60)]);
    }
    assert_eq!(root.run("INSERT INTO t VALUES (4, '1e999999999')").unwrap_err().0, 1264);
    root.run("INSERT INTO t VALUES (4, '1e-999999999')").unwrap();
    let digits = "7".repeat(10_000_000);
    assert_eq!(root.run(&format!("INSERT INTO t VALUES (5, {digits})")).unwrap_err().0, 1264);
    assert_eq!(value(&mut root, &format!("SELECT {digits} + 0.{digits}")), Err(1690));
    assert!(root.run(&format!("SELECT 1.5 / 0.{digits}")).is_ok());
    let product = vec![format!("1.{}", "1".repeat(30)); 1_000].join("*");
    assert!(root.run(&format!("SELECT {product}")).is_ok());
    // Names of columns are cut, as in MySQL, so the answer stays small.
    engine.finish();
}

#[test]
fn searching_is_linear() {
    let (engine, mut root) = start();
    for (sql, wanted) in [
        ("LOCATE(CONCAT(REPEAT('a', 10000000), 'b'), REPEAT('a', 30000000))", "0"),
        ("INSTR(REPEAT('a', 30000000), CONCAT(REPEAT('a', 10000000), 'b'))", "0"),
        ("LENGTH(REPLACE(REPEAT('a', 30000000), CONCAT(REPEAT('a', 10000000), 'b'), 'x'))", "30000000"),
        ("LENGTH(SUBSTRING_INDEX(REPEAT('a', 30000000), CONCAT(REPEAT('a', 10000000), 'b'), 2))", "30000000"),
        ("SUBSTRING_INDEX('a.b.c', '.', -2)", "b.c"),
        ("SUBSTRING_INDEX('a.b.c', '.', -4)", "a.b.c"),
        ("SUBSTRING_INDEX('a.b.c', '.', 2)", "a.b"),
        ("REPLACE('aXbXc', 'X', '--')", "a--b--c"),
        ("LOCATE('B', 'aXbXb', 4)", "5"),
    ] {
        assert_eq!(value(&mut root, &format!("SELECT {sql}")), Ok(Some(wanted.to_owned())), "{sql}");
    }
    engine.finish();
}

#[test]
fn texts_larger_than_a_packet_are_null_with_a_warning() {
    let (engine, mut root) = start();
    for (sql, name) in [
        ("REPLACE(REPEAT('a', 60000000), 'a', REPEAT('b', 60000000))", "replace"),
        ("CONCAT(REPEAT('a', 60000000), REPEAT('a', 60000000))", "concat"),
        ("CONCAT_WS(REPEAT('a', 60000000), 'x', 'y', 'z')", "concat_ws"),
        ("REPEAT('ab', 60000000)", "repeat"),
        ("REPEAT('ab', 9223372036854775807)", "repeat"),
        ("SPACE(4000000000)", "space"),
        ("LPAD('a', 9000000000000000000, 'xy')", "lpad"),
        ("RPAD('a', 4000000000, 'é')", "rpad"),
        ("INSERT(REPEAT('a', 60000000), 1, 0, REPEAT('b', 60000000))", "insert"),
        ("DATE_FORMAT('2024-09-03', CONCAT(REPEAT('x', 66000000), REPEAT('%r', 200000)))", "date_format"),
        ("QUOTE(REPEAT('''', 60000000))", "quote"),
        ("CAST('a' AS BINARY(4000000000))", "cast_as_binary"),
    ] {
        assert_eq!(value(&mut root, &format!("SELECT {sql} IS NULL")), Ok(Some("1".to_owned())), "{sql}");
        let warnings = root.run("SHOW WARNINGS").unwrap();
        let wanted = format!("Result of {name}() was larger than max_allowed_packet (67108864) - truncated");
        assert_eq!(warnings[0][1].as_deref(), Some("1301"), "{sql}");
        assert_eq!(warnings[0][2].as_deref(), Some(&*wanted), "{sql}");
    }
    engine.finish();
}

/// A short format makes a long text, and an interval may be a long text: neither takes memory that the
/// statement has not been granted.
#[test]
fn formats_and_intervals_stay_within_the_memory_of_a_statement() {
    let (engine, mut root) = start();
    root.run("SET untorn_statement_memory_limit = 40000000").unwrap();
    for (sql, wanted) in [
        ("LENGTH(DATE_FORMAT('2024-09-03', REPEAT('%r', 100000)))", Ok(Some("1100000"))),
        ("LENGTH(DATE_FORMAT('2024-09-03', REPEAT('%r', 4000000)))", Err(1041)),
        ("LENGTH(TIME_FORMAT('10:00:00', REPEAT('%r', 4000000)))", Err(1041)),
        ("LENGTH(FROM_UNIXTIME(0, REPEAT('%r', 4000000)))", Err(1041)),
        ("DATE_ADD('2024-01-01', INTERVAL REPEAT('1 ', 8000000) DAY_SECOND)", Ok(None)),
        (
            "DATE_ADD('2024-01-01', INTERVAL CONCAT(REPEAT(' ', 8000000), '1 2') DAY_HOUR)",
            Ok(Some("2024-01-02 02:00:00")),
        ),
    ] {
        let wanted = wanted.map(|text| text.map(str::to_owned));
        assert_eq!(value(&mut root, &format!("SELECT {sql}")), wanted, "{sql}");
    }
    root.run("SET max_execution_time = 1").unwrap();
    let slow = "SELECT LENGTH(DATE_FORMAT('2024-09-03', REPEAT('%v%u', 800000)))";
    assert_eq!(value(&mut root, slow), Err(3024));
    engine.finish();
}

#[test]
fn padding_of_bytes_that_are_no_characters() {
    let (engine, mut root) = start();
    for function in ["LPAD", "RPAD"] {
        assert_eq!(value(&mut root, &format!("SELECT {function}('a', 5, CAST(x'80' AS CHAR))")), Ok(None));
        assert_eq!(value(&mut root, &format!("SELECT {function}('a', 3, x'80')")), Err(3854));
        // Characters are counted, whatever they are filled up with.
        let padded = value(&mut root, &format!("SELECT {function}('ää', 3, x'41')"));
        assert_eq!(padded, Ok(Some(if function == "LPAD" { "Aää" } else { "ääA" }.to_owned())));
        assert_eq!(value(&mut root, &format!("SELECT {function}('abc', 2, '')")), Ok(Some("ab".to_owned())));
    }
    assert_eq!(value(&mut root, "SELECT LPAD('é', 4, 'äb')"), Ok(Some("äbäé".to_owned())));
    engine.finish();
}

#[test]
fn queries_in_set_and_do_are_statements_like_others() {
    let (engine, mut root) = start();
    for (sql, wanted) in [
        ("(SELECT SUM(id) FROM t)", Some("6")),
        ("(SELECT COUNT(*) FROM t) + (SELECT MAX(id) FROM t)", Some("6")),
        ("EXISTS (SELECT 1 FROM t)", Some("1")),
        ("3 IN (SELECT id FROM t)", Some("1")),
        ("(SELECT id FROM t WHERE id > 9)", None),
    ] {
        root.run(&format!("SET @x = {sql}")).unwrap();
        assert_eq!(value(&mut root, "SELECT @x"), Ok(wanted.map(str::to_owned)), "{sql}");
    }
    root.run("DO (SELECT COUNT(*) FROM t)").unwrap();
    root.run("SET SESSION sql_select_limit = (SELECT 7)").unwrap();
    assert_eq!(value(&mut root, "SELECT @@sql_select_limit"), Ok(Some("7".to_owned())));
    root.run("SET SESSION sql_select_limit = DEFAULT").unwrap();
    // What fails leaves nothing behind: no transaction, no row locks.
    let mut other = engine.root();
    other.run("USE d").unwrap();
    other.run("SET innodb_lock_wait_timeout = 1").unwrap();
    assert_eq!(root.run("SET @x = (SELECT id FROM t FOR UPDATE)").unwrap_err().0, 1242);
    other.run("UPDATE t SET n = 9 WHERE id = 1").unwrap();
    // In a transaction the locks stay until its end, as those of any statement.
    for statement in ["BEGIN", "SET @x = (SELECT id FROM t WHERE id = 1 FOR UPDATE)"] {
        root.run(statement).unwrap();
    }
    assert_eq!(other.run("UPDATE t SET n = 9 WHERE id = 1").unwrap_err().0, 1205);
    root.run("COMMIT").unwrap();
    // LOCK TABLES and privileges count.
    root.run("CREATE TABLE u (id INT PRIMARY KEY)").unwrap();
    root.run("LOCK TABLES u READ").unwrap();
    assert_eq!(root.run("SET @x = (SELECT COUNT(*) FROM t)").unwrap_err().0, 1100);
    root.run("UNLOCK TABLES").unwrap();
    root.run("CREATE USER app IDENTIFIED WITH mysql_native_password BY 'pw'").unwrap();
    let mut app = engine.login("app", "pw", None).ok().unwrap();
    assert_eq!(app.run("SET @x = (SELECT COUNT(*) FROM d.t)").unwrap_err().0, 1142);
    assert_eq!(app.run("DO (SELECT COUNT(*) FROM d.t)").unwrap_err().0, 1142);
    // A change of the table waits for the query, and is not met by it half done.
    for _ in 0..20 {
        other.run("DROP TABLE u").unwrap();
        other.run("CREATE TABLE u (id INT PRIMARY KEY)").unwrap();
        root.run("SET @x = (SELECT COUNT(*) FROM u)").unwrap();
    }
    engine.finish();
}

#[test]
fn named_statements_count_too() {
    let (engine, mut root) = start();
    root.run("SET GLOBAL max_prepared_stmt_count = 2").unwrap();
    for statement in ["PREPARE a FROM 'SELECT 1'", "PREPARE b FROM 'SELECT 2'", "PREPARE b FROM 'SELECT 3'"] {
        root.run(statement).unwrap();
    }
    assert_eq!(root.run("PREPARE c FROM 'SELECT 1'").unwrap_err().0, 1461);
    assert_eq!(value(&mut root, "EXECUTE b"), Ok(Some("3".to_owned())));
    root.run("DEALLOCATE PREPARE a").unwrap();
    root.run("PREPARE c FROM 'SELECT 1'").unwrap();
    drop(root);
    while !engine.server.server.connections.is_empty() {
        std::thread::yield_now();
    }
    let mut root = engine.root();
    root.run("PREPARE a FROM 'SELECT 1'").unwrap();
    engine.finish();
}
