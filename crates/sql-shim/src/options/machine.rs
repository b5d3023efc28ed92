//! Defaults that follow from the machine: memory and disk this process may use.

use std::path::{Path, PathBuf};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// A pool below this is no use.
const POOL_BYTES_MIN: u64 = 128 * MIB;

/// Memory the process may use and where that limit comes from.
pub fn memory_bytes() -> (u64, &'static str) {
    let machine = meminfo("MemTotal:").unwrap_or(GIB);
    match control_group_limit() {
        Some(limit) if limit < machine => (limit, "the control group"),
        _ => (machine, "the machine"),
    }
}

fn meminfo(field: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The lowest limit on the way from the process's group to the root (version 2, then version 1).
fn control_group_limit() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    let root = Path::new("/sys/fs/cgroup");
    let own = root.join(group.trim_start_matches('/'));
    let on_the_way = own.ancestors().take_while(|path| path.starts_with(root));
    let files = on_the_way
        .map(|path| path.join("memory.max"))
        .chain([PathBuf::from("/sys/fs/cgroup/memory/memory.limit_in_bytes")]);
    files.filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok()).min()
}

/// Default of `innodb_buffer_pool_size`: 55 % of the memory the process may use (40 % below 2 GiB, where
/// everything else weighs more), but no more than three quarters of what is free now.
pub fn buffer_pool_bytes() -> (u64, String) {
    let (memory, of) = memory_bytes();
    let percent = if memory < 2 * GIB { 40 } else { 55 };
    let wanted = memory / 100 * percent;
    let free = meminfo("MemAvailable:").map_or(u64::MAX, |available| available / 4 * 3);
    let bytes = (wanted.min(free) / MIB * MIB).max(POOL_BYTES_MIN);
    let why = if bytes < wanted / MIB * MIB {
        "three quarters of the free memory".to_owned()
    } else if bytes == POOL_BYTES_MIN {
        "the least that is useful".to_owned()
    } else {
        format!("{percent} % of the {} MiB of {of}", memory / MIB)
    };
    (bytes, why)
}

/// Default of `innodb_redo_log_capacity`: a quarter of the pool between 128 MiB and 2 GiB, so that the
/// cleaner can take its time; no more than a twentieth of the free disk.
pub fn redo_capacity_bytes(pool_bytes: u64, datadir: &Path) -> (u64, String) {
    let wanted = (pool_bytes / 4 / MIB * MIB).clamp(128 * MIB, 2 * GIB);
    let free = disk::room_at(&datadir.join("redo")).unwrap_or(u64::MAX);
    if wanted <= free / 20 {
        return (wanted, "a quarter of the buffer pool, 128 MiB to 2 GiB".into());
    }
    let bytes = (free / 20 / MIB * MIB).clamp(32 * MIB, wanted);
    (bytes, format!("little free disk: {} MiB", free / MIB))
}
