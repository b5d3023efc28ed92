//! The file to be imported: opened for reading only, and read in long stretches past the page cache.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{AlignedBuf, File, OpenHow, Storage};
use pagestore::PageSize;

use crate::error::{Error, Result};

/// Bytes read and written at once: large enough for a disk, small enough to be looked through without a pause
/// for others.
pub(super) const STRETCH_BYTES: usize = 1 << 20;

/// Offset of the tablespace flags in page 0.
const FSP_FLAGS: usize = 54;
/// Tablespace flags of ROW_FORMAT=DYNAMIC without the bits of the page size.
pub(super) const DYNAMIC: u32 = 0x21;
/// Bit of MariaDB's `full_crc32` format; in the other format it belongs to a size of compressed pages that
/// does not exist.
const FULL_CRC32: u32 = 1 << 4;
/// Bit of MySQL's flags: the file holds a copy of the dictionary (SDI).
const SDI: u32 = 1 << 14;
/// Bit of MySQL's flags: the file was made outside the data directory.
const DATA_DIR: u32 = 1 << 10;
/// Extents and descriptors of a new tablespace: no file is shorter.
const PAGES_MIN: u64 = 4;

/// How the pages of a file are sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seal {
    /// As ours.
    Crc32,
    /// As MariaDB's since 10.5.
    FullCrc32,
}

/// A tablespace file of somebody.
pub(super) struct Source {
    file: Arc<dyn File>,
    path: PathBuf,
    storage: Arc<dyn Storage>,
    pub page_size: PageSize,
    /// Pages of the file.
    pub pages: u32,
    pub seal: Seal,
    /// Tablespace id of its pages.
    pub space: u32,
    /// Whether it holds MySQL's copy of the dictionary, and its kind of off-page values.
    pub is_mysql: bool,
}

impl Source {
    /// Opens the file and looks at its first page.
    ///
    /// # Errors
    /// [`Error::ImportRefused`] with what is wrong, [`Error::SchemaMismatch`] for another page size or row
    /// format.
    pub async fn open(storage: &Arc<dyn Storage>, path: &Path, page_size: PageSize) -> Result<Source> {
        let file = storage.open(path, OpenHow::READ_ONLY)?;
        let len = file.len()?;
        let refuse = |why: String| Error::ImportRefused { file: path.to_owned(), why };
        let bytes = page_size.bytes() as u64;
        if len % bytes != 0 || len / bytes < PAGES_MIN || len / bytes > u64::from(u32::MAX) {
            return Err(refuse(format!(
                "its length of {len} bytes is not a multiple of the page size, {bytes} bytes"
            )));
        }
        let mut source = Source {
            file,
            path: path.to_owned(),
            storage: storage.clone(),
            page_size,
            pages: (len / bytes) as u32,
            seal: Seal::Crc32,
            space: 0,
            is_mysql: false,
        };
        let first = source.read(0, 1).await?;
        source.understand(&first)?;
        Ok(source)
    }

    /// Takes from page 0 what kind of file this is.
    fn understand(&mut self, first: &[u8]) -> Result<()> {
        let flags = page::u32_at(first, FSP_FLAGS);
        self.space = page::space_id(first);
        let mismatch = |why: &str| {
            Err(Error::SchemaMismatch {
                file: self.path.clone(),
                why: format!(
                    "its tablespace flags {flags:#x} say {why}, expected are {:#x} (ROW_FORMAT=DYNAMIC, pages of {} bytes)",
                    DYNAMIC | self.page_size.flag_bits(),
                    self.page_size.bytes()
                ),
            })
        };
        if page::page_type(first) != page::kind::FSP_HDR || self.space == 0 {
            return Err(self.refuse(0, "it is not the first page of a table's tablespace"));
        }
        if flags & FULL_CRC32 != 0 {
            self.seal = Seal::FullCrc32;
            if flags & 0xF != self.page_size.shift() - 9 {
                return mismatch("another page size");
            }
            if flags & !0x1F != 0 {
                return mismatch("compressed pages");
            }
        } else {
            self.is_mysql = flags & SDI != 0;
            if flags & (0xF << 6) != self.page_size.flag_bits() {
                return mismatch("another page size");
            }
            if flags & DYNAMIC != DYNAMIC || flags & 0x1E != 0 {
                return mismatch("another row format");
            }
            if flags & !(DYNAMIC | 0xF << 6 | SDI | DATA_DIR) != 0 {
                return mismatch("encrypted or compressed pages, or a shared tablespace");
            }
        }
        self.verify(first, 0)
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An error that names a page of the file.
    pub fn refuse(&self, number: u32, why: impl std::fmt::Display) -> Error {
        Error::ImportRefused { file: self.path.clone(), why: format!("page {number}: {why}") }
    }

    /// Pages of a stretch.
    pub fn stretch(&self) -> u32 {
        (STRETCH_BYTES / self.page_size.bytes()) as u32
    }

    /// Reads pages.
    pub async fn read(&self, first: u32, count: u32) -> Result<AlignedBuf> {
        let len = count as usize * self.page_size.bytes();
        Ok(disk::read_async(&*self.storage, &self.file, self.page_size.offset_of(first), len).await?)
    }

    /// Makes sure that a page is whole and in its place; a page that was never written is.
    pub fn verify(&self, bytes: &[u8], number: u32) -> Result<()> {
        let whole = match self.seal {
            Seal::Crc32 => page::verify(bytes),
            Seal::FullCrc32 => page::verify_full_crc32(bytes),
        };
        whole.map_err(|why| self.refuse(number, why))?;
        if number != 0 && page::is_all_zero(bytes) {
            return Ok(());
        }
        if page::page_number(bytes) != number {
            return Err(self.refuse(number, format!("its header says page {}", page::page_number(bytes))));
        }
        if self.seal == Seal::Crc32 && page::u32_at(bytes, page::FLUSH_LSN) != 0 {
            return Err(self.refuse(number, "it is encrypted"));
        }
        if page::space_id(bytes) != self.space {
            let (found, expected) = (page::space_id(bytes), self.space);
            return Err(
                self.refuse(number, format!("it belongs to tablespace {found}, page 0 to {expected}"))
            );
        }
        Ok(())
    }
}

/// Which pages are free, according to the descriptors: the pages with them come before those that they
/// describe.
#[derive(Default)]
pub(super) struct FreePages {
    descriptors: Vec<u8>,
}

impl FreePages {
    /// Offset of the first descriptor in its page.
    const DESCRIPTORS: usize = 150;
    /// Offsets in a descriptor.
    const STATE: usize = 20;
    const BITMAP: usize = 24;

    /// To be called for every page in turn.
    pub fn pass(&mut self, bytes: &[u8], number: u32) {
        if (number as usize).is_multiple_of(bytes.len()) {
            bytes.clone_into(&mut self.descriptors);
        }
    }

    /// Whether the page belongs to nobody.
    pub fn contains(&self, number: u32, page_size: PageSize) -> bool {
        let extent = page_size.extent_pages();
        let in_group = number % page_size.bytes() as u32;
        let len = Self::BITMAP + extent as usize / 4;
        let at = Self::DESCRIPTORS + (in_group / extent) as usize * len;
        let Some(descriptor) = self.descriptors.get(at..at + len) else { return false };
        let page = (in_group % extent) as usize;
        page::u32_at(descriptor, Self::STATE) == 0
            || descriptor[Self::BITMAP + page / 4] >> (2 * (page % 4)) & 1 != 0
    }
}
