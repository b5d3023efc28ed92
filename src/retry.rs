//! Awaiting what a synchronous step waits for, and trying it again.

use disk::Wait;
use smallvec::SmallVec;

use crate::error::Error;

/// What a step that did not complete says.
pub(crate) enum Step {
    /// Await this, keep it until the step has succeeded, try again.
    Wait(Wait),
    /// It failed.
    Failed(Error),
}

impl From<pagestore::Interrupt> for Step {
    fn from(interrupt: pagestore::Interrupt) -> Step {
        match interrupt {
            pagestore::Interrupt::Wait(wait) => Step::Wait(wait),
            pagestore::Interrupt::Error(error) => Step::Failed(error.into()),
        }
    }
}

impl From<redo::Interrupt> for Step {
    fn from(interrupt: redo::Interrupt) -> Step {
        match interrupt {
            redo::Interrupt::Wait(wait) => Step::Wait(wait),
            redo::Interrupt::Error(error) => Step::Failed(error.into()),
        }
    }
}

impl From<txn::Interrupt> for Step {
    fn from(interrupt: txn::Interrupt) -> Step {
        match interrupt {
            txn::Interrupt::Wait(wait) => Step::Wait(wait),
            txn::Interrupt::Error(error) => Step::Failed(error.into()),
        }
    }
}

/// Runs a step until it completes. Finished waits are kept to the end, as they pin the pages they waited for, unless a
/// wait wants them to let go ([`Wait::lets_go`]).
pub(crate) async fn retry<T, I: Into<Step>>(mut step: impl FnMut() -> Result<T, I>) -> Result<T, Error> {
    let mut held: SmallVec<[Wait; 4]> = SmallVec::new();
    loop {
        match step().map_err(Into::into) {
            Ok(done) => return Ok(done),
            Err(Step::Failed(error)) => return Err(error),
            Err(Step::Wait(mut wait)) => {
                if wait.lets_go() {
                    held.clear();
                }
                wait.done().await;
                held.push(wait);
            }
        }
    }
}
