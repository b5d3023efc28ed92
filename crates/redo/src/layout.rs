//! Where the log lies in its file: two checkpoint blocks ([`crate::checkpoint_block`]), then the circle.
//!
//! ```text
//! byte    0   checkpoint block A (4096 bytes)
//!      4096   checkpoint block B
//!      8192   the circle: LSN `l` is at 8192 + (l - origin) mod area
//! ```

use crate::Lsn;
use crate::log::Options;

/// Bytes before the circle.
pub(crate) const FRONT: u64 = 8192;
/// Bytes of one checkpoint block; the circle is a multiple of it.
pub(crate) const CHECKPOINT_BLOCK: usize = 4096;
/// The smallest log that works at all; the setting's minimum is [`CAPACITY_MIN`].
pub(crate) const CAPACITY_FLOOR: u64 = 256 << 10;
/// The smallest circle.
pub(crate) const AREA_MIN: u64 = CAPACITY_FLOOR / 2;
/// A reach is at least this: otherwise small logs would write checkpoint blocks all the time.
const REACH_MIN: u64 = 4 << 20;
/// Minimum of `innodb_redo_log_capacity` in bytes, as in MySQL.
pub const CAPACITY_MIN: u64 = 8 << 20;

/// Geometry of the circle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    /// Bytes of the circle, a multiple of 4096.
    pub area: u64,
    /// The LSN at the circle's first byte in the first lap.
    pub origin: Lsn,
    /// Groups start at multiples of this (512 or 4096).
    pub block: u64,
}

impl Layout {
    /// The circle of a file of `capacity` bytes.
    pub(crate) fn area_of(capacity: u64) -> u64 {
        (capacity - FRONT) & !(CHECKPOINT_BLOCK as u64 - 1)
    }

    /// Byte in the file where `lsn` lies.
    pub(crate) fn physical(&self, lsn: Lsn) -> u64 {
        debug_assert!(lsn >= self.origin);
        FRONT + (lsn.0 - self.origin.0) % self.area
    }

    /// Bytes from `lsn` to the point where the file's end is reached and the circle goes on at its front.
    pub(crate) fn until_wrap(&self, lsn: Lsn) -> u64 {
        self.area - (lsn.0 - self.origin.0) % self.area
    }

    /// Bytes the file has when all of the circle exists.
    pub(crate) fn file_size(&self) -> u64 {
        FRONT + self.area
    }

    /// How far the log may end past the `flushed` of the newest checkpoint block; 0 for no such bound. A
    /// sixteenth of the circle is read quickly. It is more where single mini-transactions are large, because
    /// there must always be room for one of them; where that is half of the circle the bound is worth
    /// nothing. It is judged by the largest circle, and does not become less when this one grows. A reach of
    /// the whole circle binds nobody.
    pub(crate) fn reach(&self, options: &Options) -> u64 {
        let largest = Layout { area: self.area.max(options.area_max()), ..*self };
        let mini_transaction = (largest.usable() / 4).min(options.buffer_size as u64 / 2);
        let reach = (largest.area / 16).max(REACH_MIN).max(3 * mini_transaction);
        let reach = reach & !(CHECKPOINT_BLOCK as u64 - 1);
        if reach >= largest.area / 2 { 0 } else { reach.min(self.area) }
    }

    /// Bytes of the file of the smallest circle that has so much [`Layout::usable`], about.
    pub(crate) fn file_size_for(&self, usable: u64) -> u64 {
        FRONT + usable.saturating_add(4 * self.block) / 31 * 32
    }

    /// The next block boundary at or after `lsn`.
    pub(crate) fn align(&self, lsn: Lsn) -> Lsn {
        Lsn(lsn.0.next_multiple_of(self.block))
    }

    /// How far the log may grow beyond the start of what recovery needs. The rest absorbs what admissions do
    /// not count (the padding of the open group) and leaves the cleaner some room.
    pub(crate) fn usable(&self) -> u64 {
        self.area - self.area / 32 - 4 * self.block
    }

    /// A group is sealed before it grows beyond this (unless a single mini-transaction is larger).
    pub(crate) fn group_bytes(&self, buffer_size: usize) -> usize {
        let bytes = (buffer_size as u64 / 4).min(self.area / 16).min(1 << 20);
        (bytes & !(CHECKPOINT_BLOCK as u64 - 1)).max(CHECKPOINT_BLOCK as u64) as usize
    }

    /// The start of a group is remembered (as a possible start of recovery) at least this many bytes apart.
    pub(crate) fn start_spacing(&self) -> u64 {
        (self.area / 256).min(64 << 10)
    }
}
