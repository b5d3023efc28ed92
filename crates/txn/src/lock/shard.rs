//! A shard of the lock table: which places are locked, and by whom.
//!
//! Nearly every lock is one transaction's, alone on its entry, with nobody waiting: it is a **single**,
//! sixteen bytes in a hash table. A place that more than one request is for has a **queue**. It becomes one
//! when the second request comes and stays one until it is empty.
//!
//! The tables grow by doubling, and shrink when they are nearly empty, so that a statement that locked
//! millions of rows gives its memory back. What they occupy is known: the figures returned here keep the
//! account.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use smallvec::SmallVec;

use super::mode::LockMode;
use super::owner::Owner;
use super::table::QueueEntry;
use super::target::LockTarget;
use super::wait::{WaitCell, WaitState};

/// A lock that is granted, alone on its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Single {
    /// Number of the owner (see `owners`).
    pub owner: u32,
    /// Gap counter of the index.
    pub counter: u16,
    pub mode: LockMode,
}

/// One of several requests for a place.
#[derive(Clone)]
pub(super) struct Request {
    pub owner: Arc<Owner>,
    pub mode: LockMode,
    /// `None`: granted.
    pub waiting: Option<Arc<WaitCell>>,
}

/// Requests for one place in order of arrival, granted and waiting mixed.
pub(super) struct Queue {
    pub counter: u16,
    pub requests: SmallVec<[Request; 2]>,
}

type Places<V> = HashMap<u64, V, BuildHasherDefault<PlaceHasher>>;

/// The locked places of a shard. A place is in one of the two.
#[derive(Default)]
pub(super) struct Shard {
    singles: Places<Single>,
    queues: Places<Queue>,
}

/// A shard as it was.
pub(super) struct Copied {
    pub singles: Vec<(u64, Single)>,
    pub queues: Vec<CopiedQueue>,
}

/// A queue as it was.
pub(super) struct CopiedQueue {
    pub place: u64,
    pub counter: u16,
    pub entries: Vec<QueueEntry>,
}

impl CopiedQueue {
    fn of((place, queue): (&u64, &Queue)) -> CopiedQueue {
        let entries = queue.requests.iter().map(QueueEntry::of).collect();
        CopiedQueue { place: *place, counter: queue.counter, entries }
    }
}

/// What is known of a place.
pub(super) enum Entry<'s> {
    Free,
    Single(&'s mut Single),
    Queue(&'s mut Queue),
}

/// Bytes of a slot in the table of singles: key, value, a byte of control, and the eighth that must stay
/// free.
const SINGLE_BYTES: usize = 20;
/// Bytes of a request in a queue, about: the request, its share of the queue, and what it waits with.
const REQUEST_BYTES: usize = 128;
/// A table with fewer slots than this keeps them.
const SLOTS_KEPT: usize = 8;

impl Shard {
    pub fn entry(&mut self, place: u64) -> Entry<'_> {
        // Few places have queues; most shards have none.
        if !self.queues.is_empty()
            && let Some(queue) = self.queues.get_mut(&place)
        {
            return Entry::Queue(queue);
        }
        self.singles.get_mut(&place).map_or(Entry::Free, Entry::Single)
    }

    pub fn contains(&self, place: u64) -> bool {
        self.singles.contains_key(&place) || self.queues.contains_key(&place)
    }

    pub fn insert(&mut self, place: u64, single: Single) {
        self.singles.insert(place, single);
    }

    pub fn remove_single(&mut self, place: u64) {
        self.singles.remove(&place);
        self.shrink();
    }

    /// The queue of a place, made if there is none. A single moves into it, as `holder` if that still exists.
    pub fn queue(
        &mut self,
        place: u64,
        counter: u16,
        holder: impl FnOnce(u32) -> Option<Arc<Owner>>,
    ) -> &mut Queue {
        let queue = self.queues.entry(place);
        queue.or_insert_with(|| {
            let single = self.singles.remove(&place);
            let request = single.and_then(|single| {
                let owner = holder(single.owner)?;
                Some(Request { owner, mode: single.mode, waiting: None })
            });
            Queue { counter, requests: request.into_iter().collect() }
        })
    }

    pub fn queue_of(&mut self, place: u64) -> Option<&mut Queue> {
        self.queues.get_mut(&place)
    }

    /// Removes a queue, if it is empty.
    pub fn drop_empty_queue(&mut self, place: u64) {
        if self.queues.get(&place).is_some_and(|queue| queue.requests.is_empty()) {
            self.queues.remove(&place);
            self.shrink();
        }
    }

    pub fn take_queue(&mut self, place: u64) -> Option<Queue> {
        self.queues.remove(&place)
    }

    /// Removes all singles of an owner, showing each to `f`.
    pub fn remove_singles_of(&mut self, owner: u32, mut f: impl FnMut(&Single)) {
        self.singles.retain(|_, single| {
            let goes = single.owner == owner;
            if goes {
                f(single);
            }
            !goes
        });
        self.shrink();
    }

    /// Places with a request of `owner` in their queues.
    pub fn queues_with(&self, owner: &Arc<Owner>) -> Vec<u64> {
        let has = |queue: &Queue| queue.requests.iter().any(|request| Arc::ptr_eq(&request.owner, owner));
        self.queues.iter().filter(|(_, queue)| has(queue)).map(|(place, _)| *place).collect()
    }

    /// A copy of all.
    pub fn copied(&self) -> Copied {
        let singles = self.singles.iter().map(|(place, single)| (*place, *single)).collect();
        Copied { singles, queues: self.queues.iter().map(CopiedQueue::of).collect() }
    }

    /// A copy of the queues in which somebody waits: of millions of locks that nobody waits for nothing is
    /// copied.
    pub fn copied_waits(&self) -> Vec<CopiedQueue> {
        let waited = |queue: &Queue| queue.requests.iter().any(|request| request.waiting.is_some());
        self.queues.iter().filter(|(_, queue)| waited(queue)).map(CopiedQueue::of).collect()
    }

    fn shrink(&mut self) {
        if self.singles.capacity() > SLOTS_KEPT && self.singles.len() < self.singles.capacity() / 8 {
            self.singles.shrink_to(self.singles.len() * 2);
        }
        if self.queues.capacity() > SLOTS_KEPT && self.queues.len() < self.queues.capacity() / 8 {
            self.queues.shrink_to(self.queues.len() * 2);
        }
    }

    /// What the tables occupy, about.
    pub fn bytes(&self) -> usize {
        self.singles.capacity() * SINGLE_BYTES + self.queues.capacity() * REQUEST_BYTES
    }
}

impl Request {
    pub fn is_granted_to(&self, owner: &Arc<Owner>) -> bool {
        self.waiting.is_none() && Arc::ptr_eq(&self.owner, owner)
    }

    fn blocks(&self, owner: &Arc<Owner>, mode: LockMode, target: LockTarget) -> bool {
        !Arc::ptr_eq(&self.owner, owner) && mode.conflicts(self.mode, target.is_supremum())
    }
}

impl Queue {
    /// Whether `owner` has a lock that makes a request for `mode` superfluous.
    pub fn has_granted(&self, owner: &Arc<Owner>, mode: LockMode) -> bool {
        self.requests.iter().any(|held| held.is_granted_to(owner) && held.mode.covers(mode))
    }

    /// Whether somebody else has a lock that stands in the way of `mode`.
    pub fn is_granted_against(&self, owner: &Arc<Owner>, mode: LockMode, target: LockTarget) -> bool {
        self.requests.iter().any(|held| held.waiting.is_none() && held.blocks(owner, mode, target))
    }

    /// Whether a request of `owner`, standing at `position`, must wait: for what others hold, and for those
    /// who wait before it. Those among them who wait for `owner` itself do not count: waiting for them would
    /// be a deadlock at once.
    pub fn is_blocked(
        &self,
        position: usize,
        owner: &Arc<Owner>,
        mode: LockMode,
        target: LockTarget,
    ) -> bool {
        let waits_for_owner = |other: &Request| {
            let mut own = self.requests.iter().filter(|own| own.is_granted_to(owner));
            own.any(|own| other.mode.conflicts(own.mode, target.is_supremum()))
        };
        self.requests.iter().enumerate().any(|(at, other)| {
            other.blocks(owner, mode, target)
                && (other.waiting.is_none() || at < position && !waits_for_owner(other))
        })
    }

    /// Grants what can be granted, first come first served: a waiter also respects the waiters before it.
    pub fn grant(&mut self, target: LockTarget, woken: &mut SmallVec<[Arc<WaitCell>; 4]>) {
        for index in 0..self.requests.len() {
            let request = &self.requests[index];
            let Some(cell) = request.waiting.clone() else { continue };
            if !self.is_blocked(index, &request.owner, request.mode, target) && cell.end(WaitState::Granted) {
                self.requests[index].waiting = None;
                woken.push(cell);
            }
        }
    }
}

/// Places are fingerprints already; the shard is chosen by their upper bits, so all bits are spread over
/// again.
#[derive(Default)]
pub(super) struct PlaceHasher(u64);

impl Hasher for PlaceHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(self.0 ^ u64::from(*byte)));
    }
    fn write_u64(&mut self, place: u64) {
        self.0 = place.rotate_right(2).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
