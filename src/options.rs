//! Settings of a database at open, and how the defaults are derived from the machine.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::Result;
use crate::extension::ExtensionOptions;

pub use dblwr::Mode as Doublewrite;
pub use pagestore::RecoveryProgress;

/// Settings of a database. [`Options::new`] chooses defaults for the machine it runs on. The most common ones
/// have a method; set the others directly, as in `options.purge_threads = 2`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The data directory; created if it does not exist.
    pub directory: PathBuf,
    /// Bytes of the buffer pool (`innodb_buffer_pool_size`).
    pub buffer_pool_bytes: u64,
    /// Bytes of the redo log on disk (`innodb_redo_log_capacity`), 8 MiB to 512 GiB; never exceeded. As long
    /// as it is the default, it rises by itself where that saves page writes, up to the size of the buffer
    /// pool and an eighth of the free disk. A value equal to the default that is assigned to this field
    /// counts as not set; the method of the same name fixes any.
    pub redo_capacity_bytes: u64,
    /// The capacity that was chosen by default: another one was set.
    #[doc(hidden)]
    pub redo_capacity_default: Option<u64>,
    /// Bytes of the log buffer in memory (`innodb_log_buffer_size`).
    pub log_buffer_bytes: u64,
    /// Unit in which the redo log is written (`innodb_log_write_ahead_size`): 512, or 4096 for devices with
    /// physical blocks of that size. It takes effect when the log is created, or opened after a clean
    /// shutdown. The default is 512, or what direct I/O requires.
    pub redo_block_bytes: Option<u32>,
    /// Bytes of a page (`innodb_page_size`): 4096, 8192, 16384, 32768 or 65536. An existing directory keeps
    /// its page size; setting another one is an error.
    pub page_size: Option<u32>,
    /// Protection from torn pages (`innodb_doublewrite`); changed later by [`Database::set_doublewrite`].
    ///
    /// [`Database::set_doublewrite`]: crate::Database::set_doublewrite
    pub doublewrite: Doublewrite,
    /// Where the doublewrite files live (`innodb_doublewrite_dir`); the data directory if not set. Created if
    /// it does not exist. Copies in a directory used earlier are still found.
    pub doublewrite_dir: Option<PathBuf>,
    /// Number of doublewrite files (`innodb_doublewrite_files`), 1 to 256.
    pub doublewrite_files: usize,
    /// Pages of a doublewrite batch (`innodb_doublewrite_pages`), 1 to 512.
    pub doublewrite_pages: usize,
    /// What to skip at open to reach the data of a damaged directory (`innodb_force_recovery`), 0 to 6; each
    /// level includes the ones below. 0: nothing. 1: damaged pages are skipped. 2: no purge. 3: unfinished
    /// transactions are not rolled back. 4: nothing at all is changed. 5: undo logs are not read. 6: the redo
    /// log is not applied. Above 0 tables are read-only.
    pub force_recovery: u8,
    /// The buffer pool extension: a fast local disk behind the buffer pool (`untorn_bpe_*`).
    pub extension: ExtensionOptions,
    /// Table files open at a time (`innodb_open_files`), at least 10, and at most half of the process's
    /// limit. The limit is exceeded only by files that are in use or have unsynced writes.
    pub open_files: usize,
    /// Tasks that purge in parallel (`innodb_purge_threads`); they share the threads for background changes.
    pub purge_threads: usize,
    /// Whether the undo tablespace is truncated when it has grown large (`innodb_undo_log_truncate`).
    pub undo_log_truncate: bool,
    /// The size from which it is truncated (`innodb_max_undo_log_size`).
    pub max_undo_log_bytes: u64,
    /// How long a transaction waits for a row lock (`innodb_lock_wait_timeout`): 50 seconds by default.
    pub lock_wait_timeout: Duration,
    /// Memory for row locks. If it is used up, the statement fails and its transaction is rolled back.
    pub lock_memory_bytes: u64,
    /// How long a restart after a crash may take (`untorn_recovery_target`): pages are written early enough
    /// that the redo log, and the pages that it names, can be read in that time. `None`: 10 seconds and the
    /// time in which the storage reads the buffer pool.
    pub recovery_target: Option<Duration>,
    /// A clone of it tells from another thread how far a recovery is, while the database is opened.
    pub recovery_progress: RecoveryProgress,
    /// Use direct I/O where the file system supports it (`innodb_flush_method=O_DIRECT`).
    pub direct_io: bool,
    /// Use io_uring where the kernel allows it.
    pub io_uring: bool,
    /// For tests that open thousands of tiny databases: allows a smaller pool and redo log than the usual
    /// minimum.
    #[doc(hidden)]
    pub unchecked_sizes: bool,
}

/// Memory this process may use: the machine's, or its control group's limit if that is lower.
fn memory_bytes() -> u64 {
    let kib = |text: String| {
        let line = text.lines().find(|line| line.starts_with("MemTotal:"))?.to_owned();
        line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()
    };
    let machine =
        std::fs::read_to_string("/proc/meminfo").ok().and_then(kib).map_or(1 << 30, |kib| kib * 1024);
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    limits
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok())
        .fold(machine, u64::min)
}

const MIB: u64 = 1 << 20;

/// Default memory for row locks on a machine with this memory: enough for about ten million locks on a small
/// one.
#[must_use]
pub fn default_lock_memory(memory: u64) -> u64 {
    (memory / 8).max(64 * MIB)
}

/// The redo log of a pool of this many bytes, unless something else is said.
fn redo_capacity_for(pool_bytes: u64) -> u64 {
    (pool_bytes / 2).clamp(64 * MIB, 1024 * MIB)
}

impl Options {
    /// Settings for this directory with defaults for the machine: a buffer pool of a quarter of the memory
    /// (128 MiB to 8 GiB) and a redo log of half the pool (64 MiB to 1 GiB). The server chooses a larger
    /// pool.
    pub fn new(directory: impl Into<PathBuf>) -> Options {
        let pool = (memory_bytes() / 4 / MIB * MIB).clamp(128 * MIB, 8192 * MIB);
        Options {
            directory: directory.into(),
            buffer_pool_bytes: pool,
            redo_capacity_bytes: redo_capacity_for(pool),
            redo_capacity_default: Some(redo_capacity_for(pool)),
            log_buffer_bytes: 16 * MIB,
            redo_block_bytes: None,
            page_size: None,
            doublewrite: Doublewrite::Auto,
            doublewrite_dir: None,
            doublewrite_files: 2,
            doublewrite_pages: 128,
            force_recovery: 0,
            extension: ExtensionOptions::default(),
            open_files: 4000,
            lock_wait_timeout: Duration::from_secs(50),
            lock_memory_bytes: default_lock_memory(memory_bytes()),
            purge_threads: 4,
            undo_log_truncate: true,
            max_undo_log_bytes: 1024 * MIB,
            recovery_target: None,
            recovery_progress: RecoveryProgress::default(),
            direct_io: true,
            io_uring: true,
            unchecked_sizes: false,
        }
    }

    /// Checks what can be checked before anything is made, as [`Database::open`](crate::Database::open) does:
    /// settings, and that the directory is neither a backup nor that of another server.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn check(&self) -> Result<()> {
        crate::open::check(self)
    }

    /// Sets the size of the buffer pool in bytes. A redo log whose capacity was not set becomes as large as
    /// the default is for this pool.
    pub fn buffer_pool_bytes(mut self, bytes: u64) -> Options {
        if self.redo_capacity_grows() {
            self.redo_capacity_bytes = redo_capacity_for(bytes);
            self.redo_capacity_default = Some(self.redo_capacity_bytes);
        }
        self.buffer_pool_bytes = bytes;
        self
    }

    /// Sets the capacity of the redo log in bytes: it does not change by itself.
    pub fn redo_capacity_bytes(mut self, bytes: u64) -> Options {
        self.redo_capacity_bytes = bytes;
        self.redo_capacity_default = None;
        self
    }

    /// Whether nobody has set the capacity of the redo log.
    pub(crate) fn redo_capacity_grows(&self) -> bool {
        self.redo_capacity_default == Some(self.redo_capacity_bytes)
    }

    /// Puts a buffer pool extension into this file, with this size in bytes (0: eight times the buffer
    /// pool, at most half of the room there is).
    pub fn extension(mut self, file: impl Into<PathBuf>, bytes: u64) -> Options {
        self.extension.file = Some(file.into());
        self.extension.size_bytes = bytes;
        self
    }

    /// Sets the page size of a new data directory in bytes.
    pub fn page_size(mut self, bytes: u32) -> Options {
        self.page_size = Some(bytes);
        self
    }

    /// Sets the protection from torn pages.
    pub fn doublewrite(mut self, mode: Doublewrite) -> Options {
        self.doublewrite = mode;
        self
    }

    /// Sets how long a transaction waits for a row lock.
    pub fn lock_wait_timeout(mut self, timeout: Duration) -> Options {
        self.lock_wait_timeout = timeout;
        self
    }

    /// Sets the level of forced recovery.
    pub fn force_recovery(mut self, level: u8) -> Options {
        self.force_recovery = level;
        self
    }

    /// The effective limit of open table files.
    pub(crate) fn open_files(&self) -> usize {
        let possible = usize::try_from(disk::raise_file_limit() / 2).unwrap_or(usize::MAX);
        self.open_files.min(possible).max(10)
    }

    /// Where the doublewrite files live.
    pub(crate) fn doublewrite_directory(&self) -> PathBuf {
        self.doublewrite_dir.as_ref().map_or_else(|| self.directory.clone(), |path| self.directory.join(path))
    }
}
