//! What one tree operation costs in memory: point search, inserts in key order and at random places.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../tests/integration/support/mod.rs"]
mod support;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use support::Fixture;
use untorn_btree::{FieldDef, FieldRef, IndexDef, RecordBuffer, Seek, Tree};

/// The table of sysbench: 206 bytes a row.
fn sbtest() -> IndexDef {
    let fields = vec![
        FieldDef::fixed("id", 4),
        FieldDef::fixed("DB_TRX_ID", 6),
        FieldDef::fixed("DB_ROLL_PTR", 7),
        FieldDef::fixed("k", 4),
        FieldDef::fixed("c", 120),
        FieldDef::fixed("pad", 60),
    ];
    IndexDef::new(1, "PRIMARY", true, true, fields, 1, 1)
}

fn insert(fixture: &Fixture, tree: &Tree, record: &mut RecordBuffer, id: u32) {
    let key = id.to_be_bytes();
    let fields = [&key[..], &[0; 6], &[0; 7], &[1; 4], &[b'c'; 120], &[b'p'; 60]].map(FieldRef::Inline);
    record.encode(tree.def(), &fields).unwrap();
    fixture.put(tree, &[Some(&key)], record, 1);
}

fn scattered(n: u32) -> u32 {
    n.wrapping_mul(2_654_435_761)
}

fn search(criterion: &mut Criterion) {
    const ROWS: u32 = 200_000;
    let fixture = Fixture::new(16384, 128 << 20);
    let tree = fixture.tree(sbtest());
    let mut record = RecordBuffer::new();
    (0..ROWS).for_each(|id| insert(&fixture, &tree, &mut record, id));
    let mut group = criterion.benchmark_group("read");
    let mut n = 0u32;
    group.bench_function("point search", |bench| {
        bench.iter(|| {
            n = n.wrapping_add(1);
            let key = (scattered(n) % ROWS).to_be_bytes();
            tree.get(&[Some(&key)], |record| record.trx_id()).unwrap()
        });
    });
    group.throughput(Throughput::Elements(100));
    group.bench_function("scan of 100 rows", |bench| {
        bench.iter(|| {
            n = n.wrapping_add(1);
            let key = (scattered(n) % (ROWS - 100)).to_be_bytes();
            let mut cursor = tree.seek(&[Some(&key)], Seek::AtLeast).unwrap();
            (0..100)
                .map(|_| {
                    let trx_id = cursor.record().trx_id();
                    cursor.next().unwrap();
                    trx_id
                })
                .sum::<u64>()
        });
    });
}

fn inserts(criterion: &mut Criterion) {
    const ROWS: u32 = 20_000;
    let mut group = criterion.benchmark_group("insert");
    group.sample_size(10).throughput(Throughput::Elements(u64::from(ROWS)));
    for (name, at_random) in [("in key order", false), ("at random", true)] {
        let id = |n| if at_random { scattered(n) } else { n };
        group.bench_function(name, |bench| {
            bench.iter_batched_ref(
                || {
                    let fixture = Fixture::new(16384, 128 << 20);
                    let tree = fixture.tree(sbtest());
                    (fixture, tree, RecordBuffer::new())
                },
                |(fixture, tree, record)| (0..ROWS).for_each(|n| insert(fixture, tree, record, id(n))),
                BatchSize::PerIteration,
            );
        });
    }
}

criterion_group!(benches, search, inserts);
criterion_main!(benches);
