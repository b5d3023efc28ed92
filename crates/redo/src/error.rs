//! What can go wrong with the log, in words for the person who reads them.

use crate::Lsn;
use disk::Wait;
use std::path::PathBuf;
use std::sync::Arc;

/// Result of an operation on the log.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of the log.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file operation failed.
    #[error(transparent)]
    Io(#[from] disk::Error),
    /// An earlier write or sync of the log failed: nothing is acknowledged any more until a restart has
    /// recovered.
    #[error(
        "the redo log stopped after an error ({reason}); nothing more is made durable: fix the cause and restart the database, which recovers every acknowledged commit"
    )]
    Poisoned {
        /// The first error.
        reason: Arc<str>,
    },
    /// The log was closed: see [`crate::RedoLog::close`].
    #[error("the database is closed or being closed: no more changes are possible")]
    Closed,
    /// A part of the log that had been durable is unreadable: going on would lose acknowledged commits.
    #[error(
        "redo log {} is damaged at offset {offset} (LSN {lsn}): {why}. Acknowledged commits are in or after the damaged part; restore the file, or the data directory from a backup", path.display()
    )]
    Damaged {
        /// The log file.
        path: PathBuf,
        /// Byte offset in the file.
        offset: u64,
        /// Position in the log.
        lsn: Lsn,
        /// What is wrong and how it is known.
        why: String,
    },
    /// The file was written by a newer program or is no log at all.
    #[error("redo log {}: {why}", path.display())]
    Unusable {
        /// The log file.
        path: PathBuf,
        /// What is wrong and what to do.
        why: String,
    },
    /// An archive has let go of what it had not copied yet ([`crate::ArchiveHold::let_go`]).
    #[error("the redo log was let go before it had been copied")]
    LetGo,
    /// A setting does not fit.
    #[error("{0}")]
    Setting(String),
    /// One mini-transaction asks for more room than the log can ever give it.
    #[error(
        "a mini-transaction of {bytes} bytes does not fit the redo log, which takes {bytes_max} at most; raise innodb_redo_log_capacity or innodb_log_buffer_size"
    )]
    TooLarge {
        /// Bytes asked for.
        bytes: usize,
        /// The most that can be asked for.
        bytes_max: usize,
    },
}

/// Why an operation did not complete.
#[derive(Debug)]
pub enum Interrupt {
    /// Await this, then call again.
    Wait(Wait),
    /// It failed.
    Error(Error),
}

impl disk::Interrupted for Interrupt {
    type Error = Error;

    fn into_wait(self) -> std::result::Result<Wait, Error> {
        match self {
            Interrupt::Wait(wait) => Ok(wait),
            Interrupt::Error(error) => Err(error),
        }
    }
}

impl From<Error> for Interrupt {
    fn from(error: Error) -> Interrupt {
        Interrupt::Error(error)
    }
}
