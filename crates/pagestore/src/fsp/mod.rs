//! Tablespace structure: who owns which page of a file, and how the file grows.
//!
//! A tablespace is a sequence of pages. Page 0 carries the **tablespace header**; page 0 and every page
//! whose number is a multiple of the page size carry **extent descriptors**, two bits for each of the pages
//! that follow; the page after each of them is a change-buffer bitmap (all zero, part of the format). An
//! **extent** is 64 pages (at 16 KiB). It is free, or lent out page by page (a *fragment* extent), or owned
//! as a whole by one **segment**. A B-tree has two segments, one for its leaves and one for the levels above.
//! Segments are described by **inodes**, which live on inode pages. The first 32 pages of a segment are
//! fragments, so that small tables stay small; after that it takes whole extents, so that large tables are
//! laid out in runs.
//!
//! ```text
//! header ── FREE ──────── extents of nobody, initialised up to FREE_LIMIT
//!        ├─ FREE_FRAG ─── lent page by page, some left       (pages used in them: FRAG_N_USED)
//!        ├─ FULL_FRAG ─── lent page by page, none left
//!        ├─ INODES_FREE ─ inode pages with a free slot ─┐
//!        └─ INODES_FULL ─ inode pages without           ├─ inode ── FREE, NOT_FULL (NOT_FULL_N_USED), FULL extents
//!                                                       ┘        └─ fragment pages, one slot each
//! ```
//!
//! Invariants, all of which [`check()`] verifies:
//! - every initialised extent is in exactly the list its state says; lists are linked both ways and their
//!   lengths are right;
//! - FRAG_N_USED and NOT_FULL_N_USED equal the used bits of the extents in those lists;
//! - every used page of a fragment extent is a structure page or in exactly one fragment slot.
//!
//! **Latches.** The X latch of page 0 is the space latch: it is taken first and kept to the end of the
//! mini-transaction, so nothing else here can dead-lock. New pages are latched last.
//!
//! **Gather, then change.** Each public function first latches what it will touch (while the mini-transaction
//! has no changes, a miss is an [`crate::Interrupt::Wait`]); [`prepare`] does that ahead of a structure
//! change for pages that will be allocated in it, and [`reserve()`] makes sure beforehand that the file has
//! room, so that a full disk is reported while nothing has changed.
//!
//! Formats and rules are those of InnoDB; files made here are imported by MySQL and MariaDB, and their
//! allocators go on where this one stopped.

mod allocate;
mod check;
mod context;
mod extend;
mod extent;
mod free;
mod inode;
pub mod layout;
mod list;
mod reserve;
mod truncation;

pub use allocate::{allocate_page, prepare};
pub use check::{Breath, Gathered, Owner, Report, Run, SegmentReport, check, check_pages, gather};
pub use extend::{adopt_file_size, create_space_pages};
pub use extent::is_allocated;
pub use free::{free_page, free_segment_step, prepare_free};
pub use inode::{create_segment, segment_usage};
pub use layout::Layout;
pub use reserve::{Reserve, extents_for_delete, extents_for_insert, reserve};
pub(crate) use truncation::pages_of_header;
pub use truncation::{allocate_page_below, release_last_extent, space_pages};

/// Pages a new tablespace file has: the header, the bitmap, the first inode page, and room that lets every
/// MySQL version open the file after a crash (it insists on seven).
pub const INITIAL_PAGES: u32 = 7;

/// Where the inode of a segment lies; 10 bytes on disk, stored on the root page of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SegmentHeader {
    /// Tablespace of the segment.
    pub space: u32,
    /// Inode page.
    pub page: u32,
    /// Offset of the inode in that page.
    pub offset: u16,
}

impl SegmentHeader {
    /// Bytes on disk.
    pub const LEN: usize = 10;

    /// Reads the header at `offset` of `bytes`.
    pub fn read(bytes: &[u8], offset: usize) -> Self {
        Self {
            space: page::u32_at(bytes, offset),
            page: page::u32_at(bytes, offset + 4),
            offset: page::u16_at(bytes, offset + 8),
        }
    }

    /// The form on disk.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(&self.space.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.page.to_be_bytes());
        bytes[8..].copy_from_slice(&self.offset.to_be_bytes());
        bytes
    }
}

/// Which way a run of allocations goes, so that neighbours in key order become neighbours in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Keys ascend: the page after the hint is wanted.
    Up,
    /// Keys descend: the page before the hint is wanted.
    Down,
    /// No direction.
    None,
}

/// Pages of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Pages in use.
    pub used: u64,
    /// Pages in use or set aside for the segment.
    pub reserved: u64,
}

/// Tablespace flags whose layout this engine does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tablespace flags {flags:#x}: {why}")]
pub struct FlagsError {
    /// The flags found on page 0.
    pub flags: u32,
    /// What is wrong with them.
    pub why: &'static str,
}
