//! The heads of a page's records: what a search wants of it, close together and beside it.
//!
//! A binary search of a page looks at a handful of records in as many places, each of which waits for memory.
//! For a page that is searched again and again the code above keeps, for each record or for every n-th, the
//! first eight bytes of its key as a number and where the record is: some ten cache lines in a row, which are
//! fetched together. What these say of the key is the business of that code; here is only where they are kept
//! and when they are true (`heads_word.rs`).
//!
//! Each frame has room for them, which is memory only where it was used: a kilobyte for a page.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::pool::guard::PageRead;
use crate::prefetch::prefetch_address;
use crate::store::PageStore;

/// Entries of a page, at most.
pub const HEADS_MAX: usize = 100;

/// Origins in a word.
const PACKED: usize = 4;
/// Where the numbers begin, behind the origins.
const NUMBERS: usize = HEADS_MAX / PACKED;
const WORDS: usize = 128;

/// Room for the heads of one page: the origins, then the numbers.
pub type HeadsRoom = [AtomicU64; WORDS];

/// Heads that are being made.
pub struct HeadsMaker<'r> {
    room: &'r HeadsRoom,
    entries: usize,
    origins: u64,
}

impl<'r> HeadsMaker<'r> {
    /// Begins to fill a room that nobody reads.
    pub fn new(room: &'r HeadsRoom) -> HeadsMaker<'r> {
        HeadsMaker { room, entries: 0, origins: 0 }
    }

    /// Adds an entry; false if there is no room for it.
    #[must_use]
    pub fn push(&mut self, head: u64, origin: u16) -> bool {
        let at = self.entries;
        if at >= HEADS_MAX {
            return false;
        }
        self.room[NUMBERS + at].store(head, Ordering::Relaxed);
        let shift = 16 * (at % PACKED);
        self.origins = if shift == 0 { u64::from(origin) } else { self.origins | u64::from(origin) << shift };
        self.room[at / PACKED].store(self.origins, Ordering::Relaxed);
        self.entries += 1;
        true
    }

    /// What was made: each entry is the first of `step` records.
    pub fn finish(self, step: u16) -> Heads<'r> {
        Heads { room: self.room, len: self.entries, step: usize::from(step) }
    }
}

/// The heads of a page that is latched.
#[derive(Clone, Copy)]
pub struct Heads<'p> {
    room: &'p HeadsRoom,
    len: usize,
    step: usize,
}

impl Heads<'_> {
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
        self.room[(NUMBERS + at) % WORDS].load(Ordering::Relaxed)
    }

    /// Where the record of an entry is.
    #[inline]
    #[must_use]
    pub fn origin(&self, at: usize) -> usize {
        let word = self.room[at / PACKED % WORDS].load(Ordering::Relaxed);
        usize::from((word >> (16 * (at % PACKED))) as u16)
    }
}

impl PageStore {
    /// The heads of a page, if it has any. When it was searched often enough, `make` is to make them, or to
    /// say that they cannot be.
    #[inline]
    pub fn heads<'p>(
        &'p self,
        page: &'p PageRead,
        make: impl FnOnce(HeadsMaker<'p>) -> Option<Heads<'p>>,
    ) -> Option<Heads<'p>> {
        match self.made_heads(page) {
            Some(heads) => Some(heads),
            None if page.frame().heads.is_to_be_made() => self.make_heads(page, make),
            None => None,
        }
    }

    /// The heads of a page, if it has any.
    #[inline]
    pub fn made_heads<'p>(&'p self, page: &'p PageRead) -> Option<Heads<'p>> {
        let frame = page.frame();
        let (len, step) = frame.heads.made()?;
        Some(Heads { room: self.frames.heads_room(frame.index())?, len, step })
    }

    #[cold]
    fn make_heads<'p>(
        &'p self,
        page: &'p PageRead,
        make: impl FnOnce(HeadsMaker<'p>) -> Option<Heads<'p>>,
    ) -> Option<Heads<'p>> {
        let frame = page.frame();
        let made = make(HeadsMaker::new(self.frames.make_heads_room(frame.index())));
        match made
            .and_then(|heads| Some((heads, u8::try_from(heads.len).ok()?, u16::try_from(heads.step).ok()?)))
        {
            Some((heads, len, step)) if len > 0 => {
                frame.heads.publish(len, step);
                Some(heads)
            }
            _ => {
                frame.heads.give_up();
                None
            }
        }
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
    room.iter().take(WORDS_AHEAD).step_by(8).for_each(|word| prefetch_address(std::ptr::from_ref(word)));
}
