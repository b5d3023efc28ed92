//! File systems of our own in image files, on loop devices: to fill, to shut down as in a power cut, to make
//! fail.
//!
//! Takes root. Everything is undone when the value is dropped, and what a killed process left when the next
//! one makes a file system.

use crate::command::captured;
use crate::leftover;
use crate::system_packages::administration;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a file system may stay busy after its last user ended: the kernel closes files a little later
/// than that.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long when it is dropped, perhaps after an error that left it busy for good.
const PATIENCE_AT_THE_END: Duration = Duration::from_secs(3);

/// Which file system, by the name `mkfs.*` has for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileSystemKind {
    /// Can be shut down as by a power cut, and may share blocks.
    Xfs,
    /// With no blocks reserved for root.
    Ext4,
    /// Checksums file data, so that a damaged block of the device is an I/O error of the read.
    Btrfs,
}

/// A mounted file system.
pub struct FileSystem {
    kind: FileSystemKind,
    image: PathBuf,
    device: Option<String>,
    mount: PathBuf,
    /// For `mount -o`.
    options: &'static str,
}

/// Makes a file system in an image.
pub fn format(image: &Path, kind: FileSystemKind) -> Result<()> {
    leftover::sweep();
    let (program, options): (_, &[&str]) = match kind {
        FileSystemKind::Xfs => ("mkfs.xfs", &["-q", "-f"]),
        // No blocks reserved for root: the server under test is root.
        FileSystemKind::Ext4 => ("mkfs.ext4", &["-q", "-F", "-m", "0"]),
        FileSystemKind::Btrfs => ("mkfs.btrfs", &["-q", "-f"]),
    };
    captured(administration(program).args(options).arg(image)).map(drop)
}

impl FileSystem {
    /// Makes the image `directory/name.img`, sparse, and mounts it at `directory/name`.
    pub fn create(directory: &Path, name: &str, kind: FileSystemKind, mib: u64) -> Result<FileSystem> {
        if !nix::unistd::geteuid().is_root() {
            bail!("a file system for the test takes root: run this as root");
        }
        let image = directory.join(format!("{name}.img"));
        std::fs::File::create(&image)?.set_len(mib << 20)?;
        format(&image, kind)?;
        FileSystem::of_image(directory, name, kind)
    }

    /// Mounts an image that holds a file system already.
    fn of_image(directory: &Path, name: &str, kind: FileSystemKind) -> Result<FileSystem> {
        let (image, mount) = (directory.join(format!("{name}.img")), directory.join(name));
        FileSystem::mounted(image, mount, kind, "defaults")
    }

    /// Mounts what any file holds, with options for `mount -o`.
    pub fn mounted(
        image: PathBuf,
        mount: PathBuf,
        kind: FileSystemKind,
        options: &'static str,
    ) -> Result<FileSystem> {
        leftover::sweep();
        std::fs::create_dir_all(&mount)?;
        let mut file_system = FileSystem { kind, image, device: None, mount, options };
        file_system.mount()?;
        Ok(file_system)
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.mount
    }

    /// The image file.
    pub fn image(&self) -> &Path {
        &self.image
    }

    /// The loop device.
    pub fn device(&self) -> Result<&str> {
        self.device.as_deref().context("the file system is not mounted")
    }

    /// Attaches and mounts; the file system recovers what its log holds.
    pub fn mount(&mut self) -> Result<()> {
        // Direct I/O on the image: what the device acknowledged must not depend on the page cache of the file
        // system below.
        let attach = |options: &[&str]| {
            captured(administration("losetup").args(["--find", "--show"]).args(options).arg(&self.image))
        };
        let device = attach(&["--direct-io=on"]).or_else(|_| attach(&[])).context("no loop device")?;
        self.device = Some(device.trim().to_owned());
        captured(administration("mount").args(["-o", self.options]).arg(device.trim()).arg(&self.mount))?;
        Ok(())
    }

    /// Unmounts when its users have ended, and detaches.
    pub fn unmount(&mut self) -> Result<()> {
        self.unmount_within(PATIENCE)
    }

    fn unmount_within(&mut self, patience: Duration) -> Result<()> {
        let Some(device) = self.device.clone() else { return Ok(()) };
        let begin = Instant::now();
        while let Err(error) = captured(administration("umount").arg(&self.mount)) {
            if begin.elapsed() > patience {
                return Err(error.context("the file system stays busy"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        captured(administration("losetup").args(["--detach", &device]))?;
        self.device = None;
        Ok(())
    }

    /// Stops the file system at once without writing its log, as a power cut does: what is not on the device
    /// by now is gone, and every further access fails with EIO.
    pub fn shut_down(&self) -> Result<()> {
        if self.kind != FileSystemKind::Xfs {
            bail!("only XFS can be shut down");
        }
        captured(administration("xfs_io").args(["-x", "-c", "shutdown"]).arg(&self.mount)).map(drop)
    }
}

impl Drop for FileSystem {
    fn drop(&mut self) {
        // What fails here was undone already, or shows up in `losetup --list`.
        if self.unmount_within(PATIENCE_AT_THE_END).is_ok() {
            return;
        }
        if let Some(device) = &self.device {
            let _ = administration("umount").arg("--lazy").arg(&self.mount).output();
            let _ = administration("losetup").args(["--detach", device]).output();
        }
    }
}
