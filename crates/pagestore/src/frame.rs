//! Frames: the pool's memory, allocated once, and one descriptor per frame.
//!
//! A frame belongs to somebody at any time:
//!
//! ```text
//!   state word:   31 owned   30 ............ 0 pins
//!
//!   owned            one thread does with it what it likes: it is free, or being read into, or being evicted
//!   pins > 0         the frame keeps its page; page id and mapping do not change
//!   0                evictable (if the page is clean)
//! ```
//!
//! To look up a page one reads the frame index from the page table, pins (an atomic increment), and then compares the
//! frame's page id. A frame can only be taken away by the compare-and-swap 0 -> owned, so a pin that did not see
//! `owned` keeps the page; a pin that saw `owned`, or found another page, is given back at once and the look-up
//! repeated. Such transient pins may come and go while a frame is owned, so an owner gives the frame up by clearing
//! the bit, never by storing the word.
//!
//! Guards hold a pointer to the descriptor and no reference to the store. This is sound because the memory is freed
//! only when no frame is pinned (otherwise it is leaked, see `Frames::drop`).

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use disk::PageId;

use crate::error::Error;
use crate::latch::Latch;
use crate::page::PageSize;
use crate::pins::PinWord;
use crate::tier::History;

/// Bits of a page's history.
pub(crate) mod history {
    /// Wanted again, some time after the first access; or made in memory.
    pub(crate) const TOUCHED_AGAIN: u8 = 1;
    /// Came by the read-ahead of a scan.
    pub(crate) const SCAN: u8 = 2;
}

const NO_PAGE: u64 = u64::MAX;

/// Descriptor of one frame. Two cache lines of its own, so that neighbours do not disturb each other.
#[repr(align(128))]
pub(crate) struct Frame {
    pub(crate) pins: PinWord,
    pub(crate) latch: Latch,
    page: AtomicU64,
    bytes: *mut u8,
    len: u32,
    index: u32,
    /// Whether the page is in the old part of the LRU list. Written under the LRU mutex.
    pub(crate) is_old: AtomicBool,
    /// Whether the page came by read-ahead and nobody wanted it yet.
    pub(crate) read_ahead: AtomicBool,
    /// Milliseconds (coarse clock, at least 1) of the first access since the page came in; 0: never.
    pub(crate) first_access: AtomicU32,
    /// What the page's use so far says to the clean tier: bits of [`history`].
    history: AtomicU8,
    /// Whether the feeder has dealt with this version of the page.
    pub(crate) offered: AtomicBool,
    /// The pool's eviction count when the page last moved to the young end.
    pub(crate) young_clock: AtomicU32,
    /// Whether an image of the page is on its way to its file. Set by whoever collects it, cleared by completion.
    pub(crate) in_flight: AtomicBool,
    /// Start LSN of the mini-transaction that first changed the page since it was last collected for writing;
    /// 0 when clean. Written under the flush list mutex.
    pub(crate) oldest: AtomicU64,
    /// End LSN of the newest change. Written under the X latch.
    pub(crate) newest: AtomicU64,
    /// Start LSN of the mini-transaction that last initialised a page in this frame; compared with `oldest` only, which
    /// is greater for every later change, so it need not be reset.
    pub(crate) created: AtomicU64,
}

// SAFETY: `bytes` points to memory owned by `Frames`; access to it is governed by latch, pins and ownership, all of
// them atomics. The other fields are atomics or never change.
unsafe impl Send for Frame {}
// SAFETY: as above.
unsafe impl Sync for Frame {}

impl Frame {
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// Address of the page bytes, for I/O into an owned frame.
    pub(crate) fn address(&self) -> *mut u8 {
        self.bytes
    }

    /// Bytes of the page.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    pub(crate) fn page_id(&self) -> PageId {
        let word = self.page.load(Ordering::Relaxed);
        PageId { space: (word >> 32) as u32, page: word as u32 }
    }

    /// Whether the frame holds this page. Stable only while pinned.
    #[inline]
    pub(crate) fn holds(&self, id: PageId) -> bool {
        self.page.load(Ordering::Relaxed) == Self::word(id)
    }

    pub(crate) fn holds_a_page(&self) -> bool {
        self.page.load(Ordering::Relaxed) != NO_PAGE
    }

    /// Names the page of an owned frame, or none.
    pub(crate) fn set_page(&self, id: Option<PageId>) {
        debug_assert!(self.pins.is_owned());
        self.page.store(id.map_or(NO_PAGE, Self::word), Ordering::Relaxed);
    }

    fn word(id: PageId) -> u64 {
        u64::from(id.space) << 32 | u64::from(id.page)
    }

    /// Notes something of the page's use. What is new is a reason to offer the page to the clean tier again.
    pub(crate) fn note(&self, bit: u8) {
        if self.history.load(Ordering::Relaxed) & bit == 0 {
            self.history.fetch_or(bit, Ordering::Relaxed);
            self.offered.store(false, Ordering::Relaxed);
        }
    }

    /// What was noted of the page's use.
    pub(crate) fn history(&self) -> History {
        let bits = self.history.load(Ordering::Relaxed);
        History {
            touched_again: bits & history::TOUCHED_AGAIN != 0,
            read_ahead_unused: self.read_ahead.load(Ordering::Relaxed),
            from_scan: bits & history::SCAN != 0,
        }
    }

    /// Another page, or none, comes into the owned frame: nothing is known of its use.
    pub(crate) fn forget_history(&self) {
        self.history.store(0, Ordering::Relaxed);
        self.offered.store(false, Ordering::Relaxed);
    }

    /// Whether the newest bytes of the page are durable in its file: not dirty and not on their way. Under the S latch
    /// with a pin this stays so until the latch is given up.
    pub(crate) fn is_in_its_file(&self) -> bool {
        // In this order: a page is marked as in flight before it is taken from the list of dirty ones.
        self.oldest.load(Ordering::Acquire) == 0 && !self.in_flight.load(Ordering::Acquire)
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.oldest.load(Ordering::Relaxed) != 0
    }

    /// The page bytes.
    ///
    /// # Safety
    /// The caller holds the latch (shared or exclusive) with a pin, or owns the frame, for the whole of `'a`.
    #[inline]
    pub(crate) unsafe fn bytes<'a>(&self) -> &'a [u8] {
        // SAFETY: `bytes` points to `len` bytes that live as long as `Frames`, which outlives pins and owners; nobody
        // changes them during 'a by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.bytes, self.len as usize) }
    }

    /// The page bytes, to be changed.
    ///
    /// # Safety
    /// The caller holds the exclusive latch with a pin, or owns the frame, for the whole of `'a`, and has no other
    /// reference to them.
    #[inline]
    pub(crate) unsafe fn bytes_mut<'a>(&self) -> &'a mut [u8] {
        // SAFETY: as for `bytes`, and nobody else reads them by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.bytes, self.len as usize) }
    }
}

/// A frame descriptor by address. Whoever has one keeps the frame pinned, owns it, or keeps the store.
#[derive(Clone, Copy)]
pub(crate) struct FrameRef(NonNull<Frame>);

// SAFETY: Frame is Sync.
unsafe impl Send for FrameRef {}
// SAFETY: Frame is Sync.
unsafe impl Sync for FrameRef {}

impl std::ops::Deref for FrameRef {
    type Target = Frame;
    #[inline]
    fn deref(&self) -> &Frame {
        // SAFETY: descriptors live as long as `Frames`, which is not freed while a frame is pinned; see FrameRef.
        unsafe { self.0.as_ref() }
    }
}

/// All frames of a pool.
pub(crate) struct Frames {
    frames: NonNull<[Frame]>,
    /// What was allocated; the frames lie in the aligned part of it.
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: owns its allocations; Frame is Send and Sync.
unsafe impl Send for Frames {}
// SAFETY: as above.
unsafe impl Sync for Frames {}

impl Frames {
    /// Allocates `count` frames, all of them owned (free).
    pub(crate) fn allocate(count: usize, page_size: PageSize) -> Result<Self, Error> {
        let failed = || {
            Error::Options(format!(
                "cannot allocate a buffer pool of {count} pages of {} bytes; lower innodb_buffer_pool_size",
                page_size.bytes()
            ))
        };
        let bytes = count.checked_mul(page_size.bytes()).filter(|bytes| *bytes > 0).ok_or_else(failed)?;
        // Aligned for huge pages where the pool is large enough to have any.
        let align = if bytes >= 8 << 20 { 2 << 20 } else { 1 << 16 };
        // Zeroed memory of ordinary alignment comes untouched from the kernel, which makes a large pool start at once;
        // asked for with a larger alignment, the allocator would write all of it. So the alignment is made here.
        let layout = bytes.checked_add(align).and_then(|bytes| Layout::from_size_align(bytes, 16).ok());
        let layout = layout.ok_or_else(failed)?;
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(failed)?;
        let skip = start.as_ptr().align_offset(align);
        assert!(skip <= align, "room for the alignment was allocated");
        // SAFETY: skip <= align, and `align` bytes more than the frames take were allocated.
        let memory = unsafe { start.add(skip) };
        let frames: Box<[Frame]> = (0..count)
            .map(|index| Frame {
                pins: PinWord::owned(),
                latch: Latch::new(),
                page: AtomicU64::new(NO_PAGE),
                // SAFETY: index < count, so the address lies inside the allocation.
                bytes: unsafe { memory.as_ptr().add(index * page_size.bytes()) },
                len: page_size.bytes() as u32,
                index: index as u32,
                is_old: AtomicBool::new(false),
                read_ahead: AtomicBool::new(false),
                first_access: 0.into(),
                history: 0.into(),
                offered: AtomicBool::new(false),
                young_clock: 0.into(),
                in_flight: AtomicBool::new(false),
                oldest: AtomicU64::new(0),
                newest: AtomicU64::new(0),
                created: AtomicU64::new(0),
            })
            .collect();
        let frames = NonNull::from(Box::leak(frames));
        Ok(Self { frames, start, layout })
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> FrameRef {
        assert!((index as usize) < self.frames.len());
        // SAFETY: the index is inside the slice.
        FrameRef(unsafe { NonNull::new_unchecked(self.frames.as_ptr().cast::<Frame>().add(index as usize)) })
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        let pinned = (0..self.len()).any(|index| self.get(index as u32).pins.is_pinned());
        if pinned {
            // Someone outside still has a guard. Leaking is the price of guards without a reference count.
            tracing::warn!(
                "the buffer pool was closed while pages were pinned; its memory is not given back"
            );
            return;
        }
        // SAFETY: both allocations were made in `allocate` and nobody has a pin, so no pointer to them is left.
        unsafe {
            drop(Box::from_raw(self.frames.as_ptr()));
            dealloc(self.start.as_ptr(), self.layout);
        }
    }
}
