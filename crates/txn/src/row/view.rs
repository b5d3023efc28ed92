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

    /// Shows all columns that the row has, in storage order with their numbers: one pass over the record,
    /// cheaper than [`Row::column`] for many columns.
    #[inline]
    pub fn for_each_column(&self, mut f: impl FnMut(u16, FieldRef<'a>)) {
        match self.source {
            Source::Clustered(version) | Source::Peeked(version) => {
                for (field, kind) in version.fields().zip(&self.table.clustered_columns) {
                    if let ClusteredField::Column(column) = kind {
                        f(*column, field);
                    }
                }
            }
            Source::Entry(number, record) => {
                for (field, part) in record.fields().zip(&self.table.secondaries[number].columns) {
                    if part.prefix_bytes.is_none() && part.column != ROW_ID_COLUMN {
                        f(part.column, field);
                    }
                }
            }
        }
    }

    /// The bytes of the clustered record and the place of its origin among them, if the row is what that says
    /// and all of it is there: no older version, and nothing off-page. Copied, they are a record like this
    /// one ([`RecordRef::new`], with the definition of the clustered index).
    #[inline]
    pub fn clustered_record(&self) -> Option<(&'a [u8], usize)> {
        match self.source {
            Source::Clustered(Version { record, overlay: None }) => record.raw_inline(),
            _ => None,
        }
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
