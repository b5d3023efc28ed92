//! The right to purge, one holder at a time, in the order in which they asked.
//!
//! Purge with a backlog asks again as soon as it has ended a batch. A rollback that has to remove a row, and
//! holds its locks meanwhile, comes before the next one.

use std::collections::VecDeque;
use std::sync::Arc;

use disk::Event;
use parking_lot::Mutex;

#[derive(Default)]
pub(super) struct PurgeTurn(Mutex<State>);

#[derive(Default)]
struct State {
    /// Somebody has it, or it was handed to somebody who has not noticed yet.
    taken: bool,
    waiting: VecDeque<(u64, Event)>,
    tickets: u64,
}

impl PurgeTurn {
    pub async fn take(self: &Arc<Self>) -> TurnGuard {
        let (mut place, event) = {
            let mut state = self.0.lock();
            if !state.taken {
                assert!(state.waiting.is_empty(), "nobody waits for what nobody has");
                state.taken = true;
                return TurnGuard(self.clone());
            }
            state.tickets += 1;
            let (ticket, event) = (state.tickets, Event::new());
            state.waiting.push_back((ticket, event.clone()));
            (QueuePlace { turn: self, ticket: Some(ticket) }, event)
        };
        event.wait().await;
        place.ticket = None;
        TurnGuard(self.clone())
    }

    /// To the first who waits, or to nobody.
    fn hand_on(&self) {
        let next = {
            let mut state = self.0.lock();
            let next = state.waiting.pop_front();
            state.taken = next.is_some();
            next
        };
        if let Some((_, event)) = next {
            event.set();
        }
    }
}

/// A place in the queue. Dropped with the future that waits, it is given up, and so is the turn if it came
/// meanwhile.
struct QueuePlace<'t> {
    turn: &'t PurgeTurn,
    ticket: Option<u64>,
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let waits = {
            let mut state = self.turn.0.lock();
            let before = state.waiting.len();
            state.waiting.retain(|(other, _)| *other != ticket);
            state.waiting.len() < before
        };
        if !waits {
            self.turn.hand_on();
        }
    }
}

/// The right to purge.
pub(crate) struct TurnGuard(Arc<PurgeTurn>);

impl Drop for TurnGuard {
    fn drop(&mut self) {
        self.0.hand_on();
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::task::{Context, Waker};

    use super::*;

    fn poll(future: Pin<&mut impl Future<Output = TurnGuard>>) -> Option<TurnGuard> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            std::task::Poll::Ready(guard) => Some(guard),
            std::task::Poll::Pending => None,
        }
    }

    #[test]
    fn it_goes_to_those_who_wait_in_their_order() {
        let turn = Arc::new(PurgeTurn::default());
        let first = poll(pin!(turn.take())).expect("nobody has it");
        let (mut second, mut third) = (pin!(turn.take()), pin!(turn.take()));
        assert!(poll(second.as_mut()).is_none() && poll(third.as_mut()).is_none());
        drop(first);
        // The one who had it comes behind them, though they have not been polled yet.
        let mut again = pin!(turn.take());
        assert!(poll(again.as_mut()).is_none());
        assert!(poll(third.as_mut()).is_none());
        drop(poll(second.as_mut()).expect("its turn"));
        assert!(poll(again.as_mut()).is_none());
        drop(poll(third.as_mut()).expect("its turn"));
        drop(poll(again.as_mut()).expect("its turn"));
        assert!(poll(pin!(turn.take())).is_some(), "free again");
    }

    #[test]
    fn who_gives_up_leaves_it_to_the_others() {
        let turn = Arc::new(PurgeTurn::default());
        let first = poll(pin!(turn.take())).expect("nobody has it");
        let (mut waits, mut granted) = (Box::pin(turn.take()), Box::pin(turn.take()));
        let mut last = pin!(turn.take());
        assert!(poll(waits.as_mut()).is_none() && poll(granted.as_mut()).is_none());
        assert!(poll(last.as_mut()).is_none());
        drop(waits);
        drop(first);
        assert!(poll(last.as_mut()).is_none(), "it was handed to another one");
        drop(granted);
        assert!(poll(last.as_mut()).is_some());
    }
}
