//! Transactions over a simulated machine. One program of tests: every one would compile the generic functions
//! of the layers below again.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod cancel;
mod common;
mod counts;
mod crash_and_purge;
mod in_place;
mod isolation;
mod lock_memory;
mod locking_reads;
mod off_page;
mod prepared;
mod read_then_change;
mod rows;
mod scan_at_once;
mod threads;
mod undo;
mod undo_pins;
mod undo_truncation;
mod upserts;
