//! The transaction system.
#![allow(clippy::todo, unused_variables)]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pagestore::PageStore;

use crate::error::Error;
use crate::table::TableSource;

/// How to open a [`TransactionSystem`].
#[derive(Debug, Clone)]
pub struct Options {
    /// File of the undo tablespace (`undo_001` in the data directory).
    pub undo_path: PathBuf,
    /// `innodb_deadlock_detect`.
    pub deadlock_detect: bool,
    /// Whether the purge task runs in the background (tests may drive it with [`TransactionSystem::purge_all`]).
    pub background_purge: bool,
    /// `innodb_lock_wait_timeout` of new transactions.
    pub lock_wait_timeout: Duration,
}

impl Options {
    /// Defaults, with the undo tablespace at `undo_path`.
    #[must_use]
    pub fn new(undo_path: PathBuf) -> Options {
        Options {
            undo_path,
            deadlock_detect: true,
            background_purge: true,
            lock_wait_timeout: Duration::from_secs(50),
        }
    }
}

/// What [`TransactionSystem::recover`] did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Unfinished transactions rolled back.
    pub rolled_back: usize,
    /// Row changes undone.
    pub records_undone: u64,
    /// Committed undo logs queued for purge.
    pub history: usize,
}

/// Counters and gauges (names in SHOW STATUS are the SQL layer's).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Status {
    /// Next transaction id.
    pub next_trx_id: u64,
    /// Transactions with an id that have not ended.
    pub active: usize,
    /// Committed undo logs not yet purged (History list length).
    pub history_length: usize,
    /// Commits of transactions that changed something.
    pub commits: u64,
    /// Rollbacks of transactions that changed something.
    pub rollbacks: u64,
    /// Row lock waits that are going on (`Innodb_row_lock_current_waits`).
    pub lock_waits_current: u64,
    /// Row lock waits so far (`Innodb_row_lock_waits`).
    pub lock_waits: u64,
    /// Nanoseconds spent in finished row lock waits (`Innodb_row_lock_time`, there in milliseconds).
    pub lock_wait_nanoseconds: u64,
    /// Longest finished row lock wait in nanoseconds (`Innodb_row_lock_time_max`).
    pub lock_wait_nanoseconds_max: u64,
    /// Deadlocks found.
    pub deadlocks: u64,
    /// Row lock waits that timed out.
    pub lock_timeouts: u64,
    /// Row locks held or waited for now.
    pub locks: u64,
    /// Rows read, inserted, updated, deleted (`Innodb_rows_*`).
    pub rows_read: u64,
    /// Rows inserted.
    pub rows_inserted: u64,
    /// Rows updated.
    pub rows_updated: u64,
    /// Rows deleted.
    pub rows_deleted: u64,
    /// Older row versions rebuilt for consistent reads.
    pub versions_built: u64,
    /// Undo records purged.
    pub purged_records: u64,
    /// Pages of the undo tablespace in use by undo logs.
    pub undo_pages: u64,
}

/// One transaction for `information_schema.innodb_trx` and SHOW ENGINE INNODB STATUS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionInfo {
    /// Its id.
    pub id: u64,
    /// The session's tag ([`crate::Transaction::set_tag`]; the server sets the connection id).
    pub tag: u64,
    /// Whether it waits for a row lock.
    pub waiting: bool,
    /// Row locks it holds or waits for.
    pub locks: usize,
    /// Undo records it wrote.
    pub undo_records: u64,
    /// When it got its id ([`disk::Environment::unix_time`]).
    pub started: Duration,
}

/// Keeps purge away while it lives (FLUSH TABLES ... FOR EXPORT).
pub struct PurgePause {}

/// Everything transactions share. Clones are the same system.
#[derive(Clone)]
pub struct TransactionSystem {}

impl TransactionSystem {
    /// Opens the undo tablespace, or creates it when its file does not exist. Redo must have been applied.
    pub async fn open(store: Arc<PageStore>, options: Options) -> Result<TransactionSystem, Error> {
        todo!()
    }
    /// Rolls back what had not committed before a crash and starts purge. Call once, when the catalog is loaded;
    /// until then nothing may be changed.
    pub async fn recover(&self, tables: Arc<dyn TableSource>) -> Result<RecoveryReport, Error> {
        todo!()
    }
    /// The store.
    pub fn store(&self) -> &Arc<PageStore> {
        todo!()
    }
    /// Purges everything no open read view needs, now. Returns the number of undo records purged.
    pub async fn purge_all(&self) -> Result<u64, Error> {
        todo!()
    }
    /// Stops purge until the answer is dropped; waits for the batch at work.
    pub async fn pause_purge(&self) -> PurgePause {
        todo!()
    }
    /// Stops background work; wait for it before the store is shut down.
    pub async fn shutdown(&self) -> Result<(), Error> {
        todo!()
    }
    /// Counters.
    pub fn status(&self) -> Status {
        todo!()
    }
    /// The transactions that have an id.
    pub fn transactions(&self) -> Vec<TransactionInfo> {
        todo!()
    }
    /// Text about the latest deadlock, as in SHOW ENGINE INNODB STATUS.
    pub fn latest_deadlock(&self) -> Option<String> {
        todo!()
    }
    /// Turns deadlock detection on or off (`innodb_deadlock_detect`).
    pub fn set_deadlock_detect(&self, on: bool) {
        todo!()
    }
}
