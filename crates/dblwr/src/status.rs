//! What the page writers have done, for status variables.

use std::sync::atomic::{AtomicU64, Ordering};

/// Work done so far.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Status {
    /// Pages written to their place (`Innodb_dblwr_pages_written` for the doublewrite).
    pub pages: u64,
    /// Batches (`Innodb_dblwr_writes` for the doublewrite).
    pub batches: u64,
    /// Syncs of doublewrite and data files.
    pub syncs: u64,
    /// Bytes written to doublewrite and data files.
    pub bytes: u64,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) pages: AtomicU64,
    pub(crate) batches: AtomicU64,
    pub(crate) syncs: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, amount: usize) {
        counter.fetch_add(amount as u64, Ordering::Relaxed);
    }

    pub(crate) fn status(&self) -> Status {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Status {
            pages: get(&self.pages),
            batches: get(&self.batches),
            syncs: get(&self.syncs),
            bytes: get(&self.bytes),
        }
    }
}
