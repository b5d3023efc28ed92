//! Metadata locks: who uses a table, who may change its definition, and LOCK TABLES.
//!
//! A transaction *uses* every table it touches until it ends, to read or also to change rows, so that the definition
//! cannot change under it. DDL and LOCK TABLES … WRITE take the table *exclusively*; LOCK TABLES … READ takes a
//! *read lock*, which lets others read and keeps them from changing rows. A waiting request stops the new uses that it
//! does not go with, so that it gets its turn. Taking a use is one atomic addition; only where a request is about is a
//! mutex taken and a wait returned.
//!
//! Uses wait for `changed`, requests for `drained`. They are two events because a use that backs off wakes the
//! requests (they may have seen its count); were that to wake the other waiting uses too, they would wake each other
//! for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use disk::{Event, Wait};
use parking_lot::Mutex;

/// Set while an exclusive request holds the lock or waits for it.
const EXCLUSIVE: u64 = 1 << 63;
/// Set while a read lock is held or waited for.
const READ_LOCK: u64 = 1 << 62;
/// One use that changes rows, counted apart as well.
const WRITE: u64 = 1 << 31;
/// The count of all uses.
const USES: u64 = WRITE - 1;
/// The count of those that change rows.
const WRITES: u64 = (READ_LOCK - 1) & !USES;

/// What a transaction does with a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads it.
    Read,
    /// Changes rows, or locks them to change them.
    Write,
}

/// A table's metadata lock.
#[derive(Default)]
pub struct MetadataLock {
    /// Numbers of uses, [`EXCLUSIVE`] and [`READ_LOCK`].
    state: AtomicU64,
    slow: Mutex<Slow>,
}

#[derive(Default)]
struct Slow {
    /// Exclusive requests that hold or wait.
    exclusive: u32,
    /// Is one of them granted?
    granted: bool,
    /// Read locks held or waited for.
    read_locks: u32,
    /// Those held.
    read_granted: u32,
    /// Set whenever a hold ends while a use waits.
    changed: Option<Event>,
    /// Set whenever a use or a hold ends while a request waits.
    drained: Option<Event>,
}

fn wait_for(slot: &mut Option<Event>) -> Wait {
    Wait::new(slot.get_or_insert_with(Event::new).clone())
}

fn wake(slot: &mut Option<Event>) {
    if let Some(event) = slot.take() {
        event.set();
    }
}

/// A use of a table; ends when dropped.
pub struct MetadataUse {
    lock: Arc<MetadataLock>,
    /// What it added to the count.
    amount: u64,
}

/// The right to change a table's definition; ends when dropped.
pub struct MetadataExclusive(Option<Arc<MetadataLock>>);

/// LOCK TABLES … READ; ends when dropped.
pub struct MetadataReadLock(Arc<MetadataLock>);

/// An exclusive request that waits; it keeps new uses out until it is granted or dropped.
pub struct ExclusiveRequest(Option<Arc<MetadataLock>>);

/// A request for a read lock; it keeps new uses that change rows out until it is granted or dropped.
pub struct ReadLockRequest(Option<Arc<MetadataLock>>);

impl MetadataLock {
    /// Begins a use, or says what to wait for before the next try.
    pub fn share(self: &Arc<Self>, access: Access) -> Result<MetadataUse, Wait> {
        let (amount, blockers) = match access {
            Access::Read => (1, EXCLUSIVE),
            Access::Write => (1 + WRITE, EXCLUSIVE | READ_LOCK),
        };
        if self.state.fetch_add(amount, Ordering::Acquire) & blockers == 0 {
            return Ok(MetadataUse { lock: self.clone(), amount });
        }
        let mut slow = self.slow.lock();
        if slow.exclusive == 0 && (access == Access::Read || slow.read_locks == 0) {
            // It ended in between; the use counted above stands.
            return Ok(MetadataUse { lock: self.clone(), amount });
        }
        self.state.fetch_sub(amount, Ordering::Release);
        // A waiting request may have seen the count that was just taken back.
        wake(&mut slow.drained);
        Err(wait_for(&mut slow.changed))
    }

    /// Asks for the table alone. No new use begins from now on.
    pub fn request_exclusive(self: &Arc<Self>) -> ExclusiveRequest {
        let mut slow = self.slow.lock();
        slow.exclusive += 1;
        self.state.fetch_or(EXCLUSIVE, Ordering::AcqRel);
        ExclusiveRequest(Some(self.clone()))
    }

    /// Asks for a read lock. No new use that changes rows begins from now on.
    pub fn request_read_lock(self: &Arc<Self>) -> ReadLockRequest {
        let mut slow = self.slow.lock();
        slow.read_locks += 1;
        self.state.fetch_or(READ_LOCK, Ordering::AcqRel);
        ReadLockRequest(Some(self.clone()))
    }

    fn end_exclusive(&self, granted: bool) {
        let mut slow = self.slow.lock();
        slow.exclusive -= 1;
        if granted {
            slow.granted = false;
        }
        if slow.exclusive == 0 {
            self.state.fetch_and(!EXCLUSIVE, Ordering::AcqRel);
        }
        wake(&mut slow.changed);
        wake(&mut slow.drained);
    }

    fn end_read_lock(&self, granted: bool) {
        let mut slow = self.slow.lock();
        slow.read_locks -= 1;
        if granted {
            slow.read_granted -= 1;
        }
        if slow.read_locks == 0 {
            self.state.fetch_and(!READ_LOCK, Ordering::AcqRel);
        }
        wake(&mut slow.changed);
        wake(&mut slow.drained);
    }
}

impl ExclusiveRequest {
    /// Takes the lock if nobody uses the table; `own` uses (of the same session) do not count.
    pub fn grant(&mut self, own: u32) -> Result<MetadataExclusive, Wait> {
        let Some(lock) = self.0.clone() else { return Err(Wait::new(Event::new())) };
        let mut slow = lock.slow.lock();
        let free = !slow.granted && slow.read_granted == 0;
        if free && lock.state.load(Ordering::Acquire) & USES <= u64::from(own) {
            slow.granted = true;
            drop(slow);
            self.0 = None;
            return Ok(MetadataExclusive(Some(lock)));
        }
        Err(wait_for(&mut slow.drained))
    }
}

impl ReadLockRequest {
    /// Takes the lock if nobody changes rows of the table, and nobody has it or waits for it exclusively.
    pub fn grant(&mut self) -> Result<MetadataReadLock, Wait> {
        let Some(lock) = self.0.clone() else { return Err(Wait::new(Event::new())) };
        let mut slow = lock.slow.lock();
        if slow.exclusive == 0 && lock.state.load(Ordering::Acquire) & WRITES == 0 {
            slow.read_granted += 1;
            drop(slow);
            self.0 = None;
            return Ok(MetadataReadLock(lock));
        }
        Err(wait_for(&mut slow.drained))
    }
}

impl MetadataExclusive {
    /// Stands for a lock that the session holds already (LOCK TABLES … WRITE); nothing ends when it is dropped.
    pub fn held_by_session() -> MetadataExclusive {
        MetadataExclusive(None)
    }
}

impl MetadataUse {
    /// Makes it one that changes rows. Requests that only wait do not stop it, since they wait for this use to end;
    /// a read lock that is held does.
    pub fn upgrade(&mut self) -> Result<(), Wait> {
        if self.amount & WRITES != 0 {
            return Ok(());
        }
        if self.lock.state.fetch_add(WRITE, Ordering::Acquire) & READ_LOCK != 0 {
            let mut slow = self.lock.slow.lock();
            if slow.read_granted > 0 {
                self.lock.state.fetch_sub(WRITE, Ordering::Release);
                wake(&mut slow.drained);
                return Err(wait_for(&mut slow.changed));
            }
        }
        self.amount += WRITE;
        Ok(())
    }
}

impl Drop for ExclusiveRequest {
    fn drop(&mut self) {
        if let Some(lock) = self.0.take() {
            lock.end_exclusive(false);
        }
    }
}

impl Drop for MetadataExclusive {
    fn drop(&mut self) {
        if let Some(lock) = self.0.take() {
            lock.end_exclusive(true);
        }
    }
}

impl Drop for ReadLockRequest {
    fn drop(&mut self) {
        if let Some(lock) = self.0.take() {
            lock.end_read_lock(false);
        }
    }
}

impl Drop for MetadataReadLock {
    fn drop(&mut self) {
        self.0.end_read_lock(true);
    }
}

impl Drop for MetadataUse {
    fn drop(&mut self) {
        let before = self.lock.state.fetch_sub(self.amount, Ordering::Release);
        assert!(before & USES > 0, "a metadata use ended that had not begun");
        if before & (EXCLUSIVE | READ_LOCK) != 0 {
            wake(&mut self.lock.slow.lock().drained);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ddl_waits_for_uses_and_keeps_new_ones_out() {
        let lock = Arc::new(MetadataLock::default());
        let first = lock.share(Access::Read).ok().unwrap();
        let mut request = lock.request_exclusive();
        assert!(request.grant(0).is_err());
        assert!(lock.share(Access::Read).is_err());
        drop(first);
        let exclusive = request.grant(0).ok().unwrap();
        assert!(lock.share(Access::Read).is_err());
        let mut second = lock.request_exclusive();
        assert!(second.grant(0).is_err());
        drop(exclusive);
        drop(second);
        assert!(lock.share(Access::Write).is_ok());
    }

    #[test]
    fn a_request_given_up_lets_uses_in_again() {
        let lock = Arc::new(MetadataLock::default());
        let _first = lock.share(Access::Write).ok().unwrap();
        let request = lock.request_exclusive();
        assert!(lock.share(Access::Read).is_err());
        drop(request);
        let request = lock.request_read_lock();
        assert!(lock.share(Access::Write).is_err());
        drop(request);
        assert!(lock.share(Access::Write).is_ok());
    }

    #[test]
    fn a_read_lock_keeps_changes_out_and_readers_in() {
        let lock = Arc::new(MetadataLock::default());
        let writer = lock.share(Access::Write).ok().unwrap();
        let reader = lock.share(Access::Read).ok().unwrap();
        let mut request = lock.request_read_lock();
        assert!(request.grant().is_err(), "somebody changes rows");
        assert!(lock.share(Access::Write).is_err(), "its turn is next");
        drop(writer);
        let held = request.grant().ok().unwrap();
        let another = lock.request_read_lock().grant().ok().unwrap();
        assert!(lock.share(Access::Write).is_err());
        assert!(lock.share(Access::Read).is_ok());
        let mut exclusive = lock.request_exclusive();
        drop(reader);
        assert!(exclusive.grant(0).is_err());
        drop(held);
        assert!(exclusive.grant(0).is_err(), "one read lock is left");
        drop(another);
        let exclusive = exclusive.grant(0).ok().unwrap();
        assert!(lock.request_read_lock().grant().is_err());
        drop(exclusive);
        assert!(lock.share(Access::Write).is_ok());
    }

    #[test]
    fn a_use_becomes_one_that_changes_rows() {
        let lock = Arc::new(MetadataLock::default());
        let mut held = lock.share(Access::Read).ok().unwrap();
        let mut exclusive = lock.request_exclusive();
        assert!(held.upgrade().is_ok(), "the request waits for this very use");
        assert!(exclusive.grant(0).is_err());
        drop(exclusive);
        drop(held);
        let mut held = lock.share(Access::Read).ok().unwrap();
        let read_lock = lock.request_read_lock().grant().ok().unwrap();
        assert!(held.upgrade().is_err());
        drop(read_lock);
        assert!(held.upgrade().is_ok());
        assert!(lock.request_read_lock().grant().is_err());
    }

    #[test]
    fn uses_that_back_off_do_not_wake_each_other() {
        let lock = Arc::new(MetadataLock::default());
        let _held = lock.share(Access::Read).ok().unwrap();
        let mut request = lock.request_exclusive();
        assert!(request.grant(0).is_err());
        let first = lock.share(Access::Read).err().unwrap();
        let _second = lock.share(Access::Read).err().unwrap();
        assert!(!first.event().is_set());
    }
}
