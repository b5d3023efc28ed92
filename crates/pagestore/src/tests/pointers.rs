//! Pointers that somebody has noted, and what happens to their page since: it changes, is freed, leaves its
//! frame, comes back, moves, or its frame goes to another page or out of the pool.

use std::path::PathBuf;
use std::sync::Arc;

use disk::{Environment, SimulatedEnvironment};
use page::PageId;

use super::support::{create_page, new_store, options, retry, update_page, value_of};
use crate::pool::free_list::Need;
use crate::pool::pointers::Pointers;
use crate::store::PageStore;

const SPACE: u32 = 5;
const PAGE: usize = 4096;
const LEVEL: u16 = 2;
const INNER: PageId = PageId { space: SPACE, page: 9 };

struct Case {
    env: Arc<SimulatedEnvironment>,
    store: Arc<PageStore>,
}

impl Case {
    fn new(frames: usize) -> Self {
        let env = SimulatedEnvironment::new(41);
        let dynamic: Arc<dyn Environment> = env.clone();
        dynamic.storage().create_dir_all(&PathBuf::from("/data")).unwrap();
        let store = new_store(&dynamic, &PathBuf::from("/data"), options(frames, PAGE), 8 << 20);
        let case = Self { env, store };
        case.create_space(SPACE);
        case.create(INNER);
        case
    }

    fn create_space(&self, space: u32) {
        self.store.create_space(space, &PathBuf::from(format!("/data/{space}.ibd")), 900).unwrap();
    }

    fn create(&self, page: PageId) {
        self.env.run_until_complete(retry(|| create_page(&self.store, page, 1))).unwrap();
    }

    fn flush(&self) {
        self.env.run_until_complete(self.store.flush_all()).unwrap();
    }

    /// The page gets pointers, `page` among them.
    fn lead_down(&self, page: PageId, to: u32) {
        let page = self.env.run_until_complete(retry(|| self.store.read(page))).unwrap();
        for _ in 0..5 {
            let made = self.store.heads(
                &page,
                |_| false,
                |mut maker| (0..50).all(|n| maker.push(n, 112, to)).then(|| maker.finish(1, Some(LEVEL))),
            );
            if made.is_some() {
                return;
            }
        }
        panic!("{:?} has no heads", page.page_id());
    }

    /// The pointers of the page in the middle, noted now.
    fn noted(&self) -> Pointers<'_> {
        self.lead_down(INNER, 70);
        let noted = self.store.pointers(INNER).unwrap();
        assert_eq!((noted.level(), noted.heads().len(), noted.page(0)), (LEVEL, 50, noted.page(49)));
        assert!(noted.are_still_true());
        noted
    }

    /// Neither what was noted is true, nor is what is made of the page now.
    fn assert_forgotten(&self, noted: &Pointers<'_>) {
        assert!(!noted.are_still_true());
        assert!(self.store.pointers(INNER).is_none());
        self.lead_down(INNER, 71);
        assert!(!noted.are_still_true(), "others were made since");
        assert_eq!(self.store.pointers(INNER).unwrap().page(9), 71);
    }
}

/// Fails where a change (`Frame::bytes_mut`) does not forget, or the version does not rise.
#[test]
fn pointers_of_a_page_that_changed_or_was_freed_are_not_true() {
    let case = Case::new(300);
    for change in 0..3 {
        let noted = case.noted();
        if change < 2 {
            update_page(&case.store, INNER, change).unwrap();
        } else {
            let mut mtr = case.store.mtr().unwrap();
            let page = mtr.x(INNER).unwrap();
            mtr.free_page(page);
            mtr.commit();
        }
        case.assert_forgotten(&noted);
    }
    // A leaf's heads lead nowhere, nor do those that say so.
    case.create(PageId::new(SPACE, 8));
    assert!(case.store.pointers(PageId::new(SPACE, 8)).is_none());
    case.env.shutdown();
}

/// The frame does not get another page, and then the page comes back, into this frame or another. Fails where
/// an eviction forgets nothing; that it does so in time is for the model
/// `a_page_that_was_evicted_leads_nowhere`.
#[test]
fn pointers_of_a_page_that_was_evicted_are_not_true() {
    let case = Case::new(300);
    let noted = case.noted();
    case.flush();
    let frame = case.store.look_up(INNER).unwrap().frame();
    let mut lru = case.store.lru.lock();
    assert!(case.store.evict(&mut lru, frame));
    drop(lru);
    assert!(!noted.are_still_true() && case.store.pointers(INNER).is_none());
    case.store.free.put(frame);
    case.assert_forgotten(&noted);
    case.env.shutdown();
}

/// Fails where `PageStore::relocate` leaves the heads in the old frame.
#[test]
fn pointers_of_a_page_that_moved_are_not_true() {
    let case = Case::new(300);
    let noted = case.noted();
    case.flush();
    let from = case.store.look_up(INNER).unwrap().frame();
    let to = case.store.take_frame(Need::Usual).unwrap();
    assert!(case.store.relocate(&mut case.store.lru.lock(), from, to));
    case.store.free.put(from);
    case.assert_forgotten(&noted);
    case.env.shutdown();
}

/// A tablespace is dropped, and the page of the same number of another one comes into the frame.
#[test]
fn a_frame_that_goes_to_another_tablespace_has_no_pointers_of_the_old_one() {
    let case = Case::new(300);
    let noted = case.noted();
    let frame = case.store.look_up(INNER).unwrap().frame().index();
    case.env.run_until_complete(case.store.drop_space(SPACE)).unwrap();
    assert!(!noted.are_still_true() && case.store.pointers(INNER).is_none());
    for space in SPACE + 1.. {
        case.create_space(space);
        let other = PageId::new(space, INNER.page);
        case.create(other);
        case.lead_down(other, 72);
        assert!(!noted.are_still_true() && case.store.pointers(INNER).is_none());
        assert_eq!(case.store.pointers(other).unwrap().page(0), 72);
        if case.store.look_up(other).unwrap().frame().index() == frame {
            break;
        }
    }
    // Also where somebody has found the frame by the old name: the page table would say so in a race.
    let frame = case.store.frames.get(frame);
    assert!(frame.heads.made().is_some() && !frame.holds(INNER));
    case.env.shutdown();
}

/// The frame leaves the pool and its memory, that of heads too, is given back: what was noted can still be
/// read, and is not true.
#[test]
fn pointers_in_memory_that_was_given_back_are_not_true() {
    let case = Case::new(1000);
    for page in 0..900 {
        case.create(PageId::new(SPACE, page));
    }
    let last = |page: &u32| case.store.look_up(PageId::new(SPACE, *page)).unwrap().frame().index() >= 300;
    let leaving: Vec<u32> = (0..900).filter(last).collect();
    let noted: Vec<_> = leaving
        .iter()
        .map(|page| {
            let id = PageId::new(SPACE, *page);
            case.lead_down(id, 70);
            case.store.pointers(id).unwrap()
        })
        .collect();
    assert!(noted.len() > 500 && noted.iter().all(Pointers::are_still_true));
    let before = case.store.status().heads_bytes;
    case.flush();
    case.env.run_until_complete(case.store.resize(300 * PAGE).unwrap().wait());
    assert!(case.store.status().heads_bytes < before / 2);
    for noted in &noted {
        assert!(!noted.are_still_true());
        assert!(matches!(noted.page(0), 0 | 70) && noted.heads().head(49) <= 49);
    }
    case.env.shutdown();
}

/// The leaf that unproven pointers lead to may be one that this very thread has latched: nobody waits for it.
#[test]
fn a_leaf_that_a_writer_has_or_wants_is_not_waited_for() {
    let case = Case::new(300);
    let store = &case.store;
    let leaf = PageId::new(SPACE, 20);
    assert!(store.try_read_leaf(leaf).is_none(), "it is not in memory");
    case.create(leaf);
    let mut mtr = store.mtr().unwrap();
    mtr.x(leaf).unwrap();
    assert!(store.try_read_leaf(leaf).is_none(), "this thread has it");
    mtr.commit();
    let first = store.try_read_leaf(leaf).unwrap();
    let second = store.try_read_leaf(leaf).unwrap();
    assert_eq!((value_of(&first), value_of(&second)), (1, 1));
    drop(second);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut mtr = store.mtr().unwrap();
            mtr.x(leaf).unwrap();
            mtr.commit();
        });
        // The writer waits for the reader, and the reader must not wait for the writer.
        while store.try_read_leaf(leaf).is_some() {
            std::thread::yield_now();
        }
        drop(first);
    });
    assert!(store.try_read_leaf(leaf).is_some());
    let frame = store.look_up(leaf).unwrap().frame();
    case.flush();
    let frame = (frame.pins.try_own()).then_some(frame).unwrap();
    assert!(store.try_read_leaf(leaf).is_none(), "it is about to leave its frame");
    frame.pins.disown();
    case.env.shutdown();
}
