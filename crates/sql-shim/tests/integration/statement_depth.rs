//! Statements as deep, as long and as wide as they are accepted, and deeper: a result or an error, never the
//! end of the process. The threads are the server's own, so this is also what its stack was measured by.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use sql::lexer::LexicalModes;
use sql::parser::{self, STACK_BYTES};

use crate::support::engine::Engine;
use crate::support::{Client, error_code};

/// Makes a statement of `n` levels or links.
type Make = fn(usize) -> String;

fn nest(before: &str, inside: &str, behind: &str, n: usize) -> String {
    format!("SELECT {}{inside}{}", before.repeat(n), behind.repeat(n))
}

/// Things that make a tree one level higher each.
const DEEP: &[(&str, Make)] = &[
    ("parentheses", |n| nest("(", "1", ")", n)),
    ("common tables that name the one before", |n| {
        let tables: Vec<String> = (1..n).map(|at| format!("t{at} AS (SELECT * FROM t{})", at - 1)).collect();
        format!(
            "WITH {} SELECT * FROM t{}",
            [vec!["t0 AS (SELECT 1 AS a)".to_owned()], tables].concat().join(", "),
            n - 1
        )
    }),
    ("correlated subqueries", |n| {
        let open = "SELECT 1 FROM t WHERE id IN (SELECT id FROM t x WHERE x.id = t.id AND EXISTS (";
        format!("{}SELECT 1{}", open.repeat(n), "))".repeat(n))
    }),
    ("parts of a UNION with LIMIT", |n| {
        format!("{}SELECT 1{}", "(".repeat(n), " LIMIT 1) UNION SELECT 2".repeat(n))
    }),
    ("minus", |n| nest("- ", "1", "", n)),
    ("NOT", |n| nest("NOT ", "1", "", n)),
    ("! and ~", |n| nest("!~", "1", "", n)),
    ("BINARY", |n| nest("BINARY ", "'a'", "", n)),
    ("IS NULL", |n| nest("", "1", " IS NULL", n)),
    ("IS NOT TRUE", |n| nest("", "1", " IS NOT TRUE", n)),
    ("COLLATE", |n| nest("", "'a'", " COLLATE utf8mb4_bin", n)),
    ("comparisons", |n| nest("", "1", " = 1", n)),
    ("XOR", |n| nest("", "1", " XOR 1", n)),
    ("intervals", |n| nest("", "NOW()", " + INTERVAL 1 SECOND", n)),
    ("operands on the right", |n| nest("1 + (", "1", ")", n)),
    ("powers climbing", |n| nest("1 | 1 & 1 << 1 + 1 * (", "1", ")", n)),
    ("BETWEEN", |n| nest("", "1", " BETWEEN 1 AND 1", n)),
    ("BETWEEN upwards", |n| nest("1 BETWEEN 0 AND ", "1", "", n)),
    ("IN", |n| nest("1 IN (", "1", ")", n)),
    ("rows", |n| nest("(1, ", "1", ") = (1, 1)", n)),
    ("LIKE", |n| nest("'a' LIKE (", "'a'", ")", n)),
    ("CASE", |n| nest("CASE WHEN 1 THEN ", "1", " END", n)),
    ("CASE conditions", |n| nest("CASE WHEN ", "1", " THEN 1 END", n)),
    ("IF", |n| nest("IF(1, ", "1", ", 0)", n)),
    ("COALESCE", |n| nest("COALESCE(", "1", ")", n)),
    ("functions", |n| nest("ABS(", "1", ")", n)),
    ("CAST", |n| nest("CAST(", "1", " AS SIGNED)", n)),
    ("TRIM", |n| nest("TRIM(LEADING 'x' FROM ", "'a'", ")", n)),
    ("aggregates' arguments", |n| format!("SELECT MAX({}1{}) FROM t", "ABS(".repeat(n), ")".repeat(n))),
    ("assignments", |n| nest("@a := ", "1", "", n)),
    ("scalar subqueries", |n| nest("(SELECT ", "1", ")", n)),
    ("EXISTS", |n| nest("EXISTS (SELECT ", "1", ")", n)),
    ("IN subqueries", |n| nest("1 IN (SELECT ", "1", ")", n)),
    ("= ANY", |n| nest("1 = ANY (SELECT ", "1", ")", n)),
    ("parts of a UNION", |n| format!("{}SELECT 1{}", "(".repeat(n), " UNION SELECT 2)".repeat(n))),
    ("derived tables", |n| {
        format!(
            "SELECT * FROM {}t{}",
            "(SELECT * FROM ".repeat(n),
            (0..n).map(|at| format!(") d{at}")).collect::<String>()
        )
    }),
    ("tables in parentheses", |n| format!("SELECT * FROM {}t{}", "(".repeat(n), ")".repeat(n))),
    ("joins", |n| {
        let more: String = (1..=n).map(|at| format!(" JOIN t AS t{at} ON t{at}.id = t.id")).collect();
        format!("SELECT COUNT(*) FROM t{more} WHERE t.id < 0")
    }),
    ("tables with commas", |n| {
        let more: String = (1..=n).map(|at| format!(", t AS t{at}")).collect();
        format!("SELECT COUNT(*) FROM t{more} WHERE t.id < 0")
    }),
    ("ORDER BY an alias", |n| {
        format!(
            "SELECT {}id{} AS a FROM t ORDER BY {}a{}",
            "ABS(".repeat(n),
            ")".repeat(n),
            "ABS(".repeat(n),
            ")".repeat(n)
        )
    }),
    ("everything together", |n| {
        let before = "(SELECT MAX(d.a) FROM (SELECT CASE WHEN 1 = ABS(1) THEN IF(1, ";
        nest(before, "1", ", 2) END a) d)", n)
    }),
    ("UPDATE", |n| format!("UPDATE t SET id = {}id{} WHERE id < 0", "ABS(".repeat(n), ")".repeat(n))),
    ("INSERT", |n| {
        format!(
            "INSERT INTO t VALUES ({}1{}) ON DUPLICATE KEY UPDATE id = {}1{}",
            "ABS(".repeat(n),
            ")".repeat(n),
            "ABS(".repeat(n),
            ")".repeat(n)
        )
    }),
    ("SET", |n| format!("SET @v = {}1{}", "(SELECT ".repeat(n), ")".repeat(n))),
];

/// Things of which there may be any number.
const LONG: &[(&str, Make, &str)] = &[
    ("sums", |n| format!("SELECT {}", vec!["1"; n].join("+")), "20000"),
    ("differences", |n| format!("SELECT 50000-{}", vec!["1"; n].join("-")), "30000"),
    ("products and sums", |n| format!("SELECT {}", vec!["1*1"; n].join("+")), "20000"),
    ("bits", |n| format!("SELECT {}", vec!["1"; n].join("|")), "1"),
    ("exact sums", |n| format!("SELECT {}", vec!["0.5"; n].join("+")), "10000.0"),
    ("AND", |n| format!("SELECT {}", vec!["1"; n].join(" AND ")), "1"),
    ("OR", |n| format!("SELECT {}", vec!["0"; n].join(" OR ")), "0"),
    ("||", |n| format!("SELECT {}", vec!["0"; n].join("||")), "0"),
    (
        "comparisons joined by OR",
        |n| {
            let one = |at| format!("(id = {at} AND id > 0)");
            format!("SELECT COUNT(*) FROM t WHERE {}", (0..n).map(one).collect::<Vec<_>>().join(" OR "))
        },
        "3",
    ),
    (
        "ranges",
        |n| {
            let one = |at| format!("id = {at}");
            format!("SELECT COUNT(*) FROM t WHERE {}", (0..n).map(one).collect::<Vec<_>>().join(" OR "))
        },
        "3",
    ),
    (
        "conditions",
        |n| {
            let one = |at| format!("id <> {}", at + 10);
            format!("SELECT COUNT(*) FROM t WHERE {}", (0..n).map(one).collect::<Vec<_>>().join(" AND "))
        },
        "3",
    ),
    (
        "an IN list",
        |n| {
            format!(
                "SELECT COUNT(*) FROM t WHERE id IN ({})",
                (0..n).map(|at| at.to_string()).collect::<Vec<_>>().join(",")
            )
        },
        "3",
    ),
    ("hexadecimal literals", |n| format!("SELECT 49 IN ({})", vec!["0x31"; n].join(",")), "1"),
    ("WHEN", |n| format!("SELECT CASE {} ELSE 7 END", "WHEN 0 THEN 1 ".repeat(n)), "7"),
    ("COALESCE", |n| format!("SELECT COALESCE({}, 7)", vec!["NULL"; n].join(",")), "7"),
];

fn with_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work).unwrap().join().unwrap()
}

fn accepted(sql: &str) -> bool {
    match parser::parse(sql.as_bytes(), LexicalModes::default()) {
        Ok(parsed) => {
            // Copies are made and dropped by planning and by prepared statements.
            let copy = parsed.statement.clone();
            assert_eq!(copy, parsed.statement);
            true
        }
        Err(error) => {
            assert!([1436, 1116].contains(&error.code), "{error}");
            false
        }
    }
}

/// The deepest that the parser takes.
fn deepest(make: Make) -> usize {
    with_stack(move || {
        let (mut least, mut most) = (1, 4_000);
        assert!(accepted(&make(least)) && !accepted(&make(most)), "{}", &make(1));
        while most - least > 1 {
            let middle = (least + most) / 2;
            if accepted(&make(middle)) { least = middle } else { most = middle }
        }
        least
    })
}

fn start() -> (Engine, Client) {
    let engine = Engine::start();
    let mut root = engine.root();
    for statement in [
        "CREATE DATABASE d",
        "USE d",
        "CREATE TABLE t (id INT PRIMARY KEY)",
        "INSERT INTO t VALUES (1), (2), (3)",
    ] {
        root.run(statement).unwrap();
    }
    (engine, root)
}

#[test]
fn the_deepest_statements_are_executed_and_deeper_ones_refused() {
    let (engine, mut root) = start();
    for (what, make) in DEEP {
        let n = deepest(*make);
        assert!(n >= 25, "{what}: only {n} levels");
        let sql = make(n);
        // Errors of its own are fine (a column count, an outer join): that it comes back is what counts.
        let outcome = root.run(&sql);
        println!("{what}: {n} levels, {} bytes, {:?}", sql.len(), outcome.as_ref().map(Vec::len));
        assert!(outcome.as_ref().map_or_else(|error| error.0 != 1436, |_| true), "{what}: {outcome:?}");
        let _ = root.run(&format!("EXPLAIN {sql}"));
        // As a prepared statement: planned, kept, dropped.
        let prepared = root.command(&[&[0x16], sql.as_bytes()].concat());
        drop(prepared);
        let mut other = engine.root();
        other.run("USE d").unwrap();
        for n in [n + 1, 3 * n, 20_000] {
            let code = other.run(&make(n)).map_or_else(|error| error.0, |_| 0);
            assert!([1436, 1116].contains(&code), "{what} of {n}: {code}");
            // Half of it, then nonsense: what was built is dropped.
            let sql = make(n);
            let cut =
                (sql.len() * 2 / 3..sql.len()).find(|at| sql.is_char_boundary(*at)).unwrap_or(sql.len());
            let code = other.run(&format!("{} ] ]", &sql[..cut])).map_or_else(|error| error.0, |_| 0);
            assert_ne!(code, 0, "{what} of {n}, cut");
        }
        root = other;
    }
    engine.finish();
}

#[test]
fn chains_may_be_long() {
    let (engine, mut root) = start();
    for (what, make, wanted) in LONG {
        let rows = root.run(&make(20_000)).unwrap_or_else(|error| panic!("{what}: {error:?}"));
        assert_eq!(rows[0][0].as_deref(), Some(*wanted), "{what}");
    }
    assert_eq!(
        root.run(&format!("SELECT {}", vec!["1"; 100_000].join("+"))).unwrap()[0][0].as_deref(),
        Some("100000")
    );
    let unions = vec!["SELECT 1"; 2_000];
    assert_eq!(root.run(&unions.join(" UNION ALL ")).unwrap().len(), 2_000);
    assert_eq!(root.run(&unions.join(" UNION ")).unwrap().len(), 1);
    engine.finish();
}

#[test]
fn names_and_tables_have_limits() {
    let (engine, mut root) = start();
    let long = "n".repeat(65);
    for statement in [
        format!("SELECT * FROM {long}.t"),
        format!("SELECT * FROM d.{long}"),
        format!("USE {long}"),
        format!("CREATE DATABASE {long}"),
        format!("GRANT SELECT ON {long}.* TO root@localhost"),
        format!("DROP TABLE {long}"),
    ] {
        assert_eq!(root.run(&statement).unwrap_err().0, 1059, "{statement}");
    }
    let joined = |n: usize| {
        let tables: Vec<String> = (0..n).map(|at| format!("t AS t{at}")).collect();
        format!("SELECT 1 FROM {} WHERE t0.id < 0", tables.join(" JOIN "))
    };
    assert!(root.run(&joined(61)).is_ok());
    assert_eq!(root.run(&joined(62)).unwrap_err().0, 1116);
    engine.finish();
}

/// A statement that runs itself would never end.
#[test]
fn prepared_statements_do_not_run_prepared_statements() {
    let (engine, mut root) = start();
    for inner in ["EXECUTE a", "PREPARE b FROM \'SELECT 1\'", "DEALLOCATE PREPARE a"] {
        let inner = inner.replace('\'', "''");
        assert_eq!(root.run(&format!("PREPARE a FROM '{inner}'")).unwrap_err().0, 1295, "{inner}");
        assert_eq!(root.run("EXECUTE a").unwrap_err().0, 1243);
    }
    let reply = root.command(b"\x16EXECUTE a");
    assert_eq!(error_code(&reply), 1295);
    engine.finish();
}
