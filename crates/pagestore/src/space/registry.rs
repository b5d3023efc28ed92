//! Tablespaces: which files are open, and how large they are (how they grow: [`crate::space::growth`]).
//!
//! The hot path finds a page through the lock-free [`SpaceDirectory`]; everything about files goes through
//! the registry's lock.
//!
//! A file is opened when its first page is wanted, not before: a start knows of ten thousand tables and
//! touches none. What is wrong with a file is therefore an error of those who use the tablespace, and of
//! nobody else. Its descriptor may be closed again meanwhile ([`OpenHow::closable`]); the limit on open
//! files (`innodb_open_files`) is kept by `disk::real::descriptors`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use disk::{AlignedBuf, File, OpenHow, Storage};
use parking_lot::{Mutex, RwLock};

use crate::error::Error;
use crate::pool::page_table::{self, SpaceDirectory};
use crate::space::first_page::{FSP_SIZE, check_first_page, check_space_id};
use crate::space::growth::Growth;
use crate::space::stamp::{self, Stamp};
use page::PageSize;

/// Bytes of one write of zeros.
const ZEROS_LEN: usize = 1 << 20;

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

/// One tablespace.
pub(crate) struct Space {
    pub(crate) id: u32,
    path: Mutex<PathBuf>,
    /// Its file, once it was needed.
    opened: OnceLock<Opened>,
    /// Size of the file; 0 until it is opened.
    pages: AtomicU32,
    /// Why it must not be used although there may be a file.
    unusable: OnceLock<Arc<str>>,
    /// The mark that its file has at least.
    expected: Option<Stamp>,
    /// Whether a page of it was written since the start.
    written: AtomicBool,
    /// How many want its file to stay as it is.
    held_still: AtomicUsize,
    dropped: AtomicBool,
    pub(crate) growth: Mutex<Growth>,
}

struct Opened {
    file: Arc<dyn File>,
    flags: u32,
}

/// What is looked at when a file is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Check {
    /// A file that comes from elsewhere: page 0 must be valid, or all zero.
    Stranger,
    /// A file that belongs here: as far as page 0 is valid, it must be this tablespace's, and the file as
    /// long as it says. What is wrong with page 0 itself is reported when it is read.
    Own,
    /// The same before its redo is applied.
    Recovery,
    /// Whatever there is, is taken.
    Nothing,
}

impl Space {
    pub(crate) fn path(&self) -> PathBuf {
        self.path.lock().clone()
    }

    /// Its file; for those who have the space from [`SpaceRegistry::get_open`].
    pub(crate) fn file(&self) -> &Arc<dyn File> {
        match self.opened.get() {
            Some(opened) => &opened.file,
            None => unreachable!("pages of a tablespace are used before its file is open"),
        }
    }

    /// Its file, if it was needed so far.
    pub(crate) fn file_if_open(&self) -> Option<&Arc<dyn File>> {
        self.opened.get().map(|opened| &opened.file)
    }

    /// Size in pages.
    pub(crate) fn pages(&self) -> u32 {
        self.pages.load(Ordering::Acquire)
    }

    /// The file has this length now, durably.
    pub(crate) fn has_grown(&self, pages: u32) {
        self.pages.fetch_max(pages, Ordering::AcqRel);
    }

    /// The file is cut to this number of pages, or was not after all. Only while its growth is marked as
    /// running.
    pub(crate) fn set_pages(&self, pages: u32) {
        self.pages.store(pages, Ordering::Release);
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    pub(crate) fn mark_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }

    /// Notes that a page is being written. True for the first one since the start.
    pub(crate) fn note_write(&self) -> bool {
        !self.written.load(Ordering::Relaxed) && !self.written.swap(true, Ordering::Relaxed)
    }

    /// From now on, or no longer, the file is to stay as it is.
    pub(crate) fn hold_still(&self, still: bool) {
        if still {
            self.held_still.fetch_add(1, Ordering::AcqRel);
        } else {
            self.held_still.fetch_sub(1, Ordering::AcqRel);
        }
    }

    pub(crate) fn is_held_still(&self) -> bool {
        self.held_still.load(Ordering::Acquire) > 0
    }

    fn info(&self) -> SpaceInfo {
        let flags = self.opened.get().map_or(0, |opened| opened.flags);
        SpaceInfo { id: self.id, path: self.path(), pages: self.pages(), flags }
    }

    /// Opens the file unless it is open.
    fn open(&self, storage: &dyn Storage, page_size: PageSize, check: Check) -> Result<(), Error> {
        if self.opened.get().is_some() {
            return Ok(());
        }
        // One at a time, and not while it is being renamed.
        let path = self.path.lock();
        if self.opened.get().is_some() {
            return Ok(());
        }
        if let Some(why) = self.unusable.get() {
            return Err(Error::Tablespace { file: path.clone(), why: why.to_string() });
        }
        let (opened, pages) = open_file(storage, self.id, &path, page_size, check, self.expected)?;
        self.pages.store(pages, Ordering::Release);
        let _ = self.opened.set(opened);
        Ok(())
    }

    /// Makes sure the page lies inside the file.
    pub(crate) fn check_bounds(&self, page: u32) -> Result<(), Error> {
        let pages = self.pages();
        if page < pages {
            return Ok(());
        }
        Err(Error::Corrupt {
            file: self.path(),
            page: page::PageId::new(self.id, page),
            why: format!("the file has only {pages} pages; something points beyond its end"),
        })
    }
}

/// All open tablespaces.
pub(crate) struct SpaceRegistry {
    pub(crate) directory: SpaceDirectory,
    known: RwLock<HashMap<u32, Arc<Space>>>,
    page_size: PageSize,
    /// Files are taken as they are (forced recovery).
    unchecked: bool,
    /// What files are made longer with; allocated by the first that is.
    zeros: OnceLock<Arc<AlignedBuf>>,
}

impl SpaceRegistry {
    pub(crate) fn new(page_size: PageSize, unchecked: bool) -> Self {
        let (directory, known) = (SpaceDirectory::new(), RwLock::default());
        Self { directory, known, page_size, unchecked, zeros: OnceLock::new() }
    }

    /// A tablespace, whose file need not be open.
    pub(crate) fn get(&self, space: u32) -> Result<Arc<Space>, Error> {
        self.known.read().get(&space).cloned().ok_or(Error::NoSuchSpace(space))
    }

    /// A tablespace with its file. The first who wants it opens it, which blocks for as long as that takes.
    pub(crate) fn get_open(&self, storage: &dyn Storage, space: u32) -> Result<Arc<Space>, Error> {
        let space = self.get(space)?;
        if space.opened.get().is_none() {
            space.open(storage, self.page_size, if self.unchecked { Check::Nothing } else { Check::Own })?;
        }
        Ok(space)
    }

    /// The same for recovery, which makes page 0 what it must be.
    pub(crate) fn get_for_recovery(&self, storage: &dyn Storage, space: u32) -> Result<Arc<Space>, Error> {
        let space = self.get(space)?;
        space.open(storage, self.page_size, if self.unchecked { Check::Nothing } else { Check::Recovery })?;
        Ok(space)
    }

    pub(crate) fn info(&self, space: u32) -> Option<SpaceInfo> {
        self.known.read().get(&space).map(|space| space.info())
    }

    pub(crate) fn all(&self) -> Vec<SpaceInfo> {
        let mut all: Vec<_> = self.known.read().values().map(|space| space.info()).collect();
        all.sort_by_key(|space| space.id);
        all
    }

    /// The files that are open, with their present names, by id.
    pub(crate) fn files(&self) -> Vec<(u32, PathBuf, Arc<dyn File>)> {
        let file = |space: &Arc<Space>| Some((space.id, space.path(), space.file_if_open()?.clone()));
        let mut files: Vec<_> = self.known.read().values().filter_map(file).collect();
        files.sort_by_key(|(id, ..)| *id);
        files
    }

    /// How many files are open.
    pub(crate) fn open_count(&self) -> usize {
        self.known.read().values().filter(|space| space.file_if_open().is_some()).count()
    }

    /// Makes a tablespace known, whose file is opened when it is needed.
    pub(crate) fn add(&self, id: u32, path: &Path, expected: Option<Stamp>) -> Result<(), Error> {
        self.register(id, path, None, expected).map(drop)
    }

    fn register(
        &self,
        id: u32,
        path: &Path,
        file: Option<(Opened, u32)>,
        expected: Option<Stamp>,
    ) -> Result<SpaceInfo, Error> {
        check_id(id, path)?;
        let mut known = self.known.write();
        if let Some(other) = known.get(&id) {
            return Err(Error::Tablespace {
                file: path.to_owned(),
                why: format!("its tablespace id {id} is already used by {}", other.path().display()),
            });
        }
        let (opened, pages) = match file {
            Some((opened, pages)) => (OnceLock::from(opened), pages),
            None => (OnceLock::new(), 0),
        };
        let space = Arc::new(Space {
            id,
            path: Mutex::new(path.to_owned()),
            opened,
            pages: AtomicU32::new(pages),
            unusable: OnceLock::new(),
            expected,
            written: AtomicBool::new(false),
            held_still: AtomicUsize::new(0),
            dropped: AtomicBool::new(false),
            growth: Mutex::default(),
        });
        self.directory.insert(id);
        let info = space.info();
        known.insert(id, space);
        Ok(info)
    }

    /// The tablespace must not be used, for this reason, unless its file is open already.
    pub(crate) fn refuse(&self, id: u32, why: &str) {
        if let Ok(space) = self.get(id) {
            let _ = space.unusable.set(why.into());
        }
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
        let file = storage.open(path, OpenHow::CREATE_NEW.closable())?;
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
        self.register(id, path, Some((Opened { file, flags: 0 }, pages)), None).map(drop)
    }

    /// Opens a file: page 0 must be valid, or all zero.
    pub(crate) fn open(&self, storage: &dyn Storage, id: u32, path: &Path) -> Result<SpaceInfo, Error> {
        let opened = open_file(storage, id, path, self.page_size, Check::Stranger, None)?;
        self.register(id, path, Some(opened), None)
    }

    /// Takes a tablespace out; its pages must be gone from the pool.
    pub(crate) fn remove(&self, id: u32) {
        if self.known.write().remove(&id).is_some() {
            self.directory.remove(id);
        }
    }

    pub(crate) fn rename(&self, storage: &dyn Storage, id: u32, to: &Path) -> Result<(), Error> {
        let space = self.get(id)?;
        let mut path = space.path.lock();
        match space.opened.get() {
            Some(opened) => opened.file.rename(storage, &path, to)?,
            None => storage.rename(&path, to)?,
        }
        // It has the name from here on, though that may not be durable yet.
        let from = std::mem::replace(&mut *path, to.to_owned());
        for directory in [from.parent(), to.parent()].into_iter().flatten() {
            storage.sync_dir(directory)?;
        }
        Ok(())
    }

    /// Makes the file at least `pages` long, blocking; for recovery, which ends with the error if there is
    /// one.
    pub(crate) fn extend_blocking(&self, storage: &dyn Storage, id: u32, pages: u32) -> Result<(), Error> {
        let space = self.get_for_recovery(storage, id)?;
        let before = space.pages();
        if before < pages {
            let (from, to) = (self.page_size.offset_of(before), self.page_size.offset_of(pages));
            let file = space.file();
            let zeros = |allocated| if allocated { Ok(()) } else { file.write_zeros(from, to) };
            file.allocate_zeros(from, to)
                .and_then(zeros)
                .and_then(|()| file.sync_data())
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

/// Opens the file of a tablespace. What it holds, and its size in pages.
fn open_file(
    storage: &dyn Storage,
    id: u32,
    path: &Path,
    page_size: PageSize,
    check: Check,
    expected: Option<Stamp>,
) -> Result<(Opened, u32), Error> {
    let refuse = |why: String| Error::Tablespace { file: path.to_owned(), why };
    let file = storage.open(path, OpenHow::EXISTING.closable()).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => refuse(MISSING.to_owned()),
        _ => Error::Io(error),
    })?;
    let len = file.len()?;
    let pages = u32::try_from(len >> page_size.shift()).unwrap_or(u32::MAX);
    if check == Check::Nothing {
        return Ok((Opened { file, flags: 0 }, pages));
    }
    if pages == 0 {
        return Err(refuse(format!("it has only {len} bytes. {WHAT_TO_DO}")));
    }
    // Our own files may end in a part of a page: a growth that found no room, or a crash in the middle of
    // one, leaves it. What was cut is found by the size that the header knows.
    if len % page_size.bytes() as u64 != 0 && check == Check::Stranger {
        return Err(refuse(format!(
            "its size of {len} bytes is no multiple of the page size of {} bytes; it was cut, or innodb_page_size differs. {WHAT_TO_DO}",
            page_size.bytes()
        )));
    }
    let mut first = AlignedBuf::zeroed(page_size.bytes());
    file.read_at(&mut first, 0)?;
    let header = match check_first_page(&first, page_size) {
        Ok(Some(header)) => header,
        Ok(None) => return Ok((Opened { file, flags: 0 }, pages)),
        Err(why) if check == Check::Stranger => return Err(refuse(why)),
        Err(_) => return Ok((Opened { file, flags: 0 }, pages)),
    };
    check_space_id(header, id).map_err(|why| refuse(format!("{why}. {WHAT_TO_DO}")))?;
    // A file grows before its header says so.
    let least = page::u32_at(&first, FSP_SIZE);
    if least > pages {
        return Err(refuse(format!(
            "it has {pages} pages and should have {least}: it was cut. {WHAT_TO_DO}"
        )));
    }
    if let Some(expected) = expected {
        match stamp::read_stamp(&first) {
            Some(found) if found.owner != expected.owner => {
                return Err(refuse(format!("it belongs to another data directory. {WHAT_TO_DO}")));
            }
            Some(found) if found.number >= expected.number => {}
            found => {
                return Err(refuse(format!(
                    "it is older than the rest of the directory (it was in use at opening {}, and has been at {}): what was changed since is \
                     not in it. {WHAT_TO_DO}",
                    found.map_or(0, |found| found.number),
                    expected.number
                )));
            }
        }
    }
    Ok((Opened { file, flags: header.flags }, pages))
}

const MISSING: &str = "it is missing. Put the file back, or restore the data directory from a backup; DROP TABLE gives the table up";

const WHAT_TO_DO: &str = "Restore the data directory from a backup; DROP TABLE gives the table up";

/// Refuses ids that no tablespace has.
fn check_id(id: u32, path: &Path) -> Result<(), Error> {
    if page_table::is_possible(id) {
        return Ok(());
    }
    let why =
        format!("tablespace id {id} is larger than any that was ever given out; what names it is damaged");
    Err(Error::Tablespace { file: path.to_owned(), why })
}
