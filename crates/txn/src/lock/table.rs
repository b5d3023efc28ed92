//! Who gets a lock, and who waits for it. What becomes of locks when entries come and go is in
//! `inheritance.rs`.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use disk::Histogram;
use disk::sync::Mutex;
use disk::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use smallvec::SmallVec;

use super::deadlock::{DeadlockWitness, Detector};
use super::description::LockDescription;
use super::mode::{Extent, LockMode, WaitPolicy};
use super::outside_waits::Outside;
use super::owner::{Held, Owner, OwnerEpoch, Waiting};
use super::owner_numbers::Owners;
use super::shard::{Entry, Queue, Request, Shard, Single};
use super::target::LockTarget;
use super::wait::{LockWait, WaitCell, WaitState};

/// A model has few: each is a mutex whose orders are explored. Many keep the time short for which one is
/// locked while its tables grow.
const SHARDS: usize = if cfg!(loom) { 1 } else { 1024 };
/// Indexes share these counters by their ids; a collision only costs a look at the successor of an inserted
/// row.
const GAP_COUNTERS: usize = if cfg!(loom) { 1 } else { 1024 };

const BYTES_MAX_LEAST: usize = 256 << 10;

pub(super) type Woken = SmallVec<[Arc<WaitCell>; 4]>;

/// Answer to a lock request.
pub(crate) enum Acquired {
    /// The lock is held (or none is needed). `new`: it was not held before.
    Granted {
        /// Whether this request added the lock.
        new: bool,
    },
    /// Another transaction stands in the way; wait with no latch held, then repeat the step.
    Wait(LockWait),
    /// Another transaction stands in the way, and the caller did not want to wait.
    Refused,
}

/// Figures for SHOW STATUS.
#[derive(Default)]
pub(crate) struct LockCounters {
    pub waits: AtomicU64,
    pub current_waits: AtomicU64,
    pub wait_nanoseconds: AtomicU64,
    pub wait_nanoseconds_max: AtomicU64,
    pub wait_times: Histogram,
    pub timeouts: AtomicU64,
    pub deadlocks: AtomicU64,
    pub locks: AtomicU64,
}

impl LockCounters {
    pub(super) fn wait_started(&self) {
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.current_waits.fetch_add(1, Ordering::Relaxed);
    }
    pub(super) fn wait_finished(&self, took: Duration) {
        let nanoseconds = took.as_nanos() as u64;
        self.current_waits.fetch_sub(1, Ordering::Relaxed);
        self.wait_nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        self.wait_nanoseconds_max.fetch_max(nanoseconds, Ordering::Relaxed);
        self.wait_times.record(took);
    }
}

/// All row locks.
pub(crate) struct LockTable {
    shards: Box<[Mutex<Shard>]>,
    pub(super) seed: u64,
    gap_locks: Box<[AtomicU32]>,
    pub(super) owners: Arc<Owners>,
    /// What the shards occupy.
    bytes: AtomicUsize,
    /// Above this no more locks are given.
    bytes_max: AtomicUsize,
    pub(super) detector: Mutex<Detector>,
    pub(super) deadlock_witness: OnceLock<Arc<dyn DeadlockWitness>>,
    pub(super) outside: Outside,
    pub detect_deadlocks: AtomicBool,
    pub counters: LockCounters,
}

/// A locked shard. When it is let go the account of memory is brought up to date.
pub(super) struct Locked<'t, G: Deref<Target = Shard>> {
    shard: G,
    before: usize,
    bytes: &'t AtomicUsize,
}

impl<G: Deref<Target = Shard>> Deref for Locked<'_, G> {
    type Target = Shard;
    fn deref(&self) -> &Shard {
        &self.shard
    }
}

impl<G: DerefMut<Target = Shard>> DerefMut for Locked<'_, G> {
    fn deref_mut(&mut self) -> &mut Shard {
        &mut self.shard
    }
}

impl<G: Deref<Target = Shard>> Drop for Locked<'_, G> {
    fn drop(&mut self) {
        let now = self.shard.bytes();
        if now != self.before {
            self.bytes.fetch_add(now.wrapping_sub(self.before), Ordering::Relaxed);
        }
    }
}

impl LockTable {
    /// An empty table. `seed` keys the fingerprints.
    pub fn new(seed: u64) -> Arc<LockTable> {
        Arc::new(LockTable {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            seed,
            gap_locks: (0..GAP_COUNTERS).map(|_| AtomicU32::new(0)).collect(),
            owners: Arc::default(),
            bytes: AtomicUsize::new(0),
            bytes_max: AtomicUsize::new(usize::MAX),
            detector: Mutex::default(),
            deadlock_witness: OnceLock::new(),
            outside: Outside::default(),
            detect_deadlocks: AtomicBool::new(true),
            counters: LockCounters::default(),
        })
    }

    /// Limits the memory for locks. Requests that come when it is used up fail, and their transactions are
    /// rolled back. What empty tables keep is below the lowest limit.
    pub fn set_bytes_max(&self, bytes: usize) {
        self.bytes_max.store(bytes.max(BYTES_MAX_LEAST), Ordering::Relaxed);
    }

    /// What the locks occupy, about.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn is_full(&self) -> bool {
        self.bytes() > self.bytes_max.load(Ordering::Relaxed)
    }

    pub(super) fn shard(&self, place: u64) -> Locked<'_, impl DerefMut<Target = Shard>> {
        self.shard_numbered((place >> 54) as usize % SHARDS)
    }

    pub(super) fn shard_numbered(&self, number: usize) -> Locked<'_, impl DerefMut<Target = Shard>> {
        let shard = self.shards[number].lock();
        Locked { before: shard.bytes(), shard, bytes: &self.bytes }
    }

    pub(super) fn shard_count(&self) -> usize {
        SHARDS
    }

    pub(super) fn counter_of(target: LockTarget) -> u16 {
        (target.index as usize % GAP_COUNTERS) as u16
    }

    /// Whether the index may have gap locks. To be asked with the leaf latched into which a row goes: a scan
    /// that locks gaps counts its lock before it looks at the leaf again, so one of the two sees the other.
    pub fn has_gap_locks(&self, index: u64) -> bool {
        self.gap_locks[index as usize % GAP_COUNTERS].load(Ordering::SeqCst) != 0
    }

    fn counted_in(&self, counter: u16, mode: LockMode) {
        self.counters.locks.fetch_add(1, Ordering::Relaxed);
        if mode.guards_gap() {
            self.gap_locks[usize::from(counter)].fetch_add(1, Ordering::SeqCst);
        }
    }

    pub(super) fn counted_out(&self, counter: u16, mode: LockMode) {
        self.counters.locks.fetch_sub(1, Ordering::Relaxed);
        if mode.guards_gap() {
            self.gap_locks[usize::from(counter)].fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Requests a lock for the owner's current transaction.
    pub fn request(
        self: &Arc<Self>,
        owner: &Arc<Owner>,
        target: LockTarget,
        mode: LockMode,
        policy: WaitPolicy,
        place: &dyn Fn() -> LockDescription,
    ) -> Acquired {
        let mode = if target.is_supremum() && mode.extent == Extent::NextKey {
            LockMode { extent: Extent::Gap, ..mode }
        } else {
            mode
        };
        let mut shard = self.shard(target.place);
        match shard.entry(target.place) {
            Entry::Single(single) if single.owner == owner.number() => {
                if single.mode.covers(mode) {
                    return Acquired::Granted { new: false };
                }
                if mode.covers(single.mode) {
                    // The account of gap locks never misses one that is held.
                    self.counted_in(single.counter, mode);
                    self.counted_out(single.counter, single.mode);
                    single.mode = mode;
                    return Acquired::Granted { new: false };
                }
            }
            Entry::Queue(queue) if queue.has_granted(owner, mode) => {
                return Acquired::Granted { new: false };
            }
            // Not a reason to make it a queue.
            Entry::Single(single)
                if policy != WaitPolicy::Wait
                    && single.owner != owner.number()
                    && mode.conflicts(single.mode, target.is_supremum()) =>
            {
                return Acquired::Refused;
            }
            _ => {}
        }
        if self.is_full() {
            return self.no_room(owner, target, mode);
        }
        if matches!(shard.entry(target.place), Entry::Free) {
            let mut held = owner.held.lock();
            self.add_single(&mut shard, owner, &mut held, target, mode);
            return Acquired::Granted { new: true };
        }
        let queue = shard.queue(target.place, Self::counter_of(target), |number| self.owners.get(number));
        if !queue.is_blocked(queue.requests.len(), owner, mode, target) {
            self.push(queue, owner, target, mode, None);
            return Acquired::Granted { new: true };
        }
        if policy != WaitPolicy::Wait {
            return Acquired::Refused;
        }
        let cell = Arc::new(WaitCell::default());
        self.push(queue, owner, target, mode, Some(cell.clone()));
        drop(shard);
        self.begin_wait(owner, target, mode, cell, place)
    }

    /// For a change of an existing entry: waits like a request for X on the record, but takes no lock when
    /// nobody stands in the way, since the change itself is a lock (its DB_TRX_ID). The entry's leaf must
    /// stay X-latched from here to the change.
    pub fn request_change(
        self: &Arc<Self>,
        owner: &Arc<Owner>,
        target: LockTarget,
        policy: WaitPolicy,
        place: &dyn Fn() -> LockDescription,
    ) -> Acquired {
        self.request_passing(owner, target, LockMode::X_RECORD, policy, place)
    }

    /// For an insertion before the entry `successor`: waits while another transaction has the gap locked.
    /// Leaves no lock behind, save those that the new entry inherits.
    pub fn request_insert(
        self: &Arc<Self>,
        owner: &Arc<Owner>,
        successor: LockTarget,
        place: &dyn Fn() -> LockDescription,
    ) -> Acquired {
        if self.is_full() {
            return self.no_room(owner, successor, LockMode::INSERT);
        }
        self.request_passing(owner, successor, LockMode::INSERT, WaitPolicy::Wait, place)
    }

    fn request_passing(
        self: &Arc<Self>,
        owner: &Arc<Owner>,
        target: LockTarget,
        mode: LockMode,
        policy: WaitPolicy,
        place: &dyn Fn() -> LockDescription,
    ) -> Acquired {
        let mut shard = self.shard(target.place);
        let blocked = match shard.entry(target.place) {
            Entry::Free => false,
            Entry::Single(single) => {
                single.owner != owner.number() && mode.conflicts(single.mode, target.is_supremum())
            }
            Entry::Queue(queue) => {
                !queue.has_granted(owner, mode) && queue.is_blocked(queue.requests.len(), owner, mode, target)
            }
        };
        if !blocked {
            return Acquired::Granted { new: false };
        }
        if policy != WaitPolicy::Wait {
            return Acquired::Refused;
        }
        let queue = shard.queue(target.place, Self::counter_of(target), |number| self.owners.get(number));
        let cell = Arc::new(WaitCell::default());
        self.push(queue, owner, target, mode, Some(cell.clone()));
        drop(shard);
        self.begin_wait(owner, target, mode, cell, place)
    }

    /// Adds the only lock on a target. `held` is the owner's.
    fn add_single(
        &self,
        shard: &mut Shard,
        owner: &Arc<Owner>,
        held: &mut Held,
        target: LockTarget,
        mode: LockMode,
    ) {
        held.add(owner, &self.owners, target.place, self.counters.locks.load(Ordering::Relaxed));
        let counter = Self::counter_of(target);
        self.counted_in(counter, mode);
        shard.insert(target.place, Single { owner: owner.number(), counter, mode });
    }

    fn push(
        &self,
        queue: &mut Queue,
        owner: &Arc<Owner>,
        target: LockTarget,
        mode: LockMode,
        waiting: Option<Arc<WaitCell>>,
    ) {
        let mut held = owner.held.lock();
        held.add(owner, &self.owners, target.place, self.counters.locks.load(Ordering::Relaxed));
        queue.requests.push(Request { owner: owner.clone(), mode, waiting });
        self.counted_in(queue.counter, mode);
    }

    /// The answer when the memory for locks is used up: a wait that has ended already.
    fn no_room(self: &Arc<Self>, owner: &Arc<Owner>, target: LockTarget, mode: LockMode) -> Acquired {
        let cell = Arc::new(WaitCell::default());
        cell.end(WaitState::NoRoom);
        cell.wake();
        Acquired::Wait(self.wait_for(owner, target, mode, cell))
    }

    fn wait_for(
        self: &Arc<Self>,
        owner: &Arc<Owner>,
        target: LockTarget,
        mode: LockMode,
        cell: Arc<WaitCell>,
    ) -> LockWait {
        LockWait { table: self.clone(), owner: owner.clone(), target, mode, cell, finished: false }
    }

    fn begin_wait(
        self: &Arc<Self>,
        owner: &Arc<Owner>,
        target: LockTarget,
        mode: LockMode,
        cell: Arc<WaitCell>,
        place: &dyn Fn() -> LockDescription,
    ) -> Acquired {
        let waiting = Waiting { target, mode, cell: cell.clone(), place: place().into() };
        *owner.waiting.lock() = Some(waiting);
        // A kill that came before this line finds nothing to interrupt; one that comes after finds the wait.
        if owner.killed.load(Ordering::SeqCst) {
            self.abort_wait(owner, WaitState::Killed);
        }
        Acquired::Wait(self.wait_for(owner, target, mode, cell))
    }

    /// Interrupts what `owner` waits for, if it waits: the request leaves the queue.
    pub(crate) fn abort_wait(&self, owner: &Arc<Owner>, state: WaitState) -> bool {
        let Some(waiting) = owner.waiting.lock().clone() else { return false };
        self.abort_this_wait(owner, &waiting, state)
    }

    /// As [`Self::abort_wait`], but only if it is this wait.
    pub(super) fn abort_this_wait(&self, owner: &Arc<Owner>, waiting: &Waiting, state: WaitState) -> bool {
        let mut woken = Woken::new();
        let mut shard = self.shard(waiting.target.place);
        let aborted = waiting.cell.end(state);
        if aborted {
            self.remove_waiting(&mut shard, owner, waiting.target, &waiting.cell, &mut woken);
        }
        drop(shard);
        if aborted {
            waiting.cell.wake();
        }
        wake(woken);
        aborted
    }

    /// How a wait has ended; when it has not, the request is taken back (a timeout).
    pub(super) fn end_wait(&self, owner: &Arc<Owner>, target: LockTarget, cell: &Arc<WaitCell>) -> WaitState {
        let mut woken = Woken::new();
        let mut shard = self.shard(target.place);
        let state = cell.state();
        if state == WaitState::Waiting {
            cell.end(WaitState::Retry);
            self.remove_waiting(&mut shard, owner, target, cell, &mut woken);
        }
        drop(shard);
        *owner.waiting.lock() = None;
        wake(woken);
        state
    }

    fn remove_waiting(
        &self,
        shard: &mut Shard,
        owner: &Arc<Owner>,
        target: LockTarget,
        cell: &Arc<WaitCell>,
        woken: &mut Woken,
    ) {
        let Some(queue) = shard.queue_of(target.place) else { return };
        let mine = |request: &Request| request.waiting.as_ref().is_some_and(|other| Arc::ptr_eq(other, cell));
        if let Some(position) = queue.requests.iter().position(mine) {
            let request = queue.requests.remove(position);
            self.counted_out(queue.counter, request.mode);
            owner.forget(target.place);
            queue.grant(target, woken);
        }
        shard.drop_empty_queue(target.place);
    }

    /// Makes the implicit lock of a record's last writer explicit. False when that transaction has ended, or
    /// has none: it may have written the row and not come to this index entry yet.
    pub fn make_explicit(&self, writer: &OwnerEpoch, target: LockTarget) -> bool {
        self.add_for(writer, target, LockMode::X_RECORD)
    }

    /// Adds a granted lock in the name of a transaction; false if it has ended, or if another has a lock that
    /// it would have had to wait for: then it does not have this one. Those who must now wait for it too,
    /// which may be waiting itself, look again, so that a cycle that this closes is found by their search.
    /// They leave the queue.
    pub(super) fn add_for(&self, heir: &OwnerEpoch, target: LockTarget, mode: LockMode) -> bool {
        let owner = &heir.owner;
        let mut woken = Woken::new();
        let mut shard = self.shard(target.place);
        let mut held = owner.held.lock();
        if held.epoch != heir.epoch || held.ending {
            return false;
        }
        match shard.entry(target.place) {
            Entry::Free => {
                self.add_single(&mut shard, owner, &mut held, target, mode);
                return true;
            }
            Entry::Single(single) if single.owner == owner.number() && single.mode.covers(mode) => {
                return true;
            }
            Entry::Single(single)
                if single.owner != owner.number() && mode.conflicts(single.mode, target.is_supremum()) =>
            {
                return false;
            }
            Entry::Queue(queue) if queue.has_granted(owner, mode) => return true,
            Entry::Queue(queue) if queue.is_granted_against(owner, mode, target) => return false,
            _ => {}
        }
        drop(held);
        let queue = shard.queue(target.place, Self::counter_of(target), |number| self.owners.get(number));
        let counter = queue.counter;
        queue.requests.retain(|request| {
            let hindered =
                !Arc::ptr_eq(&request.owner, owner) && request.mode.conflicts(mode, target.is_supremum());
            match &request.waiting {
                Some(cell) if hindered && cell.end(WaitState::Retry) => {
                    woken.push(cell.clone());
                    self.counted_out(counter, request.mode);
                    request.owner.forget(target.place);
                    false
                }
                _ => true,
            }
        });
        // The transaction may have ended meanwhile, but its locks here go only when this shard can be locked.
        let mut held = owner.held.lock();
        let added = held.epoch == heir.epoch && !held.ending;
        if added {
            held.add(owner, &self.owners, target.place, self.counters.locks.load(Ordering::Relaxed));
            self.counted_in(counter, mode);
            queue.requests.insert(0, Request { owner: owner.clone(), mode, waiting: None });
        }
        drop(held);
        // Those who went out of the queue may have been all that others waited for.
        queue.grant(target, &mut woken);
        shard.drop_empty_queue(target.place);
        drop(shard);
        wake(woken);
        added
    }

    /// Whether anybody has or wants a lock on the target.
    pub fn is_locked(&self, target: LockTarget) -> bool {
        self.shard(target.place).contains(target.place)
    }

    /// A copy of the queue of a target, for the search of deadlocks.
    pub(super) fn requests(&self, target: LockTarget) -> Vec<QueueEntry> {
        let mut shard = self.shard(target.place);
        // Who waits there waits in a queue.
        let Some(queue) = shard.queue_of(target.place) else { return Vec::new() };
        queue.requests.iter().map(QueueEntry::of).collect()
    }
}

/// A request as the search of deadlocks and lists see it.
#[derive(Clone)]
pub(super) struct QueueEntry {
    pub owner: Arc<Owner>,
    pub mode: LockMode,
    pub granted: bool,
}

impl QueueEntry {
    pub fn of(request: &Request) -> QueueEntry {
        QueueEntry { owner: request.owner.clone(), mode: request.mode, granted: request.waiting.is_none() }
    }
}

pub(super) fn wake(woken: Woken) {
    for cell in woken {
        cell.wake();
    }
}
