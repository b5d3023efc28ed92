//! Transactions: ids, read views, undo logs, row locks, deadlocks, rollback and purge.
//!
//! ```text
//!   transaction  a session's transaction             row        get, scan, insert, update, delete
//!   system       what all transactions share         table      a table as transactions see it
//!   active       ids, who is active, commit order    lock       row locks, waits, deadlocks
//!   read_view    what a consistent read sees         version    rebuilding older versions
//!   undo         undo tablespace, logs, recovery     rollback   taking changes back
//!   purge        removing what nobody sees           entry      secondary entries made of rows
//! ```
//!
//! The walk of an update: row lock (usually implicit) -> leaf X-latched -> undo record and new version in one
//! mini-transaction -> entries of secondary indexes, one each -> commit mark in the undo log -> redo flush. Later purge removes the
//! delete-marked entries when no view needs the old version.
//!
//! Nothing here blocks a thread on anything but short latches: synchronous steps return what they wait for, asynchronous
//! functions await it and repeat the step.
//!
//! Additions to the first contract: [`fetch_external`] takes the table; [`Transaction::end_statement`] gives up the read view of a
//! READ COMMITTED or autocommit statement; every operation takes itself back when it fails; [`Error::Deadlock`]
//! means that the transaction has been rolled back already.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod active;
mod entry;
mod error;
mod lock;
mod purge;
mod read_view;
mod retry;
mod roll_pointer;
mod rollback;
pub mod row;
mod system;
mod table;
mod transaction;
mod undo;
mod version;

pub use btree::OwnedKey;
pub use error::{Error, Interrupt};
pub use purge::PurgePause;
pub use row::{
    Control, Direction, KeyRange, ReadMode, Row, Scan, ScanIndex, ScanState, WaitPolicy, delete,
    fetch_external, get, insert, update,
};
pub use system::{Options, RecoveryReport, Status, TransactionInfo, TransactionSystem};
pub use table::{ClusteredField, ROW_ID_COLUMN, Secondary, SecondaryField, Table, TableSource};
pub use transaction::{Durability, Isolation, KillHandle, Transaction, UndoMark};
pub use undo::page::UNDO_SPACE;
