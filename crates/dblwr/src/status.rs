//! What the page writers have done, for status variables.

use disk::Histogram;
use std::sync::atomic::{AtomicU64, Ordering};

/// Something for each way that a page takes to its place.
#[derive(Clone, Debug, Default)]
pub struct WriteTimes<T> {
    /// Kept whole by the device or the file system.
    pub atomic: T,
    /// Through the doublewrite.
    pub doublewrite: T,
    /// Without a copy.
    pub plain: T,
}

macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Work done so far.
        #[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
        #[non_exhaustive]
        pub struct Status {
            $($(#[$doc])* pub $name: u64,)*
        }

        #[derive(Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: AtomicU64,)*
            pub(crate) write_times: WriteTimes<Histogram>,
        }

        impl Counters {
            pub(crate) fn status(&self) -> Status {
                Status { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }
    };
}

figures! {
    /// Pages written to their places.
    pages,
    /// Batches of pages.
    batches,
    /// Syncs of doublewrite and data files.
    syncs,
    /// Pages that went to a doublewrite file first (`Innodb_dblwr_pages_written`).
    doublewrite_pages,
    /// Writes of a segment of a doublewrite file (`Innodb_dblwr_writes`).
    doublewrite_writes,
    /// Pages written without a copy because recovery rebuilds them from the redo log without reading them.
    recreatable_pages,
    /// Pages written in place without protection, because the mode is OFF.
    plain_pages,
    /// Atomic writes, each of a page or of several that lie back to back.
    atomic_writes,
    /// Pages written by them.
    atomic_pages,
    /// Pages written each by a write of its own, which the storage keeps whole without being told.
    single_pages,
    /// Atomic writes that the storage refused.
    atomic_refusals,
    /// Atomic writes for which the file system had no room; their pages took the way through the doublewrite.
    atomic_without_room,
    /// Bytes of pages of tables written to their places.
    bytes_data,
    /// Bytes of pages of the undo tablespace written to their places.
    bytes_undo,
    /// Bytes written to doublewrite files.
    bytes_doublewrite,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, amount: usize) {
        counter.fetch_add(amount as u64, Ordering::Relaxed);
    }
}
