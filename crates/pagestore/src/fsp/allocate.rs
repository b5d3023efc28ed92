//! Which page a segment gets next.
//!
//! The order (MySQL 8.0's): the hint itself where the segment owns its extent; else, once the segment has
//! outgrown single pages and has little set aside, the hint's extent when it is free, or a new extent for a
//! run in one direction; else a page near the hint in an extent of its own; else any page set aside for it;
//! else a single page; else a new extent. "Little set aside" is less than an eighth of what it has, so a
//! segment never wastes more than that.

use super::context::{Latched, under_latch};
use super::extent::{Extent, State};
use super::inode::Segment;
use super::list::{self, Address};
use super::{Direction, SegmentHeader, layout};
use crate::{Interrupt, Mtr, PageHandle};
use page::{NULL_PAGE, kind};

/// A segment fills its own FREE list only from this size on, in extents.
const EXTENTS_OF_LARGE_SEGMENT: u64 = 40;
/// Extents such a segment takes in advance.
const EXTENTS_IN_ADVANCE: u32 = 4;

/// The extent lists of the space header.
pub(super) const STRUCTURE_LISTS: [usize; 3] =
    [layout::HEADER_FREE, layout::HEADER_FREE_FRAGMENT, layout::HEADER_FULL_FRAGMENT];

/// Latches what an allocation from `segment` near `hint` will touch: space header, extent descriptors, inode.
/// To be called while nothing has changed, so that a miss is a wait. Further allocations of the same
/// mini-transaction touch the same pages, save where a list crosses into another descriptor page (one in 256
/// MiB at 16 KiB pages).
///
/// # Errors
/// [`Interrupt::Wait`] for a page that is not in memory; damaged structure pages.
pub fn prepare(mtr: &mut Mtr<'_>, segment: SegmentHeader, hint: u32) -> Result<(), Interrupt> {
    let mut space = Latched::new(mtr, segment.space)?;
    if hint < space.free_limit() {
        space.latch(space.layout.descriptor_page(hint))?;
    }
    space.latch_list_ends(&STRUCTURE_LISTS)?;
    space.latch_segment(segment).map(drop)
}

/// Allocates a page for `segment`, near `hint` (0 for no hint). The page is X-latched, all zero but for its
/// number, neighbours (none) and space id, its type is 0.
///
/// # Errors
/// [`Interrupt::Wait`] only while the mini-transaction has no changes; [`crate::Error::NoSpace`] when the
/// file cannot grow (ask [`super::reserve()`] first); damaged structure pages.
pub fn allocate_page(
    mtr: &mut Mtr<'_>,
    segment: SegmentHeader,
    hint: u32,
    direction: Direction,
) -> Result<PageHandle, Interrupt> {
    if !mtr.has_changes() {
        prepare(mtr, segment, hint)?;
    }
    under_latch(mtr, segment.space, |space| {
        let segment = space.segment(segment)?;
        let page = space.allocate(segment, hint, direction)?;
        space.create(page, kind::ALLOCATED)
    })
}

impl Latched<'_, '_> {
    /// Latches the pages of the first, second and last node of lists of the space header.
    pub fn latch_list_ends(&mut self, bases: &[usize]) -> Result<(), Interrupt> {
        for base in bases {
            let base = self.header_at(*base);
            self.latch_ends(base)?;
        }
        Ok(())
    }

    /// Latches the inode of a segment and the ends of its lists.
    pub fn latch_segment(&mut self, header: SegmentHeader) -> Result<Segment, Interrupt> {
        let segment = self.segment(header)?;
        for base in segment.lists() {
            self.latch_ends(base)?;
        }
        Ok(segment)
    }

    fn latch_ends(&mut self, base: super::context::Place) -> Result<(), Interrupt> {
        if let Some(first) = self.list_first(base) {
            let first = self.node(first)?;
            if let Some(second) = self.address(first.plus(list::NEXT)).some() {
                self.node(second)?;
            }
        }
        if let Some(last) = self.list_last(base) {
            self.node(last)?;
        }
        Ok(())
    }

    fn allocate(&mut self, segment: Segment, hint: u32, direction: Direction) -> Result<u32, Interrupt> {
        let usage = self.usage(segment);
        let hint = if hint < self.size().min(self.free_limit()) { hint } else { 0 };
        let near = self.extent(hint)?;
        let owned = self.is_owned_by(near, segment.id);
        if owned && self.is_free(near, hint) {
            return self.take(segment, near, hint);
        }
        let unused = usage.reserved.saturating_sub(usage.used);
        let outgrown = usage.used >= self.layout.fragment_slots() as u64;
        if outgrown && unused * 8 < usage.reserved {
            if self.state(near)? == State::Free {
                self.claim(segment, near)?;
                self.claim_in_advance(segment, near)?;
                return self.take(segment, near, hint);
            }
            if direction != Direction::None {
                let extent = self.next_extent(segment)?;
                let last = extent.first + self.layout.extent_pages() - 1;
                return self.take(
                    segment,
                    extent,
                    if direction == Direction::Up { extent.first } else { last },
                );
            }
        }
        if owned && let Some(page) = self.find_free(near, hint) {
            return self.take(segment, near, page);
        }
        if unused > 0 {
            let set_aside = self.list_first(segment.not_full()).or(self.list_first(segment.free()));
            return match set_aside {
                Some(address) => self.take_first_free(segment, address),
                None => Err(self.corrupt(
                    self.page_number(segment.place.page),
                    format!("segment {} has pages set aside, but no extent with a free page", segment.id),
                )),
            };
        }
        if !outgrown {
            return self.allocate_fragment_for(segment, hint);
        }
        let extent = self.next_extent(segment)?;
        self.take(segment, extent, extent.first)
    }

    fn take_first_free(&mut self, segment: Segment, address: Address) -> Result<u32, Interrupt> {
        let extent = self.extent_at(address)?;
        match self.find_free(extent, extent.first) {
            Some(page) => self.take(segment, extent, page),
            None => Err(self.corrupt(
                self.layout.descriptor_page(extent.first),
                format!("the extent of page {} is full, but listed as not full", extent.first),
            )),
        }
    }

    /// Marks a free page of an extent of the segment as used.
    pub fn take(&mut self, segment: Segment, extent: Extent, page: u32) -> Result<u32, Interrupt> {
        let node = self.extent_node(extent);
        if self.used_in(extent) == 0 {
            self.remove(segment.free(), node)?;
            self.push_last(segment.not_full(), node)?;
        }
        self.mark(extent, page, false)?;
        let pages = self.layout.extent_pages();
        if self.used_in(extent) == pages {
            self.remove(segment.not_full(), node)?;
            self.push_last(segment.full(), node)?;
            self.add(segment.not_full_used(), 1 - i64::from(pages), "NOT_FULL_N_USED")?;
        } else {
            self.add(segment.not_full_used(), 1, "NOT_FULL_N_USED")?;
        }
        Ok(page)
    }

    /// An extent without used pages: one set aside for the segment, else one of nobody's.
    fn next_extent(&mut self, segment: Segment) -> Result<Extent, Interrupt> {
        if let Some(first) = self.list_first(segment.free()) {
            return self.extent_at(first);
        }
        let extent = self.first_free_extent()?;
        self.claim(segment, extent)?;
        self.claim_in_advance(segment, extent)?;
        Ok(extent)
    }

    /// Makes a free extent the segment's own.
    pub fn claim(&mut self, segment: Segment, extent: Extent) -> Result<(), Interrupt> {
        let node = self.extent_node(extent);
        self.remove(self.header_at(layout::HEADER_FREE), node)?;
        let owner = extent.place.plus(layout::EXTENT_SEGMENT_ID);
        self.mtr.write_u64(owner.page, owner.offset, segment.id);
        self.set_state(extent, State::Segment);
        self.push_last(segment.free(), node)
    }

    /// A large segment takes the free extents that follow `after` too, so that it stays in long runs.
    fn claim_in_advance(&mut self, segment: Segment, after: Extent) -> Result<(), Interrupt> {
        let extent_pages = self.layout.extent_pages();
        let large = EXTENTS_OF_LARGE_SEGMENT * u64::from(extent_pages);
        if self.usage(segment).reserved < large || self.list_len(segment.free()) > 1 {
            return Ok(());
        }
        for step in 1..=EXTENTS_IN_ADVANCE {
            let Some(page) = after.first.checked_add(step * extent_pages) else { break };
            match self.extent_if_described(page)? {
                Some(extent) if self.state(extent)? == State::Free => self.claim(segment, extent)?,
                _ => break,
            }
        }
        Ok(())
    }

    /// First extent of the FREE list, which is filled when it is empty.
    fn first_free_extent(&mut self) -> Result<Extent, Interrupt> {
        let list = self.header_at(layout::HEADER_FREE);
        if self.list_first(list).is_none() {
            self.fill_free_list()?;
        }
        match self.list_first(list) {
            Some(first) => self.extent_at(first),
            None => Err(self.corrupt(0, "the list of free extents stays empty")),
        }
    }

    /// A single page for a segment, noted in its inode.
    fn allocate_fragment_for(&mut self, segment: Segment, hint: u32) -> Result<u32, Interrupt> {
        let Some(slot) = self.fragment_slot(segment, NULL_PAGE) else {
            let page = self.page_number(segment.place.page);
            return Err(self.corrupt(
                page,
                format!("segment {} counts fewer pages than it has slots in use", segment.id),
            ));
        };
        let page = self.allocate_fragment(hint)?;
        self.set_u32(segment.fragment(slot), page);
        Ok(page)
    }

    /// A single page of a fragment extent, near `hint` where that extent has one.
    pub fn allocate_fragment(&mut self, hint: u32) -> Result<u32, Interrupt> {
        let near = self.extent_if_described(hint)?;
        let near = match near {
            Some(extent) if self.state(extent)? == State::FreeFragment => Some(extent),
            _ => None,
        };
        let list = self.header_at(layout::HEADER_FREE_FRAGMENT);
        let (extent, hint) = match (near, self.list_first(list)) {
            (Some(extent), _) => (extent, hint),
            (None, Some(first)) => {
                let extent = self.extent_at(first)?;
                (extent, extent.first)
            }
            (None, None) => {
                let extent = self.first_free_extent()?;
                let node = self.extent_node(extent);
                self.remove(self.header_at(layout::HEADER_FREE), node)?;
                self.set_state(extent, State::FreeFragment);
                self.push_last(list, node)?;
                (extent, extent.first)
            }
        };
        let Some(page) = self.find_free(extent, hint) else {
            let descriptor = self.layout.descriptor_page(extent.first);
            return Err(
                self.corrupt(descriptor, format!("the extent of page {} has no free page", extent.first))
            );
        };
        if page >= self.size() {
            self.extend(page + 1)?;
        }
        self.take_fragment(extent, page)?;
        Ok(page)
    }

    fn take_fragment(&mut self, extent: Extent, page: u32) -> Result<(), Interrupt> {
        self.mark(extent, page, false)?;
        let pages = self.layout.extent_pages();
        if self.used_in(extent) < pages {
            return self.add_fragments_used(1);
        }
        let node = self.extent_node(extent);
        self.remove(self.header_at(layout::HEADER_FREE_FRAGMENT), node)?;
        self.set_state(extent, State::FullFragment);
        self.push_last(self.header_at(layout::HEADER_FULL_FRAGMENT), node)?;
        self.add_fragments_used(1 - i64::from(pages))
    }
}
