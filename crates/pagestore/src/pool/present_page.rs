//! A page that is in memory: page table, pin, compare. No lock, no allocation.

use page::PageId;

use crate::pool::frame::FrameRef;
use crate::pool::guard::Pin;
use crate::pool::heads::prefetch_heads;
use crate::store::PageStore;
use crate::sync::spin;

impl PageStore {
    /// The hit itself: pins a page if it is in memory, and counts nothing.
    #[inline]
    pub(crate) fn look_up(&self, page: PageId) -> Option<Pin> {
        self.look_up_after(page, |_, _| {})
    }

    /// [`PageStore::look_up`] for a search of the page. What that looks at first, `by_heads` those of a leaf,
    /// is asked for before the page is pinned: an atomic increment lets nothing pass that comes behind it.
    #[inline]
    pub(crate) fn look_up_to_search(&self, page: PageId, by_heads: bool) -> Option<Pin> {
        self.look_up_after(page, |index, frame| {
            if by_heads && let Some(room) = self.frames.heads.get(index) {
                prefetch_heads(room);
            }
            frame.prefetch();
        })
    }

    #[inline]
    fn look_up_after(&self, page: PageId, first: impl Fn(u32, FrameRef)) -> Option<Pin> {
        let mut spins = 0;
        loop {
            // Each time: when the tablespace is dropped meanwhile, its table may become another's.
            let table = self.spaces.directory.get(page.space)?;
            let index = table.get(page.page)?;
            let frame = self.frames.get(index);
            first(index, frame);
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
