//! Files that become longer by blocks that are only reserved.

use page::PageId;

use super::crash::{PAGES, SPACE, create, reopen};
use super::support::{create_page, retry, value_of};

/// Nothing is written for them, and what a power cut leaves of the file has the pages that were put there.
#[test]
fn a_file_grows_without_zeros_where_blocks_can_be_reserved() {
    for seed in 0..20 {
        let machine = create(seed);
        let disk = machine.env.disk().clone();
        disk.offer_allocation();
        let page = PageId::new(SPACE, PAGES + 200);
        machine.env.run_until_complete(async {
            retry(|| machine.store.extend_space(SPACE, PAGES + 300)).await.unwrap();
            assert_eq!(disk.allocations(), 1);
            retry(|| machine.store.extend_space(SPACE, PAGES + 300)).await.unwrap();
            assert_eq!(disk.allocations(), 1, "it has them already");
            let end = retry(|| create_page(&machine.store, page, 7)).await.unwrap();
            machine.store.redo().flush_async(end, redo::Flush::Sync).await.unwrap();
            if seed % 2 == 0 {
                machine.store.flush_space(SPACE).await.unwrap();
            }
        });
        let left = disk.crash(seed);
        machine.env.shutdown();
        let (reopened, _) = reopen(seed, left).unwrap();
        assert!(reopened.store.space(SPACE).unwrap().pages > page.page);
        let found = reopened.env.run_until_complete(retry(|| Ok(value_of(&reopened.store.read(page)?))));
        assert_eq!(found.unwrap(), 7, "seed {seed}");
        reopened.env.shutdown();
    }
}
