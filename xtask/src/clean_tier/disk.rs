//! A slow disk: an XFS file system in a file, on a loop device whose rate is capped for one control group.
//!
//! Needs root. The cap is the kernel's (`blkio.throttle.*`, or `io.max` of the second version of control groups), for
//! reads and for writes each. A server is put under the cap by starting it through a small script that enters the
//! group first. Everything is removed at the end.

use crate::server_process::{Kind, Program};
use crate::steps::{captured, checked};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted slow disk.
pub struct CappedDisk {
    image: PathBuf,
    mount: PathBuf,
    device: String,
    group: PathBuf,
    /// Second version of control groups.
    unified: bool,
}

impl CappedDisk {
    /// Makes and mounts one of `bytes` bytes below `place`, not capped yet.
    pub fn create(place: &Path, bytes: u64) -> Result<CappedDisk> {
        ensure!(nix::unistd::geteuid().is_root(), "a loop device and control groups need root");
        if captured(Command::new("sh").args(["-c", "command -v mkfs.xfs"])).is_err() {
            checked(Command::new("apt-get").args(["install", "-y", "-qq", "xfsprogs"]))?;
        }
        let (image, mount) = (place.join("capped-disk.img"), place.join("capped-disk"));
        fs::create_dir_all(&mount)?;
        fs::File::create(&image)?.set_len(bytes)?;
        checked(Command::new("mkfs.xfs").args(["-q", "-f"]).arg(&image))?;
        let device =
            captured(Command::new("losetup").args(["--find", "--show", "--direct-io=on"]).arg(&image))?;
        let device = device.trim().to_owned();
        let unified = !Path::new("/sys/fs/cgroup/blkio").exists();
        let root = if unified { "/sys/fs/cgroup" } else { "/sys/fs/cgroup/blkio" };
        let group = Path::new(root).join(format!("untorn-slow-{}", std::process::id()));
        let disk = CappedDisk { image, mount, device, group, unified };
        checked(Command::new("mount").arg(&disk.device).arg(&disk.mount))?;
        if unified {
            // It may be enabled already, or not be ours to enable; the write of the cap below tells.
            let _ = fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+io");
        }
        fs::create_dir_all(&disk.group)?;
        Ok(disk)
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.mount
    }

    /// Caps reads and writes each, for those in the group; 0 lifts a cap.
    pub fn limit(&self, iops: u64, bytes_per_second: u64) -> Result<()> {
        let name = Path::new(&self.device).file_name().context("a device has a name")?;
        let number = fs::read_to_string(Path::new("/sys/block").join(name).join("dev"))?;
        let number = number.trim();
        if self.unified {
            let or_max = |value: u64| if value == 0 { "max".to_owned() } else { value.to_string() };
            let (iops, bytes) = (or_max(iops), or_max(bytes_per_second));
            let line = format!("{number} rbps={bytes} wbps={bytes} riops={iops} wiops={iops}");
            return fs::write(self.group.join("io.max"), line).context("io.max: is the io controller there?");
        }
        for direction in ["read", "write"] {
            let file = |unit: &str| self.group.join(format!("blkio.throttle.{direction}_{unit}_device"));
            fs::write(file("iops"), format!("{number} {iops}"))?;
            fs::write(file("bps"), format!("{number} {bytes_per_second}"))?;
        }
        Ok(())
    }

    /// The same program, started under the cap.
    pub fn under_the_cap(&self, program: &Program) -> Result<Program> {
        use std::os::unix::fs::PermissionsExt;
        if program.kind == Kind::Command {
            let text = format!("echo $$ > {}/cgroup.procs; {}", self.group.display(), program.path.display());
            return Ok(Program { path: text.into(), ..program.clone() });
        }
        let path = self.image.with_file_name(format!("capped-{:?}", program.kind));
        let text = format!(
            "#!/bin/sh\necho $$ > {}/cgroup.procs\nexec {} \"$@\"\n",
            self.group.display(),
            program.path.display()
        );
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(Program { path, ..program.clone() })
    }
}

impl Drop for CappedDisk {
    fn drop(&mut self) {
        // Each as far as it goes: what is left is named by the commands' own messages.
        let _ = checked(Command::new("umount").arg(&self.mount));
        let _ = checked(Command::new("losetup").args(["-d", &self.device]));
        let _ = fs::remove_file(&self.image);
        let _ = fs::remove_dir(&self.group);
    }
}
