//! Statements that are executed from their syntax tree: transaction control, SET, accounts, locks,
//! maintenance.

use std::sync::Arc;

use sql::ast::{self, Account, AccountSpecification, Identification, Scope, Statement};
use sql::errors;
use sql::exec::insert::Changed;
use sql::expr::Context;
use sql::expr::bind::Binder;
use sql::failure::Failure;
use sql::kill::Kill;
use sql::plan::{Planner, ValuePlan};
use sql::privilege::{Object, Privileges};
use sql::result::{ResultSink, SqlError};
use sql::value::Value;

use super::{NamedStatement, Outcome, REPLANS_MAX, Session, isolation};
use crate::auth::Security;
use crate::auth::accounts::{self, AccountChange, Authority};
use crate::server::panics::CountedStatement;
use crate::status::Counter;
use crate::variables::{self, GlobalVariables, SessionVariables};

fn done() -> Outcome {
    Outcome::Done(Changed::default())
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
                self.drop_unused_private().await;
                self.ended(*chain, *release)
            }
            Statement::Rollback { chain, release } => {
                self.roll_back().await?;
                self.drop_unused_private().await;
                self.ended(*chain, *release)
            }
            Statement::Savepoint(name) => {
                self.ensure_transaction();
                self.transaction.engine_mut().savepoint(name);
                Ok(done())
            }
            Statement::RollbackTo(name) => {
                if !self.transaction.engine_mut().rollback_to_savepoint(name).await? {
                    return Err(errors::error(errors::SP_DOES_NOT_EXIST, &[&"SAVEPOINT", name]).into());
                }
                Ok(done())
            }
            Statement::ReleaseSavepoint(name) => {
                if !self.transaction.engine_mut().release_savepoint(name) {
                    return Err(errors::error(errors::SP_DOES_NOT_EXIST, &[&"SAVEPOINT", name]).into());
                }
                Ok(done())
            }
            Statement::Use(name) => {
                self.use_database(name)?;
                Ok(done())
            }
            Statement::Set(items) => self.set(items, out).await,
            Statement::SetTransaction { scope, isolation, read_only } => {
                self.set_transaction(*scope, *isolation, *read_only)
            }
            Statement::Do(list) => {
                for expr in list {
                    self.value(expr, out).await?;
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
            Statement::Prepare { name, source } => self.prepare_named(name, source).await,
            Statement::Execute { name, using } => self.execute_named(name, using, out, more).await,
            Statement::Deallocate(name) => self.deallocate(name),
            Statement::Backup(name) => self.backup(name).await,
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
                self.implicit_commit().await?;
                self.begin_change().await?;
                let result = self.accounts(statement);
                self.end_change();
                result
            }
            Statement::Unsupported(what) => Err(errors::unsupported(what).into()),
            Statement::Maintain { what, tables } => self.maintain(*what, tables, out, more).await,
            other => {
                self.check_locked_for(other)?;
                if !other.is_of_temporary_tables() {
                    self.implicit_commit().await?;
                }
                self.begin_change().await?;
                let result = self.define(other).await;
                self.end_change();
                result
            }
        }
    }

    async fn prepare_named(&mut self, name: &str, source: &ast::Expr) -> Result<Outcome, Failure> {
        self.state.connection.counters.add(Counter::ComStmtPrepare, 1);
        let text = self.constant(source)?.to_text().into_owned();
        // One of the same name goes, whether or not the new one can be prepared, as in MySQL.
        let name = name.to_ascii_lowercase();
        if let Some(old) = self.named_statements.remove(&name) {
            self.state.memory.keep(name.len() + old.text.len(), 0)?;
        }
        self.prepare_text(&text).await?;
        let server = &self.state.server;
        let _counted = CountedStatement::new(server).ok_or_else(|| {
            let max = server.variables.max_prepared_stmt_count();
            errors::error(errors::MAX_PREPARED_STMT_COUNT, &[&max])
        })?;
        self.state.memory.keep(0, name.len() + text.len())?;
        self.named_statements
            .insert(name, NamedStatement { text, database: self.state.current_database(), _counted });
        Ok(done())
    }

    fn deallocate(&mut self, name: &str) -> Result<Outcome, Failure> {
        self.state.connection.counters.add(Counter::ComStmtClose, 1);
        let Some(old) = self.named_statements.remove(&name.to_ascii_lowercase()) else {
            return Err(errors::error(errors::UNKNOWN_STMT_HANDLER, &[&name, &"DEALLOCATE PREPARE"]).into());
        };
        self.state.memory.keep(name.len() + old.text.len(), 0)?;
        Ok(done())
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
            self.transaction.engine_mut().begin_with_snapshot();
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
        if let Some(views) = sql::catalog_views::view_database(name) {
            self.state.set_current_database(Some(views));
            return Ok(());
        }
        if name.is_empty() {
            return Err(errors::error(errors::NO_DB, &[]));
        }
        // The parser refuses them, but a name also comes by COM_INIT_DB and at the login.
        if untorn::private::is_private(name) {
            return Err(errors::error(errors::BAD_DB, &[&name]));
        }
        self.state.require_sight_of_database(name)?;
        if self.state.database.database(name).is_none() {
            return Err(errors::error(errors::BAD_DB, &[&name]));
        }
        self.state.set_current_database(Some(name));
        Ok(())
    }

    pub(super) fn planner(&self) -> Planner<'_> {
        Planner::new(&self.state)
    }

    fn constant(&self, expr: &ast::Expr) -> Result<Value<'static>, SqlError> {
        let planner = self.planner();
        Binder::new(&planner, &[]).constant(expr)
    }

    /// The value of an expression that may hold subqueries. With them it is a query like any other: it waits
    /// for metadata locks, needs privileges, runs in the transaction, is killed and undone.
    pub(super) async fn value<S: ResultSink>(
        &mut self,
        expr: &Arc<ast::Expr>,
        out: &mut S,
    ) -> Result<Value<'static>, Failure> {
        // No client can name a variable so.
        const TAKEN: &str = "\0";
        for _ in 0..REPLANS_MAX {
            let expr = expr.clone();
            let planned = self.planned(move |planner| planner.value(&expr, TAKEN)).await?;
            let plan = match &*planned {
                ValuePlan::Constant(bound) => {
                    let cx = Context::constant(&self.state, &[]);
                    return Ok(bound.eval(&cx).map(Value::into_owned)?);
                }
                ValuePlan::Query(plan) => plan,
            };
            match Box::pin(self.run_data(plan, &[], out)).await {
                Err(Failure::Stale) => {}
                Err(failure) => return Err(failure),
                Ok(_) => return Ok(self.state.take_user_variable(TAKEN)),
            }
        }
        Err(Failure::Stale)
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
        if let Some(level) = level {
            if scope == variables::Scope::Session {
                // It is newer than what was said of the next transaction alone.
                self.next_isolation = None;
            }
            let text = match level {
                ast::Isolation::ReadUncommitted => "READ-UNCOMMITTED",
                ast::Isolation::ReadCommitted => "READ-COMMITTED",
                ast::Isolation::RepeatableRead => "REPEATABLE-READ",
                ast::Isolation::Serializable => "SERIALIZABLE",
            };
            let value = variables::Value::Text(Arc::from(text));
            self.set_variable("transaction_isolation", scope, value)?;
        }
        if let Some(read_only) = read_only {
            let value = variables::Value::Bool(read_only);
            self.set_variable("transaction_read_only", scope, value)?;
        }
        Ok(done())
    }

    fn set_variable(
        &mut self,
        name: &str,
        scope: variables::Scope,
        to: variables::Value,
    ) -> Result<(), SqlError> {
        let set =
            |of: &mut SessionVariables, globals: &GlobalVariables| of.set(globals, name, scope, Some(to));
        self.state_mut().change_variables(set)?;
        Ok(())
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
        self.state.connection.counters.add(Counter::ComStmtExecute, 1);
        let named = self.named_statements.get(&name.to_ascii_lowercase());
        let Some((text, database)) = named.map(|named| (named.text.clone(), named.database.clone())) else {
            return Err(errors::error(errors::UNKNOWN_STMT_HANDLER, &[&name, &"EXECUTE"]).into());
        };
        let prepared = self.prepare_in(database, &text).await?;
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
        let authority = self.authority();
        match statement {
            Statement::SetPassword { account, password } => {
                let (user, host) = account.as_ref().map_or_else(|| own.clone(), |said| self.account(said));
                if (&user, &host) != (&own.0, &own.1) {
                    manages()?;
                }
                let by = accounts::Identification { password: Some(password.clone()), ..Default::default() };
                let change = AccountChange { user, host, by: Some(by), ..Default::default() };
                accounts.alter_all(&[change], false, authority)?;
            }
            Statement::CreateUser { accounts: list, if_not_exists, lock, requires } => {
                manages()?;
                let existing =
                    accounts.create_all(&self.account_changes(list, *lock, *requires), *if_not_exists)?;
                self.note_accounts(errors::USER_ALREADY_EXISTS, &existing);
            }
            Statement::AlterUser { accounts: list, if_exists, lock, requires } => {
                let changes = self.account_changes(list, *lock, *requires);
                // Everybody may change the own password, and nothing else of the account.
                let own_password = |change: &AccountChange| {
                    let nothing_else = change.locked.is_none() && change.requires.is_none();
                    (&change.user, &change.host) == (&own.0, &own.1) && nothing_else
                };
                if !changes.iter().all(own_password) {
                    manages()?;
                }
                let missing = accounts.alter_all(&changes, *if_exists, authority)?;
                self.note_accounts(errors::USER_DOES_NOT_EXIST, &missing);
            }
            Statement::DropUser { accounts: list, if_exists } => {
                manages()?;
                let list: Vec<_> = list.iter().map(|account| self.account(account)).collect();
                let missing = accounts.drop_all(&list, *if_exists, authority)?;
                self.note_accounts(errors::USER_DOES_NOT_EXIST, &missing);
            }
            Statement::Grant(grant) => self.grant(grant)?,
            Statement::Revoke(grant) => self.revoke(grant)?,
            _ => {}
        }
        Ok(done())
    }

    fn authority(&self) -> Authority {
        let system = self.state.rights().global().has(Privileges::SYSTEM_USER);
        if system { Authority::System } else { Authority::Ordinary }
    }

    fn account_changes(
        &self,
        list: &[AccountSpecification],
        locked: Option<bool>,
        requires: Option<ast::Requirement>,
    ) -> Vec<AccountChange> {
        let requires = requires.map(|requirement| match requirement {
            ast::Requirement::None => Security::None,
            ast::Requirement::Ssl => Security::Encrypted,
            ast::Requirement::X509 => Security::Certificate,
        });
        let change = |said: &AccountSpecification| {
            let (user, host) = self.account(&said.account);
            let by = said.identification.as_ref().map(identification);
            AccountChange { user, host, by, locked, requires }
        };
        list.iter().map(change).collect()
    }

    fn note_accounts(&self, code: u16, accounts: &[String]) {
        for account in accounts {
            self.state.note(errors::error(code, &[account]));
        }
    }

    fn grant(&self, grant: &ast::Grant) -> Result<(), SqlError> {
        let said = grant.object.as_ref().ok_or_else(|| errors::unsupported("roles"))?;
        let (object, what) = self.checked_grant(grant, said)?;
        // A table that is not there may only be granted on together with the right to make it.
        if let Object::Table(database, table) = &object
            && !what.has(Privileges::CREATE)
        {
            let name = ast::TableName { database: Some(database.clone()), name: table.clone() };
            if self.planner().view_named(&name)?.is_none() {
                self.planner().engine_table(&name)?;
            }
        }
        let grantee = |(account, said): &(Account, Option<Identification>)| {
            let (user, host) = self.account(account);
            AccountChange { user, host, by: said.as_ref().map(identification), ..Default::default() }
        };
        let to: Vec<_> = grant.accounts.iter().map(grantee).collect();
        // GRANT … IDENTIFIED BY makes the account or changes its password, as it did up to MySQL 5.7 and does
        // in MariaDB.
        if to.iter().any(|change| change.by.is_some()) {
            self.state.require_any(Privileges::CREATE_USER)?;
        }
        self.state.server.accounts.grant_all(&to, what, &object, self.authority())
    }

    fn revoke(&self, grant: &ast::Grant) -> Result<(), SqlError> {
        let accounts = &self.state.server.accounts;
        let from: Vec<_> = grant.accounts.iter().map(|(account, _)| self.account(account)).collect();
        let Some(said) = &grant.object else {
            self.state.require_any(Privileges::CREATE_USER)?;
            return accounts.revoke_everything(&from, self.authority());
        };
        let (object, what) = self.checked_grant(grant, said)?;
        accounts.revoke_all(&from, what, &object, self.authority())
    }
}
