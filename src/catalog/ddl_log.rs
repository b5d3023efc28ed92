//! The DDL log: work on files and indexes that a crash may leave half done, as entries of the catalog.
//!
//! An entry is written before the work begins and taken out when it is done; what is left in the log is what
//! a start has to finish or undo (`src/ddl_recovery.rs`). In the catalog's file they are called `pending`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use rpds::RedBlackTreeMapSync;
use serde::{Deserialize, Serialize};

/// Work that a crash may leave half done.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DdlLogEntry {
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
    /// A file that takes the name it belongs to; another one may have it still.
    Replace {
        /// Tablespace id of the file.
        space: u32,
        /// Where it is, relative to the data directory.
        from: PathBuf,
        /// Where it belongs.
        to: PathBuf,
        /// Tablespace id of the file it replaces, or 0.
        replaced: u32,
        /// That file was imported, and may be of another server's format.
        #[serde(default)]
        imported: bool,
    },
    /// A file on its way from one name to another: it belongs where the catalog lists its table.
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
    /// The directory of a database that was dropped.
    DropDirectory {
        /// Path relative to the data directory.
        path: PathBuf,
    },
}

impl DdlLogEntry {
    /// The tablespace it concerns.
    pub fn space(&self) -> Option<u32> {
        match self {
            DdlLogEntry::Create { space, .. }
            | DdlLogEntry::Drop { space, .. }
            | DdlLogEntry::Replace { space, .. }
            | DdlLogEntry::Rename { space, .. }
            | DdlLogEntry::BuildIndex { space, .. } => Some(*space),
            DdlLogEntry::DropDirectory { .. } => None,
        }
    }

    /// The names of files that it may still make, remove or give away.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        let (one, other) = match self {
            DdlLogEntry::Create { path, .. } | DdlLogEntry::Drop { path, .. } => (Some(path), None),
            DdlLogEntry::Replace { from, to, .. } | DdlLogEntry::Rename { from, to, .. } => {
                (Some(from), Some(to))
            }
            DdlLogEntry::BuildIndex { .. } | DdlLogEntry::DropDirectory { .. } => (None, None),
        };
        one.into_iter().chain(other)
    }

    /// Whether the file of one of these tablespaces is to be removed.
    pub(super) fn drops_one_of(&self, spaces: &BTreeSet<u32>) -> bool {
        matches!(self, DdlLogEntry::Drop { space, .. } if spaces.contains(space))
    }

    /// Whether it only says where a file is that its table owns.
    pub fn moves(&self) -> bool {
        matches!(self, DdlLogEntry::Replace { .. } | DdlLogEntry::Rename { .. })
    }
}

/// Unfinished work, in the order in which it was announced. A copy is cheap, however long it is.
#[derive(Debug, Clone)]
pub struct DdlLog {
    /// By a number that grows.
    entries: RedBlackTreeMapSync<u64, Arc<DdlLogEntry>>,
    next: u64,
}

impl Default for DdlLog {
    fn default() -> Self {
        DdlLog { entries: RedBlackTreeMapSync::new_sync(), next: 0 }
    }
}

impl Eq for DdlLog {}

impl PartialEq for DdlLog {
    fn eq(&self, other: &DdlLog) -> bool {
        self.iter().eq(other.iter())
    }
}

impl FromIterator<DdlLogEntry> for DdlLog {
    fn from_iter<T: IntoIterator<Item = DdlLogEntry>>(works: T) -> DdlLog {
        let mut list = DdlLog::default();
        works.into_iter().for_each(|work| list.add(work));
        list
    }
}

impl DdlLog {
    /// All of it.
    pub fn iter(&self) -> impl Iterator<Item = &DdlLogEntry> {
        self.entries.values().map(|work| &**work)
    }

    /// How much there is.
    pub fn len(&self) -> usize {
        self.entries.size()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn add(&mut self, work: DdlLogEntry) {
        self.entries.insert_mut(self.next, Arc::new(work));
        self.next += 1;
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&DdlLogEntry) -> bool) {
        let gone: Vec<u64> =
            self.entries.iter().filter(|(_, work)| !keep(work)).map(|(number, _)| *number).collect();
        for number in gone {
            self.entries.remove_mut(&number);
        }
    }
}
