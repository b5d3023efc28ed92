//! What clients hear of changes of their session, byte for byte as MySQL 9.7 says it.
//!
//! `session_tracking.txt` has statements, each with what follows the counts in MySQL's answers to it, the
//! status flags of which are those that tell something of the session.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write as _;

use crate::support::engine::Engine;
use crate::support::{CAPABILITIES, Client, DEPRECATE_EOF, all, error_code};
use sql_shim::auth::native;

const SESSION_TRACK: u32 = 1 << 23;
const MORE_RESULTS: u16 = 8;
/// AUTOCOMMIT, MORE_RESULTS_EXISTS, IN_TRANS_READONLY, SESSION_STATE_CHANGED.
const FLAGS: u16 = 0x600a;
const FACTS: &str = include_str!("session_tracking.txt");

fn login(engine: &Engine, capabilities: u32, database: Option<&str>) -> (Client, String) {
    let mut client = engine.server.connect();
    let reply = client.log_in("root", b"", native::PLUGIN, CAPABILITIES | capabilities, database);
    assert_eq!(reply.first(), Some(&0), "{reply:?}");
    let (_, line) = ok(&reply);
    (client, line)
}

/// Flags of an OK and what follows its counts: the text, and the changes.
fn ok(packet: &[u8]) -> (u16, String) {
    let mut rest = &packet[1..];
    for _ in 0..2 {
        assert!(rest[0] < 251, "counts are small here");
        rest = &rest[1..];
    }
    let status = u16::from_le_bytes([rest[0], rest[1]]);
    let mut line = format!("{:04x} ", status & FLAGS);
    rest[4..].iter().for_each(|byte| write!(line, "{byte:02x}").unwrap());
    (status, line.trim_end().to_owned())
}

/// The answers to a command, one a line.
fn answers(client: &mut Client, command: &[u8], rows_end_with_ok: bool) -> Vec<String> {
    let mut lines = Vec::new();
    client.sequence = 0;
    client.send(command);
    loop {
        let first = client.receive().unwrap();
        let status = match first[0] {
            0 => {
                let (status, line) = ok(&first);
                lines.push(line);
                status
            }
            0xff => {
                lines.push(format!("error {}", error_code(&first)));
                return lines;
            }
            columns => {
                (0..columns).for_each(|_| drop(client.receive().unwrap()));
                if !rows_end_with_ok {
                    client.receive().unwrap();
                }
                let mut last = client.receive().unwrap();
                while last[0] != 0xfe {
                    last = client.receive().unwrap();
                }
                if rows_end_with_ok {
                    let (status, line) = ok(&last);
                    lines.push(line);
                    status
                } else {
                    let status = u16::from_le_bytes([last[3], last[4]]);
                    lines.push(format!("eof {:04x}", status & FLAGS));
                    status
                }
            }
        };
        if status & MORE_RESULTS == 0 {
            return lines;
        }
    }
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = (0..hex.len()).step_by(2);
    digits.map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn changes_are_said_as_mysql_says_them() {
    let engine = Engine::start();
    let mut root = engine.root();
    let tables = ["t (a INT)", "u (a INT PRIMARY KEY)"];
    all(&mut root, &["CREATE DATABASE wire_t", "CREATE DATABASE wire_x", "USE wire_t"]);
    tables.iter().for_each(|table| all(&mut root, &[&format!("CREATE TABLE {table}")]));
    all(&mut root, &["INSERT INTO u VALUES (1), (2)"]);
    let (mut client, mut ends_with_ok, mut name) = (None, true, "");
    let mut lines = FACTS.lines().peekable();
    let mut differences = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("# ") {
            name = title;
            ends_with_ok = !title.ends_with("(rows end with EOF)");
            let capabilities = SESSION_TRACK | if ends_with_ok { DEPRECATE_EOF } else { 0 };
            client = Some(login(&engine, capabilities, Some("wire_t")).0);
        } else if let Some(statement) = line.strip_prefix("> ") {
            let command = match statement.strip_prefix("COM ") {
                Some(hex) => bytes_of(hex),
                None => [b"\x03", statement.as_bytes()].concat(),
            };
            let mut expected = Vec::new();
            while let Some(answer) = lines.next_if(|next| !next.is_empty() && !next.starts_with("> ")) {
                expected.push(answer.to_owned());
            }
            let got = answers(client.as_mut().unwrap(), &command, ends_with_ok);
            if got != expected {
                differences.push(format!("{name}: {statement}\n  {got:?}\n  {expected:?}"));
            }
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
    engine.finish();
}

#[test]
fn a_set_that_fails_in_the_middle_changes_nothing_of_what_is_tracked() {
    let engine = Engine::start();
    let (mut client, _) = login(&engine, SESSION_TRACK | DEPRECATE_EOF, None);
    for statement in [&b"\x03SET autocommit = 0"[..], b"\x03XA BEGIN 'a'"] {
        assert_eq!(answers(&mut client, statement, true).len(), 1);
    }
    let refused = b"\x03SET session_track_system_variables = '', autocommit = 1";
    assert_eq!(answers(&mut client, refused, true), ["error 1399"]);
    let said = answers(&mut client, b"\x03SET time_zone = '+01:00'", true);
    let name: String = "time_zone".bytes().map(|byte| format!("{byte:02x}")).collect();
    assert!(said[0].contains(&name), "{said:?}");
    engine.finish();
}

#[test]
fn only_those_who_ask_hear_of_it() {
    let engine = Engine::start();
    all(&mut engine.root(), &["CREATE DATABASE wire_t"]);
    let said = "4002 0009010706776972655f74";
    let (mut client, line) = login(&engine, SESSION_TRACK | DEPRECATE_EOF, Some("wire_t"));
    assert_eq!(line, said, "the database of the login");
    // The session of another user is a fresh one.
    all(&mut engine.root(), &["CREATE USER u IDENTIFIED WITH mysql_native_password BY 'pw'"]);
    all(&mut engine.root(), &["GRANT ALL ON *.* TO u"]);
    assert_eq!(answers(&mut client, b"\x03SET session_track_state_change = 1", true), ["0002"]);
    client.sequence = 0;
    client.send(b"\x11u\0\0wire_t\0\x2d\0mysql_native_password\0");
    assert_eq!(ok(&client.finish_login(b"pw")).1, said);
    assert_eq!(answers(&mut client, b"\x03SET @a = 1", true), ["0002"]);

    let (mut client, line) = login(&engine, DEPRECATE_EOF, Some("wire_t"));
    assert_eq!(line, "0002");
    let set = b"\x03SET session_track_state_change = 1, session_track_transaction_info = 'STATE'";
    assert_eq!(answers(&mut client, set, true), ["0002"]);
    for statement in [&b"\x03USE wire_t"[..], b"\x03SET @a = 1, time_zone = '+01:00'"] {
        assert_eq!(answers(&mut client, statement, true), ["0002"]);
    }
    assert_eq!(answers(&mut client, b"\x03BEGIN", true), ["0002"]);
    engine.finish();
}

#[test]
fn settings_are_checked() {
    let engine = Engine::start();
    let mut client = engine.root();
    let warning = |client: &mut Client| client.run("SHOW WARNINGS").unwrap()[0].clone();
    all(&mut client, &["SET session_track_system_variables = 'nonsense, autocommit'"]);
    let text = "nonsense is not a valid system variable and will be ignored.";
    let expected = ["Warning", "1231", text].map(|text| Some(text.to_owned()));
    assert_eq!(warning(&mut client), expected);
    all(&mut client, &["SET session_track_system_variables = DEFAULT"]);
    let listed = "time_zone,autocommit,character_set_client,character_set_results,character_set_connection";
    assert_eq!(crate::support::one(&mut client, "SELECT @@session_track_system_variables"), listed);
    all(&mut client, &["SET session_track_gtids = OFF"]);
    for (statement, code) in [
        ("SET session_track_gtids = OWN_GTID", 1231),
        ("SET session_track_schema = 2", 1231),
        ("SET session_track_state_change = 'x'", 1231),
        ("SET session_track_system_variables = REPEAT('a', 16385)", 1231),
        ("SET session_track_system_variables = 'autocommit,AutoCommit'", 3026),
    ] {
        assert_eq!(client.run(statement).unwrap_err().0, code, "{statement}");
    }
    engine.finish();
}
