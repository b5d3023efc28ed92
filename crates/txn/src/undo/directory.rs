//! The directory of the undo tablespace: which slots there are, where each one's oldest log is, and a bound
//! on ids.
//!
//! It begins with page 3 and goes on over further pages, each naming the next, which are added when all slots
//! are taken: as many transactions can have changes at a time as a slot number has values.
//!
//! ```text
//!  page 3:  magic | bound of ids | segment | slots of a page | next page | slots .. | tail hints ..
//!  others:  magic |    unused    | segment | slots of a page | next page | slots .. | tail hints ..
//! ```
//!
//! A slot's entry names its oldest log, from which purge goes on. Its **tail hint** names a log (or the start
//! of a page where one was to begin) not far from the newest: from there a start looks for what had not
//! committed, without reading all the history before it. A hint is written with every [`HINT_PAGES`]th page
//! of a slot, and taken back in the mini-transaction that frees the page it names.
//!
//! Directories of earlier versions (`UTUNDO01`) have neither hints nor further pages; they get both when they
//! are opened, hints only where the page has room for them.

use pagestore::page::{self, HEADER_LEN, TRAILER_LEN, kind, u16_at, u32_at};
use pagestore::{Mtr, PageHandle};

use super::page::Place;
use super::tablespace::corrupt;
use crate::error::Error;

/// The first directory page.
pub(crate) const DIRECTORY_PAGE: u32 = 3;
/// Marks the page.
pub(crate) const MAGIC_AT: usize = HEADER_LEN;
pub(crate) const MAGIC: &[u8; 8] = b"UTUNDO02";
/// Without hints and further pages.
pub(crate) const OLD_MAGIC: &[u8; 8] = b"UTUNDO01";
/// Ids and commit numbers below this may have been given out (u64); first page only.
pub(crate) const BOUND: usize = MAGIC_AT + 8;
/// The segment all undo pages belong to (10 bytes).
pub(crate) const SEGMENT: usize = BOUND + 8;
/// Number of slots on each directory page (u16).
const SLOTS: usize = SEGMENT + 10;
/// The next directory page (u32), 0: none.
const NEXT: usize = SLOTS + 2;
/// Slots of 8 bytes each: head page (u32), offset of the oldest log (u16), unused.
const SLOT_ARRAY: usize = 72;
const SLOT_LEN: usize = 8;
/// Behind the slots, hints of 8 bytes each: page (u32), 0 for none, offset (u16), unused.
const HINT_LEN: usize = 8;
const SLOTS_PER_PAGE_MAX: usize = 512;

/// As many transactions can have changes at a time.
pub(crate) const SLOTS_MAX: usize = 1 << 16;
/// Pages that a slot gets between two hints: as many are read for it at a start, at most.
pub(crate) const HINT_PAGES: u16 = 32;

/// Where things lie on the directory pages of a tablespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub slots_per_page: usize,
    pub has_hints: bool,
}

impl Layout {
    /// Of new tablespaces.
    pub fn of_page_size(bytes: usize) -> Layout {
        let room = bytes - SLOT_ARRAY - TRAILER_LEN;
        Layout { slots_per_page: (room / (SLOT_LEN + HINT_LEN)).min(SLOTS_PER_PAGE_MAX), has_hints: true }
    }

    /// Reads it off a directory page, which is checked.
    pub fn read(number: u32, directory: &[u8]) -> Result<Layout, Error> {
        if ![MAGIC, OLD_MAGIC].iter().any(|magic| directory[MAGIC_AT..MAGIC_AT + 8] == magic[..]) {
            return Err(corrupt(number, "this is not the directory of an undo tablespace"));
        }
        let slots = usize::from(u16_at(directory, SLOTS));
        let limit = directory.len() - TRAILER_LEN;
        if slots == 0 || SLOT_ARRAY + slots * SLOT_LEN > limit {
            return Err(corrupt(number, "the directory has no slots, or more than fit"));
        }
        let has_hints = SLOT_ARRAY + slots * (SLOT_LEN + HINT_LEN) <= limit;
        Ok(Layout { slots_per_page: slots, has_hints })
    }

    /// Number of the directory page that has this slot.
    pub fn page_of(self, slot: u16) -> usize {
        usize::from(slot) / self.slots_per_page
    }

    fn slot_at(self, slot: u16) -> usize {
        SLOT_ARRAY + usize::from(slot) % self.slots_per_page * SLOT_LEN
    }

    fn hint_at(self, slot: u16) -> usize {
        SLOT_ARRAY + self.slots_per_page * SLOT_LEN + usize::from(slot) % self.slots_per_page * HINT_LEN
    }

    /// Writes an empty directory page.
    pub fn format(self, mtr: &mut Mtr<'_>, directory: PageHandle, segment: &[u8]) {
        mtr.write_u16(directory, page::TYPE, kind::TRX_SYS);
        mtr.write(directory, MAGIC_AT, MAGIC);
        mtr.write(directory, SEGMENT, segment);
        mtr.write_u16(directory, SLOTS, self.slots_per_page as u16);
        mtr.fill(directory, SLOT_ARRAY, self.slots_per_page * SLOT_LEN, 0xFF);
    }

    /// Where the oldest log of a slot is.
    pub fn head(self, directory: &[u8], slot: u16) -> Place {
        read_place(directory, self.slot_at(slot))
    }

    pub fn write_head(self, mtr: &mut Mtr<'_>, directory: PageHandle, slot: u16, head: Place) {
        write_place(mtr, directory, self.slot_at(slot), head);
    }

    /// The slot's tail hint.
    pub fn hint(self, directory: &[u8], slot: u16) -> Option<Place> {
        let hint = self.has_hints.then(|| read_place(directory, self.hint_at(slot)))?;
        (hint.page != 0).then_some(hint)
    }

    pub fn write_hint(self, mtr: &mut Mtr<'_>, directory: PageHandle, slot: u16, hint: Option<Place>) {
        if self.has_hints {
            let hint = hint.unwrap_or(Place { page: 0, offset: 0 });
            write_place(mtr, directory, self.hint_at(slot), hint);
        }
    }

    /// Takes the slot's hint back when `freed` is the page that it names.
    pub fn forget_hint(self, mtr: &mut Mtr<'_>, directory: PageHandle, slot: u16, freed: u32) {
        if self.hint(mtr.page(directory), slot).is_some_and(|hint| hint.page == freed) {
            self.write_hint(mtr, directory, slot, None);
        }
    }
}

/// The directory page after this one.
pub(crate) fn next(directory: &[u8]) -> Option<u32> {
    Some(u32_at(directory, NEXT)).filter(|next| *next != 0)
}

pub(crate) fn write_next(mtr: &mut Mtr<'_>, directory: PageHandle, next: u32) {
    mtr.write_u32(directory, NEXT, next);
}

/// Whether the directory was written by a version without hints.
pub(crate) fn is_old(directory: &[u8]) -> bool {
    directory[MAGIC_AT..MAGIC_AT + 8] == OLD_MAGIC[..]
}

fn read_place(directory: &[u8], at: usize) -> Place {
    Place { page: u32_at(directory, at), offset: u16_at(directory, at + 4) }
}

fn write_place(mtr: &mut Mtr<'_>, directory: PageHandle, at: usize, place: Place) {
    let mut bytes = [0; 6];
    bytes[..4].copy_from_slice(&place.page.to_be_bytes());
    bytes[4..].copy_from_slice(&place.offset.to_be_bytes());
    mtr.write(directory, at, &bytes);
}
