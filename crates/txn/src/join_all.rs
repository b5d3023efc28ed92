//! Several futures in one task: while one waits for a page, the others go on.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

/// Runs the futures side by side until all are over, or one has failed: then the others are dropped where
/// they are.
pub(crate) async fn try_join_all<F, E>(futures: impl IntoIterator<Item = F>) -> Result<(), E>
where
    F: Future<Output = Result<(), E>>,
{
    let mut under_way: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    std::future::poll_fn(move |context| {
        let mut at = 0;
        while let Some(future) = under_way.get_mut(at) {
            match future.as_mut().poll(context) {
                Poll::Pending => at += 1,
                Poll::Ready(Ok(())) => drop(under_way.swap_remove(at)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
        if under_way.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
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
