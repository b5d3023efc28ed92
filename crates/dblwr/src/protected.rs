//! The page writer: writes a batch of pages, each by the path that `decision.rs` chose for its file.
//!
//! A batch goes in up to three steps. Pages that need no copy (written atomically, unprotected, or
//! recreatable) go to their places together with the copies of the others going into a segment; then the
//! segment is synced and the copied pages follow to theirs, and every data file touched is synced. Only then
//! may the segment be used again. Copies that one segment does not hold go the same way after it, and so do
//! pages of which only the numbers are written first (DETECT_ONLY).
//!
//! **Syncs that can wait.** A page written without a copy needs no sync to be whole after a crash, only to be
//! new. The log is kept until it is: so a batch without copies ends when it is written. Its files stay
//! unsynced, and are remembered here until [`PageWriter::sync_written`] is called, once before a checkpoint.
//! An unsynced file keeps its descriptor, so there is a limit to their number
//! ([`Options::unsynced_files_max`]): a batch beyond it syncs what it wrote.
//!
//! **Refusals.** A storage that refuses an atomic write has not touched the page. The refused pages of the
//! batch then take the way through the doublewrite, within the same write, and so do all later pages of that
//! file. Where atomic writes are done by copy-on-write, each needs room: one that finds none is refused in
//! the same way, but for this time only. The doublewrite writes in place, where it needs none, so a full file
//! system stops what grows and nothing else.
//!
//! **Changing the mode.** A batch looks at the mode once, when it begins. The caller never has two writes of
//! one page under way at the same time, so the write of a page by the new way finds the old one complete: a
//! plain write never meets an atomic one, and a page is at every moment whole in its file or has a whole copy
//! that belongs to the write under way. That the one before, without a copy, may not be synced yet changes
//! nothing: a crash may bring back what was whole before it, and what a crash tears is restored from the
//! copy, which was synced. Copies left from an earlier time are harmless, because a start restores only
//! damaged pages, and only from copies that redo can bring forward (see [`recover`](crate::recover)).

use crate::decision::{Decisions, FileProtection, Plan};
use crate::doublewrite_files::{Contents, DoublewriteFiles, Segment};
use crate::mode::{Mode, WritePath};
use crate::options::Options;
use crate::pace::Pace;
use crate::page_number_record;
use crate::requests::{self, Cut, Part};
use crate::status::{Counters, Status, WriteTimes};
use crate::unsynced::UnsyncedFiles;
use disk::{Environment, Error, File, IoBuf, IoKind, Result, Times, submit_all, write_async};
use page::{ContiguousRuns, PageSyncFuture, PageWriteFuture, PageWriter, WriteBatch, WrittenBatch};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Files that are synced together: a database may have thousands, and the log's syncs come between them.
const SYNCED_TOGETHER: usize = 16;

/// Writes pages so that a crash leaves each one old or new, or restorable, as far as the [`Mode`] asks for
/// it.
#[derive(Clone)]
pub struct ProtectedWriter {
    shared: Arc<Shared>,
}

struct Shared {
    env: Arc<dyn Environment>,
    options: Options,
    mode: AtomicU8,
    /// Held while the mode changes.
    changing: Mutex<()>,
    copies: OnceLock<DoublewriteFiles>,
    numbers: OnceLock<DoublewriteFiles>,
    decisions: Decisions,
    counters: Counters,
    batch_ids: AtomicU32,
    /// Atomic writes find no room; said once.
    without_room: AtomicBool,
    unsynced: Mutex<UnsyncedFiles>,
}

impl ProtectedWriter {
    /// Opens the doublewrite files the mode needs, creating them where they are missing. Call
    /// [`recover`](crate::recover) first: batches overwrite the copies of earlier ones.
    ///
    /// # Errors
    /// Settings out of range, or files that cannot be made.
    pub fn open(env: Arc<dyn Environment>, options: Options) -> Result<ProtectedWriter> {
        options.check()?;
        let mode = options.mode;
        let shared = Shared {
            env,
            decisions: Decisions::new(options.page_size),
            options,
            mode: AtomicU8::new(mode.number()),
            changing: Mutex::new(()),
            copies: OnceLock::new(),
            numbers: OnceLock::new(),
            counters: Counters::default(),
            batch_ids: AtomicU32::new(0),
            without_room: AtomicBool::new(false),
            unsynced: Mutex::default(),
        };
        shared.prepare(mode, &shared.options)?;
        Ok(ProtectedWriter { shared: Arc::new(shared) })
    }

    /// Protects pages in another way from the next batch on; batches under way end in theirs. AUTO, also when
    /// it is the mode already, asks the storages again. Blocks when doublewrite files have to be made first.
    ///
    /// # Errors
    /// When those cannot be made; the mode stays as it was.
    pub fn set_mode(&self, mode: Mode) -> Result<()> {
        let shared = &self.shared;
        let _changing = shared.changing.lock();
        // What was synced before the opening says nothing of the names that a call before has left.
        let options = Options { directory_is_synced: false, ..shared.options.clone() };
        shared.prepare(mode, &options)?;
        if mode == Mode::Auto {
            shared.decisions.forget();
        }
        shared.mode.store(mode.number(), Ordering::Release);
        Ok(())
    }

    /// The mode.
    pub fn mode(&self) -> Mode {
        self.shared.mode()
    }

    /// How this file is protected.
    pub fn protection(&self, file: &Arc<dyn File>) -> FileProtection {
        self.shared.decisions.protection(file, self.mode())
    }

    /// How long writes of pages took, by way: atomic ones, those through the doublewrite (a batch at a time,
    /// with the copies and the syncs), and those in place without a copy.
    pub fn write_times(&self) -> WriteTimes<Times> {
        let of = &self.shared.counters.write_times;
        WriteTimes { atomic: of.atomic.times(), doublewrite: of.doublewrite.times(), plain: of.plain.times() }
    }

    /// Counters.
    pub fn status(&self) -> Status {
        self.shared.counters.status()
    }
}

impl PageWriter for ProtectedWriter {
    fn write(&self, batch: WriteBatch) -> PageWriteFuture {
        let shared = self.shared.clone();
        Box::pin(async move {
            let unsynced = shared.write(&batch).await?;
            let durable = shared.keep_unsynced(unsynced).await?;
            Ok(WrittenBatch { batch, durable })
        })
    }

    fn sync_written(&self) -> PageSyncFuture {
        let shared = self.shared.clone();
        let files = shared.unsynced.lock().take();
        Box::pin(async move { shared.sync(files).await })
    }

    fn sync_file(&self, file: Arc<dyn File>) -> PageSyncFuture {
        let shared = self.shared.clone();
        Box::pin(async move { shared.sync(vec![file]).await })
    }

    fn forget(&self, file: &Arc<dyn File>) {
        self.shared.unsynced.lock().forget(file);
    }

    /// No more than there is room for, and none that were not made since the start: those of before are of
    /// pages that are older than the checkpoint by now.
    fn copies_kept(&self) -> u64 {
        let options = &self.shared.options;
        let room = 2 * options.segments() * options.pages;
        self.shared.counters.doublewrite_pages.load(Ordering::Relaxed).min(room as u64)
    }

    fn contiguous_runs(&self, file: &Arc<dyn File>) -> ContiguousRuns {
        self.shared.decisions.contiguous_runs(file, self.mode())
    }
}

impl Shared {
    fn mode(&self) -> Mode {
        Mode::from_number(self.mode.load(Ordering::Acquire))
    }

    /// Makes the files that a mode may need.
    fn prepare(&self, mode: Mode, options: &Options) -> Result<()> {
        let (area, sort) = match mode {
            Mode::Off => return Ok(()),
            Mode::Auto | Mode::On => (&self.copies, Contents::Copies),
            Mode::DetectOnly => (&self.numbers, Contents::Numbers),
        };
        if area.get().is_none() {
            let opened = DoublewriteFiles::open(&**self.env.storage(), options, sort)?;
            // Nobody else sets it: see `changing`.
            let _ = area.set(opened);
        }
        Ok(())
    }

    /// Returns the files left unsynced.
    async fn write(&self, batch: &WriteBatch) -> Result<Vec<Arc<dyn File>>> {
        assert_eq!(batch.page_size(), self.options.page_size, "one page size per database");
        let plan = self.decisions.plan(batch, self.mode(), self.env.now());
        let bytes = (batch.len() + plan.copied.len()) * batch.page_size();
        let mut pace = Pace::new(&self.env, batch.spread.clone(), bytes, &plan.turns);
        let mut result = self.write_planned(batch, &plan, &mut pace).await;
        if let Ok(unsynced) = &result
            && let Err(error) = self.sync_as_measured(&plan, unsynced).await
        {
            result = Err(error);
        }
        // Also after a failure: the batch is not under way any more.
        for turn in &plan.turns {
            let pages = if result.is_ok() { turn.pages } else { 0 };
            let mut trial = turn.trial.lock();
            if let Some(way) = trial.ended(turn.way, pages, self.env.now()) {
                tracing::info!("pages are written by the way \"{way}\" from now on: {}", trial.outcome());
            }
        }
        result
    }

    /// Remembers what a batch left unsynced, unless that is too much: then it is synced. Whether all is
    /// durable now.
    async fn keep_unsynced(&self, files: Vec<Arc<dyn File>>) -> Result<bool> {
        {
            let mut unsynced = self.unsynced.lock();
            if unsynced.len() < self.options.unsynced_files_max {
                let durable = files.is_empty();
                unsynced.add(files);
                return Ok(durable);
            }
        }
        self.sync(files).await?;
        Ok(true)
    }

    /// The doublewrite syncs what it writes; for the comparison the atomic way does so too, now and then,
    /// like the checkpoint that will do it later.
    async fn sync_as_measured(&self, plan: &Plan, unsynced: &[Arc<dyn File>]) -> Result<()> {
        for turn in plan.turns.iter().filter(|turn| turn.way == WritePath::Atomic) {
            let due = turn.trial.lock().left_unsynced(unsynced);
            self.sync(due.unwrap_or_default()).await?;
        }
        Ok(())
    }

    async fn write_planned(
        &self,
        batch: &WriteBatch,
        plan: &Plan,
        pace: &mut Pace<'_>,
    ) -> Result<Vec<Arc<dyn File>>> {
        let mut unsynced = Vec::new();
        let begun = (self.env.now(), pace.slept());
        let (refused, first) = self.write_first(batch, plan, &mut unsynced, pace).await?;
        let mut copied = &plan.copied[..];
        if let Some(segment) = first {
            let (pages, others) = copied.split_at(segment.pages.min(copied.len()));
            self.write_to_places(batch, pages, segment, &mut unsynced, pace).await?;
            self.doublewrite_took(begun, pace);
            copied = others;
        }
        for mut rest in [copied, &refused] {
            while !rest.is_empty() {
                let begun = (self.env.now(), pace.slept());
                let (pages, segment) = self.copy_to_segment(batch, rest, pace).await?;
                self.write_to_places(batch, pages, segment, &mut unsynced, pace).await?;
                self.doublewrite_took(begun, pace);
                rest = &rest[pages.len()..];
            }
        }
        for pages in plan.numbered.chunks(self.options.pages.min(page_number_record::ENTRIES_MAX)) {
            let segment = self.note_numbers(batch, pages).await?;
            self.write_to_places(batch, pages, segment, &mut unsynced, pace).await?;
        }
        self.count(batch, plan);
        Ok(unsynced)
    }

    /// The pages that need no copy, and the copies of the first of those that do. Returns the pages whose
    /// atomic write was refused, and the segment with the copies, synced.
    async fn write_first(
        &self,
        batch: &WriteBatch,
        plan: &Plan,
        unsynced: &mut Vec<Arc<dyn File>>,
        pace: &mut Pace<'_>,
    ) -> Result<(Vec<usize>, Option<Segment>)> {
        let segment = match plan.copied.len() {
            0 => None,
            pages => Some(self.take(Contents::Copies, batch, pages).await?),
        };
        let cut = pace.cut(batch.page_size());
        let mut requests = requests::atomic(batch, &plan.atomic);
        requests.extend(requests::in_place(batch, &plan.single, Cut::Single));
        requests.extend(requests::in_place(batch, &plan.plain, cut));
        let copied =
            segment.as_ref().map(|segment| (segment, &plan.copied[..segment.pages.min(plan.copied.len())]));
        let mut copies_synced = false;
        if let Some((segment, pages)) = copied {
            let copies = requests::copies(batch, pages, (&segment.file, segment.offset), cut);
            copies_synced = copies.synced;
            requests.extend(copies.requests);
        }
        let atomic = plan.atomic.iter().map(|page| page.index);
        let in_place = atomic.chain(plan.single.iter().chain(&plan.plain).copied());
        requests::add_files(batch, in_place, unsynced);
        let mut refused = Vec::new();
        let failed_before = self.without_room.load(Ordering::Relaxed);
        for outcome in pace.submit(requests).await {
            match outcome {
                (Part::Atomic(stretch), Ok(took)) => {
                    self.counters.write_times.atomic.record(took);
                    Counters::add(&self.counters.atomic_writes, 1);
                    Counters::add(&self.counters.atomic_pages, stretch.len());
                    if failed_before {
                        self.without_room.store(false, Ordering::Relaxed);
                    }
                }
                (Part::InPlace, Ok(took)) => self.counters.write_times.plain.record(took),
                (Part::Copies, Ok(_)) => {}
                (Part::Atomic(stretch), Err(error)) if error.is_atomic_refusal() => {
                    self.refused(&batch.pages()[stretch.start].file, &error);
                    refused.extend(stretch);
                }
                (Part::Atomic(stretch), Err(error)) if error.is_atomic_without_room() => {
                    self.without_room(&error);
                    refused.extend(stretch);
                }
                (_, Err(error)) => return Err(error),
            }
        }
        if let Some((segment, pages)) = copied {
            self.sync_copies(batch, pages, segment, copies_synced).await?;
        }
        Ok((refused, segment))
    }

    /// Copies were made durable and their pages written: how long that took, without the pauses in between.
    fn doublewrite_took(&self, begun: (Duration, Duration), pace: &Pace<'_>) {
        let took = self.env.now().saturating_sub(begun.0);
        let paused = pace.slept().saturating_sub(begun.1);
        self.counters.write_times.doublewrite.record(took.saturating_sub(paused));
    }

    fn refused(&self, file: &Arc<dyn File>, error: &Error) {
        Counters::add(&self.counters.atomic_refusals, 1);
        if self.decisions.of(file).refuse(error.io().to_string()) {
            tracing::warn!(
                "an atomic write was refused ({error}): pages of {} use the doublewrite buffer from now on",
                file.path().display()
            );
        }
    }

    fn without_room(&self, error: &Error) {
        Counters::add(&self.counters.atomic_without_room, 1);
        if !self.without_room.swap(true, Ordering::Relaxed) {
            tracing::warn!("{error}. Pages that cannot be written atomically go through the doublewrite");
        }
    }

    fn area(&self, sort: Contents) -> Result<&DoublewriteFiles> {
        let area = match sort {
            Contents::Copies => &self.copies,
            Contents::Numbers => &self.numbers,
        };
        match area.get() {
            Some(area) => Ok(area),
            None => unreachable!("a mode is set when its files are there"),
        }
    }

    async fn take(&self, sort: Contents, batch: &WriteBatch, pages: usize) -> Result<Segment> {
        let pages = pages.min(self.options.pages);
        self.area(sort)?.take(&*self.env, batch.purpose, pages).await
    }

    /// Makes the copies durable, unless their request has `synced` them.
    async fn sync_copies(
        &self,
        batch: &WriteBatch,
        pages: &[usize],
        segment: &Segment,
        synced: bool,
    ) -> Result<()> {
        if !synced {
            disk::sync_async(&**self.env.storage(), &segment.file).await?;
        }
        self.count_segment(pages.len(), pages.len() * batch.page_size());
        Ok(())
    }

    /// Copies as many of the pages as a segment takes, durably.
    async fn copy_to_segment<'p>(
        &self,
        batch: &WriteBatch,
        pages: &'p [usize],
        pace: &mut Pace<'_>,
    ) -> Result<(&'p [usize], Segment)> {
        let segment = self.take(Contents::Copies, batch, pages.len()).await?;
        let pages = &pages[..segment.pages.min(pages.len())];
        let cut = pace.cut(batch.page_size());
        let copies = requests::copies(batch, pages, (&segment.file, segment.offset), cut);
        for (_, outcome) in pace.submit(copies.requests).await {
            outcome?;
        }
        self.sync_copies(batch, pages, &segment, copies.synced).await?;
        Ok((pages, segment))
    }

    async fn note_numbers(&self, batch: &WriteBatch, pages: &[usize]) -> Result<Segment> {
        let segment = self.take(Contents::Numbers, batch, pages.len()).await?;
        let record = page_number_record::encode(batch, pages, self.batch_ids.fetch_add(1, Ordering::Relaxed));
        let buf = IoBuf::owned(record);
        write_async(&**self.env.storage(), &segment.file, buf, segment.offset, true).await?;
        self.count_segment(pages.len(), page_number_record::RECORD);
        Ok(segment)
    }

    fn count_segment(&self, pages: usize, bytes: usize) {
        Counters::add(&self.counters.doublewrite_pages, pages);
        Counters::add(&self.counters.doublewrite_writes, 1);
        Counters::add(&self.counters.bytes_doublewrite, bytes);
        Counters::add(&self.counters.syncs, 1);
    }

    /// The pages, whose copies or numbers are durable, to their places, durably.
    async fn write_to_places(
        &self,
        batch: &WriteBatch,
        pages: &[usize],
        segment: Segment,
        unsynced: &mut Vec<Arc<dyn File>>,
        pace: &mut Pace<'_>,
    ) -> Result<()> {
        let requests = requests::in_place(batch, pages, pace.cut(batch.page_size()));
        requests::add_files(batch, pages.iter().copied(), unsynced);
        for (_, outcome) in pace.submit(requests).await {
            outcome?;
        }
        self.sync(std::mem::take(unsynced)).await?;
        segment.give_back();
        Ok(())
    }

    /// Makes durable what batches wrote to the files.
    async fn sync(&self, files: Vec<Arc<dyn File>>) -> Result<()> {
        Counters::add(&self.counters.syncs, files.len());
        for some in files.chunks(SYNCED_TOGETHER) {
            let syncs = some.iter().map(|file| (file.clone(), IoKind::Sync)).collect();
            submit_all(&**self.env.storage(), syncs).await?;
        }
        Ok(())
    }

    fn count(&self, batch: &WriteBatch, plan: &Plan) {
        let counters = &self.counters;
        let is_undo = |id: page::PageId| Some(id.space) == self.options.undo_space;
        let undo = batch.pages().iter().filter(|page| is_undo(page.id)).count();
        Counters::add(&counters.batches, 1);
        Counters::add(&counters.pages, batch.len());
        Counters::add(&counters.bytes_undo, undo * batch.page_size());
        Counters::add(&counters.bytes_data, (batch.len() - undo) * batch.page_size());
        Counters::add(&counters.recreatable_pages, plan.recreatable);
        Counters::add(&counters.plain_pages, plan.plain.len() - plan.recreatable);
        Counters::add(&counters.single_pages, plan.single.len());
    }
}
