//! Somebody who is told of a transaction's commit, in the order of commits.

use std::any::Any;

use pagestore::Lsn;

/// What a commit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// Id of the transaction, which read views know it by.
    pub transaction: u64,
    /// Its place in the order of commits.
    pub number: u64,
    /// It is durable once the redo log is, up to here.
    pub end: Lsn,
    /// Undo records that it committed: what had been done after them was undone.
    pub records: u64,
}

/// Belongs to one transaction and ends with it: told of the commit, or dropped.
pub trait CommitObserver: Any + Send + Sync {
    /// The transaction is committed and not yet durable; nobody can know of it yet. What takes long is done
    /// here.
    fn committing(&mut self, commit: &Committed);

    /// The transaction is committed. Its rows are still locked, and no read view sees it: so a transaction
    /// that depends on it commits later, and is told of later. Called under the mutex of the active set: it
    /// must neither wait nor wake anybody.
    fn committed(&mut self);

    /// The mutex is free again: here somebody may be woken.
    fn published(&mut self);
}
