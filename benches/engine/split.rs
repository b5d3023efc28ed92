//! Splits of B-tree pages: rows of a quarter page, so that three of them fill a leaf.
//!
//! At the end of the tree a full leaf stays full and a new one begins beside it; anywhere else its rows are
//! divided. A transaction of 200 inserts into an empty table is what is measured.

use std::cell::LazyCell;

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, Throughput};
use untorn::Durability;

use crate::stage::{Stage, options, row, scattered, table};

const INSERTS: u64 = 200;
/// Four rows do not fit a page of 16 KiB, three do.
const PAD: u32 = 4_200;

pub fn split(criterion: &mut Criterion) {
    let stage: LazyCell<Stage> = LazyCell::new(|| Stage::new("split", options));
    let mut group = criterion.benchmark_group("split");
    group.throughput(Throughput::Elements(INSERTS)).sample_size(20);
    inserts(&mut group, "inserts at the end", &stage, |number| number);
    inserts(&mut group, "inserts anywhere", &stage, scattered);
    group.finish();
}

fn inserts(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    stage: &LazyCell<Stage>,
    key: fn(u64) -> u64,
) {
    group.bench_function(name, |bencher| {
        let table = table(&stage.db, "split", PAD);
        let empty = || stage.db.truncate_table("bench", "split").unwrap();
        let inserts = |()| {
            let mut t = stage.db.begin();
            for number in 0..INSERTS {
                t.insert(&table, &row(key(number))).unwrap();
            }
            t.commit_with(Durability::NoSync).unwrap();
        };
        bencher.iter_batched(empty, inserts, BatchSize::PerIteration);
    });
}
