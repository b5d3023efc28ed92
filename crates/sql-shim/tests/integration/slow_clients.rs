//! Clients that do not read what they asked for: whichever way a reply takes, it is given up after
//! `net_write_timeout` or with a kill, and locks and read views go with it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::support::engine::Engine;
use crate::support::{Client, packet};

/// More than the buffers of two sockets.
const SELECT: &str = "SELECT REPEAT('x', 40000000) FROM d.t";

fn start() -> (Engine, Client) {
    let engine = Engine::start();
    let mut root = engine.root();
    for statement in
        ["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1), (2)"]
    {
        root.run(statement).unwrap();
    }
    (engine, root)
}

type Ask = fn(&mut Client);

/// The ways to ask for a long reply.
const WAYS: [(&str, Ask); 4] = [
    ("a query", |client| {
        client.sequence = 0;
        client.send(&[&[3], SELECT.as_bytes()].concat());
    }),
    ("a prepared statement", |client| {
        let prepared = client.command(&[&[0x16], SELECT.as_bytes()].concat());
        assert_eq!(prepared[0], 0);
        client.receive().unwrap();
        client.receive().unwrap();
        client.sequence = 0;
        client.send(&[0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0]);
    }),
    ("pipelined queries", |client| {
        let query = packet(0, &[&[3], SELECT.as_bytes()].concat());
        client.send_raw(&[&query[..], &query].concat());
    }),
    ("the end of a reply", |client| {
        client.sequence = 0;
        client.send(&[&[3], format!("{SELECT} WHERE id = 1").as_bytes()].concat());
    }),
];

/// Waits for the first packet of the reply, which is no error.
fn until_answered(slow: &mut Client) {
    slow.sequence = 1;
    assert_eq!(slow.receive().unwrap(), [1], "the number of columns");
}

/// Waits until there is one connection only. A reply that nothing ends keeps the test waiting for ever.
fn until_alone(engine: &Engine) {
    while engine.server.server.connections.len() > 1 {
        std::thread::yield_now();
    }
}

#[test]
fn a_reply_that_is_not_read_is_given_up_in_time() {
    let (engine, mut root) = start();
    root.run("SET GLOBAL net_write_timeout = 1").unwrap();
    for (what, ask) in WAYS {
        println!("{what}");
        let mut slow = engine.root();
        ask(&mut slow);
        until_answered(&mut slow);
        until_alone(&engine);
        // Nothing of it holds the table.
        root.run("TRUNCATE TABLE d.t").unwrap();
        root.run("INSERT INTO d.t VALUES (1), (2)").unwrap();
    }
    engine.finish();
}

#[test]
fn a_change_of_user_that_is_not_answered_holds_nothing_and_ends() {
    let (engine, mut root) = start();
    root.run("SET GLOBAL connect_timeout = 2").unwrap();
    let mut slow = engine.root();
    slow.run("BEGIN").unwrap();
    slow.run("DELETE FROM d.t").unwrap();
    // COM_CHANGE_USER to root in no database; the server asks for a response, and none comes.
    slow.sequence = 0;
    slow.send(b"\x11root\0\0\0\x2d\0mysql_native_password\0");
    slow.sequence = 1;
    assert_eq!(slow.receive().unwrap()[0], 0xfe, "a request for a response");
    root.run("SET innodb_lock_wait_timeout = 1").unwrap();
    root.run("TRUNCATE TABLE d.t").unwrap();
    until_alone(&engine);
    engine.finish();
}

#[test]
fn a_reply_that_is_not_read_can_be_killed() {
    let (engine, mut root) = start();
    for (what, ask) in WAYS {
        println!("{what}");
        let mut slow = engine.root();
        ask(&mut slow);
        until_answered(&mut slow);
        root.run(&format!("KILL {}", slow.connection_id())).unwrap();
        until_alone(&engine);
        root.run("TRUNCATE TABLE d.t").unwrap();
        root.run("INSERT INTO d.t VALUES (1), (2)").unwrap();
    }
    engine.finish();
}
