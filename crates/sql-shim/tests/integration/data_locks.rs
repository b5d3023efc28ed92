//! `performance_schema.data_locks`, `data_lock_waits` and INNODB_TRX: sight of locks.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::engine::Engine;
use crate::support::{Client, all, code, one};

/// The locks of a connection: index, type, mode, status, data.
const LOCKS: &str = "SELECT CONCAT_WS('|', OBJECT_SCHEMA, OBJECT_NAME, COALESCE(INDEX_NAME, '-'), LOCK_TYPE, \
     LOCK_MODE, LOCK_STATUS, COALESCE(LOCK_DATA, '-')) FROM performance_schema.data_locks WHERE THREAD_ID = ";

fn locks(observer: &mut Client, of: &Client) -> Vec<String> {
    let rows = observer.run(&format!("{LOCKS} {} ORDER BY 1", of.connection_id())).unwrap();
    rows.into_iter().map(|mut row| row.remove(0).unwrap()).collect()
}

fn start(statements: &[&str]) -> (Engine, Client, Client, Client) {
    let engine = Engine::start();
    let (mut one, mut two, observer) = (engine.root(), engine.root(), engine.root());
    all(&mut one, &["CREATE DATABASE d", "USE d"]);
    all(&mut one, statements);
    all(&mut two, &["USE d"]);
    (engine, one, two, observer)
}

/// Sends a statement that will wait, and comes back when it does.
fn send_and_wait(observer: &mut Client, waiter: &mut Client, sql: &str) {
    waiter.sequence = 0;
    waiter.send(&[&[3], sql.as_bytes()].concat());
    let waits = format!(
        "SELECT COUNT(*) FROM performance_schema.data_lock_waits WHERE REQUESTING_THREAD_ID = {}",
        waiter.connection_id()
    );
    while one(observer, &waits) == "0" {
        std::thread::yield_now();
    }
}

#[test]
fn locks_are_shown_as_mysql_does() {
    let (engine, mut a, mut b, mut observer) = start(&[
        "CREATE TABLE t (id INT PRIMARY KEY, v INT, w VARCHAR(40), KEY v (v), UNIQUE KEY w (w, v))",
        "INSERT INTO t VALUES (-1, 10, 'it''s'), (3, 30, 'b'), (5, 50, NULL)",
        "CREATE TABLE hidden (n BIGINT UNSIGNED, day DATE, KEY day (day))",
        "INSERT INTO hidden VALUES (7, '2024-02-03')",
    ]);
    all(&mut a, &["BEGIN", "SELECT * FROM t WHERE id = -1 FOR UPDATE"]);
    assert_eq!(
        locks(&mut observer, &a),
        ["d|t|-|TABLE|IX|GRANTED|-", "d|t|PRIMARY|RECORD|X,REC_NOT_GAP|GRANTED|-1"]
    );
    all(&mut a, &["ROLLBACK", "BEGIN", "SELECT w FROM t WHERE v >= 30 FOR SHARE"]);
    assert_eq!(
        locks(&mut observer, &a),
        [
            "d|t|-|TABLE|IS|GRANTED|-",
            "d|t|PRIMARY|RECORD|S,REC_NOT_GAP|GRANTED|3",
            "d|t|PRIMARY|RECORD|S,REC_NOT_GAP|GRANTED|5",
            "d|t|v|RECORD|S|GRANTED|30, 3",
            "d|t|v|RECORD|S|GRANTED|50, 5",
            "d|t|v|RECORD|S|GRANTED|supremum pseudo-record",
        ]
    );
    all(&mut a, &["ROLLBACK", "BEGIN", "SELECT id FROM t WHERE v = 10 FOR UPDATE"]);
    assert_eq!(
        locks(&mut observer, &a),
        [
            "d|t|-|TABLE|IX|GRANTED|-",
            "d|t|PRIMARY|RECORD|X,REC_NOT_GAP|GRANTED|-1",
            "d|t|v|RECORD|X,GAP|GRANTED|30, 3",
            "d|t|v|RECORD|X|GRANTED|10, -1",
        ]
    );
    // The wish to insert into a gap, and into that at the end.
    send_and_wait(&mut observer, &mut b, "INSERT INTO t VALUES (4, 20, 'c')");
    assert_eq!(
        locks(&mut observer, &b),
        ["d|t|-|TABLE|IX|GRANTED|-", "d|t|v|RECORD|X,GAP,INSERT_INTENTION|WAITING|30, 3"]
    );
    all(&mut a, &["ROLLBACK"]);
    b.answer().unwrap();
    all(&mut a, &["BEGIN", "SELECT id FROM t WHERE id > 5 FOR UPDATE"]);
    send_and_wait(&mut observer, &mut b, "INSERT INTO t VALUES (6, 60, 'd')");
    let waiting = locks(&mut observer, &b);
    assert_eq!(waiting[1], "d|t|PRIMARY|RECORD|X,INSERT_INTENTION|WAITING|supremum pseudo-record");
    all(&mut a, &["ROLLBACK"]);
    b.answer().unwrap();
    // Text, of a unique index what was declared; a date, and the hidden row id.
    all(&mut a, &["BEGIN", "SELECT id FROM t FORCE INDEX (w) WHERE w = 'it''s' FOR UPDATE"]);
    assert!(locks(&mut observer, &a).contains(&"d|t|w|RECORD|X|GRANTED|'it''s', 10".to_owned()));
    all(&mut a, &["ROLLBACK", "BEGIN", "SELECT n FROM hidden WHERE day = '2024-02-03' FOR UPDATE"]);
    let of_hidden = locks(&mut observer, &a).join("\n");
    assert!(of_hidden.contains("d|hidden|day|RECORD|X|GRANTED|1036355, 0x0000000"), "{of_hidden}");
    assert!(
        of_hidden.contains("d|hidden|GEN_CLUST_INDEX|RECORD|X,REC_NOT_GAP|GRANTED|0x0000000"),
        "{of_hidden}"
    );
    all(&mut a, &["ROLLBACK"]);
    assert_eq!(one(&mut observer, "SELECT COUNT(*) FROM performance_schema.data_locks"), "0");
    engine.finish();
}

#[test]
fn who_waits_is_joined_with_who_is_in_the_way() {
    let (engine, mut a, mut b, mut observer) =
        start(&["CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 10), (2, 20)"]);
    let mut c = engine.root();
    all(&mut a, &["BEGIN", "UPDATE t SET v = 0 WHERE id = 1"]);
    send_and_wait(&mut observer, &mut b, "UPDATE t SET v = 1 WHERE id = 1");
    send_and_wait(&mut observer, &mut c, "SELECT * FROM d.t WHERE id = 1 FOR SHARE");
    // What an implicit lock of the holder became.
    assert_eq!(
        locks(&mut observer, &a),
        ["d|t|-|TABLE|IX|GRANTED|-", "d|t|PRIMARY|RECORD|X,REC_NOT_GAP|GRANTED|1"]
    );
    let (one_id, two_id, three_id) = (a.connection_id(), b.connection_id(), c.connection_id());
    let pairs = observer
        .run(
            "SELECT CONCAT(r.trx_mysql_thread_id, '<', w.BLOCKING_THREAD_ID, ' ', \
                 l.LOCK_DATA, ' ', r.trx_state) \
             FROM performance_schema.data_lock_waits w \
             JOIN performance_schema.data_locks l ON l.ENGINE_LOCK_ID = w.REQUESTING_ENGINE_LOCK_ID \
             JOIN information_schema.INNODB_TRX r ON r.trx_id = w.REQUESTING_ENGINE_TRANSACTION_ID \
                 AND r.trx_requested_lock_id = l.ENGINE_LOCK_ID \
             JOIN performance_schema.data_locks h ON h.ENGINE_LOCK_ID = w.BLOCKING_ENGINE_LOCK_ID \
             ORDER BY 1",
        )
        .unwrap();
    let pairs: Vec<String> = pairs.into_iter().map(|mut row| row.remove(0).unwrap()).collect();
    let mut expected = vec![
        format!("{two_id}<{one_id} 1 LOCK WAIT"),
        format!("{three_id}<{one_id} 1 LOCK WAIT"),
        format!("{three_id}<{two_id} 1 LOCK WAIT"),
    ];
    expected.sort();
    assert_eq!(pairs, expected);
    let blocked = engine.database.blocked_sessions(100);
    let mut blocked: Vec<(u64, u64, usize)> =
        blocked.iter().map(|session| (session.waiting.1, session.blocking.1, session.behind)).collect();
    blocked.sort_unstable();
    let holder = u64::from(one_id);
    // The third waits for the second too, who waits for the first.
    assert_eq!(blocked, [(u64::from(two_id), holder, 2), (u64::from(three_id), holder, 2)]);
    let waiting = "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_wait_started <= NOW() \
         AND trx_wait_started > NOW() - INTERVAL 1 HOUR AND trx_query LIKE '%WHERE id = 1%'";
    assert_eq!(one(&mut observer, waiting), "2");
    all(&mut a, &["COMMIT"]);
    b.answer().unwrap();
    c.answer().unwrap();
    assert_eq!(one(&mut observer, "SELECT COUNT(*) FROM performance_schema.data_lock_waits"), "0");
    assert_eq!(one(&mut observer, "SELECT COUNT(*) FROM information_schema.INNODB_TRX"), "0");
    engine.finish();
}

#[test]
fn a_list_of_very_many_locks_can_be_stopped_and_is_charged() {
    let (engine, mut a, _, mut observer) = start(&["CREATE TABLE t (id INT PRIMARY KEY)"]);
    let rows: Vec<String> = (0..20_000).map(|id| format!("({id})")).collect();
    all(
        &mut a,
        &[&format!("INSERT INTO t VALUES {}", rows.join(",")), "BEGIN", "SELECT COUNT(*) FROM t FOR UPDATE"],
    );
    let count =
        "SELECT COUNT(*), COUNT(LOCK_DATA) FROM performance_schema.data_locks WHERE LOCK_TYPE = 'RECORD'";
    let counts = observer.run(count).unwrap().remove(0);
    assert_eq!(counts, [Some("20001".to_owned()), Some("20001".to_owned())]);
    all(&mut observer, &["SET untorn_statement_memory_limit = 1000000"]);
    assert_eq!(code(&mut observer, count), 1041);
    all(&mut observer, &["SET untorn_statement_memory_limit = DEFAULT", "SET max_execution_time = 1"]);
    assert_eq!(code(&mut observer, count), 3024);
    engine.finish();
}

#[test]
fn reading_locks_takes_select_on_the_table() {
    let (engine, mut root, ..) =
        start(&["CREATE USER u@localhost IDENTIFIED WITH mysql_native_password BY 'u'"]);
    let mut user = engine.login("u", "u", None).unwrap();
    for table in ["data_locks", "data_lock_waits"] {
        assert_eq!(code(&mut user, &format!("SELECT * FROM performance_schema.{table}")), 1142);
    }
    all(&mut root, &["GRANT SELECT ON performance_schema.* TO u@localhost"]);
    assert_eq!(one(&mut user, "SELECT COUNT(*) FROM performance_schema.data_locks"), "0");
    engine.finish();
}
