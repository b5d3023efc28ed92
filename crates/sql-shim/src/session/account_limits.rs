//! What keeps a session from its statements whatever its privileges: a password that has to be set first
//! (1820), and what the account may use in an hour (1226).
//!
//! Statements are looked at when they have been parsed, before anything is planned. Who is kept from some
//! takes no plan from the cache, so that this is the one place; for everybody else it costs reading two
//! flags.

use sql::ast::Statement;
use sql::errors::{self, error};
use sql::plan::Plan;
use sql::result::SqlError;

use super::Session;

impl Session {
    /// Whether each statement is to be looked at.
    pub(super) fn is_restricted(&self) -> bool {
        let connection = &self.state.connection;
        connection.must_change_password()
            || self.state.server.accounts.limit_statements()
                && connection.with_activity(|who| {
                    self.state.server.accounts.limit_statements_of(&who.user, &who.account_host)
                })
    }

    /// Lets a statement run, or not, and counts it.
    pub(super) fn admit(&self, statement: &Statement) -> Result<(), SqlError> {
        let sets_password = matches!(statement, Statement::AlterUser { .. } | Statement::SetPassword { .. });
        if self.state.connection.must_change_password() && !sets_password {
            return Err(error(errors::MUST_CHANGE_PASSWORD, &[]));
        }
        self.count_statement(|| changes(statement))
    }

    /// The same of one that was prepared.
    pub(super) fn admit_plan(&self, plan: &Plan) -> Result<(), SqlError> {
        self.count_statement(|| match plan {
            Plan::Command(statement) => changes(statement),
            Plan::Select(_) => false,
            _ => true,
        })
    }

    fn count_statement(&self, changes: impl FnOnce() -> bool) -> Result<(), SqlError> {
        let accounts = &self.state.server.accounts;
        if !accounts.limit_statements() {
            return Ok(());
        }
        let changes = changes();
        self.state
            .connection
            .with_activity(|who| accounts.count_statement(&who.user, &who.account_host, changes))
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
            | Statement::Shutdown
            | Statement::Backup { .. }
            | Statement::Unsupported(_)
    )
}
