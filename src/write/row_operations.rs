//! The one place where a row is inserted, updated or deleted, and where change feeds are told of it.

use std::sync::Arc;

use btree::Field;
use smallvec::SmallVec;
use txn::OnDuplicate;

use super::{Changes, Written};
use crate::changes::Recorded;
use crate::error::{Error, Result};
use crate::table::Table;
use crate::transaction::Transaction;

/// [`txn::insert_with`].
pub(super) async fn insert_row(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    row: &[Field<'_>],
    on_duplicate: OnDuplicate,
) -> Result<Written> {
    let recorded = Recorded::before(transaction);
    let done = written(txn::insert_with(transaction.engine_mut(), &table.rows, row, on_duplicate).await)?;
    if done == Written::Done {
        recorded.insert(transaction, table, row);
    }
    Ok(done)
}

/// [`txn::update`].
pub(super) async fn update_row(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    key: &[Field<'_>],
    changes: &Changes<'_>,
) -> Result<Written> {
    let recorded = Recorded::before(transaction);
    let done = written(txn::update(transaction.engine_mut(), &table.rows, key, changes).await)?;
    if done == Written::Done {
        recorded.update(transaction, table, key, changes);
    }
    Ok(done)
}

/// [`txn::put`].
pub(super) async fn put_row(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    row: &[Field<'_>],
) -> Result<txn::Put> {
    let recorded = Recorded::before(transaction);
    let put = txn::put(transaction.engine_mut(), &table.rows, row).await?;
    if transaction.has_feeds() {
        match put {
            txn::Put::Inserted => recorded.insert(transaction, table, row),
            txn::Put::Updated => {
                let def = &table.def;
                let parts = def.clustered_key().map_or(&[][..], |key| &key.parts);
                let key: SmallVec<[u16; 4]> = parts.iter().map(|part| part.column).collect();
                let columns = (0..row.len() as u16).filter(|column| !key.contains(column));
                let changes: SmallVec<[(u16, Field<'_>); 8]> =
                    columns.map(|column| (column, row[usize::from(column)])).collect();
                let key: SmallVec<[Field<'_>; 4]> =
                    key.iter().map(|column| row[usize::from(*column)]).collect();
                recorded.update(transaction, table, &key, &changes);
            }
            txn::Put::NotAtOnce => {}
        }
    }
    Ok(put)
}

/// [`txn::delete`].
pub(super) async fn delete_row(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    key: &[Field<'_>],
) -> Result<()> {
    let recorded = Recorded::before(transaction);
    txn::delete(transaction.engine_mut(), &table.rows, key).await?;
    recorded.delete(transaction, table, key);
    Ok(())
}

/// A duplicate key is an answer here, not an error.
fn written(result: std::result::Result<(), txn::Error>) -> Result<Written> {
    match result {
        Ok(()) => Ok(Written::Done),
        Err(txn::Error::DuplicateKey { index, entry }) => Ok(Written::Duplicate { index, entry }),
        Err(error) => Err(Error::Transaction(error)),
    }
}
