//! Transactions: ids, read views, undo logs, row locks, deadlocks, rollback and purge.
mod error;
mod lock;
pub mod row;
mod system;
mod table;
mod transaction;

pub use error::{Error, Interrupt};
pub use row::{
    Control, Direction, KeyRange, OwnedKey, ReadMode, Row, Scan, ScanIndex, ScanState, WaitPolicy, delete,
    fetch_external, get, insert, update,
};
pub use system::{Options, PurgePause, RecoveryReport, Status, TransactionInfo, TransactionSystem};
pub use table::{ClusteredField, ROW_ID_COLUMN, Secondary, SecondaryField, Table, TableSource};
pub use transaction::{Durability, Isolation, KillHandle, Transaction, UndoMark};
