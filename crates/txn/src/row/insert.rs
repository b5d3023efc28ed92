//! Insert.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use btree::external::plan_external;
use btree::{Field, FieldRef, OwnedKey, Reference, Seek};

use super::clustered::Fields;
use super::external::store_external;
use super::secondary::change_entries;
use super::unique::{duplicate, take_turns};
use super::write::{EntryChange, Step, key_of, repeat, retry_change};
use crate::entry::build_entry;
use crate::error::Error;
use crate::retry::retry;
use crate::system::Counters;
use crate::table::{ClusteredField, Table};
use crate::transaction::Transaction;

/// What the caller will do with a row that has the new row's key already; it decides how that row is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDuplicate {
    /// Leave it: it is locked S.
    #[default]
    Refuse,
    /// Change or replace it: it is locked X at once. With S first, all who waited for the row would get it
    /// together, and each would then wait for X behind the others.
    Change,
}

/// Inserts a row given by table column.
///
/// # Errors
/// [`Error::DuplicateKey`], those of row locks, [`Error::RowTooLarge`]; nothing of the row is left then.
/// Storage errors.
pub async fn insert(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    row: &[Field<'_>],
) -> Result<(), Error> {
    insert_with(transaction, table, row, OnDuplicate::Refuse).await
}

/// As [`insert`], and says what will be done if it fails with [`Error::DuplicateKey`].
///
/// # Errors
/// As [`insert`].
pub async fn insert_with(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    row: &[Field<'_>],
    on_duplicate: OnDuplicate,
) -> Result<(), Error> {
    let mark = transaction.begin_change(table).await?;
    let result = insert_row(transaction, table, row, on_duplicate).await;
    transaction.end_change(mark, result).await?;
    Counters::add(&transaction.inner().counters.rows_inserted, 1);
    Ok(())
}

pub(super) async fn insert_row(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    row: &[Field<'_>],
    on_duplicate: OnDuplicate,
) -> Result<(), Error> {
    let row_id = if table.has_row_id() { next_row_id(table).await? } else { [0; 6] };
    let values: Fields<'_> = table
        .clustered_columns
        .iter()
        .map(|field| match field {
            ClusteredField::Column(column) => FieldRef::from(row[usize::from(*column)]),
            ClusteredField::RowId => FieldRef::Inline(&row_id),
            ClusteredField::TrxId => FieldRef::Inline(&[0; 6]),
            ClusteredField::RollPtr => FieldRef::Inline(&[0; 7]),
        })
        .collect();
    if on_duplicate == OnDuplicate::Change {
        take_turns(transaction, table, &values).await?;
    }
    let tree = &*table.clustered;
    let plan = plan_external(tree.def(), &values, tree.max_record_size())
        .map_err(|error| Error::RowTooLarge { table: table.id, bytes: error.size })?;
    let mut references: Vec<Reference> = Vec::new();
    for position in &plan {
        let value = values[*position].inline().unwrap_or(&[]);
        references.push(store_external(transaction, table, value).await?);
    }
    let bytes: Vec<[u8; 20]> = references.iter().map(|reference| reference.to_bytes()).collect();
    let mut stored: Fields<'_> = values.iter().copied().collect();
    for (position, reference) in plan.iter().zip(&bytes) {
        stored[*position] = FieldRef::External { prefix: &[], reference };
    }
    let step =
        repeat(transaction, |writer, structure| writer.insert_step(table, &stored, structure, on_duplicate))
            .await?;
    match step {
        Step::Done => {}
        Step::Duplicate => return Err(duplicate(tree.def(), &key_of(table, &values))),
        _ => return Err(Error::Internal("a row could not be placed".to_owned())),
    }
    let mut entries = Vec::with_capacity(table.secondaries.len());
    for (index, secondary) in table.secondaries.iter().enumerate() {
        let mut entry = OwnedKey::new();
        retry_change(transaction, |_| build_entry(table, secondary, |position| values[position], &mut entry))
            .await?;
        entries.push(EntryChange { index, old: None, new: Some(entry) });
    }
    change_entries(transaction, table, &entries, on_duplicate).await
}

/// Draws a hidden row id: one above the largest in the tree when the table is first used, then counting.
async fn next_row_id(table: &Table) -> Result<[u8; 6], Error> {
    if table.next_row_id.load(Ordering::Relaxed) == 0 {
        let largest = retry(|| {
            let cursor = table.clustered.seek(&[], Seek::Last)?;
            let bytes =
                if cursor.is_valid() { cursor.record().field(0).inline().unwrap_or(&[]) } else { &[] };
            Ok(bytes.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte)))
        })
        .await?;
        let _ = table.next_row_id.compare_exchange(0, largest + 1, Ordering::Relaxed, Ordering::Relaxed);
    }
    let id = table.next_row_id.fetch_add(1, Ordering::Relaxed);
    let mut bytes = [0; 6];
    bytes.copy_from_slice(&id.to_be_bytes()[2..]);
    Ok(bytes)
}
