//! Group commit without a log-writer thread.
//!
//! The first to find the log idle seals the open group and starts its write; those who come while a write is
//! under way join the group that is being collected, and the completion of the running write starts that
//! group's write at once. Nobody has to be woken to lead, there is no fixed delay, and one sync serves all
//! who queued:
//!
//! ```text
//! appends   a b c | d e f g h        | i j
//! writes    [abc: write + sync ......][defgh: write + sync ..][ij ...
//!                                     ^ the completion of abc starts this one, then wakes a b c
//! ```
//!
//! At most one group write is under way. That keeps the rule that a group's `flushed` field proves what was
//! durable before it, and costs nothing: a device does not sync two groups faster than one.
//!
//! A failed write or sync stops the log: after a failed sync nobody knows what reached the disk, so it
//! is never tried again, and every waiter gets the error.

use crate::group;
use crate::groups::Sealed;
use crate::layout::Layout;
use crate::log::{InFlight, RedoLog, State};
use crate::{Interrupt, Lsn, Result};
use disk::{AlignedBuf, Io, IoBuf, IoKind, Wait, WaitKind};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How durable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Flush {
    /// Handed to the operating system: survives the end of this process.
    Write,
    /// Synced to the device: survives a power cut.
    Sync,
}

/// One group write: everything sealed.
struct GroupWrite {
    groups: Vec<Sealed>,
    layout: Layout,
    epoch: u32,
    /// End of the last group.
    upto: Lsn,
    how: Flush,
}

impl RedoLog {
    #[inline]
    fn reached(&self, upto: Lsn, how: Flush) -> bool {
        match how {
            Flush::Sync => self.flushed() >= upto,
            Flush::Write => self.written() >= upto,
        }
    }

    /// `Ok` when the log is written or durable up to `upto`; otherwise takes part in a group write and
    /// returns what to wait for. Call again after the wait: the answer is then `Ok` or the error that stopped
    /// the log.
    #[inline]
    pub fn flush(&self, upto: Lsn, how: Flush) -> std::result::Result<(), Interrupt> {
        if self.reached(upto, how) {
            return Ok(());
        }
        match self.join_group(upto, how)? {
            Joined::Done => Ok(()),
            Joined::Wait(wait) => Err(Interrupt::Wait(wait.of(WaitKind::LogSync))),
            Joined::Lead(wait, write) => {
                self.start(write);
                Err(Interrupt::Wait(wait.of(WaitKind::LogSync)))
            }
        }
    }

    /// The same as a future.
    ///
    /// # Errors
    /// Those that stopped the log.
    pub async fn flush_async(&self, upto: Lsn, how: Flush) -> Result<()> {
        disk::retry(|| self.flush(upto, how)).await
    }

    /// The same for a thread that may block: it leads the group write itself when the log is idle. Not for
    /// background tasks or completion callbacks.
    pub fn flush_blocking(&self, upto: Lsn, how: Flush) -> Result<()> {
        while !self.reached(upto, how) {
            match self.join_group(upto, how)? {
                Joined::Done => break,
                Joined::Wait(wait) => self.env.block_until(wait.event()),
                Joined::Lead(_, write) => self.write_here(write),
            }
        }
        Ok(())
    }

    fn join_group(&self, upto: Lsn, how: Flush) -> Result<Joined> {
        let mut state = self.state.lock();
        // Under the mutex: a completion publishes its positions while holding it.
        if self.reached(upto, how) {
            return Ok(Joined::Done);
        }
        if let Some(error) = self.poisoned() {
            return Err(error);
        }
        debug_assert!(upto <= self.current(), "flush up to {upto}, the log ends at {}", self.current());
        if let Some(running) = state.in_flight {
            if upto <= running.upto && how <= running.how {
                return Ok(Joined::Wait(Wait::new(state.in_flight_over.clone())));
            }
            state.next = state.next.max(Some(how));
            return Ok(Joined::Wait(Wait::new(state.next_over.clone())));
        }
        state.next = state.next.max(Some(how));
        let wait = Wait::new(state.next_over.clone());
        Ok(match self.begin(&mut state) {
            Some(write) => Joined::Lead(wait, write),
            None => {
                drop(state);
                self.stop_if_too_full()?;
                Joined::Done
            }
        })
    }

    /// Writes groups that were sealed because they are full, without being asked for durability.
    pub(crate) fn write_sealed(&self) {
        let write = {
            let mut state = self.state.lock();
            if state.in_flight.is_some() || self.poisoned().is_some() {
                return;
            }
            self.begin(&mut state)
        };
        match write {
            Some(write) => self.start(write),
            // The error is kept in the log and given to everyone who asks for durability.
            None => drop(self.stop_if_too_full()),
        }
    }

    /// Takes everything that is to be written; `None` when there is nothing to do or the log is over-full.
    fn begin(&self, state: &mut State) -> Option<GroupWrite> {
        debug_assert!(state.in_flight.is_none());
        let how = state.next;
        if how.is_some() {
            state.groups.seal_open(&self.ends);
        }
        if how != Some(Flush::Sync) && state.groups.sealed.is_empty() || !state.fits(state.groups.start) {
            state.next = None;
            return None;
        }
        state.next = None;
        let how = self.mark_needs_sync(state).or(how).unwrap_or(Flush::Write);
        let groups: Vec<Sealed> = state.groups.sealed.drain(..).collect();
        let upto = state.groups.start;
        state.groups_written += groups.len() as u64;
        let bytes = groups.iter().map(|group| group.padded as u64).sum::<u64>();
        state.bytes_written += bytes;
        state.rates.group_written(bytes);
        state.syncs += u64::from(how == Flush::Sync);
        state.in_flight = Some(InFlight { upto, how, started: self.env.now() });
        let next = disk::Event::new();
        state.in_flight_over = std::mem::replace(&mut state.next_over, next);
        Some(GroupWrite { groups, layout: state.layout, epoch: state.epoch, upto, how })
    }

    /// The last line of defence for "the log never overwrites what recovery needs": only an append without
    /// (enough) admission can bring us here.
    fn stop_if_too_full(&self) -> Result<()> {
        let end = {
            let state = self.state.lock();
            if state.fits(state.groups.start) {
                return Ok(());
            }
            state.groups.start
        };
        let limit = self.ends.ledger.file_limit();
        self.stop(&format!("its end {end} went beyond the room after the checkpoint, {limit}"));
        debug_assert!(false, "the redo log grew beyond its capacity: an append without enough admission");
        self.poisoned().map_or(Ok(()), Err)
    }

    /// Starts a group write and returns.
    fn start(&self, mut write: GroupWrite) {
        let Some(log) = self.me.upgrade() else { unreachable!("called through a living log") };
        write.stamp(self.flushed());
        let sync = write.how == Flush::Sync;
        let over = Completion { log, upto: write.upto, how: write.how, over: false };
        let storage = self.env.storage();
        let single = write.groups.len() == 1 && !write.wraps();
        let io = match write.groups.pop() {
            None => Io::new(IoKind::Sync, move |result| over.finish(result.map(|_| Vec::new()))),
            Some(group) if single => {
                let offset = write.layout.physical(group.start);
                let buf = IoBuf::Owned(group.buf, group.padded);
                Io::new(IoKind::Write { buf, offset, atomic: false, sync }, move |result| {
                    over.finish(result.map(|kind| owned(kind).into_iter().collect()));
                })
            }
            Some(group) => {
                write.groups.push(group);
                return self.start_many(write, over);
            }
        };
        storage.submit(vec![(self.file.clone(), io)]);
    }

    /// Several writes, or one around the end of the circle; the sync follows the last of them.
    fn start_many(&self, write: GroupWrite, over: Completion) {
        let layout = write.layout;
        let mut parts = Vec::new();
        for group in write.groups {
            let offset = layout.physical(group.start);
            let first = layout.until_wrap(group.start) as usize;
            if group.padded <= first {
                parts.push((IoBuf::Owned(group.buf, group.padded), offset));
            } else {
                let buf = Arc::new(group.buf);
                parts.push((IoBuf::Shared(buf.clone(), 0..first), offset));
                parts.push((IoBuf::Shared(buf, first..group.padded), layout.physical(layout.origin)));
            }
        }
        let many = Arc::new(Many {
            remaining: AtomicUsize::new(parts.len()),
            outcome: Mutex::new((Ok(Vec::new()), Some(over))),
        });
        let batch = parts.into_iter().map(|(buf, offset)| {
            let many = many.clone();
            let kind = IoKind::Write { buf, offset, atomic: false, sync: false };
            (self.file.clone(), Io::new(kind, move |result| many.part_done(result)))
        });
        let batch = batch.collect();
        self.env.storage().submit(batch);
    }

    /// Does a group write on the calling thread.
    fn write_here(&self, mut write: GroupWrite) {
        let Some(log) = self.me.upgrade() else { unreachable!("called through a living log") };
        write.stamp(self.flushed());
        let over = Completion { log, upto: write.upto, how: write.how, over: false };
        let result = self.write_parts(&write);
        over.finish(result.map(|()| write.groups.into_iter().map(|group| group.buf).collect()));
    }

    fn write_parts(&self, write: &GroupWrite) -> disk::Result<()> {
        for group in &write.groups {
            let first = write.layout.until_wrap(group.start).min(group.padded as u64) as usize;
            self.file.write_at(&group.buf[..first], write.layout.physical(group.start))?;
            if first < group.padded {
                let front = write.layout.physical(write.layout.origin);
                self.file.write_at(&group.buf[first..group.padded], front)?;
            }
        }
        if write.how == Flush::Sync {
            self.file.sync_data()?;
        }
        Ok(())
    }

    /// A group write is over: publishes it, starts the next, wakes the waiters.
    fn complete(&self, upto: Lsn, how: Flush, result: disk::Result<Vec<AlignedBuf>>) {
        let buffers = match result {
            Ok(buffers) => buffers,
            Err(error) => {
                // `in_flight` stays: a stopped log writes nothing more.
                return self.stop(&error.to_string());
            }
        };
        let (event, grow, write) = {
            let mut state = self.state.lock();
            for buffer in buffers {
                state.groups.recycle(buffer, self.options.buffer_size);
            }
            if how == Flush::Sync {
                self.set_flushed(upto);
            }
            let write = state.in_flight.take();
            if let Some(write) = write {
                state.rates.log_ends(write.started, upto);
            }
            if let Some(write) = write
                && how == Flush::Sync
            {
                self.sync_times.record(self.env.now().saturating_sub(write.started));
            }
            // Publishing `written` under the mutex, too, so that `join_group` sees both or neither.
            self.ends.ledger.set_written(upto.0);
            let event = state.in_flight_over.clone();
            let go_on = state.next.is_some() || !state.groups.sealed.is_empty();
            let write = if go_on && self.poisoned().is_none() { self.begin(&mut state) } else { None };
            (event, self.growth_if_due(&state, false), write)
        };
        match write {
            Some(write) => self.start(write),
            // The error is kept in the log and given to everyone who asks.
            None => drop(self.stop_if_too_full()),
        }
        event.set();
        if let Some(grow) = grow {
            grow.set();
        }
        if how == Flush::Sync {
            self.mark_if_due();
        }
    }
}

/// What [`RedoLog::join_group`] found.
enum Joined {
    Done,
    Wait(Wait),
    Lead(Wait, GroupWrite),
}

impl GroupWrite {
    /// Fills in the headers. Outside the log's mutex: the checksum of a full group takes a while.
    fn stamp(&mut self, flushed: Lsn) {
        for group in &mut self.groups {
            group::seal(&mut group.buf, group.used, group.padded, group.start, flushed, self.epoch);
        }
    }

    fn wraps(&self) -> bool {
        self.groups.iter().any(|group| group.padded as u64 > self.layout.until_wrap(group.start))
    }
}

/// Reports the end of a group write exactly once, even when the storage is shut down and drops the request.
struct Completion {
    log: Arc<RedoLog>,
    upto: Lsn,
    how: Flush,
    over: bool,
}

impl Completion {
    fn finish(mut self, result: disk::Result<Vec<AlignedBuf>>) {
        self.over = true;
        self.log.complete(self.upto, self.how, result);
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if !self.over {
            self.log.stop("the storage was shut down while the log was being written");
        }
    }
}

/// The parts of a group write that is more than one request.
struct Many {
    remaining: AtomicUsize,
    outcome: Mutex<(disk::Result<Vec<AlignedBuf>>, Option<Completion>)>,
}

impl Many {
    fn part_done(&self, result: disk::Result<IoKind>) {
        {
            let mut outcome = self.outcome.lock();
            match result {
                Ok(kind) => {
                    if let (Some(buf), Ok(buffers)) = (owned(kind), &mut outcome.0) {
                        buffers.push(buf);
                    }
                }
                Err(error) => outcome.0 = Err(error),
            }
        }
        if self.remaining.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let (result, over) = {
            let mut outcome = self.outcome.lock();
            (std::mem::replace(&mut outcome.0, Ok(Vec::new())), outcome.1.take())
        };
        let Some(over) = over else { unreachable!("the last part is done once") };
        match result {
            Ok(buffers) if over.how == Flush::Sync => {
                let log = over.log.clone();
                let io = Io::new(IoKind::Sync, move |result| over.finish(result.map(|_| buffers)));
                log.env.storage().submit(vec![(log.file.clone(), io)]);
            }
            result => over.finish(result),
        }
    }
}

/// The buffer that came back with a completion, when it was not shared.
fn owned(kind: IoKind) -> Option<AlignedBuf> {
    match kind {
        IoKind::Write { buf: IoBuf::Owned(buf, _), .. } => Some(buf),
        _ => None,
    }
}
