//! Whether the account may do what a statement asks for, and the errors that say no.
//!
//! Tables are checked before they are looked up, so that nobody learns from an error what exists. A query
//! needs SELECT on each table that it reads, more where it locks, and a statement that may change a table
//! needs SELECT for the columns that it reads of it. Privileges are held on tables, not on columns.

use std::sync::Arc;

use crate::ast;
use crate::catalog_views::is_view_database;
use crate::context::SqlContext;
use crate::errors::{self, error};
use crate::plan::Planner;
use crate::plan::source::Source;
use crate::privilege::{Level, Privileges, Rights};
use crate::result::SqlError;

/// Privileges that show a table to an account.
fn seeing() -> Privileges {
    Privileges::all(Level::Table) | Privileges::GRANT_OPTION
}

impl SqlContext {
    /// What the account may do.
    pub fn rights(&self) -> Arc<Rights> {
        self.facts.rights()
    }

    /// Error 1044.
    pub fn database_denied(&self, database: &str) -> SqlError {
        let client = self.facts.client();
        error(errors::DBACCESS_DENIED, &[&client.user, &client.account_host, &database])
    }

    /// Error 1142.
    pub fn table_denied(&self, command: &str, table: &str) -> SqlError {
        let client = self.facts.client();
        error(errors::TABLEACCESS_DENIED, &[&command, &client.user, &client.host, &table])
    }

    /// Error 1143: reading a column of a table that may only be changed.
    fn column_denied(&self, column: &str, table: &str) -> SqlError {
        let client = self.facts.client();
        error(errors::COLUMNACCESS_DENIED, &[&"SELECT", &client.user, &client.host, &column, &table])
    }

    /// Requires one of these privileges on everything; 1227.
    pub fn require_any(&self, wanted: Privileges) -> Result<(), SqlError> {
        if self.rights().global().has_any(wanted) {
            return Ok(());
        }
        let names: Vec<&str> = wanted.names().collect();
        Err(error(errors::SPECIFIC_ACCESS_DENIED, &[&names.join(" or ")]))
    }

    /// Requires privileges on a database as a whole; 1044.
    pub fn require_on_database(&self, database: &str, wanted: Privileges) -> Result<(), SqlError> {
        let allowed = !is_view_database(database) && self.rights().on_database(database).has(wanted);
        if allowed { Ok(()) } else { Err(self.database_denied(database)) }
    }

    /// Requires that the account has anything to do with the database; 1044.
    pub fn require_sight_of_database(&self, database: &str) -> Result<(), SqlError> {
        if is_view_database(database) || self.rights().sees_database(database) {
            return Ok(());
        }
        Err(self.database_denied(database))
    }

    /// Requires privileges on a table; 1142 naming those that are missing.
    pub fn require_on_table(&self, database: &str, table: &str, wanted: Privileges) -> Result<(), SqlError> {
        if is_view_database(database) {
            let readable = wanted == Privileges::SELECT;
            return if readable { Ok(()) } else { Err(self.database_denied(database)) };
        }
        if self.temporary.find(database, table).is_some() {
            return Ok(());
        }
        self.require_on_base_table(database, table, wanted)
    }

    /// Requires privileges on a table that is no temporary one, or on a virtual one.
    pub fn require_on_base_or_virtual(
        &self,
        database: &str,
        table: &str,
        wanted: Privileges,
    ) -> Result<(), SqlError> {
        self.require_of(&self.rights(), database, table, wanted)
    }

    /// The same of somebody else's rights.
    pub fn require_of(
        &self,
        rights: &Rights,
        database: &str,
        table: &str,
        wanted: Privileges,
    ) -> Result<(), SqlError> {
        if is_view_database(database) && wanted == Privileges::SELECT {
            return Ok(());
        }
        let missing = wanted.without(rights.on_table(database, table));
        if missing.is_empty() { Ok(()) } else { Err(self.table_denied(&missing.list(), table)) }
    }

    /// Requires privileges on a table that is no temporary one, whatever else has its name.
    pub fn require_on_base_table(
        &self,
        database: &str,
        table: &str,
        wanted: Privileges,
    ) -> Result<(), SqlError> {
        let missing = wanted.without(self.rights().on_table(database, table));
        if missing.is_empty() { Ok(()) } else { Err(self.table_denied(&missing.list(), table)) }
    }

    /// SELECT … FOR UPDATE holds others up: it takes more than SELECT.
    fn require_locking_reads(&self, database: &str, table: &str) -> Result<(), SqlError> {
        let wanted = Privileges::UPDATE | Privileges::DELETE | Privileges::LOCK_TABLES;
        if is_view_database(database)
            || self.temporary.find(database, table).is_some()
            || self.rights().on_table(database, table).has_any(wanted)
        {
            return Ok(());
        }
        Err(self.table_denied("SELECT with locking clause", table))
    }

    /// Whether the account may know of the table.
    pub fn sees_table(&self, database: &str, table: &str) -> bool {
        is_view_database(database)
            || self.temporary.find(database, table).is_some()
            || self.rights().on_table(database, table).has_any(seeing())
    }

    /// Requires that the account may know of the table; 1142 with `command`.
    pub fn require_sight_of_table(&self, database: &str, table: &str, command: &str) -> Result<(), SqlError> {
        if self.sees_table(database, table) { Ok(()) } else { Err(self.table_denied(command, table)) }
    }
}

impl Planner<'_> {
    /// Requires privileges on a table, whether it exists or not.
    pub fn require_on(&self, name: &ast::TableName, wanted: Privileges) -> Result<(), SqlError> {
        self.require_here(&self.database_of(name)?, &name.name, wanted)
    }

    /// Requires what reading a table needs, FOR UPDATE or without.
    pub(crate) fn require_reading(&self, name: &ast::TableName, locks: bool) -> Result<(), SqlError> {
        self.require_on(name, Privileges::SELECT)?;
        if locks {
            self.state.require_locking_reads(&self.database_of(name)?, &name.name)?;
        }
        Ok(())
    }

    /// Who may change a table may not read it for that: columns in conditions and values need SELECT.
    pub(crate) fn require_reading_columns(&self, source: &Source, read: &[u16]) -> Result<(), SqlError> {
        let Some(column) = read.first().and_then(|column| source.columns.get(usize::from(*column))) else {
            return Ok(());
        };
        let may_read =
            self.state.require_on_table(&source.database, &source.table, Privileges::SELECT).is_ok();
        if may_read {
            return Ok(());
        }
        Err(self.state.column_denied(&column.name, &source.table))
    }
}
