//! Making and unmaking stores: opening a file, warm or empty, and removing it. Everything here blocks for
//! file operations and runs at start-up or in the keeper, never where pages are read.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use disk::{OpenHow, Storage};
use page::Lsn;

use crate::geometry::Geometry;
use crate::journal::Journal;
use crate::record::Identity;
use crate::store::{FileLock, Kept, Parts, Store, map_path};
use crate::table::Table;
use crate::tier::{Current, Settings, Tier};
use crate::warm_restart::{self, Loaded};

impl Tier {
    /// Opens what the settings name, warm if it was kept.
    pub(crate) fn open_at_start(&self, settings: &Settings) {
        let Some(path) = settings.file.as_ref().filter(|_| settings.enabled) else { return };
        match self.open_store(path, settings.size, self.keeps()) {
            Ok(store) => self.install(store),
            Err(error) => self.could_not_open(&error),
        }
    }

    pub(crate) fn could_not_open(&self, error: &disk::Error) {
        let why = error.to_string();
        tracing::error!("the buffer pool extension is off: {why}; the server continues without it");
        self.control.lock().failure = Some(why);
    }

    pub(crate) fn install(&self, store: Store) {
        let geometry = store.geometry;
        tracing::info!(
            file = %store.path.display(),
            "buffer pool extension: {} pages of {} bytes in {} regions of {} KiB; memory: {:.1} bytes for each page and {} KiB of buffers",
            geometry.slots(),
            geometry.page_bytes,
            geometry.regions,
            geometry.region_bytes >> 10,
            (geometry.memory_bytes() - geometry.buffer_bytes()) as f64 / f64::from(geometry.slots()),
            geometry.buffer_bytes() >> 10
        );
        self.adapt.start_over(self.env.now());
        self.control.lock().failure = None;
        *self.current.write() = Current { store: Some(Arc::new(store)), next: None };
    }

    /// Opens the file at `path`: with what it holds if `warm`, otherwise empty.
    pub(crate) fn open_store(&self, path: &Path, size: u64, warm: bool) -> disk::Result<Store> {
        if size == 0 {
            let why = "its disk has too little room for a useful one, and no size is set";
            return Err(disk::Error::new("use", path, std::io::Error::other(why)));
        }
        let storage = self.env.storage();
        let lock = Arc::new(FileLock::new(storage.lock(path)?));
        let file = storage.open(path, OpenHow::CREATE.by_this_name())?;
        // What was opened, not what was there a moment before: the name may lead elsewhere now.
        warm_restart::check_mark(&*file, self.options.database)
            .map_err(|why| disk::Error::new("use", path, std::io::Error::other(why)))?;
        if warm && !file.is_empty()? {
            let geometry_of = |region_bytes| self.geometry(size, Some(region_bytes));
            match warm_restart::load(&self.env, &*file, path, self.options.database, geometry_of) {
                Ok(loaded) => {
                    cut(&*file, &loaded.geometry)?;
                    return Ok(self.warm_store(path, file, lock, loaded));
                }
                Err(why) => {
                    tracing::warn!(file = %path.display(), "the kept buffer pool extension starts empty: {why}");
                }
            }
        }
        self.empty_store(path, size, file, lock)
    }

    fn warm_store(
        &self,
        path: &Path,
        file: Arc<dyn disk::File>,
        lock: Arc<FileLock>,
        loaded: Loaded,
    ) -> Store {
        let kept = Kept { covered: loaded.covered, run: loaded.run, pages: loaded.table.len() };
        let journal = Arc::new(Journal::new(self.env.clone(), loaded.identity));
        Store::new(Parts {
            id: self.new_id(),
            path: path.to_owned(),
            file,
            geometry: loaded.geometry,
            part: false,
            table: loaded.table,
            fifo: loaded.fifo,
            journal: Some(journal),
            loaded_from: loaded.side,
            kept: Some(kept),
            lock,
        })
    }

    fn empty_store(
        &self,
        path: &Path,
        size: u64,
        file: Arc<dyn disk::File>,
        lock: Arc<FileLock>,
    ) -> disk::Result<Store> {
        let storage = self.env.storage();
        let geometry = self.geometry(size, None);
        let identity = self.new_identity(geometry);
        // The number in the header is new: from here on an old map is nothing, whether or not it is still
        // there.
        warm_restart::write_header(&*file, &identity)?;
        cut(&*file, &geometry)?;
        let journal = if self.keeps() {
            let journal = Journal::new(self.env.clone(), identity);
            journal.begin_empty(self.open_map(path, 0)?, 0);
            journal.set_run(self.run.load(Ordering::Acquire), self.recovered_end.load(Ordering::Acquire));
            Some(Arc::new(journal))
        } else {
            remove_maps(&**storage, path);
            None
        };
        storage.sync_dir(path.parent().unwrap_or(Path::new("")))?;
        Ok(Store::new(Parts {
            id: self.new_id(),
            path: path.to_owned(),
            file,
            geometry,
            part: false,
            table: Table::new(geometry.slots(), geometry.slots_per_region()),
            fifo: VecDeque::new(),
            journal,
            loaded_from: 0,
            kept: None,
            lock,
        }))
    }

    /// An identity that no file has.
    fn new_identity(&self, geometry: Geometry) -> Identity {
        let [high, low] = [self.env.random_u64(), self.env.random_u64()];
        Identity {
            page_bytes: geometry.page_bytes as u32,
            region_bytes: geometry.region_bytes as u32,
            tier: (u128::from(high) << 64 | u128::from(low)).to_le_bytes(),
            database: self.options.database,
        }
    }

    /// A map file that holds nothing but the mark of one.
    pub(crate) fn open_map(&self, path: &Path, side: usize) -> disk::Result<Arc<dyn disk::File>> {
        let path = map_path(path, side);
        let file = self.env.storage().open(&path, OpenHow::CREATE.by_this_name())?;
        if !warm_restart::is_map(&*file)? {
            let why = "it is not the map of a buffer pool extension. Remove it if nothing else needs it";
            return Err(disk::Error::new("use", &path, std::io::Error::other(why)));
        }
        warm_restart::mark_map(&*file)?;
        Ok(file)
    }

    pub(crate) fn new_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// What was kept is not current: starts empty in the same file.
    pub(crate) fn discard_kept(&self, store: &Arc<Store>, why: &str) {
        tracing::warn!(file = %store.path.display(), "the kept buffer pool extension starts empty: {why}");
        let size = store.geometry.file_bytes();
        match self.empty_store(&store.path, size, store.file.clone(), store.lock.clone()) {
            Ok(store) => self.install(store),
            Err(error) => self.fail(store.id, &error.to_string()),
        }
    }

    /// Judges a table that an earlier process left. `None` when it may be used.
    pub(crate) fn objection(&self, kept: &Kept, checkpoint: Lsn, end: Lsn, run: u32) -> Option<String> {
        if kept.run.checked_add(1) != Some(run) {
            Some(format!(
                "the database was open without it (this is run {run} of the log, its map ends in run {})",
                kept.run
            ))
        } else if kept.covered < checkpoint.0 {
            Some(format!("its map covers changes up to LSN {}, the checkpoint is {checkpoint}", kept.covered))
        } else if kept.covered > end.0 {
            Some(format!("its map covers changes up to LSN {}, the log ends at {end}", kept.covered))
        } else {
            None
        }
    }

    /// Takes the tier out of use and removes its files. Reads under way end as they may.
    pub(crate) fn take_down(&self) {
        let Current { store, next } = std::mem::take(&mut *self.current.write());
        drop(next);
        let Some(store) = store else { return };
        if let Some(journal) = &store.journal {
            journal.stop();
        }
        // Nothing is submitted any more; what is under way keeps the file by itself.
        self.close_filler(&store);
        if let Err(error) = self.remove_file(&store) {
            tracing::warn!("the file of the buffer pool extension is left behind: {error}");
        }
        store.lock.release();
        tracing::info!(file = %store.path.display(), "the buffer pool extension is off");
    }
}

impl Tier {
    /// Removes the tier's files, if the name still leads to the file that is open: a number is written into
    /// that, and looked for by the name.
    fn remove_file(&self, store: &Store) -> disk::Result<()> {
        let storage = self.env.storage();
        let identity = self.new_identity(store.geometry);
        warm_restart::stamp(&*store.file, &identity)?;
        let named = storage.open(&store.path, OpenHow::EXISTING.by_this_name())?;
        if !warm_restart::is_named(&*named, identity.tier) {
            let why = std::io::Error::other("another file has its name now");
            return Err(disk::Error::new("remove", &store.path, why));
        }
        remove_maps(&**storage, &store.path);
        storage.remove(&store.path)
    }
}

/// A file that was kept may be longer than the size that was set or planned since: the rest would be of no
/// use to anybody, and the room was planned without it.
fn cut(file: &dyn disk::File, geometry: &Geometry) -> disk::Result<()> {
    if file.len()? > geometry.file_bytes() { file.set_len(geometry.file_bytes()) } else { Ok(()) }
}

fn remove_maps(storage: &dyn Storage, path: &Path) {
    let maps: [PathBuf; 2] = [map_path(path, 0), map_path(path, 1)];
    for map in maps {
        // One that stays is nothing without the tier file it names.
        let remove = || {
            // A user who could give the name to another file between the look and this could as well remove
            // that one.
            if storage.exists(&map)?
                && warm_restart::is_map(&*storage.open(&map, OpenHow::EXISTING.by_this_name())?)?
            {
                storage.remove(&map)?;
            }
            Ok::<_, disk::Error>(())
        };
        if let Err(error) = remove() {
            tracing::debug!("a map of the buffer pool extension is left behind: {error}");
        }
    }
}
