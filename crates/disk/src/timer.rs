//! Timers: what ends a sleep, and a wait with a deadline.
//!
//! A timer is an event and the time at which it is set. Timers are an ordered map, so that a sleep that is
//! dropped early (a deadline that was not needed) leaves nothing behind. The map is a part of the scheduler's
//! state: on the real machine its threads fire what is due before they look for a ready task
//! ([`Scheduler::next`]), in the simulation the environment does when it moves the clock.

use crate::executor::{Scheduler, State};
use crate::{Event, EventWait};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

impl Scheduler {
    /// Fires the timers due at `now`; whether there were any.
    pub(crate) fn fire(&self, now: Duration) -> bool {
        let due = take_due(&mut self.state.lock(), now);
        due.iter().for_each(Event::set);
        !due.is_empty()
    }

    /// When the next timer is due.
    pub(crate) fn next_deadline(&self) -> Option<Duration> {
        self.state.lock().timers.first_key_value().map(|((deadline, _), _)| *deadline)
    }

    fn add_timer(&self, deadline: Duration, event: Event) -> (Duration, u64) {
        let mut state = self.state.lock();
        let key = (deadline, state.next_number);
        state.next_number += 1;
        if state.stopped {
            drop(state);
            event.set();
            return key;
        }
        let earliest = state.timers.first_key_value().is_none_or(|(first, _)| key < *first);
        state.timers.insert(key, event);
        drop(state);
        if earliest {
            self.changed.notify_one();
        }
        key
    }

    fn remove_timer(&self, key: (Duration, u64)) {
        self.state.lock().timers.remove(&key);
    }
}

/// Takes the timers out that are due at `now`.
pub(crate) fn take_due(state: &mut State, now: Duration) -> Vec<Event> {
    let mut due = Vec::new();
    while let Some(first) = state.timers.first_entry() {
        if first.key().0 > now {
            break;
        }
        due.push(first.remove());
    }
    due
}

/// A sleep: the timer is set when the future is made, and removed when it is dropped early.
pub(crate) struct Sleep {
    key: (Duration, u64),
    wait: EventWait,
    event: Event,
    scheduler: Arc<Scheduler>,
    /// It gave its thread up once although it is over.
    gave_way: bool,
}

impl Sleep {
    pub(crate) fn until(scheduler: &Arc<Scheduler>, deadline: Duration) -> Sleep {
        let event = Event::new();
        let key = scheduler.add_timer(deadline, event.clone());
        Sleep { key, wait: event.wait(), event, scheduler: scheduler.clone(), gave_way: false }
    }
}

impl Future for Sleep {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let over = Pin::new(&mut self.wait).poll(context);
        // Once everything is stopped a sleep is over at once. A task that works and sleeps in turns would
        // never come to an end of its poll, at which a stopped one is dropped.
        if over.is_ready() && !self.gave_way && self.scheduler.is_stopped() {
            self.gave_way = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        over
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if !self.event.is_set() {
            self.scheduler.remove_timer(self.key);
        }
    }
}
