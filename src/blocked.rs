//! Who blocks whom, for people: the dashboard's table.
//!
//! A session waits for all who stand in its way, also for those who wait before it in the queue. Those wait
//! for the holders too, so only the holders are named; where there are none, the first in the queue is.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use txn::{RowLock, RowOwner};

use crate::database::Database;
use crate::row_locks::Names;

/// Pairs of a waiter and one in its way that are looked at for one table.
const PAIRS_MAX: usize = 10_000;

/// A session that waits for a row lock, and one that has it.
#[derive(Debug, Clone)]
pub struct BlockedSession {
    /// Transaction and tag of the one that waits.
    pub waiting: (u64, u64),
    /// The same of the one in its way.
    pub blocking: (u64, u64),
    /// Database and table, and the index, if they are known.
    pub place: Option<(String, String, String)>,
    /// The lock that is wanted, as MySQL writes it.
    pub mode: &'static str,
    /// Since when (`Environment::unix_time`), if the wait still goes on.
    pub since: Option<Duration>,
    /// How many sessions wait for the one in the way, themselves or through others.
    pub behind: usize,
}

/// Who waits for whom.
#[derive(Default)]
struct Graph {
    waiters: HashMap<u64, HashSet<u64>>,
}

impl Graph {
    fn add(&mut self, waiter: &RowOwner, blocker: &RowOwner) {
        self.waiters.entry(blocker.shown_id()).or_default().insert(waiter.shown_id());
    }

    /// How many wait for it, themselves or through others.
    fn behind(&self, blocker: u64) -> usize {
        let (mut found, mut ahead) = (HashSet::new(), vec![blocker]);
        while let Some(at) = ahead.pop() {
            let waiters = self.waiters.get(&at).into_iter().flatten();
            ahead.extend(waiters.filter(|waiter| **waiter != blocker && found.insert(**waiter)));
        }
        found.len()
    }
}

impl Database {
    /// Who waits for a row lock and who has it, at most `max` pairs.
    #[doc(hidden)]
    pub fn blocked_sessions(&self, max: usize) -> Vec<BlockedSession> {
        let mut graph = Graph::default();
        let mut shown: Vec<(RowLock, RowLock)> = Vec::new();
        for edge in self.lock_waits(true).take(PAIRS_MAX) {
            graph.add(&edge.wanted.owner, &edge.blocking.owner);
            if shown.len() < max {
                shown.push((edge.wanted, edge.blocking));
            }
        }
        if shown.is_empty() {
            return Vec::new();
        }
        let names = Names::new(self);
        let environment = self.environment();
        let row = |(wanted, blocking): (RowLock, RowLock)| {
            let session = |owner: &RowOwner| (owner.shown_id(), owner.tag());
            BlockedSession {
                waiting: session(&wanted.owner),
                blocking: session(&blocking.owner),
                place: names.place_of(&wanted),
                mode: wanted.mode(),
                since: wanted.owner.wait(&**environment).map(|wait| wait.since),
                behind: graph.behind(blocking.owner.shown_id()),
            }
        };
        shown.into_iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_behind_others_are_behind_and_a_cycle_ends() {
        let mut graph = Graph::default();
        for (blocker, waiter) in [(1, 2), (1, 3), (2, 4), (3, 4), (4, 1), (9, 8)] {
            graph.waiters.entry(blocker).or_default().insert(waiter);
        }
        assert_eq!([1, 2, 9, 8].map(|blocker| graph.behind(blocker)), [3, 3, 1, 0]);
    }
}
