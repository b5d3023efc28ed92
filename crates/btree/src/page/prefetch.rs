//! What a search of a page is about to look at, asked for in time.

pub(crate) use pagestore::prefetch;

use super::header::TRAILER_SIZE;

/// Bytes that the processor fetches at once.
const LINE: usize = 64;

/// Asks for the directory of a page, or the end of it where a search begins, while the header is read.
#[inline]
pub(crate) fn prefetch_directory(page: &[u8]) {
    prefetch(page, page.len().wrapping_sub(TRAILER_SIZE + 32));
}

/// Asks for the bytes of a row, from its header on.
#[inline]
pub(crate) fn prefetch_row(page: &[u8], origin: usize) {
    let start = origin.wrapping_sub(8);
    (0..4).for_each(|line| prefetch(page, start.wrapping_add(line * LINE)));
}
