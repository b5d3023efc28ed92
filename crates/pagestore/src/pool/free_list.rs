//! Free frames, and making frames free by evicting clean pages.
//!
//! A caller that needs a frame takes one from the free list; when that is empty, it evicts a clean page from
//! the tail of the LRU list itself. It never writes a page: when there is no clean page near the tail it
//! waits, and the page cleaner, woken, writes some (`Cleaner::refill` in `flush/cleaner.rs`). A few frames
//! are kept in reserve for mini-transactions that have already changed something and may not wait.
//!
//! Those who wait stand in a queue, each with an event of its own. A frame that is put into the list wakes
//! the first of them and nobody else, so that the number of retries is of the order of the number of frames
//! that became free. A waiter that was woken has no claim to the frame: it tries again like everybody else.
//! If it has gone away instead (its operation was cancelled), the cleaner, which looks every few milliseconds
//! while somebody waits, wakes as many others as there are frames in the list. Waiting for a frame means
//! holding no pins ([`Wait::letting_go`]).
//!
//! The list also knows which frames the pool consists of: those below the *limit*, which
//! [`crate::pool::resize`] moves. A frame at or above it that is put back is withdrawn instead, and nobody is
//! given one. Those between the limit and the *end* are on their way out: they may hold pages still, and when
//! all of them are withdrawn the end becomes the limit.

use std::collections::{TryReserveError, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};

use disk::{Event, Wait, WaitKind};
use parking_lot::Mutex;

use crate::counters::Counter;
use crate::error::Interrupt;
use crate::pool::frame::{FrameRef, Frames};
use crate::pool::lru::Lru;
use crate::store::PageStore;

/// LRU pages looked at for a clean one before giving up.
const SCAN_DEPTH: usize = 100;

/// The free list.
pub(crate) struct FreeFrames {
    list: Mutex<List>,
    len: AtomicUsize,
    /// Those of the list, for readers without its lock.
    limit: AtomicU32,
    end: AtomicU32,
    queue: Mutex<Queue>,
    /// Length of the queue.
    waiting: AtomicUsize,
    /// The cleaner has been called since it last looked.
    cleaner_called: AtomicBool,
    /// Frames taken since the cleaner last looked.
    taken: AtomicUsize,
}

/// The list itself, and which frames there are.
struct List {
    free: Vec<u32>,
    /// From here on up to the limit no frame was ever used: they are free as well, and may have no
    /// descriptors yet.
    unused: u32,
    limit: u32,
    /// At least `limit`; no frame from here on holds a page.
    end: u32,
    /// How many of the frames between the two are withdrawn.
    withdrawn: u32,
}

impl List {
    fn len(&self) -> usize {
        self.free.len() + (self.limit - self.unused) as usize
    }

    /// A frame that was never used.
    fn first_use(&mut self, frames: &Frames) -> Option<u32> {
        const MADE_AT_ONCE: u32 = 64;
        if self.unused == self.limit {
            return None;
        }
        let index = self.unused;
        self.unused += 1;
        if index as usize >= frames.made() {
            let end = index.saturating_add(MADE_AT_ONCE).min(self.limit);
            frames.make_free(end as usize);
        }
        Some(index)
    }

    /// Puts the frames that were never used among the others, before the limit moves.
    fn use_all(&mut self, frames: &Frames) {
        frames.make_free(self.limit as usize);
        // Taken last, the least one first.
        self.free.splice(0..0, (self.unused..self.limit).rev());
        self.unused = self.limit;
    }
}

/// Who waits for a frame, first come first.
#[derive(Default)]
struct Queue {
    usual: VecDeque<Event>,
    /// Served from the reserve too, and first.
    urgent: VecDeque<Event>,
}

impl Queue {
    fn of(&mut self, need: Need) -> &mut VecDeque<Event> {
        match need {
            Need::Usual => &mut self.usual,
            Need::Urgent => &mut self.urgent,
        }
    }

    fn len(&self) -> usize {
        self.usual.len() + self.urgent.len()
    }
}

/// What a frame is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// The caller can wait.
    Usual,
    /// The caller cannot wait: the reserve may be used and the whole LRU list searched.
    Urgent,
}

impl FreeFrames {
    pub(crate) fn new(count: usize) -> Self {
        let limit = count as u32;
        let list = List { free: Vec::new(), unused: 0, limit, end: limit, withdrawn: 0 };
        Self {
            list: Mutex::new(list),
            len: AtomicUsize::new(count),
            limit: limit.into(),
            end: limit.into(),
            queue: Mutex::default(),
            waiting: AtomicUsize::new(0),
            cleaner_called: AtomicBool::new(false),
            taken: AtomicUsize::new(0),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Makes room for this number of frames.
    pub(crate) fn make_room(&self, frames: usize) -> Result<(), TryReserveError> {
        let free = &mut self.list.lock().free;
        free.try_reserve_exact(frames.saturating_sub(free.len()))
    }

    /// Frames there is room for.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.list.lock().free.capacity()
    }

    /// The frames that were never used.
    pub(crate) fn never_used(&self) -> std::ops::Range<usize> {
        let list = self.list.lock();
        list.unused as usize..list.limit as usize
    }

    /// Frames kept for those who may not wait.
    pub(crate) fn reserve(&self) -> usize {
        (self.limit() as usize / 16).min(16)
    }

    /// The pool consists of the frames below this one.
    pub(crate) fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Only frames below this one may hold pages.
    pub(crate) fn end(&self) -> u32 {
        self.end.load(Ordering::Relaxed)
    }

    /// Whether this frame is to leave the pool.
    pub(crate) fn is_leaving(&self, frame: FrameRef) -> bool {
        frame.index() >= self.limit()
    }

    /// Whether frames are wanted at once: somebody waits for one, or the pool is to have fewer.
    pub(crate) fn is_wanted(&self) -> bool {
        self.waiting() > 0 || self.limit() < self.end()
    }

    /// How many wait for a frame.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Notes that the cleaner looks now; those who enter the queue later call it again. A swap, so that the
    /// cleaner sees the queue as those saw it who found that it had been called.
    pub(crate) fn cleaner_looks(&self) {
        self.cleaner_called.swap(false, Ordering::AcqRel);
    }

    /// Frames taken since the last call.
    pub(crate) fn take_count(&self) -> usize {
        self.taken.swap(0, Ordering::Relaxed)
    }

    fn pop(&self, frames: &Frames, need: Need) -> Option<u32> {
        let keep = if need == Need::Usual { self.reserve() } else { 0 };
        if self.len.load(Ordering::Relaxed) <= keep {
            return None;
        }
        let mut list = self.list.lock();
        if list.len() <= keep {
            return None;
        }
        let index = list.free.pop().or_else(|| list.first_use(frames));
        self.len.store(list.len(), Ordering::Relaxed);
        index
    }

    /// Puts an owned frame without a page back and lets one of those who wait try again; withdraws it when it
    /// is to leave the pool.
    pub(crate) fn put(&self, frame: FrameRef) {
        debug_assert!(frame.pins.is_owned() && !frame.holds_a_page());
        {
            let mut list = self.list.lock();
            if frame.index() >= list.limit {
                frame.set_withdrawn(true);
                list.withdrawn += 1;
                return;
            }
            list.free.push(frame.index());
            self.len.store(list.len(), Ordering::Relaxed);
        }
        self.wake(1);
    }

    /// Takes all frames from `limit` on out of the pool: free ones at once, the others when they are put
    /// back.
    pub(crate) fn lower(&self, frames: &Frames, limit: u32) {
        let mut list = self.list.lock();
        assert!(limit <= list.limit);
        list.use_all(frames);
        (list.limit, list.unused) = (limit, limit);
        let before = list.free.len();
        list.free.retain(|index| {
            let stays = *index < limit;
            if !stays {
                frames.get(*index).set_withdrawn(true);
            }
            stays
        });
        list.withdrawn += (before - list.free.len()) as u32;
        self.publish(&list);
    }

    /// Takes the frames below `limit` into the pool, the withdrawn ones of them into the list. There is
    /// memory for them.
    pub(crate) fn raise(&self, frames: &Frames, limit: u32) {
        {
            let mut list = self.list.lock();
            assert!(limit >= list.limit);
            list.use_all(frames);
            frames.make_withdrawn(limit as usize);
            for index in (list.limit..limit).rev() {
                let frame = frames.get(index);
                assert!(index < list.end || frame.is_withdrawn(), "a frame beyond the end is in use");
                if frame.is_withdrawn() {
                    frame.set_withdrawn(false);
                    list.withdrawn -= u32::from(index < list.end);
                    list.free.push(index);
                }
            }
            (list.limit, list.unused) = (limit, limit);
            list.end = list.end.max(limit);
            self.publish(&list);
        }
        self.wake(usize::MAX);
    }

    /// When all frames that are to leave have left: which they were, and the limit is the end.
    pub(crate) fn all_have_left(&self) -> Option<std::ops::Range<u32>> {
        let mut list = self.list.lock();
        let left = list.limit..list.end;
        if list.withdrawn as usize != left.len() {
            return None;
        }
        (list.end, list.withdrawn) = (list.limit, 0);
        self.publish(&list);
        Some(left)
    }

    /// How many of the frames that are to leave have left.
    pub(crate) fn withdrawn(&self) -> u32 {
        self.list.lock().withdrawn
    }

    fn publish(&self, list: &List) {
        self.len.store(list.len(), Ordering::Relaxed);
        self.limit.store(list.limit, Ordering::Relaxed);
        self.end.store(list.end, Ordering::Relaxed);
    }

    /// Lets up to `max` of those who wait try again, no more than there are frames for.
    pub(crate) fn wake(&self, max: usize) {
        // Either the waiter who enters the queue sees the frame, or we see the waiter: both store, fence and
        // load.
        fence(Ordering::SeqCst);
        if self.waiting() == 0 {
            return;
        }
        let len = self.len();
        self.wake_some(len.min(max), len.saturating_sub(self.reserve()).min(max));
    }

    /// Lets everybody try again.
    pub(crate) fn wake_all(&self) {
        self.wake_some(usize::MAX, usize::MAX);
    }

    /// Wakes up to `total` waiters, urgent ones first, and among them up to `usual` that cannot use the
    /// reserve.
    fn wake_some(&self, total: usize, usual: usize) {
        let woken: Vec<Event> = {
            let mut queue = self.queue.lock();
            let urgent = queue.urgent.len().min(total);
            let usual = queue.usual.len().min(usual).min(total - urgent);
            let mut woken: Vec<Event> = queue.urgent.drain(..urgent).collect();
            woken.extend(queue.usual.drain(..usual));
            self.waiting.store(queue.len(), Ordering::Relaxed);
            woken
        };
        for event in woken {
            event.set();
        }
    }

    fn enter_queue(&self, need: Need) -> Event {
        let event = Event::new();
        {
            let mut queue = self.queue.lock();
            queue.of(need).push_back(event.clone());
            self.waiting.store(queue.len(), Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        event
    }

    /// For somebody who does not wait after all.
    fn leave_queue(&self, need: Need, event: &Event) {
        {
            let mut queue = self.queue.lock();
            queue.of(need).retain(|other| !other.same(event));
            self.waiting.store(queue.len(), Ordering::Relaxed);
        }
        if event.is_set() {
            // The frame that woke us may still be there, for somebody else.
            self.wake(1);
        }
    }
}

impl PageStore {
    /// An owned frame without a page, or what to wait for.
    ///
    /// # Errors
    /// [`Interrupt::Wait`] for a frame; an error when there will be none because the store is poisoned.
    pub(crate) fn take_frame_or_wait(&self, need: Need) -> Result<FrameRef, Interrupt> {
        if let Some(frame) = self.take_frame(need) {
            return Ok(frame);
        }
        // Into the queue first, then a second look: a frame freed in between sets the event, or is found.
        let event = self.free.enter_queue(need);
        if let Some(frame) = self.take_frame(need) {
            self.free.leave_queue(need, &event);
            return Ok(frame);
        }
        if let Err(poisoned) = self.refuse_when_poisoned() {
            // Nothing is written any more: what is clean now is all there is.
            self.free.leave_queue(need, &event);
            return self.take_frame(Need::Urgent).ok_or(Interrupt::Error(poisoned));
        }
        self.counters.count(Counter::WaitFree);
        // Once per look: it serves all who wait by then.
        if !self.free.cleaner_called.swap(true, Ordering::AcqRel) {
            self.wake_cleaner();
        }
        Err(Wait::letting_go(event).of(WaitKind::FreeFrame).into())
    }

    /// An owned frame without a page, if there is one without writing anything.
    pub(crate) fn take_frame(&self, need: Need) -> Option<FrameRef> {
        let frame = match self.free.pop(&self.frames, need) {
            Some(index) => self.frames.get(index),
            None => self.evict_from_tail(&mut self.lru.lock(), need)?,
        };
        self.free.taken.fetch_add(1, Ordering::Relaxed);
        Some(frame)
    }

    fn evict_from_tail(&self, lru: &mut Lru, need: Need) -> Option<FrameRef> {
        let depth = if need == Need::Usual { SCAN_DEPTH } else { usize::MAX };
        let mut next = lru.tail();
        for _ in 0..depth {
            let index = next?;
            next = lru.younger(index);
            let frame = self.frames.get(index);
            if self.evict(lru, frame) {
                if !self.free.is_leaving(frame) {
                    return Some(frame);
                }
                self.free.put(frame);
            }
        }
        None
    }

    /// An owned frame for a page that has to leave its own, if there is one without writing anything: a free
    /// one, and for a young page also that of the page which would be evicted next.
    pub(crate) fn take_frame_for_moving(&self, lru: &mut Lru, page_in: FrameRef) -> Option<FrameRef> {
        if let Some(index) = self.free.pop(&self.frames, Need::Usual) {
            return Some(self.frames.get(index));
        }
        if page_in.is_old.load(Ordering::Relaxed) {
            return None;
        }
        self.evict_from_tail(lru, Need::Usual)
    }

    /// Takes a clean, unpinned page out of the pool; its frame is then owned and empty.
    pub(crate) fn evict(&self, lru: &mut Lru, frame: FrameRef) -> bool {
        if !Self::own_clean(frame) {
            return false;
        }
        self.detach(lru, frame);
        self.freed_clock.fetch_add(1, Ordering::Relaxed);
        self.counters.count(Counter::PagesEvicted);
        if frame.read_ahead.swap(false, Ordering::Relaxed) {
            self.counters.count(Counter::ReadAheadEvicted);
        }
        true
    }

    /// Owns the frame of a clean page that nobody has pinned.
    pub(crate) fn own_clean(frame: FrameRef) -> bool {
        if frame.is_dirty() || !frame.pins.try_own() {
            return false;
        }
        // Nobody has a pin, so nobody can change the page from here on. A change that made it dirty had it
        // pinned, and gave the pin back, released, afterwards: owning it acquires that, so that the relaxed
        // look sees the mark. Looked at again: it may have been changed and unpinned between the two looks
        // above.
        if frame.is_dirty() || frame.in_flight.load(Ordering::Acquire) {
            frame.pins.disown();
            return false;
        }
        true
    }

    /// Removes an owned frame's page from page table and LRU list.
    pub(crate) fn detach(&self, lru: &mut Lru, frame: FrameRef) {
        let id = frame.page_id();
        // Before anybody can have the page in another frame, and change it there.
        frame.heads.forget();
        if let Some(table) = self.spaces.directory.get(id.space) {
            table.remove(id.page, frame.index());
        }
        frame.set_page(None);
        frame.forget_history();
        lru.remove(&self.frames, frame.index());
    }
}
