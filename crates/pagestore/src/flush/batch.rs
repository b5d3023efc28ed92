//! Batches of dirty pages on their way to the files.
//!
//! The pages were [reserved](crate::flush::reservation) before. One joins a batch in one short step: S latch
//! (tried, never waited for: the holder of the X latch may be waiting for a frame that this very write makes
//! free), moved from the flush list into the batch, image copied and sealed. The batch then becomes a
//! background task of its own: make the log durable up to the newest LSN in it (the WAL rule), hand it to the
//! [`PageWriter`](page::PageWriter), and when that says that every page is in its file, end the batch. A page
//! is clean from its copying on, but until the batch ends the checkpoint still reckons with it. What the
//! writer left unsynced is synced before the next checkpoint ([`crate::flush::syncing`]); until then the log
//! holds every change of these pages. Meanwhile they may change again; they stay pinned, so that nobody
//! evicts a page whose newest bytes are not in its file yet, and marked, so that nobody writes it twice at
//! the same time.
//!
//! No more than half of the pool is in flight at a time, and in a small pool batches are small too, so that
//! frames come back in steady portions. When somebody waits for a frame, the pages of a finished batch are
//! evicted at once.
//!
//! A write error poisons the store: pages of the failed batch stay pinned in memory and in the checkpoint's
//! account.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use disk::Event;
use page::{FlushPurpose, WriteBatch};
use redo::{Flush, Lsn};

use crate::counters::Counter;
use crate::error::Error;
use crate::flush::feeder;
use crate::flush::flush_list::BatchId;
use crate::flush::reason::WriteReason;
use crate::pool::frame::FrameRef;
use crate::pool::guard::Pin;
use crate::space::registry::Space;
use crate::store::PageStore;

/// Pages of one batch, at most.
pub(super) const BATCH_PAGES: usize = 128;
/// Batches under way at most.
pub(super) const BATCHES_MAX: usize = 8;
/// Emptied batches kept for the next use, per purpose.
const SPARE_BATCHES: usize = 4;

/// A batch of page images with what has to be undone when they are in their files.
struct Batch {
    store: Arc<PageStore>,
    id: BatchId,
    /// Taken by the writer.
    images: Option<WriteBatch>,
    /// One for each image, pinned and marked as in flight.
    frames: Vec<FrameRef>,
    /// How many of them are written to be evicted.
    victims: usize,
    newest: Lsn,
    reason: WriteReason,
    /// Written, and nothing of it is left to be synced.
    durable: bool,
    /// Set when the batch is over, well or badly.
    over: Event,
}

/// What a round of collecting did.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    /// Pages on their way.
    pub(crate) pages: usize,
    /// Dirty pages that were latched or in flight and must be looked at again.
    pub(crate) skipped: usize,
    /// Set when the batches that were started are over, each its own.
    pub(crate) over: Vec<Event>,
}

/// A page of a batch that is over.
struct Written {
    frame: FrameRef,
    /// It was written to be evicted.
    victim: bool,
}

/// A batch under way, for those who wait for it.
#[derive(Clone)]
pub(crate) struct UnderWay {
    /// Why it is written.
    purpose: FlushPurpose,
    /// Set when it is over.
    over: Event,
    /// Setting it has it written as fast as the storage can.
    hurry: Event,
}

impl UnderWay {
    /// Set when it is over.
    #[cfg(test)]
    pub(crate) fn over(&self) -> &Event {
        &self.over
    }
}

/// How many batches are under way, by purpose.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BatchesUnderWay {
    pub(crate) checkpoint: usize,
    pub(crate) lru: usize,
}

impl BatchesUnderWay {
    pub(crate) fn all(self) -> usize {
        self.checkpoint + self.lru
    }

    /// How many more may start to move the checkpoint on, where it may have `most` at a time. Evicting pages
    /// leaves it one in any case, and half of them where the log is nearly full: pages that never come to
    /// the end of the LRU list are written by nobody else.
    pub(crate) fn checkpoint_room(self, most: usize, urgent: bool) -> usize {
        let least = if urgent { BATCHES_MAX / 2 } else { 1 };
        // One is left to those who wait for frames.
        let most = most.min(BATCHES_MAX - 1);
        most.min(BATCHES_MAX.saturating_sub(self.lru)).max(least).saturating_sub(self.checkpoint)
    }

    /// How many more may start to make frames free: half of all at least.
    pub(crate) fn lru_room(self) -> usize {
        let most = BATCHES_MAX - self.checkpoint.clamp(1, BATCHES_MAX / 2);
        most.saturating_sub(self.lru)
    }
}

impl PageStore {
    /// How many batches are under way.
    pub(crate) fn batches_under_way(&self) -> BatchesUnderWay {
        let mut count = BatchesUnderWay::default();
        for batch in &*self.batches.lock() {
            match batch.purpose {
                FlushPurpose::Checkpoint => count.checkpoint += 1,
                FlushPurpose::Lru => count.lru += 1,
            }
        }
        count
    }

    /// Pages of one batch in this pool.
    pub(crate) fn batch_pages(&self) -> usize {
        BATCH_PAGES.min(self.frame_count() / 4)
    }

    /// Copies the reserved pages into batches and starts those.
    pub(crate) fn start_batches(
        &self,
        mut candidates: Vec<FrameRef>,
        reason: WriteReason,
        spread: Duration,
    ) -> Collected {
        let mut collected = Collected::default();
        // Files are written in order where the order does not matter otherwise.
        candidates.sort_unstable_by_key(|frame| frame.page_id());
        let mut spaces = HashMap::new();
        // Once: the pool may be resized meanwhile.
        let batch_pages = self.batch_pages();
        for chunk in candidates.chunks(batch_pages) {
            let mut batch = self.new_batch(reason, batch_pages);
            batch.spread(spread);
            for frame in chunk {
                if batch.add(*frame, &mut spaces) {
                    collected.pages += 1;
                } else {
                    collected.skipped += 1;
                    self.release(*frame);
                }
            }
            if !batch.frames.is_empty() {
                collected.over.push(batch.over.clone());
            }
            batch.start(&self.env.clone());
        }
        collected
    }

    fn new_batch(&self, reason: WriteReason, pages: usize) -> Batch {
        let purpose = reason.purpose();
        let mut spare = self.spare_batches.lock();
        // Those of a pool that had another size go.
        spare.retain(|batch| batch.purpose != purpose || batch.capacity() == pages);
        let kept = spare.iter().position(|batch| batch.purpose == purpose);
        let images = kept.map_or_else(
            || WriteBatch::new(self.page_size.bytes(), pages, purpose),
            |index| spare.swap_remove(index),
        );
        drop(spare);
        let (id, over) = (self.flush_list.lock().begin_batch(), Event::new());
        let hurry = images.spread.hurry.clone();
        self.batches.lock().push(UnderWay { purpose, over: over.clone(), hurry });
        let (store, frames, newest) = (self.this(), Vec::new(), Lsn(0));
        Batch { store, id, images: Some(images), frames, victims: 0, newest, reason, durable: false, over }
    }

    /// Evicts written pages for those who wait for a frame, and those whose frames are to leave the pool.
    fn evict_written(&self, pages: &[Written], reason: WriteReason) {
        if !self.free.is_wanted() {
            return;
        }
        let waiting = self.free.waiting();
        let victims_only = reason == WriteReason::Frames;
        let mut wanted = if victims_only && waiting > 0 { pages.len() } else { waiting };
        let mut evicted = Vec::new();
        {
            let mut lru = self.lru.lock();
            for &Written { frame, victim } in pages {
                let leaving = self.free.is_leaving(frame);
                let may_go = victim || !victims_only;
                if (leaving || (may_go && wanted > 0)) && self.evict(&mut lru, frame) {
                    wanted -= usize::from(!leaving);
                    evicted.push(frame);
                }
            }
        }
        for frame in evicted {
            self.free.put(frame);
        }
    }

    /// Waits until the batches that are under way now are over. They no longer take their time.
    pub(crate) async fn batches_over(&self) {
        let under_way = self.batches.lock().clone();
        under_way.iter().for_each(|batch| batch.hurry.set());
        for batch in under_way {
            batch.over.wait().await;
        }
    }

    /// Has the batches that are under way now written as fast as the storage can.
    pub(crate) fn hurry_batches(&self) {
        self.batches.lock().iter().for_each(|batch| batch.hurry.set());
    }
}

impl Batch {
    /// Copies a reserved page into the batch. False when it is latched by a writer or clean by now.
    fn add(&mut self, frame: FrameRef, spaces: &mut HashMap<u32, Option<Arc<Space>>>) -> bool {
        let Some(images) = &mut self.images else { return false };
        let Some(latched) = Pin::another(frame).try_into_read() else { return false };
        let id = latched.page_id();
        let space = spaces.entry(id.space).or_insert_with(|| self.store.spaces.get(id.space).ok());
        let Some(space) = space.as_ref().filter(|space| !space.is_dropped()) else { return false };
        let moved = self.store.flush_list.lock().move_to_batch(self.id, frame);
        let Some(start) = moved else { return false };
        if space.note_write() {
            self.store.first_writes.lock().push(space.id);
        }
        let offset = self.store.page_size.offset_of(id.page);
        let image = images.push(id, space.file().clone(), offset);
        image.copy_from_slice(&latched);
        debug_assert_eq!(page::lsn(image), frame.newest.load(Ordering::Relaxed), "page {id}");
        debug_assert!(page::identity(image) == id, "page {id} does not say so: it was never initialised");
        let lsn = Lsn(page::lsn(image));
        page::seal(image, lsn);
        self.newest = self.newest.max(lsn);
        // The checkpoint stays at or before `start` until this write is durable, so recovery finds the
        // initialisation in the log and never reads the page (docs/internals/page-writes.md).
        if frame.created.load(Ordering::Relaxed) >= start.0 {
            images.mark_recreatable();
        }
        self.frames.push(frame);
        true
    }

    /// All of its writes may take this long.
    fn spread(&mut self, spread: Duration) {
        if let Some(images) = &mut self.images {
            images.spread.time = spread;
        }
    }

    fn start(mut self, env: &Arc<dyn disk::Environment>) {
        if self.frames.is_empty() {
            self.come_to_nothing();
            return;
        }
        self.victims = self.frames.iter().filter(|frame| frame.victim.load(Ordering::Relaxed)).count();
        self.store.victims_in_flight.fetch_add(self.victims, Ordering::Relaxed);
        env.spawn("page write", Box::pin(self.run()));
    }

    async fn run(mut self) {
        match self.write().await {
            Ok(()) => self.finish(),
            Err(error) => {
                // Dropping the unfinished batch poisons; this reason comes first.
                self.store.poison(&format!("writing pages failed: {error}"));
            }
        }
    }

    async fn write(&mut self) -> Result<(), Error> {
        let Some(images) = self.images.take() else { unreachable!("a batch is written once") };
        if !self.store.skips_wal() {
            self.store.redo.flush_async(self.newest, Flush::Sync).await?;
        }
        let written = self.store.writer.write(images).await?;
        let pages = written.batch.len() as u64;
        self.store.counters.add(Counter::PagesFlushed, pages);
        self.store.written_for.add(self.reason, pages);
        self.durable = written.durable;
        self.images = Some(written.batch);
        Ok(())
    }

    /// No page could be added. Nobody is told that a batch is over: no frame comes of it, and the cleaner,
    /// which may be the one who tried, would look again at once and for ever.
    fn come_to_nothing(&mut self) {
        self.store.flush_list.lock().end_batch(self.id, true);
        self.keep_memory();
        self.end();
    }

    /// The pages are in their files.
    fn finish(&mut self) {
        let frames = std::mem::take(&mut self.frames);
        let mut written = Vec::with_capacity(frames.len());
        written
            .extend(frames.iter().map(|frame| Written { frame: *frame, victim: self.store.written(*frame) }));
        // What was written to be evicted may be gone before the feeder comes by. First those that are evicted
        // now; the others are clean, and may be next.
        if let Some(tier) = self.store.tier_to_use().filter(|_| self.reason == WriteReason::Frames) {
            let (victims, others): (Vec<_>, Vec<_>) = written.iter().partition(|page| page.victim);
            for page in victims.into_iter().chain(others) {
                feeder::offer(&self.store, &*tier, page.frame);
            }
        }
        frames.iter().for_each(|frame| frame.pins.unpin());
        self.store.victims_in_flight.fetch_sub(self.victims, Ordering::Relaxed);
        self.store.flush_list.lock().end_batch(self.id, self.durable);
        self.store.evict_written(&written, self.reason);
        self.keep_memory();
        self.announce_end();
    }

    /// Keeps the memory for the next batch.
    fn keep_memory(&mut self) {
        if let Some(mut images) = self.images.take() {
            let mut spare = self.store.spare_batches.lock();
            images.clear();
            if spare.iter().filter(|batch| batch.purpose == images.purpose).count() < SPARE_BATCHES {
                spare.push(images);
            }
        }
    }

    fn end(&self) {
        self.store.batches.lock().retain(|batch| !batch.over.same(&self.over));
        self.over.set();
    }

    fn announce_end(&self) {
        self.end();
        self.store.batch_over.notify();
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if self.over.is_set() {
            return;
        }
        // Failed, or the environment was shut down in the middle: nothing is known of these pages' files.
        // They stay in memory, and the checkpoint does not pass them.
        self.store.poison("a page write did not come to its end");
        self.store.unwritten.lock().append(&mut self.frames);
        self.announce_end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_purpose_takes_all_batches() {
        let room =
            |checkpoint, lru, most, urgent| BatchesUnderWay { checkpoint, lru }.checkpoint_room(most, urgent);
        // Readers wait for frames all the time: the checkpoint is written all the same.
        for lru in 0..=BATCHES_MAX {
            assert!(room(0, lru, 3, false) >= 1, "{lru}");
            assert!(room(0, lru, BATCHES_MAX, true) >= BATCHES_MAX / 2, "{lru}");
        }
        assert_eq!(room(0, 4, 3, false), 3, "where there are batches enough nobody is in the way");
        assert_eq!(room(3, 0, 3, false), 0);
        assert_eq!(room(0, 0, BATCHES_MAX, true), BATCHES_MAX - 1);
        for checkpoint in 0..=BATCHES_MAX {
            let lru = BatchesUnderWay { checkpoint, lru: 0 }.lru_room();
            assert!((BATCHES_MAX / 2..BATCHES_MAX).contains(&lru), "{lru} beside {checkpoint}");
            assert_eq!(BatchesUnderWay { checkpoint, lru }.lru_room(), 0);
        }
    }
}
