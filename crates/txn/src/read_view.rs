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
use std::sync::atomic::{AtomicU64, Ordering};

use disk::{SHARDS, thread_shard};
use parking_lot::Mutex;

use crate::error::Error;
use crate::row::ScanIndex;
use crate::table::Table;
use crate::transaction::Transaction;

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
        self.view_open = true;
        let creator = self.undo_log.as_ref().map_or(0, |log| log.trx_id);
        let active = &self.system.0.active;
        // Published first, checked afterwards: see the essay.
        if self.view.version != 0 {
            self.slot.0.store(self.view.version, Ordering::SeqCst);
            if active.version() == self.view.version {
                self.view.creator = creator;
                return;
            }
        }
        let slot = &self.slot.0;
        active.fill_view(&mut self.view, creator, |version| slot.store(version, Ordering::SeqCst));
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
            self.slot.0.store(NO_VIEW, Ordering::SeqCst);
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
pub(crate) struct ViewSlot(pub AtomicU64);

/// A slot that a session has, and no other: given back to [`ViewRegistry::unregister`] once.
pub(crate) struct OwnViewSlot {
    slot: Arc<ViewSlot>,
    /// Where it is listed.
    shard: usize,
    /// Whether it is still the session's.
    registered: bool,
}

impl Deref for OwnViewSlot {
    type Target = ViewSlot;

    #[inline]
    fn deref(&self) -> &ViewSlot {
        &self.slot
    }
}

/// All sessions' slots.
///
/// Programs make a session for each transaction, so beginning and ending one must not be a queue: threads are
/// spread over shards, and a slot goes back to its shard with the session's last view, which the next session
/// may take again.
pub(crate) struct ViewRegistry {
    shards: [Shard; SHARDS],
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

/// Slots of a shard that wait for a session, at most.
const FREE_MAX: usize = 64;
/// Ids in a view that is kept for another session, at most.
const KEPT_IDS_MAX: usize = 1024;

impl Default for ViewRegistry {
    fn default() -> ViewRegistry {
        ViewRegistry { shards: std::array::from_fn(|_| Shard::default()) }
    }
}

impl ViewRegistry {
    /// A slot for a new session, and a view to begin with.
    pub fn register_with_view(&self) -> (OwnViewSlot, ReadView) {
        self.register_in(thread_shard())
    }

    fn register_in(&self, shard: usize) -> (OwnViewSlot, ReadView) {
        let mut slots = self.shards[shard].0.lock();
        let (slot, view) = slots.free.pop().unwrap_or_else(|| {
            let slot = Arc::new(ViewSlot(AtomicU64::new(NO_VIEW)));
            slots.all.push(slot.clone());
            (slot, ReadView::default())
        });
        drop(slots);
        debug_assert_eq!(slot.0.load(Ordering::SeqCst), NO_VIEW, "a slot was given back with an open view");
        (OwnViewSlot { slot, shard, registered: true }, view)
    }

    /// A slot for somebody whose views are made where they are needed.
    pub fn register(&self) -> OwnViewSlot {
        self.register_with_view().0
    }

    /// Gives a slot back, and a view that the next session may take again while it is true.
    pub fn unregister_with_view(&self, own: &mut OwnViewSlot, view: ReadView) {
        assert!(std::mem::take(&mut own.registered), "a slot is given back once");
        let slot = own.slot.clone();
        let mut slots = self.shards[own.shard].0.lock();
        // Under the mutex: see `oldest`.
        slot.0.store(NO_VIEW, Ordering::SeqCst);
        if slots.free.len() < FREE_MAX {
            let few = view.active.capacity() <= KEPT_IDS_MAX;
            let kept = if few { ReadView { creator: 0, ..view } } else { ReadView::default() };
            slots.free.push((slot, kept));
        } else {
            slots.all.retain(|other| !Arc::ptr_eq(other, &slot));
        }
    }

    /// Gives a slot back.
    pub fn unregister(&self, own: &mut OwnViewSlot) {
        self.unregister_with_view(own, ReadView::default());
    }

    /// Version of the oldest open view, [`NO_VIEW`] if there is none.
    ///
    /// All shards are locked for it. A shared snapshot hands its view on: a transaction's slot is opened, and
    /// then the snapshot's given back. Were the one looked at before and the other behind that, the view
    /// would be in neither.
    pub fn oldest(&self) -> u64 {
        let shards = self.shards.each_ref().map(|shard| shard.0.lock());
        let slots = shards.iter().flat_map(|slots| &slots.all);
        slots.map(|slot| slot.0.load(Ordering::SeqCst)).min().unwrap_or(NO_VIEW)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn a_view_sees_what_had_ended_and_itself() {
        let view = ReadView { version: 1, up_limit: 5, low_limit: 10, active: vec![5, 8], creator: 8 };
        let seen: Vec<u64> = (3..12).filter(|id| view.sees(*id)).collect();
        assert_eq!(seen, [3, 4, 6, 7, 8, 9]);
    }

    #[test]
    fn a_slot_goes_from_session_to_session_with_the_view_and_holds_nothing_back() {
        let views = ViewRegistry::default();
        let (mut slot, view) = views.register_with_view();
        assert_eq!(view, ReadView::default());
        slot.0.store(5, Ordering::SeqCst);
        let (mut other, _) = views.register_with_view();
        other.0.store(7, Ordering::SeqCst);
        assert_eq!(views.oldest(), 5);
        let first = Arc::as_ptr(&slot.slot);
        let last = ReadView { version: 5, ..ReadView::default() };
        views.unregister_with_view(&mut slot, last.clone());
        assert_eq!(views.oldest(), 7, "a session that ended keeps purge back");
        let (mut again, view) = views.register_with_view();
        assert_eq!((Arc::as_ptr(&again.slot), view), (first, last));
        again.0.store(3, Ordering::SeqCst);
        assert_eq!(views.oldest(), 3, "a slot that is used again is not looked at");
        views.unregister(&mut again);
        views.unregister(&mut other);
        assert_eq!(views.oldest(), NO_VIEW);
    }

    /// A view that goes from shard to shard, in either direction, is seen all the time.
    #[test]
    fn a_view_that_is_handed_on_is_never_overlooked() {
        let (views, ended) = (ViewRegistry::default(), AtomicBool::new(false));
        let (mut has, _) = views.register_in(0);
        has.0.store(1, Ordering::SeqCst);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let up_and_down = (1..SHARDS).chain((0..SHARDS - 1).rev());
                for shard in (0..200).flat_map(|_| up_and_down.clone()) {
                    let (next, _) = views.register_in(shard);
                    next.0.store(1, Ordering::SeqCst);
                    views.unregister(&mut has);
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
        let mut slots: Vec<_> = (0..1000).map(|_| views.register()).collect();
        slots.iter().for_each(|slot| slot.0.store(9, Ordering::SeqCst));
        std::thread::scope(|scope| {
            scope.spawn(|| slots.iter_mut().for_each(|slot| views.unregister(slot)));
        });
        let listed: usize = views.shards.iter().map(|shard| shard.0.lock().all.len()).sum();
        let free: usize = views.shards.iter().map(|shard| shard.0.lock().free.len()).sum();
        assert_eq!((listed, free, views.oldest()), (FREE_MAX, FREE_MAX, NO_VIEW));
    }

    #[test]
    #[should_panic(expected = "given back once")]
    fn a_slot_is_not_given_back_twice() {
        let views = ViewRegistry::default();
        let mut slot = views.register();
        views.unregister(&mut slot);
        views.unregister(&mut slot);
    }
}
