//! Giving pages and whole segments back.
//!
//! A freed page keeps its old bytes in the file; its bit says that they mean nothing. An extent whose last
//! page was freed goes back to the tablespace at once.

use super::allocate::STRUCTURE_LISTS;
use super::context::{Latched, under_latch};
use super::extent::{Extent, State};
use super::inode::{self, Segment};
use super::{SegmentHeader, layout};
use crate::{Interrupt, Mtr, PageHandle};
use page::NULL_PAGE;

/// Extents and single pages that one [`free_segment_step`] frees at most; a few hundred bytes of redo each.
const UNITS_PER_STEP: usize = 32;

/// Latches what [`free_page`] of `page` will touch; to be called while nothing has changed, so that a miss is
/// a wait.
///
/// # Errors
/// [`Interrupt::Wait`] for a page that is not in memory; damaged structure pages.
pub fn prepare_free(mtr: &mut Mtr<'_>, segment: SegmentHeader, page: u32) -> Result<(), Interrupt> {
    let mut space = Latched::new(mtr, segment.space)?;
    let extent = space.extent(page)?;
    for neighbour in [super::list::PREVIOUS, super::list::NEXT] {
        let address = space.address(extent.place.plus(layout::EXTENT_NODE + neighbour));
        // The node of an extent that was never in a list is all zero.
        if address.page < space.size() && address.offset != 0 {
            space.node(address)?;
        }
    }
    space.latch_list_ends(&STRUCTURE_LISTS)?;
    space.latch_segment(segment).map(drop)
}

/// Frees a page of `segment`. The page is X-latched by the caller and not to be touched afterwards.
///
/// # Errors
/// [`Interrupt::Wait`] only while the mini-transaction has no changes; damaged structure pages, among them a
/// page that is not the segment's.
pub fn free_page(mtr: &mut Mtr<'_>, segment: SegmentHeader, page: PageHandle) -> Result<(), Interrupt> {
    let number = mtr.page_id(page).page;
    debug_assert_eq!(mtr.page_id(page).space, segment.space);
    if !mtr.has_changes() {
        prepare_free(mtr, segment, number)?;
    }
    under_latch(mtr, segment.space, |space| {
        let segment = space.segment(segment)?;
        space.free(segment, number)?;
        space.mtr.free_page(page);
        Ok(())
    })
}

/// Frees some of a segment's pages, with a bounded amount of redo; to be repeated, each time in a
/// mini-transaction of its own, until it returns true. `keep` (the root page, where the segment header itself
/// lies) stays allocated, and with it the segment: the caller frees it at the very end by a call without
/// `keep`, which frees the inode too. Nobody may use the pages any more; they are not latched or read, and
/// those in memory keep what was kept of them, as heads, until they are initialised for their next user. A
/// crash in between leaves a segment that the same calls go on freeing.
///
/// # Errors
/// [`Interrupt::Wait`] only while the mini-transaction has no changes; damaged structure pages.
pub fn free_segment_step(
    mtr: &mut Mtr<'_>,
    segment: SegmentHeader,
    keep: Option<u32>,
) -> Result<bool, Interrupt> {
    under_latch(mtr, segment.space, |space| {
        space.latch_list_ends(&STRUCTURE_LISTS)?;
        let segment = space.latch_segment(segment)?;
        for _ in 0..UNITS_PER_STEP {
            if let Some(address) = segment.lists().iter().find_map(|list| space.list_first(*list)) {
                if space.mtr.has_changes() && space.mtr.held(space.id(address.page)).is_none() {
                    // Its descriptor may have to be read, which the next step can wait for.
                    return Ok(false);
                }
                let extent = space.extent_at(address)?;
                space.free_segment_extent(segment, extent)?;
                continue;
            }
            let single = inode::fragments(space.inode(segment))
                .filter(|page| *page != NULL_PAGE && Some(*page) != keep)
                .last();
            match single {
                Some(page) => space.free(segment, page)?,
                None if keep.is_some() => return Ok(true),
                None => {
                    space.free_inode_slot(segment)?;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    })
}

impl Latched<'_, '_> {
    fn free(&mut self, segment: Segment, page: u32) -> Result<(), Interrupt> {
        let extent = self.extent(page)?;
        match self.state(extent)? {
            State::FreeFragment | State::FullFragment => {
                let Some(slot) = self.fragment_slot(segment, page) else {
                    return Err(self.not_owned(segment, page));
                };
                self.set_u32(segment.fragment(slot), NULL_PAGE);
                self.free_fragment(page)
            }
            State::Segment if self.is_owned_by(extent, segment.id) => {
                self.free_in_extent(segment, extent, page)
            }
            State::Segment | State::Free => Err(self.not_owned(segment, page)),
        }
    }

    fn not_owned(&self, segment: Segment, page: u32) -> Interrupt {
        let descriptor = self.layout.descriptor_page(page);
        self.corrupt(
            descriptor,
            format!("page {page} is to be freed, but does not belong to segment {}", segment.id),
        )
    }

    fn free_in_extent(&mut self, segment: Segment, extent: Extent, page: u32) -> Result<(), Interrupt> {
        let node = self.extent_node(extent);
        let pages = self.layout.extent_pages();
        if self.used_in(extent) == pages {
            self.remove(segment.full(), node)?;
            self.push_last(segment.not_full(), node)?;
            self.add(segment.not_full_used(), i64::from(pages) - 1, "NOT_FULL_N_USED")?;
        } else {
            self.add(segment.not_full_used(), -1, "NOT_FULL_N_USED")?;
        }
        self.mark(extent, page, true)?;
        if self.used_in(extent) == 0 {
            self.remove(segment.not_full(), node)?;
            self.free_extent(extent)?;
        }
        Ok(())
    }

    /// Takes an extent from its segment, whatever is in it.
    fn free_segment_extent(&mut self, segment: Segment, extent: Extent) -> Result<(), Interrupt> {
        if !self.is_owned_by(extent, segment.id) {
            return Err(self.not_owned(segment, extent.first));
        }
        let node = self.extent_node(extent);
        match self.used_in(extent) {
            0 => self.remove(segment.free(), node)?,
            used if used == self.layout.extent_pages() => self.remove(segment.full(), node)?,
            used => {
                self.remove(segment.not_full(), node)?;
                self.add(segment.not_full_used(), -i64::from(used), "NOT_FULL_N_USED")?;
            }
        }
        self.free_extent(extent)
    }

    /// Gives an extent that is in no list to nobody.
    fn free_extent(&mut self, extent: Extent) -> Result<(), Interrupt> {
        self.initialise_extent(extent);
        self.push_last(self.header_at(layout::HEADER_FREE), self.extent_node(extent))
    }

    /// Frees a page of a fragment extent.
    pub fn free_fragment(&mut self, page: u32) -> Result<(), Interrupt> {
        let extent = self.extent(page)?;
        let node = self.extent_node(extent);
        let pages = self.layout.extent_pages();
        let free_fragment = self.header_at(layout::HEADER_FREE_FRAGMENT);
        if self.state(extent)? == State::FullFragment {
            self.remove(self.header_at(layout::HEADER_FULL_FRAGMENT), node)?;
            self.set_state(extent, State::FreeFragment);
            self.push_last(free_fragment, node)?;
            self.add_fragments_used(i64::from(pages) - 1)?;
        } else {
            self.add_fragments_used(-1)?;
        }
        self.mark(extent, page, true)?;
        if self.used_in(extent) == 0 {
            self.remove(free_fragment, node)?;
            self.free_extent(extent)?;
        }
        Ok(())
    }
}
