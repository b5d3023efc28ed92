//! Look-up, admission, and the writing of regions; the latter also the way `tokio-uring` would do it, for
//! `docs/decisions.md`. The file lies in the target directory, or in `UNTORN_BENCH_DIR`.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use disk::{AlignedBuf, Environment, IoBuf, IoKind, OpenHow, RealEnvironment, RealOptions, block_on};
use page::extension::{BufferPoolExtension, History, Offered};
use page::{Lsn, PageId, PageSize};
use untorn_bpe::{Options, Restart, Tier};

const PAGE: usize = 16 << 10;
const REGION: usize = 1 << 20;
const WANTED: History = History { touched_again: true, read_ahead_unused: false, from_scan: false };

fn directory() -> PathBuf {
    std::env::var_os("UNTORN_BENCH_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from)
}

fn image(id: PageId) -> Vec<u8> {
    let mut bytes = vec![0x5A; PAGE];
    bytes[page::PAGE_NUMBER..page::PAGE_NUMBER + 4].copy_from_slice(&id.page.to_be_bytes());
    bytes[page::SPACE_ID..page::SPACE_ID + 4].copy_from_slice(&id.space.to_be_bytes());
    bytes
}

fn open(env: &Arc<RealEnvironment>, size: u64) -> Arc<Tier> {
    let tier = Tier::open(
        env.clone(),
        Options {
            file: Some(directory().join("bench.tier")),
            size,
            enabled: true,
            restart: Restart::Discard,
            region_bytes: Some(REGION),
            ..Options::new(PageSize::DEFAULT, [1; 16])
        },
    );
    tier.recovered(Lsn(1), Lsn(1), 1);
    assert!(tier.is_on(), "{:?}", tier.status().state);
    tier
}

/// Offers until the page is taken.
fn offer(tier: &Tier, number: u32) {
    let id = PageId::new(1, number);
    let image = image(id);
    while !matches!(tier.offer(id, Lsn(9), &image, WANTED), Offered::Taken) {
        std::thread::yield_now();
    }
}

fn tier_benches(criterion: &mut Criterion) {
    let env = Arc::new(RealEnvironment::new(RealOptions::default()).unwrap());
    let pages = 16_384_u32;
    let tier = open(&env, u64::from(pages) * PAGE as u64 + 64 * REGION as u64);
    (0..pages).for_each(|number| offer(&tier, number));
    while tier.find(PageId::new(1, pages - 64)).is_none() {
        std::thread::yield_now();
    }
    let mut next = 0_u32;
    let mut number = move |most: u32| {
        next = next.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        next % most
    };
    criterion.bench_function("look_up/found", |bencher| {
        bencher.iter(|| black_box(tier.find(PageId::new(1, number(pages - 64)))).is_some());
    });
    criterion.bench_function("look_up/not_there", |bencher| {
        bencher.iter(|| black_box(tier.find(PageId::new(2, number(u32::MAX)))).is_none());
    });
    criterion.bench_function("invalidate/not_there", |bencher| {
        bencher.iter(|| tier.invalidate(PageId::new(2, number(u32::MAX))));
    });
    criterion.bench_function("admission/wants", |bencher| {
        bencher.iter(|| black_box(tier.wants(PageId::new(2, number(u32::MAX)), WANTED)));
    });
    // Copy, stamp and the share of the region's write; waits where the disk is the limit.
    let mut fresh = 1_000_000_u32;
    let mut group = criterion.benchmark_group("admission");
    group.throughput(Throughput::Bytes(PAGE as u64));
    group.bench_function("offer", |bencher| {
        bencher.iter(|| {
            fresh += 1;
            offer(&tier, fresh);
        });
    });
    group.finish();
    drop(tier);
    env.shutdown();
}

/// Regions written in turn, two under way, as the tier does it.
fn ring_regions(env: &RealEnvironment, count: u64) -> Duration {
    let storage = env.storage();
    let file = storage.open(&directory().join("bench.regions"), OpenHow::CREATE).unwrap();
    let shared = Arc::new(AlignedBuf::copy_of(&vec![0xA5; REGION]));
    let write = |number: u64| {
        let buf = IoBuf::Shared(shared.clone(), 0..REGION);
        let kind = IoKind::Write { buf, offset: number % 256 * REGION as u64, atomic: false, sync: false };
        disk::submit_one(&**storage, &file, kind)
    };
    let start = Instant::now();
    block_on(async {
        let mut under_way = std::collections::VecDeque::new();
        for number in 0..count {
            // Polled once, so that it is submitted.
            let mut future = Box::pin(write(number));
            let _ = std::future::poll_fn(|context| {
                std::task::Poll::Ready(future.as_mut().poll(context).is_ready())
            })
            .await;
            under_way.push_back(future);
            if under_way.len() == 2
                && let Some(oldest) = under_way.pop_front()
            {
                oldest.await.unwrap();
            }
        }
        for rest in under_way {
            rest.await.unwrap();
        }
    });
    start.elapsed()
}

/// The same on a runtime of `tokio-uring`, with a thread and a ring of its own.
fn tokio_regions(count: u64) -> Duration {
    use std::os::unix::fs::OpenOptionsExt;
    const O_DIRECT: i32 = 0o40000;
    // Never freed: the runtime wants a buffer that it owns, or that lives for ever.
    let region: &'static [u8] = Box::leak(Box::new(AlignedBuf::copy_of(&vec![0xA5; REGION])));
    tokio_uring::start(async move {
        let path = directory().join("bench.regions");
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(false).custom_flags(O_DIRECT);
        let file = std::rc::Rc::new(tokio_uring::fs::File::from_std(options.open(path).unwrap()));
        let start = Instant::now();
        let mut under_way = std::collections::VecDeque::new();
        for number in 0..count {
            let file = file.clone();
            under_way.push_back(tokio_uring::spawn(async move {
                let (result, _) = file.write_at(region, number % 256 * REGION as u64).submit().await;
                assert_eq!(result.unwrap(), REGION);
            }));
            if under_way.len() == 2
                && let Some(oldest) = under_way.pop_front()
            {
                oldest.await.unwrap();
            }
        }
        for rest in under_way {
            rest.await.unwrap();
        }
        start.elapsed()
    })
}

fn region_benches(criterion: &mut Criterion) {
    let env = RealEnvironment::new(RealOptions::default()).unwrap();
    let mut group = criterion.benchmark_group("region_write");
    group.throughput(Throughput::Bytes(REGION as u64)).sample_size(10);
    group.bench_function("shared_ring", |bencher| bencher.iter_custom(|count| ring_regions(&env, count)));
    group.bench_function("tokio_uring", |bencher| bencher.iter_custom(tokio_regions));
    group.finish();
    env.shutdown();
}

criterion_group!(benches, tier_benches, region_benches);
criterion_main!(benches);
