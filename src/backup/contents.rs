//! What a finished backup consists of, for programs that keep it elsewhere.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use disk::{Environment, RealEnvironment, RealOptions, Storage};

use super::manifest::{Manifest, path_of_changes};
use super::page_list::PAGE_LIST;
use super::{INCOMPLETE, MANIFEST, failed};
use crate::error::Result;
use crate::small_file::read_whole;

/// The files of a finished backup and what they must be. A copy of a backup is one when it has all of these
/// files, and then the manifest, which is to be the last: a directory without it is no backup.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupContents {
    /// The manifest as it is stored, [`BackupContents::MANIFEST`].
    pub manifest: Vec<u8>,
    /// Every other file.
    pub files: Vec<BackupFile>,
    /// Directories below its own, of which some may have no files.
    pub directories: Vec<PathBuf>,
    /// The backup that this one adds to, which restoring it needs.
    pub base: Option<BackupBase>,
    /// LSN up to which everything is there.
    pub end: u64,
    /// CRC-32C of the manifest's text without its last line: what a backup that adds to this one knows it by.
    pub checksum: u32,
}

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupFile {
    /// In the backup's directory: names only, nothing that leads out of it.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// CRC-32C of all of it.
    pub crc32c: u32,
    /// Nobody but its owner may read it.
    pub is_private: bool,
}

/// The backup that an incremental one adds to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupBase {
    /// Where it was.
    pub directory: PathBuf,
    /// Its name, one word, if it lay beside the other one; it is looked for there, too.
    pub beside: Option<PathBuf>,
    /// Its [`BackupContents::checksum`].
    pub checksum: u32,
}

impl BackupContents {
    /// Name of the file that makes a directory a backup.
    pub const MANIFEST: &'static str = MANIFEST;
    /// Name of the file that marks a directory as something that is not finished.
    pub const INCOMPLETE: &'static str = INCOMPLETE;
    /// Name under which a copy may write the manifest before it is renamed.
    pub const MANIFEST_NEW: &'static str = "#untorn.backup.new";

    /// Of the finished backup in a directory. Only its manifest is read.
    ///
    /// # Errors
    /// No finished backup; a damaged manifest.
    pub fn of(directory: impl AsRef<Path>) -> Result<BackupContents> {
        let directory = directory.as_ref();
        let environment = RealEnvironment::new(RealOptions { backend: None, buffered: true })?;
        let read = read_manifest(&**environment.storage(), directory);
        environment.shutdown();
        BackupContents::parse(read?).map_err(|why| failed(&directory.join(MANIFEST), why))
    }

    /// Of a backup whose manifest has this text, wherever that is.
    ///
    /// # Errors
    /// Why it is no manifest.
    pub fn parse(text: Vec<u8>) -> Result<BackupContents, String> {
        let manifest = Manifest::parse(&text)?;
        let mut files: Vec<BackupFile> = Vec::with_capacity(manifest.files.len() + 1);
        for file in &manifest.files {
            let (path, bytes, crc32c) = match (&file.changed, file.tablespace) {
                // Nothing of it has changed, so there is no file of changes.
                (Some(changed), _) if changed.bytes == 0 => continue,
                (Some(changed), Some(space)) => {
                    (path_of_changes(&file.path, space.id), changed.bytes, changed.crc32c)
                }
                (Some(_), None) => {
                    return Err(format!("{} has changed pages but no tablespace", file.path.display()));
                }
                (None, _) => (file.path.clone(), file.bytes, file.crc32c),
            };
            files.push(BackupFile { path, bytes, crc32c, is_private: file.private });
        }
        if let Some(list) = &manifest.page_list {
            let (path, bytes, crc32c) = (PAGE_LIST.into(), list.bytes, list.crc32c);
            files.push(BackupFile { path, bytes, crc32c, is_private: false });
        }
        let mut names: BTreeSet<&Path> = [MANIFEST, INCOMPLETE, Self::MANIFEST_NEW].map(Path::new).into();
        if let Some(file) = files.iter().find(|file| !names.insert(&file.path)) {
            return Err(format!("it names {} twice", file.path.display()));
        }
        let is_name = |beside: &PathBuf| {
            let mut parts = beside.components();
            matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
        };
        let base = manifest.base.map(|base| BackupBase {
            directory: base.directory,
            beside: base.beside.filter(is_name),
            checksum: base.manifest_crc32c,
        });
        let Manifest { directories, end, checksum, .. } = manifest;
        Ok(BackupContents { manifest: text, files, directories, base, end, checksum })
    }

    /// Bytes of all its files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().fold(self.manifest.len() as u64, |sum, file| sum.saturating_add(file.bytes))
    }
}

fn read_manifest(storage: &dyn Storage, directory: &Path) -> Result<Vec<u8>> {
    Manifest::read(storage, directory)?;
    if storage.exists(&directory.join(INCOMPLETE))? {
        return Err(failed(directory, "it is a backup that was not finished: use another one"));
    }
    read_whole(storage, &directory.join(MANIFEST))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn text(manifest: &str) -> Vec<u8> {
        format!("{manifest}\n{:08x}\n", crc32c::crc32c(manifest.as_bytes())).into_bytes()
    }

    /// Two writers of one file would each find their own bytes right.
    #[test]
    fn a_file_that_is_named_twice_is_refused() {
        let of = |paths: [&str; 2]| {
            let files = paths.map(|path| format!(r#"{{"path": "{path}", "bytes": 3, "crc32c": 7}}"#));
            let files = files.join(", ");
            text(&format!(
                r#"{{"format": 1, "written_by": "x", "checkpoint": 1, "end": 2, "files": [{files}]}}"#
            ))
        };
        assert_eq!(BackupContents::parse(of(["shop/a.ibd", "shop/b.ibd"])).unwrap().files.len(), 2);
        for twice in [["a", "a"], ["a", MANIFEST], ["a", INCOMPLETE], ["a", BackupContents::MANIFEST_NEW]] {
            let why = BackupContents::parse(of(twice)).unwrap_err();
            assert!(why.contains("twice"), "{why}");
        }
    }
}
