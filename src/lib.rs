//! Untorn: an embeddable InnoDB.

mod auto_increment;
mod blocking;
mod buffer_pool;
pub mod catalog;
mod check;
mod clean_tier;
mod database;
mod ddl;
mod definition;
mod error;
pub mod export;
mod file_work;
mod forced_recovery;
mod import;
mod index_build;
mod index_entry;
mod key_value;
pub mod layout;
mod metadata_deadlock;
mod metadata_lock;
mod open;
mod options;
mod protection;
mod provenance;
mod rename;
mod report;
mod retry;
mod rows;
pub mod schema;
pub mod sort;
mod status;
mod table;
mod timeout;
mod transaction;
mod truncate;
pub mod types;

pub use auto_increment::AutoIncrement;
pub use blocking::BlockingTransaction;
pub use check::CheckReport;
pub use clean_tier::{CleanTierChange, CleanTierOptions, CleanTierRestart, CleanTierState, CleanTierStatus};
pub use database::Database;
pub use dblwr::{FileProtection, Way as WriteWay};
pub use error::{Error, Result};
pub use import::ImportReport;
pub use key_value::{KeyValue, KeyValueType};
pub use metadata_lock::Access;
pub use options::{Doublewrite, Options, default_lock_memory};
pub use report::OpenReport;
pub use rows::{Lock, OwnedRow, Range};
pub use status::Figure;
pub use table::{Table, file_name, name_of_file, table_file};
pub use transaction::{NotUsable, TableLock, TableLockRequest, Transaction};

/// The layers below, for those who go to rows and keys in storage encoding directly, as the server does.
pub mod engine {
    pub use btree::collation::general_ci_weight;
    pub use btree::compare::compare_values;
    pub use btree::{Comparison, Field, FieldRef};
    pub use disk::Error as DiskError;
    pub use disk::{Environment, Event, RealEnvironment, RealOptions, TaskFuture, Wait, block_on};
    pub use pagestore::Error as StoreError;
    pub use redo::Error as RedoError;
    pub use txn::*;
}

/// A fresh directory for an example in the documentation.
#[doc(hidden)]
pub fn doc_test_directory() -> std::path::PathBuf {
    let nanos = std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos());
    std::env::temp_dir().join(format!("untorn-doc-{}-{nanos}", std::process::id()))
}
