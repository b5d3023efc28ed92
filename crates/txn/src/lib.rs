//! Transactions: ids, read views, undo logs, row locks, deadlocks, rollback and purge.
//!
//! ```text
//!   transaction  a session's transaction             row        get, scan, insert, update, put, delete
//!   system       what all transactions share         table      a table as transactions see it
//!   transaction_ids   who is active, commit order    lock       row locks, waits, deadlocks
//!   read_view    what a consistent read sees         version    rebuilding older versions
//!   undo         undo tablespace, logs, recovery     rollback   taking changes back
//!   purge        removing what nobody sees           entry      secondary entries made of rows
//!   crash_rollback  rollback after a start         prepared   transactions that wait for somebody's decision
//!   time_slice   how long a task keeps its thread
//!   commit_observer  who is told of a commit
//! ```
//!
//! The walk of an update: row lock (usually implicit) -> leaf X-latched -> undo record and new version in one
//! mini-transaction -> entries of secondary indexes, one each -> commit mark in the undo log -> redo flush.
//! Later purge removes the delete-marked entries when no view needs the old version.
//!
//! Nothing here blocks a thread on anything but short latches: synchronous steps return what they wait for,
//! asynchronous functions await it and repeat the step.
//!
//! An operation that fails has taken itself back, and the transaction goes on; after [`Error::Deadlock`] all
//! of it has been rolled back already.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

#[cfg(not(loom))]
mod commit_observer;
#[cfg(not(loom))]
mod crash_rollback;
#[cfg(not(loom))]
mod entry;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
mod imported_delete_marks;
#[cfg(not(loom))]
mod join_all;
#[cfg_attr(loom, allow(dead_code, unused_imports))]
mod lock;
#[cfg(not(loom))]
mod prepared;
#[cfg(not(loom))]
mod purge;
#[cfg(not(loom))]
mod read_view;
#[cfg(not(loom))]
mod remove_deleted_row;
#[cfg(not(loom))]
mod renew;
#[cfg(not(loom))]
mod retry;
#[cfg(not(loom))]
mod roll_pointer;
#[cfg(not(loom))]
mod rollback;
#[cfg(not(loom))]
pub mod row;
#[cfg(not(loom))]
mod row_count;
#[cfg(not(loom))]
mod shared_snapshot;
#[cfg(not(loom))]
mod statement_counts;
#[cfg(not(loom))]
mod system;
#[cfg(not(loom))]
mod table;
#[cfg(not(loom))]
mod time_slice;
#[cfg(not(loom))]
mod transaction;
#[cfg(not(loom))]
mod transaction_ids;
#[cfg(not(loom))]
mod undo;
#[cfg(not(loom))]
mod version;
#[cfg(not(loom))]
mod xid;

#[cfg(not(loom))]
pub use btree::OwnedKey;
#[cfg(not(loom))]
pub use commit_observer::{CommitObserver, Committed};
#[cfg(not(loom))]
pub use error::{Error, Interrupt};
#[cfg(not(loom))]
pub use lock::WaitInfo;
pub use lock::{
    Companion, Deadlock, DeadlockMember, DeadlockWitness, LockDescription, OutsideWaits, RowLock, RowLocks,
    RowOwner, RowSearch, RowWait, RowWaitEdge, RowWaits,
};
#[cfg(not(loom))]
pub use prepared::{PREPARED_MAX, RecoveredTransaction};
#[cfg(not(loom))]
pub use purge::PurgePause;
#[cfg(not(loom))]
pub use row::{
    Control, Direction, KeyRange, OffPage, OnDuplicate, Put, ReadMode, Row, Scan, ScanIndex, ScanState,
    WaitPolicy, count, delete, get, get_at_once, get_step, insert, insert_with, put, scan_at_once, update,
};
#[cfg(not(loom))]
pub use shared_snapshot::Snapshot;
#[cfg(not(loom))]
pub use system::{Options, Recovered, RecoveryReport, Status, TransactionInfo, TransactionSystem};
#[cfg(not(loom))]
pub use table::{ClusteredField, ROW_ID_COLUMN, Secondary, SecondaryField, Table, TableHold, TableSource};
#[cfg(not(loom))]
pub use time_slice::TimeSlice;
#[cfg(not(loom))]
pub use transaction::{Durability, Isolation, KillHandle, Transaction, UndoMark};
#[cfg(not(loom))]
pub use undo::page::UNDO_SPACE;
#[cfg(not(loom))]
pub use xid::Xid;
