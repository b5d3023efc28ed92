//! A page that shows what a database does, second by second, and its figures for Prometheus (feature
//! `dashboard`).
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let db = untorn::Database::open(untorn::Options::new("my-data"))?;
//! let endpoint = untorn::dashboard::serve(&db, "127.0.0.1:9105".parse()?)?;
//! println!("http://{}/", endpoint.address());
//! # Ok(())
//! # }
//! ```
//!
//! A recorder (`recorder.rs`) reads the rows of a [`Source`] once a second and keeps the last hour; the page
//! asks for what it has not seen and draws it. So the page shows what was before it was opened, costs the
//! same for any number of viewers, and has no figure that the rows lack.
//!
//! Nothing can be changed from here. There is no login either, and unlike the metrics the page names files,
//! and of those who wait for a row and who keep them waiting it tells what the source knows. So it listens on
//! loopback only (elsewhere through an SSH tunnel), and a request that does not name a loopback host is
//! refused: a page of the web whose name suddenly stands for 127.0.0.1 (DNS rebinding) comes with its own
//! name. The page takes nothing from elsewhere, and its policy (Content-Security-Policy) forbids it to.

mod endpoint;
mod recorder;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;

use crate::asynchronous::Database;
use crate::blocked::BlockedSession;
use crate::metrics::{Description, Series};
pub use endpoint::{Endpoint, Site};
use recorder::Recorder;

/// Files and waits shown at most; a longer list helps nobody and would take long to gather.
const LINES_MAX: usize = 100;

/// What an endpoint serves the figures of.
pub trait Source: Send + Sync {
    /// The rows of SHOW GLOBAL STATUS, or what there is of them: names and values. `None` when there is
    /// nothing any more.
    fn rows(&self) -> Option<Vec<(String, String)>>;

    /// Histograms.
    fn times(&self) -> Vec<Series>;

    /// Files and waits, as they are now.
    fn present(&self) -> Present;

    /// What rows mean that are not among [`metrics::all`](crate::metrics::all).
    fn descriptions(&self) -> &[Description] {
        &[]
    }
}

/// How the pages of a file are protected from tearing.
#[derive(Serialize)]
struct ProtectedFile {
    file: String,
    way: String,
    verdict: String,
    reason: String,
}

/// A transaction that waits or is waited for, and what is known of who runs it.
#[derive(Serialize)]
struct Party {
    connection: u64,
    transaction: u64,
    user: String,
    statement: String,
}

/// A transaction that waits for a row lock, and one that has it.
#[derive(Serialize)]
struct LockWait {
    waiting: Party,
    blocking: Party,
    table: String,
    index: String,
    lock: &'static str,
    since_unix_ms: Option<u64>,
    behind: usize,
}

/// What is shown as it is now, without a history.
#[derive(Serialize, Default)]
pub struct Present {
    files: Vec<ProtectedFile>,
    files_total: usize,
    waits: Vec<LockWait>,
}

impl Present {
    /// Of this database. `known` says of a session's number who it is and what it does.
    pub fn of(database: &Database, known: impl Fn(u64) -> (String, String)) -> Present {
        let files = database.page_protection();
        let files_total = files.len();
        let shown = |file: crate::FileProtection| ProtectedFile {
            file: file.file.display().to_string(),
            way: file.mode.to_string(),
            verdict: file.verdict.to_string(),
            reason: file.reason,
        };
        let files = files.into_iter().take(LINES_MAX).map(shown).collect();
        let party = |(transaction, connection): (u64, u64)| {
            let (user, statement) = known(connection);
            Party { connection, transaction, user, statement }
        };
        let row = |blocked: BlockedSession| {
            let (database, table, index) = blocked.place.unwrap_or_default();
            LockWait {
                waiting: party(blocked.waiting),
                blocking: party(blocked.blocking),
                table: if table.is_empty() { String::new() } else { format!("{database}.{table}") },
                index,
                lock: blocked.mode,
                since_unix_ms: blocked.since.and_then(|since| u64::try_from(since.as_millis()).ok()),
                behind: blocked.behind,
            }
        };
        let waits = database.blocked_sessions(LINES_MAX).into_iter().map(row).collect();
        Present { files, files_total, waits }
    }
}

/// The database alone.
struct Alone(Database);

impl Source for Alone {
    fn rows(&self) -> Option<Vec<(String, String)>> {
        let mut rows = self.0.status_rows();
        let times = self.0.times();
        let quantiles = times.iter().flat_map(Series::figures);
        rows.extend(quantiles.map(|(name, figure)| (name.to_owned(), figure.to_string())));
        rows.push((recorder::RESIZE.to_owned(), self.0.buffer_pool_resize_status()));
        rows.push((recorder::LOG_ROSE.to_owned(), self.0.redo_capacity_rose()));
        Some(rows)
    }

    fn times(&self) -> Vec<Series> {
        self.0.times()
    }

    fn present(&self) -> Present {
        Present::of(&self.0, |_| Default::default())
    }
}

/// Serves the page of a database at this address, and its figures at `/metrics`, on a thread of its own until
/// the endpoint is dropped. Port 0 takes a free one. Drop it before the database is closed.
///
/// # Errors
/// The address is not a loopback one (there is no login), is in use, or no thread can be started.
pub fn serve(database: &crate::Database, address: SocketAddr) -> std::io::Result<Endpoint> {
    let unfit = |text| std::io::Error::new(std::io::ErrorKind::InvalidInput, text);
    let address = loopback(address).map_err(unfit)?;
    let source = Arc::new(Alone(database.asynchronous().clone()));
    Endpoint::start(address, source, Site::Dashboard(Dashboard::new()))
}

/// What the page is made of and is fed with.
pub struct Dashboard {
    recorder: Mutex<Recorder>,
}

#[derive(Serialize)]
struct Reply<'r> {
    #[serde(flatten)]
    record: recorder::Since<'r>,
    #[serde(flatten)]
    present: Present,
}

impl Dashboard {
    /// One that has seen nothing yet.
    pub fn new() -> Arc<Dashboard> {
        Arc::new(Dashboard { recorder: Mutex::new(Recorder::new()) })
    }

    /// Takes a sample.
    fn record(&self, source: &dyn Source) {
        if let Some(rows) = source.rows() {
            self.recorder.lock().record(recorder::unix_ms(), &rows, &source.times());
        }
    }

    /// The body for a path, and its media type.
    fn body(&self, source: &dyn Source, path: &str, query: Option<&str>) -> Option<(&'static str, Vec<u8>)> {
        let (kind, text) = match path {
            "/" => ("text/html; charset=utf-8", include_str!("page.html")),
            "/page.css" => ("text/css; charset=utf-8", include_str!("page.css")),
            "/page.js" => ("text/javascript; charset=utf-8", include_str!("page.js")),
            "/api/samples" => return Some(("application/json", self.samples(source, query))),
            _ => return None,
        };
        Some((kind, text.as_bytes().to_vec()))
    }

    fn samples(&self, source: &dyn Source, query: Option<&str>) -> Vec<u8> {
        let parts = query.unwrap_or_default().split('&');
        let since = parts.into_iter().find_map(|part| part.strip_prefix("since=")?.parse().ok());
        let present = source.present();
        let recorder = self.recorder.lock();
        let reply = Reply { record: recorder.since(since.unwrap_or(0)), present };
        // Strings, numbers and lists of them: nothing that could fail.
        serde_json::to_vec(&reply).unwrap_or_default()
    }
}

/// Whether a request may come to this address under this name (the Host header): a loopback address or
/// `localhost`, with any port, for a tunnel has its own.
fn is_own_host(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The address asked for, or what is wrong with it.
///
/// # Errors
/// What would be an address.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr =
        text.parse().map_err(|_| "give an IP address and a port, as in 127.0.0.1:9105".to_owned())?;
    loopback(address)
}

fn loopback(address: SocketAddr) -> Result<SocketAddr, String> {
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err("the dashboard has no login and listens on loopback only: give 127.0.0.1 and a port, and reach it \
         from elsewhere through a tunnel (ssh -L 9105:127.0.0.1:9105 HOST)"
        .to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn get(address: SocketAddr, path: &str) -> String {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    }

    #[test]
    fn an_embedded_database_has_the_page_and_the_figures() {
        let database = crate::Database::in_memory().unwrap();
        let endpoint = serve(&database, ([127, 0, 0, 1], 0).into()).unwrap();
        let address = endpoint.address();
        assert!(get(address, "/").contains("page.js") && get(address, "/page.js").contains("/api/samples"));
        assert!(get(address, "/metrics").contains("mysql_global_status_innodb_os_log_written"));
        let counts = database.key_value::<u32, u32>("counts").unwrap();
        let commits = |reply: &str| {
            let body = reply.split("\r\n\r\n").nth(1).unwrap();
            let reply: serde_json::Value = serde_json::from_str(body).unwrap();
            let fields = reply["fields"].as_array().unwrap();
            let at = fields.iter().position(|field| field == "Untorn_commits").unwrap();
            let last = reply["samples"].as_array().unwrap().last()?;
            last[1][at].as_f64()
        };
        database.transact(|t| counts.put(t, 1, 1)).unwrap();
        while commits(&get(address, "/api/samples?since=0")).is_none_or(|commits| commits < 1.0) {
            std::thread::yield_now();
        }
        assert!(serve(&database, ([192, 0, 2, 1], 0).into()).is_err(), "others would reach it");
        drop(endpoint);
        assert!(std::net::TcpStream::connect(address).is_err(), "it still listens");
        database.close().unwrap();
    }

    #[test]
    fn only_names_of_this_machine_are_answered() {
        for host in
            ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:9105", "[::1]:9105", "[::1]", "127.8.1.1:80"]
        {
            assert!(is_own_host(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:9105",
            "localhost.evil.example",
            "10.0.0.1:9105",
            "127.0.0.1.evil",
        ] {
            assert!(!is_own_host(host), "{host}");
        }
    }

    #[test]
    fn addresses_that_others_reach_are_refused_with_advice() {
        assert!(parse_address("127.0.0.1:0").is_ok() && parse_address("[::1]:9105").is_ok());
        for text in ["0.0.0.0:9105", "192.0.2.1:9105", "[::]:9105"] {
            assert!(parse_address(text).unwrap_err().contains("ssh -L"), "{text}");
        }
        assert!(parse_address("9105").unwrap_err().contains("an IP address and a port"));
    }
}
