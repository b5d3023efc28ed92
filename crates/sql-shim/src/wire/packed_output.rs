//! Makes compressed packets of what is sent.
//!
//! Each holds whole packets, of [`PIECE_BYTES`] together or a little more, or a single long one; only one of
//! the very longest is cut, once. Stream parsers would take any cut, but clients are known that look for the
//! rest of a packet in the next compressed one and not beyond, and never for the rest of a header.
//!
//! A long one is compressed in steps, between which the thread serves others: as one stream of zlib, or
//! as frames of zstd behind each other. Frames of this length also keep the tables of the high levels small:
//! for 16 MiB at once those would take hundreds of megabytes.

use std::cell::{Cell, RefCell};

use flate2::{Compress, Compression, FlushCompress, Status};
use zstd::bulk::Compressor;
use zstd::zstd_safe::compress_bound;

use super::compression::{Algorithm, HEADER_BYTES};
use super::input::FRAGMENT_BYTES_MAX;

/// Bytes compressed in one step.
pub(super) const PIECE_BYTES: usize = 64 * 1024;
/// The same at high levels of zstd, which take as long for it; the client chooses the level.
const PIECE_BYTES_HIGH: usize = 8 * 1024;
/// High levels begin here.
const LEVEL_HIGH: u8 = 10;
/// What is written before more is compressed: a long reply is not in memory a second time.
const PART_BYTES: usize = 1 << 20;
/// Less than this is stored: the header of a stream alone would eat the gain.
const COMPRESSED_BYTES_MIN: usize = 50;
const PACKET_HEADER_BYTES: usize = 4;

thread_local! {
    static SPARE_ZLIB: Cell<Option<Compress>> = const { Cell::new(None) };
    static ZSTD: RefCell<(Option<Compressor<'static>>, Vec<u8>)> = const { RefCell::new((None, Vec::new())) };
}

/// A compressed packet in the making.
#[derive(Debug)]
struct Open {
    /// Where it begins in what is packed.
    begin: usize,
    /// What it holds of the output.
    start: usize,
    end: usize,
    zlib: Option<Compress>,
    /// The compressor failed: the packet is stored.
    failed: bool,
}

/// The compressed side of a connection's output.
#[derive(Debug)]
pub(super) struct PackedOutput {
    algorithm: Algorithm,
    /// Of the next compressed packet.
    pub(super) sequence: u8,
    /// What has been made.
    pub(super) packed: Vec<u8>,
    /// Bytes of the output that have been compressed.
    done: usize,
    /// Bytes of a packet that was cut.
    cut: usize,
    open: Option<Open>,
}

impl PackedOutput {
    pub(super) fn new(algorithm: Algorithm, sequence: u8) -> Self {
        Self { algorithm, sequence, packed: Vec::new(), done: 0, cut: 0, open: None }
    }

    /// Compresses a step of `bytes`, which are whole packets and grow at their end alone; whether there is
    /// more.
    pub(super) fn step(&mut self, bytes: &[u8]) -> bool {
        if self.done < bytes.len() {
            let mut open = self.open.take().unwrap_or_else(|| self.begin(bytes));
            self.compress(&mut open, bytes);
            if self.done < open.end {
                self.open = Some(open);
            } else {
                self.finish(open, bytes);
            }
        }
        if self.done < bytes.len() {
            return true;
        }
        self.done = 0;
        false
    }

    /// Whether a good part of what there is to send is ready, and can go before the rest is compressed.
    pub(super) fn has_part(&self) -> bool {
        self.open.is_none() && self.packed.len() >= PART_BYTES
    }

    fn begin(&mut self, bytes: &[u8]) -> Open {
        let (begin, start) = (self.packed.len(), self.done);
        let end = self.end_of_packets(bytes);
        self.packed.extend_from_slice(&[0; HEADER_BYTES]);
        let is_short = end - start < COMPRESSED_BYTES_MIN;
        let zlib = (self.algorithm == Algorithm::Zlib && !is_short).then(|| {
            let level = Compression::new(u32::from(self.algorithm.level()));
            let mut zlib = SPARE_ZLIB.take().unwrap_or_else(|| Compress::new(level, true));
            zlib.reset();
            zlib
        });
        Open { begin, start, end, zlib, failed: false }
    }

    /// Where the packets end that go into the next compressed one.
    fn end_of_packets(&mut self, bytes: &[u8]) -> usize {
        let mut end = self.done + std::mem::take(&mut self.cut);
        while end - self.done < PIECE_BYTES
            && let Some([a, b, c]) = bytes.get(end..).and_then(|rest| rest.first_chunk::<3>())
        {
            let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize + PACKET_HEADER_BYTES;
            let room = FRAGMENT_BYTES_MAX - (end - self.done);
            if length > room && end > self.done {
                break;
            }
            self.cut = length.saturating_sub(room);
            end += length.min(room);
        }
        end.min(bytes.len())
    }

    fn compress(&mut self, open: &mut Open, bytes: &[u8]) {
        let end = open.end.min(self.done + piece_bytes(self.algorithm));
        let piece = bytes.get(self.done..end).unwrap_or_default();
        self.done = end;
        if open.failed || open.end - open.start < COMPRESSED_BYTES_MIN {
            return;
        }
        let made = match (&mut open.zlib, self.algorithm) {
            (Some(zlib), _) => {
                let flush = if end < open.end { FlushCompress::None } else { FlushCompress::Finish };
                deflate(zlib, piece, flush, &mut self.packed)
            }
            (None, Algorithm::Zstd { level }) => put_frame(level, piece, &mut self.packed),
            (None, Algorithm::Zlib) => Some(()),
        };
        if made.is_none() {
            open.failed = true;
            self.packed.truncate(open.begin + HEADER_BYTES);
        }
    }

    /// Fills in the header; what did not shrink is stored.
    fn finish(&mut self, open: Open, bytes: &[u8]) {
        let begin = open.begin + HEADER_BYTES;
        let plain = bytes.get(open.start..open.end).unwrap_or_default();
        let compressed = self.packed.len() - begin;
        let stays = !open.failed && compressed > 0 && compressed < plain.len();
        if !stays {
            self.packed.truncate(begin);
            self.packed.extend_from_slice(plain);
        }
        let [a, b, c, _] = ((self.packed.len() - begin) as u32).to_le_bytes();
        let [d, e, f, _] = (if stays { plain.len() as u32 } else { 0 }).to_le_bytes();
        if let Some(header) = self.packed.get_mut(open.begin..begin) {
            header.copy_from_slice(&[a, b, c, self.sequence, d, e, f]);
        }
        self.sequence = self.sequence.wrapping_add(1);
        SPARE_ZLIB.set(open.zlib.or_else(|| SPARE_ZLIB.take()));
    }
}

fn piece_bytes(algorithm: Algorithm) -> usize {
    match algorithm {
        Algorithm::Zstd { level: LEVEL_HIGH.. } => PIECE_BYTES_HIGH,
        _ => PIECE_BYTES,
    }
}

/// `None` when it cannot be compressed.
fn deflate(zlib: &mut Compress, piece: &[u8], flush: FlushCompress, out: &mut Vec<u8>) -> Option<()> {
    let begin = zlib.total_in();
    loop {
        let read = (zlib.total_in() - begin) as usize;
        out.reserve(PIECE_BYTES / 2);
        let status = zlib.compress_vec(piece.get(read..).unwrap_or_default(), out, flush);
        let read = (zlib.total_in() - begin) as usize;
        let wants_more = flush == FlushCompress::Finish || read < piece.len();
        match status {
            Ok(Status::Ok | Status::BufError) if wants_more => {}
            Ok(_) => return Some(()),
            Err(_) => return None,
        }
    }
}

/// Appends a frame of zstd. `None` when there is no memory for it.
fn put_frame(level: u8, piece: &[u8], out: &mut Vec<u8>) -> Option<()> {
    ZSTD.with_borrow_mut(|(zstd, scratch)| {
        scratch.resize(compress_bound(piece.len()), 0);
        let level = i32::from(level);
        if zstd.is_none() {
            *zstd = Compressor::new(level).ok();
        }
        let zstd = zstd.as_mut()?;
        zstd.set_compression_level(level).ok()?;
        let length = zstd.compress_to_buffer(piece, scratch.as_mut_slice()).ok()?;
        out.extend_from_slice(scratch.get(..length)?);
        Some(())
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const ALL: [Algorithm; 3] =
        [Algorithm::Zlib, Algorithm::Zstd { level: 3 }, Algorithm::Zstd { level: 22 }];

    fn packet(payload: &[u8]) -> Vec<u8> {
        let mut bytes = (payload.len() as u32).to_le_bytes()[..3].to_vec();
        bytes.push(0);
        bytes.extend_from_slice(payload);
        bytes
    }

    fn packed(algorithm: Algorithm, bytes: &[u8]) -> (Vec<u8>, usize) {
        let (mut output, mut steps) = (PackedOutput::new(algorithm, 9), 1);
        while output.step(bytes) {
            steps += 1;
        }
        (output.packed, steps)
    }

    /// Lengths of what is in each compressed packet, and whether it is stored.
    fn contents(mut packed: &[u8]) -> Vec<(usize, bool)> {
        let mut found = Vec::new();
        while let Some(([a, b, c, _, d, e, f], rest)) = packed.split_first_chunk::<HEADER_BYTES>() {
            let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
            let plain = u32::from_le_bytes([*d, *e, *f, 0]) as usize;
            found.push(if plain == 0 { (length, true) } else { (plain, false) });
            packed = &rest[length..];
        }
        found
    }

    #[test]
    fn a_long_reply_goes_in_parts() {
        let all = packet(&noise(1 << 20)).repeat(4);
        let mut output = PackedOutput::new(Algorithm::Zlib, 0);
        let (mut parts, mut most) = (0, 0);
        while output.step(&all) {
            if output.has_part() {
                (parts, most) = (parts + 1, most.max(output.packed.len()));
                output.packed.clear();
            }
        }
        assert!(parts == 3 && most < 2 << 20, "{parts} of at most {most}");
    }

    fn noise(bytes: usize) -> Vec<u8> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        (0..bytes).map(|_| next()).collect()
    }

    #[test]
    fn what_is_short_or_would_not_shrink_is_stored() {
        for algorithm in ALL {
            assert_eq!(packed(algorithm, &packet(&[7; 45])).0[..8], [49, 0, 0, 9, 0, 0, 0, 45]);
            let (short, _) = packed(algorithm, &packet(&[7; 46]));
            assert_eq!(short[3..7], [9, 50, 0, 0]);
            assert!(short.len() < 50, "{algorithm:?}");
            for length in [200, 5000, 300_000] {
                let (stored, _) = packed(algorithm, &packet(&noise(length)));
                assert_eq!(contents(&stored), [(length + 4, true)], "{algorithm:?}");
            }
        }
    }

    #[test]
    fn steps_of_high_levels_are_short() {
        let long = packet(&vec![7; 300_000]);
        let steps = |level| packed(Algorithm::Zstd { level }, &long).1;
        assert_eq!((steps(9), steps(10), steps(22)), (5, 37, 37));
    }

    #[test]
    fn what_cannot_be_compressed_is_stored() {
        let long = packet(&vec![7; 300_000]);
        let mut output = PackedOutput::new(Algorithm::Zstd { level: 3 }, 9);
        assert!(output.step(&long));
        output.open.as_mut().unwrap().failed = true;
        while output.step(&long) {
            assert!(output.packed.len() < PIECE_BYTES, "nothing is made any more");
        }
        assert_eq!(contents(&output.packed), [(long.len(), true)]);
        assert_eq!(output.packed[HEADER_BYTES..], long);
    }

    #[test]
    fn packets_are_not_cut_unless_they_must_be() {
        for algorithm in [Algorithm::Zlib, Algorithm::Zstd { level: 1 }] {
            let small = packet(&[1; 30_000]);
            let long = packet(&vec![2; 1 << 20]);
            let all = [small.repeat(4), long.clone(), small.clone()].concat();
            let (made, steps) = packed(algorithm, &all);
            let expected =
                [(3 * small.len(), false), (small.len() + long.len(), false), (small.len(), false)];
            assert_eq!(contents(&made), expected);
            assert!(steps > all.len() / PIECE_BYTES, "{steps}: in steps");
            // The longest there is does not go into one: its last bytes are with what follows it.
            let longest = [packet(&vec![3; FRAGMENT_BYTES_MAX]), small.clone()].concat();
            let expected = [(FRAGMENT_BYTES_MAX, false), (4 + small.len(), false)];
            assert_eq!(contents(&packed(algorithm, &longest).0), expected);
        }
    }
}
