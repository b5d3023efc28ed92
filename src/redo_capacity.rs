//! The capacity of the redo log: changed by the user of an open database, or by itself.
//!
//! Where nobody has set it ([`Options::redo_capacity_grows`]), the page store lets it rise when that saves
//! page writes. How far is decided here: up to the size of the buffer pool, which is about what the changes
//! to its pages come to, and up to an eighth of the room on the disk, which others need too.
//!
//! What it rose to is kept in the small file `untorn-redo-capacity`, so that it is not learnt again at the
//! next start. The length of the log's file does not say it: a restored backup's is long, and so is one whose
//! capacity was set and is so no more. The file goes when somebody sets the capacity, and no backup has it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

use disk::{Environment, OpenHow, Storage};
use pagestore::{MostLog, PageStore};
use parking_lot::Mutex;
use redo::RedoLog;

use crate::database::Database;
use crate::error::{Error, Result};
use crate::extension_size::Room;
use crate::options::Options;
use crate::small_file::{read_hint, write_atomically};

const FILE: &str = "untorn-redo-capacity";
const SETTING: &str = "innodb_redo_log_capacity";

/// The most that the setting may be, as in MySQL.
const CAPACITY_MAX: u64 = 512 << 30;

/// Refuses a log that is too small or too large.
pub(crate) fn check_capacity(bytes: u64) -> Result<()> {
    let why = match bytes {
        ..redo::CAPACITY_MIN => format!("{bytes} bytes is too small; the minimum is 8 MiB"),
        redo::CAPACITY_MIN..=CAPACITY_MAX => return Ok(()),
        _ => format!("{bytes} bytes is too large; the maximum is 512 GiB"),
    };
    Err(Error::Setting { setting: SETTING, why })
}

/// The part of the room on the disk that a log may come to have by itself.
const ROOM_SHARE: u64 = 8;

/// The most that a log beside a pool of this size may become by itself. What its file has is of the room: the
/// bound is where it was before the log took its part.
fn most(pool_bytes: u64, room: Option<u64>, has: u64) -> u64 {
    room.map_or(0, |room| (room.saturating_add(has) / ROOM_SHARE).min(pool_bytes))
}

fn length_of(storage: &dyn Storage, path: &Path) -> u64 {
    let file = |path| storage.open(path, OpenHow::READ_ONLY.by_this_name()).ok();
    let exists = storage.exists(path).unwrap_or(false);
    exists.then(|| file(path)?.len().ok()).flatten().unwrap_or(0)
}

/// The capacity to open the log with.
pub(crate) fn at_start(storage: &dyn Storage, options: &Options, room: Room) -> u64 {
    let set = options.redo_capacity_bytes;
    if !options.redo_capacity_grows() {
        return set;
    }
    let rose = read_hint(storage, &options.directory.join(FILE));
    let Some(rose) = rose.and_then(|text| text.trim().parse::<u64>().ok()) else { return set };
    let path = RedoLog::path(&options.directory);
    let has = length_of(storage, &path);
    set.max(rose.min(has).min(most(options.buffer_pool_bytes, room(&path), has)))
}

/// The small file, which one at a time writes or removes.
pub(crate) struct RoseTo {
    path: PathBuf,
    /// One at a time, and whether the database is closed: the directory may be somebody else's then.
    one_at_a_time: Mutex<bool>,
    /// One change at a time: each is of several steps. Not the mutex above, which a step of the log's own
    /// takes that a change waits for.
    changing: Mutex<()>,
    /// How far it may rise, once the database is open.
    most: OnceLock<MostLog>,
}

impl RoseTo {
    pub(crate) fn new(directory: &Path) -> Arc<RoseTo> {
        Arc::new(RoseTo {
            path: directory.join(FILE),
            one_at_a_time: Mutex::default(),
            changing: Mutex::default(),
            most: OnceLock::new(),
        })
    }

    /// Keeps what the capacity has become. Nothing if it was set meanwhile; a directory that is full does
    /// without.
    fn keep(&self, store: &PageStore) {
        let is_closed = self.one_at_a_time.lock();
        if *is_closed || !store.log_grows_by_itself() {
            return;
        }
        let text = format!("{}\n", store.redo().resize().wanted);
        let storage = store.environment().storage();
        if let Err(error) = write_atomically(&**storage, &self.path, text.as_bytes()) {
            tracing::warn!("{} cannot be written: {error}", self.path.display());
        }
    }

    /// The capacity is one that was set.
    fn forget(&self, storage: &dyn Storage) {
        let is_closed = self.one_at_a_time.lock();
        if *is_closed {
            return;
        }
        let gone = || match storage.exists(&self.path)? {
            true => storage.remove(&self.path),
            false => Ok(()),
        };
        if let Err(error) = gone() {
            tracing::warn!("{} cannot be removed: {error}", self.path.display());
        }
    }

    /// As the database closes: a change that is under way comes to its end, and the file is left alone from
    /// then on.
    pub(crate) fn close(&self) {
        let _only = self.changing.lock();
        *self.one_at_a_time.lock() = true;
    }

    /// Keeps it in the background: the page cleaner, which tells of it, does not wait for files.
    fn keep_soon(self: &Arc<Self>, environment: &dyn Environment, store: &Weak<PageStore>) {
        let (rose_to, store) = (self.clone(), store.clone());
        let keep = async move {
            if let Some(store) = store.upgrade() {
                rose_to.keep(&store);
            }
        };
        environment.spawn_blocking("redo capacity", Box::pin(keep));
    }
}

/// Lets the log of an open database become larger by itself, where nobody has set its capacity.
pub(crate) fn let_grow(database: Database, options: &Options, room: Room) -> Database {
    let path = RedoLog::path(&options.directory);
    // The store outlives no user of it by way of this.
    let store = Arc::downgrade(&database.0.store);
    let most_now: MostLog = Arc::new(move || {
        store.upgrade().map_or(0, |store| {
            let has = length_of(&**store.environment().storage(), &path);
            most(store.pool_bytes() as u64, room(&path), has)
        })
    });
    database.when_redo_capacity_rose(Box::new(|_| ()));
    if options.redo_capacity_grows() {
        database.0.store.set_log_growth(Some(most_now.clone()));
    } else if !database.0.forced_recovery.freezes_pages() {
        database.0.rose_to.forget(&**database.0.environment.storage());
    }
    // Nobody has put another there: the database is being opened.
    let _ = database.0.rose_to.most.set(most_now);
    database
}

impl Database {
    /// Changes the most bytes that the redo log may take (`innodb_redo_log_capacity`), under any load, until
    /// the database is closed. A larger capacity holds at once. A smaller one is reached in the background:
    /// pages are written sooner until so much log is enough, and its file is cut when the log has come round
    /// to its front or has nothing to recover. [`Database::redo_capacity_reached`] says how far that is.
    /// Another change on the way takes the place of the one before. From then on the capacity does not change
    /// by itself any more, until [`Database::redo_capacity_by_itself`].
    ///
    /// ```
    /// # fn main() -> untorn::Result<()> {
    /// # untorn::asynchronous::block_on(async {
    /// let db = untorn::asynchronous::Database::in_memory().await?;
    /// db.set_redo_capacity(256 << 20)?;
    /// assert_eq!((db.redo_capacity_bytes(), db.redo_capacity_reached()), (256 << 20, 256 << 20));
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    ///
    /// # Errors
    /// When that is less than 8 MiB or more than 512 GiB, the engine writes nothing any more, or the database
    /// is closed. Nothing has changed then.
    pub fn set_redo_capacity(&self, bytes: u64) -> Result<()> {
        self.change_redo_capacity(bytes, None)
    }

    /// As where nobody has set the capacity: it is the default, this number of bytes, and from there rises by
    /// itself where that saves page writes ([`Options::redo_capacity_bytes`](crate::Options)).
    ///
    /// # Errors
    /// Those of [`Database::set_redo_capacity`].
    pub fn redo_capacity_by_itself(&self, default: u64) -> Result<()> {
        self.change_redo_capacity(default, self.0.rose_to.most.get().cloned())
    }

    /// `growth`: how far it may then rise by itself.
    fn change_redo_capacity(&self, bytes: u64, growth: Option<MostLog>) -> Result<()> {
        if !self.0.unchecked_sizes {
            check_capacity(bytes)?;
        }
        let _only = self.0.rose_to.changing.lock();
        // Under the lock, which a close takes before it lets the directory go.
        self.refuse_after_close()?;
        // First: a step of its own that is under way is over when this returns, and there is no other.
        let most = self.0.store.set_log_growth(None);
        if let Err(error) = self.0.redo.set_capacity(bytes) {
            // Nothing was set.
            self.0.store.set_log_growth(most);
            return Err(error.into());
        }
        self.0.rose_to.forget(&**self.0.environment.storage());
        if growth.is_some() {
            self.0.store.set_log_growth(growth);
        }
        Ok(())
    }

    /// Tells of a capacity that rose by itself, which it does where nobody has set it.
    #[doc(hidden)]
    pub fn when_redo_capacity_rose(&self, rose: pagestore::LogRose) {
        let (rose_to, store) = (self.0.rose_to.clone(), Arc::downgrade(&self.0.store));
        let environment = Arc::downgrade(&self.0.environment);
        self.0.store.when_log_rose(Box::new(move |bytes| {
            rose(bytes);
            if let Some(environment) = environment.upgrade() {
                rose_to.keep_soon(&*environment, &store);
            }
        }));
    }

    /// The last time that the capacity of the redo log rose by itself, and why (`Untorn_redo_log_rose`);
    /// empty if it never did.
    pub fn redo_capacity_rose(&self) -> String {
        self.0.store.log_growth_status()
    }

    /// The capacity of the redo log that was last asked for, in bytes.
    pub fn redo_capacity_bytes(&self) -> u64 {
        self.0.redo.resize().wanted
    }

    /// The capacity of the redo log that holds, in bytes: more than [`Database::redo_capacity_bytes`] while
    /// the log becomes smaller.
    pub fn redo_capacity_reached(&self) -> u64 {
        self.0.redo.resize().reached
    }

    /// How often the log has become smaller since the start.
    #[doc(hidden)]
    pub fn redo_log_cuts(&self) -> u64 {
        self.0.redo.resize().cuts
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use disk::{Environment, SimulatedEnvironment};
    use std::path::Path;

    const MIB: u64 = 1 << 20;

    fn options() -> Options {
        Options { unchecked_sizes: true, ..Options::new("/data").buffer_pool_bytes(8 * MIB) }
    }

    fn database(options: Options) -> (Arc<SimulatedEnvironment>, Database) {
        let environment = SimulatedEnvironment::new(1);
        let opened = environment.run_until_complete(Database::open_in(environment.clone(), options)).unwrap();
        (environment, opened)
    }

    #[test]
    fn pool_and_room_bound_it() {
        assert_eq!(most(100, Some(10_000), 0), 100);
        assert_eq!(most(100, Some(400), 0), 50);
        assert_eq!(most(100, Some(360), 40), 50, "the log has its part of it");
        assert_eq!(most(100, None, 0), 0, "nobody knows the room");
    }

    #[test]
    fn only_a_capacity_that_nobody_has_set_changes_by_itself() {
        let (environment, by_itself) = database(options());
        assert!(by_itself.0.store.log_grows_by_itself());
        by_itself.set_redo_capacity(9 * MIB).unwrap();
        assert!(!by_itself.0.store.log_grows_by_itself(), "set while it was open");
        environment.shutdown();
        let (environment, set) = database(options().redo_capacity_bytes(9 * MIB));
        assert!(!set.0.store.log_grows_by_itself());
        environment.shutdown();
        let mut assigned = options();
        assigned.redo_capacity_bytes = 9 * MIB;
        let (environment, assigned) = database(assigned);
        assert!(!assigned.0.store.log_grows_by_itself(), "set without the method");
        environment.shutdown();
    }

    #[test]
    fn a_capacity_that_was_set_may_be_left_to_itself_again() {
        for at_start in [options(), options().redo_capacity_bytes(9 * MIB)] {
            let (environment, database) = database(at_start);
            database.set_redo_capacity(10 * MIB).unwrap();
            database.redo_capacity_by_itself(1).unwrap_err();
            assert!(!database.0.store.log_grows_by_itself());
            database.redo_capacity_by_itself(12 * MIB).unwrap();
            assert!(database.0.store.log_grows_by_itself());
            assert_eq!(database.redo_capacity_bytes(), 12 * MIB);
            database.set_redo_capacity(10 * MIB).unwrap();
            assert!(!database.0.store.log_grows_by_itself());
            environment.shutdown();
        }
    }

    /// Whichever comes last, all of it holds.
    #[test]
    fn two_changes_at_a_time_do_not_mix() {
        let (environment, database) = database(options());
        for round in 0..500 {
            let barrier = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    barrier.wait();
                    database.set_redo_capacity(10 * MIB).unwrap();
                });
                barrier.wait();
                database.redo_capacity_by_itself(12 * MIB).unwrap();
            });
            let (bytes, by_itself) = (database.redo_capacity_bytes(), database.0.store.log_grows_by_itself());
            assert!([(10 * MIB, false), (12 * MIB, true)].contains(&(bytes, by_itself)), "{round}: {bytes}");
        }
        environment.shutdown();
    }

    /// Somebody else may have the directory by then.
    #[test]
    fn a_closed_database_changes_nothing_of_its_directory() {
        let environment = SimulatedEnvironment::new(1);
        let open =
            || environment.run_until_complete(Database::open_in(environment.clone(), options())).unwrap();
        let kept = || read_hint(&**environment.storage(), &Path::new("/data").join(FILE));
        let closed = open();
        environment.run_until_complete(closed.close()).unwrap();
        let other = open();
        other.0.rose_to.keep(&other.0.store);
        let before = kept();
        assert!(before.is_some());
        assert!(matches!(closed.set_redo_capacity(9 * MIB), Err(Error::Closed)));
        assert!(matches!(closed.redo_capacity_by_itself(9 * MIB), Err(Error::Closed)));
        closed.0.rose_to.forget(&**environment.storage());
        assert_eq!(kept(), before);
        other.0.rose_to.forget(&**environment.storage());
        closed.0.rose_to.keep(&closed.0.store);
        assert_eq!(kept(), None);
        environment.run_until_complete(other.close()).unwrap();
        environment.shutdown();
    }

    #[test]
    fn a_capacity_that_no_log_can_have_is_refused() {
        for (bytes, is_refused) in [
            (8 * MIB - 1, true),
            (8 * MIB, false),
            (512 << 30, false),
            ((512 << 30) + 1, true),
            (u64::MAX, true),
        ] {
            assert_eq!(check_capacity(bytes).is_err(), is_refused, "{bytes}");
        }
    }

    #[test]
    fn a_change_that_is_refused_does_not_end_it() {
        let (environment, database) = database(options());
        database.set_redo_capacity(1).unwrap_err();
        assert!(database.0.store.log_grows_by_itself());
        environment.shutdown();
    }

    /// It is kept when it rises, and forgotten when somebody sets it, now or at a start.
    #[test]
    fn what_it_rose_to_is_kept_until_it_is_set() {
        let environment = SimulatedEnvironment::new(1);
        let open = |options| {
            let opened = Database::open_in(environment.clone(), options);
            environment.run_until_complete(opened).unwrap()
        };
        let kept = || read_hint(&**environment.storage(), &Path::new("/data").join(FILE));
        let close = |database: Database| environment.run_until_complete(database.close()).unwrap();
        let database = open(options());
        assert_eq!(kept(), None);
        database.0.rose_to.keep(&database.0.store);
        let default = options().redo_capacity_bytes;
        assert_eq!(kept(), Some(format!("{default}\n")));
        close(database);
        let database = open(options());
        assert!(kept().is_some());
        database.set_redo_capacity(9 * MIB).unwrap();
        assert_eq!(kept(), None);
        database.0.rose_to.keep(&database.0.store);
        assert_eq!(kept(), None, "a step that was told of before");
        close(database);
        let database = open(options());
        database.0.rose_to.keep(&database.0.store);
        close(database);
        let database = open(options().redo_capacity_bytes(9 * MIB));
        assert_eq!(kept(), None);
        close(database);
        environment.shutdown();
    }

    #[test]
    fn what_it_rose_to_it_may_have_again() {
        let environment = SimulatedEnvironment::new(1);
        let storage = environment.storage();
        let options = Options::new("/data").buffer_pool_bytes(1024 * MIB);
        let default = options.redo_capacity_bytes;
        let start = |room| at_start(&**storage, &options, room);
        storage.create_dir_all(Path::new("/data")).unwrap();
        let file = storage.open(&RedoLog::path(Path::new("/data")), OpenHow::CREATE_NEW).unwrap();
        let set_len = |bytes| file.set_len(bytes).unwrap();
        let keep = |text: String| {
            write_atomically(&**storage, &Path::new("/data").join(FILE), text.as_bytes()).unwrap();
        };
        set_len(default + 200 * MIB);
        assert_eq!(start(|_| Some(u64::MAX)), default, "a long file alone, as a restored backup has it");
        keep(format!("{}\n", default + 100 * MIB));
        assert_eq!(start(|_| Some(u64::MAX)), default + 100 * MIB);
        assert_eq!(start(|_| Some(8 * MIB)), default, "no room");
        set_len(default + 50 * MIB);
        assert_eq!(start(|_| Some(u64::MAX)), default + 50 * MIB, "no more than it has");
        set_len(2048 * MIB);
        keep("4294967296".into());
        assert_eq!(start(|_| Some(u64::MAX)), 1024 * MIB, "the pool's size");
        assert_eq!(start(|_| Some(6000 * MIB)), 1006 * MIB, "an eighth of the room, its own included");
        keep("many".into());
        assert_eq!(start(|_| Some(u64::MAX)), default);
        keep("4294967296".into());
        let set = options.clone().redo_capacity_bytes(64 * MIB);
        assert_eq!(at_start(&**storage, &set, |_| Some(u64::MAX)), 64 * MIB);
    }
}
