//! Making a data directory of a backup.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use disk::{AlignedBuf, Environment, OpenHow, RealEnvironment, RealOptions, Storage};

use super::copy::refuse_one_in_the_other;
use super::manifest::{FileEntry, Manifest};
use super::{BackupProgress, begin_directory, failed, finish_directory};
use crate::error::Result;

/// Bytes read and written at once.
const STRETCH: usize = 1 << 20;

/// What was restored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreReport {
    /// The data directory.
    pub directory: PathBuf,
    /// Files in it.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// LSN up to which everything is there.
    pub end: u64,
}

/// Makes a data directory of a backup: copies it into a new or empty directory and compares every file with
/// what the backup's manifest says of it. The backup stays as it is. Opening the directory then recovers it.
/// Blocks for the files.
///
/// # Errors
/// A backup that is not finished or damaged; a target that is not empty or cannot be written. The target is
/// then marked as incomplete and may be removed.
pub fn restore(
    backup: impl AsRef<Path>,
    directory: impl AsRef<Path>,
    progress: impl FnMut(BackupProgress),
) -> Result<RestoreReport> {
    let environment = RealEnvironment::new(RealOptions { backend: None, buffered: true })?;
    let result = restore_in(&**environment.storage(), backup.as_ref(), directory.as_ref(), progress);
    environment.shutdown();
    result
}

/// The same in a storage of the caller's.
#[doc(hidden)]
pub fn restore_in(
    storage: &dyn Storage,
    backup: &Path,
    directory: &Path,
    mut progress: impl FnMut(BackupProgress),
) -> Result<RestoreReport> {
    let manifest = Manifest::read(storage, backup)?;
    refuse_one_in_the_other(storage, directory, backup)?;
    begin_directory(storage, directory, backup)?;
    let mut state = BackupProgress { bytes: 0, bytes_expected: manifest.bytes() };
    let parents = manifest.files.iter().filter_map(|file| file.path.parent());
    let named = manifest.directories.iter().map(PathBuf::as_path);
    let directories: BTreeSet<&Path> =
        parents.chain(named).filter(|below| !below.as_os_str().is_empty()).collect();
    for below in &directories {
        let (made, like) = (directory.join(below), backup.join(below));
        storage.create_dir_all(&made)?;
        // One without files may not have come along when the backup was copied.
        if storage.exists(&like)? {
            storage.restrict_like(&made, &like)?;
        }
    }
    for file in &manifest.files {
        copy_file(storage, backup, file, &directory.join(&file.path), &mut |bytes| {
            state.bytes += bytes;
            progress(state);
        })?;
    }
    for below in directories.iter().rev() {
        storage.sync_dir(&directory.join(below))?;
    }
    storage.sync_dir(directory)?;
    finish_directory(storage, directory)?;
    Ok(RestoreReport {
        directory: directory.to_owned(),
        files: manifest.files.len(),
        bytes: manifest.bytes(),
        end: manifest.end,
    })
}

fn copy_file(
    storage: &dyn Storage,
    backup: &Path,
    entry: &FileEntry,
    target: &Path,
    copied: &mut dyn FnMut(u64),
) -> Result<()> {
    let path = backup.join(&entry.path);
    let source = storage.open(&path, OpenHow::READ_ONLY.buffered())?;
    let found = source.len()?;
    if found != entry.bytes {
        let why = format!(
            "it has {found} bytes, the manifest says {}: the backup is damaged; use another one",
            entry.bytes
        );
        return Err(failed(&path, why));
    }
    let how = OpenHow::CREATE_NEW.buffered();
    let copy = storage.open(target, if entry.private { how.private() } else { how })?;
    let mut buffer = AlignedBuf::zeroed(STRETCH);
    let (mut at, mut sum) = (0, 0);
    while at < entry.bytes {
        let stretch = &mut buffer[..(entry.bytes - at).min(STRETCH as u64) as usize];
        source.read_at(stretch, at)?;
        sum = crc32c::crc32c_append(sum, stretch);
        copy.write_at(stretch, at)?;
        at += stretch.len() as u64;
        copied(stretch.len() as u64);
    }
    if sum != entry.crc32c {
        let why = format!(
            "its checksum is {sum:08x}, the manifest says {:08x}: the backup is damaged; use another one",
            entry.crc32c
        );
        return Err(failed(&path, why));
    }
    copy.sync_data()?;
    Ok(())
}
