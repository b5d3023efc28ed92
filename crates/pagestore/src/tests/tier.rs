//! The hooks of the buffer pool extension, checked with the [reference tier](super::reference_tier): whatever
//! happens, a page that is read is the current one. With each part of the protocol switched off in turn, that
//! must fail.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use disk::{Environment, Event, Random, SimulatedEnvironment, SimulatedStorage, block_on};
use page::{BufferPoolExtension, PageId};
use redo::Lsn;

use super::crash::{self, Machine, Model, PAGE_SIZE, PAGES, ROUNDS, SPACE, compare, work};
use super::reference_tier::{Broken, ReferenceTier};
use super::support::{
    TempDir, create_page, new_store, options, real_environment, retry, update_page, value_of,
};
use crate::error::Error;
use crate::pool::frame::history;
use crate::store::PageStore;

fn tier_file() -> PathBuf {
    crash::directory().join("tier")
}

/// What a history did, to see that it was worth something.
#[derive(Debug, Default)]
struct Seen {
    served: u64,
    refused: u64,
    failed: u64,
    kept: usize,
}

impl Seen {
    fn note(&mut self, tier: &ReferenceTier) {
        self.served += tier.served.swap(0, Ordering::Relaxed);
        self.refused += tier.refused.swap(0, Ordering::Relaxed);
        self.failed += tier.failed.swap(0, Ordering::Relaxed);
    }
}

fn reopen(
    seed: u64,
    left: Arc<SimulatedStorage>,
    before: &ReferenceTier,
) -> Result<(Machine, Lsn, Arc<ReferenceTier>), Error> {
    let mut kept = None;
    let (machine, end) = crash::reopen_with(seed, left, |env| {
        let tier = Arc::new(before.after_crash(&**env, &tier_file(), seed));
        kept = Some(tier.clone());
        Some(tier)
    })?;
    let Some(tier) = kept else { unreachable!("the tier is made when the store is opened") };
    tier.recovering.store(false, Ordering::Relaxed);
    Ok((machine, end, tier))
}

/// As the histories of the crash tests, with a tier that outlives the crashes.
fn history(seed: u64, broken: Broken, lies: usize, seen: &mut Seen) -> Result<(), String> {
    let mut random = Random::new(seed);
    let mut model = Model(vec![Vec::new(); PAGES as usize]);
    let mut machine = crash::create(random.next_u64());
    let tier = ReferenceTier::new(&*machine.env, &tier_file(), PAGE_SIZE);
    let mut tier = Arc::new(tier.lying(lies, random.next_u64()).broken(broken));
    machine.env.storage().sync_dir(&crash::directory()).map_err(|error| error.to_string())?;
    machine.store.set_extension(Some(tier.clone()));
    let mut next_value = 0;
    for _ in 0..ROUNDS {
        work(&machine, &mut model, &mut random, &mut next_value)?;
        compare(&machine, &model, machine.store.redo().current())?;
        work(&machine, &mut model, &mut random, &mut next_value)?;
        let mut left = machine.env.disk().crash(random.next_u64());
        machine.env.shutdown();
        seen.note(&tier);
        if random.below(3) == 0 {
            let (halfway, _, after) =
                reopen(random.next_u64(), left, &tier).map_err(|error| error.to_string())?;
            for _ in 0..random.below(300) {
                halfway.env.step();
            }
            tier = after;
            left = halfway.env.disk().crash(random.next_u64());
            halfway.env.shutdown();
        }
        let (reopened, end, after) =
            reopen(random.next_u64(), left, &tier).map_err(|error| error.to_string())?;
        tier = after;
        seen.kept += tier.len();
        model.cut(end);
        compare(&reopened, &model, end)?;
        seen.note(&tier);
        machine = reopened;
    }
    Ok(())
}

#[test]
fn no_history_with_crashes_serves_an_old_page() {
    let mut seen = Seen::default();
    for seed in 0..16 {
        if let Err(why) = history(seed, Broken::Nothing, 0, &mut seen) {
            panic!("seed {seed}: {why}");
        }
    }
    assert!(seen.served > 500 && seen.kept > 50, "{seen:?}");
}

#[test]
fn a_lying_tier_is_never_believed() {
    let mut seen = Seen::default();
    for seed in 100..110 {
        if let Err(why) = history(seed, Broken::Nothing, 3, &mut seen) {
            panic!("seed {seed}: {why}");
        }
    }
    assert!(seen.served > 200 && seen.refused > 100 && seen.failed > 2, "{seen:?}");
}

/// Negative controls: each rule of the protocol is needed, and its absence noticed.
#[test]
fn every_broken_rule_is_noticed() {
    let rules = [
        (Broken::Invalidation, 0),
        (Broken::RecoveryInvalidation, 0),
        (Broken::BeforeCheckpoint, 0),
        (Broken::Verification, 3),
    ];
    for (broken, lies) in rules {
        let wrong = |seed| {
            let outcome = std::panic::catch_unwind(|| history(seed, broken, lies, &mut Seen::default()));
            !matches!(outcome, Ok(Ok(())))
        };
        let noticed = (0..40).any(wrong);
        assert!(noticed, "40 histories without {broken:?}, and nothing was noticed");
    }
}

/// A store of `frames` frames with a table of `pages` pages that are all in their file, and the reference
/// tier.
fn with_tier(
    env: &Arc<dyn Environment>,
    dir: &TempDir,
    frames: usize,
    pages: u32,
) -> (Arc<PageStore>, Arc<ReferenceTier>) {
    let mut settings = options(frames, 4096);
    // The tests feed when they want.
    settings.background = false;
    let store = new_store(env, &dir.0, settings, 8 << 20);
    store.create_space(SPACE, &dir.0.join("t.ibd"), pages).unwrap();
    let tier = Arc::new(ReferenceTier::new(&**env, &dir.0.join("tier"), 4096));
    store.set_extension(Some(tier.clone()));
    (store, tier)
}

fn feed(store: &PageStore) {
    crate::flush::feeder::feed(store, 1e9);
}

async fn read(store: &PageStore, page: u32) -> u64 {
    retry(|| Ok(value_of(&store.read(PageId::new(SPACE, page))?))).await.unwrap()
}

/// A warm-up enters each page at the tail: all of them would pass under the feeder.
#[test]
fn what_a_warm_up_loads_is_not_fed_while_frames_are_free() {
    let (env, dir) = (real_environment(), TempDir::new("tier-warm-up"));
    let (store, tier) = with_tier(&env, &dir, 64, 200);
    block_on(async {
        for page in 0..8 {
            retry(|| create_page(&store, PageId::new(SPACE, page), u64::from(page))).await.unwrap();
        }
        store.flush_all().await.unwrap();
        store.look_up(PageId::new(SPACE, 3)).unwrap().frame().note(history::COLDER);
        feed(&store);
        assert!(tier.has(PageId::new(SPACE, 2)) && !tier.has(PageId::new(SPACE, 3)));
    });
}

#[test]
fn a_page_is_found_in_the_tier_until_it_changes() {
    let (env, dir) = (real_environment(), TempDir::new("tier"));
    let (store, tier) = with_tier(&env, &dir, 64, 200);
    block_on(async {
        for page in 0..200 {
            if page % 16 == 0 {
                store.flush_all().await.unwrap();
                feed(&store);
            }
            retry(|| create_page(&store, PageId::new(SPACE, page), u64::from(page))).await.unwrap();
        }
        feed(&store);
        assert!(!tier.has(PageId::new(SPACE, 199)), "a dirty page is in the tier");
        store.flush_all().await.unwrap();
        assert!(tier.has(PageId::new(SPACE, 3)));
        assert_eq!(read(&store, 3).await, 3);
        assert_eq!(tier.served.load(Ordering::Relaxed), 1);
        retry(|| update_page(&store, PageId::new(SPACE, 3), 1003)).await.unwrap();
        assert!(!tier.has(PageId::new(SPACE, 3)), "a changed page is in the tier");
        for page in 10..110 {
            read(&store, page).await;
            store.flush_all().await.unwrap();
            feed(&store);
        }
        assert!(tier.has(PageId::new(SPACE, 3)), "a page that was written is not offered again");
        assert_eq!(read(&store, 3).await, 1003);
        store.drop_space(SPACE).await.unwrap();
        assert_eq!(tier.len(), 0);
    });
}

/// What the tier serves says nothing about the device of the data files.
#[test]
fn reads_that_the_tier_serves_are_no_reads_of_data_files() {
    let (simulated, dir) = (SimulatedEnvironment::new(1), TempDir::new("sources"));
    let env: Arc<dyn Environment> = simulated.clone();
    env.storage().create_dir_all(&dir.0).unwrap();
    let (store, tier) = with_tier(&env, &dir, 64, 200);
    simulated.run_until_complete(async {
        for page in 0..200 {
            if page % 16 == 0 {
                store.flush_all().await.unwrap();
                feed(&store);
            }
            retry(|| create_page(&store, PageId::new(SPACE, page), u64::from(page))).await.unwrap();
        }
        store.flush_all().await.unwrap();
    });
    let missing: Vec<PageId> = (0..100)
        .map(|page| PageId::new(SPACE, page))
        .filter(|page| store.look_up(*page).is_none() && tier.has(*page))
        .collect();
    let read = |pages: &[PageId], from_data_files| {
        let events = store.start_reads(pages, |_| {});
        assert_eq!((store.pending.len(), store.pending.of_data_files()), (8, from_data_files));
        for event in &events {
            simulated.run_until_complete(Event::wait(event));
        }
        assert_eq!((store.pending.len(), store.pending.of_data_files()), (0, 0));
    };
    read(&missing[..8], 0);
    store.set_extension(None);
    read(&missing[8..16], 8);
    simulated.shutdown();
}

#[test]
fn the_tier_learns_how_a_page_was_used() {
    let (env, dir) = (real_environment(), TempDir::new("use"));
    // Large enough for an old part of the LRU list.
    let (store, tier) = with_tier(&env, &dir, 1024, 2000);
    block_on(async {
        for page in 0..2000 {
            if page % 128 == 0 {
                store.flush_all().await.unwrap();
            }
            retry(|| create_page(&store, PageId::new(SPACE, page), u64::from(page))).await.unwrap();
        }
        store.flush_all().await.unwrap();
        // Once; twice in a moment; twice with time between; ahead of a scan.
        let (once, moment, again) = (5, 6, 7);
        for page in [once, moment, moment, again] {
            read(&store, page).await;
        }
        let before = store.now_ms.load(Ordering::Relaxed);
        while store.now_ms.load(Ordering::Relaxed) == before {
            store.tick_clock();
        }
        read(&store, again).await;
        for page in 128..161 {
            read(&store, page).await;
            store.scan_reached(PageId::new(SPACE, page));
        }
        while store.pending.len() > 0 {
            std::thread::yield_now();
        }
        let used = read(&store, 200).await;
        assert_eq!(used, 200);
        tier.offers.lock().clear();
        let mut victims = Vec::new();
        // Everything that is there, from the tail on.
        for _ in 0..12 {
            feed(&store);
            victims.extend((0..100).filter_map(|_| store.take_frame(crate::pool::free_list::Need::Urgent)));
        }
        victims.into_iter().for_each(|frame| store.free.put(frame));
        let offers = tier.offers.lock().clone();
        let history =
            |page: u32| offers.iter().find(|(id, _)| id.page == page).map(|(_, history)| *history).unwrap();
        assert!(
            !history(once).touched_again && !history(moment).touched_again && history(again).touched_again
        );
        assert!(!history(once).from_scan && history(200).from_scan && !history(200).read_ahead_unused);
        assert!(history(210).from_scan && history(210).read_ahead_unused);
        assert!(history(1999).touched_again, "made in memory");
    });
}

/// A tier that is suspended is left alone, and what it was not offered then it is offered later.
#[test]
fn a_tier_that_takes_nothing_is_offered_nothing_until_it_does() {
    let (env, dir) = (real_environment(), TempDir::new("idle"));
    let (store, tier) = with_tier(&env, &dir, 64, 200);
    block_on(async {
        for page in 0..40 {
            retry(|| create_page(&store, PageId::new(SPACE, page), u64::from(page))).await.unwrap();
        }
        tier.takes_nothing.store(true, Ordering::Relaxed);
        store.flush_all().await.unwrap();
        feed(&store);
        // As a write does that makes room.
        for frame in (0..40).map(|index| store.frames.get(index)).filter(|frame| frame.pins.try_pin()) {
            crate::flush::feeder::offer(&store, &*tier, frame);
            frame.pins.unpin();
        }
        assert_eq!(tier.offers.lock().len(), 0);
        tier.takes_nothing.store(false, Ordering::Relaxed);
        feed(&store);
        assert!(tier.offers.lock().len() >= 10, "{}", tier.offers.lock().len());
    });
}

/// Threads change and read pages while the tier is taken away, put back and exchanged.
#[test]
fn the_tier_may_come_and_go_under_load() {
    let (env, dir) = (real_environment(), TempDir::new("toggle"));
    let store = new_store(&env, &dir.0, options(64, 4096), 8 << 20);
    let pages: u32 = 300;
    store.create_space(SPACE, &dir.0.join("t.ibd"), pages).unwrap();
    for page in 0..pages {
        block_on(retry(|| create_page(&store, PageId::new(SPACE, page), 0))).unwrap();
    }
    let running = AtomicBool::new(true);
    let served = std::thread::scope(|scope| {
        let toggler = scope.spawn(|| {
            let mut served = 0;
            for round in 0.. {
                let tier =
                    Arc::new(ReferenceTier::new(&*env, &dir.0.join(format!("tier{}", round % 3)), 4096));
                store.set_extension((round % 4 != 3).then(|| tier.clone() as Arc<dyn BufferPoolExtension>));
                block_on(env.sleep(Duration::from_millis(30)));
                served += tier.served.load(Ordering::Relaxed);
                if !running.load(Ordering::Relaxed) {
                    return served;
                }
            }
            0
        });
        let workers: Vec<_> = (0..3_u32)
            .map(|worker| {
                let store = &store;
                scope.spawn(move || {
                    let mut random = Random::new(u64::from(worker));
                    // Each has pages of its own, so that it knows what they hold.
                    let mut values = vec![0_u64; pages as usize / 3];
                    for step in 0..6000_u64 {
                        let mine = random.below(values.len());
                        let page = mine as u32 * 3 + worker;
                        if random.one_in(4) {
                            values[mine] = step;
                            block_on(retry(|| update_page(store, PageId::new(SPACE, page), step))).unwrap();
                        } else {
                            assert_eq!(block_on(read(store, page)), values[mine], "page {page}");
                        }
                    }
                })
            })
            .collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        running.store(false, Ordering::Relaxed);
        toggler.join().unwrap()
    });
    assert!(served > 50, "{served} pages came from a tier");
    assert_eq!(store.poisoned(), None);
}
