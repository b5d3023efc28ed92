//! What is done for one undo record. Whether a version that somebody may see still has an entry is found out
//! in `row/remove.rs` (`is_entry_needed`).
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
use crate::entry::build_entry;
use crate::error::Error;
use crate::remove_deleted_row::{Deletion, remove_row};
use crate::retry::retry;
use crate::roll_pointer::RollPtr;
use crate::row::external::free_noted_chain;
use crate::row::remove::{LastRemoval, is_entry_needed, remove_record};
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
    /// Where the last row was removed. The next one is mostly behind it: lanes are in the order of the keys.
    pub last: LastRemoval,
}

impl Worker<'_> {
    pub async fn purge_record(
        &mut self,
        log: &CommittedLog,
        place: Place,
        bytes: &[u8],
    ) -> Result<(), Error> {
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
        &mut self,
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
            let deletion = Deletion { trx_id, roll_ptr };
            return remove_row(self.system, table, &key, deletion, &mut self.last).await;
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

/// Whether an old version has something that purge may have to remove: an entry that the next version does
/// not have, the deleted row itself, an off-page value that was replaced.
pub(super) fn leaves_something(table: &Table, undo: &UndoRecord<'_>) -> bool {
    let is_external = |(_, field): &(u16, FieldRef<'_>)| matches!(field, FieldRef::External { .. });
    let update = undo.kind == UndoKind::Update;
    undo.kind == UndoKind::DeleteMark
        || undo.changed.iter().any(is_external)
        || update && table.secondaries.iter().any(|secondary| touches(table, secondary, undo))
}

/// Whether an update changed a field of the index.
fn touches(table: &Table, secondary: &Secondary, undo: &UndoRecord<'_>) -> bool {
    secondary.columns.iter().any(|part| {
        let position = table.field_of_column(part.column) as u16;
        undo.changed.iter().any(|(changed, _)| *changed == position)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use btree::{Comparison, FieldDef, IndexDef, Tree};
    use pagestore::fsp;

    use super::*;
    use crate::table::{ClusteredField, SecondaryField};
    use crate::undo::record::UndoBuilder;
    use crate::undo::tests::store;

    const SPACE: u32 = 5;
    const REFERENCE: [u8; 20] = [7; 20];

    /// `CREATE TABLE t (id INT PRIMARY KEY, k INT, v BLOB, KEY (k))`
    async fn table(store: &Arc<pagestore::PageStore>) -> Table {
        store.create_space(SPACE, Path::new("/data/t.ibd"), fsp::INITIAL_PAGES).unwrap();
        let [id, k] = ["id", "k"].map(|name| FieldDef::fixed(name, 4));
        let [trx_id, roll_ptr] =
            [("DB_TRX_ID", 6), ("DB_ROLL_PTR", 7)].map(|(name, size)| FieldDef::fixed(name, size));
        let v = FieldDef::variable("v", 65535, Comparison::Binary).nullable().blob();
        let fields = vec![id.clone(), trx_id, roll_ptr, k.clone(), v];
        let clustered = Arc::new(IndexDef::new(100, "PRIMARY", true, true, fields, 1, 1));
        let secondary = Arc::new(IndexDef::new(101, "k", false, false, vec![k, id], 2, 2));
        let trees = retry(|| {
            let mut mtr = store.mtr()?;
            fsp::create_space_pages(&mut mtr, SPACE, fsp::INITIAL_PAGES)?;
            let clustered = Tree::create(&mut mtr, store, SPACE, clustered.clone())?;
            let secondary = Tree::create(&mut mtr, store, SPACE, secondary.clone())?;
            mtr.commit();
            Ok((clustered, secondary))
        });
        let (clustered, secondary) = trees.await.unwrap();
        use ClusteredField::{Column, RollPtr, TrxId};
        let fields = vec![Column(0), TrxId, RollPtr, Column(1), Column(2)];
        let part = |column| SecondaryField { column, prefix_bytes: None, prefix_characters: None };
        let (tree, columns) = (Arc::new(secondary), vec![part(1), part(0)]);
        let secondary = Secondary { tree, columns, user_fields: 1, unique: false, born: 0 };
        Table::new(7, Arc::new(clustered), fields, vec![secondary], 3)
    }

    #[test]
    fn what_leaves_nothing_is_not_worked_on() {
        let (env, store) = store();
        let table = env.run_until_complete(table(&store));
        let leaves = |kind, changed: &[(u16, FieldRef<'_>)]| {
            let mut bytes = Vec::new();
            let mut undo = UndoBuilder::new(&mut bytes, kind, table.id);
            undo.old_version(false, 1, 2);
            undo.key([FieldRef::Inline(&[0, 0, 0, 1])].into_iter());
            undo.fields(changed.iter().copied());
            undo.fields([].iter().copied());
            undo.finish();
            leaves_something(&table, &UndoRecord::parse(&bytes).unwrap())
        };
        let k = (3, FieldRef::Inline(&[0, 0, 0, 9]));
        let v = (4, FieldRef::Inline(b"short"));
        let long = (4, FieldRef::External { prefix: b"", reference: &REFERENCE });
        assert!(!leaves(UndoKind::Update, &[v]), "no index has the column");
        assert!(leaves(UndoKind::Update, &[v, k]), "an entry of the index");
        assert!(leaves(UndoKind::Update, &[long]), "a value that was replaced");
        assert!(leaves(UndoKind::DeleteMark, &[]), "the row and its entries");
        assert!(!leaves(UndoKind::Revive, &[k, v]), "its deletion removes what there was");
        assert!(leaves(UndoKind::Revive, &[long]));
    }
}
