//! A store over a real or simulated environment, and a page writer that writes plainly.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use disk::{Environment, File, IoBuf, Random, RealEnvironment, RealOptions};
use page::{PageId, PageSize, PageSyncFuture, PageWriteFuture, PageWriter, WriteBatch, WrittenBatch};
use redo::RedoLog;

use crate::error::{Error, Interrupt};
use crate::store::{Options, PageStore};

/// Writes every page to its place with a sync, no protection against torn pages.
pub(super) struct PlainWriter(pub(super) Arc<dyn Environment>);

impl PageWriter for PlainWriter {
    fn write(&self, batch: WriteBatch) -> PageWriteFuture {
        let storage = self.0.storage().clone();
        Box::pin(async move {
            for (index, page) in batch.pages().iter().enumerate() {
                let buf = IoBuf::Shared(batch.images().clone(), batch.range(index));
                disk::write_async(&*storage, &page.file, buf, page.offset, false).await?;
            }
            let mut synced: Vec<&Path> = Vec::new();
            for page in batch.pages() {
                if !synced.contains(&page.file.path()) {
                    synced.push(page.file.path());
                    disk::sync_async(&*storage, &page.file).await?;
                }
            }
            Ok(WrittenBatch { batch, durable: true })
        })
    }

    /// Nothing was left unsynced.
    fn sync_written(&self) -> PageSyncFuture {
        Box::pin(std::future::ready(Ok(())))
    }

    fn sync_file(&self, file: Arc<dyn File>) -> PageSyncFuture {
        let storage = self.0.storage().clone();
        Box::pin(async move { disk::sync_async(&*storage, &file).await })
    }

    fn forget(&self, _: &Arc<dyn File>) {}
}

/// A directory that is removed at the end.
pub(super) struct TempDir(pub(super) PathBuf);

impl TempDir {
    pub(super) fn new(name: &str) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let unique =
            format!("untorn-{name}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(unique);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn real_environment() -> Arc<dyn Environment> {
    Arc::new(RealEnvironment::new(RealOptions::default()).unwrap())
}

pub(super) fn options(frames: usize, page_size: usize) -> Options {
    Options {
        pool_bytes: frames * page_size,
        page_size: PageSize::new(page_size).unwrap(),
        recovery_threads: 1,
        ..Options::default()
    }
}

pub(super) fn redo_options(capacity: u64) -> redo::Options {
    redo::Options { capacity, buffer_size: 1 << 20, first_size: 1 << 20, ..redo::Options::default() }
}

pub(super) fn new_store(
    env: &Arc<dyn Environment>,
    dir: &Path,
    options: Options,
    log: u64,
) -> Arc<PageStore> {
    let redo = RedoLog::create(env, dir, redo_options(log)).unwrap();
    PageStore::open(env.clone(), redo, options, Arc::new(PlainWriter(env.clone()))).unwrap()
}

/// Repeats `operation` until it completes, waiting as the engine's callers do.
pub(super) async fn retry<T>(mut operation: impl FnMut() -> Result<T, Interrupt>) -> Result<T, Error> {
    let mut left = 1000;
    disk::retry(|| {
        left -= 1;
        assert!(left > 0, "an operation waits again and again");
        operation()
    })
    .await
}

/// Creates a page of space and writes `value` at a few places of it.
pub(super) fn create_page(store: &PageStore, id: PageId, value: u64) -> Result<redo::Lsn, Interrupt> {
    let mut mtr = store.mtr()?;
    let page = mtr.create(id)?;
    put(&mut mtr, page, value);
    Ok(mtr.commit())
}

pub(super) fn update_page(store: &PageStore, id: PageId, value: u64) -> Result<redo::Lsn, Interrupt> {
    let mut mtr = store.mtr()?;
    let page = mtr.x(id)?;
    put(&mut mtr, page, value);
    Ok(mtr.commit())
}

fn put(mtr: &mut crate::Mtr<'_>, page: crate::PageHandle, value: u64) {
    let end = mtr.page(page).len();
    mtr.write_u64(page, 100, value);
    mtr.write_u64(page, end / 2, value.wrapping_mul(3));
    mtr.fill(page, end - 200, 100, value as u8);
}

pub(super) fn value_of(page: &[u8]) -> u64 {
    let value = page::u64_at(page, 100);
    assert_eq!(page::u64_at(page, page.len() / 2), value.wrapping_mul(3));
    assert!(page[page.len() - 200..page.len() - 100].iter().all(|byte| *byte == value as u8));
    value
}

/// A worker that changes `bytes` of a page at random, with a pause between, until the store is gone.
pub(super) fn change_at_random(
    store: &Arc<PageStore>,
    seed: u64,
    space: u32,
    pages: Range<u32>,
    bytes: usize,
    pause: Duration,
) {
    let (store, mut random) = (store.clone(), Random::new(seed));
    let env = store.environment().clone();
    let work = async move {
        let bytes = vec![seed as u8; bytes];
        loop {
            let page = PageId::new(space, pages.start + random.below(pages.len()) as u32);
            let changed = retry(|| {
                let mut mtr = store.mtr()?;
                let handle = mtr.x(page)?;
                mtr.write(handle, 200, &bytes);
                Ok(mtr.commit())
            });
            if changed.await.is_err() {
                return;
            }
            store.environment().sleep(pause).await;
        }
    };
    env.spawn_worker("writer", Box::pin(work));
}
