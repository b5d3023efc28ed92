//! A page that is in memory: page table, pin, compare. No lock, no allocation.

use page::PageId;

use crate::pool::guard::Pin;
use crate::store::PageStore;
use crate::sync::spin;

impl PageStore {
    /// The hit itself: pins a page if it is in memory, and counts nothing.
    #[inline]
    pub(crate) fn look_up(&self, page: PageId) -> Option<Pin> {
        let mut spins = 0;
        loop {
            // Each time: when the tablespace is dropped meanwhile, its table may become another's.
            let table = self.spaces.directory.get(page.space)?;
            let frame = self.frames.get(table.get(page.page)?);
            if frame.pins.try_pin() {
                if frame.holds(page) {
                    return Some(Pin::adopt(frame));
                }
                frame.pins.unpin();
            }
            // Somebody is evicting the page and about to remove the entry.
            spins += 1;
            if spins < 100 { spin() } else { std::thread::yield_now() }
        }
    }
}
