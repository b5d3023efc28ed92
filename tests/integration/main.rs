//! The crate from outside, as an embedder uses it. One program of tests: every one would compile the generic
//! functions of the engine again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod asynchronous;
mod auto_increment;
mod background_rollback;
mod blocking;
mod change_feed;
mod concurrent_model;
mod definitions;
mod dropped_definitions;
mod embedded_model;
mod embedded_transactions;
mod export_cfg;
mod extension;
mod failed_definitions;
mod foreign_keys;
mod foreign_keys_meeting;
mod in_place;
mod key_lengths;
mod left_behind;
mod many_pairs;
mod misuse;
mod names;
mod orderly_shutdown;
mod page_protection;
mod prepared;
mod put_model;
mod recovery_on_read;
mod recovery_rates;
mod row_writing;
mod sample;
mod simulation;
mod small_pool;
mod statistics;
mod strangers_files;
mod table_changes;
mod tablespace_import;
mod tablespace_import_crash;
mod warm_up;
mod whole_files;
