//! Who blocks whom, for people: the dashboard's table. Rows, and names (metadata locks).
//!
//! A session waits for all who stand in its way, also for those who wait before it in the queue. Those wait
//! for the holders too, so only the holders are named; where there are none, the first in the queue is.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use txn::{RowLock, RowOwner};

use crate::database::Database;
use crate::metadata_deadlock::{MetadataOwner, of_rows};
use crate::row_locks::Names;

/// Pairs of a waiter and one in its way that are looked at for one table.
const PAIRS_MAX: usize = 10_000;

/// A session that waits for a row lock or the use of a table, and one that has it.
#[derive(Debug, Clone)]
pub struct BlockedSession {
    /// Transaction and tag of the one that waits.
    pub waiting: (u64, u64),
    /// The same of the one in its way.
    pub blocking: (u64, u64),
    /// Database and table, and the index of a row, if they are known.
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
    fn add(&mut self, waiter: u64, blocker: u64) {
        self.waiters.entry(blocker).or_default().insert(waiter);
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

/// Transaction and tag of an owner of names; a statement without a session has neither.
fn session_of(owner: &Arc<MetadataOwner>) -> (u64, u64) {
    owner.rows().map_or((0, 0), |rows| (rows.shown_id(), rows.tag()))
}

impl Database {
    /// Who waits for a row lock or the use of a table and who has it, at most `max` pairs of each.
    #[doc(hidden)]
    pub fn blocked_sessions(&self, max: usize) -> Vec<BlockedSession> {
        let mut graph = Graph::default();
        let mut shown: Vec<(RowLock, RowLock)> = Vec::new();
        for edge in self.lock_waits(true).take(PAIRS_MAX) {
            graph.add(edge.wanted.owner.shown_id(), edge.blocking.owner.shown_id());
            if shown.len() < max {
                shown.push((edge.wanted, edge.blocking));
            }
        }
        // Those with a changed or a locked row are there, sessions are listed.
        let others = self.0.system.owners().iter().filter_map(of_rows).collect();
        let names = self.0.tables.graph.name_waits(others, max);
        for edge in &names {
            graph.add(session_of(&edge.waiting).0, session_of(&edge.blocking).0);
        }
        let mut sessions = self.blocked_by_rows(shown, &graph);
        sessions.extend(names.into_iter().map(|edge| BlockedSession {
            waiting: session_of(&edge.waiting),
            blocking: session_of(&edge.blocking),
            place: edge.lock.name().map(|(database, table)| (database.into(), table.into(), String::new())),
            mode: edge.mode,
            since: edge.since.duration_since(SystemTime::UNIX_EPOCH).ok(),
            behind: graph.behind(session_of(&edge.blocking).0),
        }));
        sessions
    }

    fn blocked_by_rows(&self, shown: Vec<(RowLock, RowLock)>, graph: &Graph) -> Vec<BlockedSession> {
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
