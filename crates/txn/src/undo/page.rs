//! Bytes of undo pages and log headers.

use pagestore::page::{HEADER_LEN, NULL_PAGE, TRAILER_LEN, u16_at, u32_at, u64_at};

/// Id of the undo tablespace.
pub const UNDO_SPACE: u32 = 0xFFFF_FFF0;

/// Undo page: the transaction whose log goes on at [`RECORDS`] (u64); 0 when a log starts there, or none
/// does.
pub(crate) const OWNER: usize = HEADER_LEN;
/// Undo page: first free byte (u16).
pub(crate) const FREE: usize = OWNER + 8;
/// Undo page: number of its slot (u16).
pub(crate) const SLOT: usize = FREE + 2;
/// Undo page: first byte of records or log headers.
pub(crate) const RECORDS: usize = SLOT + 2 + 6;

/// Log header: transaction id (u64).
pub(crate) const LOG_TRX_ID: usize = 0;
/// Log header: commit number (u64), then end page (u32), end offset (u16), state (u8), flags (u8).
pub(crate) const LOG_COMMIT: usize = 8;
/// Log header: the part of it that begins with the end page.
pub(crate) const LOG_END: usize = LOG_COMMIT + 8;
/// Log header: the state (u8).
pub(crate) const LOG_STATE: usize = LOG_COMMIT + 14;
/// Bytes of a log header.
pub(crate) const LOG_HEADER_LEN: usize = 24;
/// State in a log header: changes are to be rolled back.
pub(crate) const STATE_ACTIVE: u8 = 1;
/// State in a log header: committed, to be purged.
pub(crate) const STATE_COMMITTED: u8 = 2;
/// State in a log header: this log and all others of the slot before its end are purged; pages between may be
/// gone already.
pub(crate) const STATE_PURGED: u8 = 3;

/// State in a log header: prepared. Neither to be rolled back nor committed before somebody says so. Where a
/// committed log has its commit number stands the count of records, and as its end where the record with the
/// transaction's name begins, which is the end of what can be undone.
pub(crate) const STATE_PREPARED: u8 = 5;

/// A place in the undo tablespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub page: u32,
    pub offset: u16,
}

impl Place {
    /// No page at all: a slot never used.
    pub const NOWHERE: Place = Place { page: NULL_PAGE, offset: 0 };
    /// The start of a page.
    pub fn start_of(page: u32) -> Place {
        Place { page, offset: RECORDS as u16 }
    }
}

/// A decoded log header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogHeader {
    pub trx_id: u64,
    pub commit_number: u64,
    pub end: Place,
    pub state: u8,
}

impl LogHeader {
    pub fn read(page: &[u8], offset: usize) -> LogHeader {
        let commit = offset + LOG_COMMIT;
        LogHeader {
            trx_id: u64_at(page, offset + LOG_TRX_ID),
            commit_number: u64_at(page, commit),
            end: Place { page: u32_at(page, commit + 8), offset: u16_at(page, commit + 12) },
            state: page[offset + LOG_STATE],
        }
    }

    /// Whether it can be one.
    pub fn is_one(&self) -> bool {
        matches!(self.state, STATE_ACTIVE | STATE_COMMITTED | STATE_PURGED | STATE_PREPARED)
            && self.trx_id != 0
    }

    /// The header of a log that begins.
    pub fn begin(trx_id: u64) -> [u8; LOG_HEADER_LEN] {
        let mut bytes = [0; LOG_HEADER_LEN];
        bytes[LOG_TRX_ID..8].copy_from_slice(&trx_id.to_be_bytes());
        bytes[LOG_STATE] = STATE_ACTIVE;
        bytes
    }

    /// What a commit writes at [`LOG_COMMIT`].
    pub fn commit_mark(commit_number: u64, end: Place) -> [u8; 15] {
        LogHeader::mark(commit_number, end, STATE_COMMITTED)
    }

    /// What preparing writes there.
    pub fn prepared_mark(records: u64, end: Place) -> [u8; 15] {
        LogHeader::mark(records, end, STATE_PREPARED)
    }

    fn mark(number: u64, end: Place, state: u8) -> [u8; 15] {
        let mut bytes = [0; 15];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        bytes[8..12].copy_from_slice(&end.page.to_be_bytes());
        bytes[12..14].copy_from_slice(&end.offset.to_be_bytes());
        bytes[14] = state;
        bytes
    }
}

/// What purge writes at [`LOG_END`] of the oldest header of a slot when everything before `end` is purged.
pub(crate) fn purged_mark(end: Place) -> [u8; 7] {
    let mut bytes = [0; 7];
    bytes[..4].copy_from_slice(&end.page.to_be_bytes());
    bytes[4..6].copy_from_slice(&end.offset.to_be_bytes());
    bytes[6] = STATE_PURGED;
    bytes
}

/// First byte of a page that no record may reach.
pub(crate) fn limit(page_size: usize) -> usize {
    page_size - TRAILER_LEN
}

/// Whether a log header begins at this place of the page.
pub(crate) fn has_header(page: &[u8], at: Place) -> bool {
    let offset = usize::from(at.offset);
    let inside =
        offset >= RECORDS && at.offset < free_of(page) && offset + LOG_HEADER_LEN <= limit(page.len());
    inside && LogHeader::read(page, offset).is_one()
}

/// First free byte of an undo page.
pub(crate) fn free_of(page: &[u8]) -> u16 {
    u16_at(page, FREE)
}

/// Owner of an undo page.
pub(crate) fn owner_of(page: &[u8]) -> u64 {
    u64_at(page, OWNER)
}

/// Slot of an undo page.
pub(crate) fn slot_of(page: &[u8]) -> u16 {
    u16_at(page, SLOT)
}
