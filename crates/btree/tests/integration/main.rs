//! Trees over a simulated machine, in one program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod building;
mod concurrency;
mod damaged_neighbours;
mod estimates;
mod full_disk;
mod golden;
mod pointers;
mod records_and_pages;
mod server_file;
mod support;
mod tree_model;
