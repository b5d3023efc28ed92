//! Functions that wait: SLEEP and GET_LOCK, in the select list of a SELECT without tables.
//!
//! Evaluation cannot wait, so the executor does before it: in the order of the list, and under the eyes of
//! KILL. Anywhere else GET_LOCK answers at once, as if its time were over, and SLEEP sleeps not at all.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use untorn::engine::Event;

use super::Executor;
use crate::expr::{Context, Expr};
use crate::failure::Failure;
use crate::plan::SelectPlan;
use crate::result::SqlError;

/// Longer is for ever.
const SECONDS_MAX: f64 = 1e9;

impl Executor<'_> {
    /// Waits for what the functions of the select list wait for.
    pub(super) async fn wait_for_functions(
        &self,
        plan: &SelectPlan,
        cx: &Context<'_>,
    ) -> Result<(), Failure> {
        self.state.sleeps.set(0);
        for item in &plan.items {
            let Expr::Call(function, arguments) = item else { continue };
            match (function.name, &arguments[..]) {
                ("SLEEP", [seconds]) => {
                    let seconds = seconds.eval(cx)?.to_double().max(0.0);
                    match self.wait_for(None, Some(seconds)).await {
                        Err(error) if !self.state.end_sleep() => return Err(error.into()),
                        Err(_) => return Ok(()),
                        Ok(()) => self.state.sleeps.set(self.state.sleeps.get() + 1),
                    }
                }
                ("GET_LOCK", [name, seconds]) => {
                    let name = self.state.lock_name(&name.eval(cx)?)?;
                    let seconds = seconds.eval(cx)?.to_double();
                    let waited = self.wait_for_lock(&name, (seconds >= 0.0).then_some(seconds)).await;
                    self.state.stop_waiting_for_lock();
                    if waited? {
                        self.state.lock_was_waited_for(name);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Waits for a named lock at most this long; without a time, until it is free. Whether it was got.
    async fn wait_for_lock(&self, name: &str, seconds: Option<f64>) -> Result<bool, Failure> {
        let environment = self.state.database.environment();
        let until =
            seconds.map(|seconds| environment.now() + Duration::from_secs_f64(seconds.min(SECONDS_MAX)));
        loop {
            let Some(freed) = self.state.take_lock(name, seconds != Some(0.0))? else { return Ok(true) };
            let left = until.map(|until| until.saturating_sub(environment.now()).as_secs_f64());
            if left == Some(0.0) {
                return Ok(false);
            }
            self.wait_for(Some(&freed), left).await?;
        }
    }

    /// Until the event is set or the time is over, or somebody kills the statement.
    async fn wait_for(&self, event: Option<&Event>, seconds: Option<f64>) -> Result<(), SqlError> {
        let sleep = |seconds: f64| {
            self.state.database.environment().sleep(Duration::from_secs_f64(seconds.min(SECONDS_MAX)))
        };
        let mut over = seconds.map(sleep);
        let mut set = pin!(event.map(Event::wait));
        poll_fn(|context| {
            // A kill has the statement polled.
            if let Err(error) = self.state.check_killed() {
                return Poll::Ready(Err(error));
            }
            let is_set = set.as_mut().as_pin_mut().is_some_and(|set| set.poll(context).is_ready());
            let is_over = over.as_mut().is_some_and(|over| over.as_mut().poll(context).is_ready());
            if is_set || is_over { Poll::Ready(Ok(())) } else { Poll::Pending }
        })
        .await
    }
}
