//! Moving the checkpoint.
//!
//! The checkpoint is fuzzy: it moves to the start of the oldest change that is not yet durable in its file.
//! Before it moves, the data files that batches left unsynced are synced, once for all of these batches. The
//! LSN is the flush list's ([`FlushList::checkpoint`](crate::flush::flush_list::FlushList::checkpoint)); when
//! to move is decided here, at each look of the cleaner. `checkpoint()` is the sharp one, for the shutdown
//! and for backups: it writes all dirty pages first.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redo::Lsn;

use crate::error::Error;
use crate::flush::adaptive_flushing::Load;
use crate::flush::collect::Which;
use crate::store::PageStore;

/// The checkpoint moves at least this often if it can.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);

impl PageStore {
    /// Moves the checkpoint if that is due; `last`: when it was. A checkpoint costs a sync of the log, which
    /// commits share the device with: no oftener than needed.
    pub(super) fn move_checkpoint_if_due(&self, last: &mut Duration, now: Duration, load: &Load) {
        let checkpoint = self.redo.checkpoint_lsn().0;
        let target = self.flush_list.lock().checkpoint_when_synced().0;
        let gain = target.saturating_sub(checkpoint);
        let short = load.lsn.saturating_sub(checkpoint) > load.limit / 4 * 3;
        // Where the limit is far below the capacity, that is much log all the same.
        let worth_it = (load.limit / 32).max(load.capacity / 256);
        let due = now.saturating_sub(*last) >= CHECKPOINT_EVERY;
        let hurry = self.redo.space_wanted().is_set() || (short && gain > worth_it);
        if gain > 0 && (due || hurry) {
            *last = now;
            self.start_checkpoint();
        }
    }

    /// Syncs what is written and moves the checkpoint as far as it can go, in the background; one at a time.
    pub(crate) fn start_checkpoint(&self) {
        #[cfg(test)]
        (self.flush_list.lock().forgets_unapplied = self.broken.unapplied.load(Ordering::Relaxed));
        let target = self.flush_list.lock().checkpoint_when_synced();
        let refused = self.recovering.load(Ordering::Acquire) || self.poisoned().is_some();
        if refused || target <= self.redo.checkpoint_lsn() {
            return;
        }
        if self.checkpoint_running.swap(true, Ordering::AcqRel) {
            return;
        }
        let running = CheckpointRunning(self.this());
        self.env.spawn("checkpoint", Box::pin(async move { running.0.move_checkpoint().await }));
    }

    async fn move_checkpoint(&self) {
        if self.sync_written().await.is_err() {
            return;
        }
        // Batches may have left something unsynced meanwhile.
        let target = self.flush_list.lock().checkpoint();
        if target <= self.redo.checkpoint_lsn() {
            return;
        }
        // After the target was computed: what was changed before it has been invalidated in this tier, or was
        // never in it.
        if let Some(tier) = self.tier.get() {
            tier.before_checkpoint(target).await;
        }
        if let Err(error) = self.redo.move_checkpoint(target).await {
            self.poison(&format!("moving the checkpoint failed: {error}"));
        }
    }

    /// Sharp checkpoint: writes what is dirty now and moves the checkpoint to this point of the log.
    ///
    /// # Errors
    /// When writing fails; the store is then poisoned.
    pub async fn checkpoint(&self) -> Result<Lsn, Error> {
        let target = {
            let list = self.flush_list.lock();
            list.seen()
        };
        self.flush_until_clean(Which::OlderThan(target)).await?;
        loop {
            let over = self.checkpoint_over.event();
            let reached = self.redo.checkpoint_lsn();
            if reached >= target {
                return Ok(reached);
            }
            self.refuse_when_poisoned()?;
            // Behind a sync that somebody else has begun there may be nothing yet that a checkpoint could
            // move over, and without a cleaner nobody would look again.
            self.sync_written().await?;
            self.start_checkpoint();
            over.wait().await;
        }
    }
}

/// Ends a checkpoint, also when its task is dropped in the middle.
struct CheckpointRunning(Arc<PageStore>);

impl Drop for CheckpointRunning {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The next one would do the same, and the log fills up meanwhile.
            self.0.poison("a checkpoint ended by a panic");
        }
        self.0.checkpoint_running.store(false, Ordering::Release);
        self.0.checkpoint_over.notify();
    }
}
