//! Guards: the only way to page bytes from outside a mini-transaction.

use std::ops::Deref;

use disk::PageId;

/// A page that is pinned and read-latched. Short-lived: never kept across a wait.
pub struct PageRead {
    _not_send: std::marker::PhantomData<*mut ()>,
}

impl PageRead {
    /// Which page this is.
    #[must_use]
    pub fn page_id(&self) -> PageId {
        todo!()
    }

    /// Gives up the latch and keeps the pin.
    #[must_use]
    pub fn downgrade(self) -> Pin {
        todo!()
    }

    /// Another pin on the same page.
    #[must_use]
    pub fn pin(&self) -> Pin {
        todo!()
    }
}

impl Deref for PageRead {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        todo!()
    }
}

/// A page that stays in its frame; its bytes may change. May be kept across waits.
pub struct Pin {}

impl Pin {
    /// Which page this is.
    #[must_use]
    pub fn page_id(&self) -> PageId {
        todo!()
    }

    /// Latches the page for reading, without a look-up. Blocks only for as long as another thread holds the latch.
    #[must_use]
    pub fn read(&self) -> PageRead {
        todo!()
    }
}

impl Clone for Pin {
    fn clone(&self) -> Self {
        todo!()
    }
}
