//! A page enters the pool, read or made: LRU list, page table, the pins of those who wait for it.

use std::sync::atomic::Ordering;

use page::PageId;

use crate::pool::frame::{FrameRef, history};
use crate::store::PageStore;

impl PageStore {
    /// Enters the page in the owned `frame` into page table and LRU list, with that many pins.
    /// Under the lock of the page's pending shard, or where nobody else can know the page.
    pub(crate) fn publish(&self, page: PageId, frame: FrameRef, pins: u32, young: bool) {
        frame.set_page(Some(page));
        frame.first_access.store(0, Ordering::Relaxed);
        frame.young_clock.store(self.freed_clock.load(Ordering::Relaxed), Ordering::Relaxed);
        if young {
            frame.note(history::TOUCHED_AGAIN);
        }
        debug_assert!(!frame.is_dirty() && !frame.in_flight.load(Ordering::Relaxed));
        frame.pins.add_pins(pins);
        {
            let mut lru = self.lru.lock();
            if young {
                lru.insert_young(&self.frames, frame.index());
            } else {
                lru.insert_old(&self.frames, frame.index());
            }
        }
        // The entry before the ownership ends: an unpinned page may be evicted at once, with its entry.
        if let Some(table) = self.spaces.directory.get(page.space) {
            table.set(page.page, frame.index());
        }
        frame.pins.disown();
    }
}
