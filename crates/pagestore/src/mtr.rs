//! Mini-transactions: the only way to change a page byte.

use disk::PageId;
use redo::Lsn;

use crate::error::Interrupt;
use crate::guard::Pin;
use crate::store::PageStore;

/// A page of one [`Mtr`]; only meaningful to the mini-transaction that gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PageHandle(pub(crate) u32);

/// A mini-transaction: latches pages, changes them, logs the changes as one unit.
pub struct Mtr<'s> {
    store: &'s PageStore,
    _not_send: std::marker::PhantomData<*mut ()>,
}

#[allow(unused_variables, clippy::todo, missing_docs)]
impl<'s> Mtr<'s> {
    /// The store this works on.
    pub fn store(&self) -> &'s PageStore {
        self.store
    }
    /// Pins and X-latches a page. The same page again gives the same handle.
    pub fn x(&mut self, page: PageId) -> Result<PageHandle, Interrupt> {
        todo!()
    }
    /// As [`Mtr::x`] for a page that is already pinned: no look-up, no wait.
    pub fn x_pin(&mut self, pin: Pin) -> PageHandle {
        todo!()
    }
    /// Pins and S-latches a page to the end of the mini-transaction (or [`Mtr::release`]).
    pub fn s(&mut self, page: PageId) -> Result<PageHandle, Interrupt> {
        todo!()
    }
    /// A page whose old contents do not matter: no read, X-latched, all zeros, logged as Init.
    pub fn create(&mut self, page: PageId) -> Result<PageHandle, Interrupt> {
        todo!()
    }
    /// The page's bytes.
    pub fn page(&self, handle: PageHandle) -> &[u8] {
        todo!()
    }
    /// Which page the handle is.
    pub fn page_id(&self, handle: PageHandle) -> PageId {
        todo!()
    }
    /// The handle of a page this mini-transaction already holds.
    pub fn held(&self, page: PageId) -> Option<PageHandle> {
        todo!()
    }
    /// Whether the handle is X-latched.
    pub fn is_x(&self, handle: PageHandle) -> bool {
        todo!()
    }
    /// Another pin on the page, to outlive this mini-transaction.
    pub fn pin(&self, handle: PageHandle) -> Pin {
        todo!()
    }
    /// Changes bytes and logs the change.
    pub fn write(&mut self, handle: PageHandle, offset: usize, bytes: &[u8]) {
        todo!()
    }
    /// Writes one byte.
    pub fn write_u8(&mut self, handle: PageHandle, offset: usize, value: u8) {
        self.write(handle, offset, &[value]);
    }
    /// Writes a big-endian `u16`.
    pub fn write_u16(&mut self, handle: PageHandle, offset: usize, value: u16) {
        self.write(handle, offset, &value.to_be_bytes());
    }
    /// Writes a big-endian `u32`.
    pub fn write_u32(&mut self, handle: PageHandle, offset: usize, value: u32) {
        self.write(handle, offset, &value.to_be_bytes());
    }
    /// Writes a big-endian `u64`.
    pub fn write_u64(&mut self, handle: PageHandle, offset: usize, value: u64) {
        self.write(handle, offset, &value.to_be_bytes());
    }
    /// Sets `len` bytes to `byte`.
    pub fn fill(&mut self, handle: PageHandle, offset: usize, len: usize, byte: u8) {
        todo!()
    }
    /// Moves `len` bytes inside the page from offset `from` to offset `to` (they may overlap).
    pub fn copy_within(&mut self, handle: PageHandle, to: usize, from: usize, len: usize) {
        todo!()
    }
    /// Makes the whole page zero, then writes page number and space id into its FIL header.
    pub fn init(&mut self, handle: PageHandle) {
        todo!()
    }
    /// Logs that the page's contents do not matter any more.
    pub fn free_page(&mut self, handle: PageHandle) {
        todo!()
    }
    /// Logs the size a tablespace must have (after [`PageStore::extend_space`]).
    pub fn space_size(&mut self, space: u32, pages: u32) {
        todo!()
    }
    /// Whether a byte was changed.
    pub fn has_changes(&self) -> bool {
        todo!()
    }
    /// Gives up an unchanged page before the end. The handle is invalid from then on.
    pub fn release(&mut self, handle: PageHandle) {
        todo!()
    }
    /// Logs the changes as one unit and releases all pages. Returns the end LSN (without changes: the current LSN).
    pub fn commit(self) -> Lsn {
        todo!()
    }
}
