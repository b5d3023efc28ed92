//! Deadlocks: a cycle in the graph of who waits for whom.
//!
//! A cycle is closed by the last of its waits to begin. Searches are serialised by one mutex, and a request is in its queue
//! before its search begins, so the search of that last wait sees the whole cycle. Grants and releases only take
//! edges away; where a lock is added in another's name, those it would block look again (see `LockTable::add_for`).
//! An edge that vanishes during a search can make a cycle be reported that was just dissolving: harmless and rare.

use std::fmt::Write;
use std::sync::Arc;

use disk::sync::atomic::Ordering;

use super::request::Owner;
use super::table::LockTable;
use super::wait::WaitState;

/// State of the detector: what the latest deadlock looked like.
#[derive(Default)]
pub(crate) struct Detector {
    pub latest: Option<String>,
}

struct Step {
    owner: Arc<Owner>,
    came_from: usize,
}

impl LockTable {
    /// Text about the latest deadlock.
    pub fn latest_deadlock(&self) -> Option<String> {
        self.detector.lock().latest.clone()
    }

    /// Looks for cycles through `start`, which has just begun to wait, and breaks each by ending one member's wait.
    pub(super) fn search_deadlock(&self, start: &Arc<Owner>) {
        let mut detector = self.detector.lock();
        while let Some(cycle) = self.find_cycle(start) {
            // The least work is thrown away; among equals that of the one whose wait closed the cycle.
            let Some(victim) = cycle.iter().min_by_key(|owner| owner.weight()) else { return };
            let text = self.describe_cycle(&cycle, victim);
            if self.abort_wait(victim, WaitState::Deadlock) {
                self.counters.deadlocks.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(transactions = cycle.len(), "deadlock");
                detector.latest = Some(text);
            }
            if Arc::ptr_eq(victim, start) {
                return;
            }
        }
    }

    /// The owners of a cycle through `start`, `start` first.
    fn find_cycle(&self, start: &Arc<Owner>) -> Option<Vec<Arc<Owner>>> {
        let mut steps = vec![Step { owner: start.clone(), came_from: 0 }];
        let mut at = 0;
        while at < steps.len() {
            let owner = steps[at].owner.clone();
            let waiting = owner.waiting.lock().clone();
            if let Some(waiting) = waiting.filter(|waiting| waiting.cell.state() == WaitState::Waiting) {
                for blocker in self.blockers(&owner, &waiting) {
                    if Arc::ptr_eq(&blocker, start) {
                        return Some(path(&steps, at));
                    }
                    if !steps.iter().any(|step| Arc::ptr_eq(&step.owner, &blocker)) {
                        steps.push(Step { owner: blocker, came_from: at });
                    }
                }
            }
            at += 1;
        }
        None
    }

    fn describe_cycle(&self, cycle: &[Arc<Owner>], victim: &Arc<Owner>) -> String {
        let mut text = String::new();
        let mut victim_number = 0;
        for (index, owner) in cycle.iter().enumerate() {
            let number = index + 1;
            if Arc::ptr_eq(owner, victim) {
                victim_number = number;
            }
            let waiting = owner.waiting.lock().clone();
            let (mode, place) = waiting
                .map(|waiting| (waiting.mode.describe(), waiting.description))
                .unwrap_or(("nothing", "".into()));
            let _ = writeln!(
                text,
                "*** ({number}) TRANSACTION:\nTRANSACTION {}, session {}\n{} row lock(s), undo log entries {}\n\
                 *** ({number}) WAITING FOR THIS LOCK TO BE GRANTED:\nRECORD LOCKS {place} {mode} waiting",
                owner.id.load(Ordering::Relaxed),
                owner.tag.load(Ordering::Relaxed),
                owner.lock_count(),
                owner.undo_records.load(Ordering::Relaxed),
            );
        }
        let _ = writeln!(text, "*** WE ROLL BACK TRANSACTION ({victim_number})");
        text
    }
}

fn path(steps: &[Step], mut at: usize) -> Vec<Arc<Owner>> {
    let mut owners = Vec::new();
    loop {
        owners.push(steps[at].owner.clone());
        if at == 0 {
            owners.reverse();
            return owners;
        }
        at = steps[at].came_from;
    }
}
