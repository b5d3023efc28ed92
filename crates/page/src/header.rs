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
//! Checksum and low word are written by [`crate::seal()`], into the copy that goes to the file; all the rest
//! is written by mini-transactions.

use crate::PageId;

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
    // In stretches that take few instructions each and are left at the first byte that is not zero.
    page.chunks(256).all(|stretch| stretch.iter().fold(0, |all, byte| all | byte) == 0)
}
