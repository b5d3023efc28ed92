//! InnoDB-format B+ trees: records, pages of records, and trees of pages.
//!
//! ```text
//!   record   one COMPACT/DYNAMIC record: read in place, built in a buffer
//!   page     one INDEX page: directory, heap, free list; search, insert, delete, reorganise
//!   tree     descents, `cursor` (a record by its key, scans), optimistic changes (one leaf) and structural ones (split, merge)
//!   external values that do not fit into a record, as chains of pages
//!   estimate records of a range, different keys: by two descents, by a sample of pages
//!   bulk     building a tree from sorted records;  check: verifying one
//! ```
//!
//! How to change something (all in one mini-transaction of the caller, so that an undo record can join it):
//! 1. [`Tree::seek_for_change`] finds the place and X-latches the leaf. The caller looks at the record there
//!    (locks, versions) and may walk away by dropping the mini-transaction.
//! 2. [`Tree::insert_fits`] and friends say whether the leaf can take the change; if so, write the undo
//!    record, then [`Tree::insert_here`], [`Tree::update_here`], [`Tree::remove_here`] cannot fail.
//! 3. If not, drop the mini-transaction and start over with one of [`Tree::structure_redo_bytes`] bytes and
//!    [`Tree::seek_for_structure_change`], which serialises structure changes of this tree and latches
//!    everything that may change; then [`StructureGuard::reserve`] (disk space), the undo record, and the
//!    change. Commit the mini-transaction before dropping the guard.
//!
//! Latch order: parent before child, left before right on a level; readers hold a parent until they have the
//! child. With the structure lock of the tree held, no node pointer and no sibling link of the tree changes.

#[cfg(test)]
extern crate self as untorn_btree; // The support of the integration tests names it so.

pub mod bulk;
pub mod check;
pub mod collation;
pub mod compare;
pub mod cursor;
pub mod definition;
mod descend;
#[cfg(test)]
mod descend_races;
pub mod estimate;
pub mod external;
pub mod field;
pub mod key;
mod merge;
pub mod optimistic;
pub mod page;
pub mod record;
mod resident_records;
mod split;
pub mod structure_modification;
pub mod tree;

pub use bulk::BulkLoader;
pub use check::{CheckReport, Checker};
pub use cursor::{LeafCursor, SavedPosition, Seek};
pub use definition::IndexDef;
pub use estimate::{Estimate, Sample};
pub use external::Reference;
pub use field::{Comparison, Field, FieldDef, FieldRef};
pub use key::{KeyFields, OwnedKey};
pub use optimistic::{ChangePosition, LastChange, Outcome, Place};
pub use record::{OwnedRecord, RecordBuffer, RecordRef, RecordTooBig};
pub use structure_modification::{StructureChange, StructureGuard};
pub use tree::Tree;

/// For operations that keep their progress over an interrupt: a wait that pins nothing. Callers keep all
/// waits of one operation until it is done, and one that goes through many pages would otherwise pin them
/// all.
pub(crate) fn without_pin(interrupt: pagestore::Interrupt) -> pagestore::Interrupt {
    match interrupt {
        pagestore::Interrupt::Wait(wait) => pagestore::Interrupt::Wait(wait.without_hold()),
        error => error,
    }
}
