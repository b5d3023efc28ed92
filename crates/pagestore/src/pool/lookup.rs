//! Looking pages up.
//!
//! The hit path is [`PageStore::pin`]: page table (`look_up` there), pin, compare; no lock, no allocation. A
//! miss starts a read into a free frame ([`super::missing_page`]) and returns at once with a [`Wait`] for it, so that
//! the retry finds the page. A page that is made gets its frame here. Pages made and pages read enter the
//! pool in `publish.rs`.

use disk::Wait;
use page::PageId;

use crate::counters::Counter;
use crate::error::{Error, Interrupt};
use crate::pool::free_list::Need;
use crate::pool::guard::{PageRead, Pin};
use crate::store::PageStore;

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
