//! Mounts and loop devices that outlived the process that made them.
//!
//! File systems and volumes are undone when their values are dropped, which no killed process does. What is
//! left harms others: while a loop device's file is on a FUSE mount that nobody serves, `mkfs.btrfs` finds
//! that it "cannot check mount status" and makes no file system anywhere. So each maker of one has the
//! leftovers undone first.
//!
//! A mount belongs to the process whose number ends the name of the directory that it is below
//! (`untorn-NAME-PID`, see [`crate::scratch`]; all that mount something name theirs like this). What belongs
//! to a number that any process has is never touched, were it another one by now: that waits for a later
//! sweep.

use anyhow::{Context, Result};
use nix::mount::{MntFlags, umount2};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Once;

use crate::command::captured;
use crate::system_packages::administration;

/// A mount.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Mount {
    point: PathBuf,
    source: PathBuf,
}

/// A loop device that is attached, and its file.
#[derive(Clone, PartialEq, Eq, Debug)]
struct LoopDevice {
    device: PathBuf,
    file: PathBuf,
}

/// What is to be undone, in this order.
#[derive(Default, PartialEq, Eq, Debug)]
struct Leftover {
    mounts: Vec<PathBuf>,
    /// With their files.
    devices: BTreeMap<PathBuf, PathBuf>,
}

/// Undoes, once in each process, what dead processes left below the directory for temporary files.
pub fn sweep() {
    static SWEPT: Once = Once::new();
    SWEPT.call_once(|| {
        let temporary = std::env::temp_dir();
        undo(|path| is_of_the_dead(path, &temporary, lives), "left by a process that ended");
    });
}

/// Undoes what stands on this file: the loop devices, and what is mounted from them.
pub fn release(file: &Path) {
    undo(|path| path == file, "still there");
}

/// Undoes what `wanted` says of mount points and of loop devices' files. What cannot be undone is said, and
/// stays.
fn undo(wanted: impl Fn(&Path) -> bool, why: &str) {
    let Ok(mountinfo) = std::fs::read_to_string("/proc/self/mountinfo") else { return };
    let leftover = Leftover::of(&mounts(&mountinfo), &loop_devices(), wanted);
    for point in &leftover.mounts {
        // Nothing is asked of the file system, which may have nobody to answer.
        let flags = MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW;
        told(point, why, umount2(point, flags).map_err(anyhow::Error::from));
    }
    for (device, file) in &leftover.devices {
        // Somebody else who sweeps may have detached it, and a third attached it again.
        if backing_file(device).as_ref() != Some(file) {
            continue;
        }
        let detached = captured(administration("losetup").arg("--detach").arg(device));
        told(device, why, detached.map(drop));
    }
}

fn told(what: &Path, why: &str, undone: Result<()>) {
    let text = match undone.with_context(|| format!("{} is {why}", what.display())) {
        Ok(()) => format!("undone: {}, {why}", what.display()),
        Err(error) => format!("cannot be undone: {error:#}"),
    };
    // Who would read it may have ended too.
    let _ = writeln!(std::io::stderr(), "{text}");
}

impl Leftover {
    /// The wanted mounts and those of wanted devices, the last one first, as it may be on an earlier one; the
    /// wanted devices and those of wanted mounts: the file of one may have no path any more.
    fn of(mounts: &[Mount], devices: &[LoopDevice], wanted: impl Fn(&Path) -> bool) -> Leftover {
        let mut leftover = Leftover::default();
        let on_wanted = devices.iter().filter(|known| wanted(&known.file));
        leftover.devices.extend(on_wanted.map(|known| (known.device.clone(), known.file.clone())));
        for mount in mounts.iter().rev() {
            if wanted(&mount.point) || leftover.devices.contains_key(&mount.source) {
                leftover.mounts.push(mount.point.clone());
                if let Some(known) = devices.iter().find(|known| known.device == mount.source) {
                    leftover.devices.insert(known.device.clone(), known.file.clone());
                }
            }
        }
        leftover
    }
}

/// Whether a path belongs to a process that has ended.
fn is_of_the_dead(path: &Path, temporary: &Path, lives: impl Fn(u32) -> bool) -> bool {
    owner(path, temporary).is_some_and(|process| !lives(process))
}

/// The process that a path belongs to: the number at the end of the first name below the directory for
/// temporary files.
fn owner(path: &Path, temporary: &Path) -> Option<u32> {
    let Component::Normal(name) = path.strip_prefix(temporary).ok()?.components().next()? else {
        return None;
    };
    let (_, number) = name.to_str()?.strip_prefix("untorn-")?.rsplit_once('-')?;
    number.parse().ok()
}

/// Whether there is a process of this number. Where that cannot be found out, there is.
fn lives(process: u32) -> bool {
    Path::new("/proc").join(process.to_string()).try_exists().unwrap_or(true)
}

/// The lines of `/proc/self/mountinfo` (proc_pid_mountinfo(5)), in the order in which they were mounted.
fn mounts(mountinfo: &str) -> Vec<Mount> {
    let parsed = mountinfo.lines().map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let (point, source) = (mount.split(' ').nth(4)?, file_system.split(' ').nth(1)?);
        Some(Mount { point: unescaped(point), source: unescaped(source) })
    });
    parsed.flatten().collect()
}

/// Blanks, tabs, line feeds and backslashes are written as three octal digits.
fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| *first == b'\\');
        let value = octal.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(value.unwrap_or(*first));
        rest = if value.is_some() { &after[3..] } else { after };
    }
    std::ffi::OsString::from_vec(bytes).into()
}

/// Those that are attached, as the kernel says it without asking the file systems of their files.
fn loop_devices() -> Vec<LoopDevice> {
    let blocks = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let attached = blocks.map(|block| {
        let device = Path::new("/dev").join(block.file_name());
        Some(LoopDevice { file: backing_file(&device)?, device })
    });
    attached.flatten().collect()
}

/// The file of a loop device that is attached.
fn backing_file(device: &Path) -> Option<PathBuf> {
    let file = std::fs::read(Path::new("/sys/block").join(device.file_name()?).join("loop/backing_file"));
    Some(OsStr::from_bytes(file.ok()?.trim_ascii_end()).into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used)]
    use super::*;
    use std::process::{Command, Stdio};

    const DEAD: u32 = 4242;

    /// A dead process's disk on a volume, a living one's, and what others have.
    const MOUNTINFO: &str = "\
22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/root rw
31 22 0:50 / /tmp/untorn-extension-4242/volume rw - fuse untorn-volume rw
32 22 7:0 / /tmp/untorn-extension-4242/capped-disk rw shared:2 master:1 - xfs /dev/loop0 rw
33 22 7:1 / /tmp/untorn-extension-77/capped-disk rw - xfs /dev/loop1 rw
34 22 7:2 / /mnt/my\\040disk rw - xfs /dev/loop2 rw
35 22 7:3 / /srv/elsewhere rw - ext4 /dev/loop3 rw
36 22 0:51 / /tmp/untorn-odd rw - tmpfs tmpfs rw
37 22 0:52 / /tmp/other-4242/x rw - tmpfs tmpfs rw";

    fn device(number: u32, file: &str) -> LoopDevice {
        LoopDevice { device: format!("/dev/loop{number}").into(), file: file.into() }
    }

    fn devices() -> Vec<LoopDevice> {
        vec![
            // On a volume that was unmounted: the path is one within it.
            device(0, "/disk"),
            device(1, "/tmp/untorn-extension-77/capped-disk.img"),
            device(2, "/mnt/image"),
            device(3, "/tmp/untorn-bad-input-4242/disk.img (deleted)"),
            device(4, "/tmp/untorn-bad-input-4242/attached.img"),
        ]
    }

    #[test]
    fn a_directory_names_its_process() {
        let owner = |path: &str| owner(Path::new(path), Path::new("/tmp"));
        assert_eq!(owner("/tmp/untorn-extension-soak-4242/volume"), Some(DEAD));
        assert_eq!(owner("/tmp/untorn-x-4242"), Some(DEAD));
        for path in ["/tmp", "/tmp/untorn-4242", "/tmp/untorn-x-4242b/y", "/tmp/x-4242", "/var/untorn-x-4242"]
        {
            assert_eq!(owner(path), None, "{path}");
        }
    }

    #[test]
    fn what_the_dead_left_is_found_and_nothing_else() {
        let temporary = Path::new("/tmp");
        let dead = |path: &Path| is_of_the_dead(path, temporary, |process| process != DEAD);
        let found = Leftover::of(&mounts(MOUNTINFO), &devices(), dead);
        let last_first =
            ["/srv/elsewhere", "/tmp/untorn-extension-4242/capped-disk", "/tmp/untorn-extension-4242/volume"];
        assert_eq!(found.mounts, last_first.map(PathBuf::from));
        let expected = [0, 3, 4].map(|number| {
            let LoopDevice { device, file } = devices().swap_remove(number);
            (device, file)
        });
        assert_eq!(found.devices, BTreeMap::from(expected));
        assert_eq!(Leftover::of(&mounts(MOUNTINFO), &devices(), |_| false), Leftover::default());
    }

    #[test]
    fn what_stands_on_a_file_is_found() {
        let found = Leftover::of(&mounts(MOUNTINFO), &devices(), |path| path == Path::new("/mnt/image"));
        assert_eq!(found.mounts, [PathBuf::from("/mnt/my disk")]);
        assert_eq!(found.devices, BTreeMap::from([("/dev/loop2".into(), "/mnt/image".into())]));
    }

    #[test]
    fn every_process_lives_until_it_is_gone() {
        assert!(lives(std::process::id()));
        let mut other = Command::new("cat").stdin(Stdio::piped()).spawn().expect("a process");
        assert!(lives(other.id()), "whatever its program is");
        other.kill().expect("a kill");
        other.wait().expect("its end");
        assert!(!lives(other.id()), "none");
    }
}
