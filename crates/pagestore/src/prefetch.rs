//! Asking for memory before it is needed.
//!
//! Most of what a search costs is waiting for bytes that are in no cache, one after the other, because the
//! place of the next ones follows from those before. Where several places can be told at once, all of them
//! are asked for together, and are on their way at the same time.

/// Asks for the bytes around `at`. Only a hint: a place outside them is none.
#[inline]
pub fn prefetch(bytes: &[u8], at: usize) {
    if let Some(byte) = bytes.get(at) {
        prefetch_address(std::ptr::from_ref(byte));
    }
}

/// Asks for what is at an address, whatever is there.
#[inline]
#[allow(unsafe_code)]
pub(crate) fn prefetch_address<T>(at: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every processor of this architecture has the instruction, which reads nothing that the
        // program sees, and faults nowhere.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}
