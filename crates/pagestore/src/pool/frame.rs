//! Frames: the pool's memory, and one descriptor per frame.
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
//! To look up a page one reads the frame index from the page table, pins (an atomic increment), and then
//! compares the frame's page id. A frame can only be taken away by the compare-and-swap 0 -> owned, so a pin
//! that did not see `owned` keeps the page; a pin that saw `owned`, or found another page, is given back at
//! once and the look-up repeated. Such transient pins may come and go while a frame is owned, so an owner
//! gives the frame up by clearing the bit, never by storing the word.
//!
//! A pool that is made smaller ([`crate::pool::resize`]) withdraws frames: a withdrawn frame is owned, holds
//! no page and is in no list until the pool grows again. Look-ups that come too late still find its
//! descriptor, which stays.
//!
//! Guards hold a pointer to the descriptor and no reference to the store. This is sound because the memory is
//! freed only when no frame is pinned (otherwise it is leaked, see `Frames::drop`).

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

use page::extension::History;
use page::{PageId, PageSize};
use parking_lot::Mutex;

use crate::pool::heads::{WORDS, WORDS_ABOVE};
use crate::pool::heads_memory::Rooms;
use crate::pool::heads_word::HeadsWord;
use crate::pool::page_memory::PageMemory;
use crate::pool::page_name::PageName;

use crate::error::Error;
use crate::pool::latch::Latch;
use crate::pool::pins::PinWord;
use crate::prefetch::prefetch_address;

/// Bits of a page's history.
pub(crate) mod history {
    /// Wanted again, some time after the first access; or made in memory.
    pub(crate) const TOUCHED_AGAIN: u8 = 1;
    /// Came by the read-ahead of a scan.
    pub(crate) const SCAN: u8 = 2;
    /// Was in memory before a restart, and colder than what was loaded before.
    pub(crate) const COLDER: u8 = 4;
}

/// Descriptor of one frame. Two cache lines of its own, so that neighbours do not disturb each other; what a
/// look-up needs is all in the first, so the order of the fields is this one.
#[repr(C, align(128))]
pub(crate) struct Frame {
    pub(crate) pins: PinWord,
    pub(crate) latch: Latch,
    page: PageName,
    bytes: *mut u8,
    len: u32,
    index: u32,
    /// Whether there are heads of the page's records.
    pub(crate) heads: HeadsWord,
    /// The pool's eviction count when the page last moved to the young end.
    pub(crate) young_clock: AtomicU32,
    /// See the essay. Changed under the free list's mutex.
    withdrawn: AtomicBool,
    /// Withdrawn, and its memory was given back to the system. Only the resizer looks at it.
    given_back: AtomicBool,
    /// Whether the page is in the old part of the LRU list. Written under the LRU mutex.
    pub(crate) is_old: AtomicBool,
    /// Whether the page came by read-ahead and nobody wanted it yet.
    pub(crate) read_ahead: AtomicBool,
    /// Milliseconds (coarse clock, at least 1) of the first access since the page came in; 0: never.
    pub(crate) first_access: AtomicU32,
    /// What the page's use so far says to the buffer pool extension: bits of [`history`].
    history: AtomicU8,
    /// Whether the feeder has dealt with this version of the page.
    pub(crate) offered: AtomicBool,
    /// Whether an image of the page is on its way to its file. Set when it is reserved
    /// (`flush/reservation.rs`), cleared by completion.
    pub(crate) in_flight: AtomicBool,
    /// Whether it is being written to be evicted: not one that only rides along.
    pub(crate) victim: AtomicBool,
    /// Start LSN of the mini-transaction that first changed the page since it last left the flush list;
    /// 0 when clean. Written under the flush list mutex.
    pub(crate) oldest: AtomicU64,
    /// End LSN of the newest change. Written under the X latch.
    pub(crate) newest: AtomicU64,
    /// Start LSN of the mini-transaction that last initialised a page in this frame; compared with `oldest`
    /// only, which is greater for every later change, so it need not be reset but where recovery enters a
    /// page with an older one.
    pub(crate) created: AtomicU64,
}

// SAFETY: `bytes` points to memory owned by `Frames`; access to it is governed by latch, pins and ownership,
// all of them atomics. The other fields are atomics or never change.
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

    /// Asks for what a search looks at first, for a page that nobody has pinned yet.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch_address(self.bytes);
        prefetch_address(self.bytes.wrapping_add(64));
    }

    /// Bytes of the page.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether the page is in the young part of the LRU list, or all are as good as that, and was not only
    /// read ahead.
    pub(crate) fn was_wanted_lately(&self, all_are_young: bool) -> bool {
        let is_young = all_are_young || !self.is_old.load(Ordering::Relaxed);
        is_young && !self.read_ahead.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn page_id(&self) -> PageId {
        let word = self.page.get();
        PageId { space: (word >> 32) as u32, page: word as u32 }
    }

    /// Whether the frame holds this page. Stable only while pinned. Without a pin it says of the heads that
    /// were found made before that they are this page's, if they are still made after (`page_name.rs`).
    #[inline]
    pub(crate) fn holds(&self, id: PageId) -> bool {
        self.page.get() == Self::word(id)
    }

    pub(crate) fn holds_a_page(&self) -> bool {
        self.page.is_some()
    }

    /// Names the page of an owned frame, or none.
    pub(crate) fn set_page(&self, id: Option<PageId>) {
        debug_assert!(self.pins.is_owned());
        assert!(!self.is_withdrawn(), "frame {} was withdrawn and is used", self.index);
        // In this order: see `page_name.rs`.
        self.heads.forget();
        self.page.set(id.map(Self::word));
    }

    /// Whether the frame was taken out of the pool.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::Relaxed)
    }

    /// Takes the frame out of the pool, or back into it.
    pub(crate) fn set_withdrawn(&self, withdrawn: bool) {
        debug_assert!(self.pins.is_owned() && !self.holds_a_page());
        self.withdrawn.store(withdrawn, Ordering::Relaxed);
        self.given_back.store(false, Ordering::Relaxed);
    }

    /// Whether the frame is withdrawn and has its memory still.
    pub(crate) fn can_be_given_back(&self) -> bool {
        self.is_withdrawn() && !self.given_back.load(Ordering::Relaxed)
    }

    fn word(id: PageId) -> u64 {
        u64::from(id.space) << 32 | u64::from(id.page)
    }

    /// Notes something of the page's use. What is new is a reason to offer the page to the buffer pool
    /// extension again.
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

    /// Whether this was noted.
    pub(crate) fn is_noted(&self, bit: u8) -> bool {
        self.history.load(Ordering::Relaxed) & bit != 0
    }

    /// Another page, or none, comes into the owned frame: nothing is known of its use.
    pub(crate) fn forget_history(&self) {
        self.history.store(0, Ordering::Relaxed);
        self.offered.store(false, Ordering::Relaxed);
    }

    /// The page of `other` comes into this frame, with what is known of it. Both are owned.
    pub(crate) fn take_over(&self, other: FrameRef) {
        debug_assert!(!other.is_dirty() && !other.in_flight.load(Ordering::Relaxed));
        let flag =
            |to: &AtomicBool, from: &AtomicBool| to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        flag(&self.read_ahead, &other.read_ahead);
        other.read_ahead.store(false, Ordering::Relaxed);
        flag(&self.offered, &other.offered);
        self.history.store(other.history.load(Ordering::Relaxed), Ordering::Relaxed);
        let number =
            |to: &AtomicU32, from: &AtomicU32| to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        number(&self.first_access, &other.first_access);
        number(&self.young_clock, &other.young_clock);
        self.newest.store(other.newest.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Whether the newest bytes of the page are in its file: not dirty and not on their way. Under the S
    /// latch with a pin this stays so until the latch is given up.
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
        // SAFETY: `bytes` points to `len` bytes that live as long as `Frames`, which outlives pins and
        // owners; nobody changes them during 'a by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.bytes, self.len as usize) }
    }

    /// The page bytes, to be changed.
    ///
    /// # Safety
    /// The caller holds the exclusive latch with a pin, or owns the frame, for the whole of `'a`, and has no
    /// other reference to them.
    #[inline]
    pub(crate) unsafe fn bytes_mut<'a>(&self) -> &'a mut [u8] {
        self.heads.forget();
        // SAFETY: as for `bytes`, and nobody else reads them by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.bytes, self.len as usize) }
    }
}

/// A frame descriptor by address. Its holder keeps the frame pinned, owns it, or keeps the store.
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
        // SAFETY: descriptors live as long as `Frames`, which is not freed while a frame is pinned; see
        // FrameRef.
        unsafe { self.0.as_ref() }
    }
}

/// All frames of a pool, withdrawn ones too.
///
/// Descriptors lie in buckets that never move. The first has room for those the pool began with, rounded up
/// to a power of two; each further one for as many as all before it together. So finding a descriptor in a
/// pool that has not grown is a comparison and an addition, and room for descriptors that are not there yet
/// costs address space only. They are made when the free list first gives their frames away.
pub(crate) struct Frames {
    first: NonNull<Frame>,
    first_capacity: usize,
    grown: [AtomicPtr<Frame>; BUCKETS_GROWN],
    /// Descriptors made, from 0 on.
    made: AtomicU32,
    page_size: PageSize,
    memory: Mutex<PageMemory>,
    /// Room for the heads of the page in each frame, and of one that is no leaf.
    pub(crate) heads: Rooms<WORDS>,
    pub(crate) heads_above: Rooms<WORDS_ABOVE>,
}

/// 2^31 frames, beginning with one.
const BUCKETS_GROWN: usize = 31;

// SAFETY: owns its allocations; Frame is Send and Sync.
unsafe impl Send for Frames {}
// SAFETY: as above.
unsafe impl Sync for Frames {}

/// Lets `nodes`, a list of something by frame, reach as far as the frame `index`: in steps, and no further
/// than frames were used.
pub(crate) fn reach<N: Copy>(nodes: &mut Vec<N>, index: u32, blank: N) {
    const STEP: usize = 512;
    if nodes.len() <= index as usize {
        let least = index as usize + 1;
        // Within the room that there is for all frames: nothing is copied under the list's mutex.
        nodes.resize(least.next_multiple_of(STEP).min(nodes.capacity()).max(least), blank);
    }
}

fn allocate_descriptors(capacity: usize) -> Option<NonNull<Frame>> {
    let layout = Layout::array::<Frame>(capacity).ok().filter(|layout| layout.size() > 0)?;
    // SAFETY: the layout is not empty.
    NonNull::new(unsafe { alloc(layout) }.cast())
}

impl Frames {
    /// `count` frames with their descriptors, all of them owned (free).
    #[cfg(test)]
    pub(crate) fn allocate(count: usize, page_size: PageSize) -> Result<Self, Error> {
        let frames = Self::with_room(count, page_size)?;
        frames.make_free(count);
        Ok(frames)
    }

    /// Memory for `count` frames. They get their descriptors when they are first used
    /// ([`Frames::make_free`]): those of a large pool are some tens of megabytes, and a program that opens a
    /// small database should not wait for them, nor have them.
    pub(crate) fn with_room(count: usize, page_size: PageSize) -> Result<Self, Error> {
        let first_capacity = count.next_power_of_two();
        let failed = || {
            Error::Options(format!(
                "cannot allocate a buffer pool of {count} pages of {} bytes; lower innodb_buffer_pool_size",
                page_size.bytes()
            ))
        };
        let memory = PageMemory::allocate(count, page_size).ok_or_else(failed)?;
        let first = allocate_descriptors(first_capacity).ok_or_else(failed)?;
        Ok(Self {
            first,
            first_capacity,
            grown: [const { AtomicPtr::new(ptr::null_mut()) }; BUCKETS_GROWN],
            made: AtomicU32::new(0),
            page_size,
            memory: Mutex::new(memory),
            heads: Rooms::new(),
            heads_above: Rooms::new(),
        })
    }

    /// Descriptors there are, from 0 on.
    pub(crate) fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed) as usize
    }

    /// Frames that there is memory for, made or not.
    pub(crate) fn reserved(&self) -> usize {
        self.memory.lock().pages()
    }

    /// Gets memory for a total of `count` frames, and room for their descriptors. Nothing of it is touched
    /// yet.
    pub(crate) fn reserve(&self, count: usize) -> Result<(), Error> {
        let mut memory = self.memory.lock();
        let missing = count.saturating_sub(memory.pages());
        let failed = || {
            let bytes = self.page_size.bytes();
            Error::Options(format!(
                "cannot allocate {missing} pages of {bytes} bytes more for the buffer pool"
            ))
        };
        let mut capacity = self.first_capacity;
        for bucket in &self.grown {
            if capacity >= count {
                break;
            }
            if bucket.load(Ordering::Acquire).is_null() {
                let descriptors = allocate_descriptors(capacity).ok_or_else(failed)?;
                bucket.store(descriptors.as_ptr(), Ordering::Release);
            }
            capacity *= 2;
        }
        if memory.grow(count) { Ok(()) } else { Err(failed()) }
    }

    /// Has the system back the memory of these frames, which are used or will be soon. False where it
    /// refuses.
    pub(crate) fn back(&self, frames: std::ops::Range<usize>) -> bool {
        // Without the lock: who needs descriptors does not wait for it.
        let parts = self.memory.lock().parts(frames);
        // SAFETY: the memory is as old as `self`.
        parts.iter().all(|part| unsafe { part.populate() })
    }

    /// Makes descriptors up to `count`, of frames that belong to the pool. There is memory for them; one
    /// caller at a time.
    pub(crate) fn make_free(&self, count: usize) {
        self.make(count, false);
    }

    /// The same, of frames that do not belong to the pool yet.
    pub(crate) fn make_withdrawn(&self, count: usize) {
        self.make(count, true);
    }

    fn make(&self, count: usize, withdrawn: bool) {
        let memory = self.memory.lock();
        assert!(count <= memory.pages(), "memory for the frames was reserved");
        for index in self.made()..count {
            let frame = Frame {
                pins: PinWord::owned(),
                latch: Latch::new(),
                page: PageName::none(),
                heads: HeadsWord::new(),
                bytes: memory.page(index),
                len: self.page_size.bytes() as u32,
                index: index as u32,
                withdrawn: AtomicBool::new(withdrawn),
                given_back: AtomicBool::new(false),
                is_old: AtomicBool::new(false),
                read_ahead: AtomicBool::new(false),
                first_access: 0.into(),
                history: 0.into(),
                offered: AtomicBool::new(false),
                young_clock: 0.into(),
                in_flight: AtomicBool::new(false),
                victim: AtomicBool::new(false),
                oldest: AtomicU64::new(0),
                newest: AtomicU64::new(0),
                created: AtomicU64::new(0),
            };
            // SAFETY: there is room for the descriptor, and nobody looks at it before `made` says so.
            unsafe { self.place(index).as_ptr().write(frame) };
        }
        // The index of a new frame only reaches others through code that runs after this.
        self.made.fetch_max(count as u32, Ordering::Release);
    }

    /// Gives the memory of withdrawn frames, and of heads in them, back to the system. Its bytes are lost.
    pub(crate) fn discard(&self, range: std::ops::Range<u32>) {
        debug_assert!(range.clone().all(|index| self.get(index).is_withdrawn()));
        self.heads.discard(range.clone());
        self.heads_above.discard(range.clone());
        self.memory.lock().discard(range.start as usize..range.end as usize);
    }

    /// The same for those of the frames that are withdrawn, once for each: nobody else takes one back, or
    /// gives it back, meanwhile.
    pub(crate) fn discard_withdrawn(&self, range: std::ops::Range<u32>) {
        let can_be = |index: &u32| self.get(*index).can_be_given_back();
        let mut next = range.start;
        while let Some(start) = (next..range.end).find(can_be) {
            next = (start..range.end).find(|index| !can_be(index)).unwrap_or(range.end);
            self.discard(start..next);
            (start..next).for_each(|index| self.get(index).given_back.store(true, Ordering::Relaxed));
        }
    }

    /// Where the descriptor of a frame is, or will be.
    #[inline]
    fn place(&self, index: usize) -> NonNull<Frame> {
        if index < self.first_capacity {
            // SAFETY: inside the allocation.
            return unsafe { self.first.add(index) };
        }
        self.place_grown(index)
    }

    fn place_grown(&self, index: usize) -> NonNull<Frame> {
        let bucket = (index / self.first_capacity).ilog2();
        let start = NonNull::new(self.grown[bucket as usize].load(Ordering::Acquire));
        let Some(start) = start else { unreachable!("frame {index} has no descriptor") };
        // SAFETY: the bucket has `first_capacity << bucket` places and begins with the index of that number.
        unsafe { start.add(index - (self.first_capacity << bucket)) }
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> FrameRef {
        assert!(index < self.made.load(Ordering::Relaxed));
        FrameRef(self.place(index as usize))
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        let pinned = (0..self.made()).any(|index| self.get(index as u32).pins.is_pinned());
        if pinned {
            // Someone outside still has a guard. Leaking is the price of guards without a reference count.
            tracing::warn!(
                "the buffer pool was closed while pages were pinned; its memory is not given back"
            );
            self.memory.get_mut().leak();
            return;
        }
        let mut capacity = self.first_capacity;
        let free = |start: *mut Frame, capacity: usize| {
            if let Ok(layout) = Layout::array::<Frame>(capacity)
                && !start.is_null()
            {
                // SAFETY: allocated with this layout; nobody has a pin, so no pointer to a descriptor is
                // left, and descriptors need no drop.
                unsafe { dealloc(start.cast(), layout) };
            }
        };
        free(self.first.as_ptr(), capacity);
        for bucket in &mut self.grown {
            free(*bucket.get_mut(), capacity);
            capacity *= 2;
            if bucket.get_mut().is_null() {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn memory_is_given_back_once_for_each_frame_that_was_withdrawn() {
        let frames = Frames::allocate(8, PageSize::new(65536).unwrap()).unwrap();
        // SAFETY: owned by the test.
        let bytes = |index| unsafe { frames.get(index).bytes_mut() };
        let withdraw = |index| frames.get(index).set_withdrawn(true);
        let round = |expected: [u8; 8]| {
            frames.discard_withdrawn(0..8);
            let seen: Vec<u8> = (0..8).map(|index| bytes(index)[65535]).collect();
            assert_eq!(seen, expected);
        };
        (0..8).for_each(|index| bytes(index).fill(7));
        round([7; 8]);
        [1, 2, 5, 7].into_iter().for_each(withdraw);
        round([7, 0, 0, 7, 7, 0, 7, 0]);
        // As nobody does who lets it be.
        bytes(1).fill(9);
        withdraw(3);
        round([7, 9, 0, 0, 7, 0, 7, 0]);
        // Back in the pool, and out of it again.
        frames.get(2).set_withdrawn(false);
        bytes(2).fill(8);
        round([7, 9, 8, 0, 7, 0, 7, 0]);
        withdraw(2);
        round([7, 9, 0, 0, 7, 0, 7, 0]);
    }

    #[test]
    fn descriptors_stay_where_they_are_while_the_pool_grows() {
        // Each byte takes Miri a microsecond.
        let sizes: &[_] = if cfg!(miri) { &[(1, 4096)] } else { &[(1, 65536), (32, 4096), (100, 16384)] };
        for &(first, page_bytes) in sizes {
            let frames = Frames::allocate(first, PageSize::new(page_bytes).unwrap()).unwrap();
            let mut seen = vec![];
            for count in [first, first + 1, 2 * first + 3, 9 * first, 64 * first] {
                frames.reserve(count).unwrap();
                frames.make_withdrawn(count);
                for (index, address) in seen.iter().enumerate() {
                    assert_eq!(frames.get(index as u32).address(), *address);
                }
                for index in seen.len()..count {
                    let frame = frames.get(index as u32);
                    assert_eq!((frame.index() as usize, frame.is_withdrawn()), (index, index >= first));
                    assert_eq!(frame.address().align_offset(4096), 0);
                    // SAFETY: owned by the test.
                    unsafe { frame.bytes_mut() }.fill(index as u8 | 1);
                    seen.push(frame.address());
                }
            }
            seen.sort_unstable();
            assert!(seen.windows(2).all(|pair| pair[1] as usize - pair[0] as usize >= page_bytes));
            let (middle, end) = (3 * first as u32, frames.made() as u32);
            frames.discard(middle..end);
            for index in 0..end {
                // SAFETY: owned by the test.
                let byte = unsafe { frames.get(index).bytes() }[page_bytes - 1];
                assert_eq!(byte, if index < middle { index as u8 | 1 } else { 0 }, "frame {index}");
            }
        }
    }
}
