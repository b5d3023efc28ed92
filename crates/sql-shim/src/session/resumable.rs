//! Work that cannot return midway, and yet lets others run.
//!
//! Planning walks a tree by recursion. A statement of megabytes takes it seconds, and a recursion cannot give
//! way as a loop can. So it runs on a stack of its own, which is left when the slice of time is over and
//! entered again when the session is polled next. Nothing moves to another thread, so the session can be
//! used; nobody else uses it meanwhile, so borrows held for one step are safe. Dropped midway, the stack is
//! unwound.

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use sql::failure::Failure;
use sql::memory::refused;
use untorn::engine::TimeSlice;

/// Runs `work` on a stack of this size. What it is given lets others run; the slice of time is new when that
/// returns.
///
/// An order to stop is not looked at here: the work sees it by itself, and ends in its own way.
pub(super) async fn resumable<T: 'static>(
    slice: &TimeSlice,
    stack_bytes: usize,
    work: impl FnOnce(&dyn Fn()) -> T + 'static,
) -> Result<T, Failure> {
    let stack = DefaultStack::new(stack_bytes).map_err(|_| refused())?;
    let mut stack = Coroutine::with_stack(stack, |leave: &Yielder<(), ()>, ()| work(&|| leave.suspend(())));
    loop {
        match stack.resume(()) {
            CoroutineResult::Return(done) => return Ok(done),
            CoroutineResult::Yield(()) => _ = slice.give_way().await,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::pin::pin;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    use untorn::engine::{RealEnvironment, RealOptions, block_on};

    use super::*;

    const STACK_BYTES: usize = 256 << 10;

    fn slice() -> TimeSlice {
        TimeSlice::new(Arc::new(RealEnvironment::new(RealOptions::default()).unwrap()))
    }

    /// Gives way at the bottom of a recursion, and counts what is left of it.
    fn descend(levels: u32, give_way: &dyn Fn(), left: &Rc<Cell<u32>>) -> u32 {
        struct Leaves(Rc<Cell<u32>>);
        impl Drop for Leaves {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        let _leaves = Leaves(left.clone());
        match levels {
            0 => {
                give_way();
                give_way();
                0
            }
            levels => 1 + descend(levels - 1, give_way, left),
        }
    }

    #[test]
    fn it_goes_on_where_it_was_left() {
        let (slice, left) = (slice(), Rc::new(Cell::new(0)));
        let seen = left.clone();
        let mut work = pin!(resumable(&slice, STACK_BYTES, move |give_way| descend(50, give_way, &left)));
        let mut context = Context::from_waker(Waker::noop());
        assert!(work.as_mut().poll(&mut context).is_pending());
        assert!(work.as_mut().poll(&mut context).is_pending());
        assert_eq!(seen.get(), 0);
        assert!(matches!(work.as_mut().poll(&mut context), Poll::Ready(Ok(50))));
        assert_eq!(seen.get(), 51);
    }

    #[test]
    fn dropped_half_way_it_is_unwound() {
        let (slice, left) = (slice(), Rc::new(Cell::new(0)));
        let seen = left.clone();
        {
            let mut work = pin!(resumable(&slice, STACK_BYTES, move |give_way| descend(50, give_way, &left)));
            assert!(work.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        assert_eq!((seen.get(), Rc::strong_count(&seen)), (51, 1));
    }

    #[test]
    fn a_panic_is_the_callers() {
        let slice = slice();
        let work = resumable::<()>(&slice, STACK_BYTES, |give_way| {
            give_way();
            panic!("a defect")
        });
        let panicked = catch_unwind(AssertUnwindSafe(|| block_on(work).is_ok()));
        assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"a defect"));
    }

    #[test]
    fn without_room_for_the_stack_it_is_refused() {
        let slice = slice();
        let refused = block_on(resumable(&slice, 1 << 60, |_| ()));
        assert!(matches!(refused, Err(Failure::Sql(error)) if error.code == 1041));
    }
}
