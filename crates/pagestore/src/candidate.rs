//! Pages on their way into a batch: why each may be written, and what has to be given back if it is not.

use disk::PageId;

use crate::frame::FrameRef;
use crate::gaps::Absent;
use crate::store::PageStore;

/// A page that is going to be written.
pub(crate) enum Candidate {
    /// Dirty, pinned and marked as in flight.
    Dirty(FrameRef),
    /// Clean, pinned and marked as in flight: it fills a gap.
    Clean(FrameRef),
    /// Not in the pool, and kept out of it: it fills a gap.
    Absent(Absent),
}

impl Candidate {
    pub(crate) fn page_id(&self) -> PageId {
        match self {
            Candidate::Dirty(frame) | Candidate::Clean(frame) => frame.page_id(),
            Candidate::Absent(absent) => absent.kept_out.page_id(),
        }
    }

    /// Whether it is written only to join others.
    pub(crate) fn is_filler(&self) -> bool {
        !matches!(self, Candidate::Dirty(_))
    }
}

impl PageStore {
    /// Gives back a page that is not written after all.
    pub(crate) fn give_back(&self, candidate: Candidate) {
        match candidate {
            Candidate::Dirty(frame) | Candidate::Clean(frame) => self.release(frame),
            Candidate::Absent(_) => {}
        }
    }
}
