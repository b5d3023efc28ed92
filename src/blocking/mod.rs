//! The types at the crate's root: operations block the calling thread.
//!
//! Each is a thin wrapper of its namesake in [`crate::asynchronous`]. The thread parks while it waits, and
//! leads the log write of its own commit when the log is idle.

mod change_feed;
mod database;
mod definitions;
mod key_value;
mod transaction;

pub use change_feed::ChangeFeed;
pub use database::Database;
pub use definitions::Definitions;
pub use key_value::{KeyValue, Pairs};
pub use transaction::{Rows, Transaction};
