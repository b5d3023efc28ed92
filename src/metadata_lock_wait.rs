//! Waiting for metadata locks, and for other things that a definition is held by, with a deadline. Row locks
//! wait in `txn::lock`.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use disk::{Environment, Wait};
use txn::TimeSlice;

use crate::error::{Error, Result};

/// Awaits until the wait is over or the clock reaches the deadline. `slice` is that of the session that
/// waits: a kill of it, after which it is polled, ends the wait.
///
/// # Errors
/// [`Error::MetadataLockTimeout`] at the deadline; killed.
pub(crate) async fn wait_until(
    environment: &dyn Environment,
    wait: Wait,
    deadline: Duration,
    slice: Option<&TimeSlice>,
) -> Result<()> {
    let left = deadline.saturating_sub(environment.now());
    if left.is_zero() {
        return Err(Error::MetadataLockTimeout);
    }
    let mut alarm = environment.sleep(left);
    let mut wait = pin!(wait);
    poll_fn(|context| {
        if wait.as_mut().poll(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        if slice.is_some_and(TimeSlice::is_stopped) {
            return Poll::Ready(Err(Error::Transaction(txn::Error::Killed)));
        }
        alarm.as_mut().poll(context).map(|()| Err(Error::MetadataLockTimeout))
    })
    .await
}
