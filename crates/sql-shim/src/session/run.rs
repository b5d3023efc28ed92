//! Runs a planned statement and answers it: a command goes to `commands.rs`, data into a transaction
//! (`in_transaction.rs`, then `execute.rs`).

use std::borrow::Cow;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;

use sql::ast::{ShowKind, Statement};
use sql::errors;
use sql::exec::insert::Changed;
use sql::failure::Failure;
use sql::plan::Plan;
use sql::result::{Completion, ResultSink};
use sql::value::Value;
use untorn::Table;

use super::tracking::{TransactionTracker, accesses_of};
use super::watch::Watch;
use super::{Outcome, Session, com_counters};

impl Session {
    /// Answers a failure. A client that is gone is the caller's business.
    pub(super) fn answer_failure<S: ResultSink>(&mut self, failure: Failure, out: &mut S) -> io::Result<()> {
        let error = match failure {
            Failure::Gone(error) => return Err(error),
            failure => failure.into_error(),
        };
        self.state.note_error(&error);
        self.state.row_count.set(-1);
        out.error(&error);
        Ok(())
    }

    /// Completion with this session's flags, and with what has changed of it.
    pub(super) fn completion<'c>(&mut self, changed: &'c Changed, more: bool) -> Completion<'c> {
        Completion { session_changes: self.take_session_changes(false), ..self.completion_of(changed, more) }
    }

    /// The same for rows.
    fn rows_completion<'c>(&mut self, changed: &'c Changed, more: bool) -> Completion<'c> {
        self.track_transaction(TransactionTracker::rows_sent);
        Completion { session_changes: self.take_session_changes(true), ..self.completion_of(changed, more) }
    }

    fn completion_of<'c>(&self, changed: &'c Changed, more: bool) -> Completion<'c> {
        Completion {
            affected: changed.affected,
            last_insert_id: changed.insert_id,
            warnings: self.state.warnings_u16(),
            status: self.flags(),
            info: Cow::Borrowed(&changed.info),
            more_results: more,
            session_changes: None,
        }
    }

    /// Executes a planned statement and answers it. The warnings of the one before are forgotten.
    #[inline]
    pub(super) fn run<S: ResultSink>(
        &mut self,
        plan: &Plan,
        parameters: &[Value<'_>],
        out: &mut S,
        more: bool,
    ) -> impl Future<Output = Result<(), Failure>> {
        self.current.run_begun = true;
        if !keeps_warnings(plan) {
            self.state.clear_warnings();
        }
        self.count(com_counters::of_plan(plan));
        self.run_inside(plan, parameters, out, more)
    }

    /// The same inside another statement, EXECUTE, which has forgotten them.
    pub(super) async fn run_inside<S: ResultSink>(
        &mut self,
        plan: &Plan,
        parameters: &[Value<'_>],
        out: &mut S,
        more: bool,
    ) -> Result<(), Failure> {
        self.current.stats.reads = plan.unindexed_reads();
        self.transaction.engine_mut().clear_kill();
        let held = self.state.held();
        let outcome = match plan {
            Plan::Command(statement) => {
                let watch = Watch::new(&self.state, &self.transaction, None);
                watch.over(pin!(self.command(statement, parameters, out, more))).await.0
            }
            plan => self.run_data(plan, parameters, out).await,
        };
        self.state.release_to(held);
        match outcome? {
            Outcome::Rows => {
                self.current.stats.sent = out.rows_sent();
                self.state.row_count.set(-1);
                let nothing = Changed::default();
                let told = self.rows_completion(&nothing, more);
                // Those of the statement before are what is shown. A client that asks wherever there are some
                // would ask for ever.
                let warnings = if keeps_warnings(plan) { 0 } else { told.warnings };
                out.rows_end(&Completion { warnings, ..told });
            }
            Outcome::Done(changed) => {
                self.current.stats.affected = changed.affected;
                if !matches!(plan, Plan::Command(Statement::GetDiagnostics(_))) {
                    self.state.row_count.set(changed.affected as i64);
                }
                out.ok(&self.completion(&changed, more));
            }
            Outcome::Answered => {}
        }
        Ok(())
    }

    /// SELECT, INSERT, UPDATE, DELETE, LOAD DATA: inside the transaction.
    pub(super) async fn run_data<S: ResultSink>(
        &mut self,
        plan: &Plan,
        parameters: &[Value<'_>],
        out: &mut S,
    ) -> Result<Outcome, Failure> {
        let writes = !matches!(plan, Plan::Select(_));
        self.check_table_locks(plan)?;
        let read_only = writes && self.is_read_only();
        // Temporary tables may be changed, as nobody else sees them; by an UPDATE that has no other tables.
        let all = matches!(plan, Plan::MultiTableChange(change) if change.updates());
        let shared = |table: &Arc<Table>| {
            (all || plan.changes(table)) && !untorn::private::is_private(&table.database)
        };
        if read_only && plan.tables().iter().any(shared) {
            return Err(errors::error(errors::CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, &[]).into());
        }
        self.check_xa_plan(plan)?;
        self.ensure_transaction();
        self.track_accesses(|| accesses_of(plan));
        self.use_up_characteristics(|| !plan.tables().is_empty() || plan.reads_dictionary());
        if !writes {
            return self.run_in_transaction(plan, parameters, out, false).await;
        }
        self.begin_change().await?;
        let result = self.run_in_transaction(plan, parameters, out, true).await;
        self.end_change();
        if matches!(&result, Err(failure) if !matches!(failure, Failure::Gone(_))) {
            // The client of a LOAD hears of an error when it has sent everything, and not before. It may take
            // its time: by now it keeps nobody waiting.
            out.skip_file().await?;
        }
        result
    }
}

/// Whether the statement shows the warnings of the one before.
fn keeps_warnings(plan: &Plan) -> bool {
    match plan {
        Plan::Command(Statement::GetDiagnostics(_)) => true,
        Plan::Command(Statement::Show(show)) => {
            matches!(show.kind, ShowKind::Warnings { .. } | ShowKind::Errors { .. })
        }
        _ => false,
    }
}
