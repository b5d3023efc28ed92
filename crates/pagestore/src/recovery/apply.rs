//! Applying changes to pages: each page on its own, several at a time, and only what its LSN says it lacks.

use std::sync::atomic::{AtomicUsize, Ordering};

use page::PageId;
use parking_lot::Mutex;
use redo::Lsn;

use crate::error::{Error, Interrupt};
use crate::pool::guard::Pin;
use crate::recovery::RecoverySummary;
use crate::recovery::changes::{Batch, Changes, Entry};
use crate::store::PageStore;

/// Pages read ahead together by one thread.
pub(crate) const READ_TOGETHER: usize = 32;

impl PageStore {
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

    /// Applies a batch, in parallel by page.
    fn apply_in_parallel(&self, batch: Batch, summary: &mut RecoverySummary) -> Result<(), Error> {
        for (space, pages) in &batch.sizes {
            self.spaces.extend_blocking(&**self.env.storage(), *space, *pages)?;
        }
        let mut pages: Vec<_> = batch.pages.into_iter().collect();
        pages.sort_unstable_by_key(|(page, _)| *page);
        let (next, changed) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(pages.len())));
        let corrupt = Mutex::new(Vec::new());
        let work = || self.apply_some(&pages, &batch.changes, &next, &changed, &corrupt);
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
        pages: &[(PageId, Vec<Entry>)],
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
                .filter(|(_, entries)| !changes.begin_with_init(entries))
                .map(|(page, _)| *page)
                .collect();
            self.prefetch(&wanted);
            for (page, entries) in group {
                let applied = self
                    .pin_for_recovery(*page, changes.begin_with_init(entries))
                    .and_then(|pin| Ok((self.apply_to_page(&pin, entries, changes)?, pin)));
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
    fn apply_to_page(&self, pin: &Pin, entries: &[Entry], changes: &Changes) -> Result<Option<Lsn>, Error> {
        let frame = pin.frame();
        let id = frame.page_id();
        frame.latch.lock_exclusive();
        // SAFETY: pinned and X-latched until the end of this function.
        let bytes = unsafe { frame.bytes_mut() };
        let had = if changes.begin_with_init(entries) { Lsn(0) } else { Lsn(page::lsn(bytes)) };
        let mut missing = entries.iter().filter(|entry| had < changes.lsns(entry).1);
        let first = missing.clone().next().map(|entry| changes.lsns(entry).0);
        if first.is_some() && !changes.begin_with_init(entries) && page::identity(bytes) != id {
            // It was made before the checkpoint.
            frame.latch.unlock_exclusive();
            return Err(self.lost_page(id));
        }
        let applied = missing.try_for_each(|entry| changes.apply(entry, bytes, id));
        let end = entries.last().map_or(0, |last| changes.lsns(last).1.0);
        // What the next recovery would find, if it came soon. A page may be in several batches, and has been
        // in its file with what it had.
        if first.is_some() {
            self.flush_list.lock().named_again(had);
        } else if had.0 == end {
            self.flush_list.lock().named_and_written(had);
        }
        if first.is_some() {
            bytes[page::LSN..page::LSN + 8].copy_from_slice(&end.to_be_bytes());
            frame.newest.store(end, Ordering::Relaxed);
        }
        frame.latch.unlock_exclusive();
        applied.map_err(|why| {
            Error::Recovery(format!(
                "page {id}: {why}; innodb_page_size may differ from what the log was written with"
            ))
        })?;
        Ok(first)
    }
}
