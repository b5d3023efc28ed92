//! What becomes of locks when entries come and go: a transaction that guards a gap guards both parts of it
//! after an insert into it, and the joined one after a record is removed.

use std::sync::Arc;

use disk::sync::atomic::Ordering;
use smallvec::SmallVec;

use super::mode::{Extent, LockMode};
use super::owner::{Owner, OwnerEpoch};
use super::shard::Entry;
use super::table::{LockTable, Woken, wake};
use super::target::LockTarget;
use super::wait::WaitState;

type Heirs = SmallVec<[(OwnerEpoch, LockMode); 4]>;

impl LockTable {
    /// A record was inserted before `successor`: the part of the gap before it is guarded as the whole was.
    /// To be called with the leaf X-latched.
    pub fn inherit_gap(&self, successor: LockTarget, inserted: LockTarget) {
        let mut heirs = Heirs::new();
        {
            let mut shard = self.shard(successor.place);
            match shard.entry(successor.place) {
                Entry::Free => return,
                Entry::Single(single) if single.mode.guards_gap() => {
                    let owner = self.owners.get(single.owner);
                    heirs.extend(owner.and_then(|owner| as_heir(&owner, single.mode)));
                }
                Entry::Single(_) => return,
                Entry::Queue(queue) => {
                    let guards =
                        queue.requests.iter().filter(|held| held.waiting.is_none() && held.mode.guards_gap());
                    heirs.extend(guards.filter_map(|held| as_heir(&held.owner, held.mode)));
                }
            }
        }
        self.add_gaps(inserted, &heirs);
    }

    /// The entry `removed` goes; what was locked there keeps others from inserting before `successor`. Those
    /// who wait for it look again. To be called with the leaf X-latched.
    pub fn bequeath(&self, removed: LockTarget, successor: LockTarget) {
        let mut woken = Woken::new();
        let mut heirs = Heirs::new();
        let inherits = |owner: &Owner, mode: LockMode| {
            mode.guards_gap() || !owner.record_locks_only.load(Ordering::Relaxed)
        };
        {
            let mut shard = self.shard(removed.place);
            if let Entry::Single(single) = shard.entry(removed.place) {
                let single = *single;
                shard.remove_single(removed.place);
                self.counted_out(single.counter, single.mode);
                if let Some(owner) = self.owners.get(single.owner) {
                    heirs.extend(as_heir(&owner, single.mode).filter(|_| inherits(&owner, single.mode)));
                    owner.forget(removed.place);
                }
            } else if let Some(queue) = shard.take_queue(removed.place) {
                for request in queue.requests {
                    self.counted_out(queue.counter, request.mode);
                    match &request.waiting {
                        Some(cell) if cell.end(WaitState::Retry) => woken.push(cell.clone()),
                        Some(_) => {}
                        None => {
                            let heir = as_heir(&request.owner, request.mode);
                            heirs.extend(heir.filter(|_| inherits(&request.owner, request.mode)));
                        }
                    }
                    request.owner.forget(removed.place);
                }
            }
        }
        self.add_gaps(successor, &heirs);
        wake(woken);
    }

    fn add_gaps(&self, target: LockTarget, heirs: &[(OwnerEpoch, LockMode)]) {
        for (heir, mode) in heirs {
            self.add_for(heir, target, LockMode { extent: Extent::Gap, ..*mode });
        }
    }
}

/// The transaction that has a lock, to have another in its place. To be called with the shard of the lock
/// locked: the transaction cannot have been followed by another while its lock is there. `None` when it is
/// ending.
fn as_heir(owner: &Arc<Owner>, mode: LockMode) -> Option<(OwnerEpoch, LockMode)> {
    let held = owner.held.lock();
    (!held.ending).then(|| (OwnerEpoch { owner: owner.clone(), epoch: held.epoch }, mode))
}
