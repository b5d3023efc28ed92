//! Whether a frame has the heads of its page's records (see `heads.rs`).
//!
//! ```text
//!   31 made   30 being made   29 cannot be made   28 ............ 0  how often it was searched without them
//!   made:     12 .. 27 records for each entry      0 .. 11 entries
//! ```
//!
//! They are made and read under the shared latch, and forgotten under the exclusive one (or by the owner of
//! the frame) before the first byte changes. So a reader that finds them made finds those of the bytes
//! that are there. The latch orders the word too: only what was made by another reader at the
//! same time has to be published.

use crate::sync::{AtomicU32, Ordering};

const MADE: u32 = 1 << 31;
const BEING_MADE: u32 = 1 << 30;
const UNFIT: u32 = 1 << 29;
const STEP_SHIFT: u32 = 12;
const ENTRIES: u32 = (1 << STEP_SHIFT) - 1;

/// How many searches of an unchanged page make them. To make them costs some searches without.
#[cfg(not(loom))]
pub(crate) const SEARCHES: u32 = 3;
#[cfg(loom)]
pub(crate) const SEARCHES: u32 = 1;

/// The word, see the module's essay.
pub(crate) struct HeadsWord(AtomicU32);

impl HeadsWord {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// How many entries there are, and of how many records each is the first, if they are made.
    #[inline]
    pub(crate) fn made(&self) -> Option<(usize, usize)> {
        let word = self.0.load(Ordering::Acquire);
        (word & MADE != 0).then_some(((word & ENTRIES) as usize, (word >> STEP_SHIFT & 0xFFFF) as usize))
    }

    /// Counts a search without them. True: it is for the caller to make them now, and to say how that went.
    pub(crate) fn is_to_be_made(&self) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        if word & (MADE | BEING_MADE | UNFIT) != 0 {
            return false;
        }
        let make = word + 1 >= SEARCHES;
        let next = if make { BEING_MADE } else { word + 1 };
        self.0.compare_exchange(word, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() && make
    }

    /// They are there for others.
    pub(crate) fn publish(&self, entries: u16, step: u16) {
        let word = MADE | u32::from(step) << STEP_SHIFT | u32::from(entries) & ENTRIES;
        self.0.store(word, Ordering::Release);
    }

    /// The page is none that has them, until it changes.
    pub(crate) fn give_up(&self) {
        self.0.store(UNFIT, Ordering::Relaxed);
    }

    /// The page is about to change, or becomes another.
    #[inline]
    pub(crate) fn forget(&self) {
        if self.0.load(Ordering::Relaxed) != 0 {
            self.0.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_searched_often_enough_is_made_once() {
        let word = HeadsWord::new();
        for _ in 0..2 {
            assert!((1..SEARCHES).all(|_| !word.is_to_be_made()));
            assert!(word.is_to_be_made());
            assert!(!word.is_to_be_made(), "somebody is at it");
            assert_eq!(word.made(), None);
            word.publish(512, 999);
            assert_eq!((word.made(), word.is_to_be_made()), (Some((512, 999)), false));
            word.forget();
            assert_eq!(word.made(), None);
        }
        word.give_up();
        assert!((0..9).all(|_| !word.is_to_be_made()) && word.made().is_none());
        word.forget();
        assert!((1..SEARCHES).all(|_| !word.is_to_be_made()) && word.is_to_be_made());
    }
}

#[cfg(all(test, loom))]
#[allow(unsafe_code)] // The cell of the model.
mod loom_tests {
    use super::*;
    use crate::pool::latch::Latch;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    /// A page in small: its contents, and their copy as the heads are.
    struct Small {
        latch: Latch,
        contents: UnsafeCell<u32>,
        word: HeadsWord,
        copy: AtomicU32,
    }

    fn searches(small: &Small) {
        small.latch.lock_shared();
        let contents = small.contents.with(|contents| unsafe { *contents });
        if small.word.made().is_some() {
            assert_eq!(small.copy.load(Ordering::Relaxed), contents, "heads of what the page was before");
        } else if small.word.is_to_be_made() {
            small.copy.store(contents, Ordering::Relaxed);
            small.word.publish(1, 1);
        }
        small.latch.unlock_shared();
    }

    #[test]
    fn loom_heads_are_always_those_of_the_page() {
        // Without a bound it does not end in minutes. The writer's change needs one preemption, a reader that
        // makes heads beside another one a second.
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        builder.check(|| {
            let small = Arc::new(Small {
                latch: Latch::new(),
                contents: UnsafeCell::new(1),
                word: HeadsWord::new(),
                copy: AtomicU32::new(0),
            });
            let reader = {
                let small = small.clone();
                thread::spawn(move || (0..2).for_each(|_| searches(&small)))
            };
            let writer = {
                let small = small.clone();
                thread::spawn(move || {
                    small.latch.lock_exclusive();
                    small.word.forget();
                    small.contents.with_mut(|contents| unsafe { *contents = 2 });
                    small.latch.unlock_exclusive();
                })
            };
            searches(&small);
            reader.join().unwrap();
            writer.join().unwrap();
            searches(&small);
        });
    }
}
