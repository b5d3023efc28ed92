//! Work on files that a crash may leave half done, and the list of it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use rpds::RedBlackTreeMapSync;
use serde::{Deserialize, Serialize};

/// Work on files that a crash may leave half done.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

impl Pending {
    /// The tablespace it concerns.
    pub fn space(&self) -> Option<u32> {
        match self {
            Pending::Create { space, .. }
            | Pending::Drop { space, .. }
            | Pending::Replace { space, .. }
            | Pending::Rename { space, .. }
            | Pending::BuildIndex { space, .. } => Some(*space),
            Pending::DropDirectory { .. } => None,
        }
    }

    /// The names of files that it may still make, remove or give away.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        let (one, other) = match self {
            Pending::Create { path, .. } | Pending::Drop { path, .. } => (Some(path), None),
            Pending::Replace { from, to, .. } | Pending::Rename { from, to, .. } => (Some(from), Some(to)),
            Pending::BuildIndex { .. } | Pending::DropDirectory { .. } => (None, None),
        };
        one.into_iter().chain(other)
    }

    /// Whether the file of one of these tablespaces is to be removed.
    pub(super) fn drops_one_of(&self, spaces: &BTreeSet<u32>) -> bool {
        matches!(self, Pending::Drop { space, .. } if spaces.contains(space))
    }

    /// Whether it only says where a file is that its table owns.
    pub fn moves(&self) -> bool {
        matches!(self, Pending::Replace { .. } | Pending::Rename { .. })
    }
}

/// Unfinished work, in the order in which it was announced. A copy is cheap, however long it is.
#[derive(Debug, Clone)]
pub struct PendingList {
    /// By a number that grows.
    entries: RedBlackTreeMapSync<u64, Arc<Pending>>,
    next: u64,
}

impl Default for PendingList {
    fn default() -> Self {
        PendingList { entries: RedBlackTreeMapSync::new_sync(), next: 0 }
    }
}

impl Eq for PendingList {}

impl PartialEq for PendingList {
    fn eq(&self, other: &PendingList) -> bool {
        self.iter().eq(other.iter())
    }
}

impl FromIterator<Pending> for PendingList {
    fn from_iter<T: IntoIterator<Item = Pending>>(works: T) -> PendingList {
        let mut list = PendingList::default();
        works.into_iter().for_each(|work| list.add(work));
        list
    }
}

impl PendingList {
    /// All of it.
    pub fn iter(&self) -> impl Iterator<Item = &Pending> {
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

    pub(super) fn add(&mut self, work: Pending) {
        self.entries.insert_mut(self.next, Arc::new(work));
        self.next += 1;
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&Pending) -> bool) {
        let gone: Vec<u64> =
            self.entries.iter().filter(|(_, work)| !keep(work)).map(|(number, _)| *number).collect();
        for number in gone {
            self.entries.remove_mut(&number);
        }
    }
}
