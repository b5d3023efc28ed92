//! Recovery of a log that changes more pages than the pool has frames, in a pool in which the page cleaner
//! does not look at every page for a victim.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use disk::{Environment, SimulatedEnvironment};
use page::PageId;
use redo::{Flush, RedoLog};

use super::support::{PlainWriter, create_page, options, redo_options, retry, update_page, value_of};
use crate::store::{Options, PageStore};

const SPACE: u32 = 7;
const FRAMES: usize = 30_000;
const PAGES: u32 = 45_000;
const LOG: u64 = 64 << 20;

/// Pages of the batch under way are pinned and dirty only when it is over: they must not lie between the
/// cleaner and the pages of the batch before.
#[test]
fn a_log_of_more_pages_than_the_pool_has_is_applied() {
    let first = SimulatedEnvironment::new(3);
    let dir = Path::new("/data");
    let file = dir.join("t.ibd");
    let env: Arc<dyn Environment> = first.clone();
    env.storage().create_dir_all(dir).unwrap();
    first.run_until_complete(async {
        let redo = RedoLog::create(&env, dir, redo_options(LOG)).unwrap();
        let writer = Arc::new(PlainWriter(env.clone()));
        let store = PageStore::open(env.clone(), redo, options(PAGES as usize + 1000, 4096), writer).unwrap();
        store.create_space(SPACE, &file, PAGES).unwrap();
        for page in 1..PAGES {
            retry(|| create_page(&store, PageId::new(SPACE, page), 1)).await.unwrap();
        }
        store.checkpoint().await.unwrap();
        let mut last = store.redo().current();
        for page in 1..PAGES {
            last = retry(|| update_page(&store, PageId::new(SPACE, page), 2)).await.unwrap();
        }
        disk::retry(|| store.redo().flush(last, Flush::Sync)).await.unwrap();
    });
    let second = SimulatedEnvironment::with_storage(4, first.disk().crash(5));
    drop(first);
    let env: Arc<dyn Environment> = second.clone();
    let patience = env.clone();
    env.spawn(
        "patience",
        Box::pin(async move {
            patience.sleep(Duration::from_secs(3600)).await;
            panic!("recovery waits for ever");
        }),
    );
    second.run_until_complete(async {
        let redo = RedoLog::open(&env, dir, redo_options(LOG)).unwrap();
        let writer = Arc::new(PlainWriter(env.clone()));
        let at_once = Options { apply_when_read: false, ..options(FRAMES, 4096) };
        let store = PageStore::open(env.clone(), redo, at_once, writer).unwrap();
        let summary = store.recover(&[(SPACE, file.clone())]).unwrap();
        assert!(summary.batches > 1, "{summary:?}");
        for page in (1..PAGES).step_by(97) {
            let value = retry(|| Ok(value_of(&store.read(PageId::new(SPACE, page))?))).await.unwrap();
            assert_eq!(value, 2, "page {page}");
        }
    });
}
