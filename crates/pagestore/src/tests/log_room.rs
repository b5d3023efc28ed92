//! Who waits for room in the log gets it, however little the others log meanwhile.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use disk::{Environment, SimulatedEnvironment};
use page::PageId;

use super::support::{create_page, new_store, options, retry, update_page};

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
