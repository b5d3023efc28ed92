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
//! Nothing can be changed from here. But unlike the metrics the page names files and tables, and of those who
//! wait and who keep them waiting it tells what the source knows. So without a [`Gate`], who asks for a name
//! and a password, it listens on loopback only (elsewhere through an SSH tunnel), and a request that does not
//! name a loopback host is refused: a page of the web whose name suddenly stands for 127.0.0.1 (DNS
//! rebinding) comes with its own name, and knows no password. The page takes nothing from elsewhere, and its
//! policy (Content-Security-Policy) forbids it to.

mod endpoint;
mod recorder;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Serialize;

use crate::asynchronous::Database;
use crate::blocked::BlockedSession;
use crate::metrics::{Description, Series};
use crate::pool_contents::PoolPart;
pub use endpoint::{Endpoint, Site};
use recorder::Recorder;

/// Files and waits shown at most; a longer list helps nobody and would take long to gather.
const LINES_MAX: usize = 100;

/// What an endpoint serves the figures of.
pub trait Source: Send + Sync {
    /// The rows of SHOW GLOBAL STATUS, or what there is of them: names and values. `None` when there is
    /// nothing any more.
    fn rows(&self) -> Option<Vec<(String, String)>>;

    /// Whether clients are answered: not while the database is being opened.
    fn is_up(&self) -> bool {
        true
    }

    /// Histograms.
    fn times(&self) -> Vec<Series>;

    /// Files and waits, as they are now.
    fn present(&self) -> Present;

    /// What the buffer pool holds, by a sample; another `turn` looks at others.
    fn pool(&self, turn: usize) -> Vec<PoolPart> {
        _ = turn;
        Vec::new()
    }

    /// What rows mean that are not among [`metrics::all`](crate::metrics::all).
    fn descriptions(&self) -> &[Description] {
        &[]
    }
}

/// Says who may see the page.
pub trait Gate: Send + Sync {
    /// Whether this is the name and the password of somebody who may, from there.
    fn admits(&self, user: &str, password: &str, from: IpAddr) -> bool;
}

/// Whether a request is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Admission {
    /// There is no gate.
    Open,
    Granted,
    /// Without a name and password.
    Unasked,
    Denied,
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

/// A transaction that waits for a row lock or the use of a table, and one that has it.
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
                table: if table.is_empty() { database } else { format!("{database}.{table}") },
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

    fn pool(&self, turn: usize) -> Vec<PoolPart> {
        self.0.pool_contents(turn)
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
    pool: Mutex<PoolLook>,
    /// What there was at the last look, and when that was.
    present: Mutex<Option<(Instant, Present)>>,
    gate: Option<Box<dyn Gate>>,
}

/// Viewers who ask within this time of each other see the same.
const PRESENT_FOR: Duration = Duration::from_millis(500);

/// The last look at what the pool holds.
#[derive(Default)]
struct PoolLook {
    seconds: usize,
    parts: Vec<PoolPart>,
}

/// Seconds from one to the next.
const POOL_LOOK_EVERY: usize = 5;

#[derive(Serialize)]
struct Reply<'r> {
    #[serde(flatten)]
    record: recorder::Since<'r>,
    #[serde(flatten)]
    present: &'r Present,
    pool: &'r [PoolPart],
}

impl Dashboard {
    /// One that has seen nothing yet, for anyone who reaches it: bind it to loopback.
    pub fn new() -> Arc<Dashboard> {
        Dashboard::make(None)
    }

    /// One that has seen nothing yet, for those whom the gate admits.
    pub fn behind(gate: Box<dyn Gate>) -> Arc<Dashboard> {
        Dashboard::make(Some(gate))
    }

    fn make(gate: Option<Box<dyn Gate>>) -> Arc<Dashboard> {
        let (recorder, present) = (Mutex::new(Recorder::new()), Mutex::default());
        Arc::new(Dashboard { recorder, pool: Mutex::default(), present, gate })
    }

    fn has_gate(&self) -> bool {
        self.gate.is_some()
    }

    /// Whether a request is answered that comes from there with this name and password.
    fn admits(&self, shown: Option<(&str, &str)>, from: SocketAddr) -> Admission {
        match (&self.gate, shown) {
            (None, _) => Admission::Open,
            (Some(_), None) => Admission::Unasked,
            (Some(gate), Some((user, password))) if gate.admits(user, password, from.ip()) => {
                Admission::Granted
            }
            (Some(_), Some(_)) => Admission::Denied,
        }
    }

    /// Takes a sample.
    fn record(&self, source: &dyn Source) {
        if let Some(rows) = source.rows() {
            self.recorder.lock().record(recorder::unix_ms(), &rows, &source.times());
        }
        let mut pool = self.pool.lock();
        if pool.seconds.is_multiple_of(POOL_LOOK_EVERY) {
            let turn = pool.seconds / POOL_LOOK_EVERY;
            pool.parts = source.pool(turn);
        }
        pool.seconds += 1;
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
        let mut present = self.present.lock();
        if present.as_ref().is_some_and(|(seen, _)| seen.elapsed() >= PRESENT_FOR) {
            *present = None;
        }
        let (_, present) = present.get_or_insert_with(|| (Instant::now(), source.present()));
        let (recorder, pool) = (self.recorder.lock(), self.pool.lock());
        let reply = Reply { record: recorder.since(since.unwrap_or(0)), present, pool: &pool.parts };
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

/// The address asked for, or what is wrong with it. One that others reach is for a page with a gate.
///
/// # Errors
/// What would be an address.
pub fn parse_address(text: &str, has_gate: bool) -> Result<SocketAddr, String> {
    let address: SocketAddr =
        text.parse().map_err(|_| "give an IP address and a port, as in 127.0.0.1:9105".to_owned())?;
    if has_gate { Ok(address) } else { loopback(address) }
}

fn loopback(address: SocketAddr) -> Result<SocketAddr, String> {
    if address.ip().is_loopback() {
        return Ok(address);
    }
    Err("without an account that may log in the dashboard listens on loopback only: give 127.0.0.1 and a port, \
         and reach it from elsewhere through a tunnel (ssh -L 9105:127.0.0.1:9105 HOST)"
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
        assert!(parse_address("127.0.0.1:0", false).is_ok() && parse_address("[::1]:9105", false).is_ok());
        for text in ["0.0.0.0:9105", "192.0.2.1:9105", "[::]:9105"] {
            assert!(parse_address(text, false).unwrap_err().contains("ssh -L"), "{text}");
            assert!(parse_address(text, true).is_ok(), "{text}");
        }
        assert!(parse_address("9105", true).unwrap_err().contains("an IP address and a port"));
    }

    struct OneViewer;

    impl Gate for OneViewer {
        fn admits(&self, user: &str, password: &str, from: IpAddr) -> bool {
            (user, password) == ("viewer", "a:b") && from.is_loopback()
        }
    }

    #[test]
    fn a_page_behind_a_gate_is_for_those_with_the_password_by_any_name() {
        use std::io::{Read, Write};
        let database = crate::Database::in_memory().unwrap();
        let source = Arc::new(Alone(database.asynchronous().clone()));
        let site = Site::Dashboard(Dashboard::behind(Box::new(OneViewer)));
        let endpoint = Endpoint::start(([127, 0, 0, 1], 0).into(), source, site).unwrap();
        let ask = |path: &str, more: &str| {
            let mut stream = std::net::TcpStream::connect(endpoint.address()).unwrap();
            write!(stream, "GET {path} HTTP/1.1\r\nHost: db.example\r\n{more}\r\n").unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).unwrap();
            reply
        };
        let encoded = |text: &str| {
            use base64::Engine as _;
            format!("Authorization: Basic {}\r\n", base64::prelude::BASE64_STANDARD.encode(text))
        };
        let right = encoded("viewer:a:b");
        for path in ["/", "/page.js", "/api/samples?since=0", "/metrics"] {
            let reply = ask(path, "");
            assert!(
                reply.starts_with("HTTP/1.1 401 ") && reply.contains("www-authenticate: Basic"),
                "{reply}"
            );
            assert!(ask(path, &right).starts_with("HTTP/1.1 200 "), "{path}");
        }
        let began = std::time::Instant::now();
        assert!(ask("/", &encoded("viewer:a")).starts_with("HTTP/1.1 401 "));
        assert!(began.elapsed() >= std::time::Duration::from_millis(900), "others could be tried quickly");
        for refused in [format!("{right}{right}"), "Authorization: Bearer x\r\n".into(), encoded("no colon")]
        {
            assert!(ask("/", &refused).starts_with("HTTP/1.1 401 "), "{refused}");
        }
        drop(endpoint);
        database.close().unwrap();
    }
}
