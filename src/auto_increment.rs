//! AUTO_INCREMENT counters that survive crashes without a page write per row.
//!
//! The counter's place on disk is MariaDB's: the 8 bytes at offset 56 of the clustered root page hold the
//! last value that may have been used. In memory the counter runs ahead of nothing: before a value beyond the
//! stored one is given out, a value some way ahead of it is stored through a mini-transaction, so the log has
//! it before any commit that uses it. After a crash counting goes on behind the stored value: numbers may be
//! skipped, none is ever given twice. How far ahead depends on what the column's type has left, so that
//! crashes cannot use up a small one. A clean close and an export store the exact value.
//!
//! The stored value is read when the counter is wanted for the first time: opening a table reads no page.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use page::PageId;
use pagestore::PageStore;
use txn::{Control, Direction, KeyRange, ReadMode, Scan, ScanIndex};

use crate::database::Database;
use crate::definitions::Definitions;
use crate::error::{Error, Result};
use crate::retry::retry;
use crate::schema::KeyDef;
use crate::table::Table;
use crate::types::{Value, decode};

/// Offset of the stored value in the clustered root page (PAGE_ROOT_AUTO_INC).
const ROOT_OFFSET: usize = 56;

/// How far ahead of the counter the stored value is put at most.
const AHEAD_MAX: u64 = 1024;

/// A crash may skip one in this many of the values that are left. A TINYINT counts exactly, and a SMALLINT
/// nearly so.
const AHEAD_SHARE: u64 = 8192;

/// The counter of one table.
pub struct AutoIncrement {
    root: PageId,
    /// Greatest value of the column's type.
    value_max: u64,
    /// Whether the stored value was read.
    loaded: AtomicBool,
    /// Next value to give out.
    next: AtomicU64,
    /// Values up to this one may be given out.
    stored: AtomicU64,
}

impl AutoIncrement {
    /// The counter of the table whose clustered root this is.
    pub(crate) fn new(root: PageId, value_max: u64) -> AutoIncrement {
        let (next, stored) = (AtomicU64::new(0), AtomicU64::new(0));
        AutoIncrement { root, value_max, loaded: AtomicBool::new(false), next, stored }
    }

    fn load_step(&self, store: &PageStore) -> std::result::Result<(), pagestore::Interrupt> {
        let last = stored_in(&store.read(self.root)?);
        // Others may have done so before, and gone on.
        self.next.fetch_max(last.saturating_add(1), Ordering::AcqRel);
        self.stored.fetch_max(last, Ordering::AcqRel);
        self.loaded.store(true, Ordering::Release);
        Ok(())
    }

    /// Makes sure that the stored value was read.
    pub(crate) async fn load(&self, store: &PageStore) -> Result<()> {
        if self.loaded.load(Ordering::Acquire) {
            return Ok(());
        }
        retry(|| self.load_step(store)).await?;
        Ok(())
    }

    /// The value the next row would get. The first call may block to read a page; 0 if that fails.
    pub fn next(&self, store: &PageStore) -> u64 {
        while !self.loaded.load(Ordering::Acquire) {
            match self.load_step(store) {
                Ok(()) => {}
                Err(pagestore::Interrupt::Wait(wait)) => store.environment().block_until(wait.event()),
                // The table was dropped since the caller found it, which is nobody's trouble.
                Err(pagestore::Interrupt::Error(pagestore::Error::NoSuchSpace(_))) => return 0,
                Err(pagestore::Interrupt::Error(error)) => {
                    tracing::warn!("an AUTO_INCREMENT counter cannot be read: {error}");
                    return 0;
                }
            }
        }
        self.next.load(Ordering::Relaxed)
    }

    /// Takes up to `count` values in a row, as many as are left.
    ///
    /// # Errors
    /// [`Error::AutoIncrementExhausted`] when the column's type has no greater value.
    pub async fn take(&self, store: &PageStore, count: u64) -> Result<Range<u64>> {
        self.load(store).await?;
        let end = |next: u64| next.saturating_add(count).min(self.value_max.saturating_add(1));
        let taken = self
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| (end(next) > next).then(|| end(next)));
        let first = taken.map_err(|_| Error::AutoIncrementExhausted)?;
        let taken = first..end(first);
        self.cover(store, taken.end - 1).await?;
        Ok(taken)
    }

    /// Notes that a row was given this value explicitly: the counter goes on behind it.
    pub async fn used(&self, store: &PageStore, value: u64) -> Result<()> {
        self.load(store).await?;
        let value = value.min(self.value_max);
        // Stored first: a reader that finds the counter past the value relies on that.
        self.cover(store, value).await?;
        self.next.fetch_max(value.saturating_add(1), Ordering::Relaxed);
        Ok(())
    }

    /// Goes on with `next`, which may be less than before. Nobody else may use the table, and it must have no
    /// greater value.
    pub(crate) async fn set(&self, store: &PageStore, next: u64) -> Result<()> {
        self.load(store).await?;
        let last = next.saturating_sub(1).min(self.value_max);
        self.next.store(last.saturating_add(1), Ordering::Relaxed);
        self.store(store, last, true).await
    }

    /// Makes sure that the stored value is at least `last`.
    async fn cover(&self, store: &PageStore, last: u64) -> Result<()> {
        if last <= self.stored.load(Ordering::Acquire) {
            return Ok(());
        }
        let left = self.value_max.saturating_sub(last);
        self.store(store, last + (left / AHEAD_SHARE).min(AHEAD_MAX), false).await
    }

    /// Stores the exact value, for a clean close or an export.
    pub async fn store_exact(&self, store: &PageStore) -> Result<()> {
        if !self.loaded.load(Ordering::Acquire) {
            return Ok(());
        }
        let last = self.next.load(Ordering::Relaxed).saturating_sub(1);
        if last == self.stored.load(Ordering::Acquire) {
            return Ok(());
        }
        self.store(store, last, true).await
    }

    async fn store(&self, store: &PageStore, last: u64, lower: bool) -> Result<()> {
        retry(|| {
            let mut mtr = store.mtr()?;
            let root = mtr.x(self.root)?;
            let before = stored_in(mtr.page(root));
            if last > before || lower {
                mtr.write_u64(root, ROOT_OFFSET, last);
                mtr.commit();
            }
            Ok::<(), pagestore::Interrupt>(())
        })
        .await?;
        if lower {
            self.stored.store(last, Ordering::Release);
        } else {
            self.stored.fetch_max(last, Ordering::AcqRel);
        }
        Ok(())
    }
}

fn stored_in(root: &[u8]) -> u64 {
    root[ROOT_OFFSET..].first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

impl Definitions<'_> {
    /// `ALTER TABLE … AUTO_INCREMENT`: the next row gets the number `next`, or the one behind the greatest
    /// that is there. Nothing for a table without such a column.
    ///
    /// # Errors
    /// No such table, a timeout, a deadlock, storage errors.
    pub async fn set_auto_increment(self, database: &str, name: &str, next: u64) -> Result<()> {
        let (table, _lock) = self.lock_current(database, name).await?;
        self.database.set_counter(&table, next).await
    }
}

impl Database {
    /// The next row of a table that nobody else uses gets this number, or the one behind the greatest.
    pub(crate) async fn set_counter(&self, table: &Table, next: u64) -> Result<()> {
        let Some(counter) = &table.auto_increment else { return Ok(()) };
        let greatest = self.greatest_auto_increment(table).await?;
        counter.set(&self.0.store, next.max(greatest.saturating_add(1))).await
    }

    /// The greatest value in the AUTO_INCREMENT column of a table that nobody else uses; 0 if there is none.
    async fn greatest_auto_increment(&self, table: &Table) -> Result<u64> {
        let def = &table.def;
        let leads = |key: &KeyDef| key.parts.first().map(|part| part.column) == def.auto_increment_column();
        let index = match def.secondary_keys().iter().position(leads) {
            _ if def.clustered_key().is_some_and(leads) => ScanIndex::Clustered,
            Some(number) => ScanIndex::Secondary(number),
            None => return Ok(0),
        };
        let (range, mode) = (KeyRange::all(), ReadMode::Uncommitted);
        let mut scan = Scan::new(table.rows.clone(), index, range, Direction::Backward, mode, true);
        let mut greatest = 0;
        let mut transaction = self.transaction();
        scan.run(transaction.engine_mut(), &mut |row| {
            let column = def.auto_increment_column().unwrap_or(0);
            let value = row.column(column).inline();
            let kind = &def.columns[usize::from(column)].kind;
            greatest = match value.and_then(|bytes| decode(bytes, kind)) {
                Some(Value::Int(value)) => u64::try_from(value).unwrap_or(0),
                Some(Value::UInt(value)) => value,
                _ => 0,
            };
            Control::Stop
        })
        .await?;
        Ok(greatest)
    }
}
