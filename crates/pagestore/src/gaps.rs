//! Gaps between pages that are written: filled, so that one request writes what would take several.
//!
//! A device that is limited by requests (a cloud volume, a disk) asks as much for a page as for ten that lie side by side.
//! Pages that are written to be evicted lie near each other, because what is hot is, but rarely side by side: with one
//! page in four dirty, three requests of four write a single page. So the pages between them are written along, with the
//! very bytes that their file holds. A page of the gap may be in the pool, clean or young and dirty; most are not. Those are
//! read from the clean tier, which costs the slow device nothing: this is how a tier of clean pages helps writes.
//!
//! ```text
//!   dirty        D . . D D . D           . not in the pool, in the tier
//!   requests     1     1   1 .           plain: three
//!   filled       D t t D D t D           one, of seven pages
//! ```
//!
//! How far that pays is a matter of what a request costs in bytes: [`REQUEST_WORTH`]. Where writes are merged plainly, a
//! gap of up to that many pages is filled. Where only aligned powers of two go together (atomic writes), a block is completed
//! when each request that it saves costs no more pages than that.
//!
//! It is done only with a clean tier in use, that is, with data files that measure clearly slower than a local disk: on a
//! device that is limited by bytes, or wears out, pages written in vain are no gain. A gap is filled whole or not at all.
//!
//! **Why it is safe.** A page that is not in the pool is kept out of it ([`PageStore::keep_out`]) from before it is looked
//! up in the tier until the write is over: whoever wants it waits, as for a read. So nobody can change it and write it
//! meanwhile, and what the tier has of it stays current. What comes from the tier is verified like any page that is
//! read; a page that is not what it should be leaves the batch, and the gap stays open. A clean page of the pool is pinned and
//! marked as in flight like a dirty one, so that it is neither evicted nor written a second time. To the writer all are pages
//! like others: protected against tearing, synced, counted.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use disk::{PageId, Stretches};

use crate::candidate::Candidate;
use crate::counters::Counter;
use crate::frame::FrameRef;
use crate::reads::KeptOut;
use crate::space::Space;
use crate::store::PageStore;
use crate::tier::{CleanTier, Found};

/// A request saved is worth writing so many pages more, of the default page size: 3000 requests/s and 160 MB/s, as a
/// cloud volume has, are 53 KB for each request.
const REQUEST_WORTH: usize = 2;
/// Pages of the largest block that is completed: what a cloud volume counts as one request is 256 KiB.
const BLOCK_MAX: u32 = 16;

impl PageStore {
    /// Sorts the pages, which are reserved, and adds those that join them.
    pub(crate) fn fill_gaps(&self, dirty: Vec<FrameRef>) -> Vec<Candidate> {
        let mut candidates: Vec<Candidate> = dirty.into_iter().map(Candidate::Dirty).collect();
        candidates.sort_unstable_by_key(Candidate::page_id);
        let Some(tier) = self.tier_to_use().filter(|tier| tier.pays()) else { return candidates };
        let mut fillers = Vec::new();
        let mut room = self.flight_room().min(4 * candidates.len());
        let pages: Vec<PageId> = candidates.iter().map(Candidate::page_id).collect();
        for of_space in pages.chunk_by(|a, b| a.space == b.space) {
            let Ok(space) = self.spaces.get(of_space[0].space) else { continue };
            let numbers: Vec<u32> = of_space.iter().map(|id| id.page).collect();
            let filling = &mut Filling {
                store: self,
                tier: &tier,
                space: &space,
                fillers: &mut fillers,
                room: &mut room,
            };
            match self.writer.stretches(&space.file) {
                Stretches::Single => {}
                Stretches::Merged => filling.join(&numbers),
                Stretches::Aligned { longest } => {
                    let most = (longest / self.page_size.bytes() as u64).min(u64::from(BLOCK_MAX)) as u32;
                    filling.complete_blocks(&numbers, most.max(1));
                }
            }
        }
        self.counters.add(Counter::GapPages, fillers.len() as u64);
        candidates.append(&mut fillers);
        candidates.sort_unstable_by_key(Candidate::page_id);
        candidates
    }

    /// Pins a page of the pool that may be written along: a clean one, or a dirty one that nobody is changing.
    fn reserve_present(&self, frame: FrameRef, id: PageId) -> Option<Candidate> {
        if self.reserve_for_flush(frame) {
            if frame.holds(id) {
                return Some(Candidate::Dirty(frame));
            }
            self.release(frame);
            return None;
        }
        if !frame.pins.try_pin() {
            return None;
        }
        if frame.holds(id) && !frame.is_dirty() && !frame.in_flight.swap(true, Ordering::AcqRel) {
            self.in_flight.fetch_add(1, Ordering::Relaxed);
            return Some(Candidate::Clean(frame));
        }
        frame.pins.unpin();
        None
    }
}

/// The gaps of one tablespace being filled.
struct Filling<'a> {
    store: &'a PageStore,
    tier: &'a Arc<dyn CleanTier>,
    space: &'a Space,
    fillers: &'a mut Vec<Candidate>,
    room: &'a mut usize,
}

impl Filling<'_> {
    /// Closes the gaps between the pages (ascending) that are small enough.
    fn join(&mut self, pages: &[u32]) {
        for pair in pages.windows(2) {
            let gap: Vec<u32> = (pair[0] + 1..pair[1]).take(REQUEST_WORTH + 1).collect();
            if (1..=REQUEST_WORTH).contains(&gap.len()) {
                self.fill(&gap);
            }
        }
    }

    /// Completes aligned blocks of up to `most` pages, a power of two.
    fn complete_blocks(&mut self, pages: &[u32], most: u32) {
        let most = most.min(std::env::var("BLOCK").ok().and_then(|v| v.parse().ok()).unwrap_or(4));
        for block in pages.chunk_by(|a, b| a / most == b / most) {
            let first = block[0] / most * most;
            let table = self.store.spaces.directory.get(self.space.id).unwrap();
            let mut all = block.to_vec();
            for page in first..first + most {
                if block.binary_search(&page).is_err()
                    && let Some(index) = table.get(page)
                    && self.store.frames.get(index).is_dirty()
                {
                    all.push(page);
                }
            }
            all.sort_unstable();
            self.complete(&all, block, first, most);
        }
    }

    /// The block, or else its halves.
    fn complete(&mut self, pages: &[u32], had: &[u32], first: u32, len: u32) {
        if pages.len() < 2 || len < 2 || had.is_empty() {
            return;
        }
        let halves = cost_of_halves(pages, first, len);
        let whole = Cost { requests: 1, pages: len };
        if whole.requests <= halves.requests && whole.worth() <= halves.worth() {
            let missing: Vec<u32> =
                (first..first + len).filter(|page| had.binary_search(page).is_err()).collect();
            if self.fill(&missing) {
                return;
            }
        }
        let (low, high) = pages.split_at(pages.partition_point(|page| *page < first + len / 2));
        let (had_low, had_high) = had.split_at(had.partition_point(|page| *page < first + len / 2));
        self.complete(low, had_low, first, len / 2);
        self.complete(high, had_high, first + len / 2, len / 2);
    }

    /// Adds all of these pages or none.
    fn fill(&mut self, gap: &[u32]) -> bool {
        if gap.len() > *self.room {
            return false;
        }
        let before = self.fillers.len();
        for page in gap {
            let Some(filler) = self.filler(PageId::new(self.space.id, *page)) else {
                for filler in self.fillers.drain(before..) {
                    self.store.give_back(filler);
                }
                return false;
            };
            self.fillers.push(filler);
        }
        *self.room -= gap.len();
        true
    }

    fn filler(&self, id: PageId) -> Option<Candidate> {
        let table = self.store.spaces.directory.get(id.space)?;
        if let Some(index) = table.get(id.page) {
            return self.store.reserve_present(self.store.frames.get(index), id);
        }
        // First of all kept out of the pool: what the tier has is current from then on.
        let kept_out = self.store.keep_out(id, self.space)?;
        let found = self.tier.find_for_rewrite(id)?;
        Some(Candidate::Absent(Absent { kept_out, tier: self.tier.clone(), found }))
    }
}

/// A page of a gap that is not in the pool.
pub(crate) struct Absent {
    pub(crate) kept_out: KeptOut,
    /// The one that was asked, which may not be the store's any more.
    pub(crate) tier: Arc<dyn CleanTier>,
    pub(crate) found: Found,
}

/// What it takes to write the pages of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cost {
    requests: u32,
    pages: u32,
}

impl Cost {
    /// In pages.
    fn worth(self) -> u32 {
        self.requests * REQUEST_WORTH as u32 + self.pages
    }
}

/// The least cost of the pages (ascending) of an aligned block.
fn cost(pages: &[u32], first: u32, len: u32) -> Cost {
    match pages.len() as u32 {
        0 => Cost { requests: 0, pages: 0 },
        1 => Cost { requests: 1, pages: 1 },
        all if all == len => Cost { requests: 1, pages: len },
        _ => {
            let halves = cost_of_halves(pages, first, len);
            let whole = Cost { requests: 1, pages: len };
            if whole.worth() <= halves.worth() { whole } else { halves }
        }
    }
}

fn cost_of_halves(pages: &[u32], first: u32, len: u32) -> Cost {
    let (low, high) = pages.split_at(pages.partition_point(|page| *page < first + len / 2));
    let (low, high) = (cost(low, first, len / 2), cost(high, first + len / 2, len / 2));
    Cost { requests: low.requests + high.requests, pages: low.pages + high.pages }
}
