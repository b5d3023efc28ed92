//! The types at the crate's root: operations block the calling thread.
//!
//! Each is a thin wrapper of its namesake in [`crate::asynchronous`]. The thread parks while it waits, and
//! leads the log write of its own commit when the log is idle.

mod columns;
mod database;
mod key_value;
mod key_value_type;
mod pairs;
mod transaction;

pub use columns::{Columns, Key};
pub use database::Database;
pub use key_value::KeyValue;
pub use key_value_type::KeyValueType;
pub use pairs::Pairs;
pub use transaction::{Rows, Transaction};
