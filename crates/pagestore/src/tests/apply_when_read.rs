//! Changes of the log that are applied when their page is read, beside everything else that may come to the
//! page first.

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use disk::{Environment, FaultKind, Misbehaviour, Random, SimulatedEnvironment, block_on};
use page::PageId;
use redo::RedoLog;

use super::support::{
    PlainWriter, TempDir, create_page, new_store, options, real_environment, redo_options, retry,
    update_page, value_of,
};
use crate::store::{Options, PageStore};

const SPACE: u32 = 5;
const OTHER: u32 = 6;
const PAGES: u32 = 200;
const LOG: u64 = 16 << 20;

/// A data directory whose process was killed: pages of two tablespaces, made and written with 1; then the
/// even ones were changed to 2, and those from `PAGES` on were made with 3, both in the log only.
struct Killed {
    env: Arc<dyn Environment>,
    dir: TempDir,
}

impl Killed {
    fn new(name: &str) -> Killed {
        let (env, dir) = (real_environment(), TempDir::new(name));
        let quiet = Options { background: false, ..options(4096, 4096) };
        let store = new_store(&env, &dir.0, quiet, LOG);
        block_on(async {
            for space in [SPACE, OTHER] {
                store.create_space(space, &dir.0.join(format!("{space}.ibd")), PAGES).unwrap();
                for page in 0..PAGES {
                    retry(|| create_page(&store, PageId::new(space, page), 1)).await.unwrap();
                }
            }
            store.checkpoint().await.unwrap();
            for space in [SPACE, OTHER] {
                store.spaces.extend_blocking(&**env.storage(), space, PAGES + 20).unwrap();
                for page in (0..PAGES).step_by(2) {
                    retry(|| update_page(&store, PageId::new(space, page), 2)).await.unwrap();
                }
                for page in PAGES..PAGES + 20 {
                    retry(|| create_page(&store, PageId::new(space, page), 3)).await.unwrap();
                }
            }
            store.redo.flush_async(store.redo.current(), redo::Flush::Sync).await.unwrap();
        });
        drop(store);
        Killed { env, dir }
    }

    fn open(&self, options: Options) -> Arc<PageStore> {
        let redo = RedoLog::open(&self.env, &self.dir.0, redo_options(LOG)).unwrap();
        let writer = Arc::new(PlainWriter(self.env.clone()));
        let store = PageStore::open(self.env.clone(), redo, options, writer).unwrap();
        let spaces = [SPACE, OTHER].map(|space| (space, self.dir.0.join(format!("{space}.ibd"))));
        let summary = store.recover(&spaces).unwrap();
        assert_eq!((summary.pages_left, summary.pages_changed), (2 * (u64::from(PAGES) / 2 + 20), 0));
        store
    }

    /// Without background tasks: what nobody asks for stays.
    fn open_quietly(&self) -> Arc<PageStore> {
        self.open(Options { background: false, ..options(4096, 4096) })
    }

    fn damage(&self, page: u32) {
        let file = std::fs::File::options().write(true).open(self.dir.0.join("5.ibd")).unwrap();
        file.write_all_at(&[0xA5; 4096], u64::from(page) * 4096).unwrap();
    }
}

fn expected(page: u32) -> u64 {
    if page >= PAGES { 3 } else { 2 - u64::from(page % 2) }
}

fn value(store: &PageStore, space: u32, page: u32) -> u64 {
    block_on(retry(|| Ok(value_of(&store.read(PageId::new(space, page))?)))).unwrap()
}

#[test]
fn a_page_that_is_read_is_as_the_log_says_and_the_checkpoint_waits_for_the_others() {
    let killed = Killed::new("on-read");
    let store = killed.open_quietly();
    let (floor, left) = (store.redo.checkpoint_lsn(), store.unapplied.pages());
    assert_eq!((value(&store, SPACE, 7), store.unapplied.pages()), (1, left), "the log has nothing of it");
    assert_eq!((value(&store, SPACE, 100), store.unapplied.pages()), (2, left - 1));
    assert_eq!((value(&store, OTHER, PAGES + 7), store.unapplied.pages()), (3, left - 2));
    assert!(store.flush_list.lock().checkpoint() < store.redo.current(), "it waits for what is left");
    // Changed again since: behind what was recovered, also in the order of writing.
    block_on(retry(|| update_page(&store, PageId::new(SPACE, 7), 9))).unwrap();
    block_on(retry(|| update_page(&store, PageId::new(SPACE, 100), 8))).unwrap();
    assert_eq!(value(&store, SPACE, 50), 2);
    let starts: Vec<_> = store.flush_list.lock().oldest_first().map(|(_, start)| start).collect();
    assert!(starts.is_sorted() && starts.len() == 4, "{starts:?}");
    // A sharp checkpoint reads and writes all that is left.
    let reached = block_on(store.checkpoint()).unwrap();
    assert!(reached > floor && store.unapplied.get().is_none());
    assert_eq!(store.unapplied.pages(), 0);
    let pages = (0..PAGES + 20).filter(|page| ![7, 100].contains(page));
    for (space, page) in pages.flat_map(|page| [(SPACE, page), (OTHER, page)]) {
        assert_eq!(value(&store, space, page), expected(page), "page {page} of {space}");
    }
    assert_eq!((value(&store, SPACE, 7), value(&store, SPACE, 100)), (9, 8));
}

#[test]
fn a_page_that_the_log_makes_is_not_read_and_one_that_is_made_anew_is_the_new_one() {
    let killed = Killed::new("on-read-made");
    killed.damage(PAGES + 3);
    let store = killed.open_quietly();
    assert_eq!(value(&store, SPACE, PAGES + 3), 3, "whatever the file has in its place");
    block_on(retry(|| create_page(&store, PageId::new(SPACE, 10), 77))).unwrap();
    block_on(retry(|| create_page(&store, PageId::new(SPACE, PAGES + 4), 78))).unwrap();
    block_on(store.checkpoint()).unwrap();
    assert_eq!((value(&store, SPACE, 10), value(&store, SPACE, PAGES + 4)), (77, 78));
}

#[test]
fn a_tablespace_that_is_dropped_takes_its_changes_with_it() {
    let killed = Killed::new("on-read-dropped");
    let store = killed.open_quietly();
    let left = store.unapplied.pages();
    assert_eq!(value(&store, SPACE, 20), 2);
    block_on(store.drop_space(SPACE)).unwrap();
    assert_eq!(store.unapplied.pages(), left / 2);
    block_on(store.checkpoint()).unwrap();
    assert_eq!(value(&store, OTHER, 20), 2);
}

#[test]
fn a_tablespace_that_is_closed_or_written_out_has_all_its_changes() {
    let killed = Killed::new("on-read-closed");
    let store = killed.open_quietly();
    let left = store.unapplied.pages();
    block_on(store.close_space(SPACE)).unwrap();
    assert_eq!(store.unapplied.pages(), left / 2, "nobody waits for the other tablespace");
    block_on(store.flush_space(OTHER)).unwrap();
    for (space, page) in [(5, 0), (5, 100), (5, PAGES + 19), (6, 198)] {
        let file = std::fs::File::open(killed.dir.0.join(format!("{space}.ibd"))).unwrap();
        let mut bytes = vec![0; 4096];
        file.read_exact_at(&mut bytes, u64::from(page) * 4096).unwrap();
        assert_eq!(value_of(&bytes), expected(page), "page {page} of {space}");
    }
}

#[test]
fn a_store_that_is_given_up_applies_nothing_any_more_and_says_so() {
    let killed = Killed::new("on-read-given-up");
    let store = killed.open_quietly();
    store.give_up();
    assert!(block_on(store.checkpoint()).is_err() && store.unapplied.get().is_some());
}

/// Redo of a page that was made since the start begins with its initialisation; that of a page that is read
/// into the same frame afterwards does not, so it must not be written without a copy.
#[test]
fn a_page_in_the_frame_of_one_that_was_made_does_not_count_as_made() {
    let killed = Killed::new("on-read-frames");
    let store = killed.open(Options { background: false, ..options(300, 4096) });
    store.spaces.extend_blocking(&**store.env.storage(), OTHER, PAGES + 150).unwrap();
    for page in PAGES + 20..PAGES + 150 {
        block_on(retry(|| create_page(&store, PageId::new(OTHER, page), 4))).unwrap();
    }
    let made: Vec<u32> = store.flush_list.lock().oldest_first().map(|(index, _)| index).collect();
    block_on(store.close_space(OTHER)).unwrap();
    for page in (0..PAGES).step_by(2) {
        assert_eq!(value(&store, SPACE, page), 2);
    }
    let recovered: Vec<_> = store.flush_list.lock().oldest_first().collect();
    assert!(recovered.iter().any(|(index, _)| made.contains(index)), "no frame was used again");
    for (index, start) in recovered {
        let created = store.frames.get(index).created.load(Ordering::Relaxed);
        assert!(created < start.0, "made at {created}, changed from {start}");
    }
}

#[test]
fn a_page_that_cannot_be_read_stops_changes_and_not_what_needs_others() {
    let killed = Killed::new("on-read-damaged");
    killed.damage(30);
    let store = killed.open(options(4096, 4096));
    let waits = store.env.now() + Duration::from_secs(60);
    while store.poisoned().is_none() {
        assert!(store.env.now() < waits, "the background has not come to the damaged page");
        std::thread::yield_now();
    }
    let why = store.poisoned().unwrap().to_string();
    assert!(why.contains("5.ibd") && why.contains("innodb_force_recovery=1"), "{why}");
    assert_eq!(value(&store, SPACE, 50), 2);
    let read = block_on(retry(|| Ok(store.read(PageId::new(SPACE, 30))?.to_vec())));
    assert!(read.is_err(), "it is damaged");
    assert!(store.unapplied.get().is_some_and(|left| left.has(PageId::new(SPACE, 30))));
    drop(store);
    // The log has it still.
    let forced = Options { skip_corrupt: true, ..options(4096, 4096) };
    let redo = RedoLog::open(&killed.env, &killed.dir.0, redo_options(LOG)).unwrap();
    let writer = Arc::new(PlainWriter(killed.env.clone()));
    let store = PageStore::open(killed.env.clone(), redo, forced, writer).unwrap();
    let spaces = [SPACE, OTHER].map(|space| (space, killed.dir.0.join(format!("{space}.ibd"))));
    let summary = store.recover(&spaces).unwrap();
    assert_eq!((summary.corrupt_pages, summary.pages_left), (vec![PageId::new(SPACE, 30)], 0));
}

/// Threads that read and change pages while the background applies what is left, in a pool that is too small
/// for all of them.
#[test]
fn readers_and_writers_beside_the_background_see_and_lose_nothing() {
    for seed in 0..6 {
        let killed = Killed::new("on-read-threads");
        let store = killed.open(options(400, 4096));
        let last: Vec<_> = (0..PAGES + 20).map(|page| AtomicU64::new(expected(page))).collect();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (store, last) = (&store, &last);
                scope.spawn(move || {
                    let mut random = Random::new(seed * 10 + thread);
                    for round in 0..300 {
                        // Each thread changes its own pages and reads all.
                        let page = random.below(PAGES as usize + 20) as u32;
                        let seen = value(store, OTHER, page);
                        assert_eq!(seen, expected(page), "seed {seed}, page {page}");
                        if u64::from(page) % 4 == thread {
                            let new = 1000 + round;
                            block_on(retry(|| update_page(store, PageId::new(SPACE, page), new))).unwrap();
                            last[page as usize].store(new, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        block_on(store.checkpoint()).unwrap();
        for (page, last) in last.iter().enumerate() {
            assert_eq!(value(&store, SPACE, page as u32), last.load(Ordering::Relaxed), "seed {seed}");
        }
    }
}

/// A new store with a tablespace of pages that are made with 1.
async fn with_pages(env: &Arc<dyn Environment>, dir: &std::path::Path, options: Options) -> Arc<PageStore> {
    env.storage().create_dir_all(dir).unwrap();
    let store = new_store(env, dir, options, LOG);
    store.create_space(SPACE, &dir.join("t.ibd"), PAGES).unwrap();
    for page in 0..PAGES {
        retry(|| create_page(&store, PageId::new(SPACE, page), 1)).await.unwrap();
    }
    store
}

/// A device that fails for a while only delays what is left.
#[test]
fn reads_that_fail_for_a_while_are_tried_again() {
    let (first, dir) = (SimulatedEnvironment::new(12), std::path::Path::new("/data"));
    let file = dir.join("t.ibd");
    let env: Arc<dyn Environment> = first.clone();
    first.run_until_complete(async {
        let store = with_pages(&env, dir, options(4096, 4096)).await;
        store.checkpoint().await.unwrap();
        for page in 0..PAGES {
            retry(|| update_page(&store, PageId::new(SPACE, page), 2)).await.unwrap();
        }
        store.redo.flush_async(store.redo.current(), redo::Flush::Sync).await.unwrap();
    });
    let machine = SimulatedEnvironment::with_storage(13, first.disk().crash(5));
    let env: Arc<dyn Environment> = machine.clone();
    let redo = RedoLog::open(&env, dir, redo_options(LOG)).unwrap();
    let writer = Arc::new(PlainWriter(env.clone()));
    let store = PageStore::open(env.clone(), redo, options(4096, 4096), writer).unwrap();
    store.recover(&[(SPACE, file)]).unwrap();
    machine.disk().misbehave("t.ibd", Misbehaviour::FailRead(FaultKind::Eio), 1);
    machine.advance(Duration::from_secs(20));
    assert!(store.poisoned().is_none(), "{:?}", store.poisoned());
    assert_eq!(store.unapplied.pages(), u64::from(PAGES), "nothing can be read");
    machine.disk().behave();
    machine.advance(Duration::from_secs(130));
    assert_eq!(store.unapplied.pages(), 0);
    let read = machine.run_until_complete(retry(|| Ok(value_of(&store.read(PageId::new(SPACE, 9))?))));
    assert_eq!(read.unwrap(), 2);
    drop(store);
    machine.shutdown();
}

/// A crash while changes are left loses neither them nor what came after them; the log is written over the
/// old epoch's end.
#[test]
fn a_second_crash_finds_what_was_left_and_what_came_since() {
    let (first, dir) = (SimulatedEnvironment::new(11), std::path::Path::new("/data"));
    let file = dir.join("t.ibd");
    let env: Arc<dyn Environment> = first.clone();
    let quiet = || Options { background: false, ..options(4096, 4096) };
    first.run_until_complete(async {
        let store = with_pages(&env, dir, quiet()).await;
        store.redo.flush_async(store.redo.current(), redo::Flush::Sync).await.unwrap();
    });
    let mut disk = first.disk().crash(5);
    drop(first);
    let mut model = vec![1; PAGES as usize];
    for round in 0..5_u64 {
        let machine = SimulatedEnvironment::with_storage(20 + round, disk);
        let env: Arc<dyn Environment> = machine.clone();
        machine.run_until_complete(async {
            let redo = RedoLog::open(&env, dir, redo_options(LOG)).unwrap();
            let writer = Arc::new(PlainWriter(env.clone()));
            let store = PageStore::open(env.clone(), redo, quiet(), writer).unwrap();
            let summary = store.recover(&[(SPACE, file.clone())]).unwrap();
            assert_eq!(summary.pages_left, u64::from(PAGES), "the checkpoint has not moved");
            for page in (round as u32..PAGES).step_by(7) {
                let id = PageId::new(SPACE, page);
                let seen = retry(|| Ok(value_of(&store.read(id)?))).await.unwrap();
                assert_eq!(seen, model[page as usize], "page {page} in round {round}");
                retry(|| update_page(&store, id, 100 + round)).await.unwrap();
                model[page as usize] = 100 + round;
            }
            store.redo.flush_async(store.redo.current(), redo::Flush::Sync).await.unwrap();
        });
        disk = machine.disk().crash(30 + round);
        machine.shutdown();
    }
}

/// A log whose changes do not fit into memory at once, beside a pool that does not hold all its pages: all of
/// it but the last part is applied at once, and pages of several parts get all of their changes.
#[test]
fn what_does_not_fit_into_memory_is_applied_before_the_last_part_is_left() {
    let (env, dir) = (real_environment(), TempDir::new("on-read-parts"));
    let file = dir.0.join("t.ibd");
    let (pages, rounds, bytes) = (800_u32, 4_u64, 1500);
    let store = new_store(&env, &dir.0, options(2000, 4096), LOG);
    let change = |store: &PageStore, page: u32, round: u64| {
        block_on(retry(|| {
            let mut mtr = store.mtr()?;
            let handle = mtr.x(PageId::new(SPACE, page))?;
            mtr.write_u64(handle, 100, round);
            mtr.write(handle, 200, &vec![round as u8; bytes]);
            Ok(mtr.commit())
        }))
        .unwrap()
    };
    store.create_space(SPACE, &file, pages).unwrap();
    for page in 0..pages {
        block_on(retry(|| create_page(&store, PageId::new(SPACE, page), 0))).unwrap();
    }
    block_on(store.checkpoint()).unwrap();
    for round in 1..=rounds {
        // Odd pages are in every part, the others in the first one only.
        for page in (0..pages).filter(|page| round == 1 || page % 2 == 1) {
            change(&store, page, round);
        }
    }
    block_on(store.redo.flush_async(store.redo.current(), redo::Flush::Sync)).unwrap();
    drop(store);
    let redo = RedoLog::open(&env, &dir.0, redo_options(LOG)).unwrap();
    let writer = Arc::new(PlainWriter(env.clone()));
    let store = PageStore::open(env.clone(), redo, options(400, 4096), writer).unwrap();
    store.broken.background.store(true, Ordering::Relaxed);
    let summary = store.recover(&[(SPACE, file)]).unwrap();
    assert!(summary.batches > 1 && summary.pages_left > 0, "{summary:?}");
    let read = |page: u32| {
        let id = PageId::new(SPACE, page);
        block_on(retry(|| {
            let bytes = store.read(id)?;
            let round = page::u64_at(&bytes, 100);
            assert!(bytes[200..200 + 1500].iter().all(|byte| *byte == round as u8), "page {page}");
            Ok(round)
        }))
        .unwrap()
    };
    for page in (0..pages).rev().step_by(3) {
        assert_eq!(read(page), if page % 2 == 1 { rounds } else { 1 }, "page {page}");
    }
    change(&store, 1, 9);
    block_on(store.checkpoint()).unwrap();
    assert_eq!((read(1), read(3), read(4)), (9, rounds, 1));
}
