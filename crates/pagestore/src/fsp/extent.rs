//! Extent descriptors: state, owner and page bitmap of a run of pages.
//!
//! ```text
//! +0 segment id (8)   +8 list node (12)   +20 state (4)   +24 bitmap: bits 2i FREE and 2i+1 CLEAN of page i, LSB first
//! ```
//!
//! `allocate.rs` and `free.rs` move an extent between the lists FREE, FREE_FRAG, FULL_FRAG and its segment's.
//!
//! CLEAN is always 1, so a byte is FF for four free pages and AA for four used ones.

use page::PageId;

use super::context::{Latched, Place};
use super::layout::{self, Layout};
use super::list::Address;
use crate::{Interrupt, PageStore};

/// Value of the state field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Belongs to nobody: list FREE.
    Free = 1,
    /// Lent page by page, with pages left: list FREE_FRAG.
    FreeFragment = 2,
    /// Lent page by page, none left: list FULL_FRAG.
    FullFragment = 3,
    /// Owned by a segment: one of its lists.
    Segment = 4,
}

impl State {
    pub fn from_u32(value: u32) -> Option<Self> {
        Some(match value {
            1 => State::Free,
            2 => State::FreeFragment,
            3 => State::FullFragment,
            4 => State::Segment,
            _ => return None,
        })
    }
}

/// An extent whose descriptor is latched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// Its descriptor.
    pub place: Place,
    /// Its first page.
    pub first: u32,
}

/// Whether page `index` of an extent is free, by the extent's bitmap.
pub(super) fn is_free(bitmap: &[u8], index: u32) -> bool {
    bitmap[index as usize / 4] & free_bit(index) != 0
}

/// Used pages of an extent, by its bitmap.
pub(super) fn used_pages(bitmap: &[u8]) -> u32 {
    let free: u32 = bitmap.iter().map(|byte| (byte & 0x55).count_ones()).sum();
    bitmap.len() as u32 * 4 - free
}

/// Whether a page belongs to anybody. The file may be shorter.
///
/// # Errors
/// [`Interrupt`]: a structure page is not in memory, or damaged.
pub fn is_allocated(store: &PageStore, space: u32, page: u32) -> Result<bool, Interrupt> {
    let pages = store.open_space_of(space)?.pages();
    let layout = Layout::new(store.page_size());
    let header = store.read(PageId { space, page: 0 })?;
    if page >= pages || page >= page::u32_at(&header, layout::HEADER_FREE_LIMIT) {
        return Ok(false);
    }
    drop(header);
    let descriptors = store.read(PageId { space, page: layout.descriptor_page(page) })?;
    let bitmap = &descriptors[layout.descriptor_offset(page) + layout::EXTENT_BITMAP..];
    Ok(!is_free(bitmap, page % layout.extent_pages()))
}

fn free_bit(index: u32) -> u8 {
    1 << (index % 4 * 2)
}

impl Latched<'_, '_> {
    /// Address of the extent's list node.
    pub fn extent_node(&self, extent: Extent) -> Address {
        let offset = extent.place.offset + layout::EXTENT_NODE;
        debug_assert!(offset <= usize::from(u16::MAX));
        Address { page: self.layout.descriptor_page(extent.first), offset: offset as u16 }
    }

    /// The extent whose list node is at `address`.
    pub fn extent_at(&mut self, address: Address) -> Result<Extent, Interrupt> {
        let offset = usize::from(address.offset).wrapping_sub(layout::EXTENT_NODE);
        match self.layout.described_by(address.page, offset) {
            Some(first) => self.extent(first),
            None => {
                Err(self.corrupt(address.page, format!("no extent descriptor begins at offset {offset}")))
            }
        }
    }

    pub fn bitmap(&self, extent: Extent) -> &[u8] {
        let start = extent.place.offset + layout::EXTENT_BITMAP;
        &self.mtr.page(extent.place.page)[start..start + self.layout.bitmap_len()]
    }

    pub fn state(&self, extent: Extent) -> Result<State, Interrupt> {
        let value = self.u32(extent.place.plus(layout::EXTENT_STATE));
        State::from_u32(value).ok_or_else(|| {
            let page = self.layout.descriptor_page(extent.first);
            self.corrupt(page, format!("the extent of page {} has the unknown state {value}", extent.first))
        })
    }

    pub fn set_state(&mut self, extent: Extent, state: State) {
        self.set_u32(extent.place.plus(layout::EXTENT_STATE), state as u32);
    }

    /// Whether the extent is owned by this segment.
    pub fn is_owned_by(&self, extent: Extent, segment_id: u64) -> bool {
        self.u32(extent.place.plus(layout::EXTENT_STATE)) == State::Segment as u32
            && self.u64(extent.place.plus(layout::EXTENT_SEGMENT_ID)) == segment_id
    }

    pub fn used_in(&self, extent: Extent) -> u32 {
        used_pages(self.bitmap(extent))
    }

    pub fn is_free(&self, extent: Extent, page: u32) -> bool {
        is_free(self.bitmap(extent), page - extent.first)
    }

    /// First free page at or after `hint` (a page of this extent), else before it.
    pub fn find_free(&self, extent: Extent, hint: u32) -> Option<u32> {
        let pages = self.layout.extent_pages();
        let bitmap = self.bitmap(extent);
        (0..pages)
            .map(|step| (hint - extent.first + step) % pages)
            .find(|index| is_free(bitmap, *index))
            .map(|index| extent.first + index)
    }

    /// Marks a page free or used.
    pub fn mark(&mut self, extent: Extent, page: u32, free: bool) -> Result<(), Interrupt> {
        if self.is_free(extent, page) == free {
            let state = if free { "free" } else { "used" };
            let descriptor = self.layout.descriptor_page(page);
            return Err(self.corrupt(descriptor, format!("page {page} is marked {state} already")));
        }
        let index = page - extent.first;
        let old = self.bitmap(extent)[index as usize / 4];
        let offset = extent.place.offset + layout::EXTENT_BITMAP + index as usize / 4;
        self.mtr.write_u8(extent.place.page, offset, old ^ free_bit(index));
        Ok(())
    }

    /// Makes the extent free and empty, in no list.
    pub fn initialise_extent(&mut self, extent: Extent) {
        self.set_state(extent, State::Free);
        let len = self.layout.bitmap_len();
        self.mtr.fill(extent.place.page, extent.place.offset + layout::EXTENT_BITMAP, len, 0xFF);
    }

    /// Extent of page `page`, if that page has an initialised descriptor.
    pub fn extent_if_described(&mut self, page: u32) -> Result<Option<Extent>, Interrupt> {
        if page < self.free_limit() { self.extent(page).map(Some) } else { Ok(None) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PageSize;
    use crate::fsp::Layout;

    #[test]
    fn bitmap_bits_are_lsb_first() {
        let mut bitmap = vec![0xFF; Layout::new(PageSize::DEFAULT).bitmap_len()];
        bitmap[0] = 0xAA;
        bitmap[1] = 0xEA;
        assert_eq!(used_pages(&bitmap), 7);
        let free: Vec<u32> = (0..9).filter(|index| is_free(&bitmap, *index)).collect();
        assert_eq!(free, [7, 8]);
    }
}
