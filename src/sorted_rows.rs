//! Many rows that one statement writes, in the order of their keys.
//!
//! Rows in the order of a tree go to its pages one after the other: each page is found, changed and written
//! once, where random ones come back to it again and again; and most of them are found without a descent
//! (`Tree::seek_behind`). They are sorted as the entries of an index that is built (`src/sort/`), which gives
//! way to others meanwhile. Rows of a table with foreign keys or another unique index stay in the order in
//! which they are given.

use std::sync::Arc;

use btree::Field;
use smallvec::SmallVec;
use txn::OnDuplicate;

use crate::error::{Error, Result};
use crate::index_entry::{KeyOrder, add, each_field};
use crate::row_values::{clustered_parts, encode_row};
use crate::rows::{done, put_row};
use crate::sort::{Place, Sorter};
use crate::table::Table;
use crate::transaction::Transaction;
use crate::types::Value;
use crate::write::{EncodedRow, RowWriter, StatementSavepoint};

type Fields<'r> = SmallVec<[Field<'r>; 8]>;

/// Where a row may depend on one that is given before it, the order is the caller's: one may give a unique
/// value free that the next one takes, or be the row that the next one refers to.
fn may_be_sorted(table: &Table) -> bool {
    table.def.foreign_keys.is_empty() && !table.rows.secondaries.iter().any(|secondary| secondary.unique)
}

/// What to do with a row whose key is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyIsThere {
    /// It is an error.
    Fail,
    /// The row with it is changed.
    Change,
}

impl Transaction {
    /// Writes rows as one statement, all of them or none, in the order of their keys. Returns how many are
    /// new. Only for tables without columns that get values by themselves.
    ///
    /// # Errors
    /// Those of [`Transaction::insert`] and [`Transaction::put`]. [`Error::OtherDefinition`] when the
    /// table has got other columns meanwhile.
    pub(crate) async fn write_sorted<'v, R>(
        &mut self,
        table: &Arc<Table>,
        rows: impl IntoIterator<Item = R>,
        key_is_there: KeyIsThere,
    ) -> Result<u64>
    where
        R: AsRef<[Value<'v>]>,
    {
        self.may_write()?;
        let handle = table;
        let (statement, table) = self.statement(handle).await?;
        // The values stand in the order of the handle's columns.
        if !Arc::ptr_eq(handle, &table) && handle.def.columns != table.def.columns {
            let difference = "its columns were changed meanwhile".to_owned();
            let table = format!("{}.{}", table.database, table.name);
            return Err(Error::OtherDefinition { table, difference });
        }
        let savepoint = StatementSavepoint::new(statement.0);
        let mut writer = RowWriter::new(table)?;
        let written = if may_be_sorted(writer.table()) {
            write_by_key(&mut writer, savepoint.transaction, rows, key_is_there).await
        } else {
            write_as_given(&mut writer, savepoint.transaction, rows, key_is_there).await
        };
        let new = savepoint.end(written).await?;
        writer.finish();
        Ok(new)
    }
}

/// Writes rows one after the other; how many are new.
async fn write_as_given<'v, R: AsRef<[Value<'v>]>>(
    writer: &mut RowWriter,
    transaction: &mut Transaction,
    rows: impl IntoIterator<Item = R>,
    key_is_there: KeyIsThere,
) -> Result<u64> {
    let table = writer.table().clone();
    let (mut encoded, mut new) = (EncodedRow::default(), 0);
    for row in rows {
        encode_row(&table, row.as_ref(), &mut encoded)?;
        let is_new = write(writer, transaction, &encoded.fields(), key_is_there).await?;
        new += u64::from(is_new);
    }
    Ok(new)
}

/// Writes rows in the order of their keys, those of the same key in the order in which they come; how many
/// are new. Nothing is written when a value of one does not fit.
async fn write_by_key<'v, R: AsRef<[Value<'v>]>>(
    writer: &mut RowWriter,
    transaction: &mut Transaction,
    rows: impl IntoIterator<Item = R>,
    key_is_there: KeyIsThere,
) -> Result<u64> {
    let table = writer.table().clone();
    // An entry of the sorter begins with the key.
    let mut order: SmallVec<[usize; 8]> =
        clustered_parts(&table)?.parts.iter().map(|part| usize::from(part.column)).collect();
    for column in 0..table.def.columns.len() {
        if !order.contains(&column) {
            order.push(column);
        }
    }
    let environment = transaction.database().environment();
    let place = Place::new(environment.storage().clone(), transaction.database().directory());
    let slice = transaction.engine().slice().clone();
    // As much memory as it takes: mostly the caller has the rows in memory as well.
    let mut sorter = Sorter::new(KeyOrder(table.rows.clustered.def().clone()), place, usize::MAX);
    let mut encoded = EncodedRow::default();
    for row in rows {
        encode_row(&table, row.as_ref(), &mut encoded)?;
        let entry: Fields<'_> = order.iter().map(|column| encoded.field(*column)).collect();
        add(&mut sorter, &entry);
        slice.work(1).await?;
    }
    let mut sorted = sorter.finish().await?;
    let mut new = 0;
    while let Some(entry) = sorted.next().await? {
        let mut row: Fields<'_> = SmallVec::from_elem(None, order.len());
        order.iter().zip(each_field(entry)).for_each(|(column, field)| row[*column] = field);
        new += u64::from(write(writer, transaction, &row, key_is_there).await?);
        slice.work(1).await?;
    }
    Ok(new)
}

/// Writes a row; whether it is new.
async fn write(
    writer: &mut RowWriter,
    transaction: &mut Transaction,
    row: &[Field<'_>],
    key_is_there: KeyIsThere,
) -> Result<bool> {
    match key_is_there {
        KeyIsThere::Fail => done(writer.insert(transaction, row, OnDuplicate::Refuse).await?).map(|()| true),
        KeyIsThere::Change => put_row(writer, transaction, row).await,
    }
}
