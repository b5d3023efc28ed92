//! One change of one row.

use std::sync::Arc;

use btree::Field;

use crate::error::{Error, Result};
use crate::table::Table;
use crate::types::{self, Value};
use crate::write::{Changes, EncodedRow};

/// What was done to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new.
    Insert,
    /// Some of its columns have new values.
    Update,
    /// It is gone.
    Delete,
}

/// One change of one row: the key that finds it, and its new values.
#[derive(Debug)]
pub struct RowChange {
    table: Arc<Table>,
    kind: ChangeKind,
    /// The clustered key before the change; empty for an insert.
    key: EncodedRow,
    /// Which columns `values` has.
    columns: Vec<u16>,
    values: EncodedRow,
}

fn encoded<'f>(fields: impl IntoIterator<Item = Field<'f>>) -> EncodedRow {
    let mut row = EncodedRow::default();
    for field in fields {
        match field {
            Some(bytes) => row.push_bytes(bytes),
            None => row.push_null(),
        }
    }
    row
}

impl RowChange {
    pub(super) fn insert(table: &Arc<Table>, row: &[Field<'_>]) -> RowChange {
        let columns = (0..table.def.columns.len() as u16).collect();
        let values = encoded(row.iter().copied());
        let key = EncodedRow::default();
        RowChange { table: table.clone(), kind: ChangeKind::Insert, key, columns, values }
    }

    pub(super) fn update(table: &Arc<Table>, key: &[Field<'_>], changes: &Changes<'_>) -> RowChange {
        let columns = changes.iter().map(|(column, _)| *column).collect();
        let values = encoded(changes.iter().map(|(_, field)| *field));
        let key = encoded(key.iter().copied());
        RowChange { table: table.clone(), kind: ChangeKind::Update, key, columns, values }
    }

    pub(super) fn delete(table: &Arc<Table>, key: &[Field<'_>]) -> RowChange {
        let key = encoded(key.iter().copied());
        let (columns, values) = (Vec::new(), EncodedRow::default());
        RowChange { table: table.clone(), kind: ChangeKind::Delete, key, columns, values }
    }

    /// Memory that it takes, roughly.
    pub(super) fn bytes(&self) -> usize {
        size_of::<RowChange>()
            + self.columns.len() * size_of::<u16>()
            + self.key.bytes()
            + self.values.bytes()
    }

    /// The table, as it was when its row was changed.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// What was done.
    pub fn kind(&self) -> ChangeKind {
        self.kind
    }

    /// The values of the primary key by which the row was found, before the change if that changes the key.
    /// SQL finds rows by their stored key. The crate's own `update`, `delete` and `put` find them by the key
    /// that the caller gave, which may be another text that is equal under the column's collation.
    /// `None` for a table without one: nothing tells its rows apart.
    ///
    /// # Errors
    /// [`Error::Internal`] for bytes that are no value of their column.
    pub fn key(&self) -> Result<Option<Vec<Value<'_>>>> {
        let Some(key) = self.table.def.clustered_key() else { return Ok(None) };
        let parts = key.parts.iter().enumerate();
        let values = parts.map(|(at, part)| match self.kind {
            ChangeKind::Insert => self.value(part.column, self.values.field(usize::from(part.column))),
            ChangeKind::Update | ChangeKind::Delete => self.value(part.column, self.key.field(at)),
        });
        values.collect::<Result<_>>().map(Some)
    }

    /// Columns, by their numbers, with the values they have now: all of them after an insert, those that were
    /// assigned after an update, none after a deletion.
    ///
    /// # Errors
    /// As [`RowChange::key`].
    pub fn values(&self) -> Result<Vec<(usize, Value<'_>)>> {
        let columns = self.columns.iter().enumerate();
        columns
            .filter(|(_, column)| !self.table.def.columns[usize::from(**column)].hidden)
            .map(|(at, column)| Ok((usize::from(*column), self.value(*column, self.values.field(at))?)))
            .collect()
    }

    fn value<'v>(&self, column: u16, field: Field<'v>) -> Result<Value<'v>> {
        let Some(bytes) = field else { return Ok(Value::Null) };
        let def = &self.table.def.columns[usize::from(column)];
        types::decode(bytes, &def.kind).ok_or_else(|| {
            let table = &self.table;
            Error::Internal(format!(
                "{}.{}: a change of column {} has no value",
                table.database, table.name, def.name
            ))
        })
    }
}
