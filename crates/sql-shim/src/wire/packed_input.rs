//! Opens the compressed packets of a client.
//!
//! A compressed packet is opened when all of it has come, and nothing in it is looked at before it has proved
//! to be whole: as long as its header says, checksum included, and nothing behind. Memory is taken for what
//! really comes out, at most what the header says, and that is checked against the limit of packets first. So
//! neither a header nor a bomb costs more than two packets of 16 MiB.
//!
//! What opens packets has state for one packet only: a thread keeps one for all its connections.
//!
//! zlib is opened in steps, between which the thread serves others; zstd takes milliseconds for its largest
//! packet and is opened at once.

use std::cell::{Cell, RefCell};

use flate2::{Decompress, FlushDecompress, Status};
use zstd::bulk::Decompressor;

use super::compression::{Algorithm, HEADER_BYTES};
use super::input::{BUFFER_BYTES_IDLE, BUFFER_BYTES_KEPT, InputError};

/// Bytes inflated in one step.
const STEP_BYTES: usize = 1 << 20;

thread_local! {
    static SPARE_ZLIB: Cell<Option<Decompress>> = const { Cell::new(None) };
    static ZSTD: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

fn unused_zlib() -> Decompress {
    let mut stream = SPARE_ZLIB.take().unwrap_or_else(|| Decompress::new(true));
    stream.reset(true);
    stream
}

/// What is in a packet of zstd, at most `length` bytes.
fn open_zstd(packed: &[u8], length: usize) -> Option<Vec<u8>> {
    ZSTD.with_borrow_mut(|zstd| {
        if zstd.is_none() {
            *zstd = Some(Decompressor::new().ok()?);
        }
        zstd.as_mut()?.decompress(packed, length).ok()
    })
}

/// Outcome of [`PackedInput::step`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The client has to send more.
    NeedsBytes,
    /// A packet is open in part.
    Working,
    /// A packet has been opened.
    Opened,
}

/// A zlib packet that is being opened.
#[derive(Debug)]
struct Opening {
    stream: Decompress,
    /// Where its bytes end.
    end: usize,
    /// Bytes that have to come out still.
    missing: usize,
}

/// The compressed side of a connection's input.
#[derive(Debug)]
pub(super) struct PackedInput {
    algorithm: Algorithm,
    /// From the socket.
    bytes: Vec<u8>,
    /// First byte not yet consumed.
    start: usize,
    opening: Option<Opening>,
    /// Of the next packet.
    sequence: u8,
    /// Whether one has come since the sequence began.
    taken: bool,
}

impl PackedInput {
    /// `bytes` have come already.
    pub(super) fn new(algorithm: Algorithm, bytes: Vec<u8>) -> Self {
        Self { algorithm, bytes, start: 0, opening: None, sequence: 0, taken: false }
    }

    /// The next packet carries this sequence id. When nothing was sent since the last one, it may be the last
    /// one, too: clients put the pieces of a file together.
    pub(super) fn expect_sequence(&mut self, sequence: u8) {
        self.taken &= sequence == self.sequence;
        self.sequence = sequence;
    }

    /// Sequence id of the reply. A command that came in the packet of the one before counts as one packet.
    pub(super) fn reply_sequence(&self) -> u8 {
        self.sequence.wrapping_add(u8::from(!self.taken))
    }

    /// Whether a packet is open in part.
    pub(super) fn is_working(&self) -> bool {
        self.opening.is_some()
    }

    /// Gives the buffer away for a read that appends to it. Memory follows what has come.
    pub(super) fn lend(&mut self) -> Vec<u8> {
        self.bytes.drain(..self.start);
        self.start = 0;
        let mut bytes = std::mem::take(&mut self.bytes);
        if bytes.is_empty() && bytes.capacity() > BUFFER_BYTES_KEPT {
            bytes = Vec::new();
        }
        let wanted = match bytes.first_chunk::<3>() {
            Some([a, b, c]) => u32::from_le_bytes([*a, *b, *c, 0]) as usize + HEADER_BYTES,
            None => BUFFER_BYTES_IDLE,
        };
        let reachable = wanted.clamp(BUFFER_BYTES_IDLE, (bytes.len() * 2).max(BUFFER_BYTES_KEPT));
        bytes.reserve(reachable.saturating_sub(bytes.len()).max(1));
        bytes
    }

    /// Takes the buffer back, or what has come.
    pub(super) fn restore(&mut self, bytes: Vec<u8>) {
        self.bytes = bytes;
    }

    /// Appends what has come (tests, fuzzing).
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Opens the next packet, or a step of it, and appends what is in it to `out`: to be looked at when the
    /// packet is open, not before.
    pub(super) fn step(&mut self, limit: usize, out: &mut Vec<u8>) -> Result<Step, InputError> {
        if self.opening.is_some() {
            return self.inflate(out);
        }
        let available = self.bytes.get(self.start..).unwrap_or_default();
        let Some([a, b, c, sequence, d, e, f]) = available.first_chunk::<HEADER_BYTES>() else {
            return Ok(Step::NeedsBytes);
        };
        if *sequence != self.sequence {
            // The answer carries the number that should have come, as that of MySQL.
            self.taken = true;
            return Err(InputError::OutOfOrder);
        }
        let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
        let unpacked = u32::from_le_bytes([*d, *e, *f, 0]) as usize;
        // As with MySQL, a compressed packet is no longer than one may be; small ones come many together.
        if length.max(unpacked) > limit.max(BUFFER_BYTES_KEPT).saturating_add(HEADER_BYTES) {
            return Err(InputError::TooLong);
        }
        let Some(packed) = available.get(HEADER_BYTES..HEADER_BYTES + length) else {
            return Ok(Step::NeedsBytes);
        };
        self.sequence = self.sequence.wrapping_add(1);
        self.taken = true;
        self.start += HEADER_BYTES;
        let end = self.start + length;
        match self.algorithm {
            _ if unpacked == 0 => out.extend_from_slice(packed),
            Algorithm::Zlib => {
                self.opening = Some(Opening { stream: unused_zlib(), end, missing: unpacked });
                return self.inflate(out);
            }
            Algorithm::Zstd { .. } => {
                let opened = open_zstd(packed, unpacked).filter(|opened| opened.len() == unpacked);
                let mut opened = opened.ok_or(InputError::Corrupt)?;
                match out.is_empty() {
                    true => *out = opened,
                    false => out.append(&mut opened),
                }
            }
        }
        self.consume(end);
        Ok(Step::Opened)
    }

    fn consume(&mut self, end: usize) {
        self.start = end;
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
        }
    }

    fn inflate(&mut self, out: &mut Vec<u8>) -> Result<Step, InputError> {
        let Some(opening) = &mut self.opening else { return Ok(Step::Opened) };
        let packed = self.bytes.get(self.start..opening.end).unwrap_or_default();
        let (read, made) = (opening.stream.total_in(), opening.stream.total_out());
        // One more than there should be: it shows that there is more.
        let room = opening.missing.saturating_add(1).min(STEP_BYTES);
        let before = out.len();
        out.resize(before + room, 0);
        let into = out.get_mut(before..).unwrap_or_default();
        let status = opening.stream.decompress(packed, into, FlushDecompress::None);
        let read = (opening.stream.total_in() - read) as usize;
        let made = (opening.stream.total_out() - made) as usize;
        out.truncate(before + made);
        self.start += read;
        opening.missing = opening.missing.checked_sub(made).ok_or(InputError::Corrupt)?;
        match status {
            Ok(Status::StreamEnd) if opening.missing == 0 && self.start == opening.end => {
                let end = opening.end;
                SPARE_ZLIB.set(self.opening.take().map(|opening| opening.stream));
                self.consume(end);
                Ok(Step::Opened)
            }
            // Without progress there will not be any: it is cut.
            Ok(Status::Ok | Status::BufError) if read > 0 || made > 0 => Ok(Step::Working),
            _ => Err(InputError::Corrupt),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::input::{FRAGMENT_BYTES_MAX, PacketInput};
    use super::*;
    use std::io::Write;

    const BOTH: [Algorithm; 2] = [Algorithm::Zlib, Algorithm::Zstd { level: 3 }];

    fn packet(payload: &[u8]) -> Vec<u8> {
        let mut bytes = (payload.len() as u32).to_le_bytes()[..3].to_vec();
        bytes.push(0);
        bytes.extend_from_slice(payload);
        bytes
    }

    fn compressed(algorithm: Algorithm, bytes: &[u8]) -> Vec<u8> {
        match algorithm {
            Algorithm::Zlib => {
                let mut stream = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
                stream.write_all(bytes).unwrap();
                stream.finish().unwrap()
            }
            Algorithm::Zstd { .. } => zstd::bulk::compress(bytes, 3).unwrap(),
        }
    }

    fn header(length: usize, sequence: u8, unpacked: usize) -> Vec<u8> {
        let mut bytes = (length as u32).to_le_bytes()[..3].to_vec();
        bytes.push(sequence);
        bytes.extend_from_slice(&(unpacked as u32).to_le_bytes()[..3]);
        bytes
    }

    fn input(algorithm: Algorithm) -> PacketInput {
        let mut input = PacketInput::new();
        input.unpack(algorithm);
        input.expect_command();
        input
    }

    /// Advances as a connection does that has nothing more to read.
    fn advance(input: &mut PacketInput, limit: usize) -> Result<bool, InputError> {
        loop {
            let advanced = input.advance(limit)?;
            if advanced || !input.is_unpacking() {
                return Ok(advanced);
            }
        }
    }

    #[test]
    fn packets_cut_anywhere_come_out_whole() {
        for algorithm in BOTH {
            let payload: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
            let stream = [packet(&payload), packet(b"second")].concat();
            let mut packed = Vec::new();
            for (number, piece) in stream.chunks(30_011).enumerate() {
                let compressed = compressed(algorithm, piece);
                packed.extend(header(compressed.len(), number as u8, piece.len()));
                packed.extend(compressed);
            }
            let mut input = input(algorithm);
            let mut got = Vec::new();
            for piece in packed.chunks(1009) {
                input.feed(piece);
                while advance(&mut input, 1 << 20).unwrap() {
                    got.push(input.payload().to_vec());
                    input.release();
                }
            }
            assert!(got == [payload, b"second".to_vec()], "{algorithm:?}");
            assert_eq!(usize::from(input.reply_sequence()), stream.len().div_ceil(30_011));
        }
    }

    #[test]
    fn a_packet_that_lies_about_its_length_is_corrupt() {
        for algorithm in BOTH {
            let inside = packet(&[5; 1000]);
            let packed = compressed(algorithm, &inside);
            let good = [header(packed.len(), 0, inside.len()), packed.clone()].concat();
            let cut = &packed[..packed.len() - 1];
            let mut flipped = packed.clone();
            *flipped.last_mut().unwrap() ^= 1;
            let mut wrong = vec![
                [header(packed.len(), 0, inside.len() + 1), packed.clone()].concat(),
                [header(packed.len(), 0, inside.len() - 1), packed.clone()].concat(),
                [header(packed.len(), 0, FRAGMENT_BYTES_MAX), packed.clone()].concat(),
                [header(packed.len(), 0, 1), packed.clone()].concat(),
                [header(cut.len(), 0, inside.len()), cut.to_vec()].concat(),
                [header(packed.len() + 1, 0, inside.len()), packed.clone(), vec![0]].concat(),
                [header(9, 0, 100), b"no stream".to_vec()].concat(),
                header(0, 0, 100),
            ];
            if algorithm == Algorithm::Zlib {
                // Its checksum.
                wrong.push([header(packed.len(), 0, inside.len()), flipped].concat());
            }
            for (number, bytes) in wrong.iter().enumerate() {
                let mut input = input(algorithm);
                input.feed(bytes);
                let outcome = advance(&mut input, usize::MAX);
                assert_eq!(outcome, Err(InputError::Corrupt), "{algorithm:?}, {number}");
            }
            let mut input = input(algorithm);
            input.feed(&good);
            assert_eq!(advance(&mut input, usize::MAX), Ok(true));
        }
    }

    #[test]
    fn a_bomb_costs_what_its_header_says_at_most() {
        for algorithm in BOTH {
            let bomb = compressed(algorithm, &vec![0; 64 << 20]);
            let mut input = input(algorithm);
            input.feed(&[header(bomb.len(), 0, 100_000), bomb.clone()].concat());
            assert_eq!(advance(&mut input, usize::MAX), Err(InputError::Corrupt));
            assert!(input.buffer_capacity() <= 2 * STEP_BYTES, "{algorithm:?}");
            let mut input = self::input(algorithm);
            input.feed(&[header(bomb.len(), 0, FRAGMENT_BYTES_MAX), bomb].concat());
            assert_eq!(advance(&mut input, 1 << 20), Err(InputError::TooLong));
            assert_eq!(input.buffer_capacity(), 0, "{algorithm:?}");
        }
    }

    #[test]
    fn the_sequence_is_that_of_compressed_packets() {
        let stored = |sequence, payload: &[u8]| {
            let inside = packet(payload);
            [header(inside.len(), sequence, 0), inside].concat()
        };
        let mut input = input(Algorithm::Zlib);
        input.feed(&stored(1, b"x"));
        assert_eq!(input.advance(100), Err(InputError::OutOfOrder));
        let mut input = self::input(Algorithm::Zlib);
        input.expect_sequence(7);
        input.feed(&stored(7, b"x"));
        assert_eq!(input.advance(100), Ok(true), "the number inside is 0");
        assert_eq!(input.reply_sequence(), 8);
        // Two commands in one packet, and an empty one.
        let mut input = self::input(Algorithm::Zlib);
        let both = [packet(b"one"), packet(b"two")].concat();
        input.feed(&[header(0, 0, 0), header(both.len(), 1, 0), both].concat());
        assert_eq!((input.advance(100), input.reply_sequence()), (Ok(true), 2));
        input.release();
        input.expect_command();
        assert_eq!((input.advance(100), input.reply_sequence()), (Ok(true), 1));
        assert_eq!(input.payload(), b"two");
        // Two packets of one exchange in one: the answer follows that.
        let mut input = self::input(Algorithm::Zlib);
        input.expect_sequence(2);
        let both = [packet(b"piece"), packet(b"")].concat();
        input.feed(&[header(both.len(), 2, 0), both].concat());
        for _ in 0..2 {
            assert_eq!((input.advance(100), input.reply_sequence()), (Ok(true), 3));
            input.release();
            input.expect_sequence(3);
        }
        // What is too long inside is too long.
        let mut input = self::input(Algorithm::Zlib);
        input.feed(&stored(0, &[1; 200]));
        assert_eq!(input.advance(100), Err(InputError::TooLong));
    }

    #[test]
    fn a_header_takes_no_large_buffer() {
        let mut input = input(Algorithm::Zlib);
        input.feed(&header(FRAGMENT_BYTES_MAX, 0, FRAGMENT_BYTES_MAX));
        assert_eq!(input.advance(usize::MAX), Ok(false));
        assert!(input.lend().capacity() <= 2 * BUFFER_BYTES_KEPT);
    }
}
