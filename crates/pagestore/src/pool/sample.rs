//! A look at what the pool holds: some of its frames, evenly spread.

use std::sync::atomic::Ordering;

use page::PageId;

use crate::pool::guard::Pin;
use crate::store::PageStore;

/// Where a page of an index says of which.
const INDEX_ID: usize = 66;

/// A page that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampledPage {
    /// Which.
    pub id: PageId,
    /// The number of the index it is of, if it is of one and nobody was writing to it.
    pub index: Option<u64>,
    /// It is changed, and not yet in its file.
    pub dirty: bool,
}

impl PageStore {
    /// Looks at `most` frames, others at another `turn`. It waits for nothing.
    #[must_use]
    pub fn sample_pool(&self, most: usize, turn: usize) -> Vec<SampledPage> {
        // Those behind have never held a page.
        let frames = (self.free.end() as usize).min(self.frames.made());
        let step = (frames / most.max(1)).max(1);
        let looked_at = (turn % step..frames).step_by(step).take(most);
        looked_at.filter_map(|index| self.look_at(index as u32)).collect()
    }

    fn look_at(&self, index: u32) -> Option<SampledPage> {
        let frame = self.frames.get(index);
        if !frame.holds_a_page() || !frame.pins.try_pin() {
            return None;
        }
        let pin = Pin::adopt(frame);
        let (id, dirty) = (frame.page_id(), frame.oldest.load(Ordering::Relaxed) != 0);
        let index = pin.try_into_read().and_then(|page| {
            let is_index = page::page_type(&page) == page::kind::INDEX;
            is_index.then(|| page::u64_at(&page, INDEX_ID))
        });
        Some(SampledPage { id, index, dirty })
    }
}
