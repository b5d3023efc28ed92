//! What a mini-transaction and a commit cost: `cargo bench -p untorn-redo`.
//!
//! `append` is the hot path of a mini-transaction (admission, copy, LSNs) while the log buffer has room; what
//! it costs to write the groups to the file is left out, since a disk's bandwidth says nothing about this
//! code. `commit` makes each mini-transaction durable in a file in the temporary directory; with more threads
//! one sync serves several commits.

#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use disk::{Environment, RealEnvironment, RealOptions, block_on};
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use untorn_redo::{Flush, Interrupt, Lsn, Options, RedoLog};

struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn new_log(name: &str) -> (Place, Arc<RedoLog>) {
    let env: Arc<dyn Environment> = Arc::new(RealEnvironment::new(RealOptions::default()).unwrap());
    let place = Place(std::env::temp_dir().join(format!("untorn-redo-bench-{}-{name}", std::process::id())));
    let _ = std::fs::remove_dir_all(&place.0);
    std::fs::create_dir_all(&place.0).unwrap();
    let log = RedoLog::create(&env, &place.0, Options::default()).unwrap();
    (place, log)
}

/// Admits and appends, and plays the cleaner when the log is full.
fn append(log: &RedoLog, records: &[u8]) -> Lsn {
    loop {
        match log.admit(records.len()) {
            Ok(_admission) => return log.append(records, |start, end| _ = black_box((start, end))),
            Err(Interrupt::Wait(wait)) => {
                if log.space_wanted().is_set() {
                    block_on(log.move_checkpoint(log.current())).unwrap();
                } else {
                    block_on(wait);
                }
            }
            Err(Interrupt::Error(error)) => panic!("{error}"),
        }
    }
}

fn appending(criterion: &mut Criterion) {
    let (_place, log) = new_log("append");
    let mut group = criterion.benchmark_group("redo");
    for bytes in [60, 300, 3000] {
        let records = vec![7; bytes];
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(format!("append {bytes} bytes"), |bencher| {
            bencher.iter_custom(|appends| {
                let mut took = Duration::ZERO;
                let mut left = appends;
                while left > 0 {
                    // Half a group, so that no group is sealed and written while the clock runs.
                    let batch = left.min((512 << 10) / (bytes as u64 + 4));
                    let begin = Instant::now();
                    for _ in 0..batch {
                        append(&log, &records);
                    }
                    took += begin.elapsed();
                    left -= batch;
                    block_on(log.move_checkpoint(log.current())).unwrap();
                }
                took
            });
        });
    }
    group.finish();
}

fn committing(criterion: &mut Criterion) {
    let (_place, log) = new_log("commit");
    let mut group = criterion.benchmark_group("redo");
    group.throughput(Throughput::Elements(1)).sample_size(10);
    for threads in [1, 4, 16, 64] {
        group.bench_function(format!("commit, {threads} threads"), |bencher| {
            bencher.iter_custom(|commits| {
                let begin = Instant::now();
                std::thread::scope(|scope| {
                    for thread in 0..threads {
                        let log = &log;
                        scope.spawn(move || {
                            for _ in (thread..commits).step_by(threads as usize) {
                                let end = append(log, &[7; 300]);
                                log.flush_blocking(end, Flush::Sync).unwrap();
                            }
                        });
                    }
                });
                begin.elapsed()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, appending, committing);
criterion_main!(benches);
