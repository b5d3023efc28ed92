//! A condition is true for the same rows wherever it stands: in WHERE, behind an index, in the select list,
//! in ON and HAVING, over a view, a derived table and the inner side of a LEFT JOIN, and in subqueries whose
//! operands are the columns of the query around them. Columns of every type beside constants and columns of
//! every other: MySQL answers these alike, but where it is said.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::engine::Engine;
use crate::support::{Client, all};

/// A column: name, type, and its values in five rows.
type Column = (&'static str, &'static str, [&'static str; 5]);

const COLUMNS: [Column; 19] = [
    ("e", "ENUM('a','b','2','')", ["'a'", "'2'", "''", "'b'", "NULL"]),
    ("s", "SET('x','y','z')", ["'x'", "'x,z'", "''", "'y'", "NULL"]),
    ("b", "BIT(10)", ["1", "2", "1023", "0", "NULL"]),
    ("y", "YEAR", ["2024", "1999", "0", "2070", "NULL"]),
    ("d", "DATE", ["'2024-01-01'", "'1999-12-31'", "'2024-02-29'", "NULL", "'2000-01-01'"]),
    (
        "dt",
        "DATETIME(2)",
        [
            "'2024-01-01 10:00:00.25'",
            "'1999-12-31 23:59:59'",
            "'2024-02-29'",
            "NULL",
            "'2000-01-01 12:30:00'",
        ],
    ),
    (
        "ts",
        "TIMESTAMP NULL",
        ["'2024-01-01 10:00:00'", "'1999-12-31 23:59:59'", "'2024-02-29'", "NULL", "NULL"],
    ),
    ("tm", "TIME(1)", ["'10:00:00.5'", "'-01:30:00'", "'838:59:59'", "NULL", "'00:00:00'"]),
    ("j", "JSON", ["'1'", "'\"a\"'", "'{\"k\": [1, 2.0]}'", "'null'", "NULL"]),
    ("i", "INT", ["1", "-5", "0", "NULL", "2024"]),
    ("u", "BIGINT UNSIGNED", ["1", "18446744073709551615", "0", "NULL", "2024"]),
    ("dc", "DECIMAL(8,3)", ["1.5", "-2.25", "0", "NULL", "2024"]),
    ("f", "FLOAT", ["1.5", "0.1", "-3", "NULL", "2024"]),
    ("db", "DOUBLE", ["1.5", "1e10", "0", "NULL", "2024"]),
    ("z", "INT(6) ZEROFILL", ["7", "0", "999999", "NULL", "2024"]),
    ("v", "VARCHAR(20)", ["'a'", "'2024-01-01'", "''", "NULL", "'2024'"]),
    ("vb", "VARBINARY(20)", ["'a'", "'10:00:00'", "''", "NULL", "'2024'"]),
    ("ci", "VARCHAR(20) COLLATE utf8mb4_0900_ai_ci", ["'A'", "'b '", "''", "NULL", "'É'"]),
    ("l", "VARCHAR(20) CHARACTER SET latin1", ["'é'", "'a'", "''", "NULL", "'É'"]),
];

const CONSTANTS: [&str; 26] = [
    "1",
    "0",
    "2",
    "'a'",
    "'1'",
    "'abc'",
    "''",
    "2024",
    "'2024'",
    "24",
    "'24'",
    "20240101",
    "'2024-01-01'",
    "'10:00:00'",
    "100000",
    "DATE'2024-01-01'",
    "TIMESTAMP'2024-01-01 10:00:00'",
    "TIME'10:00:00'",
    "1.5",
    "1.5e0",
    "x'61'",
    "NULL",
    "CAST('1' AS JSON)",
    "'x,z'",
    "-5",
    "'É'",
];

/// `_` is a column.
const CONDITIONS: [&str; 26] = [
    "NOT _",
    "_ + 0 > 1",
    "-_ < 0",
    "_ & 1",
    "CONCAT(_) = 'a'",
    "HEX(_) = '61'",
    "LENGTH(_) > 3",
    "_ LIKE '2%'",
    "_ IN (1, 'a', 2024)",
    "_ IN (1, 2)",
    "_ IN ('a', '2024-01-01')",
    "_ BETWEEN 1 AND 3",
    "_ BETWEEN 'a' AND 'b'",
    "CASE _ WHEN 1 THEN 1 WHEN 'a' THEN 1 ELSE 0 END",
    "CASE _ WHEN 2 THEN 1 WHEN 2024 THEN 1 ELSE 0 END",
    "IF(_, 1, 0)",
    "COALESCE(_, 0) = 0",
    "GREATEST(_, 1) > 1",
    "FIELD(_, 1, 2)",
    "FIELD(_, 'a', 'b')",
    "_ IS TRUE",
    "ABS(_) > 1",
    "CAST(_ AS SIGNED) = 1",
    "_ DIV 1 = 2",
    "_ XOR 1",
    "a.j->'$' = _",
];

/// `{}` is the condition on `a`.
const FORMS: [(&str, &str); 11] = [
    ("where", "SELECT id FROM t a WHERE {} ORDER BY id"),
    ("index", "SELECT id FROM t_keys a WHERE {} ORDER BY id"),
    ("item", "SELECT id FROM (SELECT id, {} AS r FROM t a) q WHERE r ORDER BY id"),
    ("exists", "SELECT id FROM t a WHERE EXISTS (SELECT 1 FROM one WHERE {}) ORDER BY id"),
    ("scalar", "SELECT id FROM t a WHERE (SELECT {} FROM one) ORDER BY id"),
    ("derived", "SELECT id FROM (SELECT * FROM t LIMIT 100) a WHERE {} ORDER BY id"),
    ("view", "SELECT id FROM t_view a WHERE {} ORDER BY id"),
    ("left join", "SELECT a.id FROM one LEFT JOIN t a ON 1 WHERE {} ORDER BY a.id"),
    ("on", "SELECT a.id FROM one JOIN t a ON {} ORDER BY a.id"),
    ("having", "SELECT a.* FROM t a HAVING {} ORDER BY a.id"),
    ("group", "SELECT a.id FROM t a GROUP BY a.id HAVING MAX({}) ORDER BY a.id"),
];

/// The first column of what it answers, or the number of the error.
fn answer(client: &mut Client, sql: &str) -> Result<Vec<Option<String>>, u16> {
    match client.run(sql) {
        Ok(rows) => Ok(rows.into_iter().map(|mut row| row.swap_remove(0)).collect()),
        Err(_) => Err(crate::support::code(client, sql)),
    }
}

fn tables(client: &mut Client) {
    let list = |part: &dyn Fn(&Column) -> String| COLUMNS.iter().map(part).collect::<Vec<_>>().join(", ");
    let columns = list(&|(name, ty, _)| format!("{name} {ty}"));
    let with_key = |name: &&str| **name != *"j";
    let keys = COLUMNS.iter().map(|(name, ..)| *name).filter(with_key).map(|name| format!("KEY ({name})"));
    let keys = keys.collect::<Vec<_>>().join(", ");
    let rows: Vec<String> = (0..5)
        .map(|row| format!("({}, {})", row + 1, list(&|(.., values)| values[row].to_owned())))
        .collect();
    all(
        client,
        &[
            "CREATE DATABASE d",
            "USE d",
            "SET sql_mode = 'NO_ENGINE_SUBSTITUTION', time_zone = '+00:00'",
            &format!("CREATE TABLE t (id INT PRIMARY KEY, {columns})"),
            &format!("CREATE TABLE t_keys (id INT PRIMARY KEY, {columns}, {keys})"),
            &format!("INSERT INTO t VALUES {}", rows.join(", ")),
            "INSERT INTO t_keys SELECT * FROM t",
            "CREATE VIEW t_view AS SELECT * FROM t",
            "CREATE TABLE one (x INT)",
            "INSERT INTO one VALUES (1)",
        ],
    );
}

#[test]
fn a_condition_is_true_for_the_same_rows_wherever_it_stands() {
    let engine = Engine::start();
    let mut client = engine.root();
    tables(&mut client);
    let mut conditions = Vec::new();
    for (column, ..) in COLUMNS {
        for constant in CONSTANTS {
            conditions.extend(["=", "<", "<>"].map(|operator| format!("a.{column} {operator} {constant}")));
        }
        let column = format!("a.{column}");
        conditions.extend(CONDITIONS.map(|condition| condition.replace('_', &column)));
        conditions.extend(COLUMNS.map(|(other, ..)| format!("{column} = a.{other}")));
        conditions.extend(COLUMNS.map(|(other, ..)| format!("{column} < a.{other}")));
    }
    let mut differing = Vec::new();
    for condition in &conditions {
        let answers = FORMS.map(|(name, form)| (name, answer(&mut client, &form.replace("{}", condition))));
        let (_, of_where) = &answers[0];
        for (name, found) in &answers[1..] {
            if found != of_where {
                differing.push(format!("{condition}: {of_where:?} in WHERE, {found:?} by the form `{name}`"));
            }
        }
    }
    assert!(differing.is_empty(), "{} conditions:\n{}", conditions.len(), differing.join("\n"));
    drop(client);
    engine.finish();
}
