//! What can go wrong with a page, and what an operation may have to wait for.
//!
//! Every low-level operation of the engine returns `Result<T, Interrupt>`: it completes, it fails, or it says
//! what it waits for. An [`Interrupt::Wait`] is returned only after every latch of the operation has been
//! released (guards drop while `?` unwinds); the driver of the operation awaits it and calls the operation
//! again.

use std::path::PathBuf;
use std::sync::Arc;

use disk::Wait;
use page::PageId;

/// Why a page operation failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The storage refused or failed an operation.
    #[error(transparent)]
    Io(#[from] disk::Error),
    /// A page does not hold what it should. Only readers of that page are affected.
    #[error(
        "page {page} of {file}: {why}; restore the file from a backup, or drop the table if its rows can be lost",
        file = file.display()
    )]
    Corrupt {
        /// The tablespace file.
        file: PathBuf,
        /// The page asked for.
        page: PageId,
        /// What was expected and what was found.
        why: String,
    },
    /// The redo log failed or is damaged.
    #[error(transparent)]
    Redo(#[from] redo::Error),
    /// The tablespace has no free page and could not grow.
    #[error("tablespace {file} cannot grow: {why}", file = file.display())]
    NoSpace {
        /// The tablespace file.
        file: PathBuf,
        /// What stood in the way.
        why: String,
    },
    /// A tablespace file is not one this engine may open.
    #[error("cannot open tablespace {file}: {why}", file = file.display())]
    Tablespace {
        /// The file.
        file: PathBuf,
        /// What was expected and what was found.
        why: String,
    },
    /// The tablespace id is not open (dropped, or never opened).
    #[error("tablespace {0} is not open")]
    NoSuchSpace(u32),
    /// The redo log cannot be applied.
    #[error("recovery stopped: {0}")]
    Recovery(String),
    /// An option does not fit.
    #[error("{0}")]
    Options(String),
    /// The store was opened to be read only.
    #[error("nothing can be changed: {0}")]
    ReadOnly(Arc<str>),
    /// An earlier write error or internal fault stopped all changes; reads go on. A restart recovers from the
    /// redo log.
    #[error("the engine refuses changes since an earlier failure: {0}; restart to recover from the redo log")]
    Poisoned(Arc<str>),
}

/// Why an operation did not complete.
#[must_use]
pub enum Interrupt {
    /// Await this, keep it alive until the retry has finished (it holds a pin), and call the operation again.
    Wait(Wait),
    /// The operation failed.
    Error(Error),
}

impl disk::Interrupted for Interrupt {
    type Error = Error;

    fn into_wait(self) -> Result<Wait, Error> {
        match self {
            Interrupt::Wait(wait) => Ok(wait),
            Interrupt::Error(error) => Err(error),
        }
    }
}

impl From<Error> for Interrupt {
    fn from(error: Error) -> Self {
        Interrupt::Error(error)
    }
}

impl From<disk::Error> for Interrupt {
    fn from(error: disk::Error) -> Self {
        Interrupt::Error(error.into())
    }
}

impl From<redo::Error> for Interrupt {
    fn from(error: redo::Error) -> Self {
        Interrupt::Error(error.into())
    }
}

impl From<redo::Interrupt> for Interrupt {
    fn from(interrupt: redo::Interrupt) -> Self {
        match interrupt {
            redo::Interrupt::Wait(wait) => Interrupt::Wait(wait),
            redo::Interrupt::Error(error) => Interrupt::Error(error.into()),
        }
    }
}

impl From<Wait> for Interrupt {
    fn from(wait: Wait) -> Self {
        Interrupt::Wait(wait)
    }
}

impl std::fmt::Debug for Interrupt {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Interrupt::Wait(_) => formatter.write_str("Wait"),
            Interrupt::Error(error) => formatter.debug_tuple("Error").field(error).finish(),
        }
    }
}
