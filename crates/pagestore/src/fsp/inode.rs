//! Segment inodes: which extents and which single pages a segment owns.
//!
//! ```text
//! +0 segment id (8)  +8 NOT_FULL_N_USED  +12 FREE  +28 NOT_FULL  +44 FULL (list bases)  +60 magic  +64 fragment pages
//! ```
//!
//! An inode page is in INODES_FREE while it has a slot with id 0, else in INODES_FULL.

use super::context::{Latched, Place, under_latch};
use super::list::{self, Address};
use super::{SegmentHeader, Usage, layout};
use crate::{Interrupt, Mtr, PageHandle, PageStore};
use page::{NULL_PAGE, PageId, kind};

/// A segment whose inode is latched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    /// Its inode.
    pub place: Place,
    /// Its id, never 0.
    pub id: u64,
}

impl Segment {
    pub fn free(self) -> Place {
        self.place.plus(layout::INODE_FREE)
    }
    pub fn not_full(self) -> Place {
        self.place.plus(layout::INODE_NOT_FULL)
    }
    pub fn full(self) -> Place {
        self.place.plus(layout::INODE_FULL)
    }
    /// Its lists, those that a dropped segment is emptied from first in front.
    pub fn lists(self) -> [Place; 3] {
        [self.full(), self.not_full(), self.free()]
    }
    pub fn not_full_used(self) -> Place {
        self.place.plus(layout::INODE_NOT_FULL_USED)
    }
    pub fn fragment(self, slot: usize) -> Place {
        self.place.plus(layout::INODE_FRAGMENTS + 4 * slot)
    }
}

/// Creates a segment without pages. Its first page comes from [`super::allocate_page`].
///
/// # Errors
/// [`Interrupt`]: a page miss before the first change; a full or damaged tablespace.
pub fn create_segment(mtr: &mut Mtr<'_>, space: u32) -> Result<SegmentHeader, Interrupt> {
    under_latch(mtr, space, Latched::create_segment)
}

/// Pages used by and reserved for a segment, as of now. Takes no space latch: a figure for statistics.
///
/// # Errors
/// [`Interrupt`]: the inode page is not in memory, or damaged.
pub fn segment_usage(store: &PageStore, segment: SegmentHeader) -> Result<Usage, Interrupt> {
    let layout = super::Layout::new(store.page_size());
    let guard = store.read(PageId { space: segment.space, page: segment.page })?;
    let offset = usize::from(segment.offset);
    if layout.inode_slot(offset).is_none() {
        return Ok(Usage::default());
    }
    Ok(usage(&guard[offset..offset + layout.inode_len()], layout.extent_pages()))
}

/// Page counts of an inode (without any check).
pub(super) fn usage(inode: &[u8], extent_pages: u32) -> Usage {
    let len = |base: usize| u64::from(page::u32_at(inode, base)) * u64::from(extent_pages);
    let fragments = fragments(inode).filter(|page| *page != NULL_PAGE).count() as u64;
    let full = len(layout::INODE_FULL);
    Usage {
        used: fragments + u64::from(page::u32_at(inode, layout::INODE_NOT_FULL_USED)) + full,
        reserved: fragments + len(layout::INODE_FREE) + len(layout::INODE_NOT_FULL) + full,
    }
}

/// Fragment slots of an inode.
pub(super) fn fragments(inode: &[u8]) -> impl Iterator<Item = u32> + '_ {
    inode[layout::INODE_FRAGMENTS..].chunks_exact(4).map(|slot| page::u32_at(slot, 0))
}

impl Latched<'_, '_> {
    /// See [`create_segment`].
    fn create_segment(&mut self) -> Result<SegmentHeader, Interrupt> {
        let (page, slot) = self.free_inode()?;
        let place = Place { page, offset: self.layout.inode_offset(slot) };
        let next_id = self.header_at(layout::HEADER_NEXT_SEGMENT_ID);
        let id = self.u64(next_id);
        let number = self.page_number(page);
        if self.inode_slot_from(page, slot + 1).is_none() {
            let node = Address { page: number, offset: layout::INODE_PAGE_NODE as u16 };
            self.remove(self.header_at(layout::HEADER_INODES_FREE), node)?;
            self.push_last(self.header_at(layout::HEADER_INODES_FULL), node)?;
        }
        self.mtr.write_u64(next_id.page, next_id.offset, id + 1);

        let mut inode = [0; layout::INODE_FRAGMENTS];
        inode[..8].copy_from_slice(&id.to_be_bytes());
        for base in [layout::INODE_FREE, layout::INODE_NOT_FULL, layout::INODE_FULL] {
            inode[base..base + layout::LIST_BASE_LEN].copy_from_slice(&list::EMPTY_BASE);
        }
        inode[layout::INODE_MAGIC..].copy_from_slice(&layout::INODE_MAGIC_VALUE.to_be_bytes());
        self.mtr.write(place.page, place.offset, &inode);
        let fragments = 4 * self.layout.fragment_slots();
        self.mtr.fill(place.page, place.offset + layout::INODE_FRAGMENTS, fragments, 0xFF);
        Ok(SegmentHeader { space: self.space, page: number, offset: place.offset as u16 })
    }

    /// Latches the inode a segment header points to.
    pub fn segment(&mut self, header: SegmentHeader) -> Result<Segment, Interrupt> {
        let offset = usize::from(header.offset);
        let page = self.latch(header.page)?;
        let bytes = self.mtr.page(page);
        if self.layout.inode_slot(offset).is_none() || page::page_type(bytes) != kind::INODE {
            return Err(self.corrupt(
                header.page,
                format!("a segment header leads to offset {offset}, but no inode is there"),
            ));
        }
        let id = page::u64_at(bytes, offset);
        if id == 0 || page::u32_at(bytes, offset + layout::INODE_MAGIC) != layout::INODE_MAGIC_VALUE {
            return Err(
                self.corrupt(header.page, format!("the segment inode at offset {offset} is not in use"))
            );
        }
        Ok(Segment { place: Place { page, offset }, id })
    }

    /// Bytes of a segment's inode.
    pub fn inode(&self, segment: Segment) -> &[u8] {
        let start = segment.place.offset;
        &self.mtr.page(segment.place.page)[start..start + self.layout.inode_len()]
    }

    /// Pages used by and reserved for a segment.
    pub fn usage(&self, segment: Segment) -> Usage {
        usage(self.inode(segment), self.layout.extent_pages())
    }

    /// Slot of a fragment page (or of [`NULL_PAGE`]: an empty slot).
    pub fn fragment_slot(&self, segment: Segment, page: u32) -> Option<usize> {
        fragments(self.inode(segment)).position(|found| found == page)
    }

    /// First unused inode slot at or after `from`.
    fn inode_slot_from(&self, page: PageHandle, from: usize) -> Option<usize> {
        let bytes = self.mtr.page(page);
        (from..self.layout.inode_slots())
            .find(|slot| page::u64_at(bytes, self.layout.inode_offset(*slot)) == 0)
    }

    /// An inode page with an unused slot, and the first such slot.
    fn free_inode(&mut self) -> Result<(PageHandle, usize), Interrupt> {
        let list = self.header_at(layout::HEADER_INODES_FREE);
        if let Some(first) = self.list_first(list) {
            let page = self.node(first)?.page;
            return match self.inode_slot_from(page, 0) {
                Some(slot) => Ok((page, slot)),
                None => Err(self.corrupt(first.page, "listed as having a free segment slot, but has none")),
            };
        }
        let number = self.allocate_fragment(0)?;
        let page = self.create(number, kind::INODE)?;
        self.push_last(list, Address { page: number, offset: layout::INODE_PAGE_NODE as u16 })?;
        Ok((page, 0))
    }

    /// Whether two segments find their inodes on the page they are taken from next.
    pub fn has_inodes_for_a_tree(&mut self) -> Result<bool, Interrupt> {
        let Some(first) = self.list_first(self.header_at(layout::HEADER_INODES_FREE)) else {
            return Ok(false);
        };
        let page = self.node(first)?.page;
        let slot = self.inode_slot_from(page, 0);
        Ok(slot.and_then(|slot| self.inode_slot_from(page, slot + 1)).is_some())
    }

    /// Gives the slot of an empty segment back, and its page when it was the last there.
    pub fn free_inode_slot(&mut self, segment: Segment) -> Result<(), Interrupt> {
        let page = segment.place.page;
        let number = self.page_number(page);
        let node = Address { page: number, offset: layout::INODE_PAGE_NODE as u16 };
        let free_list = self.header_at(layout::HEADER_INODES_FREE);
        if self.inode_slot_from(page, 0).is_none() {
            self.remove(self.header_at(layout::HEADER_INODES_FULL), node)?;
            self.push_last(free_list, node)?;
        }
        let len = self.layout.inode_len();
        self.mtr.fill(page, segment.place.offset, len, 0);
        let bytes = self.mtr.page(page);
        let empty = (0..self.layout.inode_slots())
            .all(|slot| page::u64_at(bytes, self.layout.inode_offset(slot)) == 0);
        if empty {
            self.remove(free_list, node)?;
            self.free_fragment(number)?;
            self.mtr.free_page(page);
        }
        Ok(())
    }
}
