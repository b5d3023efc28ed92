//! Rows in a warm buffer pool: point read, range, insert, update. Nothing here waits for the disk: the
//! commits do not sync.

use std::cell::LazyCell;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput};
use untorn::types::Value;
use untorn::{Database, Durability, Range, Result, Table, Transaction};

use crate::stage::{Stage, fill, id, options, row, scattered, table};

const ROWS: u64 = 100_000;
const RANGE: u64 = 100;
/// Bytes beside the keys: about a row of sysbench.
const PAD: u32 = 180;

fn filled() -> (Stage, Arc<Table>) {
    let stage = Stage::new("rows", options);
    let table = table(&stage.db, "filled", PAD);
    fill(&stage.db, &table, 0..ROWS);
    (stage, table)
}

pub fn rows(criterion: &mut Criterion) {
    let filled = LazyCell::new(filled);
    let mut number = 0;
    let mut next = move || {
        number += 1;
        scattered(number) % (ROWS - RANGE)
    };

    let mut group = criterion.benchmark_group("read");
    group.bench_function("point", |bencher| {
        let (stage, table) = &*filled;
        let mut t = stage.db.begin();
        bencher.iter(|| t.get(table, &[id(next())]).unwrap().unwrap());
    });
    group.bench_function("point, a transaction each", |bencher| {
        let (stage, table) = &*filled;
        bencher.iter(|| {
            let mut t = stage.db.begin();
            let row = t.get(table, &[id(next())]).unwrap().unwrap();
            t.commit_with(Durability::NoSync).unwrap();
            row
        });
    });
    group.throughput(Throughput::Elements(RANGE));
    group.bench_function("range of 100 rows", |bencher| {
        let (stage, table) = &*filled;
        let mut t = stage.db.begin();
        bencher.iter(|| {
            let from = next();
            let range = Range::all().from(vec![id(from)]).to(vec![id(from + RANGE - 1)]);
            for row in t.scan(table, &range).unwrap() {
                black_box(row.unwrap());
            }
        });
    });
    group.finish();

    let mut group = criterion.benchmark_group("write");
    let mut key = ROWS;
    group.bench_function("insert at the end", |bencher| {
        let (stage, table) = &*filled;
        bencher.iter(|| {
            key += 1;
            transaction(&stage.db, |t| t.insert(table, &row(key)));
        });
    });
    group.bench_function("insert anywhere", |bencher| {
        let (stage, table) = &*filled;
        bencher.iter(|| {
            key += 1;
            // None of these keys is another benchmark's.
            transaction(&stage.db, |t| t.insert(table, &row(scattered(key) << 32)));
        });
    });
    group.bench_function("update", |bencher| {
        let (stage, table) = &*filled;
        bencher.iter(|| {
            key += 1;
            let change = ("k", Value::Int(key as i64));
            transaction(&stage.db, |t| t.update(table, &[id(next())], &[change]));
        });
    });
    group.finish();
}

fn transaction<T>(db: &Database, work: impl FnOnce(&mut Transaction) -> Result<T>) -> T {
    let mut t = db.begin();
    let done = work(&mut t).unwrap();
    t.commit_with(Durability::NoSync).unwrap();
    done
}
