//! Pages, tablespaces, the buffer pool and mini-transactions.
//!
//! Code above this crate sees page bytes only through guards ([`PageRead`], [`Mtr`]); a byte changes only through
//! [`Mtr`], whose methods both change and log it.
#![allow(unsafe_code)]

pub mod checksum;
mod cleaner;
mod controller;
mod counters;
mod error;
mod flush;
mod flush_list;
mod frame;
mod free;
pub mod fsp;
mod guard;
mod latch;
mod lru;
mod mtr;
pub mod page;
mod page_table;
mod reads;
mod recovery;
mod signal;
mod space;
mod status;
mod store;
mod sync;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used)]
mod tests;

pub use disk::{PageId, PageWriter};
pub use error::{Error, Interrupt};
pub use guard::{PageRead, Pin};
pub use mtr::{Mtr, PageHandle};
pub use page::PageSize;
pub use recovery::RecoverySummary;
pub use redo::Lsn;
pub use space::{SpaceHeader, SpaceInfo, identify_space};
pub use status::PoolStatus;
pub use store::{Options, PageStore};
