//! A task that waits for a batch has it written at once, however long it was to be spread.

use std::time::Duration;

use page::PageId;
use redo::Lsn;

use super::crash::{PAGE_SIZE, PAGES, SPACE, create_with, directory};
use super::support::{create_page, options, retry, update_page};
use crate::flush::collect::Which;
use crate::flush::reason::WriteReason;
use crate::store::PageStore;

const SPREAD: Duration = Duration::from_secs(60);

/// Makes all pages dirty, starts to write them over a minute, and gives the time that the work takes, which
/// waits for them.
fn waits(work: impl AsyncFnOnce(&PageStore)) -> Duration {
    let machine = create_with(3, 8 << 20, options(1024, PAGE_SIZE));
    let (env, store) = (machine.env.clone(), machine.store.clone());
    let took = env.run_until_complete(async {
        for page in 0..PAGES {
            retry(|| create_page(&store, PageId::new(SPACE, page), 1)).await.unwrap();
        }
        let all = Which::OlderThan(Lsn(u64::MAX));
        let started = store.start_flush(all, PAGES as usize, WriteReason::Age, SPREAD);
        assert_eq!(started.pages, PAGES as usize);
        let began = disk::Environment::now(&*env);
        work(&store).await;
        disk::Environment::now(&*env) - began
    });
    env.shutdown();
    took
}

/// Who waits for a pinned page to leave the pool hurries no writes: they make no frame free.
#[test]
fn a_smaller_pool_that_waits_for_a_pin_leaves_writes_their_time() {
    const OTHER: u32 = SPACE + 1;
    let machine = create_with(4, 8 << 20, options(1024, PAGE_SIZE));
    let (env, store) = (machine.env.clone(), machine.store.clone());
    let id = |page| PageId::new(OTHER, page);
    // More than one slice of a batch.
    store.create_space(OTHER, &directory().join("other.ibd"), 900).unwrap();
    env.run_until_complete(async {
        let mut pins = Vec::new();
        for page in 0..900 {
            retry(|| create_page(&store, id(page), 1)).await.unwrap();
            pins.push(store.pin(id(page)).unwrap());
        }
        let last = pins.iter().map(|pin| pin.frame().index()).max().unwrap();
        pins.retain(|pin| pin.frame().index() == last);
        let over = store.resize(last as usize * PAGE_SIZE).unwrap();
        store.env.sleep(Duration::from_secs(2)).await;
        assert_eq!((store.frame_count(), over.is_set()), (last as usize, false));
        // Few, so that nobody waits for a frame.
        for page in 400..500 {
            retry(|| update_page(&store, id(page), 2)).await.unwrap();
        }
        let all = Which::OlderThan(Lsn(u64::MAX));
        let started = store.start_flush(all, 100, WriteReason::Age, SPREAD);
        assert_eq!(started.pages, 100);
        store.env.sleep(SPREAD / 4).await;
        assert!(started.over.iter().any(|over| !over.is_set()), "they were hurried");
        drop(pins);
        over.wait().await;
    });
    env.shutdown();
}

#[test]
fn nobody_waits_for_a_batch_that_takes_its_time() {
    let left_alone = waits(async |store| {
        let batches = store.batches.lock().clone();
        for batch in batches {
            batch.over().wait().await;
        }
    });
    assert!(left_alone > SPREAD / 3, "it was written in {left_alone:?}: no time was taken");
    let at_once = |what: &str, took: Duration| {
        assert!(took < Duration::from_secs(2), "{what} waited {took:?}");
    };
    at_once("flush", waits(async |store| store.flush_all().await.unwrap()));
    at_once("export", waits(async |store| store.flush_space(SPACE).await.unwrap()));
    at_once("settle", waits(async |store| store.settle_writes().await.unwrap()));
    let checkpoint = async |store: &PageStore| assert!(store.checkpoint().await.unwrap() > Lsn(0));
    at_once("checkpoint", waits(checkpoint));
    at_once("shutdown", waits(async |store| store.shutdown().await.unwrap()));
    at_once("drop", waits(async |store| store.drop_space(SPACE).await.unwrap()));
    let resize = async |store: &PageStore| store.resize(64 * PAGE_SIZE).unwrap().wait().await;
    at_once("resize", waits(resize));
}
