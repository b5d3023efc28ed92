//! An open data directory: everything below put together, opened, recovered and closed.
//!
//! Start: lock the directory → read the catalog → finish or undo file work that a crash interrupted → restore
//! torn pages from the doublewrite files → open the tablespaces → apply the redo log → open the undo logs →
//! open for work. What had not committed is rolled back beside it. What was decided and found on the way is
//! kept in an [`OpenReport`], for the person who started it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use disk::{Environment, Event, RealEnvironment, RealOptions};
use pagestore::PageStore;
use parking_lot::{Mutex, RwLock};
use redo::RedoLog;
use txn::TransactionSystem;

use crate::backup::gate::Gate;
use crate::buffer_pool_dump::BufferPoolDump;
use crate::catalog::{Catalog, DatabaseDef};
use crate::changes::Feeds;
use crate::deadlock_report::Witness;
use crate::error::{Error, Result};
use crate::extension::Extension;
use crate::forced_recovery::{self, Level};
use crate::metadata_deadlock::MetadataGraph;
use crate::metadata_lock::{Access, MetadataLocks};
use crate::options::Options;
use crate::prepared::PreparedTransactions;
use crate::private::is_private;
use crate::provenance::{self, Marks};
use crate::redo_capacity::RoseTo;
use crate::report::OpenReport;
use crate::session::RestingSessions;
use crate::statistics::Statistics;
use crate::table::Table;
use crate::transaction_times::TransactionTimes;

/// An open database (data directory). Clones share it.
#[derive(Clone)]
pub struct Database(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub environment: Arc<dyn Environment>,
    pub directory: PathBuf,
    pub catalog: Arc<Catalog>,
    pub tables: Arc<Tables>,
    pub store: Arc<PageStore>,
    pub redo: Arc<RedoLog>,
    pub system: TransactionSystem,
    pub writer: dblwr::ProtectedWriter,
    pub extension: Extension,
    pub marks: Arc<Marks>,
    pub report: OpenReport,
    pub forced_recovery: Level,
    /// Sizes below the least are taken too.
    pub unchecked_sizes: bool,
    /// Nothing new is begun.
    pub closed: AtomicBool,
    /// What is known of `ib_buffer_pool`.
    pub buffer_pool_dump: Arc<BufferPoolDump>,
    /// Transactions that wait for a decision from outside.
    pub prepared: Arc<PreparedTransactions>,
    /// What a close has come to.
    pub closing: Closing,
    /// Where it is kept what the redo log's capacity rose to.
    pub rose_to: Arc<RoseTo>,
    /// What the lock table asks when it finds a deadlock.
    pub deadlock_witness: Arc<Witness>,
    pub transaction_times: TransactionTimes,
    pub resting: RestingSessions,
    /// Set when the environment was made by [`Database::open`].
    pub own_environment: OnceLock<Arc<RealEnvironment>>,
    /// The directory goes with the last user, so no work in the background is worth ending.
    pub in_memory: AtomicBool,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(environment) = self.own_environment.get().filter(|_| *self.in_memory.get_mut()) {
            // A task that is at work on a file would keep the directory beyond the last user.
            environment.shutdown();
        }
    }
}

/// The open tables.
#[derive(Default)]
pub(crate) struct Tables {
    pub by_name: RwLock<HashMap<(String, String), Arc<Table>>>,
    /// What purge and recovery look up. One without pages has nothing that they could work on, but a name
    /// that is held.
    pub by_id: RwLock<HashMap<u64, Arc<Table>>>,
    /// The metadata locks of names, and who waits for them.
    pub locks: Arc<MetadataLocks>,
    pub graph: Arc<MetadataGraph>,
    /// Where definitions and backups meet.
    pub gate: Arc<Gate>,
    /// Who is told of committed changes.
    pub feeds: Arc<Feeds>,
    /// Counts changes of the catalog; a plan made at an older value is stale.
    pub version: AtomicU64,
    pub statistics: Statistics,
}

impl txn::TableSource for Tables {
    /// For purge a table without its file is like one that was dropped: the others must not wait for it.
    fn table(&self, id: u64) -> Option<Arc<txn::Table>> {
        self.table_to_undo(id).unwrap_or_else(|error| {
            tracing::error!("a table cannot be purged: {error}");
            None
        })
    }

    fn table_to_undo(&self, id: u64) -> Result<Option<Arc<txn::Table>>, txn::Error> {
        let table =
            self.by_id.read().get(&id).filter(|table| !table.def.discarded).map(|table| table.rows.clone());
        let Some(table) = table else { return Ok(None) };
        let tree = &table.clustered;
        match tree.store().ensure_open(tree.space()) {
            Err(error @ pagestore::Error::Tablespace { .. }) => Err(error.into()),
            // Dropped at this moment, or a call that failed: the reader will find out.
            _ => Ok(Some(table)),
        }
    }

    fn hold(&self, id: u64) -> Result<Option<txn::TableHold>, txn::Error> {
        let Some(table) = self.by_id.read().get(&id).cloned() else { return Ok(None) };
        let held = self.hold_table(&table);
        held.map(Some)
            .ok_or_else(|| txn::Error::Internal("the table's definition is being changed".to_owned()))
    }

    fn hold_all(&self) -> Vec<(u64, txn::TableHold)> {
        let by_name = self.by_name.read();
        by_name.values().filter_map(|table| Some((table.rows.id, self.hold_table(table)?))).collect()
    }
}

impl Tables {
    /// A use of the table, as by a transaction that changes it. Nobody else knows the table yet, so there is
    /// nothing to wait for.
    fn hold_table(&self, table: &Table) -> Option<txn::TableHold> {
        Some(Arc::new(table.metadata.share(Access::Write, &self.graph.owner()).ok()?))
    }
}

impl Database {
    /// Opens the data directory, or creates it, and recovers it.
    ///
    /// # Errors
    /// A directory in use, of a newer version, damaged beyond what redo and doublewrite can repair, or
    /// settings that do not fit it; the message names the file and says what can be done.
    pub async fn open(options: Options) -> Result<Database> {
        if options.directory.is_file() {
            let why = format!("{} is a file, and no directory", options.directory.display());
            return Err(Error::Setting { setting: "datadir", why });
        }
        // Before the first table's file is opened; crash recovery may need them all.
        disk::raise_file_limit();
        let environment = RealEnvironment::new(real_options(&options))?;
        let environment = Arc::new(environment);
        // Its state is large, and would lie on the stack once for each caller.
        let opening = Box::pin(crate::open::open(environment.clone(), options, disk::room_at));
        let database = opening.await?;
        if let Some(system) = disk::network_file_system(database.directory()) {
            tracing::warn!(
                "{} lies on {system}: locks and syncs of a network file system are only as good as its server and its mount options say, \
                 and a connection that is lost stops all changes. A local disk is safer",
                database.directory().display()
            );
        }
        // Only its maker may end it: a caller's environment may serve others too.
        let _ = database.0.own_environment.set(environment);
        Ok(database)
    }

    /// As [`Database::open`] in an environment of the caller's, which may be a simulated one.
    #[doc(hidden)]
    pub async fn open_in(environment: Arc<dyn Environment>, options: Options) -> Result<Database> {
        Box::pin(crate::open::open(environment, options, |_| Some(u64::MAX))).await
    }

    /// What was decided and found at open.
    pub fn report(&self) -> &OpenReport {
        &self.0.report
    }

    /// Counts definitions that changed. A plan made for another count must be made again.
    #[doc(hidden)]
    pub fn catalog_version(&self) -> u64 {
        self.0.tables.version.load(Ordering::Acquire)
    }

    /// Names of the databases, sorted.
    pub fn databases(&self) -> Vec<String> {
        self.database_names(|name| !is_private(name))
    }

    pub(crate) fn database_names(&self, wanted: impl Fn(&str) -> bool) -> Vec<String> {
        self.0.catalog.snapshot().databases.keys().filter(|name| wanted(name)).cloned().collect()
    }

    /// A database's definition.
    pub fn database(&self, name: &str) -> Option<DatabaseDef> {
        self.0.catalog.snapshot().databases.get(name).cloned()
    }

    /// An open table.
    ///
    /// # Errors
    /// [`Error::NoSuchDatabase`], [`Error::NoSuchTable`].
    pub fn table(&self, database: &str, name: &str) -> Result<Arc<Table>> {
        let key = (database.to_owned(), name.to_owned());
        if let Some(table) = self.0.tables.by_name.read().get(&key) {
            return Ok(table.clone());
        }
        if self.database(database).is_none() {
            return Err(Error::NoSuchDatabase(database.to_owned()));
        }
        Err(Error::NoSuchTable(database.to_owned(), name.to_owned()))
    }

    /// All tables of a database, by name.
    pub fn tables(&self, database: &str) -> Vec<Arc<Table>> {
        let mut tables: Vec<_> = self
            .0
            .tables
            .by_name
            .read()
            .values()
            .filter(|table| table.database == database)
            .cloned()
            .collect();
        tables.sort_by(|a, b| a.name.cmp(&b.name));
        tables
    }

    /// All tables, sorted by database and name.
    pub fn all_tables(&self) -> Vec<Arc<Table>> {
        let mut tables: Vec<_> = self.0.tables.by_name.read().values().cloned().collect();
        tables.sort_by(|a, b| (&a.database, &a.name).cmp(&(&b.database, &b.name)));
        tables
    }

    /// The environment the database runs in: clock, background tasks, storage.
    #[doc(hidden)]
    pub fn environment(&self) -> &Arc<dyn Environment> {
        &self.0.environment
    }

    /// The page store, for status and tools.
    #[doc(hidden)]
    pub fn store(&self) -> &Arc<PageStore> {
        &self.0.store
    }

    /// The redo log, for status and tools.
    #[doc(hidden)]
    pub fn redo(&self) -> &Arc<RedoLog> {
        &self.0.redo
    }

    /// The transaction system, for status and tools.
    #[doc(hidden)]
    pub fn transaction_system(&self) -> &TransactionSystem {
        &self.0.system
    }

    /// The data directory.
    pub fn directory(&self) -> &Path {
        &self.0.directory
    }

    /// Refuses what would change something after [`Database::close`].
    pub(crate) fn refuse_after_close(&self) -> Result<()> {
        if self.0.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// Whether a handle is of a table of this database, as it is open now.
    pub(crate) fn owns(&self, table: &Table) -> bool {
        Arc::ptr_eq(table.rows.clustered.store(), &self.0.store)
    }

    /// The current version of `table`, which DDL has replaced: with another index, under another name, or
    /// truncated.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`] when it was dropped.
    pub(crate) fn successor(&self, table: &Table) -> Result<Arc<Table>> {
        let is_same = |other: &Arc<Table>| other.def.lineage() == table.def.lineage();
        if let Some(current) = self.table(&table.database, &table.name).ok().filter(is_same) {
            return Ok(current);
        }
        let tables = self.0.tables.by_name.read();
        let renamed = tables.values().find(|other| is_same(other)).cloned();
        renamed.ok_or_else(|| Error::NoSuchTable(table.database.clone(), table.name.clone()))
    }

    /// Closes the database: waits for background work, writes every page, leaves a log with nothing to
    /// recover. Transactions still open are rolled back at the next start, those that are prepared stay so;
    /// what they, or anybody, would do afterwards fails with [`Error::Closed`].
    ///
    /// **Dropped**, the future has begun to close: nothing new can be begun, and the next call closes.
    ///
    /// # Errors
    /// I/O errors.
    pub async fn close(&self) -> Result<()> {
        self.0.closed.store(true, Ordering::Release);
        // One at a time; what was cut or has failed is begun again by the next.
        let Some(turn) = self.0.closing.turn().await else { return Ok(()) };
        let closed = self.close_in_turn().await;
        // Not before: what was being committed when the close began is told.
        self.0.tables.feeds.close();
        closed?;
        turn.done();
        Ok(())
    }

    async fn close_in_turn(&self) -> Result<()> {
        let to_dump = self.buffer_pool_dump_wanted();
        self.0.system.shutdown().await?;
        let tables: Vec<_> = self.0.tables.by_name.read().values().cloned().collect();
        for table in tables.iter().filter(|_| !self.0.forced_recovery.refuses_row_changes()) {
            match self.store_counter(table).await {
                // It has been dropped since the list was made: a private one, which nobody waits for.
                Err(_) if !table.is_current() => {}
                stored => stored?,
            }
        }
        let undo = if self.0.forced_recovery.freezes_pages() {
            None
        } else {
            self.0.marks.stop();
            self.0.store.flush_all().await?;
            self.0.marks.mark().await;
            Some(provenance::undo_mark(&self.0.store).await?)
        };
        self.0.store.shutdown().await?;
        self.0.redo.close().await?;
        if let Some(undo) = undo
            && self.0.store.status().pages_dirty == 0
        {
            provenance::stopped(&self.0.catalog, &self.0.redo, undo, &self.0.marks)?;
            self.write_statistics(Some(self.0.redo.epoch()));
        }
        self.0.extension.close(self.0.redo.current()).await;
        self.last_dump_of_buffer_pool(to_dump);
        self.0.rose_to.close();
        if self.0.forced_recovery.skips_redo() {
            forced_recovery::remove_scratch_log(&**self.0.environment.storage(), &self.0.directory)?;
        }
        if let Some(environment) = self.0.own_environment.get() {
            environment.shutdown();
        }
        // Handles may be kept; they write no more.
        self.0.redo.let_go();
        Ok(())
    }
}

/// Whether the database is being closed, or has been.
#[derive(Default)]
pub(crate) struct Closing(Mutex<ClosingState>);

#[derive(Default)]
enum ClosingState {
    #[default]
    No,
    /// Somebody is at it; the event is set when that has ended, however it has.
    Now(Event),
    Done,
}

/// The right to close.
struct ClosingTurn<'c>(&'c Closing);

impl Closing {
    /// Waits for others; `None` when it is closed.
    async fn turn(&self) -> Option<ClosingTurn<'_>> {
        loop {
            let under_way = {
                let mut state = self.0.lock();
                match &*state {
                    ClosingState::Done => return None,
                    ClosingState::Now(event) => event.clone(),
                    ClosingState::No => {
                        *state = ClosingState::Now(Event::new());
                        return Some(ClosingTurn(self));
                    }
                }
            };
            under_way.wait().await;
        }
    }
}

impl ClosingTurn<'_> {
    fn end(&self, as_what: ClosingState) {
        if let ClosingState::Now(event) = std::mem::replace(&mut *self.0.0.lock(), as_what) {
            event.set();
        }
    }

    fn done(self) {
        self.end(ClosingState::Done);
    }
}

impl Drop for ClosingTurn<'_> {
    fn drop(&mut self) {
        if matches!(*self.0.0.lock(), ClosingState::Now(_)) {
            self.end(ClosingState::No);
        }
    }
}

fn real_options(options: &Options) -> RealOptions {
    RealOptions {
        backend: (!options.io_uring).then_some(disk::Backend::Threads),
        buffered: !options.direct_io,
    }
}
