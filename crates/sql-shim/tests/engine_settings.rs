//! Variables that reach the engine.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/engine.rs"]
mod engine;
mod support;

use engine::Engine;

#[test]
fn io_capacity_max_is_the_cleaners() {
    let engine = Engine::start();
    let mut root = engine.root();
    assert_eq!(engine.database.store().io_capacity_max(), None);
    root.run("SET GLOBAL innodb_io_capacity_max = 4000").unwrap();
    assert_eq!(engine.database.store().io_capacity_max(), Some(4000));
    root.run("SET GLOBAL innodb_io_capacity_max = DEFAULT").unwrap();
    assert_eq!(engine.database.store().io_capacity_max(), None);
    engine.finish();
}

#[test]
fn without_deadlock_detection_the_timeout_ends_it() {
    let engine = Engine::start();
    let (mut one, mut other) = (engine.root(), engine.root());
    for sql in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY, n INT)",
        "INSERT INTO d.t VALUES (1, 0), (2, 0)",
    ] {
        one.run(sql).unwrap();
    }
    for (detect, code) in [("ON", 1213), ("OFF", 1205)] {
        one.run(&format!("SET GLOBAL innodb_deadlock_detect = {detect}")).unwrap();
        for (client, id) in [(&mut one, 1), (&mut other, 2)] {
            client.run("SET innodb_lock_wait_timeout = 2").unwrap();
            client.run("BEGIN").unwrap();
            client.run(&format!("UPDATE d.t SET n = n + 1 WHERE id = {id}")).unwrap();
        }
        one.sequence = 0;
        one.send(b"\x03UPDATE d.t SET n = n + 1 WHERE id = 2");
        let system = engine.database.transaction_system();
        while !system.transactions().iter().any(|transaction| transaction.waiting) {
            std::thread::yield_now();
        }
        let second = other.run("UPDATE d.t SET n = n + 1 WHERE id = 1");
        let failed = [one.answer(), second].into_iter().filter_map(Result::err).map(|error| error.0);
        let failed: Vec<u16> = failed.collect();
        assert!(!failed.is_empty() && failed.iter().all(|found| *found == code), "{detect}: {failed:?}");
        one.run("ROLLBACK").unwrap();
        other.run("ROLLBACK").unwrap();
    }
    engine.finish();
}
