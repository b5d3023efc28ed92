//! The high-water mark: keeping the newest checkpoint block close to the end of the log.
//!
//! ```text
//!   scan start   checkpoint      flushed of the newest block         end of the log     flushed + reach
//!   ────┼────────────┼──────────────────┼────────────────────────────────┼────────────────────┼─────────────
//!       └── read by recovery, group by group ──────────────────▶ end ────┘── searched for proof ┘  (not read)
//! ```
//!
//! A recovery that has come to the end of the log has to make sure that it is the end, and not damage with
//! more log after it. How far may there be more? Without a bound, up to the end of the circle, and reading
//! all that takes seconds on a slow disk. So every checkpoint block promises that the log ends at most
//! `reach` bytes past its `flushed` ([`crate::layout::Layout::reach`]), until a newer block is durable. The
//! promise is kept strictly:
//!
//! - Admissions never give out room beyond it ([`State::file_limit`]), and what was written without one stops
//!   the log.
//! - So that nobody has to wait for that, a block that says nothing new but `flushed` is written when the log
//!   has become durable half of the reach further, if no checkpoint has written one anyway: a *mark*.
//! - Where nobody asks for durability (`innodb_flush_log_at_trx_commit` 0 and 2) nothing would become durable
//!   between two syncs of the background. A group write that ends a quarter of the reach past what is
//!   durable is synced too.
//!
//! Nobody can wait for ever: when everything is durable, then either half of the reach is used up and a mark
//! is on its way, or half of it is free, and no mini-transaction needs more than a third.

use crate::Flush;
use crate::log::{Phase, RedoLog, State};

impl RedoLog {
    /// Writes a mark when the log has become durable far enough past the newest block.
    pub(crate) fn mark_if_due(&self) {
        let mut state = self.state.lock();
        let used = self.flushed().since(state.block.flushed);
        let due = state.phase == Phase::Ready
            && state.checkpoint_over.is_none()
            && state.reach().is_some_and(|reach| used >= reach / 2);
        if !due || self.poisoned().is_some() {
            return;
        }
        let checkpoint = state.block.checkpoint;
        let block = self.next_block(&mut state, checkpoint);
        drop(self.write_block(state, block));
    }

    /// Whether the group write that is to begin has to be synced for the next mark.
    pub(crate) fn mark_needs_sync(&self, state: &State) -> Option<Flush> {
        let unsynced = state.groups.start.since(self.flushed());
        state.reach().filter(|reach| unsynced >= reach / 4).map(|_| Flush::Sync)
    }

    /// Somebody waits for room: if it is the reach that is used up, makes durable what there is.
    pub(crate) fn hurry_mark(&self) {
        let used_up = {
            let state = self.state.lock();
            let limit = state.file_limit();
            let free = limit.since(self.current().min(limit));
            state.reach_limit() == Some(limit) && state.reach().is_some_and(|reach| free < reach / 2)
        };
        if used_up && self.flushed() < self.current() {
            // Nothing waits for it: an error stops the log, and the waiters get it.
            drop(self.flush(self.current(), Flush::Sync));
        }
    }
}
