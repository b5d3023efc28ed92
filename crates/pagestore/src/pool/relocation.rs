//! Moving a clean page into another frame, so that its own can leave the pool without the page being read
//! again.
//!
//! Nobody has a pin on the page, the mover owns both frames, and the LRU list is locked. The page table's
//! entry goes over from one frame to the other and is never absent: who looks the page up meanwhile finds the
//! old frame owned, or a frame that does not hold the page, and looks again, as when a page is evicted; but
//! in the end there is the page. So nobody starts a read of it, and the pending reads have nothing to do with
//! it.
//!
//! A walk through the frames that looks for all pages of a tablespace (`PageStore::frames_of`) would miss one
//! that moves behind their back. Pages of a tablespace that is marked as dropped are not moved, and who has
//! marked it lets the LRU list's mutex pass once before they look ([`PageStore::settle_relocations`]). Dirty
//! pages are not moved either: the flush list and batches know them by frame. They are evicted when they have
//! been written.

use crate::counters::Counter;
use crate::pool::frame::FrameRef;
use crate::pool::lru::Lru;
use crate::store::PageStore;

impl PageStore {
    /// Moves the clean, unpinned page of `from` into `to`, an owned frame without a page; then `from` is
    /// that. The page keeps its place in the LRU list and its history. False, and nothing has changed, when
    /// it is not to be moved now.
    pub(crate) fn relocate(&self, lru: &mut Lru, from: FrameRef, to: FrameRef) -> bool {
        assert!(to.pins.is_owned() && !to.holds_a_page() && from.index() != to.index());
        if !Self::own_clean(from) {
            return false;
        }
        let id = from.page_id();
        let open = self.spaces.get(id.space).is_ok_and(|space| !space.is_dropped());
        let Some(table) = self.spaces.directory.get(id.space).filter(|_| open) else {
            from.pins.disown();
            return false;
        };
        assert_eq!(table.get(id.page), Some(from.index()), "the page table knows where a page is");
        // SAFETY: both frames are owned, and they are different ones.
        unsafe { to.bytes_mut().copy_from_slice(from.bytes()) };
        to.take_over(from);
        lru.replace(&self.frames, from.index(), to.index());
        to.set_page(Some(id));
        table.set(id.page, to.index());
        // Forgets its heads, before anybody can pin the page in its new frame and change it there.
        from.set_page(None);
        from.forget_history();
        to.pins.disown();
        self.counters.count(Counter::PagesRelocated);
        true
    }

    /// Returns when no page of a tablespace that was marked as dropped before is on the move any more.
    pub(crate) fn settle_relocations(&self) {
        drop(self.lru.lock());
    }
}
