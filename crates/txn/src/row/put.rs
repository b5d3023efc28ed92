//! Put: update or insert, with one search for the row's place.

use std::sync::Arc;

use btree::external::plan_external;
use btree::{Field, FieldRef, OwnedKey};
use smallvec::SmallVec;

use super::clustered::{Fields, NewField, RowToPut};
use super::insert::OnDuplicate;
use super::secondary::change_entries;
use super::write::{EntryChange, Step, repeat, retry_change};
use crate::entry::build_entry;
use crate::error::Error;
use crate::system::Counters;
use crate::table::{ClusteredField, Table};
use crate::transaction::Transaction;

/// What became of a row that was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// There was none with its key.
    Inserted,
    /// The one with its key has its values now.
    Updated,
    /// Nothing was done, but the row may be locked: an update and an insert have to do it, one after the
    /// other.
    NotAtOnce,
}

/// Inserts a row given by table column, or sets the row with its key to these values. That is an
/// [`crate::update`] of all columns outside the key, followed by an [`crate::insert_with`]
/// ([`OnDuplicate::Change`]) where there was no such row, and it takes the locks that these take.
///
/// It is not for tables with unique secondary indexes, where an insert has to take its turn before its place
/// is looked for, nor for rows with values that have to be off-page.
///
/// # Errors
/// Those of [`crate::update`] and [`crate::insert_with`].
pub async fn put(transaction: &mut Transaction, table: &Arc<Table>, row: &[Field<'_>]) -> Result<Put, Error> {
    let values: Fields<'_> = table
        .clustered_columns
        .iter()
        .map(|field| match field {
            ClusteredField::Column(column) => FieldRef::from(row[usize::from(*column)]),
            ClusteredField::RowId | ClusteredField::TrxId => FieldRef::Inline(&[0; 6]),
            ClusteredField::RollPtr => FieldRef::Inline(&[0; 7]),
        })
        .collect();
    let tree = &*table.clustered;
    let in_the_row =
        plan_external(tree.def(), &values, tree.max_record_size()).is_ok_and(|plan| plan.is_empty());
    if !in_the_row || table.has_row_id() || table.secondaries.iter().any(|secondary| secondary.unique) {
        return Ok(Put::NotAtOnce);
    }
    let mark = transaction.begin_change(table).await?;
    let (put, result) = match put_row(transaction, table, &values).await {
        Ok(put) => (put, Ok(())),
        Err(error) => (Put::NotAtOnce, Err(error)),
    };
    transaction.end_change(mark, result).await?;
    let counters = &transaction.inner().counters;
    match put {
        Put::Inserted => Counters::add(&counters.rows_inserted, 1),
        Put::Updated => Counters::add(&counters.rows_updated, 1),
        Put::NotAtOnce => {}
    }
    Ok(put)
}

async fn put_row(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    values: &[FieldRef<'_>],
) -> Result<Put, Error> {
    let after_the_system_fields = table.trx_id_field() + 2..values.len();
    let changes: SmallVec<[NewField<'_>; 8]> = after_the_system_fields
        .map(|position| NewField { position, value: values[position], stored: values[position] })
        .collect();
    let mut entries = Vec::new();
    let seen = transaction.take_seen();
    let row = RowToPut { stored: values, changes: &changes, seen: seen.as_ref() };
    let step = repeat(transaction, |writer, structure| writer.put_step(table, &row, structure, &mut entries))
        .await?;
    match step {
        Step::Inserted => {
            entries.clear();
            for (index, secondary) in table.secondaries.iter().enumerate() {
                let mut entry = OwnedKey::new();
                retry_change(transaction, |_| {
                    build_entry(table, secondary, |position| values[position], &mut entry)
                })
                .await?;
                entries.push(EntryChange { index, old: None, new: Some(entry) });
            }
            change_entries(transaction, table, &entries, OnDuplicate::Change).await?;
            Ok(Put::Inserted)
        }
        Step::Done => {
            change_entries(transaction, table, &entries, OnDuplicate::Refuse).await?;
            Ok(Put::Updated)
        }
        Step::Unchanged => Ok(Put::Updated),
        // A row keeps its key, which may be longer than the one given that equals it.
        Step::TooLarge(_) => Ok(Put::NotAtOnce),
        _ => Err(Error::Internal("a row could not be put".to_owned())),
    }
}
