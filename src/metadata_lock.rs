//! Metadata locks: who uses a name, who may change what it stands for, and LOCK TABLES.
//!
//! The locks are on *names*, whether or not a table of that name exists: [`MetadataLocks`] has one for each
//! (database, table) that anybody asks for, and one for each database (its table name is empty). So CREATE
//! and RENAME hold the name that they are going to give as they hold the one they take away.
//!
//! A transaction *uses* every table it touches until it ends, to read or also to change rows, so that the
//! definition cannot change under it. DDL and LOCK TABLES … WRITE take the name *exclusively*; LOCK TABLES …
//! READ takes a *read lock*, which lets others read and keeps them from changing rows. A waiting request
//! stops the new uses that it does not go with, so that it gets its turn. Taking a use is one atomic
//! addition; only where a request is about is a mutex taken and a wait returned. What works on tables of a
//! database uses the database; what makes or drops it takes it exclusively.
//!
//! Uses wait for `changed`, requests for `drained`. They are two events because a use that backs off wakes
//! the requests (they may have seen its count); were that to wake the other waiting uses too, they would wake
//! each other for ever.
//!
//! Who waits is entered in the graph of [`crate::metadata_deadlock`], which ends cycles.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use disk::{Event, Wait};
use parking_lot::Mutex;

use crate::backup::gate::DefinitionPass;
use crate::metadata_deadlock::{Hold, MetadataOwner, Waited};

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

/// Why a lock was not had.
pub(crate) enum Blocked {
    /// Await this and try again. Others see the owner as waiting until the `Wait` is dropped.
    Wait(Wait),
    /// Waiting would have closed a cycle, or this wait was chosen to end one.
    Deadlock,
}

/// The lock of one name.
#[derive(Default)]
pub struct MetadataLock {
    /// Numbers of uses, [`EXCLUSIVE`] and [`READ_LOCK`].
    state: AtomicU64,
    slow: Mutex<Slow>,
    /// Where it is listed.
    listed: Option<(Weak<MetadataLocks>, (String, String))>,
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

fn slot(slot: &mut Option<Event>) -> Event {
    slot.get_or_insert_with(Event::new).clone()
}

fn wake(slot: &mut Option<Event>) {
    if let Some(event) = slot.take() {
        event.set();
    }
}

/// The locks of all names that somebody holds, waits for or has a table handle of.
#[derive(Default)]
pub struct MetadataLocks {
    by_name: Mutex<HashMap<(String, String), Weak<MetadataLock>>>,
}

impl MetadataLocks {
    /// The lock of a table's name; of a database where `table` is empty.
    pub fn of(self: &Arc<Self>, database: &str, table: &str) -> Arc<MetadataLock> {
        let key = (database.to_owned(), table.to_owned());
        let mut by_name = self.by_name.lock();
        if let Some(lock) = by_name.get(&key).and_then(Weak::upgrade) {
            return lock;
        }
        let listed = Some((Arc::downgrade(self), key.clone()));
        let lock = Arc::new(MetadataLock { state: AtomicU64::new(0), slow: Mutex::default(), listed });
        by_name.insert(key, Arc::downgrade(&lock));
        lock
    }
}

impl Drop for MetadataLock {
    fn drop(&mut self) {
        let Some((locks, key)) = self.listed.take() else { return };
        let Some(locks) = locks.upgrade() else { return };
        let mut by_name = locks.by_name.lock();
        // Another one of this name may have been made since the last reference went.
        if by_name.get(&key).is_some_and(|lock| lock.strong_count() == 0) {
            by_name.remove(&key);
        }
    }
}

/// A use of a table; ends when dropped.
pub struct MetadataUse {
    lock: Arc<MetadataLock>,
    owner: Arc<MetadataOwner>,
    /// What it added to the count; 0: it has not begun, or has ended.
    amount: u64,
}

/// The right to change what a name stands for: a share of a hold, which ends with the last of its shares.
///
/// A session that holds a name beyond its statements (LOCK TABLES … WRITE) lends each of them a share. So
/// what a statement leaves to the background has the name, whatever becomes of the session; and the session
/// keeps its hands off until the share has come back.
pub struct MetadataExclusive {
    hold: Arc<ExclusiveHold>,
    lent: bool,
    /// Of the definition that has this share: no backup begins before it is over.
    pass: Option<DefinitionPass>,
}

struct ExclusiveHold {
    lock: Arc<MetadataLock>,
    owner: Arc<MetadataOwner>,
    /// The session uses the name itself, and has to wait like others.
    over_uses: bool,
    /// Set when the share that is lent comes back.
    lent: Mutex<Option<Event>>,
}

/// LOCK TABLES … READ; ends when dropped.
pub struct MetadataReadLock(Arc<MetadataLock>, Arc<MetadataOwner>);

/// An exclusive request that waits; it keeps new uses out until it is granted or dropped.
pub struct ExclusiveRequest(Option<(Arc<MetadataLock>, Arc<MetadataOwner>)>);

/// A request for a read lock; it keeps new uses that change rows out until it is granted or dropped.
pub struct ReadLockRequest(Option<(Arc<MetadataLock>, Arc<MetadataOwner>)>);

impl MetadataLock {
    /// Database and table of the name, if it is listed.
    pub(crate) fn name(&self) -> Option<(&str, &str)> {
        self.listed.as_ref().map(|(_, (database, table))| (&**database, &**table))
    }

    /// Begins a use, or says why not.
    pub(crate) fn share(
        self: &Arc<Self>,
        access: Access,
        owner: &Arc<MetadataOwner>,
    ) -> Result<MetadataUse, Blocked> {
        let mut begun = MetadataUse::not_begun(self, owner);
        let waited = match access {
            Access::Read => Waited::Read,
            Access::Write => Waited::Write,
        };
        begun.begin(access).map_err(|event| owner.wait(self, waited, event))?;
        Ok(begun)
    }

    /// Asks for the name alone. No new use begins from now on.
    pub fn request_exclusive(self: &Arc<Self>, owner: &Arc<MetadataOwner>) -> ExclusiveRequest {
        let mut slow = self.slow.lock();
        slow.exclusive += 1;
        self.state.fetch_or(EXCLUSIVE, Ordering::AcqRel);
        ExclusiveRequest(Some((self.clone(), owner.clone())))
    }

    /// Asks for a read lock. No new use that changes rows begins from now on.
    pub fn request_read_lock(self: &Arc<Self>, owner: &Arc<MetadataOwner>) -> ReadLockRequest {
        let mut slow = self.slow.lock();
        slow.read_locks += 1;
        self.state.fetch_or(READ_LOCK, Ordering::AcqRel);
        ReadLockRequest(Some((self.clone(), owner.clone())))
    }

    /// For a session that uses the name: whether a definition of its own, left to the background, has taken
    /// it.
    pub(crate) fn not_being_changed(&self) -> Result<(), Wait> {
        let mut slow = self.slow.lock();
        if slow.granted { Err(Wait::new(slot(&mut slow.changed))) } else { Ok(()) }
    }

    /// Lets everybody who waits look again: one of them has to give up.
    pub(crate) fn wake_all(&self) {
        let mut slow = self.slow.lock();
        wake(&mut slow.changed);
        wake(&mut slow.drained);
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

/// A request that was granted already: nobody calls that, and a caller would wait for ever.
fn granted_already() -> Blocked {
    Blocked::Wait(Wait::new(Event::new()))
}

impl ExclusiveRequest {
    /// Takes the lock if nobody uses the name; `own` uses (of the same session) do not count.
    pub(crate) fn grant(&mut self, own: u32) -> Result<MetadataExclusive, Blocked> {
        self.grant_beside(own, 0)
    }

    /// The same for one who has a read lock of the name, and lets it go when it has this one: nobody changes
    /// rows in between. Two who did so would wait for each other; they have to take turns.
    pub(crate) fn grant_above(
        &mut self,
        _read_lock: &MetadataReadLock,
        own: u32,
    ) -> Result<MetadataExclusive, Blocked> {
        self.grant_beside(own, 1)
    }

    fn grant_beside(&mut self, own: u32, own_read_locks: u32) -> Result<MetadataExclusive, Blocked> {
        let Some((lock, owner)) = self.0.clone() else { return Err(granted_already()) };
        let event = {
            let mut slow = lock.slow.lock();
            let free = !slow.granted && slow.read_granted <= own_read_locks;
            if free && lock.state.load(Ordering::Acquire) & USES <= u64::from(own) {
                slow.granted = true;
                drop(slow);
                self.0 = None;
                owner.holds(&lock, Hold::Exclusive);
                let over_uses = own > 0;
                if over_uses {
                    owner.definition_begins();
                }
                let hold = ExclusiveHold { lock, owner, over_uses, lent: Mutex::default() };
                return Ok(MetadataExclusive { hold: Arc::new(hold), lent: false, pass: None });
            }
            slot(&mut slow.drained)
        };
        Err(owner.wait(&lock, Waited::Exclusive, event))
    }
}

impl ReadLockRequest {
    /// Takes the lock if nobody changes rows of the table, and nobody has it or waits for it exclusively.
    pub(crate) fn grant(&mut self) -> Result<MetadataReadLock, Blocked> {
        let Some((lock, owner)) = self.0.clone() else { return Err(granted_already()) };
        let event = {
            let mut slow = lock.slow.lock();
            if slow.exclusive == 0 && lock.state.load(Ordering::Acquire) & WRITES == 0 {
                slow.read_granted += 1;
                drop(slow);
                self.0 = None;
                owner.holds(&lock, Hold::ReadLock);
                return Ok(MetadataReadLock(lock, owner));
            }
            slot(&mut slow.drained)
        };
        Err(owner.wait(&lock, Waited::ReadLock, event))
    }
}

impl MetadataExclusive {
    /// A share for a statement of the session that has this one; one at a time.
    pub(crate) fn lend(&self) -> Result<MetadataExclusive, Wait> {
        let mut lent = self.hold.lent.lock();
        if let Some(event) = &*lent {
            return Err(Wait::new(event.clone()));
        }
        *lent = Some(Event::new());
        Ok(MetadataExclusive { hold: self.hold.clone(), lent: true, pass: None })
    }

    /// Keeps backups out for as long as this share is held.
    pub(crate) fn with_pass(mut self, pass: DefinitionPass) -> MetadataExclusive {
        self.pass = Some(pass);
        self
    }

    /// Whether no statement has a share.
    pub(crate) fn is_back(&self) -> Result<(), Wait> {
        self.hold.lent.lock().as_ref().map_or(Ok(()), |event| Err(Wait::new(event.clone())))
    }
}

impl MetadataUse {
    /// One that is to be begun.
    pub(crate) fn not_begun(lock: &Arc<MetadataLock>, owner: &Arc<MetadataOwner>) -> MetadataUse {
        MetadataUse { lock: lock.clone(), owner: owner.clone(), amount: 0 }
    }

    /// Begins one that has not begun, or has ended. It stays that way when it has to wait, for this event.
    pub(crate) fn begin(&mut self, access: Access) -> Result<(), Event> {
        debug_assert_eq!(self.amount, 0, "a metadata use begins that has begun");
        let (amount, blockers, hold) = match access {
            Access::Read => (1, EXCLUSIVE, Hold::Read),
            Access::Write => (1 + WRITE, EXCLUSIVE | READ_LOCK, Hold::Write),
        };
        if self.lock.state.fetch_add(amount, Ordering::Acquire) & blockers != 0 {
            let mut slow = self.lock.slow.lock();
            // Else it ended in between, and the use counted above stands.
            if slow.exclusive > 0 || access == Access::Write && slow.read_locks > 0 {
                self.lock.state.fetch_sub(amount, Ordering::Release);
                // A waiting request may have seen the count that was just taken back.
                wake(&mut slow.drained);
                return Err(slot(&mut slow.changed));
            }
        }
        self.owner.holds(&self.lock, hold);
        self.amount = amount;
        Ok(())
    }

    /// Ends it, if it has begun.
    pub(crate) fn end(&mut self) {
        let amount = std::mem::take(&mut self.amount);
        if amount == 0 {
            return;
        }
        let hold = if amount & WRITES == 0 { Hold::Read } else { Hold::Write };
        self.owner.no_longer_holds(&self.lock, hold);
        let before = self.lock.state.fetch_sub(amount, Ordering::Release);
        assert!(before & USES > 0, "a metadata use ended that had not begun");
        if before & (EXCLUSIVE | READ_LOCK) != 0 {
            wake(&mut self.lock.slow.lock().drained);
        }
    }

    /// Whether it is a use of this name.
    pub(crate) fn is_of(&self, lock: &Arc<MetadataLock>) -> bool {
        Arc::ptr_eq(&self.lock, lock)
    }

    /// Makes it one that changes rows. Requests that only wait do not stop it, since they wait for this use
    /// to end; a read lock that is held does.
    pub(crate) fn upgrade(&mut self) -> Result<(), Blocked> {
        if self.amount & WRITES != 0 {
            return Ok(());
        }
        if self.lock.state.fetch_add(WRITE, Ordering::Acquire) & READ_LOCK != 0 {
            let event = {
                let mut slow = self.lock.slow.lock();
                (slow.read_granted > 0).then(|| {
                    self.lock.state.fetch_sub(WRITE, Ordering::Release);
                    wake(&mut slow.drained);
                    slot(&mut slow.changed)
                })
            };
            if let Some(event) = event {
                return Err(self.owner.wait(&self.lock, Waited::Upgrade, event));
            }
        }
        self.amount += WRITE;
        self.owner.no_longer_holds(&self.lock, Hold::Read);
        self.owner.holds(&self.lock, Hold::Write);
        Ok(())
    }
}

impl Drop for ExclusiveRequest {
    fn drop(&mut self) {
        if let Some((lock, _)) = self.0.take() {
            lock.end_exclusive(false);
        }
    }
}

impl Drop for MetadataExclusive {
    fn drop(&mut self) {
        if self.lent
            && let Some(event) = self.hold.lent.lock().take()
        {
            event.set();
        }
    }
}

impl Drop for ExclusiveHold {
    fn drop(&mut self) {
        self.owner.no_longer_holds(&self.lock, Hold::Exclusive);
        if self.over_uses {
            self.owner.definition_ends();
        }
        self.lock.end_exclusive(true);
    }
}

impl Drop for ReadLockRequest {
    fn drop(&mut self) {
        if let Some((lock, _)) = self.0.take() {
            lock.end_read_lock(false);
        }
    }
}

impl Drop for MetadataReadLock {
    fn drop(&mut self) {
        self.1.no_longer_holds(&self.0, Hold::ReadLock);
        self.0.end_read_lock(true);
    }
}

impl Drop for MetadataUse {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::metadata_deadlock::MetadataGraph;

    /// One owner for all: cycles are the graph's tests.
    fn someone() -> Arc<MetadataOwner> {
        MetadataGraph::new().owner()
    }

    #[test]
    fn ddl_waits_for_uses_and_keeps_new_ones_out() {
        let lock = Arc::new(MetadataLock::default());
        let first = lock.share(Access::Read, &someone()).ok().unwrap();
        let mut request = lock.request_exclusive(&someone());
        assert!(request.grant(0).is_err());
        assert!(lock.share(Access::Read, &someone()).is_err());
        drop(first);
        let exclusive = request.grant(0).ok().unwrap();
        assert!(lock.share(Access::Read, &someone()).is_err());
        let mut second = lock.request_exclusive(&someone());
        assert!(second.grant(0).is_err());
        drop(exclusive);
        drop(second);
        assert!(lock.share(Access::Write, &someone()).is_ok());
    }

    #[test]
    fn a_request_given_up_lets_uses_in_again() {
        let lock = Arc::new(MetadataLock::default());
        let _first = lock.share(Access::Write, &someone()).ok().unwrap();
        let request = lock.request_exclusive(&someone());
        assert!(lock.share(Access::Read, &someone()).is_err());
        drop(request);
        let request = lock.request_read_lock(&someone());
        assert!(lock.share(Access::Write, &someone()).is_err());
        drop(request);
        assert!(lock.share(Access::Write, &someone()).is_ok());
    }

    #[test]
    fn a_read_lock_keeps_changes_out_and_readers_in() {
        let lock = Arc::new(MetadataLock::default());
        let writer = lock.share(Access::Write, &someone()).ok().unwrap();
        let reader = lock.share(Access::Read, &someone()).ok().unwrap();
        let mut request = lock.request_read_lock(&someone());
        assert!(request.grant().is_err(), "somebody changes rows");
        assert!(lock.share(Access::Write, &someone()).is_err(), "its turn is next");
        drop(writer);
        let held = request.grant().ok().unwrap();
        let another = lock.request_read_lock(&someone()).grant().ok().unwrap();
        assert!(lock.share(Access::Write, &someone()).is_err());
        assert!(lock.share(Access::Read, &someone()).is_ok());
        let mut exclusive = lock.request_exclusive(&someone());
        drop(reader);
        assert!(exclusive.grant(0).is_err());
        drop(held);
        assert!(exclusive.grant(0).is_err(), "one read lock is left");
        drop(another);
        let exclusive = exclusive.grant(0).ok().unwrap();
        assert!(lock.request_read_lock(&someone()).grant().is_err());
        drop(exclusive);
        assert!(lock.share(Access::Write, &someone()).is_ok());
    }

    #[test]
    fn a_use_becomes_one_that_changes_rows() {
        let lock = Arc::new(MetadataLock::default());
        let mut held = lock.share(Access::Read, &someone()).ok().unwrap();
        let mut exclusive = lock.request_exclusive(&someone());
        assert!(held.upgrade().is_ok(), "the request waits for this very use");
        assert!(exclusive.grant(0).is_err());
        drop(exclusive);
        drop(held);
        let mut held = lock.share(Access::Read, &someone()).ok().unwrap();
        let read_lock = lock.request_read_lock(&someone()).grant().ok().unwrap();
        assert!(held.upgrade().is_err());
        drop(read_lock);
        assert!(held.upgrade().is_ok());
        assert!(lock.request_read_lock(&someone()).grant().is_err());
    }

    #[test]
    fn uses_that_back_off_do_not_wake_each_other() {
        let lock = Arc::new(MetadataLock::default());
        let _held = lock.share(Access::Read, &someone()).ok().unwrap();
        let mut request = lock.request_exclusive(&someone());
        assert!(request.grant(0).is_err());
        let waits = |lock: &Arc<MetadataLock>| match lock.share(Access::Read, &someone()) {
            Err(Blocked::Wait(wait)) => wait,
            _ => panic!("an exclusive request waits"),
        };
        let first = waits(&lock);
        let _second = waits(&lock);
        assert!(!first.event().is_set());
    }
}
