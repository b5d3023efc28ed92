//! Deadlocks: a cycle in the graph of who waits for whom.
//!
//! A cycle is closed by the last of its waits to begin. Searches are serialised by one mutex, and a request
//! is in its queue before its search begins, so the last of the searches for the waits of a cycle sees all of
//! it. Grants and releases only take edges away; where a lock is added in another's name, those it would
//! block look again (see `LockTable::add_for`).
//!
//! A search sees the graph at many moments. An owner that held what another waits for may have ended its
//! transaction, and begun to wait for that other in its next one, before the search comes to it: a cycle that
//! never was. So a cycle is **confirmed**: each edge is looked at once more, and after that all its waits
//! must still be the ones that the search saw. Who waits neither takes nor lets go, so all edges then stood
//! at one moment. A victim's wait is ended only if it is that one.
//!
//! **Cost.** A thousand may wait for one row, each for the holder and for all before it: half a million
//! edges, of which few are needed. The search goes breadth first and copies each queue once. A waiter waits
//! for the holders and for those who stand before it; when a waiter of the same mode further behind has been
//! dealt with, all of them are known already. So what is looked at grows with the length of the queues, not
//! with its square. (One who holds a lock on the very entry is looked at by itself. There are few such, since
//! two whose locks are in each other's way are a deadlock.) No latch is held meanwhile: the search is the
//! first part of the await.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use disk::sync::atomic::Ordering;
use smallvec::SmallVec;

use super::description::LockDescription;
use super::mode::LockMode;
use super::owner::{Owner, Waiting};
use super::table::{LockTable, QueueEntry};
use super::target::LockTarget;
use super::wait::WaitState;

/// A deadlock that was broken.
#[derive(Debug, Clone)]
pub struct Deadlock {
    /// When it was found, since 1970 (UTC).
    pub found: Duration,
    /// The transactions of the cycle. Each waits for the next one, the last for the first.
    pub members: Vec<DeadlockMember>,
    /// Which of them was rolled back.
    pub victim: usize,
}

/// A transaction of a [`Deadlock`].
#[derive(Debug, Clone)]
pub struct DeadlockMember {
    /// Its id; 0 if it had changed nothing.
    pub transaction: u64,
    /// The session's tag.
    pub session: u64,
    /// What the session was running, if somebody knows.
    pub statement: Option<String>,
    /// Row locks that it had.
    pub row_locks: usize,
    /// Undo records that it had written.
    pub undo_records: u64,
    /// What it waited for.
    pub waits_for: Arc<LockDescription>,
    /// How, in InnoDB's words.
    pub mode: &'static str,
}

/// What a report says that the lock table does not know.
pub trait DeadlockWitness: Send + Sync {
    /// The time since 1970 (UTC).
    fn unix_time(&self) -> Duration;
    /// What the session with this tag is running. Locks of the lock table's are held meanwhile.
    fn statement(&self, session: u64) -> Option<String>;
}

/// State of the detector.
#[derive(Default)]
pub(crate) struct Detector {
    /// The latest deadlock.
    pub latest: Option<Arc<Deadlock>>,
    /// Requests looked at by all searches together.
    pub steps: u64,
}

impl LockTable {
    /// The latest deadlock.
    pub fn latest_deadlock(&self) -> Option<Arc<Deadlock>> {
        self.detector.lock().latest.clone()
    }

    /// Looks for cycles through `start`, which has just begun to wait, and breaks each by ending one member's
    /// wait.
    pub(super) fn search_deadlock(&self, start: &Arc<Owner>) {
        let mut detector = self.detector.lock();
        loop {
            let mut search = Search::new(self, start);
            let cycle = search.find_cycle();
            detector.steps += search.looked_at;
            let Some(cycle) = cycle else { return };
            if !self.confirm(&cycle) {
                // Somebody has gone on meanwhile. Others may be in a cycle still.
                continue;
            }
            // The least work is thrown away; among equals that of the one whose wait closed the cycle.
            let lightest = cycle.iter().enumerate().min_by_key(|(_, member)| member.owner.weight());
            let Some((number, victim)) = lightest else { return };
            let report = self.report(&cycle, number);
            if self.abort_this_wait(&victim.owner, &victim.waiting, WaitState::Deadlock) {
                self.counters.deadlocks.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(transactions = cycle.len(), "deadlock");
                detector.latest = Some(Arc::new(report));
            }
            if Arc::ptr_eq(&victim.owner, start) {
                return;
            }
        }
    }

    /// Whether the cycle is there now.
    fn confirm(&self, cycle: &[Member]) -> bool {
        let next = cycle.iter().cycle().skip(1);
        let mut edges = cycle.iter().zip(next);
        edges.all(|(member, next)| {
            Queue::new(self.requests(member.waiting.target)).is_waiting_for(member, &next.owner)
        }) && cycle.iter().all(|member| member.waiting.cell.state() == WaitState::Waiting)
    }
}

impl LockTable {
    /// Who may be asked what a report says beside the locks.
    pub fn set_deadlock_witness(&self, witness: Arc<dyn DeadlockWitness>) {
        // The first one stays: there is one server around a database.
        let _ = self.deadlock_witness.set(witness);
    }

    fn report(&self, cycle: &[Member], victim: usize) -> Deadlock {
        let witness = self.deadlock_witness.get();
        let member = |Member { owner, waiting }: &Member| {
            let session = owner.tag.load(Ordering::Relaxed);
            DeadlockMember {
                transaction: owner.id.load(Ordering::Relaxed),
                session,
                statement: witness.and_then(|witness| witness.statement(session)),
                row_locks: owner.lock_count(),
                undo_records: owner.undo_records.load(Ordering::Relaxed),
                waits_for: waiting.place.clone(),
                mode: waiting.mode.describe(),
            }
        };
        let found = witness.map_or(Duration::ZERO, |witness| witness.unix_time());
        Deadlock { found, members: cycle.iter().map(member).collect(), victim }
    }
}

/// One of a cycle, and what it waits for.
struct Member {
    owner: Arc<Owner>,
    waiting: Waiting,
}

struct Step {
    owner: Arc<Owner>,
    /// What it was found to wait for.
    waiting: Option<Waiting>,
    came_from: usize,
}

/// A queue as it was when the search first came to it.
pub(super) struct Queue {
    holders: Vec<QueueEntry>,
    waiters: Vec<QueueEntry>,
    holding: HashSet<usize>,
    /// Where each owner stands among the waiters.
    positions: HashMap<usize, usize>,
    /// Up to where the waiters have been looked at for a waiter of this mode, the holders first.
    known: SmallVec<[(LockMode, usize); 2]>,
    looked_at: u64,
}

/// One search through `start`.
struct Search<'t> {
    table: &'t LockTable,
    start: &'t Arc<Owner>,
    steps: Vec<Step>,
    found: HashSet<usize>,
    queues: HashMap<LockTarget, Queue>,
    looked_at: u64,
}

fn address(owner: &Arc<Owner>) -> usize {
    Arc::as_ptr(owner).addr()
}

impl<'t> Search<'t> {
    fn new(table: &'t LockTable, start: &'t Arc<Owner>) -> Search<'t> {
        Search {
            table,
            start,
            steps: vec![Step { owner: start.clone(), waiting: None, came_from: 0 }],
            found: HashSet::new(),
            queues: HashMap::new(),
            looked_at: 0,
        }
    }

    /// A shortest cycle through `start`, `start` first.
    fn find_cycle(&mut self) -> Option<Vec<Member>> {
        let mut at = 0;
        while at < self.steps.len() {
            let owner = self.steps[at].owner.clone();
            let waiting = owner.waiting.lock().clone();
            let waits = |waiting: &Waiting| waiting.cell.state() == WaitState::Waiting;
            if let Some(waiting) = waiting.filter(|waiting| waits(waiting) && !waiting.target.is_key_guard())
            {
                let closed = self.look(&owner, at, &waiting);
                self.steps[at].waiting = Some(waiting);
                if closed {
                    return Some(path(&self.steps, at));
                }
            }
            at += 1;
        }
        None
    }

    /// Notes those whom `owner` waits for and who are not known yet. True when `start` is one of them.
    fn look(&mut self, owner: &Arc<Owner>, came_from: usize, waiting: &Waiting) -> bool {
        let (target, mode) = (waiting.target, waiting.mode);
        let queue = self.queues.entry(target).or_insert_with(|| {
            let entries = self.table.requests(target);
            self.looked_at += entries.len() as u64;
            Queue::new(entries)
        });
        let before = queue.looked_at;
        let hinder = queue.hinder_newly(owner, mode, target.is_supremum());
        self.looked_at += queue.looked_at - before;
        for other in hinder {
            if Arc::ptr_eq(&other, self.start) {
                return true;
            }
            if self.found.insert(address(&other)) {
                self.steps.push(Step { owner: other, waiting: None, came_from });
            }
        }
        false
    }
}

impl Queue {
    pub fn new(entries: Vec<QueueEntry>) -> Queue {
        let (holders, waiters): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| entry.granted);
        let positions = waiters.iter().enumerate().map(|(at, entry)| (address(&entry.owner), at)).collect();
        let holding = holders.iter().map(|entry| address(&entry.owner)).collect();
        Queue { holders, waiters, holding, positions, known: SmallVec::new(), looked_at: 0 }
    }

    /// What an owner holds in this queue.
    fn held_by(&self, owner: &Arc<Owner>) -> Held {
        let mut modes = Held::new();
        if self.holding.contains(&address(owner)) {
            let held = self.holders.iter().filter(|held| Arc::ptr_eq(&held.owner, owner));
            modes.extend(held.map(|held| held.mode));
        }
        modes
    }

    /// Those whom `owner` waits for here and who have not been given to one that waits behind it for the
    /// same.
    pub fn hinder_newly(&mut self, owner: &Arc<Owner>, mode: LockMode, supremum: bool) -> Vec<Arc<Owner>> {
        let Some(&position) = self.positions.get(&address(owner)) else { return Vec::new() };
        if self.holding.contains(&address(owner)) {
            self.looked_at += self.holders.len() as u64;
        }
        let own = self.held_by(owner);
        let known = self.known.iter().position(|(known, _)| *known == mode);
        let from = match known {
            Some(known) if own.is_empty() => Some(self.known[known].1),
            _ => None,
        };
        let holders = if from.is_none() { &self.holders[..] } else { &[] };
        let waiters = self.waiters.get(from.unwrap_or(0)..position).unwrap_or(&[]);
        self.looked_at += (holders.len() + waiters.len()) as u64;
        let hinders = |entry: &&QueueEntry| entry.hinders(owner, mode, &own, supremum);
        let found = holders.iter().chain(waiters).filter(hinders).map(|entry| entry.owner.clone()).collect();
        if own.is_empty() {
            match known {
                Some(known) => self.known[known].1 = self.known[known].1.max(position),
                None => self.known.push((mode, position)),
            }
        }
        found
    }

    /// Those whom `owner` waits for here with this wait; nobody if it does not wait here any more.
    pub fn hinder<'q>(
        &'q self,
        owner: &'q Arc<Owner>,
        waiting: &'q Waiting,
    ) -> impl Iterator<Item = &'q Arc<Owner>> {
        let position = self.positions.get(&address(owner)).copied();
        let holders: &[QueueEntry] = if position.is_some() { &self.holders } else { &[] };
        let before = &self.waiters[..position.unwrap_or(0)];
        let (own, supremum) = (self.held_by(owner), waiting.target.is_supremum());
        let in_front = holders.iter().chain(before);
        let hinders = in_front.filter(move |entry| entry.hinders(owner, waiting.mode, &own, supremum));
        hinders.map(|entry| &entry.owner)
    }

    /// Whether `waiter` waits here for `other`, which stands before it or holds.
    pub fn is_hindered(&self, waiter: &QueueEntry, other: &QueueEntry, supremum: bool) -> bool {
        other.hinders(&waiter.owner, waiter.mode, &self.held_by(&waiter.owner), supremum)
    }

    /// Whether `member` waits here, and `other` is one of those for whom.
    fn is_waiting_for(&self, member: &Member, other: &Arc<Owner>) -> bool {
        self.hinder(&member.owner, &member.waiting).any(|owner| Arc::ptr_eq(owner, other))
    }
}

type Held = SmallVec<[LockMode; 2]>;

impl QueueEntry {
    /// Whether `owner`, which holds `own` here and stands behind, must wait for this one with its request for
    /// `mode`. Those who wait for what it holds itself are passed by.
    fn hinders(&self, owner: &Arc<Owner>, mode: LockMode, own: &[LockMode], supremum: bool) -> bool {
        let passed_by = !self.granted && own.iter().any(|own| self.mode.conflicts(*own, supremum));
        !Arc::ptr_eq(&self.owner, owner) && !passed_by && mode.conflicts(self.mode, supremum)
    }
}

fn path(steps: &[Step], mut at: usize) -> Vec<Member> {
    let mut members = Vec::new();
    loop {
        let step = &steps[at];
        members.extend(step.waiting.clone().map(|waiting| Member { owner: step.owner.clone(), waiting }));
        if at == 0 {
            members.reverse();
            return members;
        }
        at = step.came_from;
    }
}
