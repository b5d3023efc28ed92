//! Moving the checkpoint, and closing the log.
//!
//! The caller vouches that every change that ended before this LSN is durable in the data files. The log then
//! writes the other of its two checkpoint blocks, and only when that is durable frees the log before it.
//! Recovery starts reading at a group boundary, so what is freed ends at the start of the group (or, since
//! not every start is remembered, of an earlier one) that holds the checkpoint.
//!
//! The write of the block belongs to the log, not to the future that asked: a caller who stops waiting leaves
//! no half-done state, and two blocks are never written at once.

use crate::checkpoint_block::CheckpointBlock;
use crate::layout::{CHECKPOINT_BLOCK, Layout};
use crate::log::{Phase, RedoLog, State};
use crate::{Flush, Lsn, Options, Result};
use disk::{Event, Io, IoBuf, IoKind};
use std::sync::Arc;

impl RedoLog {
    /// Moves the checkpoint to `lsn` (every page change that ended before it is durable in its file) and
    /// frees the log before it. Flushes the log up to `lsn` first. A checkpoint never goes backwards: an
    /// older `lsn` does nothing. Nor does any `lsn` while [`RedoLog::needs_scan`]: what is after the
    /// checkpoint found is not recovered yet.
    pub async fn move_checkpoint(&self, lsn: Lsn) -> Result<()> {
        if self.needs_scan() {
            return Ok(());
        }
        self.flush_async(lsn, Flush::Sync).await?;
        loop {
            let wait = {
                let mut state = self.state.lock();
                if state.block.checkpoint >= lsn {
                    break;
                }
                if let Some(error) = self.poisoned() {
                    return Err(error);
                }
                match &state.checkpoint_over {
                    Some(event) => event.clone(),
                    None => {
                        let block = self.next_block(&mut state, lsn);
                        self.write_block(state, block)
                    }
                }
            };
            wait.wait().await;
        }
        // Also when it was there already: who still wants room then waits for promises to be given back, and
        // says so again if that is not enough.
        self.renew_space_wanted();
        Ok(())
    }

    /// Sees to it that a recovery begins at `lsn` or later even where the newest checkpoint block is damaged:
    /// writes the older one again if that is before. False when the checkpoint is not so far itself, or the
    /// log is not open.
    pub async fn settle_checkpoint(&self, lsn: Lsn) -> Result<bool> {
        loop {
            let wait = {
                let mut state = self.state.lock();
                if let Some(error) = self.poisoned() {
                    return Err(error);
                }
                if state.phase != Phase::Ready || state.block.checkpoint < lsn {
                    return Ok(false);
                }
                if state.older_checkpoint >= lsn {
                    return Ok(true);
                }
                match &state.checkpoint_over {
                    Some(event) => event.clone(),
                    None => {
                        let checkpoint = state.block.checkpoint;
                        let block = self.next_block(&mut state, checkpoint);
                        self.write_block(state, block)
                    }
                }
            };
            wait.wait().await;
        }
    }

    /// Ends the log: waits for the mini-transactions admitted already, admits no other, writes and syncs
    /// everything. To be called after the last checkpoint of an orderly shutdown. When that is past the last
    /// mini-transaction, the log is marked as closed, with nothing to recover, and may have another size at
    /// the next start.
    pub async fn close(&self) -> Result<()> {
        if !self.admit_no_more().await? {
            return Ok(());
        }
        self.growth_over().await;
        self.flush_async(self.current(), Flush::Sync).await?;
        let wait = loop {
            let wait = {
                let mut state = self.state.lock();
                if let Some(error) = self.poisoned() {
                    return Err(error);
                }
                match &state.checkpoint_over {
                    Some(event) => event.clone(),
                    // Something was committed since: the next start recovers it.
                    None if state.block.checkpoint < state.last_end => return Ok(()),
                    None => {
                        let block = self.closed_block(&mut state);
                        break self.write_block(state, block);
                    }
                }
            };
            wait.wait().await;
        };
        wait.wait().await;
        self.poisoned().map_or(Ok(()), Err)?;
        self.cut_closed();
        Ok(())
    }

    /// What a closed log leaves for the next start, as its block says. That it was not cut is found then, so
    /// nothing depends on it.
    fn cut_closed(&self) {
        let rest = self.state.lock().block.layout.file_size();
        let cut =
            self.file.len().and_then(|length| if length > rest { self.file.set_len(rest) } else { Ok(()) });
        if let Err(error) = cut {
            tracing::warn!("{error}: the redo log stays as large as it is until the next start");
        }
    }

    /// Settles where the log ends. False when there is nothing to close: it was closed before, or never
    /// scanned.
    async fn admit_no_more(&self) -> Result<bool> {
        {
            let mut state = self.state.lock();
            if state.phase != Phase::Ready {
                return Ok(false);
            }
            state.phase = Phase::Closing;
            self.ends.ledger.set_file_limit(0);
        }
        let grow = self.state.lock().grow_wanted.clone();
        if let Some(grow) = grow {
            grow.set();
        }
        // They are told that it is closed.
        self.ends.ledger.wake_all();
        loop {
            let open = {
                // Sealing a group moves the end and the books one after the other, under the mutex.
                let mut state = self.state.lock();
                let open = self.ends.ledger.close(self.current().0);
                if open.is_ok() {
                    state.phase = Phase::Closed;
                }
                open
            };
            match open {
                Ok(()) => return Ok(true),
                Err(notice) => notice.wait().await,
            }
            if let Some(error) = self.poisoned() {
                return Err(error);
            }
        }
    }

    /// The block that says that the checkpoint is at `lsn`, which is durable.
    pub(crate) fn next_block(&self, state: &mut State, lsn: Lsn) -> CheckpointBlock {
        let flushed = self.flushed();
        debug_assert!(lsn <= flushed);
        state.age_most = state.age_most.max(state.groups.start.since(state.block.checkpoint));
        let scan_start = if lsn == state.groups.start {
            lsn
        } else {
            let known = state.groups.starts.partition_point(|start| *start <= lsn);
            let start = known.checked_sub(1).and_then(|last| state.groups.starts.get(last));
            start.map_or(state.block.scan_start, |start| state.block.scan_start.max(*start))
        };
        let floor = if scan_start >= state.epoch_start { state.epoch } else { state.block.epoch_floor };
        CheckpointBlock {
            layout: state.layout,
            sequence: state.block.sequence + 1,
            epoch: state.epoch,
            epoch_floor: floor,
            checkpoint: lsn,
            scan_start,
            flushed,
            reach: state.reach_of_next(&self.options, flushed, self.ends.ledger.promised_end()),
            closed: false,
            owner: state.block.owner,
        }
    }

    /// The block of a log that ends, with nothing in it: what is between the last mini-transaction and the
    /// end is padding. It describes the circle that the cut leaves, because a file that is shorter than its
    /// block says is a damaged one to programs that know of no cut; the log begins at its front, where the
    /// next start would have it begin anyway.
    fn closed_block(&self, state: &mut State) -> CheckpointBlock {
        let block = self.next_block(state, self.current());
        let origin = Lsn(block.checkpoint.0.next_multiple_of(CHECKPOINT_BLOCK as u64));
        let options = Options { capacity: state.capacity, ..self.options.clone() };
        let area = block.layout.area.min(options.area_at_rest(state.age_most)).min(options.area_max());
        let layout = Layout { area, origin, ..block.layout };
        let reach = layout.reach(&options);
        let (checkpoint, scan_start, flushed) = (origin, origin, origin);
        CheckpointBlock { layout, checkpoint, scan_start, flushed, reach, closed: true, ..block }
    }

    /// Starts the write of a block; the event is set when it is durable and in force, or the log has stopped.
    pub(crate) fn write_block(
        &self,
        mut state: parking_lot::MutexGuard<'_, State>,
        block: CheckpointBlock,
    ) -> Event {
        let over = Event::new();
        state.checkpoint_over = Some(over.clone());
        state.syncs += 1;
        state.bytes_written += CHECKPOINT_BLOCK as u64;
        drop(state);
        let Some(log) = self.me.upgrade() else { unreachable!("called through a living log") };
        let writing = BlockWrite { log, block, over: over.clone(), done: false };
        let kind = IoKind::Write {
            buf: IoBuf::owned(block.encode()),
            offset: block.place(),
            atomic: false,
            sync: true,
        };
        let io = Io::new(kind, move |result| writing.finish(result.map(drop)));
        self.env.storage().submit(vec![(self.file.clone(), io)]);
        over
    }

    /// The block is durable: what is before it may be overwritten from now on.
    fn block_in_force(&self, block: CheckpointBlock) {
        let grow = {
            let mut state = self.state.lock();
            state.checkpoints += u64::from(block.checkpoint > state.block.checkpoint);
            state.older_checkpoint = state.block.checkpoint;
            state.block = block;
            state.checkpoint_over = None;
            while state.groups.starts.front().is_some_and(|start| *start < block.scan_start) {
                state.groups.starts.pop_front();
            }
            // That of a closed log lies past the end, at the next place where one may begin.
            self.set_checkpoint_lsn(block.checkpoint.min(self.current()));
            self.renew_space_wanted();
            self.publish_limits(&state);
            self.growth_if_due(&state, false)
        };
        if let Some(grow) = grow {
            grow.set();
        }
    }
}

/// A checkpoint block on its way.
struct BlockWrite {
    log: Arc<RedoLog>,
    block: CheckpointBlock,
    over: Event,
    done: bool,
}

impl BlockWrite {
    fn finish(mut self, result: disk::Result<()>) {
        self.done = true;
        match result {
            Ok(()) => self.log.block_in_force(self.block),
            Err(error) => self.log.stop(&error.to_string()),
        }
        self.over.set();
        // What became durable while this block was written.
        self.log.mark_if_due();
    }
}

impl Drop for BlockWrite {
    fn drop(&mut self) {
        if !self.done {
            self.log.stop("the storage was shut down while a checkpoint was being written");
            self.over.set();
        }
    }
}
