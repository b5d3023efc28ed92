//! Making a data directory of a backup.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{AlignedBuf, Environment, File, OpenHow, RealEnvironment, RealOptions, Storage};

use super::copy::refuse_one_in_the_other;
use super::incremental::Chain;
use super::manifest::FileEntry;
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
/// what the backup's manifest says of it. An incremental backup is put together with those it adds to, which
/// must be where they were when it was made, or beside it if they were then. The backups stay as they are.
/// Opening the directory then recovers it. Blocks for the files.
///
/// # Errors
/// A backup that is not finished or damaged, or whose base is missing; a target that is not empty or cannot
/// be written. The target is then marked as incomplete and may be removed.
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
    let chain = Chain::read(storage, backup)?;
    let manifest = chain.newest();
    for source in chain.directories() {
        refuse_one_in_the_other(storage, directory, source)?;
    }
    begin_directory(storage, directory, backup)?;
    let mut state = BackupProgress { bytes: 0, bytes_expected: manifest.bytes() };
    let parents = manifest.files.iter().filter_map(|file| file.path.parent());
    let named = manifest.directories.iter().map(PathBuf::as_path);
    let directories: BTreeSet<&Path> =
        parents.chain(named).filter(|below| !below.as_os_str().is_empty()).collect();
    for below in &directories {
        let made = directory.join(below);
        storage.create_dir_all(&made)?;
        for like in chain.directories().map(|backup| backup.join(below)) {
            // One without files may not have come along when the backup was copied.
            if storage.exists(&like)? {
                storage.restrict_like(&made, &like)?;
            }
        }
    }
    for file in &manifest.files {
        let mut done = |bytes| {
            state.bytes += bytes;
            progress(state);
        };
        let target = directory.join(&file.path);
        match file.tablespace {
            Some(space) if file.changed.is_some() => {
                put_together(storage, &chain, space.id, file, &target, &mut done)?;
            }
            _ => drop(copy_file(storage, backup, file, file.bytes, &target, &mut done)?),
        }
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

/// A tablespace from the backup that has the whole of it and the changed pages of those since.
fn put_together(
    storage: &dyn Storage,
    chain: &Chain,
    id: u32,
    entry: &FileEntry,
    target: &Path,
    done: &mut dyn FnMut(u64),
) -> Result<()> {
    let layers = chain.layers(id)?;
    // What was cut off since is not written first: there may be no room for it.
    let keep = layers.iter().map(|layer| layer.file.bytes).min().unwrap_or(0);
    let (mut copy, mut base_bytes) = (None, 0);
    for layer in &layers {
        match (&copy, &layer.file.changed) {
            (None, None) => {
                copy = Some(copy_file(storage, layer.directory, layer.file, keep, target, &mut |_| {})?);
            }
            (Some(copy), Some(changed)) => layer.apply(storage, changed, base_bytes, &**copy)?,
            _ => return Err(failed(layer.directory, "its pages do not follow those of its base")),
        }
        base_bytes = layer.file.bytes;
    }
    let Some(copy) = copy else { return Err(failed(target, "no backup has the whole of it")) };
    let mut buffer = AlignedBuf::zeroed(STRETCH);
    let sum = sum_of(&*copy, entry.bytes, &mut buffer, |_, stretch| {
        done(stretch.len() as u64);
        Ok(())
    })?;
    refuse_another(target, sum, entry)?;
    copy.sync_data()?;
    Ok(())
}

/// The checksum of a file, of which each stretch is given on when it is read.
fn sum_of(
    file: &dyn File,
    bytes: u64,
    buffer: &mut AlignedBuf,
    mut with: impl FnMut(u64, &[u8]) -> Result<()>,
) -> Result<u32> {
    let (mut at, mut sum) = (0, 0);
    while at < bytes {
        let stretch = &mut buffer[..(bytes - at).min(STRETCH as u64) as usize];
        file.read_at(stretch, at)?;
        sum = crc32c::crc32c_append(sum, stretch);
        with(at, stretch)?;
        at += stretch.len() as u64;
    }
    Ok(sum)
}

fn refuse_another(path: &Path, sum: u32, entry: &FileEntry) -> Result<()> {
    if sum == entry.crc32c {
        return Ok(());
    }
    let why = format!(
        "its checksum is {sum:08x}, the manifest says {:08x}: the backup is damaged; use another one",
        entry.crc32c
    );
    Err(failed(path, why))
}

/// Copies a file, or what lies before `keep` of it; all of it is compared with the manifest.
fn copy_file(
    storage: &dyn Storage,
    backup: &Path,
    entry: &FileEntry,
    keep: u64,
    target: &Path,
    copied: &mut dyn FnMut(u64),
) -> Result<Arc<dyn File>> {
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
    let sum = sum_of(&*source, entry.bytes, &mut buffer, |at, stretch| {
        let kept = keep.saturating_sub(at).min(stretch.len() as u64) as usize;
        if kept > 0 {
            copy.write_at(&stretch[..kept], at)?;
        }
        copied(stretch.len() as u64);
        Ok(())
    })?;
    refuse_another(&path, sum, entry)?;
    copy.sync_data()?;
    Ok(copy)
}
