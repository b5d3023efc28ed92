//! What statements cost, by their digest, and the log of slow ones.
//!
//! A statement that has been answered is a [`Performed`]. The session adds it to the row of its digest
//! ([`digests`]), which it keeps with the plan, and, if it was slow, hands it to the log ([`slow_log`]).

pub mod digests;
pub mod slow_log;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::server::registry::Server;
use crate::server::waits::ByKind;
use crate::variables::Value;

/// Follows the variables of the digests and of the slow log, from the start and when SET GLOBAL changes them.
pub fn connect(server: &Arc<Server>) {
    let counted = is_on(&server.variables.value("performance_schema"));
    let most = server.variables.number("performance_schema_digests_size");
    server.digests.set_most(if counted { most } else { 0 });
    type Apply = fn(&slow_log::SlowLog, &Value, &Path);
    let settings: [(&str, Apply); 3] = [
        ("slow_query_log", |log, value, _| log.set_on(is_on(value))),
        ("log_queries_not_using_indexes", |log, value, _| log.set_not_indexed(is_on(value))),
        ("slow_query_log_file", |log, value, directory| {
            log.set_file(directory.join(value.as_str().unwrap_or_default()));
        }),
    ];
    let directory = std::path::PathBuf::from(server.variables.text("datadir"));
    for (name, apply) in settings {
        apply(&server.slow_log, &server.variables.value(name), &directory);
        let (log, directory) = (server.slow_log.clone(), directory.clone());
        let hook = move |value: &Value| {
            apply(&log, value, &directory);
            Ok(())
        };
        server.variables.on_change(name, Box::new(hook));
    }
    let log = server.slow_log.clone();
    let lost = move |rows: &mut Vec<(String, String)>| {
        rows.push(("Untorn_slow_log_lost".into(), log.lost().to_string()));
    };
    server.status.add_source(Box::new(lost));
}

fn is_on(value: &Value) -> bool {
    value.as_u64().unwrap_or_default() != 0
}

/// What a statement did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Performed {
    /// From its bytes to the answer.
    pub took: Duration,
    /// Of it in waits for row locks.
    pub lock_time: Duration,
    /// Of it in waits, by kind.
    pub waited: ByKind,
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
    pub reads: sql::plan::reads::Reads,
}

/// Wall-clock times from a monotonic clock, which is read anyway.
#[derive(Clone, Copy, Debug)]
pub struct WallClock {
    instant: Instant,
    unix: Duration,
}

impl Default for WallClock {
    fn default() -> WallClock {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        WallClock { instant: Instant::now(), unix }
    }
}

impl WallClock {
    /// Time since 1970.
    pub fn unix(&self, at: Instant) -> Duration {
        self.unix + at.saturating_duration_since(self.instant)
    }
}
