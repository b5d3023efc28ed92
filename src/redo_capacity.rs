//! The capacity of the redo log: changed by the user of an open database, or by itself.
//!
//! Where nobody has set it ([`Options::redo_capacity_grows`]), the page store lets it rise when that saves
//! page writes. How far is decided here: up to the size of the buffer pool, which is about what the changes
//! to its pages come to, and up to an eighth of the room on the disk, which others need too. At the next
//! start the log may have what its file came to have, so that what was learnt is not learnt again.

use std::sync::Arc;

use disk::{OpenHow, Storage};
use redo::RedoLog;

use crate::database::Database;
use crate::error::{Error, Result};
use crate::extension_size::Room;
use crate::options::Options;

const SETTING: &str = "innodb_redo_log_capacity";

/// Refuses a log that is too small.
pub(crate) fn check_capacity(bytes: u64) -> Result<()> {
    if bytes < redo::CAPACITY_MIN {
        let why = format!("{bytes} bytes is too small; the minimum is 8 MiB");
        return Err(Error::Setting { setting: SETTING, why });
    }
    Ok(())
}

/// The part of the room on the disk that a log may come to have by itself.
const ROOM_SHARE: u64 = 8;

/// The most that a log beside a pool of this size may become by itself.
fn most(pool_bytes: u64, room: Option<u64>) -> u64 {
    room.map_or(0, |room| (room / ROOM_SHARE).min(pool_bytes))
}

/// The capacity to open the log with.
pub(crate) fn at_start(storage: &dyn Storage, options: &Options, room: Room) -> u64 {
    let set = options.redo_capacity_bytes;
    if !options.redo_capacity_grows() {
        return set;
    }
    let path = RedoLog::path(&options.directory);
    let has = || {
        let exists = storage.exists(&path).ok()?;
        exists.then(|| storage.open(&path, OpenHow::READ_ONLY.by_this_name()).ok()?.len().ok())?
    };
    let has = has().unwrap_or(0).min(most(options.buffer_pool_bytes, room(&path)));
    set.max(has)
}

/// Lets the log of an open database become larger by itself.
pub(crate) fn let_grow(database: Database, options: &Options, room: Room) -> Database {
    if !options.redo_capacity_grows() {
        return database;
    }
    let path = RedoLog::path(&options.directory);
    // The store outlives no user of it by way of this.
    let store = Arc::downgrade(&database.0.store);
    let most_now = move || store.upgrade().map_or(0, |store| most(store.pool_bytes() as u64, room(&path)));
    database.0.store.set_log_growth(Some(Arc::new(most_now)));
    database
}

impl Database {
    /// Changes the most bytes that the redo log may take (`innodb_redo_log_capacity`), under any load, until
    /// the database is closed. A larger capacity holds at once. A smaller one is reached in the background:
    /// pages are written sooner until so much log is enough, and its file is cut when the log has come round
    /// to its front or has nothing to recover. [`Database::redo_capacity_reached`] says how far that is.
    /// Another change on the way takes the place of the one before. From then on the capacity does not change
    /// by itself any more.
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
    /// When that is less than 8 MiB, or the engine writes nothing any more. Nothing has changed then.
    pub fn set_redo_capacity(&self, bytes: u64) -> Result<()> {
        if !self.0.unchecked_sizes {
            check_capacity(bytes)?;
        }
        // First: a step of its own that is under way is over when this returns, and there is no other.
        self.0.store.set_log_growth(None);
        Ok(self.0.redo.set_capacity(bytes)?)
    }

    /// Tells of a capacity that rose by itself, which it does where nobody has set it.
    #[doc(hidden)]
    pub fn when_redo_capacity_rose(&self, rose: pagestore::LogRose) {
        self.0.store.when_log_rose(rose);
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
        assert_eq!(most(100, Some(10_000)), 100);
        assert_eq!(most(100, Some(400)), 50);
        assert_eq!(most(100, None), 0, "nobody knows the room");
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
    fn what_the_file_came_to_have_it_may_have_again() {
        let environment = SimulatedEnvironment::new(1);
        let storage = environment.storage();
        let options = Options::new("/data").buffer_pool_bytes(1024 * MIB);
        let default = options.redo_capacity_bytes;
        assert_eq!(at_start(&**storage, &options, |_| Some(u64::MAX)), default, "no file");
        storage.create_dir_all(Path::new("/data")).unwrap();
        let file = storage.open(&RedoLog::path(Path::new("/data")), OpenHow::CREATE_NEW).unwrap();
        let set_len = |bytes| file.set_len(bytes).unwrap();
        set_len(default + 100 * MIB);
        assert_eq!(at_start(&**storage, &options, |_| Some(u64::MAX)), default + 100 * MIB);
        assert_eq!(at_start(&**storage, &options, |_| Some(8 * MIB)), default, "no room");
        set_len(2048 * MIB);
        assert_eq!(at_start(&**storage, &options, |_| Some(u64::MAX)), 1024 * MIB, "the pool's size");
        let set = options.redo_capacity_bytes(64 * MIB);
        assert_eq!(at_start(&**storage, &set, |_| Some(u64::MAX)), 64 * MIB);
    }
}
