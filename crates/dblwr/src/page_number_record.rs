//! Records of page numbers, for `DETECT_ONLY`: which pages were about to be written, without what is in them.
//! They are written by `protected.rs`; `recovery.rs` says what a start makes of them.
//!
//! As InnoDB 8.0.20 writes them, 8192 bytes each, big-endian: batch id (4), CRC-32C of the entries (4), their
//! length in bytes (2), flush type (1), unused (9), then 16 bytes for each page: space (4), page (4), LSN
//! (8).

use disk::AlignedBuf;
use page::{FlushPurpose, PageId, WriteBatch};

/// Bytes of a record.
pub(crate) const RECORD: usize = 8192;
const HEADER: usize = 20;
const ENTRY: usize = 16;
/// Pages a record has room for.
pub(crate) const ENTRIES_MAX: usize = (RECORD - HEADER) / ENTRY;

/// The record of these pages of the batch.
pub(crate) fn encode(batch: &WriteBatch, pages: &[usize], id: u32) -> AlignedBuf {
    assert!(pages.len() <= ENTRIES_MAX);
    let mut record = AlignedBuf::zeroed(RECORD);
    for (index, page) in pages.iter().enumerate() {
        let PageId { space, page: number } = batch.pages()[*page].id;
        let entry = &mut record[HEADER + index * ENTRY..][..ENTRY];
        entry[..4].copy_from_slice(&space.to_be_bytes());
        entry[4..8].copy_from_slice(&number.to_be_bytes());
        entry[8..].copy_from_slice(&page::lsn(batch.image(*page)).to_be_bytes());
    }
    let length = pages.len() * ENTRY;
    let sum = crc32c::crc32c(&record[HEADER..HEADER + length]);
    record[..4].copy_from_slice(&id.to_be_bytes());
    record[4..8].copy_from_slice(&sum.to_be_bytes());
    record[8..10].copy_from_slice(&(length as u16).to_be_bytes());
    record[10] = match batch.purpose {
        FlushPurpose::Lru => 0,
        FlushPurpose::Checkpoint => 1,
    };
    record
}

/// The pages of a record and their LSNs; `None` when it is torn, nothing when it was never written.
pub(crate) fn decode(record: &[u8]) -> Option<Vec<(PageId, u64)>> {
    let number = |at: usize| u32::from_be_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]]);
    let length = usize::from(u16::from_be_bytes([record[8], record[9]]));
    let entries = record.get(HEADER..HEADER + length).filter(|_| length.is_multiple_of(ENTRY))?;
    if crc32c::crc32c(entries) != number(4) {
        return None;
    }
    let entry = |entry: &[u8]| {
        let part = |at: usize| u32::from_be_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]]);
        (PageId::new(part(0), part(4)), u64::from(part(8)) << 32 | u64::from(part(12)))
    };
    Some(entries.chunks_exact(ENTRY).map(entry).collect())
}
