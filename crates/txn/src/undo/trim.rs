//! Spare pages: what a slot keeps after the page where its next log starts.
//!
//! A log that ends without history (its transaction only inserted, or was rolled back) leaves the pages it
//! went on to in the slot's chain, for the next one. After a large log most of them are of no use to anybody:
//! purge frees them.

use std::sync::atomic::Ordering;

use pagestore::fsp;
use pagestore::page;

use super::tablespace::{Slot, UndoSpace, undo_id};
use crate::error::{Error, Interrupt};
use crate::purge::is_damage;
use crate::retry::retry;

/// A free slot that was taken to be trimmed. Goes back however that ends, and is noted again unless it is
/// done.
struct Trimming<'s> {
    space: &'s UndoSpace,
    slot: u16,
    state: Slot,
    done: bool,
}

impl Drop for Trimming<'_> {
    fn drop(&mut self) {
        self.space.give_back(self.slot, self.slot, self.state);
        if !self.done {
            self.space.note_spare_pages(self.slot);
        }
    }
}

impl UndoSpace {
    /// A slot was given back with many spare pages (a large transaction that only inserted, or was rolled
    /// back).
    pub fn note_spare_pages(&self, slot: u16) {
        let mut to_trim = self.to_trim.lock();
        if !to_trim.contains(&slot) {
            to_trim.push_back(slot);
        }
    }

    /// Frees the spare pages of slots that are not in use, as long as nobody says that it `must_stop`.
    pub async fn trim(&self, must_stop: impl Fn() -> bool) -> Result<(), Error> {
        let noted = self.to_trim.lock().len();
        for _ in 0..noted {
            let Some(slot) = self.to_trim.lock().pop_front() else { break };
            let Some(state) = self.free.take_number(slot) else {
                self.note_spare_pages(slot);
                continue;
            };
            let mut trimming = Trimming { space: self, slot, state, done: state.next_log.is_none() };
            while let (false, Some(place)) = (trimming.done, state.next_log) {
                if must_stop() {
                    return Ok(());
                }
                match retry(|| self.trim_after(slot, place.page)).await {
                    Ok(done) => trimming.done = done,
                    Err(error) if is_damage(&error) => {
                        tracing::error!(slot, %error, "an undo slot has damaged pages and is not used again before a restart");
                        self.free.retire(slot);
                        trimming.done = true;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Frees the page after `last`, if there is one; it must be a spare one. True when there is none left.
    ///
    /// A crash or an error may be the end of it: the pages that are left are a chain in both directions after
    /// each step.
    pub(super) fn trim_after(&self, slot: u16, last: u32) -> Result<bool, Interrupt> {
        let spare = page::next(&self.read_page(last)?);
        if spare == page::NULL_PAGE {
            return Ok(true);
        }
        let mut mtr = self.store.mtr()?;
        let directory = self.latch_directory(&mut mtr, slot)?;
        fsp::prepare_free(&mut mtr, self.segment, spare)?;
        let last = mtr.x(undo_id(last))?;
        let freed = mtr.x(undo_id(spare))?;
        let next = page::next(mtr.page(freed));
        let after = (next != page::NULL_PAGE).then(|| mtr.x(undo_id(next))).transpose()?;
        fsp::free_page(&mut mtr, self.segment, freed)?;
        mtr.write_u32(last, page::NEXT, next);
        if let Some(after) = after {
            let last = mtr.page_id(last).page;
            mtr.write_u32(after, page::PREVIOUS, last);
        }
        self.layout.forget_hint(&mut mtr, directory, slot, spare);
        mtr.commit();
        self.pages.fetch_sub(1, Ordering::Relaxed);
        Ok(next == page::NULL_PAGE)
    }
}
