//! Watching a statement while it runs.
//!
//! The watch polls the statement's work. Every poll begins a slice of time, so that the work knows when to
//! give way, and after each it checks for a kill (a lost client counts as one) and for the statement's time
//! limit. Either makes the transaction's waits and the slice end with an error, and the work goes on to its
//! end with that.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use sql::kill_switch::Kill;
use untorn::engine::{KillHandle, TaskFuture, TimeSlice, WaitKind};

use super::Session;
use super::state::SessionState;
use crate::server::registry::Connection;

/// How watched work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself.
    Itself,
    /// Somebody killed it.
    Killed,
    /// It had its time.
    TimedOut,
}

/// What is needed to watch a statement.
pub struct Watch {
    connection: Arc<Connection>,
    handle: KillHandle,
    slice: Arc<TimeSlice>,
    deadline: Option<TaskFuture>,
}

impl Session {
    /// How long a SELECT may still take: `max_execution_time`, less what planning has taken of it.
    pub(super) fn time_limit(&mut self) -> Option<Duration> {
        let limit_ms = self.state.settings().max_execution_time_ms;
        if limit_ms == 0 {
            return None;
        }
        let now = self.state.database.environment().now();
        let deadline = *self.current.deadline.get_or_insert(now + Duration::from_millis(limit_ms));
        Some(deadline.saturating_sub(now))
    }
}

impl Watch {
    /// Watches a statement of this session, which may take as long as `limit`.
    pub fn new(
        state: &SessionState,
        transaction: &untorn::asynchronous::Transaction,
        limit: Option<Duration>,
    ) -> Watch {
        Watch {
            connection: state.connection.clone(),
            handle: transaction.engine().kill_handle(),
            slice: transaction.engine().slice().clone(),
            deadline: limit.map(|limit| state.database.environment().sleep(limit)),
        }
    }

    /// Runs work that may be dropped at any await point, which it is when somebody kills the statement or its
    /// time is over.
    pub async fn unless_ended<T>(mut self, mut work: Pin<&mut impl Future<Output = T>>) -> Result<T, Ended> {
        let mut killed = pin!(self.connection.killed(Kill::Query));
        poll_fn(|context| {
            self.slice.begin();
            if let Poll::Ready(result) = work.as_mut().poll(context) {
                return Poll::Ready(Ok(result));
            }
            let ended = if killed.as_mut().poll(context).is_ready() {
                Ended::Killed
            } else if self.deadline.as_mut().is_some_and(|late| late.as_mut().poll(context).is_ready()) {
                Ended::TimedOut
            } else {
                return Poll::Pending;
            };
            // What the work waited for is not what the connection waits for next.
            WaitKind::take_noted();
            Poll::Ready(Err(ended))
        })
        .await
    }

    /// Runs the work, pinned by the caller: it is too large to be handed on by value.
    pub async fn over<T>(self, work: Pin<&mut impl Future<Output = T>>) -> (T, Ended) {
        self.over_until(work, || {}).await
    }

    /// Runs the work; `late` is called when its time is over.
    pub async fn over_until<T>(
        mut self,
        mut work: Pin<&mut impl Future<Output = T>>,
        late: impl Fn(),
    ) -> (T, Ended) {
        let mut killed = pin!(self.connection.killed(Kill::Query));
        let mut ended = Ended::Itself;
        poll_fn(|context| {
            self.slice.begin();
            if let Poll::Ready(result) = work.as_mut().poll(context) {
                return Poll::Ready((result, ended));
            }
            if ended != Ended::Itself {
                return Poll::Pending;
            }
            if killed.as_mut().poll(context).is_ready() {
                ended = Ended::Killed;
            } else if self.deadline.as_mut().is_some_and(|late| late.as_mut().poll(context).is_ready()) {
                ended = Ended::TimedOut;
                late();
            } else {
                return Poll::Pending;
            }
            self.handle.kill();
            work.as_mut().poll(context).map(|result| (result, ended))
        })
        .await
    }
}
