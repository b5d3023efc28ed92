//! A cap on a device's I/O for the processes of one control group, reads and writes each: blkio (cgroup v1)
//! or io.max (v2).

use crate::server_process::{Kind, Program};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Most operations and bytes per second; 0 is no cap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Cap {
    /// Requests per second.
    pub operations: u64,
    /// Bytes per second.
    pub bytes: u64,
}

impl Cap {
    /// No cap at all.
    pub const NONE: Cap = Cap { operations: 0, bytes: 0 };
}

/// A control group; removed when dropped and empty.
pub struct Throttle {
    group: PathBuf,
    /// `major:minor` of the device.
    number: String,
    unified: bool,
}

impl Throttle {
    /// A group for the processes that will be put in, without a cap on the block device (`/dev/loop3`) yet.
    pub fn new(device: &str) -> Result<Throttle> {
        let name = device.rsplit('/').next().unwrap_or(device);
        let number = fs::read_to_string(format!("/sys/block/{name}/dev"))
            .with_context(|| format!("{device} is no block device"))?;
        let first = Path::new("/sys/fs/cgroup/blkio");
        let unified = !first.exists();
        let parent = if unified { Path::new("/sys/fs/cgroup") } else { first };
        if unified {
            ensure!(
                parent.join("cgroup.controllers").exists(),
                "no control groups for I/O at /sys/fs/cgroup"
            );
            // Only fails when it is on already or not there, which the write of the cap shows.
            let _ = fs::write(parent.join("cgroup.subtree_control"), "+io");
        }
        let group = parent.join(format!("untorn-experiment-{}", std::process::id()));
        fs::create_dir_all(&group)
            .with_context(|| format!("cannot make the control group {}", group.display()))?;
        Ok(Throttle { group, number: number.trim().to_owned(), unified })
    }

    /// Caps reads and writes each.
    pub fn limit(&self, cap: Cap) -> Result<()> {
        let Cap { operations, bytes } = cap;
        let number = &self.number;
        let limits = if self.unified {
            let or_max = |value: u64| if value == 0 { "max".to_owned() } else { value.to_string() };
            let (operations, bytes) = (or_max(operations), or_max(bytes));
            vec![(
                "io.max".to_owned(),
                format!("{number} riops={operations} wiops={operations} rbps={bytes} wbps={bytes}"),
            )]
        } else {
            let limit = |file: &str, value: u64| {
                (format!("blkio.throttle.{file}_device"), format!("{number} {value}"))
            };
            vec![
                limit("read_iops", operations),
                limit("write_iops", operations),
                limit("read_bps", bytes),
                limit("write_bps", bytes),
            ]
        };
        for (file, value) in limits {
            fs::write(self.group.join(&file), &value).with_context(|| format!("{file}: {value}"))?;
        }
        Ok(())
    }

    /// Puts a process in, with all its threads.
    pub fn put_in(&self, process: u32) -> Result<()> {
        Ok(fs::write(self.group.join("cgroup.procs"), process.to_string())?)
    }

    /// The same program, in the group from its first request on: a small script in `place` enters the group
    /// and becomes the program.
    pub fn around(&self, program: &Program, place: &Path) -> Result<Program> {
        let enter = format!("echo $$ > {}/cgroup.procs", self.group.display());
        if program.kind == Kind::Command {
            let text = format!("{enter}; {}", program.path.display());
            return Ok(Program { path: text.into(), ..program.clone() });
        }
        let path = place.join(format!("capped-{:?}", program.kind));
        fs::write(&path, format!("#!/bin/sh\n{enter}\nexec {} \"$@\"\n", program.path.display()))?;
        fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        Ok(Program { path, ..program.clone() })
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        // A group that still has a process stays, which harms nobody once its device is gone.
        let _ = fs::remove_dir(&self.group);
    }
}
