//! XA: transactions that an outside coordinator commits in several databases or in none.
//!
//! ```text
//!            START          END            PREPARE
//!   (none) ---------> ACTIVE -----> IDLE ------------> prepared: COMMIT or ROLLBACK, from any session
//!                     ^  |  RESUME   |  COMMIT ONE PHASE, ROLLBACK
//!                     +--|-----------+-----------------> (none)
//!                        |  the engine has rolled it back (a deadlock)
//!                        +----------> ROLLBACK ONLY ---> (none)
//! ```
//!
//! Once prepared, a transaction is no session's any more (`xa_detach_on_prepare` is always ON): it stays when
//! the connection ends, and the session may begin another one. So it may not use temporary tables, which go
//! with their session. What keeps prepared transactions is `src/prepared.rs`.
//!
//! A deadlock is told once as such. The state is ACTIVE until another statement needs the transaction, or XA
//! END, as in MySQL; each of these says what has happened.

use std::time::Duration;

use sql::ast::{Maintenance, ShowKind, Statement, Xa, XaStart};
use sql::errors::{self, error};
use sql::expr::types::Type;
use sql::failure::Failure;
use sql::plan::Plan;
use sql::privilege::Privileges;
use sql::result::{ResultSink, SqlError};
use sql::value::Value;
use untorn::asynchronous::{Patience, XidReservation};
use untorn::engine::Error as TransactionError;
use untorn::types::Collation;
use untorn::{Xid, private};

use super::commands::done;
use super::show::Answer;
use super::{Outcome, Session};

/// The XA transaction of a session.
pub(super) struct XaTransaction {
    name: XidReservation,
    state: State,
    /// The error that says why the engine has rolled it back.
    rolled_back: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Active,
    Idle,
    RollbackOnly,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Active => "ACTIVE",
            State::Idle => "IDLE",
            State::RollbackOnly => "ROLLBACK ONLY",
        }
    }
}

fn wrong_state(state: &str) -> SqlError {
    error(errors::XAER_RMFAIL, &[&state])
}

fn unknown() -> SqlError {
    error(errors::XAER_NOTA, &[])
}

/// Why a prepared transaction was not ended.
fn end_refused(refused: untorn::Error) -> Failure {
    match refused {
        untorn::Error::UnknownXid(_) => unknown().into(),
        other => other.into(),
    }
}

impl XaTransaction {
    fn is(&self, xid: &Xid) -> bool {
        self.name.xid() == xid
    }

    fn refusal(&self) -> SqlError {
        wrong_state(self.state.name())
    }

    /// The engine has rolled it back.
    pub(super) fn note_rollback(&mut self, cause: &SqlError) {
        let why = match cause.code {
            errors::LOCK_DEADLOCK => errors::XA_RBDEADLOCK,
            _ => errors::XA_RBROLLBACK,
        };
        self.rolled_back.get_or_insert(why);
    }

    /// Whether rows may be read and changed.
    fn check_rows(&mut self) -> Result<(), SqlError> {
        if let Some(why) = self.rolled_back {
            self.state = State::RollbackOnly;
            return Err(error(why, &[]));
        }
        if self.state == State::Idle { Err(self.refusal()) } else { Ok(()) }
    }
}

/// What a command is to the XA transaction that is open.
enum Touches<'s> {
    /// Nothing.
    Nothing,
    /// It reads tables, or lists what there is.
    Rows,
    /// With the name of one that must be there.
    Savepoints(Option<&'s str>),
    TemporaryTables,
    /// It would commit the transaction, or end it otherwise.
    Ends,
}

fn touches(statement: &Statement) -> Touches<'_> {
    match statement {
        Statement::Show(show) => match show.kind {
            ShowKind::Warnings { .. }
            | ShowKind::Errors { .. }
            | ShowKind::Grants(..)
            | ShowKind::EngineStatus { .. }
            | ShowKind::ProcessList { .. }
            | ShowKind::Privileges
            | ShowKind::Empty(..) => Touches::Nothing,
            _ => Touches::Rows,
        },
        Statement::Describe { .. } | Statement::Handler(_) => Touches::Rows,
        Statement::Savepoint(_) => Touches::Savepoints(None),
        Statement::RollbackTo(name) | Statement::ReleaseSavepoint(name) => Touches::Savepoints(Some(name)),
        Statement::CreateTable(create) if create.temporary => Touches::TemporaryTables,
        Statement::DropTable { temporary: true, .. }
        | Statement::Xa(_)
        | Statement::Use(_)
        | Statement::Set(_)
        | Statement::SetTransaction { .. }
        | Statement::SetRole(_)
        | Statement::Do(_)
        | Statement::Explain { .. }
        | Statement::Kill { .. }
        | Statement::UnlockTables
        | Statement::Prepare { .. }
        | Statement::Execute { .. }
        | Statement::Deallocate(_)
        | Statement::GetDiagnostics(_)
        | Statement::Shutdown
        | Statement::Unsupported(_)
        | Statement::Maintain { what: Maintenance::Checksum | Maintenance::KeptChecksum, .. } => {
            Touches::Nothing
        }
        _ => Touches::Ends,
    }
}

impl Session {
    /// Refuses a command that does not go with the XA transaction that is open.
    pub(super) fn check_xa_command(&mut self, statement: &Statement) -> Result<(), SqlError> {
        let rows = self.transaction.engine();
        let Some(xa) = &mut self.xa else { return Ok(()) };
        match touches(statement) {
            // One that is not there is what they complain of first.
            Touches::Savepoints(Some(name)) if !rows.has_savepoint(name) => Ok(()),
            Touches::Nothing => Ok(()),
            Touches::Rows => xa.check_rows(),
            Touches::Savepoints(_) if xa.state != State::Idle => Ok(()),
            Touches::TemporaryTables => Err(error(errors::XA_TEMP_TABLE, &[])),
            Touches::Savepoints(_) | Touches::Ends => Err(xa.refusal()),
        }
    }

    /// The same of a query or change.
    pub(super) fn check_xa_plan(&mut self, plan: &Plan) -> Result<(), SqlError> {
        let Some(xa) = &mut self.xa else { return Ok(()) };
        let tables = plan.tables();
        if !tables.is_empty() || plan.reads_dictionary() {
            xa.check_rows()?;
        }
        match tables.iter().any(|table| private::is_private(&table.database)) {
            true => Err(error(errors::XA_TEMP_TABLE, &[])),
            false => Ok(()),
        }
    }

    /// A temporary table goes with its session, and a prepared transaction does not.
    pub(super) fn check_xa_temporary(&self) -> Result<(), SqlError> {
        self.xa.as_ref().map_or(Ok(()), |_| Err(error(errors::XA_TEMP_TABLE, &[])))
    }

    /// Setting `autocommit` commits what is open.
    pub(super) fn check_xa_autocommit(&self) -> Result<(), SqlError> {
        self.xa.as_ref().map_or(Ok(()), |xa| Err(xa.refusal()))
    }

    pub(super) async fn xa_statement<S: ResultSink>(
        &mut self,
        statement: &Xa,
        out: &mut S,
    ) -> Result<Outcome, Failure> {
        match statement {
            Xa::Start(xid, how) => self.xa_start(xid, *how)?,
            Xa::End(xid, suspends) => self.xa_end(xid, *suspends)?,
            Xa::Prepare(xid) => self.xa_prepare(xid).await?,
            Xa::Commit(xid, one_phase) => self.xa_commit(xid, *one_phase).await?,
            Xa::Rollback(xid) => self.xa_rollback(xid).await?,
            Xa::Recover(converts) => return self.xa_recover(*converts, out).await,
        }
        Ok(done())
    }

    fn xa_start(&mut self, xid: &Xid, how: Option<XaStart>) -> Result<(), SqlError> {
        match (&mut self.xa, how) {
            (Some(xa), Some(XaStart::Resume)) if xa.state == State::Idle => {
                if !xa.is(xid) {
                    return Err(unknown());
                }
                xa.state = State::Active;
                return Ok(());
            }
            (_, Some(_)) => return Err(error(errors::XAER_INVAL, &[])),
            (Some(xa), None) => return Err(xa.refusal()),
            (None, None) => {}
        }
        if self.is_within_transaction() || self.table_locks.is_some() || !self.export_holds.is_empty() {
            return Err(error(errors::XAER_OUTSIDE, &[]));
        }
        let name = self.state.database.reserve_xid(xid).map_err(|refused| match refused {
            untorn::Error::XidInUse(_) => error(errors::XAER_DUPID, &[]),
            other => sql::failure::engine(&other),
        })?;
        self.explicit = true;
        self.ensure_transaction();
        self.xa = Some(XaTransaction { name, state: State::Active, rolled_back: None });
        self.track_transaction(|tracker| tracker.begun_xa(xid));
        Ok(())
    }

    fn xa_end(&mut self, xid: &Xid, suspends: bool) -> Result<(), SqlError> {
        if suspends {
            return Err(error(errors::XAER_INVAL, &[]));
        }
        let Some(xa) = &mut self.xa else { return Err(wrong_state("NON-EXISTING")) };
        if xa.state == State::Idle {
            return Err(xa.refusal());
        }
        if !xa.is(xid) {
            return Err(unknown());
        }
        xa.check_rows()?;
        xa.state = State::Idle;
        Ok(())
    }

    async fn xa_prepare(&mut self, xid: &Xid) -> Result<(), Failure> {
        match &self.xa {
            None => return Err(wrong_state("NON-EXISTING").into()),
            Some(xa) if xa.state != State::Idle => return Err(xa.refusal().into()),
            Some(xa) if !xa.is(xid) => return Err(unknown().into()),
            Some(_) => {}
        }
        self.check_xa_lives().await?;
        if let Err(error) = self.begin_commit().await {
            self.roll_back_xa().await?;
            return Err(error.into());
        }
        let durability = self.durability();
        let Some(xa) = self.xa.take() else { return Ok(()) };
        (self.explicit, self.read_only) = (false, false);
        self.forget_characteristics();
        self.track_transaction(|tracker| tracker.ended(false));
        let prepared = self.transaction.prepare_as(xa.name, durability).await;
        self.end_change();
        let Err(cause) = prepared else {
            self.drop_unused_private().await;
            return Ok(());
        };
        if self.state.database.may_be_prepared(xid) {
            // It must not be told as rolled back: the coordinator would forget it.
            tracing::error!(error = %cause, ?xid, "an XA transaction may be prepared, durable or not; XA RECOVER tells");
            self.drop_unused_private().await;
            return Err(error(errors::XAER_RMERR, &[]).into());
        }
        tracing::error!(error = %cause, "an XA transaction cannot be prepared and is rolled back");
        self.roll_back_xa().await?;
        Err(match cause {
            untorn::Error::Transaction(TransactionError::TooManyTransactions(_)) => cause.into(),
            _ => error(errors::XA_RBROLLBACK, &[]).into(),
        })
    }

    async fn xa_commit(&mut self, xid: &Xid, one_phase: bool) -> Result<(), Failure> {
        let Some(xa) = &self.xa else { return self.end_prepared(xid, true).await };
        if !xa.is(xid) {
            return Err(xa.refusal().into());
        }
        if let Some(why) = xa.rolled_back {
            self.roll_back_xa().await?;
            return Err(error(why, &[]).into());
        }
        if xa.state != State::Idle || !one_phase {
            return Err(xa.refusal().into());
        }
        self.check_xa_lives().await?;
        if let Err(failure) = self.commit_open().await {
            self.roll_back_xa().await?;
            return Err(failure);
        }
        self.xa_ended().await;
        Ok(())
    }

    async fn xa_rollback(&mut self, xid: &Xid) -> Result<(), Failure> {
        match &self.xa {
            None => self.end_prepared(xid, false).await,
            Some(xa) if xa.is(xid) && xa.state != State::Active => self.roll_back_xa().await,
            Some(xa) => Err(xa.refusal().into()),
        }
    }

    /// Before its changes are made to last: whatever has become of the engine's transaction, a part of them
    /// must not be taken for all.
    async fn check_xa_lives(&mut self) -> Result<(), Failure> {
        let is_lost = self.xa.as_ref().is_some_and(|xa| xa.rolled_back.is_some());
        if !is_lost && self.transaction.is_active() && !self.transaction.engine().is_rolled_back() {
            return Ok(());
        }
        self.roll_back_xa().await?;
        Err(error(errors::XA_RBROLLBACK, &[]).into())
    }

    /// Rolls back what is not prepared.
    async fn roll_back_xa(&mut self) -> Result<(), Failure> {
        let rolled_back = self.roll_back().await;
        if let Err(failure) = &rolled_back {
            tracing::error!(?failure, "cannot undo an XA transaction; it is abandoned");
            self.abandon_transaction();
        }
        self.xa_ended().await;
        rolled_back
    }

    async fn xa_ended(&mut self) {
        self.xa = None;
        self.forget_characteristics();
        self.track_transaction(|tracker| tracker.ended(false));
        self.drop_unused_private().await;
    }

    /// Commits or rolls back one that some session has prepared, now or before the last start.
    async fn end_prepared(&mut self, xid: &Xid, commits: bool) -> Result<(), Failure> {
        if self.is_within_transaction() {
            return Err(wrong_state("NON-EXISTING").into());
        }
        let (database, durability) = (self.state.database.clone(), self.durability());
        // Before a wait for the global read lock.
        if !database.may_be_prepared(xid) {
            return Err(end_refused(database.unknown_xid(xid).await));
        }
        self.begin_commit().await?;
        let timeout = Duration::from_secs(self.state.settings().innodb_lock_wait_timeout_seconds);
        let patience = Patience { timeout, slice: Some(self.transaction.engine().slice().clone()) };
        let ended = match commits {
            true => database.commit_prepared_for(xid, durability, patience).await,
            false => database.rollback_prepared_for(xid, durability, patience).await,
        };
        self.end_change();
        ended.map_err(end_refused)
    }

    async fn xa_recover<S: ResultSink>(&mut self, converts: bool, out: &mut S) -> Result<Outcome, Failure> {
        if !self.state.rights().global().has(Privileges::XA_RECOVER_ADMIN) {
            let wanted = error(errors::SPECIFIC_ACCESS_DENIED, &[&"XA_RECOVER_ADMIN"]);
            self.state.note_error(&wanted);
            return Err(error(errors::XAER_RMERR, &[]).into());
        }
        let mut prepared = self.state.database.prepared_transactions();
        prepared.sort_unstable();
        let rows = prepared.into_iter().map(move |xid| {
            let data = [xid.gtrid(), xid.bqual()].concat();
            let data = if converts { hexadecimal(&data) } else { data };
            let length = |part: &[u8]| Value::Int(part.len() as i64);
            let (gtrid, bqual) = (length(xid.gtrid()), length(xid.bqual()));
            vec![
                Value::Int(xid.format_id()),
                gtrid,
                bqual,
                Value::Text(data.into(), Collation::Utf8mb4GeneralCi),
            ]
        });
        let number = |name: &str| (name.to_owned(), Type::INT);
        let data = ("data".to_owned(), Type::text(258));
        let columns = vec![number("formatID"), number("gtrid_length"), number("bqual_length"), data];
        self.send(Answer::new(columns, rows), out).await?;
        Ok(Outcome::Rows)
    }
}

fn hexadecimal(bytes: &[u8]) -> Vec<u8> {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    format!("0x{digits}").into_bytes()
}
