//! Loading the pages that were in the buffer pool before a restart.
//!
//! Their list is read from the file `ib_buffer_pool` by the crate above (`src/buffer_pool_dump.rs`). The list
//! of pages is a hint and nothing else: a page that is not there any more, or that cannot be read, is left
//! out. The hottest come first, in portions that are sorted, so that neighbours are read one after the other.
//! Only frames that are free are used, and few reads are under way at a time: a request for a page finds a
//! short queue, and what is in use is never evicted for what was in use before.

use std::sync::Weak;
use std::sync::atomic::Ordering;

use page::PageId;

use crate::store::PageStore;

/// Pages sorted together: what follows is colder.
const PORTION: usize = 2048;
/// Reads under way at a time.
const TOGETHER: usize = 32;
/// This part of the frames stays free for those who need one.
const KEPT_FREE: usize = 64;

/// How a warm-up ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUp {
    /// All pages were tried.
    Complete,
    /// No more free frames.
    Full,
    /// It was told to stop, or the store was closed.
    Stopped,
}

/// Reads these pages, hottest first. `go_on` is told after each few how many were tried, and says whether to
/// go on. Holds the store only while it works, so that the store can be closed.
pub async fn warm_up(
    store: Weak<PageStore>,
    mut pages: Vec<PageId>,
    go_on: impl Fn(usize) -> bool + Send,
) -> WarmUp {
    let mut tried = 0;
    for portion in pages.chunks_mut(PORTION) {
        portion.sort_unstable();
        for some in portion.chunks(TOGETHER) {
            let reads = {
                let Some(store) = store.upgrade().filter(|store| store.may_warm_up()) else {
                    return WarmUp::Stopped;
                };
                if store.free.len() < store.frame_count() / KEPT_FREE + TOGETHER {
                    return WarmUp::Full;
                }
                store.start_reads(some, |_| {})
            };
            for read in reads {
                read.wait().await;
            }
            tried += some.len();
            if !go_on(tried) {
                return WarmUp::Stopped;
            }
        }
    }
    WarmUp::Complete
}

impl PageStore {
    fn may_warm_up(&self) -> bool {
        !self.stopping.load(Ordering::Acquire) && self.poisoned().is_none()
    }
}
