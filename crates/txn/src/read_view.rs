//! Read views: which transactions' changes a consistent read sees.
//!
//! A transaction opens its view at its first consistent read. REPEATABLE READ keeps it to the end; READ
//! COMMITTED and autocommit give it up with the statement, so that the next one sees what was committed
//! meanwhile.
//!
//! A view is made under the mutex of the active set (`transaction_ids.rs`). Making one costs a lock and a
//! copy, so a session keeps its last view and takes it again while the system's **version** (a counter that
//! moves whenever a transaction with changes ends) has not moved: transactions that began meanwhile have ids
//! above the view's limit, so the answer to every visibility question is the same. That path touches no
//! shared cache line for writing but the session's own slot.
//!
//! Purge must not remove what an open view needs. Each session publishes the version of its open view in a
//! [`ViewSlot`]. Purge takes a snapshot (a view of its own) and may use it once no open view is older than
//! that: then every open or future view sees all that the snapshot sees. The session stores its slot first
//! and checks the version afterwards, purge takes its snapshot first and reads the slots afterwards, all
//! sequentially consistent: so either purge sees the slot, or the session sees that the version has moved on
//! and makes a new view.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::error::Error;
use crate::row::ScanIndex;
use crate::table::Table;
use crate::transaction::Transaction;

/// Slot value of a session without an open view.
pub(crate) const NO_VIEW: u64 = u64::MAX;

/// What is visible.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReadView {
    /// Version of the active set it was made of.
    pub version: u64,
    /// Every id below is visible.
    pub up_limit: u64,
    /// No id from here on is visible.
    pub low_limit: u64,
    /// Ids between the limits that were active, ascending.
    pub active: Vec<u64>,
    /// Its own transaction, 0 if it has no id.
    pub creator: u64,
}

impl Transaction {
    /// Opens the read view unless it is open.
    #[inline]
    pub(crate) fn open_view(&mut self) {
        if self.view_open {
            return;
        }
        self.view_open = true;
        let creator = self.undo_log.as_ref().map_or(0, |log| log.trx_id);
        let active = &self.system.0.active;
        // Published first, checked afterwards: see the essay.
        if self.view.version != 0 {
            self.slot.0.store(self.view.version, Ordering::SeqCst);
            if active.version() == self.view.version {
                self.view.creator = creator;
                return;
            }
        }
        let slot = &self.slot.0;
        active.fill_view(&mut self.view, creator, |version| slot.store(version, Ordering::SeqCst));
    }

    /// Opens the read view, unless it is open, to read an index of this table.
    ///
    /// # Errors
    /// [`Error::TableChanged`]: the index does not have the rows that the view sees.
    #[inline]
    pub(crate) fn open_view_for(&mut self, table: &Table, index: ScanIndex) -> Result<(), Error> {
        self.open_view();
        if table.born_of(index).iter().all(|born| self.view.sees(*born)) {
            Ok(())
        } else {
            Err(Error::TableChanged)
        }
    }

    /// A statement ends: READ COMMITTED and autocommit give up the read view, the others keep it.
    pub(crate) fn end_statement_view(&mut self) {
        if !self.begun || self.isolation.locks_records_only() {
            self.close_view();
        }
    }

    pub(crate) fn close_view(&mut self) {
        if self.view_open {
            self.view_open = false;
            self.slot.0.store(NO_VIEW, Ordering::SeqCst);
        }
    }
}

impl ReadView {
    /// Whether changes of transaction `id` are seen.
    #[inline]
    pub fn sees(&self, id: u64) -> bool {
        if id < self.up_limit || id == self.creator {
            return true;
        }
        id < self.low_limit && self.active.binary_search(&id).is_err()
    }
}

/// The version of a session's open view.
pub(crate) struct ViewSlot(pub AtomicU64);

/// All sessions' slots.
#[derive(Default)]
pub(crate) struct ViewRegistry {
    slots: Mutex<Vec<Arc<ViewSlot>>>,
}

impl ViewRegistry {
    /// A slot for a new session.
    pub fn register(&self) -> Arc<ViewSlot> {
        let slot = Arc::new(ViewSlot(AtomicU64::new(NO_VIEW)));
        self.slots.lock().push(slot.clone());
        slot
    }

    /// Gives a slot back.
    pub fn unregister(&self, slot: &Arc<ViewSlot>) {
        self.slots.lock().retain(|other| !Arc::ptr_eq(other, slot));
    }

    /// Version of the oldest open view, [`NO_VIEW`] if there is none.
    pub fn oldest(&self) -> u64 {
        let slots = self.slots.lock();
        slots.iter().map(|slot| slot.0.load(Ordering::SeqCst)).min().unwrap_or(NO_VIEW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_sees_what_had_ended_and_itself() {
        let view = ReadView { version: 1, up_limit: 5, low_limit: 10, active: vec![5, 8], creator: 8 };
        let seen: Vec<u64> = (3..12).filter(|id| view.sees(*id)).collect();
        assert_eq!(seen, [3, 4, 6, 7, 8, 9]);
    }
}
