//! The stretch of the circle that a scan of the log looks at, and what is read ahead of it.
//!
//! A scan goes forwards through the circle once, and what it does with a group takes as long as reading it.
//! So where it has got as far as full windows, the next [`AHEAD`] of them are read meanwhile. Reading ahead
//! decides nothing: a read that fails is done again when its bytes are wanted, and only that one can end the
//! scan. What lies behind the log's end may be read for nothing, but nothing behind the place up to which it
//! is searched for the end's proof, and nothing that the file does not have.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use disk::{AlignedBuf, Environment, File, Submitted};

use crate::layout::{FRONT, Layout};
use crate::{Lsn, Result};

/// Bytes read at once at first: most logs are short, and begin with a checkpoint that is not long past.
const FIRST: usize = 64 << 10;
/// Each further window is four times as large, up to this, or a sixteenth of the circle.
const MAX: usize = 1 << 20;
/// Windows read ahead.
const AHEAD: usize = 4;
/// Transfers begin and end with such a unit of the file.
const UNIT: u64 = 4096;

/// What was read of the circle last.
pub(crate) struct Window {
    env: Arc<dyn Environment>,
    file: Arc<dyn File>,
    layout: Layout,
    /// Nothing is read ahead beyond this.
    limit: Lsn,
    /// Bytes of the circle that exist.
    exists: u64,
    /// Bytes that are read at once next.
    step: usize,
    bytes: AlignedBuf,
    /// What is in it: `filled` bytes from `start` on.
    start: Lsn,
    filled: usize,
    /// What is being read, without a gap from some place on.
    ahead: VecDeque<Ahead>,
    /// Buffers of reads that are over.
    spare: Vec<AlignedBuf>,
}

/// Bytes that are being read.
struct Ahead {
    start: Lsn,
    length: usize,
    read: Submitted,
}

impl Window {
    /// `log`: from where the scan starts to where the log cannot have gone; `exists`: bytes of the circle
    /// that the file has.
    pub(crate) fn new(
        env: Arc<dyn Environment>,
        file: Arc<dyn File>,
        layout: Layout,
        log: Range<Lsn>,
        exists: u64,
    ) -> Window {
        Window {
            env,
            file,
            layout,
            limit: log.end,
            exists,
            step: FIRST,
            bytes: AlignedBuf::zeroed(0),
            start: log.start,
            filled: 0,
            ahead: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// `length` bytes from `lsn` on; `None` where the file does not reach so far.
    pub(crate) fn bytes(&mut self, lsn: Lsn, length: usize) -> Result<Option<&[u8]>> {
        let inside = lsn >= self.start && lsn.since(self.start) + length as u64 <= self.filled as u64;
        if !inside {
            self.fill(lsn, length)?;
        }
        let at = lsn.since(self.start) as usize;
        Ok(self.bytes[..self.filled].get(at..at + length))
    }

    /// Has the window begin with the unit of `lsn`, and `length` bytes from `lsn` on in it, if the file
    /// reaches so far.
    fn fill(&mut self, lsn: Lsn, length: usize) -> Result<()> {
        let in_unit = (lsn.0 - self.layout.origin.0) % UNIT;
        self.begin_at(Lsn(lsn.0 - in_unit));
        let needed = in_unit as usize + length;
        let wanted = (needed.max(self.step).next_multiple_of(UNIT as usize) as u64).min(self.layout.area);
        let most = (self.layout.area / 16).clamp(FIRST as u64, MAX as u64) as usize;
        while (self.filled as u64) < wanted {
            let from = self.start.plus(self.filled as u64);
            if self.take_ahead(from)? {
                continue;
            }
            let run = self.layout.until_wrap(from).min(wanted - self.filled as u64);
            let exists = self.exists_of(from, run);
            self.read(from, exists)?;
            self.filled += exists;
            if (exists as u64) < run {
                break;
            }
        }
        if self.step == most {
            self.read_ahead(most);
        }
        self.step = most.min(4 * self.step);
        Ok(())
    }

    /// Moves the window's beginning, and keeps what it has from there on.
    fn begin_at(&mut self, start: Lsn) {
        let has = start >= self.start && start.since(self.start) <= self.filled as u64;
        let from = if has { start.since(self.start) as usize } else { self.filled };
        self.bytes.copy_within(from..self.filled, 0);
        self.filled -= from;
        self.start = start;
    }

    /// Puts what was read ahead from this place on behind what the window has. False: nothing was.
    fn take_ahead(&mut self, from: Lsn) -> Result<bool> {
        while let Some(Ahead { start, length, read }) = self.ahead.pop_front() {
            // It is waited for also where it is of no use: no read outlives the scan's need of its place.
            let read = read.wait_for_read(&*self.env);
            if start == from {
                match &read {
                    Ok(buf) => self.room(length).copy_from_slice(&buf[..length]),
                    Err(_) => self.read(from, length)?,
                }
                self.filled += length;
            }
            self.spare.extend(read);
            if start == from {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads `length` bytes into the room behind what the window has.
    fn read(&mut self, from: Lsn, length: usize) -> Result<()> {
        let (file, place) = (self.file.clone(), self.layout.physical(from));
        Ok(file.read_at(self.room(length), place)?)
    }

    /// Has the next windows read.
    fn read_ahead(&mut self, most: usize) {
        while self.ahead.len() < AHEAD {
            let from = match self.ahead.back() {
                Some(last) => last.start.plus(last.length as u64),
                None => self.start.plus(self.filled as u64),
            };
            if from >= self.limit {
                return;
            }
            let run = self.limit.since(from).next_multiple_of(UNIT).min(most as u64);
            let length = self.exists_of(from, run.min(self.layout.until_wrap(from)));
            if length == 0 {
                return;
            }
            let buf = self.spare.pop().unwrap_or_else(|| AlignedBuf::zeroed(most));
            let place = self.layout.physical(from);
            let read = Submitted::read(&**self.env.storage(), &self.file, buf, length, place);
            self.ahead.push_back(Ahead { start: from, length, read });
        }
    }

    /// How many of `run` bytes from `from` on the file has, in whole units.
    fn exists_of(&self, from: Lsn, run: u64) -> usize {
        let place = self.layout.physical(from);
        ((FRONT + self.exists).saturating_sub(place).min(run) & !(UNIT - 1)) as usize
    }

    /// Room for `length` bytes behind what the window has.
    fn room(&mut self, length: usize) -> &mut [u8] {
        let end = self.filled + length;
        if end > self.bytes.len() {
            let mut bytes = AlignedBuf::zeroed(end.max(2 * self.bytes.len()));
            bytes[..self.filled].copy_from_slice(&self.bytes[..self.filled]);
            self.bytes = bytes;
        }
        &mut self.bytes[self.filled..end]
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // What comes after the scan may write where it still reads.
        while let Some(ahead) = self.ahead.pop_front() {
            drop(ahead.read.wait(&*self.env));
        }
    }
}
