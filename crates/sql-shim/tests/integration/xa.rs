//! XA between sessions, over connections that end, and over restarts. What one session alone is answered is
//! in the golden scripts; what is answered here is what MySQL 9.7 answers.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::future::Future;
use std::task::{Context, Waker};

use untorn::engine::{Durability, Xid};

use crate::support::engine::Engine;
use crate::support::{Client, all, code, one};

fn start() -> (Engine, Client, Client) {
    let engine = Engine::start();
    let (mut one, mut other) = (engine.root(), engine.root());
    all(
        &mut one,
        &[
            "CREATE DATABASE d",
            "CREATE TABLE d.t (id INT PRIMARY KEY, n INT, KEY (n))",
            "INSERT INTO d.t VALUES (1, 10), (2, 20), (3, 30)",
            "SET innodb_lock_wait_timeout = 1, lock_wait_timeout = 1",
        ],
    );
    all(&mut other, &["SET innodb_lock_wait_timeout = 1, lock_wait_timeout = 1"]);
    (engine, one, other)
}

fn prepare(client: &mut Client, name: &str, changes: &[&str]) {
    all(client, &[&format!("XA START '{name}'")]);
    all(client, changes);
    all(client, &[&format!("XA END '{name}'"), &format!("XA PREPARE '{name}'")]);
}

fn names(client: &mut Client) -> Vec<String> {
    let rows = client.run("XA RECOVER").unwrap();
    rows.into_iter().map(|mut row| row.pop().unwrap().unwrap()).collect()
}

fn rows(client: &mut Client) -> String {
    one(client, "SELECT GROUP_CONCAT(id, ':', n ORDER BY id) FROM d.t")
}

#[test]
fn a_prepared_transaction_is_no_sessions_and_keeps_its_locks() {
    let (engine, mut a, mut b) = start();
    prepare(&mut a, "x", &["UPDATE d.t SET n = 11 WHERE id = 1", "INSERT INTO d.t VALUES (4, 40)"]);
    drop(a);
    assert_eq!(names(&mut b), ["x"]);
    assert_eq!(rows(&mut b), "1:10,2:20,3:30");
    for waits in [
        "UPDATE d.t SET n = 0 WHERE id = 1",
        "SELECT * FROM d.t WHERE id = 1 FOR SHARE",
        "SELECT * FROM d.t WHERE n = 10 FOR UPDATE",
        "INSERT INTO d.t VALUES (4, 0)",
        "DROP TABLE d.t",
        "ALTER TABLE d.t ADD m INT",
        "TRUNCATE d.t",
        "LOCK TABLES d.t WRITE",
        "DROP DATABASE d",
    ] {
        assert_eq!(code(&mut b, waits), 1205, "{waits}");
    }
    assert_eq!(code(&mut b, "XA START 'x'"), 1440);
    all(&mut b, &["UPDATE d.t SET n = 21 WHERE id = 2", "XA COMMIT 'x'"]);
    assert_eq!(rows(&mut b), "1:11,2:21,3:30,4:40");
    assert_eq!(code(&mut b, "XA COMMIT 'x'"), 1397);
    // The name is free at once, and the table.
    prepare(&mut b, "x", &["DELETE FROM d.t"]);
    all(&mut b, &["XA ROLLBACK 'x'", "ALTER TABLE d.t ADD m INT", "DROP TABLE d.t"]);
    engine.finish();
}

#[test]
fn prepared_transactions_are_there_after_a_restart_with_what_they_hold() {
    let (engine, mut a, mut b) = start();
    prepare(&mut a, "kept", &["UPDATE d.t SET n = 11 WHERE id = 1", "DELETE FROM d.t WHERE id = 3"]);
    prepare(&mut a, "empty", &["SELECT * FROM d.t"]);
    all(&mut b, &["XA START 'idle'", "INSERT INTO d.t VALUES (5, 50)", "XA END 'idle'"]);
    drop((a, b));
    let directory = engine.stop();
    let engine = Engine::open(&directory);
    let report = engine.database.report();
    assert_eq!((report.prepared, report.rolled_back), (2, 0));
    assert!(report.to_string().contains("2 prepared transactions found"), "{report}");
    let mut a = engine.root();
    all(&mut a, &["SET innodb_lock_wait_timeout = 1, lock_wait_timeout = 1"]);
    assert_eq!(names(&mut a), ["empty", "kept"]);
    assert_eq!(rows(&mut a), "1:10,2:20,3:30");
    assert_eq!(code(&mut a, "UPDATE d.t SET n = 0 WHERE id = 3"), 1205);
    assert_eq!(code(&mut a, "SELECT * FROM d.t WHERE n = 10 FOR UPDATE"), 1205);
    assert_eq!(code(&mut a, "DROP TABLE d.t"), 1205);
    assert_eq!(code(&mut a, "XA START 'kept'"), 1440);
    all(&mut a, &["UPDATE d.t SET n = 22 WHERE id = 2", "XA COMMIT 'empty'"]);
    drop(a);
    // A second time, and then the other end.
    let directory = engine.stop();
    let engine = Engine::open(&directory);
    let mut a = engine.root();
    assert_eq!(names(&mut a), ["kept"]);
    all(&mut a, &["XA COMMIT 'kept'"]);
    assert_eq!(rows(&mut a), "1:11,2:22");
    all(&mut a, &["DROP TABLE d.t"]);
    engine.finish();
}

#[test]
fn a_rollback_after_a_restart_undoes_everything() {
    let (engine, mut a, b) = start();
    let many = "INSERT INTO d.t WITH RECURSIVE s (i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM s WHERE i < 900) \
                SELECT i, i FROM s";
    prepare(
        &mut a,
        "x",
        &[
            many,
            "SAVEPOINT s",
            "DELETE FROM d.t WHERE id = 3",
            "ROLLBACK TO s",
            "DELETE FROM d.t WHERE id = 2",
        ],
    );
    drop((a, b));
    let directory = engine.stop();
    let engine = Engine::open(&directory);
    let mut a = engine.root();
    assert_eq!(one(&mut a, "SELECT COUNT(*) FROM d.t"), "3");
    all(&mut a, &["XA ROLLBACK 'x'"]);
    assert_eq!(rows(&mut a), "1:10,2:20,3:30");
    assert_eq!(a.run("CHECK TABLE d.t").unwrap()[0][3].as_deref(), Some("OK"));
    drop(a);
    let directory = engine.stop();
    let engine = Engine::open(&directory);
    assert_eq!(engine.database.report().prepared, 0);
    engine.finish();
}

#[test]
fn what_is_not_prepared_ends_with_its_session() {
    let (engine, a, mut b) = start();
    let mut clients = vec![a];
    for end in ["", "XA END 'x'"] {
        let mut a = clients.pop().unwrap();
        all(&mut a, &["XA START 'x'", "UPDATE d.t SET n = 99"]);
        if !end.is_empty() {
            all(&mut a, &[end]);
        }
        assert_eq!(code(&mut b, "XA START 'x'"), 1440, "another session has the name");
        assert_eq!(code(&mut b, "XA COMMIT 'x'"), 1397);
        assert_eq!(code(&mut b, "XA ROLLBACK 'x'"), 1397);
        let id = a.connection_id();
        drop(a);
        while engine.server.server.connections.get(id).is_some() {
            std::thread::yield_now();
        }
        assert_eq!(rows(&mut b), "1:10,2:20,3:30");
        all(&mut b, &["XA START 'x'", "XA END 'x'", "XA ROLLBACK 'x'"]);
        clients.push(engine.root());
    }
    // COM_RESET_CONNECTION is the end of a session, too.
    let mut a = clients.pop().unwrap();
    all(&mut a, &["XA START 'x'", "UPDATE d.t SET n = 99"]);
    assert_eq!(a.command(b"\x1f")[0], 0);
    all(&mut a, &["XA START 'x'", "XA END 'x'"]);
    let id = a.connection_id();
    all(&mut b, &[&format!("KILL {id}")]);
    while engine.server.server.connections.get(id).is_some() {
        std::thread::yield_now();
    }
    all(&mut b, &["XA START 'x'", "XA END 'x'", "XA ROLLBACK 'x'", "UPDATE d.t SET n = 5 WHERE id = 1"]);
    engine.finish();
}

/// Makes `a` the victim of a deadlock with `b` inside the XA transaction 'dl'.
fn deadlock(engine: &Engine, a: &mut Client, b: &mut Client) {
    all(a, &["SET innodb_lock_wait_timeout = 20", "XA START 'dl'", "UPDATE d.t SET n = 0 WHERE id = 1"]);
    all(b, &["SET innodb_lock_wait_timeout = 20", "BEGIN", "INSERT INTO d.t VALUES (7, 7), (8, 8), (9, 9)"]);
    all(b, &["UPDATE d.t SET n = 0 WHERE id = 2"]);
    engine.send_and_wait_for_row(b, "UPDATE d.t SET n = 0 WHERE id = 1");
    assert_eq!(code(a, "UPDATE d.t SET n = 0 WHERE id = 2"), 1213);
    b.answer().unwrap();
    all(b, &["ROLLBACK"]);
}

#[test]
fn a_deadlock_leaves_nothing_but_a_rollback() {
    let (engine, mut a, mut b) = start();
    deadlock(&engine, &mut a, &mut b);
    // At first the state is the one before.
    assert_eq!(code(&mut a, "XA ROLLBACK 'dl'"), 1399);
    assert_eq!(code(&mut a, "XA START 'dl' RESUME"), 1398);
    assert_eq!(code(&mut a, "XA END 'other'"), 1397);
    assert_eq!(code(&mut a, "XA END 'dl'"), 1614);
    assert_eq!(code(&mut a, "XA END 'dl'"), 1614);
    for (statement, refused) in [
        ("SELECT * FROM d.t", 1614),
        ("INSERT INTO d.t VALUES (5, 5)", 1614),
        ("SHOW TABLES FROM d", 1614),
        ("COMMIT", 1399),
        ("ROLLBACK", 1399),
        ("BEGIN", 1399),
        ("DROP TABLE d.t", 1399),
        ("XA START 'dl'", 1399),
        ("XA PREPARE 'dl'", 1399),
        ("XA ROLLBACK 'other'", 1399),
        ("XA COMMIT 'other'", 1399),
        ("ROLLBACK TO s", 1305),
    ] {
        assert_eq!(code(&mut a, statement), refused, "{statement}");
    }
    all(&mut a, &["SELECT 1", "SET @x = 1", "SAVEPOINT s", "XA ROLLBACK 'dl'"]);
    assert_eq!(code(&mut a, "XA ROLLBACK 'dl'"), 1397);
    // COMMIT says once more what has happened, and ends it.
    for commit in ["XA COMMIT 'dl'", "XA COMMIT 'dl' ONE PHASE"] {
        deadlock(&engine, &mut a, &mut b);
        assert_eq!(code(&mut a, commit), 1614);
        assert_eq!(code(&mut a, "XA END 'dl'"), 1399);
    }
    assert_eq!(rows(&mut a), "1:10,2:20,3:30");
    engine.finish();
}

#[test]
fn a_table_flushed_for_export_is_work_outside() {
    let (engine, mut a, _) = start();
    all(&mut a, &["FLUSH TABLES d.t FOR EXPORT"]);
    assert_eq!(code(&mut a, "XA START 'x'"), 1400);
    all(&mut a, &["UNLOCK TABLES", "XA START 'x'", "XA END 'x'", "XA ROLLBACK 'x'"]);
    engine.finish();
}

#[test]
fn a_statement_that_fails_or_waits_too_long_leaves_the_transaction() {
    let (engine, mut a, mut b) = start();
    all(&mut b, &["BEGIN", "UPDATE d.t SET n = 0 WHERE id = 1"]);
    all(&mut a, &["XA START 'x'", "INSERT INTO d.t VALUES (4, 40)"]);
    assert_eq!(code(&mut a, "UPDATE d.t SET n = 1 WHERE id = 1"), 1205);
    assert_eq!(code(&mut a, "INSERT INTO d.t VALUES (5, 50), (4, 0)"), 1062);
    all(&mut a, &["XA END 'x'", "XA PREPARE 'x'"]);
    all(&mut b, &["ROLLBACK", "XA COMMIT 'x'"]);
    assert_eq!(rows(&mut b), "1:10,2:20,3:30,4:40");
    engine.finish();
}

#[test]
fn two_sessions_that_commit_the_same_do_so_once() {
    let (engine, mut a, mut b) = start();
    for round in 0..20 {
        prepare(&mut a, "x", &["UPDATE d.t SET n = n + 1 WHERE id = 1"]);
        for client in [&mut a, &mut b] {
            client.sequence = 0;
            client.send(b"\x03XA COMMIT 'x'");
        }
        let answers = [a.answer(), b.answer()].map(|answer| answer.map_err(|(code, _)| code).err());
        assert!(matches!(answers, [None, Some(1397)] | [Some(1397), None]), "{round}: {answers:?}");
    }
    assert_eq!(rows(&mut a), "1:30,2:20,3:30");
    engine.finish();
}

/// A wait for one that another session is ending, which takes long, ends by a KILL or by its timeout, and the
/// other goes on.
#[test]
fn a_wait_for_one_that_is_being_ended_is_killed_or_times_out() {
    let (engine, mut a, mut b) = start();
    let (xid, mut context) = (Xid::new(1, b"x", b"").unwrap(), Context::from_waker(Waker::noop()));
    let end = loop {
        prepare(&mut a, "x", &["UPDATE d.t SET n = 11 WHERE id = 1"]);
        let mut end = Box::pin(engine.database.commit_prepared(&xid, Durability::Sync));
        // Begun and left there, unless there was nothing to wait for.
        if end.as_mut().poll(&mut context).is_pending() {
            break end;
        }
    };
    assert_eq!(code(&mut a, "XA ROLLBACK 'x'"), 1205);
    for sql in ["XA COMMIT 'x'", "XA ROLLBACK 'x'"] {
        all(&mut b, &["SET innodb_lock_wait_timeout = 3600"]);
        b.sequence = 0;
        b.send(&[&[3], sql.as_bytes()].concat());
        let connection = engine.server.server.connections.get(b.connection_id()).unwrap();
        while *connection.activity().statement() != *sql.as_bytes() {
            std::thread::yield_now();
        }
        // Most likely it waits by now. A KILL that comes sooner ends it as well.
        (0..50).for_each(|_| drop(rows(&mut a)));
        all(&mut a, &[&format!("KILL QUERY {}", b.connection_id())]);
        assert_eq!(b.answer().unwrap_err().0, 1317, "{sql}");
    }
    untorn::engine::block_on(end).unwrap();
    assert_eq!((code(&mut b, "XA COMMIT 'x'"), rows(&mut a).as_str()), (1397, "1:11,2:20,3:30"));
    engine.finish();
}

#[test]
fn who_lacks_the_privilege_does_not_see_names() {
    let (engine, mut a, _) = start();
    all(&mut a, &["CREATE USER u IDENTIFIED WITH mysql_native_password BY 'p'", "GRANT INSERT ON d.* TO u"]);
    let mut u = engine.login("u", "p", None).unwrap();
    assert_eq!(code(&mut u, "XA RECOVER"), 1401);
    // Preparing and ending needs none.
    prepare(&mut u, "x", &["INSERT INTO d.t VALUES (4, 40)"]);
    prepare(&mut a, "y", &["INSERT INTO d.t VALUES (5, 50)"]);
    all(&mut u, &["XA COMMIT 'x'", "XA COMMIT 'y'"]);
    all(&mut a, &["GRANT XA_RECOVER_ADMIN ON *.* TO u"]);
    assert!(names(&mut u).is_empty());
    let grants = a.run("SHOW GRANTS FOR u").unwrap().concat();
    assert!(
        grants.iter().flatten().any(|grant| grant == "GRANT XA_RECOVER_ADMIN ON *.* TO `u`@`%`"),
        "{grants:?}"
    );
    engine.finish();
}

#[test]
fn the_global_read_lock_keeps_prepared_transactions_as_they_are() {
    let (engine, mut a, mut b) = start();
    prepare(&mut a, "x", &["INSERT INTO d.t VALUES (4, 40)"]);
    all(&mut a, &["XA START 'y'", "INSERT INTO d.t VALUES (5, 50)", "XA END 'y'"]);
    all(&mut b, &["FLUSH TABLES WITH READ LOCK"]);
    assert_eq!(code(&mut a, "XA PREPARE 'y'"), 1205);
    // It is rolled back then.
    assert_eq!(code(&mut a, "XA PREPARE 'y'"), 1399);
    assert_eq!(code(&mut a, "XA COMMIT 'x'"), 1205);
    assert_eq!(code(&mut a, "XA COMMIT 'y'"), 1397);
    assert_eq!(names(&mut b), ["x"]);
    all(&mut b, &["UNLOCK TABLES"]);
    all(&mut a, &["XA COMMIT 'x'"]);
    assert_eq!(rows(&mut a), "1:10,2:20,3:30,4:40");
    engine.finish();
}

#[test]
fn a_backup_has_the_prepared_transactions() {
    let (engine, mut a, b) = start();
    let copy = engine.directory.with_extension("copy");
    let restored = engine.directory.with_extension("restored");
    for directory in [&copy, &restored] {
        let _ = std::fs::remove_dir_all(directory);
    }
    prepare(&mut a, "x", &["UPDATE d.t SET n = 11 WHERE id = 1"]);
    untorn::engine::block_on(engine.database.backup_with(&copy, untorn::BackupOptions::default())).unwrap();
    all(&mut a, &["XA ROLLBACK 'x'"]);
    drop((a, b));
    engine.finish();
    untorn::restore(&copy, &restored, |_| {}).unwrap();
    let engine = Engine::open(&restored);
    let mut a = engine.root();
    assert_eq!(names(&mut a), ["x"]);
    all(&mut a, &["XA COMMIT 'x'"]);
    assert_eq!(rows(&mut a), "1:11,2:20,3:30");
    drop(a);
    engine.finish();
    std::fs::remove_dir_all(copy).unwrap();
}
