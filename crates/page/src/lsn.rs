//! The log sequence number.

use std::fmt;

/// A byte position in the stream of the redo log. It only grows, over the whole life of a data directory; 0
/// is "never", the first byte of a new log has a higher one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Lsn(pub u64);

impl Lsn {
    /// The position `bytes` further on.
    pub const fn plus(self, bytes: u64) -> Lsn {
        Lsn(self.0 + bytes)
    }

    /// Number of bytes from `earlier` to this position, 0 when it is not earlier.
    pub const fn since(self, earlier: Lsn) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
