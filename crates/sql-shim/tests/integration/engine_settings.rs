//! Variables that reach the engine.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::engine::Engine;

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
fn the_recovery_target_is_set_in_seconds_and_is_the_machines_otherwise() {
    let engine = Engine::start();
    let mut root = engine.root();
    let by_machine = engine.database.store().recovery_target();
    assert!(by_machine >= Duration::from_secs(10), "{by_machine:?}");
    root.run("SET GLOBAL untorn_recovery_target = 3").unwrap();
    assert_eq!(engine.database.store().recovery_target(), Duration::from_secs(3));
    root.run("SET GLOBAL untorn_recovery_target = DEFAULT").unwrap();
    assert_eq!(engine.database.store().recovery_target(), by_machine);
    engine.finish();
}

#[test]
fn read_ahead_is_set_under_load() {
    let engine = Engine::start();
    let mut root = engine.root();
    let store = engine.database.store();
    assert_eq!((store.read_ahead_threshold(), store.random_read_ahead()), (56, false));
    root.run("SET GLOBAL innodb_read_ahead_threshold = 0").unwrap();
    root.run("SET GLOBAL innodb_random_read_ahead = ON").unwrap();
    assert_eq!((store.read_ahead_threshold(), store.random_read_ahead()), (0, true));
    root.run("SET GLOBAL innodb_read_ahead_threshold = DEFAULT").unwrap();
    root.run("SET GLOBAL innodb_random_read_ahead = DEFAULT").unwrap();
    assert_eq!((store.read_ahead_threshold(), store.random_read_ahead()), (56, false));
    engine.finish();
}

#[test]
fn a_redo_log_that_is_set_no_longer_changes_by_itself() {
    let engine = Engine::start();
    let mut root = engine.root();
    engine.database.store().set_log_growth(Some(std::sync::Arc::new(|| u64::MAX)));
    root.run("SET GLOBAL innodb_redo_log_capacity = 128 * 1024 * 1024").unwrap();
    assert!(!engine.database.store().log_grows_by_itself());
    let shown = root.run("SELECT @@GLOBAL.innodb_redo_log_capacity").unwrap();
    assert_eq!(shown, vec![vec![Some((128 << 20).to_string())]]);
    engine.finish();
}

/// DEFAULT is what a start without the setting has, and gives the rise by itself back.
#[test]
fn a_redo_log_of_default_capacity_changes_by_itself() {
    let engine = Engine::start();
    let mut root = engine.root();
    let store = engine.database.store();
    for persists in ["GLOBAL", "PERSIST"] {
        root.run(&format!("SET {persists} innodb_redo_log_capacity = 64 * 1024 * 1024")).unwrap();
        assert!(!store.log_grows_by_itself());
        root.run(&format!("SET {persists} innodb_redo_log_capacity = DEFAULT")).unwrap();
        assert!(store.log_grows_by_itself());
        let holds = engine.database.redo_capacity_bytes();
        assert!((32 << 20..=128 << 20).contains(&holds), "that of a small pool: {holds}");
        let shown = root.run("SELECT @@GLOBAL.innodb_redo_log_capacity").unwrap();
        assert_eq!(shown, vec![vec![Some(holds.to_string())]]);
    }
    engine.finish();
}

/// Asks until the answer begins like this.
fn until_status(client: &mut crate::support::Client, name: &str, wanted: &str) {
    loop {
        let rows = client.run(&format!("SHOW GLOBAL STATUS LIKE '{name}'")).unwrap();
        if rows[0][1].as_deref().is_some_and(|status| status.starts_with(wanted)) {
            return;
        }
        std::thread::yield_now();
    }
}

#[test]
fn the_pools_contents_are_written_and_read_when_told_to() {
    let engine = Engine::start();
    let mut root = engine.root();
    // A new directory has no file of an earlier run.
    until_status(&mut root, "Innodb_buffer_pool_load_status", "Cannot read");
    for (name, status, wanted) in [
        ("dump", "Innodb_buffer_pool_dump_status", "Buffer pool(s) dump completed"),
        ("load", "Innodb_buffer_pool_load_status", "Buffer pool(s) load completed"),
    ] {
        root.run(&format!("SET GLOBAL innodb_buffer_pool_{name}_now = ON")).unwrap();
        until_status(&mut root, status, wanted);
        let variable = root.run(&format!("SELECT @@GLOBAL.innodb_buffer_pool_{name}_now")).unwrap();
        assert_eq!(variable, vec![vec![Some("0".to_owned())]], "it is OFF again");
    }
    root.run("SET GLOBAL innodb_buffer_pool_dump_now = OFF").unwrap();
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
        engine.send_and_wait_for_row(&mut one, "UPDATE d.t SET n = n + 1 WHERE id = 2");
        let second = other.run("UPDATE d.t SET n = n + 1 WHERE id = 1");
        let failed = [one.answer(), second].into_iter().filter_map(Result::err).map(|error| error.0);
        let failed: Vec<u16> = failed.collect();
        assert!(!failed.is_empty() && failed.iter().all(|found| *found == code), "{detect}: {failed:?}");
        one.run("ROLLBACK").unwrap();
        other.run("ROLLBACK").unwrap();
    }
    engine.finish();
}

/// Lets the clients end, also when the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// The pool grows and shrinks while clients change and check rows of their own, more than it holds.
#[test]
fn the_pool_is_resized_under_load() {
    const CLIENTS: u32 = 3;
    const ROWS: u32 = 6000;
    let engine = Engine::start();
    let mut root = engine.root();
    let variable =
        |root: &mut crate::support::Client| root.run("SELECT @@GLOBAL.innodb_buffer_pool_size").unwrap();
    assert_eq!(variable(&mut root), vec![vec![Some((16 << 20).to_string())]]);
    root.run("CREATE DATABASE d").unwrap();
    root.run("CREATE TABLE d.t (id INT PRIMARY KEY, n INT, pad VARCHAR(900))").unwrap();
    for start in (0..CLIENTS * ROWS).step_by(500) {
        let rows: Vec<String> =
            (start..start + 500).map(|id| format!("({id}, 0, REPEAT('x', 900))")).collect();
        root.run(&format!("INSERT INTO d.t VALUES {}", rows.join(","))).unwrap();
    }
    let running = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let _stop = Stop(&running);
        for number in 0..CLIENTS {
            let (mut client, running) = (engine.root(), &running);
            scope.spawn(move || {
                let mut random = disk::Random::new(u64::from(number));
                let mut values = vec![0; ROWS as usize];
                while running.load(Ordering::Relaxed) {
                    let row = random.below(ROWS as usize);
                    let id = number * ROWS + row as u32;
                    if random.one_in(2) {
                        client.run(&format!("UPDATE d.t SET n = n + 1 WHERE id = {id}")).unwrap();
                        values[row] += 1;
                    }
                    let found = client.run(&format!("SELECT n FROM d.t WHERE id = {id}")).unwrap();
                    assert_eq!(found, vec![vec![Some(values[row].to_string())]], "row {id}");
                }
            });
        }
        let mut random = disk::Random::new(9);
        let mut before = 16_u64 << 20;
        for mib in [40, 6, 24, 5, 64, 8, 16] {
            let bytes: u64 = (mib << 20) + 4096 * random.below(100) as u64;
            root.run(&format!("SET GLOBAL innodb_buffer_pool_size = {bytes}")).unwrap();
            assert_eq!(variable(&mut root), vec![vec![Some(bytes.to_string())]]);
            let wanted = format!("Completed resizing buffer pool from {before} to {bytes} bytes");
            let status = |root: &mut crate::support::Client| {
                let rows = root.run("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_resize_status'").unwrap();
                rows[0][1].clone().unwrap()
            };
            while status(&mut root) != wanted {
                std::thread::yield_now();
            }
            assert_eq!(engine.database.store().status().pages_total, bytes / 16384);
            before = bytes;
        }
        // More than the machine has.
        let refused = root.run("SET GLOBAL innodb_buffer_pool_size = 1000000000000000").unwrap_err();
        assert_eq!(refused.0, 1231);
        assert_eq!(variable(&mut root), vec![vec![Some(before.to_string())]]);
    });
    let sum = root.run("CHECK TABLE d.t").unwrap();
    assert!(sum.iter().flatten().flatten().any(|text| text == "OK"), "{sum:?}");
    engine.finish();
}
