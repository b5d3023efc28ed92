//! The bytes of the kept map: frames of records.
//!
//! ```text
//!   frame    0  magic "UTMJ"        8  stream (u64)      24  CRC-32C of bytes 0..24 and the payload
//!            4  payload bytes       16  sequence (u64)   28  0        32  payload, then zeros to a multiple of 4096
//!   record   1 header   version u16, page bytes u32, region bytes u32, encryption u32, key u32, tier id 16, database 16
//!            2 add      slot u32, space u32, page u32, LSN u64, check u32
//!            3 drop     slot u32
//!            4 region   region u32: all slots of the region hold nothing
//!            5 space    space u32: all slots with pages of the tablespace hold nothing
//!            6 covered  LSN u64, run u32
//!            7 complete
//! ```
//!
//! Integers are little-endian. A frame is written once and never over; `stream` is a random number per file
//! content, so that frames of an earlier life of the same file end the stream instead of continuing it.
//! `encryption` is 0 (none): see `docs/internals/extension.md` for what is to come there.

use disk::AlignedBuf;
use page::PageId;

use crate::table::Entry;

/// Frames start and end at multiples of this.
pub(crate) const FRAME_ALIGNMENT: usize = 4096;
pub(crate) const FRAME_HEADER: usize = 32;
/// Longer payloads are not ours.
pub(crate) const PAYLOAD_MAX: usize = 64 << 20;
/// Version of map, slots and header.
pub(crate) const VERSION: u16 = 1;
const MAGIC: u32 = u32::from_le_bytes(*b"UTMJ");

/// What a map belongs to. All of it must agree, or the map is not for us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    pub(crate) page_bytes: u32,
    pub(crate) region_bytes: u32,
    /// Random, given to the tier's file when it was made.
    pub(crate) tier: [u8; 16],
    /// Given to the data directory when it was made.
    pub(crate) database: [u8; 16],
}

/// One event in the life of the map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Record {
    Header(Identity),
    Add(Entry),
    Drop { slot: u32 },
    DropRegion { region: u32 },
    DropSpace { space: u32 },
    Covered { lsn: u64, run: u32 },
    Complete,
}

/// Bytes of an `add`, the commonest record.
pub(crate) const ADD_BYTES: usize = 25;

impl Record {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Record::Header(identity) => {
                out.push(1);
                out.extend_from_slice(&VERSION.to_le_bytes());
                out.extend_from_slice(&identity.page_bytes.to_le_bytes());
                out.extend_from_slice(&identity.region_bytes.to_le_bytes());
                // No encryption, no key.
                out.extend_from_slice(&[0; 8]);
                out.extend_from_slice(&identity.tier);
                out.extend_from_slice(&identity.database);
            }
            Record::Add(entry) => {
                out.push(2);
                for word in [entry.slot, entry.page.space, entry.page.page] {
                    out.extend_from_slice(&word.to_le_bytes());
                }
                out.extend_from_slice(&entry.lsn.to_le_bytes());
                out.extend_from_slice(&entry.check.to_le_bytes());
            }
            Record::Drop { slot } => word(out, 3, *slot),
            Record::DropRegion { region } => word(out, 4, *region),
            Record::DropSpace { space } => word(out, 5, *space),
            Record::Covered { lsn, run } => {
                out.push(6);
                out.extend_from_slice(&lsn.to_le_bytes());
                out.extend_from_slice(&run.to_le_bytes());
            }
            Record::Complete => out.push(7),
        }
    }

    /// The first record of `bytes`, which are shortened by it; `None` when they are no record.
    pub(crate) fn decode(bytes: &mut &[u8]) -> Option<Record> {
        let mut reader = Reader(bytes);
        let record = match reader.take::<1>()?[0] {
            1 => {
                let version = u16::from_le_bytes(reader.take()?);
                let (page_bytes, region_bytes) = (reader.word()?, reader.word()?);
                let encryption = reader.take::<8>()?;
                let identity =
                    Identity { page_bytes, region_bytes, tier: reader.take()?, database: reader.take()? };
                (version == VERSION && encryption == [0; 8]).then_some(Record::Header(identity))?
            }
            2 => {
                let (slot, space, page) = (reader.word()?, reader.word()?, reader.word()?);
                let lsn = u64::from_le_bytes(reader.take()?);
                Record::Add(Entry { page: PageId::new(space, page), slot, lsn, check: reader.word()? })
            }
            3 => Record::Drop { slot: reader.word()? },
            4 => Record::DropRegion { region: reader.word()? },
            5 => Record::DropSpace { space: reader.word()? },
            6 => Record::Covered { lsn: u64::from_le_bytes(reader.take()?), run: reader.word()? },
            7 => Record::Complete,
            _ => return None,
        };
        *bytes = reader.0;
        Some(record)
    }
}

fn word(out: &mut Vec<u8>, tag: u8, value: u32) {
    out.push(tag);
    out.extend_from_slice(&value.to_le_bytes());
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn word(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }
}

/// The frame of a payload, ready to be written.
pub(crate) fn frame(stream: u64, sequence: u64, payload: &[u8]) -> AlignedBuf {
    let mut frame = AlignedBuf::zeroed((FRAME_HEADER + payload.len()).next_multiple_of(FRAME_ALIGNMENT));
    frame[0..4].copy_from_slice(&MAGIC.to_le_bytes());
    frame[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    frame[8..16].copy_from_slice(&stream.to_le_bytes());
    frame[16..24].copy_from_slice(&sequence.to_le_bytes());
    frame[FRAME_HEADER..FRAME_HEADER + payload.len()].copy_from_slice(payload);
    let crc = crc32c::crc32c_append(crc32c::crc32c(&frame[0..24]), payload);
    frame[24..28].copy_from_slice(&crc.to_le_bytes());
    frame
}

/// The head of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FrameHead {
    pub(crate) payload_bytes: usize,
    pub(crate) stream: u64,
    pub(crate) sequence: u64,
    crc: u32,
    crc_of_head: u32,
}

impl FrameHead {
    /// Reads a head; `None` when it cannot be one.
    pub(crate) fn decode(block: &[u8]) -> Option<FrameHead> {
        let mut reader = Reader(block);
        let magic = reader.word()?;
        let payload_bytes = reader.word()? as usize;
        let head = FrameHead {
            payload_bytes,
            stream: u64::from_le_bytes(reader.take()?),
            sequence: u64::from_le_bytes(reader.take()?),
            crc: reader.word()?,
            crc_of_head: crc32c::crc32c(block.get(0..24)?),
        };
        (magic == MAGIC && payload_bytes <= PAYLOAD_MAX).then_some(head)
    }

    /// Bytes of the whole frame.
    pub(crate) fn frame_bytes(&self) -> usize {
        (FRAME_HEADER + self.payload_bytes).next_multiple_of(FRAME_ALIGNMENT)
    }

    /// Whether this is the payload that was written.
    pub(crate) fn fits(&self, payload: &[u8]) -> bool {
        crc32c::crc32c_append(self.crc_of_head, payload) == self.crc
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Record> {
        let identity =
            Identity { page_bytes: 16384, region_bytes: 1 << 20, tier: [7; 16], database: [9; 16] };
        let entry = Entry { page: PageId::new(3, 4), slot: 77, lsn: 1 << 40, check: 0xDEAD_BEEF };
        vec![
            Record::Header(identity),
            Record::Add(entry),
            Record::Drop { slot: 5 },
            Record::DropRegion { region: 6 },
            Record::DropSpace { space: 8 },
            Record::Covered { lsn: 99, run: 3 },
            Record::Complete,
        ]
    }

    #[test]
    fn records_come_back_and_every_cut_is_noticed() {
        let mut bytes = Vec::new();
        samples().iter().for_each(|record| record.encode(&mut bytes));
        let mut rest = &bytes[..];
        let read: Vec<Record> = std::iter::from_fn(|| Record::decode(&mut rest)).collect();
        assert_eq!(read, samples());
        assert!(rest.is_empty());
        for record in samples() {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            for cut in 0..bytes.len() {
                assert_eq!(Record::decode(&mut &bytes[..cut]), None, "{record:?} cut to {cut} bytes");
            }
            if let Record::Add(_) = record {
                assert_eq!(bytes.len(), ADD_BYTES);
            }
        }
    }

    #[test]
    fn a_frame_with_any_flipped_byte_is_not_taken() {
        let mut payload = Vec::new();
        samples().iter().for_each(|record| record.encode(&mut payload));
        let whole = frame(11, 12, &payload);
        let taken = |bytes: &[u8]| {
            FrameHead::decode(bytes).is_some_and(|head| {
                head.stream == 11
                    && head.sequence == 12
                    && bytes
                        .get(FRAME_HEADER..FRAME_HEADER + head.payload_bytes)
                        .is_some_and(|payload| head.fits(payload))
            })
        };
        assert!(taken(&whole));
        for at in (0..28).chain(FRAME_HEADER..FRAME_HEADER + payload.len()) {
            let mut damaged = whole.to_vec();
            damaged[at] ^= 1;
            assert!(!taken(&damaged), "byte {at}");
        }
    }
}
