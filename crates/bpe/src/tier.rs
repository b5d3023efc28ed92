//! The tier as the buffer pool and the server know it.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use disk::{Environment, Event, TaskFuture};
use page::extension::{BufferPoolExtension, Found, History, Offered, Refusal, Source, Ticket};
use page::{Lsn, PageId};
use parking_lot::{Mutex, RwLock};

use crate::admission::{self, WriteBudget};
use crate::counters::{Counter, Counters};
use crate::geometry::Geometry;
use crate::image::{self, Mismatch};
use crate::latency_suspension::{Adapt, Mode, PART_KEPT_AFTER};
#[cfg(any(test, feature = "negative-control"))]
use crate::negative_control::Promise;
use crate::options::{Options, Restart, geometry_while_suspended};
use crate::record::Record;
use crate::store::{DeadSpaces, Store};
use crate::table::Entry;

/// A cover that takes longer than this is a failure: the checkpoint does not wait for a disk that hangs.
const COVER_WITHIN: Duration = Duration::from_secs(5);

/// What is searched now.
#[derive(Default)]
pub(crate) struct Current {
    pub(crate) store: Option<Arc<Store>>,
    /// The store of another size that the entries are being copied to. It must not miss an invalidation.
    pub(crate) next: Option<Arc<Store>>,
}

/// What was asked for, and what was done about it.
pub(crate) struct Control {
    pub(crate) wanted: Settings,
    /// Counts the changes of `wanted`.
    pub(crate) version: u64,
    /// Those that wait for a version to be in force.
    pub(crate) waiting: Vec<(u64, Change)>,
    /// The version in force.
    pub(crate) done: u64,
    /// Wakes the keeper.
    pub(crate) wake: Event,
    /// Why it is off although it should be on.
    pub(crate) failure: Option<String>,
}

/// The settings that can change while it runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Settings {
    pub(crate) enabled: bool,
    pub(crate) file: Option<PathBuf>,
    pub(crate) size: u64,
}

/// A change of settings under way in the background.
#[derive(Clone)]
pub struct Change(Arc<ChangeState>);

struct ChangeState {
    over: Event,
    outcome: Mutex<Result<(), String>>,
}

impl Change {
    pub(crate) fn new() -> Change {
        Change(Arc::new(ChangeState { over: Event::new(), outcome: Mutex::new(Ok(())) }))
    }

    pub(crate) fn finish(&self, outcome: Result<(), String>) {
        *self.0.outcome.lock() = outcome;
        self.0.over.set();
    }

    /// Set when the change is in force, or has failed.
    #[must_use]
    pub fn over(&self) -> Event {
        self.0.over.clone()
    }

    /// What came of it, once it is over.
    ///
    /// # Errors
    /// Why the tier is off.
    pub fn outcome(&self) -> Result<(), String> {
        self.0.outcome.lock().clone()
    }
}

/// The buffer pool extension. See the crate's essay.
pub struct Tier {
    pub(crate) env: Arc<dyn Environment>,
    pub(crate) options: Options,
    pub(crate) me: Weak<Tier>,
    pub(crate) current: RwLock<Current>,
    pub(crate) adapt: Adapt,
    pub(crate) budget: WriteBudget,
    pub(crate) counters: Counters,
    pub(crate) dead: DeadSpaces,
    pub(crate) control: Mutex<Control>,
    /// Set by [`Tier::recovered`]: pages may be found and offered.
    pub(crate) recovered: AtomicBool,
    pub(crate) closed: AtomicBool,
    /// Bytes of memory the tier may take, from the next time on that it is opened or resized.
    pub(crate) memory_max: AtomicUsize,
    /// Set when the background task has ended.
    pub(crate) keeper_over: Event,
    pub(crate) run: AtomicU32,
    pub(crate) recovered_end: AtomicU64,
    pub(crate) next_id: AtomicU64,
    pub(crate) opened_at: Duration,
    #[cfg(any(test, feature = "negative-control"))]
    broken: Option<Promise>,
}

impl Tier {
    /// Opens a tier as the options say. It finds and takes nothing before [`Tier::recovered`] was called.
    /// Blocks for some file operations, and to read a kept map; never fails: a tier that cannot be opened is
    /// off, and says why in the log and in its status.
    #[must_use]
    pub fn open(env: Arc<dyn Environment>, options: Options) -> Arc<Tier> {
        let now = env.now();
        let settings = Settings { enabled: options.enabled, file: options.file.clone(), size: options.size };
        let memory_max = options.memory_max.unwrap_or(usize::MAX);
        let region_bytes = options.geometry(options.size, None, memory_max).region_bytes;
        let tier = Arc::new_cyclic(|me| Tier {
            budget: WriteBudget::new(options.write_budget, region_bytes, now),
            options,
            me: me.clone(),
            current: RwLock::default(),
            adapt: Adapt::default(),
            counters: Counters::default(),
            dead: DeadSpaces::default(),
            control: Mutex::new(Control {
                wanted: settings.clone(),
                version: 0,
                waiting: Vec::new(),
                done: 0,
                wake: Event::new(),
                failure: None,
            }),
            recovered: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            memory_max: AtomicUsize::new(memory_max),
            keeper_over: Event::new(),
            run: AtomicU32::new(0),
            recovered_end: AtomicU64::new(0),
            next_id: AtomicU64::new(1),
            opened_at: now,
            env,
            #[cfg(any(test, feature = "negative-control"))]
            broken: crate::negative_control::broken(),
        });
        tier.open_at_start(&settings);
        tier
    }

    /// Recovery is over: the log was read from `checkpoint` to `end`, and every page found in it was
    /// [invalidated](BufferPoolExtension::invalidate). `run` is the number of this opening of the log, one
    /// more than that of the previous opening, by any process. Decides whether what was kept is current; from
    /// now on the tier serves.
    pub fn recovered(&self, checkpoint: Lsn, end: Lsn, run: u32) {
        self.run.store(run, Ordering::Release);
        self.recovered_end.store(end.0, Ordering::Release);
        let store = self.store();
        if let Some(store) = &store {
            self.judge_kept(store, checkpoint, end, run);
        }
        self.recovered.store(true, Ordering::Release);
        self.start_keeper();
    }

    /// Starts with a new size in the background. Pages that fit stay.
    pub fn resize(&self, size: u64) -> Change {
        self.change(|settings| settings.size = size)
    }

    /// Moves to another file, empty, in the background; the old file is removed. `None` is off.
    pub fn set_file(&self, file: Option<PathBuf>) -> Change {
        self.change(|settings| settings.file = file)
    }

    /// [`set_file`](Self::set_file), with the size for the new one.
    pub fn move_to(&self, file: Option<PathBuf>, size: u64) -> Change {
        self.change(|settings| (settings.file, settings.size) = (file, size))
    }

    /// On, empty, or off, in the background; the file of a tier that is switched off is removed.
    pub fn switch(&self, on: bool) -> Change {
        self.change(|settings| settings.enabled = on)
    }

    /// Bytes that may be written per second from now on, 0 for no limit.
    pub fn set_write_budget(&self, bytes_per_second: u64) {
        self.budget.set_rate(bytes_per_second);
    }

    /// Bytes of memory it may take when it is opened or resized the next time.
    pub fn set_memory_max(&self, bytes: usize) {
        self.memory_max.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn geometry(&self, size: u64, region_bytes: Option<usize>) -> Geometry {
        self.options.geometry(size, region_bytes, self.memory_max.load(Ordering::Relaxed))
    }

    /// Whether the tier has been suspended long enough to keep only part of its pages.
    pub(crate) fn keeps_part(&self) -> bool {
        self.adapt.suspended_for(self.env.now()) >= PART_KEPT_AFTER
    }

    /// What of the geometry for a size is used, whole or in part.
    pub(crate) fn geometry_in_use(&self, size: u64, region_bytes: usize, part: bool) -> Geometry {
        let whole = self.geometry(size, Some(region_bytes));
        if part { geometry_while_suspended(whole, self.memory_max.load(Ordering::Relaxed)) } else { whole }
    }

    /// Ends a run: completes when everything kept is durable and no I/O is under way. `lsn` is the end of the
    /// log, to which the checkpoint has moved. The tier is off afterwards.
    pub async fn close_clean(&self, lsn: Lsn) {
        self.closed.store(true, Ordering::Release);
        self.control.lock().wake.set();
        let Some(store) = self.store() else { return };
        if self.recovered.load(Ordering::Acquire) {
            self.keeper_over.wait().await;
        }
        self.close_filler(&store).wait().await;
        if let Err(error) = self.close_journal(&store, lsn).await {
            tracing::warn!("the map of the buffer pool extension could not be kept: {error}");
        }
        *self.current.write() = Current::default();
        store.lock.release();
    }

    async fn close_journal(&self, store: &Arc<Store>, lsn: Lsn) -> disk::Result<()> {
        let Some(journal) = store.journal.as_ref().filter(|_| self.recovered.load(Ordering::Acquire)) else {
            return Ok(());
        };
        if !journal.has_primary() {
            // The first stream of this run, which the keeper had not begun yet.
            self.rewrite(store, journal, 1 - store.loaded_from).await?;
        }
        let closed = journal.close(lsn.0).await;
        journal.stop();
        closed
    }

    pub(crate) fn store(&self) -> Option<Arc<Store>> {
        self.current.read().store.clone()
    }

    pub(crate) fn count_mismatch(&self, mismatch: Mismatch) {
        self.counters.count_mismatch(mismatch);
    }

    /// A table that an earlier process left: whether it may be used, now that the log has been read.
    fn judge_kept(&self, store: &Arc<Store>, checkpoint: Lsn, end: Lsn, run: u32) {
        if let Some(journal) = &store.journal {
            journal.set_run(run, end.0);
        }
        let Some(kept) = store.kept.lock().take() else { return };
        let why = self.objection(&kept, checkpoint, end, run);
        if let Some(why) = why {
            return self.discard_kept(store, &why);
        }
        for slot in 0..store.table.slots() {
            if store.table.peek(slot).is_some_and(|(entry, _)| entry.lsn > end.0) {
                store.table.remove_slot(slot, || {});
                self.counters.count(Counter::DroppedAtRestart);
            }
        }
        let pages = store.table.len();
        self.counters.add(Counter::Restored, pages as u64);
        tracing::info!(
            file = %store.path.display(),
            "the buffer pool extension is warm: {pages} of {} pages kept, {} dropped by recovery",
            kept.pages,
            kept.pages.saturating_sub(pages)
        );
    }

    /// Bytes of memory a store takes: with all the buffers it may ask for, or, while the tier is suspended,
    /// those it has.
    pub(crate) fn memory_of(&self, store: &Store) -> usize {
        let all = store.geometry.memory_bytes();
        if !self.adapt.is_suspended() {
            return all;
        }
        all - store.geometry.buffer_bytes() + store.filler.lock().buffers() * store.geometry.region_bytes
    }

    fn store_and_next(&self) -> (Option<Arc<Store>>, Option<Arc<Store>>) {
        let current = self.current.read();
        (current.store.clone(), current.next.clone())
    }

    fn ticket(store: &Store, entry: &Entry) -> Ticket {
        Ticket {
            page: entry.page,
            entry: [entry.lsn, u64::from(entry.slot) << 32 | u64::from(entry.check), store.id],
            hold: None,
        }
    }

    fn entry_of(ticket: &Ticket) -> Entry {
        let [lsn, slot_and_check, _] = ticket.entry;
        Entry { page: ticket.page, slot: (slot_and_check >> 32) as u32, lsn, check: slot_and_check as u32 }
    }

    /// Drops the entry that a read was made by, unless the page has another one by now. Whether it was there.
    fn forget(&self, entry: &Entry) -> bool {
        let (store, next) = self.store_and_next();
        let mut found = false;
        for store in [store, next].into_iter().flatten() {
            found |= store.table.remove_when(
                entry.page,
                |now| now == entry,
                |entry| store.record(&Record::Drop { slot: entry.slot }),
            );
        }
        found
    }

    #[cfg(any(test, feature = "negative-control"))]
    fn breaks(&self, promise: Promise) -> bool {
        self.broken == Some(promise)
    }

    fn refuse(&self, store: Option<&Arc<Store>>, page: PageId, history: History) -> Result<(), Refusal> {
        let usable = self.recovered.load(Ordering::Acquire) && !self.closed.load(Ordering::Acquire);
        let Some(store) = store.filter(|_| usable && !self.adapt.is_suspended()) else {
            return Err(Refusal::Off);
        };
        if self.dead.contains(page.space) {
            return Err(Refusal::Off);
        }
        let has_unused_room = store.filler.lock().has_unused_room(store);
        admission::judge(&store.seen, page, history, has_unused_room)?;
        store.with_ghosts(page, |ghosts| ghosts.admitted(page));
        if store.table.contains(page) {
            return Err(Refusal::Present);
        }
        let bytes = store.geometry.page_bytes as u64;
        if self.budget.has(bytes, self.env.now()) { Ok(()) } else { Err(Refusal::Budget) }
    }
}

impl BufferPoolExtension for Tier {
    fn find(&self, page: PageId) -> Option<Found> {
        let mode = self.adapt.mode();
        if mode == Mode::Suspended && !self.adapt.probes(page) {
            return None;
        }
        let current = self.current.read();
        let store = current.store.as_ref()?;
        if !self.recovered.load(Ordering::Acquire) || self.closed.load(Ordering::Acquire) {
            return None;
        }
        match mode {
            Mode::Active => store.with_ghosts(page, |ghosts| ghosts.looked_up(page)),
            // As if it were not there, but for the estimates: pages are taken meanwhile.
            Mode::Trial => {
                store.with_ghosts(page, |ghosts| ghosts.looked_up(page));
                return None;
            }
            // No page is admitted to the simulations of the estimates now, so none is looked up in them.
            Mode::Suspended => {}
        }
        let entry = if self.dead.contains(page.space) { None } else { store.table.find(page) };
        let Some(entry) = entry else {
            store.seen.missed(page);
            self.counters.count(Counter::Misses);
            return None;
        };
        let offset = store.geometry.offset_of(entry.slot);
        Some(Found { file: store.file.clone(), offset, ticket: Tier::ticket(store, &entry) })
    }

    fn verify(&self, ticket: &Ticket, image: &[u8]) -> bool {
        let entry = Tier::entry_of(ticket);
        self.counters.add(Counter::BytesRead, image.len() as u64);
        let Err(mismatch) = image::compare(image, &entry) else {
            self.counters.count(Counter::Hits);
            return true;
        };
        #[cfg(any(test, feature = "negative-control"))]
        if self.breaks(Promise::Compare) {
            self.counters.count(Counter::Hits);
            return true;
        }
        self.counters.count(Counter::Misses);
        // The entry may have gone while its slot was read: the region was given to other pages. That is no
        // damage.
        if self.forget(&entry) {
            self.count_mismatch(mismatch);
            tracing::debug!(page = %entry.page, slot = entry.slot, ?mismatch, "a page of the buffer pool extension is not what was stored");
        } else {
            self.counters.count(Counter::Overtaken);
        }
        false
    }

    fn read_failed(&self, ticket: Ticket, error: &disk::Error) {
        self.counters.count(Counter::ReadErrors);
        self.counters.count(Counter::Misses);
        // A file that was exchanged or cut meanwhile may well fail.
        self.fail(ticket.entry[2], &error.to_string());
    }

    fn read_took(&self, from: Source, time: Duration) {
        self.adapt.took(from, time);
    }

    fn wants(&self, page: PageId, history: History) -> bool {
        if self.adapt.is_suspended() {
            self.counters.count_refusal(Refusal::Off);
            return false;
        }
        let store = self.store();
        match self.refuse(store.as_ref(), page, history) {
            Ok(()) => true,
            Err(why) => {
                self.counters.count_refusal(why);
                false
            }
        }
    }

    fn offer(&self, page: PageId, lsn: Lsn, image: &[u8], history: History) -> Offered {
        let store = self.store();
        let offered = match (self.refuse(store.as_ref(), page, history), &store) {
            (Ok(()), Some(store)) => self.fill(store, page, lsn, image),
            (Err(why), _) => Offered::Refused(why),
            (Ok(()), None) => Offered::Refused(Refusal::Off),
        };
        match offered {
            Offered::Taken => self.counters.count(Counter::Admitted),
            Offered::Refused(why) => self.counters.count_refusal(why),
        }
        offered
    }

    fn invalidate(&self, page: PageId) {
        #[cfg(any(test, feature = "negative-control"))]
        if self.breaks(match self.recovered.load(Ordering::Acquire) {
            true => Promise::DropChanged,
            false => Promise::DropRecovered,
        }) {
            return;
        }
        let current = self.current.read();
        let mut dropped = false;
        for store in [&current.store, &current.next].into_iter().flatten() {
            dropped |= store.drop_page(page);
        }
        if dropped {
            self.counters.count(Counter::Invalidated);
        }
    }

    fn invalidate_space(&self, space: u32) {
        let current = self.current.read();
        let Some(store) = &current.store else { return };
        self.counters.count(Counter::SpacesInvalidated);
        // In this order: an add of such a page is recorded before, or not at all.
        self.dead.add(space);
        store.record(&Record::DropSpace { space });
        drop(current);
        self.control.lock().wake.set();
    }

    fn before_checkpoint(&self, lsn: Lsn) -> TaskFuture {
        let journal = self.store().and_then(|store| Some((store.id, store.journal.clone()?)));
        let Some((id, journal)) = journal.filter(|(_, journal)| !journal.is_covered(lsn.0)) else {
            return Box::pin(std::future::ready(()));
        };
        let Some(tier) = self.me.upgrade() else { return Box::pin(std::future::ready(())) };
        Box::pin(async move {
            let cover = std::pin::pin!(journal.cover(lsn.0));
            let outcome = within(cover, tier.env.sleep(COVER_WITHIN)).await;
            match outcome {
                Some(Ok(())) => {}
                Some(Err(error)) => tier.fail(id, &error.to_string()),
                None => tier.fail(id, &format!("writing its map took longer than {COVER_WITHIN:?}")),
            }
        })
    }

    fn is_on(&self) -> bool {
        self.recovered.load(Ordering::Acquire)
            && !self.closed.load(Ordering::Acquire)
            && self.current.read().store.is_some()
    }

    fn takes_pages(&self) -> bool {
        !self.adapt.is_suspended() && self.is_on()
    }

    fn memory_bytes(&self) -> usize {
        self.current.read().store.as_ref().map_or(0, |store| self.memory_of(store))
    }
}

/// What the future gives, or `None` when the sleep is over first.
async fn within<F: Future>(mut future: Pin<&mut F>, mut sleep: TaskFuture) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        sleep.as_mut().poll(context).map(|()| None)
    })
    .await
}

impl Tier {
    /// Whether pages are kept over restarts.
    pub(crate) fn keeps(&self) -> bool {
        self.options.restart == Restart::Keep
    }
}
