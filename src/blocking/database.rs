//! A database for programs without an executor.

use std::path::Path;
use std::sync::Arc;

use dblwr::FileProtection;
use disk::block_on;
use txn::{Durability, Isolation, Snapshot, Xid};

use super::change_feed::ChangeFeed;
use super::transaction::Transaction;
use crate::asynchronous;
use crate::backup::{BackupOptions, BackupReport};
use crate::changes::ChangeFeedOptions;
use crate::deadlock_report::DeadlockReport;
use crate::error::{Error, Result};
use crate::extension::{ExtensionChange, ExtensionStatus};
use crate::metrics::Figure;
use crate::options::{Doublewrite, Options};
use crate::report::OpenReport;
use crate::table::Table;
use crate::transact::Runs;

/// An open database (data directory). Clones share it.
///
/// ```
/// use untorn::{Database, Options};
///
/// # fn main() -> untorn::Result<()> {
/// # let directory = untorn::doc_test_directory();
/// let db = Database::open(Options::new(&directory).buffer_pool_bytes(16 << 20))?;
/// let visits = db.key_value::<String, u64>("visits")?;
/// let count = db.transact(|t| -> untorn::Result<u64> {
///     let count = visits.get_for_update(t, "Ada")?.unwrap_or(0) + 1;
///     visits.put(t, "Ada", count)?;
///     Ok(count)
/// })?;
/// assert_eq!(count, 1);
/// db.close()?;
/// # std::fs::remove_dir_all(&directory).ok();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Database {
    inner: asynchronous::Database,
}

impl From<asynchronous::Database> for Database {
    fn from(inner: asynchronous::Database) -> Database {
        Database { inner }
    }
}

impl Database {
    /// Opens the data directory, or creates it. Returns when recovery is done.
    ///
    /// # Errors
    /// A directory in use, of a newer version, damaged beyond what redo and doublewrite can repair, or
    /// settings that do not fit it; the message names the file and says what can be done.
    pub fn open(options: Options) -> Result<Database> {
        Ok(block_on(asynchronous::Database::open(options))?.into())
    }

    /// An empty database for tests. Its files lie in a file system in memory where the system has one, else
    /// in the directory for temporary files, and are removed when it is closed, or with the last of its
    /// clones, handles and transactions.
    ///
    /// ```
    /// # fn main() -> untorn::Result<()> {
    /// let db = untorn::Database::in_memory()?;
    /// let names = db.key_value::<u32, String>("names")?;
    /// db.transact(|t| names.put(t, 1, "Ada"))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn in_memory() -> Result<Database> {
        Ok(block_on(asynchronous::Database::in_memory())?.into())
    }

    /// The same database for futures.
    pub fn asynchronous(&self) -> &asynchronous::Database {
        &self.inner
    }

    /// Begins a transaction, REPEATABLE READ.
    pub fn begin(&self) -> Transaction {
        self.begin_at(Isolation::RepeatableRead)
    }

    /// Begins a transaction of this isolation level.
    pub fn begin_at(&self, isolation: Isolation) -> Transaction {
        Transaction::begin(&self.inner, isolation)
    }

    /// This moment, to be read by any number of transactions, of any threads ([`Database::begin_in`]): what
    /// is committed from now on is not in it. Old row versions are kept for as long as it lives.
    ///
    /// ```
    /// # fn main() -> untorn::Result<()> {
    /// let db = untorn::Database::in_memory()?;
    /// let stock = db.key_value::<u32, u32>("stock")?;
    /// db.transact(|t| stock.insert_all(t, [(1, 10), (2, 20)]))?;
    /// let snapshot = db.snapshot();
    /// db.transact(|t| stock.put(t, 1, 0))?;
    /// let sum = std::thread::scope(|scope| {
    ///     let halves = [1, 2].map(|item| {
    ///         let (db, stock, snapshot) = (&db, &stock, &snapshot);
    ///         scope.spawn(move || stock.get(&mut db.begin_in(snapshot)?, item))
    ///     });
    ///     halves.map(|half| half.join().expect("no panic"))
    /// });
    /// assert!(matches!(sum, [Ok(Some(10)), Ok(Some(20))]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        self.inner.snapshot()
    }

    /// Begins a transaction that reads a snapshot. It is read-only and takes no locks: [`Error::ReadOnly`].
    ///
    /// # Errors
    /// A snapshot of another database.
    pub fn begin_in(&self, snapshot: &Snapshot) -> Result<Transaction> {
        Transaction::begin_in(&self.inner, snapshot)
    }

    /// The transactions that were prepared ([`Transaction::prepare`]) and that nobody has committed or rolled
    /// back, also those from before the last start; in no order.
    pub fn prepared_transactions(&self) -> Vec<Xid> {
        self.inner.prepared_transactions()
    }

    /// Commits a prepared transaction, durably.
    ///
    /// # Errors
    /// [`Error::UnknownXid`] when there is no prepared transaction of this name (any more; its end is durable
    /// then), [`Error::Closed`], a log that cannot be written.
    pub fn commit_prepared(&self, xid: &Xid) -> Result<()> {
        block_on(self.inner.commit_prepared(xid, Durability::Sync))
    }

    /// Rolls back a prepared transaction, durably.
    ///
    /// # Errors
    /// Those of [`Database::commit_prepared`]; storage errors, after which it is rolled back in the
    /// background.
    pub fn rollback_prepared(&self, xid: &Xid) -> Result<()> {
        block_on(self.inner.rollback_prepared(xid, Durability::Sync))
    }

    /// A snapshot, and the feed of everything that is committed after it, for a copy of the rows that is kept
    /// up to date: see [`crate::changes`]. Waits until the transactions that have changed something have
    /// ended.
    ///
    /// # Errors
    /// [`TransactionError::LockWaitTimeout`](crate::TransactionError::LockWaitTimeout) when one of them has
    /// not ended after [`Options::lock_wait_timeout`], also one of the calling thread. [`Error::Closed`].
    pub fn change_feed(&self, options: ChangeFeedOptions) -> Result<(Snapshot, ChangeFeed)> {
        let (snapshot, feed) = block_on(self.inner.change_feed(options))?;
        Ok((snapshot, feed.into()))
    }

    /// Runs `work` in a transaction and commits it durably. After a deadlock everything is rolled back and
    /// `work` runs again after a pause, which grows, up to 100 times. When a lock was not granted in time it
    /// runs once more. What decides is how the last operation of the transaction failed
    /// ([`Error::is_retryable`], except for NOWAIT), not what `work` makes of it.
    ///
    /// The error of `work` may be of any type that is made from [`Error`]: `?` works for the database's
    /// errors and for your own. A closure that ends in `Ok(…)` has to say which type that is.
    ///
    /// ```
    /// #[derive(Debug)]
    /// enum Refused {
    ///     Poor(i64),
    ///     Database(untorn::Error),
    /// }
    ///
    /// impl From<untorn::Error> for Refused {
    ///     fn from(error: untorn::Error) -> Refused {
    ///         Refused::Database(error)
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Refused> {
    /// let db = untorn::Database::in_memory()?;
    /// let accounts = db.key_value::<u32, i64>("accounts")?;
    /// let paid = db.transact(|t| -> Result<i64, Refused> {
    ///     let sum = accounts.get_for_update(t, 1)?.unwrap_or(0);
    ///     if sum < 10 {
    ///         return Err(Refused::Poor(sum)); // rolled back, and returned as it is
    ///     }
    ///     accounts.put(t, 1, sum - 10)?;
    ///     Ok(sum - 10)
    /// });
    /// assert!(matches!(paid, Err(Refused::Poor(0))));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The error of `work` as it is, or that of the commit; nothing is changed then.
    pub fn transact<T, E: From<Error>>(
        &self,
        mut work: impl FnMut(&mut Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut runs = Runs::default();
        loop {
            let mut transaction = self.begin();
            let (error, conflict) = match work(&mut transaction) {
                Ok(done) => match transaction.commit() {
                    Ok(()) => return Ok(done),
                    Err(error) => {
                        let conflict = error.conflict();
                        (error.into(), conflict)
                    }
                },
                Err(error) => {
                    let conflict = transaction.inner().conflict();
                    if let Err(error) = transaction.rollback() {
                        tracing::warn!(%error, "a transaction that failed is rolled back in the background");
                    }
                    (error, conflict)
                }
            };
            let environment = self.inner.environment();
            match runs.pause_after(conflict, &**environment) {
                Some(pause) => block_on(environment.sleep(pause)),
                None => return Err(error),
            }
        }
    }

    /// An open table.
    ///
    /// # Errors
    /// [`Error::NoSuchDatabase`], [`Error::NoSuchTable`].
    pub fn table(&self, database: &str, name: &str) -> Result<Arc<Table>> {
        self.inner.table(database, name)
    }

    /// The tables of a database, by name.
    pub fn tables(&self, database: &str) -> Vec<Arc<Table>> {
        self.inner.tables(database)
    }

    /// Names of the databases, in order.
    pub fn databases(&self) -> Vec<String> {
        self.inner.databases()
    }

    /// What was decided and found when the database was opened.
    pub fn report(&self) -> &OpenReport {
        self.inner.report()
    }

    /// The data directory.
    pub fn directory(&self) -> &Path {
        self.inner.directory()
    }

    /// Changes the buffer pool's size, in bytes, while it is used; returns when that is done.
    ///
    /// ```
    /// # fn main() -> untorn::Result<()> {
    /// let db = untorn::Database::in_memory()?;
    /// db.resize_buffer_pool(24 << 20)?;
    /// assert_eq!(db.buffer_pool_bytes(), 24 << 20);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the size is too small or the memory is not available. Nothing has changed then.
    pub fn resize_buffer_pool(&self, bytes: u64) -> Result<()> {
        block_on(self.inner.resize_buffer_pool(bytes))
    }

    /// The buffer pool's size in bytes.
    pub fn buffer_pool_bytes(&self) -> u64 {
        self.inner.buffer_pool_bytes()
    }

    /// Changes the most bytes that the redo log may take (`innodb_redo_log_capacity`), under any load, until
    /// the database is closed. A larger capacity holds at once. A smaller one is reached in the background,
    /// when so much log is enough; another change on the way takes the place of the one before. From then on
    /// the capacity does not change by itself any more, until [`Database::redo_capacity_by_itself`].
    ///
    /// ```
    /// # fn main() -> untorn::Result<()> {
    /// let db = untorn::Database::in_memory()?;
    /// db.set_redo_capacity(256 << 20)?;
    /// assert_eq!(db.redo_capacity_bytes(), 256 << 20);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When that is less than 8 MiB, or the engine writes nothing any more. Nothing has changed then.
    pub fn set_redo_capacity(&self, bytes: u64) -> Result<()> {
        self.inner.set_redo_capacity(bytes)
    }

    /// As where nobody has set the capacity: it is the default, this number of bytes, and from there rises by
    /// itself where that saves page writes ([`Options::redo_capacity_bytes`]).
    ///
    /// # Errors
    /// Those of [`Database::set_redo_capacity`].
    pub fn redo_capacity_by_itself(&self, default: u64) -> Result<()> {
        self.inner.redo_capacity_by_itself(default)
    }

    /// The capacity of the redo log that was last asked for, in bytes.
    pub fn redo_capacity_bytes(&self) -> u64 {
        self.inner.redo_capacity_bytes()
    }

    /// The capacity of the redo log that holds, in bytes: more than [`Database::redo_capacity_bytes`] while
    /// the log becomes smaller.
    pub fn redo_capacity_reached(&self) -> u64 {
        self.inner.redo_capacity_reached()
    }

    /// Protects pages from tearing in another way from now on (`innodb_doublewrite`); returns when what was
    /// written unprotected before is durable. Lasts until the database is closed.
    ///
    /// ```no_run
    /// # fn main() -> untorn::Result<()> {
    /// use untorn::{Database, Doublewrite, Options};
    /// let db = Database::open(Options::new("data").doublewrite(Doublewrite::On))?;
    /// db.set_doublewrite(Doublewrite::Auto)?;
    /// for file in db.page_protection() {
    ///     println!("{}: {} ({}, because {})", file.file.display(), file.mode, file.verdict, file.reason);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the doublewrite files cannot be made; the mode stays as it was. When pages cannot be made
    /// durable; the engine then refuses changes.
    pub fn set_doublewrite(&self, mode: Doublewrite) -> Result<()> {
        self.inner.set_doublewrite(mode)
    }

    /// How pages are protected from tearing.
    pub fn doublewrite(&self) -> Doublewrite {
        self.inner.doublewrite()
    }

    /// How the pages of each tablespace file are written now, and the facts that rests on, by file.
    pub fn page_protection(&self) -> Vec<FileProtection> {
        self.inner.page_protection()
    }

    /// The state and figures of the buffer pool extension.
    pub fn extension(&self) -> ExtensionStatus {
        self.inner.extension()
    }

    /// Switches the buffer pool extension on (empty) or off, in the background.
    pub fn switch_extension(&self, on: bool) -> ExtensionChange {
        self.inner.switch_extension(on)
    }

    /// Moves the buffer pool extension to another file (relative to the data directory), empty, in the
    /// background; `None` is off.
    pub fn set_extension_file(&self, file: Option<&Path>) -> ExtensionChange {
        self.inner.set_extension_file(file)
    }

    /// Changes the size of the buffer pool extension, in bytes (0: eight times the buffer pool, at
    /// most half of the room there is), in the background.
    pub fn resize_extension(&self, bytes: u64) -> ExtensionChange {
        self.inner.resize_extension(bytes)
    }

    /// The latest deadlock since the database was opened, with the tables and keys that were waited for.
    ///
    /// ```
    /// # let db = untorn::Database::in_memory()?;
    /// if let Some(deadlock) = db.latest_deadlock() {
    ///     eprintln!("{deadlock}");
    /// }
    /// # Ok::<(), untorn::Error>(())
    /// ```
    pub fn latest_deadlock(&self) -> Option<DeadlockReport> {
        self.inner.latest_deadlock()
    }

    /// Limits what is written to the buffer pool extension, in bytes per second; 0 is no limit.
    pub fn set_extension_write_budget(&self, bytes_per_second: u64) {
        self.inner.set_extension_write_budget(bytes_per_second);
    }

    /// Has the names of the most recently used pages written to `ib_buffer_pool` when the database is closed:
    /// this many percent of those in memory, or none with 0, as by default.
    pub fn dump_buffer_pool_at_close(&self, percent: u8) {
        self.inner.dump_buffer_pool_at_close(percent);
    }

    /// Begins to read the pages that `ib_buffer_pool` names, in the background; the database works meanwhile.
    ///
    /// ```
    /// # fn main() -> untorn::Result<()> {
    /// let db = untorn::Database::in_memory()?;
    /// db.load_buffer_pool();
    /// db.dump_buffer_pool_at_close(25);
    /// db.close()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn load_buffer_pool(&self) {
        // Nobody waits for it here.
        drop(self.inner.load_buffer_pool());
    }

    /// How far the load is, or how it ended.
    pub fn buffer_pool_load_status(&self) -> String {
        self.inner.buffer_pool_load_status()
    }

    /// Counters and gauges of the engine, by InnoDB's names.
    pub fn status(&self) -> Vec<Figure> {
        self.inner.status()
    }

    /// Copies the open database into a new or empty directory, while it works: everything that was
    /// acknowledged before this is called is in it; later commits may be too. [`crate::restore`] makes a
    /// data directory of it.
    ///
    /// Changes of definitions wait until the copy is made, and the copy for those under way. Old redo log is
    /// kept until it has been copied.
    ///
    /// ```
    /// # fn main() -> untorn::Result<()> {
    /// # let directory = untorn::doc_test_directory();
    /// use untorn::{Database, Options};
    ///
    /// let db = Database::open(Options::new(directory.join("data")).buffer_pool_bytes(16 << 20))?;
    /// let stock = db.key_value::<u32, u32>("stock")?;
    /// db.transact(|t| stock.put(t, 1, 10))?;
    /// db.backup(directory.join("monday"))?;
    /// # db.close()?;
    ///
    /// untorn::restore(directory.join("monday"), directory.join("restored"), |_| {})?;
    /// let restored = Database::open(Options::new(directory.join("restored")).buffer_pool_bytes(16 << 20))?;
    /// let stock = restored.key_value::<u32, u32>("stock")?;
    /// assert_eq!(stock.get(&mut restored.begin(), 1)?, Some(10));
    /// # restored.close()?;
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A target that is not empty or cannot be written; a table's file that is missing or damaged; a timeout;
    /// [`Error::ForcedRecovery`]. The database goes on in any case.
    pub fn backup(&self, target: impl AsRef<Path>) -> Result<BackupReport> {
        block_on(self.inner.backup(target))
    }

    /// The same, with a limit to its speed, with progress, or with other timeouts.
    ///
    /// # Errors
    /// As [`Database::backup`].
    pub fn backup_with(&self, target: impl AsRef<Path>, options: BackupOptions) -> Result<BackupReport> {
        block_on(self.inner.backup_with(target, options))
    }

    /// Closes the database: waits for background work, writes every page, leaves a log with nothing to
    /// recover. Transactions still open are rolled back at the next start; any later read or change fails
    /// with [`Error::Closed`], and closing again does nothing. A database that is dropped without it recovers
    /// when it is opened next.
    ///
    /// # Errors
    /// I/O errors.
    pub fn close(&self) -> Result<()> {
        block_on(self.inner.close())
    }
}
