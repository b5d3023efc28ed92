//! The whole engine through its public face: `cargo bench --bench engine`.
//!
//! A crate's own benchmarks say what a mechanism costs in memory; these show what a program embedding the
//! crate pays, files and log included. The databases lie in the target directory, or in `UNTORN_BENCH_DIR`:
//! commits, recovery and the buffer pool extension measure the disk they lie on as well.
//!
//! `cargo bench --bench engine -- commit` runs one group, `cargo test --bench engine` runs everything once.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod commit;
mod extension;
mod recovery;
mod rows;
mod split;
mod stage;

use criterion::Criterion;

fn main() {
    recovery::end_if_asked();
    let mut criterion = Criterion::default().configure_from_args();
    rows::rows(&mut criterion);
    split::split(&mut criterion);
    commit::commit(&mut criterion);
    extension::extension(&mut criterion);
    recovery::recovery(&mut criterion);
    criterion.final_summary();
}
