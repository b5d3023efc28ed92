//! Why pages are written, for the figures.

use std::sync::atomic::{AtomicU64, Ordering};

use page::FlushPurpose;

use crate::flush::adaptive_flushing::Urgency;

/// Why a page is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum WriteReason {
    /// So that the age of the log stays at its goal.
    Age,
    /// More pages are dirty than a restart within its target may find.
    Dirty,
    /// The log is nearly full, or somebody waits for room in it.
    LogShort,
    /// The device has time to spare.
    Ahead,
    /// Nothing has changed for a while.
    Idle,
    /// Frames are wanted for other pages; with the neighbours in the file that go along.
    Frames,
    /// Everything that is dirty: a clean stop, a sharp checkpoint.
    All,
    /// A tablespace is exported, rebuilt or truncated.
    Tablespace,
    /// The pool becomes smaller.
    Resize,
}

const REASONS: usize = WriteReason::Resize as usize + 1;

impl WriteReason {
    /// Whose doublewrite segments the pages take.
    pub(crate) fn purpose(self) -> FlushPurpose {
        match self {
            WriteReason::Frames => FlushPurpose::Lru,
            _ => FlushPurpose::Checkpoint,
        }
    }

    /// Of what the controller has decided; `surplus`: mostly because too many pages are dirty.
    pub(crate) fn of(urgency: Urgency, surplus: bool) -> WriteReason {
        match urgency {
            Urgency::Idle => WriteReason::Idle,
            Urgency::Ahead => WriteReason::Ahead,
            Urgency::Paced if surplus => WriteReason::Dirty,
            Urgency::Paced => WriteReason::Age,
            Urgency::Async | Urgency::Sync => WriteReason::LogShort,
        }
    }
}

/// Pages written so far, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WrittenFor([u64; REASONS]);

impl WrittenFor {
    /// For this reason.
    #[must_use]
    pub fn pages(&self, reason: WriteReason) -> u64 {
        self.0[reason as usize]
    }
}

/// Counts them. A batch counts once for all of its pages.
#[derive(Default)]
pub(crate) struct ReasonCounters([AtomicU64; REASONS]);

impl ReasonCounters {
    pub(crate) fn add(&self, reason: WriteReason, pages: u64) {
        self.0[reason as usize].fetch_add(pages, Ordering::Relaxed);
    }

    pub(crate) fn sums(&self) -> WrittenFor {
        WrittenFor(std::array::from_fn(|reason| self.0[reason].load(Ordering::Relaxed)))
    }
}
