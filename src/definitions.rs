//! Changes of definitions, with and without a session and a time limit.
//!
//! The methods themselves are where their work is: [`crate::ddl`], [`crate::rename`], [`crate::truncate`],
//! [`crate::index_build`], [`crate::check`], [`crate::export`], [`crate::import`],
//! [`crate::auto_increment`], [`crate::table_change`], [`crate::columns`].

use std::sync::Arc;
use std::time::Duration;

use crate::check::CheckReport;
use crate::database::Database;
use crate::error::Result;
use crate::export::ExportHold;
use crate::import::ImportReport;
use crate::rename::NamedTable;
use crate::schema::{ColumnDef, ForeignKey, KeyDef, TableDef};
use crate::table::Table;
use crate::transaction::Transaction;
use crate::types::{Collation, Value};

/// How long a change waits for transactions that use its tables when nobody says how long.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Changes of definitions, from [`Database::definitions`]: in the name of a session, and with a limit to
/// their wait for transactions that use the tables.
///
/// **Dropping futures.** While it waits for transactions that use its tables, a change that is dropped has
/// done nothing. Then it goes on to its end in the background (creating, dropping, renaming, truncating,
/// discarding); a new index, an import and a table that is rebuilt are taken back instead, in the background
/// too, unless the index or the new file had been made known already; a check ends. The tables stay locked
/// until that is over: the next statement that asks for them sees them as they were or as they were to
/// become.
///
/// ```
/// # fn main() -> untorn::Result<()> {
/// # untorn::asynchronous::block_on(async {
/// use std::time::Duration;
/// use untorn::Error;
/// use untorn::asynchronous::Database;
/// use untorn::schema::{ColumnDef, TableDef};
/// use untorn::types::{ColumnType, Value};
///
/// let db = Database::in_memory().await?;
/// let def = TableDef::new(vec![ColumnDef::new("id", ColumnType::bigint())]).primary_key(&["id"]);
/// let item = db.create_table_if_missing("shop", "item", def).await?;
/// let mut t = db.begin();
/// t.insert(&item, &[Value::Int(1)]).await?;
/// let at_once = db.definitions().timeout(Duration::ZERO);
/// assert!(matches!(at_once.drop_table("shop", "item").await, Err(Error::MetadataLockTimeout)));
/// # t.rollback().await?;
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Clone, Copy)]
#[must_use = "it does nothing by itself: call one of its methods"]
pub struct Definitions<'a> {
    pub(crate) database: &'a Database,
    pub(crate) session: Option<&'a Transaction>,
    pub(crate) timeout: Duration,
}

impl<'a> Definitions<'a> {
    /// In the name of the transaction of a session. The tables that it uses or holds are no obstacle, unless
    /// it has changed rows that are not committed
    /// ([`Error::UncommittedChanges`](crate::Error::UncommittedChanges)); what waits for it and what it waits
    /// for is searched for deadlocks; and a kill of the session ends the work on an index and a check.
    ///
    /// Without one, a transaction of the caller's is waited for like any other.
    pub fn session(mut self, session: impl Into<Option<&'a Transaction>>) -> Definitions<'a> {
        self.session = session.into();
        self
    }

    /// Whether foreign keys are checked: as in the session.
    pub(crate) fn checks_foreign_keys(&self) -> bool {
        self.session.is_none_or(Transaction::foreign_key_checks)
    }

    /// Waits at most this long for transactions that use the tables, then fails with
    /// [`Error::MetadataLockTimeout`](crate::Error::MetadataLockTimeout). A minute, unless set here; the
    /// work itself has no limit.
    pub fn timeout(mut self, timeout: Duration) -> Definitions<'a> {
        self.timeout = timeout;
        self
    }
}

/// Each is the method of [`Definitions`] of the same name, with a limit of a minute to its waits.
impl Database {
    /// Changes of definitions, for a session or with another time limit.
    pub fn definitions(&self) -> Definitions<'_> {
        Definitions { database: self, session: None, timeout: TIMEOUT }
    }

    /// Creates a database, the namespace that tables live in.
    ///
    /// # Errors
    /// As [`Definitions::create_database`].
    pub async fn create_database(&self, name: &str, collation: Collation) -> Result<()> {
        self.definitions().create_database(name, collation).await
    }

    /// Gives a database another collation.
    ///
    /// # Errors
    /// As [`Definitions::alter_database`].
    pub async fn alter_database(&self, name: &str, collation: Collation) -> Result<()> {
        self.definitions().alter_database(name, collation).await
    }

    /// Drops a database with all its tables, at once; returns how many there were.
    ///
    /// # Errors
    /// As [`Definitions::drop_database`].
    pub async fn drop_database(&self, name: &str) -> Result<usize> {
        self.definitions().drop_database(name).await
    }

    /// Creates a table and opens it.
    ///
    /// # Errors
    /// As [`Definitions::create_table`].
    pub async fn create_table(&self, database: &str, name: &str, def: TableDef) -> Result<Arc<Table>> {
        self.definitions().create_table(database, name, def).await
    }

    /// Opens a table, or creates it, and its database too.
    ///
    /// # Errors
    /// As [`Definitions::create_table_if_missing`].
    pub async fn create_table_if_missing(
        &self,
        database: &str,
        name: &str,
        def: TableDef,
    ) -> Result<Arc<Table>> {
        self.definitions().create_table_if_missing(database, name, def).await
    }

    /// Drops a table.
    ///
    /// # Errors
    /// As [`Definitions::drop_table`].
    pub async fn drop_table(&self, database: &str, name: &str) -> Result<()> {
        self.definitions().drop_table(database, name).await
    }

    /// Drops tables, given as database and name: all of them or none.
    ///
    /// # Errors
    /// As [`Definitions::drop_tables`].
    pub async fn drop_tables(&self, tables: &[NamedTable<'_>]) -> Result<()> {
        self.definitions().drop_tables(tables).await
    }

    /// Renames a table, given as database and name, also into another database. Handles of it stay good.
    ///
    /// # Errors
    /// As [`Definitions::rename_table`].
    pub async fn rename_table(&self, from: NamedTable<'_>, to: NamedTable<'_>) -> Result<()> {
        self.definitions().rename_table(from, to).await
    }

    /// Renames tables from left to right, all of them or none.
    ///
    /// # Errors
    /// As [`Definitions::rename_tables`].
    pub async fn rename_tables(&self, pairs: &[(NamedTable<'_>, NamedTable<'_>)]) -> Result<()> {
        self.definitions().rename_tables(pairs).await
    }

    /// Removes all rows of a table. AUTO_INCREMENT begins at 1 again.
    ///
    /// # Errors
    /// As [`Definitions::truncate_table`].
    pub async fn truncate_table(&self, database: &str, name: &str) -> Result<()> {
        self.definitions().truncate_table(database, name).await
    }

    /// Adds a secondary index.
    ///
    /// # Errors
    /// As [`Definitions::create_index`].
    pub async fn create_index(&self, database: &str, name: &str, key: KeyDef) -> Result<()> {
        self.definitions().create_index(database, name, key).await
    }

    /// Drops a secondary index.
    ///
    /// # Errors
    /// As [`Definitions::drop_index`].
    pub async fn drop_index(&self, database: &str, name: &str, index: &str) -> Result<()> {
        self.definitions().drop_index(database, name, index).await
    }

    /// Drops secondary indexes and adds others, all at once or not at all.
    ///
    /// # Errors
    /// As [`Definitions::change_indexes`].
    pub async fn change_indexes(
        &self,
        database: &str,
        name: &str,
        added: Vec<KeyDef>,
        dropped: &[&str],
    ) -> Result<()> {
        self.definitions().change_indexes(database, name, added, dropped).await
    }

    /// Adds foreign keys to a table, after those named in `dropped` are gone.
    ///
    /// # Errors
    /// As [`Definitions::change_foreign_keys`].
    pub async fn change_foreign_keys(
        &self,
        database: &str,
        name: &str,
        added: Vec<ForeignKey>,
        dropped: &[&str],
    ) -> Result<()> {
        self.definitions().change_foreign_keys(database, name, added, dropped).await
    }

    /// Adds a column behind the others. The rows that are there get `value` in it.
    ///
    /// # Errors
    /// As [`Definitions::add_column`].
    pub async fn add_column(
        &self,
        database: &str,
        name: &str,
        column: ColumnDef,
        value: &Value<'_>,
    ) -> Result<()> {
        self.definitions().add_column(database, name, column, value).await
    }

    /// Drops a column. Keys are left with their other columns, and a key of this column alone goes too.
    ///
    /// # Errors
    /// As [`Definitions::drop_column`].
    pub async fn drop_column(&self, database: &str, name: &str, column: &str) -> Result<()> {
        self.definitions().drop_column(database, name, column).await
    }

    /// Gives a column another name, at once.
    ///
    /// # Errors
    /// As [`Definitions::rename_column`].
    pub async fn rename_column(&self, database: &str, name: &str, from: &str, to: &str) -> Result<()> {
        self.definitions().rename_column(database, name, from, to).await
    }

    /// The next row of a table gets this AUTO_INCREMENT number, or the one behind the greatest that is there.
    ///
    /// # Errors
    /// As [`Definitions::set_auto_increment`].
    pub async fn set_auto_increment(&self, database: &str, name: &str, next: u64) -> Result<()> {
        self.definitions().set_auto_increment(database, name, next).await
    }

    /// Checks a table: its trees, and whether its indexes agree. It cannot be changed meanwhile.
    ///
    /// # Errors
    /// As [`Definitions::check_table`].
    pub async fn check_table(&self, database: &str, name: &str) -> Result<CheckReport> {
        self.definitions().check_table(database, name).await
    }

    /// Makes a table's file complete and holds it still until the answer is dropped. Copy the `.ibd` file and
    /// the `.cfg` file next to it meanwhile: MySQL and MariaDB import them.
    ///
    /// # Errors
    /// As [`Definitions::export_table`].
    pub async fn export_table(&self, database: &str, name: &str) -> Result<ExportHold> {
        self.definitions().export_table(database, name).await
    }

    /// Removes a table's file, to import another one in its place.
    ///
    /// # Errors
    /// As [`Definitions::discard_tablespace`].
    pub async fn discard_tablespace(&self, database: &str, name: &str) -> Result<()> {
        self.definitions().discard_tablespace(database, name).await
    }

    /// Takes the file that was copied to the place of a discarded table's file as the table's tablespace.
    ///
    /// # Errors
    /// As [`Definitions::import_tablespace`].
    pub async fn import_tablespace(&self, database: &str, name: &str) -> Result<ImportReport> {
        self.definitions().import_tablespace(database, name).await
    }
}
