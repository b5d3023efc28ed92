//! A slow disk: an XFS file system in a file, on a loop device with a cap.
//!
//! Needs root. Shared, the cap counts reads and writes together ([`volume`]), and the disk can be like a
//! volume of a cloud ([`Profile`]); each, it is the kernel's for one control group ([`Throttle`]), which a
//! server enters by a small script. Everything is removed at the end.

mod check;
mod profile;
mod throttle;
pub mod volume;

pub use check::{CheckArguments, check};
pub use profile::{Burst, Profile};
pub use throttle::{Cap, Throttle};

use crate::file_system::{self, FileSystem, FileSystemKind};
use crate::server_process::Program;
use anyhow::{Result, bail, ensure};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use volume::Volume;

/// Fewer and larger writes of XFS's own log.
const MOUNT_OPTIONS: &str = "logbsize=256k";

/// What a cap counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum CapKind {
    /// Reads and writes together, as volumes of clouds do.
    Shared,
    /// Reads and writes each, by a control group.
    Each,
}

impl fmt::Display for CapKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            CapKind::Shared => "reads and writes together",
            CapKind::Each => "reads and writes each",
        })
    }
}

/// A mounted slow disk.
pub struct CappedDisk {
    // Dropped in this order: what is mounted on the volume goes before it.
    file_system: FileSystem,
    way: Way,
    place: PathBuf,
}

enum Way {
    Shared(Volume),
    Each(Throttle),
}

impl CappedDisk {
    /// Makes and mounts one of `bytes` bytes below `place`, not capped yet.
    pub fn create(place: &Path, bytes: u64, kind: CapKind, flushes: bool) -> Result<CappedDisk> {
        ensure!(nix::unistd::geteuid().is_root(), "a loop device and a cap need root");
        ensure!(flushes || kind == CapKind::Shared, "only a shared cap can answer flushes at once");
        let (image, mount) = (place.join("capped-disk.img"), place.join("capped-disk"));
        std::fs::File::create(&image)?.set_len(bytes)?;
        file_system::format(&image, FileSystemKind::Xfs)?;
        let mounted =
            |file: PathBuf| FileSystem::mounted(file, mount.clone(), FileSystemKind::Xfs, MOUNT_OPTIONS);
        let (file_system, way) = match kind {
            CapKind::Shared => {
                let volume = Volume::new(&image, &place.join("volume"), flushes)?;
                (mounted(volume.file())?, Way::Shared(volume))
            }
            CapKind::Each => {
                let file_system = mounted(image)?;
                let throttle = Throttle::new(file_system.device()?)?;
                (file_system, Way::Each(throttle))
            }
        };
        let disk = CappedDisk { file_system, way, place: place.to_path_buf() };
        disk.hint()?;
        Ok(disk)
    }

    /// What to do when this program is killed.
    fn hint(&self) -> Result<()> {
        let (mount, device) = (self.path().display(), self.device()?);
        let volume = match &self.way {
            Way::Shared(_) => format!("; umount {}", self.place.join("volume").display()),
            Way::Each(_) => String::new(),
        };
        println!(
            "when this is killed, clean up with: umount {mount}; losetup --detach {device}{volume}; rm -r {}",
            self.place.display()
        );
        Ok(())
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.file_system.path()
    }

    /// The loop device.
    pub fn device(&self) -> Result<&str> {
        self.file_system.device()
    }

    /// Caps from now on; 0 lifts a cap.
    pub fn limit(&mut self, cap: Cap) -> Result<()> {
        match &mut self.way {
            Way::Shared(volume) => volume.behave_as(&Profile::capped(cap)),
            Way::Each(throttle) => throttle.limit(cap),
        }
    }

    /// Behaves like a volume of a cloud from now on, with full buckets; only a shared cap can.
    pub fn behave_as(&mut self, profile: &Profile) -> Result<()> {
        match &mut self.way {
            Way::Shared(volume) => volume.behave_as(profile),
            Way::Each(_) => {
                bail!("a control group has a cap and nothing else: make the disk with a shared cap")
            }
        }
    }

    /// The same program, started under the cap.
    pub fn under_the_cap(&self, program: &Program) -> Result<Program> {
        match &self.way {
            Way::Shared(_) => Ok(program.clone()),
            Way::Each(throttle) => throttle.around(program, &self.place),
        }
    }

    /// Processor time that a shared cap took so far.
    pub fn processor_time(&self) -> Result<Duration> {
        match &self.way {
            Way::Shared(volume) => volume.processor_time(),
            Way::Each(_) => Ok(Duration::ZERO),
        }
    }
}
