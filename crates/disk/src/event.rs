//! Waiting without blocking a thread.
//!
//! An [`Event`] is a one-shot broadcast: once set it stays set, and everyone who waits or will wait goes on.
//! A [`Wait`] is an event together with something to keep alive until the waiter has retried its operation (a
//! pin on the page that was read for it): the pin is inside the `Wait`, so dropping the `Wait` gives it back.
//!
//! The flag is read without a lock; the list of wakers is touched only by those who really wait. `set` stores
//! the flag before it takes the list, and a waiter looks at the flag again after it entered the list, so no
//! wake-up is lost.

use parking_lot::Mutex;
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use crate::wait_kind::WaitKind;

/// A one-shot broadcast; clones are the same event.
#[derive(Clone, Default)]
pub struct Event(Arc<Inner>);

#[derive(Default)]
struct Inner {
    set: AtomicBool,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    next_ticket: u64,
    wakers: Vec<(u64, Waker)>,
}

impl Event {
    /// A fresh event, not set.
    pub fn new() -> Event {
        Event::default()
    }

    /// An event that has already happened.
    pub fn already_set() -> Event {
        let event = Event::default();
        event.0.set.store(true, Ordering::Release);
        event
    }

    /// Sets the event and wakes everyone who waits. Setting it again does nothing.
    pub fn set(&self) {
        if self.0.set.swap(true, Ordering::AcqRel) {
            return;
        }
        let wakers = std::mem::take(&mut self.0.waiting.lock().wakers);
        for (_, waker) in wakers {
            waker.wake();
        }
    }

    /// Whether the event has happened.
    pub fn is_set(&self) -> bool {
        self.0.set.load(Ordering::Acquire)
    }

    /// A future that completes when the event is set.
    pub fn wait(&self) -> EventWait {
        EventWait { event: self.clone(), ticket: None }
    }

    /// True when both are the same event.
    pub fn same(&self, other: &Event) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn poll(&self, ticket: &mut Option<u64>, context: &mut Context<'_>) -> Poll<()> {
        if self.is_set() {
            return Poll::Ready(());
        }
        let mut waiting = self.0.waiting.lock();
        // Looked at under the lock: `set` stores the flag before it takes the list under the same lock.
        if self.is_set() {
            return Poll::Ready(());
        }
        let known = ticket.and_then(|mine| waiting.wakers.iter_mut().find(|(theirs, _)| *theirs == mine));
        match known {
            Some((_, waker)) => waker.clone_from(context.waker()),
            None => {
                let mine = waiting.next_ticket;
                waiting.next_ticket += 1;
                waiting.wakers.push((mine, context.waker().clone()));
                *ticket = Some(mine);
            }
        }
        Poll::Pending
    }

    fn forget(&self, ticket: Option<u64>) {
        if let Some(mine) = ticket
            && !self.is_set()
        {
            self.0.waiting.lock().wakers.retain(|(theirs, _)| *theirs != mine);
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({})", if self.is_set() { "set" } else { "not set" })
    }
}

/// Future of [`Event::wait`].
#[derive(Debug)]
pub struct EventWait {
    event: Event,
    ticket: Option<u64>,
}

impl Future for EventWait {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        this.event.poll(&mut this.ticket, context)
    }
}

impl Drop for EventWait {
    fn drop(&mut self) {
        self.event.forget(self.ticket);
    }
}

/// What an interrupted operation waits for. Await it, retry the operation, and only then drop it: what it
/// holds (a page pin) makes sure that the retry finds what the wait was for.
pub struct Wait {
    wait: EventWait,
    lets_go: bool,
    /// Others of the runtime get a turn first.
    yields: bool,
    // Never looked at; released with the Wait.
    _held: Option<Box<dyn Send>>,
    place: Option<Arc<dyn Send + Sync>>,
    kind: Option<WaitKind>,
}

impl Wait {
    /// Waits for `event`.
    pub fn new(event: Event) -> Wait {
        Wait {
            wait: EventWait { event, ticket: None },
            lets_go: false,
            yields: false,
            _held: None,
            place: None,
            kind: None,
        }
    }

    /// Waits for `event` and keeps `held` alive until the `Wait` is dropped.
    pub fn holding(event: Event, held: Box<dyn Send>) -> Wait {
        Wait { _held: Some(held), ..Wait::new(event) }
    }

    /// Waits for `event` in a queue: `place` is dropped when nobody waits any more, neither with this nor
    /// with a [`Wait::without_hold`].
    pub fn in_place(event: Event, place: Arc<dyn Send + Sync>) -> Wait {
        Wait { place: Some(place), ..Wait::new(event) }
    }

    /// Waits for `event`, which may need what finished waits of the same operation hold: see
    /// [`Wait::lets_go`].
    pub fn letting_go(event: Event) -> Wait {
        Wait { lets_go: true, ..Wait::new(event) }
    }

    /// Waits for nothing but that others get a turn: for an operation that can go on, and has been going on
    /// for long.
    pub fn yielding() -> Wait {
        Wait { yields: true, ..Wait::letting_go(Event::already_set()) }
    }

    /// The same wait, but the operation has got further and does not need what it waited for before: see
    /// [`Wait::lets_go`].
    #[must_use]
    pub fn and_lets_go(self) -> Wait {
        Wait { lets_go: true, ..self }
    }

    /// The same wait, which says what it is for while it lasts.
    #[must_use]
    pub fn of(self, kind: WaitKind) -> Wait {
        Wait { kind: Some(kind), ..self }
    }

    /// A wait for the same thing that holds nothing.
    pub fn without_hold(&self) -> Wait {
        Wait {
            lets_go: self.lets_go,
            yields: self.yields,
            place: self.place.clone(),
            kind: self.kind,
            ..Wait::new(self.event().clone())
        }
    }

    /// Whether finished waits of the same operation must be dropped before this one is awaited. A wait for a
    /// free page frame is of this kind: if everybody kept pins while waiting for frames, all frames could be
    /// pinned.
    pub fn lets_go(&self) -> bool {
        self.lets_go
    }

    /// The event waited for.
    pub fn event(&self) -> &Event {
        &self.wait.event
    }

    /// Whether there is nothing left to wait for.
    pub fn is_done(&self) -> bool {
        self.wait.event.is_set()
    }

    /// A future that completes when the event is set; what the `Wait` holds stays held.
    pub fn done(&mut self) -> &mut Wait {
        self
    }
}

impl Future for Wait {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if std::mem::take(&mut self.yields) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let again = self.wait.ticket.is_some();
        let polled = Pin::new(&mut self.wait).poll(context);
        if polled.is_pending() {
            self.kind.inspect(|kind| kind.note(again));
        }
        polled
    }
}

impl fmt::Debug for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wait({:?})", self.event())
    }
}

struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on the calling thread, which sleeps while the future waits.
pub fn block_on<F: Future>(future: F) -> F::Output {
    thread_local! {
        // One waker per thread: a blocked commit should not allocate.
        static WAKER: Waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
    }
    let mut future = pin!(future);
    let waker = WAKER.with(Waker::clone);
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn wakes_every_waiter_on_other_threads() {
        let event = Event::new();
        let passed = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (event, passed) = (event.clone(), passed.clone());
                std::thread::spawn(move || {
                    block_on(event.wait());
                    assert!(event.is_set());
                    passed.fetch_add(1, Ordering::Relaxed);
                })
            })
            .collect();
        event.set();
        event.set();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(passed.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn an_abandoned_wait_leaves_no_waker_behind() {
        let event = Event::new();
        let mut context = Context::from_waker(Waker::noop());
        let mut first = event.wait();
        let mut second = event.wait();
        assert!(Pin::new(&mut first).poll(&mut context).is_pending());
        assert!(Pin::new(&mut first).poll(&mut context).is_pending());
        assert!(Pin::new(&mut second).poll(&mut context).is_pending());
        assert_eq!(event.0.waiting.lock().wakers.len(), 2);
        drop(first);
        assert_eq!(event.0.waiting.lock().wakers.len(), 1);
        event.set();
        assert!(Pin::new(&mut second).poll(&mut context).is_ready());
        assert!(event.0.waiting.lock().wakers.is_empty());
    }

    #[test]
    fn a_place_in_a_queue_is_kept_by_waits_that_hold_nothing() {
        let place = Arc::new(());
        let wait = Wait::in_place(Event::new(), place.clone());
        let light = wait.without_hold();
        drop(wait);
        assert_eq!(Arc::strong_count(&place), 2);
        drop(light);
        assert_eq!(Arc::strong_count(&place), 1);
    }

    #[test]
    fn a_wait_keeps_what_it_holds_until_dropped() {
        let held = Arc::new(());
        let mut wait = Wait::holding(Event::already_set(), Box::new(held.clone()));
        block_on(wait.done());
        assert_eq!(Arc::strong_count(&held), 2);
        drop(wait);
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
