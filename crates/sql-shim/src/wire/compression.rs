//! The compressed protocol: packets of protocol 41 inside compressed ones.
//!
//! ```text
//!   length (3)  sequence (1)  length uncompressed (3, 0: stored as it is)  bytes
//! ```
//!
//! `packed_output` makes them, `packed_input` opens them. What compresses has state for one
//! compressed packet only, so an idle connection has none: a thread keeps one for all its connections.

/// Bytes of a compressed packet's header.
pub const HEADER_BYTES: usize = 7;
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
