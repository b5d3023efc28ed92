//! Who waits for the use of a name and for whom, for people.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use txn::RowOwner;

use super::{MetadataGraph, MetadataOwner, Waited, stands_in_the_way};
use crate::metadata_lock::MetadataLock;

/// An owner that waits for a name, and one in its way.
pub(crate) struct NameEdge {
    pub waiting: Arc<MetadataOwner>,
    pub blocking: Arc<MetadataOwner>,
    pub lock: Arc<MetadataLock>,
    /// What is wanted, as MySQL calls it.
    pub mode: &'static str,
    pub since: SystemTime,
}

impl MetadataOwner {
    /// Its session in the table of row locks, if it is one.
    pub(crate) fn rows(&self) -> Option<&RowOwner> {
        self.rows.as_ref()
    }
}

impl Waited {
    fn mode(self) -> &'static str {
        match self {
            Waited::Read => "SHARED_READ",
            Waited::Write | Waited::Upgrade => "SHARED_WRITE",
            Waited::ReadLock => "SHARED_READ_ONLY",
            Waited::Exclusive => "EXCLUSIVE",
        }
    }
}

impl MetadataGraph {
    /// Remembers an owner for lists. One that holds names and nothing else, as a transaction that has only
    /// read does, is found there alone.
    pub(crate) fn list(&self, owner: &Arc<MetadataOwner>) {
        let mut listed = self.listed.lock();
        if listed.len() == listed.capacity() {
            listed.retain(|owner| owner.strong_count() > 0);
        }
        listed.push(Arc::downgrade(owner));
    }

    /// Waits for names with those who hold them; where nobody does any more, with those who asked first. At
    /// most `max`. `others`: owners that may hold some, besides the listed ones and those who wait.
    pub(crate) fn name_waits(&self, others: Vec<Arc<MetadataOwner>>, max: usize) -> Vec<NameEdge> {
        let waiting = self.waiting.lock().clone();
        if waiting.is_empty() {
            return Vec::new();
        }
        let listed: Vec<_> = self.listed.lock().iter().filter_map(Weak::upgrade).collect();
        let mut owners = listed;
        owners.extend(others);
        owners.extend(waiting.iter().map(|wait| wait.owner.clone()));
        let mut known = HashSet::new();
        owners.retain(|owner| known.insert(Arc::as_ptr(owner)));
        let mut edges = Vec::new();
        for wait in &waiting {
            let is_other = |owner: &&Arc<MetadataOwner>| !Arc::ptr_eq(owner, &wait.owner);
            let holders = owners.iter().filter(is_other);
            let mut blocking: Vec<_> =
                holders.filter(|owner| owner.blocks(&wait.lock, wait.waited)).cloned().collect();
            if blocking.is_empty() {
                let first = waiting.iter().filter(|other| stands_in_the_way(other, wait));
                blocking.extend(first.map(|other| &other.owner).filter(is_other).cloned());
            }
            edges.extend(blocking.into_iter().map(|blocking| NameEdge {
                waiting: wait.owner.clone(),
                blocking,
                lock: wait.lock.clone(),
                mode: wait.waited.mode(),
                since: wait.since,
            }));
            if edges.len() >= max {
                edges.truncate(max);
                break;
            }
        }
        edges
    }
}
