//! How the file of a tier is divided.
//!
//! ```text
//!   | header, padded to a region | region 0: slot 0, slot 1, ... | region 1 | ...
//! ```
//!
//! Slots have the size of a page; slot numbers run through all regions.

use crate::table::{SLOTS_MAX, Table};

/// Regions of tiers from [`LARGE_TIER`] on.
const REGION_BYTES_LARGE: usize = 1 << 20;
/// Regions of smaller tiers: their write buffers must not outweigh what they buffer.
const REGION_BYTES_SMALL: usize = 256 << 10;
const LARGE_TIER: u64 = 16 << 30;
/// Regions are never smaller than this.
pub(crate) const REGION_BYTES_MIN: usize = 256 << 10;
/// Buffers, whatever the size; and more as long as they have no more bytes than this, one for this number of
/// regions.
const BUFFERS_MIN: usize = 3;
const BUFFER_BYTES: usize = 4 << 20;
const BUFFER_PER_REGIONS: usize = 128;
/// Regions kept free: one in this many, and no fewer or more than these. Pages come in bursts.
const FREE_ONE_IN: u32 = 64;
const FREE_MIN: u32 = 2;
const FREE_MAX: u32 = 64;
/// A tier has at least this many regions.
pub(crate) const REGIONS_MIN: u32 = 6;

/// Numbers of regions and slots, and where they lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Geometry {
    pub(crate) page_bytes: usize,
    pub(crate) region_bytes: usize,
    pub(crate) regions: u32,
}

impl Geometry {
    /// The division of a file of `size` bytes, rounded down, but never less than the smallest tier and never
    /// more than can be numbered.
    pub(crate) fn new(size: u64, page_bytes: usize, region_bytes: Option<usize>) -> Geometry {
        let default = if size >= LARGE_TIER { REGION_BYTES_LARGE } else { REGION_BYTES_SMALL };
        let region_bytes = region_bytes.unwrap_or(default).max(REGION_BYTES_MIN).next_multiple_of(page_bytes);
        let slots_per_region = (region_bytes / page_bytes) as u64;
        let regions = (size / region_bytes as u64)
            .saturating_sub(1)
            .clamp(u64::from(REGIONS_MIN), u64::from(SLOTS_MAX) / slots_per_region);
        Geometry { page_bytes, region_bytes, regions: regions as u32 }
    }

    pub(crate) fn slots_per_region(&self) -> u32 {
        (self.region_bytes / self.page_bytes) as u32
    }

    pub(crate) fn slots(&self) -> u32 {
        self.regions * self.slots_per_region()
    }

    pub(crate) fn region_of(&self, slot: u32) -> u32 {
        slot / self.slots_per_region()
    }

    pub(crate) fn slots_of(&self, region: u32) -> std::ops::Range<u32> {
        let first = region * self.slots_per_region();
        first..first + self.slots_per_region()
    }

    pub(crate) fn offset_of(&self, slot: u32) -> u64 {
        self.region_bytes as u64 + u64::from(slot) * self.page_bytes as u64
    }

    /// Length of the file with all regions written.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.region_bytes as u64 * (u64::from(self.regions) + 1)
    }

    /// Buffers of a region's size, made when they are needed: one being filled, others on their way, or for
    /// cleaning. Pages come in bursts, as many as the pool writes at a time, and what finds no buffer is
    /// refused.
    pub(crate) fn buffers(&self) -> usize {
        let by_bytes = (BUFFER_BYTES / self.region_bytes).max(BUFFERS_MIN);
        (self.regions as usize / BUFFER_PER_REGIONS).clamp(BUFFERS_MIN, by_bytes)
    }

    /// Regions that cleaning keeps free.
    pub(crate) fn regions_kept_free(&self) -> usize {
        (self.regions / FREE_ONE_IN).clamp(FREE_MIN, FREE_MAX) as usize
    }

    /// Bytes of memory of all buffers.
    pub(crate) fn buffer_bytes(&self) -> usize {
        self.buffers() * self.region_bytes
    }

    /// Bytes of memory a tier of this geometry takes: table, filter, ghosts, order and fill of the regions,
    /// and the buffers of regions on their way.
    pub(crate) fn memory_bytes(&self) -> usize {
        Table::memory_bytes(self.slots())
            + crate::admission::SeenBefore::memory_bytes(self.slots())
            + crate::size_estimate::Ghosts::memory_bytes(self.slots())
            + self.regions as usize * 3 * size_of::<u32>()
            + self.buffer_bytes()
    }
}
