//! Campaigns: a release server, end to end, with something done to it that must not cost a row.
//!
//! Each module is one campaign and opens by saying what would prove the server wrong. Most run against a
//! stock MariaDB as well, which tests the campaign itself. Servers, disks and loads come from `testing/lab`.
//! [`torture`], [`fuzz`] and [`miri`] need no server: they build their own programs and run them. [`suites`],
//! [`sqllogictest`] and [`differential`] only compare: ours, running, with stock servers.

pub mod bad_input;
pub mod clients;
pub mod dashboard;
pub mod differential;
pub mod exporter;
pub mod extension_soak;
pub mod fuzz;
pub mod import;
pub mod isolation;
pub mod kill_cycles;
pub mod list_append;
pub mod memory;
pub mod miri;
pub mod prometheus;
pub mod redo_capacity;
pub mod round_trip;
pub mod shutdown_cycles;
pub mod sqllogictest;
pub mod suites;
pub mod sysbench_scripts;
pub mod torture;
pub mod tpcc;

mod acknowledged;
mod peers;
mod seed;
