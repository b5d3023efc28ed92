//! What every page of a backup is known by: its LSN and a hash of all its bytes. The next backup compares
//! with it and copies the pages that differ ([`super::incremental`]). The hash is another one than the
//! checksums of pages and files, so that one notices what the other might not.
//!
//! The file is numbers, little endian: 8 bytes of LSN and 8 of XXH3 for each page of a tablespace, from page
//! 0 on, one tablespace behind the other. Where each begins, and the checksum of the whole file, is in the
//! manifest. That is 16 bytes a page, a thousandth of what it describes.

use std::path::Path;
use std::sync::Arc;

use disk::{AlignedBuf, File, IoBuf, OpenHow, Storage, read_async, sync_async, write_async};

use super::failed;
use super::manifest::{Manifest, PageListEntry, TablespaceEntry};
use crate::error::Result;

/// Its name in a backup. It does not become a part of the data directory.
pub(super) const PAGE_LIST: &str = "untorn.backup.pages";
/// Bytes written, and read, at once: some whole number of pages' marks.
const STRETCH: usize = PageMark::BYTES << 16;

/// What a page is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageMark {
    lsn: u64,
    hash: u64,
}

impl PageMark {
    const BYTES: usize = 16;

    pub fn of(page: &[u8]) -> PageMark {
        PageMark { lsn: page::lsn(page), hash: xxhash_rust::xxh3::xxh3_64(page) }
    }

    fn to_bytes(self) -> [u8; PageMark::BYTES] {
        (u128::from(self.hash) << 64 | u128::from(self.lsn)).to_le_bytes()
    }

    fn from_bytes(bytes: &[u8; PageMark::BYTES]) -> PageMark {
        let both = u128::from_le_bytes(*bytes);
        PageMark { lsn: both as u64, hash: (both >> 64) as u64 }
    }
}

/// The list of a backup that is being made.
pub(super) struct PageListWriter {
    file: Arc<dyn File>,
    /// What was not written yet.
    rest: Vec<u8>,
    at: u64,
    sum: u32,
}

impl PageListWriter {
    pub fn create(storage: &dyn Storage, target: &Path) -> Result<PageListWriter> {
        let file = storage.open(&target.join(PAGE_LIST), OpenHow::CREATE_NEW.buffered())?;
        Ok(PageListWriter { file, rest: Vec::new(), at: 0, sum: 0 })
    }

    /// Where the next mark will lie.
    pub fn position(&self) -> u64 {
        self.at + self.rest.len() as u64
    }

    pub async fn push(&mut self, storage: &dyn Storage, marks: &[PageMark]) -> Result<()> {
        for mark in marks {
            self.rest.extend_from_slice(&mark.to_bytes());
        }
        if self.rest.len() >= STRETCH { self.write_out(storage).await } else { Ok(()) }
    }

    async fn write_out(&mut self, storage: &dyn Storage) -> Result<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        self.sum = crc32c::crc32c_append(self.sum, &self.rest);
        let bytes = IoBuf::owned(AlignedBuf::copy_of(&self.rest));
        write_async(storage, &self.file, bytes, self.at, false).await?;
        self.at += self.rest.len() as u64;
        self.rest.clear();
        Ok(())
    }

    pub async fn finish(mut self, storage: &dyn Storage, page_bytes: usize) -> Result<PageListEntry> {
        self.write_out(storage).await?;
        sync_async(storage, &self.file).await?;
        Ok(PageListEntry { bytes: self.at, crc32c: self.sum, page_bytes: page_bytes as u64 })
    }
}

/// The list of a finished backup.
pub(super) struct PageList {
    file: Arc<dyn File>,
    bytes: u64,
}

impl PageList {
    /// Opens it, and compares it with the manifest. `go_on` is asked before each stretch.
    pub async fn open(
        storage: &dyn Storage,
        backup: &Path,
        manifest: &Manifest,
        page_bytes: usize,
        go_on: &(dyn Fn() -> Result<()> + Sync),
    ) -> Result<PageList> {
        let Some(entry) = &manifest.page_list else {
            return Err(failed(
                backup,
                "it was made by a version without incremental backups: make a full one first",
            ));
        };
        if entry.page_bytes != page_bytes as u64 {
            let why = format!("its pages have {} bytes, those here {page_bytes}", entry.page_bytes);
            return Err(failed(backup, why));
        }
        let path = backup.join(PAGE_LIST);
        let damaged =
            || failed(&path, "it is not what the manifest says: the backup is damaged; use another one");
        let pages = manifest.files.iter().filter_map(|file| file.tablespace);
        let pages = pages.fold(0, |sum, space| sum + u64::from(space.pages));
        let file = storage.open(&path, OpenHow::READ_ONLY.buffered())?;
        let bytes = file.len()?;
        if bytes != entry.bytes || bytes != pages * PageMark::BYTES as u64 {
            return Err(damaged());
        }
        let (mut at, mut sum) = (0, 0);
        while at < bytes {
            go_on()?;
            let stretch = read_async(storage, &file, at, (bytes - at).min(STRETCH as u64) as usize).await?;
            sum = crc32c::crc32c_append(sum, &stretch);
            at += stretch.len() as u64;
        }
        if sum == entry.crc32c { Ok(PageList { file, bytes }) } else { Err(damaged()) }
    }

    /// The marks of a tablespace's pages from this one on, as far as there are any.
    pub async fn marks(
        &self,
        storage: &dyn Storage,
        space: TablespaceEntry,
        first: u32,
        count: usize,
    ) -> Result<Vec<PageMark>> {
        let count = count.min(space.pages.saturating_sub(first) as usize);
        if count == 0 {
            return Ok(Vec::new());
        }
        let (bytes, at) = (count * PageMark::BYTES, u64::from(first) * PageMark::BYTES as u64);
        let at = space.marks_at.saturating_add(at);
        // A manifest is what somebody may have written; what lies behind the list is no mark.
        if at.saturating_add(bytes as u64) > self.bytes {
            return Err(failed(self.file.path(), "it is shorter than the manifest says: use another backup"));
        }
        let read = read_async(storage, &self.file, at, bytes).await?;
        Ok(read.as_chunks().0.iter().map(PageMark::from_bytes).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written_and_tells_pages_apart() {
        let mut page = [7; 4096];
        let mark = PageMark::of(&page);
        assert_eq!(PageMark::from_bytes(&mark.to_bytes()), mark);
        for at in [0, 16, 23, 2000, 4095] {
            page[at] ^= 1;
            assert_ne!(PageMark::of(&page), mark, "byte {at}");
            page[at] ^= 1;
        }
        assert_eq!(PageMark::of(&page), mark);
    }
}
