//! What a backup consists of: JSON for people, and a last line with its checksum.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use disk::{OpenHow, Storage};
use serde::{Deserialize, Serialize};

use super::{MANIFEST, failed};
use crate::error::{Error, Result};
use crate::small_file::{read_whole, write_atomically};

/// The newest format of the manifest that this version knows: an incremental backup's. Others are written in
/// the first one, which every version restores.
const FORMAT: u32 = 2;
const FORMAT_WITHOUT_BASE: u32 = 1;
/// Bytes of a manifest at most: half a million tables. A longer one is not read into memory.
const LENGTH_MAX: u64 = 256 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    format: u32,
    written_by: String,
    /// LSN of the checkpoint that recovery begins at.
    pub checkpoint: u64,
    /// LSN up to which everything is there.
    pub end: u64,
    /// Directories of databases, of which some may have no tables.
    #[serde(default)]
    pub directories: Vec<PathBuf>,
    /// The backup that this one adds to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Base>,
    /// What every page of every tablespace is known by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_list: Option<PageListEntry>,
    pub files: Vec<FileEntry>,
    /// Of its text; what a backup that adds to this one knows it by.
    #[serde(skip)]
    pub checksum: u32,
    /// Where each tablespace is among the files.
    #[serde(skip)]
    tablespaces: HashMap<u32, usize>,
}

/// The backup that an incremental one adds to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Base {
    /// Where it was.
    pub directory: PathBuf,
    /// Its name, if it lies beside the incremental one: they may be moved together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<PathBuf>,
    /// Checksum of its manifest.
    pub manifest_crc32c: u32,
}

/// The file with the list of pages ([`super::page_list`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PageListEntry {
    pub bytes: u64,
    pub crc32c: u32,
    pub page_bytes: u64,
}

/// A tablespace of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TablespaceEntry {
    pub id: u32,
    pub pages: u32,
    /// Where its part of the list of pages begins.
    pub marks_at: u64,
}

/// The pages of a file that its base does not have. They lie one after the other, and each says its number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChangedEntry {
    pub bytes: u64,
    pub crc32c: u32,
    /// First page and number of pages that have become zero.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zeros: Vec<(u32, u32)>,
}

/// A file of the backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileEntry {
    /// In the backup, and in the data directory that is made of it.
    pub path: PathBuf,
    /// Of the whole file, also where only its changed pages are here.
    pub bytes: u64,
    pub crc32c: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tablespace: Option<TablespaceEntry>,
    /// In place of the whole file, what has changed since the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<ChangedEntry>,
    /// Nobody but its owner may read it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

impl FileEntry {
    pub fn whole(path: PathBuf, bytes: u64, crc32c: u32) -> FileEntry {
        FileEntry { path, bytes, crc32c, tablespace: None, changed: None, private: false }
    }

    /// Bytes of it that are in the backup itself.
    fn stored(&self) -> u64 {
        self.changed.as_ref().map_or(self.bytes, |changed| changed.bytes)
    }
}

/// Where the changed pages of a tablespace lie: not by its name, which may be as long as a name can be.
pub(crate) fn path_of_changes(path: &Path, id: u32) -> PathBuf {
    path.with_file_name(format!("#{id}.changed"))
}

/// What every format has, so that a newer one is told from a damaged one.
#[derive(Deserialize)]
struct Format {
    format: u32,
    written_by: String,
}

impl Manifest {
    pub fn new(checkpoint: u64, end: u64, directories: Vec<PathBuf>, files: Vec<FileEntry>) -> Manifest {
        let written_by = env!("CARGO_PKG_VERSION").to_owned();
        let (format, checksum) = (FORMAT_WITHOUT_BASE, 0);
        let (base, page_list) = (None, None);
        let tablespaces = HashMap::new();
        Manifest {
            format,
            written_by,
            checkpoint,
            end,
            directories,
            base,
            page_list,
            files,
            checksum,
            tablespaces,
        }
    }

    /// An incremental backup, if it has a base.
    pub fn with_pages(self, base: Option<Base>, page_list: PageListEntry) -> Manifest {
        let format = if base.is_some() { FORMAT } else { FORMAT_WITHOUT_BASE };
        Manifest { format, base, page_list: Some(page_list), ..self }
    }

    /// Bytes of the data directory that is made of it.
    pub fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }

    /// Bytes of its own files.
    pub fn stored_bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.stored()))
    }

    /// The file of a tablespace, which may have had another name then.
    pub fn tablespace(&self, id: u32) -> Option<&FileEntry> {
        self.tablespaces.get(&id).map(|at| &self.files[*at])
    }

    /// Writes it, durably.
    pub fn write(&self, storage: &dyn Storage, directory: &Path) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(self)
            .map_err(|error| Error::Internal(format!("a manifest cannot be written as JSON: {error}")))?;
        let sum = crc32c::crc32c(&text);
        text.extend_from_slice(format!("\n{sum:08x}\n").as_bytes());
        write_atomically(storage, &directory.join(MANIFEST), &text)
    }

    pub fn read(storage: &dyn Storage, directory: &Path) -> Result<Manifest> {
        let path = directory.join(MANIFEST);
        if !storage.exists(directory)? {
            return Err(failed(directory, "there is no such directory"));
        }
        if !storage.exists(&path)? {
            return Err(failed(
                directory,
                format!("it has no file {MANIFEST}: it is no backup, or one that was not finished"),
            ));
        }
        let bytes = storage.open(&path, OpenHow::READ_ONLY.buffered())?.len()?;
        if bytes > LENGTH_MAX {
            return Err(failed(&path, format!("it has {bytes} bytes, which is no manifest's length")));
        }
        let text = read_whole(storage, &path)?;
        Manifest::parse(&text).map_err(|why| failed(&path, why))
    }

    pub fn parse(text: &[u8]) -> Result<Manifest, String> {
        const TAIL: usize = "\n00000000\n".len();
        let (body, tail) = text.split_at(text.len().saturating_sub(TAIL));
        if tail != format!("\n{:08x}\n", crc32c::crc32c(body)).as_bytes() {
            return Err("its checksum is wrong: the backup is damaged; use another one".to_owned());
        }
        let manifest: Format = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        if manifest.format > FORMAT {
            return Err(format!(
                "it is of format {} (written by version {}), this version knows formats up to {FORMAT}: restore it with the newer version",
                manifest.format, manifest.written_by
            ));
        }
        let mut manifest: Manifest = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        manifest.checksum = crc32c::crc32c(body);
        for (at, file) in manifest.files.iter().enumerate() {
            let Some(space) = file.tablespace else { continue };
            if manifest.tablespaces.insert(space.id, at).is_some() {
                return Err(format!("it has two files of tablespace {}", space.id));
            }
        }
        // What it names is written below the target, and nowhere else.
        let stays_inside = |path: &Path| {
            path.components().next().is_some()
                && path.components().all(|part| matches!(part, Component::Normal(_)))
        };
        let paths = manifest.files.iter().map(|file| &file.path).chain(&manifest.directories);
        match paths.into_iter().find(|path| !stays_inside(path)) {
            Some(path) => Err(format!("it names {}, which lies outside it", path.display())),
            None => Ok(manifest),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn text(path: &str, directory: &str) -> Vec<u8> {
        let file = FileEntry::whole(PathBuf::from(path), 3, 7);
        let mut text =
            serde_json::to_vec_pretty(&Manifest::new(1, 2, vec![directory.into()], vec![file])).unwrap();
        let sum = crc32c::crc32c(&text);
        text.extend_from_slice(format!("\n{sum:08x}\n").as_bytes());
        text
    }

    #[test]
    fn a_changed_or_cut_manifest_is_refused() {
        let good = text("shop/item.ibd", "shop");
        assert!(Manifest::parse(&good).is_ok());
        for at in 0..good.len() {
            assert!(Manifest::parse(&good[..at]).is_err(), "cut at {at}");
            let mut other = good.clone();
            other[at] ^= 1;
            assert!(Manifest::parse(&other).is_err(), "changed at {at}");
        }
    }

    /// What else a later format says, nobody knows yet.
    #[test]
    fn a_manifest_of_a_newer_format_is_refused_by_its_number() {
        let mut text = br#"{"format": 3, "written_by": "9.9", "streams": []}"#.to_vec();
        let sum = crc32c::crc32c(&text);
        text.extend_from_slice(format!("\n{sum:08x}\n").as_bytes());
        let why = Manifest::parse(&text).unwrap_err();
        assert!(why.contains("format 3 (written by version 9.9)"), "{why}");
    }

    #[test]
    fn a_manifest_that_leads_elsewhere_is_refused() {
        for path in ["../item.ibd", "/etc/passwd", "", "shop/../../x"] {
            assert!(Manifest::parse(&text(path, "shop")).is_err(), "{path}");
            assert!(Manifest::parse(&text("shop/item.ibd", path)).is_err(), "directory {path}");
        }
    }
}
