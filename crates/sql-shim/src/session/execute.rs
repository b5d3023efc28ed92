//! Runs a plan of data in the executor, once its transaction is open and its tables are in use, and watches
//! for KILL and `max_execution_time`.

use std::pin::pin;

use sql::errors;
use sql::exec::{Executor, Target};
use sql::failure::Failure;
use sql::plan::Plan;
use sql::result::ResultSink;
use sql::value::Value;

use super::watch::{Ended, Watch};
use super::{Outcome, Session, into, load_data_source};

impl Session {
    /// Runs a plan while looking for a kill of this connection and at the time a SELECT may take.
    pub(super) async fn execute_plan<S: ResultSink>(
        &mut self,
        plan: &Plan,
        parameters: &[Value<'_>],
        out: &mut S,
    ) -> Result<Outcome, Failure> {
        let limited = matches!(plan, Plan::Select(_)) && out.is_client() && !self.current.shows;
        let limit = if limited { self.time_limit() } else { None };
        let watch = Watch::new(&self.state, &self.transaction, limit);
        self.state
            .evaluation
            .set_deadline(limit.map(|limit| self.state.database.environment().now() + limit));
        let (state, transaction) = (&self.state, &mut self.transaction);
        let mut executor = Executor::new(state, transaction, parameters);
        let timed_out = &self.state.timed_out;
        let files = self.state.server.files.get();
        let work = pin!(async {
            if let Plan::Select(select) = plan {
                executor.check_constants(select)?;
            }
            match plan {
                Plan::Select(select) if !select.into.is_client() => {
                    into::run(&mut executor, select, files).await.map(Outcome::Done)
                }
                Plan::Select(select) => {
                    out.columns(&select.columns);
                    let sent = executor.select(select, &mut Target::Sink(out)).await?;
                    executor.state.found_rows.set(sent);
                    Ok(Outcome::Rows)
                }
                Plan::Insert(insert) => executor.insert(insert).await.map(Outcome::Done),
                Plan::Load(plan) => {
                    load_data_source::run(&mut executor, plan, files, out).await.map(Outcome::Done)
                }
                Plan::Update(update) => executor.update(update).await.map(Outcome::Done),
                Plan::Delete(delete) => executor.delete(delete).await.map(Outcome::Done),
                Plan::MultiTableChange(change) => {
                    executor.multi_table_change(change).await.map(Outcome::Done)
                }
                Plan::Command(_) => Ok(Outcome::Answered),
            }
        });
        let (result, ended) = watch.over_until(work, || timed_out.set(true)).await;
        self.state.evaluation.set_deadline(None);
        match result {
            Err(Failure::Sql(error))
                if error.code == errors::QUERY_INTERRUPTED && ended == Ended::TimedOut =>
            {
                Err(errors::error(errors::QUERY_TIMEOUT, &[]).into())
            }
            result => result,
        }
    }
}
