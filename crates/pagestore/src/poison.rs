//! The end of all changes after a fault.
//!
//! A write or a sync that failed leaves it open what the device has. So nothing is tried again: the store is
//! poisoned, every change from then on is refused with the first reason, and nothing more is acknowledged.
//! Reads go on. A restart recovers from the log.
//!
//! A store may also refuse changes from the beginning (forced recovery); what is dirty is still written then.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::Error;
use crate::store::PageStore;

impl PageStore {
    /// Why changes are refused, if they are.
    #[must_use]
    pub fn poisoned(&self) -> Option<Arc<str>> {
        self.poison.get().cloned()
    }

    /// Stops all changes from now on (after an internal fault above this crate). Reads go on. The first
    /// reason stays.
    pub fn poison(&self, reason: &str) {
        if self.poison.set(reason.into()).is_ok() {
            tracing::error!("no more changes: {reason}");
        }
        self.poisoned.store(true, Ordering::Release);
        // The waiters find out.
        self.free.wake_all();
        self.redo.wake_waiting();
        self.checkpoint_over.notify();
        self.sync_over.notify();
        self.batch_over.notify();
    }

    /// Refuses all changes from now on, for this reason; what is dirty is still written.
    pub fn refuse_changes(&self, reason: &str) {
        let _ = self.read_only.set(reason.into());
    }

    #[inline]
    pub(crate) fn refuse_when_read_only(&self) -> Result<(), Error> {
        self.read_only.get().map_or(Ok(()), |reason| Err(Error::ReadOnly(reason.clone())))
    }

    #[inline]
    pub(crate) fn refuse_when_poisoned(&self) -> Result<(), Error> {
        if self.poisoned.load(Ordering::Relaxed) {
            return Err(Error::Poisoned(self.poisoned().unwrap_or_default()));
        }
        Ok(())
    }
}
