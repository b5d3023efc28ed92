//! A page that is in memory: page table, pin, compare. No lock, no allocation.

use page::PageId;

use crate::pool::frame::FrameRef;
use crate::pool::guard::Pin;
use crate::pool::heads::prefetch_heads;
use crate::store::PageStore;
use crate::sync::spin;

/// Why a look-up got no pin.
enum NotPinned {
    /// The page is not in memory.
    Absent,
    /// Somebody is evicting the page and about to remove the entry, or moves it.
    Leaving,
}

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
        self.look_up_after(page, |index, frame| self.prefetch_to_search(index, frame, by_heads))
    }

    /// One try of [`PageStore::look_up_to_search`] for a leaf: a page that is just leaving its frame is none.
    #[inline]
    pub(crate) fn try_look_up_to_search(&self, page: PageId) -> Option<Pin> {
        self.try_look_up_after(page, &|index, frame| self.prefetch_to_search(index, frame, true)).ok()
    }

    #[inline]
    fn prefetch_to_search(&self, index: u32, frame: FrameRef, by_heads: bool) {
        if by_heads && let Some(room) = self.frames.heads.get(index) {
            prefetch_heads(room);
        }
        frame.prefetch();
    }

    #[inline]
    fn look_up_after(&self, page: PageId, first: impl Fn(u32, FrameRef)) -> Option<Pin> {
        let mut spins = 0;
        loop {
            match self.try_look_up_after(page, &first) {
                Ok(pin) => return Some(pin),
                Err(NotPinned::Absent) => return None,
                Err(NotPinned::Leaving) => {}
            }
            spins += 1;
            if spins < 100 { spin() } else { std::thread::yield_now() }
        }
    }

    #[inline]
    fn try_look_up_after(&self, page: PageId, first: &impl Fn(u32, FrameRef)) -> Result<Pin, NotPinned> {
        // Each time: when the tablespace is dropped meanwhile, its table may become another's.
        let index = self.spaces.directory.get(page.space).and_then(|table| table.get(page.page));
        let index = index.ok_or(NotPinned::Absent)?;
        let frame = self.frames.get(index);
        first(index, frame);
        if frame.pins.try_pin() {
            if frame.holds(page) {
                return Ok(Pin::adopt(frame));
            }
            frame.pins.unpin();
        }
        Err(NotPinned::Leaving)
    }
}
