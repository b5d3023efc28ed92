//! Delete.

use std::sync::Arc;

use btree::Field;

use super::insert::OnDuplicate;
use super::secondary::change_entries;
use super::write::Step;
use super::write::repeat;
use crate::error::Error;
use crate::system::Counters;
use crate::table::Table;
use crate::transaction::Transaction;

/// Deletes the row with this clustered key, locking it if the transaction has not done so already.
///
/// # Errors
/// [`Error::RowNotFound`], those of row locks; the row is as it was then. Storage errors.
pub async fn delete(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    key: &[Field<'_>],
) -> Result<(), Error> {
    let mark = transaction.begin_change(table).await?;
    let result = delete_row(transaction, table, key).await;
    transaction.end_change(mark, result).await?;
    Counters::add(&transaction.inner().counters.rows_deleted, 1);
    Ok(())
}

pub(super) async fn delete_row(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    key: &[Field<'_>],
) -> Result<(), Error> {
    let mut entries = Vec::new();
    let seen = transaction.take_seen();
    let step =
        repeat(transaction, |writer, _| writer.delete_step(table, key, &mut entries, seen.as_ref())).await?;
    if !matches!(step, Step::Done) {
        return Err(Error::RowNotFound { table: table.id });
    }
    change_entries(transaction, table, &entries, OnDuplicate::Refuse).await
}
