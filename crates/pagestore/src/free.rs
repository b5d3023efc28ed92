//! Free frames, and making frames free by evicting clean pages.
//!
//! Whoever needs a frame takes one from the free list; when that is empty, it evicts a clean page from the tail of the
//! LRU list itself. It never writes a page: when there is no clean page near the tail it waits, and the page cleaner,
//! woken, writes some. A few frames are kept in reserve for mini-transactions that have already changed something and
//! may not wait.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use disk::Wait;
use parking_lot::Mutex;

use crate::counters::Counter;
use crate::error::Interrupt;
use crate::frame::FrameRef;
use crate::lru::Lru;
use crate::signal::Signal;
use crate::store::PageStore;

/// LRU pages looked at for a clean one before giving up.
const SCAN_DEPTH: usize = 100;

/// The free list.
pub(crate) struct FreeFrames {
    list: Mutex<Vec<u32>>,
    len: AtomicUsize,
    reserve: usize,
    /// Set when somebody waits for a frame.
    wanted: AtomicBool,
    freed: Signal,
    /// Frames taken since the cleaner last looked.
    taken: AtomicUsize,
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
        Self {
            list: Mutex::new((0..count as u32).rev().collect()),
            len: AtomicUsize::new(count),
            reserve: (count / 16).min(16),
            wanted: AtomicBool::new(false),
            freed: Signal::default(),
            taken: AtomicUsize::new(0),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    pub(crate) fn reserve(&self) -> usize {
        self.reserve
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Frames taken since the last call.
    pub(crate) fn take_count(&self) -> usize {
        self.taken.swap(0, Ordering::Relaxed)
    }

    fn pop(&self, need: Need) -> Option<u32> {
        let keep = if need == Need::Usual { self.reserve } else { 0 };
        if self.len.load(Ordering::Relaxed) <= keep {
            return None;
        }
        let mut list = self.list.lock();
        if list.len() <= keep {
            return None;
        }
        let index = list.pop();
        self.len.store(list.len(), Ordering::Relaxed);
        index
    }

    /// Puts an owned frame without a page back.
    pub(crate) fn put(&self, frame: FrameRef) {
        debug_assert!(frame.pins.is_owned() && !frame.holds_a_page());
        {
            let mut list = self.list.lock();
            list.push(frame.index());
            self.len.store(list.len(), Ordering::Relaxed);
        }
        if self.wanted.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    /// Lets those who wait for a frame try again.
    pub(crate) fn wake(&self) {
        if self.wanted.swap(false, Ordering::AcqRel) {
            self.freed.notify();
        }
    }
}

impl PageStore {
    /// An owned frame without a page, or what to wait for.
    pub(crate) fn take_frame_or_wait(&self) -> Result<FrameRef, Interrupt> {
        if let Some(frame) = self.take_frame(Need::Usual) {
            return Ok(frame);
        }
        // The event first, then a second look: a frame freed in between sets it, or is found.
        let event = self.free.freed.event();
        self.free.wanted.store(true, Ordering::Release);
        if let Some(frame) = self.take_frame(Need::Usual) {
            return Ok(frame);
        }
        self.counters.count(Counter::WaitFree);
        self.wake_cleaner();
        Err(Wait::new(event).into())
    }

    /// An owned frame without a page, if there is one without writing anything.
    pub(crate) fn take_frame(&self, need: Need) -> Option<FrameRef> {
        let frame = match self.free.pop(need) {
            Some(index) => self.frames.get(index),
            None => self.evict_from_tail(need)?,
        };
        self.free.taken.fetch_add(1, Ordering::Relaxed);
        Some(frame)
    }

    fn evict_from_tail(&self, need: Need) -> Option<FrameRef> {
        let depth = if need == Need::Usual { SCAN_DEPTH } else { usize::MAX };
        let mut lru = self.lru.lock();
        let mut next = lru.tail();
        for _ in 0..depth {
            let index = next?;
            next = lru.younger(index);
            let frame = self.frames.get(index);
            if self.evict(&mut lru, frame) {
                return Some(frame);
            }
        }
        None
    }

    /// Takes a clean, unpinned page out of the pool; its frame is then owned and empty.
    pub(crate) fn evict(&self, lru: &mut Lru, frame: FrameRef) -> bool {
        if frame.is_dirty() || !frame.pins.try_own() {
            return false;
        }
        // Nobody has a pin, so nobody can change the page from here on. Looked at again: it may have been changed and
        // unpinned between the two looks above.
        if frame.is_dirty() || frame.in_flight.load(Ordering::Acquire) {
            frame.pins.disown();
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

    /// Removes an owned frame's page from page table and LRU list.
    pub(crate) fn detach(&self, lru: &mut Lru, frame: FrameRef) {
        let id = frame.page_id();
        if let Some(table) = self.spaces.directory.get(id.space) {
            table.remove(id.page, frame.index());
        }
        frame.set_page(None);
        lru.remove(&self.frames, frame.index());
    }
}
