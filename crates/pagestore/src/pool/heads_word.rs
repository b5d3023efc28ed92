//! Whether a frame has the heads of its page's records (see `heads.rs`).
//!
//! ```text
//!   63 made   62 being made   61 cannot be made   60 in the room of pages above the leaves
//!   59 ......... 32  version
//!   made:            24 .. 31 level, if they lead down   12 .. 23 records for each entry   0 .. 11 entries
//!   not made yet:    0 .. 27  how often it was searched without them
//! ```
//!
//! They are made and read under the shared latch, and forgotten under the exclusive one (or by the owner of
//! the frame) before the first byte changes. So a reader that finds them made finds those of the bytes
//! that are there. The latch orders the word too: only what was made by another reader at the
//! same time has to be published.
//!
//! **Without a latch.** Heads that lead down (each has the page below its record) are also read with neither
//! latch nor pin (`pointers.rs`, which says what for). Such a reader notes the word, reads, and asks whether
//! the word is the same ([`HeadsWord::is_still`]). Then nothing of what it read was written after the word
//! was noted:
//!
//! - Who makes heads says so in the word before the first of them is written, with a release fence in
//!   between; the reader has an acquire fence between the last that it read and its second look. So who read
//!   any of the new ones does not find the old word.
//! - Noting the word is an acquire, publishing a release: who notes a word finds all that it stands for.
//! - The version rises each time that heads are forgotten: others that were made since have another word,
//!   also if they are as many. It comes round after 2^28 times, each a change of the page behind a search of
//!   it: a reader would have to stand still for minutes between its two looks, and meet the same number.

use crate::sync::{AtomicU64, Ordering, fence};

const MADE: u64 = 1 << 63;
const BEING_MADE: u64 = 1 << 62;
const UNFIT: u64 = 1 << 61;
const ABOVE: u64 = 1 << 60;
const VERSION_ONE: u64 = 1 << 32;
const VERSION: u64 = ABOVE - VERSION_ONE;
const LEVEL_SHIFT: u32 = 24;
const STEP_SHIFT: u32 = 12;
const ENTRIES: u64 = (1 << STEP_SHIFT) - 1;

/// How many searches of an unchanged page make them. To make them costs some searches without.
#[cfg(not(loom))]
pub(crate) const SEARCHES: u64 = 3;
#[cfg(loom)]
pub(crate) const SEARCHES: u64 = 1;

/// The word, see the module's essay.
pub(crate) struct HeadsWord(AtomicU64);

/// What the word says of heads that are made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Made(u64);

impl Made {
    /// Heads of this many entries; `None` if the word has no place for one of the numbers. `above`: they lie
    /// in the room of pages above the leaves. `level`: that of the page, if they lead down.
    pub(crate) fn new(entries: usize, step: usize, above: bool, level: Option<u16>) -> Option<Made> {
        let level = u64::from(level.unwrap_or(0));
        let (entries, step) = (entries as u64, step as u64);
        let fits = entries <= ENTRIES && step <= ENTRIES && level <= 0xFF;
        let above = if above { ABOVE } else { 0 };
        fits.then_some(Made(MADE | above | level << LEVEL_SHIFT | step << STEP_SHIFT | entries))
    }

    pub(crate) fn entries(self) -> usize {
        (self.0 & ENTRIES) as usize
    }

    /// Of how many records each entry is the first.
    pub(crate) fn step(self) -> usize {
        (self.0 >> STEP_SHIFT & ENTRIES) as usize
    }

    pub(crate) fn is_above(self) -> bool {
        self.0 & ABOVE != 0
    }

    /// The level of the page, if they lead down. Those of a leaf never do.
    pub(crate) fn leads_from(self) -> Option<u16> {
        let level = (self.0 >> LEVEL_SHIFT & 0xFF) as u16;
        (level > 0 && self.is_above()).then_some(level)
    }
}

impl HeadsWord {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// What is to be known of them, if they are made.
    #[inline]
    pub(crate) fn made(&self) -> Option<Made> {
        let word = self.0.load(Ordering::Acquire);
        (word & MADE != 0).then_some(Made(word))
    }

    /// For a reader without a latch, which has read them, and has what it read them for: whether they have
    /// not been forgotten since.
    #[inline]
    pub(crate) fn is_still(&self, made: Made) -> bool {
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) == made.0
    }

    /// Counts a search without them. True: it is for the caller to make them now, and to say how that went.
    pub(crate) fn is_to_be_made(&self) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        if word & (MADE | BEING_MADE | UNFIT) != 0 {
            return false;
        }
        let make = (word & !VERSION) + 1 >= SEARCHES;
        let next = if make { word & VERSION | BEING_MADE } else { word + 1 };
        let counted = self.0.compare_exchange(word, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if counted && make {
            // Before what is written of them: see the essay.
            fence(Ordering::Release);
        }
        counted && make
    }

    fn version(&self) -> u64 {
        self.0.load(Ordering::Relaxed) & VERSION
    }

    /// They are there for others.
    pub(crate) fn publish(&self, made: Made) {
        self.0.store(made.0 | self.version(), Ordering::Release);
    }

    /// The page is none that has them, until it changes.
    pub(crate) fn give_up(&self) {
        self.0.store(UNFIT | self.version(), Ordering::Relaxed);
    }

    /// The page is about to change, to leave its frame, or to become another.
    #[inline]
    pub(crate) fn forget(&self) {
        let word = self.0.load(Ordering::Relaxed);
        if word & !VERSION != 0 {
            self.0.store((word & VERSION).wrapping_add(VERSION_ONE) & VERSION, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_searched_often_enough_is_made_once() {
        let word = HeadsWord::new();
        for _ in 0..2 {
            assert!((1..SEARCHES).all(|_| !word.is_to_be_made()));
            assert!(word.is_to_be_made());
            assert!(!word.is_to_be_made(), "somebody is at it");
            assert!(word.made().is_none());
            let made = Made::new(512, 999, true, Some(3)).unwrap();
            word.publish(made);
            let noted = word.made().unwrap();
            assert_eq!((noted.entries(), noted.step(), noted.leads_from()), (512, 999, Some(3)));
            assert!(noted.is_above() && word.is_still(noted) && !word.is_to_be_made());
            word.forget();
            assert!(word.made().is_none() && !word.is_still(noted));
            assert!((0..SEARCHES).any(|_| word.is_to_be_made()));
            word.publish(made);
            assert!(word.made().is_some() && !word.is_still(noted), "they were made once more");
            word.forget();
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
    use crate::sync::AtomicU32;
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
            small.word.publish(Made::new(1, 1, false, None).unwrap());
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
