//! The parts every page has: the FIL header (38 bytes at the front) and the FIL trailer (8 bytes at the end).
//!
//! ```text
//!   0  checksum (4)            16  LSN of the newest change (8)      P-8  checksum again (4)
//!   4  page number (4)         24  page type (2)                     P-4  low word of the LSN (4)
//!   8  previous page (4)       26  flush LSN, always zero here (8)
//!  12  next page (4)           34  space id (4)
//! ```
//!
//! All integers are big-endian. These are pure functions over page bytes: they know neither frames nor files.
//! Checksum, LSN and its low word are stamped into the copy that goes to the file (see [`crate::checksum`]); all the
//! rest is written through a mini-transaction.

use disk::PageId;

/// "No page": the null page number.
pub const NULL_PAGE: u32 = 0xFFFF_FFFF;

/// Offset of the checksum.
pub const CHECKSUM: usize = 0;
/// Offset of the page number.
pub const PAGE_NUMBER: usize = 4;
/// Offset of the previous page on the same level.
pub const PREVIOUS: usize = 8;
/// Offset of the next page on the same level.
pub const NEXT: usize = 12;
/// Offset of the LSN of the newest change (the end LSN of its mini-transaction).
pub const LSN: usize = 16;
/// Offset of the page type.
pub const TYPE: usize = 24;
/// Offset of the flush LSN, zero on every page we write.
pub const FLUSH_LSN: usize = 26;
/// Offset of the tablespace id.
pub const SPACE_ID: usize = 34;
/// First byte after the header.
pub const HEADER_LEN: usize = 38;
/// Bytes of the trailer.
pub const TRAILER_LEN: usize = 8;

/// Page types (the `u16` at offset 24) this engine writes or must recognise.
pub mod kind {
    /// Freshly allocated.
    pub const ALLOCATED: u16 = 0;
    /// Undo log.
    pub const UNDO_LOG: u16 = 2;
    /// Segment inodes.
    pub const INODE: u16 = 3;
    /// Change buffer bitmap (page 1 of a tablespace; carried for the format, unused).
    pub const IBUF_BITMAP: u16 = 5;
    /// System page.
    pub const SYS: u16 = 6;
    /// Transaction system header.
    pub const TRX_SYS: u16 = 7;
    /// Tablespace header, page 0.
    pub const FSP_HDR: u16 = 8;
    /// Extent descriptors.
    pub const XDES: u16 = 9;
    /// Off-page column, one page of a chain.
    pub const BLOB: u16 = 10;
    /// Serialized dictionary information index of MySQL 8.0.
    pub const SDI: u16 = 0x45BD;
    /// Spatial index.
    pub const RTREE: u16 = 0x45BE;
    /// B-tree index.
    pub const INDEX: u16 = 0x45BF;
}

/// The page size of a store: a power of two from 4 KiB to 64 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PageSize(u8);

impl PageSize {
    /// 16 KiB, the size `.ibd` files have unless asked otherwise.
    pub const DEFAULT: PageSize = PageSize(14);

    /// The page size of `bytes`, if it is one of 4, 8, 16, 32 or 64 KiB.
    #[must_use]
    pub const fn new(bytes: usize) -> Option<Self> {
        match bytes {
            4096 => Some(Self(12)),
            8192 => Some(Self(13)),
            16384 => Some(Self(14)),
            32768 => Some(Self(15)),
            65536 => Some(Self(16)),
            _ => None,
        }
    }

    /// Bytes of a page.
    #[must_use]
    pub const fn bytes(self) -> usize {
        1 << self.0
    }

    /// Binary logarithm of the size.
    #[must_use]
    pub const fn shift(self) -> u32 {
        self.0 as u32
    }

    /// Where a page lies in its file, in bytes.
    #[must_use]
    pub const fn offset_of(self, page: u32) -> u64 {
        (page as u64) << self.0
    }

    /// Offset of the trailer.
    #[must_use]
    pub const fn trailer(self) -> usize {
        self.bytes() - TRAILER_LEN
    }

    /// Pages of an extent: 1 MiB up to 16 KiB pages, 64 pages above.
    #[must_use]
    pub const fn extent_pages(self) -> u32 {
        if self.0 <= 14 { 1 << (20 - self.0) } else { 64 }
    }

    /// The page size bits of the tablespace flags (bits 6 to 9): 0 for 16 KiB, else log2(size) - 9.
    #[must_use]
    pub const fn flag_bits(self) -> u32 {
        if self.0 == 14 { 0 } else { ((self.0 - 9) as u32) << 6 }
    }
}

impl Default for PageSize {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Big-endian `u16` at `offset`.
#[inline]
#[must_use]
pub fn u16_at(page: &[u8], offset: usize) -> u16 {
    let mut bytes = [0; 2];
    bytes.copy_from_slice(&page[offset..offset + 2]);
    u16::from_be_bytes(bytes)
}

/// Big-endian `u32` at `offset`.
#[inline]
#[must_use]
pub fn u32_at(page: &[u8], offset: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&page[offset..offset + 4]);
    u32::from_be_bytes(bytes)
}

/// Big-endian `u64` at `offset`.
#[inline]
#[must_use]
pub fn u64_at(page: &[u8], offset: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&page[offset..offset + 8]);
    u64::from_be_bytes(bytes)
}

/// The page number a page says it has.
#[inline]
#[must_use]
pub fn page_number(page: &[u8]) -> u32 {
    u32_at(page, PAGE_NUMBER)
}

/// The previous page on the same level, or [`NULL_PAGE`].
#[inline]
#[must_use]
pub fn previous(page: &[u8]) -> u32 {
    u32_at(page, PREVIOUS)
}

/// The next page on the same level, or [`NULL_PAGE`].
#[inline]
#[must_use]
pub fn next(page: &[u8]) -> u32 {
    u32_at(page, NEXT)
}

/// LSN of the newest change.
#[inline]
#[must_use]
pub fn lsn(page: &[u8]) -> u64 {
    u64_at(page, LSN)
}

/// The page type, see [`kind`].
#[inline]
#[must_use]
pub fn page_type(page: &[u8]) -> u16 {
    u16_at(page, TYPE)
}

/// The tablespace a page says it belongs to.
#[inline]
#[must_use]
pub fn space_id(page: &[u8]) -> u32 {
    u32_at(page, SPACE_ID)
}

/// The identity a page says it has.
#[must_use]
pub fn identity(page: &[u8]) -> PageId {
    PageId { space: space_id(page), page: page_number(page) }
}

/// Whether a page was never written: all bytes zero.
#[must_use]
pub fn is_all_zero(page: &[u8]) -> bool {
    // SAFETY: any bit pattern is a valid u128, and align_to splits only at aligned places.
    let (head, body, tail) = unsafe { page.align_to::<u128>() };
    body.iter().all(|word| *word == 0) && head.iter().chain(tail).all(|byte| *byte == 0)
}
