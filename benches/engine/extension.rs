//! A read whose page has left the buffer pool: from the buffer pool extension, and from the data file.
//!
//! The data are six times the buffer pool, so a few of the reads still find their page there. The extension
//! lies in memory where the system has a file system there, or in `UNTORN_BENCH_EXTENSION_DIR`: what is to be
//! seen is the engine's share of a hit. An extension on the data's own disk suspends itself and serves
//! nothing; the share that it served is printed.

use std::cell::LazyCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use criterion::Criterion;
use untorn::{Database, Options, Table};

use crate::stage::{MIB, Place, Stage, directory, fill, id, scattered, table};

const POOL: u64 = 8 * MIB;
const ROWS: u64 = 24_000;
/// Seven rows to a page.
const PAD: u32 = 2_000;
/// Until the extension has what left the pool.
const ROUNDS: u64 = 3;

pub fn extension(criterion: &mut Criterion) {
    let filled = LazyCell::new(filled);
    let mut number = 0;
    let mut group = criterion.benchmark_group("page not in the pool");
    group.bench_function("with the extension", |bencher| {
        let Filled { stage, table, .. } = &*filled;
        let before = stage.db.extension();
        bencher.iter(|| read(&stage.db, table, &mut number));
        let after = stage.db.extension();
        let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
        let share = hits as f64 / (hits + misses).max(1) as f64;
        println!("\n{:.0} % of the pages came from the extension ({})", share * 100.0, after.state.name());
    });
    group.bench_function("from the data file", |bencher| {
        let Filled { stage, table, .. } = &*filled;
        stage.db.switch_extension(false);
        bencher.iter(|| read(&stage.db, table, &mut number));
    });
    group.finish();
}

/// A database, its table, and where its extension lies.
struct Filled {
    stage: Stage,
    table: Arc<Table>,
    _fast: Place,
}

/// The data, and most of them in the extension.
fn filled() -> Filled {
    let fast = Place::in_directory(fast_directory(), "extension-file");
    let stage = Stage::new("extension", |place| {
        Options::new(place)
            .buffer_pool_bytes(POOL)
            .redo_capacity_bytes(64 * MIB)
            .extension(fast.path().join("extension"), 16 * POOL)
    });
    let table = table(&stage.db, "large", PAD);
    fill(&stage.db, &table, 0..ROWS);
    let mut number = 0;
    for _ in 0..ROUNDS * ROWS {
        read(&stage.db, &table, &mut number);
    }
    Filled { stage, table, _fast: fast }
}

fn fast_directory() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let default = if memory.is_dir() { memory.to_owned() } else { directory() };
    std::env::var_os("UNTORN_BENCH_EXTENSION_DIR").map_or(default, PathBuf::from)
}

/// The row of the next number, scattered.
fn read(db: &Database, table: &Arc<Table>, number: &mut u64) {
    *number += 1;
    let mut t = db.begin();
    assert!(t.get(table, &[id(scattered(*number) % ROWS)]).unwrap().is_some());
    t.rollback().unwrap();
}
