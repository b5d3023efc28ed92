//! What a session's transactions have cost: rows read, and time in waits for row locks.
//!
//! Both only grow, so that a statement's share is the difference between its end and its begin. Rows are
//! counted here without a lock and added to the system's counters when a statement ends.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::system::Counters;
use crate::transaction::Transaction;

/// Figures of one transaction.
#[derive(Default)]
pub(crate) struct Counts {
    /// Not yet among the system's.
    pub rows_read: u64,
    /// Not yet among the system's.
    pub versions_built: u64,
    /// Among the system's.
    rows_added: u64,
}

impl Transaction {
    /// Rows that the session has read so far.
    pub fn rows_read(&self) -> u64 {
        self.counts.rows_added + self.counts.rows_read
    }

    /// How long the session has waited for row locks so far.
    pub fn lock_waited(&self) -> Duration {
        Duration::from_nanos(self.owner.lock_wait_nanoseconds.load(Ordering::Relaxed))
    }

    pub(crate) fn add_counts(&mut self) {
        let rows_added = self.rows_read();
        let counts = std::mem::replace(&mut self.counts, Counts { rows_added, ..Counts::default() });
        let counters = &self.system.0.counters;
        if counts.rows_read > 0 {
            counters.reads.add(Counters::ROWS_READ, counts.rows_read);
        }
        if counts.versions_built > 0 {
            counters.reads.add(Counters::VERSIONS_BUILT, counts.versions_built);
        }
    }
}
