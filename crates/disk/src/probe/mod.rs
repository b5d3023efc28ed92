//! Whether the pages of a file are ever torn: facts, and the verdict that follows from them.
//!
//! A page is torn when a crash leaves a part of its old bytes and a part of its new ones. Some storage cannot
//! do that: a device that promises to take writes of a page whole (`Hardware`), or a file system that writes
//! the page elsewhere and then changes one pointer in its journal (`FileSystem`, XFS since Linux 6.16).
//! There, a page is written once; everywhere else the doublewrite protects it.
//!
//! Two halves, kept apart so that the rule can be tested with facts of machines nobody has access to:
//! - [`facts`] gathers what the kernel says about one file: `statx` of the very file, its mount, and the
//!   block device under it with everything that device is made of (`sysfs.rs`).
//! - [`verdict`] is a pure function of those facts and the page size (`rule.rs`).
//!
//! Nothing here is stored (but the devices below a mount, for a second): a file may be restored by a copy, a
//! volume moved, a kernel updated. The verdict belongs to an open file, and even then the kernel has the last
//! word: page writes carry `RWF_ATOMIC`, and one that it cannot keep whole is refused
//! ([`Error::is_atomic_refusal`](crate::Error::is_atomic_refusal)), not torn.

mod gather;
mod measure;
mod mounts;
mod rule;
mod statx;

pub(crate) use statx::block_bytes;
mod sysfs;

pub use gather::facts;
pub(crate) use gather::facts_of;
pub use measure::{Latency, Measured, measure};
pub use rule::verdict;

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// By whom a page is written whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Atomic {
    /// By the device itself.
    #[serde(rename = "atomic-hw")]
    Hardware,
    /// By the file system, which remaps blocks in its journal: safe, but about as dear as a doublewrite;
    /// measure.
    #[serde(rename = "atomic-fs")]
    FileSystem,
    /// By nobody: the page needs the doublewrite.
    #[serde(rename = "none")]
    None,
}

impl fmt::Display for Atomic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Atomic::Hardware => "atomic-hw",
            Atomic::FileSystem => "atomic-fs",
            Atomic::None => "none",
        })
    }
}

/// What follows from the facts for pages of one size.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// By whom pages are written whole.
    pub atomic: Atomic,
    /// Whether writes carry `RWF_ATOMIC` ([`IoKind::Write`](crate::IoKind) with `atomic: true`), so that the
    /// kernel refuses what it cannot keep whole. False where nobody writes pages whole, and where a page is
    /// no larger than the unit that an NVMe device never tears although the kernel or the file system does
    /// not know the flag: there a plain write is whole, provided that each page is written by a write of its
    /// own.
    pub flagged: bool,
    /// Bytes of the longest write that is kept whole: a power of two, a page or more (the write has to begin
    /// at a multiple of its own length); 0 where nobody writes pages whole.
    pub longest: u64,
    /// A sentence with the facts it rests on.
    pub reason: String,
}

impl Verdict {
    /// Pages are not written whole, for this reason.
    pub fn none(reason: impl Into<String>) -> Verdict {
        Verdict { atomic: Atomic::None, flagged: false, longest: 0, reason: reason.into() }
    }
}

/// What the kernel says about one file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// The file, or the directory for which a file without a name was asked.
    pub path: PathBuf,
    /// Release of the running kernel (`uname -r`).
    pub kernel: String,
    /// Type of the file system as in /proc/self/mountinfo (`xfs`); `unknown` when the mount is not visible
    /// from here.
    pub file_system: String,
    /// Where it is mounted.
    pub mount_point: Option<PathBuf>,
    /// What is mounted: a device node, or a name that means something to the file system only.
    pub mount_source: Option<String>,
    /// Bytes of a file system block (`statfs`); 0 when it does not tell.
    pub block_bytes: u32,
    /// Whether the file system shares extents between files, which XFS needs for atomic writes of its own.
    /// `None` where that cannot be asked.
    pub reflink: Option<bool>,
    /// Whether the page cache can be bypassed.
    pub direct_io: DirectIo,
    /// Atomic writes to this file; `None` when the kernel or the file system does not answer
    /// (`STATX_WRITE_ATOMIC`).
    pub atomic: Option<AtomicFacts>,
    /// The mounted block device; `None` for file systems without one (tmpfs, NFS) and where sysfs does not
    /// show it.
    pub device: Option<Device>,
}

/// Direct I/O of a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DirectIo {
    /// Allowed, with memory and offsets at multiples of this number of bytes (0: the kernel does not tell,
    /// `STATX_DIOALIGN`).
    Aligned {
        /// Memory.
        memory: u32,
        /// Offset and length.
        offset: u32,
    },
    /// Not allowed, or not used for this file.
    Refused(String),
}

/// Atomic writes to a file (`statx`, Linux 6.11). All in bytes but `segments_max`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtomicFacts {
    /// Smallest length.
    pub unit_min: u32,
    /// Greatest length; 0: none at all.
    pub unit_max: u32,
    /// Greatest length done without the file system's own means; 0 from ext4, from kernels before 6.16, and
    /// from XFS on a device that has no atomic writes.
    pub unit_max_opt: u32,
    /// Pieces of memory one write may come from.
    pub segments_max: u32,
}

/// A block device and what it is made of.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Major and minor number, as in `/sys/dev/block`.
    pub number: String,
    /// The kernel's name (`nvme0n1p1`).
    pub name: String,
    /// What it is.
    pub kind: DeviceKind,
    /// Model of a disk, name of a device-mapper volume, level of an array, file of a loop device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Where a partition begins on its disk, in bytes; 0 for anything else.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub start: u64,
    /// Bytes of a logical block, the smallest unit of a transfer.
    pub logical_block: u32,
    /// Bytes of a physical block. Linux takes care that an NVMe device never tears one (it is limited to the
    /// device's atomic write unit at power fail).
    pub physical_block: u32,
    /// Whether it turns.
    pub rotational: bool,
    /// `write back` (a flush is needed) or `write through`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<String>,
    /// Limits of atomic writes; `None` when the kernel does not report them (before Linux 6.11).
    pub atomic: Option<QueueLimits>,
    /// The disk of a partition, the members of an array or volume.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<Device>,
    /// What the file of a loop device lies on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backing: Option<Box<Backing>>,
}

/// `queue/atomic_write_*` of a block device, in bytes; all 0 when it has no atomic writes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueLimits {
    /// Smallest length.
    pub unit_min: u64,
    /// Greatest length.
    pub unit_max: u64,
    /// Greatest length of several merged.
    pub max: u64,
    /// Multiples of this are never crossed; 0: no such boundary.
    pub boundary: u64,
}

/// Kind of a block device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// A whole disk, real or virtual.
    Disk,
    /// A part of a disk.
    Partition,
    /// A file that is used as a disk.
    Loop,
    /// Device-mapper: LVM, LUKS, multipath.
    DeviceMapper,
    /// A Linux software RAID.
    MdRaid,
}

/// Where the file of a loop device is.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backing {
    /// The file.
    pub path: PathBuf,
    /// Its file system.
    pub file_system: String,
    /// Whether the loop device bypasses the page cache of the file (`losetup --direct-io=on`).
    pub direct: bool,
    /// The device under that file system.
    pub device: Option<Device>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
