//! Neighbours that ride along: dirty pages that lie next to a page being written to be evicted.
//!
//! A device that is limited by requests (a cloud volume, a disk) writes a stretch of pages for the price of
//! one, and so do many that are not. A page in the old part of the LRU list has to be written soon in any
//! case; so when its neighbour in the file is written it goes along, and stays in the pool, clean. Not so a
//! young one: it would change again before its turn, and be written twice (measured: as many requests for
//! each transaction, and a sixth more pages).
//!
//! How much a stretch saves depends on how it is written: plain writes and copies merge to one request of any
//! length, atomic writes to naturally aligned powers of two (see the `dblwr` crate). Of those a page can be
//! sure of one partner only: the other half of its pair. That one goes along even when it is young, because
//! few partners are there, and each saves a request. So it is where a buffer pool extension takes the reads
//! off a disk whose requests are scarce (3.44 to 3.17 requests for a transaction). Without one reads and
//! writes share the disk, and what is short may be bytes: on a disk capped at 50 MB/s a transaction wrote 44
//! to 47 KiB with young halves and 38 KiB without. Where requests are short and there is no extension, nobody
//! has measured it; the extension only stands for a disk of that kind.

use std::sync::atomic::Ordering;

use page::{ContiguousRuns, PageId};

use crate::pool::frame::FrameRef;
use crate::store::PageStore;

/// Pages that go along on either side of one, at most.
const REACH: u32 = 15;

impl PageStore {
    /// Reserves the dirty neighbours of the pages, which are reserved, and adds them.
    pub(crate) fn add_neighbours(&self, pages: &mut Vec<FrameRef>) {
        let mut room = self.lru_room(pages.len()).min(3 * pages.len());
        // Asked once for pages of one tablespace in a row.
        let young_halves = self.tier_to_use().is_some();
        let mut last = None;
        for at in 0..pages.len() {
            let id = pages[at].page_id();
            let (_, in_pairs) = match last {
                Some(known @ (space, _)) if space == id.space => known,
                _ => *last.insert((id.space, young_halves && self.goes_in_pairs(id.space))),
            };
            if in_pairs {
                room -= self.add_stretch(id.space, std::iter::once(id.page ^ 1), true, room, pages);
            }
            let below = (0..id.page).rev().take(REACH as usize);
            let above = id.page.saturating_add(1)..=id.page.saturating_add(REACH);
            room -= self.add_stretch(id.space, below, false, room, pages);
            room -= self.add_stretch(id.space, above, false, room, pages);
        }
    }

    fn goes_in_pairs(&self, space: u32) -> bool {
        let space = self.spaces.get(space);
        let file = space.ok().and_then(|space| space.file_if_open().cloned());
        file.is_some_and(|file| self.writer.contiguous_runs(&file) == ContiguousRuns::Aligned)
    }

    /// Adds pages until one is not there to be written. Returns how many.
    fn add_stretch(
        &self,
        space: u32,
        stretch: impl Iterator<Item = u32>,
        young_too: bool,
        room: usize,
        pages: &mut Vec<FrameRef>,
    ) -> usize {
        let Some(table) = self.spaces.directory.get(space) else { return 0 };
        let before = pages.len();
        for page in stretch.take(room) {
            let Some(index) = table.get(page) else { break };
            let frame = self.frames.get(index);
            let may_go = young_too || frame.is_old.load(Ordering::Relaxed);
            if !may_go || !self.reserve_for_flush(frame) {
                break;
            }
            if !frame.holds(PageId { space, page }) {
                // It went between the two looks.
                self.release(frame);
                break;
            }
            pages.push(frame);
        }
        pages.len() - before
    }
}
