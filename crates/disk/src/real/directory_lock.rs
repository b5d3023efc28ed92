//! The lock of a directory, and a note in its file that says who has it.
//!
//! The lock is the kernel's: it ends with its holder, whatever the note says. The note is for the person who
//! finds the directory in use.
//!
//! A lock belongs to a file, not to its name. Where somebody removes the file while it is locked, to get rid
//! of an error, the next process makes another one and locks that, and two would write. So the directory
//! itself is locked as well: it stays what it is while there is anything in it. Where the file system has no
//! locks on directories (NFS), there is only the file's.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// A note is shorter; what is longer is somebody else's file.
const NOTE_BYTES_MAX: u64 = 512;

fn open(path: &Path) -> io::Result<File> {
    std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        // A user who may put a link there must not choose which file is made.
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
}

/// Takes the lock on a file whose contents are somebody's: they are not touched.
pub(super) fn lock(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(io::Error::new(io::ErrorKind::WouldBlock, "another process, or this one, uses it"))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The lock on a directory, until it is dropped.
#[derive(Debug)]
pub(super) struct DirectoryLock {
    // Given back before the file's: who has that one finds this one free.
    _directory: Option<File>,
    _file: File,
}

/// Who it is when the directory is locked, and its file is not.
const HOLDER_WITHOUT_FILE: &str = "a process whose lock file somebody has removed, or another program that has \
                                   locked the directory itself (flock)";

/// Takes the lock on a file of its own, with a note of who has it, and on the directory that it lies in; or
/// says who has it if that is another.
pub(super) fn lock_by_name(path: &Path) -> io::Result<DirectoryLock> {
    // Opened first: of a process that is killed descriptors are closed in their order.
    let directory = File::open(directory_of(path))?;
    let mut file = open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, holder(&mut file)));
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let directory = match directory.try_lock() {
        Ok(()) => Some(directory),
        Err(TryLockError::WouldBlock) => {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, HOLDER_WITHOUT_FILE));
        }
        Err(TryLockError::Error(error)) => {
            tracing::debug!(%error, "the file system has no locks on directories");
            None
        }
    };
    // On a full disk the lock is as good without it.
    if let Err(error) = write_note(&mut file) {
        tracing::debug!(%error, "the lock file does not say who has it");
    }
    Ok(DirectoryLock { _directory: directory, _file: file })
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Who has the lock on a file of that kind, or on its directory, if anybody has. Nothing is made or written.
///
/// The answer is a moment old. Who takes the lock in this very moment may be told that it is taken.
pub fn lock_holder(path: &Path) -> Option<String> {
    // Where it cannot be told, who takes it will be.
    let is_locked = |file: &File| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    if let Ok(mut file) = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(path)
        && is_locked(&file)
    {
        return Some(holder(&mut file));
    }
    let directory = File::open(directory_of(path)).ok()?;
    is_locked(&directory).then(|| HOLDER_WITHOUT_FILE.to_owned())
}

fn write_note(file: &mut File) -> io::Result<()> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let since = UNIX_EPOCH.elapsed().unwrap_or_default();
    let program = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
    let (id, program, host, since) = (std::process::id(), program.trim(), host.trim(), utc(since));
    let note = format!("process {id} ({program}) on host {host}, since {since}\n");
    file.set_len(0)?;
    file.write_all(note.as_bytes())
}

/// What the note says; it may be missing, or half written.
fn holder(file: &mut File) -> String {
    let mut note = String::new();
    let whole = file.take(NOTE_BYTES_MAX).read_to_string(&mut note).is_ok() && note.ends_with('\n');
    let note = note.trim();
    if whole && note.starts_with("process ") && !note.contains(char::is_control) {
        note.to_owned()
    } else {
        "a process".to_owned()
    }
}

/// Date and time of day of a moment after 1970-01-01 00:00:00 UTC.
fn utc(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs();
    let (mut days, of_day) = (seconds / 86_400, seconds % 86_400);
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year}-{month:02}-{:02} {hour:02}:{minute:02}:{second:02} UTC", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let date = |seconds| utc(Duration::from_secs(seconds));
        assert_eq!(date(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date(951_782_399), "2000-02-28 23:59:59 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(date(1_735_689_599), "2024-12-31 23:59:59 UTC");
        assert_eq!(date(1_764_201_600), "2025-11-27 00:00:00 UTC");
    }

    #[test]
    fn the_second_is_told_of_the_first() {
        let directory = std::env::temp_dir().join(format!("untorn-lock-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("lock");
        let first = lock_by_name(&path).unwrap();
        let told = lock_by_name(&path).unwrap_err();
        assert_eq!(told.kind(), io::ErrorKind::WouldBlock);
        assert!(told.to_string().starts_with(&format!("process {} (", std::process::id())), "{told}");
        assert!(told.to_string().contains(" on host ") && told.to_string().ends_with(" UTC"), "{told}");
        std::fs::write(&path, "half a no").unwrap();
        assert_eq!(lock_by_name(&path).unwrap_err().to_string(), "a process");
        drop(first);
        assert!(lock_by_name(&path).is_ok());
        // A file with contents keeps them.
        std::fs::write(&path, "contents").unwrap();
        let first = lock(&path).unwrap();
        assert_eq!(lock(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(first);
        assert_eq!(std::fs::read(&path).unwrap(), b"contents");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
