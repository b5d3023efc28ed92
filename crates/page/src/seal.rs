//! The only door between the bytes of a page in memory and those in a file: [`seal`] on the way out,
//! [`verify`] on the way back. What is done to all pages of a file, such as encryption, belongs here.
//!
//! ```text
//! checksum = crc32c(page[4 .. 26)) XOR crc32c(page[38 .. P-8))      stored at 0 and at P-8
//! low 32 bits of the LSN                                            stored at P-4
//! ```
//!
//! This is InnoDB's `crc32` checksum (not `full_crc32`, see [`verify_full_crc32`]). It is two separate CRCs,
//! so the flush LSN (26..34) and the space id (34..38) are not covered; the reader of a page compares its
//! identity too ([`verify_identity`]). A page of all zeros is valid: it lies in a part of a file that was
//! added by growth and has not been written yet.

use crate::header::{self, CHECKSUM, FLUSH_LSN, HEADER_LEN, LSN, PAGE_NUMBER, TRAILER_LEN, TYPE, u32_at};
use crate::{Lsn, PageId};

/// Offset of the low word of the LSN, which the trailer repeats.
const LSN_LOW: usize = LSN + 4;

/// The checksum that a page of these bytes should carry.
#[must_use]
pub fn checksum(page: &[u8]) -> u32 {
    let trailer = page.len() - TRAILER_LEN;
    crc32c::crc32c(&page[PAGE_NUMBER..FLUSH_LSN]) ^ crc32c::crc32c(&page[HEADER_LEN..trailer])
}

/// Makes the copy of a page what it is in its file, as of `lsn`, its newest change: LSN into the header, its
/// low word into the trailer, checksum last.
pub fn seal(page: &mut [u8], lsn: Lsn) {
    let trailer = page.len() - TRAILER_LEN;
    page[LSN..TYPE].copy_from_slice(&lsn.0.to_be_bytes());
    page[trailer + 4..].copy_from_slice(&(lsn.0 as u32).to_be_bytes());
    let checksum = checksum(page).to_be_bytes();
    page[CHECKSUM..PAGE_NUMBER].copy_from_slice(&checksum);
    page[trailer..trailer + 4].copy_from_slice(&checksum);
}

/// Whether a page read from a file is whole and valid: checksums and LSN words agree, or all bytes are zero.
///
/// # Errors
/// What was expected and what was found.
pub fn verify(page: &[u8]) -> Result<(), String> {
    let trailer = page.len() - TRAILER_LEN;
    let stored = u32_at(page, CHECKSUM);
    let stored_again = u32_at(page, trailer);
    let computed = checksum(page);
    let lsn_low = u32_at(page, LSN_LOW);
    let lsn_low_again = u32_at(page, trailer + 4);
    let whole = stored == computed && stored_again == computed && lsn_low == lsn_low_again;
    if whole || (stored == 0 && header::is_all_zero(page)) {
        return Ok(());
    }
    if lsn_low != lsn_low_again {
        return Err(format!(
            "torn or damaged: the header says LSN ...{lsn_low:08x}, the trailer ...{lsn_low_again:08x} \
             (checksum expected {computed:08x}, found {stored:08x} and {stored_again:08x})"
        ));
    }
    Err(format!(
        "checksum expected {computed:08x}, found {stored:08x} in front and {stored_again:08x} at the end"
    ))
}

/// The same for a page in MariaDB's `full_crc32` format, which is only read to be imported: the checksum of
/// all before it stands last, the low word of the LSN before it, and where other pages begin with their
/// checksum there is zero.
///
/// # Errors
/// What was expected and what was found.
pub fn verify_full_crc32(page: &[u8]) -> Result<(), String> {
    let trailer = page.len() - TRAILER_LEN;
    let (stored, computed) = (u32_at(page, trailer + 4), crc32c::crc32c(&page[..trailer + 4]));
    if stored == 0 && header::is_all_zero(page) {
        return Ok(());
    }
    if stored != computed {
        return Err(format!("full_crc32 checksum expected {computed:08x}, found {stored:08x}"));
    }
    let (low, low_again) = (u32_at(page, LSN_LOW), u32_at(page, trailer));
    if low != low_again {
        return Err(format!(
            "torn or damaged: the header says LSN ...{low:08x}, the trailer ...{low_again:08x}"
        ));
    }
    match u32_at(page, CHECKSUM) {
        0 => Ok(()),
        version => Err(format!("encrypted with key version {version}")),
    }
}

/// Whether a page read from a file is valid and is the page that was asked for.
///
/// # Errors
/// What was expected and what was found.
pub fn verify_identity(bytes: &[u8], id: PageId) -> Result<(), String> {
    verify(bytes)?;
    let found = header::identity(bytes);
    if found != id && !header::is_all_zero(bytes) {
        return Err(format!("expected page {id}, found page {found} (misdirected write or a foreign file)"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn sample(len: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..len).map(|i| (i * 7 + i / 256) as u8).collect();
        bytes[PAGE_NUMBER..PAGE_NUMBER + 4].copy_from_slice(&9_u32.to_be_bytes());
        bytes[header::SPACE_ID..header::SPACE_ID + 4].copy_from_slice(&4_u32.to_be_bytes());
        seal(&mut bytes, Lsn(0x0001_0203_0405_0607));
        bytes
    }

    #[test]
    fn primitive_is_castagnoli() {
        assert_eq!(crc32c::crc32c(b"123456789"), 0xE306_9283);
    }

    #[test]
    fn sealed_pages_verify_and_any_covered_flip_is_found() {
        for size in [4096, 8192, 16384, 32768, 65536] {
            let bytes = sample(size);
            verify_identity(&bytes, PageId { space: 4, page: 9 }).unwrap();
            for at in [0, 5, 16, 20, 25, 38, size / 2, size - 9, size - 8, size - 1] {
                let mut damaged = bytes.clone();
                damaged[at] ^= 0x10;
                assert!(verify(&damaged).is_err(), "flip at {at} of a {size} byte page went unnoticed");
            }
        }
    }

    #[test]
    fn zero_page_is_valid_and_foreign_page_is_not() {
        verify_identity(&vec![0; 16384], PageId { space: 1, page: 2 }).unwrap();
        let why = verify_identity(&sample(16384), PageId { space: 4, page: 8 }).unwrap_err();
        assert!(why.contains("4:8") && why.contains("4:9"), "{why}");
    }
}
