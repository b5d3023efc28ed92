//! What keeps a session from its statements whatever its privileges: a password that has to be set first
//! (1820), and what the account may use in an hour (1226).
//!
//! Statements are looked at when they have been parsed, before anything is planned. Who is kept from some
//! takes no plan from the cache, so that this is the one place; for everybody else it costs reading two
//! flags. Limits are kept with the session's rights, and looked up when accounts have changed.

use sql::ast::Statement;
use sql::errors::{self, error};
use sql::plan::Plan;
use sql::result::SqlError;

use super::Session;
use crate::auth::usage::{Counted, Limits};

impl Session {
    /// Whether each statement is to be looked at.
    pub(super) fn is_restricted(&self) -> bool {
        self.state.connection.must_change_password() || self.statement_limits().is_some()
    }

    /// The account's limits, if its statements are counted.
    fn statement_limits(&self) -> Option<Limits> {
        if !self.state.server.accounts.limit_statements() {
            return None;
        }
        Some(self.state.limits()).filter(Limits::limit_statements)
    }

    /// Lets a statement run, or not, and counts it.
    pub(super) fn admit(&self, statement: &Statement) -> Result<(), SqlError> {
        self.refuse_before_password(statement)?;
        self.count_statement(|| if changes(statement) { Counted::Change } else { Counted::Read })
    }

    /// Error 1820 for all statements but those that set passwords, while the session has to set one. Whose
    /// they may set is seen to where they run (`accounts.rs`).
    fn refuse_before_password(&self, statement: &Statement) -> Result<(), SqlError> {
        let sets_password = matches!(statement, Statement::AlterUser { .. } | Statement::SetPassword { .. });
        match self.state.connection.must_change_password() && !sets_password {
            true => Err(error(errors::MUST_CHANGE_PASSWORD, &[])),
            false => Ok(()),
        }
    }

    /// The same of one that was prepared.
    pub(super) fn admit_plan(&self, plan: &Plan) -> Result<(), SqlError> {
        match plan {
            Plan::Command(statement) => return self.admit(statement),
            _ if self.state.connection.must_change_password() => {
                return Err(error(errors::MUST_CHANGE_PASSWORD, &[]));
            }
            _ => {}
        }
        self.count_statement(|| if plan_changes(plan) { Counted::Change } else { Counted::Read })
    }

    /// Counts what an EXECUTE changes: MAX_UPDATES_PER_HOUR would be no limit without.
    pub(super) fn admit_within(&self, plan: &Plan) -> Result<(), SqlError> {
        if plan_changes(plan) { self.count_statement(|| Counted::ChangeWithin) } else { Ok(()) }
    }

    fn count_statement(&self, counted: impl FnOnce() -> Counted) -> Result<(), SqlError> {
        let Some(limits) = self.statement_limits() else { return Ok(()) };
        let (accounts, counted) = (&self.state.server.accounts, counted());
        self.state
            .connection
            .with_activity(|who| accounts.count_statement(&who.user, &who.account_host, &limits, counted))
    }
}

fn plan_changes(plan: &Plan) -> bool {
    match plan {
        Plan::Command(statement) => changes(statement),
        Plan::Select(_) => false,
        _ => true,
    }
}

/// Whether MAX_UPDATES_PER_HOUR counts a statement.
fn changes(statement: &Statement) -> bool {
    !matches!(
        statement,
        Statement::Empty
            | Statement::Select(_)
            | Statement::Do(_)
            | Statement::Explain { .. }
            | Statement::Describe { .. }
            | Statement::Show(_)
            | Statement::Use(_)
            | Statement::Set(_)
            | Statement::SetTransaction { .. }
            | Statement::SetRole(_)
            | Statement::Begin { .. }
            | Statement::Commit { .. }
            | Statement::Rollback { .. }
            | Statement::Savepoint(_)
            | Statement::RollbackTo(_)
            | Statement::ReleaseSavepoint(_)
            | Statement::Xa(_)
            | Statement::Kill { .. }
            | Statement::LockTables(_)
            | Statement::UnlockTables
            | Statement::Flush(_)
            | Statement::Maintain { .. }
            | Statement::Prepare { .. }
            | Statement::Execute { .. }
            | Statement::Deallocate(_)
            | Statement::GetDiagnostics(_)
            | Statement::Handler(_)
            | Statement::Shutdown
            | Statement::Backup { .. }
            | Statement::Unsupported(_)
    )
}
