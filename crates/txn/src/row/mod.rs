//! Row operations.
#![allow(clippy::todo, unused_variables)]
use std::ops::Bound;
use std::sync::Arc;

use btree::{Field, FieldRef};

use crate::error::{Error, Interrupt};
use crate::table::Table;
use crate::transaction::Transaction;

/// What to do when a row to be locked is locked by another transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WaitPolicy {
    /// Wait up to the lock wait timeout.
    #[default]
    Wait,
    /// Fail with [`Error::NoWaitLocked`].
    NoWait,
    /// Leave the row out.
    SkipLocked,
}

/// How a scan reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadMode {
    /// The versions the transaction's read view shows (under READ UNCOMMITTED: the newest).
    #[default]
    Consistent,
    /// The newest versions, committed or not, unlocked.
    Uncommitted,
    /// The newest committed versions, locked.
    Locking {
        /// X instead of S.
        exclusive: bool,
        /// What to do with rows that others have locked.
        wait: WaitPolicy,
    },
}

/// Which index a scan walks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanIndex {
    /// The clustered index.
    Clustered,
    /// `table.secondaries[n]`.
    Secondary(usize),
}

/// Which way a scan walks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// Ascending.
    #[default]
    Forward,
    /// Descending.
    Backward,
}

/// Leading key fields of an index, in storage encoding.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnedKey(pub Vec<Option<Vec<u8>>>);

impl OwnedKey {
    /// Copies a key.
    #[must_use]
    pub fn from_fields(fields: &[Field<'_>]) -> OwnedKey {
        OwnedKey(fields.iter().map(|field| field.map(<[u8]>::to_vec)).collect())
    }
    /// As borrowed fields.
    #[must_use]
    pub fn fields(&self) -> Vec<Field<'_>> {
        self.0.iter().map(|field| field.as_deref()).collect()
    }
}

/// What a scan covers. A bound may have fewer fields than the index: it then stands for all entries that start so
/// (`Included` lower = from the first of them, `Excluded` lower = after the last of them, and so on).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// Lower end.
    pub lower: Bound<OwnedKey>,
    /// Upper end.
    pub upper: Bound<OwnedKey>,
}

impl KeyRange {
    /// Everything.
    #[must_use]
    pub fn all() -> KeyRange {
        KeyRange { lower: Bound::Unbounded, upper: Bound::Unbounded }
    }
    /// All entries that start with `key`.
    #[must_use]
    pub fn equal(key: OwnedKey) -> KeyRange {
        KeyRange { lower: Bound::Included(key.clone()), upper: Bound::Included(key) }
    }
}

/// What a scan's callback wants next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// The next row.
    Continue,
    /// Come back to the caller; the scan goes on after this row when run again.
    Pause,
    /// The scan is finished.
    Stop,
    /// The row failed the filter: under READ COMMITTED a locking scan gives up its locks; then the next row.
    SkipUnlock,
}

/// Why [`Scan::run`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanState {
    /// The callback said [`Control::Pause`].
    Paused,
    /// No more rows, or the callback said [`Control::Stop`].
    Finished,
}

/// A row shown to a callback. It borrows a latched page: keep the callback short, and never start another operation
/// of the engine inside it.
pub struct Row<'a> {
    pub(crate) table: &'a Table,
}

impl<'a> Row<'a> {
    /// A column by its table column number, in storage encoding. A column that an index-only row does not have
    /// is a caller's bug and reads as NULL.
    pub fn column(&self, column: u16) -> FieldRef<'a> {
        todo!()
    }
    /// Copies the clustered key, for `update`, `delete` and `get`.
    pub fn clustered_key(&self, key: &mut OwnedKey) {
        todo!()
    }
    /// The table.
    pub fn table(&self) -> &'a Table {
        self.table
    }
}

/// Reads one row by its clustered key as the transaction's read view shows it: synchronous, and without
/// allocation when the newest version is visible. `f` borrows the latched page.
pub fn get<R>(
    transaction: &mut Transaction,
    table: &Table,
    key: &[Field<'_>],
    f: impl FnOnce(&Row<'_>) -> R,
) -> Result<Option<R>, Interrupt> {
    todo!()
}

/// Inserts a row given by table column.
pub async fn insert(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    row: &[Field<'_>],
) -> Result<(), Error> {
    todo!()
}

/// Changes columns of the row with this clustered key, locking it if the transaction has not done so already.
/// A change of key columns moves the row.
pub async fn update(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    key: &[Field<'_>],
    changes: &[(u16, Field<'_>)],
) -> Result<(), Error> {
    todo!()
}

/// Deletes the row with this clustered key, locking it if the transaction has not done so already.
pub async fn delete(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    key: &[Field<'_>],
) -> Result<(), Error> {
    todo!()
}

/// Reads a column stored off-page: give it what [`Row::column`] showed, copied. Call it while the transaction's read view (or lock) still protects
/// the version it came from, that is before the statement ends.
pub async fn fetch_external(
    transaction: &Transaction,
    prefix: &[u8],
    reference: &[u8; 20],
) -> Result<Vec<u8>, Error> {
    todo!()
}

/// A scan over an index.
pub struct Scan {}

impl Scan {
    /// Prepares a scan. `index_only`: the callback needs no column outside the index, so the clustered record is
    /// looked up only where visibility demands it.
    pub fn new(
        table: Arc<Table>,
        index: ScanIndex,
        range: KeyRange,
        direction: Direction,
        mode: ReadMode,
        index_only: bool,
    ) -> Scan {
        todo!()
    }
    /// Goes on. Consistent scans show many rows under one latch; locking scans lock each row before `f` sees it.
    /// Returns to the runtime now and then, so that one long scan does not hold up others.
    pub async fn run(
        &mut self,
        transaction: &mut Transaction,
        f: &mut dyn FnMut(&Row<'_>) -> Control,
    ) -> Result<ScanState, Error> {
        todo!()
    }
}
