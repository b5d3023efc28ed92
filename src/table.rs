//! An open table: its definition, its trees, its counter and its metadata lock.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::auto_increment::AutoIncrement;
use crate::error::Error;
use crate::file_names::table_file;
use crate::metadata_lock::MetadataLock;
use crate::schema::TableDef;
use crate::statistics::TableCounts;

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
    pub(crate) counts: TableCounts,
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

    /// Whether it has a foreign key, or some table has one to it. Ask once the transaction uses it.
    pub fn has_relations(&self) -> bool {
        !self.def.foreign_keys.is_empty() || self.is_referenced()
    }

    /// The error for a statement that needs the rows of a table whose tablespace was discarded.
    pub(crate) fn discarded_error(&self) -> Error {
        Error::TablespaceDiscarded(self.database.clone(), self.name.clone())
    }

    /// Whether other servers could read the table's file: [`Error::VirtualColumn`],
    /// [`Error::FunctionalIndex`].
    pub(crate) fn refuse_virtual_columns(&self) -> Result<(), Error> {
        let Some(column) = self.def.virtual_column() else { return Ok(()) };
        let table = format!("{}.{}", self.database, self.name);
        Err(match column.hidden_for() {
            Some(key) => Error::FunctionalIndex { table, key: key.to_owned() },
            None => Error::VirtualColumn { table, column: column.name.clone() },
        })
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
