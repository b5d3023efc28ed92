//! Many rows that one statement writes, in the order of their keys.
//!
//! Rows in the order of a tree go to its pages one after the other: each page is found, changed and written
//! once, where random ones come back to it again and again; and most of them are found without a descent
//! (`Tree::seek_behind`). The order is that of the keys' stored bytes. Collations have others, and then the
//! rows are only less well sorted. Rows of a table with foreign keys or another unique index stay in the
//! order in which they are given.

use std::cmp::Ordering;
use std::sync::Arc;

use btree::Field;
use pagestore::prefetch;
use smallvec::SmallVec;
use txn::{OnDuplicate, Put};

use crate::error::{Error, Result};
use crate::row_values::{clustered_parts, push};
use crate::rows::{done, found};
use crate::table::Table;
use crate::transaction::Transaction;
use crate::types::Value;
use crate::write::{EncodedRow, RowWriter, StatementSavepoint};

/// How far ahead of its turn a row is asked for, and how many lines of the processor's cache.
const ROWS_AHEAD: usize = 4;
const LINES_AHEAD: usize = 4;
const LINE: usize = 64;

/// What stands in front of a field in the buffer. Mostly that is a length in four bytes, of which the last
/// three have other meanings. A LONGBLOB may be as long as they say; then eight bytes with its length follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Head {
    Null,
    Length(usize),
    /// Behind the last field of a row, so that its fields have an end.
    End,
}

impl Head {
    const NULL: u32 = u32::MAX;
    const END: u32 = u32::MAX - 1;
    const LONG: u32 = u32::MAX - 2;

    fn push(self, bytes: &mut Vec<u8>) {
        let short = match self {
            Head::Null => Head::NULL,
            Head::End => Head::END,
            Head::Length(length) => u32::try_from(length).unwrap_or(u32::MAX).min(Head::LONG),
        };
        bytes.extend_from_slice(&short.to_ne_bytes());
        if let Head::Length(length) = self
            && short == Head::LONG
        {
            bytes.extend_from_slice(&(length as u64).to_ne_bytes());
        }
    }

    /// Takes it from the front.
    fn take(bytes: &mut &[u8]) -> Option<Head> {
        let (short, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(match u32::from_ne_bytes(*short) {
            Head::NULL => Head::Null,
            Head::END => Head::End,
            Head::LONG => {
                let (long, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Head::Length(u64::from_ne_bytes(*long) as usize)
            }
            short => Head::Length(short as usize),
        })
    }
}

/// A row in the buffer.
#[derive(Debug, Clone, Copy)]
struct Stored {
    /// The first bytes of its key, which mostly decide.
    head: u64,
    at: usize,
}

/// Rows of a table in storage encoding, sorted.
#[derive(Debug, Default)]
pub(crate) struct SortedRows {
    /// Of each field its length and its bytes.
    bytes: Vec<u8>,
    rows: Vec<Stored>,
}

impl SortedRows {
    /// Sorts rows, a value per column. Rows of the same key stay in their order.
    ///
    /// # Errors
    /// Values that do not fit, a table without primary key.
    fn new<'v, R>(table: &Table, rows: impl IntoIterator<Item = R>) -> Result<SortedRows>
    where
        R: AsRef<[Value<'v>]>,
    {
        let key: SmallVec<[usize; 4]> = key_columns(table)?;
        let mut sorted = SortedRows::default();
        let mut encoded = EncodedRow::default();
        for row in rows {
            let row = row.as_ref();
            if row.len() != table.def.columns.len() {
                return Err(Error::WrongRowLength { given: row.len(), columns: table.def.columns.len() });
            }
            encoded.clear();
            for (column, value) in row.iter().enumerate() {
                push(&mut encoded, table, column as u16, value)?;
            }
            sorted.add(&encoded, &key);
        }
        if !may_be_sorted(table) {
            return Ok(sorted);
        }
        let bytes = &sorted.bytes;
        sorted.rows.sort_unstable_by(|a, b| {
            let by_key = || by_key(&fields(bytes, a.at), &fields(bytes, b.at), &key);
            a.head.cmp(&b.head).then_with(by_key).then(a.at.cmp(&b.at))
        });
        Ok(sorted)
    }

    fn add(&mut self, row: &EncodedRow, key: &[usize]) {
        let first = key.first().and_then(|column| row.field(*column)).unwrap_or_default();
        let mut head = [0; 8];
        let decides = first.len().min(head.len());
        head[..decides].copy_from_slice(&first[..decides]);
        self.rows.push(Stored { head: u64::from_be_bytes(head), at: self.bytes.len() });
        for field in row.iter() {
            field.map_or(Head::Null, |bytes| Head::Length(bytes.len())).push(&mut self.bytes);
            self.bytes.extend_from_slice(field.unwrap_or_default());
        }
        Head::End.push(&mut self.bytes);
    }

    /// The rows in order, a field for each column. They lie in memory in the order in which they were given:
    /// each is asked for some rows before its turn.
    fn iter(&self) -> impl Iterator<Item = Fields<'_>> {
        self.rows.iter().enumerate().map(|(number, row)| {
            if let Some(later) = self.rows.get(number + ROWS_AHEAD) {
                (0..LINES_AHEAD).for_each(|line| prefetch(&self.bytes, later.at + line * LINE));
            }
            fields(&self.bytes, row.at)
        })
    }
}

type Fields<'r> = SmallVec<[Field<'r>; 8]>;

/// The fields of the row that is stored at `at`.
fn fields(bytes: &[u8], at: usize) -> Fields<'_> {
    let mut fields = Fields::new();
    let mut rest = bytes.get(at..).unwrap_or_default();
    loop {
        match Head::take(&mut rest) {
            Some(Head::Null) => fields.push(None),
            Some(Head::Length(length)) => {
                let (field, behind) = rest.split_at(length);
                fields.push(Some(field));
                rest = behind;
            }
            Some(Head::End) | None => return fields,
        }
    }
}

fn by_key(a: &[Field<'_>], b: &[Field<'_>], key: &[usize]) -> Ordering {
    key.iter()
        .map(|column| a[*column].cmp(&b[*column]))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Where a row may depend on one that is given before it, the order is the caller's: one may give a unique
/// value free that the next one takes, or be the row that the next one refers to.
fn may_be_sorted(table: &Table) -> bool {
    table.def.foreign_keys.is_empty() && !table.rows.secondaries.iter().any(|secondary| secondary.unique)
}

fn key_columns<C: FromIterator<usize>>(table: &Table) -> Result<C> {
    Ok(clustered_parts(table)?.parts.iter().map(|part| usize::from(part.column)).collect())
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
        let rows = SortedRows::new(&table, rows)?;
        let savepoint = StatementSavepoint::new(statement.0);
        let mut writer = RowWriter::new(table)?;
        let mut new = 0;
        for row in rows.iter() {
            match write(&mut writer, savepoint.transaction, &row, key_is_there).await {
                Ok(is_new) => new += u64::from(is_new),
                Err(error) => {
                    let error = savepoint.transaction.failed(error);
                    savepoint.undo().await?;
                    return Err(error);
                }
            }
        }
        savepoint.keep();
        writer.finish();
        Ok(new)
    }
}

/// Writes a row; whether it is new.
async fn write(
    writer: &mut RowWriter,
    transaction: &mut Transaction,
    row: &[Field<'_>],
    key_is_there: KeyIsThere,
) -> Result<bool> {
    if key_is_there == KeyIsThere::Fail {
        return done(writer.insert(transaction, row, OnDuplicate::Refuse).await?).map(|()| true);
    }
    if writer.puts_at_once(transaction) {
        match writer.put(transaction, row).await? {
            Put::Inserted => return Ok(true),
            Put::Updated => return Ok(false),
            Put::NotAtOnce => {}
        }
    }
    // Values that do not fit into the row's page, for instance.
    let key: SmallVec<[usize; 4]> = key_columns(writer.table())?;
    let key_fields: Fields<'_> = key.iter().map(|column| row[*column]).collect();
    let others = (0..row.len()).filter(|column| !key.contains(column));
    let changes: SmallVec<[(u16, Field<'_>); 8]> =
        others.map(|column| (column as u16, row[column])).collect();
    loop {
        if let Some(written) = found(writer.update(transaction, &key_fields, &changes).await)? {
            return done(written).map(|()| false);
        }
        // Else somebody has put it in between. It is locked now, so it stays to be updated.
        match done(writer.insert(transaction, row, OnDuplicate::Change).await?) {
            Err(error) if error.is_duplicate_primary_key() => {}
            inserted => return inserted.map(|()| true),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A value of LONGBLOB may have any of these lengths.
    #[test]
    fn no_length_is_taken_for_null_or_the_end() {
        let most = u32::MAX as usize;
        for length in [0, 1, 255, 70_000, most - 4, most - 3, most - 2, most - 1, most] {
            for head in [Head::Length(length), Head::Null, Head::End] {
                let mut bytes = Vec::new();
                head.push(&mut bytes);
                bytes.push(7);
                let mut rest = &bytes[..];
                assert_eq!(Head::take(&mut rest), Some(head));
                assert_eq!(rest, [7]);
            }
        }
        assert_eq!(Head::take(&mut &[0, 0, 0][..]), None);
    }
}
