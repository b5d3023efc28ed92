//! A control group that bounds the memory of the engines' processes, page cache included: what an engine
//! reads through the page cache is then no larger than the cache of one that reads by itself.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A group of its own; removed when dropped.
pub struct MemoryLimit {
    group: PathBuf,
}

/// Where groups of the first version are, and of the second: with the file that says the limit.
const HIERARCHIES: [(&str, &str); 2] =
    [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];

impl MemoryLimit {
    /// # Errors
    /// Where control groups cannot be made: it needs root.
    pub fn new(bytes: u64) -> Result<MemoryLimit> {
        let (root, file) = if Path::new(HIERARCHIES[0].0).is_dir() { HIERARCHIES[0] } else { HIERARCHIES[1] };
        let group = Path::new(root).join(format!("embedded-comparison-{}", std::process::id()));
        std::fs::create_dir(&group)
            .with_context(|| format!("{}: a memory limit needs root and control groups", group.display()))?;
        let limit = MemoryLimit { group };
        std::fs::write(limit.group.join(file), bytes.to_string())
            .with_context(|| format!("{}: the limit is refused", limit.group.join(file).display()))?;
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
