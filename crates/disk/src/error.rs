//! What went wrong with a file: which operation, which file, where in it, and what an operator can do about
//! it.
//!
//! The error is a shared pointer: small in a `Result`, and cheap to hand to every waiter of a failed group
//! write.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Result of a file operation.
pub type Result<T> = std::result::Result<T, Error>;

/// The operation of a reservation of blocks.
pub(crate) const ALLOCATE: &str = "allocate";
/// The operation of an atomic write.
pub(crate) const ATOMIC_WRITE: &str = "write atomically";

/// A failed file operation.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

struct Inner {
    operation: &'static str,
    path: PathBuf,
    place: Option<(u64, usize)>,
    source: io::Error,
}

impl Error {
    /// An error of `operation` (a verb: "read", "sync") on the file at `path`.
    pub fn new(operation: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Error {
        Error(Arc::new(Inner { operation, path: path.into(), place: None, source }))
    }

    /// The same, for a transfer of `length` bytes at byte `offset`.
    pub fn at(
        operation: &'static str,
        path: impl Into<PathBuf>,
        offset: u64,
        length: usize,
        source: io::Error,
    ) -> Error {
        Error(Arc::new(Inner { operation, path: path.into(), place: Some((offset, length)), source }))
    }

    /// The operation that failed, as a verb.
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// Whether this is an atomic write that the kernel refused to do, because it cannot keep it whole: EINVAL
    /// (this length or place, or the extents below) or EOPNOTSUPP (this file, or this kernel). Nothing was
    /// written, so the page can still be written another way.
    pub fn is_atomic_refusal(&self) -> bool {
        self.0.operation == ATOMIC_WRITE
            && matches!(self.0.source.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP))
    }

    /// Whether this is an atomic write for which the file system had no room: where it keeps writes whole by
    /// writing them elsewhere first, each needs some. Nothing was written, and a write in place may well
    /// succeed.
    pub fn is_atomic_without_room(&self) -> bool {
        self.0.operation == ATOMIC_WRITE
            && matches!(self.0.source.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
    }

    /// The file concerned.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Byte offset in the file, for transfers.
    pub fn offset(&self) -> Option<u64> {
        self.0.place.map(|(offset, _)| offset)
    }

    /// Kind of the operating system's error.
    pub fn kind(&self) -> io::ErrorKind {
        self.0.source.kind()
    }

    /// The operating system's error.
    pub fn io(&self) -> &io::Error {
        &self.0.source
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { operation, path, place, source } = &*self.0;
        write!(f, "cannot {operation} {}", path.display())?;
        if let Some((offset, length)) = place {
            write!(f, " ({length} bytes at offset {offset})")?;
        }
        write!(f, ": {source}")?;
        if let Some(advice) = advice(source) {
            write!(f, "; {advice}")?;
        }
        Ok(())
    }
}

/// What an operator can do about an error of the operating system.
fn advice(source: &io::Error) -> Option<&'static str> {
    Some(match source.raw_os_error()? {
        libc::ENOSPC => {
            "the file system is full: free some space on it or enlarge it, then start the database again; nothing committed is lost"
        }
        libc::EDQUOT => {
            "the disk quota is used up: raise it or free some space, then start the database again"
        }
        libc::EIO => {
            "the device reports a failure: look at the kernel log and the health of the disk before starting again"
        }
        libc::EROFS => {
            "the file system is mounted read-only: look at the kernel log for the reason and remount it"
        }
        libc::EACCES | libc::EPERM => "check the owner and the permissions of the file and of its directory",
        libc::EMFILE | libc::ENFILE => "too many open files: raise the limit (ulimit -n, LimitNOFILE=)",
        _ => return None,
    })
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "disk::Error({self})")
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0.source)
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        io::Error::new(error.kind(), error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_an_atomic_write_that_the_kernel_did_not_take() {
        let error = |operation, code| {
            Error::at(operation, "t.ibd", 0, 16384, io::Error::from_raw_os_error(code)).is_atomic_refusal()
        };
        assert!(error(ATOMIC_WRITE, libc::EINVAL) && error(ATOMIC_WRITE, libc::EOPNOTSUPP));
        // A page that may be half written is no refusal, nor is any other write.
        assert!(!error(ATOMIC_WRITE, libc::EIO) && !error(ATOMIC_WRITE, libc::ENOSPC));
        assert!(!error("write", libc::EINVAL) && !error("sync", libc::EINVAL));
        let without_room = |operation, code| {
            Error::at(operation, "t.ibd", 0, 16384, io::Error::from_raw_os_error(code))
                .is_atomic_without_room()
        };
        assert!(without_room(ATOMIC_WRITE, libc::ENOSPC) && without_room(ATOMIC_WRITE, libc::EDQUOT));
        assert!(!without_room("write", libc::ENOSPC) && !without_room(ATOMIC_WRITE, libc::EINVAL));
        let torn = Error::at(ATOMIC_WRITE, "t.ibd", 0, 16384, io::Error::other("half of it"));
        assert!(!torn.is_atomic_refusal());
    }

    #[test]
    fn names_file_place_and_remedy() {
        let full =
            Error::at("write", "t.ibd", 16384, 512, io::Error::from_raw_os_error(libc::ENOSPC)).to_string();
        for part in ["cannot write t.ibd", "512 bytes at offset 16384", "free some space"] {
            assert!(full.contains(part), "{full}");
        }
        let failed = Error::new("sync", "t.ibd", io::Error::from_raw_os_error(libc::EIO));
        assert!(failed.to_string().contains("kernel log"));
        assert_eq!(io::Error::from(failed.clone()).kind(), failed.kind());
    }
}
