//! Allocation, growth and freeing, with the space check after each batch.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod fsp_support;

use std::collections::{BTreeMap, BTreeSet};
use std::task::Poll;

use fsp_support::{Fixture, SPACE};
use proptest::prelude::*;
use untorn_pagestore::Error;
use untorn_pagestore::fsp::{self, Direction, Owner, Reserve, SegmentHeader};

impl Fixture {
    fn create_segment(&self) -> SegmentHeader {
        self.change(|mtr| fsp::create_segment(mtr, SPACE))
    }

    fn allocate(&self, segment: SegmentHeader, hint: u32, direction: Direction) -> u32 {
        self.change(|mtr| {
            let handle = fsp::allocate_page(mtr, segment, hint, direction)?;
            Ok(mtr.page_id(handle).page)
        })
    }

    fn free(&self, segment: SegmentHeader, number: u32) {
        self.change(|mtr| {
            let handle = mtr.x(page::PageId { space: SPACE, page: number })?;
            fsp::free_page(mtr, segment, handle)
        });
    }

    fn free_segment(&self, segment: SegmentHeader, keep: Option<u32>) -> usize {
        let mut steps = 1;
        while !self.change(|mtr| fsp::free_segment_step(mtr, segment, keep)) {
            steps += 1;
            self.clean_report();
        }
        steps
    }
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// The bytes of an empty table of MariaDB 10.11 (space 4, one index), but for the flags.
#[test]
fn an_empty_table_has_the_bytes_that_servers_write() {
    let fixture = Fixture::new(16384, 4);
    let (top, root, leaf) = fixture.change(|mtr| {
        let top = fsp::create_segment(mtr, SPACE)?;
        let root = fsp::allocate_page(mtr, top, 0, Direction::None)?;
        let leaf = fsp::create_segment(mtr, SPACE)?;
        Ok((top, mtr.page_id(root).page, leaf))
    });
    assert_eq!((top.page, top.offset, leaf.page, leaf.offset, root), (2, 50, 2, 242, 3));
    assert_eq!(top.to_bytes(), hex("00000004 00000002 0032")[..]);
    let header = "00000004 00000000 00000004 00000040 00000021 00000004
        00000000 FFFFFFFF0000 FFFFFFFF0000  00000001 00000000009E 00000000009E  00000000 FFFFFFFF0000 FFFFFFFF0000
        0000000000000003  00000000 FFFFFFFF0000 FFFFFFFF0000  00000001 000000020026 000000020026
        0000000000000000 FFFFFFFF0000 FFFFFFFF0000 00000002 AAFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF 0000000000000000";
    let page0 = fixture.page(0);
    assert_eq!(page0[38..198], hex(header)[..]);
    let identity: Vec<(u32, u16)> =
        (0..4).map(|n| fixture.page(n)).map(|p| (page::page_number(&p), page::page_type(&p))).collect();
    assert_eq!(identity, [(0, 8), (1, 5), (2, 3), (3, 0)]);
    for number in 0..4 {
        let bytes = fixture.page(number);
        assert_eq!((page::previous(&bytes), page::next(&bytes), page::space_id(&bytes)), (!0, !0, 4));
    }
    let inode =
        "0000000000000001 00000000  00000000 FFFFFFFF0000 FFFFFFFF0000  00000000 FFFFFFFF0000 FFFFFFFF0000
        00000000 FFFFFFFF0000 FFFFFFFF0000  05D669D2  00000003 FFFFFFFF FFFFFFFF";
    assert_eq!(fixture.page(2)[38..50], hex("FFFFFFFF0000 FFFFFFFF0000")[..]);
    assert_eq!(fixture.page(2)[50..126], hex(inode)[..]);
    assert!(fixture.page(1)[38..16376].iter().all(|byte| *byte == 0));
    let report = fixture.clean_report();
    assert_eq!([0, 1, 2].map(|n| report.owner(n)), [Some(Owner::Structure); 3]);
    assert_eq!((report.owner(3), report.owner(4)), (Some(Owner::Segment(0)), None));
}

/// Pages 0 to 6 used: the bitmap begins AA EA.
#[test]
fn a_second_index_goes_on_in_the_same_inode_page() {
    let fixture = Fixture::new(16384, fsp::INITIAL_PAGES);
    let roots: Vec<u32> = (0..4)
        .map(|_| {
            let top = fixture.create_segment();
            let root = fixture.allocate(top, 0, Direction::None);
            fixture.create_segment();
            root
        })
        .collect();
    assert_eq!(roots, [3, 4, 5, 6]);
    assert_eq!(fixture.page(0)[174..178], hex("AAEAFFFF")[..]);
    assert_eq!(fixture.clean_report().size, 7);
}

#[test]
fn the_first_pages_are_single_and_the_file_grows_page_by_page_then_by_extents() {
    let fixture = Fixture::new(16384, fsp::INITIAL_PAGES);
    let segment = fixture.create_segment();
    let mut pages = Vec::new();
    let mut sizes = Vec::new();
    for _ in 0..32 {
        pages.push(fixture.allocate(segment, pages.last().map_or(0, |last| last + 1), Direction::Up));
        sizes.push(fixture.clean_report().size);
    }
    assert_eq!(pages, (3..35).collect::<Vec<u32>>());
    assert_eq!(sizes, (3..35).map(|last| (last + 1).max(7)).collect::<Vec<u32>>());
    // From now on whole extents, front to back.
    for expected in 64..64 + 200 {
        assert_eq!(fixture.allocate(segment, pages[pages.len() - 1] + 1, Direction::Up), expected);
        pages.push(expected);
    }
    let report = fixture.clean_report();
    assert_eq!((report.size, report.pages_of(0).count()), (5 * 64, 232));
    assert_eq!(fixture.read(|store| fsp::segment_usage(store, segment)), report.segments[0].usage);
}

#[test]
fn a_descending_run_fills_extents_from_their_ends() {
    let fixture = Fixture::new(16384, fsp::INITIAL_PAGES);
    let segment = fixture.create_segment();
    let mut last = 0;
    for _ in 0..32 {
        last = fixture.allocate(segment, last, Direction::Down);
    }
    let run: Vec<u32> = (0..64)
        .map(|_| {
            last = fixture.allocate(segment, last - 1, Direction::Down);
            last
        })
        .collect();
    assert_eq!(run, (64..128).rev().collect::<Vec<u32>>());
}

#[test]
fn many_segments_fill_inode_pages_and_give_them_back() {
    let fixture = Fixture::new(4096, fsp::INITIAL_PAGES);
    let slots = fsp::Layout::new(untorn_pagestore::PageSize::new(4096).unwrap()).inode_slots();
    let before = fixture.clean_report().used_pages();
    let segments: Vec<SegmentHeader> = (0..3 * slots).map(|_| fixture.create_segment()).collect();
    let pages: BTreeSet<u32> = segments.iter().map(|segment| segment.page).collect();
    assert_eq!(pages.len(), 3);
    let report = fixture.clean_report();
    assert_eq!((report.segments.len(), report.used_pages()), (3 * slots, before + 3));
    // Every other one first, so that full inode pages get free slots again.
    let (even, odd): (Vec<_>, Vec<_>) =
        segments.into_iter().enumerate().partition(|(index, _)| index % 2 == 0);
    for (_, segment) in even.into_iter().chain(odd) {
        assert_eq!(fixture.free_segment(segment, None), 1);
        fixture.clean_report();
    }
    assert_eq!(fixture.clean_report().used_pages(), before);
}

#[test]
fn a_dropped_segment_gives_everything_back_in_steps_and_keeps_its_root_to_the_end() {
    let fixture = Fixture::new(4096, fsp::INITIAL_PAGES);
    let before = fixture.clean_report().used_pages();
    let segment = fixture.create_segment();
    let root = fixture.allocate(segment, 0, Direction::None);
    let mut last = root;
    for _ in 0..3000 {
        last = fixture.allocate(segment, last + 1, Direction::Up);
    }
    assert!(fixture.free_segment(segment, Some(root)) > 1);
    let report = fixture.clean_report();
    assert_eq!(report.pages_of(0).collect::<Vec<_>>(), [root]);
    assert!(fixture.free_segment(segment, Some(root)) == 1, "nothing is left to free but the root");
    fixture.free_segment(segment, None);
    assert_eq!(fixture.clean_report().used_pages(), before);
    // What was freed is used again before the file grows.
    let size = fixture.clean_report().size;
    let segment = fixture.create_segment();
    for _ in 0..3000 {
        last = fixture.allocate(segment, last + 1, Direction::Up);
    }
    assert_eq!(fixture.clean_report().size, size);
}

/// 4 KiB pages: descriptor and bitmap pages at 4096 and 8192.
#[test]
fn a_large_space_describes_itself_in_every_stretch() {
    let fixture = Fixture::new(4096, fsp::INITIAL_PAGES);
    let segments = [fixture.create_segment(), fixture.create_segment()];
    let mut last = [0, 0];
    for round in 0..9000 {
        let which = usize::from(round % 3 == 0);
        last[which] = fixture.allocate(segments[which], last[which] + 1, Direction::Up);
    }
    let report = fixture.clean_report();
    assert!(report.size > 8192 && report.size.is_multiple_of(256));
    for stretch in [4096, 8192] {
        let kinds = [stretch, stretch + 1].map(|number| page::page_type(&fixture.page(number)));
        assert_eq!(kinds, [page::kind::XDES, page::kind::IBUF_BITMAP]);
        assert_eq!(report.owner(stretch), Some(Owner::Structure));
    }
    assert_eq!([0, 1].map(|segment| report.pages_of(segment).count()), [6000, 3000]);
    for segment in segments {
        fixture.free_segment(segment, None);
    }
    assert_eq!(
        fixture.clean_report().used_pages(),
        2 * 3,
        "headers and bitmaps; the inode page is free again"
    );
}

#[test]
fn what_was_reserved_needs_no_growth_of_the_file() {
    let fixture = Fixture::new(4096, fsp::INITIAL_PAGES);
    let segment = fixture.create_segment();
    let mut last = 0;
    let extent = 256;
    for _ in 0..60 {
        fixture.change(|mtr| {
            fsp::reserve(mtr, SPACE, 3, Reserve::Normal)?;
            let file_pages = mtr.store().space(SPACE).unwrap().pages;
            for _ in 0..16 {
                let handle = fsp::allocate_page(mtr, segment, last + 1, Direction::Up)?;
                last = mtr.page_id(handle).page;
            }
            // The file may have grown on in the background; the tablespace did not need that.
            let header = mtr.held(page::PageId { space: SPACE, page: 0 }).unwrap();
            let size = page::u32_at(mtr.page(header), fsp::layout::HEADER_SIZE);
            assert!(size <= file_pages, "{size} pages in a file that had {file_pages}");
            Ok(())
        });
    }
    let report = fixture.clean_report();
    assert!(report.file_pages >= report.size, "{report}");
    fixture.change(|mtr| fsp::adopt_file_size(mtr, SPACE));
    let report = fixture.clean_report();
    assert_eq!((report.file_pages, report.size % extent), (report.size, 0));
}

#[test]
fn a_page_of_another_segment_is_not_freed() {
    let fixture = Fixture::new(16384, fsp::INITIAL_PAGES);
    let [mine, other] = [fixture.create_segment(), fixture.create_segment()];
    let number = fixture.allocate(mine, 0, Direction::None);
    for wrong in [number, 0, 1, 2] {
        let outcome = fixture.try_change(|mtr| {
            let handle = mtr.x(page::PageId { space: SPACE, page: wrong })?;
            fsp::free_page(mtr, other, handle)
        });
        assert!(matches!(outcome, Err(Error::Corrupt { .. })), "page {wrong}: {outcome:?}");
    }
    fixture.clean_report();
}

/// A pool of 48 frames: structure pages are evicted and read again, in the midst of everything.
#[test]
fn structure_pages_come_and_go() {
    let fixture = Fixture::with_pool(4096, fsp::INITIAL_PAGES, 48 * 4096);
    let segments = [fixture.create_segment(), fixture.create_segment()];
    let mut owned = [Vec::new(), Vec::new()];
    for round in 0..6000u32 {
        let which = (round / 100 % 2) as usize;
        let pages = &mut owned[which];
        let hint = pages.last().map_or(0, |last| last + 1);
        pages.push(fixture.allocate(segments[which], hint, Direction::Up));
        if round % 3 == 0 {
            let page = pages.swap_remove(round as usize * 31 % pages.len());
            fixture.free(segments[which], page);
        }
    }
    let report = fixture.clean_report();
    for (index, pages) in owned.iter_mut().enumerate() {
        pages.sort_unstable();
        assert_eq!(report.pages_of(index).collect::<Vec<_>>(), *pages);
    }
    assert!(report.size > 4096);
}

#[test]
fn threads_share_a_tablespace() {
    let fixture = Fixture::new(4096, fsp::INITIAL_PAGES);
    let work = |fixture: &Fixture, turn: u32| {
        let segment = fixture.create_segment();
        let mut pages: Vec<u32> = Vec::new();
        for round in 0..1500 {
            let hint = pages.last().map_or(0, |last| last + 1);
            pages.push(fixture.allocate(segment, hint, Direction::Up));
            if round % 4 == turn {
                let page = pages.swap_remove(round as usize * 17 % pages.len());
                fixture.free(segment, page);
            }
        }
        pages.sort_unstable();
        (segment, pages)
    };
    let owned: Vec<(SegmentHeader, Vec<u32>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|turn| {
                scope.spawn({
                    let fixture = &fixture;
                    move || work(fixture, turn)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let report = fixture.clean_report();
    for (segment, pages) in owned {
        let index = report.segment(segment).unwrap();
        assert_eq!(report.pages_of(index).collect::<Vec<_>>(), pages);
    }
}

#[derive(Clone, Debug)]
enum Step {
    CreateSegment,
    Allocate { segment: usize, count: usize, hint: Hint, direction: Direction },
    Free { segment: usize, count: usize, from: usize },
    DropSegment { segment: usize },
}

#[derive(Clone, Copy, Debug)]
enum Hint {
    None,
    AfterLast,
    Anywhere(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let hint = prop_oneof![1 => Just(Hint::None), 3 => Just(Hint::AfterLast), 1 => any::<u16>().prop_map(|n| Hint::Anywhere(n.into()))];
    let direction = prop_oneof![Just(Direction::Up), Just(Direction::Down), Just(Direction::None)];
    prop_oneof![
        1 => Just(Step::CreateSegment),
        5 => (any::<usize>(), 1..400usize, hint, direction)
            .prop_map(|(segment, count, hint, direction)| Step::Allocate { segment, count, hint, direction }),
        4 => (any::<usize>(), 1..400usize, any::<usize>())
            .prop_map(|(segment, count, from)| Step::Free { segment, count, from }),
        1 => any::<usize>().prop_map(|segment| Step::DropSegment { segment }),
    ]
}

/// What must be true after every step: the segments own exactly the pages that the model says.
fn compare(fixture: &Fixture, model: &BTreeMap<(u32, u16), (SegmentHeader, Vec<u32>)>) {
    let report = fixture.clean_report();
    assert_eq!(report.segments.len(), model.len());
    for (header, pages) in model.values() {
        let index = report.segment(*header).unwrap();
        let mut expected = pages.clone();
        expected.sort_unstable();
        assert_eq!(report.pages_of(index).collect::<Vec<_>>(), expected);
        let usage = report.segments[index].usage;
        assert_eq!(usage.used, pages.len() as u64);
        let spare = usage.reserved - usage.used;
        assert!(usage.reserved >= usage.used, "{usage:?} spare {spare}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn segments_own_what_was_allocated_and_not_freed(steps in proptest::collection::vec(step(), 10..40)) {
        let fixture = Fixture::new(4096, fsp::INITIAL_PAGES);
        let mut model: BTreeMap<(u32, u16), (SegmentHeader, Vec<u32>)> = BTreeMap::new();
        let mut owned: BTreeSet<u32> = BTreeSet::new();
        for step in &steps {
            let pick = |segment: usize| model.keys().nth(segment % model.len().max(1)).copied();
            match step {
                Step::CreateSegment => {
                    let header = fixture.create_segment();
                    prop_assert!(model.insert((header.page, header.offset), (header, Vec::new())).is_none());
                }
                Step::Allocate { segment, count, hint, direction } => {
                    let Some(key) = pick(*segment) else { continue };
                    let (header, pages) = model.get_mut(&key).unwrap();
                    for _ in 0..*count {
                        let hint = match hint {
                            Hint::None => 0,
                            Hint::AfterLast => pages.last().map_or(0, |last| last + 1),
                            Hint::Anywhere(page) => *page,
                        };
                        let page = fixture.allocate(*header, hint, *direction);
                        prop_assert!(owned.insert(page), "page {page} was in use");
                        pages.push(page);
                    }
                }
                Step::Free { segment, count, from } => {
                    let Some(key) = pick(*segment) else { continue };
                    let (header, pages) = model.get_mut(&key).unwrap();
                    for turn in 0..(*count).min(pages.len()) {
                        let page = pages.swap_remove((from.wrapping_add(turn * 7)) % pages.len());
                        fixture.free(*header, page);
                        owned.remove(&page);
                    }
                }
                Step::DropSegment { segment } => {
                    let Some(key) = pick(*segment) else { continue };
                    let (header, pages) = model.remove(&key).unwrap();
                    fixture.free_segment(header, None);
                    pages.iter().for_each(|page| { owned.remove(page); });
                }
            }
            compare(&fixture, &model);
        }
    }
}

/// Lets others get a turn each time, and gives up after a limit.
struct Counted {
    taken: u32,
    most: u32,
}

impl fsp::Breath for Counted {
    type Error = u32;

    async fn take(&mut self, extents: u32) -> Result<(), u32> {
        self.taken += extents;
        let mut waited = false;
        std::future::poll_fn(|context| {
            context.waker().wake_by_ref();
            if std::mem::replace(&mut waited, true) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        if self.taken > self.most { Err(self.taken) } else { Ok(()) }
    }
}

/// What is done for each extent may be stopped at each, and comes to the same however often others get a
/// turn.
#[test]
fn the_check_gives_way_at_every_extent() {
    let fixture = Fixture::new(4096, fsp::INITIAL_PAGES);
    let segment = fixture.create_segment();
    let mut hint = 0;
    for _ in 0..3000 {
        hint = fixture.allocate(segment, hint + 1, Direction::Up);
    }
    let at_once = fixture.clean_report();
    let extents = at_once.free_limit / 256;
    assert!(extents >= 11, "{extents} extents");
    let judge = |most| {
        let mut breath = Counted { taken: 0, most };
        let gathered = fixture.read(|store| fsp::gather(store, SPACE));
        let outcome = disk::block_on(gathered.judge(&mut breath));
        (outcome, breath.taken)
    };
    let (report, all) = judge(u32::MAX);
    let report = report.unwrap();
    assert_eq!((report.runs, report.segments), (at_once.runs, at_once.segments));
    // Reading its descriptor, its place in a list, its pages.
    assert!(all >= 3 * extents, "{all} for {extents} extents");
    for most in 0..all {
        assert_eq!(judge(most).0.err(), Some(most + 1));
    }
}
