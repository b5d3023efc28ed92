//! The metrics and the dashboard over HTTP: all figures, each line well-formed, and no client that keeps
//! others from them or reads what it should not.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use crate::support::engine::Engine;
use sql_shim::dashboard::OneAccount;
use sql_shim::status::Counter;
use untorn::dashboard::{Dashboard, Endpoint, Site, Source};

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
            assert!(["counter", "gauge", "histogram", "unknown"].contains(&kind), "{line}");
            assert!(!families.contains(&family), "{family} is there twice");
            families.push(family);
        } else if let Some(of) = line.strip_prefix("# UNIT ") {
            assert_eq!(of.strip_prefix(family), Some(" seconds"), "{line}");
        } else if let Some(of) = line.strip_prefix("# HELP ") {
            assert!(of.strip_prefix(family).is_some_and(|help| help.starts_with(' ')), "{line}");
        } else {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let bare = name.split('{').next().unwrap();
            let suffixes: &[&str] = match kind {
                "counter" => &["_total"],
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            assert!(bare.strip_prefix(family).is_some_and(|end| suffixes.contains(&end)), "{line}");
            assert!(
                bare.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
            );
            assert!(samples.insert(name.to_owned(), value.parse().unwrap()).is_none(), "{line} again");
        }
    }
    samples
}

fn source(engine: &Engine) -> Arc<dyn Source> {
    let look = sql_shim::dashboard::look(&engine.database);
    sql_shim::dashboard::source(&engine.server.server, look)
}

fn start() -> (Engine, Endpoint) {
    let engine = Engine::start();
    sql_shim::metrics::connect(&engine.server.server, &engine.database);
    let endpoint = Endpoint::start(([127, 0, 0, 1], 0).into(), source(&engine), Site::Metrics).unwrap();
    (engine, endpoint)
}

#[test]
fn every_family_of_the_server_has_a_kind_and_a_meaning() {
    let (engine, endpoint) = start();
    sql_shim::extension::connect(&engine.server.server, &engine.database);
    let text = scrape(endpoint.address());
    let mut families = 0;
    for family in text.lines().filter_map(|line| line.strip_prefix("# TYPE untorn_")) {
        families += 1;
        let (name, kind) = family.split_once(' ').unwrap();
        assert_ne!(kind, "unknown", "{name}");
        assert!(kind == "counter" || !name.ends_with("_total"), "{family}");
        assert!(text.contains(&format!("\n# HELP untorn_{name} ")), "{name} has no help");
    }
    assert!(families > 50 && text.contains("# TYPE untorn_bpe_hit_ratio gauge\n"), "{families}");
    assert!(text.contains("# TYPE untorn_slow_log_lost counter\n"), "{text}");
    engine.finish();
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
    for series in engine.server.server.status.times() {
        let name = series.family.to_ascii_lowercase();
        let label = series.label.map(|(name, value)| format!("{{{name}=\"{value}\"}}")).unwrap_or_default();
        assert!(samples.contains_key(&format!("{name}_seconds_count{label}")), "{name} is not in the scrape");
        for row in series.rows {
            assert!(rows.iter().any(|found| found[0].as_deref() == Some(row)), "{row} is not in SHOW STATUS");
        }
    }
    // What happened was measured, where it happened.
    for (name, least) in [("statement", 3.0), ("commit", 1.0), ("log_sync", 1.0)] {
        let count = samples[&format!("untorn_{name}_seconds_count")];
        let seconds = samples[&format!("untorn_{name}_seconds_sum")];
        assert!(count >= least && seconds > 0.0, "{name}: {count} in {seconds} s");
        assert_eq!(samples[&format!("untorn_{name}_seconds_bucket{{le=\"+Inf\"}}")], count);
    }
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
    // Clients that send half a line and wait: the oldest make room.
    let slow = || {
        let mut stream = TcpStream::connect(address).unwrap();
        let _ = stream.write_all(b"GET /met");
        stream
    };
    let waiting: Vec<TcpStream> = (0..100).map(|_| slow()).collect();
    parse(&scrape(address));
    // The others are let go at the deadline, not at their own pleasure.
    for mut stream in waiting {
        assert!(!matches!(stream.read(&mut [0; 1]), Ok(1..)), "an answer to half a request");
    }
    parse(&scrape(address));
    drop(endpoint);
    engine.finish();
}

/// An engine with a dashboard on it; the port is free.
fn start_dashboard() -> (Engine, Endpoint) {
    let engine = Engine::start();
    sql_shim::metrics::connect(&engine.server.server, &engine.database);
    let site = Site::Dashboard(Dashboard::new());
    let endpoint = Endpoint::start(([127, 0, 0, 1], 0).into(), source(&engine), site).unwrap();
    (engine, endpoint)
}

fn get(address: SocketAddr, path: &str, host: &str) -> (String, String) {
    let reply = exchange(address, format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
    let (head, body) = reply.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no header in {reply:?}"));
    (head.to_owned(), body.to_owned())
}

fn samples(address: SocketAddr, since: u64) -> serde_json::Value {
    let (head, body) = get(address, &format!("/api/samples?since={since}"), "localhost");
    assert!(head.contains("content-type: application/json"), "{head}");
    serde_json::from_str(&body).unwrap()
}

#[test]
fn the_dashboard_keeps_samples_of_rows_that_exist_and_tells_who_blocks_whom() {
    let (engine, endpoint) = start_dashboard();
    let address = endpoint.address();
    let (mut holder, mut waiter) = (engine.root(), engine.root());
    for sql in
        ["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)", "INSERT INTO d.t VALUES (1, 1)"]
    {
        holder.run(sql).unwrap();
    }
    holder.run("BEGIN").unwrap();
    holder.run("UPDATE d.t SET v = 2").unwrap();
    let id = |client: &mut crate::support::Client| {
        let rows = client.run("SELECT CONNECTION_ID()").unwrap();
        rows[0][0].as_deref().unwrap().parse::<u64>().unwrap()
    };
    let (holds, waits) = (id(&mut holder), id(&mut waiter));
    let waiting = std::thread::spawn(move || waiter.run("UPDATE d.t SET v = 3"));
    let reply = loop {
        let reply = samples(address, 0);
        if !reply["waits"].as_array().unwrap().is_empty() && !reply["samples"].as_array().unwrap().is_empty()
        {
            break reply;
        }
        std::thread::yield_now();
    };
    let wait = &reply["waits"][0];
    let (waiter, blocker) = (&wait["waiting"], &wait["blocking"]);
    assert_eq!((waiter["connection"].as_u64(), blocker["connection"].as_u64()), (Some(waits), Some(holds)));
    assert_eq!(
        (&waiter["user"], &waiter["statement"]),
        (&"root".into(), &"UPDATE `d` . `t` SET `v` = ?".into())
    );
    assert_eq!((&blocker["user"], &blocker["statement"]), (&"root".into(), &"".into()));
    let place = (&wait["table"], &wait["index"], &wait["lock"]);
    assert_eq!(place, (&"d.t".into(), &"PRIMARY".into(), &"X".into()));
    assert_eq!(wait["behind"], 1);
    assert!(wait["since_unix_ms"].as_u64() > Some(1_600_000_000_000), "{wait}");
    holder.run("COMMIT").unwrap();
    waiting.join().unwrap().unwrap();
    // The extension's figures are not connected here.
    let fields = reply["fields"].as_array().unwrap().iter().map(|field| field.as_str().unwrap());
    for (field, value) in fields.zip(reply["samples"][0][1].as_array().unwrap()) {
        let may_lack = field.starts_with("Untorn_bpe_hit_ratio") || field.ends_with("_us");
        assert!(value.is_number() || may_lack, "there is no row {field}");
    }
    let file = reply["files"]
        .as_array()
        .unwrap()
        .iter()
        .find(|file| file["file"].as_str().is_some_and(|name| name.ends_with("t.ibd")));
    assert!(file.is_some_and(|file| !file["reason"].as_str().unwrap().is_empty()), "{}", reply["files"]);
    assert_eq!(reply["events"][0]["kind"], "start");
    let last = reply["first"].as_u64().unwrap() + reply["samples"].as_array().unwrap().len() as u64 - 1;
    let next = samples(address, last);
    assert!(
        next["first"].as_u64() == Some(last + 1) && next["events"].as_array().unwrap().is_empty(),
        "{next}"
    );
    drop(endpoint);
    engine.finish();
}

#[test]
fn the_dashboard_answers_only_under_its_own_name_and_takes_nothing_from_elsewhere() {
    let (engine, endpoint) = start_dashboard();
    let address = endpoint.address();
    for path in ["/", "/page.css", "/page.js"] {
        let (head, body) = get(address, path, "127.0.0.1:9105");
        assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("default-src 'none'"), "{path}: {head}");
        assert!(!body.contains("http://") && !body.contains("https://"), "{path} names another place");
        let (head, _) = get(address, path, "evil.example");
        assert!(head.starts_with("HTTP/1.1 421 "), "{path}: {head}");
    }
    let two = exchange(address, b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n");
    assert!(!two.contains(" 200 "), "{two}");
    assert!(exchange(address, b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 421 "));
    assert!(exchange(address, b"DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 405 "));
    assert!(get(address, "/metrics", "localhost").0.starts_with("HTTP/1.1 200 "));
    assert!(get(address, "/metrics", "evil.example").0.starts_with("HTTP/1.1 421 "));
    assert!(get(address, "/etc/passwd", "localhost").0.starts_with("HTTP/1.1 404 "));
    drop(endpoint);
    engine.finish();
}

#[test]
fn who_waits_for_a_table_and_what_the_pool_holds_is_told() {
    let (engine, endpoint) = start_dashboard();
    let address = endpoint.address();
    let (mut reader, mut changer) = (engine.root(), engine.root());
    for sql in ["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1)"] {
        reader.run(sql).unwrap();
    }
    // It has read, and has neither an id nor a lock on a row.
    reader.run("BEGIN").unwrap();
    reader.run("SELECT * FROM d.t").unwrap();
    let id = |client: &mut crate::support::Client| {
        crate::support::one(client, "SELECT CONNECTION_ID()").parse::<u64>().unwrap()
    };
    let (reads, changes) = (id(&mut reader), id(&mut changer));
    let waiting = std::thread::spawn(move || changer.run("ALTER TABLE d.t ADD COLUMN v INT"));
    let reply = loop {
        let reply = samples(address, 0);
        let pool = reply["pool"].as_array().unwrap();
        if !reply["waits"].as_array().unwrap().is_empty() && !pool.is_empty() {
            break reply;
        }
        std::thread::yield_now();
    };
    let wait = &reply["waits"][0];
    let connections = (wait["waiting"]["connection"].as_u64(), wait["blocking"]["connection"].as_u64());
    assert_eq!(connections, (Some(changes), Some(reads)), "{wait}");
    assert_eq!((&wait["table"], &wait["lock"]), (&"d.t".into(), &"EXCLUSIVE".into()));
    assert_eq!((&wait["behind"], &wait["waiting"]["user"]), (&1.into(), &"root".into()));
    let shares: f64 =
        reply["pool"].as_array().unwrap().iter().map(|part| part["share"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-6, "{}", reply["pool"]);
    reader.run("COMMIT").unwrap();
    waiting.join().unwrap().unwrap();
    while !samples(address, 0)["waits"].as_array().unwrap().is_empty() {}
    drop(endpoint);
    engine.finish();
}

#[test]
fn with_an_account_the_page_is_for_that_account() {
    let engine = Engine::start();
    let server = &engine.server.server;
    let mut root = engine.root();
    for sql in [
        "CREATE USER viewer@'%' IDENTIFIED BY 'right'",
        "CREATE USER other@'%' IDENTIFIED BY 'right'",
        "GRANT PROCESS ON *.* TO viewer@'%'",
        "GRANT PROCESS ON *.* TO other@'%'",
    ] {
        root.run(sql).unwrap();
    }
    let known = Arc::new(std::sync::OnceLock::new());
    let gate = OneAccount { user: "viewer".to_owned(), server: known.clone() };
    let site = Site::Dashboard(Dashboard::behind(Box::new(gate)));
    let endpoint = Endpoint::start(([127, 0, 0, 1], 0).into(), source(&engine), site).unwrap();
    let address = endpoint.address();
    let status = |shown: &str| {
        let header =
            if shown.is_empty() { String::new() } else { format!("Authorization: Basic {shown}\r\n") };
        let request = format!("GET /api/samples HTTP/1.1\r\nHost: db.example\r\n{header}\r\n");
        exchange(address, request.as_bytes()).split(' ').nth(1).unwrap_or_default().to_owned()
    };
    // viewer:right, viewer:wrong, other:right
    let (right, wrong, other) = ("dmlld2VyOnJpZ2h0", "dmlld2VyOndyb25n", "b3RoZXI6cmlnaHQ=");
    assert_eq!(status(right), "401", "the accounts are not known yet");
    known.set(Arc::downgrade(server)).unwrap();
    let refused = || server.status.sum(Counter::AbortedConnects);
    let before = refused();
    assert_eq!([right, right, wrong, other, ""].map(status), ["200", "200", "401", "401", "401"]);
    assert_eq!(refused() - before, 2, "who is asked for a password was not refused");
    let shown = root.run("SHOW GLOBAL STATUS LIKE 'Aborted_connects'").unwrap();
    assert_eq!(shown[0][1].as_deref(), Some(&*refused().to_string()));
    // Passwords are not tried faster by those who do not wait for the answer: sixteen in a second.
    let (before, began) = (refused(), std::time::Instant::now());
    while refused() - before < 33 {
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("GET / HTTP/1.1\r\nHost: db.example\r\nAuthorization: Basic {wrong}\r\n\r\n");
        let _ = stream.write_all(request.as_bytes());
    }
    assert!(began.elapsed() >= std::time::Duration::from_secs(2), "{:?}", began.elapsed());
    // Who comes meanwhile is told to come again, or not let in.
    let status = |shown: &str| loop {
        let said = status(shown);
        if said != "503" && !said.is_empty() {
            break said;
        }
    };
    assert_eq!(status(right), "200");
    root.run("REVOKE PROCESS ON *.* FROM viewer@'%'").unwrap();
    assert_eq!(status(right), "401", "it may not see what others do");
    root.run("GRANT PROCESS ON *.* TO viewer@'%'").unwrap();
    root.run("ALTER USER viewer@'%' ACCOUNT LOCK").unwrap();
    assert_eq!(status(right), "401");
    drop(endpoint);
    engine.finish();
}

/// The names that the Grafana dashboard asks for.
#[test]
fn what_the_grafana_dashboard_asks_for_is_in_the_scrape() {
    let file = include_str!("../../../../docs/grafana/untorn.json");
    let dashboard: serde_json::Value = serde_json::from_str(file).unwrap();
    let (engine, endpoint) = start();
    let known: std::collections::BTreeSet<String> = parse(&scrape(endpoint.address()))
        .into_keys()
        .map(|name| name.split('{').next().unwrap().to_owned())
        .collect();
    let mut asked = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            for name in words.filter(|word| word.starts_with("untorn_") || word.starts_with("mysql_")) {
                assert!(known.contains(name), "{name} of {expression}");
                asked += 1;
            }
        }
    }
    assert!(asked > 20, "{asked}");
    drop(endpoint);
    engine.finish();
}
