//! A page store on real files in a directory of its own, for tests and benches of the space management.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use disk::{Environment, File, RealEnvironment, RealOptions};
use page::{PageSyncFuture, PageWriteFuture, PageWriter, WriteBatch, WrittenBatch};
use untorn_pagestore::fsp::{self, Report};
use untorn_pagestore::{Interrupt, Mtr, Options, PageSize, PageStore};

pub const SPACE: u32 = 4;

/// Writes pages to their places and syncs: all that a test without crashes needs.
struct PlainWriter;

impl PageWriter for PlainWriter {
    fn write(&self, batch: WriteBatch) -> PageWriteFuture {
        Box::pin(async move {
            for (index, page) in batch.pages().iter().enumerate() {
                page.file.write_at(batch.image(index), page.offset)?;
            }
            // There is one tablespace, and so one file.
            if let Some(page) = batch.pages().first() {
                page.file.sync_data()?;
            }
            Ok(WrittenBatch { batch, durable: true })
        })
    }

    /// Nothing was left unsynced.
    fn sync_written(&self) -> PageSyncFuture {
        Box::pin(std::future::ready(Ok(())))
    }

    fn sync_file(&self, file: Arc<dyn File>) -> PageSyncFuture {
        Box::pin(async move { file.sync_data() })
    }

    fn forget(&self, _: &Arc<dyn File>) {}
}

pub struct Fixture {
    pub store: Arc<PageStore>,
    environment: Arc<RealEnvironment>,
    directory: PathBuf,
}

impl Fixture {
    /// An empty tablespace of `pages` pages.
    pub fn new(page_size: usize, pages: u32) -> Self {
        Self::with_pool(page_size, pages, 96 << 20)
    }

    /// The same with a pool of this size.
    pub fn with_pool(page_size: usize, pages: u32, pool_bytes: usize) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("untorn-fsp-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let environment = Arc::new(RealEnvironment::new(RealOptions::default()).unwrap());
        let dynamic: Arc<dyn Environment> = environment.clone();
        let log = redo::Options { capacity: 64 << 20, first_size: 1 << 20, ..redo::Options::default() };
        let redo = redo::RedoLog::create(&dynamic, &directory, log).unwrap();
        let page_size = PageSize::new(page_size).unwrap();
        let options = Options { pool_bytes, page_size, ..Options::default() };
        let store = PageStore::open(dynamic, redo, options, Arc::new(PlainWriter)).unwrap();
        store.create_space(SPACE, &directory.join("t.ibd"), pages).unwrap();
        let fixture = Self { store, environment, directory };
        fixture.change(|mtr| fsp::create_space_pages(mtr, SPACE, pages));
        fixture
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Does `work` in a mini-transaction, again after each wait.
    pub fn try_change<T>(
        &self,
        mut work: impl FnMut(&mut Mtr<'_>) -> Result<T, Interrupt>,
    ) -> Result<T, untorn_pagestore::Error> {
        let mut held = Vec::new();
        loop {
            let outcome = self.store.mtr_sized(256 << 10).and_then(|mut mtr| {
                let done = work(&mut mtr)?;
                mtr.commit();
                Ok(done)
            });
            match outcome {
                Ok(done) => return Ok(done),
                Err(Interrupt::Error(error)) => return Err(error),
                Err(Interrupt::Wait(wait)) => {
                    self.environment.block_until(wait.event());
                    held.push(wait);
                }
            }
        }
    }

    pub fn change<T>(&self, work: impl FnMut(&mut Mtr<'_>) -> Result<T, Interrupt>) -> T {
        self.try_change(work).unwrap()
    }

    /// Reads, again after each wait.
    pub fn read<T>(&self, mut work: impl FnMut(&PageStore) -> Result<T, Interrupt>) -> T {
        let mut held = Vec::new();
        loop {
            match work(&self.store) {
                Ok(done) => return done,
                Err(Interrupt::Error(error)) => panic!("{error}"),
                Err(Interrupt::Wait(wait)) => {
                    self.environment.block_until(wait.event());
                    held.push(wait);
                }
            }
        }
    }

    /// The check; fails the test on any problem.
    pub fn clean_report(&self) -> Report {
        let report = self.read(|store| fsp::check(store, SPACE));
        assert!(report.is_clean(), "{report}");
        report
    }

    pub fn page(&self, page: u32) -> Vec<u8> {
        self.read(|store| Ok(store.read(page::PageId { space: SPACE, page })?.to_vec()))
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let store = self.store.clone();
        if !std::thread::panicking() {
            disk::block_on(async move { store.shutdown().await }).unwrap();
        }
        self.environment.shutdown();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
