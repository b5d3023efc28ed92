//! A tree on a real page store in a directory of its own, changed the way the transaction layer changes it.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use disk::{Environment, File, RealEnvironment, RealOptions};
use page::{PageSyncFuture, PageWriteFuture, PageWriter, WriteBatch, WrittenBatch};
use pagestore::{Error, Interrupt, Mtr, Options, PageSize, PageStore, fsp};
use untorn_btree::{
    CheckReport, Checker, Field, IndexDef, LeafCursor, Outcome, RecordBuffer, RecordRef, Seek,
    StructureChange, Tree,
};

pub const SPACE: u32 = 4;

/// Writes pages to their places and syncs: all that a test without crashes needs.
pub struct PlainWriter;

impl PageWriter for PlainWriter {
    fn write(&self, batch: WriteBatch) -> PageWriteFuture {
        Box::pin(async move {
            for (index, page) in batch.pages().iter().enumerate() {
                page.file.write_at(batch.image(index), page.offset)?;
            }
            for page in batch.pages() {
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
    /// Removals that took the latches of a structure change.
    pub removals_in_structure: AtomicU32,
}

impl Fixture {
    /// A store with an empty tablespace.
    pub fn new(page_size: usize, pool_bytes: usize) -> Fixture {
        Fixture::without_space(page_size, pool_bytes).with_space()
    }

    /// The same under a forced recovery.
    pub fn forced(page_size: usize, pool_bytes: usize) -> Fixture {
        let page_size = PageSize::new(page_size).unwrap();
        let options = Options { pool_bytes, page_size, skip_corrupt: true, ..Options::default() };
        Fixture::with_options(options).with_space()
    }

    fn with_space(self) -> Fixture {
        let fixture = self;
        fixture.store.create_space(SPACE, &fixture.directory.join("t.ibd"), 7).unwrap();
        fixture.change(|mtr| fsp::create_space_pages(mtr, SPACE, 7));
        fixture
    }

    pub fn without_space(page_size: usize, pool_bytes: usize) -> Fixture {
        let page_size = PageSize::new(page_size).unwrap();
        Self::with_options(Options { pool_bytes, page_size, ..Options::default() })
    }

    fn with_options(options: Options) -> Fixture {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("untorn-btree-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let environment = Arc::new(RealEnvironment::new(RealOptions::default()).unwrap());
        let dynamic: Arc<dyn Environment> = environment.clone();
        // Files of stock servers have LSNs of their own; the log is beyond them.
        let begin_at = redo::Lsn(1 << 30);
        let log =
            redo::Options { capacity: 64 << 20, first_size: 1 << 20, begin_at, ..redo::Options::default() };
        let redo = redo::RedoLog::create(&dynamic, &directory, log).unwrap();
        let store = PageStore::open(dynamic, redo, options, Arc::new(PlainWriter)).unwrap();
        Fixture { store, environment, directory, removals_in_structure: AtomicU32::new(0) }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Calls `work` until it does not have to wait.
    pub fn run<T>(&self, mut work: impl FnMut() -> Result<T, Interrupt>) -> Result<T, Error> {
        let mut held = disk::HeldWaits::new();
        for round in 0.. {
            assert!(round < 10_000, "an operation waits again and again: {:?}", self.store.status());
            match work() {
                Ok(done) => return Ok(done),
                Err(Interrupt::Error(error)) => return Err(error),
                Err(Interrupt::Wait(wait)) => {
                    held.wait_blocking(wait, |event| self.environment.block_until(event));
                }
            }
        }
        unreachable!("the loop ends by a return")
    }

    pub fn change<T>(&self, mut work: impl FnMut(&mut Mtr<'_>) -> Result<T, Interrupt>) -> T {
        self.run(|| {
            let mut mtr = self.store.mtr()?;
            let done = work(&mut mtr)?;
            mtr.commit();
            Ok(done)
        })
        .unwrap()
    }

    pub fn tree(&self, def: IndexDef) -> Tree {
        let def = Arc::new(def);
        self.change(|mtr| Tree::create(mtr, &self.store, SPACE, Arc::clone(&def)))
    }

    pub fn check(&self, tree: &Tree) -> CheckReport {
        let mut checker = Checker::new(tree);
        while !self.run(|| checker.step()).unwrap() {}
        checker.into_report()
    }

    /// Checks the tree and that it has exactly the pages that the tablespace thinks it has.
    pub fn check_clean(&self, tree: &Tree) -> CheckReport {
        let mut report = self.check(tree);
        assert!(report.problems.is_empty(), "{:#?}", report.problems);
        assert_eq!(report.single_page_levels, 0, "levels of a single page below the root");
        if self.store.status().pages_total < 1000 {
            // The check of a tablespace wants all its structure pages in memory at once.
            return report;
        }
        let space = self.run(|| fsp::check(&self.store, SPACE)).unwrap();
        assert!(space.is_clean(), "{space}");
        let (leaf, top) = tree.segments();
        for (segment, pages) in [(leaf, &mut report.leaf_segment_pages), (top, &mut report.top_segment_pages)]
        {
            pages.sort_unstable();
            let index = space.segment(segment).expect("the tree's segment is in the tablespace");
            let mut used: Vec<u32> = space.pages_of(index).collect();
            used.sort_unstable();
            assert_eq!(*pages, used, "pages of a segment");
        }
        report
    }

    /// Inserts or replaces a record the way the transaction layer does. Returns the bytes logged.
    pub fn put(&self, tree: &Tree, key: &[Field<'_>], record: &mut RecordBuffer, trx_id: u64) -> usize {
        let on_leaf = self.run(|| {
            let mut mtr = self.store.mtr()?;
            let position = tree.seek_for_change(&mut mtr, key)?;
            let outcome = if position.exact {
                let fits = tree.update_fits(&mtr, position.place, record);
                let outcome = tree.update_here(&mut mtr, position.place, record, trx_id)?;
                assert_eq!(fits, matches!(outcome, Outcome::Done(_)));
                assert!(fits || !mtr.has_changes());
                fits.then_some(())
            } else {
                let fits = tree.insert_fits(&mtr, &position, record.size());
                match tree.insert_here(&mut mtr, &position, record, trx_id)? {
                    Outcome::Done(place) => {
                        assert!(fits);
                        let stored = tree.record_at(&mtr, place).expect("the record just inserted");
                        assert!(stored.fields().eq(record.view(tree.def()).fields()));
                        Some(())
                    }
                    Outcome::NeedsStructureChange => {
                        assert!(!fits && !mtr.has_changes());
                        None
                    }
                }
            };
            let logged = mtr.logged_bytes();
            mtr.commit();
            Ok(outcome.map(|()| logged))
        });
        if let Some(logged) = on_leaf.unwrap() {
            return logged;
        }
        self.run(|| {
            let mut mtr = self.store.mtr_sized(tree.structure_redo_bytes())?;
            let change = StructureChange::Insert { size: record.size() };
            let (position, mut guard) = tree.seek_for_structure_change(&mut mtr, key, change)?;
            guard.reserve(&mut mtr)?;
            if position.exact {
                tree.update_with_split(&mut mtr, &mut guard, position.place, record, trx_id)?;
            } else {
                tree.insert_with_split(&mut mtr, &mut guard, &position, record, trx_id)?;
            }
            let logged = mtr.logged_bytes();
            assert!(logged <= tree.structure_redo_bytes(), "{logged} bytes logged");
            mtr.commit();
            drop(guard);
            Ok(logged)
        })
        .unwrap()
    }

    /// Removes a record; whether it was there.
    pub fn remove(&self, tree: &Tree, key: &[Field<'_>]) -> bool {
        let on_leaf = self.run(|| {
            let mut mtr = self.store.mtr()?;
            let position = tree.seek_for_change(&mut mtr, key)?;
            if !position.exact {
                return Ok(Some(false));
            }
            let outcome = tree.remove_here(&mut mtr, position.place)?;
            mtr.commit();
            Ok(matches!(outcome, Outcome::Done(_)).then_some(true))
        });
        if let Some(removed) = on_leaf.unwrap() {
            return removed;
        }
        self.removals_in_structure.fetch_add(1, Ordering::Relaxed);
        self.run(|| {
            let mut mtr = self.store.mtr_sized(tree.structure_redo_bytes())?;
            let (position, mut guard) =
                tree.seek_for_structure_change(&mut mtr, key, StructureChange::Remove)?;
            if position.exact {
                guard.reserve(&mut mtr)?;
                tree.remove_with_merge(&mut mtr, &mut guard, position.place)?;
            }
            mtr.commit();
            drop(guard);
            Ok(position.exact)
        })
        .unwrap()
    }

    pub fn get<R>(&self, tree: &Tree, key: &[Field<'_>], f: impl Fn(RecordRef<'_>) -> R) -> Option<R> {
        self.run(|| tree.get(key, &f)).unwrap()
    }

    pub fn seek<'t>(&self, tree: &'t Tree, key: &[Field<'_>], how: Seek) -> LeafCursor<'t> {
        self.run(|| tree.seek(key, how)).unwrap()
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
