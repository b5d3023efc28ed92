//! Tablespaces, the buffer pool and mini-transactions.
//!
//! Code above this crate sees page bytes only through guards ([`PageRead`], [`Mtr`]); a byte changes only through
//! [`Mtr`], whose methods both change and log it.
#![allow(unsafe_code)]

#[cfg(not(loom))]
mod cleaner;
#[cfg(not(loom))]
mod controller;
#[cfg(not(loom))]
mod counters;
#[cfg(not(loom))]
mod cutting;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
mod feeder;
#[cfg(not(loom))]
mod file_identity;
#[cfg(not(loom))]
mod flush;
#[cfg(not(loom))]
mod flush_list;
#[cfg(not(loom))]
mod frame;
#[cfg(not(loom))]
mod free;
#[cfg(not(loom))]
pub mod fsp;
#[cfg(not(loom))]
mod growth;
#[cfg(not(loom))]
mod guard;
mod latch;
#[cfg(not(loom))]
mod lru;
#[cfg(not(loom))]
mod mtr;
#[cfg(not(loom))]
mod neighbours;
#[cfg(not(loom))]
mod page_map;
#[cfg(not(loom))]
mod page_memory;
#[cfg(not(loom))]
mod page_table;
mod pins;
#[cfg(not(loom))]
mod reads;
#[cfg(not(loom))]
mod recovery;
#[cfg(not(loom))]
mod relocation;
#[cfg(not(loom))]
mod resize;
#[cfg(not(loom))]
mod signal;
#[cfg(not(loom))]
mod space;
#[cfg(not(loom))]
mod stamp;
#[cfg(not(loom))]
mod status;
#[cfg(not(loom))]
mod store;
mod sync;
#[cfg(not(loom))]
mod syncing;
#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, clippy::expect_used)]
mod tests;
#[cfg(not(loom))]
mod tier;

#[cfg(not(loom))]
pub use error::{Error, Interrupt};
#[cfg(not(loom))]
pub use file_identity::{FileIdentity, remove_space_file, unlink_space_file};
#[cfg(not(loom))]
pub use guard::{PageRead, Pin};
#[cfg(not(loom))]
pub use mtr::{Mtr, PageHandle};
// What a page is, for those above.
#[cfg(not(loom))]
pub use ::page::{self, Lsn, PageId, PageSize};
#[cfg(not(loom))]
pub use recovery::RecoverySummary;
#[cfg(not(loom))]
pub use space::SpaceInfo;
#[cfg(not(loom))]
pub use stamp::{FoundStamp, Stamp, read_stamp, stamp_of_file};
#[cfg(not(loom))]
pub use status::PoolStatus;
#[cfg(not(loom))]
pub use store::{Options, PageStore};
