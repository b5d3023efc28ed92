//! A mark in page 0 by which a tablespace file is known again: whose it is, and as of when.
//!
//! ```text
//!   page size - 32   "UNTORNID"   owner u64   number u64   | trailer (8)
//! ```
//!
//! Page 0 has room there for every page size: extent descriptors end well before, and no server looks at it.
//! Files that were made elsewhere, or by programs before this mark, have none.

use std::path::Path;

use disk::{AlignedBuf, OpenHow, Storage};

use crate::error::Error;
use crate::mtr::{Mtr, PageHandle};
use page::PageSize;

const MAGIC: &[u8; 8] = b"UNTORNID";
const LEN: usize = 24;

/// What the mark says. Both numbers are the caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// Whose file it is.
    pub owner: u64,
    /// As of when: grows.
    pub number: u64,
}

/// What was found in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundStamp {
    /// A mark.
    Stamp(Stamp),
    /// Page 0 is whole and has none.
    None,
    /// Page 0 cannot be read as it is.
    Unreadable,
}

fn place(page_bytes: usize) -> usize {
    page_bytes - page::TRAILER_LEN - LEN
}

/// The mark on a page 0.
#[must_use]
pub fn read_stamp(page: &[u8]) -> Option<Stamp> {
    let at = place(page.len());
    (page[at..at + 8] == MAGIC[..])
        .then(|| Stamp { owner: page::u64_at(page, at + 8), number: page::u64_at(page, at + 16) })
}

/// The mark in a file that need not be open.
///
/// # Errors
/// When the file cannot be opened or read; not for one that is too short or damaged.
pub fn stamp_of_file(storage: &dyn Storage, path: &Path, page_size: PageSize) -> Result<FoundStamp, Error> {
    let file = storage.open(path, OpenHow::READ_ONLY)?;
    if file.len()? < page_size.bytes() as u64 {
        return Ok(FoundStamp::Unreadable);
    }
    let mut first = AlignedBuf::zeroed(page_size.bytes());
    file.read_at(&mut first, 0)?;
    if page::is_all_zero(&first) || page::verify(&first).is_err() {
        return Ok(FoundStamp::Unreadable);
    }
    Ok(read_stamp(&first).map_or(FoundStamp::None, FoundStamp::Stamp))
}

/// Marks the tablespace whose page 0, X-latched, this is, unless it has this mark.
pub(crate) fn write_stamp(mtr: &mut Mtr<'_>, first: PageHandle, stamp: Stamp) {
    if read_stamp(mtr.page(first)) == Some(stamp) {
        return;
    }
    let mut bytes = [0; LEN];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..16].copy_from_slice(&stamp.owner.to_be_bytes());
    bytes[16..].copy_from_slice(&stamp.number.to_be_bytes());
    let at = place(mtr.page(first).len());
    mtr.write(first, at, &bytes);
}
