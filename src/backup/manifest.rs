//! What a backup consists of: JSON for people, and a last line with its checksum.

use std::path::{Component, Path, PathBuf};

use disk::Storage;
use serde::{Deserialize, Serialize};

use super::{MANIFEST, failed};
use crate::error::{Error, Result};
use crate::small_file::{read_whole, write_atomically};

/// Format of the manifest that this version writes, and the newest that it knows.
const FORMAT: u32 = 1;

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
    pub files: Vec<FileEntry>,
}

/// A file of the backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileEntry {
    /// In the backup, and in the data directory that is made of it.
    pub path: PathBuf,
    pub bytes: u64,
    pub crc32c: u32,
    /// Nobody but its owner may read it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
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
        Manifest { format: FORMAT, written_by, checkpoint, end, directories, files }
    }

    pub fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
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
        let text = read_whole(storage, &path)?;
        Manifest::parse(&text).map_err(|why| failed(&path, why))
    }

    fn parse(text: &[u8]) -> Result<Manifest, String> {
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
        let manifest: Manifest = serde_json::from_slice(body).map_err(|error| error.to_string())?;
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
        let file = FileEntry { path: PathBuf::from(path), bytes: 3, crc32c: 7, private: false };
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
        let mut text = br#"{"format": 2, "written_by": "9.9", "streams": []}"#.to_vec();
        let sum = crc32c::crc32c(&text);
        text.extend_from_slice(format!("\n{sum:08x}\n").as_bytes());
        let why = Manifest::parse(&text).unwrap_err();
        assert!(why.contains("format 2 (written by version 9.9)"), "{why}");
    }

    #[test]
    fn a_manifest_that_leads_elsewhere_is_refused() {
        for path in ["../item.ibd", "/etc/passwd", "", "shop/../../x"] {
            assert!(Manifest::parse(&text(path, "shop")).is_err(), "{path}");
            assert!(Manifest::parse(&text("shop/item.ibd", path)).is_err(), "directory {path}");
        }
    }
}
