//! Evicting all pages of a tablespace that is dropped or closed.
//!
//! Nobody may use the tablespace any more: it is marked as dropped first, so no page of it is read or moved.
//! Reads under way are waited for, and so are pins, and writes of its pages. Dirty pages of a dropped
//! tablespace are discarded; those of a closed one have been written before.

use std::sync::atomic::Ordering;

use crate::error::Error;
use crate::pool::frame::FrameRef;
use crate::store::PageStore;

/// How long a page of a tablespace that is being closed may stay pinned before that is logged: a scan that
/// reads lets go within milliseconds, but an embedding program may have forgotten a cursor.
const PATIENCE_WITH_PINS: std::time::Duration = std::time::Duration::from_secs(10);

/// Entries of a page table that are looked at as quickly as one frame's descriptor.
const TABLE_ENTRIES_PER_FRAME: u32 = 16;

impl PageStore {
    /// Evicts all pages of a dropped tablespace.
    pub(crate) async fn forget_pages(&self, space: u32, discard: bool) -> Result<(), Error> {
        for read in self.pending.of_space(space) {
            read.wait().await;
        }
        // Nobody reads the tablespace any more, so nobody applies them.
        self.forget_unapplied(space);
        self.settle_relocations();
        let began = self.env.now();
        let mut told = false;
        loop {
            let mut left = None;
            for frame in self.frames_of(space) {
                if discard && !frame.in_flight.load(Ordering::Acquire) {
                    self.flush_list.lock().discard_page_of(frame, space);
                }
                let mut lru = self.lru.lock();
                if frame.page_id().space != space || !lru.is_listed(frame.index()) {
                    continue;
                }
                // It goes with its tablespace, not for want of use.
                frame.read_ahead.store(false, Ordering::Relaxed);
                if self.evict(&mut lru, frame) {
                    drop(lru);
                    self.free.put(frame);
                } else {
                    left = Some(frame.page_id());
                }
            }
            let Some(page) = left else { return Ok(()) };
            // Pages of a write that failed stay for ever.
            self.refuse_when_poisoned()?;
            // Still pinned, or on its way to the file.
            self.batches_over().await;
            if !told && self.env.now().saturating_sub(began) >= PATIENCE_WITH_PINS {
                told = true;
                tracing::warn!("a tablespace is to be closed, but somebody keeps a pin on its page {page}");
            }
            self.env.sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    /// The frames that hold pages of an open tablespace: all of those that were published before and are not
    /// moved meanwhile.
    pub(crate) fn frames_of(&self, space: u32) -> Vec<FrameRef> {
        let Some(table) = self.spaces.directory.get(space) else { return Vec::new() };
        let (pages, frames) = (self.spaces.get(space).map_or(0, |space| space.pages()), self.free.end());
        let mut found = Vec::new();
        let mut look_at = |index: u32| {
            let frame = self.frames.get(index);
            if frame.holds_a_page() && frame.page_id().space == space {
                found.push(frame);
            }
        };
        // Whatever is less to go through: a small table must not cost a look at every frame of a large pool.
        // The page table has 4 bytes for each page, a frame's descriptor two lines of the cache.
        if pages / TABLE_ENTRIES_PER_FRAME <= frames {
            table.for_each_frame(pages, look_at);
        } else {
            (0..frames.min(self.frames.made() as u32)).for_each(&mut look_at);
        }
        found
    }
}
