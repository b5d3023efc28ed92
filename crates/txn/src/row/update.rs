//! Update: in place where the key stays, as a delete and an insert where it changes.
//!
//! A row whose clustered key changes in the order of the index moves: the old record is delete-marked, and a
//! new one goes in. Otherwise the record is changed where it lies. How is decided below: `clustered.rs`
//! overwrites single fields that keep their size (`patches`), `btree` the record if it keeps its shape; one
//! that grows may reorganize or split its page. Values that do not fit the record go off-page first
//! (`external.rs`). An entry of a secondary index whose columns changed is delete-marked and a new one goes
//! in (`secondary.rs`).

use std::sync::Arc;

use btree::compare::compare_fields;
use btree::{Field, FieldRef, Reference};

use smallvec::SmallVec;

use super::clustered::NewField;
use super::delete::delete_row;
use super::external::{OffPage, store_external};
use super::implicit_lock::lock_clustered;
use super::insert::{OnDuplicate, insert_row};
use super::secondary::change_entries;
use super::write::Step;
use super::write::repeat;
use crate::error::Error;
use crate::lock::{Acquired, LockMode};
use crate::row::WaitPolicy;
use crate::system::Counters;
use crate::table::{ClusteredField, Table};
use crate::transaction::Transaction;

/// Changes columns of the row with this clustered key, locking it if the transaction has not done so already.
/// A change of key columns moves the row.
///
/// # Errors
/// [`Error::RowNotFound`], [`Error::DuplicateKey`], those of row locks, [`Error::RowTooLarge`]; the row is as
/// it was then. Storage errors.
pub async fn update(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    key: &[Field<'_>],
    changes: &[(u16, Field<'_>)],
) -> Result<(), Error> {
    let mark = transaction.begin_change(table).await?;
    let result = if moves(table, key, changes) {
        move_row(transaction, table, key, changes).await
    } else {
        update_row(transaction, table, key, changes).await
    };
    transaction.end_change(mark, result).await?;
    Counters::add(&transaction.inner().counters.rows_updated, 1);
    Ok(())
}

/// Whether the change gives the row another key (in the order of the index).
fn moves(table: &Table, key: &[Field<'_>], changes: &[(u16, Field<'_>)]) -> bool {
    let fields = &table.clustered.def().fields;
    changes.iter().any(|(column, value)| {
        let position = table.field_of_column(*column);
        position < table.key_fields && compare_fields(fields[position].compare, key[position], *value).is_ne()
    })
}

async fn update_row(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    key: &[Field<'_>],
    changes: &[(u16, Field<'_>)],
) -> Result<(), Error> {
    let new: SmallVec<[NewField<'_>; 8]> = changes
        .iter()
        .map(|(column, value)| {
            let value = FieldRef::from(*value);
            NewField { position: table.field_of_column(*column), value, stored: value }
        })
        .collect();
    let mut entries = Vec::new();
    let seen = transaction.take_seen();
    let step = repeat(transaction, |writer, structure| {
        writer.update_step(table, key, &new, structure, &mut entries, seen.as_ref())
    })
    .await?;
    let step = match step {
        Step::TooLarge(long) => {
            let mut references: Vec<Reference> = Vec::new();
            for (_, value) in &long {
                references.push(store_external(transaction, table, value).await?);
            }
            let bytes: Vec<[u8; 20]> = references.iter().map(|reference| reference.to_bytes()).collect();
            let mut new: Vec<NewField<'_>> = new.to_vec();
            for ((position, value), reference) in long.iter().zip(&bytes) {
                let stored = FieldRef::External { prefix: &[], reference };
                new.retain(|field| field.position != *position);
                new.push(NewField { position: *position, value: FieldRef::Inline(value), stored });
            }
            let step = repeat(transaction, |writer, structure| {
                writer.update_step(table, key, &new, structure, &mut entries, seen.as_ref())
            })
            .await?;
            if !matches!(step, Step::Done) {
                // An error, so that undoing the operation frees the values.
                return Err(Error::Internal(
                    "a locked row changed while its long values were written".to_owned(),
                ));
            }
            step
        }
        step => step,
    };
    match step {
        Step::Done => change_entries(transaction, table, &entries, OnDuplicate::Refuse).await,
        Step::Unchanged => Ok(()),
        _ => Err(Error::RowNotFound { table: table.id }),
    }
}

/// Deletes the row and inserts it under its new key.
async fn move_row(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    key: &[Field<'_>],
    changes: &[(u16, Field<'_>)],
) -> Result<(), Error> {
    let mut row = read_locked(transaction, table, key).await?;
    for (column, value) in changes {
        row[usize::from(*column)] = value.map(<[u8]>::to_vec);
    }
    delete_row(transaction, table, key).await?;
    let row: Vec<Field<'_>> = row.iter().map(|value| value.as_deref()).collect();
    insert_row(transaction, table, &row, OnDuplicate::Refuse).await
}

enum Column {
    Null,
    Whole(Vec<u8>),
    OffPage(OffPage),
}

/// Locks a row and copies all its columns, long ones too.
async fn read_locked(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    key: &[Field<'_>],
) -> Result<Vec<Option<Vec<u8>>>, Error> {
    let mut columns: Vec<Column> = Vec::new();
    let step = repeat(transaction, |writer, _| {
        let found = table.clustered.get(key, |record| {
            let own_id = writer.undo_log.trx_id;
            let policy = WaitPolicy::Wait;
            let mode = LockMode::X_RECORD;
            if let Acquired::Wait(wait) =
                lock_clustered(writer.system, writer.owner, own_id, record, mode, policy)
            {
                return Step::Lock(wait);
            }
            if record.is_deleted() {
                return Step::NotFound;
            }
            columns.clear();
            columns.resize_with(table.column_count, || Column::Null);
            for (field, kind) in record.fields().zip(&table.clustered_columns) {
                let ClusteredField::Column(column) = kind else { continue };
                columns[usize::from(*column)] = match field {
                    FieldRef::Null => Column::Null,
                    FieldRef::Inline(value) => Column::Whole(value.to_vec()),
                    FieldRef::External { prefix, reference } => {
                        Column::OffPage(OffPage::new(prefix, reference))
                    }
                };
            }
            Step::Done
        })?;
        Ok(found.unwrap_or(Step::NotFound))
    })
    .await?;
    if !matches!(step, Step::Done) {
        return Err(Error::RowNotFound { table: table.id });
    }
    let mut row = Vec::with_capacity(columns.len());
    for column in columns {
        row.push(match column {
            Column::Null => None,
            Column::Whole(value) => Some(value),
            Column::OffPage(value) => Some(value.fetch(transaction, table).await?),
        });
    }
    Ok(row)
}
