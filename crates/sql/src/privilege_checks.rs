//! Whether the account may do what a statement asks for, and the errors that say no.
//!
//! Tables are checked before they are looked up, so that nobody learns from an error what exists. A query
//! needs SELECT on each table that it reads, more where it locks, and a statement that may change a table
//! needs SELECT for the columns that it reads of it. Who holds a privilege on single columns only may name
//! the table; then the source says what may be done with each column ([`ColumnAccess`]), and the columns are
//! checked where their names are bound (1143). A source of an account that holds everything it needs on the
//! table says nothing, and nothing is checked.

use std::sync::Arc;

use crate::ast;
use crate::catalog_views::{self, PERFORMANCE_SCHEMA, is_view_database};
use crate::context::SqlContext;
use crate::errors::{self, error};
use crate::plan::Planner;
use crate::plan::source::Source;
use crate::privilege::{ColumnRights, Level, Privileges, Rights};
use crate::result::SqlError;

/// What may be done with the columns of a source.
#[derive(Debug)]
pub struct ColumnAccess {
    /// With all of them.
    on_all: Privileges,
    /// With some, beside that.
    on_some: ColumnRights,
}

impl ColumnAccess {
    fn allows(&self, column: &str, wanted: Privileges) -> bool {
        let on_column = || self.on_some.get(&column.to_lowercase()).map(|(_, what)| *what);
        self.on_all.has(wanted) || (self.on_all | on_column().unwrap_or_default()).has(wanted)
    }
}

/// Privileges that show a table to an account.
pub(crate) fn seeing() -> Privileges {
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

    /// Error 1143.
    pub fn column_denied(&self, command: &str, column: &str, table: &str) -> SqlError {
        let client = self.facts.client();
        error(errors::COLUMNACCESS_DENIED, &[&command, &client.user, &client.host, &column, &table])
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
            || self.rights().on_any_column(database, table).has_any(wanted)
        {
            return Ok(());
        }
        Err(self.table_denied("SELECT with locking clause", table))
    }

    /// Whether the account may know of the table, which is no temporary one, whatever else has its name.
    pub fn sees_table(&self, database: &str, table: &str) -> bool {
        is_view_database(database) || self.rights().on_any_column(database, table).has_any(seeing())
    }

    /// Whether nothing but privileges on columns lets the account know of the table.
    pub fn is_known_by_columns_only(&self, database: &str, table: &str) -> bool {
        let rights = self.rights();
        !is_view_database(database)
            && self.temporary.find(database, table).is_none()
            && !rights.on_table(database, table).has_any(seeing())
            && rights.columns_of(database, table).is_some()
    }

    /// Requires that the account may know of the table; 1142 with `command`.
    pub fn require_sight_of_table(&self, database: &str, table: &str, command: &str) -> Result<(), SqlError> {
        let sees = self.temporary.find(database, table).is_some() || self.sees_table(database, table);
        if sees { Ok(()) } else { Err(self.table_denied(command, table)) }
    }
}

impl Planner<'_> {
    /// Requires privileges on a table, whether it exists or not.
    pub fn require_on(&self, name: &ast::TableName, wanted: Privileges) -> Result<(), SqlError> {
        self.require_here(&self.database_of(name)?, &name.name, wanted)
    }

    /// Requires what reading a table needs, FOR UPDATE or without.
    pub(crate) fn require_reading(
        &self,
        name: &ast::TableName,
        locks: bool,
    ) -> Result<Option<Box<ColumnAccess>>, SqlError> {
        let access = self.require_on_some_columns(name, Privileges::SELECT, Privileges::NONE)?;
        if locks {
            self.state.require_locking_reads(&self.database_of(name)?, &name.name)?;
        }
        Ok(access)
    }

    /// Requires privileges on a table, those that there are on columns at least on one of them. The result
    /// says what is allowed of each column, unless the table may be read and `done` with as a whole.
    pub(crate) fn require_on_some_columns(
        &self,
        name: &ast::TableName,
        wanted: Privileges,
        done: Privileges,
    ) -> Result<Option<Box<ColumnAccess>>, SqlError> {
        let written = self.database_of(name)?;
        let (mut database, mut table) = (&*written, &*name.name);
        let is_temporary = !self.is_in_view() && self.state.temporary.find(database, table).is_some();
        if is_temporary || is_view_database(database) {
            self.require_here(database, table, wanted)?;
            match catalog_views::find(database, table) {
                Some(view) if view.database == PERFORMANCE_SCHEMA => {
                    (database, table) = (view.database, view.name)
                }
                _ => return Ok(None),
            }
        }
        let rights = self.acting_rights().unwrap_or_else(|| self.state.rights());
        let on_all = rights.on_table(database, table);
        let some = rights.columns_of(database, table);
        let on_some = some.into_iter().flatten().fold(Privileges::NONE, |all, (_, (_, what))| all | *what);
        if !(on_all | on_some).has(wanted) {
            return Err(self.state.table_denied(&wanted.without(on_all | on_some).list(), &name.name));
        }
        if on_all.has(Privileges::SELECT | done) {
            return Ok(None);
        }
        Ok(Some(Box::new(ColumnAccess { on_all, on_some: some.cloned().unwrap_or_default() })))
    }

    /// Requires a privilege on a column that a statement names.
    pub(crate) fn require_column(
        &self,
        source: &Source,
        column: &str,
        wanted: Privileges,
    ) -> Result<(), SqlError> {
        match &source.access {
            Some(access) if !access.allows(column, wanted) => {
                Err(self.state.column_denied(&wanted.list(), column, &source.table))
            }
            _ if wanted == Privileges::SELECT => self.require_column_of_view(source, column),
            _ => Ok(()),
        }
    }

    /// Requires that a column may be assigned, here and by those in whose name the views below act.
    pub(crate) fn require_change_of_column(
        &self,
        source: &Source,
        column: &str,
        wanted: Privileges,
    ) -> Result<(), SqlError> {
        self.require_column(source, column, wanted)?;
        match (&source.mask, source.column_number(column)) {
            (Some(_), Some(number)) => self.require_column_below(source, number, wanted),
            _ => Ok(()),
        }
    }

    /// An INSERT that names no columns is one into all of them; 1142.
    pub(crate) fn require_insert_of_all_columns(&self, source: &Source) -> Result<(), SqlError> {
        let denied = source.access.as_ref().is_some_and(|access| {
            source.shown_names().any(|column| !access.allows(column, Privileges::INSERT))
        });
        if denied {
            return Err(self.state.table_denied("INSERT", &source.table));
        }
        source.shown().try_for_each(|number| self.require_column_below(source, number, Privileges::INSERT))
    }

    /// Whether `*` may stand for the columns of a source.
    pub(crate) fn may_read_all_columns(&self, source: &Source) -> bool {
        let may_read = |access: &ColumnAccess| {
            source.shown_names().all(|column| access.allows(column, Privileges::SELECT))
        };
        source.access.as_ref().is_none_or(|access| may_read(access))
    }
}
