//! Waiting with a limit.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use disk::{Environment, Wait};

use crate::error::{Error, Result};

/// Awaits until the wait is over or the clock reaches the deadline.
///
/// # Errors
/// [`Error::MetadataLockTimeout`] at the deadline.
pub(crate) async fn wait_until(environment: &dyn Environment, wait: Wait, deadline: Duration) -> Result<()> {
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
        alarm.as_mut().poll(context).map(|()| Err(Error::MetadataLockTimeout))
    })
    .await
}
