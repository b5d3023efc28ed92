//! Opening a database: after an orderly stop, and after a process that ended in the middle of its work.
//!
//! The process is this program once more, told by its environment to write and to end without closing. What
//! it leaves is copied for each opening, since an opening repairs it.

use std::cell::LazyCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use criterion::{Bencher, Criterion};
use untorn::Database;

use crate::stage::{Place, figure, fill, options, scattered, table};

/// Names the directory to the process that writes and ends.
const DIRECTORY: &str = "UNTORN_BENCH_ENDS_IN";
const ROWS: u64 = 40_000;
const PAD: u32 = 180;

pub fn recovery(criterion: &mut Criterion) {
    let crashed = LazyCell::new(crashed);
    let mut group = criterion.benchmark_group("open");
    group.sample_size(10);
    group.bench_function("after a stop", |bencher| {
        let place = crashed.path();
        let stopped = place.join("stopped");
        if !stopped.exists() {
            copy_directory(&place.join("crashed"), &stopped);
            Database::open(options(&stopped)).unwrap().close().unwrap();
        }
        open(bencher, &stopped, &place.join("copy"));
    });
    group.bench_function("after a crash", |bencher| {
        open(bencher, &crashed.path().join("crashed"), &crashed.path().join("copy"));
    });
    group.finish();
}

/// What another process leaves that fills a directory and ends.
fn crashed() -> Place {
    let place = Place::new("recovery");
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program).env(DIRECTORY, place.path().join("crashed")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    println!("\n{}", String::from_utf8_lossy(&output.stdout).trim());
    place
}

/// Times openings of copies.
fn open(bencher: &mut Bencher<'_>, from: &Path, copy: &Path) {
    bencher.iter_custom(|openings| {
        let mut time = Duration::ZERO;
        for _ in 0..openings {
            copy_directory(from, copy);
            let begin = Instant::now();
            let db = Database::open(options(copy)).unwrap();
            time += begin.elapsed();
            db.close().unwrap();
            fs::remove_dir_all(copy).unwrap();
        }
        time
    });
}

/// What that process does, if this is it.
pub fn end_if_asked() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    let db = Database::open(options(&directory)).unwrap();
    fill(&db, &table(&db, "filled", PAD), (0..ROWS).map(scattered));
    println!("{} KiB of log behind the checkpoint", figure(&db, "Innodb_checkpoint_age") / 1024);
    // Without a word to the database, as a kill would.
    std::process::exit(0);
}

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_directory(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
