//! Memory for direct I/O: page-aligned, zeroed, owned by the one who must keep it alive until a completion
//! ran.
//!
//! An [`IoBuf`] says who owns the bytes of a request. `Owned` travels with the request and comes back with
//! its completion; `Shared` lets one allocation serve many writes (a doublewrite batch and the pages in it);
//! `Raw` is for memory the caller keeps alive by other means (buffer-pool frames, pinned for the length of
//! the I/O).

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::Arc;

/// Alignment in bytes of every [`AlignedBuf`]: enough for direct I/O on any device with blocks up to 4 KiB.
pub const ALIGNMENT: usize = 4096;

/// A zeroed, fixed-size byte buffer whose address is a multiple of [`ALIGNMENT`].
pub struct AlignedBuf {
    /// What was allocated; the buffer is the aligned part of it.
    block: NonNull<u8>,
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: an AlignedBuf is the only owner of plain bytes, exactly like a Box<[u8]>.
unsafe impl Send for AlignedBuf {}
// SAFETY: as above; shared references only allow reading.
unsafe impl Sync for AlignedBuf {}

impl AlignedBuf {
    /// A buffer of `len` zero bytes. The memory comes straight from the kernel's zero pages where it is
    /// large: what is never used of it costs nothing.
    pub fn zeroed(len: usize) -> AlignedBuf {
        if len == 0 {
            return AlignedBuf { block: NonNull::dangling(), start: NonNull::dangling(), len: 0 };
        }
        let layout = Self::layout(len);
        // SAFETY: the layout has a non-zero size (len > 0).
        let Some(block) = NonNull::new(unsafe { alloc_zeroed(layout) }) else { handle_alloc_error(layout) };
        let skip = block.align_offset(ALIGNMENT);
        assert!(skip < ALIGNMENT, "room for the alignment was allocated");
        // SAFETY: skip < ALIGNMENT, and that much more than `len` was allocated.
        let start = unsafe { block.add(skip) };
        AlignedBuf { block, start, len }
    }

    /// The same for what will be used as a whole: asks the kernel for huge pages, with which it makes far
    /// fewer of them. It may decline.
    pub fn huge(len: usize) -> AlignedBuf {
        let buf = AlignedBuf::zeroed(len);
        if !cfg!(miri) {
            // SAFETY: the buffer's own memory. The advice changes no byte of it, and is refused where the
            // buffer does not begin with a page of the system's.
            unsafe { libc::madvise(buf.start.as_ptr().cast(), len, libc::MADV_HUGEPAGE) };
        }
        buf
    }

    /// A buffer holding a copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> AlignedBuf {
        let mut buf = AlignedBuf::zeroed(bytes.len());
        buf.copy_from_slice(bytes);
        buf
    }

    /// The alignment is made here: asked for zeros with more of it than it has anyway, the system's allocator
    /// writes them, instead of taking pages that are zero.
    fn layout(len: usize) -> Layout {
        match Layout::from_size_align(len.saturating_add(ALIGNMENT), align_of::<u128>()) {
            Ok(layout) => layout,
            // A length above isize::MAX is as impossible to satisfy as any other allocation failure.
            Err(_) => handle_alloc_error(Layout::new::<u8>()),
        }
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: `block` came from `alloc_zeroed` with this very layout and is freed once, here.
            unsafe { dealloc(self.block.as_ptr(), Self::layout(self.len)) }
        }
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: `start` is valid for `len` initialised bytes (dangling only when len is 0).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes this the only access.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Clone for AlignedBuf {
    fn clone(&self) -> AlignedBuf {
        AlignedBuf::copy_of(self)
    }
}

impl fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuf({} bytes)", self.len)
    }
}

/// Memory that the caller of [`Storage::submit`](crate::Storage::submit) keeps alive and untouched until
/// completion.
#[derive(Clone, Copy, Debug)]
pub struct RawBuf {
    ptr: *mut u8,
    len: usize,
}

// SAFETY: the maker of the RawBuf (unsafe constructor) promised that it may be used by the thread that does
// the I/O.
unsafe impl Send for RawBuf {}

/// The bytes of one request.
#[derive(Debug)]
pub enum IoBuf {
    /// Travels with the request; the first `.1` bytes are transferred.
    Owned(AlignedBuf, usize),
    /// A part of a shared allocation; for writes only.
    Shared(Arc<AlignedBuf>, Range<usize>),
    /// Caller-kept memory; see [`IoBuf::raw`].
    Raw(RawBuf),
}

impl IoBuf {
    /// All bytes of `buf`.
    pub fn owned(buf: AlignedBuf) -> IoBuf {
        let len = buf.len();
        IoBuf::Owned(buf, len)
    }

    /// Caller-kept memory.
    ///
    /// # Safety
    /// `ptr` must be valid for reads (a write request) or writes (a read request) of `len` bytes until the
    /// `done` callback of the request was called or dropped, and nobody else may write to it (write request)
    /// or touch it (read request) in that time, from any thread.
    pub const unsafe fn raw(ptr: *mut u8, len: usize) -> IoBuf {
        IoBuf::Raw(RawBuf { ptr, len })
    }

    /// Number of bytes to transfer.
    pub fn len(&self) -> usize {
        match self {
            IoBuf::Owned(_, len) => *len,
            IoBuf::Shared(_, range) => range.len(),
            IoBuf::Raw(raw) => raw.len,
        }
    }

    /// True when there is nothing to transfer.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, for writing them to a file.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            IoBuf::Owned(buf, len) => &buf[..*len],
            IoBuf::Shared(buf, range) => &buf[range.clone()],
            // SAFETY: promised by the caller of `IoBuf::raw`.
            IoBuf::Raw(raw) => unsafe { std::slice::from_raw_parts(raw.ptr, raw.len) },
        }
    }

    /// The bytes, for filling them from a file; `None` for a shared buffer, which others may be reading.
    pub(crate) fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        match self {
            IoBuf::Owned(buf, len) => Some(&mut buf[..*len]),
            IoBuf::Shared(..) => None,
            // SAFETY: promised by the caller of `IoBuf::raw`.
            IoBuf::Raw(raw) => Some(unsafe { std::slice::from_raw_parts_mut(raw.ptr, raw.len) }),
        }
    }

    /// Address of the first byte; checks that the named range lies inside the buffer.
    pub(crate) fn address(&self) -> *mut u8 {
        match self {
            IoBuf::Raw(raw) => raw.ptr,
            other => other.bytes().as_ptr().cast_mut(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_aligned_zeroed_and_survives_a_clone() {
        // Miri takes minutes for a megabyte.
        for len in [0, 1, 511, 4096, 4097, if cfg!(miri) { 1 << 14 } else { 1 << 20 }] {
            let mut buf = AlignedBuf::zeroed(len);
            assert_eq!(buf.len(), len);
            assert!(buf.iter().all(|b| *b == 0));
            if len > 0 {
                assert_eq!(buf.as_ptr() as usize % ALIGNMENT, 0);
                buf[len - 1] = 7;
                let copy = buf.clone();
                assert_eq!(&copy[..], &buf[..]);
                assert_ne!(copy.as_ptr(), buf.as_ptr());
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore)]
    fn a_large_buffer_takes_no_memory_before_it_is_used() {
        let resident = || {
            let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
            let pages = pages.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok());
            pages.unwrap_or_default() * 4096
        };
        let before = resident();
        let buf = AlignedBuf::zeroed(256 << 20);
        assert!(resident() < before + (128 << 20), "it was written");
        assert_eq!((buf[0], buf[buf.len() - 1]), (0, 0));
    }

    #[test]
    fn a_shared_part_is_for_writing_to_disk_only() {
        let shared = Arc::new(AlignedBuf::copy_of(b"0123456789"));
        let mut part = IoBuf::Shared(shared, 2..5);
        assert_eq!(part.bytes(), b"234");
        assert!(part.bytes_mut().is_none());
    }
}
