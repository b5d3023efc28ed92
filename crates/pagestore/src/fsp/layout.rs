//! Where things lie in the space-management pages, for every page size.
//!
//! All offsets are absolute within a page. Only four numbers depend on the page size: how many pages make an
//! extent, how long an extent descriptor is (its bitmap has two bits for each page), how many fragment slots
//! a segment has (half an extent), and so how many segments fit on an inode page. A [`Layout`] holds them;
//! nothing else in this module knows a page size.

use crate::fsp::FlagsError;
use page::PageSize;

/// Start of the tablespace header on page 0.
pub const HEADER: usize = page::HEADER_LEN;
/// Space id, the first field of the tablespace header.
pub const HEADER_SPACE_ID: usize = HEADER;
/// Pages in the tablespace, as the header knows it.
pub const HEADER_SIZE: usize = HEADER + 8;
/// First page whose extent descriptor is not initialised.
pub const HEADER_FREE_LIMIT: usize = HEADER + 12;
/// `FSP_SPACE_FLAGS`.
pub const HEADER_FLAGS: usize = HEADER + 16;
/// Used pages in the extents of the FREE_FRAG list.
pub const HEADER_FRAGMENTS_USED: usize = HEADER + 20;
/// List of extents that belong to nobody.
pub const HEADER_FREE: usize = HEADER + 24;
/// List of extents lent out page by page, with pages left.
pub const HEADER_FREE_FRAGMENT: usize = HEADER + 40;
/// List of extents lent out page by page, with none left.
pub const HEADER_FULL_FRAGMENT: usize = HEADER + 56;
/// Next unused segment id (8 bytes).
pub const HEADER_NEXT_SEGMENT_ID: usize = HEADER + 72;
/// List of inode pages without a free slot.
pub const HEADER_INODES_FULL: usize = HEADER + 80;
/// List of inode pages with a free slot.
pub const HEADER_INODES_FREE: usize = HEADER + 96;

/// Start of the extent descriptors on page 0 and on every XDES page.
pub const EXTENTS: usize = HEADER + 112;
/// Segment that owns the extent (8 bytes).
pub const EXTENT_SEGMENT_ID: usize = 0;
/// List node of the extent.
pub const EXTENT_NODE: usize = 8;
/// State of the extent (4 bytes).
pub const EXTENT_STATE: usize = 20;
/// Two bits for each page of the extent.
pub const EXTENT_BITMAP: usize = 24;

/// List node of an inode page.
pub const INODE_PAGE_NODE: usize = page::HEADER_LEN;
/// First segment inode of an inode page.
pub const INODES: usize = 50;
/// Segment id (8 bytes); 0 marks a free slot.
pub const INODE_SEGMENT_ID: usize = 0;
/// Used pages in the extents of the NOT_FULL list.
pub const INODE_NOT_FULL_USED: usize = 8;
/// Extents of the segment without a used page.
pub const INODE_FREE: usize = 12;
/// Extents of the segment with used and free pages.
pub const INODE_NOT_FULL: usize = 28;
/// Extents of the segment without a free page.
pub const INODE_FULL: usize = 44;
/// Magic number of a segment inode in use.
pub const INODE_MAGIC: usize = 60;
/// Fragment slots, one page number each.
pub const INODE_FRAGMENTS: usize = 64;
/// Value at [`INODE_MAGIC`].
pub const INODE_MAGIC_VALUE: u32 = 97_937_874;

/// Length of a list base node.
pub const LIST_BASE_LEN: usize = 16;
/// Length of a list node.
pub const LIST_NODE_LEN: usize = 12;

const FLAG_POST_ANTELOPE: u32 = 1;
const FLAG_ATOMIC_BLOBS: u32 = 1 << 5;
const FLAG_FULL_CRC32: u32 = 1 << 4;
const ZIP_SSIZE_SHIFT: u32 = 1;
const PAGE_SSIZE_SHIFT: u32 = 6;
const FOUR_BITS: u32 = 15;

/// The numbers of the tablespace structure that depend on the page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    size: PageSize,
}

impl Layout {
    /// Layout for pages of this size.
    pub const fn new(size: PageSize) -> Self {
        Self { size }
    }

    /// Layout that the flags of a tablespace ask for. This judges the layout alone, for the check of files of
    /// other servers too: the older row formats and MariaDB's full_crc32 lay out their structures in the same
    /// way. Which files are opened at all is decided in `space/first_page.rs`.
    ///
    /// # Errors
    /// Flags of compressed, page-compressed or encrypted tablespaces and of unknown page sizes are refused.
    pub fn from_flags(flags: u32) -> Result<Self, FlagsError> {
        if flags & FLAG_FULL_CRC32 != 0 {
            if flags & !(FOUR_BITS | FLAG_FULL_CRC32) != 0 {
                return Err(FlagsError { flags, why: "page compression of MariaDB is not supported" });
            }
            return Self::from_shift(flags, flags & FOUR_BITS);
        }
        if (flags >> ZIP_SSIZE_SHIFT) & FOUR_BITS != 0 {
            return Err(FlagsError { flags, why: "ROW_FORMAT=COMPRESSED is not supported" });
        }
        if flags & (1 << 13) != 0 {
            return Err(FlagsError { flags, why: "encrypted tablespaces are not supported" });
        }
        if flags & (1 << 16) != 0 {
            return Err(FlagsError { flags, why: "page compression of MariaDB is not supported" });
        }
        if (flags & FLAG_POST_ANTELOPE != 0) != (flags & FLAG_ATOMIC_BLOBS != 0) {
            return Err(FlagsError { flags, why: "row format bits 0 and 5 contradict each other" });
        }
        match (flags >> PAGE_SSIZE_SHIFT) & FOUR_BITS {
            0 => Self::from_shift(flags, 5),
            shift => Self::from_shift(flags, shift),
        }
    }

    fn from_shift(flags: u32, shift: u32) -> Result<Self, FlagsError> {
        (3..=7)
            .contains(&shift)
            .then(|| PageSize::new(512 << shift).map(Self::new))
            .flatten()
            .ok_or(FlagsError { flags, why: "the page size is not one of 4, 8, 16, 32 and 64 KiB" })
    }

    /// Flags of a tablespace with ROW_FORMAT=DYNAMIC, checksum crc32 and this page size; 0x21 for 16 KiB.
    pub const fn flags(self) -> u32 {
        FLAG_POST_ANTELOPE | FLAG_ATOMIC_BLOBS | self.size.flag_bits()
    }

    /// Page size in bytes.
    pub const fn page_size(self) -> usize {
        self.size.bytes()
    }

    /// Pages of an extent: 1 MiB up to 16 KiB pages, 64 pages above.
    pub const fn extent_pages(self) -> u32 {
        self.size.extent_pages()
    }

    /// End of the usable part of a page, where its trailer begins.
    pub const fn page_end(self) -> usize {
        self.size.trailer()
    }

    /// Bytes of an extent descriptor.
    pub const fn extent_len(self) -> usize {
        EXTENT_BITMAP + self.bitmap_len()
    }

    /// Bytes of the bitmap of an extent descriptor.
    pub const fn bitmap_len(self) -> usize {
        self.extent_pages() as usize / 4
    }

    /// Pages described by page 0 and by every XDES page: as many as a page has bytes.
    pub const fn described_pages(self) -> u32 {
        1 << self.size.shift()
    }

    /// Page that holds the descriptor of the extent of `page`.
    pub const fn descriptor_page(self, page: u32) -> u32 {
        page & !(self.described_pages() - 1)
    }

    /// Offset of that descriptor in its page.
    pub const fn descriptor_offset(self, page: u32) -> usize {
        let slot = (page & (self.described_pages() - 1)) / self.extent_pages();
        EXTENTS + slot as usize * self.extent_len()
    }

    /// First page described by the descriptor at `offset` of `descriptor_page`, if one begins there.
    pub fn described_by(self, descriptor_page: u32, offset: usize) -> Option<u32> {
        let distance = offset.checked_sub(EXTENTS)?;
        let slot = u32::try_from(distance / self.extent_len()).ok()?;
        let aligned = distance.is_multiple_of(self.extent_len())
            && descriptor_page.is_multiple_of(self.described_pages());
        (aligned && slot < self.described_pages() / self.extent_pages())
            .then(|| descriptor_page.checked_add(slot * self.extent_pages()))
            .flatten()
    }

    /// First page of the extent of `page`.
    pub const fn extent_start(self, page: u32) -> u32 {
        page & !(self.extent_pages() - 1)
    }

    /// Whether the space-management pages of the next stretch (XDES and bitmap page) begin at `page`.
    pub const fn begins_stretch(self, page: u32) -> bool {
        page & (self.described_pages() - 1) == 0
    }

    /// Fragment slots of a segment: half an extent.
    pub const fn fragment_slots(self) -> usize {
        self.extent_pages() as usize / 2
    }

    /// Bytes of a segment inode.
    pub const fn inode_len(self) -> usize {
        INODE_FRAGMENTS + 4 * self.fragment_slots()
    }

    /// Segment inodes on an inode page.
    pub const fn inode_slots(self) -> usize {
        (self.page_size() - INODES - 10) / self.inode_len()
    }

    /// Offset of the segment inode `slot`.
    pub const fn inode_offset(self, slot: usize) -> usize {
        INODES + slot * self.inode_len()
    }

    /// Slot of the segment inode at `offset`, if one begins there.
    pub fn inode_slot(self, offset: usize) -> Option<usize> {
        let distance = offset.checked_sub(INODES)?;
        let slot = distance / self.inode_len();
        (distance.is_multiple_of(self.inode_len()) && slot < self.inode_slots()).then_some(slot)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn layout(size: usize) -> Layout {
        Layout::new(PageSize::new(size).unwrap())
    }

    #[test]
    fn numbers_of_the_default_page_size() {
        let layout = layout(16384);
        assert_eq!(layout.flags(), 0x21);
        assert_eq!((layout.extent_pages(), layout.extent_len(), layout.inode_len()), (64, 40, 192));
        assert_eq!((layout.inode_slots(), layout.fragment_slots()), (85, 32));
        assert_eq!(layout.descriptor_offset(16384 * 3 + 64), 150 + 40);
        assert_eq!((layout.inode_offset(1), layout.inode_offset(3)), (242, 626));
    }

    #[test]
    fn every_page_size_fits_its_pages_and_survives_its_flags() {
        for shift in 12..=16 {
            let layout = layout(1 << shift);
            assert_eq!(Layout::from_flags(layout.flags()), Ok(layout));
            let pages = layout.described_pages();
            let last = layout.descriptor_offset(pages - 1);
            assert!(last + layout.extent_len() <= layout.page_end());
            assert!(layout.inode_offset(layout.inode_slots()) <= layout.page_end());
            assert_eq!(layout.described_by(pages, last), Some(2 * pages - layout.extent_pages()));
            assert_eq!(layout.inode_slot(layout.inode_offset(layout.inode_slots())), None);
        }
    }

    #[test]
    fn flags_of_the_servers() {
        let known = layout(16384);
        for flags in [0x0, 0x21, 0x4021, 0x4000, 0x15] {
            assert_eq!(Layout::from_flags(flags), Ok(known));
        }
        for refused in [0x29, 0x2021, 0x10021, 0x35, 0x20, 0x1, 0x18, 0x21 | 9 << 6] {
            assert!(Layout::from_flags(refused).is_err(), "{refused:#x}");
        }
    }
}
