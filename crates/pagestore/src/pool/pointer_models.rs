//! Models of descents by pointers (`pointers.rs`), in which loom tries every order and every stale value.
//!
//! What is real in them: the word of the heads, the name of a frame's page, pins and latches. What the heads
//! hold is a number or two. Each model says which part of the protocol it fails without.
//!
//! Who changes something runs in the model's first thread and who reads in the others, which loom lets run
//! last at first. It matters: of a word loom knows only the last access when it looks for orders that it has
//! to try, so a thread that loads a word and then stores to it, as `HeadsWord::forget` does, would hide that
//! another could have looked at it later.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use crate::pool::heads_word::{HeadsWord, Made};
use crate::pool::latch::Latch;
use crate::pool::page_name::PageName;
use crate::pool::pins::PinWord;
use crate::sync::{AtomicU32, Ordering};

fn model(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(run);
}

/// The heads of a frame: the same number twice.
struct Heads {
    word: HeadsWord,
    copies: [AtomicU32; 2],
}

impl Heads {
    /// Made already.
    fn of(number: u32) -> Self {
        let heads = Self { word: HeadsWord::new(), copies: [AtomicU32::new(0), AtomicU32::new(0)] };
        heads.make(number, 1);
        heads
    }

    fn make(&self, number: u32, entries: usize) {
        if self.word.is_to_be_made() {
            self.copies.iter().for_each(|copy| copy.store(number, Ordering::Relaxed));
            self.word.publish(Made::new(entries, 1, true, Some(1)).unwrap());
        }
    }

    fn read(&self) -> [u32; 2] {
        self.copies.each_ref().map(|copy| copy.load(Ordering::Relaxed))
    }
}

/// A leaf: whether it has the key.
struct Leaf {
    latch: Latch,
    has_key: UnsafeCell<bool>,
}

impl Leaf {
    fn new(has_key: bool) -> Self {
        Self { latch: Latch::new(), has_key: UnsafeCell::new(has_key) }
    }

    /// Looks at it if no writer has it, then asks whether the way was right. `None`: it was not, or was not
    /// gone to its end.
    fn visit(&self, is_right: impl Fn() -> bool) -> Option<()> {
        if !self.latch.try_lock_shared_among_readers() {
            return None;
        }
        let is_right = is_right();
        if is_right {
            assert!(self.has_key.with(|has_key| unsafe { *has_key }), "the key has moved away");
        }
        self.latch.unlock_shared();
        is_right.then_some(())
    }
}

/// The key moves from the first leaf to the second, and `above` is what happens to the pages above.
fn move_key(leaves: &[Leaf; 2], above: impl Fn()) {
    leaves.iter().for_each(|leaf| leaf.latch.lock_exclusive());
    for (at, leaf) in leaves.iter().enumerate() {
        leaf.has_key.with_mut(|has_key| unsafe { *has_key = at == 1 });
    }
    above();
    leaves.iter().for_each(|leaf| leaf.latch.unlock_exclusive());
}

/// A page changes and its heads are made once more, with as many entries as before: nobody believes a half of
/// these and a half of those.
///
/// Fails without: the release fence in `is_to_be_made`, the acquire fence in `is_still`, the version.
#[test]
fn loom_heads_are_read_whole_without_any_latch() {
    model(4, || {
        let heads = Arc::new(Heads::of(1));
        let reader = {
            let heads = heads.clone();
            thread::spawn(move || {
                if let Some(made) = heads.word.made() {
                    let [first, second] = heads.read();
                    if heads.word.is_still(made) {
                        assert_eq!(first, second, "half of the heads are others");
                    }
                }
            })
        };
        heads.word.forget();
        heads.make(3, 1);
        reader.join().unwrap();
    });
}

/// A frame gets another page, whose heads are made; a reader wants that page's. No latch is there to help.
///
/// Fails without: the release of `PageName::set`, heads forgotten before it, the acquire fence in `is_still`,
/// the acquire of `made`, the release of `publish`.
#[test]
fn loom_heads_are_those_of_the_page_that_the_frame_is_named_for() {
    const OTHER: u64 = 2;
    const WANTED: u64 = 1;
    model(4, || {
        let name = PageName::none();
        name.set(Some(OTHER));
        let frame = Arc::new((Heads::of(OTHER as u32), name));
        let reader = {
            let frame = frame.clone();
            thread::spawn(move || {
                let (heads, name) = &*frame;
                if let Some(made) = heads.word.made()
                    && name.get() == WANTED
                {
                    let read = heads.read();
                    if heads.word.is_still(made) {
                        assert_eq!((made.entries(), read), (2, [WANTED as u32; 2]), "heads of another page");
                    }
                }
            })
        };
        let (heads, name) = &*frame;
        // As `Frame::set_page`.
        heads.word.forget();
        name.set(Some(WANTED));
        heads.make(WANTED as u32, 2);
        reader.join().unwrap();
    });
}

/// A page and the leaves below it. The key moves from one leaf to the other, as when they are split or
/// merged.
///
/// Fails without: heads forgotten before the leaves are given up, the last look at the word, that look behind
/// the latching of the leaf.
#[test]
fn loom_pointers_lead_to_where_the_key_is() {
    model(3, || {
        let tree = Arc::new((Heads::of(0), [Leaf::new(true), Leaf::new(false)]));
        let descends = |(heads, leaves): &(Heads, [Leaf; 2])| {
            let made = heads.word.made()?;
            let [first, second] = heads.read();
            leaves[first as usize].visit(|| {
                let is_still = heads.word.is_still(made);
                assert!(!is_still || first == second, "half of the heads are others");
                is_still
            })
        };
        assert!(descends(&tree).is_some());
        let reader = {
            let tree = tree.clone();
            thread::spawn(move || _ = descends(&tree))
        };
        let (heads, leaves) = &*tree;
        move_key(leaves, || heads.word.forget());
        heads.make(1, 1);
        reader.join().unwrap();
        assert!(descends(&tree).is_some());
    });
}

/// Three levels. First the key's leaf gets another parent, whose neighbour now leads elsewhere; the leaf is
/// not latched for that. Then the key leaves the leaf under its new parent.
///
/// Fails without: the look at the upper word, that look behind the noting of the lower word, the acquire of
/// `made` with the release of `publish` (both carry that the upper heads were forgotten), the last look at
/// the lower word.
#[test]
fn loom_a_way_over_two_pages_is_right_when_each_was_still_true() {
    model(3, || {
        let tree =
            Arc::new((Heads::of(0), [Heads::of(0), Heads::of(1)], [Leaf::new(true), Leaf::new(false)]));
        type Tree = (Heads, [Heads; 2], [Leaf; 2]);
        let descends = |(root, middle, leaves): &Tree| {
            let above = root.word.made()?;
            let below = &middle[root.read()[0] as usize];
            let made = below.word.made()?;
            if !root.word.is_still(above) {
                return None;
            }
            leaves[below.read()[0] as usize].visit(|| below.word.is_still(made))
        };
        assert!(descends(&tree).is_some());
        let reader = {
            let tree = tree.clone();
            thread::spawn(move || _ = descends(&tree))
        };
        let (root, middle, leaves) = &*tree;
        [&middle[0], &middle[1], root].iter().for_each(|heads| heads.word.forget());
        middle[0].make(1, 1);
        middle[1].make(0, 1);
        root.make(1, 1);
        move_key(leaves, || middle[1].word.forget());
        reader.join().unwrap();
    });
}

/// A thread that goes the way of one page. `T` is what keeps the page in its frame.
fn reads<T: Send + Sync + 'static>(tree: &Arc<(Heads, T, [Leaf; 2])>) -> thread::JoinHandle<()> {
    let tree = tree.clone();
    thread::spawn(move || {
        let (heads, _, leaves) = &*tree;
        if let Some(made) = heads.word.made() {
            leaves[heads.read()[0] as usize].visit(|| heads.word.is_still(made));
        }
    })
}

/// A page is evicted and read into another frame, where it is changed. The old frame stays empty.
///
/// Fails without: heads forgotten before the entry of the page table is removed (`PageStore::detach`).
#[test]
fn loom_a_page_that_was_evicted_leads_nowhere() {
    model(3, || {
        let tree = Arc::new((Heads::of(0), AtomicU32::new(1), [Leaf::new(true), Leaf::new(false)]));
        let writer = {
            let tree = tree.clone();
            thread::spawn(move || {
                // As `PageTable::get`: the page has to be read, and is in a frame without heads then.
                if tree.1.load(Ordering::Acquire) == 0 {
                    move_key(&tree.2, || ());
                }
            })
        };
        let reader = reads(&tree);
        tree.0.word.forget();
        // As `PageTable::remove`.
        tree.1.store(0, Ordering::Release);
        writer.join().unwrap();
        reader.join().unwrap();
    });
}

/// A page moves into another frame, as when the pool becomes smaller, and is changed there.
///
/// Fails without: heads forgotten before the new frame is given up by who moves the page
/// (`PageStore::relocate`).
#[test]
fn loom_a_page_that_was_moved_leads_nowhere() {
    model(3, || {
        let tree = Arc::new((Heads::of(0), PinWord::owned(), [Leaf::new(true), Leaf::new(false)]));
        let writer = {
            let tree = tree.clone();
            thread::spawn(move || {
                if tree.1.try_pin() {
                    move_key(&tree.2, || ());
                    tree.1.unpin();
                }
            })
        };
        let reader = reads(&tree);
        // The entry of the page table has the new frame already.
        tree.0.word.forget();
        tree.1.disown();
        writer.join().unwrap();
        reader.join().unwrap();
    });
}
