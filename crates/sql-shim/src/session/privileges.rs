//! What a session may do.
//!
//! Tables of queries and changes are checked while the statement is planned (1142 comes from
//! `privilege_checks.rs` of `crates/sql`), before they are looked up, so that nobody learns from an error
//! what exists. A plan therefore belongs to a version of the grants as it belongs to one of the catalog and
//! of the session's temporary tables ([`Session::plan_version`]): as long as none changes, executing it again
//! checks nothing. Statements
//! that are executed from their syntax tree are checked here, before they begin.
//!
//! The rights are the account's as they are now: unlike in MySQL, where some grants wait for the next USE or
//! the next login, a change counts from each session's next statement on.

use sql::ast::{
    Account, Alteration, CreateTable, Flush, Grant, GrantObject, Maintenance, Scope, ShowKind, Statement,
    TableName,
};
use sql::catalog_views::{INFORMATION_SCHEMA, PERFORMANCE_SCHEMA};
use sql::errors::{self, error};
use sql::privilege::{Level, Object, Privileges};
use sql::result::SqlError;

use super::Session;
use super::state::SessionState;
use super::statement_stats::VIEWS_TO_EMPTY;

/// What a GRANT or REVOKE is about.
pub(super) struct Granted {
    pub(super) object: Object,
    pub(super) what: Privileges,
    pub(super) columns: Vec<(Privileges, Vec<String>)>,
}

/// Of `performance_schema` only what can be done there can be granted: tables are read, and some emptied. As
/// MySQL 1044 for what there is none of in the database, and 1142 for what the table does not allow.
fn refuse_on_views(state: &SessionState, object: &Object, what: Privileges) -> Result<(), SqlError> {
    let (Object::Database(database) | Object::Table(database, _)) = object else { return Ok(()) };
    if database != PERFORMANCE_SCHEMA {
        return Ok(());
    }
    let changes = Privileges::INSERT | Privileges::UPDATE | Privileges::DELETE | Privileges::DROP;
    let known = Privileges::SELECT | changes | Privileges::LOCK_TABLES | Privileges::GRANT_OPTION;
    if !known.has(what) {
        let who = state.facts.client();
        return Err(error(errors::DBACCESS_DENIED, &[&who.user, &who.account_host, &database]));
    }
    let Object::Table(_, table) = object else { return Ok(()) };
    let emptied = if VIEWS_TO_EMPTY.contains(&table.as_str()) { Privileges::DROP } else { Privileges::NONE };
    let refused = what.only(changes).without(emptied);
    if refused.is_empty() {
        return Ok(());
    }
    Err(state.table_denied(&format!("{}, GRANT", refused.list()), table))
}

impl SessionState {
    /// The same for privileges on columns: GRANT OPTION on the table, and the privilege on the column (1143).
    fn require_grant_of_columns(
        &self,
        object: &Object,
        columns: &[(Privileges, Vec<String>)],
    ) -> Result<(), SqlError> {
        let Object::Table(database, table) = object else { return Ok(()) };
        let rights = self.rights();
        for (what, names) in columns {
            let denied = names.iter().find(|name| !rights.on_column(database, table, name).has(*what));
            if let Some(denied) = denied {
                return Err(self.column_denied(&what.list(), denied, table));
            }
        }
        Ok(())
    }

    /// GRANT and REVOKE: only what one holds, and may hand on, on that object.
    fn require_grant_option(&self, object: &Object, what: Privileges) -> Result<(), SqlError> {
        let rights = self.rights();
        let wanted = what | Privileges::GRANT_OPTION;
        match object {
            Object::Everything if !rights.global().has(wanted) => {
                let who = self.facts.client();
                let password = self.server.accounts.has_password(&who.user, &who.account_host);
                let password = if password { "YES" } else { "NO" };
                Err(error(errors::ACCESS_DENIED, &[&who.user, &who.account_host, &password]))
            }
            Object::Database(name) if !(rights.global() | rights.exactly_on(object)).has(wanted) => {
                Err(self.database_denied(name))
            }
            Object::Table(database, table) if !rights.on_table(database, table).has(wanted) => {
                let missing = wanted.without(rights.on_table(database, table));
                let command =
                    if missing == Privileges::GRANT_OPTION { "GRANT".into() } else { missing.list() };
                Err(self.table_denied(&command, table))
            }
            _ => Ok(()),
        }
    }
}

impl Session {
    fn require_on(&self, name: &TableName, wanted: Privileges) -> Result<(), SqlError> {
        self.planner().require_on(name, wanted)
    }

    /// Privileges on a table that is no temporary one.
    fn require_on_base(&self, name: &TableName, wanted: Privileges) -> Result<(), SqlError> {
        let database = self.planner().database_of(name)?;
        self.state.require_on_base_table(&database, &name.name, wanted)
    }

    pub(super) fn require_sight_of(&self, name: &TableName, command: &str) -> Result<(), SqlError> {
        let database = self.planner().database_of(name)?;
        self.state.require_sight_of_table(&database, &name.name, command)
    }

    fn require_sight_of_named_database(&self, name: Option<&str>) -> Result<(), SqlError> {
        let current = self.state.current_database();
        match name.or(current.as_deref()) {
            Some(name) => self.state.require_sight_of_database(name),
            None => Ok(()),
        }
    }

    /// Whether the account may execute a statement that is not a query or change of data.
    pub(super) fn check_command(&self, statement: &Statement) -> Result<(), SqlError> {
        let state = &self.state;
        match statement {
            Statement::CreateDatabase { name, .. } => state.require_on_database(name, Privileges::CREATE),
            Statement::DropDatabase { name, .. } => state.require_on_database(name, Privileges::DROP),
            Statement::AlterDatabase { name, .. } => {
                let current = state.current_database();
                match name.as_deref().or(current.as_deref()) {
                    Some(name) => state.require_on_database(name, Privileges::ALTER),
                    None => Err(error(errors::NO_DB, &[])),
                }
            }
            Statement::CreateTable(create) => self.check_create_table(create),
            Statement::DropTable { names, .. } | Statement::DropView { names, .. } => {
                names.iter().try_for_each(|name| self.require_on(name, Privileges::DROP))
            }
            Statement::CreateView(create) => self.check_create_view(create),
            Statement::Truncate(name) => match self.view_to_empty(name) {
                Some(view) => self.state.require_on_base_table(PERFORMANCE_SCHEMA, view, Privileges::DROP),
                None => self.require_on(name, Privileges::DROP),
            },
            Statement::CreateIndex { table, .. } | Statement::DropIndex { table, .. } => {
                self.require_on(table, Privileges::INDEX)
            }
            Statement::AlterTable(alter) => self.check_alter(&alter.table, &alter.changes),
            Statement::RenameTable(pairs) => pairs.iter().try_for_each(|(from, to)| {
                self.require_on_base(from, Privileges::ALTER | Privileges::DROP)?;
                self.require_on_base(to, Privileges::CREATE | Privileges::INSERT)
            }),
            Statement::Maintain { what, tables } => {
                let wanted = match what {
                    Maintenance::Check | Maintenance::Checksum | Maintenance::KeptChecksum => {
                        Privileges::SELECT
                    }
                    Maintenance::AssignToKeyCache | Maintenance::PreloadKeys => Privileges::INDEX,
                    _ => Privileges::SELECT | Privileges::INSERT,
                };
                tables.iter().try_for_each(|name| self.require_on(name, wanted))
            }
            Statement::LockTables(locks) => locks.iter().try_for_each(|lock| {
                self.require_on(&lock.table, Privileges::SELECT | Privileges::LOCK_TABLES)
            }),
            Statement::Flush(flush) => self.check_flush(flush),
            Statement::Shutdown => state.require_any(Privileges::SHUTDOWN),
            Statement::Backup { .. } => state.require_any(Privileges::RELOAD | Privileges::BACKUP_ADMIN),
            Statement::SetTransaction { scope: Some(Scope::Global | Scope::Persist), .. } => {
                state.require_any(Privileges::SUPER | Privileges::SYSTEM_VARIABLES_ADMIN)
            }
            Statement::Describe { table, .. } => self.require_sight_of(table, "SELECT"),
            Statement::Show(show) => self.check_show(&show.kind),
            // Checked where their tables are planned.
            Statement::Select(_)
            | Statement::Insert(_)
            | Statement::LoadData(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Explain { .. }
            | Statement::Do(_) => Ok(()),
            // Checked with what they are about: the database, variable, account, connection or statement.
            Statement::Use(_)
            | Statement::Set(_)
            | Statement::Kill { .. }
            | Statement::CreateUser { .. }
            | Statement::AlterUser { .. }
            | Statement::DropUser { .. }
            | Statement::RenameUser(_)
            | Statement::CreateRole { .. }
            | Statement::DropRole { .. }
            | Statement::GrantRoles(_)
            | Statement::RevokeRoles(_)
            | Statement::SetDefaultRole { .. }
            | Statement::SetRole(_)
            | Statement::SetPassword { .. }
            | Statement::Grant(_)
            | Statement::Revoke(_)
            | Statement::Execute { .. }
            | Statement::Handler(_)
            | Statement::Prepare { .. } => Ok(()),
            // Everybody's own.
            Statement::Empty
            | Statement::Begin { .. }
            | Statement::Commit { .. }
            | Statement::Rollback { .. }
            | Statement::Savepoint(_)
            | Statement::RollbackTo(_)
            | Statement::ReleaseSavepoint(_)
            | Statement::Xa(_)
            | Statement::SetTransaction { .. }
            | Statement::UnlockTables
            | Statement::Deallocate(_)
            | Statement::GetDiagnostics(_)
            | Statement::Unsupported(_) => Ok(()),
        }
    }

    fn check_create_table(&self, create: &CreateTable) -> Result<(), SqlError> {
        match create.temporary {
            true => self.require_temporary(&create.name)?,
            false => self.require_on_base(&create.name, Privileges::CREATE)?,
        }
        if create.as_query.is_some() && !create.temporary {
            self.require_on_base(&create.name, Privileges::INSERT)?;
        }
        for foreign in &create.foreign_keys {
            self.require_on(&foreign.references, Privileges::REFERENCES)?;
        }
        create.like.as_ref().map_or(Ok(()), |like| self.require_on(like, Privileges::SELECT))
    }

    fn check_alter(&self, table: &TableName, changes: &[Alteration]) -> Result<(), SqlError> {
        self.require_on(table, Privileges::ALTER)?;
        changes.iter().try_for_each(|change| match change {
            Alteration::RenameTo(to) => {
                self.require_on(table, Privileges::DROP)?;
                self.require_on_base(to, Privileges::CREATE | Privileges::INSERT)
            }
            Alteration::AddForeignKey(foreign) => {
                self.require_on(&foreign.references, Privileges::REFERENCES)
            }
            _ => Ok(()),
        })
    }

    fn check_flush(&self, flush: &Flush) -> Result<(), SqlError> {
        match flush {
            Flush::Tables(_) => self.state.require_any(Privileges::RELOAD | Privileges::FLUSH_TABLES),
            Flush::ForExport(tables) | Flush::ReadLock(tables) => {
                self.state.require_any(Privileges::RELOAD | Privileges::FLUSH_TABLES)?;
                let wanted = Privileges::SELECT | Privileges::LOCK_TABLES;
                tables.iter().try_for_each(|name| self.require_on(name, wanted))
            }
            Flush::Privileges | Flush::UserResources | Flush::Status | Flush::Logs | Flush::Other => {
                self.state.require_any(Privileges::RELOAD)
            }
        }
    }

    fn check_show(&self, kind: &ShowKind) -> Result<(), SqlError> {
        match kind {
            ShowKind::Tables { database, .. }
            | ShowKind::TableStatus { database }
            | ShowKind::OpenTables { database } => self.require_sight_of_named_database(database.as_deref()),
            ShowKind::CreateDatabase { name, .. } => self.require_sight_of_named_database(Some(name)),
            ShowKind::Columns { table, .. } | ShowKind::Index { table } => {
                self.require_sight_of(table, "SELECT")
            }
            ShowKind::CreateTable(table) | ShowKind::CreateView(table) => {
                self.require_sight_of(table, "SHOW")?;
                // Whose privileges are on columns only does not see the others' definitions.
                let database = self.planner().database_of(table)?;
                if self.state.is_known_by_columns_only(&database, &table.name) {
                    return Err(self.state.table_denied("SHOW", &table.name));
                }
                match self.planner().view_named(table)? {
                    Some(_) => self.require_on_base(table, Privileges::SELECT | Privileges::SHOW_VIEW),
                    None => Ok(()),
                }
            }
            ShowKind::EngineStatus { .. } => self.state.require_any(Privileges::PROCESS),
            // Somebody else's grants are rows of the system's tables.
            ShowKind::Grants(Some(account), _) | ShowKind::CreateUser(account) if !account.current => {
                let own = self.account(account) == self.account(&Account::current());
                if own || self.state.rights().global().has_any(Privileges::SELECT | Privileges::CREATE_USER) {
                    Ok(())
                } else {
                    Err(self.state.database_denied("mysql"))
                }
            }
            _ => Ok(()),
        }
    }

    /// The object and the privileges of GRANT or REVOKE, which this account must be allowed to hand on.
    pub(super) fn checked_grant(&self, grant: &Grant, said: &GrantObject) -> Result<Granted, SqlError> {
        let object = match said {
            GrantObject::Everything => Object::Everything,
            GrantObject::CurrentDatabase => {
                let current = self.state.current_database().ok_or_else(|| error(errors::NO_DB, &[]))?;
                Object::Database(current.to_string())
            }
            GrantObject::Database(name) => Object::Database(name.clone()),
            GrantObject::Table(name) => Object::Table(self.planner().database_of(name)?, name.name.clone()),
        };
        if let Object::Database(database) | Object::Table(database, _) = &object
            && database.eq_ignore_ascii_case(INFORMATION_SCHEMA)
        {
            return Err(self.state.database_denied(database));
        }
        if !grant.columns.is_empty() && object.level() != Level::Table {
            return Err(error(errors::ILLEGAL_GRANT_FOR_TABLE, &[]));
        }
        let mut what = Privileges::parse(&grant.privileges, object.level())?;
        if grant.grant_option {
            what |= Privileges::GRANT_OPTION;
        }
        let on_columns = |(name, columns): &(String, Vec<String>)| {
            Ok((Privileges::parse(std::slice::from_ref(name), Level::Table)?, columns.clone()))
        };
        let columns = grant.columns.iter().map(on_columns).collect::<Result<Vec<_>, SqlError>>()?;
        refuse_on_views(&self.state, &object, what)?;
        self.state.require_grant_option(&object, what)?;
        self.state.require_grant_of_columns(&object, &columns)?;
        Ok(Granted { object, what, columns })
    }
}
