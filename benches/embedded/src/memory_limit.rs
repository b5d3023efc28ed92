//! A control group that bounds the memory of the engines' processes, of which one runs at a time: what they
//! allocate and what they read and write through the page cache, together. Pages of files count for the group
//! whose process touched them first, also after that process has ended; the kernel drops them when it needs
//! room for others. What belongs to no file could only be swapped out, and then the limit would bound
//! nothing: the group may not use swap.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A group of its own; removed when dropped.
pub struct MemoryLimit {
    group: PathBuf,
}

/// Where the groups of a version are, and the files with the limits.
struct Hierarchy {
    root: &'static str,
    memory: &'static str,
    swap: &'static str,
    /// The limit of swap is one of memory and swap together.
    together: bool,
}

const FIRST: Hierarchy = Hierarchy {
    root: "/sys/fs/cgroup/memory",
    memory: "memory.limit_in_bytes",
    swap: "memory.memsw.limit_in_bytes",
    together: true,
};
const SECOND: Hierarchy =
    Hierarchy { root: "/sys/fs/cgroup", memory: "memory.max", swap: "memory.swap.max", together: false };

impl MemoryLimit {
    /// # Errors
    /// Where control groups cannot be made: it needs root. Where there is swap, and the kernel does not count
    /// what a group has there.
    pub fn new(bytes: u64) -> Result<MemoryLimit> {
        let hierarchy = if Path::new(FIRST.root).is_dir() { FIRST } else { SECOND };
        let group = Path::new(hierarchy.root).join(format!("embedded-comparison-{}", std::process::id()));
        std::fs::create_dir(&group)
            .with_context(|| format!("{}: a memory limit needs root and control groups", group.display()))?;
        let limit = MemoryLimit { group };
        let file = limit.group.join(hierarchy.memory);
        std::fs::write(&file, bytes.to_string())
            .with_context(|| format!("{}: the limit is refused", file.display()))?;
        let swap = if hierarchy.together { bytes } else { 0 };
        let denied = std::fs::write(limit.group.join(hierarchy.swap), swap.to_string());
        // A heading, and a line for each area.
        let has_swap = std::fs::read_to_string("/proc/swaps").is_ok_and(|text| text.lines().count() > 1);
        if has_swap {
            denied.context("the limit does not hold for swap here: turn it off (swapoff -a)")?;
        }
        Ok(limit)
    }

    /// The file that a process writes its number into to be in the group.
    pub fn processes(&self) -> PathBuf {
        self.group.join("cgroup.procs")
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // A group that stays is empty and harms nobody.
        _ = std::fs::remove_dir(&self.group);
    }
}

/// Puts this process into a group.
pub fn join(processes: &Path) -> Result<()> {
    std::fs::write(processes, std::process::id().to_string()).with_context(|| processes.display().to_string())
}
