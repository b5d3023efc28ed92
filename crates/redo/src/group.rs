//! A group: what one group write makes durable together.
//!
//! ```text
//! offset  0  magic     u32 LE
//!         4  crc32c    u32 LE   of bytes 8 .. 32 + length
//!         8  lsn       u64 LE   position of this header in the stream
//!        16  flushed   u64 LE   the log was durable up to here when this group was sealed
//!        24  epoch     u32 LE   which opening of the log wrote it
//!        28  length    u32 LE   bytes of frames
//!        32  frames: u32 LE length, then the records of one mini-transaction; and so on
//!        ..  zeros up to the next block boundary, where the next group begins
//! ```
//!
//! A group starts on a block boundary and is padded to one, so a block that is durable is never written
//! again, and no write needs a read. `lsn` and `epoch` together tell this group from what an earlier lap, or
//! an opening before a crash, left behind: see the case analysis in [`crate::scan`]. `flushed` lets recovery
//! tell a group that was being written when the power went (a clean end) from a group that had been durable
//! (damage).

use crate::Lsn;

/// Bytes before the first frame.
pub(crate) const HEADER: usize = 32;
/// Bytes before the records of a mini-transaction.
pub(crate) const FRAME: usize = 4;
/// "UTRG" as little-endian bytes.
const MAGIC: u32 = u32::from_le_bytes(*b"UTRG");

/// A decoded header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GroupHeader {
    pub lsn: Lsn,
    pub flushed: Lsn,
    pub epoch: u32,
    pub length: u32,
    crc: u32,
}

/// Fills in the header of the group whose frames end at `used`, and zeros the padding up to `padded`.
pub(crate) fn seal(group: &mut [u8], used: usize, padded: usize, lsn: Lsn, flushed: Lsn, epoch: u32) {
    debug_assert!(used > HEADER && used <= padded && padded <= group.len());
    group[used..padded].fill(0);
    group[0..4].copy_from_slice(&MAGIC.to_le_bytes());
    group[8..16].copy_from_slice(&lsn.0.to_le_bytes());
    group[16..24].copy_from_slice(&flushed.0.to_le_bytes());
    group[24..28].copy_from_slice(&epoch.to_le_bytes());
    group[28..32].copy_from_slice(&((used - HEADER) as u32).to_le_bytes());
    let crc = crc32c::crc32c(&group[8..used]);
    group[4..8].copy_from_slice(&crc.to_le_bytes());
}

impl GroupHeader {
    /// Decodes a header, `None` when the bytes are not one. Says nothing yet about the frames.
    pub(crate) fn decode(bytes: &[u8]) -> Option<GroupHeader> {
        let bytes = bytes.first_chunk::<HEADER>()?;
        if u32_at(bytes, 0) != MAGIC {
            return None;
        }
        Some(GroupHeader {
            crc: u32_at(bytes, 4),
            lsn: Lsn(u64_at(bytes, 8)),
            flushed: Lsn(u64_at(bytes, 16)),
            epoch: u32_at(bytes, 24),
            length: u32_at(bytes, 28),
        })
    }

    /// Header and frames together, in bytes.
    pub(crate) fn used(&self) -> u64 {
        HEADER as u64 + u64::from(self.length)
    }

    /// Whether `group` (header and frames) is what was sealed.
    pub(crate) fn verify(&self, group: &[u8]) -> bool {
        group.get(8..self.used() as usize).is_some_and(|covered| crc32c::crc32c(covered) == self.crc)
    }
}

/// The mini-transactions in the frames of a group, each with its first byte's distance from the group's
/// start. A group with a good checksum always tiles; `None` as the last item says that it does not.
pub(crate) fn frames(group: &[u8]) -> impl Iterator<Item = Option<(usize, &[u8])>> {
    let mut at = HEADER;
    std::iter::from_fn(move || {
        let rest = group.get(at..).filter(|rest| !rest.is_empty())?;
        let frame = rest.first_chunk::<FRAME>().and_then(|length| {
            let length = u32::from_le_bytes(*length) as usize;
            rest.get(FRAME..FRAME.checked_add(length)?)
        });
        let start = at;
        at = match frame {
            Some(records) => at + FRAME + records.len(),
            None => group.len(),
        };
        Some(frame.map(|records| (start, records)))
    })
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(value)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(value)
}
