//! Deadlocks of metadata locks: a cycle in the graph of who waits for whom.
//!
//! An *owner* is a session's transaction object, or a statement without one. It notes what it holds in a few slots of its
//! own, by plain stores, so that taking a use stays cheap; only one that has to wait enters the graph. A cycle consists of
//! owners that wait, and is closed by the last of their waits to begin, which therefore looks for it: from itself to whoever
//! holds what it waits for, or asked for it with precedence, and so on. Waits begin and are searched one at a time, so the last
//! one sees all others. An owner between two tries of the same wait is not in the graph; it looks again when it comes back.
//!
//! A transaction may also wait for a row lock in such a cycle: [`txn::RowWaits`] says who does and for whom, and tells when such a
//! wait begins, which may be the last one too. The victim is always one that waits for a metadata lock.
//!
//! The victim is the one that is cheapest to repeat: a transaction that wants to use a table before a statement that wants one
//! for itself (as in MySQL), and among equals the one whose wait closed the cycle. It learns of it as
//! [`Blocked::Deadlock`], error 1213.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use disk::{Event, Wait};
use parking_lot::Mutex;
use txn::{OutsideWaits, RowOwner, RowWaits};

use crate::metadata_lock::{Blocked, MetadataLock};

/// How a name is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    Read,
    Write,
    ReadLock,
    Exclusive,
}

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
    waits: Mutex<Option<(Arc<MetadataLock>, Waited)>>,
    /// The wait that has to end in an error, as [`waiting_entry`] has it; 0 is none. It stays when that wait is given up
    /// instead of tried again, and then means nothing to the next one.
    victim: AtomicUsize,
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

/// The same of a wait.
fn waiting_entry(lock: &Arc<MetadataLock>, waited: Waited) -> usize {
    Arc::as_ptr(lock) as usize | waited as usize
}

impl MetadataOwner {
    pub(crate) fn holds(&self, lock: &Arc<MetadataLock>, hold: Hold) {
        // It got what it waited for after all.
        if self.victim.load(Ordering::Relaxed) != 0 {
            self.victim.store(0, Ordering::Relaxed);
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

    /// Whether it holds the lock in a way that keeps the wait waiting.
    fn blocks(&self, lock: &Arc<MetadataLock>, waited: Waited) -> bool {
        let holds = [Hold::Read, Hold::Write, Hold::ReadLock, Hold::Exclusive];
        holds.into_iter().filter(|hold| waited.blocked_by_hold(*hold)).any(|hold| {
            let entry = entry(lock, hold);
            self.slots.iter().any(|slot| slot.load(Ordering::Acquire) == entry)
                || self.more.lock().contains(&entry)
        })
    }

    /// Whether the wait that it is in ends in an error.
    fn gives_up(&self) -> bool {
        self.victim.load(Ordering::Acquire) != 0 && self.waits.lock().is_some()
    }

    /// Begins to wait, unless that would be for ever.
    pub(crate) fn wait(self: &Arc<Self>, lock: &Arc<MetadataLock>, waited: Waited, event: Event) -> Blocked {
        let Some(graph) = self.graph.upgrade() else { return Blocked::Wait(Wait::new(event)) };
        let mut waiting = graph.waiting.lock();
        if self.victim.swap(0, Ordering::AcqRel) == waiting_entry(lock, waited) {
            return Blocked::Deadlock;
        }
        *self.waits.lock() = Some((lock.clone(), waited));
        waiting.push(self.clone());
        let entered = Entered { graph: graph.clone(), owner: self.clone() };
        if graph.break_cycles(&waiting, self) {
            drop(waiting);
            drop(entered);
            return Blocked::Deadlock;
        }
        drop(waiting);
        Blocked::Wait(Wait::holding(event, Box::new(entered)))
    }
}

/// All owners that wait.
#[derive(Default)]
pub struct MetadataGraph {
    waiting: Mutex<Vec<Arc<MetadataOwner>>>,
    rows: OnceLock<RowWaits>,
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
            waits: Mutex::default(),
            victim: AtomicUsize::new(0),
            definitions: AtomicUsize::new(0),
        })
    }
}

/// An owner's place in the graph; it leaves when this is dropped.
struct Entered {
    graph: Arc<MetadataGraph>,
    owner: Arc<MetadataOwner>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut waiting = self.graph.waiting.lock();
        if let Some(at) = waiting.iter().position(|other| Arc::ptr_eq(other, &self.owner)) {
            waiting.swap_remove(at);
        }
        *self.owner.waits.lock() = None;
    }
}

impl OutsideWaits for MetadataGraph {
    fn row_wait_begins(&self, waiter: &RowOwner) {
        let waiting = self.waiting.lock();
        if waiting.is_empty() {
            return;
        }
        if let Some(waiter) = of_rows(waiter) {
            self.break_cycles(&waiting, &waiter);
        }
    }
}

/// The owner of a session in the table of row locks.
fn of_rows(rows: &RowOwner) -> Option<Arc<MetadataOwner>> {
    rows.companion()?.downcast().ok()
}

impl MetadataGraph {
    /// Ends the waits of others until no cycle goes through `start` any more; true if `start` itself has to give up.
    fn break_cycles(&self, waiting: &[Arc<MetadataOwner>], start: &Arc<MetadataOwner>) -> bool {
        let for_rows = self.rows.get().map(RowWaits::waiting).unwrap_or_default();
        let for_rows: Vec<_> = for_rows.iter().filter_map(of_rows).collect();
        loop {
            let Some(cycle) = self.find_cycle(waiting, &for_rows, start) else { return false };
            let weight = |owner: &&Arc<MetadataOwner>| owner.waits.lock().as_ref().map(|(_, w)| w.weight());
            // The start is the first, and the first of the lightest is taken. Who waits for a row is not ours to end.
            let victims = cycle.iter().filter(|owner| weight(owner).is_some());
            let Some(victim) = victims.min_by_key(weight) else { return false };
            tracing::debug!(owners = cycle.len(), "deadlock of metadata locks");
            if Arc::ptr_eq(victim, start) {
                return true;
            }
            let wait = victim.waits.lock().clone();
            if let Some((lock, waited)) = wait {
                victim.victim.store(waiting_entry(&lock, waited), Ordering::Release);
                lock.wake_all();
            }
        }
    }

    /// The owners of a cycle through `start`, `start` first. Those that have to give up already take part in none.
    fn find_cycle(
        &self,
        waiting: &[Arc<MetadataOwner>],
        for_rows: &[Arc<MetadataOwner>],
        start: &Arc<MetadataOwner>,
    ) -> Option<Vec<Arc<MetadataOwner>>> {
        // Owners reached, each with the number of the one it was reached from.
        let mut steps = vec![(start.clone(), 0)];
        let mut at = 0;
        while at < steps.len() {
            let owner = steps[at].0.clone();
            let waited = owner.waits.lock().clone();
            let others: Vec<Arc<MetadataOwner>> = match waited {
                Some((lock, waited)) => {
                    let all = waiting.iter().chain(for_rows);
                    all.filter(|other| stands_in_the_way(other, &lock, waited)).cloned().collect()
                }
                None => {
                    let rows = owner.rows.as_ref().zip(self.rows.get());
                    let blockers = rows.map(|(rows, table)| table.blockers(rows)).unwrap_or_default();
                    blockers.iter().filter_map(of_rows).collect()
                }
            };
            for other in others {
                if Arc::ptr_eq(&other, &owner) || other.gives_up() {
                    continue;
                }
                if Arc::ptr_eq(&other, start) {
                    return Some(path(&steps, at));
                }
                if !steps.iter().any(|(known, _)| Arc::ptr_eq(known, &other)) {
                    steps.push((other, at));
                }
            }
            at += 1;
        }
        None
    }
}

fn stands_in_the_way(other: &Arc<MetadataOwner>, lock: &Arc<MetadataLock>, waited: Waited) -> bool {
    let asks_first =
        other.waits.lock().as_ref().is_some_and(|(theirs, request)| {
            Arc::ptr_eq(theirs, lock) && waited.blocked_by_request(*request)
        });
    asks_first || other.blocks(lock, waited)
}

fn path(steps: &[(Arc<MetadataOwner>, usize)], mut at: usize) -> Vec<Arc<MetadataOwner>> {
    let mut owners = Vec::new();
    loop {
        owners.push(steps[at].0.clone());
        if at == 0 {
            owners.reverse();
            return owners;
        }
        at = steps[at].1;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::metadata_lock::Access;

    fn waits<T>(outcome: Result<T, Blocked>) -> Wait {
        match outcome {
            Err(Blocked::Wait(wait)) => wait,
            Err(Blocked::Deadlock) => panic!("a deadlock"),
            Ok(_) => panic!("nothing to wait for"),
        }
    }

    fn is_deadlock<T>(outcome: Result<T, Blocked>) -> bool {
        matches!(outcome, Err(Blocked::Deadlock))
    }

    /// Two transactions use one table each, two definitions wait for them, and the transactions want each other's table.
    #[test]
    fn a_cycle_through_two_waiting_definitions_ends_in_a_victim() {
        let graph = MetadataGraph::new();
        let (a, b) = (Arc::new(MetadataLock::default()), Arc::new(MetadataLock::default()));
        let [one, two, three, four] = [(); 4].map(|()| graph.owner());
        let use_a = a.share(Access::Read, &one).ok().unwrap();
        let _use_b = b.share(Access::Read, &two).ok().unwrap();
        let mut change_a = a.request_exclusive(&three);
        let waits_for_a = waits(change_a.grant(0));
        let mut change_b = b.request_exclusive(&four);
        let _waits_for_b = waits(change_b.grant(0));
        let _one_waits = waits(b.share(Access::Read, &one));
        assert!(is_deadlock(a.share(Access::Read, &two)), "its wait closes the cycle");
        // The others go on when the victim's holds are gone, or the first gives up.
        drop(use_a);
        assert!(waits_for_a.is_done());
        drop(waits_for_a);
        assert!(change_a.grant(0).is_ok());
    }

    #[test]
    fn a_transaction_gives_way_to_the_definition_that_closes_the_cycle() {
        let graph = MetadataGraph::new();
        let (a, b) = (Arc::new(MetadataLock::default()), Arc::new(MetadataLock::default()));
        let (reader, definition) = (graph.owner(), graph.owner());
        let use_a = a.share(Access::Write, &reader).ok().unwrap();
        let _has_b = b.request_exclusive(&definition).grant(0).ok().unwrap();
        let wait = waits(b.share(Access::Read, &reader));
        let mut change_a = a.request_exclusive(&definition);
        let definition_waits = waits(change_a.grant(0));
        assert!(wait.is_done(), "the reader is woken to give up");
        drop(wait);
        assert!(is_deadlock(b.share(Access::Read, &reader)));
        drop(use_a);
        assert!(definition_waits.is_done());
        drop(definition_waits);
        assert!(change_a.grant(0).is_ok());
    }

    #[test]
    fn a_wait_that_was_given_up_is_in_nobodys_way() {
        let graph = MetadataGraph::new();
        let (a, b) = (Arc::new(MetadataLock::default()), Arc::new(MetadataLock::default()));
        let (one, two) = (graph.owner(), graph.owner());
        let _use_a = a.share(Access::Read, &one).ok().unwrap();
        let _has_b = b.request_exclusive(&two).grant(0).ok().unwrap();
        drop(waits(b.share(Access::Read, &one)));
        let mut change_a = a.request_exclusive(&two);
        let _waits = waits(change_a.grant(0));
        assert!(is_deadlock(b.share(Access::Read, &one)));
    }

    #[test]
    fn a_victim_that_gave_up_by_itself_waits_for_other_names_like_anybody() {
        let graph = MetadataGraph::new();
        let [a, b, c] = [(); 3].map(|()| Arc::new(MetadataLock::default()));
        let [reader, definition, third] = [(); 3].map(|()| graph.owner());
        let _use_a = a.share(Access::Write, &reader).ok().unwrap();
        let _has_b = b.request_exclusive(&definition).grant(0).ok().unwrap();
        let _has_c = c.request_exclusive(&third).grant(0).ok().unwrap();
        let wait = waits(b.share(Access::Read, &reader));
        let _definition_waits = waits(a.request_exclusive(&definition).grant(0));
        assert!(wait.is_done(), "the reader is woken to give up");
        // It does, but not because of that: its time had come, or it was killed.
        drop(wait);
        let _reader_waits = waits(c.share(Access::Read, &reader));
        // That it was a victim once keeps nobody from finding the next cycle.
        assert!(is_deadlock(a.request_exclusive(&third).grant(0)) || _reader_waits.is_done());
    }

    #[test]
    fn more_holds_than_slots_are_all_known() {
        let graph = MetadataGraph::new();
        let locks: Vec<_> = (0..20).map(|_| Arc::new(MetadataLock::default())).collect();
        let (one, two) = (graph.owner(), graph.owner());
        let mut uses: Vec<_> =
            locks.iter().map(|lock| lock.share(Access::Read, &one).ok().unwrap()).collect();
        let extra = Arc::new(MetadataLock::default());
        let _has = extra.request_exclusive(&two).grant(0).ok().unwrap();
        for lock in &locks {
            let mut change = lock.request_exclusive(&two);
            let _waits = waits(change.grant(0));
            assert!(is_deadlock(extra.share(Access::Read, &one)));
        }
        uses.clear();
        for lock in &locks {
            assert!(lock.request_exclusive(&two).grant(0).is_ok());
        }
    }
}
