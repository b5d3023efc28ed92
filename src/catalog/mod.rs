//! The catalog: which databases, tables and views there are, in one file of records.
//!
//! `untorn.catalog` begins with a snapshot (a record for each table), and each change is one more record
//! behind it: JSON in blocks with checksums (`block.rs`), one write and one sync. That sync is the moment a
//! DDL statement happens. When the file has become much longer than its snapshot would be, it is rewritten
//! beside the old one and renamed over it. So a statement costs what it changes, however many tables there
//! are. Space is reserved after the records, so that DROP and startup succeed even on a full disk; DROP
//! DATABASE is one short record, and in a row of starts each overwrites the note of the one before. People
//! read the file with `untorn inspect catalog`.
//!
//! What a statement does to files before or after its moment is written into the catalog first, as an entry
//! of the DDL log, so that a start after a crash can finish or undo it (`src/ddl_recovery.rs` for files, and
//! `free_unfinished_indexes` in `src/index_build.rs` for indexes):
//!
//! - a file about to be made for a table that is not in the catalog yet ([`DdlLogEntry::Create`]) is deleted,
//! - a file of a dropped table ([`DdlLogEntry::Drop`]) is deleted,
//! - a file that has a name for the time being ([`DdlLogEntry::Replace`], [`DdlLogEntry::Rename`]) gets the
//!   one its table has,
//! - an index that was being built ([`DdlLogEntry::BuildIndex`]) has its pages freed.
//!
//! That such work is done need not be durable at once: doing it again does nothing. It is noted with the next
//! record ([`Catalog::change_later`]).
//!
//! Table, index and tablespace ids only grow and are never used twice, so redo records of a dropped table can
//! never be taken for those of a new one.

mod block;
mod data;
mod ddl_log;
mod file;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use disk::Storage;
use parking_lot::{Mutex, RwLock};

pub use self::data::{CatalogData, Change, DatabaseDef};
pub use self::ddl_log::{DdlLog, DdlLogEntry};
use self::file::{CatalogFile, Failure};
use crate::error::Error;
use crate::small_file::read_whole;

/// Name of the catalog file in the data directory.
pub const CATALOG_FILE: &str = "untorn.catalog";

/// Format of the data directory that this version writes. A directory with a greater number is refused; one
/// with a smaller number is read and rewritten. Format 1 has one JSON document for a catalog; format 2 knows
/// no expressions in definitions, format 3 no foreign keys, format 4 neither widths nor ZEROFILL of columns,
/// format 5 no views, format 6 no UNSIGNED of FLOAT, DOUBLE and DECIMAL, format 7 no VIRTUAL columns, format
/// 8 no `latin1`, format 9 neither comments of indexes nor INVISIBLE and DESC, format 10 no functional key
/// parts, format 11 no INVISIBLE columns.
pub const FORMAT: u32 = 12;

/// Told of a reason why nothing more may be changed.
type Stop = Box<dyn Fn(&str) + Send + Sync>;

/// The catalog in memory; readers take a snapshot, changes are made one at a time.
pub struct Catalog {
    path: PathBuf,
    current: RwLock<Arc<CatalogData>>,
    file: Mutex<CatalogFile>,
    /// Level of forced recovery at which nothing may be changed, or 0.
    frozen: AtomicU8,
    /// Nobody can say which catalog a crash would leave.
    uncertain: AtomicBool,
    stop: OnceLock<Stop>,
}

impl Catalog {
    /// Reads the catalog of a data directory, or makes an empty one (not yet written).
    ///
    /// # Errors
    /// A file that cannot be read, is damaged, or is of a newer format.
    pub fn open(storage: Arc<dyn Storage>, directory: &Path, page_size: u32) -> Result<Catalog, Error> {
        let contents = file::read(&*storage, directory)?;
        let mut file = CatalogFile::new(storage, directory);
        let data = match contents {
            Some(contents) => {
                file.go_on(&contents)?;
                contents.data
            }
            None => CatalogData::empty(page_size),
        };
        Ok(Catalog {
            path: directory.join(CATALOG_FILE),
            current: RwLock::new(Arc::new(data)),
            file: Mutex::new(file),
            frozen: AtomicU8::new(0),
            uncertain: AtomicBool::new(false),
            stop: OnceLock::new(),
        })
    }

    /// Writes the file if there is none of today's format yet.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn settle(&self) -> Result<(), Error> {
        self.refuse_when_frozen()?;
        let mut file = self.file.lock();
        if file.has_file() {
            return Ok(());
        }
        let data = self.snapshot();
        let written = file.rewrite(&data);
        written.map_err(|failure| self.failed(failure))
    }

    /// Refuses changes from now on, because the database was opened at this level of forced recovery.
    pub fn freeze(&self, level: u8) {
        self.frozen.store(level, Ordering::Relaxed);
    }

    /// Calls `stop` with the reason when a change of the catalog could neither be made durable nor taken
    /// back: a crash may then leave the old or the new one, and whatever was done on the ground of either
    /// could be lost with the other.
    pub fn when_uncertain(&self, stop: impl Fn(&str) + Send + Sync + 'static) {
        let _ = self.stop.set(Box::new(stop));
    }

    /// Whether that has happened: files must then stay as they are.
    pub fn is_uncertain(&self) -> bool {
        self.uncertain.load(Ordering::Acquire)
    }

    /// The catalog as it is now.
    pub fn snapshot(&self) -> Arc<CatalogData> {
        self.current.read().clone()
    }

    /// The file as it is, between two changes, for a copy of the directory.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn file_bytes(&self) -> Result<Vec<u8>, Error> {
        self.file.lock().bytes()
    }

    /// Changes the catalog. The closure works on a copy; when it succeeds its edits are written and the copy
    /// becomes the catalog, otherwise nothing has happened. Blocks for a write and a sync.
    ///
    /// # Errors
    /// What the closure returns, or a failure to write: nothing has happened then, unless the catalog
    /// [`Catalog::is_uncertain`].
    pub fn change<T>(&self, edit: impl FnOnce(&mut Change) -> Result<T, Error>) -> Result<T, Error> {
        self.refuse_when_frozen()?;
        let mut file = self.file.lock();
        if self.is_uncertain() {
            return Err(self.is_stopped());
        }
        let before = self.snapshot();
        let mut change = Change::of(&before);
        let result = edit(&mut change)?;
        let (after, edits) = change.into_parts();
        if edits.is_empty() {
            return Ok(result);
        }
        file.append(&edits, &before, &after).map_err(|failure| self.failed(failure))?;
        *self.current.write() = Arc::new(after);
        Ok(result)
    }

    /// Changes the catalog in memory at once and in the file with the next [`Catalog::change`]: for what a
    /// start after a crash finds out again.
    ///
    /// # Errors
    /// What the closure returns.
    pub fn change_later(&self, edit: impl FnOnce(&mut Change) -> Result<(), Error>) -> Result<(), Error> {
        self.refuse_when_frozen()?;
        let mut file = self.file.lock();
        let mut change = Change::of(&self.snapshot());
        edit(&mut change)?;
        let (after, edits) = change.into_parts();
        file.unwritten.extend(edits);
        *self.current.write() = Arc::new(after);
        Ok(())
    }

    fn refuse_when_frozen(&self) -> Result<(), Error> {
        match self.frozen.load(Ordering::Relaxed) {
            0 => Ok(()),
            level => Err(Error::ForcedRecovery(level)),
        }
    }

    fn failed(&self, failure: Failure) -> Error {
        match failure {
            Failure::Undone(error) => error,
            Failure::Uncertain(error) => {
                self.uncertain.store(true, Ordering::Release);
                if let Some(stop) = self.stop.get() {
                    stop(&format!(
                        "a change of the catalog could neither be made durable nor undone: {error}"
                    ));
                }
                error
            }
        }
    }

    fn is_stopped(&self) -> Error {
        let why = "a change could neither be made durable nor undone: restart the database".to_owned();
        Error::Catalog { path: self.path.clone(), why }
    }
}

/// What a catalog file says, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// All that could be read, as JSON.
    pub json: String,
    /// What is wrong with the file.
    pub damage: Option<String>,
}

/// Reads the catalog of a directory that no process has open, and changes nothing.
///
/// # Errors
/// When there is no such file, or it cannot be read at all. Damage is no error: it is reported beside what
/// can be read.
pub fn inspect(storage: &dyn Storage, directory: &Path) -> Result<Inspection, Error> {
    let path = directory.join(CATALOG_FILE);
    let bytes = read_whole(storage, &path)?;
    let mut data = CatalogData::empty(0);
    let damage = file::parse(&path, &bytes, &mut data).err();
    let json = serde_json::to_string_pretty(&data::Document::from(&data))
        .map_err(|error| Error::Internal(format!("the catalog cannot be shown as JSON: {error}")))?;
    Ok(Inspection { json, damage: damage.map(|error| error.to_string()) })
}
