//! The records of one mini-transaction as bytes.
//!
//! A record is physical: these bytes of that page become this. Recovery can therefore apply the records of
//! each page on its own, in parallel, and knows nothing of trees. The encoding, all varints being LEB128:
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
//! So a small change on the page touched before costs three bytes besides its contents. The writer also joins
//! a write that continues or repeats the one before it, which a record's header and a page's counters do all
//! the time. Decoding never panics and never reads outside its input, whatever the bytes are.

use page::PageId;
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

    /// Starts over with the same memory.
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// A logged change with its bytes owned.
    #[derive(Clone, Debug)]
    enum Change {
        Write(PageId, usize, Vec<u8>),
        Fill(PageId, usize, usize, u8),
        Move(PageId, usize, usize, usize),
        Init(PageId),
        Free(PageId),
        SpaceSize(u32, u32),
    }

    fn log(writer: &mut RecordWriter, change: &Change) {
        match change {
            Change::Write(page, offset, bytes) => writer.write(*page, *offset, bytes),
            Change::Fill(page, offset, length, byte) => writer.fill(*page, *offset, *length, *byte),
            Change::Move(page, to, from, length) => writer.move_bytes(*page, *to, *from, *length),
            Change::Init(page) => writer.init(*page),
            Change::Free(page) => writer.free(*page),
            Change::SpaceSize(space, pages) => writer.space_size(*space, *pages),
        }
    }

    /// Three small pages: what the records do to them is the meaning that must survive encoding and joining.
    type Pages = std::collections::BTreeMap<PageId, Vec<u8>>;
    const SIZE: usize = 1 << 16;

    fn apply(pages: &mut Pages, record: Record<'_>) {
        match record {
            Record::Write { page, offset, bytes } => {
                let page = pages.entry(page).or_insert_with(|| vec![0; SIZE]);
                page[offset as usize..][..bytes.len()].copy_from_slice(bytes);
            }
            Record::Fill { page, offset, length, byte } => {
                let page = pages.entry(page).or_insert_with(|| vec![0; SIZE]);
                page[offset as usize..][..length as usize].fill(byte);
            }
            Record::Move { page, to, from, length } => {
                let page = pages.entry(page).or_insert_with(|| vec![0; SIZE]);
                page.copy_within(from as usize..(from as usize + length as usize), to as usize);
            }
            Record::Init { page } => drop(pages.insert(page, vec![0; SIZE])),
            Record::Free { page } => drop(pages.remove(&page)),
            Record::SpaceSize { space, pages: size } => {
                pages.insert(PageId::new(space, u32::MAX), size.to_le_bytes().to_vec());
            }
        }
    }

    /// The change as the reader of an uncompressed log would see it.
    fn apply_change(pages: &mut Pages, change: &Change) {
        match change {
            Change::Write(page, offset, bytes) => {
                if !bytes.is_empty() {
                    apply(pages, Record::Write { page: *page, offset: *offset as u16, bytes });
                }
            }
            Change::Fill(page, offset, length, byte) => {
                if *length > 0 {
                    let (offset, length) = (*offset as u16, *length as u32);
                    apply(pages, Record::Fill { page: *page, offset, length, byte: *byte });
                }
            }
            Change::Move(page, to, from, length) => {
                if *length > 0 && to != from {
                    let (to, from, length) = (*to as u16, *from as u16, *length as u32);
                    apply(pages, Record::Move { page: *page, to, from, length });
                }
            }
            Change::Init(page) => apply(pages, Record::Init { page: *page }),
            Change::Free(page) => apply(pages, Record::Free { page: *page }),
            Change::SpaceSize(space, size) => {
                apply(pages, Record::SpaceSize { space: *space, pages: *size });
            }
        }
    }

    fn page() -> impl Strategy<Value = PageId> {
        prop_oneof![
            Just(PageId::new(0, 0)),
            Just(PageId::new(7, 300)),
            Just(PageId::new(u32::MAX - 15, u32::MAX - 1))
        ]
    }

    /// Mostly near each other, so that writes meet.
    fn offset() -> impl Strategy<Value = usize> {
        prop_oneof![8 => 0usize..64, 1 => 0usize..SIZE]
    }

    fn length() -> impl Strategy<Value = usize> {
        prop_oneof![6 => 0usize..40, 1 => 0usize..=SIZE]
    }

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            6 => (page(), offset(), vec(any::<u8>(), 0..40)).prop_map(|(page, offset, mut bytes)| {
                bytes.truncate(SIZE - offset);
                Change::Write(page, offset, bytes)
            }),
            1 => (page(), offset(), length(), any::<u8>())
                .prop_map(|(page, offset, length, byte)| Change::Fill(page, offset, length.min(SIZE - offset), byte)),
            1 => (page(), offset(), offset(), length()).prop_map(|(page, to, from, length)| {
                Change::Move(page, to, from, length.min(SIZE - to.max(from)))
            }),
            1 => page().prop_map(Change::Init),
            1 => page().prop_map(Change::Free),
            1 => (any::<u32>(), any::<u32>()).prop_map(|(space, pages)| Change::SpaceSize(space, pages)),
        ]
    }

    proptest! {
        #[test]
        fn decoded_records_do_what_was_logged(changes in vec(change(), 0..60)) {
            let mut writer = RecordWriter::new();
            let (mut expected, mut found) = (Pages::new(), Pages::new());
            for change in &changes {
                log(&mut writer, change);
                apply_change(&mut expected, change);
            }
            for record in records(writer.as_bytes()) {
                apply(&mut found, record.unwrap());
            }
            prop_assert_eq!(expected, found);
        }

        #[test]
        fn any_bytes_decode_to_records_or_an_error(bytes in vec(any::<u8>(), 0..200)) {
            let mut errors = 0;
            for record in records(&bytes) {
                match record {
                    Err(malformed) => { errors += 1; prop_assert!(malformed.at < bytes.len()); }
                    Ok(_) => prop_assert_eq!(errors, 0),
                }
            }
            prop_assert!(errors <= 1);
        }

        #[test]
        fn a_cut_off_encoding_is_a_prefix_or_an_error(changes in vec(change(), 1..8), cut in any::<prop::sample::Index>()) {
            let mut writer = RecordWriter::new();
            changes.iter().for_each(|change| log(&mut writer, change));
            let whole: Vec<_> = records(writer.as_bytes()).map(|record| record.unwrap()).collect();
            if !writer.is_empty() {
                let cut = cut.index(writer.len());
                let part: Vec<_> = records(&writer.as_bytes()[..cut]).filter_map(|record| record.ok()).collect();
                prop_assert_eq!(&whole[..part.len()], &part[..]);
                prop_assert!(part.len() < whole.len());
            }
        }
    }

    #[test]
    fn a_small_change_on_the_same_page_costs_three_bytes_besides_its_contents() {
        let page = PageId::new(5, 1000);
        let mut writer = RecordWriter::new();
        writer.write(page, 100, &[1, 2, 3]);
        let before = writer.len();
        writer.write(page, 5000, &[9; 15]);
        assert_eq!(writer.len() - before, 3 + 15);
        writer.write(page, 7000, &[9; 200]);
        assert_eq!(writer.len() - before, 3 + 15 + 5 + 200);
    }

    #[test]
    fn repeated_and_continued_writes_become_one_record() {
        let page = PageId::new(5, 1);
        let mut writer = RecordWriter::new();
        writer.write(page, 100, &[1, 2]);
        writer.write(page, 102, &[3, 4]);
        writer.write(page, 101, &[7, 7]);
        let only: Vec<_> = records(writer.as_bytes()).map(|record| record.unwrap()).collect();
        assert_eq!(only, [Record::Write { page, offset: 100, bytes: &[1, 7, 7, 4] }]);
    }

    #[test]
    fn ranges_outside_the_page_are_malformed() {
        for bytes in [
            // Write of 2 bytes at 65535.
            &[WRITE << 5 | 2, 0, 0, 0xff, 0xff, 1, 2][..],
            // Empty fill, and a fill of 65536 bytes at 1.
            &[FILL << 5, 0, 0, 0, 0, 0, 9],
            &[FILL << 5, 0, 0, 1, 0, 0x80, 0x80, 4, 9],
            // Move whose source ends past the page.
            &[MOVE << 5, 0, 0, 0, 0, 0xff, 0xff, 2],
        ] {
            assert!(records(bytes).next().unwrap().is_err(), "{bytes:?}");
        }
    }
}
