//! One opened file with its table: what is exchanged as a whole when the tier is switched, resized or moved.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use disk::File;
use page::PageId;
use parking_lot::Mutex;

use crate::admission::SeenBefore;
use crate::fill::Filler;
use crate::geometry::Geometry;
use crate::journal::Journal;
use crate::record::Record;
use crate::size_estimate::{Ghosts, is_sampled, shift_for};
use crate::table::{Entry, Table};

/// See the module's essay.
pub(crate) struct Store {
    /// Tells reads of an earlier store from those of this one.
    pub(crate) id: u64,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
    pub(crate) geometry: Geometry,
    /// Made for a tier that is suspended for long: the geometry may be less than what was asked for.
    pub(crate) part: bool,
    pub(crate) table: Table,
    pub(crate) filler: Mutex<Filler>,
    pub(crate) seen: SeenBefore,
    ghosts: Mutex<Ghosts>,
    ghost_shift: u32,
    /// `None` when nothing is kept over a restart.
    pub(crate) journal: Option<Arc<Journal>>,
    /// The side of the map file this store was loaded from.
    pub(crate) loaded_from: usize,
    /// What a table that was loaded claims, until recovery has judged it.
    pub(crate) kept: Mutex<Option<Kept>>,
    /// Shared with the store of another size.
    pub(crate) lock: Arc<FileLock>,
}

/// What a kept table claims about itself.
pub(crate) struct Kept {
    pub(crate) covered: u64,
    pub(crate) run: u32,
    pub(crate) pages: usize,
}

/// The lock that keeps another process away from the file.
pub(crate) struct FileLock(Mutex<Option<Box<dyn Send + Sync>>>);

impl FileLock {
    pub(crate) fn new(lock: Box<dyn Send + Sync>) -> FileLock {
        FileLock(Mutex::new(Some(lock)))
    }

    /// Gives it up; reads and writes under way do not matter to its next owner.
    pub(crate) fn release(&self) {
        drop(self.0.lock().take());
    }
}

/// What a store is made of.
pub(crate) struct Parts {
    pub(crate) id: u64,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
    pub(crate) geometry: Geometry,
    pub(crate) part: bool,
    pub(crate) table: Table,
    pub(crate) fifo: VecDeque<u32>,
    pub(crate) journal: Option<Arc<Journal>>,
    pub(crate) loaded_from: usize,
    pub(crate) kept: Option<Kept>,
    pub(crate) lock: Arc<FileLock>,
}

impl Store {
    pub(crate) fn new(parts: Parts) -> Store {
        let slots = parts.geometry.slots();
        Store {
            id: parts.id,
            path: parts.path,
            file: parts.file,
            geometry: parts.geometry,
            part: parts.part,
            table: parts.table,
            filler: Mutex::new(Filler::new(&parts.geometry, parts.fifo)),
            seen: SeenBefore::new(slots),
            ghosts: Mutex::new(Ghosts::new(slots)),
            ghost_shift: shift_for(slots),
            journal: parts.journal,
            loaded_from: parts.loaded_from,
            kept: Mutex::new(parts.kept),
            lock: parts.lock,
        }
    }

    pub(crate) fn record(&self, record: &Record) {
        if let Some(journal) = &self.journal {
            journal.append(record);
        }
    }

    pub(crate) fn record_add(&self, entry: &Entry, dead: &DeadSpaces) {
        if let Some(journal) = &self.journal {
            journal.append_add(entry, || dead.contains(entry.page.space));
        }
    }

    /// The page was changed. Whether it was here.
    pub(crate) fn drop_page(&self, page: PageId) -> bool {
        let dropped = self.table.remove(page, |slot| self.record(&Record::Drop { slot }));
        if dropped {
            self.with_ghosts(page, |ghosts| ghosts.invalidated(page));
        }
        dropped
    }

    /// Runs `act` if the page is in the sample.
    pub(crate) fn with_ghosts(&self, page: PageId, act: impl FnOnce(&mut Ghosts)) {
        if is_sampled(page, self.ghost_shift) {
            act(&mut self.ghosts.lock());
        }
    }

    pub(crate) fn estimate(&self) -> crate::size_estimate::Estimate {
        self.ghosts.lock().estimate()
    }
}

/// The two files of a kept map.
pub(crate) fn map_path(path: &Path, side: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(if side == 0 { ".map0" } else { ".map1" });
    PathBuf::from(name)
}

/// Tablespaces whose pages are being removed in the background. Until that is over nobody finds or enters
/// one.
#[derive(Default)]
pub(crate) struct DeadSpaces {
    /// So that the usual look costs a load.
    count: AtomicUsize,
    spaces: Mutex<Vec<u32>>,
}

impl DeadSpaces {
    pub(crate) fn contains(&self, space: u32) -> bool {
        self.count.load(Ordering::Acquire) > 0 && self.spaces.lock().contains(&space)
    }

    pub(crate) fn add(&self, space: u32) {
        let mut spaces = self.spaces.lock();
        spaces.push(space);
        self.count.store(spaces.len(), Ordering::Release);
    }

    pub(crate) fn all(&self) -> Vec<u32> {
        if self.count.load(Ordering::Acquire) == 0 { Vec::new() } else { self.spaces.lock().clone() }
    }

    /// These have been removed.
    pub(crate) fn remove(&self, gone: &[u32]) {
        let mut spaces = self.spaces.lock();
        for space in gone {
            if let Some(at) = spaces.iter().position(|dead| dead == space) {
                spaces.swap_remove(at);
            }
        }
        self.count.store(spaces.len(), Ordering::Release);
    }
}
