//! Looking pages up.
//!
//! The hit path is [`PageStore::pin`]: page table, pin, compare; no lock, no allocation. A miss starts a read
//! into a free frame ([`super::read`]) and returns at once with a [`Wait`] for it, so that the retry finds
//! the page. A page that is made, not read, gets its frame here as well.

use std::sync::atomic::Ordering;

use disk::Wait;
use page::PageId;

use crate::counters::Counter;
use crate::error::{Error, Interrupt};
use crate::pool::frame::{FrameRef, history};
use crate::pool::free_list::Need;
use crate::pool::guard::{PageRead, Pin};
use crate::pool::read::{Missing, waiting};
use crate::store::PageStore;
use crate::sync::spin;
impl PageStore {
    /// Pins and S-latches a page.
    ///
    /// # Errors
    /// [`Interrupt::Wait`] when it has to be read or no frame is free; an error when it is damaged or not
    /// there.
    #[inline]
    pub fn read(&self, page: PageId) -> Result<PageRead, Interrupt> {
        Ok(self.pin(page)?.into_read())
    }

    /// A page that is in memory and that no writer holds or wants, S-latched. For those who only look around:
    /// nothing is read, waited for or counted, and the page is not kept longer for it.
    pub fn read_if_present(&self, page: PageId) -> Option<PageRead> {
        self.look_up(page)?.try_into_read()
    }

    /// Pins a page.
    ///
    /// # Errors
    /// As [`PageStore::read`].
    #[inline]
    pub fn pin(&self, page: PageId) -> Result<Pin, Interrupt> {
        match self.pin_present(page) {
            Some(pin) => Ok(pin),
            None => self.pin_missing(page),
        }
    }

    /// Pins a page if it is in memory, and counts the access.
    #[inline]
    pub(crate) fn pin_present(&self, page: PageId) -> Option<Pin> {
        self.counters.count(Counter::ReadRequests);
        let pin = self.look_up(page)?;
        self.touch(pin.frame());
        Some(pin)
    }

    /// Pins a page if it is in memory.
    #[inline]
    pub(crate) fn look_up(&self, page: PageId) -> Option<Pin> {
        let mut spins = 0;
        loop {
            // Each time: when the tablespace is dropped meanwhile, its table may become another's.
            let table = self.spaces.directory.get(page.space)?;
            let frame = self.frames.get(table.get(page.page)?);
            if frame.pins.try_pin() {
                if frame.holds(page) {
                    return Some(Pin::adopt(frame));
                }
                frame.pins.unpin();
            }
            // Somebody is evicting the page and about to remove the entry.
            spins += 1;
            if spins < 100 { spin() } else { std::thread::yield_now() }
        }
    }

    /// The slow half of [`PageStore::pin`]. May be called with latches held only if the caller then lets them
    /// go.
    #[cold]
    pub(crate) fn pin_missing(&self, page: PageId) -> Result<Pin, Interrupt> {
        match self.find_or_start(page, Need::Usual)? {
            Missing::Present(pin) => Ok(pin),
            Missing::Failed(error) => Err(error.into()),
            Missing::Joined(hold) => Err(waiting(hold)),
            Missing::Start(start) => Err(self
                .submit_one(start)
                .map_or_else(|| Interrupt::Error(Error::NoSuchSpace(page.space)), waiting)),
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
                Ok(Missing::Start(start)) => match self.submit_one(start) {
                    Some(hold) => hold,
                    None => continue,
                },
                Err(Interrupt::Wait(wait)) => {
                    self.env.block_until(wait.event());
                    continue;
                }
            };
            self.env.block_until(&hold.read.event);
            return hold.outcome();
        }
    }

    /// Enters a page that was made in the owned `frame` into page table and LRU list, with that many pins.
    /// Under the lock of the page's pending shard, or where nobody else can know the page.
    pub(crate) fn publish(&self, page: PageId, frame: FrameRef, pins: u32, young: bool) {
        frame.set_page(Some(page));
        frame.first_access.store(0, Ordering::Relaxed);
        frame.young_clock.store(self.freed_clock.load(Ordering::Relaxed), Ordering::Relaxed);
        if young {
            frame.note(history::TOUCHED_AGAIN);
        }
        debug_assert!(!frame.is_dirty() && !frame.in_flight.load(Ordering::Relaxed));
        frame.pins.add_pins(pins);
        {
            let mut lru = self.lru.lock();
            if young {
                lru.insert_young(&self.frames, frame.index());
            } else {
                lru.insert_old(&self.frames, frame.index());
            }
        }
        // The entry before the ownership ends: an unpinned page may be evicted at once, with its entry.
        if let Some(table) = self.spaces.directory.get(page.space) {
            table.set(page.page, frame.index());
        }
        frame.pins.disown();
    }

    /// A frame for a page whose contents do not matter, pinned. Its bytes are whatever they were.
    pub(crate) fn pin_for_creation(&self, page: PageId, may_wait: bool) -> Result<Pin, Interrupt> {
        loop {
            if let Some(pin) = self.look_up(page) {
                return Ok(pin);
            }
            let space = self.open_space_of(page.space)?;
            space.check_bounds(page.page)?;
            let frame = match self.take_frame_or_wait(if may_wait { Need::Usual } else { Need::Urgent }) {
                Ok(frame) => frame,
                Err(Interrupt::Wait(wait)) if !may_wait => {
                    self.counters.count(Counter::BlockingReads);
                    self.env.block_until(wait.event());
                    continue;
                }
                Err(interrupt) => return Err(interrupt),
            };
            let mut shard = self.pending.shard(page).lock();
            if space.is_dropped() {
                drop(shard);
                self.free.put(frame);
                return Err(Error::NoSuchSpace(page.space).into());
            }
            // A read that failed is no obstacle: what the file holds does not matter.
            let pending = shard.get(&page).filter(|read| !read.event.is_set()).cloned();
            if pending.is_none() && self.look_up(page).is_none() {
                // The frame may hold bytes of an older version of this very page. Without an LSN nobody takes
                // them for a page before the creator has made one. SAFETY: the frame is owned.
                let bytes = unsafe { frame.bytes_mut() };
                bytes[page::LSN..page::LSN + 8].fill(0);
                shard.remove(&page);
                self.publish(page, frame, 1, true);
                drop(shard);
                self.counters.count(Counter::PagesCreated);
                return Ok(Pin::adopt(frame));
            }
            drop(shard);
            self.free.put(frame);
            if let Some(read) = pending {
                // Somebody reads the page ahead: let that be over first.
                if may_wait {
                    return Err(Wait::new(read.event.clone()).into());
                }
                self.env.block_until(&read.event);
            }
        }
    }
}
