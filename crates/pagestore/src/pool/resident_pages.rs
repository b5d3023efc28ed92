//! Which pages are in memory, for a dump of the pool.
//!
//! Those who use pages may need the LRU list's mutex, and to walk the list of a large pool takes seconds. So
//! it is walked in portions, and between two of them the list changes. The walk goes on behind a frame that
//! lies where it was, beside the one before it: most do. Pages that came or moved meanwhile may be left out,
//! or come twice, which in a hint is harmless. There are no more portions than the list had when the walk
//! began.

use page::PageId;

use crate::store::PageStore;

/// Pages looked at without letting the LRU list go.
const PORTION: usize = 4096;

impl PageStore {
    /// The pages in memory, most recently used first, at most `max` of them (`ib_buffer_pool` dump). While
    /// they are gathered pages may come, go and move: then some are left out, or come twice.
    #[must_use]
    pub fn resident_pages(&self, max: usize) -> Vec<PageId> {
        self.resident_pages_in(max, PORTION, || ())
    }

    /// In portions of at least two pages; `between` is called between two of them.
    pub(crate) fn resident_pages_in(
        &self,
        max: usize,
        portion: usize,
        mut between: impl FnMut(),
    ) -> Vec<PageId> {
        let most = max.min(self.lru.lock().len());
        // Not under the mutex.
        let mut pages = Vec::with_capacity(most);
        let mut visited: Vec<u32> = Vec::with_capacity(portion + 1);
        loop {
            let before = pages.len();
            {
                let lru = self.lru.lock();
                let still = |pair: &&[u32]| lru.older(pair[0]) == Some(pair[1]);
                let last = visited.windows(2).rev().find(still).map(|pair| pair[1]);
                if last.is_none() && before > 0 {
                    break;
                }
                visited.clear();
                visited.extend(last);
                let wanted = portion.min(most - before);
                for index in lru.youngest_first_after(last).take(wanted) {
                    visited.push(index);
                    pages.push(self.frames.get(index).page_id());
                }
            }
            if pages.len() == most || pages.len() == before {
                break;
            }
            between();
        }
        pages
    }
}
