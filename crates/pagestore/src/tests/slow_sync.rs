//! A sync of data files that takes very long.

use std::time::Duration;

use page::PageId;

use super::crash::{PAGE_SIZE, PAGES, SPACE, create_with};
use super::support::{create_page, options, retry};
use crate::flush::reason::WriteReason;

/// It holds the checkpoint, and nothing makes it shorter: pages that are young are not written in a hurry.
#[test]
fn while_a_sync_takes_long_young_pages_are_left_their_time() {
    let machine = create_with(5, 8 << 20, options(1024, PAGE_SIZE));
    let (env, store) = (machine.env.clone(), machine.store.clone());
    let id = |page| PageId::new(SPACE, page);
    env.run_until_complete(async {
        for page in 0..PAGES {
            retry(|| create_page(&store, id(page), 1)).await.unwrap();
        }
        store.checkpoint().await.unwrap();
        // A page that is written, as far as the list knows, and whose sync has begun.
        let begin = retry(|| create_page(&store, id(0), 2)).await.unwrap();
        {
            let frame = store.look_up(id(0)).unwrap().frame();
            let mut list = store.flush_list.lock();
            let batch = list.begin_batch();
            list.move_to_batch(batch, frame).unwrap();
            list.end_batch(batch, false);
            assert!(list.begin_sync());
        }
        let (full, bytes) = (store.redo.capacity() / 64 * 63, vec![7; 1500]);
        for step in 0.. {
            if store.redo.current().since(begin) >= full {
                break;
            }
            let changed = retry(|| {
                let mut mtr = store.mtr()?;
                let page = mtr.x(id(1 + step % (PAGES - 1)))?;
                mtr.write(page, 200, &bytes);
                Ok(mtr.commit())
            });
            changed.await.unwrap();
            store.env.sleep(Duration::from_millis(4)).await;
        }
        assert!(store.flush_list.lock().oldest_unwritten().unwrap() <= begin, "it is being synced");
        let written = store.status().written_for;
        let pages = |reason| written.pages(reason);
        assert_eq!(pages(WriteReason::LogShort), 0, "{written:?}");
        assert!(pages(WriteReason::Age) > u64::from(PAGES) / 2, "{written:?}");
        store.flush_list.lock().end_sync();
        store.sync_over.notify();
    });
    env.shutdown();
}
