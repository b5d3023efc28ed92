//! Untorn: an embeddable InnoDB.
//!
//! Untorn keeps tables in real `.ibd` files that stock MySQL and MariaDB import, with InnoDB's transactions,
//! isolation levels and row locks. It runs inside your process: there is no server and no thread to manage.
//!
//! [`Database`] blocks the calling thread: [`Database::transact`] runs a closure in a transaction,
//! [`Database::begin`] gives a [`Transaction`], [`Database::key_value`] a typed map,
//! [`Database::definitions`] what changes tables and indexes. [`asynchronous`] has the same nouns with
//! futures, which run on any executor and are `Send`.
//!
//! ```
//! # fn main() -> untorn::Result<()> {
//! # let directory = untorn::doc_test_directory();
//! # std::fs::create_dir_all(&directory).expect("a directory of its own");
//! # std::env::set_current_dir(&directory).expect("a directory to work in");
//! use untorn::{Database, Options};
//!
//! let db = Database::open(Options::new("my-data"))?;
//! let visits = db.key_value::<String, u64>("visits")?;
//!
//! // A transaction; run again if it meets a deadlock, durable when it returns.
//! db.transact(|t| visits.change(t, "Ada", |count| Some(count.unwrap_or(0) + 1)))?;
//!
//! let mut t = db.begin();
//! for pair in visits.range(&mut t, "A".."B").rev() {
//!     let (name, count) = pair?;
//!     println!("{name}: {count}");
//! }
//! # t.rollback()?;
//! # db.close()?;
//! # std::fs::remove_dir_all(&directory).ok();
//! # Ok(())
//! # }
//! ```
//!
//! **Dropping futures.** Every future of this crate may be dropped at any await. An interrupted operation of
//! a transaction is undone completely before the next operation or the commit starts. An interrupted commit
//! either has not begun, or is complete except for the wait for durability. Interrupted DDL either runs to
//! its end or is undone.
//!
//! **Dropping transactions.** A dropped transaction with changes is rolled back in the background. Until that
//! is done it keeps its row locks, and DDL on its tables waits.
//!
//! **Errors.** A failed operation has undone its own changes, and the transaction continues. Only
//! [`TransactionError::Deadlock`] and [`TransactionError::LockTableFull`] end the transaction: all further
//! calls fail until it is rolled back or begun again.
//!
//! **Threads.** Clone a [`Database`] to share it; a transaction belongs to one task at a time. Table handles
//! ([`Table`]) may be shared and kept: they stay valid through CREATE INDEX, RENAME and TRUNCATE.

pub mod asynchronous;
mod auto_increment;
mod backup;
#[doc(hidden)]
pub mod blocked;
mod blocking;
mod buffer_pool_dump;
mod buffer_pool_resize;
#[doc(hidden)]
pub mod catalog;
pub mod changes;
mod check;
mod columns;
#[cfg(feature = "dashboard")]
pub mod dashboard;
mod database;
mod ddl;
mod ddl_recovery;
mod deadlock_report;
mod definition_task;
mod definitions;
#[doc(hidden)]
pub mod engine;
mod error;
pub mod export;
mod extension;
mod extension_size;
mod file_names;
mod forced_recovery;
mod foreign_key;
mod import;
mod in_memory;
mod index_build;
mod index_entry;
mod intermediate_file;
mod key_value;
#[doc(hidden)]
pub mod layout;
mod lock_data;
mod metadata_deadlock;
mod metadata_lock;
mod metadata_lock_wait;
pub mod metrics;
mod name_locks;
mod open;
mod options;
mod point_read;
#[cfg(feature = "dashboard")]
pub mod pool_contents;
mod prepared;
#[doc(hidden)]
pub mod private;
mod protection;
mod provenance;
mod rebuild;
mod recovery_rates;
mod redo_capacity;
mod rename;
mod report;
mod retry;
#[doc(hidden)]
pub mod row_locks;
mod row_values;
mod rows;
pub mod schema;
mod session;
mod small_file;
#[doc(hidden)]
pub mod sort;
mod sorted_rows;
mod statement;
pub mod statistics;
mod table;
mod table_change;
#[doc(hidden)]
pub mod tablespaces;
mod transact;
mod transaction;
mod transaction_times;
mod truncate;
pub mod types;
pub mod view;
#[doc(hidden)]
pub mod write;

#[doc(hidden)]
pub use auto_increment::AutoIncrement;
#[doc(hidden)]
pub use backup::restore_in;
pub use backup::{
    BackupBase, BackupContents, BackupFile, BackupOptions, BackupProgress, BackupReport, RestoreReport,
    restore,
};
pub use blocking::{ChangeFeed, Database, Definitions, KeyValue, Pairs, Rows, Transaction};
pub use check::CheckReport;
pub use dblwr::{FileProtection, WritePath as WriteWay};
pub use deadlock_report::{DeadlockReport, DeadlockedTransaction};
pub use error::{Error, Result};
pub use extension::{ExtensionChange, ExtensionOptions, ExtensionRestart, ExtensionState, ExtensionStatus};
pub use file_names::{file_name, name_of_file, table_file};
pub use import::ImportReport;
pub use key_value::{Columns, Key, KeyValueType};
#[doc(hidden)]
pub use metadata_lock::Access;
pub use metrics::Figure;
pub use options::{Doublewrite, Options, RecoveryProgress, default_lock_memory};
pub use rebuild::Rebuild;
pub use rename::NamedTable;
pub use report::OpenReport;
pub use rows::{Lock, OwnedRow, Range};
pub use table::Table;
pub use table_change::TableChange;
pub use txn::{Durability, Error as TransactionError, Isolation, Snapshot, WaitPolicy, Xid};

/// A fresh directory for an example in the documentation.
#[doc(hidden)]
pub fn doc_test_directory() -> std::path::PathBuf {
    let nanos = std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos());
    std::env::temp_dir().join(format!("untorn-doc-{}-{nanos}", std::process::id()))
}
