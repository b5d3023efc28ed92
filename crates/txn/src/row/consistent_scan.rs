//! Scans that lock nothing.
//!
//! Many rows are shown under one latch. A secondary entry is trusted as it is when the whole page is older
//! than the view; otherwise, or when other columns are wanted, the row is looked up while the entry's leaf
//! stays latched, the visible version is rebuilt, and it must still make this very entry (an entry may belong
//! to an older or a newer version).
//!
//! A few rows of a clustered index need no [`Scan`], which remembers where it is across waits and turns:
//! [`scan_at_once`] goes through a range in one go, and leaves it to a scan if anything is to be waited for.

use std::ops::ControlFlow;
use std::sync::Arc;

use btree::{FieldRef, KeyFields, OwnedKey, RecordRef};
use disk::{HeldWaits, Wait};

use super::key_range::{Direction, End, KeyRange, ScanIndex, bound_fields, tree_of};
use super::remove::same_entry;
use super::scan::{Control, ReadMode, Scan, ScanState};
use super::scan_position::{Progress, advance};
use super::view::{Row, Source};
use crate::entry::build_entry;
use crate::error::{Error, Interrupt};
use crate::system::System;
use crate::table::Table;
use crate::time_slice::{TimeSlice, UNITS_PER_LOOK};
use crate::transaction::{Isolation, Transaction};
use crate::version::{Overlay, Shown, Version, Visible};

type Callback<'f> = &'f mut dyn FnMut(&Row<'_>) -> Control;

struct Reader<'r> {
    system: &'r System,
    table: &'r Table,
    index: ScanIndex,
    index_only: bool,
    shown: Shown<'r>,
    overlay: &'r mut Overlay,
    entry: OwnedKey,
    rows: u64,
    versions: u64,
}

/// What to do after some rows.
enum Turn {
    State(ScanState),
    Yield,
    /// A page is missing; the record under the cursor has not been shown.
    Wait(Wait),
}

pub(super) async fn run<F: FnMut(&Row<'_>) -> Control>(
    scan: &mut Scan,
    transaction: &mut Transaction,
    f: &mut F,
) -> Result<ScanState, Error> {
    run_turns(scan, transaction, |scan, reader, slice| turn(scan, reader, slice, f)).await
}

/// How many rows of a table the transaction's read view sees, or, under READ UNCOMMITTED, there are. Nothing
/// of a row is looked at but who wrote it, and each leaf is latched once. No row is looked at where it is
/// known how many a view of this moment sees (`row_count.rs`).
///
/// # Errors
/// [`Error::Killed`]; storage errors and damaged pages.
pub async fn count(transaction: &mut Transaction, table: &Arc<Table>) -> Result<u64, Error> {
    transaction.begin_operation().await?;
    let (index, mode) = (ScanIndex::Clustered, ReadMode::Consistent);
    let system = transaction.inner().clone();
    let own = transaction.undo_log.as_ref().map_or(0, |log| log.row_changes.of(table.id));
    // What has not committed counts by its rows only.
    let committed_only = transaction.isolation != Isolation::ReadUncommitted;
    transaction.check_killed()?;
    transaction.open_view_for(table, index)?;
    let version = transaction.view.version;
    if committed_only && let Some(rows) = table.row_count.seen_by(version, &system.row_counts) {
        return Ok(rows.saturating_add_signed(own));
    }
    let mut scan = Scan::new(table.clone(), index, KeyRange::all(), Direction::Forward, mode, true);
    let mut rows = 0;
    let count = |scan: &mut Scan, reader: &mut Reader<'_>, slice: &TimeSlice| {
        let turn = count_turn(scan, reader, slice);
        rows += reader.rows;
        turn
    };
    run_turns(&mut scan, transaction, count).await?;
    if committed_only && let Some(rows) = rows.checked_add_signed(-own) {
        table.row_count.learn(rows, version);
    }
    Ok(rows)
}

/// Repeats turns, waiting and giving way in between.
async fn run_turns(
    scan: &mut Scan,
    transaction: &mut Transaction,
    mut turn: impl FnMut(&mut Scan, &mut Reader<'_>, &TimeSlice) -> Result<Turn, Interrupt>,
) -> Result<ScanState, Error> {
    if scan.progress == Progress::Finished {
        return Ok(ScanState::Finished);
    }
    let newest = scan.mode == ReadMode::Uncommitted;
    if !newest {
        transaction.open_view_for(&scan.table, scan.index)?;
    }
    let mut held = HeldWaits::new();
    loop {
        transaction.check_killed()?;
        let table = scan.table.clone();
        let slice = transaction.slice().clone();
        let (system, shown, overlay) = transaction.reading();
        let mut reader = Reader {
            system,
            table: &table,
            index: scan.index,
            index_only: scan.index_only,
            shown: if newest { Shown::Newest } else { shown },
            overlay,
            entry: OwnedKey::new(),
            rows: 0,
            versions: 0,
        };
        let turn = turn(scan, &mut reader, &slice);
        let (rows, versions) = (reader.rows, reader.versions);
        transaction.counts.rows_read += rows;
        transaction.counts.versions_built += versions;
        match turn {
            Ok(Turn::State(state)) => return Ok(state),
            Ok(Turn::Yield) => {
                held.clear();
                slice.give_way().await?;
            }
            Ok(Turn::Wait(wait)) | Err(Interrupt::Wait(wait)) => {
                if rows > 0 {
                    held.clear();
                }
                // The key stays. As many scans as there are frames, each with a leaf pinned, would wait for
                // each other's.
                scan.position.clear();
                held.wait(wait).await;
            }
            Err(Interrupt::Error(error)) => return Err(error),
        }
    }
}

/// Shows rows until the callback, the clock, the end or a missing page stops it. The scan's position is kept
/// up to date.
fn turn(
    scan: &mut Scan,
    reader: &mut Reader<'_>,
    slice: &TimeSlice,
    f: Callback<'_>,
) -> Result<Turn, Interrupt> {
    let table: Arc<Table> = scan.table.clone();
    let tree = tree_of(&table, scan.index);
    let bound = scan.far_bound().clone();
    let fields = bound_fields(&bound);
    let end = scan.end(tree, &fields);
    let mut cursor = scan.open_cursor(tree)?;
    while cursor.is_valid() {
        let record = cursor.record();
        if end.is_beyond(record) {
            break;
        }
        let page_max = if scan.index == ScanIndex::Clustered { 0 } else { cursor.page_max_trx_id() };
        let control = match reader.show(record, page_max, f) {
            Ok(control) => control,
            Err(Interrupt::Wait(wait)) => {
                reader.announce_walk(slice);
                cursor.save(&mut scan.position);
                scan.progress = Progress::At;
                return Ok(Turn::Wait(wait));
            }
            Err(error) => return Err(error),
        };
        let out_of_time = slice.spend(1 + reader.overlay.take_walked());
        match control {
            Control::Stop => break,
            Control::Continue | Control::SkipUnlock if !out_of_time => {}
            _ => {
                cursor.save(&mut scan.position);
                scan.progress = Progress::After;
                let paused = Turn::State(ScanState::Paused);
                // A caller that wants to come back gives way itself: the slice is over for it too.
                return Ok(if control == Control::Pause { paused } else { Turn::Yield });
            }
        }
        if let Err(interrupt) = advance(&mut cursor, scan.direction) {
            cursor.save(&mut scan.position);
            scan.progress = Progress::After;
            return Err(interrupt);
        }
    }
    scan.progress = Progress::Finished;
    Ok(Turn::State(ScanState::Finished))
}

/// Rows and versions that are counted between two looks at whether the slice is over: some 5 microseconds of
/// rows, more of versions.
const UNITS_PER_SPEND: u32 = 64;

/// As [`turn`] for a count of all rows, page by page.
fn count_turn(scan: &mut Scan, reader: &mut Reader<'_>, slice: &TimeSlice) -> Result<Turn, Interrupt> {
    let table: Arc<Table> = scan.table.clone();
    let mut cursor = scan.open_cursor(&table.clustered)?;
    while cursor.is_valid() {
        let mut units = 0;
        let counted = cursor.rest_of_page(|record| -> Result<ControlFlow<()>, Interrupt> {
            reader.rows += u64::from(reader.visible(record)? != Visible::Nothing);
            // A row with a long history is as much work as a page of others, and its leaf is latched.
            units += 1 + reader.overlay.take_walked();
            let over = units >= UNITS_PER_SPEND && slice.spend(std::mem::take(&mut units));
            Ok(if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        });
        // What was looked at is work, whatever stopped it: a count that waits at each page is not at the
        // beginning of its slice each time.
        let over = slice.spend(units + reader.overlay.take_walked());
        match counted {
            Err(Interrupt::Wait(wait)) => {
                cursor.save(&mut scan.position);
                scan.progress = Progress::At;
                return Ok(Turn::Wait(wait));
            }
            Err(error) => return Err(error),
            Ok(ControlFlow::Continue(())) if !over => {}
            Ok(_) => {
                cursor.save(&mut scan.position);
                scan.progress = Progress::After;
                return Ok(Turn::Yield);
            }
        }
        if let Err(interrupt) = cursor.next() {
            cursor.save(&mut scan.position);
            scan.progress = Progress::After;
            return Err(interrupt.into());
        }
    }
    scan.progress = Progress::Finished;
    Ok(Turn::State(ScanState::Finished))
}

/// Shows the rows of a range of the clustered index from one end of it on, as the transaction's read view has
/// them, where it waits for nothing; `rows_max` is how many the callback may want. `None`: there is something
/// to wait for, an error, the time slice is over, the view sees too few of the rows, or the callback wants
/// none of it after all. It may have seen rows; all of it is left to a [`Scan`], which begins again.
pub fn scan_at_once(
    transaction: &mut Transaction,
    table: &Table,
    range: &KeyRange,
    direction: Direction,
    rows_max: u32,
    f: &mut impl FnMut(&Row<'_>) -> Option<Control>,
) -> Option<ScanState> {
    transaction.check_killed().and_then(|()| transaction.check_settled()).ok()?;
    transaction.open_view_for(table, ScanIndex::Clustered).ok()?;
    if transaction.slice().spend(rows_max) {
        return None;
    }
    let (system, shown, overlay) = transaction.reading();
    let (entry, index) = (OwnedKey::new(), ScanIndex::Clustered);
    let mut reader =
        Reader { system, table, index, index_only: false, shown, overlay, entry, rows: 0, versions: 0 };
    let tree = &*table.clustered;
    let fields = bound_fields(range.far(direction));
    let end = End::new(tree, range.far(direction), &fields, direction);
    let mut cursor = range.open(tree, direction).ok()?;
    if direction == Direction::Forward {
        cursor.prefetch_rows(rows_max as usize);
    }
    let mut state = ScanState::Finished;
    let mut refused = false;
    let mut show = |row: &Row<'_>| {
        let control = f(row);
        refused |= control.is_none();
        control.unwrap_or(Control::Stop)
    };
    // Rows that the view does not see are work, too, and nobody knows how many there are.
    let mut left = rows_max.saturating_add(UNITS_PER_LOOK);
    while cursor.is_valid() && !end.is_beyond(cursor.record()) {
        left = left.checked_sub(1 + reader.overlay.take_walked())?;
        match reader.show_row(cursor.record(), &mut show).ok()? {
            Control::Continue | Control::SkipUnlock => advance(&mut cursor, direction).ok()?,
            Control::Stop => break,
            Control::Pause => {
                state = ScanState::Paused;
                break;
            }
        };
    }
    let (rows, versions) = (reader.rows, reader.versions);
    if refused {
        return None;
    }
    transaction.counts.rows_read += rows;
    transaction.counts.versions_built += versions;
    Some(state)
}

impl Reader<'_> {
    /// Shows one record to the callback if the view sees a row in it.
    fn show(&mut self, record: RecordRef<'_>, page_max: u64, f: Callback<'_>) -> Result<Control, Interrupt> {
        match self.index {
            ScanIndex::Clustered => self.show_row(record, f),
            ScanIndex::Secondary(number) => self.show_entry(number, record, page_max, f),
        }
    }

    /// Counts what a walk did that did not come to its end.
    fn announce_walk(&mut self, slice: &TimeSlice) {
        let walked = self.overlay.take_walked();
        if walked > 0 {
            slice.announce(walked);
        }
    }

    fn visible(&mut self, record: RecordRef<'_>) -> Result<Visible, Interrupt> {
        let visible = self.shown.of(&self.system.undo, record, self.overlay)?;
        self.versions += u64::from(visible == Visible::Older);
        Ok(visible)
    }

    #[inline]
    fn show_row<F: FnMut(&Row<'_>) -> Control + ?Sized>(
        &mut self,
        record: RecordRef<'_>,
        f: &mut F,
    ) -> Result<Control, Interrupt> {
        let overlay = match self.visible(record)? {
            Visible::Nothing => return Ok(Control::Continue),
            Visible::Newest => None,
            Visible::Older => Some(&*self.overlay),
        };
        self.rows += 1;
        Ok(f(&Row { table: self.table, source: Source::Clustered(Version { record, overlay }) }))
    }

    fn show_entry(
        &mut self,
        number: usize,
        record: RecordRef<'_>,
        page_max: u64,
        f: Callback<'_>,
    ) -> Result<Control, Interrupt> {
        let trusted = self.shown.trusts(page_max);
        if trusted && record.is_deleted() {
            return Ok(Control::Continue);
        }
        if trusted && self.index_only {
            self.rows += 1;
            return Ok(f(&Row { table: self.table, source: Source::Entry(number, record) }));
        }
        let secondary = &self.table.secondaries[number];
        let entry: KeyFields<'_> = record.fields().map(FieldRef::inline).collect();
        let key = secondary.clustered_key(self.table, &entry);
        let table = self.table;
        let control = table.clustered.get(&key, |row| -> Result<Control, Interrupt> {
            let overlay = match self.visible(row)? {
                Visible::Nothing => return Ok(Control::Continue),
                Visible::Newest => None,
                Visible::Older => Some(&*self.overlay),
            };
            let version = Version { record: row, overlay };
            // A live, trusted entry is that of the visible version; any other may belong to another version.
            if !trusted || !matches!(self.shown, Shown::Seen(_)) {
                build_entry(table, secondary, |position| version.field(position), &mut self.entry)?;
                if !same_entry(secondary, &self.entry.fields(), &entry) {
                    return Ok(Control::Continue);
                }
            }
            self.rows += 1;
            Ok(f(&Row { table, source: Source::Clustered(version) }))
        })?;
        control.unwrap_or(Ok(Control::Continue))
    }
}
