//! The five bytes before a record's origin.
//!
//! | address | content |
//! |---|---|
//! | O-5 | high nibble info bits, low nibble number of records owned by a directory slot |
//! | O-4..O-3 | heap number (13 bits) and status (3 bits) |
//! | O-2..O-1 | offset of the next record relative to this origin, modulo 65536 |

/// Bytes of the header.
pub const HEADER_SIZE: usize = 5;
/// Info bit of the first node pointer of the leftmost page of a level: its key counts as minus infinity.
pub const MIN_REC_FLAG: u8 = 0x10;
/// Info bit of a delete-marked record.
pub const DELETED_FLAG: u8 = 0x20;
/// Info bits that only an instantly altered table has; such tables are refused.
pub const INSTANT_FLAGS: u8 = 0xC0;

fn byte(page: &[u8], at: usize) -> u8 {
    page.get(at).copied().unwrap_or(0)
}

fn word(page: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([byte(page, at), byte(page, at.wrapping_add(1))])
}

/// The info bits, in the high nibble.
#[inline]
pub fn info_bits(page: &[u8], origin: usize) -> u8 {
    byte(page, origin.wrapping_sub(5)) & 0xF0
}

/// Number of records in the directory group whose last record this is; 0 for all others.
#[inline]
pub fn n_owned(page: &[u8], origin: usize) -> u8 {
    byte(page, origin.wrapping_sub(5)) & 0x0F
}

/// Number of the record in allocation order on its page.
#[inline]
pub fn heap_no(page: &[u8], origin: usize) -> u16 {
    word(page, origin.wrapping_sub(4)) >> 3
}

/// The status bits; see [`super::Status`].
#[inline]
pub fn status(page: &[u8], origin: usize) -> u8 {
    (word(page, origin.wrapping_sub(4)) & 7) as u8
}

/// Origin of the next record in key order (or in the free list); `None` at the end of the chain.
#[inline]
pub fn next(page: &[u8], origin: usize) -> Option<usize> {
    let relative = word(page, origin.wrapping_sub(2));
    (relative != 0).then(|| (origin.wrapping_add(usize::from(relative))) & 0xFFFF)
}

/// The stored form of a next pointer from `origin` to `target` (0 ends the chain).
#[inline]
pub fn next_bytes(origin: usize, target: Option<usize>) -> [u8; 2] {
    target.map_or(0, |target| (target.wrapping_sub(origin) & 0xFFFF) as u16).to_be_bytes()
}

/// The stored form of heap number and status.
#[inline]
pub fn heap_bytes(heap_no: u16, status: u8) -> [u8; 2] {
    (heap_no << 3 | u16::from(status)).to_be_bytes()
}
