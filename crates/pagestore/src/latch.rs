//! The page latch: shared or exclusive, one word, short.
//!
//! ```text
//!  31         30        29 ............ 0
//!  exclusive  parked    number of readers
//! ```
//!
//! A latch protects page bytes for as long as a few hundred instructions; it is never held across a wait, an await or
//! I/O. Taking it uncontended is one compare-and-swap. `parked` says that a thread sleeps (or is about to) on this
//! latch; whoever releases the latch for good clears the bit and wakes all sleepers, who compete again. A sleeper sets
//! the bit first and sleeps only if, under the sleep queue's lock, the bit is still set and the latch still taken:
//! a release in between either sees the bit, or is seen by the sleeper.
//!
//! Readers give way to a parked writer for a bounded number of spins and then go in with the other readers: a writer
//! starves only under a stream of overlapping readers, and a thread that already reads never sleeps behind a writer
//! that waits for it.

use crate::sync::{AtomicU32, Ordering, spin};

const EXCLUSIVE: u32 = 1 << 31;
const PARKED: u32 = 1 << 30;
const READERS: u32 = PARKED - 1;
#[cfg(not(loom))]
const SPINS: u32 = 60;
#[cfg(loom)]
const SPINS: u32 = 1;

/// A shared/exclusive latch of four bytes.
pub(crate) struct Latch {
    state: AtomicU32,
}

impl Latch {
    pub(crate) fn new() -> Self {
        Self { state: AtomicU32::new(0) }
    }

    /// Takes the latch for reading if no writer holds it or waits for it.
    #[inline]
    pub(crate) fn try_lock_shared(&self) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        state & (EXCLUSIVE | PARKED) == 0
            && self
                .state
                .compare_exchange_weak(state, state + 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// Takes the latch for reading.
    #[inline]
    pub(crate) fn lock_shared(&self) {
        if !self.try_lock_shared() {
            self.lock_shared_slow();
        }
    }

    #[cold]
    fn lock_shared_slow(&self) {
        let mut spins = 0;
        loop {
            let state = self.state.load(Ordering::Relaxed);
            let barred = if spins < SPINS { EXCLUSIVE | PARKED } else { EXCLUSIVE };
            if state & barred == 0 {
                let taken =
                    self.state.compare_exchange_weak(state, state + 1, Ordering::Acquire, Ordering::Relaxed);
                if taken.is_ok() {
                    return;
                }
            } else if spins < SPINS {
                spins += 1;
                spin();
            } else {
                self.park(EXCLUSIVE);
            }
        }
    }

    /// Whether a writer has it now; for choosing whom to leave alone, not for deciding anything.
    pub(crate) fn has_writer(&self) -> bool {
        self.state.load(Ordering::Relaxed) & EXCLUSIVE != 0
    }

    /// Takes the latch for writing if nobody holds it.
    #[inline]
    pub(crate) fn try_lock_exclusive(&self) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        state & (EXCLUSIVE | READERS) == 0
            && self
                .state
                .compare_exchange_weak(state, state | EXCLUSIVE, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// Takes the latch for writing.
    #[inline]
    pub(crate) fn lock_exclusive(&self) {
        if !self.try_lock_exclusive() {
            self.lock_exclusive_slow();
        }
    }

    #[cold]
    fn lock_exclusive_slow(&self) {
        let mut spins = 0;
        while !self.try_lock_exclusive() {
            if spins < SPINS {
                spins += 1;
                spin();
            } else {
                self.park(EXCLUSIVE | READERS);
            }
        }
    }

    /// Gives up a shared hold.
    #[inline]
    pub(crate) fn unlock_shared(&self) {
        let before = self.state.fetch_sub(1, Ordering::Release);
        debug_assert!(before & READERS > 0, "a latch was given up that nobody held for reading");
        if before & PARKED != 0 && before & READERS == 1 {
            self.wake();
        }
    }

    /// Gives up the exclusive hold.
    #[inline]
    pub(crate) fn unlock_exclusive(&self) {
        let before = self.state.fetch_and(!EXCLUSIVE, Ordering::Release);
        debug_assert!(before & EXCLUSIVE != 0, "a latch was given up that nobody held for writing");
        if before & PARKED != 0 {
            self.wake();
        }
    }

    /// Sleeps while any bit of `busy` is set. May return early.
    #[cfg(not(loom))]
    fn park(&self, busy: u32) {
        let state = self.state.load(Ordering::Relaxed);
        if state & busy == 0 {
            return;
        }
        if state & PARKED == 0
            && self
                .state
                .compare_exchange_weak(state, state | PARKED, Ordering::Relaxed, Ordering::Relaxed)
                .is_err()
        {
            return;
        }
        let still = || {
            let state = self.state.load(Ordering::Relaxed);
            state & PARKED != 0 && state & busy != 0
        };
        // A latch is held for microseconds. In debug builds a sleep of many seconds means that this thread, or one it
        // waits for, broke the latch order: say so instead of hanging.
        let limit =
            cfg!(debug_assertions).then(|| std::time::Instant::now() + std::time::Duration::from_secs(30));
        // SAFETY: the key is the address of this latch, which only latches use as a key; the callbacks neither panic
        // nor park or unpark anything.
        let result = unsafe {
            parking_lot_core::park(
                self.key(),
                still,
                || {},
                |_, _| {},
                parking_lot_core::DEFAULT_PARK_TOKEN,
                limit,
            )
        };
        assert!(
            !matches!(result, parking_lot_core::ParkResult::TimedOut),
            "a page latch was waited for 30 s: the latch order is broken somewhere"
        );
    }

    #[cfg(loom)]
    fn park(&self, _busy: u32) {
        loom::thread::yield_now();
    }

    #[cold]
    fn wake(&self) {
        self.state.fetch_and(!PARKED, Ordering::Relaxed);
        // SAFETY: the key is the address of this latch; no callback.
        #[cfg(not(loom))]
        unsafe {
            parking_lot_core::unpark_all(self.key(), parking_lot_core::DEFAULT_UNPARK_TOKEN);
        }
    }

    #[cfg(not(loom))]
    fn key(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn writers_exclude_everybody_and_nobody_is_forgotten() {
        let latch = Latch::new();
        let (first, second) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (latch, first, second) = (&latch, &first, &second);
                scope.spawn(move || {
                    for step in 0..20_000 {
                        if (step + thread) % 3 == 0 {
                            latch.lock_exclusive();
                            first.store(first.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                            if step % 64 == 0 {
                                std::thread::yield_now();
                            }
                            second.store(second.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                            latch.unlock_exclusive();
                        } else {
                            latch.lock_shared();
                            assert_eq!(first.load(Ordering::Relaxed), second.load(Ordering::Relaxed));
                            latch.unlock_shared();
                        }
                    }
                });
            }
        });
        let writes =
            (0..4).map(|thread| (0..20_000).filter(|step| (step + thread) % 3 == 0).count()).sum::<usize>();
        assert_eq!(first.load(Ordering::Relaxed), writes as u64);
        assert_eq!(latch.state.load(Ordering::Relaxed), 0);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    struct Guarded {
        latch: Latch,
        value: UnsafeCell<u32>,
    }

    /// One try: loom cannot explore a loop that waits for others without end. What is checked is exclusion and that
    /// what one holder wrote is seen by the next; sleeping and waking are for the test with real threads.
    fn add_one(guarded: &Guarded) -> u32 {
        if !guarded.latch.try_lock_exclusive() {
            return 0;
        }
        guarded.value.with_mut(|value| unsafe { *value += 1 });
        guarded.latch.unlock_exclusive();
        1
    }

    #[test]
    fn loom_two_writers_and_a_reader() {
        loom::model(|| {
            let guarded = Arc::new(Guarded { latch: Latch::new(), value: UnsafeCell::new(0) });
            let writer = {
                let guarded = guarded.clone();
                thread::spawn(move || add_one(&guarded))
            };
            let reader = {
                let guarded = guarded.clone();
                thread::spawn(move || {
                    if guarded.latch.try_lock_shared() {
                        let seen = guarded.value.with(|value| unsafe { *value });
                        guarded.latch.unlock_shared();
                        assert!(seen <= 2);
                    }
                })
            };
            let mut written = add_one(&guarded);
            written += writer.join().unwrap();
            reader.join().unwrap();
            assert_eq!(guarded.latch.state.load(Ordering::Relaxed), 0);
            assert!(guarded.latch.try_lock_shared());
            assert_eq!(guarded.value.with(|value| unsafe { *value }), written);
            guarded.latch.unlock_shared();
        });
    }
}
