//! The log as a whole: its options, its positions, and append. Admission is `admission.rs`.
//!
//! Appending copies a mini-transaction into the open group ([`crate::groups`]) under one short mutex, which
//! also orders LSNs. A full group is sealed and waits in a queue; room for that was promised by
//! [`RedoLog::admit`].
//!
//! Positions: `flushed <= written <= current`. The start of the open group is a block boundary; an empty log
//! between two groups has `current` there, and the first append skips the header. So the end LSN of a
//! mini-transaction is never the LSN of anything else.

use crate::checkpoint_block::CheckpointBlock;
use crate::group::{FRAME, HEADER};
use crate::groups::{Ends, Groups, Sizes};
use crate::layout::Layout;
use crate::rates::Rates;
use crate::resize::Walk;
use crate::{Error, Flush, Lsn};
use disk::{Environment, Event, File, Histogram, Times};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// Settings of a log.
#[derive(Clone, Debug)]
pub struct Options {
    /// The most bytes of the circular file (`innodb_redo_log_capacity`, at least [`crate::CAPACITY_MIN`] for
    /// users). A smaller one takes effect when the log is opened after an orderly shutdown.
    pub capacity: u64,
    /// Bytes of appended but unwritten log kept in memory (`innodb_log_buffer_size`).
    pub buffer_size: usize,
    /// Bytes of the file when the log is created; it grows when the age of the checkpoint asks for more.
    pub first_size: u64,
    /// Groups start on multiples of this: 512, or 4096 where direct I/O asks for it. Discovered at creation
    /// when `None`.
    pub block_size: Option<usize>,
    /// Pause between the syncs in the background that bound the loss of `innodb_flush_log_at_trx_commit` 0
    /// and 2 (`innodb_flush_log_at_timeout`).
    pub background_sync: std::time::Duration,
    /// Pause between the steps of a change of the capacity ([`RedoLog::set_capacity`]).
    pub resize_step: Duration,
    /// Number of the data directory, written into the log at its creation and each opening.
    /// [`RedoLog::owner`] says which one was found. 0: none.
    pub owner: u64,
    /// For a new log: the LSN it begins at or soon after. Above every LSN that pages of the directory may
    /// have.
    pub begin_at: Lsn,
    /// For a new log: the number of its first opening ([`RedoLog::epoch`]). Above those of a log it replaces.
    pub first_epoch: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            capacity: 100 << 20,
            buffer_size: 16 << 20,
            first_size: 1 << 20,
            block_size: None,
            background_sync: std::time::Duration::from_secs(1),
            resize_step: Duration::from_millis(100),
            owner: 0,
            begin_at: Lsn(0),
            first_epoch: 1,
        }
    }
}

/// Counters and positions of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// End of what was appended (`Innodb_redo_log_current_lsn`).
    pub current: Lsn,
    /// End of what was handed to the operating system.
    pub written: Lsn,
    /// End of what is durable (`Innodb_redo_log_flushed_to_disk_lsn`).
    pub flushed: Lsn,
    /// Where recovery would start (`Innodb_redo_log_checkpoint_lsn`).
    pub checkpoint: Lsn,
    /// The most the log may grow beyond the checkpoint, in bytes.
    pub capacity: u64,
    /// Mini-transactions appended (`Innodb_log_write_requests`).
    pub appends: u64,
    /// Groups written (`Innodb_log_writes`).
    pub groups_written: u64,
    /// Syncs of the file (`Innodb_os_log_fsyncs`).
    pub syncs: u64,
    /// Bytes written, headers and padding included (`Innodb_os_log_written`).
    pub bytes_written: u64,
    /// Admissions that had to wait for room in the buffer (`Innodb_log_waits`).
    pub buffer_waits: u64,
    /// Admissions that had to wait for room in the file, or because the checkpoint is too old.
    pub room_waits: u64,
    /// Checkpoints taken.
    pub checkpoints: u64,
}

/// The redo log of a data directory.
pub struct RedoLog {
    pub(crate) me: Weak<RedoLog>,
    pub(crate) env: Arc<dyn Environment>,
    pub(crate) file: Arc<dyn File>,
    pub(crate) options: Options,
    pub(crate) ends: Ends,
    flushed: AtomicU64,
    checkpoint: AtomicU64,
    pub(crate) usable: AtomicU64,
    /// The same for the capacity that is wanted.
    pub(crate) usable_wanted: AtomicU64,
    /// See [`RedoLog::circle_bytes`].
    pub(crate) circle: AtomicU64,
    /// See [`RedoLog::search_bytes`].
    pub(crate) searched: AtomicU64,
    /// What a promise adds to the records: frame, header, and padding up to a block.
    pub(crate) overhead: AtomicU64,
    pub(crate) buffer_waits: AtomicU64,
    pub(crate) room_waits: AtomicU64,
    pub(crate) sync_times: Histogram,
    poison: OnceLock<Arc<str>>,
    space_wanted: Mutex<Event>,
    /// The most that one of those who wait for it has asked for, in bytes.
    space_short: AtomicU64,
    /// What the age of the checkpoint should come down to for somebody who waits for it; `u64::MAX`: nobody.
    age_wanted: AtomicU64,
    pub(crate) state: Mutex<State>,
    /// Dropped last, see [`RedoLog::keep`].
    kept: Mutex<Vec<Box<dyn Send + Sync>>>,
}

impl Drop for RedoLog {
    fn drop(&mut self) {
        // The task that waits for it ends.
        if let Some(wanted) = &self.state.get_mut().grow_wanted {
            wanted.set();
        }
    }
}

/// Where the log is in its life.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub(crate) enum Phase {
    /// Opened; its end is not known yet.
    NeedsScan,
    /// Takes appends.
    Ready,
    /// About to be shut down: nothing new is admitted, what was admitted is appended.
    Closing,
    /// Shut down.
    Closed,
}

/// A group write under way.
#[derive(Clone, Copy)]
pub(crate) struct InFlight {
    pub upto: Lsn,
    pub how: Flush,
    /// When it began.
    pub started: Duration,
}

/// What the mutex guards.
pub(crate) struct State {
    pub phase: Phase,
    pub layout: Layout,
    /// The checkpoint in force: the newest that is durable.
    pub block: CheckpointBlock,
    /// What the other block on the disk says at least, which counts if that one is damaged.
    pub older_checkpoint: Lsn,
    /// This opening's epoch; in the groups it writes.
    pub epoch: u32,
    /// The first LSN this opening may write.
    pub epoch_start: Lsn,
    /// The most bytes of the file, as wanted.
    pub capacity: u64,
    /// How large the circle may become: that of the capacity, or as large as it is, or was said to be.
    pub area_max: u64,
    /// The circle of the block that was found, of which the file may have had less. A recovery may need it.
    pub area_found: u64,
    /// The capacity on its way down.
    pub walk: Option<Walk>,
    /// Where the circle is to be cut ([`crate::resize`]): the log does not go beyond it before.
    pub aimed_at: Option<Lsn>,
    /// How often the circle has become smaller.
    pub cuts: u64,
    /// How far the log should run ahead of its checkpoint at most.
    pub age_limit: u64,
    /// Set when something may be due for its growth; `None` once it is as large as it may be.
    pub grow_wanted: Option<Event>,
    /// The end of a lap after which the log goes on at the front. Others are not passed before that is
    /// decided ([`crate::growth`]).
    pub wrap_at: Option<Lsn>,
    /// The circle has grown past this, which is not to be passed before its blocks are durable.
    pub growing_from: Option<Lsn>,
    /// The file could not become longer; before this time it is not tried again.
    pub grow_after: Option<Duration>,
    /// Set when the growth under way is over.
    pub growing: Option<Event>,
    /// The most bytes that were between the checkpoint and the end of the log since the start.
    pub age_most: u64,
    /// Set to end the rests of a growth under way.
    pub growth_hurry: Event,
    /// The file has zeros up to this byte, if that is past its circle.
    pub zeros_upto: u64,
    pub rates: Rates,
    pub groups: Groups,
    /// End of the last mini-transaction; what lies between it and the end of the log is padding.
    pub last_end: Lsn,
    pub in_flight: Option<InFlight>,
    /// Set when the group write in flight is over.
    pub in_flight_over: Event,
    /// Set when the group write after that is over.
    pub next_over: Event,
    /// What the next group write was asked for.
    pub next: Option<Flush>,
    /// Set when the checkpoint being written is durable or failed.
    pub checkpoint_over: Option<Event>,
    /// Who copies the log ([`crate::Archive`]).
    pub archived: Option<Archived>,
    /// Archives begun so far.
    pub archives: u64,
    pub appends: u64,
    pub groups_written: u64,
    pub syncs: u64,
    pub bytes_written: u64,
    pub checkpoints: u64,
}

/// A copy of the log under way.
pub(crate) struct Archived {
    pub number: u64,
    /// From here on it has not been copied.
    pub from: Lsn,
}

impl State {
    /// Start of what must not be overwritten: what recovery or an archive needs.
    pub(crate) fn kept_from(&self) -> Lsn {
        let archived = self.archived.as_ref();
        archived.map_or(self.block.scan_start, |archived| archived.from.min(self.block.scan_start))
    }

    /// Whether the log may end at `end` without reaching what recovery needs, or passing a point past which
    /// it is undecided whether to wrap or grow.
    pub(crate) fn fits(&self, end: Lsn) -> bool {
        end.since(self.kept_from()) <= self.layout.area
            && self.reach().is_none_or(|reach| end.since(self.block.flushed) <= reach)
            && self.undecided_from().is_none_or(|limit| end <= limit)
    }

    /// How far the log may go past the `flushed` of the block in force, where that is less than the circle.
    pub(crate) fn reach(&self) -> Option<u64> {
        let reach = self.block.reach;
        (reach > 0 && reach < self.block.layout.area).then_some(reach)
    }

    /// Where the reach ends, for promises. As in `usable`, something is left for what admissions do not
    /// count.
    pub(crate) fn reach_limit(&self) -> Option<Lsn> {
        self.reach().map(|reach| self.block.flushed.plus(reach - reach / 32 - 4 * self.layout.block))
    }

    /// How far promises may go: nowhere once the log is closed.
    pub(crate) fn file_limit(&self) -> Lsn {
        if self.phase >= Phase::Closing {
            return Lsn(0);
        }
        self.promise_limit()
    }

    /// The same while it is open.
    pub(crate) fn promise_limit(&self) -> Lsn {
        let limits = [self.reach_limit(), self.wrap_limit()];
        limits.into_iter().flatten().fold(self.circle_limit(), Lsn::min)
    }

    /// Nobody is let in while the log is promised up to here. A log in which nothing is needed ends with the
    /// padding of its last group.
    pub(crate) fn age_limit_at(&self) -> Lsn {
        let limit = self.walk.map_or(u64::MAX, |walk| walk.usable).min(self.age_limit);
        Lsn(self.block.checkpoint.0.saturating_add(limit.max(2 * self.layout.block)))
    }

    /// Where the circle is full, for promises.
    pub(crate) fn circle_limit(&self) -> Lsn {
        self.kept_from().plus(self.layout.usable())
    }

    /// The point past which it is undecided whether to wrap or grow, for promises.
    pub(crate) fn wrap_limit(&self) -> Option<Lsn> {
        self.undecided_from().map(|limit| Lsn(limit.0 - self.layout.block))
    }
}

pub(crate) fn sizes(layout: &Layout, options: &Options) -> Sizes {
    let group = layout.group_bytes(options.buffer_size);
    Sizes { block: layout.block as usize, group, start_spacing: layout.start_spacing() }
}

/// What a log is made from: by creation, or from the checkpoint block found.
pub(crate) struct Found {
    pub env: Arc<dyn Environment>,
    pub file: Arc<dyn File>,
    pub options: Options,
    pub block: CheckpointBlock,
    /// How large its circle may become.
    pub area_max: u64,
    pub phase: Phase,
}

impl RedoLog {
    pub(crate) fn assemble(found: Found) -> Arc<RedoLog> {
        let Found { env, file, options, block, area_max, phase } = found;
        let layout = block.layout;
        let state = State {
            phase,
            layout,
            block,
            older_checkpoint: Lsn(0),
            epoch: block.epoch,
            epoch_start: block.flushed,
            capacity: options.capacity,
            area_max,
            area_found: area_max,
            walk: None,
            aimed_at: None,
            cuts: 0,
            age_limit: u64::MAX,
            grow_wanted: None,
            wrap_at: None,
            growing_from: None,
            grow_after: None,
            growing: None,
            age_most: 0,
            growth_hurry: Event::new(),
            zeros_upto: 0,
            rates: Rates::new(),
            groups: Groups::new(sizes(&layout, &options), block.flushed),
            last_end: block.flushed,
            in_flight: None,
            in_flight_over: Event::new(),
            next_over: Event::new(),
            next: None,
            checkpoint_over: None,
            archived: None,
            archives: 0,
            appends: 0,
            groups_written: 0,
            syncs: 0,
            bytes_written: 0,
            checkpoints: 0,
        };
        let end = block.flushed.0;
        let ends = Ends::new(block.flushed, options.buffer_size as u64);
        let log = Arc::new_cyclic(|me| RedoLog {
            me: me.clone(),
            env,
            file,
            ends,
            flushed: AtomicU64::new(end),
            checkpoint: AtomicU64::new(block.checkpoint.0),
            usable: AtomicU64::new(Layout { area: area_max, ..layout }.usable()),
            usable_wanted: AtomicU64::new(Layout { area: options.area_max(), ..layout }.usable()),
            circle: AtomicU64::new(layout.area),
            searched: AtomicU64::new(layout.area),
            overhead: AtomicU64::new((HEADER + FRAME) as u64 + layout.block),
            buffer_waits: AtomicU64::new(0),
            room_waits: AtomicU64::new(0),
            sync_times: Histogram::default(),
            poison: OnceLock::new(),
            space_wanted: Mutex::new(Event::new()),
            space_short: AtomicU64::new(0),
            age_wanted: AtomicU64::new(u64::MAX),
            kept: Mutex::default(),
            state: Mutex::new(state),
            options,
        });
        log.publish_limits(&log.state.lock());
        log
    }

    /// After the scan: the log ends at `end`, under this checkpoint and geometry.
    pub(crate) fn restart_at(&self, state: &mut State, block: CheckpointBlock, end: Lsn) {
        assert!(state.groups.is_empty() && state.in_flight.is_none());
        state.layout = block.layout;
        state.block = block;
        state.epoch = block.epoch;
        state.epoch_start = end;
        state.phase = Phase::Ready;
        let starts = std::mem::take(&mut state.groups.starts);
        state.groups = Groups::new(sizes(&block.layout, &self.options), end);
        state.groups.starts = starts;
        state.last_end = end;
        self.ends.move_to(end);
        self.flushed.store(end.0, Ordering::Release);
        self.checkpoint.store(block.checkpoint.0, Ordering::Release);
        self.overhead.store((HEADER + FRAME) as u64 + block.layout.block, Ordering::Relaxed);
        self.ends.ledger.set_written(end.0);
        let largest = Layout { area: state.area_max.max(block.layout.area), ..block.layout };
        self.usable.store(largest.usable(), Ordering::Relaxed);
        self.fit_capacity(state);
        state.settle_wrap(end);
        self.publish_limits(state);
    }

    /// Appends the records of one mini-transaction, and calls `then(start, end)` under the log's mutex, so
    /// that what it does (entering pages into the flush list) happens in LSN order. Returns the end, which is
    /// the pages' new LSN. Never waits: it needs an [`Admission`](crate::Admission) of at least this size.
    ///
    /// # Panics
    /// When the log was opened and not scanned, or is closed; no [`Admission`](crate::Admission) is given out
    /// then.
    #[inline]
    pub fn append(&self, records: &[u8], then: impl FnOnce(Lsn, Lsn)) -> Lsn {
        debug_assert!(!records.is_empty(), "a mini-transaction without records has nothing to append");
        let mut state = self.state.lock();
        let takes_appends = matches!(state.phase, Phase::Ready | Phase::Closing);
        assert!(takes_appends, "append to a redo log that is {:?}", state.phase);
        let (start, end, full) = state.groups.append(&self.ends, records);
        state.appends += 1;
        state.last_end = end;
        then(start, end);
        drop(state);
        if full {
            self.write_sealed();
        }
        end
    }

    /// Whether the log was opened and [`RedoLog::scan`] has not found its end yet. Until then its positions
    /// are those of the checkpoint block, which the log's end may lie past.
    pub fn needs_scan(&self) -> bool {
        self.state.lock().phase == Phase::NeedsScan
    }

    /// Whether the log was found closed: everything is in the data files.
    pub fn found_closed(&self) -> bool {
        let state = self.state.lock();
        state.phase == Phase::NeedsScan && state.block.closed
    }

    /// End of what was appended: the LSN of now.
    #[inline]
    pub fn current(&self) -> Lsn {
        self.ends.current()
    }

    /// End of what was handed to the operating system.
    #[inline]
    pub fn written(&self) -> Lsn {
        Lsn(self.ends.ledger.written())
    }

    /// End of what is durable.
    #[inline]
    pub fn flushed(&self) -> Lsn {
        Lsn(self.flushed.load(Ordering::Acquire))
    }

    pub(crate) fn set_flushed(&self, lsn: Lsn) {
        self.flushed.store(lsn.0, Ordering::Release);
    }

    /// Number of the data directory that the log says it belongs to; 0 when it does not say.
    pub fn owner(&self) -> u64 {
        self.state.lock().block.owner
    }

    /// Number of this opening of the log: one more than that of the opening before.
    pub fn epoch(&self) -> u32 {
        self.state.lock().epoch
    }

    /// Where recovery would start now.
    #[inline]
    pub fn checkpoint_lsn(&self) -> Lsn {
        Lsn(self.checkpoint.load(Ordering::Acquire))
    }

    pub(crate) fn set_checkpoint_lsn(&self, lsn: Lsn) {
        self.checkpoint.store(lsn.0, Ordering::Release);
    }

    /// Keeps something, the lock of the directory say, for as long as anybody may write: everything that
    /// writes holds the log. [`RedoLog::let_go`] gives it back before.
    pub fn keep(&self, what: Box<dyn Send + Sync>) {
        self.kept.lock().push(what);
    }

    /// Drops what is kept: nothing more will be written.
    pub fn let_go(&self) {
        let kept = std::mem::take(&mut *self.kept.lock());
        drop(kept);
    }

    /// The most the log may grow beyond the checkpoint, in bytes; admissions beyond it wait. Less becomes of
    /// it step by step ([`RedoLog::set_capacity`]).
    #[inline]
    pub fn capacity(&self) -> u64 {
        self.usable.load(Ordering::Relaxed)
    }

    /// Bytes of the circle as large as it is: the most that is between a checkpoint and the end
    /// of the log. It may be much less than the capacity, up to which it grows as that is needed.
    pub fn circle_bytes(&self) -> u64 {
        self.circle.load(Ordering::Relaxed)
    }

    /// The most that a start after a crash now would search behind the end of the log, for proof that it ends
    /// there, in bytes: the reach of the checkpoint block in force, or the circle.
    pub fn search_bytes(&self) -> u64 {
        self.searched.load(Ordering::Relaxed)
    }

    /// Bytes from the checkpoint to the end of the log.
    #[inline]
    pub fn age(&self) -> u64 {
        self.current().since(self.checkpoint_lsn())
    }

    /// An event that is set when somebody waits for room in the file, so that the cleaner hurries. After a
    /// checkpoint has advanced there is a fresh one: fetch it each time.
    pub fn space_wanted(&self) -> Event {
        self.space_wanted.lock().clone()
    }

    /// The most that one of those who wait for room in the file has asked for, in bytes; 0 when nobody waits.
    /// Starts again at 0 with a fresh [`RedoLog::space_wanted`]: who is refused again says so again. Often it
    /// is the checkpoint that has to advance; the end of the log may also have to be marked, or its file to
    /// grow.
    pub fn space_short(&self) -> u64 {
        self.space_short.load(Ordering::Relaxed)
    }

    /// What has to be free of the log for those who wait for room in it, in bytes; 0 when nobody waits. Twice
    /// what one of them has asked for, because others are promised room as well; and a checkpoint frees the
    /// log up to where a group begins, a 16th of it before the oldest change at most. What the age limit
    /// leaves of the capacity is to stay free besides ([`RedoLog::set_age_limit`]).
    pub fn room_wanted(&self) -> u64 {
        let (short, capacity) = (self.space_short(), self.capacity());
        let for_age = capacity.saturating_sub(self.age_wanted.load(Ordering::Relaxed));
        if short == 0 {
            return for_age;
        }
        let wanted = short.saturating_mul(2);
        let limit = self.age_limit().min(capacity);
        let below_limit = capacity - limit + wanted.min(limit / 2) + limit / 16;
        let room = wanted.saturating_add(capacity / 16);
        room.max(if limit < capacity { below_limit } else { 0 }).max(for_age)
    }

    /// Asks for a checkpoint that frees this many bytes.
    pub(crate) fn want_space(&self, bytes: u64) {
        self.space_wanted.lock().set();
        self.space_short.fetch_max(bytes, Ordering::Relaxed);
    }

    /// Asks for a checkpoint that is at most this many bytes before the end of the log.
    pub(crate) fn want_age(&self, bytes: u64) {
        self.age_wanted.fetch_min(bytes, Ordering::Relaxed);
        self.space_wanted.lock().set();
    }

    pub(crate) fn renew_space_wanted(&self) {
        self.age_wanted.store(u64::MAX, Ordering::Relaxed);
        self.space_short.store(0, Ordering::Relaxed);
        let mut event = self.space_wanted.lock();
        if event.is_set() {
            *event = Event::new();
        }
    }

    /// The error that stopped the log, if one did.
    #[inline]
    pub fn poisoned(&self) -> Option<Error> {
        self.poison.get().map(|reason| Error::Poisoned { reason: reason.clone() })
    }

    /// Stops the log for good and wakes everybody who waits for anything of it.
    pub(crate) fn stop(&self, reason: &str) {
        if self.poison.set(Arc::from(reason)).is_ok() {
            tracing::error!("redo log stopped: {reason}; nothing more is acknowledged until a restart");
        }
        let events = {
            let state = self.state.lock();
            state.growth_hurry.set();
            let grow = state.grow_wanted.clone();
            let checkpoint = state.checkpoint_over.clone();
            let flush = [Some(state.in_flight_over.clone()), Some(state.next_over.clone())];
            flush.into_iter().chain([grow, checkpoint]).flatten().collect::<Vec<_>>()
        };
        for event in events {
            event.set();
        }
        self.space_wanted.lock().set();
        self.ends.ledger.wake_all();
    }

    /// Wakes everybody who waits for room, to look whether it makes sense to wait any longer.
    pub fn wake_waiting(&self) {
        self.ends.ledger.wake_all();
    }

    /// How long the writes took that sync the log.
    pub fn sync_times(&self) -> Times {
        self.sync_times.times()
    }

    /// Counters and positions.
    pub fn status(&self) -> Status {
        let state = self.state.lock();
        Status {
            current: self.current(),
            written: self.written(),
            flushed: self.flushed(),
            checkpoint: self.checkpoint_lsn(),
            capacity: self.capacity(),
            appends: state.appends,
            groups_written: state.groups_written,
            syncs: state.syncs,
            bytes_written: state.bytes_written,
            buffer_waits: self.buffer_waits.load(Ordering::Relaxed),
            room_waits: self.room_waits.load(Ordering::Relaxed),
            checkpoints: state.checkpoints,
        }
    }
}
