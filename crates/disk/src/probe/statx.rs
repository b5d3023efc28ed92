//! `statx` and `statfs` of one file.

use crate::probe::{AtomicFacts, DirectIo};
use std::os::fd::{AsRawFd, BorrowedFd};

/// What `statx` told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    /// Major and minor number of the device the file is on; a made-up one for btrfs, overlay, NFS.
    pub(crate) device: (u32, u32),
    /// Number of the mount (`STATX_MNT_ID`, Linux 5.8).
    pub(crate) mount: Option<u64>,
    /// Number of the file system: those of mounts and devices are given out again.
    pub(crate) file_system: u64,
    /// Alignment of memory and of offsets for direct I/O (`STATX_DIOALIGN`, Linux 6.1); (0, 0) is a refusal.
    pub(crate) direct: Option<(u32, u32)>,
    /// Atomic writes (`STATX_WRITE_ATOMIC`, Linux 6.11).
    pub(crate) atomic: Option<AtomicFacts>,
}

/// The number that a file system has of itself; 0 when it does not tell.
pub(crate) fn file_system_number(file: BorrowedFd<'_>) -> u64 {
    // SAFETY: statvfs is plain integers, for which zero is a value.
    let mut told: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: an open descriptor and a statvfs to fill.
    let result = unsafe { libc::fstatvfs(file.as_raw_fd(), &raw mut told) };
    if result == 0 { told.f_fsid } else { 0 }
}

/// Asks about an open file.
pub(crate) fn ask(file: BorrowedFd<'_>) -> std::io::Result<Told> {
    // SAFETY: statx is plain integers, for which zero is a value.
    let mut told: libc::statx = unsafe { std::mem::zeroed() };
    let wanted = libc::STATX_MNT_ID | libc::STATX_DIOALIGN | libc::STATX_WRITE_ATOMIC;
    // SAFETY: an empty C string, an open descriptor, and a statx to fill.
    let result =
        unsafe { libc::statx(file.as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH, wanted, &raw mut told) };
    if result != 0 {
        return Err(std::io::Error::last_os_error());
    }
    let knows = |field: libc::c_uint| told.stx_mask & field != 0;
    Ok(Told {
        file_system: file_system_number(file),
        device: (told.stx_dev_major, told.stx_dev_minor),
        mount: knows(libc::STATX_MNT_ID).then_some(told.stx_mnt_id),
        direct: knows(libc::STATX_DIOALIGN).then_some((told.stx_dio_mem_align, told.stx_dio_offset_align)),
        // A kernel that does not know `unit_max_opt` leaves it 0, as the structure was when it was handed
        // over.
        atomic: knows(libc::STATX_WRITE_ATOMIC).then_some(AtomicFacts {
            unit_min: told.stx_atomic_write_unit_min,
            unit_max: told.stx_atomic_write_unit_max,
            unit_max_opt: told.stx_atomic_write_unit_max_opt,
            segments_max: told.stx_atomic_write_segments_max,
        }),
    })
}

/// Bytes of a file system block; 0 when it does not tell.
pub(crate) fn block_bytes(file: BorrowedFd<'_>) -> u32 {
    // SAFETY: statfs is plain integers, for which zero is a value.
    let mut told: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: an open descriptor and a statfs to fill.
    let result = unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut told) };
    if result == 0 { u32::try_from(told.f_bsize).unwrap_or(0) } else { 0 }
}

/// `struct xfs_fsop_geom_v1` (fs/xfs/libxfs/xfs_fs.h) as far as the flags: eight numbers of 4 bytes, four of
/// 8, the UUID, three more of 4.
#[repr(C)]
struct XfsGeometry {
    numbers: [u32; 8],
    sizes: [u64; 4],
    uuid: [u8; 16],
    stripe_and_version: [u32; 3],
    flags: u32,
    rest: [u32; 3],
}

/// `XFS_IOC_FSGEOMETRY_V1`: `_IOR('X', 100, struct xfs_fsop_geom_v1)`.
const XFS_GEOMETRY: libc::c_ulong =
    2 << 30 | (size_of::<XfsGeometry>() as libc::c_ulong) << 16 | (b'X' as libc::c_ulong) << 8 | 100;
/// `XFS_FSOP_GEOM_FLAGS_REFLINK`.
const XFS_REFLINK: u32 = 1 << 20;

/// Whether an XFS shares extents between files.
pub(crate) fn xfs_reflink(file: BorrowedFd<'_>) -> Option<bool> {
    // SAFETY: plain integers, for which zero is a value.
    let mut told: XfsGeometry = unsafe { std::mem::zeroed() };
    // SAFETY: an open descriptor, and a structure of the size that is part of the request's number.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), XFS_GEOMETRY as _, &raw mut told) };
    (result == 0).then_some(told.flags & XFS_REFLINK != 0)
}

/// What an answer about alignment means.
pub(crate) fn direct_io(told: &Told, opened: Result<(), &std::io::Error>) -> DirectIo {
    match (opened, told.direct) {
        (Err(error), _) => DirectIo::Refused(format!("opening with O_DIRECT fails: {error}")),
        (Ok(()), Some((_, 0))) => DirectIo::Refused("the file system says that it has none".into()),
        (Ok(()), Some((memory, offset))) => DirectIo::Aligned { memory, offset },
        (Ok(()), None) => DirectIo::Aligned { memory: 0, offset: 0 },
    }
}
