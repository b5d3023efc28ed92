//! Changes of the log that are applied when their page is read.
//!
//! A database need not wait at its start until each page that the log names has been read and changed. What
//! the scan of the log has collected is kept instead ([`Unapplied`]), the start goes on, and a page gets its
//! changes while it is read, before anybody can see it ([`PageStore::apply_when_read`]). So rollback, purge
//! and clients see each page as it was at the end of the log. Meanwhile the pages that nobody asks for are
//! read in the background, those with the oldest changes first.
//!
//! What keeps this safe:
//!
//! * *The checkpoint stays behind what is not applied.* A page that is left over has its oldest change in the
//!   log only. An LSN that is not above the start of any of these, the floor, counts in the flush list like
//!   that of a dirty page. It never falls.
//! * *A page that gets its changes enters the flush list with the floor*, which is not above the start of its
//!   own first change. So the list stays sorted although pages come in any order: recovered pages by the
//!   floor of their time, and before them (newer) what was changed since the start. A page that comes out of
//!   turn is written earlier than it would have to be; nothing else happens.
//! * *Nobody comes between.* The page is latched exclusively from before it can be found until it is in the
//!   flush list, so nobody can make it dirty with a later LSN first.
//! * *A page is read once at a time* (`pool/missing_page.rs`), so nobody else applies the same changes. A
//!   read that fails leaves them here for the next one.
//! * *A page whose changes begin with its initialisation is not read*: the same "read" ends without the
//!   file.
//! * A page that is made again while changes of it are left gets them first, as if it were read.
//! * A crash meanwhile is a crash during recovery: the checkpoint has not passed the floor, and pages say by
//!   their LSN which changes they have.
//!
//! A sharp checkpoint and a clean shutdown wait until nothing is left, and a tablespace that is written
//! out, to be closed or copied, until nothing of it is. A tablespace that is dropped takes its changes with
//! it. When the background cannot read a page, the store stops accepting changes: the checkpoint could
//! never move again.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use disk::{Environment, Event, Wait};
use page::PageId;
use parking_lot::Mutex;
use redo::Lsn;

use crate::counters::Counter;
use crate::error::{Error, Interrupt};
use crate::flush::flush_list::FlushList;
use crate::pool::frame::FrameRef;
use crate::pool::guard::Pin;
use crate::recovery::apply::{Applied, apply_list};
use crate::recovery::changes::{Batch, Changes, List};
use crate::recovery::page_map::PageMap;
use crate::store::PageStore;

/// Pages that the background reads together, and how many such groups are under way.
const TOGETHER: usize = 32;
const LANES: usize = 2;
/// Those with the oldest changes come first, in portions that are sorted by page: neighbours that are read
/// together are one request to the device. The checkpoint moves on by portions.
const PORTIONS: usize = 4;
const PORTION_MIN: usize = 2048;
/// Pause before a tablespace that is being dropped is looked at again.
const RETRY: Duration = Duration::from_millis(1);
/// Pauses after an error that may pass.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Where a store keeps what is left, while something is.
#[derive(Default)]
pub(crate) struct UnappliedPlace {
    any: AtomicBool,
    left: Mutex<Option<Arc<Unapplied>>>,
}

impl UnappliedPlace {
    /// What is left; `None` as soon as all is applied.
    #[inline]
    pub(crate) fn get(&self) -> Option<Arc<Unapplied>> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        self.left.lock().clone()
    }

    fn set(&self, unapplied: Arc<Unapplied>) {
        *self.left.lock() = Some(unapplied);
        self.any.store(true, Ordering::Release);
    }

    /// Whether this call was the one that did it.
    fn clear(&self) -> bool {
        self.any.store(false, Ordering::Release);
        self.left.lock().take().is_some()
    }

    /// Pages that are left.
    pub(crate) fn pages(&self) -> u64 {
        self.get().map_or(0, |unapplied| unapplied.left.load(Ordering::Relaxed))
    }
}

/// The changes that are left.
pub(crate) struct Unapplied {
    changes: Changes,
    state: Mutex<State>,
    /// Pages that are left, for who must not wait for the state.
    left: AtomicU64,
    /// When this began, how many pages there were, and how many pages had been read.
    began: Duration,
    pages: u64,
    read: u64,
    /// Set when nothing is left, or nobody comes to it any more.
    over: Event,
}

impl Drop for Unapplied {
    fn drop(&mut self) {
        self.over.set();
    }
}

struct State {
    pages: PageMap<List>,
    /// The pages with the start LSN of their first change, in portions from old to new.
    order: Vec<(Lsn, PageId)>,
    /// For each place in `order`, the smallest start LSN from there on.
    floors: Vec<Lsn>,
    /// Those before it are applied.
    first: usize,
    /// Those before it are applied or being read.
    claimed: usize,
}

impl State {
    /// An LSN that is not above the start of anything that is left; it never falls.
    fn floor(&mut self) -> Option<Lsn> {
        while let Some((_, page)) = self.order.get(self.first) {
            if self.pages.contains_key(page) {
                return Some(self.floors[self.first]);
            }
            self.first += 1;
        }
        None
    }

    /// Some pages that are left, those with the oldest changes first, and where the next ones are.
    fn left_from(&self, from: usize, most: usize) -> (Vec<PageId>, usize) {
        let mut left = Vec::with_capacity(most);
        for (at, (_, page)) in self.order.iter().enumerate().skip(from) {
            if left.len() == most {
                return (left, at);
            }
            if self.pages.contains_key(page) {
                left.push(*page);
            }
        }
        (left, self.order.len())
    }
}

/// A page that has got its changes and is not yet in the flush list.
pub(crate) struct CaughtUp {
    unapplied: Arc<Unapplied>,
    page: PageId,
    applied: Applied,
}

impl CaughtUp {
    /// Whether the page had not all of them.
    pub(crate) fn is_changed(&self) -> bool {
        self.applied.first.is_some()
    }

    /// The page can be found and nobody could change it yet: enters it in the flush list if it is changed.
    pub(crate) fn enter(&self, frame: FrameRef, list: &Mutex<FlushList>) {
        let mut state = self.unapplied.state.lock();
        let floor = state.floor();
        if state.pages.remove(&self.page).is_none() {
            // Its tablespace is being dropped, and its changes with it.
            return;
        }
        self.unapplied.left.fetch_sub(1, Ordering::Relaxed);
        let mut list = list.lock();
        if let (Some(first), Some(floor)) = (self.applied.first, floor) {
            assert!(floor <= first, "page {} has changes from {first}, the floor is {floor}", self.page);
            // One of a batch before may be dirty since then.
            if !frame.is_dirty() {
                list.enter_recovered(frame, floor);
            }
        }
        self.applied.note(&mut list);
        list.set_unapplied(state.floor());
    }
}

impl Unapplied {
    /// Whether the page begins with its initialisation, so that what is in its file does not matter.
    pub(crate) fn begins_with_init(&self, page: PageId) -> bool {
        let state = self.state.lock();
        state.pages.get(&page).is_some_and(|list| self.changes.begin_with_init(*list))
    }

    /// Whether changes of the page are left.
    pub(crate) fn has(&self, page: PageId) -> bool {
        self.state.lock().pages.contains_key(&page)
    }

    /// The next pages to be read, at most `most`: first each once, then those that others claimed and did
    /// not finish. Whether it is for the first time.
    fn claim(&self, most: usize) -> (Vec<PageId>, bool) {
        let mut state = self.state.lock();
        state.floor();
        let (mut claimed, at) = state.left_from(state.claimed, most);
        state.claimed = at;
        let first_time = !claimed.is_empty();
        if !first_time {
            claimed = state.left_from(state.first, most).0;
        }
        claimed.sort_unstable();
        (claimed, first_time)
    }

    /// Not all of what was claimed could be read: it comes again.
    fn claim_again(&self) {
        let mut state = self.state.lock();
        state.claimed = state.first;
    }

    /// The pages of a tablespace that are left.
    fn pages_of(&self, space: u32) -> Vec<PageId> {
        let state = self.state.lock();
        let mut pages: Vec<_> = state.pages.keys().filter(|page| page.space == space).copied().collect();
        pages.sort_unstable();
        pages
    }

    /// Forgets the changes of a tablespace.
    fn forget(&self, space: u32, list: &Mutex<FlushList>) {
        let mut state = self.state.lock();
        state.pages.retain(|page, _| page.space != space);
        self.left.store(state.pages.len() as u64, Ordering::Relaxed);
        list.lock().set_unapplied(state.floor());
    }
}

impl PageStore {
    /// Keeps the changes, to be applied when their pages are read. Files are made as long as they must be.
    pub(super) fn apply_later(&self, batch: Batch) -> Result<u64, Error> {
        let (sizes, pages, changes) = batch.into_parts();
        self.make_as_long(&sizes)?;
        if pages.is_empty() {
            return Ok(0);
        }
        let mut order: Vec<_> = pages.iter().map(|(page, list)| (changes.start(*list), *page)).collect();
        order.sort_unstable();
        for portion in order.chunks_mut((pages.len() / PORTIONS).max(PORTION_MIN)) {
            portion.sort_unstable_by_key(|(_, page)| *page);
        }
        let count = pages.len() as u64;
        let read = self.counters.sum(Counter::PagesRead);
        let mut floors: Vec<_> = order.iter().map(|(start, _)| *start).collect();
        for at in (1..floors.len()).rev() {
            floors[at - 1] = floors[at - 1].min(floors[at]);
        }
        let mut state = State { pages, order, floors, first: 0, claimed: 0 };
        let mut list = self.flush_list.lock();
        list.begin_unapplied(state.floor());
        drop(list);
        let state = Mutex::new(state);
        let (began, over) = (self.env.now(), Event::new());
        let left = AtomicU64::new(count);
        let unapplied = Arc::new(Unapplied { changes, state, left, began, pages: count, read, over });
        self.unapplied.set(unapplied.clone());
        // Those of batches before that are still in memory.
        let pages: Vec<_> = unapplied.state.lock().order.iter().map(|(_, page)| *page).collect();
        pages
            .into_iter()
            .filter_map(|page| self.look_up(page))
            .try_for_each(|pin| self.apply_in_memory(&pin))?;
        Ok(count)
    }

    fn apply_in_memory(&self, pin: &Pin) -> Result<(), Error> {
        let frame = pin.frame();
        frame.latch.lock_exclusive();
        // SAFETY: pinned and X-latched until the latch is given back.
        let bytes = unsafe { frame.bytes_mut() };
        let caught_up = self.apply_when_read(pin.page_id(), bytes);
        if let Ok(Some(caught_up)) = &caught_up {
            frame.newest.store(page::lsn(bytes), Ordering::Relaxed);
            caught_up.enter(frame, &self.flush_list);
        }
        frame.latch.unlock_exclusive();
        caught_up.map(drop)
    }

    /// Begins to read what nobody asks for. The store is held only while something is done, so that it can
    /// be closed.
    pub(super) fn apply_in_background(&self) {
        for _ in 0..LANES {
            let (store, env) = (self.weak(), self.env.clone());
            let lane = async move {
                let _guard = disk::OnPanic::new({
                    let store = store.clone();
                    // The checkpoint could never move again.
                    move || {
                        if let Some(store) = store.upgrade() {
                            store.poison("recovery ended by a panic");
                        }
                    }
                });
                let (mut pause, mut left) = (Duration::ZERO, u64::MAX);
                while let Some(reads) = store.upgrade().and_then(|store| store.read_some_in_background()) {
                    match reads {
                        Ok(reads) => {
                            if reads.left < left {
                                (pause, left) = (Duration::ZERO, reads.left);
                            }
                            reads.over(&*env).await;
                        }
                        // What may pass.
                        Err(error) => {
                            pause = (2 * pause).clamp(PAUSE_MIN, PAUSE_MAX);
                            tracing::error!("recovery goes on in {} s: {error}", pause.as_secs());
                            env.sleep(pause).await;
                        }
                    }
                }
            };
            // Pages that the log makes take no I/O: the thread of the page cleaner must not be kept from it.
            let workers = self.env.clone();
            workers.spawn_worker("recovery", Box::pin(lane));
        }
    }

    /// `None`: it is over, well or badly. An error is one that may pass.
    fn read_some_in_background(&self) -> Option<Result<Reads, Error>> {
        if self.recovers_for.get().is_some_and(|user| user.strong_count() == 0) {
            // The store was not closed, and nobody is left who could.
            return None;
        }
        #[cfg(test)]
        if self.broken.background.load(Ordering::Relaxed) {
            return None;
        }
        match self.read_some_of_the_rest(TOGETHER) {
            Ok(reads) => reads.map(Ok),
            Err(error) if may_pass(&error) => Some(Err(error)),
            Err(error) => {
                self.cannot_apply(&error);
                None
            }
        }
    }

    fn cannot_apply(&self, error: &Error) {
        if self.poisoned().is_none() && !self.stopping.load(Ordering::Acquire) {
            self.poison(&format!(
                "the redo log has changes of a page that cannot be read, so it cannot be recovered: {error}. Nothing is lost in the log: \
                 where the cause can be removed, do so and start again; innodb_force_recovery=1 starts without these changes \
                 (5, if the file is the undo tablespace)"
            ));
        }
    }

    /// Applies all changes that are left.
    ///
    /// # Errors
    /// When a page cannot be read.
    pub(crate) async fn apply_the_rest(&self) -> Result<(), Error> {
        let left = self.unapplied.pages();
        if left > 0 {
            tracing::info!("{left} pages get their changes from the redo log first");
        }
        while let Some(reads) = self.read_some_of_the_rest(TOGETHER)? {
            reads.over(&*self.env).await;
        }
        self.refuse_what_is_left()
    }

    /// The same of one tablespace.
    pub(crate) async fn apply_the_rest_of(&self, space: u32) -> Result<(), Error> {
        let Some(unapplied) = self.unapplied.get() else { return Ok(()) };
        let pages = unapplied.pages_of(space);
        for pages in pages.chunks(TOGETHER) {
            all(self.start_reads(pages, |_| {})).await;
            for page in pages {
                while unapplied.has(*page) {
                    self.refuse_when_poisoned()?;
                    match self.pin(*page) {
                        Ok(_) => {}
                        Err(Interrupt::Wait(wait)) => wait.event().clone().wait().await,
                        Err(Interrupt::Error(error)) => return Err(error),
                    }
                }
            }
        }
        Ok(())
    }

    /// A store that is being closed applies nothing any more.
    fn refuse_what_is_left(&self) -> Result<(), Error> {
        if self.unapplied.get().is_none() {
            return Ok(());
        }
        Err(Error::Poisoned("the store was closed before all changes of the redo log were applied".into()))
    }

    /// The same for recovery itself.
    pub(super) fn apply_the_rest_blocking(&self) -> Result<(), Error> {
        // Nobody else does it.
        while let Some(reads) = self.read_some_of_the_rest(2 * LANES * TOGETHER)? {
            reads.events.iter().for_each(|read| self.env.block_until(read));
        }
        self.refuse_what_is_left()
    }

    /// Begins to read some of the pages that are left. When that is over, it is to be called again. `None`:
    /// nothing is left, or the store is being closed.
    fn read_some_of_the_rest(&self, most: usize) -> Result<Option<Reads>, Error> {
        let Some(unapplied) = self.unapplied.get() else { return Ok(None) };
        self.refuse_when_poisoned()?;
        if self.stopping.load(Ordering::Acquire) {
            return Ok(None);
        }
        let (pages, first_time) = unapplied.claim(most);
        if pages.is_empty() {
            self.all_is_applied(&unapplied);
            return Ok(None);
        }
        if first_time {
            let events = self.start_reads(&pages, |_| {});
            if self.free.len() == 0 {
                unapplied.claim_again();
            }
            if !events.is_empty() {
                return Ok(Some(Reads { events, are_stuck: false, left: self.unapplied.pages() }));
            }
        }
        // There were no frames, others read them, that has failed, or nothing is left of them.
        let (mut reads, mut failed) = (Vec::new(), None);
        for page in &pages {
            if !unapplied.has(*page) {
                continue;
            }
            match self.pin(*page) {
                Ok(_) => {}
                Err(Interrupt::Wait(wait)) => reads.push(wait.event().clone()),
                // Its tablespace is dropped. As long as it is being read its changes are wanted.
                Err(Interrupt::Error(Error::NoSuchSpace(space))) => {
                    if self.pending.of_space(space).is_empty() {
                        unapplied.forget(space, &self.flush_list);
                    }
                }
                // The others may be read all the same, and the next time this one.
                Err(Interrupt::Error(error)) if may_pass(&error) => failed = Some(error),
                Err(Interrupt::Error(error)) if unapplied.has(*page) => return Err(error),
                Err(Interrupt::Error(_)) => {}
            }
        }
        if let Some(error) = failed.filter(|_| reads.is_empty()) {
            return Err(error);
        }
        let are_stuck = reads.is_empty() && pages.iter().any(|page| unapplied.has(*page));
        Ok(Some(Reads { events: reads, are_stuck, left: self.unapplied.pages() }))
    }

    fn all_is_applied(&self, unapplied: &Unapplied) {
        if !self.unapplied.clear() {
            return;
        }
        if self.recovering.load(Ordering::Acquire) {
            // More follows.
            return;
        }
        let took = self.env.now().saturating_sub(unapplied.began);
        // It says how fast the disk is where hardly anybody else read meanwhile, and frames were free.
        let read = self.counters.sum(Counter::PagesRead) - unapplied.read;
        if unapplied.read == 0 && read <= unapplied.pages + unapplied.pages / 8 {
            self.note_rate_of_pages(unapplied.pages, read, took);
        }
        tracing::info!(
            "recovery: all changes are applied, to {} pages in {:.1} s after the log was read",
            unapplied.pages,
            took.as_secs_f64()
        );
        self.wake_cleaner();
        unapplied.over.set();
    }

    /// Gives the page its changes now, if some are left. For pages that are known to be damaged: a start that
    /// meets one fails. Blocks.
    ///
    /// # Errors
    /// When the page cannot be read.
    pub fn apply_now_to(&self, page: PageId) -> Result<(), Error> {
        match self.unapplied.get() {
            Some(unapplied) if unapplied.has(page) => self.pin_blocking(page).map(drop),
            _ => Ok(()),
        }
    }

    /// What is left is applied in the background as long as this one is alive. Without, as long as the store
    /// is: what is under way in the background keeps it alive.
    pub fn recover_for(&self, user: Weak<dyn Any + Send + Sync>) {
        let _ = self.recovers_for.set(user);
    }

    /// Whether the device should rather read what is left than write what is recovered: the checkpoint does
    /// not pass what is left.
    pub(crate) fn reads_for_recovery_first(&self) -> bool {
        #[cfg(test)]
        if self.broken.unapplied.load(Ordering::Relaxed) {
            return false;
        }
        self.unapplied.get().is_some()
    }

    /// Set when recovery has left nothing to be applied, or the store is gone.
    #[must_use]
    pub fn all_applied(&self) -> Event {
        self.unapplied.get().map_or_else(Event::already_set, |unapplied| unapplied.over.clone())
    }

    /// Does to the page what the log has and it lacks. Its frame is owned by the read; `None`: nothing is
    /// left of it.
    ///
    /// # Errors
    /// When the changes do not fit the page, or the page is not there.
    pub(crate) fn apply_when_read(&self, page: PageId, bytes: &mut [u8]) -> Result<Option<CaughtUp>, Error> {
        let Some(unapplied) = self.unapplied.get() else { return Ok(None) };
        let list = unapplied.state.lock().pages.get(&page).copied();
        let Some(list) = list else { return Ok(None) };
        let applied = apply_list(bytes, page, list, &unapplied.changes)?;
        let Some(applied) = applied else { return Err(self.lost_page(page)) };
        Ok(Some(CaughtUp { unapplied, page, applied }))
    }

    /// The tablespace is dropped: what the log has of it does not matter any more.
    pub(crate) fn forget_unapplied(&self, space: u32) {
        if let Some(unapplied) = self.unapplied.get() {
            unapplied.forget(space, &self.flush_list);
        }
    }
}

/// Reads of pages that are left.
struct Reads {
    events: Vec<Event>,
    /// There is nothing to wait for, and yet something is left.
    are_stuck: bool,
    /// Pages that were left when they began.
    left: u64,
}

impl Reads {
    /// Waits until they are over, and gives others a turn.
    async fn over(self, env: &dyn Environment) {
        if self.are_stuck {
            // Their tablespace is being dropped.
            env.sleep(RETRY).await;
        }
        all(self.events).await;
        Wait::yielding().await;
    }
}

/// Whether a page that was not read for this may be read later.
fn may_pass(error: &Error) -> bool {
    matches!(error, Error::Io(_) | Error::NoSpace { .. })
}

async fn all(reads: Vec<Event>) {
    for read in reads {
        read.wait().await;
    }
}
