//! Scans: what they cover and where they are.

use std::ops::Bound;
use std::sync::Arc;

use btree::compare::SearchKey;
use btree::{Field, KeyFields, LeafCursor, OwnedKey, RecordRef, SavedPosition, Seek, Tree};

use super::view::Row;
use crate::error::{Error, Interrupt};
use crate::lock::{LockTarget, WaitPolicy};
use crate::table::Table;
use crate::transaction::Transaction;

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

/// What a scan covers. A bound may have fewer fields than the index: it then stands for all entries that
/// start so (`Included` lower = from the first of them, `Excluded` lower = after the last of them, and so
/// on).
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

    /// The end that a scan begins at.
    pub(super) fn near(&self, direction: Direction) -> &Bound<OwnedKey> {
        match direction {
            Direction::Forward => &self.lower,
            Direction::Backward => &self.upper,
        }
    }

    /// The end that a scan comes to last.
    pub(super) fn far(&self, direction: Direction) -> &Bound<OwnedKey> {
        match direction {
            Direction::Forward => &self.upper,
            Direction::Backward => &self.lower,
        }
    }

    /// A cursor on the first record that a scan looks at (which may not exist, or be beyond the range).
    pub(super) fn open<'t>(&self, tree: &'t Tree, direction: Direction) -> Result<LeafCursor<'t>, Interrupt> {
        let forward = direction == Direction::Forward;
        Ok(match self.near(direction) {
            Bound::Unbounded => tree.seek(&[], if forward { Seek::First } else { Seek::Last })?,
            Bound::Included(key) => {
                tree.seek(&key.fields(), if forward { Seek::AtLeast } else { Seek::AtMost })?
            }
            Bound::Excluded(key) => {
                tree.seek(&key.fields(), if forward { Seek::After } else { Seek::Before })?
            }
        })
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

/// Where a scan is between looks at the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing seen yet.
    Start,
    /// The saved record is the next to be looked at.
    At,
    /// The saved record has been dealt with.
    After,
    Finished,
}

/// A scan over an index.
pub struct Scan {
    pub(super) table: Arc<Table>,
    pub(super) index: ScanIndex,
    pub(super) range: KeyRange,
    pub(super) direction: Direction,
    pub(super) mode: ReadMode,
    pub(super) index_only: bool,
    pub(super) looks_first: bool,
    pub(super) progress: Progress,
    pub(super) position: SavedPosition,
    /// A gap lock has been taken on this entry across a page boundary; it stands if the entry is still what
    /// follows the last one.
    pub(super) confirm: Option<LockTarget>,
}

/// The end of the range in scan direction, ready for comparisons.
pub(super) struct End<'k> {
    key: Option<SearchKey<'k>>,
    inclusive: bool,
    direction: Direction,
}

impl<'k> End<'k> {
    /// `fields` are those of the bound.
    pub fn new(
        tree: &Tree,
        bound: &Bound<OwnedKey>,
        fields: &'k [Field<'k>],
        direction: Direction,
    ) -> End<'k> {
        let key = match bound {
            Bound::Unbounded => None,
            _ => Some(SearchKey::new(tree.def(), fields)),
        };
        End { key, inclusive: matches!(bound, Bound::Included(_)), direction }
    }

    /// Whether `record` is beyond the range.
    pub fn is_beyond(&self, record: RecordRef<'_>) -> bool {
        let Some(key) = &self.key else { return false };
        let order = key.compare_record(record);
        match self.direction {
            Direction::Forward => order.is_gt() || !self.inclusive && order.is_eq(),
            Direction::Backward => order.is_lt() || !self.inclusive && order.is_eq(),
        }
    }
}

impl Scan {
    /// Prepares a scan. `index_only`: the callback needs no column outside the index, so the clustered record
    /// is looked up only where visibility demands it.
    pub fn new(
        table: Arc<Table>,
        index: ScanIndex,
        range: KeyRange,
        direction: Direction,
        mode: ReadMode,
        index_only: bool,
    ) -> Scan {
        Scan {
            table,
            index,
            range,
            direction,
            mode,
            index_only,
            looks_first: false,
            progress: Progress::Start,
            position: SavedPosition::default(),
            confirm: None,
        }
    }

    /// Goes on. Consistent scans show many rows under one latch; locking scans lock each row before `f` sees
    /// it. Returns to the runtime now and then, so that one long scan does not hold up others. The future is
    /// `Send` if `f` is.
    ///
    /// # Errors
    /// For locking scans those of row locks; [`Error::Killed`]; storage errors and damaged pages.
    pub async fn run<F: FnMut(&Row<'_>) -> Control>(
        &mut self,
        transaction: &mut Transaction,
        f: &mut F,
    ) -> Result<ScanState, Error> {
        transaction.begin_operation().await?;
        match self.mode {
            ReadMode::Locking { exclusive, wait } => {
                super::locking_scan::run(self, transaction, exclusive, wait, f).await
            }
            _ => super::consistent_scan::run(self, transaction, f).await,
        }
    }

    /// A locking scan of the clustered index at READ COMMITTED shows a row that another transaction has
    /// locked in its newest committed version first ([`Row::is_peeked`]), and waits for it only if the
    /// callback does not answer [`Control::SkipUnlock`]: a *semi-consistent read*. For statements that change
    /// what they find.
    pub fn look_before_waiting(&mut self) {
        self.looks_first = true;
    }

    /// Starts the same scan over another range, keeping its buffers.
    pub fn reset(&mut self, range: KeyRange) {
        self.range = range;
        self.progress = Progress::Start;
        self.confirm = None;
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    pub(super) fn end<'k>(&self, tree: &Tree, fields: &'k [Field<'k>]) -> End<'k> {
        End::new(tree, self.far_bound(), fields, self.direction)
    }

    pub(super) fn far_bound(&self) -> &Bound<OwnedKey> {
        self.range.far(self.direction)
    }

    pub(super) fn near_bound(&self) -> &Bound<OwnedKey> {
        self.range.near(self.direction)
    }

    /// Positions a cursor on the next record to be looked at (which may not exist, or be beyond the range).
    pub(super) fn open_cursor<'t>(&self, tree: &'t Tree) -> Result<LeafCursor<'t>, Interrupt> {
        if self.progress == Progress::Start {
            return self.range.open(tree, self.direction);
        }
        let (mut cursor, same) = tree.restore(&self.position)?;
        if !(same && self.progress == Progress::At) {
            advance(&mut cursor, self.direction)?;
        }
        Ok(cursor)
    }
}

/// Moves on in scan direction.
pub(super) fn advance(cursor: &mut LeafCursor<'_>, direction: Direction) -> Result<bool, Interrupt> {
    Ok(match direction {
        Direction::Forward => cursor.next()?,
        Direction::Backward => cursor.prev()?,
    })
}

/// The key fields of a bound.
pub(super) fn bound_fields(bound: &Bound<OwnedKey>) -> KeyFields<'_> {
    match bound {
        Bound::Unbounded => KeyFields::new(),
        Bound::Included(key) | Bound::Excluded(key) => key.fields(),
    }
}

/// The tree of an index.
pub(super) fn tree_of(table: &Table, index: ScanIndex) -> &Tree {
    match index {
        ScanIndex::Clustered => &table.clustered,
        ScanIndex::Secondary(number) => &table.secondaries[number].tree,
    }
}
