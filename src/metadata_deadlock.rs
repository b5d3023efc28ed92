//! Deadlocks of metadata locks: a cycle in the graph of who waits for whom.
//!
//! An *owner* is a session's transaction object, or a statement without one. It notes what it holds in a few
//! slots of its own, by plain stores, so that taking a use stays cheap; only one that has to wait enters the
//! graph. A cycle consists of owners that wait, and is closed by the last of their waits to begin, which
//! therefore looks for it: from itself to the holders of what it waits for, or asked for it with precedence,
//! and so on. Waits begin and are searched one at a time, so the last one sees all others. An owner between
//! two tries of the same wait is not in the graph; it looks again when it comes back.
//!
//! A transaction may also wait for a row lock in such a cycle: [`txn::RowWaits`] says who does and for whom,
//! and tells when such a wait begins, which may be the last one too. The victim is always one that waits for
//! a metadata lock.
//!
//! Waits for names stand still during a search, but those for rows do not: a transaction that was found to
//! hold a name may have got its row, ended, and begun to wait for another row before the search comes to what
//! it waits for. That would be a cycle that never was. So a cycle is **confirmed**, as the lock table
//! confirms its own: each edge is looked at once more, and after that all its waits for rows must still be
//! the ones that the search saw. Who waits neither takes nor lets go, so all edges stood at one moment.
//!
//! A thousand may wait for one row, each for all before it. A search is given each of them once
//! ([`txn::RowSearch`]), so that it grows with the length of the queue.
//!
//! The victim is the one that is cheapest to repeat: a transaction that wants to use a table before a
//! statement that wants one for itself (as in MySQL), and among equals the one whose wait closed the cycle.
//! It learns of it as [`Blocked::Deadlock`], error 1213.

pub(crate) mod listing;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::SystemTime;

use disk::{Event, Wait, WaitKind};
use parking_lot::Mutex;
use txn::{OutsideWaits, RowOwner, RowWait, RowWaits};

use crate::metadata_lock::{Blocked, MetadataLock};

/// How a name is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    Read,
    Write,
    ReadLock,
    Exclusive,
}

const HOLDS: [Hold; 4] = [Hold::Read, Hold::Write, Hold::ReadLock, Hold::Exclusive];

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// A use that reads.
    Read,
    /// A use that changes rows.
    Write,
    /// A use that reads is to become one that changes rows.
    Upgrade,
    ReadLock,
    Exclusive,
}

impl Waited {
    /// Whether a hold stands in its way.
    fn blocked_by_hold(self, hold: Hold) -> bool {
        match self {
            Waited::Read => hold == Hold::Exclusive,
            Waited::Write => matches!(hold, Hold::Exclusive | Hold::ReadLock),
            Waited::Upgrade => hold == Hold::ReadLock,
            Waited::ReadLock => matches!(hold, Hold::Write | Hold::Exclusive),
            Waited::Exclusive => true,
        }
    }

    /// Whether a request that waits itself goes first.
    fn blocked_by_request(self, other: Waited) -> bool {
        match self {
            Waited::Read | Waited::ReadLock => other == Waited::Exclusive,
            Waited::Write => matches!(other, Waited::Exclusive | Waited::ReadLock),
            Waited::Upgrade | Waited::Exclusive => false,
        }
    }

    /// What is lost when this wait ends in an error: the least is taken as the victim.
    fn weight(self) -> u32 {
        match self {
            Waited::Read | Waited::Write | Waited::Upgrade => 0,
            Waited::ReadLock | Waited::Exclusive => 1,
        }
    }
}

/// Names an owner holds before it needs the list.
const SLOTS: usize = 6;

/// Who holds metadata locks and waits for them.
pub struct MetadataOwner {
    graph: Weak<MetadataGraph>,
    /// Addresses of locks with the hold in the low bits; 0 is free.
    slots: [AtomicUsize; SLOTS],
    /// The same for those that found no slot.
    more: Mutex<Vec<usize>>,
    /// Set while there is something in `told`.
    is_told: AtomicBool,
    /// The wait that has to end in an error when it is tried again. It stays when that wait is given up
    /// instead, and then means nothing to the next one. Should another statement of this owner take it away,
    /// the wait finds its cycle once more.
    told: Mutex<Option<(Weak<MetadataLock>, Waited)>>,
    /// Its definitions that have names exclusively which it uses itself.
    definitions: AtomicUsize,
    /// Its session in the table of row locks, if it is one.
    rows: Option<RowOwner>,
}

/// A hold as a number: locks are aligned, so that their low bits are free.
fn entry(lock: &Arc<MetadataLock>, hold: Hold) -> usize {
    const { assert!(align_of::<MetadataLock>() >= 8) };
    Arc::as_ptr(lock) as usize | hold as usize
}

impl MetadataOwner {
    pub(crate) fn holds(&self, lock: &Arc<MetadataLock>, hold: Hold) {
        // It got what it waited for after all.
        if self.is_told.load(Ordering::Relaxed) {
            self.take_told();
        }
        let entry = entry(lock, hold);
        let free = |slot: &&AtomicUsize| {
            slot.load(Ordering::Relaxed) == 0
                && slot.compare_exchange(0, entry, Ordering::Release, Ordering::Relaxed).is_ok()
        };
        if self.slots.iter().find(free).is_none() {
            self.more.lock().push(entry);
        }
    }

    pub(crate) fn no_longer_holds(&self, lock: &Arc<MetadataLock>, hold: Hold) {
        let entry = entry(lock, hold);
        let taken = |slot: &&AtomicUsize| {
            slot.load(Ordering::Relaxed) == entry
                && slot.compare_exchange(entry, 0, Ordering::Release, Ordering::Relaxed).is_ok()
        };
        if self.slots.iter().find(taken).is_none() {
            let mut more = self.more.lock();
            let at = more.iter().position(|other| *other == entry);
            assert!(at.is_some(), "a metadata hold ended that had not begun");
            at.map(|at| more.swap_remove(at));
            if more.is_empty() {
                // An owner may rest from transaction to transaction; this one may have held very many.
                *more = Vec::new();
            }
        }
    }

    /// Is another transaction's from now on, which must not learn that a wait of the last one had to end.
    pub(crate) fn renew(&self) {
        if self.is_told.load(Ordering::Relaxed) {
            self.take_told();
        }
    }

    pub(crate) fn definition_begins(&self) {
        self.definitions.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn definition_ends(&self) {
        self.definitions.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether a definition of its own has a name that it uses.
    #[inline]
    pub(crate) fn has_definitions(&self) -> bool {
        self.definitions.load(Ordering::Acquire) > 0
    }

    /// What it holds, for lists: the addresses of locks.
    pub(crate) fn held(&self) -> Vec<(usize, Hold)> {
        let slots = self.slots.iter().map(|slot| slot.load(Ordering::Acquire)).filter(|entry| *entry != 0);
        let mut entries: Vec<usize> = slots.collect();
        entries.extend(&*self.more.lock());
        let hold = |entry: usize| HOLDS.into_iter().find(|hold| entry & 7 == *hold as usize);
        entries.into_iter().filter_map(|entry| Some((entry & !7, hold(entry)?))).collect()
    }

    /// Whether it holds the lock in a way that keeps the wait waiting.
    fn blocks(&self, lock: &Arc<MetadataLock>, waited: Waited) -> bool {
        HOLDS.into_iter().filter(|hold| waited.blocked_by_hold(*hold)).any(|hold| {
            let entry = entry(lock, hold);
            self.slots.iter().any(|slot| slot.load(Ordering::Acquire) == entry)
                || self.more.lock().contains(&entry)
        })
    }

    fn take_told(&self) -> Option<(Weak<MetadataLock>, Waited)> {
        let told = self.told.lock().take();
        self.is_told.store(false, Ordering::Relaxed);
        told
    }

    /// Begins to wait, unless that would be for ever.
    pub(crate) fn wait(self: &Arc<Self>, lock: &Arc<MetadataLock>, waited: Waited, event: Event) -> Blocked {
        let Some(graph) = self.graph.upgrade() else { return Blocked::Wait(of_name(Wait::new(event))) };
        let mut waiting = graph.waiting.lock();
        let is_this =
            |(told, why): (Weak<MetadataLock>, Waited)| told.as_ptr() == Arc::as_ptr(lock) && why == waited;
        if self.take_told().is_some_and(is_this) {
            return Blocked::Deadlock;
        }
        let wait = Arc::new(NameWait {
            owner: self.clone(),
            lock: lock.clone(),
            waited,
            since: SystemTime::now(),
            gives_up: AtomicBool::new(false),
        });
        waiting.push(wait.clone());
        let entered = Entered { graph: graph.clone(), wait: wait.clone(), event: event.clone() };
        if graph.break_cycles(&waiting, self, Some(&wait)) {
            // Before the list is unlocked: who looks next would find the same cycle, and end another of it.
            waiting.retain(|other| !Arc::ptr_eq(other, &wait));
            drop(waiting);
            drop(entered);
            return Blocked::Deadlock;
        }
        drop(waiting);
        Blocked::Wait(of_name(Wait::holding(event, Box::new(entered))))
    }
}

fn of_name(wait: Wait) -> Wait {
    wait.of(WaitKind::MetadataLock)
}

/// One wait for a name. An owner may have several: each of its statements has one.
struct NameWait {
    owner: Arc<MetadataOwner>,
    lock: Arc<MetadataLock>,
    waited: Waited,
    since: SystemTime,
    /// It ends in an error, and takes part in no other cycle. Changed with the list of waits locked.
    gives_up: AtomicBool,
}

impl NameWait {
    fn gives_up(&self) -> bool {
        self.gives_up.load(Ordering::Relaxed)
    }
}

/// What an owner was found to wait for.
#[derive(Clone)]
enum Seen {
    Name(Arc<NameWait>),
    Row(RowWait),
}

/// One of a cycle, and the wait by which it waits for the next.
struct Member {
    owner: Arc<MetadataOwner>,
    wait: Seen,
}

/// An owner that a search has reached.
struct Step {
    owner: Arc<MetadataOwner>,
    /// The number of the one it was reached from, and that one's wait.
    from: Option<(usize, Seen)>,
}

/// All waits for names.
#[derive(Default)]
pub struct MetadataGraph {
    waiting: Mutex<Vec<Arc<NameWait>>>,
    rows: OnceLock<RowWaits>,
    /// Of sessions, for lists.
    listed: Mutex<Vec<Weak<MetadataOwner>>>,
    /// Called before each look of a search.
    #[cfg(test)]
    before_look: Mutex<Option<Box<dyn FnMut() + Send>>>,
}

impl MetadataGraph {
    /// An empty graph.
    #[cfg(test)]
    pub fn new() -> Arc<MetadataGraph> {
        Arc::default()
    }

    /// Looks at waits for row locks as well.
    pub fn look_at_rows(self: &Arc<Self>, rows: RowWaits) {
        let this: Weak<Self> = Arc::downgrade(self);
        rows.listen(this);
        let _ = self.rows.set(rows);
    }

    /// A new owner.
    pub fn owner(self: &Arc<Self>) -> Arc<MetadataOwner> {
        self.make_owner(None)
    }

    /// A new owner that stands for a session in the table of row locks.
    pub fn owner_of(self: &Arc<Self>, rows: RowOwner) -> Arc<MetadataOwner> {
        let owner = self.make_owner(Some(rows.clone()));
        let companion: Weak<MetadataOwner> = Arc::downgrade(&owner);
        rows.set_companion(companion);
        owner
    }

    fn make_owner(self: &Arc<Self>, rows: Option<RowOwner>) -> Arc<MetadataOwner> {
        Arc::new(MetadataOwner {
            rows,
            graph: Arc::downgrade(self),
            slots: Default::default(),
            more: Mutex::default(),
            is_told: AtomicBool::new(false),
            told: Mutex::default(),
            definitions: AtomicUsize::new(0),
        })
    }
}

/// A wait's place in the graph; it leaves when this is dropped.
struct Entered {
    graph: Arc<MetadataGraph>,
    wait: Arc<NameWait>,
    event: Event,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut waiting = self.graph.waiting.lock();
        if let Some(at) = waiting.iter().position(|other| Arc::ptr_eq(other, &self.wait)) {
            waiting.swap_remove(at);
        }
        let NameWait { owner, lock, waited, .. } = &*self.wait;
        if self.wait.gives_up() && self.event.is_set() {
            *owner.told.lock() = Some((Arc::downgrade(lock), *waited));
            owner.is_told.store(true, Ordering::Relaxed);
        }
    }
}

impl OutsideWaits for MetadataGraph {
    fn row_wait_begins(&self, waiter: &RowOwner) {
        let waiting = self.waiting.lock();
        if waiting.is_empty() {
            return;
        }
        if let Some(waiter) = of_rows(waiter) {
            self.break_cycles(&waiting, &waiter, None);
        }
    }
}

/// The owner of a session in the table of row locks.
pub(crate) fn of_rows(rows: &RowOwner) -> Option<Arc<MetadataOwner>> {
    rows.companion()?.downcast().ok()
}

impl MetadataGraph {
    /// Ends the waits of others until no cycle goes through `start` any more; true if `begun`, the wait that
    /// it has just begun, has to end itself.
    fn break_cycles(
        &self,
        waiting: &[Arc<NameWait>],
        start: &Arc<MetadataOwner>,
        begun: Option<&Arc<NameWait>>,
    ) -> bool {
        loop {
            let Some(cycle) = self.find_cycle(waiting, start) else { return false };
            if !self.confirm(waiting, &cycle) {
                // Somebody has got a row meanwhile. Others may be in a cycle still.
                continue;
            }
            // The start is the first, and the first of the lightest is taken. Who waits for a row is not ours
            // to end.
            let names = cycle.iter().filter_map(|member| match &member.wait {
                Seen::Name(wait) => Some(wait),
                Seen::Row(_) => None,
            });
            let Some(victim) = names.min_by_key(|wait| wait.waited.weight()) else { return false };
            tracing::debug!(owners = cycle.len(), "deadlock of metadata locks");
            if begun.is_some_and(|begun| Arc::ptr_eq(begun, victim)) {
                return true;
            }
            victim.gives_up.store(true, Ordering::Relaxed);
            victim.lock.wake_all();
        }
    }

    /// A cycle through `start` with a name in it, `start` first.
    fn find_cycle(&self, waiting: &[Arc<NameWait>], start: &Arc<MetadataOwner>) -> Option<Vec<Member>> {
        let for_rows = self.rows.get().map(RowWaits::waiting).unwrap_or_default();
        let for_rows: Vec<_> = for_rows.iter().filter_map(of_rows).collect();
        let mut search = self.rows.get().map(RowWaits::search);
        let mut found = HashSet::new();
        let mut steps = vec![Step { owner: start.clone(), from: None }];
        let mut at = 0;
        while at < steps.len() {
            let owner = steps[at].owner.clone();
            for wait in self.waits_of(waiting, &owner) {
                let blockers = match (&wait, &mut search, &owner.rows) {
                    (Seen::Row(wait), Some(search), Some(rows)) => {
                        self.before_look();
                        search.new_blockers(rows, wait).iter().filter_map(of_rows).collect()
                    }
                    _ => self.blockers(waiting, &for_rows, &owner, &wait),
                };
                for other in blockers {
                    if Arc::ptr_eq(&other, &owner) {
                        continue;
                    }
                    if Arc::ptr_eq(&other, start) {
                        let cycle = path(&steps, at, wait.clone());
                        // One of rows only is the row locks' own to break, if they are to: another one may go
                        // through here.
                        if cycle.iter().any(|member| matches!(member.wait, Seen::Name(_))) {
                            return Some(cycle);
                        }
                        continue;
                    }
                    if found.insert(Arc::as_ptr(&other)) {
                        steps.push(Step { owner: other, from: Some((at, wait.clone())) });
                    }
                }
            }
            at += 1;
        }
        None
    }

    /// Whether the cycle is there now.
    fn confirm(&self, waiting: &[Arc<NameWait>], cycle: &[Member]) -> bool {
        let next = cycle.iter().cycle().skip(1);
        cycle.iter().zip(next).all(|(member, next)| {
            let next = std::slice::from_ref(&next.owner);
            let blockers = self.blockers(waiting, next, &member.owner, &member.wait);
            blockers.iter().any(|blocker| Arc::ptr_eq(blocker, &next[0]))
        }) && cycle.iter().all(|member| {
            self.before_look();
            match &member.wait {
                // It cannot leave the list that we have locked.
                Seen::Name(_) => true,
                Seen::Row(wait) => wait.stands(),
            }
        })
    }

    /// What an owner waits for. Waits that end in an error already are none.
    fn waits_of(&self, waiting: &[Arc<NameWait>], owner: &Arc<MetadataOwner>) -> Vec<Seen> {
        self.before_look();
        let own = waiting.iter().filter(|wait| Arc::ptr_eq(&wait.owner, owner) && !wait.gives_up());
        let rows = self.rows.get().zip(owner.rows.as_ref());
        let row = rows.and_then(|(rows, owner)| rows.wait_of(owner));
        own.cloned().map(Seen::Name).chain(row.map(Seen::Row)).collect()
    }

    /// Those of the owners that wait themselves, for names or `for_rows`, whom one waits for with this wait.
    fn blockers(
        &self,
        waiting: &[Arc<NameWait>],
        for_rows: &[Arc<MetadataOwner>],
        owner: &Arc<MetadataOwner>,
        wait: &Seen,
    ) -> Vec<Arc<MetadataOwner>> {
        self.before_look();
        match wait {
            Seen::Name(wait) => {
                let for_rows = for_rows.iter().filter(|other| other.blocks(&wait.lock, wait.waited));
                let for_names = waiting.iter().filter(|other| stands_in_the_way(other, wait));
                for_names.map(|other| &other.owner).chain(for_rows).cloned().collect()
            }
            Seen::Row(wait) => {
                let rows = self.rows.get().zip(owner.rows.as_ref());
                let blockers = rows.map(|(rows, owner)| rows.blockers(owner, wait)).unwrap_or_default();
                blockers.iter().filter_map(of_rows).collect()
            }
        }
    }

    #[cfg(test)]
    fn before_look(&self) {
        if let Some(call) = &mut *self.before_look.lock() {
            call();
        }
    }

    #[cfg(not(test))]
    #[inline]
    fn before_look(&self) {}
}

/// Whether a wait has to wait for the owner of another one, which asked first or holds the name.
fn stands_in_the_way(other: &NameWait, wait: &NameWait) -> bool {
    let asked_first = Arc::ptr_eq(&other.lock, &wait.lock)
        && !other.gives_up()
        && wait.waited.blocked_by_request(other.waited);
    asked_first || other.owner.blocks(&wait.lock, wait.waited)
}

/// The cycle that `wait`, of the owner of step `at`, closes.
fn path(steps: &[Step], mut at: usize, mut wait: Seen) -> Vec<Member> {
    let mut members = Vec::new();
    loop {
        let Step { owner, from } = &steps[at];
        members.push(Member { owner: owner.clone(), wait });
        let Some((before, its)) = from else {
            members.reverse();
            return members;
        };
        (at, wait) = (*before, its.clone());
    }
}
