//! The buffer pool extension: pages that leave the buffer pool clean are kept on a fast local disk, and found
//! there before the slow data file is read. Losing it, at any moment, loses nothing but speed.
//!
//! ```text
//!   pool ──offer──▶ admission ──▶ buffer of a region ──one write──▶ file: header | region | region | ...
//!   pool ──find───▶ table (25 bytes of memory per page) ──▶ slot ──read──▶ verify ──▶ pool, or the data file
//! ```
//!
//! The pool knows only the trait [`page::BufferPoolExtension`], which [`Tier`] implements; this crate does
//! not know the pool. What it rests on:
//!
//! - **Clean pages only.** A page is dropped from the table when it is changed, under its latch, before the
//!   change is in the log. So what is in the table is what the data file holds.
//! - **Nothing is believed.** Space, page number, LSN and checksum of what comes back are compared with the
//!   table.
//! - **Nothing waits.** Look-up, offer and invalidation are memory only, behind short mutexes that are never
//!   held across I/O; what cannot be taken at once is refused.
//! - **Any error ends it.** One log line, and the tier is off; the server goes on.
//! - **A restart keeps what is current**, and can prove it: `docs/internals/extension.md`.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod admission;
mod counters;
mod error_switch_off;
mod fill;
mod geometry;
mod image;
mod journal;
mod latency_suspension;
mod maintenance;
#[cfg(any(test, feature = "negative-control"))]
pub mod negative_control;
mod opening;
mod options;
mod record;
mod size_estimate;
mod status;
mod store;
mod table;
#[cfg(test)]
mod tests;
mod tier;
mod warm_restart;

pub use image::Mismatch;
pub use options::{Options, Restart, memory_bytes};
pub use size_estimate::Estimate;
pub use status::{State, Status};
pub use tier::{Change, Tier};
