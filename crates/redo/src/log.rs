//! The log.

use crate::{Error, Interrupt, Lsn, Result};
use disk::{Environment, Event};
use std::path::Path;
use std::sync::Arc;

/// How durable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Flush {
    /// Handed to the operating system: survives the end of this process.
    Write,
    /// Synced to the device: survives a power cut.
    Sync,
}

/// Settings of a log.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size in bytes of the circular file (`innodb_redo_log_capacity`), at least 8 MiB.
    pub capacity: u64,
    /// Bytes of appended but unwritten log kept in memory (`innodb_log_buffer_size`).
    pub buffer_size: usize,
    /// Bytes written with zeros when the log is created; the rest is prepared in the background.
    pub prewrite: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { capacity: 100 << 20, buffer_size: 16 << 20, prewrite: 64 << 20 }
    }
}

/// What [`RedoLog::scan`] found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanSummary {
    /// The checkpoint the scan started at.
    pub checkpoint: Lsn,
    /// End of the log.
    pub end: Lsn,
    /// Mini-transactions given to the visitor.
    pub mini_transactions: u64,
    /// Bytes of their records.
    pub bytes: u64,
}

/// Counters and positions of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// End of what was appended (`Innodb_redo_log_current_lsn`).
    pub current: Lsn,
    /// End of what was handed to the operating system.
    pub written: Lsn,
    /// End of what is durable (`Innodb_redo_log_flushed_to_disk_lsn`).
    pub flushed: Lsn,
    /// Where recovery would start (`Innodb_redo_log_checkpoint_lsn`).
    pub checkpoint: Lsn,
    /// The most the log may grow beyond the checkpoint, in bytes.
    pub capacity: u64,
    /// Mini-transactions appended (`Innodb_log_write_requests`).
    pub appends: u64,
    /// Groups written (`Innodb_log_writes`).
    pub groups_written: u64,
    /// Syncs of the file (`Innodb_os_log_fsyncs`).
    pub syncs: u64,
    /// Bytes written, headers and padding included (`Innodb_os_log_written`).
    pub bytes_written: u64,
    /// Admissions that had to wait for room in the buffer or the file (`Innodb_log_waits`).
    pub waits: u64,
    /// Checkpoints taken.
    pub checkpoints: u64,
}

/// The redo log of a data directory.
pub struct RedoLog {}

impl RedoLog {
    /// Creates the log of a new data directory `dir`. Fails when there is one.
    pub fn create(_env: &Arc<dyn Environment>, _dir: &Path, _options: Options) -> Result<Arc<RedoLog>> {
        todo!()
    }

    /// Opens the log of `dir`. [`RedoLog::scan`] must run before anything is appended.
    pub fn open(_env: &Arc<dyn Environment>, _dir: &Path, _options: Options) -> Result<Arc<RedoLog>> {
        todo!()
    }

    /// Whether `dir` has a log.
    pub fn exists(_env: &Arc<dyn Environment>, _dir: &Path) -> Result<bool> {
        todo!()
    }

    /// Recovery: reads every whole mini-transaction that ends after the checkpoint, in order, and calls
    /// `visit(start, end, records)`; `progress(bytes_done, bytes_at_most)` is called now and then. Blocking. May be
    /// repeated until the first append; afterwards the log goes on behind the last valid group. A fresh log needs none.
    pub fn scan<E: From<Error>>(
        &self,
        _visit: impl FnMut(Lsn, Lsn, &[u8]) -> std::result::Result<(), E>,
        _progress: impl FnMut(u64, u64),
    ) -> std::result::Result<ScanSummary, E> {
        todo!()
    }

    /// Promises room in the file and in the buffer for one mini-transaction of at most `bytes_max` bytes of records.
    /// The promise is kept until the [`Admission`] is dropped, which must be after the append.
    pub fn admit(&self, _bytes_max: usize) -> std::result::Result<Admission<'_>, Interrupt> {
        todo!()
    }

    /// The most one mini-transaction may ask [`RedoLog::admit`] for.
    pub fn mini_transaction_bytes_max(&self) -> usize {
        todo!()
    }

    /// Appends the records of one mini-transaction, and calls `then(start, end)` under the log's mutex, so that what
    /// it does (entering pages into the flush list) happens in LSN order. Returns the end, which is the pages' new LSN.
    /// Never waits: it needs an [`Admission`] of at least this size.
    pub fn append(&self, _records: &[u8], _then: impl FnOnce(Lsn, Lsn)) -> Lsn {
        todo!()
    }

    /// `Ok` when the log is written or durable up to `upto`; otherwise takes part in a group write and returns what to
    /// wait for. Call again after the wait: the answer is then `Ok` or the error that poisoned the log.
    pub fn flush(&self, _upto: Lsn, _how: Flush) -> std::result::Result<(), Interrupt> {
        todo!()
    }

    /// The same for a thread that may block: it leads the group write itself when the log is idle.
    pub fn flush_blocking(&self, _upto: Lsn, _how: Flush) -> Result<()> {
        todo!()
    }

    /// End of what was appended: the LSN of now.
    pub fn current(&self) -> Lsn {
        todo!()
    }

    /// End of what was handed to the operating system.
    pub fn written(&self) -> Lsn {
        todo!()
    }

    /// End of what is durable.
    pub fn flushed(&self) -> Lsn {
        todo!()
    }

    /// Where recovery would start now.
    pub fn checkpoint_lsn(&self) -> Lsn {
        todo!()
    }

    /// The most the log may grow beyond the checkpoint, in bytes; admissions beyond it wait.
    pub fn capacity(&self) -> u64 {
        todo!()
    }

    /// Bytes from the checkpoint to the end of the log.
    pub fn age(&self) -> u64 {
        todo!()
    }

    /// Moves the checkpoint to `lsn` (every page change that ended before it is durable in its file) and frees the log before it.
    /// Flushes the log up to `lsn` first. One caller at a time (the cleaner). Going backwards does nothing.
    pub async fn set_checkpoint(&self, _lsn: Lsn) -> Result<()> {
        todo!()
    }

    /// An event that is set when somebody waits for room in the file, so that the cleaner hurries. After a checkpoint
    /// has advanced there is a fresh one: fetch it anew each time.
    pub fn space_wanted(&self) -> Event {
        todo!()
    }

    /// The error that stopped the log, if one did.
    pub fn poisoned(&self) -> Option<Error> {
        todo!()
    }

    /// Writes and syncs everything and marks the log as closed when the checkpoint is at its end; call it after the last checkpoint of
    /// an orderly shutdown. Nothing may be appended afterwards.
    pub async fn close(&self) -> Result<()> {
        todo!()
    }

    /// Counters and positions.
    pub fn status(&self) -> Status {
        todo!()
    }
}

/// Promised room for one mini-transaction; given back on drop.
pub struct Admission<'l> {
    _log: &'l RedoLog,
}
