//! Applying changes to pages: each page on its own, several at a time, and only what its LSN says it lacks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use page::PageId;
use parking_lot::Mutex;
use redo::Lsn;

use crate::error::{Error, Interrupt};
use crate::flush::flush_list::FlushList;
use crate::pool::guard::Pin;
use crate::recovery::RecoverySummary;
use crate::recovery::changes::{Batch, Changes, List};
use crate::store::PageStore;

/// Pages read ahead together by one thread.
pub(crate) const READ_TOGETHER: usize = 32;

impl PageStore {
    /// Applies a batch that others follow.
    pub(super) fn apply_now(&self, batch: Batch, summary: &mut RecoverySummary) -> Result<(), Error> {
        if !self.applies_when_read() {
            return self.apply(batch, summary);
        }
        let started = self.env.now();
        summary.pages_changed += self.apply_later(batch)?;
        self.apply_the_rest_blocking()?;
        summary.applying += self.env.now().saturating_sub(started);
        summary.batches += 1;
        Ok(())
    }

    /// Applies a batch.
    pub(super) fn apply(&self, batch: Batch, summary: &mut RecoverySummary) -> Result<(), Error> {
        if batch.is_empty() {
            return Ok(());
        }
        let started = self.env.now();
        self.apply_in_parallel(batch, summary)?;
        summary.applying += self.env.now().saturating_sub(started);
        Ok(())
    }

    /// Makes files as long as the log says.
    pub(super) fn make_as_long(&self, sizes: &BTreeMap<u32, u32>) -> Result<(), Error> {
        let storage = &**self.env.storage();
        sizes.iter().try_for_each(|(space, pages)| self.spaces.extend_blocking(storage, *space, *pages))
    }

    /// Applies a batch, in parallel by page.
    fn apply_in_parallel(&self, batch: Batch, summary: &mut RecoverySummary) -> Result<(), Error> {
        let (sizes, pages, changes) = batch.into_parts();
        self.make_as_long(&sizes)?;
        let mut pages: Vec<_> = pages.into_iter().collect();
        pages.sort_unstable_by_key(|(page, _)| *page);
        let (next, changed) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(pages.len())));
        let corrupt = Mutex::new(Vec::new());
        let work = || self.apply_some(&pages, &changes, &next, &changed, &corrupt);
        let threads = self.options.recovery_threads.min(pages.len() / READ_TOGETHER + 1);
        if threads <= 1 {
            work()?;
        } else {
            std::thread::scope(|scope| {
                let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
                workers.into_iter().try_for_each(|worker| match worker.join() {
                    Ok(result) => result,
                    Err(panic) => std::panic::resume_unwind(panic),
                })
            })?;
        }
        let mut changed = changed.into_inner();
        // The flush list wants them in the order of their first change. All are pinned until they are in it.
        changed.sort_unstable_by_key(|(start, _)| *start);
        let mut list = self.flush_list.lock();
        for (start, pin) in &changed {
            list.enter(pin.frame(), *start);
        }
        drop(list);
        summary.pages_changed += changed.len() as u64;
        summary.pages_current += (pages.len() - changed.len()) as u64;
        summary.corrupt_pages.append(&mut corrupt.into_inner());
        summary.batches += 1;
        Ok(())
    }

    fn apply_some(
        &self,
        pages: &[(PageId, List)],
        changes: &Changes,
        next: &AtomicUsize,
        changed: &Mutex<Vec<(Lsn, Pin)>>,
        corrupt: &Mutex<Vec<PageId>>,
    ) -> Result<(), Error> {
        loop {
            let from = next.fetch_add(READ_TOGETHER, Ordering::Relaxed);
            let Some(group) =
                pages.get(from..pages.len().min(from + READ_TOGETHER)).filter(|g| !g.is_empty())
            else {
                return Ok(());
            };
            let wanted: Vec<PageId> = group
                .iter()
                .filter(|(_, list)| !changes.begin_with_init(*list))
                .map(|(page, _)| *page)
                .collect();
            self.prefetch(&wanted);
            for (page, list) in group {
                let applied = self
                    .pin_for_recovery(*page, changes.begin_with_init(*list))
                    .and_then(|pin| Ok((self.apply_to_page(&pin, *list, changes)?, pin)));
                match applied {
                    Ok((Some(start), pin)) => changed.lock().push((start, pin)),
                    Ok((None, _)) => {}
                    Err(Error::Corrupt { .. }) if self.options.skip_corrupt => {
                        tracing::error!("page {page} is damaged; its changes in the redo log are skipped");
                        corrupt.lock().push(*page);
                    }
                    Err(error) => return Err(error),
                }
            }
        }
    }

    fn pin_for_recovery(&self, page: PageId, initialised: bool) -> Result<Pin, Error> {
        if !initialised {
            return match self.look_up(page) {
                Some(pin) => Ok(pin),
                None => self.pin_blocking(page),
            };
        }
        loop {
            match self.pin_for_creation(page, false) {
                Ok(pin) => return Ok(pin),
                Err(Interrupt::Error(error)) => return Err(error),
                Err(Interrupt::Wait(wait)) => self.env.block_until(wait.event()),
            }
        }
    }

    /// Returns the start LSN of the first change that the page did not have.
    fn apply_to_page(&self, pin: &Pin, list: List, changes: &Changes) -> Result<Option<Lsn>, Error> {
        let frame = pin.frame();
        let id = frame.page_id();
        frame.latch.lock_exclusive();
        // SAFETY: pinned and X-latched until the latch is given back.
        let bytes = unsafe { frame.bytes_mut() };
        let applied = apply_list(bytes, id, list, changes);
        if let Ok(Some(applied)) = &applied {
            applied.note(&mut self.flush_list.lock());
            if applied.first.is_some() {
                frame.newest.store(applied.end.0, Ordering::Relaxed);
            }
        }
        frame.latch.unlock_exclusive();
        // One that is lost was made before the checkpoint.
        applied?.map(|applied| applied.first).ok_or_else(|| self.lost_page(id))
    }
}

/// What a page had and has now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Applied {
    /// Start LSN of the first change that it did not have.
    pub(super) first: Option<Lsn>,
    /// End of the last change that it had; 0: its contents did not matter.
    had: Lsn,
    /// End of the last change that the log has of it.
    end: Lsn,
}

impl Applied {
    /// Notes what the next recovery would find, if it came soon. A page may be in several batches, and has
    /// been in its file with what it had.
    pub(super) fn note(&self, list: &mut FlushList) {
        if self.first.is_some() {
            list.named_again(self.had);
        } else if self.had == self.end {
            list.named_and_written(self.had);
        }
    }
}

/// Does to the page what it lacks. `None`: it is not there.
pub(super) fn apply_list(
    bytes: &mut [u8],
    id: PageId,
    list: List,
    changes: &Changes,
) -> Result<Option<Applied>, Error> {
    let made = changes.begin_with_init(list);
    let had = if made { Lsn(0) } else { Lsn(page::lsn(bytes)) };
    let mut missing = changes.lacked(list, had);
    let first = missing.clone().next().map(|entry| changes.lsns(entry).0);
    if first.is_some() && !made && page::identity(bytes) != id {
        return Ok(None);
    }
    missing.try_for_each(|entry| changes.apply(entry, bytes, id)).map_err(|why| {
        Error::Recovery(format!(
            "page {id}: {why}; innodb_page_size may differ from what the log was written with"
        ))
    })?;
    let end = changes.end(list);
    if first.is_some() {
        bytes[page::LSN..page::LSN + 8].copy_from_slice(&end.0.to_be_bytes());
    }
    Ok(Some(Applied { first, had, end }))
}
