//! What a backup consists of: JSON for people, and a last line with its checksum.

use std::path::{Component, Path, PathBuf};

use disk::Storage;
use serde::{Deserialize, Serialize};

use super::{MANIFEST, failed};
use crate::catalog::{read_whole, write_atomically};
use crate::error::{Error, Result};

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
    pub files: Vec<FileEntry>,
}

/// A file of the backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileEntry {
    /// In the backup, and in the data directory that is made of it.
    pub path: PathBuf,
    pub bytes: u64,
    pub crc32c: u32,
}

impl Manifest {
    pub fn new(checkpoint: u64, end: u64, files: Vec<FileEntry>) -> Manifest {
        Manifest { format: FORMAT, written_by: env!("CARGO_PKG_VERSION").to_owned(), checkpoint, end, files }
    }

    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
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
        let manifest: Manifest = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        if manifest.format > FORMAT {
            return Err(format!(
                "it is of format {} (written by version {}), this version knows formats up to {FORMAT}: restore it with the newer version",
                manifest.format, manifest.written_by
            ));
        }
        // What it names is written below the target, and nowhere else.
        let stays_inside = |path: &Path| {
            path.components().next().is_some()
                && path.components().all(|part| matches!(part, Component::Normal(_)))
        };
        match manifest.files.iter().find(|file| !stays_inside(&file.path)) {
            Some(file) => Err(format!("it names {}, which lies outside of it", file.path.display())),
            None => Ok(manifest),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn text(path: &str) -> Vec<u8> {
        let file = FileEntry { path: PathBuf::from(path), bytes: 3, crc32c: 7 };
        let mut text = serde_json::to_vec_pretty(&Manifest::new(1, 2, vec![file])).unwrap();
        let sum = crc32c::crc32c(&text);
        text.extend_from_slice(format!("\n{sum:08x}\n").as_bytes());
        text
    }

    #[test]
    fn a_changed_or_cut_manifest_is_refused() {
        let good = text("shop/item.ibd");
        assert!(Manifest::parse(&good).is_ok());
        for at in 0..good.len() {
            assert!(Manifest::parse(&good[..at]).is_err(), "cut at {at}");
            let mut other = good.clone();
            other[at] ^= 1;
            assert!(Manifest::parse(&other).is_err(), "changed at {at}");
        }
    }

    #[test]
    fn a_manifest_that_leads_elsewhere_is_refused() {
        for path in ["../item.ibd", "/etc/passwd", "", "shop/../../x"] {
            assert!(Manifest::parse(&text(path)).is_err(), "{path}");
        }
    }
}
