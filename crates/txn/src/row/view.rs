//! A row as a callback sees it.

use btree::{FieldRef, OwnedKey, RecordRef};

use crate::table::{ClusteredField, ROW_ID_COLUMN, Table};
use crate::version::Version;

#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    Clustered(Version<'a>),
    /// The newest committed version of a row that another transaction has locked.
    Peeked(Version<'a>),
    /// An entry of `secondaries[n]`, trusted as it is.
    Entry(usize, RecordRef<'a>),
}

/// A row shown to a callback. It borrows a latched page: keep the callback short, and never start another
/// operation of the engine inside it.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    pub(crate) table: &'a Table,
    pub(crate) source: Source<'a>,
}

impl<'a> Row<'a> {
    /// A column by its table column number, in storage encoding. A column that an index-only row does not
    /// have is a caller's bug and reads as NULL.
    #[inline]
    pub fn column(&self, column: u16) -> FieldRef<'a> {
        match self.source {
            Source::Clustered(version) | Source::Peeked(version) => {
                version.field(self.table.field_of_column(column))
            }
            Source::Entry(number, record) => {
                let columns = &self.table.secondaries[number].columns;
                let whole =
                    columns.iter().position(|part| part.column == column && part.prefix_bytes.is_none());
                debug_assert!(whole.is_some(), "column {column} is not in the index");
                whole.map_or(FieldRef::Null, |position| record.field(position))
            }
        }
    }

    /// All columns the row has, in storage order with their numbers: one pass over the record, cheaper than
    /// [`Row::column`] for many columns.
    pub fn columns(&self) -> impl Iterator<Item = (u16, FieldRef<'a>)> + 'a {
        let table = self.table;
        let (version, entry) = match self.source {
            Source::Clustered(version) | Source::Peeked(version) => (Some(version), None),
            Source::Entry(number, record) => (None, Some((number, record))),
        };
        let clustered = version.into_iter().flat_map(move |version| {
            version.fields().zip(&table.clustered_columns).filter_map(|(field, kind)| match kind {
                ClusteredField::Column(column) => Some((*column, field)),
                _ => None,
            })
        });
        let entries = entry.into_iter().flat_map(move |(number, record)| {
            record.fields().zip(&table.secondaries[number].columns).filter_map(|(field, part)| {
                (part.prefix_bytes.is_none() && part.column != ROW_ID_COLUMN).then_some((part.column, field))
            })
        });
        clustered.chain(entries)
    }

    /// Copies the clustered key, for `update`, `delete` and `get`.
    pub fn clustered_key(&self, key: &mut OwnedKey) {
        key.clear();
        match self.source {
            Source::Clustered(version) | Source::Peeked(version) => {
                (0..self.table.key_fields).for_each(|field| key.push(version.field(field).inline()));
            }
            Source::Entry(number, record) => {
                let fields: btree::KeyFields<'_> = record.fields().map(FieldRef::inline).collect();
                let clustered = self.table.secondaries[number].clustered_key(self.table, &fields);
                clustered.iter().for_each(|field| key.push(*field));
            }
        }
    }

    /// Whether this is the newest committed version of a row that another transaction has locked, shown by a
    /// scan that [looks before it waits](crate::Scan::look_before_waiting). The callback may only say
    /// whether it wants the row.
    pub fn is_peeked(&self) -> bool {
        matches!(self.source, Source::Peeked(_))
    }

    /// The table.
    pub fn table(&self) -> &'a Table {
        self.table
    }
}
