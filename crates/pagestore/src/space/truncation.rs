//! How a tablespace file is truncated: it gives its end back to the file system.
//!
//! First the tablespace gets smaller ([`crate::fsp::release_last_extent`]): from then on nothing refers to
//! the pages behind its end. The file may be longer than the tablespace, so nobody is in a hurry. It is cut
//! when the checkpoint has passed that: no recovery comes back to these pages, page 0 in the file does not
//! claim them, and those in memory have been written and can be evicted. Both blocks of the checkpoint have
//! passed it: if the newest is found damaged, a recovery begins at the older one, and would look for pages
//! in the file that were cut off.
//!
//! So a crash finds the file as long as the log and page 0 need it, whether or not it was cut. Copies of the
//! pages in the doublewrite file are older than the checkpoint, or lie beyond the end of the file, and are
//! not restored for either reason; those of the buffer pool extension are invalidated when a page is
//! reinitialised.
//!
//! While the file is cut nobody makes it longer: to others that looks like a growth under way. The new size
//! is published under the latch of page 0, under which the tablespace's own size would have to be raised; a
//! read that was let in before is waited for. **A cut that fails** leaves the file as long as it then is,
//! with pages behind the tablespace's end.

use std::sync::Arc;
use std::time::Duration;

use disk::Event;
use page::PageId;
use redo::Lsn;

use crate::error::{Error, Interrupt};
use crate::fsp;
use crate::pool::frame::FrameRef;
use crate::space::registry::Space;
use crate::store::PageStore;

/// How often, and how long each time, pins on pages of nobody are waited for, which read-ahead may have for a
/// moment.
const PATIENCE: (u32, Duration) = (200, Duration::from_millis(1));

impl PageStore {
    /// Where the last change of a page ends in the log: a checkpoint can come so far, and no further before
    /// the next change.
    #[must_use]
    pub fn last_change(&self) -> Lsn {
        self.flush_list.lock().seen()
    }

    /// Evicts the pages of this part of a tablespace that are in memory, as far as they are clean and nobody
    /// uses them. True when none is left.
    fn evict_behind(&self, space: u32, from: u32, to: u32) -> bool {
        self.settle_relocations();
        let mut all = true;
        for frame in self.frames_behind(space, from, to) {
            let mut lru = self.lru.lock();
            let page = frame.page_id();
            if page.space != space || page.page < from || !lru.is_listed(frame.index()) {
                continue;
            }
            if self.evict(&mut lru, frame) {
                drop(lru);
                self.free.put(frame);
                if let Some(tier) = self.tier.get() {
                    tier.invalidate(page);
                }
            } else {
                all = false;
            }
        }
        all
    }

    fn frames_behind(&self, space: u32, from: u32, to: u32) -> Vec<FrameRef> {
        let Some(table) = self.spaces.directory.get(space) else { return Vec::new() };
        let mut found = Vec::new();
        table.for_each_frame(to, |index| {
            let frame = self.frames.get(index);
            if frame.holds_a_page() && frame.page_id().space == space && frame.page_id().page >= from {
                found.push(frame);
            }
        });
        found
    }

    /// Cuts the file where the tablespace ends, if it ends at page `pages` still and the checkpoint has
    /// passed `since`, where the log has the last change of its size. Returns the pages given back: 0 when it
    /// is not the time.
    ///
    /// # Errors
    /// When page 0 cannot be read, or the file system refuses; the file is then as it was.
    pub async fn truncate_space(&self, space: u32, pages: u32, since: Lsn) -> Result<u32, Error> {
        let settled = self.redo.settle_checkpoint(since).await;
        if let Err(error) = &settled {
            self.poison(&format!("writing a checkpoint failed: {error}"));
        }
        if !settled? {
            return Ok(0);
        }
        let space = self.open_space_of(space)?;
        // Most of them without a latch.
        self.evict_behind(space.id, pages, space.pages());
        let truncation = disk::retry::<_, Interrupt>(|| self.begin_truncation(&space, pages)).await?;
        let Some(truncation) = truncation else { return Ok(0) };
        let (over, outcome) = (truncation.over.clone(), truncation.outcome.clone());
        self.env.spawn_blocking("file cut", Box::pin(truncation.run()));
        over.wait().await;
        let outcome = outcome.lock().take();
        outcome.unwrap_or(Ok(0))
    }

    /// From now on the file has only this number of pages for everybody, and nobody makes it longer.
    fn begin_truncation(&self, space: &Arc<Space>, pages: u32) -> Result<Option<Truncation>, Interrupt> {
        let mut mtr = self.mtr()?;
        let first = mtr.x(PageId::new(space.id, 0))?;
        let before = space.pages();
        let is_so = fsp::pages_of_header(mtr.page(first)) == pages && before > pages;
        // A copy of the file under way needs it to stay as it is.
        // What recovery has not applied yet may be behind the new end.
        let is_recovered = self.unapplied.get().is_none();
        if !is_so || !is_recovered || space.is_held_still() || !self.evict_behind(space.id, pages, before) {
            return Ok(None);
        }
        let mut growth = space.growth.lock();
        let Some(over) = growth.begin_other() else { return Ok(None) };
        space.set_pages(pages);
        drop(growth);
        Ok(Some(Truncation {
            store: self.this(),
            space: space.clone(),
            pages,
            before,
            over,
            outcome: Arc::default(),
            done: false,
        }))
    }
}

/// One cut under way.
struct Truncation {
    store: Arc<PageStore>,
    space: Arc<Space>,
    pages: u32,
    /// Pages the file had.
    before: u32,
    over: Event,
    outcome: Arc<parking_lot::Mutex<Option<Result<u32, Error>>>>,
    done: bool,
}

impl Truncation {
    async fn run(mut self) {
        let result = self.cut().await;
        self.done = matches!(result, Ok(cut) if cut > 0);
        *self.outcome.lock() = Some(result);
    }

    async fn cut(&mut self) -> Result<u32, Error> {
        // Who asked for such a page before the size was lowered; nobody can any more.
        for read in self.store.pending.of_space(self.space.id) {
            read.wait().await;
        }
        let (mut patience, pause) = PATIENCE;
        while !self.store.evict_behind(self.space.id, self.pages, self.before) {
            if patience == 0 {
                return Ok(0);
            }
            patience -= 1;
            self.store.hurry_batches();
            self.store.env.sleep(pause).await;
        }
        self.store.refuse_when_poisoned()?;
        let file = self.space.file();
        if let Err(error) = file.set_len(self.store.page_size.offset_of(self.pages)) {
            // It may have been cut for all that. What is not known to be there is written by the next growth.
            let len = file.len().map_or(0, |len| len >> self.store.page_size.shift());
            self.before = u32::try_from(len).unwrap_or(self.before).clamp(self.pages, self.before);
            return Err(error.into());
        }
        Ok(self.before - self.pages)
    }
}

impl Drop for Truncation {
    fn drop(&mut self) {
        let mut growth = self.space.growth.lock();
        if !self.done {
            self.space.set_pages(self.before);
        }
        growth.end_other();
        drop(growth);
        self.over.set();
    }
}
