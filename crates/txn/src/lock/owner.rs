//! A transaction as the owner of locks.
//!
//! Each session has one [`Owner`] for all its transactions. An **epoch** tells them apart: others may add
//! locks in a transaction's name (a gap inherited, an implicit lock made explicit), and must not do so once
//! it has ended.

use std::sync::{Arc, OnceLock, Weak};

use disk::sync::Mutex;
use disk::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::description::LockDescription;
use super::mode::LockMode;
use super::outside_waits::Companion;
use super::owner_numbers::{Owners, Registered};
use super::target::LockTarget;
use super::wait::WaitCell;

/// A session in the lock table.
#[derive(Default)]
pub(crate) struct Owner {
    /// Id of its transaction, 0 while it has none.
    pub id: AtomicU64,
    /// Shown to users: the connection id.
    pub tag: AtomicU64,
    /// Undo records of its transaction; with the number of locks its weight in deadlocks.
    pub undo_records: AtomicU64,
    /// Unix time in microseconds at which the transaction got its id.
    pub started: AtomicU64,
    /// Spent in waits for row locks, of all its transactions.
    pub lock_wait_nanoseconds: AtomicU64,
    /// Whether READ COMMITTED or READ UNCOMMITTED: its record locks do not become gap locks.
    pub record_locks_only: AtomicBool,
    /// Asked to stop.
    pub killed: AtomicBool,
    /// What stands for the session elsewhere.
    pub(super) companion: OnceLock<Weak<Companion>>,
    number: AtomicU32,
    pub(super) held: Mutex<Held>,
    pub(super) waiting: Mutex<Option<Waiting>>,
}

/// One transaction of an [`Owner`].
#[derive(Clone)]
pub(crate) struct OwnerEpoch {
    pub owner: Arc<Owner>,
    pub epoch: u32,
}

/// A list of locks up to this length is kept exact.
const LISTED: usize = 4096;
/// A longer list is given up as soon as the owner has this part of all locks: then the whole table is
/// searched for them in the end.
const SHARE: u64 = 64;

/// The locks of the current transaction, waiting ones included.
///
/// A transaction with few locks lists them. One with many does not: it would cost half as much again as the
/// locks themselves, and removing one from a long list takes long; the shards are searched in the end, which
/// costs a few nanoseconds for each lock in them.
#[derive(Default)]
pub(super) struct Held {
    pub epoch: u32,
    /// Its locks are being released: no more are added.
    pub ending: bool,
    pub count: usize,
    /// Not listed.
    pub many: bool,
    pub places: Vec<u64>,
    registered: Option<Registered>,
    /// Itself, while it has locks: they know it by number.
    pub alive: Option<Arc<Owner>>,
}

impl Held {
    /// Notes a lock of `owner`, whose list this is. `locks`: those of all owners.
    pub fn add(&mut self, owner: &Arc<Owner>, owners: &Arc<Owners>, place: u64, locks: u64) {
        if self.registered.is_none() {
            let registered = owners.register(owner);
            owner.number.store(registered.number(), Ordering::Relaxed);
            self.registered = Some(registered);
        }
        if self.alive.is_none() {
            self.alive = Some(owner.clone());
        }
        self.count += 1;
        if self.many {
            return;
        }
        self.places.push(place);
        let listed = self.places.len();
        if listed >= LISTED && listed.is_multiple_of(LISTED) && listed as u64 * SHARE >= locks {
            self.many = true;
            self.places = Vec::new();
        }
    }

    fn forget(&mut self, place: u64) {
        self.count = self.count.saturating_sub(1);
        // In a list longer than is kept exact a place may stay that is no longer locked: in the end it is
        // looked for and not found.
        let tail = self.places.len().saturating_sub(LISTED);
        if let Some(position) = self.places[tail..].iter().rposition(|held| *held == place) {
            self.places.swap_remove(tail + position);
        }
    }
}

/// What the owner waits for.
#[derive(Clone)]
pub(super) struct Waiting {
    pub target: LockTarget,
    pub mode: LockMode,
    pub cell: Arc<WaitCell>,
    pub place: Arc<LockDescription>,
}

impl Owner {
    /// Its current transaction.
    pub fn current(self: &Arc<Self>) -> OwnerEpoch {
        let epoch = self.held.lock().epoch;
        OwnerEpoch { owner: self.clone(), epoch }
    }

    /// Number of locks, waiting one included.
    pub fn lock_count(&self) -> usize {
        self.held.lock().count
    }

    /// What a deadlock would throw away by making it the victim.
    pub(super) fn weight(&self) -> u64 {
        self.undo_records.load(Ordering::Relaxed) + self.lock_count() as u64
    }

    pub(super) fn forget(&self, place: u64) {
        self.held.lock().forget(place);
    }

    /// Its number in the lock table; 0 while it has had no lock.
    pub(super) fn number(&self) -> u32 {
        self.number.load(Ordering::Relaxed)
    }
}
