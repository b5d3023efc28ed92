//! Guards: the only way to page bytes from outside a mini-transaction.
//!
//! A [`Pin`] keeps a page in its frame and may be kept across waits; a [`PageRead`] is a pin with the latch
//! held for reading and must not be kept across a wait (it is not `Send`, so a background task that tries
//! does not compile).

use std::marker::PhantomData;
use std::ops::Deref;

use page::PageId;

use crate::pool::frame::FrameRef;

/// A page that stays in its frame; its bytes may change. May be kept across waits.
pub struct Pin {
    frame: FrameRef,
}

impl Pin {
    /// Takes over a pin that was counted already.
    #[inline]
    pub(crate) fn adopt(frame: FrameRef) -> Self {
        debug_assert!(frame.pins.is_pinned());
        Self { frame }
    }

    /// One more pin of a frame that the caller keeps pinned.
    #[inline]
    pub(crate) fn another(frame: FrameRef) -> Self {
        debug_assert!(frame.pins.is_pinned());
        frame.pins.add_pins(1);
        Self { frame }
    }

    #[inline]
    pub(crate) fn frame(&self) -> FrameRef {
        self.frame
    }

    /// Which page this is.
    #[inline]
    #[must_use]
    pub fn page_id(&self) -> PageId {
        self.frame.page_id()
    }

    /// Latches the page for reading, without a look-up. Blocks only for as long as another thread holds the
    /// latch exclusively.
    #[inline]
    #[must_use]
    pub fn read(&self) -> PageRead {
        self.clone().into_read()
    }

    /// As [`Pin::read`], giving up this pin for the guard's.
    #[inline]
    #[must_use]
    pub fn into_read(self) -> PageRead {
        self.frame.latch.lock_shared();
        PageRead { pin: self, _not_send: PhantomData }
    }

    /// As [`Pin::into_read`], if no writer holds or wants the page. Never waits.
    #[inline]
    pub(crate) fn try_into_read(self) -> Option<PageRead> {
        let taken = self.frame.latch.try_lock_shared_among_readers();
        taken.then(|| PageRead { pin: self, _not_send: PhantomData })
    }
}

impl Clone for Pin {
    #[inline]
    fn clone(&self) -> Self {
        Self::another(self.frame)
    }
}

impl Drop for Pin {
    #[inline]
    fn drop(&mut self) {
        self.frame.pins.unpin();
    }
}

/// A page that is pinned and latched for reading. Short-lived: never kept across a wait.
pub struct PageRead {
    pin: Pin,
    _not_send: PhantomData<*mut ()>,
}

impl PageRead {
    /// Which page this is.
    #[inline]
    #[must_use]
    pub fn page_id(&self) -> PageId {
        self.pin.page_id()
    }

    #[inline]
    pub(crate) fn frame(&self) -> FrameRef {
        self.pin.frame
    }

    /// Another pin on the same page.
    #[inline]
    #[must_use]
    pub fn pin(&self) -> Pin {
        self.pin.clone()
    }
}

impl Deref for PageRead {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the guard holds the latch for reading and a pin for as long as it is borrowed.
        unsafe { self.pin.frame.bytes() }
    }
}

impl Drop for PageRead {
    #[inline]
    fn drop(&mut self) {
        self.pin.frame.latch.unlock_shared();
    }
}
