//! Copying the log out while it is written, for a backup.
//!
//! An [`Archive`] begins where a recovery would begin at that moment, and follows the log as it becomes
//! durable. The circle does not overwrite what the archive has not read: the checkpoint moves on as ever, but
//! admissions get no room that is still wanted here. So a reader that is slower than the log slows the log
//! down, and never finds a gap.
//!
//! How long others may wait for it is for the reader's owner to decide. An [`ArchiveHold`] says whether they
//! do and lets the log go at any moment, also while the reader hangs in a call; what the archive reads after
//! that is an error, because it may have been overwritten. Dropped, an archive holds nothing back.
//!
//! The copy is a log file of the same format ([`crate::layout`]) that never wrapped: its circle begins at the
//! 4096-byte unit of the first group and is larger than what was copied by the size of the original one. Its
//! checkpoint block says that the log was durable up to the end of the copy, so an opening that does not find
//! all of it whole refuses the file.

use crate::checkpoint_block::CheckpointBlock;
use crate::layout::{CHECKPOINT_BLOCK, FRONT, Layout};
use crate::log::{Archived, Phase, RedoLog, State};
use crate::{Error, Lsn, Result};
use disk::{AlignedBuf, read_async};
use std::sync::Arc;

/// The most that is read at once.
const PIECE: u64 = 1 << 20;

/// The log from a checkpoint on, as it grows.
pub struct Archive {
    hold: ArchiveHold,
    block: CheckpointBlock,
    next: Lsn,
}

/// What an archive holds back of the log. Clones speak of the same archive.
#[derive(Clone)]
pub struct ArchiveHold {
    log: Arc<RedoLog>,
    number: u64,
}

/// Bytes of the copy, and where they belong in its file.
pub struct Piece {
    /// Byte in the copy's file.
    pub offset: u64,
    /// Whole groups, or a part of one.
    pub bytes: AlignedBuf,
}

impl RedoLog {
    /// Begins to copy the log from the checkpoint in force; one at a time.
    ///
    /// # Errors
    /// [`Error::Closed`] when the log is not open for work, [`Error::Setting`] when it is being copied
    /// already, and what has stopped it.
    pub fn archive(&self) -> Result<Archive> {
        let Some(log) = self.me.upgrade() else { unreachable!("called through a living log") };
        let mut state = self.state.lock();
        if let Some(error) = self.poisoned() {
            return Err(error);
        }
        if state.phase != Phase::Ready {
            return Err(Error::Closed);
        }
        if state.archived.is_some() {
            return Err(Error::Setting("the redo log is being copied by another backup".to_owned()));
        }
        let block = state.block;
        // What is copied stays where it is.
        state.aimed_at = None;
        state.archives += 1;
        let number = state.archives;
        state.archived = Some(Archived { number, from: block.scan_start });
        self.publish_limits(&state);
        Ok(Archive { hold: ArchiveHold { log: log.clone(), number }, block, next: block.scan_start })
    }
}

impl Archive {
    /// The checkpoint it begins at: pages in their files have every change that ended before.
    pub fn checkpoint(&self) -> Lsn {
        self.block.checkpoint
    }

    /// End of what was read.
    pub fn end(&self) -> Lsn {
        self.next
    }

    /// What there is to read now ends here.
    pub fn durable(&self) -> Lsn {
        self.hold.log.flushed()
    }

    /// What it holds back.
    pub fn hold(&self) -> ArchiveHold {
        self.hold.clone()
    }

    /// The next durable bytes; `None` when there is nothing new. What was read may be overwritten in the log.
    ///
    /// # Errors
    /// When the log has stopped, or its file cannot be read; [`Error::LetGo`].
    pub async fn next_piece(&mut self) -> Result<Option<Piece>> {
        let log = self.hold.log.clone();
        if let Some(error) = log.poisoned() {
            return Err(error);
        }
        let (layout, durable) = {
            let state = log.state.lock();
            // What is not held back may lie before the beginning of the circle there is now.
            if !self.hold.holds(&state) {
                return Err(Error::LetGo);
            }
            // Not that of the beginning: the circle may have grown. At the same moment, because what is
            // durable may lie past the end of a smaller one. A group boundary, and so are the ends of all
            // but the pieces that are cut by size or by the wrap.
            (state.layout, log.flushed())
        };
        let length = durable.since(self.next).min(PIECE).min(layout.until_wrap(self.next));
        if length == 0 {
            return Ok(None);
        }
        let storage = log.env.storage();
        let bytes = read_async(&**storage, &log.file, layout.physical(self.next), length as usize).await?;
        let offset = self.copied_layout(self.next).physical(self.next);
        self.next = self.next.plus(length);
        // Only now is it known that nothing was overwritten while it was read.
        if !self.hold.keep_from(Some(self.next)) {
            return Err(Error::LetGo);
        }
        Ok(Some(Piece { offset, bytes }))
    }

    /// The front of the copy's file, for a copy that ends here, and the length that the file must have.
    pub fn front(&self) -> (AlignedBuf, u64) {
        let layout = self.copied_layout(self.next);
        let block = CheckpointBlock { layout, flushed: self.next, reach: 0, closed: false, ..self.block };
        let mut front = AlignedBuf::zeroed(FRONT as usize);
        let place = block.place() as usize;
        front[place..place + CHECKPOINT_BLOCK].copy_from_slice(&block.encode());
        let used = self.next.since(layout.origin).next_multiple_of(CHECKPOINT_BLOCK as u64);
        (front, FRONT + used)
    }

    fn copied_layout(&self, end: Lsn) -> Layout {
        const UNIT: u64 = CHECKPOINT_BLOCK as u64;
        let origin = Lsn(self.block.scan_start.0 / UNIT * UNIT);
        let used = end.since(origin).next_multiple_of(UNIT);
        // Recovery must be able to write before the first checkpoint.
        Layout { area: used + self.block.layout.area, origin, block: self.block.layout.block }
    }
}

impl ArchiveHold {
    fn holds(&self, state: &State) -> bool {
        state.archived.as_ref().is_some_and(|archived| archived.number == self.number)
    }

    /// Whether somebody waits for room that the archive holds back.
    pub fn keeps_waiting(&self) -> bool {
        if !self.log.ends.ledger.is_file_wanted() {
            return false;
        }
        let state = self.log.state.lock();
        let archived = state.archived.as_ref().filter(|archived| archived.number == self.number);
        archived.is_some_and(|archived| archived.from < state.block.scan_start)
    }

    /// The log may be overwritten again: the archive cannot be finished.
    pub fn let_go(&self) {
        self.keep_from(None);
    }

    /// False when it had been let go.
    fn keep_from(&self, from: Option<Lsn>) -> bool {
        let mut state = self.log.state.lock();
        if !self.holds(&state) {
            return false;
        }
        state.archived = from.map(|from| Archived { number: self.number, from });
        // Once the log is closing nothing more is let in.
        if state.phase == Phase::Ready {
            self.log.renew_space_wanted();
            self.log.publish_limits(&state);
        }
        true
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        self.hold.let_go();
    }
}
