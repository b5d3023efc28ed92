//! What can be chosen for the page writer.

use crate::mode::Mode;
use disk::{Error, Result};
use std::io;
use std::path::PathBuf;

/// Most files (`innodb_doublewrite_files`), as in MySQL.
pub const FILES_MAX: usize = 256;
/// Most pages of a batch (`innodb_doublewrite_pages`), as in MySQL.
pub const PAGES_MAX: usize = 512;
/// Doublewrite batches of each purpose that may be under way at once, at least.
const SEGMENTS: usize = 4;

/// Settings of a [`ProtectedWriter`](crate::ProtectedWriter).
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the doublewrite files live (`innodb_doublewrite_dir`); must exist.
    pub directory: PathBuf,
    /// Bytes per page: a power of two from 4096 to 65536.
    pub page_size: usize,
    /// Doublewrite files (`innodb_doublewrite_files`): even numbers serve checkpoint flushing, odd ones LRU
    /// flushing; a single one serves both.
    pub files: usize,
    /// Pages per segment (`innodb_doublewrite_pages`); larger batches are written in parts.
    pub pages: usize,
    /// How pages are protected at first.
    pub mode: Mode,
    /// The undo tablespace, whose bytes are counted apart.
    pub undo_space: Option<u32>,
    /// Data files that batches may leave unsynced, and so open, until they are asked for a sync.
    pub unsynced_files_max: usize,
    /// The caller has synced the directory: the names of files that are there will stay.
    pub directory_is_synced: bool,
}

impl Options {
    /// Two files with segments of 128 pages, the default of MySQL 8.4, in mode ON.
    pub fn new(directory: impl Into<PathBuf>, page_size: usize) -> Options {
        Options {
            directory: directory.into(),
            page_size,
            files: 2,
            pages: 128,
            mode: Mode::On,
            undo_space: None,
            unsynced_files_max: 1000,
            directory_is_synced: false,
        }
    }

    /// The same in another mode.
    pub fn mode(mut self, mode: Mode) -> Options {
        self.mode = mode;
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |text: String| {
            let error = io::Error::new(io::ErrorKind::InvalidInput, text);
            Err(Error::new("set up the doublewrite in", &self.directory, error))
        };
        if !self.page_size.is_power_of_two() || !(4096..=65536).contains(&self.page_size) {
            return refuse(format!("{} is no page size", self.page_size));
        }
        if !(1..=FILES_MAX).contains(&self.files) {
            return refuse(format!("innodb_doublewrite_files={} is not in 1..{FILES_MAX}", self.files));
        }
        if !(1..=PAGES_MAX).contains(&self.pages) {
            return refuse(format!("innodb_doublewrite_pages={} is not in 1..{PAGES_MAX}", self.pages));
        }
        Ok(())
    }

    /// Segments of each purpose.
    pub(crate) fn segments(&self) -> usize {
        SEGMENTS.max(self.files.div_ceil(2))
    }
}
