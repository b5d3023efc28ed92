//! The two checkpoint blocks at the front of the log: where recovery starts, and which of the two counts.
//!
//! A checkpoint block, little-endian, the rest of its 4096 bytes zero:
//!
//! ```text
//!  0 magic "UNTORNRL"   8 crc32c of 12..96   12 version u32    16 sequence u64   24 epoch u32    28 block size u32
//! 32 area u64          40 origin u64         48 checkpoint u64 56 scan start u64 64 flushed u64  72 epoch floor u32
//! 76 flags u32 (1: closed cleanly)                80 reach u64         88 owner u64
//! ```
//!
//! `reach` is a promise: while this block is the newest, the log ends at most `reach` bytes past `flushed`.
//! So a recovery that finds both blocks whole need not look further for what the log may have lost
//! ([`crate::scan`]). 0 promises nothing; programs before this field wrote 0. [`crate::high_water_mark`]
//! keeps the promise.
//!
//! `owner` is a number of the data directory that the log belongs to: the log of another one must not be
//! applied to this one's pages. 0 in logs written by programs before this field.
//!
//! The blocks are written alternately, each with one more in `sequence`; the valid one with the higher
//! sequence counts. What the older one would need is overwritten only after the newer one is durable. All
//! fields lie in the first 512 bytes, so a torn block is simply an invalid one.

use crate::group::{u32_at, u64_at};
use crate::layout::{AREA_MIN, CHECKPOINT_BLOCK, Layout};
use crate::{Error, Lsn, Result};
use disk::AlignedBuf;
use std::path::Path;

/// Version written, and the newest understood.
const VERSION: u32 = 1;
const MAGIC: &[u8; 8] = b"UNTORNRL";
const COVERED: usize = 96;
const CLOSED: u32 = 1;

/// The contents of a checkpoint block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CheckpointBlock {
    pub layout: Layout,
    /// One more with each block written.
    pub sequence: u64,
    /// Which opening of the log wrote it; no group has a higher epoch.
    pub epoch: u32,
    /// No group at or after `scan_start` has a lower epoch.
    pub epoch_floor: u32,
    /// Everything that ended before it is in the data files.
    pub checkpoint: Lsn,
    /// Start of the group recovery reads first; at most `checkpoint`.
    pub scan_start: Lsn,
    /// The log was durable up to here when the block was written.
    pub flushed: Lsn,
    /// While this block is the newest the log ends at most this far past `flushed`; 0 for no such
    /// promise.
    pub reach: u64,
    /// Nothing was appended after `checkpoint`.
    pub closed: bool,
    /// Number of the data directory it belongs to; 0 when it does not say.
    pub owner: u64,
}

impl CheckpointBlock {
    /// Byte in the file where this block belongs.
    pub(crate) fn place(&self) -> u64 {
        (self.sequence % 2) * CHECKPOINT_BLOCK as u64
    }

    pub(crate) fn encode(&self) -> AlignedBuf {
        let mut block = AlignedBuf::zeroed(CHECKPOINT_BLOCK);
        let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, MAGIC);
        put(12, &VERSION.to_le_bytes());
        put(16, &self.sequence.to_le_bytes());
        put(24, &self.epoch.to_le_bytes());
        put(28, &(self.layout.block as u32).to_le_bytes());
        put(32, &self.layout.area.to_le_bytes());
        put(40, &self.layout.origin.0.to_le_bytes());
        put(48, &self.checkpoint.0.to_le_bytes());
        put(56, &self.scan_start.0.to_le_bytes());
        put(64, &self.flushed.0.to_le_bytes());
        put(72, &self.epoch_floor.to_le_bytes());
        put(76, &(if self.closed { CLOSED } else { 0 }).to_le_bytes());
        put(80, &self.reach.to_le_bytes());
        put(88, &self.owner.to_le_bytes());
        let crc = crc32c::crc32c(&block[12..COVERED]);
        block[8..12].copy_from_slice(&crc.to_le_bytes());
        block
    }

    /// The block in `bytes`: `Ok(None)` when there is none or it is torn.
    fn decode(bytes: &[u8], path: &Path) -> Result<Option<CheckpointBlock>> {
        if bytes.len() < COVERED || &bytes[..8] != MAGIC {
            return Ok(None);
        }
        if crc32c::crc32c(&bytes[12..COVERED]) != u32_at(bytes, 8) {
            return Ok(None);
        }
        let version = u32_at(bytes, 12);
        if version != VERSION {
            let why = format!(
                "it has format version {version}, and this program knows version {VERSION}: start it with the version of the program that wrote it (or a later one), or shut down cleanly with that one before changing"
            );
            return Err(Error::Unusable { path: path.to_path_buf(), why });
        }
        let block = CheckpointBlock {
            layout: Layout {
                area: u64_at(bytes, 32),
                origin: Lsn(u64_at(bytes, 40)),
                block: u64::from(u32_at(bytes, 28)),
            },
            sequence: u64_at(bytes, 16),
            epoch: u32_at(bytes, 24),
            epoch_floor: u32_at(bytes, 72),
            checkpoint: Lsn(u64_at(bytes, 48)),
            scan_start: Lsn(u64_at(bytes, 56)),
            flushed: Lsn(u64_at(bytes, 64)),
            reach: u64_at(bytes, 80),
            closed: u32_at(bytes, 76) & CLOSED != 0,
            owner: u64_at(bytes, 88),
        };
        Ok(Some(block).filter(CheckpointBlock::is_sane))
    }

    /// Guards the arithmetic against a block that has a good checksum and nonsense inside.
    fn is_sane(&self) -> bool {
        let Layout { area, origin, block } = self.layout;
        matches!(block, 512 | 4096)
            && area.is_multiple_of(CHECKPOINT_BLOCK as u64)
            && (AREA_MIN..1 << 60).contains(&area)
            && origin <= self.scan_start
            && self.scan_start <= self.checkpoint
            && self.checkpoint <= self.flushed
            && self.flushed.0 < 1 << 62
            && self.scan_start.0.is_multiple_of(block)
            && self.flushed.since(self.scan_start) <= area
            && self.epoch_floor <= self.epoch
            && self.reach <= area
    }

    /// The block in force: `front` is the first 8192 bytes of the file. If the other one is not the one
    /// before, the newest may have been damaged: then this one's promise of a reach is not believed.
    pub(crate) fn newest(front: &[u8], path: &Path) -> Result<CheckpointBlock> {
        let (first, second) = front.split_at(front.len().min(CHECKPOINT_BLOCK));
        let first = CheckpointBlock::decode(first, path)?;
        let second = CheckpointBlock::decode(second, path)?;
        let follow = match (&first, &second) {
            (Some(first), Some(second)) => first.sequence.abs_diff(second.sequence) == 1,
            _ => false,
        };
        let newest = first.into_iter().chain(second).max_by_key(|block| block.sequence);
        let newest =
            newest.map(|block| CheckpointBlock { reach: if follow { block.reach } else { 0 }, ..block });
        newest.ok_or_else(|| {
            let why = "neither of its two checkpoint blocks is valid: it is damaged or not a redo log of this program; restore the data directory from a backup".to_owned();
            Error::Unusable { path: path.to_path_buf(), why }
        })
    }
}
