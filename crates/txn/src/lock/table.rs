//! The queues of locks.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use std::time::Duration;

use disk::sync::Mutex;
use disk::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use smallvec::SmallVec;

use super::deadlock::Detector;
use super::mode::{Extent, LockMode, WaitPolicy};
use super::place::Place;
use super::request::{Owner, OwnerEpoch, Waiting};
use super::target::{LockTarget, TargetHasher};
use super::wait::{LockWait, WaitCell, WaitState};

/// A model has few: each is a mutex whose orders are explored.
const SHARDS: usize = if cfg!(loom) { 1 } else { 64 };
/// Indexes share these counters by their ids; a collision only costs a look at the successor of an inserted row.
const GAP_COUNTERS: usize = if cfg!(loom) { 1 } else { 1024 };

#[derive(Clone)]
struct Request {
    owner: Arc<Owner>,
    epoch: u32,
    mode: LockMode,
    /// `None`: granted.
    waiting: Option<Arc<WaitCell>>,
}

/// Requests on one target in order of arrival, granted and waiting mixed.
type Queue = SmallVec<[Request; 1]>;
type Shard = HashMap<LockTarget, Queue, BuildHasherDefault<TargetHasher>>;
type Woken = SmallVec<[Arc<WaitCell>; 4]>;

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
    }
}

/// All row locks.
pub(crate) struct LockTable {
    shards: Box<[Mutex<Shard>]>,
    pub(super) seed: u64,
    gap_locks: Box<[AtomicU32]>,
    pub(super) detector: Mutex<Detector>,
    pub detect_deadlocks: AtomicBool,
    pub counters: LockCounters,
}

impl LockTable {
    /// An empty table. `seed` keys the fingerprints.
    pub fn new(seed: u64) -> Arc<LockTable> {
        Arc::new(LockTable {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            seed,
            gap_locks: (0..GAP_COUNTERS).map(|_| AtomicU32::new(0)).collect(),
            detector: Mutex::default(),
            detect_deadlocks: AtomicBool::new(true),
            counters: LockCounters::default(),
        })
    }

    fn shard(&self, target: LockTarget) -> &Mutex<Shard> {
        &self.shards[(target.hash() >> 58) as usize % SHARDS]
    }

    fn gap_counter(&self, target: LockTarget) -> &AtomicU32 {
        &self.gap_locks[target.index as usize % GAP_COUNTERS]
    }

    /// Whether the index may have gap locks. To be asked with the leaf latched into which a row goes: a scan that
    /// locks gaps counts its lock before it looks at the leaf again, so one of the two sees the other.
    pub fn has_gap_locks(&self, index: u64) -> bool {
        self.gap_locks[index as usize % GAP_COUNTERS].load(Ordering::SeqCst) != 0
    }

    fn counted_in(&self, target: LockTarget, mode: LockMode) {
        self.counters.locks.fetch_add(1, Ordering::Relaxed);
        if mode.guards_gap() {
            self.gap_counter(target).fetch_add(1, Ordering::SeqCst);
        }
    }

    fn counted_out(&self, target: LockTarget, mode: LockMode) {
        self.counters.locks.fetch_sub(1, Ordering::Relaxed);
        if mode.guards_gap() {
            self.gap_counter(target).fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Requests a lock for the owner's current transaction.
    pub fn request(
        self: &Arc<Self>,
        owner: &Arc<Owner>,
        target: LockTarget,
        mode: LockMode,
        policy: WaitPolicy,
        place: &dyn Fn() -> Place,
    ) -> Acquired {
        let mode = if target.is_supremum() && mode.extent == Extent::NextKey {
            LockMode { extent: Extent::Gap, ..mode }
        } else {
            mode
        };
        let mut shard = self.shard(target).lock();
        let queue = shard.entry(target).or_default();
        if queue.iter().any(|held| held.is_granted_to(owner) && held.mode.covers(mode)) {
            return Acquired::Granted { new: false };
        }
        if !is_blocked(queue, queue.len(), owner, mode, target) {
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

    /// For a change of an existing entry: waits like a request for X on the record, but takes no lock when nobody
    /// stands in the way, since the change itself is a lock (its DB_TRX_ID). The entry's leaf must stay X-latched from here to the change.
    pub fn request_change(
        self: &Arc<Self>,
        owner: &Arc<Owner>,
        target: LockTarget,
        policy: WaitPolicy,
        place: &dyn Fn() -> Place,
    ) -> Acquired {
        self.request_passing(owner, target, LockMode::X_RECORD, policy, place)
    }

    /// For an insertion before the entry `successor`: waits while another transaction has the gap locked. Leaves no lock behind.
    pub fn request_insert(
        self: &Arc<Self>,
        owner: &Arc<Owner>,
        successor: LockTarget,
        place: &dyn Fn() -> Place,
    ) -> Acquired {
        self.request_passing(owner, successor, LockMode::INSERT, WaitPolicy::Wait, place)
    }

    fn request_passing(
        self: &Arc<Self>,
        owner: &Arc<Owner>,
        target: LockTarget,
        mode: LockMode,
        policy: WaitPolicy,
        place: &dyn Fn() -> Place,
    ) -> Acquired {
        let mut shard = self.shard(target).lock();
        let Some(queue) = shard.get_mut(&target) else { return Acquired::Granted { new: false } };
        if queue.iter().any(|held| held.is_granted_to(owner) && held.mode.covers(mode))
            || !is_blocked(queue, queue.len(), owner, mode, target)
        {
            return Acquired::Granted { new: false };
        }
        if policy != WaitPolicy::Wait {
            return Acquired::Refused;
        }
        let cell = Arc::new(WaitCell::default());
        self.push(queue, owner, target, mode, Some(cell.clone()));
        drop(shard);
        self.begin_wait(owner, target, mode, cell, place)
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
        held.targets.push(target);
        queue.push(Request { owner: owner.clone(), epoch: held.epoch, mode, waiting });
        self.counted_in(target, mode);
    }

    fn begin_wait(
        self: &Arc<Self>,
        owner: &Arc<Owner>,
        target: LockTarget,
        mode: LockMode,
        cell: Arc<WaitCell>,
        place: &dyn Fn() -> Place,
    ) -> Acquired {
        let waiting = Waiting { target, mode, cell: cell.clone(), place: place().into() };
        *owner.waiting.lock() = Some(waiting);
        // A kill that came before this line finds nothing to interrupt; one that comes after finds the wait.
        if owner.killed.load(Ordering::SeqCst) {
            self.abort_wait(owner, WaitState::Killed);
        }
        Acquired::Wait(LockWait {
            table: self.clone(),
            owner: owner.clone(),
            target,
            mode,
            cell,
            finished: false,
        })
    }

    /// Interrupts what `owner` waits for, if it waits: the request leaves the queue.
    pub(crate) fn abort_wait(&self, owner: &Arc<Owner>, state: WaitState) -> bool {
        let Some(waiting) = owner.waiting.lock().clone() else { return false };
        let mut woken = Woken::new();
        let mut shard = self.shard(waiting.target).lock();
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
        let mut shard = self.shard(target).lock();
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
        let Some(queue) = shard.get_mut(&target) else { return };
        let mine = |request: &Request| request.waiting.as_ref().is_some_and(|other| Arc::ptr_eq(other, cell));
        if let Some(position) = queue.iter().position(mine) {
            let request = queue.remove(position);
            self.counted_out(target, request.mode);
            owner.forget(target);
            grant(queue, target, woken);
        }
        if queue.is_empty() {
            shard.remove(&target);
        }
    }

    /// Gives up one granted lock (READ COMMITTED: a row that failed the filter).
    pub fn release(&self, owner: &Arc<Owner>, target: LockTarget, mode: LockMode) {
        let mut woken = Woken::new();
        let mut shard = self.shard(target).lock();
        if let Some(queue) = shard.get_mut(&target) {
            if let Some(position) =
                queue.iter().position(|held| held.is_granted_to(owner) && held.mode == mode)
            {
                queue.remove(position);
                self.counted_out(target, mode);
                owner.forget(target);
                grant(queue, target, &mut woken);
            }
            if queue.is_empty() {
                shard.remove(&target);
            }
        }
        drop(shard);
        wake(woken);
    }

    /// Ends the owner's transaction: all its locks go, and nobody can add one in its name any more.
    pub fn release_all(&self, owner: &Arc<Owner>) {
        let mut targets = {
            let mut held = owner.held.lock();
            held.epoch = held.epoch.wrapping_add(1);
            std::mem::take(&mut held.targets)
        };
        let mut woken = Woken::new();
        for target in targets.drain(..) {
            let mut shard = self.shard(target).lock();
            let Some(queue) = shard.get_mut(&target) else { continue };
            let before = queue.len();
            queue.retain(|held| {
                let mine = Arc::ptr_eq(&held.owner, owner);
                if mine {
                    self.counted_out(target, held.mode);
                }
                !mine
            });
            if queue.is_empty() {
                shard.remove(&target);
            } else if queue.len() != before {
                grant(queue, target, &mut woken);
            }
        }
        wake(woken);
        // Keep the buffer for the next transaction, unless this one was very large.
        if targets.capacity() <= 1024 {
            let mut held = owner.held.lock();
            if held.targets.capacity() == 0 {
                held.targets = targets;
            }
        }
    }

    /// Makes the implicit lock of a record's last writer explicit. False when that transaction has ended.
    pub fn make_explicit(&self, writer: &OwnerEpoch, target: LockTarget) -> bool {
        let mut woken = Woken::new();
        let mut shard = self.shard(target).lock();
        let mut held = writer.owner.held.lock();
        if held.epoch != writer.epoch {
            return false;
        }
        let queue = shard.entry(target).or_default();
        let mode = LockMode::X_RECORD;
        if !queue.iter().any(|request| request.is_granted_to(&writer.owner) && request.mode.covers(mode)) {
            held.targets.push(target);
            self.counted_in(target, mode);
            drop(held);
            self.look_again(queue, target, &writer.owner, mode, &mut woken);
            queue
                .insert(0, Request { owner: writer.owner.clone(), epoch: writer.epoch, mode, waiting: None });
        }
        drop(shard);
        wake(woken);
        true
    }

    /// A lock is being added in the name of `owner`, who may be waiting itself: those who must now wait for it too look
    /// again, so that a cycle that this closes is found by their search. They leave the queue.
    fn look_again(
        &self,
        queue: &mut Queue,
        target: LockTarget,
        owner: &Arc<Owner>,
        added: LockMode,
        woken: &mut Woken,
    ) {
        queue.retain(|request| {
            let hindered =
                !Arc::ptr_eq(&request.owner, owner) && request.mode.conflicts(added, target.is_supremum());
            match &request.waiting {
                Some(cell) if hindered && cell.end(WaitState::Retry) => {
                    woken.push(cell.clone());
                    self.counted_out(target, request.mode);
                    request.owner.forget(target);
                    false
                }
                _ => true,
            }
        });
    }

    /// A record was inserted before `successor`: the part of the gap before it is guarded as the whole was.
    /// To be called with the leaf X-latched.
    pub fn inherit_gap(&self, successor: LockTarget, inserted: LockTarget) {
        let heirs: SmallVec<[(OwnerEpoch, LockMode); 4]> = {
            let shard = self.shard(successor).lock();
            let Some(queue) = shard.get(&successor) else { return };
            let guards = queue.iter().filter(|held| held.waiting.is_none() && held.mode.guards_gap());
            guards.map(|held| (held.owner_epoch(), LockMode { extent: Extent::Gap, ..held.mode })).collect()
        };
        self.add_gaps(inserted, &heirs);
    }

    /// The entry `removed` goes; what was locked there keeps others from inserting before `successor`. Those who wait for it look
    /// again. To be called with the leaf X-latched.
    pub fn bequeath(&self, removed: LockTarget, successor: LockTarget) {
        let mut woken = Woken::new();
        let heirs: SmallVec<[(OwnerEpoch, LockMode); 4]> = {
            let mut shard = self.shard(removed).lock();
            let Some(queue) = shard.remove(&removed) else { return };
            let mut heirs = SmallVec::new();
            for request in queue {
                self.counted_out(removed, request.mode);
                request.owner.forget(removed);
                if let Some(cell) = &request.waiting {
                    if cell.end(WaitState::Retry) {
                        woken.push(cell.clone());
                    }
                } else if request.mode.guards_gap()
                    || !request.owner.record_locks_only.load(Ordering::Relaxed)
                {
                    heirs.push((request.owner_epoch(), LockMode { extent: Extent::Gap, ..request.mode }));
                }
            }
            heirs
        };
        self.add_gaps(successor, &heirs);
        wake(woken);
    }

    /// Whether anybody has or wants a lock on the target.
    pub fn is_locked(&self, target: LockTarget) -> bool {
        self.shard(target).lock().contains_key(&target)
    }

    fn add_gaps(&self, target: LockTarget, heirs: &[(OwnerEpoch, LockMode)]) {
        for (heir, mode) in heirs {
            self.add_for(heir, target, *mode);
        }
    }

    /// Adds a granted lock in the name of a transaction, if it has not ended.
    fn add_for(&self, heir: &OwnerEpoch, target: LockTarget, mode: LockMode) {
        let mut woken = Woken::new();
        let mut shard = self.shard(target).lock();
        let mut held = heir.owner.held.lock();
        if held.epoch != heir.epoch {
            return;
        }
        let queue = shard.entry(target).or_default();
        if !queue.iter().any(|request| request.is_granted_to(&heir.owner) && request.mode.covers(mode)) {
            held.targets.push(target);
            self.counted_in(target, mode);
            drop(held);
            self.look_again(queue, target, &heir.owner, mode, &mut woken);
            queue.push(Request { owner: heir.owner.clone(), epoch: heir.epoch, mode, waiting: None });
        }
        drop(shard);
        wake(woken);
    }

    /// A copy of the queue of a target, for the search of deadlocks.
    pub(super) fn requests(&self, target: LockTarget) -> Vec<QueueEntry> {
        let shard = self.shard(target).lock();
        let Some(queue) = shard.get(&target) else { return Vec::new() };
        let entry = |request: &Request| QueueEntry {
            owner: request.owner.clone(),
            mode: request.mode,
            granted: request.waiting.is_none(),
        };
        queue.iter().map(entry).collect()
    }
}

/// A request as the search of deadlocks sees it.
pub(super) struct QueueEntry {
    pub owner: Arc<Owner>,
    pub mode: LockMode,
    pub granted: bool,
}

impl Request {
    fn is_granted_to(&self, owner: &Arc<Owner>) -> bool {
        self.waiting.is_none() && Arc::ptr_eq(&self.owner, owner)
    }

    fn blocks(&self, owner: &Arc<Owner>, mode: LockMode, target: LockTarget) -> bool {
        !Arc::ptr_eq(&self.owner, owner) && mode.conflicts(self.mode, target.is_supremum())
    }

    fn owner_epoch(&self) -> OwnerEpoch {
        OwnerEpoch { owner: self.owner.clone(), epoch: self.epoch }
    }
}

/// Whether a request of `owner`, standing at `position`, must wait: for what others hold, and for those who wait before it. Those
/// among them who wait for `owner` itself do not count: waiting for them would be a deadlock at once.
fn is_blocked(
    queue: &[Request],
    position: usize,
    owner: &Arc<Owner>,
    mode: LockMode,
    target: LockTarget,
) -> bool {
    let waits_for_owner = |other: &Request| {
        queue
            .iter()
            .any(|own| own.is_granted_to(owner) && other.mode.conflicts(own.mode, target.is_supremum()))
    };
    queue.iter().enumerate().any(|(at, other)| {
        other.blocks(owner, mode, target)
            && (other.waiting.is_none() || at < position && !waits_for_owner(other))
    })
}

/// Grants what can be granted, first come first served: a waiter also respects the waiters before it.
fn grant(queue: &mut Queue, target: LockTarget, woken: &mut Woken) {
    for index in 0..queue.len() {
        let Some(cell) = queue[index].waiting.clone() else { continue };
        let (owner, mode) = (queue[index].owner.clone(), queue[index].mode);
        if !is_blocked(queue, index, &owner, mode, target) && cell.end(WaitState::Granted) {
            queue[index].waiting = None;
            woken.push(cell);
        }
    }
}

fn wake(woken: Woken) {
    for cell in woken {
        cell.wake();
    }
}
