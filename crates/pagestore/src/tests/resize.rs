//! A pool that grows and shrinks while it is in use, on the simulated machine: what is read is what was
//! written, what is pinned stays, no frame above the limit is given to anybody, and in the end the pool has
//! exactly the frames it should.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use disk::{Environment, Event, Random, SimulatedEnvironment};
use page::PageId;

use super::reference_tier::ReferenceTier;
use super::support::{create_page, new_store, options, retry, update_page, value_of};
use crate::error::Error;
use crate::store::PageStore;

const SPACE: u32 = 5;
const PAGE: usize = 4096;
const SESSIONS: u32 = 6;
/// Pages of each session.
const OWN: u32 = 60;

fn store_in(env: &Arc<SimulatedEnvironment>, frames: usize, pages: u32) -> Arc<PageStore> {
    let dynamic: Arc<dyn Environment> = env.clone();
    let directory = PathBuf::from("/data");
    dynamic.storage().create_dir_all(&directory).unwrap();
    let store = new_store(&dynamic, &directory, options(frames, PAGE), 8 << 20);
    store.create_space(SPACE, &directory.join("t.ibd"), pages).unwrap();
    store
}

fn id(page: u32) -> PageId {
    PageId::new(SPACE, page)
}

/// With no resize under way and no read: every frame below the limit is free or has a page, every other one
/// is withdrawn.
fn check_frames(store: &PageStore) {
    let limit = store.free.limit();
    assert_eq!(store.free.end(), limit);
    let mut pages = 0;
    for index in 0..store.frames.made() as u32 {
        let frame = store.frames.get(index);
        assert_eq!(frame.is_withdrawn(), index >= limit, "frame {index} of {limit}");
        assert!(!frame.holds_a_page() || index < limit, "frame {index} of {limit}");
        assert!(index < limit || frame.pins.is_owned() && !frame.pins.is_pinned());
        pages += u64::from(frame.holds_a_page());
    }
    let status = store.status();
    assert_eq!((status.pages_total, status.pages_data), (u64::from(limit), pages));
    assert_eq!(status.pages_free + pages, u64::from(limit), "a frame was lost: {status:?}");
}

/// Reads and changes pages of its own, and keeps some of them pinned for a while.
async fn session(store: Arc<PageStore>, number: u32, mut random: Random, steps: u32, done: Arc<AtomicU64>) {
    let first = number * OWN;
    let mut values = vec![u64::MAX; OWN as usize];
    let mut pin = None;
    for step in 0..steps {
        let own = random.below(OWN as usize);
        let page = id(first + own as u32);
        let value = u64::from(step) * 1000 + u64::from(number);
        if values[own] == u64::MAX {
            retry(|| create_page(&store, page, value)).await.unwrap();
            values[own] = value;
        } else if random.one_in(2) {
            retry(|| update_page(&store, page, value)).await.unwrap();
            values[own] = value;
        } else {
            let seen = retry(|| Ok(value_of(&store.read(page)?))).await.unwrap();
            assert_eq!(seen, values[own], "page {page} at step {step}");
        }
        if random.one_in(20) {
            pin = Some((page, retry(|| store.pin(page)).await.unwrap()));
        }
        if let Some((page, pin)) = &pin {
            assert!(pin.frame().holds(*page), "a pinned page has left its frame");
        }
        if random.one_in(30) {
            // The page that is pinned stays so meanwhile.
            store.env.sleep(Duration::from_millis(random.below(60) as u64)).await;
            pin = None;
        }
    }
    drop(pin);
    done.fetch_add(1, Ordering::Relaxed);
}

/// A large pool of which little is used opens fast and takes little memory.
#[test]
fn descriptors_are_made_when_frames_are_first_used() {
    let env = SimulatedEnvironment::new(1);
    let store = store_in(&env, 2000, 300);
    let made = store.frames.made();
    assert!(made < 200, "{made} descriptors");
    env.run_until_complete(async {
        for page in 0..300 {
            retry(|| create_page(&store, id(page), 1)).await.unwrap();
        }
    });
    assert!((300..500).contains(&store.frames.made()), "{} descriptors", store.frames.made());
    let status = store.status();
    assert_eq!((status.pages_total, status.pages_free + status.pages_data), (2000, 2000));
    for frames in [1000, 3000, 100, 2000] {
        let over = store.resize(frames * PAGE).unwrap();
        env.run_until_complete(over.wait());
        check_frames(&store);
        assert_eq!(store.frames.made(), frames.max(store.frames.made()));
    }
}

#[test]
fn contents_are_right_while_the_pool_is_resized() {
    let (mut shrunk, mut replaced, mut moved) = (0, 0, 0);
    for seed in 0..24 {
        let env = SimulatedEnvironment::new(seed);
        let mut random = Random::new(seed ^ 0xB0);
        let store = store_in(&env, 64, SESSIONS * OWN);
        let done = Arc::new(AtomicU64::new(0));
        for number in 0..SESSIONS {
            let (store, done) = (store.clone(), done.clone());
            let random = Random::new(random.next_u64());
            env.spawn("session", Box::pin(session(store, number, random, 1200, done)));
        }
        while done.load(Ordering::Relaxed) < u64::from(SESSIONS) {
            let (before, frames) = (store.frame_count(), 32 + random.below(400));
            let over = store.resize(frames * PAGE).unwrap();
            if random.one_in(4) {
                env.advance(Duration::from_micros(random.below(3000) as u64));
                replaced += usize::from(!over.is_set());
                continue;
            }
            env.run_until_complete(over.wait());
            assert!(store.resize_status().starts_with("Completed resizing"), "{}", store.resize_status());
            assert_eq!(store.frame_count(), frames);
            shrunk += usize::from(frames < before);
            env.advance(Duration::from_millis(random.below(100) as u64));
        }
        let over = store.resize(48 * PAGE).unwrap();
        env.run_until_complete(over.wait());
        env.run_until_complete(store.flush_all()).unwrap();
        env.run_until_idle();
        check_frames(&store);
        assert_eq!(store.poisoned(), None, "seed {seed}");
        moved += store.status().pages_relocated;
        env.run_until_complete(store.shutdown()).unwrap();
        env.shutdown();
    }
    println!("{shrunk} times smaller, {replaced} requests replaced, {moved} pages moved");
    assert!(shrunk > 50 && replaced > 20 && moved > 1000, "{shrunk} {replaced} {moved}");
}

/// Nearly all pages are dirty, and some of those that are to leave are pinned for long: the rest leaves,
/// others go on working in the frames that stay, and the resize is over when the pins have gone and not
/// before.
#[test]
fn a_shrink_waits_for_pins_and_keeps_nobody_waiting() {
    for seed in 0..10 {
        let env = SimulatedEnvironment::new(seed);
        let store = store_in(&env, 400, 600);
        for page in 0..380 {
            env.run_until_complete(retry(|| create_page(&store, id(page), u64::from(page)))).unwrap();
        }
        let pins: Vec<_> = (0..30).map(|number| store.pin(id(100 + number * 9)).unwrap()).collect();
        let over = store.resize(40 * PAGE).unwrap();
        let kept = pins.iter().filter(|pin| pin.frame().index() >= 40).count();
        assert!(kept > 20, "seed {seed}: {kept}");
        env.advance(Duration::from_secs(2));
        assert!(!over.is_set(), "seed {seed}: {}", store.resize_status());
        // The memory of those that have left does not wait for the others.
        let has_memory = |index: &u32| store.frames.get(*index).can_be_given_back();
        assert_eq!((40..400).find(has_memory), None, "seed {seed}");
        assert_eq!(
            store.resize_status(),
            format!(
                "Resizing buffer pool from 1638400 to 163840 bytes: withdrew {} of 360 pages",
                360 - kept
            )
        );
        // All pages there are, through the frames that stay.
        for page in 0..600 {
            let value = u64::from(page) + 7;
            let change = |store: &PageStore| {
                if page < 380 {
                    update_page(store, id(page), value)
                } else {
                    create_page(store, id(page), value)
                }
            };
            env.run_until_complete(retry(|| change(&store))).unwrap();
            let pin = env.run_until_complete(retry(|| store.pin(id(page)))).unwrap();
            let was_pinned = pins.iter().any(|held| held.frame().holds(id(page)));
            assert!(
                was_pinned || pin.frame().index() < 40,
                "seed {seed}: page {page} got a frame that leaves"
            );
        }
        drop(pins);
        env.run_until_complete(over.wait());
        assert_eq!(store.resize_status(), "Completed resizing buffer pool from 1638400 to 163840 bytes");
        env.run_until_complete(store.flush_all()).unwrap();
        env.run_until_idle();
        check_frames(&store);
        for page in 0..600 {
            let value = env.run_until_complete(retry(|| Ok(value_of(&store.read(id(page))?)))).unwrap();
            assert_eq!(value, u64::from(page) + 7);
        }
        env.shutdown();
    }
}

/// The frames that leave hold the pages that were used last: those are moved into the frames of the pages
/// used least.
#[test]
fn a_smaller_pool_keeps_the_pages_that_were_used_last() {
    let env = SimulatedEnvironment::new(4);
    let store = store_in(&env, 1000, 900);
    for page in 0..900 {
        env.run_until_complete(retry(|| create_page(&store, id(page), u64::from(page)))).unwrap();
    }
    env.run_until_complete(store.flush_all()).unwrap();
    let young: Vec<PageId> = store.resident_pages(500);
    let in_leaving_frames =
        young.iter().filter(|page| store.pin(**page).unwrap().frame().index() >= 700).count();
    assert!(in_leaving_frames > 190, "{in_leaving_frames}");
    let over = store.resize(700 * PAGE).unwrap();
    env.run_until_complete(over.wait());
    check_frames(&store);
    assert_eq!(store.status().pages_relocated, in_leaving_frames as u64);
    assert_eq!(store.resident_pages(500), young, "places in the LRU list");
    let reads = store.status().pages_read;
    for page in young {
        assert_eq!(value_of(&store.read(page).unwrap()), u64::from(page.page));
    }
    assert_eq!(store.status().pages_read, reads);
    env.shutdown();
}

#[test]
fn a_pool_that_grew_holds_all_pages() {
    let env = SimulatedEnvironment::new(1);
    let store = store_in(&env, 64, 3000);
    let over = store.resize(5000 * PAGE).unwrap();
    env.run_until_complete(over.wait());
    for page in 0..3000 {
        env.run_until_complete(retry(|| create_page(&store, id(page), u64::from(page)))).unwrap();
    }
    let reads = store.status().pages_read;
    for page in 0..3000 {
        assert_eq!(value_of(&store.read(id(page)).unwrap()), u64::from(page));
    }
    let status = store.status();
    assert_eq!((status.pages_total, status.pages_data, status.pages_read), (5000, 3000, reads));
    // The list's parts and the batches have grown too.
    assert!(status.pages_old > 0 && store.batch_pages() == 128);
    check_frames(&store);
    env.shutdown();
}

#[test]
fn what_cannot_be_is_refused() {
    let env = SimulatedEnvironment::new(2);
    let store = store_in(&env, 64, 10);
    for bytes in [0, 31 * PAGE, usize::MAX, usize::MAX / 2] {
        assert!(matches!(store.resize(bytes), Err(Error::Options(_))), "{bytes}");
    }
    assert_eq!((store.pool_bytes(), store.resize_status()), (64 * PAGE, String::new()));
    let mut over = Event::new();
    for frames in [300, 32, 100] {
        over = store.resize(frames * PAGE).unwrap();
    }
    env.run_until_complete(over.wait());
    assert_eq!(store.resize_status(), "Completed resizing buffer pool from 262144 to 409600 bytes");
    check_frames(&store);
    // Nobody waits for ever.
    let pin = env.run_until_complete(retry(|| store.pin(id(3)))).unwrap();
    let over = store.resize(2000 * PAGE).unwrap();
    store.poison("a test");
    env.run_until_complete(over.wait());
    assert!(store.resize_status().ends_with("was given up: a test"), "{}", store.resize_status());
    assert!(matches!(store.resize(64 * PAGE), Err(Error::Poisoned(_))));
    drop(pin);
    env.shutdown();
}

/// What there is no memory for is refused while somebody can be told.
#[test]
fn a_pool_grows_into_room_that_there_was_before() {
    let env = SimulatedEnvironment::new(8);
    let store = store_in(&env, 64, 10);
    let over = store.resize(5000 * PAGE).unwrap();
    let room = || [store.lru.lock().room(), store.flush_list.lock().room(), store.free.room()];
    let before = room();
    assert!(before.iter().all(|room| *room >= 5000) && store.frame_count() == 64, "{before:?}");
    env.run_until_complete(over.wait());
    assert_eq!((room(), store.frame_count()), (before, 5000));
    assert!(store.lru.lock().make_room(usize::MAX).is_err() && store.free.make_room(usize::MAX).is_err());
    assert!(store.flush_list.lock().make_room(usize::MAX).is_err());
    env.shutdown();
}

/// Nobody waits for a resize that nobody takes a step of any more.
#[test]
fn a_resize_ends_with_the_page_cleaner() {
    let env = SimulatedEnvironment::new(5);
    let store = store_in(&env, 64, 10);
    env.run_until_complete(store.shutdown()).unwrap();
    env.run_until_idle();
    // As somebody who asked before the store was closed, and comes so far only now.
    assert!(matches!(store.begin_resize(300 * PAGE), Err(Error::Options(_))));
    assert!(store.resize_status().contains("was given up"), "{}", store.resize_status());
    env.shutdown();
    let env = SimulatedEnvironment::new(6);
    let store = store_in(&env, 400, 400);
    for page in 0..380 {
        env.run_until_complete(retry(|| create_page(&store, id(page), 1))).unwrap();
    }
    let pins: Vec<_> = (0..380).map(|page| store.pin(id(page)).unwrap()).collect();
    let over = store.resize(40 * PAGE).unwrap();
    env.advance(Duration::from_secs(1));
    assert!(!over.is_set());
    store.broken.cleaner.store(true, Ordering::Relaxed);
    let panics =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| env.advance(Duration::from_secs(1))));
    assert!(panics.is_err() || store.poisoned().is_some());
    assert!(over.is_set(), "{}", store.resize_status());
    assert!(matches!(store.resize(64 * PAGE), Err(Error::Poisoned(_))));
    drop(pins);
    env.shutdown();
}

/// What the tier takes leaves the pool when the tier takes it, and comes back.
#[test]
fn the_tiers_memory_is_the_pools() {
    let env = SimulatedEnvironment::new(3);
    let store = store_in(&env, 400, 400);
    for page in 0..390 {
        env.run_until_complete(retry(|| create_page(&store, id(page), u64::from(page)))).unwrap();
    }
    let tier = Arc::new(ReferenceTier::new(&*env, &PathBuf::from("/data/tier"), PAGE));
    store.set_extension(Some(tier.clone()));
    for (bytes, frames) in [(100 * PAGE, 300), (1000 * PAGE, 200), (7, 399), (0, 400)] {
        tier.memory.store(bytes, Ordering::Relaxed);
        env.advance(Duration::from_secs(3));
        assert_eq!(store.frame_count(), frames, "{bytes}");
        check_frames(&store);
    }
    // Clean pages were offered before they went.
    assert!(tier.len() > 50, "{}", tier.len());
    tier.memory.store(100 * PAGE, Ordering::Relaxed);
    env.advance(Duration::from_secs(3));
    assert!(matches!(store.resize(150 * PAGE), Err(Error::Options(_))));
    let over = store.resize(250 * PAGE).unwrap();
    env.run_until_complete(over.wait());
    assert_eq!((store.frame_count(), store.pool_bytes()), (150, 250 * PAGE));
    store.set_extension(None);
    env.advance(Duration::from_secs(3));
    assert_eq!(store.frame_count(), 250);
    env.shutdown();
}

/// Searches a page until it has heads, if it can have any: those of a leaf, or of a page above.
fn search(store: &PageStore, number: u32) {
    let is_leaf = !number.is_multiple_of(10);
    let page = store.read(id(number)).unwrap();
    for _ in 0..5 {
        store.heads(
            &page,
            |_| is_leaf,
            |mut maker| (0..50).all(|head| maker.push(head, 112, 7)).then(|| maker.finish(1, None)),
        );
    }
}

/// They go with the frames that they lie beside, and come back.
#[test]
fn the_memory_of_heads_is_given_back() {
    let env = SimulatedEnvironment::new(4);
    let store = store_in(&env, 1000, 900);
    for page in 0..900 {
        env.run_until_complete(retry(|| create_page(&store, id(page), u64::from(page)))).unwrap();
        search(&store, page);
    }
    let all = 810 * 1024 + 90 * 7168;
    assert_eq!((store.status().heads_made, store.status().heads_bytes), (900, all));
    env.run_until_complete(store.flush_all()).unwrap();
    env.run_until_complete(store.resize(300 * PAGE).unwrap().wait());
    check_frames(&store);
    let left = store.status().heads_bytes;
    assert!(left > 0 && left <= 300 * (1024 + 7168) && left < all / 2, "{left} of {all} bytes");
    env.run_until_complete(store.resize(1000 * PAGE).unwrap().wait());
    assert_eq!(store.status().heads_bytes, left);
    for page in 0..900 {
        env.run_until_complete(retry(|| store.read(id(page)).map(drop))).unwrap();
        search(&store, page);
        assert!(store.read(id(page)).unwrap().has_heads(), "page {page}");
    }
    assert!(store.status().heads_bytes >= all);
    env.shutdown();
}

#[test]
fn without_memory_for_heads_there_are_none() {
    let env = SimulatedEnvironment::new(5);
    let store = store_in(&env, 100, 100);
    store.frames.heads.refuse();
    env.run_until_complete(retry(|| create_page(&store, id(1), 7))).unwrap();
    search(&store, 1);
    let page = store.read(id(1)).unwrap();
    assert_eq!((page.has_heads(), value_of(&page), store.status().heads_bytes), (false, 7, 0));
    drop(page);
    env.shutdown();
}
