//! Writing until nothing is left: everything that is dirty now, or the pages of one tablespace.

use std::time::Duration;

use crate::error::Error;
use crate::flush::batch::BATCH_PAGES;
use crate::flush::collect::Which;
use crate::flush::reason::WriteReason;
use crate::flush::syncing::Syncs;
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
        let over = self.start_syncing(self.writer.sync_file(file), Syncs::File);
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

    /// Writes what `which` says until nothing of it is dirty or in flight; it may still have to be synced.
    pub(crate) async fn flush_until_clean(&self, which: Which) -> Result<(), Error> {
        let reason = match which {
            Which::OlderThan(_) => WriteReason::All,
            Which::Space(_) => WriteReason::Tablespace,
        };
        // What recovery has not changed yet is not dirty, but not as it should be either.
        match which {
            Which::OlderThan(_) => self.apply_the_rest().await?,
            Which::Space(space) => self.apply_the_rest_of(space).await?,
        }
        loop {
            self.refuse_when_poisoned()?;
            let collected = self.start_flush(which, 4 * BATCH_PAGES, reason, Duration::ZERO);
            self.batches_over().await;
            self.refuse_when_poisoned()?;
            let done = match which {
                Which::OlderThan(lsn) => {
                    self.flush_list.lock().oldest_unwritten().is_none_or(|oldest| oldest >= lsn)
                }
                Which::Space(_) => collected.pages == 0 && collected.skipped == 0,
            };
            if done {
                return Ok(());
            }
            if collected.pages == 0 {
                // Someone holds latches on the rest; that takes microseconds.
                self.env.sleep(Duration::from_micros(200)).await;
            }
        }
    }
}
