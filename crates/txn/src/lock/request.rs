//! A transaction as the owner of locks.
//!
//! Each session has one [`Owner`] for all its transactions. An **epoch** tells them apart: others may add locks in
//! a transaction's name (a gap inherited, an implicit lock made explicit), and must not do so once it has ended.

use std::sync::Arc;

use disk::sync::Mutex;
use disk::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::mode::LockMode;
use super::place::Place;
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
    /// Whether READ COMMITTED or READ UNCOMMITTED: its record locks do not become gap locks.
    pub record_locks_only: AtomicBool,
    /// Asked to stop.
    pub killed: AtomicBool,
    pub(super) held: Mutex<Held>,
    pub(super) waiting: Mutex<Option<Waiting>>,
}

/// One transaction of an [`Owner`].
#[derive(Clone)]
pub(crate) struct OwnerEpoch {
    pub owner: Arc<Owner>,
    pub epoch: u32,
}

/// The locks of the current transaction, waiting ones included.
#[derive(Default)]
pub(super) struct Held {
    pub epoch: u32,
    pub targets: Vec<LockTarget>,
}

/// What the owner waits for.
#[derive(Clone)]
pub(super) struct Waiting {
    pub target: LockTarget,
    pub mode: LockMode,
    pub cell: Arc<WaitCell>,
    pub place: Arc<Place>,
}

impl Owner {
    /// Its current transaction.
    pub fn current(self: &Arc<Self>) -> OwnerEpoch {
        let epoch = self.held.lock().epoch;
        OwnerEpoch { owner: self.clone(), epoch }
    }

    /// Number of locks, waiting one included.
    pub fn lock_count(&self) -> usize {
        self.held.lock().targets.len()
    }

    /// Whether it waits for a lock.
    pub fn is_waiting(&self) -> bool {
        self.waiting.lock().is_some()
    }

    /// What a deadlock would throw away by making it the victim.
    pub(super) fn weight(&self) -> u64 {
        self.undo_records.load(Ordering::Relaxed) + self.lock_count() as u64
    }

    pub(super) fn forget(&self, target: LockTarget) {
        let mut held = self.held.lock();
        if let Some(position) = held.targets.iter().rposition(|held| *held == target) {
            held.targets.swap_remove(position);
        }
    }
}
