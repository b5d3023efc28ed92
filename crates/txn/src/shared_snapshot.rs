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
        self.system.0.views.unregister(&mut self.slot);
    }
}

impl Snapshot {
    /// This moment: what has been committed by now is seen, what is committed later is not.
    pub fn new(system: &TransactionSystem) -> Snapshot {
        let slot = system.0.views.register();
        let mut view = ReadView::default();
        system.0.active.fill_view(&mut view, 0, |version| slot.0.store(version, Ordering::SeqCst));
        Snapshot(Arc::new(Moment { system: system.clone(), slot, view }))
    }

    /// Whether it sees what the transaction with this id has changed.
    pub fn sees(&self, transaction: u64) -> bool {
        self.0.view.sees(transaction)
    }

    /// Copies the view, and publishes it in a slot of the reader's.
    pub(crate) fn copy_to(&self, view: &mut ReadView, slot: &ViewSlot) {
        // Purge cannot move past it in between: the snapshot's own slot stands.
        slot.0.store(self.0.view.version, Ordering::SeqCst);
        view.clone_from(&self.0.view);
    }

    /// Whether it is a moment of this system.
    pub(crate) fn is_of(&self, system: &TransactionSystem) -> bool {
        Arc::ptr_eq(&self.0.system.0, &system.0)
    }
}
