//! `--dashboard-address`: a page that shows what the server does, second by second.
//!
//! A recorder (`recorder.rs`) reads SHOW GLOBAL STATUS once a second and keeps the last hour; the
//! page asks for what it has not seen and draws it. So the page shows what was before it was opened, costs
//! the same for any number of viewers, and has no figure that SHOW STATUS lacks.
//!
//! Nothing can be changed from here. There is no login either, and unlike the metrics the page names files,
//! and of those who wait for a row and who keep them waiting it names account, table and statement (without
//! its values), so it listens on loopback only (elsewhere through an SSH tunnel), and a
//! request that does not name a loopback host is refused: a page of the web whose name suddenly stands for
//! 127.0.0.1 (DNS rebinding) comes with its own name. The page takes nothing from elsewhere, and its policy
//! (Content-Security-Policy) forbids it to.

mod recorder;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;
use sql::digest::Shape;
use sql::lexer::LexicalModes;
use untorn::asynchronous::Database;
use untorn::blocked::BlockedSession;

use crate::server::registry::INFO_BYTES_MAX;
use crate::server::shared::Server;
use recorder::Recorder;
pub(crate) use recorder::SECOND;

/// Files and waits shown at most; a longer list helps nobody and would take long to gather.
const LINES_MAX: usize = 100;
/// Of a statement's text.
const STATEMENT_CHARS_MAX: usize = 200;

/// How the pages of a file are protected from tearing.
#[derive(Serialize)]
pub struct ProtectedFile {
    file: String,
    way: String,
    verdict: String,
    reason: String,
}

/// A session, and what it does.
#[derive(Serialize)]
pub struct Party {
    connection: u64,
    transaction: u64,
    user: String,
    /// Without its values; empty while it does nothing.
    statement: String,
}

/// A session that waits for a row lock, and one that has it.
#[derive(Serialize)]
pub struct LockWait {
    waiting: Party,
    blocking: Party,
    table: String,
    index: String,
    lock: &'static str,
    since_unix_ms: Option<u64>,
    behind: usize,
}

/// What is shown as it is now, without a history.
#[derive(Serialize)]
pub struct Present {
    files: Vec<ProtectedFile>,
    files_total: usize,
    waits: Vec<LockWait>,
}

/// Gives the present.
pub type Look = Box<dyn Fn(&Server) -> Present + Send + Sync>;

/// Looks at this database.
pub fn look(database: &Database) -> Look {
    let database = database.clone();
    Box::new(move |server| {
        let files = database.page_protection();
        let files_total = files.len();
        let shown = |file: untorn::FileProtection| ProtectedFile {
            file: file.file.display().to_string(),
            way: file.mode.to_string(),
            verdict: file.verdict.to_string(),
            reason: file.reason,
        };
        let files = files.into_iter().take(LINES_MAX).map(shown).collect();
        Present { files, files_total, waits: waits(&database, server) }
    })
}

fn waits(database: &Database, server: &Server) -> Vec<LockWait> {
    let row = |blocked: BlockedSession| {
        let (database, table, index) = blocked.place.unwrap_or_default();
        LockWait {
            waiting: party(server, blocked.waiting),
            blocking: party(server, blocked.blocking),
            table: if table.is_empty() { String::new() } else { format!("{database}.{table}") },
            index,
            lock: blocked.mode,
            since_unix_ms: blocked.since.and_then(|since| u64::try_from(since.as_millis()).ok()),
            behind: blocked.behind,
        }
    };
    database.blocked_sessions(LINES_MAX).into_iter().map(row).collect()
}

fn party(server: &Server, (transaction, connection): (u64, u64)) -> Party {
    let known = u32::try_from(connection).ok().and_then(|number| server.connections.get(number));
    let (user, sql) = known
        .map(|connection| connection.with_activity(|now| (now.user.to_string(), now.info.clone())))
        .unwrap_or_default();
    // Where a value ends is not known for sure in a statement that was cut, nor where its session's sql_mode
    // says what a backslash is.
    let clear = sql.len() < INFO_BYTES_MAX && !sql.contains(&b'\\');
    let text = if clear {
        sql::digest::text(&sql, LexicalModes::default(), Shape::Whole)
    } else {
        "(not shown)".into()
    };
    let statement = match text.char_indices().nth(STATEMENT_CHARS_MAX) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text,
    };
    Party { connection, transaction, user, statement }
}

/// What the page is made of and is fed with.
pub struct Dashboard {
    recorder: Mutex<Recorder>,
    look: Look,
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
    pub fn new(look: Look) -> Arc<Dashboard> {
        Arc::new(Dashboard { recorder: Mutex::new(Recorder::new()), look })
    }

    /// Takes a sample.
    pub(crate) fn record(&self, server: &Server) {
        let rows = crate::status::collect(server);
        self.recorder.lock().record(recorder::unix_ms(), &rows, &server.status.times());
    }

    /// The body for a path, and its media type.
    pub(crate) fn body(
        &self,
        server: &Server,
        path: &str,
        query: Option<&str>,
    ) -> Option<(&'static str, Vec<u8>)> {
        let (kind, text) = match path {
            "/" => ("text/html; charset=utf-8", include_str!("page.html")),
            "/page.css" => ("text/css; charset=utf-8", include_str!("page.css")),
            "/page.js" => ("text/javascript; charset=utf-8", include_str!("page.js")),
            "/api/samples" => return Some(("application/json", self.samples(server, query))),
            _ => return None,
        };
        Some((kind, text.as_bytes().to_vec()))
    }

    fn samples(&self, server: &Server, query: Option<&str>) -> Vec<u8> {
        let parts = query.unwrap_or_default().split('&');
        let since = parts.into_iter().find_map(|part| part.strip_prefix("since=")?.parse().ok());
        let present = (self.look)(server);
        let recorder = self.recorder.lock();
        let reply = Reply { record: recorder.since(since.unwrap_or(0)), present };
        // Strings, numbers and lists of them: nothing that could fail.
        serde_json::to_vec(&reply).unwrap_or_default()
    }
}

/// Whether a request may come to this address under this name (the Host header): a loopback address or
/// `localhost`, with any port, for a tunnel has its own.
pub(crate) fn is_own_host(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The address asked for, or what is wrong with it.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr =
        text.parse().map_err(|_| "give an IP address and a port, as in 127.0.0.1:9105".to_owned())?;
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
