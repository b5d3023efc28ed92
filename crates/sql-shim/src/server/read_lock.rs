//! FLUSH TABLES WITH READ LOCK: one session stops everybody's changes.
//!
//! A statement that changes something, and a commit, marks its connection's entry for as long as it works.
//! The lock raises a number that they all look at, and then waits until no entry is marked. So a change costs
//! a store to a cache line of its own and a load of one that is hardly ever written; nothing is shared
//! between connections until somebody asks for the lock.
//!
//! Mark and number are each written before the other is read, on both sides in the one order of sequentially
//! consistent operations: either the change sees the lock and steps back, or the lock sees the change and
//! waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use untorn::engine::{Event, Wait};

use super::registry::{Connection, ConnectionId, Registry};

/// The lock.
#[derive(Default)]
pub struct GlobalReadLock {
    /// Sessions that hold it or wait for it.
    wanted: AtomicU32,
    slow: Mutex<Slow>,
}

#[derive(Default)]
struct Slow {
    /// Set when a session lets go while a change waits.
    released: Option<Event>,
    /// Set when a change ends while a session waits for the lock.
    ended: Option<Event>,
}

fn wait_for(slot: &mut Option<Event>) -> Wait {
    Wait::new(slot.get_or_insert_with(Event::new).clone())
}

fn wake(slot: &mut Option<Event>) {
    if let Some(event) = slot.take() {
        event.set();
    }
}

/// A session's wish for the lock; changes of others do not begin while it lives. It is held once
/// [`ReadLockHold::grant`] said so.
pub struct ReadLockHold {
    lock: Arc<GlobalReadLock>,
    owner: ConnectionId,
}

impl GlobalReadLock {
    /// Asks for the lock.
    pub fn request(self: &Arc<Self>, owner: ConnectionId) -> ReadLockHold {
        self.wanted.fetch_add(1, Ordering::SeqCst);
        ReadLockHold { lock: self.clone(), owner }
    }
}

impl ReadLockHold {
    /// Whether all changes of others have ended; what to wait for if not.
    pub fn grant(&self, connections: &Registry) -> Result<(), Wait> {
        let mut slow = self.lock.slow.lock();
        let mut busy = false;
        connections.for_each(|connection| busy |= connection.id != self.owner && connection.is_changing());
        if busy { Err(wait_for(&mut slow.ended)) } else { Ok(()) }
    }
}

impl Drop for ReadLockHold {
    fn drop(&mut self) {
        self.lock.wanted.fetch_sub(1, Ordering::SeqCst);
        wake(&mut self.lock.slow.lock().released);
    }
}

/// A connection's side: marks its changes.
pub struct ChangeMark {
    lock: Arc<GlobalReadLock>,
    connection: Arc<Connection>,
}

impl ChangeMark {
    /// For a connection.
    pub fn new(lock: Arc<GlobalReadLock>, connection: Arc<Connection>) -> ChangeMark {
        ChangeMark { lock, connection }
    }

    /// Begins a change, or says what to wait for before the next try.
    #[inline]
    pub fn begin(&self) -> Result<(), Wait> {
        self.connection.set_changing(true);
        if self.lock.wanted.load(Ordering::SeqCst) == 0 { Ok(()) } else { self.step_back() }
    }

    #[cold]
    fn step_back(&self) -> Result<(), Wait> {
        let mut slow = self.lock.slow.lock();
        if self.lock.wanted.load(Ordering::SeqCst) == 0 {
            return Ok(());
        }
        self.connection.set_changing(false);
        wake(&mut slow.ended);
        Err(wait_for(&mut slow.released))
    }

    /// Ends it.
    #[inline]
    pub fn end(&self) {
        self.connection.set_changing(false);
        if self.lock.wanted.load(Ordering::SeqCst) != 0 {
            wake(&mut self.lock.slow.lock().ended);
        }
    }
}

impl Drop for ChangeMark {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::status::Status;

    #[test]
    fn the_lock_waits_for_changes_and_keeps_new_ones_out() {
        let (registry, status) = (Registry::default(), Status::default());
        let connection = |host| registry.enter(10, host, 0, status.thread()).unwrap();
        let lock = Arc::new(GlobalReadLock::default());
        let (one, other) = (connection("one"), connection("other"));
        let mark = ChangeMark::new(lock.clone(), one.clone());
        assert!(mark.begin().is_ok());
        let hold = lock.request(other.id);
        let wait = hold.grant(&registry).err().unwrap();
        assert!(!wait.event().is_set());
        mark.end();
        assert!(wait.event().is_set());
        assert!(hold.grant(&registry).is_ok());
        let blocked = mark.begin().err().unwrap();
        assert!(hold.grant(&registry).is_ok(), "a change that stepped back is none");
        drop(hold);
        assert!(blocked.event().is_set());
        assert!(mark.begin().is_ok());
        drop(mark);
        assert!(!one.is_changing());
    }
}
