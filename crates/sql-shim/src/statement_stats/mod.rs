//! What statements cost, by their digest, and the log of slow ones.
//!
//! A statement that has been answered is a [`StatementStats`]. The session adds it to the row of its digest
//! ([`digests`]), which it keeps with the plan, and, if it was slow, hands it to the log ([`slow_log`]).

pub mod digests;
pub mod secrets;
pub mod slow_log;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sql::errors;
use sql::result::SqlError;

use crate::server::shared::Server;
use crate::server::waits::Spent;
use crate::variables::Value;
use slow_log::Place;

const SLOW_LOG_FILE: &str = "slow_query_log_file";

/// Follows the variables of the digests and of the slow log, from the start and when SET GLOBAL changes them.
pub fn connect(server: &Arc<Server>) {
    let counted = is_on(&server.variables.value("performance_schema"));
    let most = server.variables.number("performance_schema_digests_size");
    server.digests.set_most(if counted { most } else { 0 });
    let (port, socket) = (server.variables.number("port"), server.variables.text("socket"));
    server.slow_log.set_header(slow_log::entry::header(port, &socket));
    // The program has asked before, and stops if the file is refused; elsewhere entries are lost then.
    let _ = check(server, None);
    type Apply = fn(&slow_log::SlowLog, &Value) -> Result<(), String>;
    let settings: [(&str, Apply); 3] = [
        ("slow_query_log", |log, value| {
            log.set_on(is_on(value));
            Ok(())
        }),
        ("log_queries_not_using_indexes", |log, value| {
            log.set_not_indexed(is_on(value));
            Ok(())
        }),
        (SLOW_LOG_FILE, |log, value| log.set_file(value.as_str().unwrap_or_default())),
    ];
    for (name, apply) in settings {
        let _ = apply(&server.slow_log, &server.variables.value(name));
        let log = server.slow_log.clone();
        let hook = move |value: &Value| {
            apply(&log, value).map_err(|why| {
                tracing::info!("{why}");
                refused(name, value)
            })
        };
        server.variables.on_change(name, Box::new(hook));
    }
    let log = server.slow_log.clone();
    let lost = move |rows: &mut Vec<(String, String)>| {
        rows.push(("Untorn_slow_log_lost".into(), log.lost().to_string()));
    };
    server.status.add_source(Box::new(lost));
}

fn refused(name: &str, value: &Value) -> SqlError {
    errors::error(errors::WRONG_VALUE_FOR_VAR, &[&name, &value.as_str().unwrap_or_default()])
}

/// Takes the file of slow statements, in the data directory or below that of the one that was `named` at
/// start. The first call says which directories these are.
///
/// # Errors
/// Why it is refused.
pub(crate) fn check(server: &Server, named: Option<PathBuf>) -> Result<(), String> {
    let data = PathBuf::from(server.variables.text("datadir"));
    server.slow_log.set_place(|| Place { data, named });
    server.slow_log.set_file(&server.variables.text(SLOW_LOG_FILE))
}

fn is_on(value: &Value) -> bool {
    value.as_u64().unwrap_or_default() != 0
}

/// What a statement did.
#[derive(Clone, Copy, Debug, Default)]
pub struct StatementStats {
    /// From its bytes to the answer.
    pub took: Duration,
    /// Its bucket in the histograms.
    pub bucket: usize,
    /// Of it in waits for row locks.
    pub lock_time: Duration,
    /// Where it went, as far as that is known.
    pub spent: Spent,
    /// It ended with an error.
    pub failed: bool,
    /// Lines of SHOW WARNINGS.
    pub warnings: u64,
    /// Rows changed.
    pub affected: u64,
    /// Rows of the answer.
    pub sent: u64,
    /// Rows that were read.
    pub examined: u64,
    /// How its plan reads tables.
    pub reads: sql::plan::no_index_used::UnindexedReads,
}

/// Wall-clock times from a monotonic clock, which is read anyway. Taken for each use: the machine's clock is
/// set now and then.
#[derive(Clone, Copy, Debug)]
pub struct WallClock {
    instant: Instant,
    unix: Duration,
}

impl WallClock {
    /// As the clocks stand.
    pub fn now() -> WallClock {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        WallClock { instant: Instant::now(), unix }
    }

    /// Time since 1970.
    pub fn unix(&self, at: Instant) -> Duration {
        let later = self.unix + at.saturating_duration_since(self.instant);
        later.saturating_sub(self.instant.saturating_duration_since(at))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::auth::accounts::Accounts;
    use crate::variables::GlobalVariables;

    #[test]
    fn a_file_elsewhere_is_refused_at_the_start_unless_it_was_named() {
        let root = std::env::temp_dir().join(format!("untorn-slow-start-{}", std::process::id()));
        std::fs::create_dir_all(root.join("data")).unwrap();
        let file = root.join("slow.log");
        let checked = |named: Option<PathBuf>| {
            let variables = GlobalVariables::default();
            variables.set_at_start("datadir", root.join("data").to_str().unwrap()).unwrap();
            variables.set_at_start(SLOW_LOG_FILE, file.to_str().unwrap()).unwrap();
            check(&Server::new(Accounts::in_memory(), variables), named)
        };
        assert!(checked(None).unwrap_err().contains("slow.log"));
        assert_eq!(checked(Some(file.clone())), Ok(()));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
