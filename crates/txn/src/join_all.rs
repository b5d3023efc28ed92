//! Several futures in one task: while one waits for a page, the others go on.
//!
//! Mostly the pages are in memory and nobody waits. So a future is asked for, and gets its memory, only when
//! all those before it wait or are over; the memory of one that is over is the next one's.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

/// Runs the futures side by side until all are over, or one has failed: then the others are dropped where
/// they are. The next future is taken when those before it wait or are over.
pub(crate) async fn try_join_all<F, E>(futures: impl IntoIterator<Item = F>) -> Result<(), E>
where
    F: Future<Output = Result<(), E>>,
{
    let mut to_come = futures.into_iter().fuse();
    let mut under_way: Vec<Pin<Box<F>>> = Vec::new();
    std::future::poll_fn(move |context| {
        let mut over = None;
        let mut at = 0;
        loop {
            if at == under_way.len() {
                let Some(future) = to_come.next() else { break };
                under_way.push(boxed(future, over.take()));
            }
            match under_way[at].as_mut().poll(context) {
                Poll::Pending => at += 1,
                Poll::Ready(Ok(())) => over = Some(under_way.swap_remove(at)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
        if under_way.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
}

/// A future in memory of its own, or in that of one that is over.
fn boxed<F>(future: F, over: Option<Pin<Box<F>>>) -> Pin<Box<F>> {
    match over {
        Some(mut memory) => {
            memory.set(future);
            memory
        }
        None => Box::pin(future),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::{Event, block_on};
    use std::cell::Cell;

    #[test]
    fn a_future_that_waits_does_not_hold_up_the_others() {
        let (first, second) = (Event::new(), Event::new());
        let steps = Cell::new(0);
        let lane = |waits_for: Event, sets: Event| {
            let steps = &steps;
            async move {
                sets.set();
                waits_for.wait().await;
                steps.set(steps.get() + 1);
                Ok::<(), ()>(())
            }
        };
        // Each waits for what the other one does first: one after the other they would never end.
        let both = [lane(first.clone(), second.clone()), lane(second, first)];
        assert_eq!(block_on(try_join_all(both)), Ok(()));
        assert_eq!(steps.get(), 2);
    }

    #[test]
    fn a_future_is_taken_when_those_before_it_wait_or_are_over() {
        let waited_for = Event::new();
        let log = std::cell::RefCell::new(Vec::new());
        let futures = (0..4).map(|number| {
            log.borrow_mut().push(format!("{number} taken"));
            let (log, waited_for) = (&log, waited_for.clone());
            async move {
                match number {
                    1 => waited_for.wait().await,
                    3 => waited_for.set(),
                    _ => {}
                }
                log.borrow_mut().push(format!("{number} over"));
                Ok::<(), ()>(())
            }
        });
        assert_eq!(block_on(try_join_all(futures)), Ok(()));
        let expected = ["0 taken", "0 over", "1 taken", "2 taken", "2 over", "3 taken", "3 over", "1 over"];
        assert_eq!(*log.borrow(), expected);
    }

    #[test]
    fn the_first_failure_ends_all() {
        let never = Event::new();
        let lane = |fails: bool| {
            let never = never.clone();
            async move {
                if fails {
                    return Err("failed");
                }
                never.wait().await;
                Ok(())
            }
        };
        assert_eq!(block_on(try_join_all([lane(false), lane(true)])), Err("failed"));
        assert_eq!(block_on(try_join_all::<std::future::Ready<Result<(), ()>>, ()>([])), Ok(()));
    }
}
