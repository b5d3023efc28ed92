//! How somebody else stops a statement: a switch that the one sets and the other looks at.
//!
//! KILL sets it in the server (`server/registry.rs`); a statement looks at it through
//! [`crate::context::SqlContext`] and the server between two polls of its future (`session/watch.rs`).

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
