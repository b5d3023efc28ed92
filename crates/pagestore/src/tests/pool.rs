//! The pool over real files.

use std::sync::Arc;

use disk::{Environment, PageId, Random, block_on};

use super::support::{
    TempDir, create_page, new_store, options, real_environment, retry, update_page, value_of,
};
use crate::store::PageStore;

const SPACE: u32 = 7;

fn small_store(env: &Arc<dyn Environment>, dir: &TempDir, frames: usize, pages: u32) -> Arc<PageStore> {
    let store = new_store(env, &dir.0, options(frames, 4096), 8 << 20);
    store.create_space(SPACE, &dir.0.join("t.ibd"), pages).unwrap();
    store
}

#[test]
fn random_updates_in_a_pool_smaller_than_the_data() {
    let (env, dir) = (real_environment(), TempDir::new("updates"));
    let pages = 400;
    let store = small_store(&env, &dir, 64, pages);
    let mut model = vec![0_u64; pages as usize];
    let seed = 0x5EED;
    println!("seed {seed:#x}");
    let mut random = Random::new(seed);
    block_on(async {
        for page in 0..pages {
            retry(|| create_page(&store, PageId::new(SPACE, page), u64::from(page))).await.unwrap();
            model[page as usize] = u64::from(page);
        }
        for step in 1_u64..6000 {
            let page = (random.next_u64() % u64::from(pages)) as u32;
            let id = PageId::new(SPACE, page);
            if random.next_u64() % 3 == 0 {
                let seen = retry(|| Ok(value_of(&store.read(id)?))).await.unwrap();
                assert_eq!(seen, model[page as usize], "page {id} at step {step}");
            } else {
                retry(|| update_page(&store, id, step * 1000)).await.unwrap();
                model[page as usize] = step * 1000;
            }
        }
        let status = store.status();
        println!("{status:?}");
        assert!(status.pages_evicted > 1000 && status.pages_written > 100 && status.pages_read > 1000);
        let lsn = store.checkpoint().await.unwrap();
        assert!(lsn >= store.redo().checkpoint_lsn());
        assert_eq!(store.status().pages_dirty, 0);
        store.shutdown().await.unwrap();
    });
    assert_eq!(store.poisoned(), None);
}
