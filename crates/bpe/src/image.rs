//! What lies in a slot: the plain page, sealed like the copy that goes to a data file. And whether bytes that
//! came back are that page.
//!
//! The page checksum covers all of a page but the flush LSN, the space id and itself; the
//! fingerprint kept in memory adds those, so any single damaged byte of a slot is found.

use page::{Lsn, PageId};

use crate::table::Entry;

/// Why bytes that came back are not the page that was stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mismatch {
    /// Another page lies there: a misdirected write or read, or a slot that has been given to another page.
    Misdirected,
    /// The right page with another LSN: an older or newer version.
    Stale,
    /// Damaged: the checksum does not fit the bytes, or the bytes are not those that were stored.
    Corrupt,
}

/// 32 bits over everything in a sealed page.
pub(crate) fn fingerprint(image: &[u8]) -> u32 {
    let checksum = page::u32_at(image, page::CHECKSUM);
    crc32c::crc32c_append(checksum, &image[page::FLUSH_LSN..page::HEADER_LEN])
}

/// Whether the bytes of an offered page can be stored and found again: they say that they are that page.
pub(crate) fn can_be_stored(image: &[u8], page: PageId) -> bool {
    page::identity(image) == page
}

/// Makes the copy of a page in memory what it would be in its file; returns its fingerprint.
pub(crate) fn seal(copy: &mut [u8], lsn: Lsn) -> u32 {
    page::seal(copy, lsn);
    fingerprint(copy)
}

/// Compares what came back with what was stored.
///
/// # Errors
/// How they differ.
pub(crate) fn compare(image: &[u8], entry: &Entry) -> Result<(), Mismatch> {
    if page::identity(image) != entry.page {
        // Damage to the very bytes that name the page is damage; a whole foreign page is misdirected.
        let whole = page::verify(image).is_ok() && !page::is_all_zero(image);
        return Err(if whole { Mismatch::Misdirected } else { Mismatch::Corrupt });
    }
    if page::verify(image).is_err() {
        return Err(Mismatch::Corrupt);
    }
    if page::lsn(image) != entry.lsn {
        return Err(Mismatch::Stale);
    }
    if fingerprint(image) != entry.check { Err(Mismatch::Corrupt) } else { Ok(()) }
}
