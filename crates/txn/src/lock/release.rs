//! Releasing locks: one that is not needed after all ([`LockTable::release`]: a row that does not match under
//! READ COMMITTED), and all of a transaction at commit or rollback.
//!
//! At the end of a transaction the epoch moves on first, so that nobody adds a lock in its name any more.
//! Then the locks go shard by shard. Millions of them take longer than others should wait for the thread: the
//! caller of [`LockTable::release_in_slices`] may take the rest in slices. Until a lock's turn comes it is
//! held, and those who wait for it wait; the owner must not ask for a lock before all have gone.

use std::sync::Arc;

use super::mode::LockMode;
use super::owner::Owner;
use super::shard::{Entry, Request};
use super::table::{LockTable, Woken, wake};
use super::target::LockTarget;

/// Shards dealt with in one slice when all are searched.
const SHARDS_A_SLICE: usize = 16;

/// What is left to be released of a transaction with many locks. Dropping it releases the rest.
#[must_use]
pub(crate) struct Release {
    table: Arc<LockTable>,
    owner: Arc<Owner>,
    next: usize,
}

impl Release {
    /// Releases some. False when all have gone.
    pub fn step(&mut self) -> bool {
        let end = self.table.shard_count().min(self.next + SHARDS_A_SLICE);
        for number in self.next..end {
            self.table.release_shard(&self.owner, number);
        }
        if self.next < end && end == self.table.shard_count() {
            self.table.released(&self.owner, Vec::new());
        }
        self.next = end;
        end < self.table.shard_count()
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        while self.step() {}
    }
}

impl LockTable {
    /// Gives up one granted lock (READ COMMITTED: a row that failed the filter).
    pub fn release(&self, owner: &Arc<Owner>, target: LockTarget, mode: LockMode) {
        let mut woken = Woken::new();
        let mut shard = self.shard(target.place);
        match shard.entry(target.place) {
            Entry::Single(single) if single.owner == owner.number() && single.mode == mode => {
                self.counted_out(single.counter, mode);
                owner.forget(target.place);
                shard.remove_single(target.place);
            }
            Entry::Queue(queue) => {
                let mine = |held: &Request| held.is_granted_to(owner) && held.mode == mode;
                if let Some(position) = queue.requests.iter().position(mine) {
                    queue.requests.remove(position);
                    self.counted_out(queue.counter, mode);
                    owner.forget(target.place);
                    queue.grant(target, &mut woken);
                }
                shard.drop_empty_queue(target.place);
            }
            _ => {}
        }
        drop(shard);
        wake(woken);
    }

    /// Ends the owner's transaction: all its locks go, and nobody can add one in its name any more.
    pub fn release_all(self: &Arc<Self>, owner: &Arc<Owner>) {
        drop(self.release_in_slices(owner));
    }

    /// As [`Self::release_all`], but of a transaction with very many locks the caller releases the rest.
    pub fn release_in_slices(self: &Arc<Self>, owner: &Arc<Owner>) -> Option<Release> {
        let (places, many) = {
            let mut held = owner.held.lock();
            held.epoch = held.epoch.wrapping_add(1);
            if held.count == 0 && held.places.is_empty() && !held.many {
                held.alive = None;
                return None;
            }
            held.ending = true;
            (std::mem::take(&mut held.places), held.many)
        };
        if many {
            return Some(Release { table: self.clone(), owner: owner.clone(), next: 0 });
        }
        for place in &places {
            self.release_place(owner, *place);
        }
        self.released(owner, places);
        None
    }

    fn release_place(&self, owner: &Arc<Owner>, place: u64) {
        let mut woken = Woken::new();
        let mut shard = self.shard(place);
        match shard.entry(place) {
            Entry::Single(single) if single.owner == owner.number() => {
                self.counted_out(single.counter, single.mode);
                shard.remove_single(place);
            }
            Entry::Queue(queue) => {
                let (before, counter) = (queue.requests.len(), queue.counter);
                queue.requests.retain(|held| {
                    let mine = Arc::ptr_eq(&held.owner, owner);
                    if mine {
                        self.counted_out(counter, held.mode);
                    }
                    !mine
                });
                if queue.requests.len() != before {
                    queue.grant(LockTarget { index: 0, place }, &mut woken);
                }
                shard.drop_empty_queue(place);
            }
            _ => {}
        }
        drop(shard);
        wake(woken);
    }

    fn release_shard(&self, owner: &Arc<Owner>, number: usize) {
        let mut shard = self.shard_numbered(number);
        shard.remove_singles_of(owner.number(), |single| self.counted_out(single.counter, single.mode));
        let queued = shard.queues_with(owner);
        drop(shard);
        for place in queued {
            self.release_place(owner, place);
        }
    }

    /// All locks have gone.
    fn released(&self, owner: &Arc<Owner>, mut places: Vec<u64>) {
        let mut held = owner.held.lock();
        held.ending = false;
        held.many = false;
        held.count = 0;
        // Keep the buffer for the next transaction, unless this one was very large.
        if places.capacity() <= 1024 {
            places.clear();
            held.places = places;
        }
        let alive = held.alive.take();
        drop(held);
        drop(alive);
    }
}
