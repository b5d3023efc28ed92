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
//! entries. The room is outside what the buffer pool's size says.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::counters::Counter;
use crate::pool::guard::PageRead;
use crate::prefetch::prefetch_address;
use crate::store::PageStore;

/// Entries of a leaf, at most.
pub const HEADS_MAX: usize = 100;
/// Entries of another page, at most.
pub const HEADS_MAX_ABOVE: usize = 512;

/// Origins in a word.
const PACKED: usize = 4;

/// Words of the room of a leaf, and of another page.
pub(crate) const WORDS: usize = 128;
pub(crate) const WORDS_ABOVE: usize = HEADS_MAX_ABOVE / PACKED + HEADS_MAX_ABOVE;

/// Room for the heads of a leaf: the origins, then the numbers.
pub type HeadsRoom = [AtomicU64; WORDS];
/// The same for other pages.
pub type HeadsRoomAbove = [AtomicU64; WORDS_ABOVE];

/// Heads that are being made.
pub struct HeadsMaker<'r> {
    heads: Heads<'r>,
    most: usize,
    packed: u64,
}

impl<'r> HeadsMaker<'r> {
    /// Begins to fill a room that nobody reads.
    pub fn new(room: &'r HeadsRoom) -> HeadsMaker<'r> {
        HeadsMaker { heads: Heads::in_room(room, HEADS_MAX, 0, 1), most: HEADS_MAX, packed: 0 }
    }

    /// The same, of a page above the leaves.
    pub fn above(room: &'r HeadsRoomAbove) -> HeadsMaker<'r> {
        let most = HEADS_MAX_ABOVE;
        HeadsMaker { heads: Heads::in_room(room, most, 0, 1), most, packed: 0 }
    }

    /// Entries that there is room for.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Adds an entry; false if there is no room for it.
    #[must_use]
    pub fn push(&mut self, head: u64, origin: u16) -> bool {
        let at = self.heads.len;
        if at >= self.most {
            return false;
        }
        let shift = 16 * (at % PACKED);
        self.packed = if shift == 0 { u64::from(origin) } else { self.packed | u64::from(origin) << shift };
        self.heads.origins[at / PACKED].store(self.packed, Ordering::Relaxed);
        self.heads.numbers[at].store(head, Ordering::Relaxed);
        self.heads.len += 1;
        true
    }

    /// What was made: each entry is the first of `step` records.
    pub fn finish(self, step: u16) -> Heads<'r> {
        Heads { step: usize::from(step), ..self.heads }
    }
}

/// The heads of a page that is latched.
#[derive(Clone, Copy)]
pub struct Heads<'p> {
    origins: &'p [AtomicU64],
    numbers: &'p [AtomicU64],
    len: usize,
    step: usize,
}

impl<'p> Heads<'p> {
    #[inline]
    fn in_room(room: &'p [AtomicU64], most: usize, len: usize, step: usize) -> Heads<'p> {
        let (origins, numbers) = room.split_at(most / PACKED);
        Heads { origins, numbers, len, step }
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
    /// say that they cannot be; `is_small` says whether the room of a leaf is enough.
    #[inline]
    pub fn heads<'p>(
        &'p self,
        page: &'p PageRead,
        is_small: impl FnOnce(&[u8]) -> bool,
        make: impl FnOnce(HeadsMaker<'p>) -> Option<Heads<'p>>,
    ) -> Option<Heads<'p>> {
        match self.made_heads(page) {
            Some(heads) => Some(heads),
            None if page.frame().heads.is_to_be_made() => self.make_heads(page, is_small(page), make),
            None => None,
        }
    }

    /// The heads of a page, if it has any.
    #[inline]
    pub fn made_heads<'p>(&'p self, page: &'p PageRead) -> Option<Heads<'p>> {
        let frame = page.frame();
        let (len, step) = frame.heads.made()?;
        Some(if len <= HEADS_MAX {
            Heads::in_room(self.frames.heads.get(frame.index())?, HEADS_MAX, len, step)
        } else {
            Heads::in_room(self.frames.heads_above.get(frame.index())?, HEADS_MAX_ABOVE, len, step)
        })
    }

    #[cold]
    fn make_heads<'p>(
        &'p self,
        page: &'p PageRead,
        is_small: bool,
        make: impl FnOnce(HeadsMaker<'p>) -> Option<Heads<'p>>,
    ) -> Option<Heads<'p>> {
        let (frame, frames) = (page.frame(), &self.frames);
        let heads = match is_small {
            true => frames.heads.fill(frame.index(), |room| make(HeadsMaker::new(room))),
            false => frames.heads_above.fill(frame.index(), |room| make(HeadsMaker::above(room))),
        };
        let heads = heads.filter(|heads| heads.len > if is_small { 0 } else { HEADS_MAX });
        match heads.map(|heads| (u16::try_from(heads.len), u16::try_from(heads.step))) {
            Some((Ok(len), Ok(step))) => {
                self.counters.count(Counter::HeadsMade);
                frame.heads.publish(len, step);
            }
            _ => frame.heads.give_up(),
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
