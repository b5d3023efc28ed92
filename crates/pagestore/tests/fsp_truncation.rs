//! Tablespaces that get smaller, and their files with them.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod fsp_support;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use disk::Random;
use fsp_support::{Fixture, SPACE};
use page::PageId;
use untorn_pagestore::fsp::{self, Direction, Reserve, SegmentHeader};
use untorn_pagestore::page;

/// Bytes of a page: 256 pages an extent, and 4096 described by one page.
const PAGE: usize = 4096;
const EXTENT: u32 = 256;

impl Fixture {
    fn allocate(&self, segment: SegmentHeader) -> u32 {
        self.change(|mtr| {
            fsp::reserve(mtr, SPACE, 1, Reserve::Undo)?;
            let handle = fsp::allocate_page(mtr, segment, 0, Direction::None)?;
            let number = mtr.page_id(handle).page;
            mtr.write_u64(handle, page::HEADER_LEN, u64::from(number));
            Ok(number)
        })
    }

    fn allocate_below(&self, segment: SegmentHeader, below: u32) -> Option<u32> {
        self.change(|mtr| {
            let handle = fsp::allocate_page_below(mtr, segment, below)?;
            Ok(handle.map(|handle| mtr.page_id(handle).page))
        })
    }

    fn free(&self, segment: SegmentHeader, number: u32) {
        self.change(|mtr| {
            fsp::prepare_free(mtr, segment, number)?;
            let handle = mtr.x(PageId { space: SPACE, page: number })?;
            assert_eq!(page::u64_at(mtr.page(handle), page::HEADER_LEN), u64::from(number));
            fsp::free_page(mtr, segment, handle)
        });
    }

    /// Makes it as small as it can be; its size.
    fn shrink(&self, segment: SegmentHeader, least: u32) -> u32 {
        while self.change(|mtr| fsp::release_last_extent(mtr, segment, least)).is_some() {}
        self.read(|store| fsp::space_pages(store, SPACE))
    }

    fn file_pages(&self) -> u32 {
        (std::fs::metadata(self.directory().join("t.ibd")).unwrap().len() / PAGE as u64) as u32
    }

    /// Gives the file this length; nothing makes it longer afterwards on its own.
    fn settle_growth(&self, pages: u32) -> u32 {
        self.read(|store| store.extend_space(SPACE, pages));
        assert_eq!(self.file_pages(), pages);
        pages
    }

    fn checkpoint(&self) {
        disk::block_on(self.store.checkpoint()).unwrap();
    }

    fn cut(&self, pages: u32) -> u32 {
        let since = self.store.last_change();
        disk::block_on(self.store.truncate_space(SPACE, pages, since)).unwrap()
    }
}

/// Over the pages that describe stretches, down to each page that is in use, and up again.
#[test]
fn a_tablespace_ends_behind_the_last_extent_in_use() {
    let fixture = Fixture::new(PAGE, fsp::INITIAL_PAGES);
    let segment = fixture.change(|mtr| fsp::create_segment(mtr, SPACE));
    for seed in 0..3 {
        let mut random = Random::new(seed);
        let mut pages: Vec<u32> = (0..9000).map(|_| fixture.allocate(segment)).collect();
        pages.sort_unstable();
        assert!(pages[8999] > 2 * 4096, "it has fewer than three stretches");
        let before = fixture.read(|store| fsp::space_pages(store, SPACE));
        fixture.clean_report();
        while !pages.is_empty() {
            // What is behind goes, and some of what is in front.
            let left = random.below(pages.len());
            let freed: Vec<u32> = pages.drain(left..).collect();
            freed.iter().for_each(|page| fixture.free(segment, *page));
            for _ in 0..pages.len() / 4 {
                fixture.free(segment, pages.remove(random.below(pages.len())));
            }
            let size = fixture.shrink(segment, 0);
            let last = pages.last().copied().unwrap_or_default();
            assert!(size < before);
            assert_eq!(size, (last / EXTENT + 1) * EXTENT, "page {last} is in use");
            assert_eq!(fixture.clean_report().size, size);
            if let Some(page) = fixture.allocate_below(segment, size) {
                assert!(page < size);
                fixture.change(|mtr| {
                    let handle = mtr.x(PageId { space: SPACE, page })?;
                    mtr.write_u64(handle, page::HEADER_LEN, u64::from(page));
                    Ok(())
                });
                fixture.free(segment, page);
            }
            fixture.clean_report();
        }
        fixture.checkpoint();
        let (size, file) = (fixture.shrink(segment, 0), fixture.settle_growth(200 * EXTENT));
        assert_eq!(fixture.cut(size), file - size);
        assert_eq!(fixture.file_pages(), size);
    }
}

#[test]
fn the_first_free_page_below_a_limit_is_found_or_none() {
    let fixture = Fixture::new(PAGE, fsp::INITIAL_PAGES);
    let segment = fixture.change(|mtr| fsp::create_segment(mtr, SPACE));
    let pages: Vec<u32> = (0..3000).map(|_| fixture.allocate(segment)).collect();
    let limit = 5 * EXTENT;
    // What the segment has not taken yet goes first.
    while fixture.allocate_below(segment, limit).is_some() {}
    let mut freed: Vec<u32> = pages.into_iter().filter(|page| *page < limit && page % 7 == 3).collect();
    freed.iter().for_each(|page| fixture.free(segment, *page));
    freed.sort_unstable();
    let found: Vec<u32> = std::iter::from_fn(|| fixture.allocate_below(segment, limit)).collect();
    assert_eq!(found, freed);
    fixture.clean_report();
}

#[test]
fn a_file_is_not_cut_before_its_time() {
    let fixture = Fixture::new(PAGE, fsp::INITIAL_PAGES);
    let segment = fixture.change(|mtr| fsp::create_segment(mtr, SPACE));
    let pages: Vec<u32> = (0..2000).map(|_| fixture.allocate(segment)).collect();
    let file = fixture.settle_growth(100 * EXTENT);
    fixture.checkpoint();
    pages.iter().for_each(|page| fixture.free(segment, *page));
    let size = fixture.shrink(segment, 0);
    assert_eq!(fixture.cut(size), 0, "the checkpoint is before the change of the size");
    fixture.checkpoint();
    assert_eq!(fixture.cut(size + EXTENT), 0, "it ends elsewhere");
    fixture.store.hold_still(SPACE, true);
    assert_eq!(fixture.cut(size), 0, "somebody copies the file");
    fixture.store.hold_still(SPACE, false);
    assert_eq!(fixture.file_pages(), file);
    let held = fixture.read(|store| store.pin(PageId { space: SPACE, page: size }));
    assert_eq!(fixture.cut(size), 0, "somebody holds a page behind the end");
    drop(held);
    assert_eq!(fixture.cut(size), file - size);
    assert_eq!(fixture.cut(size), 0, "there is nothing to cut");
    // Whichever block a recovery begins with, it finds no changes of pages that are gone.
    let log = std::fs::read(fixture.directory().join("#untorn_redo")).unwrap();
    let checkpoints = [48, 4096 + 48].map(|at| u64::from_le_bytes(log[at..at + 8].try_into().unwrap()));
    let since = fixture.store.last_change().0;
    assert!(checkpoints.iter().all(|checkpoint| *checkpoint >= since), "{checkpoints:?} {since}");
    let beyond = fixture.store.read(PageId { space: SPACE, page: size });
    assert!(matches!(beyond, Err(untorn_pagestore::Interrupt::Error(_))), "a page is read that is not there");
}

/// A cut and a growth begin at the same time, again and again, and pages are read ahead meanwhile.
#[test]
fn a_file_is_cut_while_others_make_it_longer() {
    const ROUNDS: u64 = 25;
    let fixture = Fixture::with_pool(PAGE, fsp::INITIAL_PAGES, 16 << 20);
    let segment = fixture.change(|mtr| fsp::create_segment(mtr, SPACE));
    let (over, together) = (AtomicBool::new(false), Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random::new(1);
            for _ in 0..ROUNDS {
                let count = 200 + random.below(800);
                let pages: Vec<u32> = (0..count).map(|_| fixture.allocate(segment)).collect();
                pages.iter().for_each(|page| fixture.free(segment, *page));
                together.wait();
                together.wait();
            }
        });
        scope.spawn(|| {
            let mut random = Random::new(7);
            while !over.load(Ordering::Relaxed) {
                let first = random.below(3000) as u32;
                let pages: Vec<PageId> =
                    (first..first + 32).map(|page| PageId { space: SPACE, page }).collect();
                fixture.store.prefetch(&pages);
                std::thread::yield_now();
            }
        });
        for _ in 0..ROUNDS {
            together.wait();
            let size = fixture.shrink(segment, 0);
            fixture.checkpoint();
            together.wait();
            fixture.cut(size);
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(fixture.store.poisoned(), None);
    fixture.clean_report();
}
