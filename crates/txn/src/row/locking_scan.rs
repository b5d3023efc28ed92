//! Scans that lock what they see; NOWAIT and SKIP LOCKED end here.
//!
//! Each entry is locked while its leaf is latched, and shown only when the lock is held. If it must be waited
//! for, everything is let go and the scan looks again after the last entry it dealt with: what comes next
//! may be another one by then.
//!
//! Under REPEATABLE READ and SERIALIZABLE the gaps are locked too: next-key locks on the way, a gap lock on
//! what follows the range. A gap lock on an entry is taken while its leaf is latched, but the gap may reach
//! over to the leaf before, where a row may be inserted between our look and our lock. So after a gap lock
//! taken on another leaf than the entry before, the scan looks once more (`confirm`): an inserter that has
//! not seen the lock is seen by the second look. A backward scan does so for the entry above its range.
//!
//! At READ COMMITTED, a scan that changes what it finds may **look before it waits**: a row that is locked by
//! another is judged by its newest committed version, and not waited for if that is not wanted (InnoDB's
//! semi-consistent read).

use std::ops::Bound;
use std::sync::Arc;

use btree::compare::SearchKey;
use btree::{FieldRef, KeyFields, LeafCursor, RecordRef, Seek, Tree};
use disk::HeldWaits;
use pagestore::PageId;
use smallvec::SmallVec;

use super::implicit_lock::{lock_clustered, make_entry_lock_explicit};
use super::key_range::{Direction, ScanIndex, bound_fields, tree_of};
use super::scan::{Control, Scan, ScanState};
use super::scan_position::{Progress, advance};
use super::view::{Row, Source};
use super::write::{describe, describe_end};
use crate::error::{Error, Interrupt};
use crate::lock::{Acquired, Extent, LockDescription, LockMode, LockTarget, LockWait, Owner, WaitPolicy};
use crate::read_view::{OwnViewSlot, ReadView};
use crate::system::System;
use crate::table::Table;
use crate::time_slice::TimeSlice;
use crate::transaction::Transaction;
use crate::version::{Overlay, Version, Visible, find_visible};

type Callback<'f> = &'f mut dyn FnMut(&Row<'_>) -> Control;

/// Why a turn ended.
enum StepResult {
    State(ScanState),
    Yield,
    /// Look again at once.
    Again,
    Lock(LockWait),
}

/// What came of locking one entry.
enum Locked {
    Held,
    Wait(LockWait),
    /// Locked by another transaction and to be left out.
    Skip,
}

struct Locker<'l> {
    system: &'l Arc<System>,
    owner: &'l Arc<Owner>,
    own_id: u64,
    exclusive: bool,
    policy: WaitPolicy,
    gaps: bool,
    /// Locks that the current entry has added.
    added: SmallVec<[(LockTarget, LockMode); 2]>,
    rows: u64,
    /// The scan's position is that of a row about to be changed.
    seen: bool,
    /// Rows that others have locked are looked at before they are waited for.
    looks_first: bool,
    peek: &'l mut Option<Peek>,
}

/// A look at the newest committed version of a row. Its view is open during the look only, waits for pages
/// included: with another view the walk to that version would start over.
struct Peek {
    system: Arc<System>,
    slot: OwnViewSlot,
    view: ReadView,
    overlay: Overlay,
    /// The row whose look waits.
    waits: Option<LockTarget>,
}

impl Peek {
    fn new(system: &Arc<System>) -> Peek {
        let mut slot = system.views.register();
        let (view, overlay) = (slot.take_view(), Overlay::default());
        Peek { system: system.clone(), slot, view, overlay, waits: None }
    }

    fn find(&mut self, record: RecordRef<'_>, own_id: u64) -> Result<Visible, Interrupt> {
        let Peek { system, slot, view, overlay, waits } = self;
        let row = system.locks.target_of(record);
        if *waits != Some(row) {
            slot.open(view, &system.active, own_id);
        }
        let found = find_visible(&system.undo, record, view, overlay);
        *waits = Some(row);
        if !matches!(found, Err(Interrupt::Wait(_))) {
            self.close();
        }
        found
    }

    /// No look waits any more: the row was locked after all, or is passed by.
    fn close(&mut self) {
        if self.waits.take().is_some() {
            self.slot.close();
        }
    }
}

impl Drop for Peek {
    fn drop(&mut self) {
        self.slot.leave_view(std::mem::take(&mut self.view));
    }
}

pub(super) async fn run<F: FnMut(&Row<'_>) -> Control>(
    scan: &mut Scan,
    transaction: &mut Transaction,
    exclusive: bool,
    policy: WaitPolicy,
    f: &mut F,
) -> Result<ScanState, Error> {
    let mut held = HeldWaits::new();
    let mut peek = None;
    loop {
        if scan.progress == Progress::Finished {
            return Ok(ScanState::Finished);
        }
        transaction.check_killed()?;
        let system = transaction.inner().clone();
        let slice = transaction.slice().clone();
        let gaps = !transaction.isolation().locks_records_only();
        let waits = policy == WaitPolicy::Wait && scan.index == ScanIndex::Clustered;
        let mut locker = Locker {
            looks_first: scan.looks_first && waits && !gaps,
            peek: &mut peek,
            system: &system,
            owner: &transaction.owner,
            own_id: transaction.id().unwrap_or(0),
            exclusive,
            policy,
            gaps,
            added: SmallVec::new(),
            rows: 0,
            seen: false,
        };
        let turn = turn(scan, &mut locker, &slice, f);
        let (rows, seen) = (locker.rows, locker.seen);
        if seen {
            std::mem::swap(&mut transaction.seen, &mut scan.position);
        }
        transaction.counts.rows_read += rows;
        if !matches!(turn, Err(Interrupt::Wait(_))) {
            peek.iter_mut().for_each(Peek::close);
        }
        match turn {
            Ok(StepResult::State(state)) => return Ok(state),
            Ok(StepResult::Again) => {}
            Ok(StepResult::Yield) => {
                held.clear();
                slice.give_way().await?;
            }
            Ok(StepResult::Lock(wait)) => {
                held.clear();
                transaction.wait_for_lock(wait).await?;
            }
            Err(Interrupt::Wait(wait)) => {
                if rows > 0 {
                    held.clear();
                }
                // As in `consistent_scan.rs`: nobody waits for a page with another one pinned.
                scan.position.clear();
                held.wait(wait).await;
            }
            Err(Interrupt::Error(error)) => return Err(error),
        }
    }
}

fn turn(
    scan: &mut Scan,
    locker: &mut Locker<'_>,
    slice: &TimeSlice,
    f: Callback<'_>,
) -> Result<StepResult, Interrupt> {
    let table = scan.table.clone();
    let tree = tree_of(&table, scan.index);
    if locker.gaps && scan.direction == Direction::Backward && scan.progress == Progress::Start {
        // The gap above the first entry that a backward scan meets belongs to the entry after it.
        if let Some(turn) = lock_above(scan, locker, tree)? {
            return Ok(turn);
        }
        // Confirmed; should this turn end before it has seen a row, the next begins with this again.
    }
    let bound = scan.far_bound().clone();
    let fields = bound_fields(&bound);
    let end = scan.end(tree, &fields);
    let exact = is_exact(scan, &table);
    let mut cursor = scan.open_cursor(tree)?;
    let mut leaf_before: Option<PageId> = None;
    loop {
        if !cursor.is_valid() || end.is_beyond(cursor.record()) {
            return lock_end(scan, locker, tree, &cursor, leaf_before);
        }
        let record = cursor.record();
        let extent = extent_of(scan, locker, &table, record, exact);
        let mode = LockMode::new(locker.exclusive, extent);
        locker.added.clear();
        let looks_first = locker.looks_first && !exact;
        let policy = if looks_first { WaitPolicy::SkipLocked } else { locker.policy };
        let mut locked = locker.lock_entry(scan, &table, &cursor, mode, policy)?;
        if looks_first && matches!(locked, Locked::Skip) {
            match locker.peek(&table, record, f)? {
                Control::SkipUnlock => {}
                Control::Stop => {
                    scan.progress = Progress::Finished;
                    return Ok(StepResult::State(ScanState::Finished));
                }
                _ => locked = locker.lock_entry(scan, &table, &cursor, mode, locker.policy)?,
            }
        }
        match locked {
            Locked::Held => {}
            Locked::Wait(wait) => return Ok(StepResult::Lock(wait)),
            Locked::Skip => {
                if let Some(turn) = go_on(scan, locker, &mut cursor, &mut leaf_before, Control::Continue)? {
                    return Ok(turn);
                }
                if slice.spend(1) {
                    return Ok(StepResult::Yield);
                }
                continue;
            }
        }
        if mode.guards_gap() && !confirmed(scan, locker, &cursor, leaf_before) {
            return Ok(StepResult::Again);
        }
        let shown = match locker.show(scan, &table, &cursor, f)? {
            Shown::Wait(wait) => return Ok(StepResult::Lock(wait)),
            shown => shown,
        };
        // The one row of a unique key has been met: nothing after it is looked at, or locked. A deleted
        // entry is not it: the live one may come after.
        if exact && extent == Extent::Record && !record.is_deleted() && !matches!(shown, Shown::Nothing) {
            let control = shown.control();
            scan.progress = Progress::Finished;
            if control == Control::Pause {
                return Ok(StepResult::State(ScanState::Paused));
            }
            if control == Control::SkipUnlock {
                locker.unlock();
            } else if locker.exclusive && scan.index == ScanIndex::Clustered {
                // A change of this row is likely to follow.
                cursor.save(&mut scan.position);
                locker.seen = true;
            }
            return Ok(StepResult::State(ScanState::Finished));
        }
        if let Some(turn) = go_on(scan, locker, &mut cursor, &mut leaf_before, shown.control())? {
            return Ok(turn);
        }
        if slice.spend(1) {
            return Ok(StepResult::Yield);
        }
    }
}

/// The entry has been dealt with: remembers that, and moves on unless the turn ends here.
fn go_on(
    scan: &mut Scan,
    locker: &mut Locker<'_>,
    cursor: &mut LeafCursor<'_>,
    leaf_before: &mut Option<PageId>,
    control: Control,
) -> Result<Option<StepResult>, Interrupt> {
    cursor.save(&mut scan.position);
    scan.progress = Progress::After;
    scan.confirm = None;
    match control {
        Control::Stop => {
            scan.progress = Progress::Finished;
            return Ok(Some(StepResult::State(ScanState::Finished)));
        }
        Control::Pause => return Ok(Some(StepResult::State(ScanState::Paused))),
        Control::SkipUnlock => locker.unlock(),
        Control::Continue => {}
    }
    *leaf_before = cursor.leaf();
    advance(cursor, scan.direction)?;
    Ok(None)
}

/// Whether the gap before the cursor's entry (or before the end) is known to be whole: the entry before it
/// was seen on the same leaf under the same latch, or this is the second look.
fn confirmed(
    scan: &mut Scan,
    locker: &Locker<'_>,
    cursor: &LeafCursor<'_>,
    leaf_before: Option<PageId>,
) -> bool {
    // Going backwards the gap before an entry is looked at after the lock on the entry, in any case.
    if scan.direction == Direction::Backward || leaf_before.is_some() && leaf_before == cursor.leaf() {
        return true;
    }
    let target = if cursor.is_valid() {
        locker.system.locks.target_of(cursor.record())
    } else {
        LockTarget::supremum(tree_of(&scan.table, scan.index).def().id)
    };
    if scan.confirm == Some(target) {
        return true;
    }
    scan.confirm = Some(target);
    false
}

/// The range is done: locks the gap after its last entry.
fn lock_end(
    scan: &mut Scan,
    locker: &mut Locker<'_>,
    tree: &Tree,
    cursor: &LeafCursor<'_>,
    leaf_before: Option<PageId>,
) -> Result<StepResult, Interrupt> {
    if locker.gaps && scan.direction == Direction::Forward {
        let mode = LockMode::new(locker.exclusive, Extent::Gap);
        let target = if cursor.is_valid() {
            locker.system.locks.target_of(cursor.record())
        } else {
            LockTarget::supremum(tree.def().id)
        };
        // Nobody waits for a gap lock; but there may be no room for it.
        if let Locked::Wait(wait) = locker.request(target, mode, &|| describe_end(tree.def())) {
            return Ok(StepResult::Lock(wait));
        }
        if !confirmed(scan, locker, cursor, leaf_before) {
            return Ok(StepResult::Again);
        }
    }
    scan.progress = Progress::Finished;
    Ok(StepResult::State(ScanState::Finished))
}

/// Locks the gap above the range, before a backward scan begins. The entry above may be on the next leaf, and
/// a row may come to the end of the range's own leaf between our look and our lock: the lock stands when a
/// second look finds the same entry.
fn lock_above(
    scan: &mut Scan,
    locker: &mut Locker<'_>,
    tree: &Tree,
) -> Result<Option<StepResult>, Interrupt> {
    let cursor = match scan.near_bound() {
        Bound::Unbounded => None,
        Bound::Included(key) => Some(tree.seek(&key.fields(), Seek::After)?),
        Bound::Excluded(key) => Some(tree.seek(&key.fields(), Seek::AtLeast)?),
    };
    let target = match cursor.as_ref().filter(|cursor| cursor.is_valid()) {
        Some(cursor) => locker.system.locks.target_of(cursor.record()),
        None => LockTarget::supremum(tree.def().id),
    };
    let mode = LockMode::new(locker.exclusive, Extent::Gap);
    if let Locked::Wait(wait) = locker.request(target, mode, &|| describe_end(tree.def())) {
        return Ok(Some(StepResult::Lock(wait)));
    }
    if scan.confirm == Some(target) {
        return Ok(None);
    }
    scan.confirm = Some(target);
    Ok(Some(StepResult::Again))
}

/// Whether the scan is for one value of a unique key.
fn is_exact(scan: &Scan, table: &Table) -> bool {
    let (Bound::Included(lower), Bound::Included(upper)) = (&scan.range.lower, &scan.range.upper) else {
        return false;
    };
    let unique_fields = match scan.index {
        ScanIndex::Clustered => table.key_fields,
        ScanIndex::Secondary(number) => {
            let secondary = &table.secondaries[number];
            if secondary.unique { secondary.user_fields } else { secondary.columns.len() }
        }
    };
    lower == upper
        && lower.len() >= unique_fields
        && lower.fields().iter().take(unique_fields).all(Option::is_some)
}

/// How much of an entry is locked.
fn extent_of(scan: &Scan, locker: &Locker<'_>, table: &Table, record: RecordRef<'_>, exact: bool) -> Extent {
    if !locker.gaps || exact && !record.is_deleted() {
        return Extent::Record;
    }
    // A range over the clustered index that begins with this very row: nothing can come before it.
    if let (Progress::Start, Direction::Forward, ScanIndex::Clustered, Bound::Included(key)) =
        (scan.progress, scan.direction, scan.index, &scan.range.lower)
    {
        let fields = key.fields();
        let begins = fields.len() >= table.key_fields
            && SearchKey::new(record.def(), &fields).compare_record(record).is_eq();
        if begins && !record.is_deleted() {
            return Extent::Record;
        }
    }
    Extent::NextKey
}

enum Shown {
    Control(Control),
    Nothing,
    Wait(LockWait),
}

impl Shown {
    fn control(&self) -> Control {
        match self {
            Shown::Control(control) => *control,
            _ => Control::SkipUnlock,
        }
    }
}

impl Locker<'_> {
    fn request(
        &mut self,
        target: LockTarget,
        mode: LockMode,
        describe: &dyn Fn() -> LockDescription,
    ) -> Locked {
        let acquired = self.system.locks.request(self.owner, target, mode, self.policy, describe);
        self.note(acquired, target, mode)
    }

    fn note(&mut self, acquired: Acquired, target: LockTarget, mode: LockMode) -> Locked {
        match acquired {
            Acquired::Granted { new } => {
                if new {
                    self.added.push((target, mode));
                }
                Locked::Held
            }
            Acquired::Wait(wait) => Locked::Wait(wait),
            Acquired::Refused => Locked::Skip,
        }
    }

    fn refused(&self) -> Result<Locked, Interrupt> {
        if self.policy == WaitPolicy::NoWait { Err(Error::NoWaitLocked.into()) } else { Ok(Locked::Skip) }
    }

    fn lock_entry(
        &mut self,
        scan: &Scan,
        table: &Table,
        cursor: &LeafCursor<'_>,
        mode: LockMode,
        policy: WaitPolicy,
    ) -> Result<Locked, Interrupt> {
        let record = cursor.record();
        let target = self.system.locks.target_of(record);
        let locked = match scan.index {
            ScanIndex::Clustered => {
                let (system, owner, id) = (self.system, self.owner, self.own_id);
                let acquired = lock_clustered(system, owner, id, record, mode, policy);
                self.note(acquired, target, mode)
            }
            ScanIndex::Secondary(number) => {
                let secondary = &table.secondaries[number];
                let page_max = cursor.page_max_trx_id();
                make_entry_lock_explicit(
                    self.system,
                    self.own_id,
                    table,
                    secondary,
                    record,
                    page_max,
                    target,
                )?;
                self.request(target, mode, &|| describe(record))
            }
        };
        if matches!(locked, Locked::Skip) { self.refused() } else { Ok(locked) }
    }

    /// Shows the newest committed version of a row that is locked by another transaction.
    /// [`Control::SkipUnlock`]: there is none, or it is not wanted.
    fn peek(&mut self, table: &Table, record: RecordRef<'_>, f: Callback<'_>) -> Result<Control, Interrupt> {
        let peek = self.peek.get_or_insert_with(|| Peek::new(self.system));
        let overlay = match peek.find(record, self.own_id)? {
            Visible::Nothing => return Ok(Control::SkipUnlock),
            Visible::Newest => None,
            Visible::Older => Some(&peek.overlay),
        };
        Ok(f(&Row { table, source: Source::Peeked(Version { record, overlay }) }))
    }

    /// Shows the locked entry's row, locking that too if the entry is a secondary index's.
    fn show(
        &mut self,
        scan: &Scan,
        table: &Table,
        cursor: &LeafCursor<'_>,
        f: Callback<'_>,
    ) -> Result<Shown, Interrupt> {
        let record = cursor.record();
        if record.is_deleted() {
            return Ok(Shown::Nothing);
        }
        let ScanIndex::Secondary(number) = scan.index else {
            self.rows += 1;
            let source = Source::Clustered(Version { record, overlay: None });
            return Ok(Shown::Control(f(&Row { table, source })));
        };
        let entry: KeyFields<'_> = record.fields().map(FieldRef::inline).collect();
        let key = table.secondaries[number].clustered_key(table, &entry);
        let mode = LockMode::new(self.exclusive, Extent::Record);
        let shown = table.clustered.get(&key, |row| -> Result<Shown, Interrupt> {
            let target = self.system.locks.target_of(row);
            let acquired = lock_clustered(self.system, self.owner, self.own_id, row, mode, self.policy);
            match self.note(acquired, target, mode) {
                Locked::Held => {}
                Locked::Wait(wait) => return Ok(Shown::Wait(wait)),
                Locked::Skip => {
                    self.refused()?;
                    return Ok(Shown::Nothing);
                }
            }
            // The entry is live and locked, so it is that of the newest version, unless its change is under
            // way.
            if row.is_deleted() {
                return Ok(Shown::Nothing);
            }
            self.rows += 1;
            let source = Source::Clustered(Version { record: row, overlay: None });
            Ok(Shown::Control(f(&Row { table, source })))
        })?;
        shown.unwrap_or(Ok(Shown::Nothing))
    }

    /// Gives up the locks of an entry that failed the filter, where gaps are not locked.
    fn unlock(&mut self) {
        if !self.gaps {
            for (target, mode) in self.added.drain(..) {
                self.system.locks.release(self.owner, target, mode);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::undo::tests::store;
    use crate::{Options, TransactionSystem};

    #[test]
    fn a_look_takes_a_view_that_was_left_and_leaves_its_own() {
        let (env, store) = store();
        env.run_until_complete(async {
            let opened = TransactionSystem::open(store, Options::new("/data/undo_001".into())).await;
            let system = opened.unwrap().0;
            let mut slot = system.views.register();
            slot.leave_view(ReadView { version: 1, low_limit: 77, ..ReadView::default() });
            drop(slot);
            let mut peek = Peek::new(&system);
            assert_eq!(peek.view.low_limit, 77);
            peek.view.low_limit = 78;
            drop(peek);
            assert_eq!(system.views.register().take_view().low_limit, 78);
            assert_eq!(system.views.listed(), (1, 1));
        });
        env.shutdown();
    }
}
