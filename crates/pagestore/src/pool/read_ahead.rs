//! Read-ahead: pages that will be wanted soon are read in one batch, before anybody asks for them.
//!
//! Linear read-ahead is decided here ([`PageStore::scan_reached`]). Other callers name the pages themselves
//! ([`PageStore::prefetch`]). Nothing here waits or fails; what is not read ahead is read when it is asked
//! for.

use std::sync::atomic::Ordering;

use disk::Event;
use page::PageId;

use crate::counters::Counter;
use crate::pool::frame::{FrameRef, history};
use crate::pool::free_list::Need;
use crate::pool::missing_page::Missing;
use crate::store::PageStore;

/// Pages of one area of linear read-ahead, aligned: an extent of the default page size.
const AREA: u32 = 64;
/// Halfway through an area the next one is read if at least this many of the pages before are in memory.
const AREA_PRESENT_MIN: usize = 24;

impl PageStore {
    /// Starts reading pages that will be wanted soon, those that are missing, in one batch. Never waits or
    /// fails: what cannot be read now is read when it is asked for.
    pub fn prefetch(&self, pages: &[PageId]) {
        self.read_ahead(pages, false);
    }

    fn read_ahead(&self, pages: &[PageId], of_scan: bool) {
        // Read-ahead must not push out what is in use when frames are scarce.
        let room = self.free.len() + self.lru.lock().old_len();
        let started = self.start_reads(&pages[..pages.len().min(room.max(16))], |frame| {
            frame.read_ahead.store(true, Ordering::Relaxed);
            if of_scan {
                frame.note(history::SCAN);
            }
        });
        self.counters.add(Counter::ReadAhead, started.len() as u64);
    }

    /// Starts to read those of the pages that are missing, in one batch, as far as there are frames. The
    /// events say when each read is over, well or badly.
    pub(crate) fn start_reads(&self, pages: &[PageId], note: impl Fn(FrameRef)) -> Vec<Event> {
        let (mut batch, mut events) = (Vec::new(), Vec::new());
        for page in pages {
            if self.look_up(*page).is_some() {
                continue;
            }
            let Ok(space) = self.open_space_of(page.space) else { continue };
            let Some(frame) = self.take_frame(Need::Usual) else { break };
            if let Ok(Missing::Start(start)) = self.enter_read(*page, space, frame, false) {
                note(frame);
                events.push(start.over);
                batch.push((start.file, start.io));
            }
        }
        if !batch.is_empty() {
            self.env.storage().submit(batch);
        }
        events
    }

    /// Linear read-ahead: says that a scan has come to `page` from the page before it. Halfway through an
    /// aligned area of 64 pages, with most of the first half in memory, the next area is read in the
    /// background. So each area is considered once per scan, and short ranges here and there read nothing
    /// ahead.
    #[inline]
    pub fn scan_reached(&self, page: PageId) {
        if page.page % AREA == AREA / 2 {
            self.read_next_area(page);
        }
    }

    #[cold]
    fn read_next_area(&self, page: PageId) {
        let Ok(space) = self.open_space_of(page.space) else { return };
        let first = page.page - AREA / 2;
        let next = first.saturating_add(AREA);
        let end = next.saturating_add(AREA).min(space.pages());
        if next >= end || self.free.waiting() > 0 {
            return;
        }
        let present = (first..page.page).filter(|page| self.look_up(PageId::new(space.id, *page)).is_some());
        if present.count() >= AREA_PRESENT_MIN {
            let wanted: Vec<PageId> = (next..end).map(|page| PageId::new(space.id, page)).collect();
            self.read_ahead(&wanted, true);
        }
    }
}
