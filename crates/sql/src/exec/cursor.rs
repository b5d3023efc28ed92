//! Reading a table by an access path, range after range; one row by its key is read in `point.rs`.
//!
//! Rows are shown to a callback while their page is latched. A row with needed columns off-page is copied
//! (`copied_row.rs`), and then it is shown like any other. The cursor comes back to its caller when the
//! callback asks for a pause. The scan gives way to others and looks for a kill;
//! the cursor itself gives way only between ranges and after a copied row.

use std::ops::Bound;
use std::sync::Arc;

use untorn::Table;
use untorn::engine::{self, Control, Direction, KeyRange, OwnedKey, ReadMode, Row, Scan, ScanState};
use untorn::schema::ColumnDef;

use super::Flow;
use super::copied_row::{CopiedRow, has_off_page};
use super::keys::RangeList;
use super::merged_ranges::Legs;
use crate::context::SqlContext;
use crate::expr::RowView;
use crate::failure::Failure;
use crate::handler_counts::{Handled, HandlerCounts};
use crate::plan::access_path::Path;

/// Reads a table.
pub struct Cursor<'e> {
    table: Arc<Table>,
    path_index: engine::ScanIndex,
    covering: bool,
    direction: Direction,
    mode: ReadMode,
    ranges: RangeList,
    scan: Option<Scan>,
    /// A scan that has ended, for its buffers.
    spare: Option<Scan>,
    /// Needed columns that may be off-page.
    long_columns: Vec<u16>,
    /// Needed columns.
    needed: Vec<u16>,
    looks_first: bool,
    /// Other indexes that are read behind this one.
    legs: Option<Legs<'e>>,
    reads: Reads<'e>,
}

impl<'e> Cursor<'e> {
    /// A cursor over one key of an index, whose rows are read whole.
    pub fn over(
        table: &Arc<Table>,
        index: engine::ScanIndex,
        range: KeyRange,
        mode: ReadMode,
        needed: &[u16],
        state: &'e SqlContext,
    ) -> Cursor<'e> {
        let path = Path { index, unique: true, ..Path::everything() };
        Cursor::with(table, &path, (RangeList::one(range), None), mode, needed, state)
    }

    /// A cursor over `ranges` of the path's index, or of its indexes.
    pub fn new(
        table: &Arc<Table>,
        path: &Path,
        ranges: RangeList,
        mode: ReadMode,
        needed: &[u16],
        state: &'e SqlContext,
    ) -> Cursor<'e> {
        let parts = match ranges {
            RangeList::Merged(legs) => (RangeList::Row(None), Some(Legs::new(legs, state))),
            ranges => (ranges, None),
        };
        Cursor::with(table, path, parts, mode, needed, state)
    }

    fn with(
        table: &Arc<Table>,
        path: &Path,
        (ranges, legs): (RangeList, Option<Legs<'e>>),
        mode: ReadMode,
        needed: &[u16],
        state: &'e SqlContext,
    ) -> Cursor<'e> {
        let may_be_long = |column: &&u16| {
            table
                .def
                .columns
                .get(usize::from(**column))
                .is_some_and(|def: &ColumnDef| def.kind.is_blob() || def.kind.bytes_max() > 255)
        };
        Cursor {
            table: table.clone(),
            path_index: path.index,
            covering: path.covering,
            direction: if path.backward { Direction::Backward } else { Direction::Forward },
            mode,
            ranges,
            scan: None,
            spare: None,
            long_columns: needed.iter().filter(may_be_long).copied().collect(),
            needed: needed.to_vec(),
            looks_first: false,
            legs,
            reads: Reads::new(path, &state.handled),
        }
    }

    /// Rows that others have locked are shown in their committed version before they are waited for, at READ
    /// COMMITTED ([`Scan::look_before_waiting`]). The callback must do nothing with a
    /// [peeked](Row::is_peeked) row but judge it.
    pub fn look_before_waiting(&mut self) {
        self.looks_first = true;
    }

    /// Starts again over other ranges.
    pub fn restart(&mut self, ranges: RangeList) {
        self.spare = self.scan.take().or(self.spare.take());
        self.ranges = match (ranges, &mut self.legs) {
            (RangeList::Merged(left), Some(legs)) => {
                legs.restart(left);
                RangeList::Row(None)
            }
            (ranges, _) => ranges,
        };
    }

    /// The next range, of this index or of the next one.
    fn next_range(&mut self) -> Option<KeyRange> {
        loop {
            if let Some(range) = self.ranges.next() {
                return Some(range);
            }
            let leg = self.legs.as_mut()?.next()?;
            (self.path_index, self.ranges, self.spare) = (leg.index, leg.ranges, None);
        }
    }

    /// A scan of this range.
    fn begin(&mut self, range: KeyRange) -> Scan {
        self.reads.begin(&range);
        let mut scan = match self.spare.take() {
            Some(mut scan) => {
                scan.reset(range);
                scan
            }
            None => Scan::new(
                self.table.rows.clone(),
                self.path_index,
                range,
                self.direction,
                self.mode,
                self.covering,
            ),
        };
        if self.looks_first {
            scan.look_before_waiting();
        }
        scan
    }

    /// Shows rows to `each` until it has enough. `false` when there are no more.
    pub async fn run(
        &mut self,
        transaction: &mut engine::Transaction,
        each: &mut dyn FnMut(RowView<'_>, Option<&Row<'_>>) -> Result<Flow, Failure>,
    ) -> Result<bool, Failure> {
        let mut unused = OwnedKey::default();
        self.run_with_keys(transaction, &mut unused, &mut |view, row, _| each(view, row)).await
    }

    /// As [`Cursor::run`], and each row comes with a way to copy its clustered key, also when it is shown as
    /// a copy.
    pub async fn run_keyed(
        &mut self,
        transaction: &mut engine::Transaction,
        each: &mut dyn FnMut(RowView<'_>, &dyn Fn(&mut OwnedKey)) -> Result<Flow, Failure>,
    ) -> Result<bool, Failure> {
        let mut last = OwnedKey::default();
        self.run_with_keys(transaction, &mut last, &mut |view, row: Option<&Row<'_>>, copied: &OwnedKey| {
            match row {
                Some(row) => each(view, &|key| row.clustered_key(key)),
                None => each(view, &|key| *key = copied.clone()),
            }
        })
        .await
    }

    /// As [`Cursor::run`]; a row shown as a copy comes with its clustered key, which is also left in `last`.
    pub async fn run_with_keys(
        &mut self,
        transaction: &mut engine::Transaction,
        last: &mut OwnedKey,
        each: &mut dyn FnMut(RowView<'_>, Option<&Row<'_>>, &OwnedKey) -> Result<Flow, Failure>,
    ) -> Result<bool, Failure> {
        loop {
            if self.scan.is_none() {
                let Some(range) = self.next_range() else { return Ok(false) };
                // A range without rows is work that no scan counts.
                if transaction.slice().spend(1) {
                    transaction.slice().clone().give_way().await?;
                }
                self.scan = Some(self.begin(range));
            }
            let Some(scan) = self.scan.as_mut() else { return Ok(false) };
            let columns = &self.table.def.columns;
            let (long_columns, needed, legs) = (&self.long_columns, &self.needed, &mut self.legs);
            let mut of_row = OwnedKey::default();
            let mut failure = None;
            let mut stopped = false;
            let mut copied = None;
            let mut shown_rows = 0;
            let state = scan
                .run(transaction, &mut |row| {
                    shown_rows += u64::from(!row.is_peeked());
                    if let Some(legs) = legs {
                        row.clustered_key(&mut of_row);
                        if legs.has_taken(&of_row) {
                            // It stays locked.
                            return Control::Continue;
                        }
                    }
                    if has_off_page(row, long_columns) {
                        if row.is_peeked() {
                            // It cannot be judged here.
                            return Control::Continue;
                        }
                        copied = Some(CopiedRow::new(row, columns.len(), needed));
                        row.clustered_key(last);
                        return Control::Pause;
                    }
                    let shown = each(RowView::Stored(row, columns), Some(row), last);
                    match remembered(shown, legs, row.is_peeked()) {
                        Ok(Flow::Next) => Control::Continue,
                        Ok(Flow::Skip) => Control::SkipUnlock,
                        Ok(Flow::Pause) => Control::Pause,
                        Ok(Flow::Stop) => {
                            stopped = true;
                            Control::Stop
                        }
                        Err(error) => {
                            failure = Some(error);
                            Control::Stop
                        }
                    }
                })
                .await?;
            self.reads.shown(shown_rows, !stopped && state == ScanState::Finished);
            if let Some(failure) = failure {
                return Err(failure);
            }
            if stopped {
                return Ok(false);
            }
            if let Some(row) = copied {
                // The scan that shows one row at a time leaves the giving way to its caller.
                transaction.slice().clone().work(1).await?;
                let fields = row.complete(transaction, &self.table).await?;
                if let Some(legs) = legs {
                    legs.has_taken(last);
                }
                let shown = each(RowView::Fields(&fields, columns), None, last);
                match remembered(shown, legs, false)? {
                    Flow::Stop => return Ok(false),
                    Flow::Pause => return Ok(true),
                    Flow::Next | Flow::Skip => continue,
                }
            }
            match state {
                ScanState::Paused => return Ok(true),
                ScanState::Finished => self.spare = self.scan.take(),
            }
        }
    }
}

/// How a cursor's reads are counted.
struct Reads<'e> {
    counts: &'e HandlerCounts,
    /// One row at most is read by each key.
    unique: bool,
    /// Rows behind the first one of a range.
    next: Handled,
    /// All rows of the table, in no order that matters.
    all: bool,
    backward: bool,
    /// The range has shown a row.
    any: bool,
}

impl<'e> Reads<'e> {
    fn new(path: &Path, counts: &'e HandlerCounts) -> Reads<'e> {
        let all = path.is_full_scan() && path.index == engine::ScanIndex::Clustered && !path.backward;
        let next = match (all, path.backward) {
            (true, _) => Handled::ReadRandomNext,
            (_, true) => Handled::ReadPrevious,
            (_, false) => Handled::ReadNext,
        };
        Reads { counts, unique: path.unique, next, all, backward: path.backward, any: false }
    }

    /// A range is looked up.
    fn begin(&mut self, range: &KeyRange) {
        self.any = false;
        self.counts.add(Handled::ReadKey, 1);
        match self.backward {
            true if range.upper == Bound::Unbounded => self.counts.add(Handled::ReadLast, 1),
            false if range.lower == Bound::Unbounded => self.counts.add(Handled::ReadFirst, 1),
            _ => {}
        }
    }

    /// Rows of the range were shown; its end was looked for, too, if it has `finished`.
    fn shown(&mut self, rows: u64, finished: bool) {
        if self.unique {
            return;
        }
        // The first of them came with the key.
        let first = !self.all && !self.any && rows > 0;
        self.any |= rows > 0;
        let end = finished && (self.all || self.any);
        let next = (rows + u64::from(end)).saturating_sub(u64::from(first));
        if next > 0 {
            self.counts.add(self.next, next);
        }
    }
}

/// What a row's taker has said, with the row remembered if it was taken.
fn remembered(
    shown: Result<Flow, Failure>,
    legs: &mut Option<Legs<'_>>,
    is_peeked: bool,
) -> Result<Flow, Failure> {
    if let (Some(legs), Ok(Flow::Next | Flow::Pause), false) = (legs, &shown, is_peeked) {
        legs.take()?;
    }
    shown
}
