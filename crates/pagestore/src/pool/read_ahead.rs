//! Read-ahead: pages that will be wanted soon are read in one batch, before anybody asks for them.
//!
//! Two kinds are decided here, by what is in memory of an *area*: 64 pages that begin at a multiple of 64.
//!
//! * **Linear** ([`PageStore::scan_reached`]): a scan that is halfway through an area has the next one read,
//!   if enough of the pages before are in memory. `innodb_read_ahead_threshold` says how many of the 64 pages
//!   of an area a scan must touch: half as many here, where half of the area is behind it. 0 switches it off.
//! * **Random** (`innodb_random_read_ahead`, off unless it is switched on): when a page of an area is missing
//!   and 13 others are in the young part of the pool, wanted by somebody, the rest of the area is read.
//!
//! Other callers name the pages themselves ([`PageStore::prefetch`]). Nothing here waits or fails; what is
//! not read ahead is read when it is asked for.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use disk::Event;
use page::PageId;

use crate::counters::Counter;
use crate::pool::frame::{FrameRef, history};
use crate::pool::free_list::Need;
use crate::pool::missing_page::Missing;
use crate::store::PageStore;

/// Pages of one area, aligned: an extent of the default page size.
const AREA: u32 = 64;
/// `innodb_read_ahead_threshold` unless it is set.
const THRESHOLD: u32 = 56;
/// Random read-ahead: this many pages of the area are in the young part.
const YOUNG_MIN: usize = 13;

/// What is set.
#[derive(Debug)]
pub(crate) struct ReadAheadSettings {
    threshold: AtomicU32,
    random: AtomicBool,
}

impl Default for ReadAheadSettings {
    fn default() -> Self {
        Self { threshold: AtomicU32::new(THRESHOLD), random: AtomicBool::new(false) }
    }
}

/// Who reads ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Somebody who knows the pages.
    Named,
    Linear,
    Random,
}

impl PageStore {
    /// Starts reading pages that will be wanted soon, those that are missing, in one batch. Never waits or
    /// fails: what cannot be read now is read when it is asked for.
    pub fn prefetch(&self, pages: &[PageId]) {
        self.read_ahead(pages, Kind::Named);
    }

    /// Sets `innodb_read_ahead_threshold`, 0 to 64: pages of an area that a scan must touch so that the next
    /// one is read. 0: linear read-ahead is off.
    pub fn set_read_ahead_threshold(&self, pages: u32) {
        self.read_ahead.threshold.store(pages.min(AREA), Ordering::Relaxed);
    }

    /// As it is now.
    pub fn read_ahead_threshold(&self) -> u32 {
        self.read_ahead.threshold.load(Ordering::Relaxed)
    }

    /// Whether random read-ahead is on.
    pub fn random_read_ahead(&self) -> bool {
        self.read_ahead.random.load(Ordering::Relaxed)
    }

    /// Switches random read-ahead on or off (`innodb_random_read_ahead`).
    pub fn set_random_read_ahead(&self, on: bool) {
        self.read_ahead.random.store(on, Ordering::Relaxed);
    }

    fn read_ahead(&self, pages: &[PageId], kind: Kind) {
        // One at a time where others wait long for their pages; who names pages needs them now.
        if kind != Kind::Named && self.foreground.is_anything_ahead() && self.foreground_comes_first() {
            return;
        }
        // Read-ahead must not push out what is in use when frames are scarce.
        let room = self.free.len() + self.lru.lock().old_len();
        let started = self.start_reads(&pages[..pages.len().min(room.max(16))], |frame| {
            frame.read_ahead.store(true, Ordering::Relaxed);
            if kind == Kind::Linear {
                frame.note(history::SCAN);
            }
        });
        let counter = if kind == Kind::Random { Counter::ReadAheadRandom } else { Counter::ReadAhead };
        self.counters.add(counter, started.len() as u64);
    }

    /// Starts to read those of the pages that are missing, in one batch, as far as there are frames. The
    /// events say when each read is over, well or badly.
    pub(crate) fn start_reads(&self, pages: &[PageId], note: impl Fn(FrameRef)) -> Vec<Event> {
        let (mut batch, mut events) = (Vec::new(), Vec::new());
        for page in pages {
            // Before a frame is taken for it, which may be the last one.
            if self.look_up(*page).is_some() || self.is_being_read(*page) {
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
        let threshold = self.read_ahead.threshold.load(Ordering::Relaxed);
        let Ok(space) = self.open_space_of(page.space) else { return };
        let first = page.page - AREA / 2;
        let next = first.saturating_add(AREA);
        let end = next.saturating_add(AREA).min(space.pages());
        if threshold == 0 || next >= end || self.free.waiting() > 0 {
            return;
        }
        let present = (first..page.page).filter(|page| self.look_up(PageId::new(space.id, *page)).is_some());
        if present.count() >= threshold.div_ceil(2) as usize {
            let wanted: Vec<PageId> = (next..end).map(|page| PageId::new(space.id, page)).collect();
            self.read_ahead(&wanted, Kind::Linear);
        }
    }

    /// Random read-ahead: says that the read of `page`, which was missing, has been started.
    #[inline]
    pub(super) fn page_was_missing(&self, page: PageId) {
        if self.read_ahead.random.load(Ordering::Relaxed) {
            self.read_area_around(page);
        }
    }

    #[cold]
    fn read_area_around(&self, asked: PageId) {
        let Ok(space) = self.open_space_of(asked.space) else { return };
        if self.free.waiting() > 0 {
            return;
        }
        let first = asked.page / AREA * AREA;
        let area = first..first.saturating_add(AREA).min(space.pages());
        // As long as nothing was ever evicted no page is older than the others.
        let nothing_evicted = self.freed_clock.load(Ordering::Relaxed) == 0;
        let mut missing = Vec::with_capacity(AREA as usize);
        let mut young = 0;
        for page in area.map(|page| PageId::new(space.id, page)) {
            match self.look_up(page) {
                Some(pin) => young += usize::from(pin.frame().was_wanted_lately(nothing_evicted)),
                // Its read has been started.
                None if page == asked => {}
                None => missing.push(page),
            }
        }
        if young >= YOUNG_MIN {
            self.read_ahead(&missing, Kind::Random);
        }
    }
}
