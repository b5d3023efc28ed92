//! The answer for people.

use std::fmt::Write as _;

use disk::probe::{Atomic, Device, DeviceKind, DirectIo, Latency, Measured, Verdict};

use super::Answer;

pub(super) const HELP: &str = "\
untorn probe - how pages of files at a path are protected from being torn, and why

usage: untorn probe PATH [--page-size N] [--json] [--no-measure]

  PATH             a tablespace file, or a directory where files will be (a temporary unnamed file is used)
  --page-size N    4K, 8K, 16K (default), 32K or 64K: a verdict is about one size
  --json           everything that was found, for programs (keys below)
  --no-measure     do not write anything: facts and verdict only

A page is torn when a power cut leaves it half old, half new. The server protects itself by writing each
page twice (doublewrite), except where the storage takes a page whole or not at all:

  atomic-hw        the device does it: pages are written once, no doublewrite
  atomic-fs        the file system does it by copy-on-write (XFS since Linux 6.16): pages may be written once, if that
                   is faster than writing them twice; the server measures
  none             neither does: pages go through the doublewrite buffer

The measurement writes and syncs pages for about a second in a file of 256 pages that has no name and is gone afterwards.
It tells what one page write and one sync cost there now, one at a time; it is not a benchmark.

what can be done to get atomic writes
  XFS on any device      Linux 6.16 or later, and reflink, which mkfs.xfs has on by default: atomic-fs
  XFS, ext4 on NVMe or cloud volumes that report 16 KiB (cat /sys/block/*/queue/atomic_write_unit_max_bytes): atomic-hw;
                         ext4 needs Linux 6.16 and mkfs.ext4 -O bigalloc -C 16384 for it, and partitions and volumes must
                         begin at a multiple of 16 KiB
  4 KiB pages            many NVMe devices: atomic-hw on XFS or ext4 as they are

keys of --json (stable; more may be added)
  page_bytes, verdict.atomic (atomic-hw | atomic-fs | none), verdict.flagged (writes carry RWF_ATOMIC), verdict.reason, advice
  facts.file_system, .mount_point, .mount_source, .block_bytes, .reflink, .kernel
  facts.direct_io.aligned.memory, .offset  or  facts.direct_io.refused
  facts.atomic.unit_min, .unit_max, .unit_max_opt, .segments_max  (null: not known here)
  facts.device.name, .number, .kind (disk | partition | loop | device-mapper | md-raid), .logical_block, .physical_block,
       .atomic.unit_min, .unit_max, .max, .boundary, .below[] (the same again), .backing (of a loop device)
  measured.sync, .plain_write, .atomic_write: each .count, .median_us, .longest_us;  not_measured: why not
";

/// What `innodb_doublewrite=AUTO` makes of a verdict.
pub(super) fn advice(verdict: &Verdict) -> &'static str {
    match (verdict.atomic, verdict.flagged) {
        (Atomic::Hardware, true) => "pages are written once, with RWF_ATOMIC; no doublewrite",
        (Atomic::Hardware, false) => "pages are written once, each by a write of its own; no doublewrite",
        (Atomic::FileSystem, _) => {
            "pages are written once with RWF_ATOMIC where that is measured to be faster than the doublewrite buffer"
        }
        (Atomic::None, _) => "pages go through the doublewrite buffer",
    }
}

pub(super) fn describe(answer: &Answer) -> String {
    let (mut text, facts) = (String::new(), &answer.facts);
    let mut line = |name: &str, value: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<16}{value}");
    };
    line("path", facts.path.display().to_string());
    line("pages", size(answer.page_bytes as u64));
    line("verdict", format!("{}: {}", answer.verdict.atomic, answer.verdict.reason));
    line("", answer.advice.clone());
    let mounted = match (&facts.mount_point, &facts.mount_source) {
        (Some(point), Some(source)) => format!(" at {} ({source})", point.display()),
        _ => String::new(),
    };
    let reflink = match facts.reflink {
        Some(true) => ", reflink",
        Some(false) => ", no reflink",
        None => "",
    };
    line(
        "file system",
        format!(
            "{}{mounted}, blocks of {}{reflink}, Linux {}",
            facts.file_system,
            size(facts.block_bytes.into()),
            facts.kernel
        ),
    );
    line(
        "direct I/O",
        match &facts.direct_io {
            DirectIo::Aligned { memory: 0, offset: 0 } => {
                "yes; the kernel does not report the alignment".into()
            }
            DirectIo::Aligned { memory, offset } => {
                format!("yes; memory at multiples of {memory} bytes, offsets of {offset}")
            }
            DirectIo::Refused(why) => format!("no: {why}"),
        },
    );
    line(
        "atomic writes",
        match &facts.atomic {
            None => "not known to this kernel or file system".into(),
            Some(told) if told.unit_max == 0 => "none".into(),
            Some(told) => format!(
                "{} to {}, from {} piece of memory; unit_max_opt (no help of the file system): {}",
                size(told.unit_min.into()),
                size(told.unit_max.into()),
                told.segments_max,
                if told.unit_max_opt == 0 { "0".into() } else { size(told.unit_max_opt.into()) },
            ),
        },
    );
    let mut devices = Vec::new();
    match &facts.device {
        Some(device) => list(device, 0, &mut devices),
        None => devices.push("none that can be seen from here".into()),
    }
    for (number, entry) in devices.into_iter().enumerate() {
        line(if number == 0 { "devices" } else { "" }, entry);
    }
    match (&answer.measured, &answer.not_measured) {
        (Some(measured), _) => table(&mut text, answer.page_bytes, measured),
        (None, Some(why)) => line("measured", format!("nothing: {why}")),
        (None, None) => {}
    }
    text
}

/// A device and what it is made of, one line each.
fn list(device: &Device, depth: usize, lines: &mut Vec<String>) {
    let kind = match device.kind {
        DeviceKind::Disk => "disk",
        DeviceKind::Partition => "partition",
        DeviceKind::Loop => "loop",
        DeviceKind::DeviceMapper => "device-mapper",
        DeviceKind::MdRaid => "md",
    };
    let detail = device.detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default();
    let start = if device.kind == DeviceKind::Partition {
        format!(", begins at byte {}", device.start)
    } else {
        String::new()
    };
    let atomic = match device.atomic {
        None => "not reported".into(),
        Some(limits) if limits.unit_max == 0 => "none".into(),
        Some(limits) => format!("{} to {}", size(limits.unit_min), size(limits.unit_max)),
    };
    lines.push(format!(
        "{}{} {} {kind}{detail}{start}; blocks {}/{}; atomic writes: {atomic}{}",
        "  ".repeat(depth),
        device.name,
        device.number,
        device.logical_block,
        device.physical_block,
        device.write_cache.as_ref().map(|cache| format!("; cache: {cache}")).unwrap_or_default(),
    ));
    for below in &device.below {
        list(below, depth + 1, lines);
    }
    if let Some(backing) = &device.backing {
        let direct = if backing.direct { "direct" } else { "through the page cache" };
        lines.push(format!("{}file on {}, {direct}", "  ".repeat(depth + 1), backing.file_system));
        if let Some(below) = &backing.device {
            list(below, depth + 1, lines);
        }
    }
}

fn table(text: &mut String, page_bytes: usize, measured: &Measured) {
    let file = size(measured.file_bytes);
    let _ = writeln!(text, "{:<16}one at a time, in an unnamed file of {file}, already removed", "measured");
    let _ = writeln!(text, "  {:<26}{:>6}{:>11}{:>12}", "", "times", "median us", "longest us");
    let mut row = |name: &str, latency: &Latency| {
        let Latency { count, median_us, longest_us } = latency;
        let _ = writeln!(text, "  {name:<26}{count:>6}{median_us:>11.0}{longest_us:>12.0}");
    };
    let page = size(page_bytes as u64);
    row(&format!("plain write of {page}"), &measured.plain_write);
    if let Some(latency) = &measured.atomic_write {
        row(&format!("atomic write of {page}"), latency);
    }
    row("fdatasync after a write", &measured.sync);
    if let Some(refusal) = &measured.atomic_refusal {
        let _ = writeln!(text, "  atomic write of {page}: refused ({refusal})");
    }
}

fn size(bytes: u64) -> String {
    if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) {
        format!("{} MiB", bytes >> 20)
    } else if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) {
        format!("{} KiB", bytes >> 10)
    } else {
        format!("{bytes} bytes")
    }
}
