//! Statements that are executed from their syntax tree: which function serves each, which of them commit the
//! open transaction first, and the small ones themselves.

use std::sync::Arc;

use sql::ast::{self, Statement};
use sql::catalog_views;
use sql::errors;
use sql::exec::insert::Changed;
use sql::expr::Context;
use sql::expr::bind::Binder;
use sql::failure::Failure;
use sql::kill_switch::Kill;
use sql::plan::{Planner, ValuePlan};
use sql::privilege::Privileges;
use sql::result::{ResultSink, SqlError};
use sql::value::Value;

use super::{Outcome, REPLANS_MAX, Session};

pub(super) fn done() -> Outcome {
    Outcome::Done(Changed::default())
}

fn owned(parameters: &[Value<'_>]) -> Vec<Value<'static>> {
    parameters.iter().map(|value| value.clone().into_owned()).collect()
}

impl Session {
    /// Executes a statement that is not a query or change of data.
    pub(super) async fn command<S: ResultSink>(
        &mut self,
        statement: &Statement,
        parameters: &[Value<'_>],
        out: &mut S,
        more: bool,
    ) -> Result<Outcome, Failure> {
        self.check_command(statement)?;
        self.check_xa_command(statement)?;
        match statement {
            Statement::Begin { snapshot, read_only } => self.begin(*snapshot, *read_only).await,
            Statement::Commit { chain, release } => self.end_by_commit(*chain, *release).await,
            Statement::Rollback { chain, release } => self.end_by_rollback(*chain, *release).await,
            Statement::Savepoint(name) => Ok(self.savepoint(name)),
            Statement::RollbackTo(name) => self.roll_back_to(name).await,
            Statement::ReleaseSavepoint(name) => self.release_savepoint(name),
            Statement::Xa(xa) => self.xa_statement(xa, out).await,
            Statement::Use(name) => {
                self.use_database(name)?;
                Ok(done())
            }
            Statement::Set(items) => {
                self.current.parameters = owned(parameters);
                let set = self.set(items, out).await;
                self.current.parameters.clear();
                set
            }
            Statement::SetTransaction { scope, isolation, read_only } => {
                self.set_transaction(*scope, *isolation, *read_only)
            }
            Statement::Do(list) => {
                self.current.parameters = owned(parameters);
                let evaluated = self.evaluate(list, out).await;
                self.current.parameters.clear();
                evaluated
            }
            Statement::Show(_) | Statement::Describe { .. } | Statement::Explain { .. } => {
                self.show_statement(statement, parameters, out, more).await
            }
            Statement::Kill { query_only, connection } => self.kill(*query_only, connection),
            Statement::LockTables(locks) => self.lock_tables(locks).await,
            Statement::UnlockTables => self.unlock_tables().await,
            Statement::Flush(flush) => self.flush(flush).await,
            Statement::Prepare { name, source } => self.prepare_named(name, source).await,
            Statement::Execute { name, using } => self.execute_named(name, using, out, more).await,
            Statement::Deallocate(name) => self.deallocate(name),
            Statement::GetDiagnostics(get) => self.get_diagnostics(get, out).await,
            Statement::Handler(handler) => self.handler(handler, out).await,
            Statement::Backup { name, since } => self.backup(name, since.as_deref()).await,
            Statement::Shutdown => {
                self.state.server.shutdown.request();
                Ok(done())
            }
            Statement::CreateUser { .. }
            | Statement::AlterUser { .. }
            | Statement::DropUser { .. }
            | Statement::RenameUser(_)
            | Statement::CreateRole { .. }
            | Statement::DropRole { .. }
            | Statement::GrantRoles(_)
            | Statement::RevokeRoles(_)
            | Statement::SetDefaultRole { .. }
            | Statement::Grant(_)
            | Statement::Revoke(_)
            | Statement::SetPassword { .. } => {
                self.implicit_commit().await?;
                self.check_writable()?;
                self.begin_change().await?;
                let result = self.accounts(statement).await;
                self.end_change();
                result
            }
            Statement::SetRole(choice) => {
                self.set_role(choice)?;
                Ok(done())
            }
            Statement::Unsupported(what) => self.without_replication(what),
            Statement::Maintain { what, tables } => self.maintain(*what, tables, out, more).await,
            other => {
                self.check_locked_for(other)?;
                let of_temporary_tables = other.is_of_temporary_tables();
                if !of_temporary_tables {
                    self.implicit_commit().await?;
                }
                self.check_writable()?;
                self.begin_change().await?;
                self.current.parameters = owned(parameters);
                let result = self.define(other).await;
                self.current.parameters.clear();
                self.end_change();
                if of_temporary_tables && result.is_ok() {
                    // It commits nothing, but clients hear that it does: so they do from MySQL.
                    self.track_transaction(|tracker| tracker.ended(false));
                }
                result
            }
        }
    }

    pub(super) fn use_database(&mut self, name: &str) -> Result<(), SqlError> {
        if let Some(views) = catalog_views::view_database(name) {
            self.state.set_current_database(Some(views));
            self.schema_is_chosen();
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
        if !self.is_database(name) {
            return Err(errors::error(errors::BAD_DB, &[&name]));
        }
        self.state.set_current_database(Some(name));
        self.schema_is_chosen();
        Ok(())
    }

    /// Whether there is a database of this name, one of views included.
    pub(super) fn is_database(&self, name: &str) -> bool {
        let of_views = catalog_views::is_view_database(name) || catalog_views::stands_in(&self.state, name);
        of_views || self.state.database.database(name).is_some()
    }

    pub(super) fn planner(&self) -> Planner<'_> {
        Planner::new(&self.state)
    }

    pub(super) fn constant(&self, expr: &ast::Expr) -> Result<Value<'static>, SqlError> {
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
                    let cx = Context::constant(&self.state, &self.current.parameters);
                    return Ok(bound.eval(&cx).map(Value::into_owned)?);
                }
                ValuePlan::Query(plan) => plan,
            };
            let parameters = self.current.parameters.clone();
            match Box::pin(self.run_data(plan, &parameters, out)).await {
                Err(Failure::Stale) => {}
                Err(failure) => return Err(failure),
                Ok(_) => return Ok(self.state.take_user_variable(TAKEN)),
            }
        }
        Err(Failure::Stale)
    }

    /// DO: the values are for nobody.
    async fn evaluate<S: ResultSink>(
        &mut self,
        list: &[Arc<ast::Expr>],
        out: &mut S,
    ) -> Result<Outcome, Failure> {
        for expr in list {
            self.value(expr, out).await?;
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

    /// What MySQL answers of a replica that there is none of; anything else that is not there is refused.
    fn without_replication(&self, what: &'static str) -> Result<Outcome, Failure> {
        match what {
            "START REPLICA" => {
                self.state.require_any(Privileges::SUPER)?;
                Err(errors::error(errors::NOT_A_REPLICA, &[]).into())
            }
            "STOP REPLICA" => {
                self.state.require_any(Privileges::SUPER)?;
                self.state.note(errors::error(errors::REPLICATION_ALREADY_STOPPED, &[&""]));
                Ok(done())
            }
            "RESET REPLICA" | "RESET BINARY LOGS AND GTIDS" => {
                self.state.require_any(Privileges::RELOAD)?;
                Ok(done())
            }
            what => Err(errors::unsupported(what).into()),
        }
    }
}
