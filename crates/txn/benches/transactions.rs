//! What a transaction costs without its page accesses and log writes: read view, row lock, commit.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

#[path = "../tests/integration/common/mod.rs"]
mod common;

use std::sync::Arc;

use common::*;
use criterion::{Criterion, criterion_group, criterion_main};
use disk::{Environment, RealEnvironment, RealOptions, block_on};
use untorn_txn::*;

fn transactions(criterion: &mut Criterion) {
    let directory = std::env::temp_dir().join(format!("untorn-txn-bench-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    let env: Arc<dyn Environment> = Arc::new(RealEnvironment::new(RealOptions::default()).unwrap());
    let engine = Engine::create(env, &directory, 64 << 20, true);
    let mut session = engine.session();
    block_on(async {
        session.begin();
        for id in 0..10_000 {
            session.insert(id, id).await.unwrap();
        }
        session.commit().await;
    });
    let mut id = 0;
    let mut next = || {
        id = (id + 7919) % 10_000;
        id
    };
    criterion.bench_function("point read with the kept read view", |bencher| {
        bencher.iter(|| {
            let key = int(next());
            let row = get_step(&mut session.trx, &session.table, &[Some(&key)], |row| copy_row(row).k);
            session.trx.end_statement();
            row.unwrap().unwrap()
        });
    });
    criterion.bench_function("lock a row and release it", |bencher| {
        bencher.iter(|| {
            block_on(session.lock(next())).unwrap();
            block_on(session.trx.commit(Durability::NoSync)).unwrap();
        });
    });
    let mut value = 0;
    criterion.bench_function("update a row (one index) and commit without sync", |bencher| {
        bencher.iter(|| {
            value += 1;
            block_on(session.update(next(), value)).unwrap();
            block_on(session.trx.commit(Durability::NoSync)).unwrap();
        });
    });
    block_on(engine.system.shutdown()).unwrap();
    block_on(engine.store.shutdown()).unwrap();
    let _ = std::fs::remove_dir_all(&directory);
}

criterion_group!(benches, transactions);
criterion_main!(benches);
