//! Who waits for room in the log gets it, however little the others log meanwhile; and pages are counted by
//! age for the log there is.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use disk::{Environment, SimulatedEnvironment};
use page::PageId;
use redo::RedoLog;

use super::support::{PlainWriter, create_page, new_store, options, redo_options, retry, update_page};
use crate::store::PageStore;

const SPACE: u32 = 5;
/// Few, so that they are hot: they grow as old as they may.
const PAGES: u32 = 64;

#[test]
fn a_large_mini_transaction_finds_room_beside_small_ones() {
    let simulated = SimulatedEnvironment::new(11);
    let env: Arc<dyn Environment> = simulated.clone();
    let dir = Path::new("/data");
    env.storage().create_dir_all(dir).unwrap();
    let store = new_store(&env, dir, options(512, 4096), 1 << 20);
    store.create_space(SPACE, &dir.join("t.ibd"), PAGES).unwrap();
    simulated.run_until_complete(async {
        for page in 0..PAGES {
            retry(|| create_page(&store, PageId::new(SPACE, page), 1)).await.unwrap();
        }
        // A load far below what the storage can write: its pages are held at the goal.
        let over = Arc::new(AtomicBool::new(false));
        let (load, until, clock) = (store.clone(), over.clone(), env.clone());
        let small = async move {
            for step in 0..u32::MAX {
                if until.load(Ordering::Relaxed) {
                    return;
                }
                retry(|| update_page(&load, PageId::new(SPACE, step % PAGES), 2)).await.unwrap();
                clock.sleep(Duration::from_millis(2)).await;
            }
        };
        env.spawn("load", Box::pin(small));
        let (redo, started) = (store.redo(), env.now());
        while redo.age() < redo.capacity() / 16 * 13 {
            assert!(env.now() - started < Duration::from_secs(600), "the log does not fill");
            env.sleep(Duration::from_millis(10)).await;
        }
        let began = env.now();
        while store.mtr_sized(redo.mini_transaction_bytes_max()).is_err() {
            let waited = env.now() - began;
            assert!(waited < Duration::from_secs(2), "no room after {waited:?}: the log has {}", redo.age());
            env.sleep(Duration::from_millis(1)).await;
        }
        over.store(true, Ordering::Relaxed);
        store.shutdown().await.unwrap();
    });
    simulated.shutdown();
}

/// The store is made before the log is scanned, and a log that was closed cleanly has its new, smaller size
/// only from then on.
#[test]
fn ages_are_counted_for_a_log_that_was_given_another_size() {
    let simulated = SimulatedEnvironment::new(12);
    let env: Arc<dyn Environment> = simulated.clone();
    let dir = Path::new("/data");
    env.storage().create_dir_all(dir).unwrap();
    simulated.run_until_complete(async {
        let writer = Arc::new(PlainWriter(env.clone()));
        let large = redo::Options { first_size: 64 << 20, ..redo_options(64 << 20) };
        let redo = RedoLog::create(&env, dir, large).unwrap();
        let store = PageStore::open(env.clone(), redo, options(512, 4096), writer).unwrap();
        store.create_space(SPACE, &dir.join("t.ibd"), PAGES).unwrap();
        retry(|| create_page(&store, PageId::new(SPACE, 1), 1)).await.unwrap();
        store.shutdown().await.unwrap();
        store.redo().close().await.unwrap();
        drop(store);

        let redo = RedoLog::open(&env, dir, redo_options(1 << 20)).unwrap();
        let before = redo.capacity();
        let writer = Arc::new(PlainWriter(env.clone()));
        let store = PageStore::open(env.clone(), redo, options(512, 4096), writer).unwrap();
        store.recover(&[(SPACE, dir.join("t.ibd"))]).unwrap();
        let capacity = store.redo().capacity();
        assert!(32 * capacity < before, "the log has its new size");
        for page in 2..PAGES {
            retry(|| create_page(&store, PageId::new(SPACE, page), 1)).await.unwrap();
        }
        env.sleep(Duration::from_millis(200)).await;
        let lsn = store.redo().current().0;
        let (dirty, counted, none) = {
            let list = store.flush_list.lock();
            let ages = list.ages();
            (list.len(), ages.older_than(lsn, 0), ages.older_than(lsn, capacity / 2))
        };
        assert_eq!(none, 0);
        assert!(dirty > 0 && counted == dirty, "{dirty} dirty pages, {counted} counted");
        store.shutdown().await.unwrap();
    });
    simulated.shutdown();
}
