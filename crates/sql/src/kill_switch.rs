//! Stopping a statement from outside: a flag that one side sets and the other checks.
//!
//! KILL sets it in the server (`server/registry.rs`). A statement checks it
//! ([`SqlContext::check_killed`](crate::context::SqlContext::check_killed)) when its slice of time is used up
//! ([`Executor::tick`](crate::exec::Executor::tick), every few rows) and, inside one long expression, each
//! 64 KiB of work (`tell_work` in `evaluation.rs`); the server checks it between two polls of the statement's
//! future, also while it waits (`session/watch.rs`). There `max_execution_time` is measured too, and ends a
//! SELECT in the same way, with error 3024.

use std::sync::atomic::{AtomicU8, Ordering};

/// How urgently a connection is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kill {
    /// Not at all.
    No = 0,
    /// The running statement ends with error 1317 (KILL QUERY).
    Query = 1,
    /// The connection ends (KILL, shutdown, timeout of a shutdown).
    Connection = 2,
}

/// What says [`Kill`]. Any thread may set it; the statement looks between rows.
#[derive(Debug, Default)]
pub struct KillSwitch(AtomicU8);

impl KillSwitch {
    /// Asks to stop.
    pub fn set(&self, how: Kill) {
        self.0.fetch_max(how as u8, Ordering::AcqRel);
    }

    /// How urgently to stop; one atomic load, cheap enough for every row.
    #[inline]
    pub fn level(&self) -> Kill {
        match self.0.load(Ordering::Acquire) {
            0 => Kill::No,
            1 => Kill::Query,
            _ => Kill::Connection,
        }
    }

    /// A KILL QUERY applies to the statement it met: forget it when a statement begins.
    pub fn clear_query(&self) {
        if self.0.load(Ordering::Relaxed) == Kill::Query as u8 {
            let (query, no) = (Kill::Query as u8, Kill::No as u8);
            let _ = self.0.compare_exchange(query, no, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}
