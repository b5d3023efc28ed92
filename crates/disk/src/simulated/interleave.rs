//! Several clients on one thread, in an order that a seed decides.
//!
//! The environment's seed orders what is ready; within one task this orders its parts, so that what clients
//! do between two waits is mixed as well. The same parts and seed are polled in the same order.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use crate::Random;

/// Polls its parts in an order that the seed decides, until all are done or `polls` polls have been made. The
/// end of one does not end the others.
pub async fn interleave(mut parts: Vec<Pin<Box<dyn Future<Output = ()>>>>, seed: u64, polls: u64) {
    let mut random = Random::new(seed);
    let mut left = polls;
    poll_fn(|context| {
        let mut order: Vec<usize> = (0..parts.len()).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, random.below(at + 1));
        }
        let mut done = Vec::new();
        for at in order {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            if parts[at].as_mut().poll(context).is_ready() {
                done.push(at);
            }
        }
        done.sort_unstable();
        for at in done.into_iter().rev() {
            drop(parts.swap_remove(at));
        }
        if parts.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
