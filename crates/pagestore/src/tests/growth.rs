//! Files that become longer by blocks that are only reserved.

use disk::{FaultKind, Misbehaviour, Storage};
use page::PageId;

use super::crash::{PAGE_SIZE, PAGES, SPACE, create, reopen};
use super::support::{create_page, retry, value_of};
use crate::error::Error;

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

/// It fails for those who wait for the room, and for nobody else; later there may be some.
#[test]
fn a_reservation_that_fails_is_no_growth() {
    for kind in [FaultKind::Enospc, FaultKind::Eio] {
        let machine = create(1);
        let disk = machine.env.disk().clone();
        disk.offer_allocation();
        machine.env.run_until_complete(async {
            disk.misbehave("t.ibd", Misbehaviour::FailWrite(kind), 1);
            let refused = retry(|| machine.store.extend_space(SPACE, PAGES + 300)).await.unwrap_err();
            match kind {
                FaultKind::Enospc => assert!(matches!(refused, Error::NoSpace { .. }), "{refused}"),
                _ => assert!(matches!(refused, Error::Io(_)), "{refused}"),
            }
            assert_eq!((disk.allocations(), machine.store.poisoned()), (0, None));
            assert_eq!(machine.store.space(SPACE).unwrap().pages, PAGES);
            disk.behave();
            retry(|| machine.store.extend_space(SPACE, PAGES + 300)).await.unwrap();
            assert_eq!(disk.allocations(), 1);
            assert_eq!(machine.store.space(SPACE).unwrap().pages, PAGES + 300);
        });
        machine.env.shutdown();
    }
}

#[test]
fn a_file_grows_by_zeros_that_are_written_where_blocks_cannot_be_reserved() {
    let machine = create(2);
    let disk = machine.env.disk().clone();
    machine.env.run_until_complete(async {
        let before = disk.counters().bytes_written;
        retry(|| machine.store.extend_space(SPACE, PAGES + 300)).await.unwrap();
        assert_eq!(disk.allocations(), 0);
        assert!(disk.counters().bytes_written >= before + 300 * PAGE_SIZE as u64);
        assert_eq!(machine.store.space(SPACE).unwrap().pages, PAGES + 300);
    });
    machine.env.shutdown();
}
