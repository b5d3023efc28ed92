//! Tests of the pool that need to look inside the crate.

mod apply_when_read;
mod crash;
mod eviction;
mod failed_sync;
mod frames;
mod give_way;
mod golden;
mod growth;
mod hurry;
mod large_recovery;
mod log_growth;
mod log_room;
mod paced_disk;
mod pointers;
mod pool;
mod reasons;
mod reference_tier;
mod relocation;
mod resident_pages;
mod resize;
mod restart_target;
mod support;
mod tier;
