//! The buffer pool extension as the buffer pool sees it: a place besides the data files where clean pages may
//! be found faster.
//!
//! The pool knows this trait only. What it promises, and what it asks for:
//!
//! - A page is *offered* only when it is clean and its newest bytes are in its data file, under its S latch.
//!   They may still have to be synced; then the checkpoint has not passed them, and recovery ends the entry
//!   of every page that it finds in the log.
//! - A page is *invalidated* under its X latch, before the mini-transaction that makes it dirty is appended
//!   to the log; also when it is reinitialised or freed, which are changes like any other. As long as a page
//!   is in the pool nobody looks for it in the tier. Hence an entry is always what the data file holds, and a
//!   read that began with [`BufferPoolExtension::find`] gives the current page however long it takes: the
//!   page cannot be changed before the read is over, since it would have to be in the pool for that.
//! - Whatever the tier returns is checked ([`BufferPoolExtension::verify`]) before anybody sees it. A page
//!   that is not the one asked for, in the version asked for, is a miss, and the same read goes on with the
//!   data file.
//! - Nothing here may wait, but for [`BufferPoolExtension::before_checkpoint`].
//!
//! The pool's tier may be replaced or removed at any time; reads under way keep the one they began with.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use disk::{File, TaskFuture};

use crate::{Lsn, PageId};

/// Where a page was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The buffer pool extension.
    Tier,
    /// The tablespace's own file.
    DataFile,
}

/// What the pool knows of how a page was used since it came in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct History {
    /// Wanted at least once more some time after its first access (or made in memory).
    pub touched_again: bool,
    /// Came by read-ahead and nobody wanted it yet.
    pub read_ahead_unused: bool,
    /// Came by the read-ahead of a scan.
    pub from_scan: bool,
}

/// A page found in the tier. Read exactly one page from `file` at `offset`, then ask
/// [`BufferPoolExtension::verify`].
pub struct Found {
    /// The tier's file; readable at `offset` with the engine's storage.
    pub file: Arc<dyn File>,
    /// Byte offset of the slot.
    pub offset: u64,
    /// To be kept until the page was verified.
    pub ticket: Ticket,
}

/// The right to read one slot. Its contents belong to the tier.
pub struct Ticket {
    /// The page that was looked for.
    pub page: PageId,
    /// What the tier wants to know again when the page is verified: the entry (LSN, checksum, slot …).
    pub entry: [u64; 3],
    /// Kept as long as the ticket; the tier may refuse to rewrite the slot as long as it is shared.
    pub hold: Option<Arc<dyn Any + Send + Sync>>,
}

/// Why a page was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Off, suspended or switched off after an error.
    Off,
    /// This version is in the tier already.
    Present,
    /// Not wanted a second time yet.
    TouchedOnce,
    /// Of a scan.
    Scan,
    /// Read ahead and never used.
    ReadAheadUnused,
    /// The write budget is used up.
    Budget,
    /// The regions to be written are all on their way.
    Busy,
}

/// What became of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    /// Copied.
    Taken,
    /// Not, for this reason.
    Refused(Refusal),
}

/// A second place for clean pages. See the module's essay for who calls what when.
pub trait BufferPoolExtension: Send + Sync {
    /// Where the page may be read from. A look-up in memory; never waits. No I/O may be submitted from here.
    fn find(&self, page: PageId) -> Option<Found>;

    /// Whether `image`, just read, is a whole page and as it was stored: space, page number, LSN and checksum
    /// agree with the entry. The pool does not compute the checksum again. If not, the tier drops the entry
    /// and counts it, and the pool reads the data file.
    fn verify(&self, ticket: &Ticket, image: &[u8]) -> bool;

    /// The read itself failed. The tier decides whether to switch itself off; the pool reads the data file.
    fn read_failed(&self, ticket: Ticket, error: &disk::Error);

    /// How long a read took, from submission to completion, when it succeeded. Called for reads of either
    /// source, in completions: must be short.
    fn read_took(&self, from: Source, time: Duration);

    /// Whether the tier would take this page now, so that the pool does not latch pages for nothing. Counts
    /// no refusal but its own.
    fn wants(&self, page: PageId, history: History) -> bool;

    /// Offers a clean page, under its S latch. The tier copies it or refuses; it never waits. `image` is the
    /// page in memory: its checksum fields and the LSN word of its trailer may be out of date, so the copy
    /// has to be
    /// [sealed](crate::seal()). `lsn` is the page's LSN, at least 1.
    fn offer(&self, page: PageId, lsn: Lsn, image: &[u8], history: History) -> Offered;

    /// The page is about to be changed (under its X latch), or was found in the log by recovery. Short.
    fn invalidate(&self, page: PageId);

    /// The tablespace was dropped, closed, or its file exchanged. No read of its pages is under way.
    fn invalidate_space(&self, space: u32);

    /// Completes when a crash from now on can no longer serve a page that was changed before `lsn`: what was
    /// invalidated until this call is durably so. The checkpoint moves to `lsn` after that. Immediate when
    /// nothing is kept over a crash. A failure is the tier's to handle (it switches itself off, durably
    /// unusable).
    fn before_checkpoint(&self, lsn: Lsn) -> TaskFuture;

    /// Whether pages can be found or offered at present.
    fn is_on(&self) -> bool;

    /// Whether it would take any page at present, so that the pool need not look for pages to offer. A load
    /// or two.
    fn takes_pages(&self) -> bool {
        self.is_on()
    }

    /// Bytes of memory the tier takes at present. The pool has that much less for frames. Short.
    fn memory_bytes(&self) -> usize {
        0
    }
}
