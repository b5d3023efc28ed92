//! Durable commits of one updated row, by 1, 8 and 64 threads at a time: those that wait together share a
//! write of the log and a sync. The time is that of a commit, not of a group.

use std::cell::LazyCell;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use criterion::{Criterion, Throughput};
use untorn::types::Value;
use untorn::{Database, Table};

use crate::stage::{Stage, figure, fill, id, options, table};

const COMMITTERS: [u64; 3] = [1, 8, 64];

pub fn commit(criterion: &mut Criterion) {
    let filled = LazyCell::new(filled);
    let mut group = criterion.benchmark_group("commit");
    group.throughput(Throughput::Elements(1)).sample_size(10);
    for committers in COMMITTERS {
        group.bench_function(format!("{committers} at a time"), |bencher| {
            let (stage, table) = &*filled;
            let syncs_before = figure(&stage.db, "Innodb_os_log_fsyncs");
            let mut commits_in_all = 0;
            bencher.iter_custom(|commits| {
                commits_in_all += commits;
                let begin = Instant::now();
                thread::scope(|scope| {
                    for committer in 0..committers {
                        let own = (committer..commits).step_by(committers as usize);
                        scope.spawn(move || update(&stage.db, table, committer, own));
                    }
                });
                begin.elapsed()
            });
            let syncs = figure(&stage.db, "Innodb_os_log_fsyncs") - syncs_before;
            println!("\n{:.1} commits for each sync of the log", commits_in_all as f64 / syncs.max(1) as f64);
        });
    }
    group.finish();
}

/// A row for each committer.
fn filled() -> (Stage, Arc<Table>) {
    let stage = Stage::new("commit", options);
    let table = table(&stage.db, "committed", 180);
    fill(&stage.db, &table, 0..COMMITTERS[2]);
    (stage, table)
}

/// Updates the row of a committer again and again: nobody waits for a row lock.
fn update(db: &Database, table: &Arc<Table>, committer: u64, values: impl Iterator<Item = u64>) {
    for value in values {
        let mut t = db.begin();
        t.update(table, &[id(committer)], &[("k", Value::Int(value as i64 + 2))]).unwrap();
        t.commit().unwrap();
    }
}
