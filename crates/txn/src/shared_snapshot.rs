//! One moment that several transactions read at.
//!
//! A snapshot is a read view with a slot of its own, so purge keeps what it sees for as long as it lives. A
//! transaction that begins in it copies the view and publishes the same version; it may outlive the snapshot.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::read_view::{OwnViewSlot, ReadView, ViewSlot};
use crate::system::TransactionSystem;

/// A moment of the database. Clones are of the same one.
#[derive(Clone)]
pub struct Snapshot(Arc<Moment>);

struct Moment {
    system: TransactionSystem,
    slot: OwnViewSlot,
    view: ReadView,
}

impl Drop for Moment {
    fn drop(&mut self) {
        self.slot.leave_view(std::mem::take(&mut self.view));
    }
}

impl Snapshot {
    /// This moment: what has been committed by now is seen, what is committed later is not.
    pub fn new(system: &TransactionSystem) -> Snapshot {
        let mut slot = system.0.views.register();
        let mut view = slot.take_view();
        slot.open(&mut view, &system.0.active, 0);
        Snapshot(Arc::new(Moment { system: system.clone(), slot, view }))
    }

    /// Whether it sees what the transaction with this id has changed.
    pub fn sees(&self, transaction: u64) -> bool {
        self.0.view.sees(transaction)
    }

    /// Copies the view, and publishes it in a slot of the reader's.
    pub(crate) fn copy_to(&self, view: &mut ReadView, slot: &ViewSlot) {
        // Purge cannot move past it in between: the snapshot's own slot stands.
        slot.version.store(self.0.view.version, Ordering::SeqCst);
        view.clone_from(&self.0.view);
    }

    /// Whether it is a moment of this system.
    pub(crate) fn is_of(&self, system: &TransactionSystem) -> bool {
        Arc::ptr_eq(&self.0.system.0, &system.0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::undo::tests::store;

    /// And takes the one that another has left.
    #[test]
    fn a_moment_that_is_over_leaves_its_view() {
        let (env, store) = store();
        env.run_until_complete(async {
            let opened = TransactionSystem::open(store, Options::new("/data/undo_001".into())).await;
            let system = opened.unwrap();
            let left = || system.0.views.register().take_view();
            let mut slot = system.0.views.register();
            let version = system.0.active.version();
            slot.leave_view(ReadView { version, low_limit: 77, ..ReadView::default() });
            drop(slot);
            let snapshot = Snapshot::new(&system);
            assert_eq!(snapshot.0.view.low_limit, 77, "a view that is true was made once more");
            drop(snapshot);
            assert_eq!(left().low_limit, 77);
        });
        env.shutdown();
    }
}
