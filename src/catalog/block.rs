//! The bytes of the catalog file: a header, and records cut into blocks of a sector each.
//!
//! ```text
//! | header | record 1 | record 2: block 0 of 2 | block 1 of 2 | record 3 | zeros …
//! ```
//!
//! The space behind the last record is always zeros, written and synced before it is used, and each record is
//! synced before the next is written. A disk writes a sector whole or not. So a power cut in the middle of
//! the last write leaves blocks that are right and blocks that are zeros, and a block that is neither has
//! been damaged: *torn* and *damaged* are told apart, and a record that was ever acknowledged is never taken
//! for a torn one.

/// Bytes of a block: a sector.
pub(super) const BLOCK: usize = 512;
/// Bytes of a block before its part of the record.
const HEAD: usize = 28;
const PAYLOAD: usize = BLOCK - HEAD;
const MARK: [u8; 4] = *b"ucat";

/// Appends a record to `bytes`.
pub(super) fn encode(bytes: &mut Vec<u8>, sequence: u64, payload: &[u8]) {
    let count = payload.len().div_ceil(PAYLOAD).max(1);
    for index in 0..count {
        let part = &payload[index * PAYLOAD..payload.len().min((index + 1) * PAYLOAD)];
        let mut block = [0; BLOCK];
        block[4..8].copy_from_slice(&MARK);
        block[8..16].copy_from_slice(&sequence.to_le_bytes());
        block[16..20].copy_from_slice(&(index as u32).to_le_bytes());
        block[20..24].copy_from_slice(&(count as u32).to_le_bytes());
        block[24..28].copy_from_slice(&(part.len() as u32).to_le_bytes());
        block[HEAD..HEAD + part.len()].copy_from_slice(part);
        let sum = crc32c::crc32c(&block[4..]);
        block[..4].copy_from_slice(&sum.to_le_bytes());
        bytes.extend_from_slice(&block);
    }
}

/// A block as it was found.
#[derive(Debug, PartialEq, Eq)]
enum Found<'a> {
    Zeros,
    Whole { sequence: u64, index: u32, count: u32, part: &'a [u8] },
    Damaged,
}

fn look_at(block: &[u8]) -> Found<'_> {
    if block.iter().all(|byte| *byte == 0) {
        return Found::Zeros;
    }
    let word =
        |at: usize| block.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    let (Some(sum), Some(low), Some(high), Some(index), Some(count), Some(len)) =
        (word(0), word(8), word(12), word(16), word(20), word(24))
    else {
        return Found::Damaged;
    };
    let sequence = u64::from(low) | u64::from(high) << 32;
    match block.get(HEAD..HEAD + len as usize) {
        Some(part) if block[4..8] == MARK && crc32c::crc32c(&block[4..]) == sum && index < count => {
            Found::Whole { sequence, index, count, part }
        }
        _ => Found::Damaged,
    }
}

/// Where reading ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct End {
    /// Where the next record goes.
    pub tail: usize,
    /// Its number.
    pub sequence: u64,
    /// Blocks of a record that was never acknowledged lie behind the tail, up to here.
    pub torn_until: usize,
}

/// Gives every record behind the header to `take`, and finds the end.
///
/// # Errors
/// What is damaged, and where.
pub(super) fn decode(
    bytes: &[u8],
    mut take: impl FnMut(u64, &[u8]) -> Result<(), String>,
) -> Result<End, String> {
    let (mut tail, mut sequence) = (BLOCK, 1);
    let mut payload = Vec::new();
    loop {
        let blocks = bytes.get(tail..).unwrap_or_default().chunks(BLOCK);
        payload.clear();
        let mut whole = 0;
        let mut total = 1;
        for (at, block) in blocks.clone().enumerate() {
            match look_at(block) {
                Found::Whole { sequence: number, index, count, part }
                    if number == sequence && index as usize == at && block.len() == BLOCK =>
                {
                    payload.extend_from_slice(part);
                    (whole, total) = (at + 1, count as usize);
                    if whole == total {
                        break;
                    }
                }
                _ => break,
            }
        }
        if whole == total {
            take(sequence, &payload).map_err(|why| format!("record {sequence} (at byte {tail}): {why}"))?;
            tail += whole * BLOCK;
            sequence += 1;
            continue;
        }
        let torn_until = end_of_torn(bytes, tail, sequence)?;
        return Ok(End { tail, sequence, torn_until });
    }
}

/// Where the blocks of the torn record end that begins at `tail`; `tail` itself if there are none.
fn end_of_torn(bytes: &[u8], tail: usize, sequence: u64) -> Result<usize, String> {
    let rest = bytes.get(tail..).unwrap_or_default();
    if rest.len() < BLOCK {
        return Err(format!(
            "it ends at byte {} without the space that always follows record {}: it was truncated",
            bytes.len(),
            sequence - 1
        ));
    }
    let mut until = tail;
    let mut zeros = false;
    let whole = rest.chunks_exact(BLOCK);
    // Room that was being made and not finished may end anywhere.
    if whole.remainder().iter().any(|byte| *byte != 0) {
        return Err(format!("the part of a block at its end (byte {}) is damaged", bytes.len()));
    }
    for (at, block) in whole.enumerate() {
        let place = tail + at * BLOCK;
        match look_at(block) {
            Found::Zeros => zeros = true,
            Found::Whole { sequence: number, index, count, .. }
                if number == sequence && index as usize == at && at < count as usize =>
            {
                until = place + BLOCK;
            }
            Found::Whole { sequence: number, .. } => {
                return Err(format!(
                    "record {number} (at byte {place}) exists, but record {sequence}, which precedes it, does not"
                ));
            }
            Found::Damaged => {
                return Err(format!(
                    "the block at byte {place} (of record {sequence} or a later one) is damaged"
                ));
            }
        }
    }
    if !zeros {
        return Err(format!("it ends in the middle of record {sequence}: it was truncated"));
    }
    Ok(until)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn file(records: &[&[u8]]) -> Vec<u8> {
        let mut bytes = vec![b' '; BLOCK];
        for (number, record) in records.iter().enumerate() {
            encode(&mut bytes, number as u64 + 1, record);
        }
        bytes.resize(bytes.len() + 4 * BLOCK, 0);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<(Vec<Vec<u8>>, End), String> {
        let mut records = Vec::new();
        let end = decode(bytes, |_, record| {
            records.push(record.to_vec());
            Ok(())
        })?;
        Ok((records, end))
    }

    #[test]
    fn records_come_back_in_order() {
        let long = vec![7; 3 * PAYLOAD + 1];
        let written: [&[u8]; 4] = [b"", b"one", &long, b"three"];
        let (records, end) = read(&file(&written)).unwrap();
        assert_eq!(records, written);
        assert_eq!((end.tail, end.sequence), (8 * BLOCK, 5));
        assert_eq!(end.torn_until, end.tail);
    }

    /// Any subset of the last record's blocks may have reached the disk: all of them are the record, less are
    /// nothing.
    #[test]
    fn the_last_record_is_there_whole_or_not_at_all() {
        let long = vec![7; 3 * PAYLOAD + 1];
        let whole = file(&[b"first", &long]);
        for subset in 0..16 {
            let mut bytes = whole.clone();
            for block in (0..4).filter(|block| subset & 1 << block == 0) {
                bytes[(2 + block) * BLOCK..][..BLOCK].fill(0);
            }
            let (records, end) = read(&bytes).unwrap();
            assert_eq!(records.len(), if subset == 15 { 2 } else { 1 }, "{subset:b}");
            assert!(subset == 15 || end.tail == 2 * BLOCK && end.torn_until <= 6 * BLOCK);
        }
    }

    /// No single flipped bit goes unnoticed, not even in the last record, and none in a torn one.
    #[test]
    fn every_flipped_bit_is_noticed() {
        let long = vec![7; PAYLOAD + 1];
        let good = file(&[b"first", &long, b"last"]);
        for at in BLOCK..good.len() {
            for bit in 0..8 {
                let mut bytes = good.clone();
                bytes[at] ^= 1 << bit;
                assert!(read(&bytes).is_err(), "byte {at}, bit {bit}");
            }
        }
    }

    #[test]
    fn a_lost_record_and_a_cut_file_are_damage() {
        let good = file(&[b"first", b"second", b"third"]);
        let mut bytes = good.clone();
        bytes[2 * BLOCK..3 * BLOCK].fill(0);
        assert!(read(&bytes).unwrap_err().contains("record 3"));
        assert!(read(&good[..4 * BLOCK]).unwrap_err().contains("truncated"));
        assert!(read(&good[..3 * BLOCK + 17]).is_err());
        assert!(
            read(&good[..4 * BLOCK + 17]).unwrap_err().contains("truncated"),
            "no space after the last record"
        );
        // Room that was not finished is room.
        let (records, end) = read(&good[..6 * BLOCK + 17]).unwrap();
        assert_eq!((records.len(), end.tail), (3, 4 * BLOCK));
    }
}
