//! Asking the kernel about one file.

use crate::probe::mounts::{self, Mount};
use crate::probe::statx::{self, Told};
use crate::probe::sysfs::Sysfs;
use crate::probe::{Device, Facts};
use crate::{Error, Result};
use parking_lot::Mutex;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// What the kernel says about writes to the file at `path`, or to a new file in the directory at `path` (one
/// without a name is made for asking, and nothing is left behind).
///
/// # Errors
/// When there is nothing at `path`, it cannot be opened, or it is neither a file nor a directory.
pub fn facts(path: &Path) -> Result<Facts> {
    let kind = std::fs::metadata(path).map_err(|error| Error::new("look at", path, error))?.file_type();
    if !kind.is_dir() && !kind.is_file() {
        let what = if kind.is_block_device() {
            "a block device; mount it, and probe a file or directory on it"
        } else {
            "neither a file nor a directory"
        };
        return Err(Error::new("probe", path, io::Error::new(io::ErrorKind::InvalidInput, what)));
    }
    let opened = |flags| if kind.is_dir() { nameless(path, flags) } else { read_only(path, flags) };
    let asked = match opened(libc::O_DIRECT) {
        Ok(file) => gather(path, file.as_fd(), Ok(()), Below::look),
        Err(refused) if refused.raw_os_error() == Some(libc::EINVAL) => {
            opened(0).and_then(|file| gather(path, file.as_fd(), Err(&refused), Below::look))
        }
        Err(error) => Err(error),
    };
    asked.map_err(|error| Error::new("probe", path, error))
}

/// The same for a file that was opened with `O_DIRECT`. What lies below the file may be as old as [`FRESH`].
pub(crate) fn facts_of(path: &Path, file: BorrowedFd<'_>) -> io::Result<Facts> {
    gather(path, file, Ok(()), Below::recent)
}

fn gather(
    path: &Path,
    file: BorrowedFd<'_>,
    opened: std::result::Result<(), &io::Error>,
    below: fn(&Told) -> Below,
) -> io::Result<Facts> {
    let told = statx::ask(file)?;
    let Below { mount, device, .. } = below(&told);
    let file_system = mount.as_ref().map_or("unknown", |mount| mount.file_system.as_str()).to_owned();
    Ok(Facts {
        path: path.into(),
        kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().into(),
        reflink: if file_system == "xfs" { statx::xfs_reflink(file) } else { None },
        file_system,
        mount_point: mount.as_ref().map(|mount| mount.point.clone()),
        mount_source: mount.map(|mount| mount.source),
        block_bytes: statx::block_bytes(file),
        direct_io: statx::direct_io(&told, opened),
        atomic: told.atomic,
        device,
    })
}

/// How long what is below a file is taken for the same: long enough for a start that opens thousands of files
/// (sysfs and the list of mounts are slow to read), too short for a volume that moves.
const FRESH: Duration = Duration::from_secs(1);

/// What is below the files of one mount.
#[derive(Clone)]
struct Below {
    at: Instant,
    /// Numbers of the mount, the device and the file system.
    key: (Option<u64>, (u32, u32), u64),
    mount: Option<Mount>,
    device: Option<Device>,
}

impl Below {
    fn look(told: &Told) -> Below {
        let mount = mount_of(told.mount, told.device);
        let number = mount.as_ref().map_or(told.device, block_device);
        let sysfs = Sysfs { root: Path::new("/sys"), locate: &locate };
        let device = sysfs.device(number);
        Below { at: Instant::now(), key: Below::key(told), mount, device }
    }

    fn key(told: &Told) -> (Option<u64>, (u32, u32), u64) {
        (told.mount, told.device, told.file_system)
    }

    fn recent(told: &Told) -> Below {
        static LAST: Mutex<Option<Below>> = Mutex::new(None);
        let mut last = LAST.lock();
        match &*last {
            Some(seen) if seen.key == Below::key(told) && seen.at.elapsed() < FRESH => seen.clone(),
            _ => last.insert(Below::look(told)).clone(),
        }
    }
}

fn mount_of(id: Option<u64>, device: (u32, u32)) -> Option<Mount> {
    mounts::find(&std::fs::read_to_string("/proc/self/mountinfo").ok()?, id, device)
}

/// The block device of a mount. File systems that span devices have a made-up number (major 0); for those,
/// the device node that was mounted.
fn block_device(mount: &Mount) -> (u32, u32) {
    let node = || {
        let node = std::fs::metadata(&mount.source).ok()?;
        node.file_type().is_block_device().then(|| (libc::major(node.rdev()), libc::minor(node.rdev())))
    };
    if mount.device.0 == 0 { node().unwrap_or(mount.device) } else { mount.device }
}

/// On which file system and device the file of a loop device is.
fn locate(path: &Path) -> Option<(String, (u32, u32))> {
    let told = statx::ask(File::open(path).ok()?.as_fd()).ok()?;
    let mount = mount_of(told.mount, told.device)?;
    Some((mount.file_system.clone(), block_device(&mount)))
}

fn read_only(path: &Path, flags: i32) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// A new file in a directory, gone when it is closed.
fn nameless(directory: &Path, flags: i32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.custom_flags(flags | libc::O_TMPFILE).open(directory) {
        // Some file systems have no files without a name.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {
            let path = directory.join(format!(".untorn-probe-{}", std::process::id()));
            let file = options.custom_flags(flags).create_new(true).open(&path);
            // A refused O_DIRECT may have made the file all the same.
            let removed = std::fs::remove_file(&path);
            file.and_then(|file| removed.map(|()| file))
        }
        other => other,
    }
}
