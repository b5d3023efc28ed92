//! Statements counted by digest, the log of slow ones, and INNODB_METRICS.
#![recursion_limit = "256"]
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/engine.rs"]
mod engine;
mod support;

use std::path::Path;

use engine::Engine;
use support::{Client, code, one};

fn shop() -> (Engine, Client) {
    let engine = Engine::start();
    let mut client = engine.root();
    for sql in [
        "CREATE DATABASE d",
        "USE d",
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
        "TRUNCATE TABLE performance_schema.events_statements_summary_by_digest",
    ] {
        client.run(sql).unwrap();
    }
    (engine, client)
}

/// A column of the row with this text.
fn digest(client: &mut Client, column: &str, text: &str) -> String {
    let rows = client
        .run(&format!(
            "SELECT {column} FROM performance_schema.events_statements_summary_by_digest \
             WHERE DIGEST_TEXT = '{text}'"
        ))
        .unwrap();
    assert_eq!(rows.len(), 1, "{text}");
    rows[0][0].clone().unwrap_or_default()
}

#[test]
fn statements_are_counted_by_their_text_without_values() {
    let (engine, mut client) = shop();
    for id in 1..=3 {
        client.run(&format!("SELECT v FROM t WHERE id = {id}")).unwrap();
    }
    client.run("select  v from t where id=7 -- none").unwrap();
    client.run("SELECT id FROM t WHERE v > 5").unwrap();
    client.run("UPDATE t SET v = v + 1 WHERE id IN (1, 2)").unwrap();
    assert_eq!(code(&mut client, "SELECT nothing FROM t"), 1054);
    let point = "SELECT `v` FROM `t` WHERE `id` = ?";
    let numbers = "CONCAT_WS(',', SCHEMA_NAME, COUNT_STAR, SUM_ROWS_SENT, SUM_ROWS_EXAMINED, SUM_ERRORS, \
                   SUM_SELECT_SCAN, SUM_NO_INDEX_USED)";
    assert_eq!(digest(&mut client, numbers, point), "d,4,3,3,0,0,0");
    let scan = "SELECT `id` FROM `t` WHERE `v` > ?";
    assert_eq!(digest(&mut client, numbers, scan), "d,1,3,3,0,1,1");
    let update = "UPDATE `t` SET `v` = `v` + ? WHERE `id` IN (...)";
    assert_eq!(digest(&mut client, "SUM_ROWS_AFFECTED", update), "2");
    assert_eq!(digest(&mut client, "SUM_ERRORS", "SELECT `nothing` FROM `t`"), "1");
    let sane = "MIN_TIMER_WAIT > 0 AND MIN_TIMER_WAIT <= AVG_TIMER_WAIT AND AVG_TIMER_WAIT <= MAX_TIMER_WAIT \
                AND SUM_TIMER_WAIT >= MAX_TIMER_WAIT AND QUANTILE_95 <= QUANTILE_999 \
                AND FIRST_SEEN <= LAST_SEEN \
                AND LENGTH(DIGEST) = 64";
    assert_eq!(digest(&mut client, sane, point), "1");
    assert!(digest(&mut client, "QUERY_SAMPLE_TEXT", point).to_uppercase().starts_with("SELECT "));
    // After a TRUNCATE the plans that are kept count in new rows.
    client.run("TRUNCATE TABLE performance_schema.events_statements_summary_by_digest").unwrap();
    client.run("SELECT v FROM t WHERE id = 3").unwrap();
    client.run("SELECT v FROM t WHERE id = 2").unwrap();
    assert_eq!(digest(&mut client, "COUNT_STAR", point), "2");
    engine.finish();
}

#[test]
fn waits_for_rows_are_lock_time_and_prepared_statements_count() {
    let (engine, mut holder) = shop();
    let mut waiter = engine.root();
    waiter.run("USE d").unwrap();
    holder.run("BEGIN").unwrap();
    holder.run("UPDATE t SET v = 0 WHERE id = 1").unwrap();
    waiter.run("SET innodb_lock_wait_timeout = 1").unwrap();
    assert_eq!(code(&mut waiter, "UPDATE t SET v = 1 WHERE id = 1"), 1205);
    holder.run("COMMIT").unwrap();
    let update = "UPDATE `t` SET `v` = ? WHERE `id` = ?";
    let waited = digest(&mut holder, "SUM_LOCK_TIME DIV 1000000000", update).parse::<u64>().unwrap();
    assert!((900..10_000).contains(&waited), "{waited} ms");
    let of_rows = waited_ms(&mut holder, "wait/untorn/row_lock", update);
    assert!((900..10_000).contains(&of_rows), "{of_rows} ms");
    for sql in ["PREPARE p FROM 'SELECT v FROM t WHERE id = ?'", "SET @i = 2", "EXECUTE p USING @i"] {
        holder.run(sql).unwrap();
    }
    assert_eq!(digest(&mut holder, "COUNT_STAR", "EXECUTE `p` USING @?"), "1");
    engine.finish();
}

/// How long a statement has waited for such an event.
fn waited_ms(client: &mut Client, event: &str, text: &str) -> u64 {
    let sum = one(
        client,
        &format!(
            "SELECT COALESCE(SUM(w.SUM_TIMER_WAIT), 0) DIV 1000000000 \
             FROM performance_schema.untorn_waits_by_digest w \
             JOIN performance_schema.events_statements_summary_by_digest d ON d.DIGEST = w.DIGEST \
             WHERE d.DIGEST_TEXT = '{text}' AND w.EVENT_NAME = '{event}'"
        ),
    );
    sum.parse().unwrap()
}

#[test]
fn waits_are_told_apart_by_kind() {
    let (engine, mut holder) = shop();
    let mut waiter = engine.root();
    let total = |client: &mut Client, event: &str| {
        let sum = "SELECT COUNT_STAR > 0 AND SUM_TIMER_WAIT > 0 AND MIN_TIMER_WAIT <= AVG_TIMER_WAIT * 2 \
             AND AVG_TIMER_WAIT <= MAX_TIMER_WAIT \
             FROM performance_schema.events_waits_summary_global_by_event_name";
        one(client, &format!("{sum} WHERE EVENT_NAME = '{event}'"))
    };
    let (rows, names, log) =
        ("wait/untorn/row_lock", "wait/lock/metadata/sql/mdl", "wait/io/file/innodb/innodb_log_file");
    assert_eq!((&*total(&mut holder, rows), &*total(&mut holder, names)), ("0", "0"));
    holder.run("LOCK TABLES t WRITE").unwrap();
    for sql in ["USE d", "SET lock_wait_timeout = 1"] {
        waiter.run(sql).unwrap();
    }
    assert_eq!(code(&mut waiter, "SELECT v FROM t"), 1205);
    holder.run("UNLOCK TABLES").unwrap();
    let waited = waited_ms(&mut holder, names, "SELECT `v` FROM `t`");
    assert!((900..10_000).contains(&waited), "{waited} ms");
    assert_eq!((&*total(&mut holder, rows), &*total(&mut holder, names)), ("0", "1"));
    // The log may be on the disk before anybody looks, but not always.
    while total(&mut holder, log) == "0" {
        holder.run("UPDATE t SET v = v + 1 WHERE id = 1").unwrap();
    }
    // A session that waits for its client waits for nothing of the engine, whatever it waited for before.
    waiter.run("DO 1").unwrap();
    let names_of = "SELECT COUNT_STAR FROM performance_schema.events_waits_summary_global_by_event_name \
         WHERE EVENT_NAME = 'wait/lock/metadata/sql/mdl'";
    let before = one(&mut holder, names_of);
    for _ in 0..3 {
        waiter.run("DO 1").unwrap();
    }
    assert_eq!(one(&mut holder, names_of), before);
    engine.finish();
}

#[test]
fn only_those_with_the_privilege_read_and_empty_the_table_and_no_password_is_in_it() {
    let (engine, mut root) = shop();
    root.run("CREATE USER u@localhost IDENTIFIED WITH mysql_native_password BY 'a-secret'").unwrap();
    let rows = root
        .run(
            "SELECT DIGEST_TEXT, QUERY_SAMPLE_TEXT \
             FROM performance_schema.events_statements_summary_by_digest",
        )
        .unwrap();
    assert!(
        rows.iter().any(|row| row[0].as_deref().is_some_and(|text| text.starts_with("CREATE SYSTEM_USER")))
    );
    let all = format!("{rows:?}");
    assert!(!all.contains("a-secret"), "{all}");
    let mut user = engine.login("u", "a-secret", None).unwrap();
    let read = "SELECT COUNT_STAR FROM performance_schema.events_statements_summary_by_digest";
    assert_eq!(code(&mut user, read), 1142);
    assert_eq!(
        code(&mut user, "TRUNCATE TABLE performance_schema.events_statements_summary_by_digest"),
        1142
    );
    root.run("GRANT SELECT ON performance_schema.* TO u@localhost").unwrap();
    user.run(read).unwrap();
    assert_eq!(code(&mut root, "DELETE FROM performance_schema.events_statements_summary_by_digest"), 1044);
    engine.finish();
}

/// What the log holds once `text` is in it.
fn log_with(file: &Path, text: &str) -> String {
    loop {
        let log = std::fs::read_to_string(file).unwrap_or_default();
        if log.contains(text) && log.ends_with(";\n") {
            return log;
        }
        std::thread::yield_now();
    }
}

#[test]
fn slow_statements_are_logged_as_said_and_a_missing_directory_stops_nothing() {
    let (engine, mut client) = shop();
    let missing = engine.directory.join("not-yet");
    let file = missing.join("slow.log");
    client.run(&format!("SET GLOBAL slow_query_log_file = '{}'", file.display())).unwrap();
    client.run("SET GLOBAL slow_query_log = ON").unwrap();
    client.run("SET long_query_time = 0.05").unwrap();
    client.run("SELECT SLEEP(0.1), 'lost'").unwrap();
    while one(
        &mut client,
        "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS \
        WHERE VARIABLE_NAME = 'UNTORN_SLOW_LOG_LOST'",
    ) != "1"
    {
        std::thread::yield_now();
    }
    std::fs::create_dir(&missing).unwrap();
    client.run("SELECT 'fast'").unwrap();
    client.run("SELECT SLEEP(0.1), 'kept'").unwrap();
    let log = log_with(&file, "'kept'");
    assert!(!log.contains("'lost'") && !log.contains("'fast'"), "{log}");
    assert!(
        log.contains("\n# User@Host: root[root] @ ") && log.contains("\nuse d;\nSET timestamp="),
        "{log}"
    );
    assert!(log.contains("\n# Query_time: 0.1"), "{log}");
    let slow = one(
        &mut client,
        "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS \
        WHERE VARIABLE_NAME = 'SLOW_QUERIES'",
    );
    assert_eq!(slow, "2");
    client.run("SET GLOBAL log_queries_not_using_indexes = ON").unwrap();
    client.run("SELECT id FROM t WHERE id = 1 AND 'by key' = 'by key'").unwrap();
    client.run("SELECT id FROM t WHERE v = 10").unwrap();
    let log = log_with(&file, "WHERE v = 10");
    assert!(!log.contains("by key") && log.contains("Rows_sent: 1  Rows_examined: 3\n"), "{log}");
    client.run("SET min_examined_row_limit = 4").unwrap();
    client.run("SELECT id FROM t WHERE v = 20").unwrap();
    client.run("SET min_examined_row_limit = 0").unwrap();
    client.run("SELECT id FROM t WHERE v = 30").unwrap();
    assert!(!log_with(&file, "WHERE v = 30").contains("WHERE v = 20"));
    engine.finish();
}

#[test]
fn innodb_metrics_has_every_metric_under_innodbs_name() {
    let (engine, mut client) = shop();
    let rows = client.run("SELECT NAME, COUNT, TYPE FROM information_schema.INNODB_METRICS").unwrap();
    assert_eq!(rows.len(), untorn::metrics::all().count());
    let count = |name: &str| {
        let row = rows.iter().find(|row| row[0].as_deref() == Some(name));
        row.unwrap_or_else(|| panic!("no {name}"))[1].as_deref().unwrap().parse::<u64>().unwrap()
    };
    assert_eq!((count("dml_inserts"), count("innodb_page_size")), (3, 16384));
    assert!(count("trx_rw_commits") >= 1 && count("log_lsn_current") > 0);
    engine.finish();
}
