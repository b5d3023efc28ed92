//! Pages, tablespaces, the buffer pool and mini-transactions.
//!
//! Code above this crate sees page bytes only through guards ([`PageRead`], [`Mtr`]); a byte changes only through
//! [`Mtr`], whose methods both change and log it.
#![allow(unsafe_code)]

pub mod checksum;
mod error;
pub mod fsp;
mod guard;
mod mtr;
pub mod page;
mod space;
mod status;
mod store;

pub use disk::{PageId, PageWriter};
pub use error::{Error, Interrupt};
pub use guard::{PageRead, Pin};
pub use mtr::{Mtr, PageHandle};
pub use page::PageSize;
pub use redo::Lsn;
pub use space::SpaceInfo;
pub use status::PoolStatus;
pub use store::{Options, PageStore};
