//! The page header and the fixed areas of an INDEX page.
//!
//! | offset | size | field |
//! |---:|---:|---|
//! | 38 | 2 | N_DIR_SLOTS |
//! | 40 | 2 | HEAP_TOP: first byte never used |
//! | 42 | 2 | N_HEAP: bit 15 marks COMPACT/DYNAMIC; records ever allocated, infimum and supremum included |
//! | 44 | 2 | FREE: origin of the first freed record |
//! | 46 | 2 | GARBAGE: bytes in freed records |
//! | 48 | 2 | LAST_INSERT |
//! | 50 | 2 | DIRECTION |
//! | 52 | 2 | N_DIRECTION |
//! | 54 | 2 | N_RECS |
//! | 56 | 8 | MAX_TRX_ID |
//! | 64 | 2 | LEVEL |
//! | 66 | 8 | INDEX_ID |
//! | 74 | 10 | SEG_LEAF (root) |
//! | 84 | 10 | SEG_TOP (root) |
//! | 94 | 26 | infimum and supremum |

use pagestore::page::{u16_at, u64_at};

/// Offset of N_DIR_SLOTS, the first field.
pub const N_DIR_SLOTS: usize = pagestore::page::HEADER_LEN;
/// Offset of HEAP_TOP.
pub const HEAP_TOP: usize = 40;
/// Offset of N_HEAP.
pub const N_HEAP: usize = 42;
/// Offset of FREE.
pub const FREE: usize = 44;
/// Offset of GARBAGE.
pub const GARBAGE: usize = 46;
/// Offset of LAST_INSERT.
pub const LAST_INSERT: usize = 48;
/// Offset of DIRECTION.
pub const DIRECTION: usize = 50;
/// Offset of N_DIRECTION.
pub const N_DIRECTION: usize = 52;
/// Offset of N_RECS.
pub const N_RECS: usize = 54;
/// Offset of MAX_TRX_ID; on a clustered root the last AUTO_INCREMENT value (MariaDB).
pub const MAX_TRX_ID: usize = 56;
/// Offset of LEVEL.
pub const LEVEL: usize = 64;
/// Offset of INDEX_ID.
pub const INDEX_ID: usize = 66;
/// Offset of the header of the leaf segment, on the root.
pub const SEGMENT_LEAF: usize = 74;
/// Offset of the header of the segment of all other pages, on the root.
pub const SEGMENT_TOP: usize = 84;
/// First byte of infimum.
pub const FIXED_RECORDS: usize = 94;
/// Origin of infimum.
pub const INFIMUM: usize = 99;
/// Origin of supremum.
pub const SUPREMUM: usize = 112;
/// First byte of the heap.
pub const HEAP: usize = 120;
/// Bytes of the FIL trailer.
pub const TRAILER_SIZE: usize = pagestore::page::TRAILER_LEN;

/// Values of DIRECTION.
pub mod direction {
    /// Inserts go to the left.
    pub const LEFT: u16 = 1;
    /// Inserts go to the right.
    pub const RIGHT: u16 = 2;
    /// No order seen.
    pub const NONE: u16 = 5;
}

/// Bytes 94..120 of a page without records.
pub const EMPTY_RECORDS: [u8; 26] = *b"\x01\x00\x02\x00\x0Dinfimum\x00\x01\x00\x0B\x00\x00supremum";

/// Number of directory slots.
#[inline]
pub fn n_dir_slots(page: &[u8]) -> usize {
    usize::from(u16_at(page, N_DIR_SLOTS))
}

/// First byte never used by a record.
#[inline]
pub fn heap_top(page: &[u8]) -> usize {
    usize::from(u16_at(page, HEAP_TOP))
}

/// Records ever allocated, infimum and supremum included.
#[inline]
pub fn n_heap(page: &[u8]) -> usize {
    usize::from(u16_at(page, N_HEAP) & 0x7FFF)
}

/// Whether records are in COMPACT or DYNAMIC format.
pub fn is_compact(page: &[u8]) -> bool {
    u16_at(page, N_HEAP) & 0x8000 != 0
}

/// Origin of the first freed record.
#[inline]
pub fn free(page: &[u8]) -> Option<usize> {
    let origin = usize::from(u16_at(page, FREE));
    (origin != 0).then_some(origin)
}

/// Bytes in freed records.
#[inline]
pub fn garbage(page: &[u8]) -> usize {
    usize::from(u16_at(page, GARBAGE))
}

/// Origin of the record inserted last, 0 if not known.
#[inline]
pub fn last_insert(page: &[u8]) -> usize {
    usize::from(u16_at(page, LAST_INSERT))
}

/// User records on the page.
#[inline]
pub fn n_recs(page: &[u8]) -> usize {
    usize::from(u16_at(page, N_RECS))
}

/// Largest id of a transaction that changed this leaf of a secondary index.
#[inline]
pub fn max_trx_id(page: &[u8]) -> u64 {
    u64_at(page, MAX_TRX_ID)
}

/// Level of the page, 0 for a leaf.
#[inline]
pub fn level(page: &[u8]) -> u16 {
    u16_at(page, LEVEL)
}

/// Id of the index the page belongs to.
#[inline]
pub fn index_id(page: &[u8]) -> u64 {
    u64_at(page, INDEX_ID)
}

/// Bytes that the directory needs for `n` records.
fn reserved_directory(n: usize) -> usize {
    (2 * n).div_ceil(4)
}

/// Bytes for records and directory on an empty page.
fn free_of_empty(page_size: usize) -> usize {
    page_size - HEAP - TRAILER_SIZE - 2 * 2
}

/// Largest record that fits a tree of such pages: two of them must fit a page (8125 bytes at 16 KiB).
pub fn record_size_max(page_size: usize) -> usize {
    (free_of_empty(page_size) / 2 - 1).min(16383)
}

/// Bytes of live records.
#[inline]
pub fn data_size(page: &[u8]) -> usize {
    heap_top(page).saturating_sub(HEAP).saturating_sub(garbage(page))
}

/// Bytes that `n` new records may take at the top of the heap.
#[inline]
pub fn max_insert(page: &[u8], n: usize) -> usize {
    let used = heap_top(page).saturating_sub(HEAP) + reserved_directory(n + n_heap(page).saturating_sub(2));
    free_of_empty(page.len()).saturating_sub(used)
}

/// Bytes that `n` new records may take once the page has been reorganised.
#[inline]
pub fn max_insert_reorganized(page: &[u8], n: usize) -> usize {
    let used = data_size(page) + reserved_directory(n + n_recs(page));
    free_of_empty(page.len()).saturating_sub(used)
}

/// Whether `n` records of `bytes` bytes in total fit an empty page.
pub fn fits_empty(page_size: usize, n: usize, bytes: usize) -> bool {
    bytes + reserved_directory(n) <= free_of_empty(page_size)
}

/// The header fields that an insert or delete may change, read and written together as one range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeapFields {
    pub n_dir_slots: u16,
    pub heap_top: u16,
    /// With bit 15.
    pub n_heap: u16,
    pub free: u16,
    pub garbage: u16,
    pub last_insert: u16,
    pub direction: u16,
    pub n_direction: u16,
    pub n_recs: u16,
}

impl HeapFields {
    pub(crate) fn read(page: &[u8]) -> HeapFields {
        HeapFields {
            n_dir_slots: u16_at(page, N_DIR_SLOTS),
            heap_top: u16_at(page, HEAP_TOP),
            n_heap: u16_at(page, N_HEAP),
            free: u16_at(page, FREE),
            garbage: u16_at(page, GARBAGE),
            last_insert: u16_at(page, LAST_INSERT),
            direction: u16_at(page, DIRECTION),
            n_direction: u16_at(page, N_DIRECTION),
            n_recs: u16_at(page, N_RECS),
        }
    }

    /// Writes the fields that differ from the page as one range: the fields are neighbours, and one range
    /// costs less redo than several records.
    pub(crate) fn store(&self, editor: &mut impl super::PageEditor) {
        let words = [
            self.n_dir_slots,
            self.heap_top,
            self.n_heap,
            self.free,
            self.garbage,
            self.last_insert,
            self.direction,
            self.n_direction,
            self.n_recs,
        ];
        let mut bytes = [0u8; 18];
        for (to, word) in bytes.chunks_exact_mut(2).zip(words) {
            to.copy_from_slice(&word.to_be_bytes());
        }
        let old = &editor.bytes()[N_DIR_SLOTS..N_DIR_SLOTS + bytes.len()];
        let Some(first) = old.iter().zip(&bytes).position(|(old, new)| old != new) else { return };
        let last = old.iter().zip(&bytes).rposition(|(old, new)| old != new).unwrap_or(first);
        editor.write(N_DIR_SLOTS + first, &bytes[first..=last]);
    }
}
