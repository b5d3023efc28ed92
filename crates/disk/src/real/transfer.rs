//! Short transfers: how a read or write goes on after the kernel moved fewer bytes than were asked for.
//!
//! The rest is asked for from the last aligned boundary, because direct I/O would refuse an unaligned rest. A
//! transfer that makes no progress is an error: the end of the file for a read, a full file system for a
//! write. An all-or-nothing write is never continued.

use std::io;

/// `RWF_ATOMIC` of Linux 6.11 (include/uapi/linux/fs.h).
pub(crate) const RWF_ATOMIC: i32 = 0x40;

/// Which way a transfer goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// From the file.
    Read,
    /// To the file.
    Write,
}

/// How many bytes of a transfer of `total` bytes are done when `count` more were transferred after `done`.
pub(crate) fn advance(
    done: usize,
    count: usize,
    total: usize,
    alignment: usize,
    direction: Direction,
) -> io::Result<usize> {
    debug_assert!(done + count <= total, "the kernel transferred more than was asked for");
    if done + count >= total {
        return Ok(total);
    }
    let next = (done + count) / alignment * alignment;
    if next > done {
        return Ok(next);
    }
    Err(match direction {
        Direction::Read => io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("the file ends after {} of these bytes", done + count),
        ),
        Direction::Write => io::Error::new(
            io::ErrorKind::WriteZero,
            format!("the file system took only {} of these bytes", done + count),
        ),
    })
}

/// A device that took only a part of an all-or-nothing write has broken its word.
pub(crate) fn torn_atomic(count: usize, length: usize) -> io::Error {
    io::Error::other(format!("an atomic write was torn: {count} of {length} bytes were taken"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_transfer_goes_on_from_an_aligned_boundary() {
        let read = Direction::Read;
        assert_eq!(advance(0, 8192, 8192, 512, read).unwrap(), 8192);
        assert_eq!(advance(0, 700, 8192, 512, read).unwrap(), 512);
        assert_eq!(advance(512, 512, 8192, 512, read).unwrap(), 1024);
        assert_eq!(advance(0, 700, 8192, 1, read).unwrap(), 700);
        assert_eq!(advance(512, 100, 8192, 512, read).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(advance(0, 0, 8192, 1, Direction::Write).unwrap_err().kind(), io::ErrorKind::WriteZero);
    }
}
