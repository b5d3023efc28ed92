//! One INDEX page as a container of records in key order.
//!
//! ```text
//!   FIL header | page header | infimum | supremum | heap of records → free ← directory | FIL trailer
//! ```
//!
//! Records are linked in key order from infimum to supremum; the directory points at every fourth to eighth
//! of them. Deleted records form a free list. The functions here work on bytes: they read a `&[u8]` and
//! change it through a [`PageEditor`], which in production logs every change (a page of a mini-transaction)
//! and in tests is a plain array. Each function first reads and checks all it needs and only then changes the
//! first byte, so that on a damaged page ([`Malformed`]) nothing has happened.

pub mod builder;
pub mod delete;
pub mod directory;
pub mod header;
pub(crate) mod heads;
pub mod image;
pub mod insert;
pub(crate) mod prefetch;
pub mod reorganize;
pub mod search;
pub mod validate;

use crate::record::header as record_header;

/// A page does not have the structure it should; the text says what is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// A page that can be changed.
pub trait PageEditor {
    /// The bytes as they are now.
    fn bytes(&self) -> &[u8];
    /// Overwrites bytes.
    fn write(&mut self, offset: usize, bytes: &[u8]);
    /// Sets `len` bytes to one value.
    fn fill(&mut self, offset: usize, len: usize, byte: u8);
    /// Moves `len` bytes from `from` to `to`; they may overlap.
    fn copy_within(&mut self, to: usize, from: usize, len: usize);
}

impl PageEditor for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        self[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn fill(&mut self, offset: usize, len: usize, byte: u8) {
        self[offset..offset + len].fill(byte);
    }

    fn copy_within(&mut self, to: usize, from: usize, len: usize) {
        self[..].copy_within(from..from + len, to);
    }
}

/// A page of a mini-transaction as a [`PageEditor`].
pub struct MtrPage<'m, 's> {
    mtr: &'m mut pagestore::Mtr<'s>,
    handle: pagestore::PageHandle,
}

impl<'m, 's> MtrPage<'m, 's> {
    /// Page `handle` of `mtr`, which must be X-latched.
    pub fn new(mtr: &'m mut pagestore::Mtr<'s>, handle: pagestore::PageHandle) -> MtrPage<'m, 's> {
        MtrPage { mtr, handle }
    }
}

impl PageEditor for MtrPage<'_, '_> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self.mtr.page(self.handle)
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.mtr.write(self.handle, offset, bytes);
    }

    fn fill(&mut self, offset: usize, len: usize, byte: u8) {
        self.mtr.fill(self.handle, offset, len, byte);
    }

    fn copy_within(&mut self, to: usize, from: usize, len: usize) {
        self.mtr.copy_within(self.handle, to, from, len);
    }
}

const LEAVES_HEAP: Malformed = Malformed("a record's next pointer leaves the heap");

/// Origin of the record after `origin` on the page; supremum's next does not exist.
#[inline]
pub fn next_record(page: &[u8], origin: usize) -> Result<usize, Malformed> {
    match record_header::next(page, origin) {
        Some(next) if next >= header::INFIMUM && next < page.len() - header::TRAILER_SIZE => Ok(next),
        _ => Err(LEAVES_HEAP),
    }
}

/// Origins of the user records in key order. Ends with an error where the chain is broken, so it always ends.
pub fn records(page: &[u8]) -> Records<'_> {
    Records { page, at: header::INFIMUM, left: page.len() / record_header::HEADER_SIZE }
}

/// Iterator of [`records`].
pub struct Records<'a> {
    page: &'a [u8],
    at: usize,
    left: usize,
}

impl Iterator for Records<'_> {
    type Item = Result<usize, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return Some(Err(Malformed("the record chain has a loop")));
        }
        self.left -= 1;
        match next_record(self.page, self.at) {
            Ok(header::SUPREMUM) => None,
            Ok(next) => {
                self.at = next;
                Some(Ok(next))
            }
            Err(error) => Some(Err(error)),
        }
    }
}

/// Origins of all user records in key order.
pub fn record_list(page: &[u8]) -> Result<Vec<usize>, Malformed> {
    let mut list = Vec::with_capacity(header::n_recs(page).min(page.len() / record_header::HEADER_SIZE));
    for record in records(page) {
        list.push(record?);
    }
    Ok(list)
}

/// The record before `origin`: found from the directory slot below.
pub fn previous_record(page: &[u8], origin: usize) -> Result<usize, Malformed> {
    let slot = directory::slot_of(page, origin)?;
    let mut at = directory::slot(page, slot.checked_sub(1).ok_or(Malformed("infimum has no predecessor"))?);
    for _ in 0..=directory::OWNED_MAX {
        let next = next_record(page, at)?;
        if next == origin {
            return Ok(at);
        }
        at = next;
    }
    Err(Malformed("a record is not in the group of its directory slot"))
}

/// The last record of the page, infimum if there is none.
pub fn last_record(page: &[u8]) -> Result<usize, Malformed> {
    previous_record(page, header::SUPREMUM)
}
