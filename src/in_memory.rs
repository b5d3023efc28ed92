//! Databases for tests, which leave nothing behind.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::database::Database;
use crate::error::Result;
use crate::options::Options;

/// Where the files are kept, if it is there: Linux mounts a file system in memory on it.
const MEMORY: &str = "/dev/shm";

/// Removed with the last that uses the database.
struct TemporaryDirectory(PathBuf);

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(directory = %self.0.display(), %error, "a database in memory stays there");
        }
    }
}

impl Database {
    /// An empty database for tests. Its files lie in a file system in memory where the system has one, else
    /// in the directory for temporary files, and are removed when it is closed, or with the last of its
    /// clones, handles and transactions.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub async fn in_memory() -> Result<Database> {
        static OPENED: AtomicU64 = AtomicU64::new(0);
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let memory = Path::new(MEMORY);
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let nanos = std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos());
        let directory = parent.join(format!("untorn-{}-{number}-{nanos}", std::process::id()));
        let options = Options::new(&directory).buffer_pool_bytes(16 << 20).redo_capacity_bytes(8 << 20);
        let directory = TemporaryDirectory(directory);
        let database = Database::open(Options { direct_io: false, ..options }).await?;
        database.redo().keep(Box::new(directory));
        database.0.in_memory.store(true, Ordering::Relaxed);
        Ok(database)
    }
}
