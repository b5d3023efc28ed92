//! The records of one mini-transaction as bytes.
//!
//! A record is physical: these bytes of that page become this. Recovery can therefore apply the records of each page
//! on its own, in parallel, and knows nothing of trees. The encoding, all varints being LEB128:
//!
//! ```text
//! head      bits 7..5 kind: 1 Write, 2 Fill, 3 Move, 4 Init, 5 Free, 6 SpaceSize (0 is never valid)
//!           bit 4     the record is for the same page as the one before it in this mini-transaction
//!           bits 3..0 Write: length 1..15, or 0 when a varint length follows; otherwise 0
//! page      varint space, varint page number             (absent with bit 4, and for SpaceSize)
//! Write     offset u16 LE, [varint length], bytes
//! Fill      offset u16 LE, varint length, byte
//! Move      to u16 LE, from u16 LE, varint length        (may overlap)
//! SpaceSize varint space, varint size in pages
//! ```
//!
//! So a small change on the page touched before costs three bytes besides its contents. The writer also joins a write
//! that continues or repeats the one before it, which a record's header and a page's counters do all the time.
//! Decoding never panics and never reads outside its input, whatever the bytes are.

use disk::PageId;
use std::fmt;

const WRITE: u8 = 1;
const FILL: u8 = 2;
const MOVE: u8 = 3;
const INIT: u8 = 4;
const FREE: u8 = 5;
const SPACE_SIZE: u8 = 6;
const SAME_PAGE: u8 = 0x10;
const SHORT_MAX: usize = 15;
/// No page is larger than 64 KiB.
const PAGE_SIZE_MAX: usize = 1 << 16;

/// One change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record<'a> {
    /// `bytes` are at `offset` now.
    Write {
        /// Which page.
        page: PageId,
        /// First byte changed.
        offset: u16,
        /// The new contents, never empty.
        bytes: &'a [u8],
    },
    /// `length` bytes at `offset` are `byte` now.
    Fill {
        /// Which page.
        page: PageId,
        /// First byte changed.
        offset: u16,
        /// How many, never 0.
        length: u32,
        /// The new contents.
        byte: u8,
    },
    /// The `length` bytes that were at `from` are at `to` now (ranges may overlap).
    Move {
        /// Which page.
        page: PageId,
        /// Destination.
        to: u16,
        /// Source.
        from: u16,
        /// How many, never 0.
        length: u32,
    },
    /// The whole page is zero now; nothing it was before matters.
    Init {
        /// Which page.
        page: PageId,
    },
    /// The page was given back to its tablespace; its contents no longer matter.
    Free {
        /// Which page.
        page: PageId,
    },
    /// The tablespace has this many pages now.
    SpaceSize {
        /// Which tablespace.
        space: u32,
        /// Its size in pages.
        pages: u32,
    },
}

/// The position of the last `Write`, which a following write may join.
#[derive(Clone, Copy)]
struct LastWrite {
    head_at: usize,
    bytes_at: usize,
    offset: usize,
}

/// Collects the records of one mini-transaction. Reusable: [`RecordWriter::clear`] keeps the memory.
#[derive(Default)]
pub struct RecordWriter {
    out: Vec<u8>,
    page: Option<PageId>,
    last_write: Option<LastWrite>,
}

impl RecordWriter {
    /// An empty writer.
    pub fn new() -> RecordWriter {
        RecordWriter::default()
    }

    /// Logs that `bytes` were written at `offset`. No bytes, no record.
    ///
    /// # Panics
    /// Like the methods below, when the range lies outside the largest page (64 KiB).
    #[inline]
    pub fn write(&mut self, page: PageId, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= PAGE_SIZE_MAX, "a write outside the page {page}");
        if bytes.is_empty() || self.joined(page, offset, bytes) {
            return;
        }
        let head_at = self.out.len();
        let short = if bytes.len() <= SHORT_MAX { bytes.len() as u8 } else { 0 };
        self.head(WRITE, short, page);
        self.offset(offset);
        if short == 0 {
            self.varint(bytes.len() as u32);
        }
        self.last_write = Some(LastWrite { head_at, bytes_at: self.out.len(), offset });
        self.out.extend_from_slice(bytes);
    }

    /// Whether the write could be made part of the one before it.
    #[inline]
    fn joined(&mut self, page: PageId, offset: usize, bytes: &[u8]) -> bool {
        let Some(last) = self.last_write else { return false };
        if self.page != Some(page) || offset < last.offset {
            return false;
        }
        let old_length = self.out.len() - last.bytes_at;
        let skip = offset - last.offset;
        if skip > old_length {
            return false;
        }
        let new_length = old_length.max(skip + bytes.len());
        if new_length != old_length {
            // Growing is possible in place only while the length keeps its size.
            if new_length > SHORT_MAX {
                return false;
            }
            self.out[last.head_at] = (self.out[last.head_at] & !0x0f) | new_length as u8;
            self.out.resize(last.bytes_at + new_length, 0);
        }
        let start = last.bytes_at + skip;
        self.out[start..start + bytes.len()].copy_from_slice(bytes);
        true
    }

    /// Logs that `length` bytes at `offset` became `byte`.
    #[inline]
    pub fn fill(&mut self, page: PageId, offset: usize, length: usize, byte: u8) {
        assert!(offset + length <= PAGE_SIZE_MAX, "a fill outside the page {page}");
        if length == 0 {
            return;
        }
        self.head(FILL, 0, page);
        self.offset(offset);
        self.varint(length as u32);
        self.out.push(byte);
    }

    /// Logs that `length` bytes were moved inside the page (memmove).
    #[inline]
    pub fn move_bytes(&mut self, page: PageId, to: usize, from: usize, length: usize) {
        assert!(to.max(from) + length <= PAGE_SIZE_MAX, "a move outside the page {page}");
        if length == 0 || to == from {
            return;
        }
        self.head(MOVE, 0, page);
        self.offset(to);
        self.offset(from);
        self.varint(length as u32);
    }

    /// Logs that the whole page became zero.
    pub fn init(&mut self, page: PageId) {
        self.head(INIT, 0, page);
    }

    /// Logs that the page was given back to its tablespace.
    pub fn free(&mut self, page: PageId) {
        self.head(FREE, 0, page);
    }

    /// Logs the size of a tablespace.
    pub fn space_size(&mut self, space: u32, pages: u32) {
        self.last_write = None;
        self.out.push(SPACE_SIZE << 5);
        self.varint(space);
        self.varint(pages);
    }

    /// The records so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.out
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether nothing was logged.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Starts anew with the same memory.
    pub fn clear(&mut self) {
        self.out.clear();
        self.page = None;
        self.last_write = None;
    }

    #[inline]
    fn head(&mut self, kind: u8, short: u8, page: PageId) {
        self.last_write = None;
        if self.page == Some(page) {
            self.out.push(kind << 5 | SAME_PAGE | short);
        } else {
            self.page = Some(page);
            self.out.push(kind << 5 | short);
            self.varint(page.space);
            self.varint(page.page);
        }
    }

    #[inline]
    fn offset(&mut self, offset: usize) {
        // At most PAGE_SIZE_MAX - 1 because something non-empty follows at it inside the page.
        self.out.extend_from_slice(&(offset as u16).to_le_bytes());
    }

    #[inline]
    fn varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }
}

/// Bytes that are no records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed {
    /// Byte position of the bad record in its mini-transaction.
    pub at: usize,
    /// What is wrong with it.
    pub why: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed redo record at byte {} of its mini-transaction: {}", self.at, self.why)
    }
}

impl std::error::Error for Malformed {}

/// Decodes the records of one mini-transaction.
pub fn records(bytes: &[u8]) -> Records<'_> {
    Records { rest: bytes, length: bytes.len(), page: None }
}

/// Iterator of [`records`]; ends after the first malformed one.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
    length: usize,
    page: Option<PageId>,
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let at = self.length - self.rest.len();
        Some(self.decode().map_err(|why| {
            self.rest = &[];
            Malformed { at, why }
        }))
    }
}

const CUT: &str = "it is cut off";

impl<'a> Records<'a> {
    #[inline]
    fn decode(&mut self) -> Result<Record<'a>, &'static str> {
        let head = self.byte()?;
        let (kind, same_page, short) = (head >> 5, head & SAME_PAGE != 0, usize::from(head & 0x0f));
        if kind == SPACE_SIZE {
            if same_page || short != 0 {
                return Err("unknown flags");
            }
            return Ok(Record::SpaceSize { space: self.varint()?, pages: self.varint()? });
        }
        if kind == 0 || kind > SPACE_SIZE {
            return Err("unknown kind");
        }
        if short != 0 && kind != WRITE {
            return Err("unknown flags");
        }
        let page = match (same_page, self.page) {
            (true, Some(page)) => page,
            (true, None) => return Err("the first record names no page"),
            (false, _) => PageId { space: self.varint()?, page: self.varint()? },
        };
        self.page = Some(page);
        match kind {
            WRITE => {
                let offset = self.offset()?;
                let length = if short == 0 { self.varint()? } else { short as u32 };
                in_page(offset, length)?;
                Ok(Record::Write { page, offset, bytes: self.take(length as usize)? })
            }
            FILL => {
                let (offset, length) = (self.offset()?, self.varint()?);
                in_page(offset, length)?;
                Ok(Record::Fill { page, offset, length, byte: self.byte()? })
            }
            MOVE => {
                let (to, from, length) = (self.offset()?, self.offset()?, self.varint()?);
                in_page(to.max(from), length)?;
                Ok(Record::Move { page, to, from, length })
            }
            INIT => Ok(Record::Init { page }),
            _ => Ok(Record::Free { page }),
        }
    }

    #[inline]
    fn take(&mut self, length: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(CUT)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, &'static str> {
        let (first, rest) = self.rest.split_first().ok_or(CUT)?;
        self.rest = rest;
        Ok(*first)
    }

    #[inline]
    fn offset(&mut self) -> Result<u16, &'static str> {
        let (first, rest) = self.rest.split_first_chunk::<2>().ok_or(CUT)?;
        self.rest = rest;
        Ok(u16::from_le_bytes(*first))
    }

    #[inline]
    fn varint(&mut self) -> Result<u32, &'static str> {
        let mut value = 0u64;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return u32::try_from(value).map_err(|_| "a number above 32 bits");
            }
        }
        Err("a number above 32 bits")
    }
}

/// Checks that a non-empty range lies inside the largest page.
fn in_page(offset: u16, length: u32) -> Result<(), &'static str> {
    if length == 0 {
        Err("an empty range")
    } else if u64::from(offset) + u64::from(length) > PAGE_SIZE_MAX as u64 {
        Err("a range outside the page")
    } else {
        Ok(())
    }
}
