//! Asking for memory before it is needed.
//!
//! Most of what a search costs is waiting for records that are in no cache, one after the other, because the
//! place of the next one follows from the comparison with the one before. But there are only two places where
//! it can be. Asked for together, before the comparison, both are on their way at the same time.

use super::header::TRAILER_SIZE;

/// Asks for the bytes around `at`. Only a hint: a place outside the page is none.
#[inline]
#[allow(unsafe_code)]
pub(crate) fn prefetch(page: &[u8], at: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(byte) = page.get(at) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every processor of this architecture has the instruction, which reads nothing that the
        // program sees, and faults nowhere.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (page, at);
}

/// Asks for the directory of a page, or the end of it where a search begins, while the header is read.
#[inline]
pub(crate) fn prefetch_directory(page: &[u8]) {
    prefetch(page, page.len().wrapping_sub(TRAILER_SIZE + 32));
}
