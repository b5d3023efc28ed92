//! Changes of definitions in a program without an executor.

use std::sync::Arc;
use std::time::Duration;

use disk::block_on;

use super::database::Database;
use super::transaction::Transaction;
use crate::asynchronous;
use crate::check::CheckReport;
use crate::error::Result;
use crate::export::ExportHold;
use crate::import::ImportReport;
use crate::rename::NamedTable;
use crate::schema::{ColumnDef, ForeignKey, KeyDef, TableDef};
use crate::table::Table;
use crate::types::{Collation, Value};

/// Changes of definitions, from [`Database::definitions`]: in the name of a transaction of the caller's, and
/// with a limit to their wait for transactions that use the tables.
///
/// ```
/// # fn main() -> untorn::Result<()> {
/// use std::time::Duration;
/// use untorn::Error;
///
/// let db = untorn::Database::in_memory()?;
/// let ages = db.key_value::<String, u32>("ages")?;
/// let mut t = db.begin();
/// assert_eq!(ages.get(&mut t, "Ada")?, None);
///
/// // `t` has read the table, so that it stays as it is until `t` ends.
/// let at_once = db.definitions().timeout(Duration::ZERO);
/// assert!(matches!(at_once.drop_table("untorn", "ages"), Err(Error::MetadataLockTimeout)));
/// // For `t` itself it is no obstacle.
/// at_once.session(&t).drop_table("untorn", "ages")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
#[must_use = "it does nothing by itself: call one of its methods"]
pub struct Definitions<'a>(asynchronous::Definitions<'a>);

impl<'a> Definitions<'a> {
    /// In the name of a transaction: the tables that it uses are no obstacle, unless it has changed rows
    /// ([`Error::UncommittedChanges`](crate::Error::UncommittedChanges)). Without one, a transaction of the
    /// caller's is waited for like any other, and never ends: the thread waits for itself until the timeout.
    pub fn session(self, session: &'a Transaction) -> Definitions<'a> {
        Definitions(self.0.session(session.inner()))
    }

    /// Waits at most this long for transactions that use the tables, then fails with
    /// [`Error::MetadataLockTimeout`](crate::Error::MetadataLockTimeout). A minute, unless set here; the
    /// work itself has no limit.
    pub fn timeout(self, timeout: Duration) -> Definitions<'a> {
        Definitions(self.0.timeout(timeout))
    }

    /// Creates a database, the namespace that tables live in.
    ///
    /// # Errors
    /// As [`Database::create_database`].
    pub fn create_database(self, name: &str, collation: Collation) -> Result<()> {
        block_on(self.0.create_database(name, collation))
    }

    /// Gives a database another collation. Tables that are there keep theirs.
    ///
    /// # Errors
    /// As [`Database::alter_database`].
    pub fn alter_database(self, name: &str, collation: Collation) -> Result<()> {
        block_on(self.0.alter_database(name, collation))
    }

    /// Drops a database with all its tables, at once; returns how many there were.
    ///
    /// # Errors
    /// As [`Database::drop_database`].
    pub fn drop_database(self, name: &str) -> Result<usize> {
        block_on(self.0.drop_database(name))
    }

    /// Creates a table and opens it.
    ///
    /// # Errors
    /// As [`Database::create_table`].
    pub fn create_table(self, database: &str, name: &str, def: TableDef) -> Result<Arc<Table>> {
        block_on(self.0.create_table(database, name, def))
    }

    /// Opens a table, or creates it, and its database too.
    ///
    /// # Errors
    /// As [`Database::create_table_if_missing`].
    pub fn create_table_if_missing(self, database: &str, name: &str, def: TableDef) -> Result<Arc<Table>> {
        block_on(self.0.create_table_if_missing(database, name, def))
    }

    /// Drops a table.
    ///
    /// # Errors
    /// As [`Database::drop_table`].
    pub fn drop_table(self, database: &str, name: &str) -> Result<()> {
        block_on(self.0.drop_table(database, name))
    }

    /// Drops tables, given as database and name: all of them or none.
    ///
    /// # Errors
    /// As [`Database::drop_tables`].
    pub fn drop_tables(self, tables: &[NamedTable<'_>]) -> Result<()> {
        block_on(self.0.drop_tables(tables))
    }

    /// Renames a table, given as database and name, also into another database. Handles of it remain valid.
    ///
    /// # Errors
    /// As [`Database::rename_table`].
    pub fn rename_table(self, from: NamedTable<'_>, to: NamedTable<'_>) -> Result<()> {
        block_on(self.0.rename_table(from, to))
    }

    /// Renames tables from left to right, all of them or none.
    ///
    /// # Errors
    /// As [`Database::rename_tables`].
    pub fn rename_tables(self, pairs: &[(NamedTable<'_>, NamedTable<'_>)]) -> Result<()> {
        block_on(self.0.rename_tables(pairs))
    }

    /// Removes all rows of a table. AUTO_INCREMENT begins at 1 again.
    ///
    /// # Errors
    /// As [`Database::truncate_table`].
    pub fn truncate_table(self, database: &str, name: &str) -> Result<()> {
        block_on(self.0.truncate_table(database, name))
    }

    /// Adds a secondary index.
    ///
    /// # Errors
    /// As [`Database::create_index`].
    pub fn create_index(self, database: &str, name: &str, key: KeyDef) -> Result<()> {
        block_on(self.0.create_index(database, name, key))
    }

    /// Drops a secondary index.
    ///
    /// # Errors
    /// As [`Database::drop_index`].
    pub fn drop_index(self, database: &str, name: &str, index: &str) -> Result<()> {
        block_on(self.0.drop_index(database, name, index))
    }

    /// Drops secondary indexes and adds others, all at once or not at all.
    ///
    /// # Errors
    /// As [`Database::change_indexes`].
    pub fn change_indexes(
        self,
        database: &str,
        name: &str,
        added: Vec<KeyDef>,
        dropped: &[&str],
    ) -> Result<()> {
        block_on(self.0.change_indexes(database, name, added, dropped))
    }

    /// Adds foreign keys to a table, after those named in `dropped` are gone.
    ///
    /// # Errors
    /// As [`Database::change_foreign_keys`].
    pub fn change_foreign_keys(
        self,
        database: &str,
        name: &str,
        added: Vec<ForeignKey>,
        dropped: &[&str],
    ) -> Result<()> {
        block_on(self.0.change_foreign_keys(database, name, added, dropped))
    }

    /// Adds a column behind the others. The rows that are there get `value` in it.
    ///
    /// # Errors
    /// As [`Database::add_column`].
    pub fn add_column(self, database: &str, name: &str, column: ColumnDef, value: &Value<'_>) -> Result<()> {
        block_on(self.0.add_column(database, name, column, value))
    }

    /// Drops a column. Keys are left with their other columns, and a key of this column alone goes too.
    ///
    /// # Errors
    /// As [`Database::drop_column`].
    pub fn drop_column(self, database: &str, name: &str, column: &str) -> Result<()> {
        block_on(self.0.drop_column(database, name, column))
    }

    /// Gives a column another name, at once.
    ///
    /// # Errors
    /// As [`Database::rename_column`].
    pub fn rename_column(self, database: &str, name: &str, from: &str, to: &str) -> Result<()> {
        block_on(self.0.rename_column(database, name, from, to))
    }

    /// The next row of a table gets this AUTO_INCREMENT number, or the one behind the greatest that is there.
    ///
    /// # Errors
    /// As [`Database::set_auto_increment`].
    pub fn set_auto_increment(self, database: &str, name: &str, next: u64) -> Result<()> {
        block_on(self.0.set_auto_increment(database, name, next))
    }

    /// Checks a table: its trees, and whether its indexes agree. It cannot be changed meanwhile.
    ///
    /// # Errors
    /// As [`Database::check_table`].
    pub fn check_table(self, database: &str, name: &str) -> Result<CheckReport> {
        block_on(self.0.check_table(database, name))
    }

    /// Makes a table's file complete and holds it still until the answer is dropped. Copy the `.ibd` file and
    /// the `.cfg` file next to it meanwhile: MySQL and MariaDB import them.
    ///
    /// # Errors
    /// As [`Database::export_table`].
    pub fn export_table(self, database: &str, name: &str) -> Result<ExportHold> {
        block_on(self.0.export_table(database, name))
    }

    /// Removes a table's file, to import another one in its place.
    ///
    /// # Errors
    /// As [`Database::discard_tablespace`].
    pub fn discard_tablespace(self, database: &str, name: &str) -> Result<()> {
        block_on(self.0.discard_tablespace(database, name))
    }

    /// Takes the file that was copied to the place of a discarded table's file as the table's tablespace.
    ///
    /// # Errors
    /// As [`Database::import_tablespace`].
    pub fn import_tablespace(self, database: &str, name: &str) -> Result<ImportReport> {
        block_on(self.0.import_tablespace(database, name))
    }
}

impl Database {
    /// Changes of definitions, for a transaction of the caller's or with another time limit than the minute
    /// of the methods below.
    pub fn definitions(&self) -> Definitions<'_> {
        Definitions(self.asynchronous().definitions())
    }

    /// Creates a database, the namespace that tables live in.
    ///
    /// # Errors
    /// [`Error::DatabaseExists`](crate::Error::DatabaseExists), a name that no directory can have, I/O
    /// errors.
    pub fn create_database(&self, name: &str, collation: Collation) -> Result<()> {
        self.definitions().create_database(name, collation)
    }

    /// Gives a database another collation. Tables that are there keep theirs.
    ///
    /// # Errors
    /// [`Error::NoSuchDatabase`](crate::Error::NoSuchDatabase), a timeout, or a catalog that cannot be written.
    pub fn alter_database(&self, name: &str, collation: Collation) -> Result<()> {
        self.definitions().alter_database(name, collation)
    }

    /// Drops a database with all its tables, at once; returns how many there were.
    ///
    /// # Errors
    /// No such database; transactions that use one of its tables for longer than a minute. Nothing is dropped
    /// then.
    pub fn drop_database(&self, name: &str) -> Result<usize> {
        self.definitions().drop_database(name)
    }

    /// Creates a table and opens it.
    ///
    /// # Errors
    /// One of this name, no such database, a definition that cannot be, a full disk; nothing is left behind
    /// then.
    pub fn create_table(&self, database: &str, name: &str, def: TableDef) -> Result<Arc<Table>> {
        self.definitions().create_table(database, name, def)
    }

    /// Opens a table, or creates it, and its database too. A table that is there has to be defined as `def`
    /// says; more indexes are fine.
    ///
    /// # Errors
    /// As [`Database::create_table`]; [`Error::OtherDefinition`](crate::Error::OtherDefinition), which names
    /// the first difference.
    pub fn create_table_if_missing(&self, database: &str, name: &str, def: TableDef) -> Result<Arc<Table>> {
        self.definitions().create_table_if_missing(database, name, def)
    }

    /// Drops a table.
    ///
    /// # Errors
    /// No such table; transactions that use it for longer than a minute.
    pub fn drop_table(&self, database: &str, name: &str) -> Result<()> {
        self.definitions().drop_table(database, name)
    }

    /// Drops tables, given as database and name: all of them or none.
    ///
    /// # Errors
    /// As [`Database::drop_table`]; nothing is dropped then.
    pub fn drop_tables(&self, tables: &[NamedTable<'_>]) -> Result<()> {
        self.definitions().drop_tables(tables)
    }

    /// Renames a table, given as database and name, also into another database. Handles of it remain valid.
    ///
    /// # Errors
    /// No such table, one of the new name, transactions that use it for longer than a minute.
    pub fn rename_table(&self, from: NamedTable<'_>, to: NamedTable<'_>) -> Result<()> {
        self.definitions().rename_table(from, to)
    }

    /// Renames tables from left to right, all of them or none. Names may be swapped by way of a third one.
    ///
    /// # Errors
    /// As [`Database::rename_table`]; nothing is renamed then.
    pub fn rename_tables(&self, pairs: &[(NamedTable<'_>, NamedTable<'_>)]) -> Result<()> {
        self.definitions().rename_tables(pairs)
    }

    /// Removes all rows of a table. AUTO_INCREMENT begins at 1 again.
    ///
    /// # Errors
    /// No such table; transactions that use it for longer than a minute; a full disk.
    pub fn truncate_table(&self, database: &str, name: &str) -> Result<()> {
        self.definitions().truncate_table(database, name)
    }

    /// Adds a secondary index.
    ///
    /// # Errors
    /// No such table, an index of this name, rows with the same key in a unique index, transactions that use
    /// the table for longer than a minute.
    pub fn create_index(&self, database: &str, name: &str, key: KeyDef) -> Result<()> {
        self.definitions().create_index(database, name, key)
    }

    /// Drops a secondary index.
    ///
    /// # Errors
    /// No such table or index, transactions that use the table for longer than a minute.
    pub fn drop_index(&self, database: &str, name: &str, index: &str) -> Result<()> {
        self.definitions().drop_index(database, name, index)
    }

    /// Drops secondary indexes and adds others, all at once or not at all. What is dropped goes first, so
    /// that a new index may have its name.
    ///
    /// # Errors
    /// As [`Database::create_index`] and [`Database::drop_index`]; the table is as before then.
    pub fn change_indexes(
        &self,
        database: &str,
        name: &str,
        added: Vec<KeyDef>,
        dropped: &[&str],
    ) -> Result<()> {
        self.definitions().change_indexes(database, name, added, dropped)
    }

    /// Adds foreign keys to a table, after those named in `dropped` are gone.
    /// The rows that are there must obey them, unless the session does not check foreign keys
    /// ([`Transaction::set_foreign_key_checks`](crate::Transaction::set_foreign_key_checks)).
    ///
    /// # Errors
    /// [`Error::ForeignKeyRefused`](crate::Error::ForeignKeyRefused);
    /// [`Error::ForeignKeyParentMissing`](crate::Error::ForeignKeyParentMissing) for a row without a parent;
    /// no such table; transactions that use the tables for longer than a minute. The table is as it was then.
    pub fn change_foreign_keys(
        &self,
        database: &str,
        name: &str,
        added: Vec<ForeignKey>,
        dropped: &[&str],
    ) -> Result<()> {
        self.definitions().change_foreign_keys(database, name, added, dropped)
    }

    /// Adds a column behind the others. The rows that are there get `value` in it.
    ///
    /// # Errors
    /// No such table, a column of this name, a value that it does not take; transactions that use the table
    /// for longer than a minute; a full disk. The table is as before then.
    /// [`Error::NeedsSql`](crate::Error::NeedsSql) for a table with SQL expressions.
    pub fn add_column(&self, database: &str, name: &str, column: ColumnDef, value: &Value<'_>) -> Result<()> {
        self.definitions().add_column(database, name, column, value)
    }

    /// Drops a column. Keys are left with their other columns, and a key of this column alone goes too.
    ///
    /// # Errors
    /// No such table or column, the last column, rows that a unique key does not tell apart any more, and
    /// those of [`Database::add_column`].
    pub fn drop_column(&self, database: &str, name: &str, column: &str) -> Result<()> {
        self.definitions().drop_column(database, name, column)
    }

    /// Gives a column another name, at once.
    ///
    /// # Errors
    /// No such table or column, a name that is taken, transactions that use the table for longer than a
    /// minute, [`Error::NeedsSql`](crate::Error::NeedsSql).
    pub fn rename_column(&self, database: &str, name: &str, from: &str, to: &str) -> Result<()> {
        self.definitions().rename_column(database, name, from, to)
    }

    /// The next row of a table gets this AUTO_INCREMENT number, or the one behind the greatest that is there.
    /// Nothing for a table without such a column.
    ///
    /// # Errors
    /// No such table; transactions that use it for longer than a minute.
    pub fn set_auto_increment(&self, database: &str, name: &str, next: u64) -> Result<()> {
        self.definitions().set_auto_increment(database, name, next)
    }

    /// Checks a table: its trees, and whether its indexes agree. It cannot be changed meanwhile.
    ///
    /// # Errors
    /// No such table; transactions that use it for longer than a minute. Damage is no error: see the report.
    pub fn check_table(&self, database: &str, name: &str) -> Result<CheckReport> {
        self.definitions().check_table(database, name)
    }

    /// Makes a table's file complete and holds it still until the answer is dropped. Copy the `.ibd` file and
    /// the `.cfg` file next to it meanwhile: MySQL and MariaDB import them.
    ///
    /// # Errors
    /// No such table; transactions that use it for longer than a minute; I/O errors.
    pub fn export_table(&self, database: &str, name: &str) -> Result<ExportHold> {
        self.definitions().export_table(database, name)
    }

    /// Removes a table's file, to import another one in its place.
    ///
    /// # Errors
    /// No such table; transactions that use it for longer than a minute.
    pub fn discard_tablespace(&self, database: &str, name: &str) -> Result<()> {
        self.definitions().discard_tablespace(database, name)
    }

    /// Takes the file that was copied to the place of a discarded table's file as the table's tablespace.
    ///
    /// # Errors
    /// A file that does not fit the definition, or is damaged: the message says which page. The table stays
    /// discarded.
    pub fn import_tablespace(&self, database: &str, name: &str) -> Result<ImportReport> {
        self.definitions().import_tablespace(database, name)
    }
}
