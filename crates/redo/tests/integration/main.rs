//! The log over a simulated machine, in one program.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod age_limit;
mod archive;
mod common;
mod crash;
mod end;
mod growth;
mod log;
mod resize;
