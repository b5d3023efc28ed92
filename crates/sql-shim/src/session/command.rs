//! Statements that are executed from their syntax tree: transaction control, SET, accounts, locks, maintenance.

use std::sync::Arc;

use super::failure::Failure;
use super::{Outcome, Session, isolation};
use crate::auth::accounts;
use crate::auth::privilege::{Object, Privileges};
use crate::errors;
use crate::result::{ResultSink, SqlError};
use crate::server::registry::Kill;
use crate::sql::ast::{self, Account, Identification, Scope, SetItem, Statement};
use crate::sql::exec::insert::Changed;
use crate::sql::expr::bind::Binder;
use crate::sql::plan::Planner;
use crate::sql::value::Value;
use crate::variables;

fn done() -> Outcome {
    Outcome::Done(Changed::default())
}

/// A value as the variables table takes it.
fn variable_value(value: &Value<'_>) -> variables::Value {
    match value {
        Value::Null => variables::Value::Null,
        Value::Int(v) => variables::Value::Int(*v),
        Value::UInt(v) => variables::Value::UInt(*v),
        Value::Float(_) | Value::Double(_) => variables::Value::Double(value.to_double()),
        Value::Decimal(_) => variables::Value::Double(value.to_double()),
        other => variables::Value::Text(Arc::from(other.to_string_lossy())),
    }
}

fn identification(said: &Identification) -> accounts::Identification {
    accounts::Identification {
        plugin: said.plugin.clone(),
        password: said.password.clone(),
        hash: said.hash.clone(),
    }
}

impl Session {
    /// Executes a statement that is not a query or change of data.
    pub(super) async fn command<S: ResultSink>(
        &mut self,
        statement: &Statement,
        out: &mut S,
        more: bool,
    ) -> Result<Outcome, Failure> {
        self.check_command(statement)?;
        match statement {
            Statement::Begin { snapshot, read_only } => self.begin(*snapshot, *read_only).await,
            Statement::Commit { chain, release } => {
                self.implicit_commit().await?;
                self.ended(*chain, *release)
            }
            Statement::Rollback { chain, release } => {
                self.roll_back().await?;
                self.ended(*chain, *release)
            }
            Statement::Savepoint(name) => {
                self.ensure_transaction();
                self.transaction.rows().savepoint(name);
                Ok(done())
            }
            Statement::RollbackTo(name) => {
                if !self.transaction.rows().rollback_to_savepoint(name).await? {
                    return Err(errors::error(errors::SP_DOES_NOT_EXIST, &[&"SAVEPOINT", name]).into());
                }
                Ok(done())
            }
            Statement::ReleaseSavepoint(name) => {
                if !self.transaction.rows().release_savepoint(name) {
                    return Err(errors::error(errors::SP_DOES_NOT_EXIST, &[&"SAVEPOINT", name]).into());
                }
                Ok(done())
            }
            Statement::Use(name) => {
                self.use_database(name)?;
                Ok(done())
            }
            Statement::Set(items) => {
                for item in items {
                    self.set_item(item).await?;
                }
                Ok(done())
            }
            Statement::SetTransaction { scope, isolation, read_only } => {
                self.set_transaction(*scope, *isolation, *read_only)
            }
            Statement::Do(list) => {
                for expr in list {
                    self.constant(expr)?;
                }
                Ok(done())
            }
            Statement::Show(_) | Statement::Describe { .. } | Statement::Explain(_) => {
                self.show_statement(statement, out, more).await
            }
            Statement::Kill { query_only, connection } => self.kill(*query_only, connection),
            Statement::LockTables(locks) => self.lock_tables(locks).await,
            Statement::UnlockTables => self.unlock_tables().await,
            Statement::Flush(flush) => self.flush(flush).await,
            Statement::Prepare { name, source } => {
                let text = self.constant(source)?.to_text().into_owned();
                self.prepare_text(&text, self.modes())?;
                let name = name.to_ascii_lowercase();
                let old = self.named_statements.get(&name).map_or(0, |old| name.len() + old.len());
                self.state.memory.keep(old, name.len() + text.len())?;
                self.named_statements.insert(name, text);
                Ok(done())
            }
            Statement::Execute { name, using } => self.execute_named(name, using, out, more).await,
            Statement::Deallocate(name) => {
                let Some(text) = self.named_statements.remove(&name.to_ascii_lowercase()) else {
                    return Err(
                        errors::error(errors::UNKNOWN_STMT_HANDLER, &[name, &"DEALLOCATE PREPARE"]).into()
                    );
                };
                self.state.memory.keep(name.len() + text.len(), 0)?;
                Ok(done())
            }
            Statement::Shutdown => {
                self.state.server.shutdown.request();
                Ok(done())
            }
            Statement::CreateUser { .. }
            | Statement::AlterUser { .. }
            | Statement::DropUser { .. }
            | Statement::Grant(_)
            | Statement::Revoke(_)
            | Statement::SetPassword { .. } => {
                self.begin_change().await?;
                let result = self.accounts(statement);
                self.end_change();
                result
            }
            Statement::Unsupported(what) => Err(errors::unsupported(what).into()),
            Statement::Maintain { what, tables } => self.maintain(*what, tables, out, more).await,
            other => {
                self.check_locked_for(other)?;
                self.implicit_commit().await?;
                self.begin_change().await?;
                let result = self.define(other).await;
                self.end_change();
                result
            }
        }
    }

    fn ended(&mut self, chain: bool, release: bool) -> Result<Outcome, Failure> {
        if chain {
            self.explicit = true;
            self.ensure_transaction();
        }
        if release {
            self.state.connection.kill(Kill::Connection);
        }
        Ok(done())
    }

    async fn begin(&mut self, snapshot: bool, read_only: Option<bool>) -> Result<Outcome, Failure> {
        self.implicit_commit().await?;
        self.release_table_locks();
        self.explicit = true;
        if read_only.is_some() {
            self.next_read_only = read_only;
        }
        self.ensure_transaction();
        if snapshot {
            self.transaction.rows().begin_with_snapshot();
        }
        Ok(done())
    }

    /// Commits what is open: COMMIT, and DDL and the like.
    pub(super) async fn implicit_commit(&mut self) -> Result<(), Failure> {
        if !self.transaction.is_active() {
            self.explicit = false;
            self.read_only = false;
            return Ok(());
        }
        self.begin_commit().await?;
        let result = self.commit().await;
        self.end_change();
        result
    }

    pub(super) fn use_database(&mut self, name: &str) -> Result<(), SqlError> {
        if crate::sql::catalog_views::is_view_database(name) {
            self.state.set_current_database(Some(crate::sql::catalog_views::INFORMATION_SCHEMA));
            return Ok(());
        }
        if name.is_empty() {
            return Err(errors::error(errors::NO_DB, &[]));
        }
        self.state.require_sight_of_database(name)?;
        if self.state.database.database(name).is_none() {
            return Err(errors::error(errors::BAD_DB, &[&name]));
        }
        self.state.set_current_database(Some(name));
        Ok(())
    }

    pub(super) fn planner(&self) -> Planner<'_> {
        Planner { state: &self.state, parameter_types: &[] }
    }

    fn constant(&self, expr: &ast::Expr) -> Result<Value<'static>, SqlError> {
        let planner = self.planner();
        Binder::new(&planner, &[]).constant(expr)
    }

    /// The value of an expression that may hold subqueries.
    async fn value(&mut self, expr: &ast::Expr) -> Result<Value<'static>, Failure> {
        if let ast::Expr::Subquery(query) = expr {
            let plan = self.planner().select(query)?;
            let mut executor = crate::sql::exec::Executor {
                state: &self.state,
                transaction: &mut self.transaction,
                parameters: &[],
            };
            let rows = executor.first_rows(&plan, 2).await?.into_rows();
            let value = rows.into_iter().next().and_then(|row| row.into_iter().next()).unwrap_or(Value::Null);
            if !self.in_transaction() {
                self.commit().await?;
            }
            return Ok(value);
        }
        Ok(self.constant(expr)?)
    }

    async fn set_item(&mut self, item: &SetItem) -> Result<(), Failure> {
        match item {
            SetItem::User(name, expr) => {
                let value = self.value(expr).await?;
                self.state.set_user_variable(name, value)?;
            }
            SetItem::System { scope, name, value } => {
                let value = match value {
                    Some(expr) => Some(self.value(expr).await?),
                    None => None,
                };
                self.set_system(*scope, name, value).await?;
            }
            SetItem::Names(charset, collation) => {
                let charset = charset.as_deref().unwrap_or("utf8mb4");
                for name in ["character_set_client", "character_set_connection", "character_set_results"] {
                    self.set_text(name, charset)?;
                }
                if let Some(collation) = collation {
                    self.set_text("collation_connection", collation)?;
                }
            }
            SetItem::CharacterSet(charset) => {
                let charset = charset.as_deref().unwrap_or("utf8mb4");
                for name in ["character_set_client", "character_set_results"] {
                    self.set_text(name, charset)?;
                }
            }
        }
        Ok(())
    }

    fn set_text(&mut self, name: &str, text: &str) -> Result<(), SqlError> {
        let value = variables::Value::Text(Arc::from(text));
        let server = self.state.server.clone();
        self.state.variables.set(&server.variables, name, variables::Scope::Session, Some(value))
    }

    async fn set_system(
        &mut self,
        scope: Option<Scope>,
        name: &str,
        value: Option<Value<'static>>,
    ) -> Result<(), Failure> {
        match (name, &value) {
            ("last_insert_id" | "identity", Some(value)) => {
                self.state.last_insert_id.set(value.to_bits());
                return Ok(());
            }
            ("timestamp", value) => {
                self.state.set_timestamp(value.as_ref().map(Value::to_double));
                return Ok(());
            }
            _ => {}
        }
        let persist = scope == Some(Scope::Persist);
        let scope = match scope {
            Some(Scope::Global | Scope::Persist) => {
                self.state.require_any(Privileges::SUPER | Privileges::SYSTEM_VARIABLES_ADMIN)?;
                variables::Scope::Global
            }
            _ => variables::Scope::Session,
        };
        let before = self.state.settings().autocommit;
        let server = self.state.server.clone();
        let value = value.as_ref().map(variable_value);
        // `SET @@SESSION.x` without scope word of a variable that is global only is an error of the table.
        self.state.variables.set(&server.variables, name, scope, value)?;
        if persist {
            server.variables.persist(name)?;
        }
        if !before && self.state.settings().autocommit {
            self.implicit_commit().await?;
        }
        Ok(())
    }

    fn set_transaction(
        &mut self,
        scope: Option<Scope>,
        level: Option<ast::Isolation>,
        read_only: Option<bool>,
    ) -> Result<Outcome, Failure> {
        let Some(scope) = scope else {
            if self.explicit {
                return Err(errors::error(errors::CANT_CHANGE_TX_CHARACTERISTICS, &[]).into());
            }
            if let Some(level) = level {
                self.next_isolation = Some(match level {
                    ast::Isolation::ReadUncommitted => variables::Isolation::ReadUncommitted,
                    ast::Isolation::ReadCommitted => variables::Isolation::ReadCommitted,
                    ast::Isolation::RepeatableRead => variables::Isolation::RepeatableRead,
                    ast::Isolation::Serializable => variables::Isolation::Serializable,
                });
            }
            self.next_read_only = read_only.or(self.next_read_only);
            let _ = isolation;
            return Ok(done());
        };
        let scope = if scope == Scope::Global { variables::Scope::Global } else { variables::Scope::Session };
        let server = self.state.server.clone();
        if let Some(level) = level {
            let text = match level {
                ast::Isolation::ReadUncommitted => "READ-UNCOMMITTED",
                ast::Isolation::ReadCommitted => "READ-COMMITTED",
                ast::Isolation::RepeatableRead => "REPEATABLE-READ",
                ast::Isolation::Serializable => "SERIALIZABLE",
            };
            let value = variables::Value::Text(Arc::from(text));
            self.state.variables.set(&server.variables, "transaction_isolation", scope, Some(value))?;
        }
        if let Some(read_only) = read_only {
            let value = variables::Value::Bool(read_only);
            self.state.variables.set(&server.variables, "transaction_read_only", scope, Some(value))?;
        }
        Ok(done())
    }

    fn kill(&mut self, query_only: bool, connection: &ast::Expr) -> Result<Outcome, Failure> {
        let id = u32::try_from(self.constant(connection)?.to_integer()).unwrap_or(0);
        let how = if query_only { Kill::Query } else { Kill::Connection };
        self.state.server.kill_by(&self.state.connection, id, how)?;
        if id == self.state.connection.id {
            self.state.check_killed()?;
        }
        Ok(done())
    }

    async fn execute_named<S: ResultSink>(
        &mut self,
        name: &str,
        using: &[String],
        out: &mut S,
        more: bool,
    ) -> Result<Outcome, Failure> {
        let Some(text) = self.named_statements.get(&name.to_ascii_lowercase()).cloned() else {
            return Err(errors::error(errors::UNKNOWN_STMT_HANDLER, &[&name, &"EXECUTE"]).into());
        };
        let prepared = self.prepare_text(&text, self.modes())?;
        if prepared.params.len() != using.len() {
            return Err(errors::error(errors::WRONG_ARGUMENTS, &[&"EXECUTE"]).into());
        }
        let values: Vec<Value<'static>> = using.iter().map(|name| self.state.user_variable(name)).collect();
        let plan = prepared.plan.plan.clone();
        Box::pin(self.run(&plan, &values, out, more)).await?;
        Ok(Outcome::Answered)
    }

    /// User and host of an account as written.
    pub(super) fn account(&self, account: &Account) -> (String, String) {
        if !account.current {
            return (account.user.clone(), account.host.clone());
        }
        self.state
            .connection
            .with_activity(|activity| (activity.user.to_string(), activity.account_host.to_string()))
    }

    fn accounts(&mut self, statement: &Statement) -> Result<Outcome, Failure> {
        let server = self.state.server.clone();
        let accounts = &server.accounts;
        let own = self.account(&Account::current());
        let manages = || self.state.require_any(Privileges::CREATE_USER);
        match statement {
            Statement::SetPassword { account, password } => {
                let (user, host) = account.as_ref().map_or_else(|| own.clone(), |said| self.account(said));
                if (&user, &host) != (&own.0, &own.1) {
                    manages()?;
                }
                let by = Identification { password: Some(password.clone()), ..Identification::default() };
                accounts.alter(&user, &host, &identification(&by), false)?;
            }
            Statement::CreateUser { accounts: list, if_not_exists } => {
                manages()?;
                for (account, said) in list {
                    let (user, host) = self.account(account);
                    accounts.create(&user, &host, &identification(said), *if_not_exists)?;
                }
            }
            Statement::AlterUser { accounts: list } => {
                for (account, said) in list {
                    let (user, host) = self.account(account);
                    if (&user, &host) != (&own.0, &own.1) {
                        manages()?;
                    }
                    accounts.alter(&user, &host, &identification(said), false)?;
                }
            }
            Statement::DropUser { accounts: list, if_exists } => {
                manages()?;
                for account in list {
                    let (user, host) = self.account(account);
                    accounts.drop(&user, &host, *if_exists)?;
                }
            }
            Statement::Grant(grant) => self.grant(grant)?,
            Statement::Revoke(grant) => self.revoke(grant)?,
            _ => {}
        }
        Ok(done())
    }

    fn grant(&self, grant: &ast::Grant) -> Result<(), SqlError> {
        let said = grant.object.as_ref().ok_or_else(|| errors::unsupported("roles"))?;
        let (object, what) = self.checked_grant(grant, said)?;
        // A table that is not there may only be granted on together with the right to make it.
        if let Object::Table(database, table) = &object
            && !what.has(Privileges::CREATE)
        {
            let name = ast::TableName { database: Some(database.clone()), name: table.clone() };
            self.planner().engine_table(&name)?;
        }
        for (account, said) in &grant.accounts {
            let (user, host) = self.account(account);
            let accounts = &self.state.server.accounts;
            // GRANT … IDENTIFIED BY makes the account, as it did up to MySQL 5.7 and does in MariaDB.
            if let Some(said) = said {
                self.state.require_any(Privileges::CREATE_USER)?;
                accounts.create(&user, &host, &identification(said), true)?;
            }
            accounts.grant(&user, &host, what, &object)?;
        }
        Ok(())
    }

    fn revoke(&self, grant: &ast::Grant) -> Result<(), SqlError> {
        let accounts = &self.state.server.accounts;
        let from = grant.accounts.iter().map(|(account, _)| self.account(account));
        let Some(said) = &grant.object else {
            self.state.require_any(Privileges::CREATE_USER)?;
            return from.into_iter().try_for_each(|(user, host)| accounts.revoke_all(&user, &host));
        };
        let (object, what) = self.checked_grant(grant, said)?;
        from.into_iter().try_for_each(|(user, host)| accounts.revoke(&user, &host, what, &object))
    }
}
