//! Waits outside the lock table that may close a cycle with waits for row locks.
//!
//! A transaction that waits for a row may wait, in the end, for one that waits for a lock of another kind (on
//! a name), and that one for the first. The keeper of such locks asks here who waits for a row and for whom,
//! and is told when such a wait begins; the cycle is then its to break.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};

use disk::sync::Mutex;

use super::deadlock::Queue;
use super::owner::{Owner, Waiting};
use super::table::LockTable;
use super::target::LockTarget;
use super::wait::WaitState;

/// A session in the lock table.
#[derive(Clone)]
pub struct RowOwner(pub(crate) Arc<Owner>);

/// What stands for the same session elsewhere.
pub type Companion = dyn Any + Send + Sync;

impl RowOwner {
    /// Says what stands for this session elsewhere; once.
    pub fn set_companion(&self, companion: Weak<Companion>) {
        let _ = self.0.companion.set(companion);
    }

    /// What stands for this session elsewhere.
    pub fn companion(&self) -> Option<Arc<Companion>> {
        self.0.companion.get()?.upgrade()
    }

    /// Its transaction's id; 0 when it has none yet.
    pub fn id(&self) -> u64 {
        self.0.id.load(Ordering::Relaxed)
    }

    /// The session's tag ([`crate::Transaction::set_tag`]).
    pub fn tag(&self) -> u64 {
        self.0.tag.load(Ordering::Relaxed)
    }
}

/// The keeper of locks of another kind.
pub trait OutsideWaits: Send + Sync {
    /// A wait for a row lock has begun and can be seen.
    fn row_wait_begins(&self, waiter: &RowOwner);
}

/// Those who wait for rows, and who wants to know.
#[derive(Default)]
pub(crate) struct Outside {
    listener: OnceLock<Weak<dyn OutsideWaits>>,
    waiting: Mutex<HashMap<usize, Arc<Owner>>>,
}

/// A waiter's place in the list; it leaves when this is dropped.
pub(super) struct Listed<'t> {
    outside: &'t Outside,
    address: usize,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.outside.waiting.lock().remove(&self.address);
    }
}

impl Outside {
    /// Lists a waiter, and tells the listener.
    pub(super) fn wait_begins(&self, owner: &Arc<Owner>) -> Listed<'_> {
        let address = Arc::as_ptr(owner).addr();
        self.waiting.lock().insert(address, owner.clone());
        let listed = Listed { outside: self, address };
        if let Some(listener) = self.listener.get().and_then(Weak::upgrade) {
            listener.row_wait_begins(&RowOwner(owner.clone()));
        }
        listed
    }
}

/// The lock table, for the keeper of locks of another kind.
pub struct RowWaits(pub(crate) Weak<LockTable>);

impl RowWaits {
    /// Who wants to be told of waits; once.
    pub fn listen(&self, listener: Weak<dyn OutsideWaits>) {
        if let Some(table) = self.0.upgrade() {
            let _ = table.outside.listener.set(listener);
        }
    }

    /// All who wait for a row.
    pub fn waiting(&self) -> Vec<RowOwner> {
        let Some(table) = self.0.upgrade() else { return Vec::new() };
        let waiting = table.outside.waiting.lock();
        waiting.values().cloned().map(RowOwner).collect()
    }

    /// What it waits for now.
    pub fn wait_of(&self, owner: &RowOwner) -> Option<RowWait> {
        let waiting = owner.0.waiting.lock().clone()?;
        Some(RowWait(waiting)).filter(RowWait::stands)
    }

    /// Begins a search.
    pub fn search(&self) -> RowSearch<'_> {
        RowSearch { waits: self, queues: HashMap::new() }
    }

    /// Those whom it waits for with this wait: holders of the row's lock, and who stands before it in the
    /// queue.
    pub fn blockers(&self, of: &RowOwner, wait: &RowWait) -> Vec<RowOwner> {
        let Some(table) = self.0.upgrade() else { return Vec::new() };
        let queue = Queue::new(table.requests(wait.0.target));
        queue.hinder(&of.0, &wait.0).map(|owner| RowOwner(owner.clone())).collect()
    }
}

/// A search along waits for rows. It copies each row's queue once, and gives those whom a whole queue waits
/// for once: so it grows with the length of the queues, not with its square.
pub struct RowSearch<'w> {
    waits: &'w RowWaits,
    queues: HashMap<LockTarget, Queue>,
}

impl RowSearch<'_> {
    /// Those whom it waits for with this wait, and whom the search has not had already from one that waits
    /// behind it for the same row.
    pub fn new_blockers(&mut self, of: &RowOwner, wait: &RowWait) -> Vec<RowOwner> {
        let Some(table) = self.waits.0.upgrade() else { return Vec::new() };
        let target = wait.0.target;
        let queue = self.queues.entry(target).or_insert_with(|| Queue::new(table.requests(target)));
        queue.hinder_newly(&of.0, wait.0.mode, target.is_supremum()).into_iter().map(RowOwner).collect()
    }
}

/// One wait for a row.
#[derive(Clone)]
pub struct RowWait(Waiting);

impl RowWait {
    /// Whether it goes on.
    pub fn stands(&self) -> bool {
        self.0.cell.state() == WaitState::Waiting
    }
}
