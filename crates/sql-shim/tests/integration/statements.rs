//! Statements counted by digest, the log of slow ones, and INNODB_METRICS.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

use crate::support::engine::Engine;
use crate::support::{Client, code, one};

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
    client.run("SELECT SQL_CALC_FOUND_ROWS v FROM t ORDER BY id LIMIT 1 OFFSET 2").unwrap();
    client.run("SHOW TABLES").unwrap();
    client.run("UPDATE t SET v = v + 1 WHERE id IN (1, 2)").unwrap();
    assert_eq!(code(&mut client, "SELECT nothing FROM t"), 1054);
    let point = "SELECT `v` FROM `t` WHERE `id` = ?";
    let numbers = "CONCAT_WS(',', SCHEMA_NAME, COUNT_STAR, SUM_ROWS_SENT, SUM_ROWS_EXAMINED, SUM_ERRORS, \
                   SUM_SELECT_SCAN, SUM_NO_INDEX_USED)";
    assert_eq!(digest(&mut client, numbers, point), "d,4,3,3,0,0,0");
    let scan = "SELECT `id` FROM `t` WHERE `v` > ?";
    assert_eq!(digest(&mut client, numbers, scan), "d,1,3,3,0,1,1");
    let found = "SELECT SQL_CALC_FOUND_ROWS `v` FROM `t` ORDER BY `id` LIMIT ? OFFSET ?";
    assert_eq!(digest(&mut client, "SUM_ROWS_SENT", found), "1", "not those that it found");
    assert_eq!(digest(&mut client, "SUM_ROWS_SENT", "SHOW TABLES"), "1");
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
    // The wait is in the total when the poll that answers the client is over.
    while total(&mut holder, names) == "0" {}
    assert_eq!(&*total(&mut holder, rows), "0");
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

/// What the log holds when all that was said has been written.
fn log_of(client: &mut Client, file: &Path) -> String {
    client.run("FLUSH SLOW LOGS").unwrap();
    std::fs::read_to_string(file).unwrap_or_default()
}

fn status(client: &mut Client, name: &str) -> u64 {
    let sql =
        format!("SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = '{name}'");
    one(client, &sql).parse().unwrap()
}

#[test]
fn slow_statements_are_logged_as_said_and_a_file_in_the_way_stops_nothing() {
    let (engine, mut client) = shop();
    let file = engine.directory.join("slow.log");
    client.run("SET GLOBAL slow_query_log_file = 'slow.log'").unwrap();
    std::fs::create_dir(&file).unwrap();
    client.run("SET GLOBAL slow_query_log = ON").unwrap();
    client.run("SET long_query_time = 0.05").unwrap();
    client.run("SELECT SLEEP(0.1), 'lost'").unwrap();
    client.run("FLUSH LOGS").unwrap();
    assert_eq!(status(&mut client, "UNTORN_SLOW_LOG_LOST"), 1);
    std::fs::remove_dir(&file).unwrap();
    client.run("SELECT 'fast'").unwrap();
    client.run("SELECT SLEEP(0.1), 'kept'").unwrap();
    let log = log_of(&mut client, &file);
    assert!(log.contains("'kept'") && !log.contains("'lost'") && !log.contains("'fast'"), "{log}");
    let program = std::env::current_exe().unwrap();
    assert!(log.starts_with(&format!("{}, Version: 8.", program.display())), "{log}");
    assert!(
        log.contains("\n# User@Host: root[root] @ ") && log.contains("\nuse d;\nSET timestamp="),
        "{log}"
    );
    assert!(log.contains("\n# Query_time: 0.1"), "{log}");
    assert_eq!(status(&mut client, "SLOW_QUERIES"), 2);
    client.run("SET GLOBAL log_queries_not_using_indexes = ON").unwrap();
    client.run("SELECT id FROM t WHERE id = 1 AND 'by key' = 'by key'").unwrap();
    client.run("SELECT id FROM t WHERE v = 10").unwrap();
    let log = log_of(&mut client, &file);
    assert!(!log.contains("by key") && log.contains("Rows_sent: 1  Rows_examined: 3\n"), "{log}");
    client.run("SET min_examined_row_limit = 4").unwrap();
    client.run("SELECT id FROM t WHERE v = 20").unwrap();
    client.run("SET min_examined_row_limit = 0").unwrap();
    client.run("SELECT id FROM t WHERE v = 30").unwrap();
    let log = log_of(&mut client, &file);
    assert!(log.contains("WHERE v = 30") && !log.contains("WHERE v = 20"));
    assert_eq!(code(&mut client, "FLUSH SLOW LOGS AND MORE"), 1064);
    engine.finish();
}

#[test]
fn the_slow_log_is_no_way_to_write_to_other_files() {
    let (engine, mut client) = shop();
    let outside = std::env::temp_dir().join("slow.log").display().to_string();
    let catalog = engine.directory.join("untorn.catalog").display().to_string();
    for file in
        [&*outside, &*catalog, "untorn.catalog", "d/t.ibd", "d/slow.log", "../slow.log", "a\nb.log", ""]
    {
        for scope in ["GLOBAL", "PERSIST"] {
            assert_eq!(
                code(&mut client, &format!("SET {scope} slow_query_log_file = '{file}'")),
                1231,
                "{file}"
            );
        }
    }
    assert_eq!(one(&mut client, "SELECT @@slow_query_log_file"), "untorn-slow.log");
    client.run("SET PERSIST slow_query_log_file = 'other.log'").unwrap();
    engine.finish();
}

#[test]
fn a_password_that_is_no_literal_is_shown_nowhere() {
    let (engine, mut client) = shop();
    for sql in ["SET GLOBAL slow_query_log = ON", "SET long_query_time = 0", "SET sql_mode = 'ANSI_QUOTES'"] {
        client.run(sql).unwrap();
    }
    for sql in [
        "ALTER USER nobody@localhost IDENTIFIED BY topsecret",
        "ALTER USER nobody@localhost IDENTIFIED BY 'it's topsecret'",
        "ALTER USER nobody@localhost IDENTIFIED BY \"topsecret\"",
        "ALTER USR nobody@localhost IDENTIFED BY \"topsecret\"",
        "ALTER USER nobody@localhost BY topsecret",
        "SET PASSWORD = topsecret",
        "SELECT 1 topsecret topsecret",
    ] {
        client.run(sql).unwrap_err();
    }
    let table = "FROM performance_schema.events_statements_summary_by_digest";
    let rows = client.run(&format!("SELECT DIGEST_TEXT, QUERY_SAMPLE_TEXT {table}")).unwrap();
    let all = format!("{rows:?}");
    assert!(all.contains("IDENTIFIED ...") && !all.contains("topsecret"), "{all}");
    let log = log_of(&mut client, &engine.directory.join("untorn-slow.log"));
    assert!(log.contains("IDENTIFIED ...") && !log.contains("topsecret"), "{log}");
    engine.finish();
}

#[test]
fn each_statement_counts_once_and_what_it_did_is_its_own() {
    let (engine, mut client) = shop();
    let names = ["QUESTIONS", "COM_SELECT", "COM_INSERT", "COM_STMT_PREPARE", "COM_STMT_EXECUTE"];
    let before = names.map(|name| status(&mut client, name));
    client.run("DO 1; DO 2; DO 3; -- none").unwrap();
    client.answer().unwrap();
    client.answer().unwrap();
    client.answer().unwrap();
    assert_eq!(code(&mut client, "SELECT nothing"), 1054);
    assert_eq!(code(&mut client, "SELECT nothing FROM"), 1064);
    assert_eq!(code(&mut client, "INSERT INTO nothing VALUES (1)"), 1146);
    client.run("PREPARE p FROM 'SELECT 1'").unwrap();
    assert_eq!(code(&mut client, "PREPARE q FROM 'SELEC'"), 1064);
    client.run("EXECUTE p").unwrap();
    let after = names.map(|name| status(&mut client, name));
    let raised: Vec<_> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    // The figures were asked for in between: five questions and selects each.
    assert_eq!(raised, [3 + 6 + 5, 2 + 5, 1, 2, 1]);
    let table = "FROM performance_schema.events_statements_summary_by_digest";
    assert_eq!(one(&mut client, &format!("SELECT COUNT(*) {table} WHERE DIGEST_TEXT = ''")), "0");
    client.run("SELECT CAST('x' AS SIGNED)").unwrap();
    client.run("SHOW WARNINGS").unwrap();
    assert_eq!(code(&mut client, "SELECT oops oops oops"), 1064);
    assert_eq!(digest(&mut client, "SUM_WARNINGS", "SELECT CAST ( ? AS SIGNED )"), "1");
    assert_eq!(digest(&mut client, "SUM_WARNINGS", "SHOW WARNINGS"), "0");
    client.run("SELECT CAST('x' AS SIGNED)").unwrap();
    assert_eq!(code(&mut client, "SELECT oops oops oops oops"), 1064);
    assert_eq!(digest(&mut client, "SUM_WARNINGS", "SELECT ? ? ? ?"), "0");
    engine.finish();
}

#[test]
fn whole_tables_are_found_wherever_they_are_read() {
    let (engine, mut client) = shop();
    client.run("CREATE TABLE u (v INT)").unwrap();
    client.run("TRUNCATE TABLE performance_schema.events_statements_summary_by_digest").unwrap();
    for sql in [
        "UPDATE t SET v = (SELECT MAX(v) FROM u) WHERE id = 1",
        "DELETE FROM t WHERE id = 2 AND v < (SELECT MAX(v) FROM u)",
        "INSERT INTO t VALUES (9, (SELECT MAX(v) FROM u))",
        "CREATE TABLE c AS SELECT v FROM t",
    ] {
        client.run(sql).unwrap();
        let like = format!("{}%", sql.split(' ').next().unwrap());
        let table = "FROM performance_schema.events_statements_summary_by_digest";
        let scans = format!("SELECT SUM(SUM_SELECT_SCAN) > 0 {table} WHERE DIGEST_TEXT LIKE '{like}'");
        assert_eq!(one(&mut client, &scans), "1", "{sql}");
    }
    engine.finish();
}

#[test]
fn innodb_metrics_has_every_metric_under_innodbs_name() {
    let (engine, mut client) = shop();
    let rows = client.run("SELECT NAME, COUNT, TYPE FROM information_schema.INNODB_METRICS").unwrap();
    // A histogram is four of them.
    let histograms = untorn::metrics::TIMES.len();
    assert_eq!(rows.len(), untorn::metrics::all().count() + 4 * histograms);
    let count = |name: &str| {
        let row = rows.iter().find(|row| row[0].as_deref() == Some(name));
        row.unwrap_or_else(|| panic!("no {name}"))[1].as_deref().unwrap().parse::<u64>().unwrap()
    };
    assert_eq!((count("dml_inserts"), count("innodb_page_size")), (3, 16384));
    assert!(count("trx_rw_commits") >= 1 && count("log_lsn_current") > 0);
    engine.finish();
}
