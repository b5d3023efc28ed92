//! A database for programs without an executor.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dblwr::FileProtection;
use disk::block_on;
use txn::{Isolation, Snapshot};

use super::transaction::Transaction;
use crate::asynchronous;
use crate::check::CheckReport;
use crate::error::Result;
use crate::export::ExportHold;
use crate::extension::{ExtensionChange, ExtensionStatus};
use crate::import::ImportReport;
use crate::options::{Doublewrite, Options};
use crate::report::OpenReport;
use crate::schema::{KeyDef, TableDef};
use crate::status::Figure;
use crate::table::Table;
use crate::types::Collation;

/// How long a change of a definition waits for transactions that use the table.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often [`Database::transact`] begins before it gives up.
const ATTEMPTS_MAX: u32 = 100;

/// How often it begins again after a lock wait that timed out.
const TIMEOUTS_MAX: u32 = 1;

/// Up to this long it waits before it begins for the second time, and twice as long before each time after,
/// up to the other.
const PAUSE: Duration = Duration::from_micros(50);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// Where `Database::in_memory` keeps its files, if it is there: Linux mounts a file system in memory on it.
const MEMORY: &str = "/dev/shm";

/// An open database (data directory). Clones share it.
///
/// ```
/// use untorn::{Database, Options};
///
/// # fn main() -> untorn::Result<()> {
/// # let directory = untorn::doc_test_directory();
/// let db = Database::open(Options::new(&directory).buffer_pool_bytes(16 << 20))?;
/// let visits = db.key_value::<String, u64>("visits")?;
/// let count = db.transact(|t| {
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

struct TemporaryDirectory(PathBuf);

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(directory = %self.0.display(), %error, "a database in memory stays there");
        }
    }
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
        static OPENED: AtomicU64 = AtomicU64::new(0);
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let memory = Path::new(MEMORY);
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let nanos = std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos());
        let directory = parent.join(format!("untorn-{}-{number}-{nanos}", std::process::id()));
        let options = Options::new(&directory).buffer_pool_bytes(16 << 20).redo_capacity_bytes(8 << 20);
        let directory = TemporaryDirectory(directory);
        let inner = block_on(asynchronous::Database::open(Options { direct_io: false, ..options }))?;
        inner.redo().keep(Box::new(directory));
        Ok(Database { inner })
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

    /// Begins a transaction that reads a snapshot. It can change and lock nothing:
    /// [`Error::ReadOnly`](crate::Error::ReadOnly).
    ///
    /// # Errors
    /// A snapshot of another database.
    pub fn begin_in(&self, snapshot: &Snapshot) -> Result<Transaction> {
        Transaction::begin_in(&self.inner, snapshot)
    }

    /// Runs `work` in a transaction and commits it durably. After a deadlock everything is rolled back and
    /// `work` runs again after a pause, which grows, up to 100 times. When a lock was not granted in time it
    /// runs once more.
    ///
    /// # Errors
    /// The error of `work` or of the commit; nothing is changed then.
    pub fn transact<T>(&self, mut work: impl FnMut(&mut Transaction) -> Result<T>) -> Result<T> {
        let (mut attempts, mut timeouts) = (1, 0);
        loop {
            let mut transaction = self.begin();
            let error = match work(&mut transaction) {
                Ok(done) => match transaction.commit() {
                    Ok(()) => return Ok(done),
                    Err(error) => error,
                },
                Err(error) => {
                    if let Err(error) = transaction.rollback() {
                        tracing::warn!(%error, "a transaction that failed is rolled back in the background");
                    }
                    error
                }
            };
            timeouts += u32::from(error.is_timeout());
            if !error.is_retryable() || attempts == ATTEMPTS_MAX || timeouts > TIMEOUTS_MAX {
                return Err(error);
            }
            // Those who met each other would meet again: each waits for a time of its own.
            let environment = self.inner.environment();
            let most = PAUSE_MAX.min(PAUSE * 2u32.saturating_pow(attempts - 1));
            let pause = most.mul_f64((environment.random_u64() >> 11) as f64 / (1u64 << 53) as f64);
            block_on(environment.sleep(pause));
            attempts += 1;
        }
    }

    /// Creates a database, the namespace that tables live in.
    ///
    /// # Errors
    /// One of this name, a name that no directory can have, I/O errors.
    pub fn create_database(&self, name: &str, collation: Collation) -> Result<()> {
        self.inner.create_database(name, collation)
    }

    /// Drops a database with all its tables, at once; returns how many there were.
    ///
    /// # Errors
    /// No such database; transactions that use a table for longer than a minute.
    pub fn drop_database(&self, name: &str) -> Result<usize> {
        block_on(self.inner.drop_database(name, None, PATIENCE))
    }

    /// Creates a table and opens it.
    ///
    /// # Errors
    /// One of this name, no such database, a definition that cannot be, a full disk; nothing is left behind
    /// then.
    pub fn create_table(&self, database: &str, name: &str, def: TableDef) -> Result<Arc<Table>> {
        block_on(self.inner.create_table(database, name, def))?;
        self.table(database, name)
    }

    /// Opens a table, or creates it, and its database too.
    ///
    /// # Errors
    /// As [`Database::create_table`].
    pub fn create_table_if_missing(&self, database: &str, name: &str, def: TableDef) -> Result<Arc<Table>> {
        use crate::Error::{DatabaseExists, NoSuchDatabase, NoSuchTable, TableExists};
        // Others may create and drop it meanwhile.
        loop {
            match self.table(database, name) {
                Err(NoSuchTable(..)) => match self.create_table(database, name, def.clone()) {
                    Err(TableExists(..) | NoSuchTable(..) | NoSuchDatabase(..)) => {}
                    created => return created,
                },
                Err(NoSuchDatabase(..)) => match self.create_database(database, def.collation) {
                    Err(DatabaseExists(..)) => {}
                    created => created?,
                },
                found => return found,
            }
        }
    }

    /// Drops a table.
    ///
    /// # Errors
    /// No such table; transactions that use it for longer than a minute.
    pub fn drop_table(&self, database: &str, name: &str) -> Result<()> {
        block_on(self.inner.drop_table(database, name, None, PATIENCE))
    }

    /// Renames a table, given as database and name, also into another database. Handles of it stay good.
    ///
    /// # Errors
    /// No such table, one of the new name, transactions that use it for longer than a minute.
    pub fn rename_table(&self, from: (&str, &str), to: (&str, &str)) -> Result<()> {
        block_on(self.inner.rename_table(from, to, None, PATIENCE))
    }

    /// Removes all rows of a table. AUTO_INCREMENT begins at 1 again.
    ///
    /// # Errors
    /// No such table; transactions that use it for longer than a minute; a full disk.
    pub fn truncate_table(&self, database: &str, name: &str) -> Result<()> {
        block_on(self.inner.truncate_table(database, name, None, PATIENCE))
    }

    /// Adds a secondary index.
    ///
    /// # Errors
    /// No such table, an index of this name, rows with the same key in a unique index.
    pub fn create_index(&self, database: &str, name: &str, key: KeyDef) -> Result<()> {
        block_on(self.inner.create_index(database, name, key, None, PATIENCE))
    }

    /// Drops a secondary index.
    ///
    /// # Errors
    /// No such table or index.
    pub fn drop_index(&self, database: &str, name: &str, index: &str) -> Result<()> {
        block_on(self.inner.drop_index(database, name, index, None, PATIENCE))
    }

    /// Checks a table: its trees, and whether its indexes agree. It cannot be changed meanwhile.
    ///
    /// # Errors
    /// No such table; transactions that use it for longer than a minute. Damage is no error: see the report.
    pub fn check_table(&self, database: &str, name: &str) -> Result<CheckReport> {
        block_on(self.inner.check_table(database, name, None, PATIENCE))
    }

    /// Makes a table's file complete and holds it still until the answer is dropped. Copy the `.ibd` file and
    /// the `.cfg` file next to it meanwhile: MySQL and MariaDB import them.
    ///
    /// # Errors
    /// No such table; transactions that use it for longer than a minute; I/O errors.
    pub fn export_table(&self, database: &str, name: &str) -> Result<ExportHold> {
        block_on(self.inner.export_table(database, name, None, PATIENCE))
    }

    /// Removes a table's file, to import another one in its place.
    ///
    /// # Errors
    /// No such table; transactions that use it for longer than a minute.
    pub fn discard_tablespace(&self, database: &str, name: &str) -> Result<()> {
        block_on(self.inner.discard_tablespace(database, name, None, PATIENCE))
    }

    /// Takes the file that was copied to the place of a discarded table's file as the table's tablespace.
    ///
    /// # Errors
    /// A file that does not fit the definition, or is damaged: the message says which page. The table stays
    /// discarded.
    pub fn import_tablespace(&self, database: &str, name: &str) -> Result<ImportReport> {
        block_on(self.inner.import_tablespace(database, name, None, PATIENCE))
    }

    /// An open table.
    ///
    /// # Errors
    /// [`Error::NoSuchDatabase`](crate::Error::NoSuchDatabase), [`Error::NoSuchTable`](crate::Error::NoSuchTable).
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
    /// # Errors If the size is too small or the memory is not available. Nothing has changed then.
    pub fn resize_buffer_pool(&self, bytes: u64) -> Result<()> {
        let over = self.inner.resize_buffer_pool(bytes)?;
        self.inner.environment().block_until(&over);
        Ok(())
    }

    /// The buffer pool's size in bytes.
    pub fn buffer_pool_bytes(&self) -> u64 {
        self.inner.buffer_pool_bytes()
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

    /// Changes the size of the buffer pool extension, in bytes (0: eight times the buffer pool), in the
    /// background.
    pub fn resize_extension(&self, bytes: u64) -> ExtensionChange {
        self.inner.resize_extension(bytes)
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

    /// Closes the database: waits for background work, writes every page, leaves a log with nothing to
    /// recover. Transactions still open are rolled back at the next start; what they, or anybody, would do
    /// afterwards fails with
    /// [`Error::Closed`](crate::Error::Closed). A database that is dropped without it recovers when it is opened next.
    ///
    /// # Errors
    /// I/O errors.
    pub fn close(&self) -> Result<()> {
        block_on(self.inner.close())
    }
}
