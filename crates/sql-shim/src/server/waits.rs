//! Where the time of sessions goes: their waits, by kind.
//!
//! The engine notes what a task waits for ([`WaitKind`]). A connection's task is polled through
//! [`Waits::over`], which finds the note when a poll has ended without an answer, reads the clock, and reads
//! it again at the next poll: what is between was spent in a wait of that kind, with the time until the
//! thread came back to it. A task that waits for nothing of the engine reads no clock.
//!
//! The total of each kind is a histogram of the connection's thread, which is its only writer. A statement's
//! share is the difference between two looks at its connection's sums.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use untorn::engine::WaitKind;

use super::clock::CoarseClock;
use crate::status::Counters;

/// Kinds of waits.
pub const KINDS: usize = WaitKind::ALL.len();

/// Nanoseconds by kind, in the order of [`WaitKind::ALL`].
pub type ByKind = [u64; KINDS];

/// The waits of one connection.
#[derive(Debug, Default)]
pub struct Waits {
    spent_nanoseconds: [AtomicU64; KINDS],
    /// What it waits for now: the milliseconds of the coarse clock at which that began, above the number of
    /// the kind and one; 0 when it does not wait.
    now: AtomicU64,
}

/// Bits of [`Waits::now`] for the kind.
const KIND_BITS: u32 = 3;

impl Waits {
    /// What was spent so far.
    pub fn spent(&self) -> ByKind {
        std::array::from_fn(|kind| self.spent_nanoseconds[kind].load(Ordering::Relaxed))
    }

    /// What it waits for now, and since when on the coarse clock.
    pub fn current(&self) -> Option<(WaitKind, u64)> {
        let now = self.now.load(Ordering::Relaxed);
        let kind = (now & ((1 << KIND_BITS) - 1)).checked_sub(1)?;
        Some((*WaitKind::ALL.get(kind as usize)?, now >> KIND_BITS))
    }

    /// Polls the task of a connection to its end, and keeps account of its waits.
    pub async fn over<T>(
        &self,
        counters: &Counters,
        clock: &CoarseClock,
        mut task: Pin<&mut impl Future<Output = T>>,
    ) -> T {
        let mut waiting: Option<OneWait> = None;
        poll_fn(|context| {
            // Before the poll, in which the statement may end and ask what it waited.
            let before = waiting.take().map(|wait| self.goes_on_from(wait));
            // Another task of this thread may have noted something.
            WaitKind::take_noted();
            let polled = task.as_mut().poll(context);
            let noted = if polled.is_pending() { WaitKind::take_noted() } else { None };
            if let Some(wait) = before {
                // Woken to look up, or by a kill that this wait does not listen to: it is the same one.
                if noted == Some(wait.kind) {
                    waiting = Some(wait);
                    return polled;
                }
                self.now.store(0, Ordering::Relaxed);
                let took = wait.spent_until.saturating_duration_since(wait.since);
                counters.wait_times[wait.kind as usize].record_alone(took);
            }
            if let Some(kind) = noted {
                let since = Instant::now();
                waiting = Some(OneWait { kind, since, spent_until: since });
                self.now.store(clock.now_ms() << KIND_BITS | (kind as u64 + 1), Ordering::Relaxed);
            }
            polled
        })
        .await
    }

    /// Counts the time of a wait until now as spent.
    fn goes_on_from(&self, wait: OneWait) -> OneWait {
        let now = Instant::now();
        let more = now.saturating_duration_since(wait.spent_until).as_nanos();
        let nanoseconds = u64::try_from(more).unwrap_or(u64::MAX);
        self.spent_nanoseconds[wait.kind as usize].fetch_add(nanoseconds, Ordering::Relaxed);
        OneWait { spent_until: now, ..wait }
    }
}

/// A wait, over as many polls as it takes.
struct OneWait {
    kind: WaitKind,
    since: Instant,
    /// Until when it is counted as spent.
    spent_until: Instant,
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use untorn::engine::{Event, Wait};

    use super::*;

    #[test]
    fn a_wait_counts_for_its_kind_and_one_for_the_client_for_none() {
        let (waits, counters, clock) = (Waits::default(), Counters::default(), CoarseClock::default());
        let (page, client) = (Event::new(), Event::new());
        let (page_read, from_client) =
            (Wait::new(page.clone()).of(WaitKind::PageRead), Wait::new(client.clone()));
        let task = pin!(async {
            page_read.await;
            from_client.await;
        });
        let mut over = pin!(waits.over(&counters, &clock, task));
        let mut context = Context::from_waker(Waker::noop());
        // What another task of the thread waits for is not this one's.
        WaitKind::RowLock.note();
        assert!(over.as_mut().poll(&mut context).is_pending());
        assert_eq!(waits.current(), Some((WaitKind::PageRead, 0)));
        page.set();
        assert!(over.as_mut().poll(&mut context).is_pending());
        assert_eq!(waits.current(), None);
        client.set();
        assert_eq!(over.as_mut().poll(&mut context), Poll::Ready(()));
        let counts: Vec<u64> = counters.wait_times.iter().map(|times| times.times().count()).collect();
        assert_eq!(counts, [1, 0, 0, 0, 0, 0]);
        assert!(waits.spent()[WaitKind::PageRead as usize] > 0);
    }
    #[test]
    fn a_wait_that_is_looked_at_is_one_wait_and_its_time_is_there_when_it_ends() {
        let (waits, counters, clock) = (Waits::default(), Counters::default(), CoarseClock::default());
        let page = Event::new();
        let read = Wait::new(page.clone()).of(WaitKind::PageRead);
        let spent = |waits: &Waits| waits.spent()[WaitKind::PageRead as usize];
        let task = pin!(async {
            read.await;
            spent(&waits)
        });
        let mut over = pin!(waits.over(&counters, &clock, task));
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..3 {
            assert!(over.as_mut().poll(&mut context).is_pending());
            assert_eq!(waits.current(), Some((WaitKind::PageRead, 0)));
        }
        page.set();
        let Poll::Ready(seen) = over.as_mut().poll(&mut context) else { panic!("it still waits") };
        assert_eq!((seen, seen > 0), (spent(&waits), true));
        let times = counters.wait_times[WaitKind::PageRead as usize].times();
        assert_eq!(times.count(), 1);
        assert_eq!(waits.current(), None);
    }
}
