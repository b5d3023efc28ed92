//! SHOW ENGINE INNODB STATUS: InnoDB's shape, and nothing in it that is not measured.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::Client;
use crate::support::engine::Engine;

fn status(client: &mut Client) -> String {
    let rows = client.run("SHOW ENGINE INNODB STATUS").unwrap();
    assert_eq!((rows.len(), rows[0][0].as_deref()), (1, Some("InnoDB")));
    rows[0][2].clone().unwrap()
}

/// The number after that text.
fn number(status: &str, text: &str) -> f64 {
    let (_, rest) = status.split_once(text).unwrap_or_else(|| panic!("{text:?} is not in\n{status}"));
    let end = rest.trim_start().find(|c: char| !(c.is_ascii_digit() || c == '.'));
    rest.trim_start()[..end.unwrap()].parse().unwrap()
}

/// The number before that text.
fn number_before(status: &str, text: &str) -> f64 {
    let (before, _) = status.split_once(text).unwrap_or_else(|| panic!("{text:?} is not in\n{status}"));
    before.rsplit([' ', '\n']).next().unwrap().parse().unwrap()
}

/// Headings stand between lines of dashes of their length.
fn headings(status: &str) -> Vec<&str> {
    let lines: Vec<&str> = status.lines().collect();
    let framed = |three: &&[&str]| {
        three[0].starts_with('-') && three[0] == three[2] && three[0] == "-".repeat(three[1].len())
    };
    lines.windows(3).filter(framed).map(|three| three[1]).collect()
}

fn shop() -> (Engine, Client) {
    let engine = Engine::start();
    let mut client = engine.root();
    for sql in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY, n INT)",
        "INSERT INTO d.t VALUES (1, 0), (2, 0), (3, 0)",
    ] {
        client.run(sql).unwrap();
    }
    (engine, client)
}

#[test]
fn sections_are_innodbs_and_then_ours() {
    let (engine, mut client) = shop();
    let text = status(&mut client);
    assert_eq!(
        headings(&text),
        [
            "TRANSACTIONS",
            "FILE I/O",
            "LOG",
            "BUFFER POOL AND MEMORY",
            "ROW OPERATIONS",
            "FLUSHING AND PURGE",
            "PAGE PROTECTION"
        ]
    );
    assert!(text.contains("INNODB MONITOR OUTPUT") && text.contains("END OF INNODB MONITOR OUTPUT"));
    assert_eq!(number(&text, "Buffer pool size "), 1024.0, "16 MiB of pages of 16 KiB");
    assert!(text.contains("innodb_doublewrite AUTO"));
    engine.finish();
}

#[test]
fn figures_are_those_of_show_status() {
    let (engine, mut client) = shop();
    let text = status(&mut client);
    for (line, name) in [
        ("Log sequence number", "Innodb_lsn_current"),
        ("Database pages", "Innodb_buffer_pool_pages_data"),
        ("Number of rows inserted", "Innodb_rows_inserted"),
        ("Max checkpoint age", "Innodb_checkpoint_max_age"),
    ] {
        let figures = engine.database.status();
        let (_, figure) = figures.iter().find(|(known, _)| *known == name).unwrap();
        assert_eq!(number(&text, line), *figure as f64, "{line}");
    }
    engine.finish();
}

/// Asks until the printout is so.
fn status_when(client: &mut Client, holds: impl Fn(&str) -> bool) -> String {
    loop {
        let text = status(client);
        if holds(&text) {
            return text;
        }
        std::thread::yield_now();
    }
}

#[test]
fn rates_are_of_the_time_since_the_last_printout() {
    let (engine, mut client) = shop();
    let inserts = |text: &str| number_before(text, " inserts/s");
    let first = status(&mut client);
    assert!(inserts(&first) > 0.0, "{first}");
    // Nothing was inserted in the second before: that takes a printout to count from which is younger than
    // the inserts.
    status_when(&mut client, |text| inserts(text) == 0.0);
    for id in 10..30 {
        client.run(&format!("INSERT INTO d.t VALUES ({id}, 0)")).unwrap();
    }
    let second = status_when(&mut client, |text| inserts(text) > 0.0);
    let seconds = number(&second, "averages calculated from the last");
    assert!(seconds >= 1.0 && inserts(&second) <= 20.0, "{} over {seconds} s", inserts(&second));
    let third = status_when(&mut client, |text| inserts(text) == 0.0);
    assert!(third.contains("Number of rows inserted 23, "), "{third}");
    engine.finish();
}

#[test]
fn transactions_are_listed_with_their_locks_session_and_statement() {
    let (engine, mut one) = shop();
    let (mut other, mut third) = (engine.root(), engine.root());
    // Each changes a row of its own first: a transaction that has changed nothing has no id yet, and is not
    // listed.
    for (client, id) in [(&mut one, 1), (&mut other, 2)] {
        client.run("BEGIN").unwrap();
        client.run(&format!("UPDATE d.t SET n = 1 WHERE id = {id}")).unwrap();
    }
    engine.send_and_wait_for_row(&mut other, "UPDATE d.t SET n = 2 WHERE id = 1");
    let text = status(&mut third);
    let (_, list) = text.split_once("LIST OF TRANSACTIONS").unwrap();
    let (list, _) = list.split_once("FILE I/O").unwrap();
    assert_eq!(list.matches("---TRANSACTION").count(), 2, "{list}");
    assert!(list.contains("\n1 row lock(s), undo log entries 1\n"), "{list}");
    assert!(
        list.contains("\nLOCK WAIT ") && list.contains("\nUPDATE d.t SET n = 2 WHERE id = 1\n"),
        "{list}"
    );
    assert!(text.contains("1 lock wait(s)"), "{text}");
    one.run("ROLLBACK").unwrap();
    other.answer().unwrap();
    other.run("ROLLBACK").unwrap();
    assert!(!status(&mut third).contains("---TRANSACTION"));
    engine.finish();
}

#[test]
fn the_latest_deadlock_names_tables_keys_and_statements() {
    let (engine, mut one) = shop();
    let mut other = engine.root();
    for (client, id) in [(&mut one, 1), (&mut other, 2)] {
        client.run("BEGIN").unwrap();
        client.run(&format!("UPDATE d.t SET n = 7 WHERE id = {id}")).unwrap();
    }
    engine.send_and_wait_for_row(&mut one, "UPDATE d.t SET n = 8 WHERE id = 2");
    assert_eq!(other.run("UPDATE d.t SET n = 9 WHERE id = 1").unwrap_err().0, 1213);
    one.answer().unwrap();
    let text = status(&mut other);
    assert_eq!(headings(&text)[0], "LATEST DETECTED DEADLOCK");
    for part in [
        "UPDATE d.t SET n = 8 WHERE id = 2\n*** (2) WAITING FOR THIS LOCK TO BE GRANTED:\n\
         RECORD LOCKS index PRIMARY of table `d`.`t` lock_mode X locks rec but not gap waiting\nRecord: 2\n",
        "UPDATE d.t SET n = 9 WHERE id = 1\n",
        "Record: 1\n",
        "*** WE ROLL BACK TRANSACTION (1)\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let report = engine.database.latest_deadlock().unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    assert!(now - report.found < std::time::Duration::from_secs(600), "{:?}", report.found);
    one.run("DROP TABLE d.t").unwrap();
    let report = engine.database.latest_deadlock().unwrap();
    assert!(report.transactions.iter().all(|transaction| transaction.table.is_none()), "{report}");
    engine.finish();
}
