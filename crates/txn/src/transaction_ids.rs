//! Transaction ids: the counter, who is active (the **active set**), and the order of commits.
//!
//! One counter gives transaction ids and commit numbers. A bound above it is kept in the undo tablespace and
//! raised (through the log) before the counter reaches it, so that no number is used twice after a crash: a
//! start goes on at the bound. It is written [`ID_MARGIN`] ahead, once for many ids.
//!
//! A commit is in three steps: take a number ([`ActiveSet::begin_commit`]), write it to the undo log (the
//! commit mark), leave the set ([`ActiveSet::end`]), which makes the changes visible to new views. Purge must
//! not go beyond the smallest number of a commit that is between the first and the last step.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::error::Error;
use crate::lock::{Owner, OwnerEpoch};
use crate::read_view::ReadView;
use crate::retry::retry;
use crate::system::System;

struct Active {
    id: u64,
    transaction: OwnerEpoch,
}

#[derive(Default)]
struct Numbers {
    next: u64,
    /// Numbers below this may be given out.
    bound: u64,
    /// Ascending by id.
    active: Vec<Active>,
    /// Commit numbers taken by transactions still active, ascending.
    committing: Vec<u64>,
}

/// See the module.
pub(crate) struct ActiveSet {
    numbers: Mutex<Numbers>,
    /// Moves whenever a transaction with changes ends.
    version: AtomicU64,
    /// No transaction with a smaller id is active.
    oldest: AtomicU64,
}

/// Purge's view of the world.
#[derive(Debug, Clone, Default)]
pub(crate) struct PurgeView {
    /// What every view sees once no older view is open.
    pub view: ReadView,
    /// Undo logs with smaller commit numbers may be purged then.
    pub commit_limit: u64,
}

/// How far ahead the bound on ids is kept.
pub(crate) const ID_MARGIN: u64 = 1 << 16;

impl System {
    /// Keeps the persistent bound on ids ahead of them.
    pub async fn keep_bound_ahead(&self) -> Result<(), Error> {
        while let Some(bound) = self.active.bound_wanted(ID_MARGIN) {
            retry(|| self.undo.raise_bound(bound)).await?;
            self.active.raise_bound(bound);
        }
        Ok(())
    }

    /// A number for a commit that begins.
    pub async fn take_commit_number(&self) -> Result<u64, Error> {
        loop {
            if let Some(number) = self.active.begin_commit() {
                return Ok(number);
            }
            self.keep_bound_ahead().await?;
        }
    }
}

impl ActiveSet {
    /// The first number given out is `next`; `bound` has been made durable.
    pub fn new(next: u64, bound: u64) -> ActiveSet {
        let numbers = Numbers { next, bound, ..Numbers::default() };
        ActiveSet { numbers: Mutex::new(numbers), version: AtomicU64::new(1), oldest: AtomicU64::new(next) }
    }

    /// The next number.
    pub fn next(&self) -> u64 {
        self.numbers.lock().next
    }

    /// Whether the bound must be raised soon; the answer is the bound to write.
    fn bound_wanted(&self, margin: u64) -> Option<u64> {
        let numbers = self.numbers.lock();
        (numbers.next + margin / 2 >= numbers.bound).then_some(numbers.next + margin)
    }

    /// The bound has been written.
    pub fn raise_bound(&self, bound: u64) {
        let mut numbers = self.numbers.lock();
        numbers.bound = numbers.bound.max(bound);
    }

    /// Gives the transaction an id. `None`: the bound must be raised first.
    pub fn begin(&self, transaction: OwnerEpoch) -> Option<u64> {
        let mut numbers = self.numbers.lock();
        if numbers.next >= numbers.bound {
            return None;
        }
        let id = numbers.next;
        numbers.next += 1;
        transaction.owner.id.store(id, Ordering::Relaxed);
        numbers.active.push(Active { id, transaction });
        self.note_oldest(&numbers);
        Some(id)
    }

    /// Enters a transaction found by recovery, with the id it had.
    pub fn resurrect(&self, id: u64, transaction: OwnerEpoch) {
        let mut numbers = self.numbers.lock();
        transaction.owner.id.store(id, Ordering::Relaxed);
        let position = numbers.active.partition_point(|active| active.id < id);
        numbers.active.insert(position, Active { id, transaction });
        self.note_oldest(&numbers);
    }

    fn note_oldest(&self, numbers: &Numbers) {
        let oldest = numbers.active.first().map_or(numbers.next, |active| active.id);
        self.oldest.store(oldest, Ordering::SeqCst);
    }

    /// Takes a commit number. `None`: the bound must be raised first.
    pub fn begin_commit(&self) -> Option<u64> {
        let mut numbers = self.numbers.lock();
        if numbers.next >= numbers.bound {
            return None;
        }
        let number = numbers.next;
        numbers.next += 1;
        numbers.committing.push(number);
        Some(number)
    }

    /// Takes a number that belongs to no transaction: no view made before sees it, every one made from now on
    /// does (kept views are given up, as after a commit). `None`: the bound must be raised first.
    pub fn birth(&self) -> Option<u64> {
        let mut numbers = self.numbers.lock();
        if numbers.next >= numbers.bound {
            return None;
        }
        let number = numbers.next;
        numbers.next += 1;
        self.note_oldest(&numbers);
        self.version.fetch_add(1, Ordering::SeqCst);
        Some(number)
    }

    /// The transaction has ended. `before` runs under the mutex, so that what it publishes is there for every
    /// later snapshot. It is given the version of the first views that see that the transaction has ended.
    pub fn end(&self, id: u64, commit_number: Option<u64>, before: impl FnOnce(u64)) {
        let mut numbers = self.numbers.lock();
        before(self.version.load(Ordering::SeqCst) + 1);
        if let Ok(position) = numbers.active.binary_search_by_key(&id, |active| active.id) {
            numbers.active.remove(position);
        }
        if let Some(number) = commit_number {
            numbers.committing.retain(|other| *other != number);
        }
        self.note_oldest(&numbers);
        self.version.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether no transaction is between its commit in the log and its end here.
    pub fn commits_are_over(&self) -> bool {
        self.numbers.lock().committing.is_empty()
    }

    /// A commit number that was taken will not be used.
    pub fn give_up_commit(&self, number: u64) {
        self.numbers.lock().committing.retain(|other| *other != number);
    }

    /// The current version.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    /// Fills `view` with what is visible now; `publish` learns the version while no transaction can end.
    pub fn fill_view(&self, view: &mut ReadView, creator: u64, publish: impl FnOnce(u64)) {
        let numbers = self.numbers.lock();
        self.fill_locked(&numbers, view, creator);
        publish(view.version);
    }

    fn fill_locked(&self, numbers: &Numbers, view: &mut ReadView, creator: u64) {
        view.version = self.version.load(Ordering::SeqCst);
        view.low_limit = numbers.next;
        view.active.clear();
        view.active.extend(numbers.active.iter().map(|active| active.id));
        view.up_limit = view.active.first().copied().unwrap_or(view.low_limit);
        view.creator = creator;
    }

    /// A snapshot for purge.
    pub fn snapshot(&self) -> PurgeView {
        let numbers = self.numbers.lock();
        let mut view = ReadView::default();
        self.fill_locked(&numbers, &mut view, 0);
        let commit_limit = numbers.committing.iter().copied().min().unwrap_or(numbers.next);
        PurgeView { view, commit_limit }
    }

    /// The active transaction with this id, if it is active. Costs one load for ids of long ago.
    #[inline]
    pub fn find(&self, id: u64) -> Option<OwnerEpoch> {
        if id < self.oldest.load(Ordering::SeqCst) {
            return None;
        }
        let numbers = self.numbers.lock();
        let position = numbers.active.binary_search_by_key(&id, |active| active.id).ok()?;
        Some(numbers.active[position].transaction.clone())
    }

    /// No transaction with a smaller id is active.
    #[inline]
    pub fn oldest(&self) -> u64 {
        self.oldest.load(Ordering::SeqCst)
    }

    /// Whether all active ones below `limit` are among these, which are ascending.
    pub fn all_below(&self, limit: u64, ids: &[u64]) -> bool {
        let numbers = self.numbers.lock();
        numbers
            .active
            .iter()
            .take_while(|active| active.id < limit)
            .all(|active| ids.binary_search(&active.id).is_ok())
    }

    /// Number of active transactions.
    pub fn len(&self) -> usize {
        self.numbers.lock().active.len()
    }

    /// The owners of all active transactions.
    pub fn owners(&self) -> Vec<Arc<Owner>> {
        self.numbers.lock().active.iter().map(|active| active.transaction.owner.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> OwnerEpoch {
        Arc::new(Owner::default()).current()
    }

    #[test]
    fn views_and_snapshots_follow_commits() {
        let set = ActiveSet::new(10, 1000);
        let (a, b) = (set.begin(owner()).unwrap(), set.begin(owner()).unwrap());
        assert_eq!((a, b), (10, 11));
        let mut view = ReadView::default();
        set.fill_view(&mut view, 0, |_| ());
        assert!(!view.sees(a) && !view.sees(b) && view.sees(9));
        let version = set.version();
        let number = set.begin_commit().unwrap();
        assert_eq!(set.snapshot().commit_limit, number, "a commit under way holds purge back");
        set.end(a, Some(number), |_| ());
        assert_ne!(set.version(), version);
        set.fill_view(&mut view, 0, |_| ());
        assert!(view.sees(a) && !view.sees(b));
        assert!(set.find(a).is_none() && set.find(b).is_some());
        assert_eq!(set.oldest(), b);
        assert!(set.snapshot().commit_limit > number);
    }

    #[test]
    fn no_number_is_given_out_beyond_the_bound() {
        let set = ActiveSet::new(1, 3);
        assert!(set.begin(owner()).is_some() && set.begin(owner()).is_some());
        assert!(set.begin(owner()).is_none());
        set.raise_bound(4);
        assert_eq!(set.begin(owner()), Some(3));
    }
}
