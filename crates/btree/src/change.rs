//! Changing records.

use pagestore::{Interrupt, Mtr, PageHandle};

use crate::field::Field;
use crate::record::{RecordBuffer, RecordRef};
use crate::tree::Tree;

/// A record in a page that the mini-transaction holds. Offsets are those of record origins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The latched page.
    pub page: PageHandle,
    /// Origin of the record.
    pub offset: usize,
}

/// What a search for a key in order to change something found. The leaf is X-latched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangePosition {
    /// The last record that is not above the key; the infimum if there is none on the page.
    pub place: Place,
    /// Whether that record has exactly the key.
    pub exact: bool,
}

/// Whether a change on one leaf was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// It was; the record (for a removal: its predecessor) is here now.
    Done(Place),
    /// Nothing was changed: the page must be split or merged. Drop the mini-transaction and use
    /// [`Tree::seek_for_structure_change`].
    NeedsStructureChange,
}

/// What a structure change is for, which decides what is latched and reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StructureChange {
    /// A record of up to `size` bytes will be inserted, or grow to `size` bytes.
    Insert {
        /// Size of the new record.
        size: usize,
    },
    /// A record will be removed.
    Remove,
}

/// The right to change the structure of one tree. Commit the mini-transaction first, then drop this.
pub struct StructureGuard<'t> {
    #[allow(dead_code)]
    tree: &'t Tree,
}

#[allow(unused_variables, clippy::todo)]
impl StructureGuard<'_> {
    /// Latches the space management pages and makes sure that there is room, while nothing has been changed yet. Call after all
    /// index and undo pages of the mini-transaction are latched.
    pub fn reserve(&mut self, mtr: &mut Mtr<'_>) -> Result<(), Interrupt> {
        todo!()
    }
}

#[allow(unused_variables, clippy::todo)]
impl Tree {
    /// Finds the place of `key` (all unique fields) and X-latches its leaf in `mtr`, which must be without changes.
    pub fn seek_for_change(&self, mtr: &mut Mtr<'_>, key: &[Field<'_>]) -> Result<ChangePosition, Interrupt> {
        todo!()
    }

    /// As [`Self::seek_for_change`], and latches all pages that a split or merge from this leaf may change. Start `mtr` with
    /// [`Self::structure_redo_bytes`] and hold no latch of this tree.
    pub fn seek_for_structure_change(
        &self,
        mtr: &mut Mtr<'_>,
        key: &[Field<'_>],
        change: StructureChange,
    ) -> Result<(ChangePosition, StructureGuard<'_>), Interrupt> {
        todo!()
    }

    /// The record at `place`; `None` on infimum or supremum.
    pub fn record_at<'m>(&'m self, mtr: &'m Mtr<'_>, place: Place) -> Option<RecordRef<'m>> {
        todo!()
    }

    /// The record after `place`, S-latching the right sibling for the rest of the mini-transaction if it is there (so that the
    /// gap cannot change). `None` at the end of the tree.
    pub fn successor(&self, mtr: &mut Mtr<'_>, place: Place) -> Result<Option<Place>, Interrupt> {
        todo!()
    }

    /// Whether the leaf can take a new record of `size` bytes.
    pub fn insert_fits(&self, mtr: &Mtr<'_>, position: &ChangePosition, size: usize) -> bool {
        todo!()
    }

    /// Inserts `record` behind `position` if it fits the leaf. `trx_id` goes into PAGE_MAX_TRX_ID of secondary leaves.
    pub fn insert_here(
        &self,
        mtr: &mut Mtr<'_>,
        position: &ChangePosition,
        record: &mut RecordBuffer,
        trx_id: u64,
    ) -> Result<Outcome, Interrupt> {
        todo!()
    }

    /// Whether the leaf can take `record` instead of the one at `place`.
    pub fn update_fits(&self, mtr: &Mtr<'_>, place: Place, record: &RecordBuffer) -> bool {
        todo!()
    }

    /// Replaces the record at `place` by `record`, which has the same key, if it fits. Of a record of the same shape only
    /// the bytes that differ are logged.
    pub fn update_here(
        &self,
        mtr: &mut Mtr<'_>,
        place: Place,
        record: &mut RecordBuffer,
        trx_id: u64,
    ) -> Result<Outcome, Interrupt> {
        todo!()
    }

    /// Sets or clears the delete mark.
    pub fn set_delete_mark(&self, mtr: &mut Mtr<'_>, place: Place, deleted: bool, trx_id: u64) {
        todo!()
    }

    /// Overwrites `DB_TRX_ID` and `DB_ROLL_PTR` of a clustered leaf record.
    pub fn set_system_fields(&self, mtr: &mut Mtr<'_>, place: Place, trx_id: u64, roll_ptr: u64) {
        todo!()
    }

    /// Whether the record can be removed without a merge.
    pub fn remove_fits(&self, mtr: &Mtr<'_>, place: Place) -> bool {
        todo!()
    }

    /// Removes the record at `place` if the page does not become underfull by it.
    pub fn remove_here(&self, mtr: &mut Mtr<'_>, place: Place) -> Result<Outcome, Interrupt> {
        todo!()
    }

    /// Inserts `record` behind `position`, splitting as needed.
    pub fn insert_with_split(
        &self,
        mtr: &mut Mtr<'_>,
        guard: &mut StructureGuard<'_>,
        position: &ChangePosition,
        record: &mut RecordBuffer,
        trx_id: u64,
    ) -> Result<(), Interrupt> {
        todo!()
    }

    /// Replaces the record at `place` by `record` of the same key, splitting as needed.
    pub fn update_with_split(
        &self,
        mtr: &mut Mtr<'_>,
        guard: &mut StructureGuard<'_>,
        place: Place,
        record: &mut RecordBuffer,
        trx_id: u64,
    ) -> Result<(), Interrupt> {
        todo!()
    }

    /// Removes the record at `place`, merging or freeing pages as needed.
    pub fn remove_with_merge(
        &self,
        mtr: &mut Mtr<'_>,
        guard: &mut StructureGuard<'_>,
        place: Place,
    ) -> Result<(), Interrupt> {
        todo!()
    }
}
