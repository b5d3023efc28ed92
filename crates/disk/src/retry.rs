//! Driving synchronous steps: call, await what the step waits for, call again.
//!
//! Finished waits are kept until the step has completed, because they pin the pages that were read for it: so
//! each round gets further than the one before. A wait that [lets go](Wait::lets_go) is the exception: it is
//! for a frame of a pool in which everything else may be pinned by waits just like these, so they are dropped
//! before it.

use crate::event::Wait;

/// What a step says that did not complete: a wait, or an error.
pub trait Interrupted {
    /// Why it failed.
    type Error;

    /// What to wait for before the step is repeated.
    ///
    /// # Errors
    /// The step failed.
    fn into_wait(self) -> Result<Wait, Self::Error>;
}

/// The finished waits of an operation that goes on.
#[derive(Default)]
pub struct HeldWaits(Vec<Wait>);

impl HeldWaits {
    /// None yet.
    pub fn new() -> HeldWaits {
        HeldWaits::default()
    }

    /// Awaits `wait` by the rule of this module.
    pub async fn wait(&mut self, mut wait: Wait) {
        self.make_way(&wait);
        wait.done().await;
        self.0.push(wait);
    }

    /// The same with a way to block until an event is set.
    pub fn wait_blocking(&mut self, wait: Wait, block: impl FnOnce(&crate::Event)) {
        self.make_way(&wait);
        block(wait.event());
        self.0.push(wait);
    }

    /// Lets go of all: the operation has got somewhere, and does not need what it waited for any more.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn make_way(&mut self, wait: &Wait) {
        if wait.lets_go() {
            self.0.clear();
        }
    }
}

/// Repeats `step` until it completes or fails.
///
/// # Errors
/// Those of the step.
pub async fn retry<T, I: Interrupted>(mut step: impl FnMut() -> Result<T, I>) -> Result<T, I::Error> {
    let mut held = HeldWaits::new();
    loop {
        match step() {
            Ok(done) => return Ok(done),
            Err(interrupt) => held.wait(interrupt.into_wait()?).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, block_on};
    use std::sync::Arc;

    impl Interrupted for Option<Wait> {
        type Error = &'static str;
        fn into_wait(self) -> Result<Wait, &'static str> {
            self.ok_or("failed")
        }
    }

    fn holding(pin: &Arc<()>) -> Option<Wait> {
        Some(Wait::holding(Event::already_set(), Box::new(pin.clone())))
    }

    #[test]
    fn pins_are_kept_until_the_step_is_done_unless_a_wait_lets_go() {
        let pin = Arc::new(());
        let mut pins = Vec::new();
        let done = block_on(retry(|| {
            pins.push(Arc::strong_count(&pin) - 1);
            match pins.len() {
                1 | 2 | 4 => Err(holding(&pin)),
                3 => Err(Some(Wait::letting_go(Event::already_set()))),
                _ => Ok("done"),
            }
        }));
        assert_eq!(done, Ok("done"));
        assert_eq!(pins, [0, 1, 2, 0, 1]);
        assert_eq!(Arc::strong_count(&pin), 1);
        assert_eq!(block_on(retry(|| Err::<(), _>(None::<Wait>))), Err("failed"));
    }
}
