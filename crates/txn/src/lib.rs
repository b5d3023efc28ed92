//! Transactions: ids, read views, undo logs, row locks, deadlocks, rollback and purge.
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
