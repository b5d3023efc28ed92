//! Looking pages up.
//!
//! A hit ([`super::present_page`]) takes no lock and allocates nothing. A miss starts a read into a free
//! frame ([`super::missing_page`]) and returns at once with a [`Wait`](disk::Wait) for it, so that the retry
//! finds the page. Pages made and pages read enter the pool in `publish.rs`.

use page::PageId;

use crate::counters::Counter;
use crate::error::Interrupt;
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

    /// As [`PageStore::read`], for a search of the page; the access is for the caller to count
    /// ([`PageStore::count_reads`]). `by_heads`: it is a leaf, and its heads say something of what is sought.
    ///
    /// # Errors
    /// As [`PageStore::read`].
    #[inline]
    pub fn read_to_search(&self, page: PageId, by_heads: bool) -> Result<PageRead, Interrupt> {
        match self.look_up_to_search(page, by_heads) {
            Some(pin) => {
                self.touch(pin.frame());
                Ok(pin.into_read())
            }
            None => Ok(self.pin_missing(page)?.into_read()),
        }
    }

    /// Counts accesses that were not counted each for itself.
    #[inline]
    pub fn count_reads(&self, pages: u64) {
        self.counters.add(Counter::ReadRequests, pages);
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
}
