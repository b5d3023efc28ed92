//! A cap on a device's I/O for the processes of one control group, as cloud volumes have: blkio (cgroup v1) or io.max (v2).

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// Most operations and bytes per second, for reads and writes each.
#[derive(Clone, Copy, Debug)]
pub struct Cap {
    pub operations: u64,
    pub bytes: u64,
}

/// A control group with a cap; removed when dropped and empty.
pub struct Throttle {
    group: PathBuf,
}

impl Throttle {
    /// Caps a block device (`/dev/loop3`) for the processes that will be put in.
    pub fn new(device: &str, cap: Cap) -> Result<Throttle> {
        let name = device.rsplit('/').next().unwrap_or(device);
        let number = std::fs::read_to_string(format!("/sys/block/{name}/dev"))
            .with_context(|| format!("{device} is no block device"))?;
        let number = number.trim();
        let group = format!("untorn-experiment-{}", std::process::id());
        let first = Path::new("/sys/fs/cgroup/blkio");
        let (parent, limits) = if first.exists() {
            let limit = |file: &str, value: u64| {
                (format!("blkio.throttle.{file}_device"), format!("{number} {value}"))
            };
            let limits = [
                limit("read_iops", cap.operations),
                limit("write_iops", cap.operations),
                limit("read_bps", cap.bytes),
                limit("write_bps", cap.bytes),
            ];
            (first, limits.to_vec())
        } else {
            let second = Path::new("/sys/fs/cgroup");
            if !second.join("cgroup.controllers").exists() {
                bail!("no control groups for I/O at /sys/fs/cgroup");
            }
            // Only fails when it is on already or not there, which shows below.
            let _ = std::fs::write(second.join("cgroup.subtree_control"), "+io");
            let Cap { operations, bytes } = cap;
            let limit = format!("{number} riops={operations} wiops={operations} rbps={bytes} wbps={bytes}");
            (second, vec![("io.max".to_owned(), limit)])
        };
        let throttle = Throttle { group: parent.join(group) };
        std::fs::create_dir_all(&throttle.group)
            .with_context(|| format!("cannot make the control group {}", throttle.group.display()))?;
        for (file, value) in limits {
            std::fs::write(throttle.group.join(&file), &value).with_context(|| format!("{file}: {value}"))?;
        }
        Ok(throttle)
    }

    /// Puts a process in, with all its threads.
    pub fn put_in(&self, process: u32) -> Result<()> {
        Ok(std::fs::write(self.group.join("cgroup.procs"), process.to_string())?)
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        // A group that still has a process stays, which harms nobody once its device is gone.
        let _ = std::fs::remove_dir(&self.group);
    }
}
