//! What the pool costs when nothing has to wait: reading a page that is in memory, and a small
//! mini-transaction.

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use disk::{Environment, RealEnvironment, RealOptions, block_on};
use page::PageId;
use redo::RedoLog;
use untorn_pagestore::{Error, Interrupt, Options, PageStore};

const SPACE: u32 = 1;
const PAGES: u32 = 2048;

fn retry<T>(operation: impl FnMut() -> Result<T, Interrupt>) -> Result<T, Error> {
    block_on(disk::retry(operation))
}

fn open(directory: &PathBuf) -> Result<Arc<PageStore>, Error> {
    let env: Arc<dyn Environment> = Arc::new(RealEnvironment::new(RealOptions::default())?);
    env.storage().create_dir_all(directory)?;
    let redo =
        RedoLog::create(&env, directory, redo::Options { capacity: 256 << 20, ..redo::Options::default() })?;
    let writer = Arc::new(dblwr::ProtectedWriter::open(env.clone(), dblwr::Options::new(directory, 16384))?);
    let store = PageStore::open(env, redo, Options { pool_bytes: 64 << 20, ..Options::default() }, writer)?;
    store.create_space(SPACE, &directory.join("bench.ibd"), PAGES)?;
    for page in 0..PAGES {
        retry(|| {
            let mut mtr = store.mtr()?;
            mtr.create(PageId::new(SPACE, page))?;
            mtr.commit();
            Ok(())
        })?;
    }
    Ok(store)
}

fn pool(criterion: &mut Criterion) {
    let directory = std::env::temp_dir().join(format!("untorn-bench-pool-{}", std::process::id()));
    let store = match open(&directory) {
        Ok(store) => store,
        Err(error) => panic!("{error}"),
    };
    let mut group = criterion.benchmark_group("pool");
    group.throughput(Throughput::Elements(1));
    let mut next = 0_u32;
    group.bench_function("read hit", |bencher| {
        bencher.iter(|| {
            next = (next + 769) % PAGES;
            let page = store.read(PageId::new(SPACE, next)).map(|page| page[38]);
            black_box(page.is_ok())
        });
    });
    group.bench_function("read hit, same page", |bencher| {
        bencher.iter(|| black_box(store.read(PageId::new(SPACE, 3)).map(|page| page[38]).is_ok()));
    });
    group.bench_function("mtr: latch, 2 writes, commit", |bencher| {
        bencher.iter(|| {
            next = (next + 769) % PAGES;
            retry(|| {
                let mut mtr = store.mtr()?;
                let page = mtr.x(PageId::new(SPACE, next))?;
                mtr.write_u64(page, 200, u64::from(next));
                mtr.write(page, 5000, &[7; 100]);
                Ok(mtr.commit())
            })
            .is_ok()
        });
    });
    group.finish();
    if let Err(error) = block_on(store.shutdown()) {
        panic!("{error}");
    }
    drop(store);
    if let Err(error) = std::fs::remove_dir_all(&directory) {
        eprintln!("{}: {error}", directory.display());
    }
}

criterion_group!(benches, pool);
criterion_main!(benches);
