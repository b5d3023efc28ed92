//! The rule: from facts to a verdict. No I/O.
//!
//! The order of the questions matters. `statx` says which lengths the kernel accepts with `RWF_ATOMIC`, but
//! not by whom: XFS reports a large `unit_max` on any device, because it can remap blocks in its journal. The
//! device did it only when `unit_max_opt` reaches the page, or, where that field is 0 (ext4, which uses
//! hardware alone; kernels before 6.16; and XFS on a device without atomic writes, the trap), when the limits
//! of the mounted block device reach it. A file system that merely passes the answer of another one on
//! (overlay) is not believed.
//!
//! Without the flag there is one case left: a page no larger than what an NVMe device never tears. Linux
//! limits `physical_block_size` of NVMe devices to their atomic write unit at power fail, "because file
//! systems assume that writing a physical block is atomic" (drivers/nvme/host/core.c). No other kind of disk
//! has such a promise behind the number: SCSI and virtio devices report what they are told to.

use crate::probe::{Atomic, AtomicFacts, Device, DeviceKind, DirectIo, Facts, QueueLimits, Verdict};

/// The smallest and the greatest page of an InnoDB tablespace.
const PAGE_SIZES: std::ops::RangeInclusive<u64> = 4096..=65536;

/// By whom pages of `page_bytes` bytes are written whole into the file these facts are about.
pub fn verdict(facts: &Facts, page_bytes: usize) -> Verdict {
    let page = page_bytes as u64;
    if !page.is_power_of_two() || !PAGE_SIZES.contains(&page) {
        return Verdict::none(format!("pages have 4, 8, 16, 32 or 64 KiB, not {page} bytes"));
    }
    if let DirectIo::Refused(why) = &facts.direct_io {
        return Verdict::none(format!("atomic writes need direct I/O, which this file does not have: {why}"));
    }
    if let Some(verdict) = by_flag(facts, page) {
        return verdict;
    }
    match sector(facts, page) {
        Ok(reason) => Verdict { atomic: Atomic::Hardware, flagged: false, longest: page, reason },
        Err(_) => Verdict::none(why_not(facts, page)),
    }
}

/// What follows from `STATX_WRITE_ATOMIC`, if it allows the length.
fn by_flag(facts: &Facts, page: u64) -> Option<Verdict> {
    let told = facts.atomic.filter(|told| allows(told, page))?;
    if passes_on(&facts.file_system) {
        return None;
    }
    let size = Size(page);
    let limits = facts.device.as_ref().and_then(|device| device.atomic).unwrap_or_default();
    let name = facts.device.as_ref().map_or("the device", |device| device.name.as_str());
    let (kind, optimal) = (&facts.file_system, u64::from(told.unit_max_opt));
    let (atomic, reason) = if optimal >= page {
        (
            Atomic::Hardware,
            format!("{kind} writes up to {} atomically by the device (unit_max_opt)", Size(optimal)),
        )
    } else if optimal == 0 && device_reaches(&limits, page) {
        let most = Size(limits.unit_max);
        (
            Atomic::Hardware,
            format!("{name} writes {size} atomically (its limit is {most}), and {kind} allows it"),
        )
    } else if kind == "ext4" {
        (Atomic::Hardware, format!("ext4 allows atomic writes of {size} only through the device"))
    } else {
        let limit = if optimal > 0 { optimal } else { limits.unit_max };
        let device =
            if limit == 0 { "has no atomic writes".into() } else { format!("reaches {} only", Size(limit)) };
        (Atomic::FileSystem, format!("{kind} writes {size} atomically by copy-on-write; {name} {device}"))
    };
    // By the device as far as the device goes; what is longer the file system would write by copy-on-write.
    let most = match atomic {
        Atomic::Hardware if optimal >= page => optimal,
        Atomic::Hardware if device_reaches(&limits, page) => limits.unit_max,
        _ => told.unit_max.into(),
    };
    let longest = 1 << most.min(told.unit_max.into()).max(page).ilog2();
    Some(Verdict { atomic, flagged: true, longest, reason })
}

fn allows(told: &AtomicFacts, page: u64) -> bool {
    told.segments_max > 0 && (u64::from(told.unit_min)..=u64::from(told.unit_max)).contains(&page)
}

fn device_reaches(limits: &QueueLimits, page: u64) -> bool {
    limits.unit_max > 0 && (limits.unit_min..=limits.unit_max).contains(&page)
}

/// File systems that answer for another one below, and do not pass the flag on to it.
fn passes_on(file_system: &str) -> bool {
    file_system == "overlay" || file_system.starts_with("fuse") || file_system == "ecryptfs"
}

/// Whether a page lies within what the disks never tear; the reason for or against.
fn sector(facts: &Facts, page: u64) -> Result<String, String> {
    let device = facts.device.as_ref().ok_or("no block device is known")?;
    // Others write elsewhere (btrfs), or in blocks of their own choosing.
    if !matches!(facts.file_system.as_str(), "xfs" | "ext4") {
        return Err(format!("{} is not known to write pages atomically", facts.file_system));
    }
    if u64::from(facts.block_bytes) < page {
        return Err(format!("file system blocks of {} bytes", facts.block_bytes));
    }
    disk_sector(device, page)?;
    Ok(format!(
        "a page of {} is one physical block of {}, which an NVMe device does not tear; written plainly, one page at a time",
        Size(page),
        device.name,
    ))
}

fn disk_sector(device: &Device, page: u64) -> Result<(), String> {
    let name = &device.name;
    match device.kind {
        DeviceKind::Partition if !device.start.is_multiple_of(page) => {
            Err(format!("{name} does not start at a multiple of {}", Size(page)))
        }
        DeviceKind::Partition => device.below.iter().try_for_each(|disk| disk_sector(disk, page)),
        DeviceKind::Disk if !name.starts_with("nvme") => Err(format!("{name} is not an NVMe device")),
        DeviceKind::Disk if u64::from(device.physical_block) < page => {
            Err(format!("{name} has physical blocks of {} bytes", device.physical_block))
        }
        DeviceKind::Disk => Ok(()),
        DeviceKind::Loop | DeviceKind::DeviceMapper | DeviceKind::MdRaid => {
            Err(format!("{name} is not a disk; how it writes a block is unknown"))
        }
    }
}

/// The sentence for `None`: the first fact that stands in the way.
fn why_not(facts: &Facts, page: u64) -> String {
    let (kind, size) = (&facts.file_system, Size(page));
    let device = facts.device.as_ref();
    if passes_on(kind) {
        return format!("{kind} does not write atomically; put the data on a file system of its own");
    }
    if kind == "zfs" {
        return "zfs does not say whether a page is written atomically (it is if the record size equals the page size); the doublewrite can be set OFF by hand".into();
    }
    match facts.atomic {
        None => format!("{kind} on Linux {} does not support atomic writes", facts.kernel),
        Some(told) if told.unit_max == 0 => no_unit(facts, device, page),
        Some(told) => {
            let (least, most) = (Size(told.unit_min.into()), Size(told.unit_max.into()));
            let cause = if kind == "ext4" && u64::from(facts.block_bytes) < page {
                "; ext4 needs clusters as large as a page (mkfs.ext4 -O bigalloc -C)"
            } else {
                ""
            };
            format!("{kind} writes {least} to {most} atomically here, a page has {size}{cause}")
        }
    }
}

/// Atomic writes are known and not offered at all: because of the device, or although it has them.
fn no_unit(facts: &Facts, device: Option<&Device>, page: u64) -> String {
    let kind = &facts.file_system;
    let Some(device) = device else { return format!("{kind} offers no atomic writes") };
    let below = deepest(device);
    let able = |device: &Device| device.atomic.is_some_and(|limits| device_reaches(&limits, page));
    if able(device) && device.kind == DeviceKind::Partition {
        return format!(
            "{} writes {} atomically, but {kind} does not offer it; {} begins at byte {}",
            below.name,
            Size(page),
            device.name,
            device.start,
        );
    }
    if able(below) {
        return format!(
            "{} writes {} atomically, but {kind} on {} does not offer it (a volume must start at a multiple of a page, and must pass atomic writes through)",
            below.name,
            Size(page),
            device.name,
        );
    }
    let reflink = if facts.reflink == Some(false) {
        ", and XFS without reflink cannot do it on its own (mkfs.xfs -m reflink=1)"
    } else {
        ""
    };
    format!("{kind} offers no atomic writes and {} has none{reflink}", device.name)
}

/// The first disk down the chain.
fn deepest(device: &Device) -> &Device {
    device.below.first().map_or(device, deepest)
}

/// A length in bytes, for people.
struct Size(u64);

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 >= 1024 && self.0.is_multiple_of(1024) {
            write!(f, "{} KiB", self.0 / 1024)
        } else {
            write!(f, "{} bytes", self.0)
        }
    }
}
