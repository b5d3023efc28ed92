//! The catalog: which databases and tables there are, in one file that is replaced whole.
//!
//! `untorn.catalog` in the data directory is JSON, made to be read by people too. Each change writes a new file
//! beside it, syncs it, renames it over the old one and syncs the directory: the rename is the moment a DDL
//! statement happens. What a statement does to files before or after that moment is written into the catalog as
//! a *pending* entry first, so that a start after a crash can finish or undo it:
//!
//! - a file about to be made for a table that is not in the catalog yet ([`Pending::Create`]) is deleted,
//! - a file of a dropped table ([`Pending::Drop`]) is deleted,
//! - a file that was to replace another or to be renamed ([`Pending::Replace`], [`Pending::Rename`]) is moved,
//! - an index that was being built ([`Pending::BuildIndex`]) has its pages freed.
//!
//! Table, index and tablespace ids only grow and are never used twice, so redo records of a dropped table can
//! never be taken for those of a new one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use disk::Storage;
use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::provenance::LastRun;
use crate::schema::TableDef;
use crate::types::Collation;

/// Name of the catalog file in the data directory.
pub const CATALOG_FILE: &str = "untorn.catalog";

/// Format of the data directory that this version writes. A directory with a greater number is refused.
pub const FORMAT: u32 = 1;

/// A database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseDef {
    /// Default collation of its tables.
    pub collation: Collation,
    /// Its tables by name.
    #[serde(default)]
    pub tables: BTreeMap<String, TableDef>,
}

/// Work on files that a crash may leave half done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pending {
    /// A tablespace file being made.
    Create {
        /// Its tablespace id.
        space: u32,
        /// Path relative to the data directory.
        path: PathBuf,
    },
    /// A tablespace file whose table is gone.
    Drop {
        /// Its tablespace id.
        space: u32,
        /// Path relative to the data directory.
        path: PathBuf,
    },
    /// A file that takes the place of another one.
    Replace {
        /// Tablespace id of the new file.
        space: u32,
        /// Where the new file was made, relative to the data directory.
        from: PathBuf,
        /// Where it belongs.
        to: PathBuf,
        /// Tablespace id of the file it replaces.
        replaced: u32,
    },
    /// A file that gets another name.
    Rename {
        /// Tablespace id.
        space: u32,
        /// Old path, relative to the data directory.
        from: PathBuf,
        /// New path.
        to: PathBuf,
    },
    /// An index being built or dropped in an existing table.
    BuildIndex {
        /// Tablespace id.
        space: u32,
        /// Index id.
        index: u64,
        /// Root page.
        root: u32,
    },
}

/// What stands in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CatalogData {
    /// See [`FORMAT`].
    pub format: u32,
    /// Version of the program that wrote it; for people.
    pub written_by: String,
    /// Bytes of a page in every file of the directory.
    pub page_size: u32,
    /// Next unused table id.
    pub next_table: u64,
    /// Next unused index id.
    pub next_index: u64,
    /// Next unused tablespace id.
    pub next_space: u32,
    /// What tells this data directory from all others: 32 random hexadecimal digits. Missing in directories made by
    /// early versions, until they are opened again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// The last time the directory was open. Missing in directories of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun>,
    /// Tablespaces that lost changes because their file was not there when the redo log was applied, and why. Whatever lies in
    /// their places now is without them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lost: BTreeMap<u32, String>,
    /// Which mark the file of each tablespace has at least.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub marks: BTreeMap<u32, u64>,
    /// Databases by name.
    pub databases: BTreeMap<String, DatabaseDef>,
    /// Unfinished work on files.
    #[serde(default)]
    pub pending: Vec<Pending>,
}

impl CatalogData {
    /// The catalog of an empty data directory.
    fn empty(page_size: u32) -> CatalogData {
        CatalogData {
            format: FORMAT,
            written_by: env!("CARGO_PKG_VERSION").to_owned(),
            page_size,
            next_table: 1,
            next_index: 1,
            next_space: 1,
            identity: None,
            last_run: None,
            lost: BTreeMap::new(),
            marks: BTreeMap::new(),
            databases: BTreeMap::new(),
            pending: Vec::new(),
        }
    }

    /// Takes a table id.
    pub fn take_table_id(&mut self) -> u64 {
        self.next_table += 1;
        self.next_table - 1
    }

    /// Takes an index id.
    pub fn take_index_id(&mut self) -> u64 {
        self.next_index += 1;
        self.next_index - 1
    }

    /// Takes a tablespace id.
    pub fn take_space_id(&mut self) -> u32 {
        self.next_space += 1;
        self.next_space - 1
    }

    /// Every table with its database's name and its own.
    pub fn tables(&self) -> impl Iterator<Item = (&str, &str, &TableDef)> {
        self.databases.iter().flat_map(|(database, def)| {
            def.tables.iter().map(move |(name, table)| (database.as_str(), name.as_str(), table))
        })
    }
}

/// Told of a reason why nothing more may be changed.
type Stop = Box<dyn Fn(&str) + Send + Sync>;

/// The catalog in memory; readers take a snapshot, changes are made one at a time.
pub struct Catalog {
    storage: Arc<dyn Storage>,
    directory: PathBuf,
    current: RwLock<Arc<CatalogData>>,
    change: Mutex<()>,
    /// Level of forced recovery at which nothing may be changed, or 0.
    frozen: AtomicU8,
    /// Told when nobody can say any more which catalog a crash would leave.
    uncertain: OnceLock<Stop>,
}

/// Replaces a small file whole: new file, sync, rename, directory sync. After a crash the old or the new
/// content is there.
pub fn write_atomically(storage: &dyn Storage, path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let fresh = write_beside(storage, path, bytes)?;
    storage.rename(&fresh, path)?;
    if let Some(parent) = path.parent() {
        storage.sync_dir(parent)?;
    }
    Ok(())
}

/// The first half of it: the new content, durable under another name, which is returned.
fn write_beside(storage: &dyn Storage, path: &Path, bytes: &[u8]) -> Result<PathBuf, Error> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    let fresh = PathBuf::from(fresh);
    if storage.exists(&fresh)? {
        storage.remove(&fresh)?;
    }
    let file = storage.open(&fresh, disk::OpenHow::CREATE_NEW.buffered())?;
    file.write_at(bytes, 0)?;
    file.sync_data()?;
    Ok(fresh)
}

/// A small file's content, whole.
pub fn read_whole(storage: &dyn Storage, path: &Path) -> Result<Vec<u8>, Error> {
    let file = storage.open(path, disk::OpenHow::EXISTING.buffered())?;
    let len = usize::try_from(file.len()?).unwrap_or(usize::MAX);
    let mut bytes = vec![0; len];
    file.read_at(&mut bytes, 0)?;
    Ok(bytes)
}

impl Catalog {
    /// Reads the catalog of a data directory, or makes an empty one (not yet written).
    ///
    /// # Errors
    /// A file that cannot be read or parsed, or one of a newer format.
    pub fn open(storage: Arc<dyn Storage>, directory: &Path, page_size: u32) -> Result<Catalog, Error> {
        let path = directory.join(CATALOG_FILE);
        let data = if storage.exists(&path)? {
            Self::parse(&path, &read_whole(&*storage, &path)?)?
        } else {
            CatalogData::empty(page_size)
        };
        Ok(Catalog {
            storage,
            directory: directory.to_owned(),
            current: RwLock::new(Arc::new(data)),
            change: Mutex::new(()),
            frozen: AtomicU8::new(0),
            uncertain: OnceLock::new(),
        })
    }

    /// Refuses changes from now on, because the database was opened at this level of forced recovery.
    pub fn freeze(&self, level: u8) {
        self.frozen.store(level, Ordering::Relaxed);
    }

    /// Calls `stop` with the reason when a replaced catalog could not be made durable: a crash may then leave the old or
    /// the new one, and whatever was done on the ground of either could be lost with the other.
    pub fn when_uncertain(&self, stop: impl Fn(&str) + Send + Sync + 'static) {
        let _ = self.uncertain.set(Box::new(stop));
    }

    fn parse(path: &Path, bytes: &[u8]) -> Result<CatalogData, Error> {
        #[derive(Deserialize)]
        struct OnlyFormat {
            format: u32,
            #[serde(default)]
            written_by: String,
        }
        let damaged = |why: serde_json::Error| Error::Catalog {
            path: path.to_owned(),
            why: format!("it cannot be understood: {why}. Restore the file from a backup of the directory"),
        };
        // The number first: a newer format need not have the fields we know.
        let head: OnlyFormat = serde_json::from_slice(bytes).map_err(damaged)?;
        if head.format > FORMAT {
            return Err(Error::NewerDirectory {
                path: path.to_owned(),
                found: head.format,
                known: FORMAT,
                written_by: head.written_by,
            });
        }
        serde_json::from_slice(bytes).map_err(damaged)
    }

    /// The catalog as it is now.
    pub fn snapshot(&self) -> Arc<CatalogData> {
        self.current.read().clone()
    }

    /// Changes the catalog. The closure works on a copy; when it succeeds the copy is written and becomes the
    /// catalog, otherwise nothing has happened.
    ///
    /// # Errors
    /// What the closure returns, or a failure to write the file.
    pub fn change<T>(&self, edit: impl FnOnce(&mut CatalogData) -> Result<T, Error>) -> Result<T, Error> {
        let level = self.frozen.load(Ordering::Relaxed);
        if level > 0 {
            return Err(Error::ForcedRecovery(level));
        }
        let _one_at_a_time = self.change.lock();
        let mut data = CatalogData::clone(&self.snapshot());
        let result = edit(&mut data)?;
        data.written_by = env!("CARGO_PKG_VERSION").to_owned();
        let bytes = serde_json::to_vec_pretty(&data)
            .map_err(|error| Error::Internal(format!("the catalog cannot be written as JSON: {error}")))?;
        let path = self.directory.join(CATALOG_FILE);
        let fresh = write_beside(&*self.storage, &path, &bytes)?;
        self.storage.rename(&fresh, &path)?;
        if let Err(error) = self.storage.sync_dir(&self.directory) {
            if let Some(stop) = self.uncertain.get() {
                stop(&format!("the catalog was replaced, but that could not be made durable: {error}"));
            }
            return Err(error.into());
        }
        *self.current.write() = Arc::new(data);
        Ok(result)
    }
}
