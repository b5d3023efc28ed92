//! Removing rows whose deletion everybody sees.

use btree::{Field, FieldRef, OwnedKey, RecordRef, Reference};
use smallvec::SmallVec;

use crate::entry::build_entry;
use crate::error::Error;
use crate::read_view::ReadView;
use crate::retry::retry;
use crate::row::external::{external_references, free_chain_tails};
use crate::row::remove::{LastRemoval, is_entry_needed, remove_next_record, remove_record};
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
    last: &mut LastRemoval,
) -> Result<(), Error> {
    let is_dead = |record: RecordRef<'_>| deletion.is_last_change_of(record);
    let mut chains: SmallVec<[Reference; 2]> = SmallVec::new();
    let without_chains = |record: RecordRef<'_>| {
        chains = if is_dead(record) { external_references(record) } else { SmallVec::new() };
        Ok(is_dead(record) && chains.is_empty())
    };
    remove_next_record(system, &table.clustered, key, without_chains, &[], last).await?;
    if chains.is_empty() {
        return Ok(());
    }
    free_chain_tails(&table.clustered, &chains).await?;
    let is_dead = |record: RecordRef<'_>| Ok(is_dead(record));
    remove_next_record(system, &table.clustered, key, is_dead, &chains, last).await.map(drop)
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
    remove_row(system, table, key, deletion, &mut LastRemoval::default()).await
}
