//! One transaction at a time per session.
#![allow(clippy::todo, unused_variables)]
use std::time::Duration;

use crate::error::Error;
use crate::system::TransactionSystem;

/// Isolation levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Consistent reads see the newest version, committed or not.
    ReadUncommitted,
    /// A read view per statement; no gap locks.
    ReadCommitted,
    /// One read view per transaction; next-key locks.
    #[default]
    RepeatableRead,
    /// As REPEATABLE READ; the SQL layer turns plain reads inside transactions into locking reads.
    Serializable,
}

/// How durable a commit is when it returns (`innodb_flush_log_at_trx_commit` 0, 2, 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// In the log buffer; lost when the process ends.
    NoSync,
    /// Handed to the operating system.
    Write,
    /// On the device.
    #[default]
    Sync,
}

/// A place in a transaction's undo log to roll back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndoMark {
    pub(crate) records: u64,
}

/// Interrupts what a transaction waits for, from another thread.
#[derive(Clone)]
pub struct KillHandle {}

impl KillHandle {
    /// A row lock wait that is going on, or the next one, ends with [`Error::Killed`]; long scans stop.
    pub fn kill(&self) {
        todo!()
    }
}

/// A session's transaction: reusable, one at a time. Dropped while active, it is rolled back in the background.
pub struct Transaction {}

impl Transaction {
    /// A session's transaction object. REPEATABLE READ, not begun.
    pub fn new(system: &TransactionSystem) -> Transaction {
        todo!()
    }
    /// The system.
    pub fn system(&self) -> &TransactionSystem {
        todo!()
    }
    /// Isolation of what comes next; takes effect at once, so set it between transactions.
    pub fn set_isolation(&mut self, isolation: Isolation) {
        todo!()
    }
    /// The isolation level.
    pub fn isolation(&self) -> Isolation {
        todo!()
    }
    /// How long a row lock may be waited for (`innodb_lock_wait_timeout`).
    pub fn set_lock_wait_timeout(&mut self, timeout: Duration) {
        todo!()
    }
    /// A number shown with this transaction (the connection id).
    pub fn set_tag(&mut self, tag: u64) {
        todo!()
    }
    /// A handle to kill it with.
    pub fn kill_handle(&self) -> KillHandle {
        todo!()
    }
    /// Forgets an earlier kill (start of the next statement).
    pub fn clear_kill(&mut self) {
        todo!()
    }
    /// Starts a transaction that lasts to [`Transaction::commit`] or [`Transaction::rollback`]. Without it every
    /// statement must be ended by one of them (autocommit). Costs nothing: an id is taken at the first change.
    pub fn begin(&mut self) {
        todo!()
    }
    /// As `begin`, and opens the read view now (WITH CONSISTENT SNAPSHOT; only under REPEATABLE READ).
    pub fn begin_with_snapshot(&mut self) {
        todo!()
    }
    /// Whether `begin` was called and neither commit nor rollback (a deadlock rolls back) since.
    pub fn is_active(&self) -> bool {
        todo!()
    }
    /// Whether it changed something.
    pub fn has_changes(&self) -> bool {
        todo!()
    }
    /// Its id, if it has one.
    pub fn id(&self) -> Option<u64> {
        todo!()
    }
    /// Ends a statement: READ COMMITTED and autocommit give up the read view.
    pub fn end_statement(&mut self) {
        todo!()
    }
    /// Where the transaction is now, for `rollback_to` (statement rollback and savepoints).
    pub fn statement_mark(&self) -> UndoMark {
        todo!()
    }
    /// Undoes all changes made since `mark`. Locks stay, as in InnoDB.
    pub async fn rollback_to(&mut self, mark: UndoMark) -> Result<(), Error> {
        todo!()
    }
    /// Sets a savepoint; one with the same name (ASCII case ignored) is replaced.
    pub fn savepoint(&mut self, name: &str) {
        todo!()
    }
    /// Rolls back to a savepoint and forgets later ones. `Ok(false)` when there is none of that name.
    pub async fn rollback_to_savepoint(&mut self, name: &str) -> Result<bool, Error> {
        todo!()
    }
    /// Forgets a savepoint and later ones. False when there is none of that name.
    pub fn release_savepoint(&mut self, name: &str) -> bool {
        todo!()
    }
    /// Commits. When this returns an error other than a failed wait for durability, nothing is committed.
    pub async fn commit(&mut self, durability: Durability) -> Result<(), Error> {
        todo!()
    }
    /// As `commit`, for a thread that may block: it leads the log write itself when the log is idle.
    pub fn commit_blocking(&mut self, durability: Durability) -> Result<(), Error> {
        todo!()
    }
    /// Rolls back everything and releases the locks.
    pub async fn rollback(&mut self) -> Result<(), Error> {
        todo!()
    }
}
