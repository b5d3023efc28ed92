//! Driving synchronous steps: call, await what they wait for, call again.

use disk::Wait;
use smallvec::SmallVec;

use crate::error::{Error, Interrupt};

/// Repeats `step` until it completes, awaiting its waits. What finished waits hold (pins of pages read for the step) is
/// kept until the step has completed, so that progress is certain; a wait for a free frame lets them go ([`Wait::lets_go`]).
pub(crate) async fn retry<T>(mut step: impl FnMut() -> Result<T, Interrupt>) -> Result<T, Error> {
    let mut held: SmallVec<[Wait; 4]> = SmallVec::new();
    loop {
        match step() {
            Ok(value) => return Ok(value),
            Err(Interrupt::Error(error)) => return Err(error),
            Err(Interrupt::Wait(mut wait)) => {
                if wait.lets_go() {
                    held.clear();
                }
                wait.done().await;
                held.push(wait);
            }
        }
    }
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
