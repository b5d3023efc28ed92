//! The log in memory: the group that collects, the full ones that wait for their write, and the append.
//!
//! A group has a buffer of its own that travels with its write and comes back, so memory under I/O is never
//! written to and no `unsafe` is needed. Two buffers alternate in normal life: one is on its way to the disk
//! while the other collects. Groups lie one after the other without a gap: the next one starts where the
//! padding of the last one ends.
//!
//! [`Groups`] is guarded by the log's mutex; [`Ends`] are the positions that others read without it. An
//! append moves both while it holds the mutex, so LSN order is the order in which the mutex was taken, and
//! what an append calls before it lets go of it (entering pages into the flush list) happens in LSN order,
//! too. The loom models at the end explore appenders against each other and against the writer that seals and
//! takes groups away.

use crate::Lsn;
use crate::admission::Ledger;
use crate::group::{FRAME, HEADER};
use disk::AlignedBuf;
use disk::sync::atomic::{AtomicU64, Ordering};
use std::collections::VecDeque;

/// A group that takes no more mini-transactions.
pub(crate) struct Sealed {
    pub buf: AlignedBuf,
    pub used: usize,
    pub padded: usize,
    pub start: Lsn,
}

/// Sizes that follow from the layout of the file and the options.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    /// Groups start at multiples of this.
    pub block: usize,
    /// A group is sealed before it grows beyond this (unless a single mini-transaction is larger).
    pub group: usize,
    /// Starts of groups are remembered at least this far apart.
    pub start_spacing: u64,
}

/// Where the log ends, and what has been promised of the room after it.
pub(crate) struct Ends {
    pub ledger: Ledger,
    current: AtomicU64,
}

impl Ends {
    /// An empty log that ends at `end`.
    pub(crate) fn new(end: Lsn, buffer_size: u64) -> Ends {
        let ledger = Ledger::new(buffer_size);
        ledger.appended(end.0);
        ledger.set_written(end.0);
        Ends { ledger, current: AtomicU64::new(end.0) }
    }

    /// End of what was appended.
    #[inline]
    pub(crate) fn current(&self) -> Lsn {
        Lsn(self.current.load(Ordering::Acquire))
    }

    /// The end of the log, which has nothing unwritten, is found to be further on.
    pub(crate) fn move_to(&self, end: Lsn) {
        let moved = end.0 - self.current.swap(end.0, Ordering::AcqRel);
        self.ledger.appended(moved);
    }

    #[inline]
    fn grow(&self, bytes: u64, end: Lsn) {
        // Before the promise of these bytes is given back: the books are never too low.
        self.ledger.appended(bytes);
        self.current.store(end.0, Ordering::Release);
    }
}

/// The groups that have not been handed to a write.
pub(crate) struct Groups {
    pub sizes: Sizes,
    /// The open group: its buffer, bytes used of it (0: nothing appended yet), its LSN.
    buf: AlignedBuf,
    used: usize,
    pub start: Lsn,
    pub sealed: VecDeque<Sealed>,
    spare: Vec<AlignedBuf>,
    /// Starts of some of the groups since the checkpoint, ascending: where a recovery may begin.
    pub starts: VecDeque<Lsn>,
}

impl Groups {
    /// No groups; the first will start at `start`, a block boundary.
    pub(crate) fn new(sizes: Sizes, start: Lsn) -> Groups {
        Groups {
            sizes,
            buf: AlignedBuf::zeroed(sizes.group),
            used: 0,
            start,
            sealed: VecDeque::new(),
            spare: Vec::new(),
            starts: VecDeque::new(),
        }
    }

    /// The circle has another size. The open group ends where it would have.
    #[cfg(not(loom))]
    pub(crate) fn resize(&mut self, sizes: Sizes) {
        self.sizes = sizes;
        self.spare.clear();
    }

    /// Whether everything has been handed to a write.
    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0 && self.sealed.is_empty()
    }

    /// Appends the records of one mini-transaction; returns where it starts and ends, and whether a group
    /// became full.
    #[inline]
    pub(crate) fn append(&mut self, ends: &Ends, records: &[u8]) -> (Lsn, Lsn, bool) {
        let frame = FRAME + records.len();
        let mut moved = 0;
        let full = self.used.max(HEADER) + frame > self.buf.len();
        if full {
            moved = self.make_room(frame);
        }
        if self.used == 0 {
            self.used = HEADER;
            moved += HEADER as u64;
        }
        let at = self.used;
        let end = at + frame;
        let group = &mut self.buf[at..end];
        group[..FRAME].copy_from_slice(&(records.len() as u32).to_le_bytes());
        group[FRAME..].copy_from_slice(records);
        self.used = end;
        let (start, end) = (self.start.plus(at as u64), self.start.plus(end as u64));
        ends.grow(moved + frame as u64, end);
        (start, end, full)
    }

    /// Closes the open group, if it has anything in it, on behalf of a group write.
    pub(crate) fn seal_open(&mut self, ends: &Ends) {
        let moved = self.seal();
        if moved > 0 {
            ends.grow(moved, self.start);
        }
    }

    /// Closes the open group. Returns by how many bytes the end of the log moved.
    fn seal(&mut self) -> u64 {
        if self.used == 0 {
            return 0;
        }
        let padded = self.used.next_multiple_of(self.sizes.block);
        let next = self.spare.pop().unwrap_or_else(|| AlignedBuf::zeroed(self.sizes.group));
        let buf = std::mem::replace(&mut self.buf, next);
        self.remember_start(self.start);
        self.sealed.push_back(Sealed { buf, used: self.used, padded, start: self.start });
        let moved = (padded - self.used) as u64;
        self.start = self.start.plus(padded as u64);
        self.used = 0;
        moved
    }

    /// Notes that recovery may begin at the group at `start`.
    pub(crate) fn remember_start(&mut self, start: Lsn) {
        let spacing = self.sizes.start_spacing;
        if self.starts.back().is_none_or(|last| start.since(*last) >= spacing) {
            self.starts.push_back(start);
        }
    }

    /// Takes back the buffer of a written group; as many are kept as a full log buffer has groups.
    pub(crate) fn recycle(&mut self, buf: AlignedBuf, buffer_size: usize) {
        if buf.len() == self.sizes.group && self.spare.len() * self.sizes.group < buffer_size {
            self.spare.push(buf);
        }
    }

    /// Prepares the open group for a frame of `bytes`. Returns by how many bytes the end of the log moved
    /// because a full group was sealed.
    fn make_room(&mut self, bytes: usize) -> u64 {
        let mut moved = 0;
        if self.used > 0 && self.used + bytes > self.buf.len() {
            moved = self.seal();
        }
        if HEADER + bytes > self.buf.len() {
            let large = AlignedBuf::zeroed((HEADER + bytes).next_multiple_of(4096));
            let small = std::mem::replace(&mut self.buf, large);
            self.spare.push(small);
        }
        moved
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use disk::sync::Mutex;
    use loom::sync::Arc;
    use loom::thread;

    /// What [`crate::RedoLog`] has of appending: the mutex, the groups, the ends, and a flush list.
    struct Log {
        state: Mutex<(Groups, Vec<(Lsn, Lsn)>)>,
        ends: Ends,
    }

    /// Explores with at most two preemptions: three threads without a bound take hours.
    fn model(run: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        builder.check(run);
    }

    const START: Lsn = Lsn(8192);
    const BLOCK: usize = 512;
    /// Records of one mini-transaction.
    const RECORDS: usize = 300;
    /// What one promises: its frame, a header, padding.
    const PROMISE: u64 = (RECORDS + FRAME + HEADER + BLOCK) as u64;

    impl Log {
        fn new(buffer_size: u64) -> Arc<Log> {
            let sizes = Sizes { block: BLOCK, group: 4096, start_spacing: 0 };
            let ends = Ends::new(START, buffer_size);
            ends.ledger.set_file_limit(START.0 + (1 << 20));
            Arc::new(Log { state: Mutex::new((Groups::new(sizes, START), Vec::new())), ends })
        }

        fn append(&self) -> (Lsn, Lsn) {
            let mut places = Vec::new();
            while let Err(refusal) = self.ends.ledger.promise(PROMISE) {
                refusal.notice.wait();
                places.push(refusal.number);
            }
            places.into_iter().for_each(|place| self.ends.ledger.leave(place));
            let mut state = self.state.lock();
            let (groups, list) = &mut *state;
            let (start, end, _) = groups.append(&self.ends, &[7; RECORDS]);
            list.push((start, end));
            drop(state);
            assert!(self.ends.current() >= end, "what was appended is before the end");
            self.ends.ledger.give_back(PROMISE);
            (start, end)
        }

        /// What a group write does, up to the publication of what was written. Returns the groups' extents.
        fn write(&self) -> Vec<(Lsn, Lsn)> {
            let mut state = self.state.lock();
            state.0.seal_open(&self.ends);
            let taken: Vec<Sealed> = state.0.sealed.drain(..).collect();
            let upto = state.0.start;
            // As in RedoLog: one write at a time, published under the mutex.
            self.ends.ledger.set_written(upto.0);
            drop(state);
            taken.iter().map(|group| (group.start, group.start.plus(group.padded as u64))).collect()
        }

        /// After all threads: flush list in LSN order, extents disjoint, groups without gaps, books in
        /// balance.
        fn check(&self, mut written: Vec<(Lsn, Lsn)>, appended: &[(Lsn, Lsn)]) {
            written.extend(self.write());
            written.sort_unstable();
            let mut at = START;
            for (start, end) in &written {
                assert_eq!(*start, at, "groups lie one after the other");
                at = *end;
            }
            let state = self.state.lock();
            let list = &state.1;
            assert_eq!(list.len(), appended.len());
            assert!(
                list.windows(2).all(|pair| pair[0].1 <= pair[1].0),
                "flush list order is LSN order: {list:?}"
            );
            for (start, end) in appended {
                assert!(list.contains(&(*start, *end)));
                let inside = |group: &&(Lsn, Lsn)| group.0.plus(HEADER as u64) <= *start && *end <= group.1;
                assert_eq!(written.iter().filter(inside).count(), 1, "one group has it whole");
            }
            assert_eq!((at, state.0.start), (self.ends.current(), self.ends.current()));
            // All promises were given back: exactly the buffer's size can be promised now.
            assert!(self.ends.ledger.promise(self.ends.ledger.buffer_size()).is_ok());
            assert!(self.ends.ledger.promise(1).is_err());
        }
    }

    #[test]
    fn loom_appends_are_ordered_and_disjoint_while_groups_are_taken() {
        model(|| {
            let log = Log::new(1 << 16);
            let other = {
                let log = log.clone();
                thread::spawn(move || log.append())
            };
            let writer = {
                let log = log.clone();
                thread::spawn(move || log.write())
            };
            let mine = log.append();
            let appended = [mine, other.join().unwrap()];
            let written = writer.join().unwrap();
            log.check(written, &appended);
        });
    }

    /// The buffer has room for one promise: the second appender goes on when the writer has made room, in
    /// every order.
    #[test]
    fn loom_an_appender_without_room_is_woken_by_the_writer() {
        model(|| {
            let log = Log::new(PROMISE);
            let writer = {
                let log = log.clone();
                thread::spawn(move || {
                    // Until both have been appended: like the completion that starts the next write.
                    let mut written = Vec::new();
                    while log.ends.current() < START.plus(2 * BLOCK as u64) {
                        written.extend(log.write());
                        thread::yield_now();
                    }
                    written
                })
            };
            let appended = [log.append(), log.append()];
            let written = writer.join().unwrap();
            log.check(written, &appended);
        });
    }
}
