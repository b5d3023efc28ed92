//! The page latch: shared or exclusive, one word, short.
//!
//! ```text
//!  31         30               29              28 ............ 0
//!  exclusive  readers asleep   writer waits    number of readers
//! ```
//!
//! A latch protects page bytes for as long as a few hundred instructions; it is never held across a wait, an
//! await or I/O. Taking it uncontended is one compare-and-swap.
//!
//! **Who goes first.** A writer that cannot have the latch at once says so in the word, and from then on no
//! reader comes in: those inside leave, the last of them wakes a writer. So a stream of overlapping readers,
//! as many scans of one small table are, holds a writer up for no longer than the readers that were there
//! before it. When a writer leaves it clears both flags and wakes all; they compete again, and a writer that
//! loses says so again. So readers are not kept out by a row of writers either.
//!
//! **A reader that has the latch already** and takes it again would wait for the writer that waits for it.
//! The latch order forbids that; should it happen, such a reader goes in past the writer after [`PATIENCE`],
//! which is no deadlock but slow.
//!
//! **Sleeping.** Who is about to sleep sets its flag first and sleeps only if, under the sleep queue's lock,
//! the flag is still set and the latch still taken: a release in between either sees the flag, or is seen by
//! the sleeper. Only a sleep is timed (`WaitKind::Latch`): a latch that is free, or free after some spinning,
//! costs no look at a clock.

use std::time::Duration;

#[cfg(not(loom))]
use disk::WaitKind;

use crate::sync::{AtomicU32, Ordering, spin};

const EXCLUSIVE: u32 = 1 << 31;
const READERS_ASLEEP: u32 = 1 << 30;
const WRITER_WAITS: u32 = 1 << 29;
const READERS: u32 = WRITER_WAITS - 1;
#[cfg(not(loom))]
const SPINS: u32 = 60;
#[cfg(loom)]
const SPINS: u32 = 0;
/// Tries of a reader that must not wait.
#[cfg(not(loom))]
const READER_TRIES: u32 = 8;
#[cfg(loom)]
const READER_TRIES: u32 = 1;
/// A reader that has slept this long goes in past waiting writers.
const PATIENCE: Duration = Duration::from_millis(100);

/// A shared/exclusive latch of four bytes.
pub(crate) struct Latch {
    state: AtomicU32,
    #[cfg(loom)]
    lot: model::Lot,
}

/// Who sleeps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sleeper {
    Reader,
    Writer,
}

impl Latch {
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicU32::new(0),
            #[cfg(loom)]
            lot: model::Lot::default(),
        }
    }

    /// Takes the latch for reading if no writer holds it or waits for it.
    #[inline]
    pub(crate) fn try_lock_shared(&self) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        state & (EXCLUSIVE | WRITER_WAITS) == 0
            && self
                .state
                .compare_exchange_weak(state, state + 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// The same, and once more should it fail because others came in or left at the same time; not for ever.
    #[inline]
    pub(crate) fn try_lock_shared_among_readers(&self) -> bool {
        (0..READER_TRIES).any(|_| self.try_lock_shared())
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
        let mut barred = EXCLUSIVE | WRITER_WAITS;
        loop {
            let state = self.state.load(Ordering::Relaxed);
            if state & barred == 0 {
                let taken =
                    self.state.compare_exchange_weak(state, state + 1, Ordering::Acquire, Ordering::Relaxed);
                if taken.is_ok() {
                    return;
                }
            } else if spins < SPINS {
                spins += 1;
                spin();
            } else if !self.sleep(Sleeper::Reader, READERS_ASLEEP, barred) {
                barred = EXCLUSIVE;
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
                self.sleep(Sleeper::Writer, WRITER_WAITS, EXCLUSIVE | READERS);
            }
        }
    }

    /// Gives up a shared hold.
    #[inline]
    pub(crate) fn unlock_shared(&self) {
        let before = self.state.fetch_sub(1, Ordering::Release);
        debug_assert!(before & READERS > 0, "a latch was given up that nobody held for reading");
        if before & WRITER_WAITS != 0 && before & READERS == 1 {
            // The flag stays: no reader comes in before the writer has had its turn.
            self.wake_a_writer();
        }
    }

    /// Gives up the exclusive hold.
    #[inline]
    pub(crate) fn unlock_exclusive(&self) {
        let flags = EXCLUSIVE | READERS_ASLEEP | WRITER_WAITS;
        let before = self.state.fetch_and(!flags, Ordering::Release);
        debug_assert!(before & EXCLUSIVE != 0, "a latch was given up that nobody held for writing");
        if before & (READERS_ASLEEP | WRITER_WAITS) != 0 {
            self.wake_all();
        }
    }

    /// Sets `flag` and sleeps while it is set and any bit of `busy` is. May return early. False: slept for
    /// [`PATIENCE`].
    fn sleep(&self, who: Sleeper, flag: u32, busy: u32) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        if state & busy == 0 {
            return true;
        }
        if state & flag == 0
            && self
                .state
                .compare_exchange_weak(state, state | flag, Ordering::Relaxed, Ordering::Relaxed)
                .is_err()
        {
            return true;
        }
        let still = || {
            let state = self.state.load(Ordering::Relaxed);
            state & flag != 0 && state & busy != 0
        };
        self.park(who, still)
    }

    #[cfg(not(loom))]
    fn park(&self, who: Sleeper, still: impl Fn() -> bool) -> bool {
        // A latch is held for microseconds. In debug builds a writer that sleeps for many seconds means that
        // this thread, or one it waits for, broke the latch order: say so instead of hanging.
        let limit = match who {
            Sleeper::Reader => Some(PATIENCE),
            Sleeper::Writer => cfg!(debug_assertions).then_some(Duration::from_secs(30)),
        };
        let since = std::time::Instant::now();
        let limit = limit.map(|limit| since + limit);
        // SAFETY: the key is an address within this latch, which only latches use as a key; the callbacks
        // neither panic nor park or unpark anything.
        let result = unsafe {
            parking_lot_core::park(
                self.key(who),
                still,
                || {},
                |_, _| {},
                parking_lot_core::DEFAULT_PARK_TOKEN,
                limit,
            )
        };
        if !matches!(result, parking_lot_core::ParkResult::Invalid) {
            WaitKind::add_latch_sleep(since.elapsed());
        }
        let timed_out = matches!(result, parking_lot_core::ParkResult::TimedOut);
        assert!(
            !timed_out || who == Sleeper::Reader,
            "a page latch was waited for 30 s: the latch order is broken somewhere"
        );
        !timed_out
    }

    #[cold]
    fn wake_a_writer(&self) {
        // SAFETY: the key is an address within this latch; the callback does nothing.
        #[cfg(not(loom))]
        unsafe {
            parking_lot_core::unpark_one(self.key(Sleeper::Writer), |_| {
                parking_lot_core::DEFAULT_UNPARK_TOKEN
            });
        }
        #[cfg(loom)]
        self.lot.wake();
    }

    #[cold]
    fn wake_all(&self) {
        for who in [Sleeper::Writer, Sleeper::Reader] {
            // SAFETY: the key is an address within this latch; no callback.
            #[cfg(not(loom))]
            unsafe {
                parking_lot_core::unpark_all(self.key(who), parking_lot_core::DEFAULT_UNPARK_TOKEN);
            }
            #[cfg(loom)]
            if who == Sleeper::Writer {
                self.lot.wake();
            }
        }
    }

    /// Readers and writers sleep in queues of their own.
    #[cfg(not(loom))]
    fn key(&self, who: Sleeper) -> usize {
        std::ptr::from_ref(self).addr() + usize::from(who == Sleeper::Reader)
    }
}

/// Sleeping as loom can explore it: one queue, in which all are woken. Nobody's patience ends.
#[cfg(loom)]
mod model {
    use loom::sync::{Condvar, Mutex};

    #[derive(Default)]
    pub(super) struct Lot(Mutex<()>, Condvar);

    #[allow(clippy::unwrap_used)]
    impl Lot {
        pub fn wake(&self) {
            drop(self.0.lock().unwrap());
            self.1.notify_all();
        }

        pub fn sleep(&self, still: impl Fn() -> bool) {
            let guard = self.0.lock().unwrap();
            if still() {
                drop(self.1.wait(guard).unwrap());
            }
        }
    }
}

#[cfg(loom)]
impl Latch {
    fn park(&self, _who: Sleeper, still: impl Fn() -> bool) -> bool {
        self.lot.sleep(still);
        true
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

    /// Readers overlap all the time. Counted is who comes in although a writer has been waiting since before
    /// it asked.
    #[test]
    fn a_stream_of_readers_does_not_pass_a_waiting_writer() {
        const WRITES: u64 = 50;
        const LIMIT: u64 = 2_000_000;
        let latch = Latch::new();
        let (writes, reads, passed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..6 {
                let (latch, writes, reads, passed) = (&latch, &writes, &reads, &passed);
                scope.spawn(move || {
                    while writes.load(Ordering::SeqCst) < WRITES && reads.load(Ordering::Relaxed) < LIMIT {
                        let turn = writes.load(Ordering::SeqCst);
                        let waits = latch.state.load(Ordering::SeqCst) & WRITER_WAITS != 0;
                        latch.lock_shared();
                        // The writer counts with the latch held, so not while this thread reads.
                        if waits && writes.load(Ordering::SeqCst) == turn {
                            passed.fetch_add(1, Ordering::Relaxed);
                        }
                        reads.fetch_add(1, Ordering::Relaxed);
                        (0..3).for_each(|_| std::thread::yield_now());
                        latch.unlock_shared();
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..WRITES {
                    latch.lock_exclusive();
                    writes.fetch_add(1, Ordering::SeqCst);
                    latch.unlock_exclusive();
                }
            });
        });
        assert!(reads.load(Ordering::Relaxed) < LIMIT, "the writer starved");
        // Only those whose patience ended, should this machine let nobody run in all that time.
        let passed = passed.load(Ordering::Relaxed);
        assert!(passed <= WRITES, "{passed} readers passed the writer");
    }

    /// Who sleeps for the latch knows how long; who has it at once, or by spinning, has slept for nothing.
    #[test]
    fn sleep_is_timed_and_nothing_else() {
        let latch = Latch::new();
        WaitKind::take_latch_sleep();
        latch.lock_exclusive();
        latch.unlock_exclusive();
        latch.lock_shared();
        assert_eq!(WaitKind::take_latch_sleep(), 0);
        let slept = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                latch.lock_exclusive();
                latch.unlock_exclusive();
                Duration::from_nanos(WaitKind::take_latch_sleep())
            });
            while latch.state.load(Ordering::Relaxed) & WRITER_WAITS == 0 {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(30));
            latch.unlock_shared();
            writer.join().unwrap()
        });
        assert!(slept >= Duration::from_millis(20), "{slept:?}");
    }

    /// Should a thread read what it reads already, it does not wait for ever.
    #[test]
    fn a_reader_that_comes_again_gets_in_at_last() {
        let latch = Latch::new();
        latch.lock_shared();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                latch.lock_exclusive();
                latch.unlock_exclusive();
            });
            while latch.state.load(Ordering::Relaxed) & WRITER_WAITS == 0 {
                std::thread::yield_now();
            }
            assert!(!latch.try_lock_shared());
            latch.lock_shared();
            latch.unlock_shared();
            latch.unlock_shared();
        });
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

    /// One try: loom cannot explore a loop that waits for others without end. What is checked is exclusion
    /// and that what one holder wrote is seen by the next; sleeping and waking are for the test with real
    /// threads.
    fn add_one(guarded: &Guarded) -> u32 {
        if !guarded.latch.try_lock_exclusive() {
            return 0;
        }
        guarded.value.with_mut(|value| unsafe { *value += 1 });
        guarded.latch.unlock_exclusive();
        1
    }

    fn model(run: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        builder.check(run);
    }

    /// Two writers and a reader that sleep and are woken: nobody sleeps for ever, and nothing of the flags is
    /// left.
    #[test]
    fn loom_nobody_sleeps_for_ever() {
        model(|| {
            let guarded = Arc::new(Guarded { latch: Latch::new(), value: UnsafeCell::new(0) });
            let write = |guarded: &Guarded| {
                guarded.latch.lock_exclusive();
                guarded.value.with_mut(|value| unsafe { *value += 1 });
                guarded.latch.unlock_exclusive();
            };
            let writer = {
                let guarded = guarded.clone();
                thread::spawn(move || write(&guarded))
            };
            let reader = {
                let guarded = guarded.clone();
                thread::spawn(move || {
                    guarded.latch.lock_shared();
                    assert!(guarded.value.with(|value| unsafe { *value }) <= 2);
                    guarded.latch.unlock_shared();
                })
            };
            write(&guarded);
            writer.join().unwrap();
            reader.join().unwrap();
            assert_eq!(guarded.latch.state.load(Ordering::Relaxed), 0);
            assert_eq!(guarded.value.with(|value| unsafe { *value }), 2);
        });
    }

    /// A writer waits for a reader; another reader comes: it does not get in before the writer.
    #[test]
    fn loom_no_reader_passes_a_waiting_writer() {
        model(|| {
            let guarded = Arc::new(Guarded { latch: Latch::new(), value: UnsafeCell::new(0) });
            guarded.latch.lock_shared();
            let writer = {
                let guarded = guarded.clone();
                thread::spawn(move || {
                    guarded.latch.lock_exclusive();
                    guarded.value.with_mut(|value| unsafe { *value += 1 });
                    guarded.latch.unlock_exclusive();
                })
            };
            let late = {
                let guarded = guarded.clone();
                thread::spawn(move || {
                    let waits = guarded.latch.state.load(Ordering::SeqCst) & WRITER_WAITS != 0;
                    guarded.latch.lock_shared();
                    let seen = guarded.value.with(|value| unsafe { *value });
                    guarded.latch.unlock_shared();
                    assert!(!waits || seen == 1, "it passed the writer");
                })
            };
            guarded.latch.unlock_shared();
            writer.join().unwrap();
            late.join().unwrap();
        });
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
