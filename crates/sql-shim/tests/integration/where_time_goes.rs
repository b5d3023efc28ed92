//! How long statements and transactions take, and where their time goes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::engine::Engine;
use crate::support::{Client, code, one};

const DIGESTS: &str = "performance_schema.events_statements_summary_by_digest";
const BY_DIGEST: &str = "performance_schema.events_statements_histogram_by_digest";
const GLOBAL: &str = "performance_schema.events_statements_histogram_global";

fn start() -> (Engine, Client) {
    let engine = Engine::start();
    let mut client = engine.root();
    for sql in ["CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY, v INT)"] {
        client.run(sql).unwrap();
    }
    (engine, client)
}

fn number(client: &mut Client, sql: &str) -> u64 {
    one(client, sql).parse().unwrap_or_else(|_| panic!("{sql}"))
}

#[test]
fn each_statement_is_in_one_bucket_of_its_digest_and_of_all() {
    let (engine, mut client) = start();
    client.run(&format!("TRUNCATE TABLE {DIGESTS}")).unwrap();
    client.run(&format!("TRUNCATE TABLE {GLOBAL}")).unwrap();
    for _ in 0..20 {
        client.run("DO 1").unwrap();
    }
    client.run("SELECT SLEEP(0.3)").unwrap();
    let mine = format!(
        "FROM {BY_DIGEST} h WHERE h.DIGEST = (SELECT DIGEST FROM {DIGESTS} WHERE DIGEST_TEXT = 'DO ?')"
    );
    let shape = "CONCAT_WS(',', COUNT(*), SUM(COUNT_BUCKET), MAX(COUNT_BUCKET_AND_LOWER), MAX(BUCKET_QUANTILE), \
                 MIN(BUCKET_TIMER_LOW), MAX(BUCKET_NUMBER), MIN(SCHEMA_NAME))";
    assert_eq!(one(&mut client, &format!("SELECT {shape} {mine}")), "450,20,20,1,0,449,d");
    // The quantiles of the summary are ends of these buckets.
    let quantile = format!(
        "SELECT (SELECT MIN(BUCKET_TIMER_HIGH) {mine} AND COUNT_BUCKET_AND_LOWER >= 19) = \
         (SELECT QUANTILE_95 FROM {DIGESTS} WHERE DIGEST_TEXT = 'DO ?')"
    );
    assert_eq!(one(&mut client, &quantile), "1");
    // A bucket begins where the one before it ends.
    let gaps = format!(
        "SELECT COUNT(*) FROM {GLOBAL} a JOIN {GLOBAL} b ON b.BUCKET_NUMBER = a.BUCKET_NUMBER + 1 \
         WHERE a.BUCKET_TIMER_HIGH <> b.BUCKET_TIMER_LOW"
    );
    assert_eq!(one(&mut client, &gaps), "0");
    let slow = format!("SELECT SUM(COUNT_BUCKET) > 0 FROM {GLOBAL} WHERE BUCKET_TIMER_LOW >= 280000000000");
    assert_eq!(one(&mut client, &slow), "1", "one took 300 ms");
    let all = number(&mut client, &format!("SELECT SUM(COUNT_BUCKET) FROM {GLOBAL}"));
    // Of the TRUNCATE itself too, and of five that asked.
    assert!((21..40).contains(&all), "{all}");
    client.run(&format!("TRUNCATE TABLE {BY_DIGEST}")).unwrap();
    assert_eq!(one(&mut client, &format!("SELECT COUNT(*) {mine}")), "0");
    assert_eq!(
        one(&mut client, &format!("SELECT COUNT_STAR FROM {DIGESTS} WHERE DIGEST_TEXT = 'DO ?'")),
        "20"
    );
    client.run(&format!("TRUNCATE TABLE {GLOBAL}")).unwrap();
    assert!(number(&mut client, &format!("SELECT SUM(COUNT_BUCKET) FROM {GLOBAL}")) < 5);
    client.run("CREATE USER u@localhost IDENTIFIED WITH mysql_native_password BY 'p'").unwrap();
    let mut user = engine.login("u", "p", None).unwrap();
    for table in [BY_DIGEST, GLOBAL] {
        assert_eq!(code(&mut user, &format!("SELECT 1 FROM {table}")), 1142);
        assert_eq!(code(&mut user, &format!("TRUNCATE TABLE {table}")), 1142);
    }
    engine.finish();
}

#[test]
fn work_is_processor_time_and_a_pause_is_not() {
    let (engine, mut client) = start();
    let ids: Vec<String> = (0..100).map(|id| format!("({id}, {id})")).collect();
    client.run(&format!("INSERT INTO t VALUES {}", ids.join(", "))).unwrap();
    client.run(&format!("TRUNCATE TABLE {DIGESTS}")).unwrap();
    let total = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS \
                 WHERE VARIABLE_NAME = 'Untorn_time_cpu_us'";
    let before = number(&mut client, total);
    client.run("SELECT SUM(SHA2(a.v + b.v, 256) > 'x') FROM t a, t b").unwrap();
    client.run("SELECT SLEEP(0.3)").unwrap();
    let after = number(&mut client, total);
    let share = |client: &mut Client, like: &str| -> f64 {
        let share = format!(
            "SELECT SUM(SUM_CPU_TIME) / SUM(SUM_TIMER_WAIT) FROM {DIGESTS} WHERE DIGEST_TEXT LIKE '{like}'"
        );
        one(client, &share).parse().unwrap()
    };
    // Others may have the core, most of it too.
    let (work, pause) = (share(&mut client, "SELECT SUM ( `SHA2`%"), share(&mut client, "SELECT `SLEEP`%"));
    assert!(work > 0.01 && work <= 1.0, "{work}");
    assert!(pause < work / 4.0, "{pause} of a pause, {work} of work");
    assert!(after - before > 1000, "{before} to {after} µs");
    engine.finish();
}

#[test]
fn a_transaction_takes_from_its_beginning_to_its_commit() {
    let (engine, mut client) = start();
    let metric = |client: &mut Client, name: &str| {
        number(client, &format!("SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME = '{name}'"))
    };
    let count = |client: &mut Client| metric(client, "untorn_transaction_count");
    count(&mut client);
    // The statement that asks is a transaction, too; it is over when the next one asks.
    let since = |client: &mut Client, before: u64| count(client) - before - 1;
    let before = count(&mut client);
    client.run("INSERT INTO t VALUES (1, 1)").unwrap();
    client.run("SELECT v FROM t").unwrap();
    assert_eq!(since(&mut client, before), 2, "statements by themselves");
    assert!(metric(&mut client, "untorn_transaction_max_us") < 250_000);
    let before = count(&mut client);
    for sql in ["BEGIN", "UPDATE t SET v = 2", "SELECT SLEEP(0.3)", "COMMIT"] {
        client.run(sql).unwrap();
    }
    assert_eq!(since(&mut client, before), 1);
    let longest = metric(&mut client, "untorn_transaction_max_us");
    assert!(longest >= 300_000, "the time between statements counts: {longest} µs");
    let before = count(&mut client);
    for sql in ["BEGIN", "UPDATE t SET v = 3", "ROLLBACK", "SET @a = 1"] {
        client.run(sql).unwrap();
    }
    assert_eq!(code(&mut client, "INSERT INTO t VALUES (1, 1)"), 1062);
    assert_eq!(since(&mut client, before), 0, "nothing was committed");
    let before = count(&mut client);
    for sql in ["SET autocommit = 0", "UPDATE t SET v = 4", "COMMIT", "SET autocommit = 1"] {
        client.run(sql).unwrap();
    }
    assert_eq!(since(&mut client, before), 1);
    engine.finish();
}

/// During a stall it is seen where sessions stand, and not only when it is over.
#[test]
fn a_wait_counts_while_it_lasts_and_a_long_statement_while_it_runs() {
    let (engine, mut client) = start();
    let mut waiter = engine.root();
    for sql in ["SET innodb_lock_wait_timeout = 1000", "USE d"] {
        waiter.run(sql).unwrap();
    }
    for sql in ["INSERT INTO t VALUES (1, 1)", "BEGIN", "UPDATE t SET v = 2"] {
        client.run(sql).unwrap();
    }
    engine.send_and_wait_for_row(&mut waiter, "UPDATE t SET v = 3");
    let row = |client: &mut Client, name: &str| {
        let value = client.run(&format!("SHOW GLOBAL STATUS LIKE '{name}'")).unwrap()[0][1].clone();
        value.unwrap().parse::<u64>().unwrap()
    };
    let patience = std::time::Instant::now();
    while row(&mut client, "Untorn_time_row_lock_us") == 0 {
        assert!(patience.elapsed().as_secs() < 60, "it has waited for a minute");
        std::thread::yield_now();
    }
    client.run("ROLLBACK").unwrap();
    waiter.answer().unwrap();

    // A statement of many turns, beside what it takes to ask.
    let rows: Vec<String> = (2..2000).map(|id| format!("({id}, {id})")).collect();
    client.run(&format!("INSERT INTO t VALUES {}", rows.join(", "))).unwrap();
    const ASKED: u64 = 50;
    let before = row(&mut client, "Untorn_time_cpu_us");
    let after = (0..ASKED).map(|_| row(&mut client, "Untorn_time_cpu_us")).last().unwrap();
    let to_ask = (after - before) / ASKED;
    waiter.sequence = 0;
    waiter.send(b"\x03SELECT COUNT(*) FROM t a JOIN t b JOIN t c WHERE a.v + b.v + c.v < 0");
    let (patience, mut asked) = (std::time::Instant::now(), 1);
    while row(&mut client, "Untorn_time_cpu_us") < after + 2 * asked * to_ask + 200_000 {
        asked += 1;
        // Leaves it the core.
        client.run("DO SLEEP(0.05)").unwrap();
        let so_far = row(&mut client, "Untorn_time_cpu_us") - after;
        assert!(patience.elapsed().as_secs() < 60, "{so_far} µs in a minute, {to_ask} to ask");
    }
    client.run(&format!("KILL {}", waiter.connection_id())).unwrap();
    drop(waiter);
    engine.finish();
}
