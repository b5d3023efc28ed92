//! Removing index records, marking them and bringing them back, without regard to locks, and whether any
//! version still needs an entry: what rollback and purge share.

use btree::{
    ChangePosition, Field, FieldRef, KeyFields, LastChange, Outcome, OwnedKey, RecordBuffer, RecordRef,
    Reference, StructureChange, Tree,
};
use pagestore::{Mtr, PageId};
use smallvec::SmallVec;

use crate::entry::build_entry;
use crate::error::{Error, Interrupt};
use crate::lock::LockTarget;
use crate::read_view::ReadView;
use crate::retry::retry;
use crate::system::System;
use crate::table::{Secondary, Table};
use crate::version::{Overlay, Version, walk_back};

/// How a step on one index ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcomes {
    Done,
    /// There was nothing to do.
    Skipped,
    /// The pages must be split or merged: once more, with the structure lock.
    Structure,
}

/// The lock target of what follows `place`: the next record, or the end of the index.
pub(crate) fn successor_target(
    system: &System,
    tree: &Tree,
    mtr: &mut Mtr<'_>,
    place: btree::Place,
) -> Result<LockTarget, Interrupt> {
    let successor = tree.successor(mtr, place)?;
    let record = successor.and_then(|place| tree.record_at(mtr, place));
    Ok(record.map_or(LockTarget::supremum(tree.def().id), |record| system.locks.target_of(record)))
}

/// Where a record was removed, or was found and stays. Of several that are removed in the order of their
/// index the next one mostly lies behind it on the same page, and is found without a descent.
#[derive(Debug, Default)]
pub(crate) struct LastRemoval {
    /// `None` where it is not known, or not expected to be of use.
    at: Option<LastChange>,
    page: Option<PageId>,
}

impl LastRemoval {
    /// Where the record with this key is. A page on which only one record was sought is not asked for the
    /// next one: where records are far apart, that would latch a page for nothing each time.
    fn seek(
        &mut self,
        tree: &Tree,
        mtr: &mut Mtr<'_>,
        key: &[Field<'_>],
    ) -> Result<ChangePosition, Interrupt> {
        let position = match self.at.take().and_then(|last| tree.seek_behind(mtr, key, &last)) {
            Some(position) => position,
            None => tree.seek_for_change(mtr, key)?,
        };
        let page = Some(mtr.page_id(position.place.page));
        if self.page == page {
            let is_record = tree.record_at(mtr, position.place).is_some();
            self.at = is_record.then(|| LastChange::unchanged(mtr, position.place));
        }
        self.page = page;
        Ok(position)
    }

    /// The record at `place` is removed where it lies. Commits `mtr`.
    fn remove(&mut self, tree: &Tree, mut mtr: Mtr<'_>, place: btree::Place) -> Result<(), Interrupt> {
        let next = tree.next_on_page(&mtr, place);
        let outcome = tree.remove_here(&mut mtr, place)?;
        let Outcome::Done(before) = outcome else { unreachable!("a removal that fits is made") };
        // What is removed from its beginning on has nothing before the next record.
        let beside = if tree.record_at(&mtr, before).is_some() { Some(before) } else { next };
        match beside.filter(|_| self.at.is_some()) {
            Some(beside) => self.at = Some(LastChange::at(mtr, beside)),
            None => {
                self.at = None;
                mtr.commit();
            }
        }
        Ok(())
    }
}

/// Removes the record with this key if `wanted` agrees when it sees it, and with it the first pages of its
/// off-page values.
pub(crate) async fn remove_record(
    system: &System,
    tree: &Tree,
    key: &[Field<'_>],
    wanted: impl FnMut(RecordRef<'_>) -> Result<bool, Interrupt>,
    chains: &[Reference],
) -> Result<bool, Error> {
    remove_next_record(system, tree, key, wanted, chains, &mut LastRemoval::default()).await
}

/// As [`remove_record`], of several in the order of the index.
pub(crate) async fn remove_next_record(
    system: &System,
    tree: &Tree,
    key: &[Field<'_>],
    mut wanted: impl FnMut(RecordRef<'_>) -> Result<bool, Interrupt>,
    chains: &[Reference],
    last: &mut LastRemoval,
) -> Result<bool, Error> {
    let mut structural = false;
    loop {
        match retry(|| remove_step(system, tree, key, &mut wanted, chains, structural, last)).await? {
            Outcomes::Done => return Ok(true),
            Outcomes::Skipped => return Ok(false),
            Outcomes::Structure => structural = true,
        }
    }
}

fn remove_step(
    system: &System,
    tree: &Tree,
    key: &[Field<'_>],
    wanted: &mut dyn FnMut(RecordRef<'_>) -> Result<bool, Interrupt>,
    chains: &[Reference],
    structural: bool,
    last: &mut LastRemoval,
) -> Result<Outcomes, Interrupt> {
    let mut guard = None;
    let mut mtr =
        if structural { system.store.mtr_sized(tree.structure_redo_bytes())? } else { system.store.mtr()? };
    let position = if structural {
        let (position, taken) = tree.seek_for_structure_change(&mut mtr, key, StructureChange::Remove)?;
        guard = Some(taken);
        position
    } else {
        last.seek(tree, &mut mtr, key)?
    };
    let Some(record) = tree.record_at(&mtr, position.place).filter(|_| position.exact) else {
        return Ok(Outcomes::Skipped);
    };
    if !wanted(record)? {
        return Ok(Outcomes::Skipped);
    }
    let target = system.locks.target_of(record);
    let heir = if system.locks.is_locked(target) {
        Some(successor_target(system, tree, &mut mtr, position.place)?)
    } else {
        None
    };
    if guard.is_none() && !tree.remove_fits(&mtr, position.place) {
        return Ok(Outcomes::Structure);
    }
    for chain in chains {
        tree.prepare_free_chain_head(&mut mtr, *chain)?;
    }
    if let Some(guard) = &mut guard {
        guard.reserve(&mut mtr)?;
    }
    for chain in chains {
        tree.free_chain_head(&mut mtr, *chain)?;
    }
    if let Some(heir) = heir {
        system.locks.bequeath(target, heir);
    }
    match &mut guard {
        Some(guard) => {
            tree.remove_with_merge(&mut mtr, guard, position.place)?;
            mtr.commit();
        }
        None => last.remove(tree, mtr, position.place)?,
    }
    Ok(Outcomes::Done)
}

/// Sets or clears the delete mark of a secondary entry, if it exists.
pub(crate) fn mark_step(
    system: &System,
    tree: &Tree,
    entry: &[Field<'_>],
    deleted: bool,
    trx_id: u64,
) -> Result<bool, Interrupt> {
    let mut mtr = system.store.mtr()?;
    let position = tree.seek_for_change(&mut mtr, entry)?;
    let Some(record) = tree.record_at(&mtr, position.place).filter(|_| position.exact) else {
        return Ok(false);
    };
    if record.is_deleted() != deleted {
        tree.set_delete_mark(&mut mtr, position.place, deleted, trx_id);
    }
    mtr.commit();
    Ok(true)
}

/// Makes an existing entry (one that equals `entry`) live, with exactly these bytes. False: there is none.
pub(crate) async fn write_entry(
    system: &System,
    tree: &Tree,
    entry: &OwnedKey,
    trx_id: u64,
) -> Result<bool, Error> {
    let mut structural = false;
    loop {
        match retry(|| write_entry_step(system, tree, entry, trx_id, structural)).await? {
            Outcomes::Done => return Ok(true),
            Outcomes::Skipped => return Ok(false),
            Outcomes::Structure => structural = true,
        }
    }
}

fn write_entry_step(
    system: &System,
    tree: &Tree,
    entry: &OwnedKey,
    trx_id: u64,
    structural: bool,
) -> Result<Outcomes, Interrupt> {
    let fields = entry.fields();
    let mut buffer = RecordBuffer::new();
    encode_entry(&mut buffer, tree, &fields)?;
    let mut guard = None;
    let mut mtr =
        if structural { system.store.mtr_sized(tree.structure_redo_bytes())? } else { system.store.mtr()? };
    let position = if structural {
        let change = StructureChange::Restore { size: buffer.size() };
        let (position, taken) = tree.seek_for_structure_change(&mut mtr, &fields, change)?;
        guard = Some(taken);
        position
    } else {
        tree.seek_for_change(&mut mtr, &fields)?
    };
    let Some(record) = tree.record_at(&mtr, position.place).filter(|_| position.exact) else {
        return Ok(Outcomes::Skipped);
    };
    let same_bytes = record.fields().map(FieldRef::inline).eq(fields.iter().copied());
    if same_bytes {
        if record.is_deleted() {
            tree.set_delete_mark(&mut mtr, position.place, false, trx_id);
        }
        mtr.commit();
        return Ok(Outcomes::Done);
    }
    match &mut guard {
        None if !tree.update_fits(&mtr, position.place, &buffer) => return Ok(Outcomes::Structure),
        None => {
            let outcome = tree.update_here(&mut mtr, position.place, &mut buffer, trx_id)?;
            assert!(matches!(outcome, Outcome::Done(_)), "an update that fits is made");
        }
        Some(guard) => {
            guard.reserve(&mut mtr)?;
            tree.update_with_split(&mut mtr, guard, position.place, &mut buffer, trx_id)?;
        }
    }
    mtr.commit();
    Ok(Outcomes::Done)
}

/// Encodes a secondary entry.
pub(crate) fn encode_entry(
    buffer: &mut RecordBuffer,
    tree: &Tree,
    fields: &[Field<'_>],
) -> Result<(), Error> {
    let fields: SmallVec<[FieldRef<'_>; 8]> = fields.iter().map(|field| FieldRef::from(*field)).collect();
    let too_large = |bytes| Error::RowTooLarge { table: tree.def().id, bytes };
    buffer.encode(tree.def(), &fields).map_err(|error| too_large(error.size))?;
    // Definitions see to it that entries fit; a directory may have some that were made before they did.
    if buffer.size() > tree.max_record_size() {
        return Err(too_large(buffer.size()));
    }
    Ok(())
}

/// Whether two entries of an index are the same in the order of the index.
pub(crate) fn same_entry(secondary: &Secondary, a: &[Field<'_>], b: &[Field<'_>]) -> bool {
    btree::compare::compare_keys(secondary.tree.def(), a, b).is_eq()
}

/// Whether a version of the row that some view may see has this secondary entry: `view` is one that every
/// open view sees at least as much as. The newest version counts unless `skip_newest`. To be called with the
/// entry's leaf latched, so that nobody can make a new use of it; after a wait with the same overlay.
pub(crate) fn is_entry_needed(
    system: &System,
    table: &Table,
    secondary: &Secondary,
    entry: &[Field<'_>],
    skip_newest: bool,
    (view, overlay): (&ReadView, &mut Overlay),
) -> Result<bool, Interrupt> {
    let key: KeyFields<'_> = secondary.clustered_key(table, entry);
    let mut built = OwnedKey::new();
    let needed = table.clustered.get(&key, |record| -> Result<bool, Interrupt> {
        let mut needed = false;
        walk_back(&system.undo, record, view, overlay, |overlay| {
            let counts = !skip_newest || !overlay.is_newest(record);
            if counts && !overlay.deleted {
                let version = Version { record, overlay: Some(overlay) };
                build_entry(table, secondary, |position| version.field(position), &mut built)?;
                needed = same_entry(secondary, &built.fields(), entry);
            }
            Ok(needed || counts && view.sees(overlay.trx_id))
        })?;
        Ok(needed)
    })?;
    needed.unwrap_or(Ok(false))
}
