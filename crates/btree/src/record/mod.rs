//! The COMPACT/DYNAMIC record: a small header, lengths growing down from it, data growing up.
//!
//! ```text
//!   ... lengths of variable fields | NULL bitmap | header (5 bytes) | field 0 | field 1 | ...
//!                            grows down <--------^                  ^ origin: what every pointer points to
//! ```
//!
//! A record has no description of itself: without the [`crate::IndexDef`] it is opaque. Reading is done in
//! place through [`RecordRef`], which never allocates and never panics on bytes of a damaged page: a field
//! that would lie outside the page reads as empty. Writing goes through a [`RecordBuffer`] that is filled
//! once and copied into the page.

pub mod build;
pub mod header;
pub(crate) mod layout;
pub mod view;

pub use build::{RecordBuffer, RecordTooBig};
pub use view::{OwnedRecord, RecordRef};

/// The kinds of records, as in the low three bits of the heap number word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// A row or a secondary index entry.
    Ordinary = 0,
    /// A key and the number of the child page that holds keys from it on.
    NodePointer = 1,
    /// The lowest record of a page.
    Infimum = 2,
    /// The highest record of a page.
    Supremum = 3,
}
