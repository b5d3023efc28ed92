//! A transaction object goes from one session to the next.
//!
//! To make one takes longer than to read a row with it, and writes to memory that all threads share. Programs
//! that begin a transaction for each read make one after the other, so who drops one may keep it for the next
//! who begins: with its buffers, its read view, which may still be true, and its slot.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::read_view::KEPT_IDS_MAX;
use crate::statement_counts::Counts;
use crate::transaction::{Isolation, Transaction};

/// Savepoints and tables that a transaction keeps room for, at most.
const KEPT_MAX: usize = 16;

impl Transaction {
    /// Ends the transaction, if it has changed nothing, and makes the object as new. `owners`: how
    /// many [`RowOwner`](crate::RowOwner)s of it go along with it.
    ///
    /// False: it cannot be another session's, and is to be dropped. There is something to roll back, or
    /// somebody else knows the session (a [`KillHandle`](crate::KillHandle), for instance, which must not
    /// meet the next one), or it has a tag, by which it may be listed.
    #[must_use]
    pub fn renew(&mut self, owners: usize) -> bool {
        if self.undo_log.is_some() || self.kept.is_some() || !self.holds.is_empty() {
            return false;
        }
        drop(self.finish());
        let known = Arc::strong_count(&self.owner) > 1 + owners || Arc::strong_count(self.slice()) > 1;
        // What others did before they gave up theirs is seen, and cleared, from here on.
        fence(Ordering::Acquire);
        if known || self.owner.tag.load(Ordering::Relaxed) != 0 {
            return false;
        }
        self.set_isolation(Isolation::default());
        self.set_lock_wait_timeout(self.system.0.options.lock_wait_timeout);
        self.rolled_back = false;
        self.clear_kill();
        self.owner.lock_wait_nanoseconds.store(0, Ordering::Relaxed);
        self.slice().begin();
        self.slice().measure_in_units(0);
        self.counts = Counts::default();
        if self.view.active.capacity() > KEPT_IDS_MAX {
            self.give_slot_back();
        }
        self.savepoints.shrink_to(KEPT_MAX);
        if self.tables.capacity() > KEPT_MAX {
            self.tables.shrink_to_fit();
        }
        true
    }
}
