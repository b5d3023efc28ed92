//! Syncing what page writes left unsynced: before a checkpoint (`checkpoint.rs` says when), or when somebody
//! wants to be sure. Which files these are is the [`PageWriter`](page::PageWriter)'s knowledge; what their
//! sync frees is the flush list's.
//!
//! Most batches end when they are written; the files they leave are synced for all of them together. At most
//! one such sync is under way; a caller that comes while one runs may have had pages written after it began,
//! and waits for the next.
//!
//! After a sync that failed nobody knows what reached the disk, and asking again would be answered with
//! success. So each one's outcome must be seen: a sync of pages is a task of the store and poisons it when it
//! fails, whether or not the caller still waits. Nothing is acknowledged after that and the checkpoint stays.

use std::sync::Arc;

use disk::Event;
use page::PageSyncFuture;

use crate::error::Error;
use crate::flush::batch::Which;
use crate::flush::flush_list::BatchId;
use crate::store::PageStore;

impl PageStore {
    /// Writes every page that is dirty now, durably.
    ///
    /// # Errors
    /// When writing fails; the store is then poisoned.
    pub async fn flush_all(&self) -> Result<(), Error> {
        let now = self.redo.current();
        self.flush_until_clean(Which::OlderThan(now)).await?;
        self.sync_written().await
    }

    /// Writes every dirty page of one tablespace, durably (FOR EXPORT: nobody may be changing it).
    ///
    /// # Errors
    /// When writing fails; the store is then poisoned.
    pub async fn flush_space(&self, space: u32) -> Result<(), Error> {
        self.flush_until_clean(Which::Space(space)).await?;
        // By itself, because somebody else's sync may be under way.
        let file = self.open_space_of(space)?.file().clone();
        let over = self.start_syncing(self.writer.sync_file(file), None);
        over.wait().await;
        self.refuse_when_poisoned()
    }

    /// Waits until the page writes under way now are over, and makes durable what they and those before them
    /// have written.
    ///
    /// # Errors
    /// When that fails; the store is then poisoned.
    pub async fn settle_writes(&self) -> Result<(), Error> {
        self.batches_over().await;
        self.sync_written().await
    }

    /// Syncs the files of all batches that are written by now.
    pub(crate) async fn sync_written(&self) -> Result<(), Error> {
        let wanted = self.flush_list.lock().sync_wanted();
        loop {
            let over = self.sync_over.event();
            self.refuse_when_poisoned()?;
            let begun = {
                let mut list = self.flush_list.lock();
                if list.syncs_over() >= wanted {
                    return Ok(());
                }
                list.begin_sync()
            };
            if let Some(batch) = begun {
                let skipped = || -> PageSyncFuture { Box::pin(std::future::ready(Ok(()))) };
                let sync = if self.skips_checkpoint_sync() { skipped() } else { self.writer.sync_written() };
                self.start_syncing(sync, Some(batch));
            }
            over.wait().await;
        }
    }

    /// Starts the sync; with it ends `batch`. The event is set when it is over or the store is poisoned.
    fn start_syncing(&self, sync: PageSyncFuture, batch: Option<BatchId>) -> Event {
        let event = Event::new();
        let syncing = Syncing { store: self.this(), batch, event: event.clone(), synced: false };
        self.env.spawn("page sync", Box::pin(syncing.run(sync)));
        event
    }
}

/// A sync under way.
struct Syncing {
    store: Arc<PageStore>,
    batch: Option<BatchId>,
    event: Event,
    synced: bool,
}

impl Syncing {
    async fn run(mut self, sync: PageSyncFuture) {
        match sync.await {
            Ok(()) => self.synced = true,
            // Dropping it poisons; this reason comes first.
            Err(error) => self.store.poison(&format!("syncing pages failed: {error}")),
        }
    }
}

impl Drop for Syncing {
    fn drop(&mut self) {
        if !self.synced {
            self.store.poison("a sync of pages did not come to its end");
        } else if let Some(batch) = self.batch {
            self.store.flush_list.lock().end_sync(batch);
        }
        self.event.set();
        self.store.sync_over.notify();
    }
}
