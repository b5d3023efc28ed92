//! Temporary tables and CREATE TABLE … SELECT: whose they are, and that nothing is left of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::engine::Engine;
use crate::support::{Client, all};

const RESET_CONNECTION: u8 = 0x1f;

fn column(client: &mut Client, sql: &str) -> Vec<String> {
    let rows = client.run(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    rows.into_iter().map(|row| row[0].clone().unwrap_or_default()).collect()
}

fn private(engine: &Engine) -> Vec<String> {
    engine.database.private_databases()
}

#[test]
fn a_temporary_table_is_its_sessions_and_ends_with_it() {
    let engine = Engine::start();
    let (mut one, mut other) = (engine.root(), engine.root());
    all(
        &mut one,
        &[
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT)",
            "INSERT INTO d.t VALUES (1)",
            "CREATE TEMPORARY TABLE d.t (a INT)",
            "INSERT INTO d.t VALUES (2), (3)",
        ],
    );
    all(&mut other, &["CREATE TEMPORARY TABLE d.t (a INT)"]);
    assert_eq!(column(&mut one, "SELECT a FROM d.t"), ["2", "3"]);
    assert_eq!(column(&mut other, "SELECT COUNT(*) FROM d.t"), ["0"]);
    assert_eq!(private(&engine).len(), 2);
    assert_eq!(column(&mut one, "SHOW DATABASES LIKE '#sql%'"), [""; 0]);
    assert_eq!(one.command(&[RESET_CONNECTION]).first(), Some(&0));
    assert_eq!(column(&mut one, "SELECT a FROM d.t"), ["1"]);
    assert_eq!(private(&engine).len(), 1);
    drop(other);
    while !private(&engine).is_empty() {
        std::thread::yield_now();
    }
    engine.finish();
}

#[test]
fn what_a_crash_has_left_is_dropped() {
    let engine = Engine::start();
    let mut client = engine.root();
    all(&mut client, &["CREATE DATABASE d", "CREATE TABLE d.t (a INT)"]);
    let left = [untorn::private::TEMPORARY, untorn::private::PREFIX].map(|prefix| format!("{prefix}77-0"));
    untorn::engine::block_on(async {
        for name in &left {
            engine.database.create_database(name, untorn::types::Collation::Utf8mb4Bin).await.unwrap();
        }
        assert_eq!(private(&engine).len(), 2);
        engine.database.drop_private().await.unwrap();
    });
    assert_eq!(private(&engine), [""; 0]);
    assert_eq!(column(&mut client, "SHOW TABLES IN d"), ["t"]);
    engine.finish();
}

#[test]
fn a_table_of_a_query_that_fails_leaves_nothing() {
    let engine = Engine::start();
    let mut client = engine.root();
    all(&mut client, &["CREATE DATABASE d", "CREATE TABLE d.t (a INT)", "INSERT INTO d.t VALUES (1), (1)"]);
    let failed = client.run("CREATE TABLE d.u (PRIMARY KEY (a)) SELECT a FROM d.t");
    assert_eq!(failed.unwrap_err().1, "Duplicate entry '1' for key 'u.PRIMARY'");
    let failed = client.run("CREATE TEMPORARY TABLE d.u (PRIMARY KEY (a)) SELECT a FROM d.t");
    assert_eq!(failed.unwrap_err().0, 1062);
    assert_eq!(column(&mut client, "SHOW TABLES IN d"), ["t"]);
    assert_eq!(private(&engine), [""; 0]);
    all(&mut client, &["CREATE TABLE d.u SELECT a FROM d.t"]);
    assert_eq!(private(&engine), [""; 0]);
    assert_eq!(column(&mut client, "SELECT COUNT(*) FROM d.u"), ["2"]);
    engine.finish();
}

/// The rows of a dropped one may still have to be rolled back.
#[test]
fn a_temporary_table_is_dropped_in_the_transaction_that_changed_it() {
    let engine = Engine::start();
    let mut client = engine.root();
    all(
        &mut client,
        &[
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT PRIMARY KEY)",
            "INSERT INTO d.t VALUES (1)",
            "BEGIN",
            "SELECT * FROM d.t",
            "CREATE TEMPORARY TABLE d.x SELECT a + 1 AS a FROM d.t",
            "INSERT INTO d.t SELECT a FROM d.x",
            "DROP TEMPORARY TABLE d.x",
            "CREATE TEMPORARY TABLE d.x (b INT)",
            "INSERT INTO d.x VALUES (7)",
        ],
    );
    // Made after the snapshot, and read all the same.
    assert_eq!(column(&mut client, "SELECT b FROM d.x"), ["7"]);
    assert_eq!(private(&engine).len(), 2);
    all(&mut client, &["ROLLBACK"]);
    assert_eq!(private(&engine).len(), 1);
    assert_eq!(column(&mut client, "SELECT COUNT(*) FROM d.x"), ["0"]);
    assert_eq!(column(&mut client, "SELECT a FROM d.t"), ["1"]);
    engine.finish();
}

#[test]
fn privileges_of_temporary_tables() {
    let engine = Engine::start();
    let mut root = engine.root();
    all(
        &mut root,
        &[
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT)",
            "CREATE USER u@'%' IDENTIFIED WITH mysql_native_password BY 'p'",
            "GRANT SELECT ON d.t TO u@'%'",
        ],
    );
    let mut user = engine.login("u", "p", Some("d")).unwrap();
    assert_eq!(user.run("CREATE TEMPORARY TABLE x (a INT)").unwrap_err().0, 1044);
    all(&mut root, &["GRANT CREATE TEMPORARY TABLES ON d.* TO u@'%'"]);
    all(
        &mut user,
        &[
            "CREATE TEMPORARY TABLE x (a INT)",
            "INSERT INTO x VALUES (1)",
            "UPDATE x JOIN t ON FALSE SET x.a = 2",
            "DELETE FROM x",
            "CREATE TEMPORARY TABLE t (a INT)",
            "INSERT INTO t VALUES (1)",
            "ALTER TABLE x ADD COLUMN b INT",
        ],
    );
    // A temporary table of that name gives no right to another one.
    assert_eq!(user.run("CREATE TABLE x (a INT)").unwrap_err().0, 1142);
    assert_eq!(user.run("CREATE TABLE x SELECT 1").unwrap_err().0, 1142);
    assert_eq!(user.run("RENAME TABLE t TO y").unwrap_err().0, 1142);
    all(&mut user, &["DROP TABLE t, x"]);
    assert_eq!(user.run("DROP TABLE t").unwrap_err().0, 1142);
    engine.finish();
}
