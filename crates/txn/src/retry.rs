//! A thin wrapper of `disk::retry`, which drives this crate's steps.

use crate::error::{Error, Interrupt};

/// [`disk::retry`] for steps of this crate.
pub(crate) async fn retry<T>(step: impl FnMut() -> Result<T, Interrupt>) -> Result<T, Error> {
    disk::retry(step).await
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
