//! The page size of a store.

use crate::header::TRAILER_LEN;

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
