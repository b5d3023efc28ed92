//! The doublewrite buffer: a page image is durable in a doublewrite file before it may tear in its own file.
//!
//! A page is larger than what a disk writes at once, so a power loss in the middle of a page write leaves a page that
//! is neither old nor new, and redo cannot be applied to it. Therefore each batch of pages is written twice: once,
//! contiguously, into a segment of a doublewrite file, with a sync; then to the pages' places, with a sync of every
//! file touched. Only after that the segment may be used again. At every moment one of the two copies is whole.
//!
//! [`Doublewrite`] does that, [`DirectWriter`] writes in place only (for storage that writes pages whole, or for users
//! who say OFF), and [`recover`] puts whole copies back before redo is applied.
//!
//! Files are named and laid out as InnoDB 8.0.20 and later do: `#ib_<page_size>_<n>.dblwr`, no header, slots of one
//! page each, even numbers for checkpoint flushing and odd ones for LRU flushing.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod direct;
mod doublewrite;
mod in_place;
mod recovery;
mod segments;
mod status;

pub use direct::DirectWriter;
pub use doublewrite::{Doublewrite, Options};
pub use recovery::{Locate, Recovered, recover, recover_since};
pub use status::Status;
