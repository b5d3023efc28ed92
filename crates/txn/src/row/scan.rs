//! Scans: how they are asked for, and who does the work.

use std::sync::Arc;

use btree::SavedPosition;

use super::key_range::{Direction, KeyRange, ScanIndex};
use super::scan_position::Progress;
use super::view::Row;
use crate::error::Error;
use crate::lock::{LockTarget, WaitPolicy};
use crate::table::Table;
use crate::transaction::Transaction;

/// How a scan reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadMode {
    /// The versions the transaction's read view shows (under READ UNCOMMITTED: the newest, but for rows with
    /// off-page values).
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
}
