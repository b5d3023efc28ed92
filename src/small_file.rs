//! Small files, read and replaced whole.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use disk::Storage;

use crate::error::Error;

/// Replaces a small file whole: new file, sync, rename, directory sync. After a crash the old or the new
/// content is there.
pub fn write_atomically(storage: &dyn Storage, path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let fresh = write_beside(storage, path, bytes)?;
    if let Err(error) = storage.rename(&fresh, path) {
        give_up(storage, &fresh);
        return Err(error.into());
    }
    if let Some(parent) = path.parent() {
        storage.sync_dir(parent)?;
    }
    Ok(())
}

/// The first half of it: the new content, durable under another name, which is returned. That name is no
/// longer than a file's may be, however long the other one is.
fn write_beside(storage: &dyn Storage, path: &Path, bytes: &[u8]) -> Result<PathBuf, Error> {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    let fresh = path.with_file_name(format!("#untorn-{:016x}.new", hasher.finish()));
    if storage.exists(&fresh)? {
        storage.remove(&fresh)?;
    }
    let file = storage.open(&fresh, disk::OpenHow::CREATE_NEW.buffered())?;
    if let Err(error) = file.write_at(bytes, 0).and_then(|()| file.sync_data()) {
        drop(file);
        give_up(storage, &fresh);
        return Err(error.into());
    }
    Ok(fresh)
}

/// What was not finished is of no use, and takes room that a full disk has not. If it cannot be removed
/// either, the next attempt does it.
fn give_up(storage: &dyn Storage, fresh: &Path) {
    if let Err(error) = storage.remove(fresh) {
        tracing::debug!(%error, "a file that was not finished stays");
    }
}

/// Nothing that we wrote as a hint is longer.
const HINT_BYTES_MAX: u64 = 4096;

/// The text of a file that is a hint only: one that is missing, damaged or not ours says nothing.
pub(crate) fn read_hint(storage: &dyn Storage, path: &Path) -> Option<String> {
    if !storage.exists(path).ok()? {
        return None;
    }
    let file = storage.open(path, disk::OpenHow::READ_ONLY.buffered().by_this_name()).ok()?;
    let length = file.len().ok().filter(|length| *length <= HINT_BYTES_MAX)?;
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    file.read_at(&mut bytes, 0).ok()?;
    String::from_utf8(bytes).ok()
}

/// A small file's content, whole.
pub fn read_whole(storage: &dyn Storage, path: &Path) -> Result<Vec<u8>, Error> {
    let file = storage.open(path, disk::OpenHow::READ_ONLY.buffered())?;
    let len = usize::try_from(file.len()?).unwrap_or(usize::MAX);
    let mut bytes = vec![0; len];
    file.read_at(&mut bytes, 0)?;
    Ok(bytes)
}
