//! What is done for one undo record.
//!
//! **Off-page values that are gone.** The entry of an old version is made of the undo record. When the index
//! has a prefix of an off-page column, its bytes are in a chain of pages, and that may have been freed: by
//! the same record or a later one of the same row, purged before a crash that undid the progress, but not
//! what was done. Entries go before the values they are made of, and the records of a row in order; the redo
//! log keeps that order. So a chain that is gone says that the entry was removed, and there is nothing left
//! to do. Its pages may belong to others by now: then they are no BLOB pages, or bytes of another value make
//! an entry which is removed only if it is delete-marked and no version of this row has it, which is right
//! for any entry.

use btree::{FieldRef, KeyFields, OwnedKey, RecordRef};

use super::is_damage;
use crate::delete_marked_row::{Deletion, remove_row};
use crate::entry::build_entry;
use crate::error::Error;
use crate::retry::retry;
use crate::roll_pointer::RollPtr;
use crate::row::external::free_noted_chain;
use crate::row::remove::{is_entry_needed, remove_record};
use crate::system::System;
use crate::table::{Secondary, Table, TableSource};
use crate::transaction_ids::PurgeView;
use crate::undo::log::CommittedLog;
use crate::undo::tablespace::corrupt;
use crate::undo::{Place, UndoKind, UndoRecord};
use crate::version::Overlay;

pub(super) struct Worker<'w> {
    pub system: &'w System,
    pub tables: &'w dyn TableSource,
    pub snapshot: &'w PurgeView,
}

impl Worker<'_> {
    pub async fn purge_record(&self, log: &CommittedLog, place: Place, bytes: &[u8]) -> Result<(), Error> {
        let Some(undo) = UndoRecord::parse(bytes) else {
            return Err(corrupt(place.page, "an undo record cannot be read"));
        };
        if !undo.kind.has_old_version() {
            return Ok(());
        }
        let Some(table) = self.tables.table(undo.table) else { return Ok(()) };
        let roll_ptr = RollPtr::new(false, log.slot, place.page, place.offset).0;
        match self.purge_change(&table, &undo, log.trx_id, roll_ptr, place, bytes).await {
            // Dropped meanwhile.
            Err(Error::Store(pagestore::Error::NoSuchSpace(_))) => Ok(()),
            result => result,
        }
    }

    async fn purge_change(
        &self,
        table: &Table,
        undo: &UndoRecord<'_>,
        trx_id: u64,
        roll_ptr: u64,
        place: Place,
        bytes: &[u8],
    ) -> Result<(), Error> {
        if undo.kind != UndoKind::Revive {
            for secondary in &table.secondaries {
                if undo.kind == UndoKind::DeleteMark || touches(table, secondary, undo) {
                    self.purge_entry(table, secondary, undo).await?;
                }
            }
        }
        if undo.kind == UndoKind::DeleteMark {
            let key: KeyFields<'_> = undo.key.iter().map(|field| field.inline()).collect();
            return remove_row(self.system, table, &key, Deletion { trx_id, roll_ptr }).await;
        }
        for (_, field) in &undo.changed {
            if let FieldRef::External { reference, .. } = field {
                free_noted_chain(self.system, &table.clustered, place, bytes, reference).await?;
            }
        }
        Ok(())
    }

    /// Removes the entry of the old version, if no version in sight has it.
    async fn purge_entry(
        &self,
        table: &Table,
        secondary: &Secondary,
        undo: &UndoRecord<'_>,
    ) -> Result<(), Error> {
        let known = |part: &crate::SecondaryField| {
            undo.old_field(table.field_of_column(part.column) as u16).is_some()
        };
        // An index that is younger than the undo record never had this entry.
        if !secondary.columns.iter().all(known) {
            return Ok(());
        }
        let mut entry = OwnedKey::new();
        let field = |position: usize| undo.old_field(position as u16).unwrap_or(FieldRef::Null);
        let built = retry(|| build_entry(table, secondary, field, &mut entry)).await;
        let is_external = |part: &crate::SecondaryField| {
            matches!(field(table.field_of_column(part.column)), FieldRef::External { .. })
        };
        match built {
            // See the module: the value has been freed, and the entry was removed before it.
            Err(error) if is_damage(&error) && secondary.columns.iter().any(is_external) => return Ok(()),
            built => built?,
        }
        let fields = entry.fields();
        let mut overlay = Overlay::default();
        let wanted = |record: RecordRef<'_>| {
            let versions = (&self.snapshot.view, &mut overlay);
            Ok(record.is_deleted()
                && !is_entry_needed(self.system, table, secondary, &fields, false, versions)?)
        };
        remove_record(self.system, &secondary.tree, &fields, wanted, &[]).await.map(drop)
    }
}

/// Whether an update changed a field of the index.
fn touches(table: &Table, secondary: &Secondary, undo: &UndoRecord<'_>) -> bool {
    secondary.columns.iter().any(|part| {
        let position = table.field_of_column(part.column) as u16;
        undo.changed.iter().any(|(changed, _)| *changed == position)
    })
}
