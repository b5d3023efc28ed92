//! Recovery: from the files as a crash left them, and the redo log, to the pages as they were at the end of
//! the log.
//!
//! ```text
//!   redo log ──scan──▶ changes by page (a batch that fits in memory) ──▶ each page, when it is read
//! ```
//!
//! Redo is physical and page-addressed, so pages do not depend on each other, and this code knows nothing of
//! what is on them. A change is applied to a page only if the page's LSN is below the end LSN of the
//! mini-transaction it belongs to: a page says by its LSN which changes it has. A page whose changes begin
//! with its initialisation is not even read: what the file holds does not matter. That holds for the last
//! initialisation in the whole log: changes before it are left out, also when they come in an earlier batch.
//!
//! A start does not wait for the pages ([`unapplied`]). When the changes do not fit into memory at once,
//! what did not fit is read from the log once more; then all batches but the last are applied before the
//! start goes on. Where damaged pages are to be left out, all are, and it is known then which pages these
//! are ([`apply`]). The recovered pages are dirty pages of the pool like any others, entered into the flush
//! list with an LSN that is not above the start of the first change applied; the checkpoint does not pass
//! what is not applied. Pages are written only after the first scan has found the end of the log and made
//! sure that it is durable.
//!
//! Torn pages must have been repaired before (doublewrite). Tablespaces the caller does not name were
//! dropped: their changes are skipped. One whose file is missing or not what it should be keeps nobody else
//! from being recovered: its changes are lost, which is told before the log gives them up. Files that the log
//! does not name are not even opened.

pub(crate) mod apply;
mod changes;
pub(crate) mod page_map;
pub(crate) mod progress;
pub(crate) mod rates;
pub(crate) mod unapplied;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use page::{BufferPoolExtension, PageId};
use redo::{Lsn, Record, ScanSummary};

use self::progress::{Pass, Phase};
use crate::counters::Counter;
use crate::error::Error;
use crate::recovery::changes::Batch;
use crate::recovery::page_map::{PageMap, SpaceSet};
use crate::recovery::rates::Kind;
use crate::store::PageStore;

/// Frames of a pool that changed pages of a batch leave to other pages, where it is not small.
const FRAMES_LEFT: usize = 32;
/// Bytes a batch of changes may always have.
const BATCH_BYTES_MIN: usize = 1 << 20;
/// And at most: places in them have 32 bits.
const BATCH_BYTES_MAX: usize = 1 << 30;

/// What recovery did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoverySummary {
    /// Where the scan of the log began.
    pub checkpoint: Lsn,
    /// End of the log.
    pub end: Lsn,
    /// Number of this opening of the log.
    pub run: u32,
    /// Mini-transactions found in the log.
    pub mini_transactions: u64,
    /// Bytes of their records.
    pub bytes: u64,
    /// Pages to which changes were applied (a page counts once per batch).
    pub pages_changed: u64,
    /// Pages looked at that had all changes already.
    pub pages_current: u64,
    /// Pages that get their changes when they are read, or in the background
    /// ([`Options::apply_when_read`](crate::Options)).
    pub pages_left: u64,
    /// Batches.
    pub batches: u64,
    /// How long pages were read and changed; the rest is reading the log.
    pub applying: Duration,
    /// Tablespaces that the log names and that do not exist any more.
    pub skipped_spaces: Vec<u32>,
    /// Tablespaces that the log has changes of and that cannot be opened, and why: they are without these
    /// changes now.
    pub lost_spaces: Vec<(u32, String)>,
    /// Damaged pages that were left as they are, without their changes
    /// ([`Options::skip_corrupt`](crate::Options)).
    pub corrupt_pages: Vec<PageId>,
}

/// The spaces that take part.
#[derive(Default)]
struct Known {
    present: SpaceSet,
    skipped: SpaceSet,
    lost: Vec<(u32, String)>,
    /// The space looked at last, and whether it takes part.
    last: Option<(u32, bool)>,
    /// Where each page is initialised for the last time.
    inits: PageMap<Lsn>,
    /// Files that were opened, and how long that took.
    opened: u64,
    opening: Duration,
}

/// How much a recovery had to do beside what its summary tells.
#[derive(Default)]
struct Work {
    /// When it began.
    started: Duration,
    /// Bytes of log that were read, those read twice counted twice.
    log: u64,
    /// Files opened and synced, and how long that took.
    files: u64,
    files_took: Duration,
}

impl Known {
    /// Whether the page of this record is reinitialised later, so that the record does not matter.
    fn is_superseded(&self, start: Lsn, record: &Record<'_>) -> bool {
        let page = match record {
            Record::Write { page, .. } | Record::Fill { page, .. } | Record::Move { page, .. } => page,
            _ => return false,
        };
        self.inits.get(page).is_some_and(|init| start < *init)
    }

    /// Opens the file that the record names where it is the first to do so, and notes an initialisation.
    /// Returns whether the record counts.
    fn note(
        &mut self,
        store: &PageStore,
        start: Lsn,
        record: &Record<'_>,
        on_lost: &mut OnLost<'_>,
    ) -> Result<bool, Error> {
        let space = space_of(record);
        let takes = match self.last {
            Some((last, takes)) if last == space => takes,
            _ => {
                self.meet(store, space, on_lost)?;
                self.takes(space)
            }
        };
        self.last = Some((space, takes));
        if let Record::Init { page } = record {
            self.inits.insert(*page, start);
        }
        Ok(takes)
    }

    /// Opens the file of a tablespace that the log names for the first time.
    fn meet(&mut self, store: &PageStore, space: u32, on_lost: &mut OnLost<'_>) -> Result<(), Error> {
        if self.present.contains(&space) || self.skipped.contains(&space) {
            return Ok(());
        }
        let began = store.env.now();
        let opened = store.spaces.get_for_recovery(&**store.env.storage(), space);
        self.opening += store.env.now().saturating_sub(began);
        self.opened += 1;
        match opened {
            Ok(_) => drop(self.present.insert(space)),
            Err(Error::NoSuchSpace(_)) => {
                self.skipped.insert(space);
                tracing::info!(
                    "the redo log has changes of tablespace {space}, which does not exist any more; skipped"
                );
            }
            Err(error @ Error::Tablespace { .. }) => {
                let why = error.to_string();
                tracing::error!(
                    "the redo log has changes of tablespace {space}, which cannot be made: {why}"
                );
                on_lost(space, &why)?;
                self.skipped.insert(space);
                self.lost.push((space, why));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn takes(&self, space: u32) -> bool {
        self.present.contains(&space)
    }
}

/// Told of a tablespace that loses the changes that the log has of it, before they are lost.
type OnLost<'a> = dyn FnMut(u32, &str) -> Result<(), Error> + 'a;

impl PageStore {
    /// Makes the given tablespaces (id and file) known and applies the redo log to them. Only files that the
    /// log names are opened. To be called once, before anything is changed, after torn pages have been
    /// repaired. Blocks; not for background tasks.
    ///
    /// # Errors
    /// When the log or a page is damaged, or a file cannot be read or extended. Nothing is lost by trying
    /// again.
    pub fn recover(&self, spaces: &[(u32, PathBuf)]) -> Result<RecoverySummary, Error> {
        self.recover_noting(spaces, &mut |_, _| Ok(()))
    }

    /// The same. A tablespace of which the log has changes, but whose file is missing, cut or another one's,
    /// loses them: `on_lost` is told, with the reason, while the log still has them. An error of it ends the
    /// recovery.
    ///
    /// # Errors
    /// As [`PageStore::recover`].
    pub fn recover_noting(
        &self,
        spaces: &[(u32, PathBuf)],
        on_lost: &mut OnLost<'_>,
    ) -> Result<RecoverySummary, Error> {
        self.recovering.store(true, Ordering::Release);
        let result = self.recover_spaces(spaces, on_lost);
        if result.is_ok() {
            self.flush_list.lock().saw(self.redo.current());
            self.opened_at.store(self.redo.current().0, Ordering::Relaxed);
            self.recovering.store(false, Ordering::Release);
            if self.options.background {
                self.apply_in_background();
            }
        }
        result
    }

    /// Remembers how fast this machine recovers, for the page cleaner, which keeps the next recovery short.
    fn note_rates(&self, summary: &RecoverySummary, work: &Work) {
        let time = &self.restart_time;
        let scanning = self.env.now().saturating_sub(work.started + summary.applying + work.files_took);
        // About half of what may be searched is. A log that is short beside that says nothing.
        let search = self.found_by_restart(&self.flush_list.lock()).search;
        if work.log >= search / 4 {
            time.recovered(Kind::Log, work.log + search / 2, scanning);
        }
        time.recovered(Kind::Files, work.files, work.files_took);
        let read = self.counters.sum(Counter::PagesRead);
        self.note_rate_of_pages(summary.pages_changed + summary.pages_current, read, summary.applying);
    }

    /// The same of the pages: a number of them got their changes in this time, for which some were read.
    pub(super) fn note_rate_of_pages(&self, pages: u64, read: u64, took: Duration) {
        // Those that had to be written to make room; others may have been written as well meanwhile.
        let room = pages.saturating_sub(self.frame_count() as u64);
        let written = self.counters.sum(Counter::PagesFlushed).min(room);
        // Pages that begin with their initialisation are made in no time, and say nothing about the disk.
        if pages > 0 && 2 * read >= pages {
            self.restart_time.recovered(Kind::Pages, read + written, took);
        }
    }

    /// Makes the given tablespaces known without applying the redo log, to read what can be read: from then
    /// on nothing must be changed.
    ///
    /// # Errors
    /// When two have the same id.
    fn open_without_redo(&self, spaces: &[(u32, PathBuf)]) -> Result<(), Error> {
        let unknown = |(space, _): &&(u32, PathBuf)| self.spaces.info(*space).is_none();
        spaces.iter().filter(unknown).try_for_each(|(space, path)| self.spaces.add(*space, path, None))
    }

    fn recover_spaces(
        &self,
        spaces: &[(u32, PathBuf)],
        on_lost: &mut OnLost<'_>,
    ) -> Result<RecoverySummary, Error> {
        let mut work = Work { started: self.env.now(), ..Work::default() };
        self.open_without_redo(spaces)?;
        let mut known = Known::default();
        let budget = self.bytes_at_a_time(self.frame_count());
        let pages_max = self.pages_at_a_time(self.frame_count());
        let mut summary = RecoverySummary::default();
        let mut batch = Batch::default();
        // From here on changes did not fit into the batch.
        let mut left = None;
        let mut progress = Pass::new(self, Phase::Reading);
        let tier = self.tier.get();
        let scanned = self.redo.scan(
            |start, end, bytes| {
                if let Some(tier) = &tier {
                    invalidate_changed(&**tier, bytes);
                }
                if left.is_none() && batch.is_larger_than(budget, pages_max) {
                    left = Some(start);
                }
                for record in redo::records(bytes) {
                    let record = record.map_err(|malformed| makes_no_sense(start, malformed))?;
                    if known.note(self, start, &record, on_lost)? && left.is_none() {
                        batch.add(start, end, record);
                    }
                }
                Ok::<_, Error>(())
            },
            |done, most| progress.report(self, done, most),
        )?;
        note(&mut summary, &scanned);
        let syncing = self.env.now();
        if scanned.mini_transactions > 0 {
            self.sync_files()?;
        }
        work.log = summary.end.since(left.unwrap_or(summary.end)) + summary.end.since(summary.checkpoint);
        work.files = known.opened;
        work.files_took = known.opening + self.env.now().saturating_sub(syncing);
        summary.run = self.redo.epoch();
        if let Some(left) = left {
            // It was collected before the initialisations further on were known.
            batch.forget_superseded(&known.inits);
            self.apply_now(std::mem::take(&mut batch), &mut summary)?;
            let mut progress = Pass::new(self, Phase::Applying);
            self.redo.scan_again(
                left,
                |start, end, bytes| {
                    if batch.is_larger_than(budget, pages_max) {
                        self.apply_now(std::mem::take(&mut batch), &mut summary)?;
                    }
                    for record in redo::records(bytes) {
                        let record = record.map_err(|malformed| makes_no_sense(start, malformed))?;
                        if known.takes(space_of(&record)) && !known.is_superseded(start, &record) {
                            batch.add(start, end, record);
                        }
                    }
                    Ok::<_, Error>(())
                },
                |done, most| progress.report(self, done, most),
            )?;
        }
        if self.applies_when_read() {
            summary.pages_left = self.apply_later(batch)?;
        } else {
            self.apply(batch, &mut summary)?;
        }
        self.note_rates(&summary, &work);
        summary.lost_spaces = known.lost;
        summary.skipped_spaces = known.skipped.into_iter().collect();
        summary.skipped_spaces.sort_unstable();
        tracing::debug!(
            "recovery: {} mini-transactions ({} bytes) from LSN {} to {}, {} pages changed, {} had all changes, {} are left",
            summary.mini_transactions,
            summary.bytes,
            summary.checkpoint,
            summary.end,
            summary.pages_changed,
            summary.pages_current,
            summary.pages_left
        );
        Ok(summary)
    }

    /// Whether pages get their changes when they are read. Where damaged ones are left out they do not: it is
    /// told which these are.
    pub(super) fn applies_when_read(&self) -> bool {
        self.options.apply_when_read && !self.options.skip_corrupt
    }

    /// Pages of a batch in a pool of this size. Where they are not changed as they are read, changed ones
    /// stay pinned until their batch is over; the rest of the pool is for reading them, and for the
    /// mini-transaction that goes beyond.
    pub(crate) fn pages_at_a_time(&self, frames: usize) -> usize {
        if self.applies_when_read() {
            return usize::MAX;
        }
        (frames / 3 * 2).min(frames.saturating_sub(FRAMES_LEFT)).max(frames / 3)
    }

    /// Bytes of a batch's changes: more where they wait for their pages, while most of the pool is not used
    /// yet and takes no memory.
    pub(crate) fn bytes_at_a_time(&self, frames: usize) -> usize {
        let part = if self.applies_when_read() { 2 } else { 3 };
        (frames * self.page_size.bytes() / part).clamp(BATCH_BYTES_MIN, BATCH_BYTES_MAX)
    }

    /// Makes durable what is read from the files. A process that was killed may have written pages that it
    /// did not come to sync: they read as current, nothing is redone and nothing written again, the
    /// checkpoint moves on, and a power cut would then take them back when the log no longer has their
    /// changes. The log has changes of each such page, so these are the files that it named, which are the
    /// ones that are open.
    fn sync_files(&self) -> Result<(), Error> {
        for (_, _, file) in self.spaces.files() {
            file.sync_data()?;
        }
        Ok(())
    }
}

/// Tells the buffer pool extension of every page that the log has changes of, also of those that are not
/// applied: what it kept of them is from before. All of the log after the checkpoint passes here.
fn invalidate_changed(tier: &dyn BufferPoolExtension, bytes: &[u8]) {
    let mut last = None;
    // Records that make no sense end the recovery where they are applied.
    for record in redo::records(bytes).map_while(Result::ok) {
        let page = page_of(&record);
        if let Some(page) = page.filter(|page| last != Some(*page)) {
            tier.invalidate(page);
            last = Some(page);
        }
    }
}

/// Not an error of reading: the checksum of its group is right.
fn makes_no_sense(start: Lsn, malformed: redo::Malformed) -> Error {
    Error::Recovery(format!(
        "the mini-transaction at LSN {start} has a valid checksum but its records make no sense ({malformed}); \
         it was written by another version of this program"
    ))
}

fn page_of(record: &Record<'_>) -> Option<PageId> {
    match record {
        Record::Write { page, .. }
        | Record::Fill { page, .. }
        | Record::Move { page, .. }
        | Record::Init { page }
        | Record::Free { page } => Some(*page),
        Record::SpaceSize { .. } => None,
    }
}

fn space_of(record: &Record<'_>) -> u32 {
    match record {
        Record::SpaceSize { space, .. } => *space,
        _ => page_of(record).unwrap_or_default().space,
    }
}

fn note(summary: &mut RecoverySummary, scanned: &ScanSummary) {
    summary.checkpoint = scanned.checkpoint;
    summary.end = scanned.end;
    summary.mini_transactions = scanned.mini_transactions;
    summary.bytes = scanned.bytes;
}
