//! Each statement runs inside a transaction, the open one or one of its own, and takes effect as a whole or
//! not at all. Its tables are put in use (`metadata_locks.rs`), then the plan is executed (`execute.rs`).
//!
//! A failed statement undoes its own changes, back to the mark that was set before it; outside a transaction
//! everything is rolled back. A deadlock has undone the whole transaction already. What cannot be
//! undone is left to the engine with its transaction: going on would commit half of a statement.

use sql::errors;
use sql::failure::Failure;
use sql::plan::Plan;
use sql::result::ResultSink;
use sql::value::Value;

use super::{Outcome, Session};

impl Session {
    pub(super) async fn run_in_transaction<S: ResultSink>(
        &mut self,
        plan: &Plan,
        parameters: &[Value<'_>],
        out: &mut S,
        writes: bool,
    ) -> Result<Outcome, Failure> {
        let stays_open = self.in_transaction();
        let mark = (stays_open && writes).then(|| self.transaction.statement_mark());
        let result = match self.use_tables(plan).await {
            Ok(()) => self.execute_plan(plan, parameters, out).await,
            Err(failure) => Err(failure),
        };
        match result {
            Ok(outcome) => {
                if stays_open {
                    self.transaction.engine_mut().end_statement();
                } else {
                    self.commit().await?;
                    self.is_transaction_by_itself();
                }
                Ok(outcome)
            }
            Err(failure) => {
                let told = matches!(failure, Failure::RolledBack(_));
                let gone = !told && stays_open && self.transaction.engine().is_rolled_back();
                self.undo(&failure, stays_open, mark).await;
                // A deadlock whose rollback met an error of its own: the client must hear that nothing is
                // left.
                Err(if gone {
                    Failure::RolledBack(errors::error(errors::LOCK_DEADLOCK, &[]))
                } else {
                    failure
                })
            }
        }
    }

    async fn undo(&mut self, failure: &Failure, stays_open: bool, mark: Option<untorn::engine::UndoMark>) {
        let result = match failure {
            _ if matches!(failure, Failure::RolledBack(_)) || self.transaction.engine().is_rolled_back() => {
                self.explicit = false;
                self.track_transaction(|tracker| tracker.lost());
                if let Some(xa) = &mut self.xa {
                    // Also when the victim's own rollback has failed first, which is what it says then.
                    match failure {
                        Failure::RolledBack(cause) => xa.note_rollback(cause),
                        _ => xa.note_rollback(&errors::error(errors::LOCK_DEADLOCK, &[])),
                    }
                }
                // After a deadlock nothing is left to undo: this ends the transaction. The next one is like
                // it.
                self.transaction.rollback().await
            }
            _ if !stays_open => self.transaction.rollback().await,
            _ => {
                let result = match mark {
                    Some(mark) => self.transaction.rollback_to(mark).await,
                    None => Ok(()),
                };
                self.transaction.engine_mut().end_statement();
                result
            }
        };
        if let Err(error) = result {
            tracing::error!(%error, "cannot undo a failed statement; its transaction is abandoned");
            if let Some(xa) = &mut self.xa {
                xa.note_rollback(&errors::error(errors::XA_RBROLLBACK, &[]));
            }
            self.abandon_transaction();
        }
    }
}
