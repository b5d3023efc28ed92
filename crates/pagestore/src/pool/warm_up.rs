//! Loading the pages that were in the buffer pool before a restart.
//!
//! Their list is read from the file `ib_buffer_pool` by the crate above (`src/buffer_pool_dump.rs`).
//! The list of pages is a hint and nothing else: a page that is not there any more, or that cannot be
//! read, is left out. Each enters the LRU list at its end: it is colder than those before it. Only
//! frames that are free are used: what is in use is never evicted for what was in use before. How
//! much of the device the warm-up takes beside clients is decided in `warm_up_pace.rs`.
//!
//! **Order.** The hottest come first, in portions that are sorted. Where most pages of an area were in
//! memory, the first of them brings the others along, though they be colder: neighbours that are submitted
//! together are one request to the device, and volumes have more bytes to give than requests. Areas of few
//! pages are left to their heat: nothing is gained by reading what lies between.

use std::collections::{HashMap, VecDeque};
use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use disk::Event;
use page::PageId;

use crate::counters::Counter;
use crate::pool::frame::history;
use crate::pool::warm_up_pace::{Pace, Seen, Way};
use crate::store::PageStore;

/// Pages sorted together: what follows is colder.
const PORTION: usize = 2048;
/// Pages of an aligned area: 256 KiB of usual pages, which volumes of clouds count as one request.
const AREA: u32 = 16;
/// An area with this many pages in the list is read as a whole.
const AREA_PRESENT_MIN: usize = 8;
/// This part of the frames stays free for those who need one.
const KEPT_FREE: usize = 64;
/// The longest rest between two requests.
const REST_MAX: Duration = Duration::from_millis(100);

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
    pages: Vec<PageId>,
    go_on: impl Fn(usize) -> bool + Send,
) -> WarmUp {
    let pages = reading_order(pages);
    let (mut tried, mut pace) = (0, None);
    let mut under_way: VecDeque<(Vec<Event>, Duration)> = VecDeque::new();
    while tried < pages.len() {
        let (way, env, now) = {
            let Some(store) = store.upgrade().filter(|store| store.may_warm_up()) else {
                return WarmUp::Stopped;
            };
            let (now, seen) = (store.env.now(), store.reads_seen());
            let way = pace.get_or_insert_with(|| Pace::new(now, seen)).way(now, seen);
            (way, store.env.clone(), now)
        };
        if under_way.len() >= way.under_way() {
            let Some((reads, began)) = under_way.pop_front() else { continue };
            all(reads).await;
            if way == Way::Polite {
                env.sleep(env.now().saturating_sub(began).min(REST_MAX)).await;
            }
            continue;
        }
        let some = &pages[tried..pages.len().min(tried + way.together())];
        let reads = {
            let Some(store) = store.upgrade() else { return WarmUp::Stopped };
            if store.free.len() < store.frame_count() / KEPT_FREE + some.len() {
                return WarmUp::Full;
            }
            store.start_reads(some, |frame| frame.note(history::COLDER))
        };
        under_way.push_back((reads, now));
        tried += some.len();
        if !go_on(tried) {
            return WarmUp::Stopped;
        }
    }
    for (reads, _) in under_way {
        all(reads).await;
    }
    WarmUp::Complete
}

async fn all(reads: Vec<Event>) {
    for read in reads {
        read.wait().await;
    }
}

/// The pages, hottest first, in the order to read them in.
fn reading_order(pages: Vec<PageId>) -> Vec<PageId> {
    let area = |page: &PageId| (page.space, page.page / AREA);
    let mut areas: HashMap<_, Vec<PageId>> = HashMap::new();
    for page in &pages {
        areas.entry(area(page)).or_default().push(*page);
    }
    let mut order = Vec::with_capacity(pages.len());
    for portion in pages.chunks(PORTION) {
        let begin = order.len();
        for page in portion {
            match areas.get_mut(&area(page)) {
                // Emptied when its first page came along.
                Some(present) if present.is_empty() => {}
                Some(present) if present.len() >= AREA_PRESENT_MIN => order.append(present),
                _ => order.push(*page),
            }
        }
        order[begin..].sort_unstable();
    }
    order
}

impl PageStore {
    fn reads_seen(&self) -> Seen {
        Seen { all: self.counters.sum(Counter::PagesRead), asked: self.counters.sum(Counter::Reads) }
    }

    fn may_warm_up(&self) -> bool {
        !self.stopping.load(Ordering::Acquire) && self.poisoned().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::{AREA_PRESENT_MIN, PORTION, PageId, reading_order};

    fn pages(space: u32, pages: impl IntoIterator<Item = u32>) -> Vec<PageId> {
        pages.into_iter().map(|page| PageId::new(space, page)).collect()
    }

    #[test]
    fn a_page_of_a_dense_area_brings_its_neighbours_along_once() {
        // The hottest page of the area, then more than a portion of single pages, then the rest of the area.
        let lonely = pages(2, (0..PORTION as u32 + 5).map(|at| at * 100));
        let dense = pages(1, (16..16 + AREA_PRESENT_MIN as u32).rev());
        let list = [&dense[..1], &lonely, &dense[1..]].concat();
        let order = reading_order(list.clone());
        assert_eq!(order[..dense.len()], pages(1, 16..16 + AREA_PRESENT_MIN as u32));
        let sorted = |mut pages: Vec<PageId>| {
            pages.sort_unstable();
            pages
        };
        assert_eq!(sorted(order), sorted(list), "every page once");
    }

    #[test]
    fn pages_of_sparse_areas_come_by_their_heat() {
        let hot = pages(1, (0..PORTION as u32).rev().map(|at| at * 16));
        let cold = pages(1, [1, 2, 3]);
        let order = reading_order([hot.clone(), cold.clone()].concat());
        assert_eq!(order[..PORTION], pages(1, (0..PORTION as u32).map(|at| at * 16)));
        assert_eq!(order[PORTION..], cold);
    }
}
