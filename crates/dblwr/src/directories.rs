//! In which directories doublewrite files may hold copies that the next start needs.
//!
//! When `innodb_doublewrite_dir` changes from one start to the next, the copies of the last batches lie in
//! the directory of the start before. So the data directory keeps a small file that names the directory in
//! use. It is written before the first batch, and only after the pages have been restored from the directory
//! it named before: at every moment it names all directories whose copies may be needed. A crash between
//! restoring and writing it finds whole pages.
//!
//! One directory per line, the data directory itself is not named; no file: the data directory only.

use disk::{Error, OpenHow, Result, Storage};
use std::io;
use std::path::{Path, PathBuf};

const NAME: &str = "untorn-doublewrite-dir";
const NEW: &str = "untorn-doublewrite-dir.new";

/// Directories other than the data directory that were in use.
pub fn remembered(storage: &dyn Storage, data_directory: &Path) -> Result<Vec<PathBuf>> {
    let path = data_directory.join(NAME);
    if !storage.exists(&path)? {
        return Ok(Vec::new());
    }
    let file = storage.open(&path, OpenHow::READ_ONLY.buffered())?;
    let mut bytes = vec![0; usize::try_from(file.len()?).unwrap_or(0)];
    file.read_at(&mut bytes, 0)?;
    let text = String::from_utf8(bytes).map_err(|_| {
        let why = "it does not contain the name of a directory; remove it if innodb_doublewrite_dir was never changed";
        Error::new("understand", &path, io::Error::new(io::ErrorKind::InvalidData, why))
    })?;
    Ok(text.lines().filter(|line| !line.is_empty()).map(PathBuf::from).collect())
}

/// Remembers that doublewrite files are in `directory` from now on.
pub fn remember(storage: &dyn Storage, data_directory: &Path, directory: &Path) -> Result<()> {
    let wanted = if directory == data_directory { Vec::new() } else { vec![directory.to_owned()] };
    if remembered(storage, data_directory)? == wanted {
        return Ok(());
    }
    let (path, new) = (data_directory.join(NAME), data_directory.join(NEW));
    if wanted.is_empty() {
        storage.remove(&path)?;
    } else {
        if storage.exists(&new)? {
            storage.remove(&new)?;
        }
        let file = storage.open(&new, OpenHow::CREATE_NEW.buffered())?;
        let Some(name) = directory.to_str() else {
            let why = "innodb_doublewrite_dir must be a name in UTF-8";
            return Err(Error::new("use", directory, io::Error::new(io::ErrorKind::InvalidInput, why)));
        };
        file.write_at(format!("{name}\n").as_bytes(), 0)?;
        file.sync_data()?;
        storage.rename(&new, &path)?;
    }
    storage.sync_dir(data_directory)
}
