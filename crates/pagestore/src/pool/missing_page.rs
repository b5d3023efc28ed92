//! Reading pages that are missing: one read for all who ask, from the extension or the data file.
//!
//! A read is into a free frame. Who asked for it gets a [`Wait`] whose [`ReadHold`] will own a pin when the
//! read is done. Requesters of a page that is being read share the one read. A page that the buffer pool
//! extension has comes from there; if that copy is damaged or cannot be read, the same read goes on with the
//! data file ([`ReadCompletion::complete_tier`]). A page of the data file that is damaged is an error.
//!
//! While a page is being read its frame is owned by the read and in no page table; its [`PendingRead`] is in
//! one of the maps below. Publication (page table entry, LRU list, pins for those who wait) happens under the
//! map's lock, where a requester also looks whether to join: nobody can miss both. A read that somebody asked
//! for and that failed stays in the map, with its error, until a request has fetched the error and nobody
//! waits any more; then it is forgotten and the next request reads again. Forgotten earlier, a waiter without
//! a hold (`Wait::without_hold`) would restart the same read forever.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use disk::{Event, File, Histogram, Io, IoBuf, IoKind, Wait, WaitKind};
use page::PageId;
use page::extension::{BufferPoolExtension, Source, Ticket};
use parking_lot::Mutex;

use crate::counters::Counter;
use crate::error::{Error, Interrupt};
use crate::pool::frame::FrameRef;
use crate::pool::free_list::Need;
use crate::pool::guard::Pin;
use crate::recovery::unapplied::CaughtUp;
use crate::space::registry::Space;
use crate::store::PageStore;

const SHARDS: usize = 16;

/// The reads under way, in shards by page.
#[derive(Default)]
pub(crate) struct PendingReads {
    shards: [Mutex<HashMap<PageId, Arc<PendingRead>>>; SHARDS],
    /// Those of them whose requests have gone to data files.
    from_data_files: AtomicUsize,
}

impl PendingReads {
    pub(super) fn shard(&self, id: PageId) -> &Mutex<HashMap<PageId, Arc<PendingRead>>> {
        &self.shards[(id.page as usize ^ (id.space as usize).wrapping_mul(7)) % SHARDS]
    }

    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// How many reads of data files are under way. What the extension serves says nothing about their device.
    pub(crate) fn of_data_files(&self) -> usize {
        self.from_data_files.load(Ordering::Relaxed)
    }

    /// The events of reads of one tablespace that are under way.
    pub(crate) fn of_space(&self, space: u32) -> Vec<Event> {
        let of_shard = |shard: &Mutex<HashMap<PageId, Arc<PendingRead>>>| -> Vec<Event> {
            let shard = shard.lock();
            let reads = shard.values().filter(|read| read.id.space == space && !read.event.is_set());
            reads.map(|read| read.event.clone()).collect()
        };
        self.shards.iter().flat_map(of_shard).collect()
    }
}

/// How long reads took, by where the page came from.
#[derive(Default)]
pub(crate) struct ReadTimes {
    tier: Histogram,
    data_file: Histogram,
}

impl ReadTimes {
    pub(crate) fn of(&self, source: Source) -> &Histogram {
        match source {
            Source::Tier => &self.tier,
            Source::DataFile => &self.data_file,
        }
    }
}

/// One read under way.
pub(super) struct PendingRead {
    id: PageId,
    pub(super) event: Event,
    state: Mutex<ReadState>,
}

enum ReadState {
    Reading {
        waiters: u32,
        /// Somebody asked for the page: it is not only read ahead.
        wanted: bool,
    },
    /// Pinned once for each waiter.
    Done(FrameRef),
    Failed {
        error: Error,
        waiters: u32,
        /// A request was answered with the error.
        fetched: bool,
    },
}

impl ReadState {
    /// A failure that nobody needs any more.
    fn is_over(&self) -> bool {
        matches!(self, ReadState::Failed { waiters: 0, fetched: true, .. })
    }
}

/// The share of one waiter in a read: when the read is done, a pin.
pub(super) struct ReadHold {
    store: Arc<PageStore>,
    pub(super) read: Arc<PendingRead>,
}

impl ReadHold {
    /// What became of the read, which must be over.
    pub(super) fn outcome(&self) -> Result<Pin, Error> {
        match &mut *self.read.state.lock() {
            ReadState::Done(frame) => {
                frame.pins.add_pins(1);
                Ok(Pin::adopt(*frame))
            }
            ReadState::Failed { error, fetched, .. } => {
                *fetched = true;
                Err(error.clone())
            }
            ReadState::Reading { .. } => unreachable!("the event of a read is set when it is over"),
        }
    }
}

impl Drop for ReadHold {
    fn drop(&mut self) {
        let over = {
            let mut state = self.read.state.lock();
            match &mut *state {
                ReadState::Reading { waiters, .. } | ReadState::Failed { waiters, .. } => *waiters -= 1,
                ReadState::Done(frame) => frame.pins.unpin(),
            }
            state.is_over()
        };
        if over {
            let mut shard = self.store.pending.shard(self.read.id).lock();
            if shard.get(&self.read.id).is_some_and(|read| Arc::ptr_eq(read, &self.read)) {
                shard.remove(&self.read.id);
            }
        }
    }
}

/// What a request for a missing page found.
pub(super) enum Missing {
    /// It has come in meanwhile.
    Present(Pin),
    /// A read is under way.
    Joined(ReadHold),
    /// A read is under way, and the request, which reads ahead, takes no share in it.
    UnderWay,
    /// A read has just failed for somebody who still waits.
    Failed(Error),
    /// The caller has to start the read.
    Start(ReadStart),
}

/// A read that is entered and must now be submitted.
pub(super) struct ReadStart {
    hold: Option<ReadHold>,
    /// Set when it is over.
    pub(super) over: Event,
    pub(super) file: Arc<dyn File>,
    pub(super) io: Io,
}

impl PageStore {
    /// The slow half of [`PageStore::pin`]. May be called with latches held only if the caller then lets them
    /// go.
    #[cold]
    pub(crate) fn pin_missing(&self, page: PageId) -> Result<Pin, Interrupt> {
        match self.find_or_start(page, Need::Usual)? {
            Missing::Present(pin) => Ok(pin),
            Missing::Failed(error) => Err(error.into()),
            Missing::Joined(hold) => Err(waiting(hold)),
            Missing::Start(start) => {
                let hold = self.submit_one(start);
                self.page_was_missing(page);
                Err(waiting(hold))
            }
            Missing::UnderWay => unreachable!("who wants the page takes a share in its read"),
        }
    }

    /// As [`PageStore::pin_missing`] for callers that may not give up what they hold: blocks the thread, and
    /// is counted.
    #[cold]
    pub(crate) fn pin_blocking(&self, page: PageId) -> Result<Pin, Error> {
        self.counters.count(Counter::BlockingReads);
        loop {
            let hold = match self.find_or_start(page, Need::Urgent) {
                Ok(Missing::Present(pin)) => return Ok(pin),
                Ok(Missing::Failed(error)) | Err(Interrupt::Error(error)) => return Err(error),
                Ok(Missing::Joined(hold)) => hold,
                Ok(Missing::Start(start)) => self.submit_one(start),
                Ok(Missing::UnderWay) => unreachable!("who wants the page takes a share in its read"),
                Err(Interrupt::Wait(wait)) => {
                    self.env.block_until(wait.event());
                    continue;
                }
            };
            self.env.block_until(&hold.read.event);
            return hold.outcome();
        }
    }

    fn submit_one(&self, start: ReadStart) -> ReadHold {
        self.counters.count(Counter::Reads);
        self.env.storage().submit(vec![(start.file, start.io)]);
        match start.hold {
            Some(hold) => hold,
            None => unreachable!("who wants the page takes a share in its read"),
        }
    }

    fn find_or_start(&self, page: PageId, need: Need) -> Result<Missing, Interrupt> {
        if let Some(missing) = self.join(page, &mut self.pending.shard(page).lock()) {
            return Ok(missing);
        }
        let space = self.open_space_of(page.space)?;
        space.check_bounds(page.page)?;
        let frame = self.take_frame_or_wait(need)?;
        Ok(self.enter_read(page, space, frame, true)?)
    }

    /// What the read of the page that is entered in the shard, if any, means for one more request.
    fn join(&self, page: PageId, shard: &mut HashMap<PageId, Arc<PendingRead>>) -> Option<Missing> {
        let read = shard.get(&page)?.clone();
        let mut state = read.state.lock();
        let missing = match &mut *state {
            ReadState::Reading { waiters, wanted } => {
                *waiters += 1;
                *wanted = true;
                drop(state);
                return Some(Missing::Joined(ReadHold { store: self.this(), read }));
            }
            ReadState::Failed { error, fetched, .. } => {
                *fetched = true;
                Missing::Failed(error.clone())
            }
            // Publication removes the entry under the lock that the caller holds.
            ReadState::Done(frame) => {
                frame.pins.add_pins(1);
                frame.read_ahead.store(false, Ordering::Relaxed);
                Missing::Present(Pin::adopt(*frame))
            }
        };
        if state.is_over() {
            shard.remove(&page);
        }
        Some(missing)
    }

    /// Enters a read of the page of this open tablespace into the owned `frame`, unless the page is there or
    /// being read.
    pub(super) fn enter_read(
        &self,
        page: PageId,
        space: Arc<Space>,
        frame: FrameRef,
        wait: bool,
    ) -> Result<Missing, Error> {
        let give_back = |result| {
            self.free.put(frame);
            result
        };
        let mut shard = self.pending.shard(page).lock();
        // Under the lock: a drop of the tablespace marks it first, and a cut of its file makes it shorter
        // first, and then looks through all shards.
        if space.is_dropped() {
            drop(shard);
            return give_back(Err(Error::NoSuchSpace(page.space)));
        }
        if let Err(error) = space.check_bounds(page.page) {
            drop(shard);
            return give_back(Err(error));
        }
        if !wait && shard.contains_key(&page) {
            drop(shard);
            return give_back(Ok(Missing::UnderWay));
        }
        if let Some(joined) = self.join(page, &mut shard) {
            drop(shard);
            return give_back(Ok(joined));
        }
        if let Some(pin) = self.look_up(page) {
            drop(shard);
            if wait {
                // It has come just now, perhaps ahead of this.
                pin.frame().read_ahead.store(false, Ordering::Relaxed);
            }
            return give_back(Ok(Missing::Present(pin)));
        }
        let state = Mutex::new(ReadState::Reading { waiters: u32::from(wait), wanted: wait });
        let read = Arc::new(PendingRead { id: page, event: Event::new(), state });
        shard.insert(page, read.clone());
        drop(shard);
        let (store, over) = (self.this(), read.event.clone());
        let hold = wait.then(|| ReadHold { store: store.clone(), read: read.clone() });
        let tier = self.tier_to_use();
        let started = self.env.now();
        if !wait {
            store.foreground.ahead_begins();
        }
        let completion = ReadCompletion {
            store,
            read,
            frame,
            space,
            tier,
            ticket: None,
            from_data_file: false,
            is_made: false,
            asked: wait,
            started,
            over: false,
        };
        if self.unapplied.get().is_some_and(|unapplied| unapplied.begins_with_init(page)) {
            completion.complete_unread();
            return Ok(hold.map_or(Missing::UnderWay, Missing::Joined));
        }
        // The read is entered: the page is not in the pool and cannot come into it otherwise, so what the
        // tier has of it stays current until this read is over.
        let (file, io) = completion.request();
        Ok(Missing::Start(ReadStart { hold, over, file, io }))
    }

    /// Whether a read of the page is under way.
    pub(super) fn is_being_read(&self, page: PageId) -> bool {
        self.pending.shard(page).lock().contains_key(&page)
    }

    /// A page is to be changed that its file does not have, although it was made.
    #[cold]
    pub(crate) fn lost_page(&self, page: PageId) -> Error {
        self.counters.count(Counter::CorruptPages);
        let file = self.spaces.get(page.space).map_or_else(|_| PathBuf::new(), |space| space.path());
        let why = "there are only zeros in its place, and it is in use: its last write was lost".to_owned();
        Error::Corrupt { file, page, why }
    }

    /// A page that was read has its changes from a log that reaches as far as its LSN. When this log ends
    /// before, it is not the one: changes to come would get smaller LSNs than the page has, and a recovery
    /// would take them for applied.
    fn check_not_newer(&self, lsn: u64) -> Result<(), String> {
        let end = self.redo.current().0;
        if lsn <= end {
            return Ok(());
        }
        let why = format!(
            "its LSN is {lsn}, but the redo log ends at {end}: the page is of a later time than the log. The log was replaced by an \
             older one, or the file is from another data directory. Restore the whole data directory from one backup; \
             innodb_force_recovery=1 reads such pages as they are"
        );
        if !self.options.skip_corrupt {
            return Err(why);
        }
        if !self.told_newer.swap(true, Ordering::Relaxed) {
            tracing::warn!("a page was taken as it is although {why}");
        }
        Ok(())
    }
}

pub(super) fn waiting(hold: ReadHold) -> Interrupt {
    Interrupt::Wait(Wait::holding(hold.read.event.clone(), Box::new(hold)).of(WaitKind::PageRead))
}

/// What happens when a read is over; counts as failed when the storage drops it unfinished.
struct ReadCompletion {
    store: Arc<PageStore>,
    read: Arc<PendingRead>,
    frame: FrameRef,
    space: Arc<Space>,
    /// The buffer pool extension there was when the read began.
    tier: Option<Arc<dyn BufferPoolExtension>>,
    /// Of the slot that is being read; without, it is the data file.
    ticket: Option<Ticket>,
    /// It is counted among the reads of data files.
    from_data_file: bool,
    /// Nothing is read: the log alone makes the page.
    is_made: bool,
    /// Somebody wanted the page when the read began: it is not ahead of need.
    asked: bool,
    /// When the request was made.
    started: Duration,
    over: bool,
}

impl ReadCompletion {
    /// The request that reads the page from the tier if that has it, else from the data file.
    fn request(mut self) -> (Arc<dyn File>, Io) {
        match self.tier.as_ref().and_then(|tier| tier.find(self.read.id)) {
            Some(found) => {
                self.ticket = Some(found.ticket);
                self.request_from(found.file, found.offset)
            }
            None => self.request_from_data_file(),
        }
    }

    fn request_from_data_file(mut self) -> (Arc<dyn File>, Io) {
        self.from_data_file = true;
        self.store.pending.from_data_files.fetch_add(1, Ordering::Relaxed);
        let (file, offset) = (self.space.file().clone(), self.store.page_size.offset_of(self.read.id.page));
        self.request_from(file, offset)
    }

    fn request_from(self, file: Arc<dyn File>, offset: u64) -> (Arc<dyn File>, Io) {
        // SAFETY: the frame is owned by this read until its completion ran; the completion holds the store,
        // and with it the memory. There is one request at a time.
        let buf = unsafe { IoBuf::raw(self.frame.address(), self.frame.len()) };
        let io = Io::new(IoKind::Read { buf, offset }, move |result| match self.ticket {
            Some(_) => self.complete_tier(result.map(drop)),
            None => self.complete(result.map(drop)),
        });
        (file, io)
    }

    /// The tier's slot has been read: the page, or the same read goes on with the data file, which those who
    /// wait do not notice.
    fn complete_tier(mut self, result: disk::Result<()>) {
        let (Some(tier), Some(ticket)) = (self.tier.clone(), self.ticket.take()) else {
            unreachable!("a slot of the tier was read");
        };
        match result {
            Ok(()) => {
                // SAFETY: the frame is owned by this read, and the transfer is over.
                let bytes: &[u8] = unsafe { self.frame.bytes() };
                // The tier compares with what it stored, whole. Only which page it is, is looked at here once
                // more: that costs nothing, and a page under another's number is the worst there can be.
                // Recovery has told the tier of each page that the log names, so it has none that is left.
                let unapplied = self.store.unapplied.get();
                let is_left = unapplied.is_some_and(|unapplied| unapplied.has(self.read.id));
                let is_it = page::identity(bytes) == self.read.id && !is_left;
                if tier.verify(&ticket, bytes) && is_it {
                    tier.read_took(Source::Tier, self.took(Source::Tier));
                    let lsn = page::lsn(bytes);
                    return self.end_well(lsn, None);
                }
            }
            Err(error) => tier.read_failed(ticket, &error),
        }
        self.store.counters.count(Counter::TierFallbacks);
        self.started = self.store.env.now();
        let store = self.store.clone();
        let request = self.request_from_data_file();
        store.env.storage().submit(vec![request]);
    }

    fn complete(mut self, result: disk::Result<()>) {
        if result.is_ok() {
            let took = self.took(Source::DataFile);
            if let Some(tier) = &self.tier {
                tier.read_took(Source::DataFile, took);
            }
        }
        let verified = result.map_err(Error::from).and_then(|()| {
            // SAFETY: the frame is owned by this read, and the transfer is over.
            let bytes: &[u8] = unsafe { self.frame.bytes() };
            let sound = page::verify_identity(bytes, self.read.id);
            sound.and_then(|()| self.store.check_not_newer(page::lsn(bytes))).map_err(|why| {
                self.store.counters.count(Counter::CorruptPages);
                Error::Corrupt { file: self.space.path(), page: self.read.id, why }
            })
        });
        let recovered = verified.and_then(|()| self.recover_page());
        self.end(recovered);
    }

    /// The page is made from the log alone.
    fn complete_unread(mut self) {
        self.is_made = true;
        let recovered = self.recover_page().and_then(|recovered| match recovered {
            (lsn, Some(caught_up)) => Ok((lsn, Some(caught_up))),
            // Its changes are forgotten with it.
            (_, None) => Err(Error::NoSuchSpace(self.read.id.space)),
        });
        self.end(recovered);
    }

    /// Does to the page what recovery has left for this moment. Returns the page's LSN, too.
    fn recover_page(&mut self) -> Result<(u64, Option<CaughtUp>), Error> {
        // SAFETY: the frame is owned by this read, and no transfer is under way.
        let bytes = unsafe { self.frame.bytes_mut() };
        let caught_up = self.store.apply_when_read(self.read.id, bytes)?;
        Ok((page::lsn(bytes), caught_up))
    }

    fn end(mut self, recovered: Result<(u64, Option<CaughtUp>), Error>) {
        match recovered {
            Ok((lsn, caught_up)) => self.end_well(lsn, caught_up),
            Err(error) => {
                self.over = true;
                self.fail(error);
                self.read.event.set();
            }
        }
    }

    /// Records how long the read took.
    fn took(&self, source: Source) -> Duration {
        let now = self.store.env.now();
        let took = now.saturating_sub(self.started);
        self.store.read_times.of(source).record(took);
        if self.asked && source == Source::DataFile {
            self.store.foreground.read(took, now);
        }
        took
    }

    /// Takes the LSN, not the bytes: from the publication inside on others may change them.
    fn end_well(mut self, lsn: u64, caught_up: Option<CaughtUp>) {
        self.over = true;
        self.succeed(lsn, caught_up);
        self.read.event.set();
    }

    fn succeed(&self, lsn: u64, caught_up: Option<CaughtUp>) {
        let store = &self.store;
        store.counters.count(if self.is_made { Counter::PagesCreated } else { Counter::PagesRead });
        self.frame.newest.store(lsn, Ordering::Relaxed);
        let changed = caught_up.as_ref().is_some_and(CaughtUp::is_changed);
        if changed {
            // Until it is in the flush list nobody may change it. Nobody knows the frame: this does not wait.
            self.frame.latch.lock_exclusive();
        }
        let mut shard = store.pending.shard(self.read.id).lock();
        let mut state = self.read.state.lock();
        let (waiters, wanted) = match &*state {
            ReadState::Reading { waiters, wanted } => (*waiters, *wanted),
            _ => unreachable!("a read completes once"),
        };
        if wanted {
            // Somebody came for what was being read ahead.
            self.frame.read_ahead.store(false, Ordering::Relaxed);
        }
        // Recovery pins what it changes until its batch is over. In the old part these pages would lie
        // between the tail and the dirty pages of the batch before, which nobody would come to.
        let young = store.recovering.load(Ordering::Acquire);
        // One more pin: a page that is not in the flush list yet must not be evicted.
        store.publish(self.read.id, self.frame, waiters + u32::from(changed), young);
        *state = ReadState::Done(self.frame);
        shard.remove(&self.read.id);
        if let Some(caught_up) = caught_up {
            // It would be lost without its place in the list.
            let _guard = disk::OnPanic::new(|| store.poison("recovery ended by a panic"));
            caught_up.enter(self.frame, &store.flush_list);
        }
        if changed {
            self.frame.latch.unlock_exclusive();
            self.frame.pins.unpin();
        }
    }

    fn fail(&self, error: Error) {
        tracing::error!("{error}");
        let store = &self.store;
        {
            let mut shard = store.pending.shard(self.read.id).lock();
            let mut state = self.read.state.lock();
            let (waiters, wanted) = match &*state {
                ReadState::Reading { waiters, wanted } => (*waiters, *wanted),
                _ => unreachable!("a read completes once"),
            };
            if !wanted {
                shard.remove(&self.read.id);
            }
            *state = ReadState::Failed { error, waiters, fetched: false };
        }
        self.frame.read_ahead.store(false, Ordering::Relaxed);
        self.frame.forget_history();
        store.free.put(self.frame);
    }
}

impl Drop for ReadCompletion {
    fn drop(&mut self) {
        if self.from_data_file {
            self.store.pending.from_data_files.fetch_sub(1, Ordering::Relaxed);
        }
        if !self.asked {
            self.store.foreground.ahead_is_over();
        }
        if !self.over {
            self.fail(Error::Poisoned("the storage was shut down while a page was being read".into()));
            self.read.event.set();
        }
    }
}
