//! The doublewrite buffer: a page image is durable in a doublewrite file before it may tear in its own file.
//!
//! A page is larger than what most storage writes atomically, so a power loss in the middle of a page write
//! leaves a page that is neither old nor new, and redo cannot be applied to it. Therefore each batch of pages
//! is written twice: once, contiguously, into a segment of a doublewrite file, with a sync; then to the
//! pages' places, with a sync of every file touched. Only then may the segment be reused. At every moment one
//! of the two copies is whole.
//!
//! [`ProtectedWriter`] decides for every file whether that is needed: where the storage writes pages
//! atomically it is not, and [`Mode`] says what is wanted. [`recover`] puts whole copies back before redo is
//! applied.
//!
//! Files are named and laid out as InnoDB 8.0.20 and later do: `#ib_<page_size>_<n>.dblwr`, no header, slots
//! of one page each, even numbers for checkpoint flushing and odd ones for LRU flushing.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod decision;
pub mod directories;
mod doublewrite_files;
mod mode;
mod options;
mod pace;
mod page_number_record;
mod path_measurement;
mod protected;
mod recovery;
mod requests;
mod segments;
mod status;
mod unprotected;
mod unsynced;

pub use decision::FileProtection;
pub use mode::{Mode, UnknownMode, WritePath};
pub use options::{FILES_MAX, Options, PAGES_MAX};
pub use protected::ProtectedWriter;
pub use recovery::{Locate, Recovered, Unrestored, recover, recover_since};
pub use status::{Status, WriteTimes};
pub use unprotected::UnprotectedWriter;
