//! The seam between the page cleaner, which decides which pages to write, and the writer that gets them to
//! their files untorn (doublewrite, atomic writes, or plainly).

use crate::{WriteBatch, WrittenBatch};
use disk::{File, Result};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// Future of [`PageWriter::write`].
pub type PageWriteFuture = Pin<Box<dyn Future<Output = Result<WrittenBatch>> + Send>>;

/// Future of [`PageWriter::sync_written`].
pub type PageSyncFuture = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// Which pages that lie next to each other in a file go with one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContiguousRuns {
    /// Any number.
    Merged,
    /// Powers of two that begin at a multiple of their length: halves of one aligned pair, at least.
    Aligned,
}

/// Gets batches of pages into their files so that a crash at any time leaves each page old or new, or
/// recoverable. In a database this is `dblwr::ProtectedWriter`.
pub trait PageWriter: Send + Sync {
    /// Writes the batch. Completes when a read would return each page as written, and a crash leaves it old
    /// or new, or recoverable from the log. If it is not [durable](WrittenBatch::durable) then, a crash may
    /// undo any of the writes until the files are synced, which the writer remembers, so the log has to be
    /// kept. An error means that nothing may be assumed about any page of the batch.
    fn write(&self, batch: WriteBatch) -> PageWriteFuture;

    /// Makes durable what batches that were over before this call left unsynced. The caller says when: one
    /// sync serves many batches. Completes when all files have been tried; an error means that nothing may be
    /// assumed about what was unsynced, and that asking again would not help.
    fn sync_written(&self) -> PageSyncFuture;

    /// Makes durable what was written to this file.
    fn sync_file(&self, file: Arc<dyn File>) -> PageSyncFuture;

    /// The file is going to be removed, or was synced and is going to be closed: what was left unsynced of it
    /// does not matter.
    fn forget(&self, file: &Arc<dyn File>);

    /// How many pages have copies that the next start would compare with them, as far as is known.
    fn copies_kept(&self) -> u64 {
        0
    }

    /// How the next batch for this file is likely to be cut into requests. A hint: it may be cut otherwise,
    /// and nothing may depend on it.
    fn contiguous_runs(&self, _file: &Arc<dyn File>) -> ContiguousRuns {
        ContiguousRuns::Merged
    }
}
