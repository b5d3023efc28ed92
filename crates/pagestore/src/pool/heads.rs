//! The heads of a page's records: what a search wants of it, close together and beside it.
//!
//! A binary search of a page looks at a handful of records in as many places, each of which waits for memory.
//! For a page that is searched again and again the code above keeps, for each record or for every n-th, the
//! first eight bytes of its key as a number and where the record is: some ten cache lines in a row, which are
//! fetched together. What these say of the key is the business of that code; here is only where they are kept
//! and when they are true (`heads_word.rs`).
//!
//! Each frame has room for them (`heads_memory.rs`), which is memory from its first use on: a kilobyte for a
//! leaf. There are few pages above the leaves, and every search goes through them, so they have room for more
//! entries, and for the page that each of them leads to: `pointers.rs` reads these without the page. The room
//! is outside what the buffer pool's size says.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::counters::Counter;
use crate::pool::guard::PageRead;
use crate::pool::heads_word::Made;
use crate::prefetch::prefetch_address;
use crate::store::PageStore;

/// Entries of a leaf, at most.
pub const HEADS_MAX: usize = 100;
/// Entries of another page, at most.
pub const HEADS_MAX_ABOVE: usize = 512;

/// Origins in a word.
const PACKED: usize = 4;
/// Page numbers in a word.
const PAGES_PACKED: usize = 2;

/// Words of the room of a leaf, and of another page.
pub(crate) const WORDS: usize = 128;
pub(crate) const WORDS_ABOVE: usize =
    HEADS_MAX_ABOVE / PACKED + HEADS_MAX_ABOVE + HEADS_MAX_ABOVE / PAGES_PACKED;

/// Room for the heads of a leaf: the origins, then the numbers.
pub type HeadsRoom = [AtomicU64; WORDS];
/// The same for other pages, and then the pages that they lead to.
pub type HeadsRoomAbove = [AtomicU64; WORDS_ABOVE];

/// Heads that are being made.
pub struct HeadsMaker<'r> {
    heads: Heads<'r>,
    most: usize,
    packed: u64,
    pages: &'r [AtomicU64],
}

/// Where the pages are that the entries lead to.
#[inline]
fn pages_in(room: &HeadsRoomAbove) -> &[AtomicU64] {
    &room[HEADS_MAX_ABOVE / PACKED + HEADS_MAX_ABOVE..]
}

/// The page that an entry leads to.
#[inline]
pub(crate) fn page_at(room: &HeadsRoomAbove, at: usize) -> u32 {
    let word = pages_in(room)[at / PAGES_PACKED].load(Ordering::Relaxed);
    (word >> (32 * (at % PAGES_PACKED))) as u32
}

impl<'r> HeadsMaker<'r> {
    /// Begins to fill the room of a leaf's frame. Who holds the page latched does not read it before it is
    /// said to be made.
    pub fn new(room: &'r HeadsRoom) -> HeadsMaker<'r> {
        HeadsMaker { heads: Heads::in_room(room, HEADS_MAX, 0, 1), most: HEADS_MAX, packed: 0, pages: &[] }
    }

    /// The same, of a page above the leaves. Readers without a latch may read it meanwhile; they find out
    /// (`heads_word.rs`).
    pub fn above(room: &'r HeadsRoomAbove) -> HeadsMaker<'r> {
        let most = HEADS_MAX_ABOVE;
        HeadsMaker { heads: Heads::in_room(room, most, 0, 1), most, packed: 0, pages: pages_in(room) }
    }

    /// Entries that there is room for.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Adds an entry; false if there is no room for it. `page` is the one that it leads to, on a page above
    /// the leaves.
    #[must_use]
    pub fn push(&mut self, head: u64, origin: u16, page: u32) -> bool {
        let at = self.heads.len;
        if at >= self.most {
            return false;
        }
        if let Some(word) = self.pages.get(at / PAGES_PACKED) {
            let shift = 32 * (at % PAGES_PACKED);
            let others = if shift == 0 { 0 } else { word.load(Ordering::Relaxed) };
            word.store(others | u64::from(page) << shift, Ordering::Relaxed);
        }
        let shift = 16 * (at % PACKED);
        self.packed = if shift == 0 { u64::from(origin) } else { self.packed | u64::from(origin) << shift };
        self.heads.origins[at / PACKED].store(self.packed, Ordering::Relaxed);
        self.heads.numbers[at].store(head, Ordering::Relaxed);
        self.heads.len += 1;
        true
    }

    /// What was made: each entry is the first of `step` records. `level`: that of the page, if the heads
    /// alone mostly tell where to go from there: each record has one, and few have the same.
    pub fn finish(self, step: u16, level: Option<u16>) -> Heads<'r> {
        Heads { step: usize::from(step), level, ..self.heads }
    }
}

/// The heads of a page that is latched, or of one that is not ([`Pointers`](crate::Pointers)).
#[derive(Clone, Copy)]
pub struct Heads<'p> {
    origins: &'p [AtomicU64],
    numbers: &'p [AtomicU64],
    len: usize,
    step: usize,
    /// See [`HeadsMaker::finish`].
    level: Option<u16>,
}

impl<'p> Heads<'p> {
    #[inline]
    fn in_room(room: &'p [AtomicU64], most: usize, len: usize, step: usize) -> Heads<'p> {
        let (origins, numbers) = room.split_at(most / PACKED);
        Heads { origins, numbers, len, step, level: None }
    }

    /// Those that the word says there are, of a page above the leaves.
    #[inline]
    pub(crate) fn above(room: &'p HeadsRoomAbove, made: Made) -> Heads<'p> {
        Heads::in_room(room, HEADS_MAX_ABOVE, made.entries().min(HEADS_MAX_ABOVE), made.step())
    }

    /// Number of entries.
    #[inline]
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // Nothing is made of a page without records.
    pub fn len(&self) -> usize {
        self.len
    }

    /// How many records an entry is the first of.
    #[inline]
    #[must_use]
    pub fn step(&self) -> usize {
        self.step
    }

    /// The number of an entry.
    #[inline]
    #[must_use]
    pub fn head(&self, at: usize) -> u64 {
        self.numbers[at].load(Ordering::Relaxed)
    }

    /// Where the record of an entry is.
    #[inline]
    #[must_use]
    pub fn origin(&self, at: usize) -> usize {
        let word = self.origins[at / PACKED].load(Ordering::Relaxed);
        usize::from((word >> (16 * (at % PACKED))) as u16)
    }
}

impl PageStore {
    /// The heads of a page, if it has any. When it was searched often enough, `make` is to make them, or to
    /// say that they cannot be; `is_leaf` says which room they go to.
    #[inline]
    pub fn heads<'p>(
        &'p self,
        page: &'p PageRead,
        is_leaf: impl FnOnce(&[u8]) -> bool,
        make: impl FnOnce(HeadsMaker<'p>) -> Option<Heads<'p>>,
    ) -> Option<Heads<'p>> {
        match self.made_heads(page) {
            Some(heads) => Some(heads),
            None if page.frame().heads.is_to_be_made() => self.make_heads(page, is_leaf(page), make),
            None => None,
        }
    }

    /// The heads of a page, if it has any.
    #[inline]
    pub fn made_heads<'p>(&'p self, page: &'p PageRead) -> Option<Heads<'p>> {
        let frame = page.frame();
        let made = frame.heads.made()?;
        Some(if made.is_above() {
            Heads::above(self.frames.heads_above.get(frame.index())?, made)
        } else {
            Heads::in_room(self.frames.heads.get(frame.index())?, HEADS_MAX, made.entries(), made.step())
        })
    }

    #[cold]
    fn make_heads<'p>(
        &'p self,
        page: &'p PageRead,
        is_leaf: bool,
        make: impl FnOnce(HeadsMaker<'p>) -> Option<Heads<'p>>,
    ) -> Option<Heads<'p>> {
        let (frame, frames) = (page.frame(), &self.frames);
        let heads = match is_leaf {
            true => frames.heads.fill(frame.index(), |room| make(HeadsMaker::new(room))),
            false => frames.heads_above.fill(frame.index(), |room| make(HeadsMaker::above(room))),
        };
        let heads = heads.filter(|heads| heads.len > 0);
        match heads.and_then(|heads| Made::new(heads.len, heads.step, !is_leaf, heads.level)) {
            Some(made) => {
                self.counters.count(Counter::HeadsMade);
                frame.heads.publish(made);
            }
            None => frame.heads.give_up(),
        }
        heads
    }
}

impl PageRead {
    /// Whether it has heads.
    #[inline]
    #[must_use]
    pub fn has_heads(&self) -> bool {
        self.frame().heads.made().is_some()
    }
}

/// Words asked for ahead: those of some 70 entries.
const WORDS_AHEAD: usize = 96;

/// Asks for the heads of a page of rows that are not short. How many there are is not known yet.
#[inline]
pub(crate) fn prefetch_heads(room: &HeadsRoom) {
    let (lines, _) = room[..WORDS_AHEAD].as_chunks::<8>();
    lines.iter().for_each(|line| prefetch_address(std::ptr::from_ref(line)));
}
