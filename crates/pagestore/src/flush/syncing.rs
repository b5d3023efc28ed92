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
use crate::store::PageStore;

impl PageStore {
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
            if begun {
                let skipped = || -> PageSyncFuture { Box::pin(std::future::ready(Ok(()))) };
                let sync = if self.skips_checkpoint_sync() { skipped() } else { self.writer.sync_written() };
                self.start_syncing(sync, Syncs::AllWritten);
            }
            over.wait().await;
        }
    }

    /// Starts the sync. The event is set when it is over or the store is poisoned.
    pub(super) fn start_syncing(&self, sync: PageSyncFuture, what: Syncs) -> Event {
        let event = Event::new();
        let syncing = Syncing { store: self.this(), what, event: event.clone(), synced: false };
        self.env.spawn("page sync", Box::pin(syncing.run(sync)));
        event
    }
}

/// What a sync makes durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Syncs {
    /// All that was written when the flush list's sync began.
    AllWritten,
    /// One file.
    File,
}

/// A sync under way.
struct Syncing {
    store: Arc<PageStore>,
    what: Syncs,
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
        } else if self.what == Syncs::AllWritten {
            self.store.flush_list.lock().end_sync();
        }
        self.event.set();
        self.store.sync_over.notify();
    }
}
