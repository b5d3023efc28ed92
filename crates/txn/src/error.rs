//! What can go wrong for a transaction, and what a synchronous step may have to wait for.
//!
//! The numbers in the documentation are MySQL's error codes; the SQL layer maps variants to them.
//!
//! Two kinds of damage are told apart: most errors leave the transaction usable (the caller rolls back the
//! statement to its mark), but [`Error::Deadlock`] and [`Error::LockTableFull`] mean that the whole
//! transaction has **already been rolled back** and its locks are gone, because only that lets the others go
//! on.

use disk::Wait;

/// Why an operation of a transaction failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Chosen as victim of a deadlock; the transaction has been rolled back (1213, 40001).
    #[error("Deadlock found when trying to get lock; try restarting transaction")]
    Deadlock,
    /// The transaction was rolled back by a deadlock before, or its `rollback` was given up midway: nothing
    /// of it is there, and nothing can be added until it is begun again (1213, 40001).
    #[error("the transaction has been rolled back, after a deadlock or on request: begin it again")]
    RolledBack,
    /// An operation of the transaction was dropped midway and has not been undone yet.
    #[error(
        "an operation of this transaction was dropped before it finished; it must be undone before rows are read"
    )]
    Unfinished,
    /// The table or index was created or recreated after the transaction's read view: what the view should
    /// see is not in it (1412).
    #[error("Table definition has changed, please retry transaction")]
    TableChanged,
    /// A row lock was not granted within `innodb_lock_wait_timeout`; only the statement is lost (1205).
    #[error("Lock wait timeout exceeded; try restarting transaction")]
    LockWaitTimeout,
    /// The memory for row locks is used up; the whole transaction has been rolled back (1206).
    #[error("The total number of locks exceeds the lock table size")]
    LockTableFull,
    /// A row is locked and the statement said NOWAIT (3572).
    #[error("Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set.")]
    NoWaitLocked,
    /// The statement or connection was killed (1317).
    #[error("Query execution was interrupted")]
    Killed,
    /// A unique index has this key already (1062).
    #[error("Duplicate entry for key '{index}'")]
    DuplicateKey {
        /// Name of the index.
        index: String,
        /// Its user columns in storage encoding, as the new row has them.
        entry: Vec<Option<Vec<u8>>>,
    },
    /// The row does not fit into a page even with its long columns off-page (1118).
    #[error("Row size too large: table {table}, {bytes} bytes")]
    RowTooLarge {
        /// Table id.
        table: u64,
        /// Size of the record in bytes.
        bytes: usize,
    },
    /// A change has more to remember than an undo page takes: many columns at once, on small pages (1713).
    #[error(
        "Undo log record is too big: {bytes} bytes, at most {max} are possible; change fewer columns at once"
    )]
    UndoRecordTooBig {
        /// Bytes of the record.
        bytes: usize,
        /// Bytes it may have.
        max: usize,
    },
    /// An update or delete names a row that does not exist (the caller did not hold its lock).
    #[error("the row to change does not exist in table {table}")]
    RowNotFound {
        /// Table id.
        table: u64,
    },
    /// All undo slots are taken by active transactions (1637).
    #[error("Too many active concurrent transactions ({0})")]
    TooManyTransactions(usize),
    /// The database was opened with `innodb_force_recovery` above 0 (1881).
    #[error(
        "Operation not allowed when innodb_force_recovery > 0 (it is {0}): save what can be read, then start without it"
    )]
    ForcedRecovery(u8),
    /// An undo log does not hold what it should.
    #[error("undo log, page {page}: {why}; restore a backup")]
    UndoCorrupt {
        /// Page of the undo tablespace.
        page: pagestore::PageId,
        /// What was expected and what was found.
        why: String,
    },
    /// Pages, tablespaces or the redo log.
    #[error(transparent)]
    Store(#[from] pagestore::Error),
    /// A bug or damage found by a check above the pages.
    #[error("{0}")]
    Internal(String),
}

impl From<redo::Error> for Error {
    fn from(error: redo::Error) -> Self {
        Error::Store(error.into())
    }
}

/// Why a synchronous step did not complete. All its latches are released.
#[must_use]
pub enum Interrupt {
    /// Await this, keep it until the retry has finished, and call again.
    Wait(Wait),
    /// The operation failed.
    Error(Error),
}

impl disk::Interrupted for Interrupt {
    type Error = Error;

    fn into_wait(self) -> Result<Wait, Error> {
        match self {
            Interrupt::Wait(wait) => Ok(wait),
            Interrupt::Error(error) => Err(error),
        }
    }
}

impl<E: Into<Error>> From<E> for Interrupt {
    fn from(error: E) -> Self {
        Interrupt::Error(error.into())
    }
}

impl From<pagestore::Interrupt> for Interrupt {
    fn from(interrupt: pagestore::Interrupt) -> Self {
        match interrupt {
            pagestore::Interrupt::Wait(wait) => Interrupt::Wait(wait),
            pagestore::Interrupt::Error(error) => Interrupt::Error(Error::Store(error)),
        }
    }
}

impl std::fmt::Debug for Interrupt {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Interrupt::Wait(_) => formatter.write_str("Wait"),
            Interrupt::Error(error) => formatter.debug_tuple("Error").field(error).finish(),
        }
    }
}
