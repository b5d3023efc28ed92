//! What SHOW CREATE says of an expression makes the same table or view again: nested NOT around conditions of
//! every kind, in CHECK, generated columns, defaults, keys and views. What MySQL writes of them is in the
//! golden script `79_conditions_negated.test`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::engine::Engine;
use crate::support::{Client, all};

const CONDITIONS: [&str; 19] = [
    "c LIKE 'a%'",
    "c NOT LIKE 'a%'",
    "c NOT LIKE 'a|%' ESCAPE '|'",
    "c REGEXP 'a'",
    "c NOT REGEXP 'a'",
    "a IN (1, 2)",
    "a NOT IN (1, 2)",
    "a BETWEEN 1 AND b",
    "a NOT BETWEEN 1 AND b",
    "a IS NULL",
    "a IS NOT NULL",
    "a IS UNKNOWN",
    "a IS NOT UNKNOWN",
    "a IS TRUE",
    "a IS NOT FALSE",
    "a > b",
    "a <=> b",
    "a XOR b",
    "TRUE",
];

/// `_` is the condition.
const AROUND: [&str; 12] = [
    "_",
    "NOT (_)",
    "NOT (NOT (_))",
    "NOT (NOT (NOT (_)))",
    "(_) IS TRUE",
    "NOT ((_) IS NOT TRUE)",
    "NOT ((_) IS UNKNOWN)",
    "NOT (_ AND b = 1)",
    "NOT (NOT (_) OR b = 1)",
    "NOT (NOT (_) XOR b)",
    "b + (NOT (_)) = 1",
    "NOT CASE WHEN NOT (_) THEN 1 ELSE 0 END",
];

fn shown(client: &mut Client, sql: &str) -> String {
    client.run(sql).unwrap()[0][1].clone().unwrap_or_default()
}

/// The rows for which the definition says yes.
fn answers(client: &mut Client) -> Vec<Vec<Option<String>>> {
    client.run("SELECT y FROM d.v ORDER BY id").unwrap()
}

#[test]
fn what_is_shown_makes_the_same_again() {
    let engine = Engine::start();
    let mut root = engine.root();
    all(
        &mut root,
        &[
            "CREATE DATABASE d",
            "USE d",
            "CREATE TABLE rows_of (id INT PRIMARY KEY, a INT, b INT, c VARCHAR(9))",
            "INSERT INTO rows_of VALUES (1, 1, 1, 'abc'), (2, 0, 1, 'xyz'), (3, NULL, NULL, NULL), \
             (4, 5, 0, 'a|b')",
        ],
    );
    for around in AROUND {
        for condition in CONDITIONS {
            let said = around.replace('_', condition);
            let table = format!(
                "CREATE TABLE t (a INT, b INT, c VARCHAR(9), g INT AS ({said}), e INT DEFAULT ({said}), \
                 CHECK ({said}), KEY k (({said})))"
            );
            let view = format!("CREATE VIEW v AS SELECT id, ({said}) AS y FROM rows_of WHERE ({said}) OR 1");
            // MySQL does not take a constant as a key.
            let table =
                if condition == "TRUE" { table.replace(&format!(", KEY k (({said}))"), "") } else { table };
            root.run(&table).unwrap_or_else(|error| panic!("{table}: {error:?}"));
            root.run(&view).unwrap_or_else(|error| panic!("{view}: {error:?}"));
            let first = (shown(&mut root, "SHOW CREATE TABLE t"), shown(&mut root, "SHOW CREATE VIEW v"));
            let said_first = answers(&mut root);
            all(&mut root, &["DROP TABLE t", "DROP VIEW v", &first.0, &first.1]);
            let again = (shown(&mut root, "SHOW CREATE TABLE t"), shown(&mut root, "SHOW CREATE VIEW v"));
            assert_eq!(again, first, "{said}");
            let direct = root.run(&format!("SELECT ({said}) FROM rows_of ORDER BY id")).unwrap();
            assert_eq!(said_first, direct, "{said}");
            assert_eq!(answers(&mut root), direct, "{said} becomes {}", first.1);
            all(&mut root, &["DROP TABLE t", "DROP VIEW v"]);
        }
    }
    drop(root);
    engine.finish();
}
