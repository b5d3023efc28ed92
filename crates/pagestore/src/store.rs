//! The page store: the pool, its tablespaces and its background tasks behind one handle.
//!
//! Lock order inside this crate, outermost first: page latches; a shard of pending reads; a pending read's
//! state; the redo log's mutex; LRU list; what recovery has not applied; flush list; free list. None of the
//! mutexes is held while requests are submitted to the storage; page latches may be (a page's parent on the
//! way down).

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use disk::Environment;
use page::{PageSize, PageWriter, WriteBatch};
use parking_lot::Mutex;
use redo::{Lsn, RedoLog};

use crate::counters::{Counter, Counters};
use crate::error::{Error, Interrupt};
use crate::flush::age_bounds::AgeAims;
use crate::flush::batch::UnderWay;
use crate::flush::flush_list::FlushList;
use crate::flush::log_growth::LogGrowthPlace;
use crate::flush::reason::ReasonCounters;
use crate::flush::restart_time::{Found, RestartTime};
use crate::pool::extension::TierPlace;
use crate::pool::foreground_reads::ForegroundReads;
use crate::pool::frame::{FrameRef, Frames};
use crate::pool::free_list::FreeFrames;
use crate::pool::lru::Lru;
use crate::pool::missing_page::{PendingReads, ReadTimes};
use crate::pool::read_ahead::ReadAheadSettings;
use crate::pool::resize::{Resizing, frames_of};
use crate::recovery::progress::RecoveryProgress;
use crate::recovery::rates::{Kind, RecoveryRates};
use crate::recovery::unapplied::UnappliedPlace;
use crate::signal::Signal;
use crate::space::registry::{Space, SpaceInfo, SpaceRegistry};
use crate::space::stamp::{self, Stamp};
use crate::status::PoolStatus;

/// One per processor, at most four. Asked for once: the answer takes reading the limits of control groups
/// from files.
fn recovery_threads() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get().min(4)))
}

/// How to open a [`PageStore`].
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes of the pool (`innodb_buffer_pool_size`), rounded down to whole pages; at least 32 pages. See
    /// [`PageStore::resize`].
    pub pool_bytes: usize,
    /// How many of them the buffer pool extension that is going to be set takes: see
    /// [`BufferPoolExtension::memory_bytes`](page::BufferPoolExtension::memory_bytes). The rest is page
    /// frames.
    pub tier_bytes: usize,
    /// Page size of every tablespace (`innodb_page_size`).
    pub page_size: PageSize,
    /// `innodb_old_blocks_pct`: share of the LRU list that is its old part, 5 to 95.
    pub old_blocks_pct: u8,
    /// `innodb_old_blocks_time`: milliseconds after its first access before an old page may become young.
    pub old_blocks_time_ms: u32,
    /// `innodb_io_capacity_max`: optional cap on pages written per second, except when the redo log is nearly
    /// full.
    pub io_capacity_max: Option<u32>,
    /// `untorn_recovery_target`: how long a restart after a crash may take; `None`: by the machine. See
    /// [`PageStore::recovery_target`].
    pub recovery_target: Option<Duration>,
    /// How fast recoveries were before ([`PageStore::take_recovery_rates`]).
    pub recovery_rates: RecoveryRates,
    /// Told how far a recovery is.
    pub recovery_progress: RecoveryProgress,
    /// Threads that apply redo where that is not left to the reads of the pages (see `apply_when_read`); 1
    /// under the simulator.
    pub recovery_threads: usize,
    /// Whether recovery leaves out damaged pages instead of failing (`innodb_force_recovery` above 0).
    pub skip_corrupt: bool,
    /// Whether recovery leaves the last changes of the log, as many as fit into memory, to the time when
    /// their pages are read, unless damaged pages are to be left out. The pages that nobody asks for are
    /// read in the background.
    pub apply_when_read: bool,
    /// Whether page cleaner and checkpointer run in the background. Without them nothing is written but by
    /// [`PageStore::flush_all`] and its like.
    pub background: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            pool_bytes: 128 << 20,
            tier_bytes: 0,
            page_size: PageSize::DEFAULT,
            old_blocks_pct: 37,
            old_blocks_time_ms: 1000,
            io_capacity_max: None,
            recovery_target: None,
            recovery_rates: RecoveryRates::default(),
            recovery_progress: RecoveryProgress::default(),
            recovery_threads: recovery_threads(),
            skip_corrupt: false,
            apply_when_read: true,
            background: true,
        }
    }
}

/// Pages in memory and in files. Shared by reference count; see the module's essay.
pub struct PageStore {
    pub(crate) frames: Frames,
    pub(crate) spaces: SpaceRegistry,
    pub(crate) counters: Counters,
    pub(crate) read_times: ReadTimes,
    pub(crate) page_size: PageSize,
    /// Pages evicted, wrapping: the clock of the LRU rules.
    pub(crate) freed_clock: AtomicU32,
    /// Evictions after which a young page that is accessed moves to the young end again.
    pub(crate) young_drift: AtomicU32,
    /// Coarse clock in milliseconds, never 0.
    pub(crate) now_ms: AtomicU32,
    pub(crate) pending: PendingReads,
    pub(crate) read_ahead: ReadAheadSettings,
    pub(crate) foreground: ForegroundReads,
    pub(crate) free: FreeFrames,
    pub(crate) resizing: Resizing,
    pub(crate) lru: Mutex<Lru>,
    pub(crate) flush_list: Mutex<FlushList>,
    pub(crate) redo: Arc<RedoLog>,
    pub(crate) env: Arc<dyn Environment>,
    pub(crate) writer: Arc<dyn PageWriter>,
    pub(crate) options: Options,
    /// The write batches under way.
    pub(crate) batches: Mutex<Vec<UnderWay>>,
    pub(crate) batch_over: Signal,
    /// Pages marked as in flight.
    pub(crate) in_flight: AtomicUsize,
    /// Those of them that are written to make their frames free.
    pub(crate) victims_in_flight: AtomicUsize,
    pub(crate) spare_batches: Mutex<Vec<WriteBatch>>,
    /// Pinned frames of batches that failed.
    pub(crate) unwritten: Mutex<Vec<FrameRef>>,
    pub(crate) cleaner_wanted: Signal,
    pub(crate) checkpoint_running: AtomicBool,
    pub(crate) checkpoint_over: Signal,
    pub(crate) sync_over: Signal,
    /// Recovery is applying redo: the checkpoint must not move.
    pub(crate) recovering: AtomicBool,
    /// What it has left for later.
    pub(crate) unapplied: UnappliedPlace,
    /// Who must be alive for what is left to be applied in the background.
    pub(crate) recovers_for: OnceLock<Weak<dyn Any + Send + Sync>>,
    pub(crate) restart_time: RestartTime,
    /// The end of the log when this store had done nothing yet.
    pub(crate) opened_at: AtomicU64,
    pub(crate) log_growth: LogGrowthPlace,
    pub(crate) age_aims: AgeAims,
    pub(crate) written_for: ReasonCounters,
    /// Frames that the next start will have, if it has the options of this one.
    frames_at_start: usize,
    /// Data files that are open, as the cleaner has counted them last.
    pub(crate) files_open: AtomicUsize,
    pub(crate) stopping: AtomicBool,
    pub(crate) tier: TierPlace,
    /// `innodb_io_capacity_max` as it is now; 0: no limit.
    io_capacity_max: AtomicU32,
    /// Tablespaces written for the first time since the start.
    pub(crate) first_writes: Mutex<Vec<u32>>,
    /// Whether it was told that a page is newer than the log.
    pub(crate) told_newer: AtomicBool,
    pub(crate) poisoned: AtomicBool,
    pub(crate) poison: OnceLock<Arc<str>>,
    pub(crate) read_only: OnceLock<Arc<str>>,
    this: Weak<PageStore>,
    #[cfg(test)]
    pub(crate) broken: Broken,
}

/// Promises that a test breaks, to see that its checks notice.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct Broken {
    /// Pages are written before their log is durable.
    pub(crate) wal: AtomicBool,
    /// The checkpoint does not sync what batches left unsynced.
    pub(crate) checkpoint_sync: AtomicBool,
    /// The checkpoint passes what recovery has not applied.
    pub(crate) unapplied: AtomicBool,
    /// What recovery has left is read in the background.
    pub(crate) background: AtomicBool,
    /// The page cleaner goes on living.
    pub(crate) cleaner: AtomicBool,
    /// The target for a restart counts.
    pub(crate) target: AtomicBool,
    /// What is ahead of need gives way to those who wait for reads.
    pub(crate) give_way: AtomicBool,
}

impl PageStore {
    /// Allocates the pool and starts the background tasks. No tablespace is open yet.
    ///
    /// # Errors
    /// When the options do not fit or the memory is not available.
    pub fn open(
        env: Arc<dyn Environment>,
        redo: Arc<RedoLog>,
        options: Options,
        writer: Arc<dyn PageWriter>,
    ) -> Result<Arc<PageStore>, Error> {
        let count = frames_of(options.pool_bytes, options.tier_bytes, options.page_size)?;
        let frames = Frames::with_room(count, options.page_size)?;
        let now = redo.current();
        // From the first moment: the cleaner must not take a list that is still empty for "everything is
        // written".
        let recovering = AtomicBool::new(redo.needs_scan());
        let store = Arc::new_cyclic(|this| PageStore {
            frames,
            spaces: SpaceRegistry::new(options.page_size, options.skip_corrupt),
            counters: Counters::default(),
            read_times: ReadTimes::default(),
            page_size: options.page_size,
            freed_clock: AtomicU32::new(0),
            young_drift: AtomicU32::new(young_drift(count, &options)),
            now_ms: AtomicU32::new(1),
            pending: PendingReads::default(),
            read_ahead: ReadAheadSettings::default(),
            foreground: ForegroundReads::default(),
            free: FreeFrames::new(count),
            resizing: Resizing::new(options.pool_bytes, options.tier_bytes),
            lru: Mutex::new(Lru::new(count, options.old_blocks_pct)),
            flush_list: Mutex::new(FlushList::new(count, now, redo.capacity())),
            redo,
            env,
            writer,
            batches: Mutex::default(),
            batch_over: Signal::default(),
            in_flight: AtomicUsize::new(0),
            victims_in_flight: AtomicUsize::new(0),
            spare_batches: Mutex::default(),
            unwritten: Mutex::default(),
            cleaner_wanted: Signal::default(),
            checkpoint_running: AtomicBool::new(false),
            checkpoint_over: Signal::default(),
            sync_over: Signal::default(),
            recovering,
            unapplied: UnappliedPlace::default(),
            recovers_for: OnceLock::new(),
            age_aims: AgeAims::default(),
            written_for: ReasonCounters::default(),
            restart_time: RestartTime::new(options.recovery_target, options.recovery_rates.clone()),
            opened_at: AtomicU64::new(now.0),
            log_growth: LogGrowthPlace::default(),
            frames_at_start: count,
            files_open: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            tier: TierPlace::default(),
            io_capacity_max: AtomicU32::new(options.io_capacity_max.unwrap_or(0)),
            first_writes: Mutex::default(),
            told_newer: AtomicBool::new(false),
            poisoned: AtomicBool::new(false),
            poison: OnceLock::new(),
            read_only: OnceLock::new(),
            this: this.clone(),
            #[cfg(test)]
            broken: Broken::default(),
            options,
        });
        store.tick_clock();
        if store.options.background {
            store.start_cleaner();
        }
        Ok(store)
    }

    /// Frames the pool consists of.
    #[must_use]
    pub fn frame_count(&self) -> usize {
        self.free.limit() as usize
    }

    /// The pool has another number of frames now.
    pub(crate) fn frame_count_changed(&self) {
        self.young_drift.store(young_drift(self.frame_count(), &self.options), Ordering::Relaxed);
    }

    /// The page size of every tablespace.
    #[must_use]
    pub fn page_size(&self) -> PageSize {
        self.page_size
    }

    /// The redo log.
    #[must_use]
    pub fn redo(&self) -> &Arc<RedoLog> {
        &self.redo
    }

    /// The environment the store lives in.
    #[must_use]
    pub fn environment(&self) -> &Arc<dyn Environment> {
        &self.env
    }

    /// A counted reference to this store.
    pub(crate) fn this(&self) -> Arc<PageStore> {
        match self.this.upgrade() {
            Some(this) => this,
            None => unreachable!("a store that is used has an owner"),
        }
    }

    pub(crate) fn weak(&self) -> Weak<PageStore> {
        self.this.clone()
    }

    /// Moves the coarse clock on.
    pub(crate) fn tick_clock(&self) {
        self.now_ms.store((self.env.now().as_millis() as u32).max(1), Ordering::Relaxed);
    }

    /// Creates a tablespace file of `pages` zero pages and opens it. Blocks for file I/O. The caller then
    /// fills in the structure (`fsp::create_space_pages`).
    ///
    /// # Errors
    /// When the file exists or cannot be made, or the id is in use.
    pub fn create_space(&self, space: u32, path: &Path, pages: u32) -> Result<(), Error> {
        self.refuse_when_poisoned()?;
        self.spaces.create(&**self.env.storage(), space, path, pages)
    }

    /// Opens an existing tablespace file: page 0 must be valid, say this id, and have flags we know. Blocks
    /// for file I/O.
    ///
    /// # Errors
    /// [`Error::Tablespace`] says what is wrong with the file.
    pub fn open_space(&self, space: u32, path: &Path) -> Result<SpaceInfo, Error> {
        // The file may be another one than when the tier last saw this tablespace.
        self.forget_clean_copies(space);
        self.spaces.open(&**self.env.storage(), space, path)
    }

    /// Makes an existing tablespace known, whose file is opened when its first page is wanted, and then has
    /// this mark or a later one.
    ///
    /// # Errors
    /// When another one has this id.
    pub fn add_space(&self, space: u32, path: &Path, expected: Option<Stamp>) -> Result<(), Error> {
        self.spaces.add(space, path, expected)
    }

    /// The tablespaces whose first page since the start was written, or is about to be, since this was asked
    /// last.
    pub fn take_first_writes(&self) -> Vec<u32> {
        std::mem::take(&mut *self.first_writes.lock())
    }

    /// The tablespace is among them once more.
    pub fn first_write_again(&self, space: u32) {
        self.first_writes.lock().push(space);
    }

    /// Nothing changes the tablespace's file until this is taken back: it is being copied. For those that
    /// could, without the tablespace's user.
    pub fn hold_still(&self, space: u32, still: bool) {
        if let Ok(space) = self.spaces.get(space) {
            space.hold_still(still);
        }
    }

    /// Marks the tablespace's file. False when it must not be changed now; nothing happens when it was
    /// dropped.
    ///
    /// # Errors
    /// [`Interrupt`] of the store.
    pub fn stamp_space(&self, space: u32, stamp: Stamp) -> Result<bool, Interrupt> {
        let Ok(entry) = self.spaces.get(space) else { return Ok(true) };
        if entry.is_dropped() {
            return Ok(true);
        }
        let mut mtr = self.mtr()?;
        let first = match mtr.x(page::PageId::new(space, 0)) {
            Ok(first) => first,
            Err(Interrupt::Error(Error::NoSuchSpace(_))) => return Ok(true),
            Err(interrupt) => return Err(interrupt),
        };
        // With page 0 latched: an export that needs the file unchanged latches it too, later, and flushes it
        // then.
        if entry.is_held_still() {
            return Ok(false);
        }
        stamp::write_stamp(&mut mtr, first, stamp);
        mtr.commit();
        Ok(true)
    }

    /// The tablespace must not be used, and a request for one of its pages gets the reason. For files of
    /// which it is known that they are not what they should be.
    pub fn refuse_space(&self, space: u32, why: &str) {
        self.spaces.refuse(space, why);
    }

    /// Opens the tablespace's file unless it is open, as the first access to a page does.
    ///
    /// # Errors
    /// [`Error::Tablespace`] says what is wrong with the file.
    pub fn ensure_open(&self, space: u32) -> Result<(), Error> {
        self.spaces.get_open(&**self.env.storage(), space).map(drop)
    }

    /// The tablespace's file, opened if it was not, for who copies it as it is.
    ///
    /// # Errors
    /// As [`PageStore::ensure_open`].
    pub fn file_of(&self, space: u32) -> Result<Arc<dyn disk::File>, Error> {
        Ok(self.open_space_of(space)?.file().clone())
    }

    pub(crate) fn open_space_of(&self, space: u32) -> Result<Arc<Space>, Error> {
        self.spaces.get_open(&**self.env.storage(), space)
    }

    /// A known tablespace. Size and flags are 0 as long as its file was not needed.
    #[must_use]
    pub fn space(&self, space: u32) -> Option<SpaceInfo> {
        self.spaces.info(space)
    }

    /// All known tablespaces, by id.
    #[must_use]
    pub fn spaces(&self) -> Vec<SpaceInfo> {
        self.spaces.all()
    }

    /// The files of the tablespaces that were needed so far, with their present names, by id.
    #[must_use]
    pub fn space_files(&self) -> Vec<(u32, PathBuf, Arc<dyn disk::File>)> {
        self.spaces.files()
    }

    /// Pages per second the cleaner may write while the redo log is far from full (`innodb_io_capacity_max`).
    pub fn io_capacity_max(&self) -> Option<u32> {
        Some(self.io_capacity_max.load(Ordering::Relaxed)).filter(|max| *max > 0)
    }

    /// Changes it; counts from the cleaner's next look on.
    pub fn set_io_capacity_max(&self, max: Option<u32>) {
        self.io_capacity_max.store(max.unwrap_or(0), Ordering::Relaxed);
    }

    /// How long a restart after a crash may take: the page cleaner keeps the log and the number of dirty
    /// pages below what would take longer, as far as rates that were measured tell. Unless it was set, 10
    /// seconds and the time in which the storage reads the buffer pool. One that was set is a bound: writers
    /// wait where the cleaner cannot keep it.
    pub fn recovery_target(&self) -> Duration {
        self.restart_time.target(self.frame_count())
    }

    /// Changes it; `None`: by the machine. Counts from the cleaner's next look on.
    pub fn set_recovery_target(&self, target: Option<Duration>) {
        self.restart_time.set_target(target);
    }

    /// How long a restart would take if the process were killed now.
    pub fn recovery_estimate(&self) -> Duration {
        let found = {
            let list = self.flush_list.lock();
            self.found_by_restart(&list)
        };
        self.restart_time.estimate(&found)
    }

    /// What a restart would find if the process were killed now.
    pub(crate) fn found_by_restart(&self, list: &FlushList) -> Found {
        let checkpoint = self.redo.checkpoint_lsn();
        let named = list.named_since(checkpoint);
        let frames = self.frame_count().min(self.frames_at_start);
        let log = self.redo.current().since(checkpoint);
        // The counts are of stretches of the log; of one that is empty nothing is read.
        let written = if log == 0 { 0 } else { named.written };
        Found {
            log,
            // No further than once around.
            search: self.redo.search_bytes().min(self.redo.circle_bytes().saturating_sub(log)),
            pages: list.len() as u64 + written + self.unapplied.pages(),
            dirty: list.len() as u64 + self.unapplied.pages(),
            became_dirty: named.became_dirty,
            pages_at_a_time: self.pages_at_a_time(frames) as u64,
            change_bytes: self.bytes_of_a_change(),
            log_at_a_time: self.bytes_at_a_time(frames) as u64,
            frames: frames as u64,
            files: self.files_open.load(Ordering::Relaxed) as u64,
            copies: self.writer.copies_kept(),
        }
    }

    /// Bytes of log that a change of a page took since the start.
    fn bytes_of_a_change(&self) -> f64 {
        let logged = self.redo.current().0.saturating_sub(self.opened_at.load(Ordering::Relaxed));
        logged as f64 / self.counters.sum(Counter::WriteRequests).max(1) as f64
    }

    /// How fast recoveries were, if this process's own has changed that since this was asked last: to be
    /// given to the next one that opens the store.
    pub fn take_recovery_rates(&self) -> Option<RecoveryRates> {
        self.restart_time.take_learned()
    }

    /// Before the store was opened this many pages were compared with their copies, which took this time.
    pub fn note_copies_compared(&self, pages: u64, took: Duration) {
        self.restart_time.recovered(Kind::Copies, pages, took);
    }

    /// Renames the tablespace's file, durably.
    ///
    /// # Errors
    /// When the tablespace is not open or the file system refuses.
    pub fn rename_space(&self, space: u32, to: &Path) -> Result<(), Error> {
        self.spaces.rename(&**self.env.storage(), space, to)
    }

    /// Forgets the tablespace's pages, dirty ones too, closes the file and removes it, unless it was never
    /// used and is known to be another tablespace's. Nobody else may use the tablespace any more; pins on its
    /// pages are waited for.
    ///
    /// # Errors
    /// When it is not open or the file cannot be removed (it is closed all the same).
    pub async fn drop_space(&self, space: u32) -> Result<(), Error> {
        let entry = self.spaces.get(space)?;
        entry.mark_dropped();
        self.forget_pages(space, true).await?;
        self.forget_clean_copies(space);
        if let Some(file) = entry.file_if_open() {
            self.writer.forget(file);
        }
        let (path, was_used) = (entry.path(), entry.file_if_open().is_some());
        drop(entry);
        self.spaces.remove(space);
        let storage = self.env.storage();
        if !was_used {
            // It may have been replaced by a person.
            return crate::remove_space_file(&**storage, &path, space, self.page_size);
        }
        match storage.remove(&path) {
            // It was lost before; nobody needs to be told that it is gone.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            other => other?,
        }
        path.parent().map_or(Ok(()), |directory| storage.sync_dir(directory))?;
        Ok(())
    }

    /// Writes the tablespace's dirty pages, forgets its pages and closes the file. Nobody else may use the
    /// tablespace.
    ///
    /// # Errors
    /// When it is not open, or writing fails.
    pub async fn close_space(&self, space: u32) -> Result<(), Error> {
        let entry = self.spaces.get(space)?;
        self.flush_space(space).await?;
        entry.mark_dropped();
        self.forget_pages(space, false).await?;
        self.forget_clean_copies(space);
        if let Some(file) = entry.file_if_open() {
            self.writer.forget(file);
        }
        self.spaces.remove(space);
        Ok(())
    }

    /// No page of the tablespace is in the pool or being read: nobody looks for it in the tier or offers it.
    fn forget_clean_copies(&self, space: u32) {
        if let Some(tier) = self.tier.get() {
            tier.invalidate_space(space);
        }
    }

    /// Nobody has used the store yet, nor will: the background tasks end. What is under way in them would
    /// keep it alive.
    pub fn give_up(&self) {
        self.stopping.store(true, Ordering::Release);
        self.wake_cleaner();
    }

    /// Flushes all, moves the checkpoint, stops the background tasks. Nobody may change pages any more.
    ///
    /// # Errors
    /// When writing fails.
    pub async fn shutdown(&self) -> Result<(), Error> {
        let result = self.checkpoint().await.map(drop);
        self.stopping.store(true, Ordering::Release);
        self.wake_cleaner();
        self.batches_over().await;
        result
    }

    /// Whether as much as possible is read of what is damaged, instead of failing (forced recovery).
    pub fn takes_damaged_pages(&self) -> bool {
        self.options.skip_corrupt
    }

    /// Whether a test has switched the WAL rule off (to see that its checks notice).
    pub(crate) fn skips_wal(&self) -> bool {
        #[cfg(test)]
        return self.broken.wal.load(Ordering::Relaxed);
        #[cfg(not(test))]
        false
    }

    /// The same of the sync before a checkpoint.
    pub(crate) fn skips_checkpoint_sync(&self) -> bool {
        #[cfg(test)]
        return self.broken.checkpoint_sync.load(Ordering::Relaxed);
        #[cfg(not(test))]
        false
    }

    /// How long reads of pages from there took.
    #[must_use]
    pub fn read_times(&self, source: page::extension::Source) -> disk::Times {
        self.read_times.of(source).times()
    }

    /// Figures of the pool.
    #[must_use]
    pub fn status(&self) -> PoolStatus {
        let (pages_data, pages_old) = {
            let lru = self.lru.lock();
            (lru.len() as u64, lru.old_len() as u64)
        };
        let (pages_dirty, oldest) = {
            let list = self.flush_list.lock();
            (list.len() as u64, list.oldest())
        };
        let sum = |counter| self.counters.sum(counter);
        let (age_goal, age_limit) = self.age_aims.get();
        PoolStatus {
            page_size: self.page_size.bytes() as u64,
            pages_total: self.frame_count() as u64,
            pages_data,
            pages_dirty,
            pages_free: self.free.len() as u64,
            read_requests: sum(Counter::ReadRequests),
            reads: sum(Counter::Reads),
            write_requests: sum(Counter::WriteRequests),
            wait_free: sum(Counter::WaitFree),
            read_ahead: sum(Counter::ReadAhead),
            read_ahead_random: sum(Counter::ReadAheadRandom),
            read_ahead_evicted: sum(Counter::ReadAheadEvicted),
            pages_flushed: sum(Counter::PagesFlushed),
            pages_made_young: sum(Counter::MadeYoung),
            pages_made_not_young: sum(Counter::NotMadeYoung),
            pages_created: sum(Counter::PagesCreated),
            pages_read: sum(Counter::PagesRead),
            pages_written: sum(Counter::PagesFlushed),
            written_for: self.written_for.sums(),
            age_goal,
            age_limit,
            pages_evicted: sum(Counter::PagesEvicted),
            pages_relocated: sum(Counter::PagesRelocated),
            pages_old,
            blocking_reads: sum(Counter::BlockingReads),
            pending_reads: self.pending.len() as u64,
            pages_in_flight: self.in_flight.load(Ordering::Relaxed) as u64,
            pages_unapplied: self.unapplied.pages(),
            oldest_modification: oldest.map(|Lsn(lsn)| lsn),
            corrupt_pages: sum(Counter::CorruptPages),
            tier_fallbacks: sum(Counter::TierFallbacks),
            heads_made: sum(Counter::HeadsMade),
            descents_by_pointers: sum(Counter::DescentsByPointers),
            heads_bytes: self.frames.heads.bytes() + self.frames.heads_above.bytes(),
            log_raises: self.log_growth.raises(),
        }
    }
}

/// Evictions after which a young page that is accessed moves again: a quarter of the young part.
fn young_drift(frames: usize, options: &Options) -> u32 {
    let young_share = 100 - usize::from(options.old_blocks_pct.clamp(5, 95));
    (frames * young_share / 400) as u32
}

impl Drop for PageStore {
    fn drop(&mut self) {
        for frame in self.unwritten.get_mut().drain(..) {
            frame.pins.unpin();
        }
    }
}
