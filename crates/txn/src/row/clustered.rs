//! Changes of the clustered index: the row itself, its undo record, and the list of entries that follow from
//! it.
//!
//! Each step makes sure that there is room for the undo record, latches the leaf, looks at locks and
//! versions, checks that the change fits, and only then writes: undo record and row in one mini-transaction.
//!
//! Two things make a statement that changes many rows cheap. A change that leaves every field where it is, of
//! columns in no other index, is a [`Patch`]: nothing is computed but the bytes. And the next row is mostly
//! the one behind the last on the same page, which nobody else has changed in between: then it is found
//! without a descent ([`Nearby`]).

use std::sync::Arc;

use btree::external::plan_external;
use btree::record::build::record_size;
use btree::{
    ChangePosition, FieldRef, LastChange, Outcome, OwnedKey, Place, RecordRef, SavedPosition,
    StructureChange, StructureGuard, Tree,
};
use pagestore::Mtr;
use smallvec::SmallVec;

use super::insert::OnDuplicate;
use super::remove::successor_target;
use super::write::{EntryChange, Step, Writer, describe_end, encode_record, key_of};
use crate::entry::build_entry;
use crate::error::Interrupt;
use crate::lock::{Acquired, Extent, LockMode};
use crate::system::System;
use crate::table::Table;
use crate::undo::UndoKind;
use crate::undo::record::UndoBuilder;

/// Fields of a row by clustered position.
pub(crate) type Fields<'f> = SmallVec<[FieldRef<'f>; 16]>;

/// A new value of a clustered field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewField<'f> {
    pub position: usize,
    /// The whole value.
    pub value: FieldRef<'f>,
    /// What goes into the record: the value, or a reference to it.
    pub stored: FieldRef<'f>,
}

/// A row that is put.
pub(crate) struct RowToPut<'r> {
    /// Its clustered fields.
    pub stored: &'r [FieldRef<'r>],
    /// All of them outside the key.
    pub changes: &'r [NewField<'r>],
    /// It was seen here a moment ago.
    pub seen: Option<&'r SavedPosition>,
}

/// A place to change, with what keeps the tree's structure still if it is to change.
struct Located<'s, 't> {
    mtr: Mtr<'s>,
    position: ChangePosition,
    guard: Option<StructureGuard<'t>>,
}

/// Where a row may be found without a descent.
#[derive(Clone, Copy, Default)]
struct Nearby<'p> {
    /// It was seen here.
    seen: Option<&'p SavedPosition>,
    /// The row before it was changed here.
    last: Option<LastChange>,
}

fn locate<'s, 't>(
    store: &'s pagestore::PageStore,
    tree: &'t Tree,
    key: &[btree::Field<'_>],
    structure: Option<usize>,
    extra_redo: usize,
    nearby: Nearby<'_>,
) -> Result<Located<'s, 't>, Interrupt> {
    let Some(size) = structure else {
        let mut mtr = store.mtr()?;
        let behind = nearby.last.and_then(|last| tree.seek_behind(&mut mtr, key, &last));
        let position = match (behind, nearby.seen) {
            (Some(position), _) => position,
            (None, Some(seen)) => tree.seek_for_change_at(&mut mtr, key, seen)?,
            (None, None) => tree.seek_for_change(&mut mtr, key)?,
        };
        return Ok(Located { mtr, position, guard: None });
    };
    let mut mtr = store.mtr_sized(tree.structure_redo_bytes() + extra_redo)?;
    let (position, guard) =
        tree.seek_for_structure_change(&mut mtr, key, StructureChange::Insert { size })?;
    Ok(Located { mtr, position, guard: Some(guard) })
}

/// What has come of a change at a place.
enum Turn {
    Over(Step),
    /// Nothing yet: there is room for the undo record now, and the place is to be looked for again.
    Again,
}

impl<'w> Writer<'w> {
    /// Inserts a row with these clustered fields. A delete-marked row of the same key is brought back to life
    /// with them.
    pub fn insert_step(
        &mut self,
        table: &Table,
        stored: &[FieldRef<'_>],
        structure: Option<usize>,
        on_duplicate: OnDuplicate,
    ) -> Result<Step, Interrupt> {
        let key = key_of(table, stored);
        loop {
            let nearby = Nearby { seen: None, last: self.buffers.last };
            let at = self.locate_to_insert(table, &key, structure, nearby)?;
            if let Turn::Over(step) = self.insert_at(at, table, stored, structure, on_duplicate)? {
                return Ok(step);
            }
        }
    }

    /// Changes the row with the key of `row`, or inserts it where there is none ([`Step::Inserted`]). The
    /// place is looked for once.
    pub fn put_step(
        &mut self,
        table: &Table,
        row: &RowToPut<'_>,
        structure: Option<usize>,
        entries: &mut Vec<EntryChange>,
    ) -> Result<Step, Interrupt> {
        let key = key_of(table, row.stored);
        loop {
            let nearby = Nearby { seen: row.seen, last: self.buffers.last };
            let at = self.locate_to_insert(table, &key, structure, nearby)?;
            let is_new = exact_record(&table.clustered, &at).is_none_or(|record| record.is_deleted());
            let turn = match is_new {
                true => self.insert_at(at, table, row.stored, structure, OnDuplicate::Change)?,
                false => self.update_at(at, table, row.changes, structure, entries)?,
            };
            match turn {
                Turn::Over(Step::Done) if is_new => return Ok(Step::Inserted),
                Turn::Over(step) => return Ok(step),
                Turn::Again => {}
            }
        }
    }

    /// The place for a row, with room for the undo record of its insertion, which is in the buffer.
    fn locate_to_insert<'t>(
        &mut self,
        table: &'t Table,
        key: &[btree::Field<'_>],
        structure: Option<usize>,
        nearby: Nearby<'_>,
    ) -> Result<Located<'w, 't>, Interrupt> {
        let mut undo = UndoBuilder::new(&mut self.buffers.undo, UndoKind::Insert, table.id);
        undo.key(key.iter().map(|field| FieldRef::from(*field)));
        undo.finish();
        let system: &'w Arc<System> = self.system;
        self.undo_log.make_room(&system.undo, self.buffers.undo.len())?;
        // A put finds out there that the row exists: the undo record of an update has what it had.
        let of_an_update = structure.map_or(0, |_| table.clustered.max_record_size());
        let extra = self.buffers.undo.len().max(of_an_update) + 256;
        locate(&system.store, &table.clustered, key, structure, extra, nearby)
    }

    /// Inserts a row at its place. The undo record is in the buffer.
    fn insert_at(
        &mut self,
        mut at: Located<'_, '_>,
        table: &Table,
        stored: &[FieldRef<'_>],
        structure: Option<usize>,
        on_duplicate: OnDuplicate,
    ) -> Result<Turn, Interrupt> {
        let tree = &*table.clustered;
        let (system, def) = (self.system, tree.def());
        if at.position.exact {
            return self.insert_over(at, table, stored, structure, on_duplicate);
        }
        let mut successor = None;
        if system.locks.has_gap_locks(def.id) {
            let target = successor_target(system, tree, &mut at.mtr, at.position.place)?;
            let acquired = system.locks.request_insert(self.owner, target, &|| describe_end(def));
            if let Acquired::Wait(wait) = acquired {
                return Ok(Turn::Over(Step::Lock(wait)));
            }
            successor = Some(target);
        }
        let Some(place) = self.undo_log.place_for(&system.undo, self.buffers.undo.len()) else {
            return Ok(Turn::Again);
        };
        encode_record(&mut self.buffers.record, def, table.id, stored)?;
        let roll_ptr = self.undo_log.roll_ptr(place, true).0;
        self.buffers.record.set_system_fields(def, self.undo_log.trx_id, roll_ptr);
        let size = self.buffers.record.size();
        let fits = match structure {
            Some(planned) => size <= planned,
            None => tree.insert_fits(&at.mtr, &at.position, size),
        };
        if !fits {
            return Ok(Turn::Over(Step::Structure(size)));
        }
        let Some(undo_page) = self.undo_log.latch(&mut at.mtr) else { return Ok(Turn::Again) };
        if let Some(guard) = &mut at.guard {
            guard.reserve(&mut at.mtr)?;
        }
        self.undo_log.append(&mut at.mtr, undo_page, &self.buffers.undo, true);
        let record = &mut self.buffers.record;
        let place = match &mut at.guard {
            Some(guard) => {
                tree.insert_with_split(&mut at.mtr, guard, &at.position, record, 0)?;
                None
            }
            None => Some(done(tree.insert_here(&mut at.mtr, &at.position, record, 0)?)),
        };
        if let Some(successor) = successor {
            let inserted = system.locks.target(def, key_of(table, stored).iter().copied());
            system.locks.inherit_gap(successor, inserted);
        }
        self.commit_at(at.mtr, place);
        self.undo_log.row_changes.note(table.id, UndoKind::Insert);
        Ok(Turn::Over(Step::Done))
    }

    /// Inserts a row where there is a record of its key: a delete-marked one comes back to life.
    fn insert_over(
        &mut self,
        at: Located<'_, '_>,
        table: &Table,
        stored: &[FieldRef<'_>],
        structure: Option<usize>,
        on_duplicate: OnDuplicate,
    ) -> Result<Turn, Interrupt> {
        let Some(record) = table.clustered.record_at(&at.mtr, at.position.place) else {
            return Ok(Turn::Over(Step::NotFound));
        };
        let deleted = record.is_deleted();
        let acquired = if deleted {
            self.lock_row_for_change(record)
        } else {
            let exclusive = on_duplicate == OnDuplicate::Change;
            self.lock_row(record, LockMode::new(exclusive, Extent::Record))
        };
        if let Acquired::Wait(wait) = acquired {
            return Ok(Turn::Over(Step::Lock(wait)));
        }
        if !deleted {
            return Ok(Turn::Over(Step::Duplicate));
        }
        self.replace_and_commit(at, table, NewRow::Revived(stored), structure)
    }

    /// Changes fields of a live row, which may have been seen a moment ago.
    pub fn update_step(
        &mut self,
        table: &Table,
        key: &[btree::Field<'_>],
        changes: &[NewField<'_>],
        structure: Option<usize>,
        entries: &mut Vec<EntryChange>,
        seen: Option<&SavedPosition>,
    ) -> Result<Step, Interrupt> {
        self.undo_log.pin_page(&self.system.undo)?;
        loop {
            let extra = self.buffers.undo.len() + 256;
            let nearby = Nearby { seen, last: self.buffers.last };
            let at = locate(&self.system.store, &table.clustered, key, structure, extra, nearby)?;
            if let Turn::Over(step) = self.update_at(at, table, changes, structure, entries)? {
                return Ok(step);
            }
        }
    }

    /// Changes fields of the row at a place, if there is one.
    fn update_at(
        &mut self,
        mut at: Located<'_, '_>,
        table: &Table,
        changes: &[NewField<'_>],
        structure: Option<usize>,
        entries: &mut Vec<EntryChange>,
    ) -> Result<Turn, Interrupt> {
        let tree = &*table.clustered;
        let Some(record) = exact_record(tree, &at) else { return Ok(Turn::Over(Step::NotFound)) };
        // A deleted one too: the transaction that deleted it may bring it back.
        if let Acquired::Wait(wait) = self.lock_row_for_change(record) {
            return Ok(Turn::Over(Step::Lock(wait)));
        }
        if record.is_deleted() {
            return Ok(Turn::Over(Step::NotFound));
        }
        if structure.is_none()
            && let Some(patches) = patches(table, record, changes)
        {
            if patches.is_empty() {
                return Ok(Turn::Over(self.unchanged(record)));
            }
            if self.patch(&mut at, table, &patches) {
                self.buffers.last = Some(LastChange::after_commit(at.mtr, &at.position));
                return Ok(Turn::Over(Step::Done));
            }
            drop(at);
            self.undo_log.make_room(&self.system.undo, self.buffers.undo.len())?;
            return Ok(Turn::Again);
        }
        let old: Fields<'_> = record.fields().collect();
        let mut new = old.clone();
        changes.iter().for_each(|change| new[change.position] = change.stored);
        if new == old {
            return Ok(Turn::Over(self.unchanged(record)));
        }
        if record_size(tree.def(), &new) > tree.max_record_size() {
            return self.too_large(table, record, &new).map(Turn::Over);
        }
        entries.clear();
        changed_entries(table, &old, &new, changes, entries)?;
        drop((old, new));
        self.replace_and_commit(at, table, NewRow::Changes(changes), structure)
    }

    /// Replaces the row at a place and commits, or makes room for the undo record, to try again.
    fn replace_and_commit(
        &mut self,
        mut at: Located<'_, '_>,
        table: &Table,
        new: NewRow<'_>,
        structure: Option<usize>,
    ) -> Result<Turn, Interrupt> {
        match self.replace(&mut at, table, new, structure)? {
            Replaced::Done(place) => {
                self.commit_at(at.mtr, place);
                if matches!(new, NewRow::Revived(_)) {
                    self.undo_log.row_changes.note(table.id, UndoKind::Revive);
                }
                Ok(Turn::Over(Step::Done))
            }
            Replaced::Structure(size) => Ok(Turn::Over(Step::Structure(size))),
            Replaced::Room => {
                drop(at);
                self.undo_log.make_room(&self.system.undo, self.buffers.undo.len())?;
                Ok(Turn::Again)
            }
        }
    }

    /// Delete-marks a live row, which may have been seen a moment ago.
    pub fn delete_step(
        &mut self,
        table: &Table,
        key: &[btree::Field<'_>],
        entries: &mut Vec<EntryChange>,
        seen: Option<&SavedPosition>,
    ) -> Result<Step, Interrupt> {
        let tree = &*table.clustered;
        let system = self.system;
        self.undo_log.pin_page(&system.undo)?;
        loop {
            let nearby = Nearby { seen, last: self.buffers.last };
            let mut at = locate(&system.store, tree, key, None, 0, nearby)?;
            let Some(record) = exact_record(tree, &at) else { return Ok(Step::NotFound) };
            // A deleted one too: the transaction that deleted it may bring it back.
            if let Acquired::Wait(wait) = self.lock_row_for_change(record) {
                return Ok(Step::Lock(wait));
            }
            if record.is_deleted() {
                return Ok(Step::NotFound);
            }
            let fields: Fields<'_> = record.fields().collect();
            entries.clear();
            for (index, secondary) in table.secondaries.iter().enumerate() {
                let mut entry = OwnedKey::new();
                build_entry(table, secondary, |position| fields[position], &mut entry)?;
                entries.push(EntryChange { index, old: Some(entry), new: None });
            }
            let mut undo = UndoBuilder::new(&mut self.buffers.undo, UndoKind::DeleteMark, table.id);
            undo.old_version(false, record.trx_id(), record.roll_ptr());
            undo.key(fields[..table.key_fields].iter().copied());
            undo.fields([].iter().copied());
            undo.fields(ordering_fields(table, &fields, |_| false));
            undo.finish();
            drop(fields);
            let Some(place) = self.undo_log.place_for(&system.undo, self.buffers.undo.len()) else {
                drop(at);
                self.undo_log.make_room(&system.undo, self.buffers.undo.len())?;
                continue;
            };
            let Some(undo_page) = self.undo_log.latch(&mut at.mtr) else { continue };
            self.undo_log.append(&mut at.mtr, undo_page, &self.buffers.undo, false);
            let roll_ptr = self.undo_log.roll_ptr(place, false).0;
            tree.set_delete_mark(&mut at.mtr, at.position.place, true, 0);
            tree.set_system_fields(&mut at.mtr, at.position.place, self.undo_log.trx_id, roll_ptr);
            self.buffers.last = Some(LastChange::after_commit(at.mtr, &at.position));
            self.undo_log.row_changes.note(table.id, UndoKind::DeleteMark);
            return Ok(Step::Done);
        }
    }

    /// The row has the new values already: it is locked, as no change will be the lock.
    fn unchanged(&self, record: RecordRef<'_>) -> Step {
        match self.lock_row(record, LockMode::X_RECORD) {
            Acquired::Wait(wait) => Step::Lock(wait),
            _ => Step::Unchanged,
        }
    }

    /// Writes an undo record for, and makes, a change that leaves every field of the record at `at` where it
    /// is. False, with nothing changed, when the undo record (in the buffer) needs room first.
    fn patch(&mut self, at: &mut Located<'_, '_>, table: &Table, patches: &[Patch<'_>]) -> bool {
        let tree = &*table.clustered;
        let def = tree.def();
        let place = at.position.place;
        let record = RecordRef::new(at.mtr.page(place.page), place.offset, def);
        let mut undo = UndoBuilder::new(&mut self.buffers.undo, UndoKind::Update, table.id);
        undo.old_version(false, record.trx_id(), record.roll_ptr());
        undo.key((0..table.key_fields).map(|position| record.field(position)));
        let page = at.mtr.page(place.page);
        undo.fields(patches.iter().map(|patch| {
            let start = place.offset + patch.at;
            (patch.position as u16, FieldRef::Inline(&page[start..start + patch.new.len()]))
        }));
        undo.fields([].iter().copied());
        undo.finish();
        let Some(undo_place) = self.undo_log.place_for(&self.system.undo, self.buffers.undo.len()) else {
            return false;
        };
        self.buffers.record.copy_record(record);
        patches.iter().for_each(|patch| self.buffers.record.overwrite(patch.at, patch.new));
        let roll_ptr = self.undo_log.roll_ptr(undo_place, false).0;
        self.buffers.record.set_system_fields(def, self.undo_log.trx_id, roll_ptr);
        let Some(undo_page) = self.undo_log.latch(&mut at.mtr) else { return false };
        self.undo_log.append(&mut at.mtr, undo_page, &self.buffers.undo, false);
        tree.overwrite_here(&mut at.mtr, place, &self.buffers.record);
        true
    }

    /// Writes an undo record for, and makes, the change of the record at `at` to `new`. Everything is
    /// checked; locks are held.
    fn replace(
        &mut self,
        at: &mut Located<'_, '_>,
        table: &Table,
        new_row: NewRow<'_>,
        structure: Option<usize>,
    ) -> Result<Replaced, Interrupt> {
        let tree = &*table.clustered;
        let Some(record) = tree.record_at(&at.mtr, at.position.place) else {
            return Err(crate::Error::Internal("the record to replace has gone".to_owned()).into());
        };
        let old: Fields<'_> = record.fields().collect();
        let (kind, new) = match new_row {
            NewRow::Revived(fields) => (UndoKind::Revive, fields.iter().copied().collect()),
            NewRow::Changes(changes) => {
                let mut new = old.clone();
                changes.iter().for_each(|change| new[change.position] = change.stored);
                (UndoKind::Update, new)
            }
        };
        let system_fields = table.trx_id_field()..table.trx_id_field() + 2;
        let is_changed =
            |position: usize| !system_fields.contains(&position) && old[position] != new[position];
        let reorders = (0..old.len()).any(|position| table.ordering[position] && is_changed(position));
        let mut undo = UndoBuilder::new(&mut self.buffers.undo, kind, table.id);
        undo.old_version(record.is_deleted(), record.trx_id(), record.roll_ptr());
        undo.key(old[..table.key_fields].iter().copied());
        let changed = old.iter().enumerate().filter(|(position, _)| is_changed(*position));
        undo.fields(changed.map(|(position, field)| (position as u16, *field)));
        if reorders && kind == UndoKind::Update {
            undo.fields(ordering_fields(table, &old, is_changed));
        } else {
            undo.fields([].iter().copied());
        }
        undo.finish();
        let Some(place) = self.undo_log.place_for(&self.system.undo, self.buffers.undo.len()) else {
            return Ok(Replaced::Room);
        };
        let def = tree.def();
        encode_record(&mut self.buffers.record, def, table.id, &new)?;
        drop((old, new));
        let roll_ptr = self.undo_log.roll_ptr(place, false).0;
        self.buffers.record.set_system_fields(def, self.undo_log.trx_id, roll_ptr);
        let size = self.buffers.record.size();
        let fits = match structure {
            Some(planned) => size <= planned,
            None => tree.update_fits(&at.mtr, at.position.place, &self.buffers.record),
        };
        if !fits {
            return Ok(Replaced::Structure(size));
        }
        let Some(undo_page) = self.undo_log.latch(&mut at.mtr) else { return Ok(Replaced::Room) };
        if let Some(guard) = &mut at.guard {
            guard.reserve(&mut at.mtr)?;
        }
        self.undo_log.append(&mut at.mtr, undo_page, &self.buffers.undo, false);
        let record = &mut self.buffers.record;
        let place = match &mut at.guard {
            Some(guard) => {
                tree.update_with_split(&mut at.mtr, guard, at.position.place, record, 0)?;
                None
            }
            None => Some(done(tree.update_here(&mut at.mtr, at.position.place, record, 0)?)),
        };
        Ok(Replaced::Done(place))
    }

    /// Commits, and remembers where the row is, if that is known.
    fn commit_at(&mut self, mtr: Mtr<'_>, place: Option<Place>) {
        self.buffers.last = match place {
            Some(place) => Some(LastChange::at(mtr, place)),
            None => {
                mtr.commit();
                None
            }
        };
    }

    /// The new row does not fit: locks the row, so that it stays as it is, and says which fields must go
    /// off-page.
    fn too_large(
        &self,
        table: &Table,
        record: RecordRef<'_>,
        new: &[FieldRef<'_>],
    ) -> Result<Step, Interrupt> {
        let tree = &*table.clustered;
        let plan = plan_external(tree.def(), new, tree.max_record_size())
            .map_err(|error| crate::Error::RowTooLarge { table: table.id, bytes: error.size })?;
        if record.trx_id() != self.undo_log.trx_id
            && let Acquired::Wait(wait) = self.lock_row(record, LockMode::X_RECORD)
        {
            return Ok(Step::Lock(wait));
        }
        let value = |position: usize| new[position].inline().unwrap_or(&[]).to_vec();
        Ok(Step::TooLarge(plan.into_iter().map(|position| (position, value(position))).collect()))
    }
}

/// A field that gets other bytes, as many as it has.
struct Patch<'f> {
    position: usize,
    /// Where the field begins, behind the record's origin.
    at: usize,
    new: &'f [u8],
}

/// Changes that are looked up one by one in the record. Beyond, it is cheaper to take the record apart.
const PATCHES_MAX: usize = 8;

/// The fields that really change, if each can be overwritten where it lies and no index but the clustered one
/// has it.
fn patches<'f>(
    table: &Table,
    record: RecordRef<'_>,
    changes: &[NewField<'f>],
) -> Option<SmallVec<[Patch<'f>; 4]>> {
    let mut patches: SmallVec<[Patch<'f>; 4]> = SmallVec::new();
    // A damaged record is found out where it is taken apart.
    if changes.len() > PATCHES_MAX || record.raw().is_none() {
        return None;
    }
    for (number, change) in changes.iter().enumerate() {
        let position = change.position;
        let again = changes[..number].iter().any(|earlier| earlier.position == position);
        if again || position < table.key_fields || table.ordering[position] {
            return None;
        }
        let (FieldRef::Inline(old), FieldRef::Inline(new)) = (record.field(position), change.stored) else {
            return None;
        };
        if old.len() != new.len() {
            return None;
        }
        if old != new {
            let at = record.field_offset(position) - record.origin();
            patches.push(Patch { position, at, new });
        }
    }
    Some(patches)
}

/// What a record is replaced by.
#[derive(Clone, Copy)]
enum NewRow<'f> {
    /// A new row with the same key.
    Revived(&'f [FieldRef<'f>]),
    /// The old one with some fields changed.
    Changes(&'f [NewField<'f>]),
}

enum Replaced {
    /// The row is here now; `None`: pages were split.
    Done(Option<Place>),
    Structure(usize),
    /// The undo record (in the buffer) needs room first.
    Room,
}

/// Where a record is whose change was known to fit.
fn done(outcome: Outcome) -> Place {
    match outcome {
        Outcome::Done(place) => place,
        Outcome::NeedsStructureChange => unreachable!("a change that fits is made"),
    }
}

fn exact_record<'m>(tree: &'m Tree, at: &'m Located<'_, '_>) -> Option<RecordRef<'m>> {
    tree.record_at(&at.mtr, at.position.place).filter(|_| at.position.exact)
}

/// Fields of secondary indexes outside the key that did not change.
fn ordering_fields<'f>(
    table: &Table,
    fields: &[FieldRef<'f>],
    is_changed: impl Fn(usize) -> bool + Clone,
) -> impl Iterator<Item = (u16, FieldRef<'f>)> + Clone {
    let wanted = move |position: &usize| {
        *position >= table.key_fields && table.ordering[*position] && !is_changed(*position)
    };
    (0..fields.len()).filter(wanted).map(|position| (position as u16, fields[position]))
}

/// The entries that differ between the old and the new row. Values that go off-page are taken from `changes`.
fn changed_entries(
    table: &Table,
    old: &[FieldRef<'_>],
    new: &[FieldRef<'_>],
    changes: &[NewField<'_>],
    entries: &mut Vec<EntryChange>,
) -> Result<(), Interrupt> {
    let whole = |position: usize| {
        let change = changes.iter().rev().find(|change| change.position == position);
        change.map_or(new[position], |change| change.value)
    };
    for (index, secondary) in table.secondaries.iter().enumerate() {
        let touched = secondary.columns.iter().any(|part| {
            let position = table.field_of_column(part.column);
            old[position] != new[position]
        });
        if !touched {
            continue;
        }
        let (mut before, mut after) = (OwnedKey::new(), OwnedKey::new());
        build_entry(table, secondary, |position| old[position], &mut before)?;
        build_entry(table, secondary, whole, &mut after)?;
        if before != after {
            entries.push(EntryChange { index, old: Some(before), new: Some(after) });
        }
    }
    Ok(())
}
