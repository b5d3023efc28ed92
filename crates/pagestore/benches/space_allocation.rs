//! What an allocation and a free cost, each in a mini-transaction of its own, in memory: page 0, inode and
//! descriptor are latched, changed and logged.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../tests/fsp_support/mod.rs"]
mod fsp_support;

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use fsp_support::{Fixture, SPACE};
use untorn_pagestore::fsp::{self, Direction, SegmentHeader};

const PAGE: usize = 16384;

/// A segment that owns whole extents, and its last page.
fn grown(fixture: &Fixture) -> (SegmentHeader, u32) {
    let segment = fixture.change(|mtr| fsp::create_segment(mtr, SPACE));
    let mut last = 0;
    for _ in 0..1000 {
        last = allocate(fixture, segment, last + 1);
    }
    (segment, last)
}

fn allocate(fixture: &Fixture, segment: SegmentHeader, hint: u32) -> u32 {
    fixture.change(|mtr| {
        let handle = fsp::allocate_page(mtr, segment, hint, Direction::Up)?;
        Ok(mtr.page_id(handle).page)
    })
}

fn free(fixture: &Fixture, segment: SegmentHeader, page: u32) {
    fixture.change(|mtr| {
        let handle = mtr.x(page::PageId { space: SPACE, page })?;
        fsp::free_page(mtr, segment, handle)
    });
}

fn benches(criterion: &mut Criterion) {
    let fixture = Fixture::new(PAGE, fsp::INITIAL_PAGES);
    let (segment, last) = grown(&fixture);
    criterion.bench_function("allocate and free a page of an extent", |bencher| {
        bencher.iter(|| {
            let page = allocate(&fixture, segment, last + 1);
            free(&fixture, segment, black_box(page));
        });
    });
    criterion.bench_function("reserve three extents", |bencher| {
        bencher.iter(|| fixture.change(|mtr| fsp::reserve(mtr, SPACE, 3, fsp::Reserve::Normal)));
    });
    criterion.bench_function("create a segment with a page and drop it", |bencher| {
        bencher.iter_batched(
            || (),
            |()| {
                let segment = fixture.change(|mtr| fsp::create_segment(mtr, SPACE));
                allocate(&fixture, segment, 0);
                while !fixture.change(|mtr| fsp::free_segment_step(mtr, segment, None)) {}
            },
            BatchSize::SmallInput,
        );
    });
    criterion.bench_function("check a space of 1000 pages", |bencher| {
        bencher.iter(|| black_box(fixture.clean_report()).used_pages());
    });
}

criterion_group!(space, benches);
criterion_main!(space);
