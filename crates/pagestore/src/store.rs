//! The page store: the pool, its tablespaces and its background tasks behind one handle.

use std::path::Path;
use std::sync::Arc;

use disk::{Environment, PageId, PageWriter};
use redo::{Lsn, RedoLog};

use crate::error::{Error, Interrupt};
use crate::guard::{PageRead, Pin};
use crate::mtr::Mtr;
use crate::page::PageSize;
use crate::space::SpaceInfo;
use crate::status::PoolStatus;

/// How to open a [`PageStore`].
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes of page frames (`innodb_buffer_pool_size`), rounded down to whole pages; at least 64 pages.
    pub pool_bytes: usize,
    /// Page size of every tablespace (`innodb_page_size`).
    pub page_size: PageSize,
    /// `innodb_old_blocks_pct`: share of the LRU list that is its old part, 5 to 95.
    pub old_blocks_pct: u8,
    /// `innodb_old_blocks_time`: milliseconds after its first access before an old page may become young.
    pub old_blocks_time_ms: u32,
    /// `innodb_io_capacity_max`: optional cap on pages written per second, except when the redo log is nearly full.
    pub io_capacity_max: Option<u32>,
    /// Threads that apply redo at recovery; 1 under the simulator.
    pub recovery_threads: usize,
    /// Whether page cleaner and checkpointer run in the background (tests may drive them by hand).
    pub background: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            pool_bytes: 128 << 20,
            page_size: PageSize::DEFAULT,
            old_blocks_pct: 37,
            old_blocks_time_ms: 1000,
            io_capacity_max: None,
            recovery_threads: std::thread::available_parallelism().map_or(1, |n| n.get().min(4)),
            background: true,
        }
    }
}

/// Pages in memory and in files.
pub struct PageStore {}

#[allow(unused_variables, clippy::todo, missing_docs)]
impl PageStore {
    /// Allocates the pool and starts the background tasks. No tablespace is open yet.
    pub fn open(
        env: Arc<dyn Environment>,
        redo: Arc<RedoLog>,
        options: Options,
        writer: Arc<dyn PageWriter>,
    ) -> Result<Arc<PageStore>, Error> {
        todo!()
    }
    pub fn page_size(&self) -> PageSize {
        todo!()
    }
    pub fn redo(&self) -> &Arc<RedoLog> {
        todo!()
    }
    pub fn environment(&self) -> &Arc<dyn Environment> {
        todo!()
    }
    /// Pins and S-latches a page.
    pub fn read(&self, page: PageId) -> Result<PageRead, Interrupt> {
        todo!()
    }
    /// Pins a page.
    pub fn pin(&self, page: PageId) -> Result<Pin, Interrupt> {
        todo!()
    }
    /// Starts reading pages that will be wanted soon, those that are missing, in one batch. Never waits or fails.
    pub fn prefetch(&self, pages: &[PageId]) {
        todo!()
    }
    /// Starts a mini-transaction with redo space for usual changes (a few pages' worth).
    pub fn mtr(&self) -> Result<Mtr<'_>, Interrupt> {
        todo!()
    }
    /// Starts a mini-transaction that may log up to `bytes`.
    pub fn mtr_sized(&self, bytes: usize) -> Result<Mtr<'_>, Interrupt> {
        todo!()
    }
    /// Creates a tablespace file of `pages` zero pages and opens it. Blocks for file I/O. The caller then fills in the
    /// structure (`fsp::create_space_pages`).
    pub fn create_space(&self, space: u32, path: &Path, pages: u32) -> Result<(), Error> {
        todo!()
    }
    /// Opens an existing tablespace file: page 0 must be valid and say this id and flags we know. Blocks for file I/O.
    pub fn open_space(&self, space: u32, path: &Path) -> Result<SpaceInfo, Error> {
        todo!()
    }
    /// An open tablespace.
    pub fn space(&self, space: u32) -> Option<SpaceInfo> {
        todo!()
    }
    /// All open tablespaces.
    pub fn spaces(&self) -> Vec<SpaceInfo> {
        todo!()
    }
    /// Makes the file at least `pages` long (zeros, synced). Waits (Interrupt::Wait) while that is being done.
    pub fn extend_space(&self, space: u32, pages: u32) -> Result<(), Interrupt> {
        todo!()
    }
    /// Forgets the tablespace's pages, dirty ones too, closes and removes the file. Nobody else may use it.
    pub async fn drop_space(&self, space: u32) -> Result<(), Error> {
        todo!()
    }
    /// Writes the tablespace's dirty pages, forgets its pages and closes the file.
    pub async fn close_space(&self, space: u32) -> Result<(), Error> {
        todo!()
    }
    /// Renames the tablespace's file.
    pub fn rename_space(&self, space: u32, to: &Path) -> Result<(), Error> {
        todo!()
    }
    /// Writes every dirty page of one tablespace as of now (FOR EXPORT).
    pub async fn flush_space(&self, space: u32) -> Result<(), Error> {
        todo!()
    }
    /// Writes every page that is dirty now.
    pub async fn flush_all(&self) -> Result<(), Error> {
        todo!()
    }
    /// Sharp checkpoint: flushes all and moves the checkpoint. Returns the checkpoint LSN.
    pub async fn checkpoint(&self) -> Result<Lsn, Error> {
        todo!()
    }
    /// Flushes all, moves the checkpoint, stops the background tasks.
    pub async fn shutdown(&self) -> Result<(), Error> {
        todo!()
    }
    /// Why changes are refused, if they are.
    pub fn poisoned(&self) -> Option<Arc<str>> {
        todo!()
    }
    /// Stops all changes from now on (after an internal fault above this crate). Reads go on.
    pub fn poison(&self, reason: &str) {
        todo!()
    }
    pub fn status(&self) -> PoolStatus {
        todo!()
    }
}
