//! Entries of secondary indexes, kept in step with a changed row.
//!
//! The row has been changed and is locked. An old entry is only delete-marked: older versions may still need
//! it, purge decides. A new entry revives an equal delete-marked one where there is one.
//!
//! A unique key is looked for before its entry goes in: `unique.rs`.

use btree::{FieldRef, Outcome, OwnedKey, StructureChange};

use super::insert::OnDuplicate;
use super::remove::{encode_entry, same_entry, successor_target};
use super::unique::insert_unique;
use super::write::{EntryChange, Step, Writer, describe_end, repeat};
use crate::error::{Error, Interrupt};
use crate::lock::Acquired;
use crate::table::{Secondary, Table};
use crate::transaction::Transaction;

/// Brings the entries of a changed row up to date.
pub(super) async fn change_entries(
    transaction: &mut Transaction,
    table: &Table,
    entries: &[EntryChange],
    on_duplicate: OnDuplicate,
) -> Result<(), Error> {
    for entry in entries {
        let secondary = &table.secondaries[entry.index];
        let same = match (&entry.old, &entry.new) {
            (Some(old), Some(new)) => same_entry(secondary, &old.fields(), &new.fields()),
            _ => false,
        };
        // An entry that changes to one that compares equal is rewritten in place.
        if let (Some(old), false) = (&entry.old, same) {
            repeat(transaction, |writer, _| writer.mark_entry_step(secondary, old)).await?;
        }
        if let Some(new) = &entry.new {
            let key_changed =
                !same && !entry.old.as_ref().is_some_and(|old| same_user_key(secondary, old, new));
            let check = key_changed.then_some(on_duplicate);
            insert_entry(transaction, table, secondary, new, check).await?;
        }
    }
    Ok(())
}

fn same_user_key(secondary: &Secondary, a: &OwnedKey, b: &OwnedKey) -> bool {
    let (a, b) = (a.fields(), b.fields());
    let count = secondary.user_fields;
    btree::compare::compare_keys(secondary.tree.def(), &a[..count], &b[..count]).is_eq()
}

/// `check`: the key is new to the row, so a unique index must not have it yet.
async fn insert_entry(
    transaction: &mut Transaction,
    table: &Table,
    secondary: &Secondary,
    entry: &OwnedKey,
    check: Option<OnDuplicate>,
) -> Result<(), Error> {
    let fields = entry.fields();
    let key = &fields[..secondary.user_fields];
    let unique = secondary.unique && key.iter().all(Option::is_some);
    let Some(on_duplicate) = check.filter(|_| unique) else {
        return repeat(transaction, |writer, structure| {
            writer.insert_entry_step(secondary, entry, structure)
        })
        .await
        .map(drop);
    };
    insert_unique(transaction, table, secondary, entry, on_duplicate).await
}

impl Writer<'_> {
    /// Delete-marks the entry of a version that has been replaced.
    fn mark_entry_step(&mut self, secondary: &Secondary, entry: &OwnedKey) -> Result<Step, Interrupt> {
        let tree = &*secondary.tree;
        let mut mtr = self.system.store.mtr()?;
        let position = tree.seek_for_change(&mut mtr, &entry.fields())?;
        let Some(record) = tree.record_at(&mtr, position.place).filter(|_| position.exact) else {
            let index = &tree.def().name;
            tracing::error!(%index, "an index entry to delete is missing; CHECK TABLE tells more");
            return Ok(Step::NotFound);
        };
        let target = self.system.locks.target_of(record);
        if let Acquired::Wait(wait) = self.lock_entry_for_change(record, target) {
            return Ok(Step::Lock(wait));
        }
        tree.set_delete_mark(&mut mtr, position.place, true, self.undo_log.trx_id);
        mtr.commit();
        Ok(Step::Done)
    }

    /// Puts an entry in, or brings an equal one back to life.
    pub(super) fn insert_entry_step(
        &mut self,
        secondary: &Secondary,
        entry: &OwnedKey,
        structure: Option<usize>,
    ) -> Result<Step, Interrupt> {
        let tree = &*secondary.tree;
        let fields = entry.fields();
        encode_entry(&mut self.buffers.record, tree, &fields)?;
        let size = self.buffers.record.size();
        let mut guard = None;
        let system = self.system.clone();
        let (mut mtr, position) = match structure {
            None => {
                let mut mtr = system.store.mtr()?;
                let position = tree.seek_for_change(&mut mtr, &fields)?;
                (mtr, position)
            }
            Some(_) => {
                let mut mtr = system.store.mtr_sized(tree.structure_redo_bytes())?;
                let change = StructureChange::Insert { size };
                let (position, taken) = tree.seek_for_structure_change(&mut mtr, &fields, change)?;
                guard = Some(taken);
                (mtr, position)
            }
        };
        let trx_id = self.undo_log.trx_id;
        let place = position.place;
        if position.exact {
            let Some(record) = tree.record_at(&mtr, place) else { return Ok(Step::NotFound) };
            let target = system.locks.target_of(record);
            if let Acquired::Wait(wait) = self.lock_entry_for_change(record, target) {
                return Ok(Step::Lock(wait));
            }
            if record.fields().map(FieldRef::inline).eq(fields.iter().copied()) {
                tree.set_delete_mark(&mut mtr, place, false, trx_id);
                mtr.commit();
                return Ok(Step::Done);
            }
            if guard.is_none() && !tree.update_fits(&mtr, place, &self.buffers.record) {
                return Ok(Step::Structure(size));
            }
            match &mut guard {
                Some(guard) => {
                    guard.reserve(&mut mtr)?;
                    tree.update_with_split(&mut mtr, guard, place, &mut self.buffers.record, trx_id)?;
                }
                None => {
                    let outcome = tree.update_here(&mut mtr, place, &mut self.buffers.record, trx_id)?;
                    assert!(matches!(outcome, Outcome::Done(_)), "an update that fits is made");
                }
            }
            mtr.commit();
            return Ok(Step::Done);
        }
        let mut successor = None;
        if system.locks.has_gap_locks(tree.def().id) {
            let target = successor_target(&system, tree, &mut mtr, place)?;
            let acquired = system.locks.request_insert(self.owner, target, &|| describe_end(tree.def()));
            if let Acquired::Wait(wait) = acquired {
                return Ok(Step::Lock(wait));
            }
            successor = Some(target);
        }
        match &mut guard {
            None if !tree.insert_fits(&mtr, &position, size) => return Ok(Step::Structure(size)),
            None => {
                let outcome = tree.insert_here(&mut mtr, &position, &mut self.buffers.record, trx_id)?;
                assert!(matches!(outcome, Outcome::Done(_)), "an insertion that fits is made");
            }
            Some(guard) => {
                guard.reserve(&mut mtr)?;
                tree.insert_with_split(&mut mtr, guard, &position, &mut self.buffers.record, trx_id)?;
            }
        }
        if let Some(successor) = successor {
            let inserted = system.locks.target(tree.def(), fields.iter().copied());
            system.locks.inherit_gap(successor, inserted);
        }
        mtr.commit();
        Ok(Step::Done)
    }
}
