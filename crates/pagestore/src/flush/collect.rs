//! Choosing dirty pages to be written.
//!
//! The oldest changes come off the flush list, the pages of one tablespace out of the page table, and victims
//! from the LRU list (`cleaner.rs`, with their [neighbours](crate::flush::neighbours)). What a reservation is
//! says `reservation.rs`.

use std::time::Duration;

use redo::Lsn;

use crate::flush::batch::Collected;
use crate::flush::reason::WriteReason;
use crate::pool::frame::FrameRef;
use crate::store::PageStore;

/// What to collect.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Which {
    /// Pages first changed before this LSN, oldest first.
    OlderThan(Lsn),
    /// Pages of one tablespace.
    Space(u32),
}

impl PageStore {
    /// Collects up to `pages_max` pages and starts writing them in the background; the writes may take as
    /// long as `spread`.
    pub(crate) fn start_flush(
        &self,
        which: Which,
        pages_max: usize,
        reason: WriteReason,
        spread: Duration,
    ) -> Collected {
        let (candidates, skipped) = match which {
            Which::OlderThan(lsn) => self.candidates_by_age(lsn, pages_max),
            Which::Space(space) => self.candidates_of_space(space, pages_max),
        };
        let mut collected = self.start_batches(candidates, reason, spread);
        collected.skipped += skipped;
        collected
    }

    fn candidates_by_age(&self, before: Lsn, pages_max: usize) -> (Vec<FrameRef>, usize) {
        let pages_max = pages_max.min(self.flight_room());
        let list = self.flush_list.lock();
        let (mut candidates, mut skipped) = (Vec::with_capacity(pages_max.min(list.len())), 0);
        // Pages changed again while in flight sit near the head; the bound keeps the mutex short all the
        // same.
        let steps_max = pages_max.saturating_mul(2).saturating_add(1024);
        for (index, _) in list.oldest_first().take(steps_max).take_while(|(_, start)| *start < before) {
            if candidates.len() == pages_max {
                break;
            }
            let frame = self.frames.get(index);
            if self.reserve_for_flush(frame) {
                candidates.push(frame);
            } else {
                skipped += 1;
            }
        }
        (candidates, skipped)
    }

    fn candidates_of_space(&self, space: u32, pages_max: usize) -> (Vec<FrameRef>, usize) {
        let pages_max = pages_max.min(self.flight_room());
        let (mut candidates, mut skipped) = (Vec::new(), 0);
        for frame in self.frames_of(space) {
            if !frame.is_dirty() || frame.page_id().space != space {
                continue;
            }
            if candidates.len() < pages_max && self.reserve_for_flush(frame) {
                if frame.page_id().space == space {
                    candidates.push(frame);
                } else {
                    self.release(frame);
                }
            } else {
                skipped += 1;
            }
        }
        (candidates, skipped)
    }
}
