//! GET_LOCK between sessions.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::Client;
use crate::support::engine::Engine;

fn one(client: &mut Client, sql: &str) -> Option<String> {
    client.run(sql).unwrap()[0][0].clone()
}

/// Sends a statement and returns once its session works on it.
fn send(engine: &Engine, client: &mut Client, sql: &str) {
    client.sequence = 0;
    client.send(&[&[3], sql.as_bytes()].concat());
    let connection = engine.server.server.connections.get(client.connection_id()).unwrap();
    while *connection.activity().statement() != *sql.as_bytes() {
        std::thread::yield_now();
    }
}

#[test]
fn who_waits_gets_the_lock_when_it_is_free() {
    let engine = Engine::start();
    let (mut holder, mut other, mut third) = (engine.root(), engine.root(), engine.root());
    assert_eq!(one(&mut holder, "SELECT GET_LOCK('m', 0)").as_deref(), Some("1"));
    assert_eq!(one(&mut other, "SELECT GET_LOCK('M', 0)").as_deref(), Some("0"));
    assert_eq!(one(&mut other, "SELECT RELEASE_LOCK('m')").as_deref(), Some("0"));
    // It would answer 0 if it did not wait: an hour is longer than any test.
    send(&engine, &mut other, "SELECT GET_LOCK('m', 3600)");
    assert_eq!(one(&mut holder, "SELECT RELEASE_LOCK('m')").as_deref(), Some("1"));
    assert_eq!(other.answer().unwrap()[0][0].as_deref(), Some("1"));
    let owner = one(&mut third, "SELECT IS_USED_LOCK('m')");
    assert_eq!(owner, Some(other.connection_id().to_string()));
    // The end of a connection frees its locks, too.
    send(&engine, &mut third, "SELECT GET_LOCK('m', -1)");
    drop(other);
    assert_eq!(third.answer().unwrap()[0][0].as_deref(), Some("1"));
    engine.finish();
}

#[test]
fn kill_ends_the_wait_and_a_circle_is_an_error() {
    let engine = Engine::start();
    let (mut holder, mut other) = (engine.root(), engine.root());
    assert_eq!(one(&mut holder, "SELECT GET_LOCK('a', 0)").as_deref(), Some("1"));
    send(&engine, &mut other, "SELECT GET_LOCK('a', -1)");
    holder.run(&format!("KILL QUERY {}", other.connection_id())).unwrap();
    assert_eq!(other.answer().unwrap_err().0, 1317);
    assert_eq!(one(&mut other, "SELECT GET_LOCK('b', 0)").as_deref(), Some("1"));
    send(&engine, &mut other, "SELECT GET_LOCK('a', -1)");
    // Until the other one waits there is no circle.
    let error = loop {
        match holder.run("SELECT GET_LOCK('b', 0.01)") {
            Ok(rows) => assert_eq!(rows[0][0].as_deref(), Some("0")),
            Err(error) => break error.0,
        }
        let activity = engine.server.server.connections.get(other.connection_id()).unwrap().activity();
        if activity.statement().is_empty() {
            // It came while this one waited, and closed the circle itself.
            break other.answer().unwrap_err().0;
        }
    };
    assert_eq!(error, 3058);
    engine.finish();
}

#[test]
fn release_answers_and_ends_the_connection() {
    let engine = Engine::start();
    for sql in ["COMMIT AND NO CHAIN RELEASE", "ROLLBACK RELEASE"] {
        let mut client = engine.root();
        assert_eq!(one(&mut client, "SELECT GET_LOCK('m', 0)").as_deref(), Some("1"));
        client.run(sql).unwrap();
        assert!(client.receive().is_err(), "{sql}: not another word");
    }
    engine.finish();
}
