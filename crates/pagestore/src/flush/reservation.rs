//! Reserving dirty pages to be written.
//!
//! A reserved page is pinned and in flight until its [batch](crate::flush::batch) is over, or until it is
//! given back because it could not join one. So nobody evicts a page whose newest bytes are on their way, and
//! nobody writes it twice at the same time. No more than half of the pool is in flight.

use std::sync::atomic::Ordering;

use crate::pool::frame::FrameRef;
use crate::store::PageStore;

impl PageStore {
    /// Marks a dirty page for writing: pinned and in flight, unless it is already. A page that a writer has
    /// latched is left alone: it could not be copied now, and taking its turn it would keep others from being
    /// written, for ever when that writer waits for the frame of one of them.
    pub(crate) fn reserve_for_flush(&self, frame: FrameRef) -> bool {
        if !frame.is_dirty() || frame.latch.has_writer() || frame.in_flight.swap(true, Ordering::AcqRel) {
            return false;
        }
        if frame.pins.try_pin() {
            self.in_flight.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        frame.in_flight.store(false, Ordering::Release);
        false
    }

    /// Gives back a page reserved for flushing.
    pub(crate) fn release(&self, frame: FrameRef) {
        self.written(frame);
        frame.pins.unpin();
    }

    /// The write of a reserved page is over; the pin stays. Whether it was written to be evicted: from here
    /// on the mark is that of the next who reserves the page.
    pub(super) fn written(&self, frame: FrameRef) -> bool {
        let victim = frame.victim.swap(false, Ordering::Relaxed);
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        frame.in_flight.store(false, Ordering::Release);
        victim
    }

    /// How many more pages may be in flight to make frames free. A batch of the checkpoint finds room beside
    /// them: in a small pool two batches are all that may be in flight.
    /// `reserved`: pages that are reserved for that, and in no batch yet.
    pub(crate) fn lru_room(&self, reserved: usize) -> usize {
        let (batches, pages) = (self.batches_under_way(), self.batch_pages());
        let alone = batches.checkpoint > 0 || self.recovering.load(Ordering::Acquire);
        let kept = if alone { 0 } else { pages };
        let in_batches = (batches.lru_room() * pages).saturating_sub(reserved);
        self.flight_room().saturating_sub(kept).min(in_batches)
    }

    /// How many more pages may be in flight.
    pub(crate) fn flight_room(&self) -> usize {
        (self.frame_count() / 2).saturating_sub(self.in_flight.load(Ordering::Relaxed))
    }
}
