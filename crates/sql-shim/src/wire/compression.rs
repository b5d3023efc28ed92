//! The compressed protocol: packets of protocol 41 inside compressed ones.
//!
//! ```text
//!   length (3)  sequence (1)  length uncompressed (3, 0: stored as it is)  bytes
//! ```
//!
//! The packets inside are one stream, cut anywhere. What is written is cut into pieces of [`PIECE_BYTES`], each
//! a compressed packet of its own, so that the thread's other connections wait for one piece at most.
//! [`super::packed_input`] reads them.
//!
//! A compressor has state for one piece only, so a thread has one for all its connections, and an idle
//! connection none.

use std::cell::RefCell;

use flate2::{Compress, Compression, FlushCompress, Status};
use zstd::bulk::Compressor;

/// Bytes of a compressed packet's header.
pub const HEADER_BYTES: usize = 7;
/// Bytes compressed at once.
pub const PIECE_BYTES: usize = 64 * 1024;
/// Less than this is stored: the header of a stream alone would eat the gain.
const COMPRESSED_BYTES_MIN: usize = 50;
const ZLIB_LEVEL: u8 = 6;
/// Levels of zstd that a client may ask for.
pub const ZSTD_LEVELS: std::ops::RangeInclusive<u8> = 1..=22;

/// How a connection is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// CLIENT_COMPRESS.
    Zlib,
    /// CLIENT_ZSTD_COMPRESSION_ALGORITHM, with the client's level for what the server sends.
    Zstd {
        /// One of [`ZSTD_LEVELS`].
        level: u8,
    },
}

impl Algorithm {
    /// As `protocol_compression_algorithms` and the status variable `Compression_algorithm` name it.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Zlib => "zlib",
            Algorithm::Zstd { .. } => "zstd",
        }
    }

    /// `Compression_level`.
    pub fn level(self) -> u8 {
        match self {
            Algorithm::Zlib => ZLIB_LEVEL,
            Algorithm::Zstd { level } => level,
        }
    }
}

#[derive(Default)]
struct Compressors {
    zlib: Option<Compress>,
    zstd: Option<Compressor<'static>>,
    /// Where a piece is compressed to.
    scratch: Vec<u8>,
}

thread_local! {
    static COMPRESSORS: RefCell<Compressors> = RefCell::default();
}

impl Compressors {
    /// The piece compressed, unless that does not make it smaller.
    fn compress(&mut self, algorithm: Algorithm, piece: &[u8]) -> Option<&[u8]> {
        if piece.len() < COMPRESSED_BYTES_MIN {
            return None;
        }
        // What needs as much room as the piece itself fails, and is stored.
        self.scratch.resize(piece.len() - 1, 0);
        let length = match algorithm {
            Algorithm::Zlib => {
                let level = Compression::new(u32::from(ZLIB_LEVEL));
                let zlib = self.zlib.get_or_insert_with(|| Compress::new(level, true));
                zlib.reset();
                match zlib.compress(piece, &mut self.scratch, FlushCompress::Finish) {
                    Ok(Status::StreamEnd) => zlib.total_out() as usize,
                    _ => return None,
                }
            }
            Algorithm::Zstd { level } => {
                if self.zstd.is_none() {
                    self.zstd = Some(Compressor::new(i32::from(level)).ok()?);
                }
                let zstd = self.zstd.as_mut()?;
                zstd.set_compression_level(i32::from(level)).ok()?;
                zstd.compress_to_buffer(piece, self.scratch.as_mut_slice()).ok()?
            }
        };
        self.scratch.get(..length)
    }
}

/// Appends `piece`, of at most [`PIECE_BYTES`], as a compressed packet.
pub fn put_packed(out: &mut Vec<u8>, algorithm: Algorithm, sequence: u8, piece: &[u8]) {
    COMPRESSORS.with_borrow_mut(|compressors| match compressors.compress(algorithm, piece) {
        Some(compressed) => put(out, sequence, piece.len(), compressed),
        None => put(out, sequence, 0, piece),
    });
}

fn put(out: &mut Vec<u8>, sequence: u8, unpacked: usize, bytes: &[u8]) {
    let [a, b, c, _] = (bytes.len() as u32).to_le_bytes();
    let [d, e, f, _] = (unpacked as u32).to_le_bytes();
    out.extend_from_slice(&[a, b, c, sequence, d, e, f]);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_short_or_would_not_shrink_is_stored() {
        let noise: Vec<u8> = (0..5000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for algorithm in [Algorithm::Zlib, Algorithm::Zstd { level: 3 }, Algorithm::Zstd { level: 22 }] {
            let packed = |piece: &[u8]| {
                let mut out = Vec::new();
                put_packed(&mut out, algorithm, 9, piece);
                out
            };
            assert_eq!(packed(&[7; 49])[..8], [49, 0, 0, 9, 0, 0, 0, 7]);
            let short = packed(&[7; 50]);
            assert_eq!(short[3..7], [9, 50, 0, 0]);
            assert!(short.len() < 50, "{algorithm:?}");
            assert_eq!(packed(&noise)[..7], [0x88, 0x13, 0, 9, 0, 0, 0], "{algorithm:?}");
            assert!(packed(&[0; PIECE_BYTES]).len() < 500, "{algorithm:?}");
        }
    }
}
