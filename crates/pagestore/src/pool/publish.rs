//! A page enters the pool, read or made: LRU list, page table, the pins of those who wait for it. One that is
//! made gets its frame here.

use std::sync::atomic::Ordering;

use disk::Wait;
use page::PageId;

use crate::counters::Counter;
use crate::error::{Error, Interrupt};
use crate::pool::frame::{FrameRef, history};
use crate::pool::free_list::Need;
use crate::pool::guard::Pin;
use crate::store::PageStore;

impl PageStore {
    /// Enters the page in the owned `frame` into page table and LRU list, with that many pins.
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
            } else if pins == 0 && frame.is_noted(history::COLDER) {
                lru.insert_coldest(&self.frames, frame.index());
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
            if self.unapplied.get().is_some_and(|unapplied| unapplied.has(page)) {
                return if may_wait { self.pin_missing(page) } else { Ok(self.pin_blocking(page)?) };
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
                // Nor what the frame's former page was for this one.
                frame.newest.store(0, Ordering::Relaxed);
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
