//! How many rows a table has and how many different keys its indexes have: what plans are chosen by.
//!
//! The numbers are estimates from a sample of pages ([`btree::estimate`]). They are taken when ANALYZE TABLE
//! asks for them or a plan needs them for the first time, and again in the background when a tenth of the
//! rows has changed since, though not every moment. A plan that was made with others stays right, only slower
//! than need be, so nothing here is locked or logged, and plans are made again only for numbers that are far
//! from those that they were made with. Over a restart they are kept in a small file (`file.rs`).

mod file;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use txn::{KeyRange, ScanIndex, TimeSlice};

use crate::database::{Database, Inner};
use crate::error::Result;
use crate::index_build::PAGE_UNITS;
use crate::metadata_lock::Access;
use crate::retry::retry;
use crate::table::Table;
use file::{Kept, Known};

/// This many changes are too few for new statistics, however small the table is: as in InnoDB.
const CHANGES_MIN: u64 = 16;

/// The statistics of a table are not renewed more often than this: as in InnoDB.
const RENEWAL_PAUSE: Duration = Duration::from_secs(10);

/// Plans are made again when a number is this many times what it was.
const CLEARLY_OTHER: u64 = 2;

/// What is known of one index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexStatistics {
    /// Different values of its first column, of the first two, and so on.
    pub distinct: Vec<u64>,
    /// Pages of its leaves.
    pub leaf_pages: u64,
    /// All its pages.
    pub pages: u64,
    /// Leaves that were looked at.
    pub sampled: u64,
}

/// What is known of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableStatistics {
    /// Its rows.
    pub rows: u64,
    /// Seconds since 1970 when they were counted.
    pub taken: u64,
    /// By the ids of its indexes.
    pub indexes: HashMap<u64, IndexStatistics>,
}

impl TableStatistics {
    /// Whether plans that were made with `old` may be wrong.
    fn are_clearly_other(&self, old: &TableStatistics) -> bool {
        let moved = |new: u64, old: u64| new.max(old) >= new.min(old).max(1).saturating_mul(CLEARLY_OTHER);
        // Of a few rows it makes no difference.
        let rows = (self.rows.max(CHANGES_MIN), old.rows.max(CHANGES_MIN));
        moved(rows.0, rows.1)
            || self.indexes.iter().any(|(id, new)| {
                old.indexes.get(id).is_none_or(|old| {
                    let mut pairs = new.distinct.iter().zip(&old.distinct);
                    new.distinct.len() != old.distinct.len() || pairs.any(|(new, old)| moved(*new, *old))
                })
            })
    }
}

/// The statistics of an open table, and how many of its rows have changed since.
pub(crate) struct TableCounts {
    pub rows: AtomicU64,
    changed: AtomicU64,
    /// With this many changes it is time for new ones; out of reach as long as there are none, and while new
    /// ones are on their way.
    renewed_at: AtomicU64,
    statistics: RwLock<Option<Arc<TableStatistics>>>,
    /// Those that plans are made with: the last that were clearly other ones.
    announced: Mutex<Option<Arc<TableStatistics>>>,
    /// Before this time of the environment, in milliseconds, nobody makes new ones unasked.
    pause_until: AtomicU64,
    renewal: Arc<Renewal>,
}

impl TableCounts {
    /// Nothing is known yet but what was kept.
    pub fn new(kept: Option<Known>, renewal: &Arc<Renewal>) -> TableCounts {
        let counts = TableCounts {
            rows: AtomicU64::new(0),
            changed: AtomicU64::new(0),
            renewed_at: AtomicU64::new(u64::MAX),
            statistics: RwLock::new(None),
            announced: Mutex::new(None),
            pause_until: AtomicU64::new(0),
            renewal: renewal.clone(),
        };
        if let Some(Known { rows, statistics, may_be_old, .. }) = kept {
            counts.rows.store(rows, Ordering::Relaxed);
            if let Some(statistics) = statistics {
                counts.set(statistics);
                if may_be_old {
                    // The changes before the crash were not counted to their end: the next one has new ones
                    // made.
                    counts.renewed_at.store(1, Ordering::Relaxed);
                }
            }
        }
        counts
    }

    /// `true` when plans are to be made again.
    fn set(&self, statistics: Arc<TableStatistics>) -> bool {
        *self.statistics.write() = Some(statistics.clone());
        self.await_changes();
        let mut announced = self.announced.lock();
        let is_other = announced.as_ref().is_none_or(|old| statistics.are_clearly_other(old));
        if is_other {
            *announced = Some(statistics);
        }
        is_other
    }

    /// After a tenth of the rows has changed from now on, it is time for new ones, if there are any.
    fn await_changes(&self) {
        if let Some(statistics) = self.get() {
            let wait = CHANGES_MIN.max(statistics.rows / 10);
            let changed = self.changed.load(Ordering::Relaxed);
            self.renewed_at.store(changed.saturating_add(wait), Ordering::Relaxed);
        }
    }

    fn pause_from(&self, now: Duration) {
        self.pause_until.store((now + RENEWAL_PAUSE).as_millis() as u64, Ordering::Relaxed);
    }

    /// How long it is to be waited yet.
    fn pause_left(&self, now: Duration) -> Duration {
        Duration::from_millis(self.pause_until.load(Ordering::Relaxed)).saturating_sub(now)
    }

    fn get(&self) -> Option<Arc<TableStatistics>> {
        self.statistics.read().clone()
    }
}

/// The statistics of a database.
#[derive(Default)]
pub(crate) struct Statistics {
    /// What was known of tables before the start, until they are opened.
    pub kept: Mutex<Kept>,
    /// What is kept is older than what is known.
    changed: AtomicBool,
    /// Held by who writes.
    writer: Mutex<()>,
    pub renewal: Arc<Renewal>,
}

/// Has new statistics made in the background.
#[derive(Default)]
pub(crate) struct Renewal(OnceLock<Weak<Inner>>);

impl Renewal {
    /// From now on there is a database to do it in.
    pub fn begin(&self, database: &Database) {
        let _ = self.0.set(Arc::downgrade(&database.0));
    }

    fn of_table(&self, database: &str, table: &str, counts: &TableCounts) {
        let Some(inner) = self.0.get().and_then(Weak::upgrade) else { return };
        let (environment, inner) = (inner.environment.clone(), Arc::downgrade(&inner));
        let pause = environment.sleep(counts.pause_left(environment.now()));
        let (database, table) = (database.to_owned(), table.to_owned());
        let work = async move {
            pause.await;
            let Some(engine) = inner.upgrade().map(Database) else { return };
            let Ok(table) = engine.table(&database, &table) else { return };
            if let Err(error) = engine.renew_statistics(&table).await {
                tracing::debug!("no new statistics of {table:?}: {error}");
            }
        };
        environment.spawn("statistics", Box::pin(work));
    }
}

impl Table {
    /// The approximate number of rows: counted by changes since the last full count.
    pub fn row_count_estimate(&self) -> u64 {
        self.counts.rows.load(Ordering::Relaxed)
    }

    /// What is known of its rows and keys.
    pub fn statistics(&self) -> Option<Arc<TableStatistics>> {
        self.counts.get()
    }

    /// Whether somebody who needs them should first have statistics made: there are none, or there are
    /// indexes that they do not know.
    pub fn lacks_statistics(&self) -> bool {
        let known = self.counts.statistics.read();
        !self.def.discarded
            && !known
                .as_ref()
                .is_some_and(|known| self.trees().all(|tree| known.indexes.contains_key(&tree.def().id)))
    }

    /// Adds to the rough row count, and notes how many rows were changed.
    pub(crate) fn note_rows(&self, more: i64, changed: u64) {
        let counts = &self.counts;
        if more != 0 {
            let _ = counts.rows.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |rows| {
                Some(rows.saturating_add_signed(more))
            });
        }
        let changed = counts.changed.fetch_add(changed, Ordering::Relaxed).saturating_add(changed);
        if changed >= counts.renewed_at.load(Ordering::Relaxed)
            && counts.renewed_at.swap(u64::MAX, Ordering::Relaxed) != u64::MAX
        {
            counts.renewal.of_table(&self.database, &self.name, counts);
        }
    }

    /// A full count.
    pub(crate) fn set_rows(&self, rows: u64) {
        self.counts.rows.store(rows, Ordering::Relaxed);
    }

    /// Takes over what is known of the table that this one replaces, with the same rows.
    pub(crate) fn continue_counts(&self, old: &Table) {
        self.set_rows(old.row_count_estimate());
        self.rows.continue_row_count(&old.rows);
        if let Some(statistics) = old.statistics() {
            self.counts.set(statistics);
        }
    }

    fn trees(&self) -> impl Iterator<Item = &btree::Tree> {
        let secondary = self.rows.secondaries.iter().map(|secondary| &*secondary.tree);
        std::iter::once(&*self.rows.clustered).chain(secondary)
    }

    fn tree_of(&self, index: ScanIndex) -> Option<&btree::Tree> {
        match index {
            ScanIndex::Clustered => Some(&self.rows.clustered),
            ScanIndex::Secondary(number) => self.rows.secondaries.get(number).map(|found| &*found.tree),
        }
    }

    /// What is known of one of its indexes.
    pub fn index_statistics(&self, index: ScanIndex) -> Option<IndexStatistics> {
        let id = self.tree_of(index)?.def().id;
        self.statistics()?.indexes.get(&id).cloned()
    }

    /// About how many entries of an index are in a range, if the pages on the way there are in memory.
    #[doc(hidden)]
    pub fn estimate_in_memory(&self, index: ScanIndex, range: &KeyRange) -> Option<u64> {
        let tree = self.tree_of(index).filter(|_| !self.def.discarded)?;
        tree.estimate_range(&range.lower, &range.upper).ok()
    }
}

impl Database {
    /// A database that is ready: from here on its statistics can be renewed.
    pub(crate) fn opened(inner: Inner) -> Database {
        let database = Database(Arc::new(inner));
        database.0.tables.statistics.renewal.begin(&database);
        database
    }

    /// Reads what was known before the start; the tables take it when they are opened. `opening`: the
    /// number of this opening of the log.
    pub(crate) fn read_statistics(&self, opening: Option<u32>) {
        let mut kept = Kept::read(&**self.0.environment.storage(), &self.0.directory);
        kept.believe_counts_at(opening);
        *self.0.tables.statistics.kept.lock() = kept;
    }

    /// About how many entries of a table's index are in a range; pages that are not in memory are read.
    ///
    /// # Errors
    /// Storage errors.
    #[doc(hidden)]
    pub async fn estimate_range(&self, table: &Table, index: ScanIndex, range: &KeyRange) -> Result<u64> {
        let in_use = table.metadata.share(Access::Read, &self.0.tables.graph.owner()).ok();
        match table.tree_of(index).filter(|_| in_use.is_some() && !table.def.discarded) {
            Some(tree) => retry(|| tree.estimate_range(&range.lower, &range.upper)).await,
            None => Ok(table.row_count_estimate()),
        }
    }

    /// Counts a table's rows and keys by a sample of its pages, and keeps what was found.
    ///
    /// # Errors
    /// Storage errors; a table whose tablespace was discarded.
    pub async fn analyze_table(&self, table: &Arc<Table>) -> Result<Arc<TableStatistics>> {
        let statistics = self.renew_statistics(table).await?;
        // Who asks for them wants plans that are made with them.
        self.definitions_changed();
        let database = self.clone();
        self.run_to_the_end(async move {
            database.keep_statistics();
            Ok(())
        })
        .await?;
        Ok(statistics)
    }

    /// Statistics for a plan, if there are none; `false` when there are none afterwards, either. What has
    /// failed is not tried again at once.
    #[doc(hidden)]
    pub async fn fetch_statistics(&self, table: &Arc<Table>) -> bool {
        if !table.counts.pause_left(self.0.environment.now()).is_zero() {
            return false;
        }
        self.renew_statistics(table).await.is_ok() && !table.lacks_statistics()
    }

    /// The same, without a word to the disk.
    #[doc(hidden)]
    pub async fn renew_statistics(&self, table: &Arc<Table>) -> Result<Arc<TableStatistics>> {
        let renewed = self.sample(table).await;
        let counts = &table.counts;
        counts.pause_from(self.0.environment.now());
        match renewed {
            Ok(Some(found)) => Ok(found),
            // Those that follow may succeed.
            Ok(None) => {
                counts.await_changes();
                Ok(counts.get().unwrap_or_default())
            }
            Err(error) => {
                counts.await_changes();
                Err(error)
            }
        }
    }

    /// `None` when its definition is being changed.
    async fn sample(&self, table: &Arc<Table>) -> Result<Option<Arc<TableStatistics>>> {
        if table.def.discarded {
            return Err(table.discarded_error());
        }
        // Nobody may take its pages away meanwhile. Who changes its definition at this moment makes another
        // table of it, which has its own.
        let Ok(_use) = table.metadata.share(Access::Read, &self.0.tables.graph.owner()) else {
            return Ok(None);
        };
        let slice = TimeSlice::new(self.0.environment.clone());
        let mut found = TableStatistics { taken: self.seconds(), ..TableStatistics::default() };
        let mut counted_all = true;
        for (number, tree) in table.trees().enumerate() {
            let mut sample = tree.sample();
            while !retry(|| tree.sample_step(&mut sample)).await? {
                slice.work(PAGE_UNITS).await?;
            }
            let of = sample.estimate();
            if number == 0 {
                found.rows = of.records;
                counted_all = of.sampled == of.leaf_pages;
            }
            let index = IndexStatistics {
                distinct: of.distinct,
                leaf_pages: of.leaf_pages,
                pages: of.pages,
                sampled: of.sampled,
            };
            found.indexes.insert(tree.def().id, index);
        }
        // What was counted change by change is better than a sample, unless it is far off: nobody knew the
        // rows of before a crash.
        let counted = table.row_count_estimate();
        if counted_all || counted.abs_diff(found.rows) > found.rows / 4 {
            table.set_rows(found.rows);
        } else {
            found.rows = counted;
        }
        let found = Arc::new(found);
        let is_other = table.counts.set(found.clone());
        self.0.tables.statistics.changed.store(true, Ordering::Release);
        if is_other {
            // Plans that were made with others are made again.
            self.definitions_changed();
        }
        Ok(Some(found))
    }

    fn seconds(&self) -> u64 {
        self.0.environment.unix_time().as_secs()
    }

    /// Writes down what is known of all tables, if that has changed.
    pub(crate) fn keep_statistics(&self) {
        if !self.0.tables.statistics.changed.swap(false, Ordering::AcqRel) {
            return;
        }
        self.write_statistics(None);
    }

    /// Writes down what is known of all tables. A directory that is full does without. With the number of
    /// the log's opening, when the log is closed, goes how many rows they have exactly.
    pub(crate) fn write_statistics(&self, closed: Option<u32>) {
        // Two would write to the same file; and who comes later has the newer numbers.
        let _writer = self.0.tables.statistics.writer.lock();
        // A commit that is in the log, but not counted yet, would be missing for good.
        let counted = closed.filter(|_| self.0.system.commits_are_over());
        let known = |table: &Arc<Table>| {
            let exactly = counted.and_then(|_| self.0.system.row_count(&table.rows));
            let (rows, statistics) = (table.row_count_estimate(), table.statistics());
            let known = Known { rows, exactly, statistics, ..Known::default() };
            let says_nothing = known == Known::default();
            (!says_nothing).then_some((table.def.id, known))
        };
        let tables = self.all_tables();
        let mut kept: Kept = tables.iter().filter_map(known).collect();
        kept.closed = counted;
        if let Err(error) = kept.write(&**self.0.environment.storage(), &self.0.directory) {
            tracing::warn!("statistics of tables cannot be written: {error}");
        }
    }
}
