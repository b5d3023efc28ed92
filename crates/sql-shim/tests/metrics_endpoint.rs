//! The metrics over HTTP: all of them, each line well-formed, and no client that keeps others from them.
#![recursion_limit = "256"]
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/engine.rs"]
mod engine;
mod support;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use engine::Engine;
use sql_shim::metrics::{Endpoint, Site};

/// What comes back for these bytes, until the other side closes (or resets, with input left unread).
fn exchange(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut reply = Vec::new();
    if stream.write_all(request).is_ok() {
        let _ = stream.read_to_end(&mut reply);
    }
    String::from_utf8_lossy(&reply).into_owned()
}

fn scrape(address: SocketAddr) -> String {
    let reply = exchange(address, b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
    let (head, body) = reply.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no header in {reply:?}"));
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
    body.to_owned()
}

/// Samples by name with labels. Checks what OpenMetrics asks of the lines.
fn parse(text: &str) -> BTreeMap<String, f64> {
    let lines = text.strip_suffix("# EOF\n").expect("the end is marked");
    let (mut family, mut kind) = ("", "");
    let (mut families, mut samples) = (Vec::new(), BTreeMap::new());
    for line in lines.lines() {
        if let Some(of) = line.strip_prefix("# TYPE ") {
            (family, kind) = of.split_once(' ').unwrap();
            assert!(["counter", "gauge", "unknown"].contains(&kind), "{line}");
            assert!(!families.contains(&family), "{family} is there twice");
            families.push(family);
        } else if let Some(of) = line.strip_prefix("# HELP ") {
            assert!(of.strip_prefix(family).is_some_and(|help| help.starts_with(' ')), "{line}");
        } else {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let bare = name.split('{').next().unwrap();
            let suffix = if kind == "counter" { "_total" } else { "" };
            assert_eq!(bare, format!("{family}{suffix}"), "{line}");
            assert!(
                bare.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
            );
            assert!(samples.insert(name.to_owned(), value.parse().unwrap()).is_none(), "{line} again");
        }
    }
    samples
}

fn start() -> (Engine, Endpoint) {
    let engine = Engine::start();
    sql_shim::metrics::connect(&engine.server.server, &engine.database);
    let endpoint = Endpoint::start(([127, 0, 0, 1], 0).into(), &engine.server.server, Site::Metrics).unwrap();
    (engine, endpoint)
}

#[test]
fn every_metric_is_in_show_status_and_in_the_scrape() {
    let (engine, endpoint) = start();
    let mut client = engine.root();
    for sql in
        ["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1), (2)"]
    {
        client.run(sql).unwrap();
    }
    let samples = parse(&scrape(endpoint.address()));
    let rows = client.run("SHOW GLOBAL STATUS").unwrap();
    for metric in untorn::metrics::all() {
        let row = rows.iter().find(|row| row[0].as_deref() == Some(metric.name));
        assert!(row.is_some_and(|row| row[1].as_deref().unwrap().parse::<u64>().is_ok()), "{}", metric.name);
        let name = metric.name.to_ascii_lowercase();
        let group = |prefix: &str| name.strip_prefix(prefix).map(|which| format!("=\"{which}\"}}"));
        let found = if name == "innodb_buffer_pool_pages_total" {
            continue;
        } else if name == "innodb_buffer_pool_pages_dirty" {
            samples.contains_key("mysql_global_status_buffer_pool_dirty_pages")
        } else if let Some(end) = group("innodb_buffer_pool_pages_").or_else(|| group("innodb_rows_")) {
            samples.keys().any(|sample| sample.ends_with(&end))
        } else if name.starts_with("untorn_") {
            samples.contains_key(&name) || samples.contains_key(&format!("{name}_total"))
        } else {
            samples.contains_key(&format!("mysql_global_status_{name}"))
        };
        assert!(found, "{name} is not in the scrape");
    }
    assert_eq!(samples["mysql_global_status_innodb_row_ops_total{operation=\"inserted\"}"], 2.0);
    assert_eq!(samples["mysql_global_status_commands_total{command=\"create_table\"}"], 1.0);
    drop(endpoint);
    engine.finish();
}

#[test]
fn hostile_clients_are_shed_and_do_not_keep_a_scraper_out() {
    let (engine, endpoint) = start();
    let address = endpoint.address();
    let status = |request: &[u8]| exchange(address, request).lines().next().unwrap_or_default().to_owned();
    assert!(status(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").contains(" 404 "));
    assert!(status(b"POST /metrics HTTP/1.1\r\nHost: here\r\nContent-Length: 0\r\n\r\n").contains(" 405 "));
    assert!(!status(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n").contains(" 200 "));
    let huge = [b"GET /metrics HTTP/1.1\r\nX: ".as_slice(), &vec![b'a'; 1 << 20], b"\r\n\r\n"].concat();
    assert!(!status(&huge).contains(" 200 "));
    // Clients that send half a line and wait: one too many is closed at once, without a byte.
    let slow = || {
        let mut stream = TcpStream::connect(address).unwrap();
        let _ = stream.write_all(b"GET /met");
        stream
    };
    let waiting: Vec<TcpStream> = (0..16).map(|_| slow()).collect();
    assert_eq!(exchange(address, b""), "");
    // They are let go at the deadline, not at their own pleasure.
    for mut stream in waiting {
        assert!(!matches!(stream.read(&mut [0; 1]), Ok(1..)), "an answer to half a request");
    }
    parse(&scrape(address));
    drop(endpoint);
    engine.finish();
}
