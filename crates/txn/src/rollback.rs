//! Taking changes back: a statement, a savepoint, a whole transaction, or what a crash left unfinished.
//!
//! Undo records are applied from the newest backwards. A record concerns its row only while the row's
//! DB_TRX_ID and DB_ROLL_PTR say that it was the last change; otherwise it has been undone already. So
//! rollback can be repeated, which is what happens when a crash interrupts it. Of one record first the
//! secondary entries are put right, then the row.
//!
//! Off-page values of the version that goes have undo records of their own, older than the row's: their
//! chains are freed when no row refers to them any more, and struck out of the record, so that they are freed
//! once.
//!
//! A row that goes back to a delete-marked version whose deletion everybody sees goes altogether, as purge
//! may have passed by while it was alive. That is part of undoing the record, so that a crash in between
//! loses nothing. If the deletion is not seen by all, its log has not been purged and purge will do it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use btree::{FieldRef, KeyFields, OwnedKey, RecordBuffer, RecordRef, StructureChange};
use disk::Event;
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::entry::build_entry;
use crate::error::{Error, Interrupt};
use crate::lock::Owner;
use crate::purge::Pinned;
use crate::read_view::ViewSlot;
use crate::remove_deleted_row::{Deletion, remove_row_and_entries};
use crate::retry::{retry, yield_now};
use crate::row::external::free_noted_chain;
use crate::row::remove::{Outcomes, is_entry_needed, mark_step, remove_record, same_entry, write_entry};
use crate::row::write::encode_record;
use crate::row_count::RowChanges;
use crate::system::{Counters, System};
use crate::table::{Table, TableHold, TableSource};
use crate::transaction::Kept;
use crate::undo::log::LogMark;
use crate::undo::tablespace::corrupt;
use crate::undo::{Place, UndoKind, UndoLog, UndoRecord};
use crate::version::{Overlay, Version};

/// Finds a table by its id; `None`: it was dropped. An error: it cannot be used now.
pub(crate) type FindTable<'f> = &'f (dyn Fn(u64) -> Result<Option<Arc<Table>>, Error> + Sync);

/// One of the tables that a transaction has changed.
pub(crate) fn find_table(
    tables: &[Arc<Table>],
    source: Option<&dyn TableSource>,
    id: u64,
) -> Result<Option<Arc<Table>>, Error> {
    match (tables.iter().find(|table| table.id == id), source) {
        (None, Some(source)) => source.table_to_undo(id),
        (found, _) => Ok(found.cloned()),
    }
}

/// Undoes everything of `log` after `mark` and cuts the log. `slot` publishes that the walk through old
/// versions needs them. With `locks_stay` a row whose change was its lock keeps a lock of that owner's.
/// Returns the number of records.
pub(crate) async fn roll_back(
    system: &Arc<System>,
    log: &mut UndoLog,
    find: FindTable<'_>,
    mark: LogMark,
    slot: &ViewSlot,
    locks_stay: Option<&Arc<Owner>>,
) -> Result<u64, Error> {
    let mut rollback = RollBack::new(log, mark);
    rollback.locks_stay = locks_stay.cloned();
    rollback.run(system, log, find, slot).await?;
    Ok(rollback.undone)
}

/// Tables that a rollback could not use. Those of their records that it meets first must be undone first, so
/// it leaves all of them alone.
#[derive(Default)]
pub(crate) struct Unreached {
    pub tables: BTreeSet<u64>,
    /// Why the first of them could not be used.
    error: Option<Error>,
}

impl Unreached {
    pub fn note(&mut self, table: u64, error: Error) {
        self.tables.insert(table);
        self.error.get_or_insert(error);
    }
}

/// Before another try of a rollback: holds those of its tables again that can be used now; the others are not
/// to be touched.
pub(crate) fn hold_again(
    source: &dyn TableSource,
    tables: impl IntoIterator<Item = u64>,
    holds: &mut BTreeMap<u64, TableHold>,
    unreached: &mut Unreached,
) {
    for table in tables {
        if holds.contains_key(&table) {
            continue;
        }
        let hold = match source.table_to_undo(table) {
            Ok(Some(_)) => source.hold(table),
            other => other.map(|_| None),
        };
        match hold {
            Ok(hold) => holds.extend(hold.map(|hold| (table, hold))),
            Err(error) => unreached.note(table, error),
        }
    }
}

/// A rollback under way. It goes on in turns, so that other tasks on its thread get on as well, and purge
/// between two turns.
pub(crate) struct RollBack {
    mark: LogMark,
    /// What is to be undone next ends here.
    end: Option<Place>,
    /// Records undone.
    pub undone: u64,
    /// Records undone when the log was last cut.
    pub cut: u64,
    /// What those undone since had changed.
    not_cut: RowChanges,
    /// Tables that could not be used, whose records were passed over.
    pub unreached: Unreached,
    /// A row whose change was its lock keeps a lock of this owner's.
    locks_stay: Option<Arc<Owner>>,
}

impl RollBack {
    /// Nothing is done yet.
    pub fn new(log: &UndoLog, mark: LogMark) -> RollBack {
        RollBack {
            mark,
            end: log.end(),
            undone: 0,
            cut: 0,
            not_cut: RowChanges::default(),
            unreached: Unreached::default(),
            locks_stay: None,
        }
    }

    /// Undoes all.
    async fn run(
        &mut self,
        system: &Arc<System>,
        log: &mut UndoLog,
        find: FindTable<'_>,
        slot: &ViewSlot,
    ) -> Result<(), Error> {
        loop {
            if system.purge.is_stopped() {
                // The engine is being closed. What is left is for the next start.
                return Err(Error::Killed);
            }
            if self.turn(system, log, find, slot).await? {
                return Ok(());
            }
            yield_now().await;
        }
    }

    /// Undoes some records; true at the end. A long log is cut now and then, so that a crash need not undo
    /// all again.
    ///
    /// With a table that cannot be used the others are rolled back all the same. The log is not cut any more,
    /// and the end is that table's error: the rollback must be repeated, and finds most of it done.
    pub async fn turn(
        &mut self,
        system: &Arc<System>,
        log: &mut UndoLog,
        find: FindTable<'_>,
        slot: &ViewSlot,
    ) -> Result<bool, Error> {
        let pinned = system.purge.pin(slot);
        let started = system.env.now();
        let mut bytes = Vec::new();
        let before = self.undone;
        while let Some(at) = self.end {
            let place = retry(|| log.record_before(&system.undo, at, self.mark.end, &mut bytes)).await?;
            let Some(place) = place else {
                self.end = None;
                break;
            };
            let undo = UndoRecord::parse(&bytes)
                .ok_or_else(|| corrupt(place.page, "an undo record cannot be read"))?;
            let record = Record { place, bytes: &bytes, undo: &undo };
            let (unreached, locks_stay) = (&mut self.unreached, self.locks_stay.as_ref());
            undo_record(system, log, find, unreached, record, &pinned, locks_stay).await?;
            self.not_cut.note(undo.table, undo.kind);
            self.undone += 1;
            self.end = Some(place);
            let done = self.undone - before;
            if done.is_multiple_of(RECORDS_PER_LOOK)
                && (done >= RECORDS_PER_TURN || system.env.now().saturating_sub(started) > TURN)
            {
                break;
            }
        }
        drop(pinned);
        let Some(end) = self.end else {
            if let Some(error) = self.unreached.error.take() {
                return Err(error);
            }
            retry(|| log.truncate(&system.undo, self.mark)).await?;
            log.row_changes.take_back(&mut self.not_cut);
            return Ok(true);
        };
        if self.undone - self.cut >= RECORDS_PER_CUT && self.unreached.tables.is_empty() {
            let records = log.records.saturating_sub(self.undone - self.cut);
            retry(|| log.truncate(&system.undo, LogMark { records, end: Some(end) })).await?;
            log.row_changes.take_back(&mut self.not_cut);
            self.cut = self.undone;
        }
        Ok(false)
    }
}

/// A record of the log, where it is, and what it says.
#[derive(Clone, Copy)]
struct Record<'r, 'u> {
    place: Place,
    bytes: &'r [u8],
    undo: &'r UndoRecord<'u>,
}

async fn undo_record(
    system: &Arc<System>,
    log: &UndoLog,
    find: FindTable<'_>,
    unreached: &mut Unreached,
    Record { place, bytes, undo }: Record<'_, '_>,
    pinned: &Pinned<'_>,
    locks_stay: Option<&Arc<Owner>>,
) -> Result<(), Error> {
    if undo.kind == UndoKind::Prepared {
        return Err(corrupt(place.page, "a name stands where an undo record should"));
    }
    if unreached.tables.contains(&undo.table) {
        return Ok(());
    }
    let table = match find(undo.table) {
        Ok(Some(table)) => table,
        Ok(None) => return Ok(()),
        Err(error) => {
            unreached.note(undo.table, error);
            return Ok(());
        }
    };
    let undone = match undo.chain() {
        Some(chain) => free_noted_chain(system, &table.clustered, place, bytes, chain).await,
        None => {
            let (trx_id, insert) = (log.trx_id, undo.kind == UndoKind::Insert);
            let roll_ptr = log.roll_ptr(place, insert).0;
            let change = Change { system, table: &table, undo, trx_id, roll_ptr, locks_stay };
            change.undo(pinned).await
        }
    };
    match undone {
        // The table was dropped or recreated: its rows went with its file.
        Err(Error::Store(pagestore::Error::NoSuchSpace(space))) if space == table.clustered.space() => Ok(()),
        undone => undone,
    }
}

/// How long a turn of a rollback is, and how often it looks at the clock.
const TURN: Duration = Duration::from_micros(400);
const RECORDS_PER_LOOK: u64 = 8;
const RECORDS_PER_TURN: u64 = 256;
/// Records undone before the log is cut after the next one.
const RECORDS_PER_CUT: u64 = 1024;

/// How long a rollback that failed waits before it tries again: at first, and at most.
pub(crate) const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// A transaction whose session has gone.
pub(crate) struct Abandoned {
    pub owner: Arc<Owner>,
    pub undo_log: UndoLog,
    pub tables: SmallVec<[Arc<Table>; 4]>,
    /// Knows those of a transaction that a start has found.
    pub source: Option<Arc<dyn TableSource>>,
    /// Its tables, by their ids, if a start has found it.
    pub holds: BTreeMap<u64, TableHold>,
    /// What must last until it has been rolled back: the right to use its tables.
    pub kept: Option<Kept>,
}

/// Abandoned transactions that are being rolled back: who closes the engine waits for them to stop.
#[derive(Default)]
pub(crate) struct Background(Mutex<(usize, Event)>);

/// One that is at work.
struct AtWork<'b>(&'b Background);

impl Background {
    fn begin(&self) -> AtWork<'_> {
        let mut state = self.0.lock();
        if state.0 == 0 {
            state.1 = Event::new();
        }
        state.0 += 1;
        AtWork(self)
    }

    /// Waits until none is at work.
    pub async fn ended(&self) {
        let idle = {
            let state = self.0.lock();
            if state.0 == 0 {
                return;
            }
            state.1.clone()
        };
        idle.wait().await;
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
        state.0 -= 1;
        if state.0 == 0 {
            state.1.set();
        }
    }
}

/// Rolls back a transaction whose session has gone. Until that is done, its row locks and its uses of tables
/// last: what they protect is still changing. A rollback that fails is tried again, for as long as another
/// try could end otherwise: somebody may free some space, or repair a file; and others wait for its locks.
///
/// Of one that a start has found, a table that cannot be used is not held meanwhile, as in
/// `crash_rollback.rs`: it can be dropped or discarded.
pub(crate) async fn roll_back_abandoned(system: Arc<System>, abandoned: Abandoned) {
    let Abandoned { owner, undo_log: mut log, tables, source, mut holds, kept } = abandoned;
    let held: Vec<u64> = holds.keys().copied().collect();
    let slot = system.views.register();
    let find = |id: u64| find_table(&tables, source.as_deref(), id);
    let start = LogMark { records: 0, end: None };
    let (mut pause, longest) = RETRY;
    let undone = loop {
        let at_work = system.background.begin();
        let mut rollback = RollBack::new(&log, start);
        if let Some(source) = &source {
            hold_again(&**source, held.iter().copied(), &mut holds, &mut rollback.unreached);
        }
        let Err(error) = rollback.run(&system, &mut log, &find, &slot).await else { break true };
        holds.retain(|table, _| !rollback.unreached.tables.contains(table));
        drop(at_work);
        let (transaction, records) = (log.trx_id, log.records);
        if system.purge.is_stopped() || is_final(&error) {
            // A stop, or an engine that changes nothing any more: the next start rolls it back.
            tracing::warn!(transaction, records, %error, "rollback given up; the next start finishes it");
            break false;
        }
        tracing::error!(transaction, records, %error, "rollback failed and will be tried again; its locks stay");
        system.env.sleep(pause).await;
        pause = (pause * 2).min(longest);
    };
    drop(slot);
    if undone {
        system.active.end(log.trx_id, None, |_| ());
        log.release(&system.undo);
        system.locks.release_all(&owner);
        Counters::add(&system.counters.rollbacks, 1);
    }
    drop((holds, kept));
}

/// Whether the error means that the engine will not change anything before it is started again.
pub(crate) fn is_final(error: &Error) -> bool {
    use pagestore::Error::{Poisoned, ReadOnly, Redo};
    matches!(error, Error::Store(Poisoned(_) | ReadOnly(_) | Redo(_)))
}

/// What has to happen to a secondary index.
enum EntryWork {
    /// The entry belongs to the version that goes.
    Retire(usize, OwnedKey),
    /// The entry belongs to the version that comes back.
    Restore(usize, OwnedKey),
}

/// One change to be undone.
struct Change<'c, 'u> {
    system: &'c System,
    table: &'c Table,
    undo: &'c UndoRecord<'u>,
    trx_id: u64,
    roll_ptr: u64,
    locks_stay: Option<&'c Arc<Owner>>,
}

impl Change<'_, '_> {
    async fn undo(&self, pinned: &Pinned<'_>) -> Result<(), Error> {
        if let Some(entries) = retry(|| self.plan()).await? {
            for work in &entries {
                self.undo_entry(work, pinned).await?;
            }
            if self.undo.kind == UndoKind::Insert {
                let wanted = |record: RecordRef<'_>| Ok(self.is_last_change_of(record));
                remove_record(self.system, &self.table.clustered, &self.key(), wanted, &[]).await?;
                return Ok(());
            }
            let mut structural = false;
            let mut buffer = RecordBuffer::new();
            while retry(|| self.restore_step(&mut buffer, structural)).await? == Outcomes::Structure {
                structural = true;
            }
        }
        // Also when it was restored before a crash: whether the row went as well is not known then.
        if self.undo.kind == UndoKind::Revive && pinned.view().sees(self.undo.old_trx_id) {
            let deletion = Deletion { trx_id: self.undo.old_trx_id, roll_ptr: self.undo.old_roll_ptr };
            remove_row_and_entries(self.system, self.table, &self.key(), deletion, pinned.view()).await?;
        }
        Ok(())
    }

    fn key(&self) -> KeyFields<'_> {
        self.undo.key.iter().map(|field| field.inline()).collect()
    }

    fn is_last_change_of(&self, record: RecordRef<'_>) -> bool {
        record.trx_id() == self.trx_id && record.roll_ptr() == self.roll_ptr
    }

    /// Compares the row with the version before. `None`: undone already.
    fn plan(&self) -> Result<Option<Vec<EntryWork>>, Interrupt> {
        let plan =
            self.table.clustered.get(&self.key(), |record| -> Result<Option<Vec<EntryWork>>, Interrupt> {
                if !self.is_last_change_of(record) {
                    return Ok(None);
                }
                let mut overlay = Overlay::default();
                overlay.start(record);
                overlay.apply(self.undo);
                let old = Version { record, overlay: Some(&overlay) };
                let mut plan = Vec::new();
                for (number, secondary) in self.table.secondaries.iter().enumerate() {
                    let (mut new_entry, mut old_entry) = (OwnedKey::new(), OwnedKey::new());
                    build_entry(self.table, secondary, |position| record.field(position), &mut new_entry)?;
                    build_entry(self.table, secondary, |position| old.field(position), &mut old_entry)?;
                    match self.undo.kind {
                        UndoKind::Insert | UndoKind::Revive => {
                            plan.push(EntryWork::Retire(number, new_entry));
                        }
                        UndoKind::DeleteMark => plan.push(EntryWork::Restore(number, old_entry)),
                        UndoKind::OffPage | UndoKind::Prepared => unreachable!("not about a row"),
                        UndoKind::Update => {
                            if new_entry != old_entry {
                                if !same_entry(secondary, &new_entry.fields(), &old_entry.fields()) {
                                    plan.push(EntryWork::Retire(number, new_entry));
                                }
                                plan.push(EntryWork::Restore(number, old_entry));
                            }
                        }
                    }
                }
                Ok(Some(plan))
            })?;
        plan.unwrap_or(Ok(None))
    }

    async fn undo_entry(&self, work: &EntryWork, pinned: &Pinned<'_>) -> Result<(), Error> {
        match work {
            EntryWork::Restore(number, entry) => {
                let tree = &self.table.secondaries[*number].tree;
                if !write_entry(self.system, tree, entry, self.trx_id).await? {
                    let index = &tree.def().name;
                    tracing::error!(%index, "rollback: an index entry to restore is missing; CHECK TABLE tells more");
                }
                Ok(())
            }
            EntryWork::Retire(number, entry) => {
                let secondary = &self.table.secondaries[*number];
                let fields = entry.fields();
                let mut needed = false;
                let mut overlay = Overlay::default();
                let wanted = |_: RecordRef<'_>| {
                    let versions = (pinned.view(), &mut overlay);
                    needed = self.undo.kind != UndoKind::Insert
                        && is_entry_needed(self.system, self.table, secondary, &fields, true, versions)?;
                    Ok(!needed)
                };
                remove_record(self.system, &secondary.tree, &fields, wanted, &[]).await?;
                if needed {
                    retry(|| mark_step(self.system, &secondary.tree, &fields, true, self.trx_id)).await?;
                }
                Ok(())
            }
        }
    }

    /// Puts the row back to the version before.
    fn restore_step(&self, buffer: &mut RecordBuffer, structural: bool) -> Result<Outcomes, Interrupt> {
        let tree = &self.table.clustered;
        let mut guard = None;
        let mut mtr = if structural {
            self.system.store.mtr_sized(tree.structure_redo_bytes())?
        } else {
            self.system.store.mtr()?
        };
        let position = if structural {
            let change = StructureChange::Restore { size: buffer.size() };
            let (position, taken) = tree.seek_for_structure_change(&mut mtr, &self.key(), change)?;
            guard = Some(taken);
            position
        } else {
            tree.seek_for_change(&mut mtr, &self.key())?
        };
        let Some(record) = tree.record_at(&mtr, position.place).filter(|_| position.exact) else {
            return Ok(Outcomes::Skipped);
        };
        if !self.is_last_change_of(record) {
            return Ok(Outcomes::Skipped);
        }
        if let Some(owner) = self.locks_stay.filter(|_| !self.undo.old_deleted) {
            // DB_TRX_ID goes back to another transaction's, and with it the lock that it was. The leaf is
            // X-latched.
            self.system.locks.make_explicit(&owner.current(), self.system.locks.target_of(record));
        }
        if self.undo.kind == UndoKind::DeleteMark {
            tree.set_delete_mark(&mut mtr, position.place, self.undo.old_deleted, 0);
            tree.set_system_fields(&mut mtr, position.place, self.undo.old_trx_id, self.undo.old_roll_ptr);
            mtr.commit();
            return Ok(Outcomes::Done);
        }
        let mut overlay = Overlay::default();
        overlay.start(record);
        overlay.apply(self.undo);
        let old = Version { record, overlay: Some(&overlay) };
        let fields: SmallVec<[FieldRef<'_>; 16]> = old.fields().collect();
        encode_record(buffer, tree.def(), self.table.id, &fields)?;
        drop(fields);
        buffer.set_deleted(self.undo.old_deleted);
        buffer.set_system_fields(tree.def(), self.undo.old_trx_id, self.undo.old_roll_ptr);
        if guard.is_none() && !tree.update_fits(&mtr, position.place, buffer) {
            return Ok(Outcomes::Structure);
        }
        if let Some(guard) = &mut guard {
            guard.reserve(&mut mtr)?;
        }
        match &mut guard {
            Some(guard) => tree.update_with_split(&mut mtr, guard, position.place, buffer, 0)?,
            None => {
                let outcome = tree.update_here(&mut mtr, position.place, buffer, 0)?;
                assert!(matches!(outcome, btree::Outcome::Done(_)), "an update that fits is made");
            }
        }
        mtr.commit();
        Ok(Outcomes::Done)
    }
}
