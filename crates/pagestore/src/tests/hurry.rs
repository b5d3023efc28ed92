//! A task that waits for a batch has it written at once, however long it was to be spread.

use std::time::Duration;

use page::PageId;
use redo::Lsn;

use super::crash::{PAGE_SIZE, PAGES, SPACE, create_with};
use super::support::{create_page, options, retry};
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
