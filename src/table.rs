//! An open table: its definition, its trees, its counter and its metadata lock.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::auto_increment::AutoIncrement;
use crate::error::Error;
use crate::metadata_lock::MetadataLock;
use crate::schema::TableDef;

/// An open table. DDL does not change it but creates a new one; this one is then no longer
/// [`Table::is_current`].
pub struct Table {
    /// Name of the database.
    pub database: String,
    /// Name of the table.
    pub name: String,
    /// Its definition.
    pub def: TableDef,
    /// Its trees, for scans and changes.
    #[doc(hidden)]
    pub rows: Arc<txn::Table>,
    /// Its AUTO_INCREMENT counter.
    #[doc(hidden)]
    pub auto_increment: Option<AutoIncrement>,
    pub(crate) metadata: Arc<MetadataLock>,
    pub(crate) current: AtomicBool,
    pub(crate) row_count: AtomicU64,
    /// Some table has a foreign key to it. Changes while nobody uses the table.
    pub(crate) referenced: AtomicBool,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Table({}.{})", self.database, self.name)
    }
}

impl Table {
    /// Whether this is still the table of its name. Ask again once the transaction uses it.
    pub fn is_current(&self) -> bool {
        self.current.load(Ordering::Acquire)
    }

    /// Whether some table, itself perhaps, has a foreign key to it. Ask once the transaction uses it.
    pub fn is_referenced(&self) -> bool {
        self.referenced.load(Ordering::Relaxed)
    }

    /// Whether it has a foreign key, or some table has one to it.
    pub(crate) fn has_relations(&self) -> bool {
        !self.def.foreign_keys.is_empty() || self.is_referenced()
    }

    /// The error for a statement that needs the rows of a table whose tablespace was discarded.
    pub(crate) fn discarded_error(&self) -> Error {
        Error::TablespaceDiscarded(self.database.clone(), self.name.clone())
    }

    /// The approximate number of rows: counted by changes since the last full count.
    pub fn row_count_estimate(&self) -> u64 {
        self.row_count.load(Ordering::Relaxed)
    }

    /// Adds to the rough row count.
    pub(crate) fn note_rows(&self, change: i64) {
        let _ = self.row_count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |rows| {
            Some(rows.saturating_add_signed(change))
        });
    }

    /// The value that AUTO_INCREMENT gives the next row, if the table has such a column. May block to read a
    /// page.
    pub fn next_auto_increment(&self) -> Option<u64> {
        Some(self.auto_increment.as_ref()?.next(self.rows.clustered.store()))
    }

    /// The path of its file, relative to the data directory.
    pub fn file(&self) -> PathBuf {
        table_file(&self.database, &self.name)
    }
}

/// The path of a table's file, relative to the data directory, as in MySQL: `<database>/<table>.ibd`.
/// Characters that a file name should not have are written as `@` and four hexadecimal digits.
pub fn table_file(database: &str, name: &str) -> PathBuf {
    PathBuf::from(file_name(database)).join(format!("{}.ibd", file_name(name)))
}

/// A database's or table's name as a file name (MySQL's filename encoding for what is not a letter, digit or
/// underscore).
pub fn file_name(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_ascii_alphanumeric() || c == '_' {
            encoded.push(c);
        } else {
            let mut units = [0u16; 2];
            for unit in c.encode_utf16(&mut units) {
                encoded.push_str(&format!("@{unit:04x}"));
            }
        }
    }
    encoded
}

/// The inverse of [`file_name`].
pub fn name_of_file(file_name: &str) -> String {
    let mut units = Vec::with_capacity(file_name.len());
    let mut rest = file_name;
    while let Some(c) = rest.chars().next() {
        let code =
            (c == '@').then(|| rest.get(1..5)).flatten().and_then(|hex| u16::from_str_radix(hex, 16).ok());
        let taken = match code {
            Some(unit) => {
                units.push(unit);
                5
            }
            None => {
                units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
                c.len_utf8()
            }
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_stand_for_names() {
        for name in ["plain_1", "with space", "a.b@c", "caf\u{e9}", "\u{1f980}", "@00", ""] {
            assert_eq!(name_of_file(&file_name(name)), name);
        }
    }
}
