//! Truncation: the undo tablespace gives the room that it does not need any more back to the file system,
//! while clients work.
//!
//! It begins when the file is larger than `innodb_max_undo_log_size` and purge has freed so much that the
//! pages in use, twice over, fit into the front half of the file. From then on, after each batch of purge:
//!
//! 1. New pages come from the front ([`pagestore::fsp::allocate_page_below`]). Slots whose next log would
//!    start further back are **set aside**: no transaction gets them. There are always others.
//! 2. A slot that is set aside and has no history left gives up its pages, as many mini-transactions as
//!    pages. It is then like one that was never used, and free again.
//! 3. The last extents, when nothing is on them, leave the tablespace one by one.
//! 4. When those in front are reached, or a quarter of the file is past the end, and the checkpoint has
//!    passed that, the file is cut ([`pagestore::PageStore::truncate_space`]).
//!
//! Each of these is complete by itself: after a crash between any two the slots are found as ever, the file
//! is longer than the tablespace, and truncation begins again when it is worth it. A transaction that is
//! open, or a read view that keeps history, with a page near the end of the file keeps it from shrinking
//! below that page; everything after it is released.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use pagestore::fsp::{self, Direction};
use pagestore::page;
use pagestore::{Mtr, PageHandle};
use redo::Lsn;

use super::history::History;
use super::page::{Place, UNDO_SPACE};
use super::tablespace::{Slot, UndoSpace, corrupt, undo_id};
use crate::error::{Error, Interrupt};
use crate::purge::{is_damage, is_final};
use crate::retry::{retry, yield_now};

/// Extents that are left in front besides what is in use twice over: with this many free ones the file does
/// not grow again at once; fewer where files are to be smaller.
const EXTENTS_LEFT: (u64, u64) = (2, 12);
/// The file is cut when this part of it is past the end, though the end may come further to the front.
const WORTH_CUTTING: u32 = 4;

/// How long it is left alone after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(60);

/// State of truncation.
#[derive(Default)]
pub(crate) struct Truncation {
    /// `innodb_undo_log_truncate`.
    on: AtomicBool,
    /// `innodb_max_undo_log_size`.
    max_bytes: AtomicU64,
    /// The file is to be cut here; 0: it is not under way.
    below: AtomicU32,
    set_aside: Mutex<Vec<(u16, Slot)>>,
    /// Where the log has the last change of the tablespace's size, if it was made since the start.
    shrunk: Mutex<Option<Lsn>>,
    /// After a failure it is not begun before this.
    not_before: Mutex<Duration>,
    /// Times the file was cut.
    pub cuts: AtomicU64,
    /// Bytes given back.
    pub bytes: AtomicU64,
}

impl Truncation {
    /// Purge looks at it after its next batch.
    pub fn set_on(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    pub fn set_max_bytes(&self, bytes: u64) {
        self.max_bytes.store(bytes, Ordering::Relaxed);
    }
}

/// A slot that was set aside and is being emptied. It is set aside again, or free, however that ends.
struct Emptying<'s> {
    space: &'s UndoSpace,
    slot: u16,
    state: Slot,
}

impl Drop for Emptying<'_> {
    fn drop(&mut self) {
        self.space.give_back(self.slot, self.slot, self.state);
    }
}

impl UndoSpace {
    /// Whether it is under way.
    pub fn is_truncating(&self) -> bool {
        self.truncation.below.load(Ordering::Relaxed) != 0
    }

    /// Allocates a page of the undo segment.
    pub(super) fn allocate(
        &self,
        mtr: &mut Mtr<'_>,
        near: u32,
        direction: Direction,
    ) -> Result<PageHandle, Interrupt> {
        let below = self.truncation.below.load(Ordering::Relaxed);
        if below != 0
            && let Some(page) = fsp::allocate_page_below(mtr, self.segment, below)?
        {
            return Ok(page);
        }
        Ok(fsp::allocate_page(mtr, self.segment, near, direction)?)
    }

    /// A slot is not in use any more.
    pub fn give_back(&self, home: u16, number: u16, slot: Slot) {
        if self.is_beyond(&slot) {
            let mut set_aside = self.truncation.set_aside.lock();
            // Looked at again: who ends it gives back what is set aside.
            if self.is_beyond(&slot) && !self.free.is_retired(number) {
                set_aside.push((number, slot));
                return;
            }
        }
        self.free.give_back(home, number, slot);
    }

    /// Whether the slot's pages are in the way.
    fn is_beyond(&self, slot: &Slot) -> bool {
        let below = self.truncation.below.load(Ordering::Relaxed);
        below != 0 && slot.next_log.is_some_and(|place| place.page >= below)
    }

    /// A slot that was set aside, for a transaction that would get none.
    pub(super) fn take_set_aside(&self) -> Option<(u16, Slot)> {
        let mut set_aside = self.truncation.set_aside.lock();
        while let Some((number, slot)) = set_aside.pop() {
            if !self.free.is_retired(number) {
                return Some((number, slot));
            }
        }
        None
    }

    /// Goes on with truncation, or begins it, as far as it gets without waiting for anybody.
    pub async fn truncate(&self, history: &History, must_stop: impl Fn() -> bool) -> Result<(), Error> {
        match self.truncate_some(history, must_stop).await {
            Err(error) if !is_final(&error) => {
                // What purge does otherwise is not concerned.
                tracing::error!(%error, "the undo tablespace cannot be truncated; it is used as it is, and tried again in a while");
                *self.truncation.not_before.lock() = self.store.environment().now() + AFTER_FAILURE;
                self.end_truncation();
                Ok(())
            }
            other => other,
        }
    }

    async fn truncate_some(&self, history: &History, must_stop: impl Fn() -> bool) -> Result<(), Error> {
        if must_stop() || !self.goes_on().await? {
            return Ok(());
        }
        self.empty_slots(history, &must_stop).await?;
        self.shrink(&must_stop).await?;
        self.cut().await
    }

    /// Whether truncation is under way, or begins now.
    async fn goes_on(&self) -> Result<bool, Error> {
        let truncation = &self.truncation;
        let page_size = self.store.page_size();
        let file_pages = self.store.space(UNDO_SPACE).map_or(0, |space| space.pages);
        let below = truncation.below.load(Ordering::Relaxed);
        let max_bytes = truncation.max_bytes.load(Ordering::Relaxed);
        let is_large = page_size.offset_of(file_pages) > max_bytes;
        let begins = is_large && self.store.environment().now() >= *truncation.not_before.lock();
        if !truncation.on.load(Ordering::Relaxed) || below == 0 && !begins {
            if below != 0 {
                self.end_truncation();
            }
            return Ok(false);
        }
        let used = retry(|| Ok(fsp::segment_usage(&self.store, self.segment)?)).await?.used;
        let extent = u64::from(page_size.extent_pages());
        let left = (max_bytes / (extent << page_size.shift())).clamp(EXTENTS_LEFT.0, EXTENTS_LEFT.1);
        // The directory's pages stay where they are.
        let fixed = u64::from(self.directory.read().iter().max().map_or(0, |page| page + 1));
        let goal = ((2 * used).next_multiple_of(extent) + left * extent).max(fixed.next_multiple_of(extent));
        let worth = goal <= u64::from(file_pages / 2);
        if below == 0 && worth {
            tracing::info!(
                "the undo tablespace has {file_pages} pages of which {used} are used: it is cut to {goal} pages"
            );
            // Under the lock, so that nobody sees it begun who then finds it ended.
            let _set_aside = truncation.set_aside.lock();
            truncation.below.store(goal as u32, Ordering::Relaxed);
        } else if below != 0 && used.max(fixed) > u64::from(below) {
            tracing::info!("the undo tablespace has come to use {used} pages and is not truncated now");
            self.end_truncation();
        }
        Ok(self.is_truncating())
    }

    /// It is over, or given up: what is set aside may be used again.
    fn end_truncation(&self) {
        let mut set_aside = self.truncation.set_aside.lock();
        self.truncation.below.store(0, Ordering::Relaxed);
        for (number, slot) in set_aside.drain(..) {
            self.free.give_back(number, number, slot);
        }
    }

    /// Takes the pages of slots that are in the way and have no history.
    async fn empty_slots(&self, history: &History, must_stop: &impl Fn() -> bool) -> Result<(), Error> {
        let beyond = self.free.take_all(|slot| self.is_beyond(slot));
        self.truncation.set_aside.lock().extend(beyond);
        let mut candidates: Vec<u16> =
            self.truncation.set_aside.lock().iter().map(|(number, _)| *number).collect();
        candidates.retain(|number| !history.is_there(*number));
        for number in candidates {
            let taken = {
                let mut set_aside = self.truncation.set_aside.lock();
                let position = set_aside.iter().position(|(other, _)| *other == number);
                position.map(|position| set_aside.swap_remove(position))
            };
            let Some((slot, state)) = taken else { continue };
            // It may have been in use meanwhile.
            let has_history = history.is_there(slot);
            let mut emptying = Emptying { space: self, slot, state };
            if has_history || must_stop() {
                continue;
            }
            match self.empty_slot(slot, state).await {
                Ok(()) => emptying.state = Slot::default(),
                Err(error) if is_damage(&error) => {
                    tracing::error!(slot, %error, "an undo slot has damaged pages and is not used again before a restart");
                    self.free.retire(slot);
                }
                Err(error) => return Err(error),
            }
            yield_now().await;
        }
        Ok(())
    }

    /// Frees all pages of a slot without history that is nobody's.
    pub(super) async fn empty_slot(&self, slot: u16, state: Slot) -> Result<(), Error> {
        let Some(next_log) = state.next_log else { return Ok(()) };
        while !retry(|| self.advance_head(slot, next_log)).await? {}
        while !retry(|| self.trim_after(slot, next_log.page)).await? {}
        retry(|| self.free_only_page(slot, next_log.page)).await
    }

    /// Frees the page of a slot that has no other. The slot is then as if it had never been used.
    fn free_only_page(&self, slot: u16, number: u32) -> Result<(), Interrupt> {
        let mut mtr = self.store.mtr()?;
        let layout = self.layout;
        let directory = self.latch_directory(&mut mtr, slot)?;
        fsp::prepare_free(&mut mtr, self.segment, number)?;
        let freed = mtr.x(undo_id(number))?;
        let is_only = layout.head(mtr.page(directory), slot).page == number
            && page::next(mtr.page(freed)) == page::NULL_PAGE;
        if !is_only {
            return Err(corrupt(number, "the slot has other pages than its chain says").into());
        }
        fsp::free_page(&mut mtr, self.segment, freed)?;
        layout.write_head(&mut mtr, directory, slot, Place::NOWHERE);
        layout.write_hint(&mut mtr, directory, slot, None);
        mtr.commit();
        self.pages.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }

    /// Takes the last extents out of the tablespace, down to the goal.
    async fn shrink(&self, must_stop: &impl Fn() -> bool) -> Result<(), Error> {
        loop {
            let below = self.truncation.below.load(Ordering::Relaxed);
            if below == 0 || must_stop() {
                return Ok(());
            }
            let step = || {
                let mut mtr = self.store.mtr()?;
                let pages = fsp::release_last_extent(&mut mtr, self.segment, below)?;
                Ok(pages.map(|_| mtr.commit()))
            };
            match retry(step).await? {
                Some(lsn) => *self.truncation.shrunk.lock() = Some(lsn),
                None => return Ok(()),
            }
            yield_now().await;
        }
    }

    /// Cuts the file, if that is worth it and the checkpoint is far enough.
    async fn cut(&self) -> Result<(), Error> {
        let truncation = &self.truncation;
        let below = truncation.below.load(Ordering::Relaxed);
        let file_pages = self.store.space(UNDO_SPACE).map_or(0, |space| space.pages);
        let pages = retry(|| Ok(fsp::space_pages(&self.store, UNDO_SPACE)?)).await?;
        if below == 0 || pages > below && file_pages.saturating_sub(pages) < file_pages / WORTH_CUTTING {
            return Ok(());
        }
        // After a restart it is not known, but certainly before now.
        let since = *truncation.shrunk.lock().get_or_insert_with(|| self.store.last_change());
        let cut = self.store.truncate_space(UNDO_SPACE, pages, since).await?;
        if cut > 0 {
            let bytes = self.store.page_size().offset_of(cut);
            tracing::info!("the undo tablespace was cut to {pages} pages: {bytes} bytes given back");
            truncation.cuts.fetch_add(1, Ordering::Relaxed);
            truncation.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        if self.store.space(UNDO_SPACE).is_none_or(|space| space.pages <= below) {
            self.end_truncation();
        }
        Ok(())
    }
}
