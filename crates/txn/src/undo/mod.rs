//! Undo logs: what a transaction needs to take its changes back, and others to see the rows as they were.
//!
//! They live in a tablespace of their own. Its **directory page** names the **slots**. A slot is a chain of
//! undo pages that one active transaction owns exclusively; logs follow each other in it like in a queue. A
//! transaction takes a free slot at its first change and goes on where the previous log ended, usually on the
//! same page; purge frees pages at the head. So a small transaction allocates nothing.
//!
//! ```text
//!  directory: slot 0 -> (page, offset) of the oldest log not purged      bound of ids, segment
//!  slot 0:    [purged | log of 17 | log of 21 ..] -> [.. 21 | log of 30 (active) ..] -> [spare page]
//!  log:       header {trx id, commit number, end, state} record record ...
//! ```
//!
//! The header's state is *the* commit mark: one small mini-transaction writes number, end and state. A log
//! without the mark belongs to a transaction that recovery rolls back. The log of a transaction that only
//! inserted, or was rolled back, is of no use to anybody once it ended: ending it sets the page's free offset
//! back to the log's start. Purge frees pages step by step, and a purged log may span many. When the first
//! page after its header is freed, the header is marked as purged, so that a restart in between continues
//! at the log's end.
//!
//! A record is written in the mini-transaction that changes the row, so that one never exists without the
//! other. Room is made before, in a mini-transaction of its own.
//!
//! Latch order: directory page -> space management of the undo tablespace -> index pages -> undo pages.

pub(crate) mod directory;
mod free_slots;
pub(crate) mod history;
pub(crate) mod log;
pub(crate) mod page;
pub(crate) mod record;
pub(crate) mod recovery;
pub(crate) mod tablespace;
mod trim;
pub(crate) mod truncation;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use log::UndoLog;
pub(crate) use page::Place;
pub(crate) use record::{UndoKind, UndoRecord};
pub(crate) use tablespace::UndoSpace;
