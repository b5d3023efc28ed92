//! The lock table for people: lists of locks, and of who waits for whom.
//!
//! A list is made shard by shard. Under a shard's mutex only what lies in it is copied, a thousandth of all
//! locks; words are made later. So a list is of many moments, and a wait in it may be over.
//!
//! A lock knows the fingerprint of its key and a part of its index's number, not their names (see `shard`).
//! Where somebody waits, the waiter's [`LockDescription`] has both. Elsewhere the reader finds out: it knows
//! the indexes, and [`RowLocks::place_of`] tells whether a record that it has at hand is the locked one.
//!
//! Turns and guards of unique keys (see `target`) are not InnoDB's locks; they are listed only where somebody
//! waits.

use std::sync::Arc;
#[cfg(not(loom))]
use std::time::Duration;

#[cfg(not(loom))]
use btree::RecordRef;
#[cfg(not(loom))]
use disk::Environment;

use super::deadlock::Queue;
use super::description::LockDescription;
use super::mode::{Extent, LockMode};
use super::outside_waits::RowOwner;
use super::owner::Owner;
use super::shard::{Copied, CopiedQueue};
use super::table::{LockTable, QueueEntry};
use super::target::LockTarget;
use super::wait::WaitState;

/// What a transaction without an id is called: this plus its session's tag. InnoDB's ids of such
/// transactions lie above this number too.
const WITHOUT_ID: u64 = 1 << 48;

/// A row lock that is held or waited for.
pub struct RowLock {
    /// Whose it is.
    pub owner: RowOwner,
    /// Whether it is waited for.
    pub waiting: bool,
    place: u64,
    /// The index's number, or what is left of it.
    index: Result<u64, u16>,
    mode: LockMode,
    described: Option<Arc<LockDescription>>,
}

/// One that waits for a row lock, and one that it waits for.
pub struct RowWaitEdge {
    /// What is waited for.
    pub wanted: RowLock,
    /// What stands in its way.
    pub blocking: RowLock,
}

/// The lock table, for lists.
pub struct RowLocks(pub(crate) Arc<LockTable>);

/// Those who wait in one queue, each with what stands in its way: made when they are asked for, since there
/// may be half a million pairs in a queue of a thousand.
struct Edges {
    place: u64,
    entries: Vec<QueueEntry>,
    queue: Queue,
    described: Option<Arc<LockDescription>>,
    only_holders: bool,
    waiter: usize,
    other: usize,
    /// Something that stands in this waiter's way.
    found: bool,
}

impl RowOwner {
    /// The transaction's id as lists show it: never 0.
    pub fn shown_id(&self) -> u64 {
        match self.id() {
            0 => WITHOUT_ID + self.tag(),
            id => id,
        }
    }
}

impl RowLock {
    /// Names this lock among all.
    pub fn id(&self) -> String {
        lock_id(&self.owner, self.place, self.mode)
    }

    /// A number that locks on the same entry share.
    pub fn place(&self) -> u64 {
        self.place
    }

    /// As `performance_schema.data_locks` writes it.
    pub fn mode(&self) -> &'static str {
        self.mode.short_text(self.is_end())
    }

    /// Whether it is on the end of an index.
    pub fn is_end(&self) -> bool {
        LockTarget { index: 0, place: self.place }.is_supremum()
    }

    /// Whether it is on an entry of an index.
    pub fn is_on_record(&self) -> bool {
        !self.is_end() && !LockTarget { index: 0, place: self.place }.is_own_kind()
    }

    /// Whether it may be in the index with this number.
    pub fn may_be_in(&self, index: u64) -> bool {
        let end = !self.is_end() || LockTarget::supremum(index).place == self.place;
        end && match self.index {
            Ok(number) => number == index,
            Err(rest) => LockTable::counter_of(LockTarget { index, place: 0 }) == rest,
        }
    }

    /// Numbers equal for all indexes that [`Self::may_be_in`] cannot tell apart.
    pub fn bucket(index: u64) -> u16 {
        LockTable::counter_of(LockTarget { index, place: 0 })
    }

    /// The bucket of its index.
    pub fn index_bucket(&self) -> u16 {
        self.index.map_or_else(|rest| rest, RowLock::bucket)
    }

    /// The fields of its key, if they are known.
    pub fn key(&self) -> Option<impl Iterator<Item = Option<&[u8]>>> {
        self.described.as_ref()?.whole_key()
    }
}

impl RowLocks {
    /// Into how many parts the table is divided.
    pub fn shards(&self) -> usize {
        self.0.shard_count()
    }

    /// The locks of a shard.
    pub fn of_shard(&self, shard: usize) -> Vec<RowLock> {
        let Copied { singles, queues } = self.0.shard_numbered(shard).copied();
        let mut locks = Vec::with_capacity(singles.len());
        for (place, single) in singles {
            // A turn or a guard that nobody waits for.
            if (LockTarget { index: 0, place }).is_own_kind() {
                continue;
            }
            // Gone since.
            let Some(owner) = self.0.owners.find(single.owner) else { continue };
            locks.push(RowLock {
                owner: RowOwner(owner),
                waiting: false,
                place,
                index: Err(single.counter),
                mode: single.mode,
                described: None,
            });
        }
        for CopiedQueue { place, counter, entries } in queues {
            let described = described(place, &entries);
            if described.is_none() && (LockTarget { index: 0, place }).is_own_kind() {
                continue;
            }
            locks.extend(entries.iter().map(|entry| listed(entry, place, counter, described.as_ref())));
        }
        locks
    }

    /// Who waits for whom in a shard. One waits for those too who wait before it, and they for the holders:
    /// with `only_holders` these are left out, unless there is no holder.
    pub fn waits_of_shard(
        &self,
        shard: usize,
        only_holders: bool,
    ) -> impl Iterator<Item = RowWaitEdge> + use<> {
        let waited = self.0.shard_numbered(shard).copied_waits();
        waited.into_iter().flat_map(move |CopiedQueue { place, mut entries, .. }| {
            // Those who wait stay in their order.
            entries.sort_by_key(|entry| !entry.granted);
            Edges {
                place,
                described: described(place, &entries),
                queue: Queue::new(entries.clone()),
                entries,
                only_holders,
                waiter: 0,
                other: 0,
                found: false,
            }
        })
    }

    /// The place of a record, as [`RowLock::place`] gives it.
    #[cfg(not(loom))]
    pub fn place_of(&self, record: RecordRef<'_>) -> u64 {
        self.0.target_of(record).place
    }
}

impl Iterator for Edges {
    type Item = RowWaitEdge;

    fn next(&mut self) -> Option<RowWaitEdge> {
        let supremum = LockTarget { index: 0, place: self.place }.is_supremum();
        while self.waiter < self.entries.len() {
            let waiter = &self.entries[self.waiter];
            while !waiter.granted && self.other < self.entries.len() {
                let (at, other) = (self.other, &self.entries[self.other]);
                self.other += 1;
                let before = other.granted || at < self.waiter && !(self.only_holders && self.found);
                if before && self.queue.is_hindered(waiter, other, supremum) {
                    self.found = true;
                    let lock = |entry| listed(entry, self.place, 0, self.described.as_ref());
                    return Some(RowWaitEdge { wanted: lock(waiter), blocking: lock(other) });
                }
            }
            self.waiter += 1;
            self.other = 0;
            self.found = false;
        }
        None
    }
}

fn listed(entry: &QueueEntry, place: u64, counter: u16, described: Option<&Arc<LockDescription>>) -> RowLock {
    RowLock {
        owner: RowOwner(entry.owner.clone()),
        waiting: !entry.granted,
        place,
        index: described.map_or(Err(counter), |place| Ok(place.index_id())),
        mode: entry.mode,
        described: described.cloned(),
    }
}

/// What those who wait for a place say that it is.
fn described(place: u64, entries: &[QueueEntry]) -> Option<Arc<LockDescription>> {
    entries.iter().filter(|entry| !entry.granted).find_map(|entry| {
        let waiting = entry.owner.waiting.lock().clone()?;
        (waiting.target.place == place).then_some(waiting.place)
    })
}

fn lock_id(owner: &RowOwner, place: u64, mode: LockMode) -> String {
    let extent = match mode.extent {
        Extent::NextKey => "n",
        Extent::Record => "r",
        Extent::Gap => "g",
        Extent::InsertIntention => "i",
    };
    format!("{}:{place:x}:{}{extent}", owner.shown_id(), if mode.exclusive { "x" } else { "s" })
}

/// What a transaction waits for.
#[cfg(not(loom))]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitInfo {
    /// [`RowLock::id`] of the lock.
    pub lock: String,
    /// Since when (`Environment::unix_time`).
    pub since: Duration,
}

#[cfg(not(loom))]
impl RowOwner {
    /// What it waits for now.
    pub fn wait(&self, env: &dyn Environment) -> Option<WaitInfo> {
        let waiting = self.0.waiting.lock().clone()?;
        // It is published before its beginning is noted.
        let waited = match waiting.cell.began() {
            0 => Duration::ZERO,
            began => env.now().saturating_sub(Duration::from_nanos(began)),
        };
        let stands = waiting.cell.state() == WaitState::Waiting;
        stands.then(|| WaitInfo {
            lock: lock_id(self, waiting.target.place, waiting.mode),
            since: env.unix_time().saturating_sub(waited),
        })
    }
}

impl LockTable {
    /// Those who have locks or wait for one.
    pub fn holders(&self) -> Vec<Arc<Owner>> {
        let mut owners = self.owners.all();
        owners.retain(|owner| owner.lock_count() > 0);
        owners
    }
}
