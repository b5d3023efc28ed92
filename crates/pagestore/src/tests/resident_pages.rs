//! The walk through the LRU list for a dump, in portions between which the list changes, and the load of what
//! was dumped.

use std::path::Path;
use std::sync::Arc;

use disk::{Environment, SimulatedEnvironment};
use page::PageId;

use super::support::{create_page, new_store, options, retry};
use crate::pool::warm_up::{WarmUp, warm_up};
use crate::store::PageStore;

const SPACE: u32 = 5;

fn with_pages(count: u32) -> (Arc<SimulatedEnvironment>, Arc<PageStore>) {
    let env = SimulatedEnvironment::new(1);
    let dynamic: Arc<dyn Environment> = env.clone();
    dynamic.storage().create_dir_all(Path::new("/data")).unwrap();
    let quiet = crate::store::Options { background: false, ..options(1000, 4096) };
    let store = new_store(&dynamic, Path::new("/data"), quiet, 8 << 20);
    store.create_space(SPACE, Path::new("/data/t.ibd"), count).unwrap();
    env.run_until_complete(async {
        for page in 0..count {
            retry(|| create_page(&store, PageId::new(SPACE, page), 1)).await.unwrap();
        }
        store.flush_all().await.unwrap();
    });
    (env, store)
}

#[test]
fn portions_are_the_list_where_nothing_changes() {
    let (env, store) = with_pages(600);
    let all = store.resident_pages(usize::MAX);
    assert!(all.iter().map(|page| page.page).eq((0..600).rev()));
    for (max, portion) in [(600, 2), (1000, 7), (599, 600), (1, 2), (13, 4), (0, 4)] {
        let mut portions = 1;
        let pages = store.resident_pages_in(max, portion, || portions += 1);
        assert_eq!(pages, all[..max.min(600)]);
        assert_eq!(portions, max.min(600).div_ceil(portion).max(1), "{max} in portions of {portion}");
    }
    env.shutdown();
}

/// Between two portions the frame at which the walk stopped goes away, or to the young end.
#[test]
fn the_walk_goes_on_where_the_list_has_changed_and_comes_to_its_end() {
    let (env, store) = with_pages(600);
    let frame = |page: u32| store.look_up(PageId::new(SPACE, page)).map(|pin| pin.frame());
    let (mut portions, mut evicted) = (0, 0);
    let pages = store.resident_pages_in(usize::MAX, 20, || {
        portions += 1;
        // Of the last portion the last three pages, from the 580th on.
        let last = 600 - 20 * portions;
        for page in (last..last + 3).rev() {
            let Some(frame) = frame(page) else { continue };
            let mut lru = store.lru.lock();
            if portions % 2 == 0 {
                lru.make_young(&store.frames, frame.index());
            } else if store.evict(&mut lru, frame) {
                evicted += 1;
                drop(lru);
                store.free.put(frame);
            }
        }
    });
    assert!((29..60).contains(&portions) && evicted > 30, "{portions} portions, {evicted} evicted");
    let mut seen: Vec<u32> = pages.iter().map(|page| page.page).collect();
    assert!(seen.len() <= 600);
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.len() > 550, "{} pages", seen.len());
    // Nothing lies where it did: it ends.
    let pages = store.resident_pages_in(usize::MAX, 4, || {
        let mut lru = store.lru.lock();
        let order: Vec<u32> = lru.youngest_first_after(None).collect();
        order.into_iter().step_by(2).for_each(|index| lru.make_young(&store.frames, index));
    });
    assert!((4..=600).contains(&pages.len()), "{}", pages.len());
    env.shutdown();
}

/// What is loaded is evicted in the order of its heat, the coldest first.
#[test]
fn pages_that_are_loaded_have_the_order_of_the_dump() {
    let (env, store) = with_pages(900);
    let list: Vec<PageId> = (0..900).map(|page| PageId::new(SPACE, page)).collect();
    for page in &list {
        let frame = store.look_up(*page).unwrap().frame();
        assert!(store.evict(&mut store.lru.lock(), frame));
        store.free.put(frame);
    }
    assert_eq!(store.resident_pages(usize::MAX), []);
    let ended = env.run_until_complete(warm_up(store.weak(), list.clone(), |_| true));
    assert_eq!(ended, WarmUp::Complete);
    let loaded = store.resident_pages(usize::MAX);
    assert_eq!(loaded.len(), list.len());
    // Reads that are under way together end in any order.
    let off = loaded.iter().enumerate().map(|(at, page)| at.abs_diff(page.page as usize)).max();
    assert!(off.unwrap() < 300, "{off:?}");
    env.shutdown();
}
