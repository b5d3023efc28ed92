//! `disk::retry` for steps of this crate, and giving way once.

use std::future::Future;

use crate::error::{Error, Interrupt};

/// [`disk::retry`] for steps of this crate. It names their error, so that `?` may stand in a step for an
/// error of a layer below.
pub(crate) fn retry<T>(step: impl FnMut() -> Result<T, Interrupt>) -> impl Future<Output = Result<T, Error>> {
    disk::retry(step)
}

/// Lets other tasks of the runtime run.
pub(crate) async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if yielded {
            return std::task::Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}
