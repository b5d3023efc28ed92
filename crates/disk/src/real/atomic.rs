//! Whether a file takes writes of a page all or nothing, and by whom.
//!
//! The kernel says per file which lengths it can write atomically (`statx` with `STATX_WRITE_ATOMIC`, Linux 6.11).
//! That a length is allowed does not say how: XFS may do it by remapping blocks in its journal, which costs about as
//! much as a doublewrite. Linux 6.15 and later report the length that the hardware does by itself
//! (`stx_atomic_write_unit_max_opt`; 0 from ext4, which only ever uses hardware, and from kernels that do not know the
//! field); where it is 0 the block device's own limit in sysfs decides.
//!
//! The answer holds for the file as it lies now: a copied or restored file may have extents that are not aligned.
//! Therefore it is asked for at every open, never stored.

use crate::AtomicWrites;
use std::os::fd::{AsRawFd, BorrowedFd};

/// What the kernel tells about a file.
#[derive(Clone, Copy, Default, Debug)]
struct Told {
    unit_min: u64,
    unit_max: u64,
    unit_max_opt: u64,
    /// `atomic_write_unit_max_bytes` of the block device; 0 when unknown.
    device_max: u64,
}

/// Asks the kernel about writes of `length` bytes to an open file.
pub(crate) fn probe(file: BorrowedFd<'_>, direct: bool, length: usize) -> AtomicWrites {
    if !direct {
        return AtomicWrites::No("atomic writes need direct I/O, which is not used for this file");
    }
    if !length.is_power_of_two() {
        return AtomicWrites::No("only powers of two can be written atomically");
    }
    match ask(file) {
        Some(told) => judge(told, length as u64),
        None => AtomicWrites::No(
            "this kernel or file system does not know atomic writes (Linux 6.11 or later does)",
        ),
    }
}

fn ask(file: BorrowedFd<'_>) -> Option<Told> {
    // SAFETY: statx is plain integers, for which zero is a value.
    let mut told: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: an empty C string, an open descriptor, and a statx to fill.
    let result = unsafe {
        libc::statx(
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_WRITE_ATOMIC,
            &raw mut told,
        )
    };
    if result != 0 || told.stx_mask & libc::STATX_WRITE_ATOMIC == 0 {
        return None;
    }
    Some(Told {
        unit_min: told.stx_atomic_write_unit_min.into(),
        unit_max: told.stx_atomic_write_unit_max.into(),
        unit_max_opt: told.stx_atomic_write_unit_max_opt.into(),
        device_max: device_limit(told.stx_dev_major, told.stx_dev_minor),
    })
}

/// The limit of the mounted block device (for a partition, of the disk it is on).
fn device_limit(major: u32, minor: u32) -> u64 {
    let device = format!("/sys/dev/block/{major}:{minor}");
    let limit = |place: &str| {
        let text = std::fs::read_to_string(format!("{device}/{place}/atomic_write_unit_max_bytes")).ok()?;
        text.trim().parse().ok()
    };
    limit("queue").or_else(|| limit("../queue")).unwrap_or(0)
}

fn judge(told: Told, length: u64) -> AtomicWrites {
    if told.unit_max == 0 {
        return AtomicWrites::No("the device and the file system offer no atomic writes");
    }
    if !(told.unit_min..=told.unit_max).contains(&length) {
        return AtomicWrites::No(
            "the device and the file system offer atomic writes, but not of this length",
        );
    }
    let by_hardware = told.unit_max_opt >= length || (told.unit_max_opt == 0 && told.device_max >= length);
    if by_hardware { AtomicWrites::Hardware } else { AtomicWrites::FileSystem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(unit_min: u64, unit_max: u64, unit_max_opt: u64, device_max: u64) -> AtomicWrites {
        judge(Told { unit_min, unit_max, unit_max_opt, device_max }, 16384)
    }

    #[test]
    fn hardware_is_told_from_file_system() {
        // XFS that remaps: allowed, but neither the optimal length nor the device reach a page.
        assert_eq!(answer(4096, 65536, 0, 0), AtomicWrites::FileSystem);
        assert_eq!(answer(4096, 65536, 4096, 65536), AtomicWrites::FileSystem);
        // XFS on a device that does it, new kernel; ext4 or an older kernel on such a device.
        assert_eq!(answer(4096, 65536, 16384, 16384), AtomicWrites::Hardware);
        assert_eq!(answer(4096, 16384, 0, 16384), AtomicWrites::Hardware);
    }

    #[test]
    fn a_length_outside_the_range_is_refused() {
        assert!(matches!(answer(4096, 8192, 0, 8192), AtomicWrites::No(_)));
        assert!(matches!(answer(32768, 65536, 0, 65536), AtomicWrites::No(_)));
        assert!(matches!(answer(0, 0, 0, 0), AtomicWrites::No(_)));
    }
}
