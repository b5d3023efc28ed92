//! Removing rows whose deletion everybody sees.

use btree::{Field, FieldRef, LastChange, OwnedKey, RecordRef, Reference};
use smallvec::SmallVec;

use crate::entry::build_entry;
use crate::error::Error;
use crate::read_view::ReadView;
use crate::retry::retry;
use crate::row::external::{external_references, free_chain_tails};
use crate::row::remove::{is_entry_needed, remove_next_record, remove_record};
use crate::system::System;
use crate::table::Table;
use crate::version::Overlay;

/// A deletion: the transaction and the undo record of a row's last change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deletion {
    pub trx_id: u64,
    pub roll_ptr: u64,
}

impl Deletion {
    fn is_last_change_of(self, record: RecordRef<'_>) -> bool {
        record.is_deleted() && record.trx_id() == self.trx_id && record.roll_ptr() == self.roll_ptr
    }
}

/// Removes a row with its off-page values if this deletion was its last change. Of several rows in the order
/// of their keys each is mostly found shortly behind the `last`.
pub(crate) async fn remove_row(
    system: &System,
    table: &Table,
    key: &[Field<'_>],
    deletion: Deletion,
    last: &mut Option<LastChange>,
) -> Result<(), Error> {
    let is_dead = |record: RecordRef<'_>| deletion.is_last_change_of(record);
    let mut has_chains = false;
    let wanted = |record: RecordRef<'_>| {
        has_chains = is_dead(record) && record.has_external();
        Ok(is_dead(record) && !has_chains)
    };
    remove_next_record(system, &table.clustered, key, wanted, &[], last).await?;
    if !has_chains {
        return Ok(());
    }
    let find = || {
        let found =
            table.clustered.get(key, |record| is_dead(record).then(|| external_references(record)))?;
        Ok(found.flatten())
    };
    let chains: Option<SmallVec<[Reference; 2]>> = retry(find).await?;
    let Some(chains) = chains else { return Ok(()) };
    free_chain_tails(&table.clustered, &chains).await?;
    remove_record(system, &table.clustered, key, |record| Ok(is_dead(record)), &chains).await.map(drop)
}

/// As [`remove_row`], and before it the index entries that nobody needs. For a row that a rollback has made
/// delete-marked again: purge may have passed by while the row was alive, or not. `view` sees the deletion,
/// as every open view does.
pub(crate) async fn remove_row_and_entries(
    system: &System,
    table: &Table,
    key: &[Field<'_>],
    deletion: Deletion,
    view: &ReadView,
) -> Result<(), Error> {
    // What purge does at the same time to the same row would be done twice.
    let _turn = system.purge.take_turn().await;
    for secondary in &table.secondaries {
        let build = || {
            let found = table.clustered.get(key, |record| {
                if !deletion.is_last_change_of(record) {
                    return Ok(None);
                }
                let mut entry = OwnedKey::new();
                build_entry(
                    table,
                    secondary,
                    |position| -> FieldRef<'_> { record.field(position) },
                    &mut entry,
                )?;
                Ok(Some(entry))
            })?;
            found.unwrap_or(Ok(None))
        };
        let Some(entry) = retry(build).await? else { return Ok(()) };
        let fields = entry.fields();
        let mut overlay = Overlay::default();
        let wanted = |record: RecordRef<'_>| {
            let versions = (view, &mut overlay);
            Ok(record.is_deleted() && !is_entry_needed(system, table, secondary, &fields, false, versions)?)
        };
        remove_record(system, &secondary.tree, &fields, wanted, &[]).await?;
    }
    remove_row(system, table, key, deletion, &mut None).await
}
