//! Putting the tables of a statement in use: the engine's metadata locks, which the transaction keeps until
//! it ends, and the waits for them.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use sql::errors;
use sql::failure::Failure;
use sql::plan::Plan;
use sql::plan::view::UsedView;
use sql::result::SqlError;
use untorn::Access;
use untorn::asynchronous::NotUsable;
use untorn::engine::Wait;

use super::Session;

/// What SHOW PROCESSLIST says of those that wait.
pub(super) const FOR_TABLE: &str = "Waiting for table metadata lock";

/// How often a waiting session looks whether somebody killed it.
const LOOK_UP: Duration = Duration::from_millis(200);

/// The error of statements on a table without a tablespace.
pub(super) fn discarded(table: &untorn::Table) -> Failure {
    untorn::Error::TablespaceDiscarded(table.database.clone(), table.name.clone()).into()
}

impl Session {
    /// When a wait for a metadata lock that begins now is given up (`lock_wait_timeout`).
    pub(super) fn metadata_deadline(&self) -> Duration {
        self.state.database.environment().now() + self.lock_wait_timeout()
    }

    /// Waits; error 1205 at the deadline, 1317 when killed.
    pub(super) async fn wait_for(
        &self,
        mut wait: Wait,
        what: &'static str,
        deadline: Duration,
    ) -> Result<(), SqlError> {
        let environment = self.state.database.environment();
        let left = deadline.saturating_sub(environment.now());
        if left.is_zero() {
            return Err(errors::error(errors::LOCK_WAIT_TIMEOUT, &[]));
        }
        self.state.connection.set_state(what);
        let mut alarm = environment.sleep(left.min(LOOK_UP));
        let mut done = pin!(wait.done());
        poll_fn(|context| {
            if done.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            alarm.as_mut().poll(context)
        })
        .await;
        self.state.connection.set_state("executing");
        self.state.check_killed()
    }

    /// Puts a view in use until the transaction ends: nobody replaces it.
    async fn use_view(&mut self, view: &UsedView) -> Result<(), Failure> {
        let mut deadline = None;
        loop {
            match self.transaction.use_view(&view.database, &view.name, &view.def) {
                Ok(()) => return Ok(()),
                Err(NotUsable::Stale | NotUsable::Discarded) => return Err(Failure::Stale),
                Err(NotUsable::Deadlock) => {
                    self.transaction.rollback().await?;
                    return Err(untorn::engine::Error::Deadlock.into());
                }
                Err(NotUsable::Wait(wait)) => {
                    let deadline = *deadline.get_or_insert_with(|| self.metadata_deadline());
                    self.wait_for(wait, FOR_TABLE, deadline).await?;
                }
            }
        }
    }

    /// Puts the tables of a plan in use until the transaction ends.
    pub(super) async fn use_tables(&mut self, plan: &Plan) -> Result<(), Failure> {
        for view in plan.views() {
            self.use_view(view).await?;
        }
        let locks = matches!(plan, Plan::Select(select) if select.locking.is_some_and(|l| l.exclusive));
        for table in plan.tables() {
            let changed = locks || plan.changes(&table);
            let access = if changed { Access::Write } else { Access::Read };
            let mut deadline = None;
            loop {
                match self.transaction.use_table_for(&table, access) {
                    Ok(()) => break,
                    Err(NotUsable::Stale) => return Err(Failure::Stale),
                    Err(NotUsable::Discarded) => return Err(discarded(&table)),
                    Err(NotUsable::Deadlock) => {
                        self.transaction.rollback().await?;
                        return Err(untorn::engine::Error::Deadlock.into());
                    }
                    Err(NotUsable::Wait(wait)) => {
                        let deadline = *deadline.get_or_insert_with(|| self.metadata_deadline());
                        self.wait_for(wait, FOR_TABLE, deadline).await?;
                    }
                }
            }
        }
        Ok(())
    }
}
