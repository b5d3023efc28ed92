//! The memory that the pages of a pool lie in: pieces of address space, one for each time the pool grew beyond all it
//! had been before.
//!
//! A piece is never moved and not freed before the pool is: a frame has its page at the same address for ever. What it
//! costs is what was touched. When the pool is made smaller, the pages that go are given back to the system
//! (`MADV_DONTNEED`) and come back as zeros when they are touched again.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::Range;
use std::ptr::NonNull;

use crate::page::PageSize;

/// One allocation.
struct Piece {
    /// What was allocated; the pages lie in the aligned part of it.
    start: NonNull<u8>,
    layout: Layout,
    pages_start: *mut u8,
    pages: Range<usize>,
}

/// All memory for pages, by frame index.
pub(crate) struct PageMemory {
    pieces: Vec<Piece>,
    page_size: usize,
}

// SAFETY: owns its allocations; what they hold is governed by the frames.
unsafe impl Send for PageMemory {}

impl PageMemory {
    /// Memory for `count` pages, or `None` when there is none.
    pub(crate) fn allocate(count: usize, page_size: PageSize) -> Option<Self> {
        let mut memory = Self { pieces: Vec::new(), page_size: page_size.bytes() };
        memory.grow(count).then_some(memory).filter(|memory| memory.pages() > 0)
    }

    /// Pages there is memory for.
    pub(crate) fn pages(&self) -> usize {
        self.pieces.last().map_or(0, |piece| piece.pages.end)
    }

    /// Gets memory for `count` pages in all. False when it cannot be had.
    pub(crate) fn grow(&mut self, count: usize) -> bool {
        let pages = self.pages()..count;
        if pages.is_empty() {
            return true;
        }
        let piece = Self::piece(pages, self.page_size);
        let got = piece.is_some();
        self.pieces.extend(piece);
        got
    }

    fn piece(pages: Range<usize>, page_size: usize) -> Option<Piece> {
        let bytes = pages.len().checked_mul(page_size)?;
        // Aligned for huge pages where the piece is large enough to have any.
        let align = if bytes >= 8 << 20 { 2 << 20 } else { 1 << 16 };
        // Zeroed memory of ordinary alignment comes untouched from the kernel, which makes a large pool start at once;
        // asked for with a larger alignment, the allocator would write all of it. So the alignment is made here.
        let layout = Layout::from_size_align(bytes.checked_add(align)?, 16).ok()?;
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let skip = start.as_ptr().align_offset(align);
        assert!(skip <= align, "room for the alignment was allocated");
        // SAFETY: skip <= align, and `align` bytes more than the pages take were allocated.
        let pages_start = unsafe { start.as_ptr().add(skip) };
        Some(Piece { start, layout, pages_start, pages })
    }

    /// Where the page of a frame lies.
    pub(crate) fn page(&self, index: usize) -> *mut u8 {
        let piece = self.pieces.iter().rev().find(|piece| piece.pages.contains(&index));
        let Some(piece) = piece else { unreachable!("frame {index} has no memory") };
        piece.address(index, self.page_size)
    }

    /// Gives the memory of these pages, which nobody uses, back to the system; they are zero afterwards, or as before.
    pub(crate) fn discard(&self, pages: Range<usize>) {
        for piece in &self.pieces {
            let part = pages.start.max(piece.pages.start)..pages.end.min(piece.pages.end);
            if part.is_empty() {
                continue;
            }
            let (address, bytes) = (piece.address(part.start, self.page_size), part.len() * self.page_size);
            // SAFETY: whole pages of an allocation of ours that nobody has a reference into; as anonymous memory they
            // are zero when touched again. Page sizes and their alignment are multiples of 4 KiB; where the system's
            // pages are larger it refuses what is not aligned, and nothing happens.
            if unsafe { libc::madvise(address.cast(), bytes, libc::MADV_DONTNEED) } != 0 {
                let error = std::io::Error::last_os_error();
                tracing::debug!("memory of the buffer pool could not be given back: {error}");
            }
        }
    }

    /// Forgets the memory without freeing it.
    pub(crate) fn leak(&mut self) {
        self.pieces.clear();
    }
}

impl Piece {
    fn address(&self, index: usize, page_size: usize) -> *mut u8 {
        assert!(self.pages.contains(&index));
        // SAFETY: the page is one of the piece's.
        unsafe { self.pages_start.add((index - self.pages.start) * page_size) }
    }
}

impl Drop for PageMemory {
    fn drop(&mut self) {
        for piece in self.pieces.drain(..) {
            // SAFETY: allocated with this layout; frames do not outlive their memory (see `Frames::drop`).
            unsafe { dealloc(piece.start.as_ptr(), piece.layout) };
        }
    }
}
