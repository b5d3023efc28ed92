//! Values in and out of the stored form of rows and keys, for all that reads and writes rows by value.

use std::ops::{Bound, Range};

use btree::{FieldRef, OwnedKey};
use txn::Row;

use crate::error::{Error, Result};
use crate::schema::KeyDef;
use crate::table::Table;
use crate::types::{self, Value};
use crate::write::EncodedRow;

/// Appends a value of a column to a row or key.
pub(crate) fn push(row: &mut EncodedRow, table: &Table, column: u16, value: &Value<'_>) -> Result<()> {
    let def = &table.def.columns[usize::from(column)];
    if value.is_null() {
        row.push_null();
        return Ok(());
    }
    row.push(|out| types::encode(value, &def.kind, out))
        .map_err(|why| Error::Value { column: def.name.clone(), why })
}

pub(crate) fn clustered_parts(table: &Table) -> Result<&KeyDef> {
    table.def.clustered_key().ok_or_else(|| Error::NoPrimaryKey(table.database.clone(), table.name.clone()))
}

/// The whole key of one row, in place of what is in `encoded`.
pub(crate) fn encode_row_key(table: &Table, values: &[Value<'_>], encoded: &mut EncodedRow) -> Result<()> {
    let key = clustered_parts(table)?;
    if values.len() != key.parts.len() {
        return Err(Error::WrongKeyLength { given: values.len(), columns: key.parts.len() });
    }
    encode_key(table, key, values, encoded)
}

/// The leading columns of a key, in place of what is in `encoded`.
fn encode_key(table: &Table, key: &KeyDef, values: &[Value<'_>], encoded: &mut EncodedRow) -> Result<()> {
    if values.len() > key.parts.len() {
        return Err(Error::WrongKeyLength { given: values.len(), columns: key.parts.len() });
    }
    encoded.clear();
    for (part, value) in key.parts.iter().zip(values) {
        if part.prefix_chars.is_some() {
            return Err(Error::PrefixIndex(key.name.clone()));
        }
        let def = &table.def.columns[usize::from(part.column)];
        if value.is_null() && !def.nullable {
            return Err(Error::NullValue(def.name.clone()));
        }
        push(encoded, table, part.column, value)?;
    }
    Ok(())
}

/// An end of a range of primary keys, by way of what is in `encoded`.
pub(crate) fn encode_bound(
    table: &Table,
    bound: Bound<&[Value<'_>]>,
    encoded: &mut EncodedRow,
) -> Result<Bound<OwnedKey>> {
    encode_bound_of(table, None, bound, encoded)
}

/// An end of a range of `key`, by default of the primary key.
pub(crate) fn encode_bound_of(
    table: &Table,
    key: Option<&KeyDef>,
    bound: Bound<&[Value<'_>]>,
    encoded: &mut EncodedRow,
) -> Result<Bound<OwnedKey>> {
    let mut encode = |values: &[Value<'_>]| -> Result<OwnedKey> {
        let key = key.map_or_else(|| clustered_parts(table), Ok)?;
        encode_key(table, key, values, encoded)?;
        let mut owned = OwnedKey::new();
        encoded.iter().for_each(|field| owned.push(field));
        Ok(owned)
    };
    Ok(match bound {
        Bound::Unbounded => Bound::Unbounded,
        Bound::Included(values) => Bound::Included(encode(values)?),
        Bound::Excluded(values) => Bound::Excluded(encode(values)?),
    })
}

/// Copies the values of some columns. What a column has off-page goes to `off_page`, and NULL stands in its
/// place. `false`: it wanted no more.
pub(crate) fn copy_columns(
    table: &Table,
    row: &Row<'_>,
    columns: Range<usize>,
    values: &mut impl Extend<Value<'static>>,
    mut off_page: impl FnMut(usize, &[u8], &[u8; 20]) -> bool,
) -> Result<bool> {
    for column in columns {
        let value = match row.column(column as u16) {
            FieldRef::Null => Value::Null,
            FieldRef::Inline(bytes) => decode(table, column, bytes)?,
            FieldRef::External { prefix, reference } => {
                let kind = &table.def.columns[column].kind;
                debug_assert!(kind.is_blob() || kind.bytes_max() > 255);
                if !off_page(column, prefix, reference) {
                    return Ok(false);
                }
                Value::Null
            }
        };
        values.extend([value]);
    }
    Ok(true)
}

pub(crate) fn decode(table: &Table, column: usize, bytes: &[u8]) -> Result<Value<'static>> {
    decode_borrowed(table, column, bytes).map(Value::into_owned)
}

#[inline]
pub(crate) fn decode_borrowed<'b>(table: &Table, column: usize, bytes: &'b [u8]) -> Result<Value<'b>> {
    let def = &table.def.columns[column];
    types::decode(bytes, &def.kind).ok_or_else(|| invalid(table, column))
}

#[cold]
fn invalid(table: &Table, column: usize) -> Error {
    Error::Internal(format!(
        "column '{}' of table '{}' holds bytes that are not a valid value",
        table.def.columns[column].name, table.name
    ))
}

/// Values of a row where it lies, made as they are asked for. It ends early where one is off-page or no
/// value.
pub(crate) struct BorrowedColumns<'r> {
    table: &'r Table,
    row: Row<'r>,
    columns: Range<usize>,
}

impl<'r> BorrowedColumns<'r> {
    pub(crate) fn new(table: &'r Table, row: &Row<'r>, columns: Range<usize>) -> Self {
        BorrowedColumns { table, row: *row, columns }
    }
}

impl<'r> Iterator for BorrowedColumns<'r> {
    type Item = Value<'r>;

    #[inline]
    fn next(&mut self) -> Option<Value<'r>> {
        let column = self.columns.next()?;
        match self.row.column(column as u16) {
            FieldRef::Null => Some(Value::Null),
            FieldRef::Inline(bytes) => decode_borrowed(self.table, column, bytes).ok(),
            FieldRef::External { .. } => None,
        }
    }
}
