//! Mini-transactions: the only way to change a page byte.
//!
//! An [`Mtr`] gathers, then changes. While it gathers it pins and latches the pages it will touch; when one
//! is missing it returns [`Interrupt::Wait`], the caller drops it (no latch is left) and starts again after
//! the wait. From the first changed byte on it waits for nothing: a miss is then served by a blocking read
//! and counted (`Untorn_blocking_reads`), because giving up half of a change is not possible.
//!
//! Every method that changes bytes logs the same change. [`Mtr::commit`] appends the records to the redo log
//! as one unit, enters the pages into the flush list under the log's mutex (so the list is in LSN order),
//! stamps the end LSN into the pages and only then lets the latches go. Redo space is promised before the
//! first page is latched.
//!
//! Latch order of the engine: index pages from the root down and from left to right, undo pages, tablespace
//! structure pages (0, extent descriptors, inodes), newly created pages; then the redo log's mutex, then the
//! flush list's.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::Ordering;

use page::PageId;
use redo::{Admission, Lsn, RecordWriter};
use smallvec::SmallVec;

use crate::counters::Counter;
use crate::error::{Error, Interrupt};
use crate::pool::frame::FrameRef;
use crate::pool::guard::Pin;
use crate::store::PageStore;

/// A page of one [`Mtr`]; only meaningful to the mini-transaction that gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PageHandle(pub(crate) u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Shared,
    Exclusive,
    Released,
}

/// One latched page.
struct Slot {
    pin: Option<Pin>,
    mode: Mode,
    changed: bool,
    /// It was initialised by this mini-transaction.
    initialised: bool,
}

impl Slot {
    fn let_go(&mut self) {
        if let Some(pin) = self.pin.take() {
            match self.mode {
                Mode::Shared => pin.frame().latch.unlock_shared(),
                Mode::Exclusive => pin.frame().latch.unlock_exclusive(),
                Mode::Released => unreachable!("a released page keeps no pin"),
            }
            self.mode = Mode::Released;
        }
    }
}

/// Record buffers above this many bytes are not kept for the next mini-transaction.
const KEPT_BUFFER_MAX: usize = 1 << 20;

thread_local! {
    /// The record buffer of the thread's last mini-transaction, so that a new one allocates nothing.
    static SPARE: Cell<Option<Box<RecordWriter>>> = const { Cell::new(None) };
}

/// A mini-transaction: latches pages, changes them, logs the changes as one unit. See the module's essay.
pub struct Mtr<'s> {
    store: &'s PageStore,
    slots: SmallVec<[Slot; 8]>,
    records: Option<Box<RecordWriter>>,
    /// An operation failed after the first change; the drop that follows is no bug of the caller.
    failed: bool,
    // Given back when the mini-transaction is dropped, after the append.
    _admission: Admission<'s>,
    _not_send: PhantomData<*mut ()>,
}

impl PageStore {
    /// Starts a mini-transaction with redo space for usual changes: four pages' worth.
    ///
    /// # Errors
    /// [`Interrupt::Wait`] while the redo log is full; an error once the store is poisoned.
    pub fn mtr(&self) -> Result<Mtr<'_>, Interrupt> {
        self.mtr_sized(4 * self.page_size.bytes())
    }

    /// Starts a mini-transaction that may log up to `bytes`.
    ///
    /// # Errors
    /// As [`PageStore::mtr`].
    pub fn mtr_sized(&self, bytes: usize) -> Result<Mtr<'_>, Interrupt> {
        self.refuse_when_poisoned()?;
        self.refuse_when_read_only()?;
        let admission = self.redo.admit(bytes)?;
        Ok(Mtr {
            store: self,
            slots: SmallVec::new(),
            records: None,
            failed: false,
            _admission: admission,
            _not_send: PhantomData,
        })
    }
}

impl<'s> Mtr<'s> {
    /// The store this works on.
    #[must_use]
    pub fn store(&self) -> &'s PageStore {
        self.store
    }

    /// Pins and X-latches a page. The same page again gives the same handle.
    ///
    /// # Errors
    /// Before the first change [`Interrupt::Wait`] when the page has to be read; an error when it is damaged
    /// or not there.
    ///
    /// # Panics
    /// When the page is held S-latched: a latch is not upgraded, take the stronger one first.
    pub fn x(&mut self, page: PageId) -> Result<PageHandle, Interrupt> {
        if let Some(handle) = self.held(page) {
            self.assert_exclusive(handle);
            return Ok(handle);
        }
        let pin = self.pin_page(page)?;
        let handle = self.latch(pin, Mode::Exclusive);
        self.refuse_zeros(handle)?;
        Ok(handle)
    }

    /// A page that was never made is all zero, which is valid as long as nobody wants to change it: then it
    /// was made, and its write is lost. Changed all the same it would get a sound checksum under no name.
    fn refuse_zeros(&mut self, handle: PageHandle) -> Result<(), Error> {
        let page = self.page_id(handle);
        if page::identity(self.page(handle)) == page {
            return Ok(());
        }
        // As for a page that is damaged and had to be read after the first change.
        self.failed |= self.has_changes();
        Err(self.store.lost_page(page))
    }

    /// As [`Mtr::x`] if the page is in memory: never a wait.
    ///
    /// # Panics
    /// As [`Mtr::x`].
    pub fn x_present(&mut self, page: PageId) -> Option<PageHandle> {
        self.store.pin_present(page).map(|pin| self.x_pin(pin))
    }

    /// As [`Mtr::x`] for a page that is already pinned: no look-up, no wait.
    ///
    /// # Panics
    /// As [`Mtr::x`].
    pub fn x_pin(&mut self, pin: Pin) -> PageHandle {
        if let Some(handle) = self.held(pin.page_id()) {
            self.assert_exclusive(handle);
            return handle;
        }
        self.latch(pin, Mode::Exclusive)
    }

    /// Pins and S-latches a page to the end of the mini-transaction (or [`Mtr::release`]). A page held
    /// already, in either mode, gives its handle.
    ///
    /// # Errors
    /// As [`Mtr::x`].
    pub fn s(&mut self, page: PageId) -> Result<PageHandle, Interrupt> {
        if let Some(handle) = self.held(page) {
            return Ok(handle);
        }
        let pin = self.pin_page(page)?;
        Ok(self.latch(pin, Mode::Shared))
    }

    /// A page whose old contents do not matter: not read, X-latched, and [initialised](Mtr::init). The file
    /// must be large enough (see [`PageStore::extend_space`]).
    ///
    /// # Errors
    /// Before the first change [`Interrupt::Wait`] when no frame is free; an error when the page lies beyond
    /// the file.
    pub fn create(&mut self, page: PageId) -> Result<PageHandle, Interrupt> {
        let handle = match self.held(page) {
            Some(handle) => handle,
            None => {
                let pinned = self.store.pin_for_creation(page, !self.has_changes());
                let pin = pinned.inspect_err(|_| self.failed = true)?;
                self.latch(pin, Mode::Exclusive)
            }
        };
        self.init(handle);
        Ok(handle)
    }

    fn pin_page(&mut self, page: PageId) -> Result<Pin, Interrupt> {
        match self.store.pin_present(page) {
            Some(pin) => Ok(pin),
            None if self.has_changes() => {
                Ok(self.store.pin_blocking(page).inspect_err(|_| self.failed = true)?)
            }
            None => self.store.pin_missing(page),
        }
    }

    fn latch(&mut self, pin: Pin, mode: Mode) -> PageHandle {
        match mode {
            Mode::Exclusive => pin.frame().latch.lock_exclusive(),
            Mode::Shared => pin.frame().latch.lock_shared(),
            Mode::Released => unreachable!("a page is latched shared or exclusive"),
        }
        self.slots.push(Slot { pin: Some(pin), mode, changed: false, initialised: false });
        PageHandle(self.slots.len() as u32 - 1)
    }

    fn assert_exclusive(&self, handle: PageHandle) {
        assert!(
            self.is_x(handle),
            "page {} is held S-latched and asked for X-latched in the same mini-transaction; take X first",
            self.page_id(handle)
        );
    }

    #[inline]
    fn frame(&self, handle: PageHandle) -> FrameRef {
        match &self.slots[handle.0 as usize].pin {
            Some(pin) => pin.frame(),
            None => panic!("a page handle was used after its release"),
        }
    }

    /// The page's bytes.
    #[inline]
    #[must_use]
    pub fn page(&self, handle: PageHandle) -> &[u8] {
        // SAFETY: this mini-transaction holds pin and latch, and hands out no mutable reference; its changing
        // methods need `&mut self`.
        unsafe { self.frame(handle).bytes() }
    }

    /// Which page the handle is.
    #[inline]
    #[must_use]
    pub fn page_id(&self, handle: PageHandle) -> PageId {
        self.frame(handle).page_id()
    }

    /// The handle of a page this mini-transaction already holds.
    #[must_use]
    pub fn held(&self, page: PageId) -> Option<PageHandle> {
        let is_it = |slot: &Slot| slot.pin.as_ref().is_some_and(|pin| pin.frame().holds(page));
        self.slots.iter().position(is_it).map(|index| PageHandle(index as u32))
    }

    /// Whether the handle is X-latched.
    #[must_use]
    pub fn is_x(&self, handle: PageHandle) -> bool {
        self.slots[handle.0 as usize].mode == Mode::Exclusive
    }

    /// Another pin on the page, to outlive this mini-transaction.
    #[must_use]
    pub fn pin(&self, handle: PageHandle) -> Pin {
        match &self.slots[handle.0 as usize].pin {
            Some(pin) => pin.clone(),
            None => panic!("a page handle was used after its release"),
        }
    }

    /// The bytes of a page that is about to be changed, and where to log the change.
    #[inline]
    fn change(&mut self, handle: PageHandle) -> (&mut [u8], &mut RecordWriter, PageId) {
        let slot = &mut self.slots[handle.0 as usize];
        assert!(slot.mode == Mode::Exclusive, "a page is changed that is not X-latched");
        slot.changed = true;
        let frame = self.frame(handle);
        let records = self.records.get_or_insert_with(|| SPARE.take().unwrap_or_default());
        // SAFETY: the page is pinned and X-latched by this mini-transaction, which is borrowed mutably.
        (unsafe { frame.bytes_mut() }, records, frame.page_id())
    }

    /// Changes bytes and logs the change.
    ///
    /// # Panics
    /// When the page is not X-latched, or the range does not lie inside the page. So do all methods that
    /// change.
    #[inline]
    pub fn write(&mut self, handle: PageHandle, offset: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let (page, records, id) = self.change(handle);
        page[offset..offset + bytes.len()].copy_from_slice(bytes);
        records.write(id, offset, bytes);
    }

    /// Writes one byte.
    #[inline]
    pub fn write_u8(&mut self, handle: PageHandle, offset: usize, value: u8) {
        self.write(handle, offset, &[value]);
    }

    /// Writes a big-endian `u16`.
    #[inline]
    pub fn write_u16(&mut self, handle: PageHandle, offset: usize, value: u16) {
        self.write(handle, offset, &value.to_be_bytes());
    }

    /// Writes a big-endian `u32`.
    #[inline]
    pub fn write_u32(&mut self, handle: PageHandle, offset: usize, value: u32) {
        self.write(handle, offset, &value.to_be_bytes());
    }

    /// Writes a big-endian `u64`.
    #[inline]
    pub fn write_u64(&mut self, handle: PageHandle, offset: usize, value: u64) {
        self.write(handle, offset, &value.to_be_bytes());
    }

    /// Sets `len` bytes to `byte`.
    #[inline]
    pub fn fill(&mut self, handle: PageHandle, offset: usize, len: usize, byte: u8) {
        if len == 0 {
            return;
        }
        let (page, records, id) = self.change(handle);
        page[offset..offset + len].fill(byte);
        records.fill(id, offset, len, byte);
    }

    /// Moves `len` bytes inside the page from offset `from` to offset `to` (they may overlap).
    #[inline]
    pub fn copy_within(&mut self, handle: PageHandle, to: usize, from: usize, len: usize) {
        if len == 0 || to == from {
            return;
        }
        let (page, records, id) = self.change(handle);
        page.copy_within(from..from + len, to);
        records.move_bytes(id, to, from, len);
    }

    /// Makes the whole page zero but for its page number and tablespace id in the FIL header. One record.
    pub fn init(&mut self, handle: PageHandle) {
        let (page, records, id) = self.change(handle);
        initialise(page, id);
        records.init(id);
        self.slots[handle.0 as usize].initialised = true;
    }

    /// Logs that the page's contents do not matter any more (it was given back to its tablespace).
    pub fn free_page(&mut self, handle: PageHandle) {
        let (_, records, id) = self.change(handle);
        records.free(id);
    }

    /// Logs the size a tablespace has now, in pages (after [`PageStore::extend_space`]), so that recovery can
    /// make the file as long again.
    pub fn space_size(&mut self, space: u32, pages: u32) {
        self.records.get_or_insert_with(|| SPARE.take().unwrap_or_default()).space_size(space, pages);
    }

    /// Notes that an operation failed after the first change: the drop that follows poisons the store, as it
    /// must, but is no bug of the caller.
    pub(crate) fn note_failure(&mut self) {
        self.failed = true;
    }

    /// Whether something was changed and logged.
    #[inline]
    #[must_use]
    pub fn has_changes(&self) -> bool {
        self.records.as_ref().is_some_and(|records| !records.is_empty())
    }

    /// Bytes of redo logged so far.
    #[must_use]
    pub fn logged_bytes(&self) -> usize {
        self.records.as_ref().map_or(0, |records| records.len())
    }

    /// Gives up an unchanged page before the end. The handle is invalid from then on.
    ///
    /// # Panics
    /// When the page was changed.
    pub fn release(&mut self, handle: PageHandle) {
        let slot = &mut self.slots[handle.0 as usize];
        assert!(!slot.changed, "a changed page stays latched until the mini-transaction commits");
        slot.let_go();
    }

    /// Logs the changes as one unit and releases all pages. Returns the end LSN (without changes: the LSN of
    /// now).
    pub fn commit(mut self) -> Lsn {
        let Some(records) = self.records.take() else { return self.store.redo.current() };
        let store = self.store;
        self.invalidate_clean_copies();
        let slots = &self.slots;
        let end = store.redo.append(records.as_bytes(), |start, end| {
            let mut list = store.flush_list.lock();
            for slot in slots.iter().filter(|slot| slot.changed) {
                if let Some(pin) = &slot.pin {
                    list.enter(pin.frame(), start);
                    if slot.initialised {
                        pin.frame().created.store(start.0, Ordering::Relaxed);
                    }
                }
            }
            list.saw(end);
        });
        let mut changed = 0;
        for slot in self.slots.iter_mut() {
            if slot.changed
                && let Some(pin) = &slot.pin
            {
                let frame = pin.frame();
                // SAFETY: pinned and X-latched until `let_go` below.
                let bytes = unsafe { frame.bytes_mut() };
                bytes[page::LSN..page::LSN + 8].copy_from_slice(&end.0.to_be_bytes());
                frame.newest.store(end.0, Ordering::Relaxed);
                changed += 1;
            }
            slot.let_go();
        }
        store.counters.add(Counter::WriteRequests, changed);
        keep_buffer(records);
        end
    }
}

impl Mtr<'_> {
    /// Tells the buffer pool extension of the pages that become dirty now. Under their X latches and before
    /// the append, so that nobody can offer the old version any more, and no checkpoint that passes this
    /// change is ahead of it.
    fn invalidate_clean_copies(&self) {
        let mut tier = None;
        for slot in self.slots.iter().filter(|slot| slot.changed) {
            // A dirty page has been invalidated when it became dirty, and is not offered before it is clean.
            let Some(frame) = slot.pin.as_ref().map(Pin::frame).filter(|frame| !frame.is_dirty()) else {
                continue;
            };
            frame.offered.store(false, std::sync::atomic::Ordering::Relaxed);
            if let Some(tier) = tier.get_or_insert_with(|| self.store.tier.get()) {
                tier.invalidate(frame.page_id());
            }
        }
    }
}

fn keep_buffer(mut records: Box<RecordWriter>) {
    if records.len() <= KEPT_BUFFER_MAX {
        records.clear();
        SPARE.set(Some(records));
    }
}

/// What `Init` does to a page, when it is done and when it is recovered.
pub(crate) fn initialise(page: &mut [u8], id: PageId) {
    page.fill(0);
    page[page::PAGE_NUMBER..page::PAGE_NUMBER + 4].copy_from_slice(&id.page.to_be_bytes());
    page[page::SPACE_ID..page::SPACE_ID + 4].copy_from_slice(&id.space.to_be_bytes());
}

impl Drop for Mtr<'_> {
    fn drop(&mut self) {
        let lost = self.has_changes();
        if lost {
            // The pages in memory now differ from what the log can reproduce. Nothing may be written any
            // more.
            self.store.poison(
                "internal error: a mini-transaction was given up after it had changed pages; \
                 pages in memory are not trusted any more",
            );
        }
        for slot in &mut self.slots {
            slot.let_go();
        }
        let excused = self.failed || std::thread::panicking();
        debug_assert!(!lost || excused, "a mini-transaction was dropped after it had changed pages");
    }
}
