//! The redo log: what makes a commit durable with one write and one sync, and a crash harmless.
//!
//! Code above changes pages inside mini-transactions. The bytes a mini-transaction changed are [`records`],
//! physical and page-addressed; [`RedoLog::append`] puts them into the log as one unit, which recovery
//! applies wholly or not at all. An [`Lsn`] is a byte position in the stream of the log, so that "the log is
//! durable up to this page's LSN" is one comparison.
//!
//! Walk-through: a mini-transaction is admitted ([`RedoLog::admit`]: room in the log and in its buffer is
//! promised before the first page byte changes), appended (a copy under a short mutex), and made durable by
//! [`RedoLog::flush`], which never blocks: either the log is there already or the caller gets a
//! [`disk::Wait`] to await before it calls again. The cleaner moves the checkpoint with
//! [`RedoLog::move_checkpoint`], which frees the oldest part of the circular file. After a crash
//! [`RedoLog::scan`] gives back every mini-transaction since the checkpoint.
//!
//! It is: one circular file, one log buffer, group commit without a log-writer thread. It is not: a
//! replication stream, or InnoDB's redo format (that one differs between versions and forks anyway).
//!
//! Calls that may find the log poisoned by an I/O error return `Result<_, Interrupt>`: what to wait for
//! ([`Interrupt::Wait`]), or the error ([`Interrupt::Error`]).

#[cfg_attr(loom, allow(dead_code))]
mod admission;
#[cfg(not(loom))]
mod archive;
#[cfg(not(loom))]
mod background_sync;
#[cfg(not(loom))]
mod checkpoint;
#[cfg(not(loom))]
mod checkpoint_block;
#[cfg(not(loom))]
mod error;
#[cfg_attr(loom, allow(dead_code))]
mod group;
#[cfg(not(loom))]
mod group_commit;
#[cfg_attr(loom, allow(dead_code))]
mod groups;
#[cfg(not(loom))]
mod growth;
#[cfg(not(loom))]
mod high_water_mark;
#[cfg(not(loom))]
mod layout;
#[cfg(not(loom))]
mod log;
#[cfg(not(loom))]
mod open;
#[cfg(not(loom))]
mod rates;
mod record;
#[cfg(not(loom))]
mod resize;
#[cfg(not(loom))]
mod scan;
#[cfg(not(loom))]
mod scan_window;

pub use page::Lsn;
pub use record::{Malformed, Record, RecordWriter, Records, records};
#[cfg(not(loom))]
pub use {
    admission::Admission,
    archive::{Archive, ArchiveHold, Piece},
    error::{Error, Interrupt, Result},
    group_commit::Flush,
    layout::CAPACITY_MIN,
    log::{Options, RedoLog, Status},
    resize::Resize,
    scan::ScanSummary,
};
