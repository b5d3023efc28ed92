//! The pin word: who may take a frame away from its page.
//!
//! See the essay of [`crate::pool::frame`] for the protocol; it is here by itself so that loom can check
//! every interleaving of it.

use crate::sync::{AtomicU32, Ordering};

const OWNED: u32 = 1 << 31;

/// The pin word, see the module's essay.
pub(crate) struct PinWord(AtomicU32);

impl PinWord {
    /// A word whose frame is owned by its maker.
    pub(crate) fn owned() -> Self {
        Self(AtomicU32::new(OWNED))
    }

    /// Pins unless an owner has the frame.
    #[inline]
    pub(crate) fn try_pin(&self) -> bool {
        if self.0.fetch_add(1, Ordering::Acquire) & OWNED == 0 {
            return true;
        }
        self.0.fetch_sub(1, Ordering::Release);
        false
    }

    /// One more pin for someone who has one, or for an owner on behalf of others.
    #[inline]
    pub(crate) fn add_pins(&self, count: u32) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn unpin(&self) {
        let before = self.0.fetch_sub(1, Ordering::Release);
        debug_assert!(before & !OWNED > 0, "a frame was unpinned that nobody had pinned");
    }

    /// Takes an unpinned frame away from its page.
    pub(crate) fn try_own(&self) -> bool {
        self.0.compare_exchange(0, OWNED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Ends ownership: pins work from here on.
    pub(crate) fn disown(&self) {
        let before = self.0.fetch_and(!OWNED, Ordering::Release);
        debug_assert!(before & OWNED != 0, "a frame was given up that nobody owned");
    }

    pub(crate) fn is_pinned(&self) -> bool {
        self.0.load(Ordering::Acquire) & !OWNED != 0
    }

    pub(crate) fn is_owned(&self) -> bool {
        self.0.load(Ordering::Relaxed) & OWNED != 0
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    /// A frame in small: which page it holds, and that page's contents (equal to the page's name).
    struct Small {
        pins: PinWord,
        page: AtomicU32,
        contents: UnsafeCell<u32>,
    }

    /// The look-up protocol: pin, compare, use, unpin.
    fn reads(small: &Small, page: u32) -> Option<u32> {
        if !small.pins.try_pin() {
            return None;
        }
        let seen = (small.page.load(Ordering::Relaxed) == page)
            .then(|| small.contents.with(|contents| unsafe { *contents }));
        small.pins.unpin();
        seen
    }

    #[test]
    fn loom_a_pinned_page_is_never_replaced() {
        loom::model(|| {
            let small = Arc::new(Small {
                pins: PinWord::owned(),
                page: AtomicU32::new(1),
                contents: UnsafeCell::new(1),
            });
            small.pins.disown();
            let readers: Vec<_> = [1, 2]
                .into_iter()
                .map(|page| {
                    let small = small.clone();
                    thread::spawn(move || {
                        let seen = reads(&small, page);
                        assert!(seen.is_none_or(|contents| contents == page));
                    })
                })
                .collect();
            // Evict page 1, bring in page 2.
            if small.pins.try_own() {
                small.page.store(u32::MAX, Ordering::Relaxed);
                small.contents.with_mut(|contents| unsafe { *contents = 2 });
                small.page.store(2, Ordering::Relaxed);
                small.pins.disown();
            }
            for reader in readers {
                reader.join().unwrap();
            }
            assert!(!small.pins.is_pinned());
        });
    }

    /// The look-up protocol with a page table: which frame, pin, compare; one try.
    fn looks_up(entry: &AtomicU32, frames: &[Small; 2], page: u32) -> Option<u32> {
        reads(&frames[entry.load(Ordering::Acquire) as usize], page)
    }

    #[test]
    fn loom_a_page_that_moves_is_whole_in_both_frames() {
        loom::model(|| {
            let entry = Arc::new(AtomicU32::new(0));
            let frames = Arc::new([1, u32::MAX].map(|page| Small {
                pins: PinWord::owned(),
                page: AtomicU32::new(page),
                contents: UnsafeCell::new(page),
            }));
            frames[0].pins.disown();
            let reader = {
                let (entry, frames) = (entry.clone(), frames.clone());
                thread::spawn(move || {
                    let seen = looks_up(&entry, &frames, 1);
                    assert!(seen.is_none_or(|contents| contents == 1));
                })
            };
            let [from, to] = &*frames;
            let moved = from.pins.try_own();
            if moved {
                let contents = from.contents.with(|contents| unsafe { *contents });
                to.contents.with_mut(|place| unsafe { *place = contents });
                to.page.store(1, Ordering::Relaxed);
                entry.store(1, Ordering::Release);
                from.page.store(u32::MAX, Ordering::Relaxed);
                to.pins.disown();
                // Another page comes into the frame that was left.
                from.contents.with_mut(|contents| unsafe { *contents = 2 });
                from.page.store(2, Ordering::Relaxed);
                from.pins.disown();
            }
            reader.join().unwrap();
            assert_eq!(looks_up(&entry, &frames, 1), Some(1), "moved: {moved}");
        });
    }
}
