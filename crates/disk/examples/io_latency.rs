//! Measures what the storage floor costs on a directory: latencies of durable small writes and of page reads,
//! alone and in batches, by each backend. `cargo run --release -p untorn-disk --example io_latency --
//! <directory>`
#![allow(unsafe_code, clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use untorn_disk::*;

const PAGE: usize = 16384;
const PAGES: usize = 4096;

fn main() {
    let directory = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    for backend in [Backend::IoUring, Backend::Threads] {
        let env = RealEnvironment::new(RealOptions { backend: Some(backend), buffered: false }).unwrap();
        let storage = env.storage().clone();
        let path = directory.join("untorn-io-latency");
        let file = storage.open(&path, OpenHow::CREATE).unwrap();
        file.write_zeros(0, (PAGES * PAGE) as u64).unwrap();
        file.sync_data().unwrap();
        println!("{backend:?}, direct: {}, atomic pages: {:?}", file.is_direct(), file.protection(PAGE));
        report("verdict about the file", 200, || drop(file.protection(PAGE)));
        let mut random = Random::new(1);
        let mut at = || (random.below(PAGES) * PAGE) as u64;
        report("512-byte write + fdatasync, blocking", 200, || {
            file.write_at(&AlignedBuf::zeroed(512), at()).unwrap();
            file.sync_data().unwrap();
        });
        report("512-byte write + fdatasync, submitted", 200, || {
            block_on(write_async(&*storage, &file, IoBuf::owned(AlignedBuf::zeroed(512)), at(), true))
                .unwrap();
        });
        report("page read, blocking", 2000, || file.read_at(&mut AlignedBuf::zeroed(PAGE), at()).unwrap());
        report("page read, submitted", 2000, || {
            block_on(read_async(&*storage, &file, at(), PAGE)).unwrap();
        });
        let start = Instant::now();
        for _ in 0..50 {
            read_batch(&env, &storage, &file, &mut at);
        }
        println!("  128 page reads in a batch, per page: {:.1} us", micros(start) / (50.0 * 128.0));
        frames(&env, &storage, &file);
        std::fs::remove_file(&path).unwrap();
    }
}

fn micros(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}

fn report(what: &str, rounds: usize, mut act: impl FnMut()) {
    let start = Instant::now();
    (0..rounds).for_each(|_| act());
    println!("  {what}: {:.1} us", micros(start) / rounds as f64);
}

/// Pages read into memory like a buffer pool's, before and after the kernel was told about it.
fn frames(env: &RealEnvironment, storage: &Arc<dyn Storage>, file: &Arc<dyn File>) {
    let pool = AlignedBuf::zeroed(PAGES * PAGE);
    let pool = Box::leak(Box::new(pool));
    let address = pool.as_mut_ptr();
    for told in [false, true] {
        if told {
            // SAFETY: the pool is leaked.
            let registered = unsafe { storage.register_buffers(&[(address, PAGES * PAGE)]) };
            println!("  frames registered: {registered}");
        }
        for atomic in [None, Some(false)] {
            let (begin, cpu) = (Instant::now(), cpu_seconds());
            const ROUNDS: usize = 200;
            for round in 0..ROUNDS {
                let left = Arc::new(AtomicUsize::new(64));
                let all = Event::new();
                let request = |number: usize| {
                    let (left, all) = (left.clone(), all.clone());
                    let at = (round * 64 + number * 37) % PAGES * PAGE;
                    // SAFETY: the frame is leaked, and of these 64 requests no two use the same one.
                    let buf = unsafe { IoBuf::raw(address.add(at), PAGE) };
                    let offset = at as u64;
                    let kind = match atomic {
                        None => IoKind::Read { buf, offset },
                        Some(atomic) => IoKind::Write { buf, offset, atomic, sync: false },
                    };
                    let io = Io::new(kind, move |result| {
                        result.unwrap();
                        if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                            all.set();
                        }
                    });
                    (file.clone(), io)
                };
                storage.submit((0..64).map(request).collect());
                env.block_until(&all);
            }
            let pages = (ROUNDS * 64) as f64;
            println!(
                "  page {} in batches of 64, frames {}: {:.1} us, {:.2} us of CPU per page",
                if atomic.is_none() { "reads" } else { "writes" },
                if told { "registered" } else { "plain" },
                micros(begin) / pages,
                (cpu_seconds() - cpu) * 1e6 / pages,
            );
        }
    }
}

/// CPU time of this process.
fn cpu_seconds() -> f64 {
    // SAFETY: timespec is two integers.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: a timespec to fill.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) }, 0);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn read_batch(
    env: &RealEnvironment,
    storage: &Arc<dyn Storage>,
    file: &Arc<dyn File>,
    at: &mut impl FnMut() -> u64,
) {
    let left = Arc::new(AtomicUsize::new(128));
    let all = Event::new();
    let request = |_| {
        let (left, all) = (left.clone(), all.clone());
        let kind = IoKind::Read { buf: IoBuf::owned(AlignedBuf::zeroed(PAGE)), offset: at() };
        let io = Io::new(kind, move |result| {
            result.unwrap();
            if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                all.set();
            }
        });
        (file.clone(), io)
    };
    storage.submit((0..128).map(request).collect());
    env.block_until(&all);
}
