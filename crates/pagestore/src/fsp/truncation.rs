//! How a tablespace is truncated, inside: its last extents, when nothing is on them, leave the free lists and
//! its size.
//!
//! That is a change of structure pages only, one extent in each mini-transaction. The file is cut afterwards
//! ([`crate::PageStore::truncate_space`]), when no recovery can come back to what was on those pages. For
//! that they have to become free, so what is allocated meanwhile should come from further in front
//! ([`allocate_page_below`]).

use super::allocate::{STRUCTURE_LISTS, prepare};
use super::context::{Latched, under_latch};
use super::extent::{Extent, State};
use super::inode::Segment;
use super::list::{NEXT, PREVIOUS};
use super::{SegmentHeader, layout};
use crate::{Interrupt, Mtr, PageHandle};
use page::{NULL_PAGE, kind};

/// Pages in use in an extent that only describes the stretch it begins.
const DESCRIBING_PAGES: u32 = 2;

/// Takes the last extent out of the tablespace, if it has more than `least` pages and nothing of that extent
/// is in use; what `segment` has only set aside of it, it loses. Returns the size of the tablespace from now
/// on; `None`: nothing was done.
///
/// # Errors
/// [`Interrupt::Wait`] only while the mini-transaction has no changes; damaged structure pages.
pub fn release_last_extent(
    mtr: &mut Mtr<'_>,
    segment: SegmentHeader,
    least: u32,
) -> Result<Option<u32>, Interrupt> {
    under_latch(mtr, segment.space, |space| {
        let segment = space.latch_segment(segment)?;
        space.latch_list_ends(&STRUCTURE_LISTS)?;
        let (size, limit) = (space.size(), space.free_limit());
        let extent_pages = space.layout.extent_pages();
        let last = limit.saturating_sub(extent_pages);
        if last < least.max(extent_pages) || size < limit {
            return Ok(None);
        }
        let extent = space.extent(last)?;
        let list = match space.state(extent)? {
            State::Free => space.header_at(layout::HEADER_FREE),
            State::FreeFragment if space.only_describes(extent) => {
                space.header_at(layout::HEADER_FREE_FRAGMENT)
            }
            State::Segment if space.is_owned_by(extent, segment.id) && space.used_in(extent) == 0 => {
                segment.free()
            }
            _ => return Ok(None),
        };
        for neighbour in [PREVIOUS, NEXT] {
            let address = space.address(extent.place.plus(layout::EXTENT_NODE + neighbour));
            if let Some(address) = address.some() {
                space.node(address)?;
            }
        }
        let node = space.extent_node(extent);
        space.remove(list, node)?;
        if space.layout.begins_stretch(last) {
            // Its descriptor goes with it.
            space.add_fragments_used(-i64::from(DESCRIBING_PAGES))?;
        } else {
            let len = space.layout.extent_len();
            space.mtr.fill(extent.place.page, extent.place.offset, len, 0);
        }
        space.set_u32(space.header_at(layout::HEADER_FREE_LIMIT), last);
        space.set_u32(space.header_at(layout::HEADER_SIZE), last);
        Ok(Some(last))
    })
}

/// Pages of the tablespace, as its header says: the file may be longer.
///
/// # Errors
/// [`Interrupt`]: the header is not in memory, or damaged.
pub fn space_pages(store: &crate::PageStore, space: u32) -> Result<u32, Interrupt> {
    let header = store.read(page::PageId { space, page: 0 })?;
    Ok(pages_of_header(&header))
}

/// The same of page 0 itself.
pub(crate) fn pages_of_header(header: &[u8]) -> u32 {
    page::u32_at(header, layout::HEADER_SIZE)
}

/// As [`super::allocate_page`], for the first free page of the tablespace, if there is one before page
/// `below`: for a tablespace that is to become smaller. It looks at one extent after the other.
///
/// # Errors
/// As [`super::allocate_page`].
pub fn allocate_page_below(
    mtr: &mut Mtr<'_>,
    segment: SegmentHeader,
    below: u32,
) -> Result<Option<PageHandle>, Interrupt> {
    if !mtr.has_changes() {
        prepare(mtr, segment, 0)?;
    }
    under_latch(mtr, segment.space, |space| {
        let segment = space.segment(segment)?;
        match space.take_first_below(segment, below)? {
            Some(page) => space.create(page, kind::ALLOCATED).map(Some),
            None => Ok(None),
        }
    })
}

impl Latched<'_, '_> {
    /// Whether only the pages that describe the stretch which the extent begins are in use.
    fn only_describes(&self, extent: Extent) -> bool {
        self.layout.begins_stretch(extent.first) && self.used_in(extent) == DESCRIBING_PAGES
    }

    fn take_first_below(&mut self, segment: Segment, below: u32) -> Result<Option<u32>, Interrupt> {
        let extent_pages = self.layout.extent_pages();
        let end = below.min(self.size()).min(self.free_limit());
        let mut first = 0;
        while first < end {
            let extent = self.extent(first)?;
            match self.state(extent)? {
                State::Segment if self.is_owned_by(extent, segment.id) => {
                    if let Some(page) = self.find_free(extent, first) {
                        return self.take(segment, extent, page).map(Some);
                    }
                }
                State::Free => {
                    self.claim(segment, extent)?;
                    return self.take(segment, extent, first).map(Some);
                }
                State::FreeFragment => {
                    let inside = self.find_free(extent, first).is_some_and(|page| page < end);
                    if let (true, Some(slot)) = (inside, self.fragment_slot(segment, NULL_PAGE)) {
                        let page = self.allocate_fragment(first)?;
                        self.set_u32(segment.fragment(slot), page);
                        return Ok(Some(page));
                    }
                }
                State::FullFragment | State::Segment => {}
            }
            first += extent_pages;
        }
        Ok(None)
    }
}
