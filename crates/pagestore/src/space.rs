//! Tablespaces: which files are open, and how large they are (how they grow: [`crate::growth`]).
//!
//! The hot path finds a page through the lock-free [`SpaceDirectory`]; everything about files goes through the
//! registry's lock.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use disk::{AlignedBuf, File, OpenHow, Storage};
use parking_lot::{Mutex, RwLock};

use crate::checksum;
use crate::error::Error;
use crate::growth::Growth;
use crate::page::{self, PageSize};
use crate::page_table::{self, SpaceDirectory};

/// Bytes of one write of zeros.
const ZEROS_LEN: usize = 1 << 20;
/// Offset of the tablespace id in the FSP header of page 0.
const FSP_SPACE_ID: usize = 38;
/// Offset of the tablespace flags in page 0.
const FSP_FLAGS: usize = 54;

/// What is known of an open tablespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpaceInfo {
    /// Tablespace id.
    pub id: u32,
    /// Its file.
    pub path: PathBuf,
    /// Size of the file in pages.
    pub pages: u32,
    /// Tablespace flags of page 0 when it was opened (0 for a new one).
    pub flags: u32,
}

/// One open tablespace.
pub(crate) struct Space {
    pub(crate) id: u32,
    pub(crate) file: Arc<dyn File>,
    path: Mutex<PathBuf>,
    pages: AtomicU32,
    flags: u32,
    dropped: AtomicBool,
    pub(crate) growth: Mutex<Growth>,
}

impl Space {
    pub(crate) fn path(&self) -> PathBuf {
        self.path.lock().clone()
    }

    /// Size in pages.
    pub(crate) fn pages(&self) -> u32 {
        self.pages.load(Ordering::Acquire)
    }

    /// The file is so long now, durably.
    pub(crate) fn has_grown(&self, pages: u32) {
        self.pages.fetch_max(pages, Ordering::AcqRel);
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    pub(crate) fn mark_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }

    fn info(&self) -> SpaceInfo {
        SpaceInfo { id: self.id, path: self.path(), pages: self.pages(), flags: self.flags }
    }

    /// Makes sure the page lies inside the file.
    pub(crate) fn check_bounds(&self, page: u32) -> Result<(), Error> {
        let pages = self.pages();
        if page < pages {
            return Ok(());
        }
        Err(Error::Corrupt {
            file: self.path(),
            page: disk::PageId::new(self.id, page),
            why: format!("the file has only {pages} pages; something points beyond its end"),
        })
    }
}

/// All open tablespaces.
pub(crate) struct SpaceRegistry {
    pub(crate) directory: SpaceDirectory,
    open: RwLock<HashMap<u32, Arc<Space>>>,
    page_size: PageSize,
    /// What files are made longer with; allocated by the first that is.
    zeros: OnceLock<Arc<AlignedBuf>>,
}

impl SpaceRegistry {
    pub(crate) fn new(page_size: PageSize) -> Self {
        Self { directory: SpaceDirectory::new(), open: RwLock::default(), page_size, zeros: OnceLock::new() }
    }

    pub(crate) fn get(&self, space: u32) -> Result<Arc<Space>, Error> {
        self.open.read().get(&space).cloned().ok_or(Error::NoSuchSpace(space))
    }

    pub(crate) fn info(&self, space: u32) -> Option<SpaceInfo> {
        self.open.read().get(&space).map(|space| space.info())
    }

    pub(crate) fn all(&self) -> Vec<SpaceInfo> {
        let mut all: Vec<_> = self.open.read().values().map(|space| space.info()).collect();
        all.sort_by_key(|space| space.id);
        all
    }

    /// The open files, with their present names, by id.
    pub(crate) fn files(&self) -> Vec<(u32, PathBuf, Arc<dyn File>)> {
        let file = |space: &Arc<Space>| (space.id, space.path(), space.file.clone());
        let mut files: Vec<_> = self.open.read().values().map(file).collect();
        files.sort_by_key(|(id, ..)| *id);
        files
    }

    fn register(
        &self,
        id: u32,
        path: &Path,
        file: Arc<dyn File>,
        pages: u32,
        flags: u32,
    ) -> Result<SpaceInfo, Error> {
        check_id(id, path)?;
        let mut open = self.open.write();
        if let Some(other) = open.get(&id) {
            return Err(Error::Tablespace {
                file: path.to_owned(),
                why: format!("its tablespace id {id} is already used by {}", other.path().display()),
            });
        }
        let space = Arc::new(Space {
            id,
            file,
            path: Mutex::new(path.to_owned()),
            pages: AtomicU32::new(pages),
            flags,
            dropped: AtomicBool::new(false),
            growth: Mutex::default(),
        });
        self.directory.insert(id);
        let info = space.info();
        open.insert(id, space);
        Ok(info)
    }

    /// Creates a file of `pages` zero pages, durable with its name, and opens it.
    pub(crate) fn create(
        &self,
        storage: &dyn Storage,
        id: u32,
        path: &Path,
        pages: u32,
    ) -> Result<(), Error> {
        check_id(id, path)?;
        if self.info(id).is_some() {
            return Err(Error::Tablespace {
                file: path.to_owned(),
                why: format!("tablespace id {id} is in use"),
            });
        }
        let file = storage.open(path, OpenHow::CREATE_NEW)?;
        let made = file
            .write_zeros(0, self.page_size.offset_of(pages))
            .and_then(|()| file.sync_data())
            .and_then(|()| path.parent().map_or(Ok(()), |directory| storage.sync_dir(directory)));
        if let Err(error) = made {
            // The half-made file is of no use; its removal failing too changes nothing for the caller.
            drop(file);
            let _ = storage.remove(path);
            return Err(no_space(path, error));
        }
        self.register(id, path, file, pages, 0).map(drop)
    }

    /// Opens a file. With `check`, page 0 must be valid, or all zero; recovery opens without.
    pub(crate) fn open(
        &self,
        storage: &dyn Storage,
        id: u32,
        path: &Path,
        check: bool,
    ) -> Result<SpaceInfo, Error> {
        let file = storage.open(path, OpenHow::EXISTING)?;
        let len = file.len()?;
        let pages = u32::try_from(len >> self.page_size.shift()).unwrap_or(u32::MAX);
        let refuse = |why: String| Error::Tablespace { file: path.to_owned(), why };
        if len % self.page_size.bytes() as u64 != 0 && check {
            return Err(refuse(format!(
                "its size of {len} bytes is no multiple of the page size of {} bytes; it was cut, or innodb_page_size differs",
                self.page_size.bytes()
            )));
        }
        let mut flags = 0;
        if check {
            if pages == 0 {
                return Err(refuse("it is empty".into()));
            }
            let mut first = AlignedBuf::zeroed(self.page_size.bytes());
            file.read_at(&mut first, 0)?;
            let header = check_first_page(&first, self.page_size).map_err(refuse)?;
            if let Some(header) = header {
                if header.space != id {
                    return Err(refuse(format!("it says it is tablespace {}, expected {id}", header.space)));
                }
                flags = header.flags;
            }
        }
        self.register(id, path, file, pages, flags)
    }

    /// Takes a tablespace out; its pages must be gone from the pool.
    pub(crate) fn remove(&self, id: u32) {
        if self.open.write().remove(&id).is_some() {
            self.directory.remove(id);
        }
    }

    pub(crate) fn rename(&self, storage: &dyn Storage, id: u32, to: &Path) -> Result<(), Error> {
        let space = self.get(id)?;
        let mut path = space.path.lock();
        storage.rename(&path, to)?;
        // It has the name from here on, though that may not be durable yet.
        let from = std::mem::replace(&mut *path, to.to_owned());
        for directory in [from.parent(), to.parent()].into_iter().flatten() {
            storage.sync_dir(directory)?;
        }
        Ok(())
    }

    /// Makes the file at least `pages` long, blocking; for recovery, which ends with the error if there is one.
    pub(crate) fn extend_blocking(&self, id: u32, pages: u32) -> Result<(), Error> {
        let space = self.get(id)?;
        let before = space.pages();
        if before < pages {
            let (from, to) = (self.page_size.offset_of(before), self.page_size.offset_of(pages));
            space
                .file
                .write_zeros(from, to)
                .and_then(|()| space.file.sync_data())
                .map_err(|error| no_space(&space.path(), error))?;
            space.pages.store(pages, Ordering::Release);
        }
        Ok(())
    }

    /// What files are made longer with.
    pub(crate) fn zeros(&self) -> Arc<AlignedBuf> {
        self.zeros.get_or_init(|| Arc::new(AlignedBuf::zeroed(ZEROS_LEN))).clone()
    }
}

/// A refusal for lack of room as such, every other error as it is.
pub(crate) fn no_space(path: &Path, error: disk::Error) -> Error {
    if error.kind() == std::io::ErrorKind::StorageFull || error.kind() == std::io::ErrorKind::QuotaExceeded {
        return Error::NoSpace { file: path.to_owned(), why: error.to_string() };
    }
    Error::Io(error)
}

/// Refuses ids that no tablespace has.
fn check_id(id: u32, path: &Path) -> Result<(), Error> {
    if page_table::is_possible(id) {
        return Ok(());
    }
    let why =
        format!("tablespace id {id} is larger than any that was ever given out; what names it is damaged");
    Err(Error::Tablespace { file: path.to_owned(), why })
}

/// What page 0 of a tablespace says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpaceHeader {
    /// Tablespace id.
    pub space: u32,
    /// Tablespace flags.
    pub flags: u32,
}

/// Reads page 0 of a tablespace file that need not be open: which tablespace it is. `None` when page 0 was never
/// written.
///
/// # Errors
/// When the file cannot be read, or its page 0 is damaged or of a kind this engine does not open.
pub fn identify_space(
    storage: &dyn Storage,
    path: &Path,
    page_size: PageSize,
) -> Result<Option<SpaceHeader>, Error> {
    let refuse = |why: String| Error::Tablespace { file: path.to_owned(), why };
    let file = storage.open(path, OpenHow::READ_ONLY)?;
    if file.len()? < page_size.bytes() as u64 {
        return Err(refuse(format!("it is shorter than one page of {} bytes", page_size.bytes())));
    }
    let mut first = AlignedBuf::zeroed(page_size.bytes());
    file.read_at(&mut first, 0)?;
    check_first_page(&first, page_size).map_err(refuse)
}

/// Checks page 0 (format notes §2.2, §2.4, §11.5). `None` when it is all zero.
fn check_first_page(bytes: &[u8], page_size: PageSize) -> Result<Option<SpaceHeader>, String> {
    if page::is_all_zero(bytes) {
        return Ok(None);
    }
    let flags = page::u32_at(bytes, FSP_FLAGS);
    let space = page::space_id(bytes);
    // Looked at before the checksum: these files have it elsewhere.
    if flags & 0x10 != 0 && page::page_type(bytes) == page::kind::FSP_HDR {
        return Err(format!(
            "it is in MariaDB's full_crc32 format (flags {flags:#x}); rebuild it there with \
             innodb_checksum_algorithm=crc32 before importing it"
        ));
    }
    checksum::verify(bytes).map_err(|why| format!("page 0: {why}"))?;
    if page::page_type(bytes) != page::kind::FSP_HDR || page::page_number(bytes) != 0 {
        return Err(format!(
            "page 0 has type {} and number {}, expected type {} and number 0",
            page::page_type(bytes),
            page::page_number(bytes),
            page::kind::FSP_HDR
        ));
    }
    if page::u32_at(bytes, FSP_SPACE_ID) != space {
        return Err(format!(
            "page 0 says tablespace {space} in its header and {} in its FSP header",
            page::u32_at(bytes, FSP_SPACE_ID)
        ));
    }
    check_flags(flags, page_size)?;
    Ok(Some(SpaceHeader { space, flags }))
}

/// Tablespace flags this engine opens: DYNAMIC, uncompressed, unencrypted, of our page size; the DATA_DIR bit and
/// MySQL 8.0's SDI bit are accepted.
fn check_flags(flags: u32, page_size: PageSize) -> Result<(), String> {
    const DYNAMIC: u32 = 0x21;
    const PAGE_SIZE: u32 = 0xF << 6;
    const DATA_DIR: u32 = 1 << 10;
    const SDI: u32 = 1 << 14;
    if flags & PAGE_SIZE != page_size.flag_bits() {
        return Err(format!(
            "its flags {flags:#x} say another page size than innodb_page_size={}",
            page_size.bytes()
        ));
    }
    if flags & 0x1E != 0 {
        return Err(format!(
            "ROW_FORMAT=COMPRESSED (flags {flags:#x}) is not supported; rebuild it as DYNAMIC"
        ));
    }
    if flags & DYNAMIC != DYNAMIC {
        return Err(format!(
            "ROW_FORMAT=COMPACT or REDUNDANT (flags {flags:#x}) is not supported; rebuild it as DYNAMIC"
        ));
    }
    let unknown = flags & !(DYNAMIC | PAGE_SIZE | DATA_DIR | SDI);
    if unknown != 0 {
        return Err(format!(
            "its flags {flags:#x} have bits this engine does not know ({unknown:#x}: encrypted, shared, temporary or \
             page-compressed)"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dynamic_files_of_our_page_size_are_taken() {
        let size = PageSize::DEFAULT;
        for good in [0x21, 0x421, 0x4021] {
            assert_eq!(check_flags(good, size), Ok(()), "{good:#x}");
        }
        for bad in [0x0, 0x1, 0x20, 0x23, 0x2021, 0x1_0021, 0x821, 0x1021, 0xE1] {
            assert!(check_flags(bad, size).is_err(), "{bad:#x}");
        }
        for (bytes, flags) in
            [(4096, 0x21 | 3 << 6), (8192, 0x21 | 4 << 6), (32768, 0x21 | 6 << 6), (65536, 0x21 | 7 << 6)]
        {
            let size = PageSize::new(bytes).unwrap_or_default();
            assert_eq!(check_flags(flags, size), Ok(()), "{bytes}");
            assert!(check_flags(0x21, size).is_err());
        }
    }
}
