//! Read views: which transactions' changes a consistent read sees.
//!
//! A transaction opens its view at its first consistent read. REPEATABLE READ keeps it to the end; READ
//! COMMITTED and autocommit give it up with the statement, so that the next one sees what was committed
//! meanwhile.
//!
//! A view is made under the mutex of the active set (`transaction_ids.rs`). Making one costs a lock and a
//! copy, so a session keeps its last view and takes it again while the system's **version** (a counter that
//! moves whenever a transaction with changes ends) has not moved: transactions that began meanwhile have ids
//! above the view's limit, so the answer to every visibility question is the same. That path touches no
//! shared cache line for writing but the session's own slot.
//!
//! Purge must not remove what an open view needs. Each session publishes the version of its open view in a
//! [`ViewSlot`]. Purge takes a snapshot (a view of its own) and may use it once no open view is older than
//! that: then every open or future view sees all that the snapshot sees. The session stores its slot first
//! and checks the version afterwards, purge takes its snapshot first and reads the slots afterwards, all
//! sequentially consistent: so either purge sees the slot, or the session sees that the version has moved on
//! and makes a new view.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use disk::{SHARDS, thread_shard};
use parking_lot::Mutex;

use crate::error::Error;
use crate::row::ScanIndex;
use crate::table::Table;
use crate::transaction::Transaction;
use crate::transaction_ids::ActiveSet;

/// Slot value of a session without an open view.
pub(crate) const NO_VIEW: u64 = u64::MAX;

/// What is visible.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReadView {
    /// Version of the active set it was made of.
    pub version: u64,
    /// Every id below is visible.
    pub up_limit: u64,
    /// No id from here on is visible.
    pub low_limit: u64,
    /// Ids between the limits that were active, ascending.
    pub active: Vec<u64>,
    /// Its own transaction, 0 if it has no id.
    pub creator: u64,
}

impl Transaction {
    /// Opens the read view unless it is open.
    #[inline]
    pub(crate) fn open_view(&mut self) {
        if self.view_open {
            return;
        }
        let creator = self.undo_log.as_ref().map_or(0, |log| log.trx_id);
        let system = &self.system.0;
        slot_of(&mut self.slot, &mut self.view, &system.views).open(&mut self.view, &system.active, creator);
        self.view_open = true;
    }

    /// Opens the read view, unless it is open, to read an index of this table.
    ///
    /// # Errors
    /// [`Error::TableChanged`]: the index does not have the rows that the view sees.
    #[inline]
    pub(crate) fn open_view_for(&mut self, table: &Table, index: ScanIndex) -> Result<(), Error> {
        self.open_view();
        if table.born_of(index).iter().all(|born| self.view.sees(*born)) {
            Ok(())
        } else {
            Err(Error::TableChanged)
        }
    }

    /// A statement ends: READ COMMITTED and autocommit give up the read view, the others keep it.
    pub(crate) fn end_statement_view(&mut self) {
        if !self.begun || self.isolation.locks_records_only() {
            self.close_view();
        }
    }

    pub(crate) fn close_view(&mut self) {
        if self.view_open {
            self.view_open = false;
            if let Some(slot) = &self.slot {
                slot.close();
            }
        }
    }

    /// Gives its slot back, and leaves its view to who gets the slot next.
    pub(crate) fn give_slot_back(&mut self) {
        let view = std::mem::take(&mut self.view);
        if let Some(mut slot) = self.slot.take() {
            slot.leave_view(view);
        }
    }
}

impl ReadView {
    /// Whether changes of transaction `id` are seen.
    #[inline]
    pub fn sees(&self, id: u64) -> bool {
        if id < self.up_limit || id == self.creator {
            return true;
        }
        id < self.low_limit && self.active.binary_search(&id).is_err()
    }
}

/// The version of a session's open view, on cache lines of its own.
#[repr(align(128))]
pub(crate) struct ViewSlot {
    pub version: AtomicU64,
    /// Its place in the shard's list, under the shard's mutex.
    place: AtomicUsize,
}

impl ViewSlot {
    /// Opens a view of what is visible now: `view` as it is while that is still true.
    #[inline]
    pub fn open(&self, view: &mut ReadView, active: &ActiveSet, creator: u64) {
        // Published first, checked afterwards: see the essay.
        if view.version != 0 {
            self.version.store(view.version, Ordering::SeqCst);
            if active.version() == view.version {
                view.creator = creator;
                return;
            }
        }
        active.fill_view(view, creator, |version| self.version.store(version, Ordering::SeqCst));
    }

    #[inline]
    pub fn close(&self) {
        self.version.store(NO_VIEW, Ordering::SeqCst);
    }
}

/// A slot that a session has, and no other. Dropped, it waits for the next one.
pub(crate) struct OwnViewSlot {
    slot: Arc<ViewSlot>,
    /// Where it is listed.
    shard: Arc<Shard>,
    /// The last view of the session that had it before, for who wants it; and for the next session.
    view: ReadView,
}

impl OwnViewSlot {
    /// A view to begin with, which may still be true.
    pub fn take_view(&mut self) -> ReadView {
        std::mem::take(&mut self.view)
    }

    /// Leaves the next session a view, which it may take again while it is true.
    pub fn leave_view(&mut self, view: ReadView) {
        self.view = view;
    }
}

impl Deref for OwnViewSlot {
    type Target = ViewSlot;

    #[inline]
    fn deref(&self) -> &ViewSlot {
        &self.slot
    }
}

impl Drop for OwnViewSlot {
    fn drop(&mut self) {
        let view = std::mem::take(&mut self.view);
        let mut slots = self.shard.0.lock();
        // Under the mutex: see `ViewRegistry::oldest`.
        self.slot.close();
        if slots.free.len() < FREE_MAX {
            let few = view.active.capacity() <= KEPT_IDS_MAX;
            let kept = if few { view } else { ReadView::default() };
            slots.free.push((self.slot.clone(), kept));
        } else {
            slots.remove(&self.slot);
        }
    }
}

/// The slot of a session, which takes one, and a view to begin with, when it first needs it.
#[inline]
pub(crate) fn slot_of<'s>(
    own: &'s mut Option<OwnViewSlot>,
    view: &mut ReadView,
    views: &ViewRegistry,
) -> &'s OwnViewSlot {
    own.get_or_insert_with(|| {
        let mut slot = views.register();
        *view = ReadView { creator: view.creator, ..slot.take_view() };
        slot
    })
}

/// All sessions' slots.
///
/// Programs make a session for each transaction, so beginning and ending one must not be a queue: threads are
/// spread over shards, and a slot goes back to its shard with the session's last view, which the next session
/// may take again. There are no more slots than sessions that read now, and a few: all of them are looked at
/// again and again. So a prepared transaction, which may stay for days, has none.
pub(crate) struct ViewRegistry {
    shards: [Arc<Shard>; SHARDS],
}

#[derive(Default)]
#[repr(align(128))]
struct Shard(Mutex<Slots>);

#[derive(Default)]
struct Slots {
    /// Those of sessions and those that wait for one.
    all: Vec<Arc<ViewSlot>>,
    /// Those that wait for a session, with a view that may still be true.
    free: Vec<(Arc<ViewSlot>, ReadView)>,
}

impl Slots {
    fn add(&mut self) -> Arc<ViewSlot> {
        let (version, place) = (AtomicU64::new(NO_VIEW), AtomicUsize::new(self.all.len()));
        let slot = Arc::new(ViewSlot { version, place });
        self.all.push(slot.clone());
        slot
    }

    fn remove(&mut self, slot: &ViewSlot) {
        let place = slot.place.load(Ordering::Relaxed);
        self.all.swap_remove(place);
        if let Some(moved) = self.all.get(place) {
            moved.place.store(place, Ordering::Relaxed);
        }
    }
}

/// Slots of a shard that wait for a session, at most.
const FREE_MAX: usize = 64;
/// Ids in a view that is kept for another session, at most.
pub(crate) const KEPT_IDS_MAX: usize = 1024;

impl Default for ViewRegistry {
    fn default() -> ViewRegistry {
        ViewRegistry { shards: std::array::from_fn(|_| Arc::default()) }
    }
}

impl ViewRegistry {
    /// A slot for a session.
    pub fn register(&self) -> OwnViewSlot {
        self.register_in(thread_shard())
    }

    fn register_in(&self, shard: usize) -> OwnViewSlot {
        let shard = self.shards[shard].clone();
        let mut slots = shard.0.lock();
        let waiting = slots.free.pop();
        let (slot, view) = waiting.unwrap_or_else(|| (slots.add(), ReadView::default()));
        drop(slots);
        debug_assert_eq!(slot.version.load(Ordering::SeqCst), NO_VIEW, "a free slot has an open view");
        OwnViewSlot { slot, shard, view }
    }

    /// Version of the oldest open view, [`NO_VIEW`] if there is none.
    ///
    /// All shards are locked for it. A shared snapshot hands its view on: a transaction's slot is opened, and
    /// then the snapshot's given back. Were the one looked at before and the other behind that, the view
    /// would be in neither.
    pub fn oldest(&self) -> u64 {
        let shards = self.shards.each_ref().map(|shard| shard.0.lock());
        let slots = shards.iter().flat_map(|slots| &slots.all);
        slots.map(|slot| slot.version.load(Ordering::SeqCst)).min().unwrap_or(NO_VIEW)
    }

    /// Slots, and how many of them wait for a session.
    #[cfg(test)]
    pub fn listed(&self) -> (usize, usize) {
        let shards = self.shards.each_ref().map(|shard| shard.0.lock());
        let sum = |len: fn(&Slots) -> usize| shards.iter().map(|slots| len(slots)).sum();
        (sum(|slots| slots.all.len()), sum(|slots| slots.free.len()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::lock::Owner;

    #[test]
    fn a_view_sees_what_had_ended_and_itself() {
        let view = ReadView { version: 1, up_limit: 5, low_limit: 10, active: vec![5, 8], creator: 8 };
        let seen: Vec<u64> = (3..12).filter(|id| view.sees(*id)).collect();
        assert_eq!(seen, [3, 4, 6, 7, 8, 9]);
    }

    #[test]
    fn a_slot_goes_from_session_to_session_with_the_view_and_holds_nothing_back() {
        let views = ViewRegistry::default();
        let mut slot = views.register();
        assert_eq!(slot.take_view(), ReadView::default());
        slot.version.store(5, Ordering::SeqCst);
        let other = views.register();
        other.version.store(7, Ordering::SeqCst);
        assert_eq!(views.oldest(), 5);
        let first = Arc::as_ptr(&slot.slot);
        let last = ReadView { version: 5, ..ReadView::default() };
        slot.leave_view(last.clone());
        drop(slot);
        assert_eq!(views.oldest(), 7, "a session that ended keeps purge back");
        // Who has no use for the view leaves it where it was.
        drop(views.register());
        let mut again = views.register();
        assert_eq!((Arc::as_ptr(&again.slot), again.take_view()), (first, last));
        again.version.store(3, Ordering::SeqCst);
        assert_eq!(views.oldest(), 3, "a slot that is used again is not looked at");
        drop((again, other));
        assert_eq!(views.oldest(), NO_VIEW);
    }

    fn active(ids: u64) -> ActiveSet {
        let set = ActiveSet::new(10, 1 << 20);
        (0..ids).for_each(|_| assert!(set.begin(Arc::new(Owner::default()).current()).is_some()));
        set
    }

    /// A session opens a view and ends; what the next one has when it opens its own.
    fn next_view(views: &ViewRegistry, set: &ActiveSet, creator: u64, between: impl FnOnce()) -> ReadView {
        let mut own = None;
        let mut view = ReadView::default();
        slot_of(&mut own, &mut view, views).open(&mut view, set, creator);
        let mut slot = own.unwrap();
        slot.leave_view(view);
        drop(slot);
        between();
        let (mut own, mut view) = (None, ReadView::default());
        let slot = slot_of(&mut own, &mut view, views);
        assert_eq!(view.creator, 0, "the next session would see what the one before has changed");
        slot.open(&mut view, set, 0);
        assert_eq!(views.oldest(), view.version, "purge would remove what it sees");
        view
    }

    /// Its maker sees its own changes by it, and nobody else does.
    #[test]
    fn a_view_that_is_taken_again_is_not_its_makers() {
        let (views, set) = (ViewRegistry::default(), active(3));
        let mut view = next_view(&views, &set, 11, || ());
        assert_eq!((view.creator, view.sees(11), view.sees(9)), (0, false, true));
        assert_eq!(view.active, [10, 11, 12]);
        // Nor where somebody takes it who makes no transaction of it.
        let slot = views.register();
        for creator in [11, 0] {
            slot.open(&mut view, &set, creator);
            assert_eq!((view.creator, view.sees(11)), (creator, creator == 11));
        }
    }

    #[test]
    fn a_view_is_taken_again_only_while_it_is_true() {
        let (views, set) = (ViewRegistry::default(), active(2));
        // Begun meanwhile: the view would say the same of it, and need not be made.
        let begins = || assert!(set.begin(Arc::new(Owner::default()).current()).is_some());
        let view = next_view(&views, &set, 0, begins);
        assert_eq!((view.low_limit, view.sees(12)), (12, false), "the view was made although it was true");
        let view = next_view(&views, &set, 0, || set.end(10, None, |_| ()));
        assert!(view.sees(10) && !view.sees(11), "what has ended meanwhile is not seen");
        assert_eq!(view.version, set.version());
    }

    #[test]
    fn a_view_with_very_many_ids_is_not_kept() {
        for (ids, kept) in [(KEPT_IDS_MAX / 2, true), (2 * KEPT_IDS_MAX, false)] {
            let (views, set) = (ViewRegistry::default(), active(ids as u64));
            assert_eq!(next_view(&views, &set, 0, || ()).active.len(), ids);
            let mut slot = views.register();
            let mut view = ReadView::default();
            slot.open(&mut view, &set, 0);
            slot.leave_view(view);
            drop(slot);
            assert_eq!(views.register().take_view().active.capacity() > 0, kept, "{ids} ids");
        }
    }

    /// A view that goes from shard to shard, in either direction, is seen all the time.
    #[test]
    fn a_view_that_is_handed_on_is_never_overlooked() {
        let (views, ended) = (ViewRegistry::default(), AtomicBool::new(false));
        let mut has = views.register_in(0);
        has.version.store(1, Ordering::SeqCst);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let up_and_down = (1..SHARDS).chain((0..SHARDS - 1).rev());
                for shard in (0..200).flat_map(|_| up_and_down.clone()) {
                    let next = views.register_in(shard);
                    next.version.store(1, Ordering::SeqCst);
                    has = next;
                }
                ended.store(true, Ordering::SeqCst);
            });
            while !ended.load(Ordering::SeqCst) {
                assert_eq!(views.oldest(), 1);
            }
        });
    }

    /// Slots that end on another thread than they began on go back to where purge looks for them, and few of
    /// very many are kept.
    #[test]
    fn few_slots_wait_for_a_session() {
        let views = ViewRegistry::default();
        let slots: Vec<_> = (0..1000).map(|_| views.register()).collect();
        slots.iter().for_each(|slot| slot.version.store(9, Ordering::SeqCst));
        std::thread::scope(|scope| {
            scope.spawn(|| drop(slots));
        });
        assert_eq!((views.listed(), views.oldest()), ((FREE_MAX, FREE_MAX), NO_VIEW));
    }

    /// The last of the list takes the place of one that goes.
    #[test]
    fn a_slot_that_goes_takes_no_other_along() {
        let views = ViewRegistry::default();
        let mut slots: Vec<_> = (0..200).map(|_| views.register()).collect();
        slots.iter().zip(1..).for_each(|(slot, version)| slot.version.store(version, Ordering::SeqCst));
        drop(slots.split_off(100));
        let mut left: Vec<_> = slots.into_iter().zip(1..).collect();
        // From the middle, from both ends.
        for at in [50, 0, 97, 10, 95] {
            left.remove(at);
            let oldest = left.iter().map(|(_, version)| *version).min();
            assert_eq!(Some(views.oldest()), oldest);
            let open = |slot: &&Arc<ViewSlot>| slot.version.load(Ordering::SeqCst) != NO_VIEW;
            let listed: usize =
                views.shards.iter().map(|shard| shard.0.lock().all.iter().filter(open).count()).sum();
            assert_eq!(listed, left.len());
        }
    }
}
