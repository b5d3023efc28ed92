//! The dump of the buffer pool: what was in it before a restart, kept in the file `ib_buffer_pool`. The pages
//! are loaded by `crates/pagestore/src/pool/warm_up.rs`.
//!
//! InnoDB's name and format: a line `space,page` for each page, the most recently used first. The file is a
//! hint. A page that is no longer there is left out, a file of another directory does no harm, and one that
//! is missing or unreadable means a cold start. It is written when the database is closed, if that was asked
//! for, and read in the background: the database works meanwhile, and pages that somebody asks for come
//! first.
//!
//! A close writes it last, because nothing else may fail for the room it takes, and not when a load was still
//! under way as the close began: the list of before is the better one.

use crate::database::Database;
use crate::error::Result;
use crate::small_file::write_atomically;
use disk::{Event, Storage};
use pagestore::{PageId, WarmUp};
use parking_lot::Mutex;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// In the data directory.
const FILE: &str = "ib_buffer_pool";
/// The longest line that we write, `4294967295,4294967295` and its end.
const LINE_BYTES_MAX: usize = 22;

/// What is asked for, and how far it is.
pub(crate) struct BufferPoolDump {
    /// Percent of the pages in memory that are written at close; 0: no file.
    at_close: AtomicU8,
    /// Set when the load is over that was begun last.
    loaded: Mutex<Event>,
    aborted: AtomicBool,
    /// One dump at a time: each writes its file under the same other name first.
    dumping: Mutex<()>,
    dump: Mutex<String>,
    load: Mutex<String>,
}

impl Default for BufferPoolDump {
    fn default() -> BufferPoolDump {
        BufferPoolDump {
            at_close: AtomicU8::new(0),
            loaded: Mutex::new(Event::already_set()),
            aborted: AtomicBool::new(false),
            dumping: Mutex::default(),
            dump: Mutex::new("Dumping of buffer pool not started".to_owned()),
            load: Mutex::new("Loading of buffer pool not started".to_owned()),
        }
    }
}

impl Database {
    /// Has the names of the most recently used pages written to `ib_buffer_pool` when the database is closed:
    /// this many percent of those in memory (`innodb_buffer_pool_dump_at_shutdown`, `…_dump_pct`), or none
    /// with 0, as by default.
    pub fn dump_buffer_pool_at_close(&self, percent: u8) {
        self.0.buffer_pool_dump.at_close.store(percent.min(100), Ordering::Relaxed);
    }

    /// Writes the names of this many percent of the pages in memory to `ib_buffer_pool` now
    /// (`innodb_buffer_pool_dump_now`), and returns how many they are. Blocks for the writing,
    /// and for another dump that is under way.
    ///
    /// # Errors
    /// When the file cannot be written; an older one is still there then.
    /// [`Error::Closed`](crate::Error::Closed) after [`Database::close`].
    pub fn dump_buffer_pool(&self, percent: u8) -> Result<usize> {
        let _only = self.0.buffer_pool_dump.dumping.lock();
        // Under the lock: when a close is at its end no dump is under way, and the directory may be somebody
        // else's.
        self.refuse_after_close()?;
        self.write_dump(percent)
    }

    fn write_dump(&self, percent: u8) -> Result<usize> {
        let resident = self.0.store.status().pages_data as usize;
        let most = (resident * usize::from(percent.min(100))).div_ceil(100);
        let pages = self.0.store.resident_pages(most);
        let storage = self.0.environment.storage();
        let written = write_atomically(&**storage, &self.warm_up_file(), text_of(&pages).as_bytes());
        *self.0.buffer_pool_dump.dump.lock() = match &written {
            Ok(()) => format!("Buffer pool(s) dump completed: {} pages", pages.len()),
            Err(error) => format!("Cannot write '{}': {error}", self.warm_up_file().display()),
        };
        written.map(|()| pages.len())
    }

    /// Begins to read the pages that `ib_buffer_pool` names into free frames, in the background
    /// (`innodb_buffer_pool_load_at_startup`, `…_load_now`). Does nothing while that is under way.
    /// [`Database::buffer_pool_load_status`] says how far it is; the event is set when it is over.
    pub fn load_buffer_pool(&self) -> Event {
        let state = &self.0.buffer_pool_dump;
        let over = Event::new();
        {
            let mut loaded = state.loaded.lock();
            if !loaded.is_set() {
                return loaded.clone();
            }
            *loaded = over.clone();
        }
        // Also when the task is dropped with its environment.
        let guard = SetWhenDropped(over.clone());
        state.aborted.store(false, Ordering::Release);
        let (storage, path) = (self.0.environment.storage().clone(), self.warm_up_file());
        let frames = self.0.store.frame_count();
        let (store, state) = (Arc::downgrade(&self.0.store), state.clone());
        // Until then recovery has the device, and its changes the memory.
        let recovered = self.0.store.all_applied();
        // Reading the file may block.
        self.0.environment.spawn_blocking(
            "buffer pool load",
            Box::pin(async move {
                let _guard = guard;
                recovered.wait().await;
                let said = match read_pages(&*storage, &path, frames) {
                    Ok(pages) => {
                        let (of, shown) = (pages.len(), state.clone());
                        let end = pagestore::warm_up(store, pages, move |tried| {
                            *shown.load.lock() = format!("Loaded {tried}/{of} pages");
                            !shown.aborted.load(Ordering::Acquire)
                        });
                        said_at_end(end.await, &state, of)
                    }
                    Err(error) => format!("Cannot read '{}': {error}", path.display()),
                };
                *state.load.lock() = said;
            }),
        );
        over
    }

    /// Ends a load that is under way (`innodb_buffer_pool_load_abort`). What was read stays.
    pub fn abort_buffer_pool_load(&self) {
        self.0.buffer_pool_dump.aborted.store(true, Ordering::Release);
    }

    /// `Innodb_buffer_pool_dump_status`.
    pub fn buffer_pool_dump_status(&self) -> String {
        self.0.buffer_pool_dump.dump.lock().clone()
    }

    /// `Innodb_buffer_pool_load_status`.
    pub fn buffer_pool_load_status(&self) -> String {
        self.0.buffer_pool_dump.load.lock().clone()
    }

    /// As a close begins: the percentage to be written when all else is, 0 for nothing.
    pub(crate) fn buffer_pool_dump_wanted(&self) -> u8 {
        let state = &self.0.buffer_pool_dump;
        if self.0.forced_recovery.refuses_row_changes() {
            return 0;
        }
        let percent = state.at_close.load(Ordering::Relaxed);
        if percent > 0 && !state.loaded.lock().is_set() {
            "Dumping of buffer pool not started as load was incomplete".clone_into(&mut state.dump.lock());
            return 0;
        }
        percent
    }

    /// As the database closes. A cold start is better than no stop: an error is only said. No dump is under
    /// way afterwards.
    pub(crate) fn last_dump_of_buffer_pool(&self, percent: u8) {
        let _only = self.0.buffer_pool_dump.dumping.lock();
        if percent > 0
            && let Err(error) = self.write_dump(percent)
        {
            tracing::warn!("the next start will be cold: {error}");
        }
    }

    fn warm_up_file(&self) -> PathBuf {
        self.0.directory.join(FILE)
    }
}

struct SetWhenDropped(Event);

impl Drop for SetWhenDropped {
    fn drop(&mut self) {
        self.0.set();
    }
}

fn said_at_end(end: WarmUp, state: &BufferPoolDump, pages: usize) -> String {
    match end {
        WarmUp::Complete => format!("Buffer pool(s) load completed: {pages} pages"),
        WarmUp::Full => format!("Buffer pool(s) load ended, the pool is full: {}", state.load.lock()),
        WarmUp::Stopped => "Buffer pool(s) load aborted on request".to_owned(),
    }
}

fn text_of(pages: &[PageId]) -> String {
    let mut text = String::new();
    for page in pages {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{},{}", page.space, page.page);
    }
    text
}

/// The first pages that the file names, at most `most`. The file is not ours alone: of one that is longer
/// than such a list can be, the rest is not even read.
fn read_pages(storage: &dyn Storage, path: &Path, most: usize) -> Result<Vec<PageId>> {
    let file = storage.open(path, disk::OpenHow::READ_ONLY.buffered())?;
    let (len, bytes_max) = (file.len()?, most.saturating_mul(LINE_BYTES_MAX));
    let is_cut = len > bytes_max as u64;
    let mut text = vec![0; if is_cut { bytes_max } else { len as usize }];
    file.read_at(&mut text, 0)?;
    if is_cut {
        // The number at the cut may lack digits.
        text.truncate(text.iter().rposition(|byte| *byte == b'\n').unwrap_or(0));
    }
    let mut pages = pages_of(&text);
    pages.truncate(most);
    Ok(pages)
}

/// The pages of the lines that make sense.
fn pages_of(text: &[u8]) -> Vec<PageId> {
    let page = |line: &str| {
        let (space, page) = line.split_once(',')?;
        Some(PageId::new(space.trim().parse().ok()?, page.trim().parse().ok()?))
    };
    String::from_utf8_lossy(text).lines().filter_map(page).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use disk::Environment;

    #[test]
    fn of_a_file_that_is_too_long_only_the_first_pages_are_read() {
        let storage = disk::SimulatedStorage::new(1);
        let path = Path::new("/list");
        let file = storage.open(path, disk::OpenHow::CREATE_NEW.buffered()).unwrap();
        file.write_at("1,10\n".repeat(1000).as_bytes(), 0).unwrap();
        assert_eq!(read_pages(&*storage, path, 2).unwrap(), [PageId::new(1, 10); 2]);
        // Longer lines than ours: 44 bytes end within the second one, and half a number is no page.
        let lines = format!("1,10{:33}\n2,123456\n", "");
        file.write_at(lines.as_bytes(), 0).unwrap();
        assert_eq!(read_pages(&*storage, path, 2).unwrap(), [PageId::new(1, 10)]);
    }

    fn options() -> crate::Options {
        crate::Options { unchecked_sizes: true, ..crate::Options::new("/data").buffer_pool_bytes(8 << 20) }
    }

    #[test]
    fn dumps_at_the_same_time_do_not_mix() {
        let environment = disk::SimulatedEnvironment::new(1);
        let opened = Database::open_in(environment.clone(), options());
        let database = environment.run_until_complete(opened).unwrap();
        for round in 0..300 {
            let barrier = std::sync::Barrier::new(2);
            let dump = || {
                barrier.wait();
                database.dump_buffer_pool(100)
            };
            let (one, other) = std::thread::scope(|scope| {
                let other = scope.spawn(dump);
                (dump(), other.join().unwrap())
            });
            assert!(one.is_ok() && other.is_ok(), "{round}: {one:?}, {other:?}");
            let pages = read_pages(&**environment.storage(), &database.warm_up_file(), 1000).unwrap();
            assert_eq!(Some(pages.len()), one.ok(), "{round}");
        }
        environment.shutdown();
    }

    /// Somebody else may have the directory by then.
    #[test]
    fn a_closed_database_dumps_nothing() {
        let environment = disk::SimulatedEnvironment::new(1);
        let opened = Database::open_in(environment.clone(), options());
        let database = environment.run_until_complete(opened).unwrap();
        let written = || environment.storage().exists(&database.warm_up_file()).unwrap();
        environment.run_until_complete(database.close()).unwrap();
        assert!(matches!(database.dump_buffer_pool(25), Err(crate::Error::Closed)));
        assert!(!written());
        environment.shutdown();
    }

    #[test]
    fn what_was_written_is_read_and_nonsense_is_left_out() {
        let pages = [PageId::new(3, 7), PageId::new(0, u32::MAX)];
        assert_eq!(pages_of(text_of(&pages).as_bytes()), pages);
        assert_eq!(
            pages_of(b"1,2\n\nx,1\n4,5 \n99999999999,1\n\xff\xfe,3"),
            [PageId::new(1, 2), PageId::new(4, 5)]
        );
    }
}
