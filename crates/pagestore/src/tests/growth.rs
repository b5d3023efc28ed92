//! Files that become longer by blocks that are only reserved.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use disk::{Environment, FaultKind, Misbehaviour, SimulatedEnvironment, Storage};
use page::PageId;
use redo::RedoLog;

use super::crash::{PAGE_SIZE, PAGES, SPACE, create, reopen};
use super::support::{PlainWriter, create_page, options, redo_options, retry, value_of};
use crate::error::{Error, Interrupt};
use crate::fsp::{self, Direction, Reserve};
use crate::mtr::Mtr;
use crate::store::PageStore;

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

/// A disk with room for two extents, and a file that grows by four: they are used one by one, by those who
/// reserve them and by those who have changed something already.
#[test]
fn the_last_megabytes_of_a_disk_are_used() {
    const EXTENT: u32 = 64;
    for allocates in [false, true] {
        let env = SimulatedEnvironment::new(1);
        let dynamic: Arc<dyn Environment> = env.clone();
        let (disk, data) = (env.disk().clone(), Path::new("/data"));
        dynamic.storage().create_dir_all(data).unwrap();
        if allocates {
            disk.offer_allocation();
        }
        // A log that does not grow.
        let log = redo::Options { first_size: 4 << 20, ..redo_options(4 << 20) };
        let redo = RedoLog::create(&dynamic, data, log).unwrap();
        let writer = Arc::new(PlainWriter(dynamic.clone()));
        let store = PageStore::open(dynamic, redo, options(256, 16384), writer).unwrap();
        store.create_space(SPACE, &data.join("t.ibd"), fsp::INITIAL_PAGES).unwrap();
        env.run_until_complete(async {
            change(&store, |mtr| fsp::create_space_pages(mtr, SPACE, fsp::INITIAL_PAGES)).await.unwrap();
            let segment = change(&store, |mtr| fsp::create_segment(mtr, SPACE)).await.unwrap();
            let last = std::cell::Cell::new(0);
            let insert = async |reserved: bool| {
                change(&store, |mtr| {
                    if reserved {
                        fsp::reserve(mtr, SPACE, 3, Reserve::Normal)?;
                    }
                    let page = fsp::allocate_page(mtr, segment, last.get() + 1, Direction::Up)?;
                    last.set(mtr.page_id(page).page);
                    Ok(())
                })
                .await
            };
            let pages = || store.space(SPACE).unwrap().pages;
            while pages() < 40 * EXTENT {
                insert(true).await.unwrap();
            }
            // What it grows ahead of its use is done.
            store.environment().sleep(Duration::from_secs(1)).await;
            let before = pages();
            disk.leave_room(2 << 20, FaultKind::Enospc);
            let full = async |reserved: bool| loop {
                if let Err(error) = insert(reserved).await {
                    break error;
                }
            };
            let refused = full(true).await;
            assert!(matches!(refused, Error::NoSpace { .. }), "{refused}");
            assert_eq!(pages(), before + 2 * EXTENT, "of a file of {before} pages");
            // What was left for rollbacks.
            let refused = full(false).await;
            assert!(matches!(refused, Error::NoSpace { .. }), "{refused}");
            assert!(last.get() > before + EXTENT, "{} is the last page", last.get());
            let report = retry(|| fsp::check(&store, SPACE)).await.unwrap();
            assert!(report.is_clean(), "{report}");
            assert_eq!((report.size, report.file_pages), (pages(), pages()));
            // Who has changed something already does not wait, but blocks until there is room for the least.
            let before_that = pages();
            disk.leave_room((1 << 20) + (512 << 10), FaultKind::Enospc);
            while pages() == before_that {
                change(&store, |mtr| {
                    let page = mtr.x(PageId::new(SPACE, last.get()))?;
                    fsp::prepare(mtr, segment, last.get() + 1)?;
                    mtr.write_u8(page, 100, 1);
                    let page = fsp::allocate_page(mtr, segment, last.get() + 1, Direction::Up)?;
                    last.set(mtr.page_id(page).page);
                    Ok(())
                })
                .await
                .unwrap();
            }
            assert_eq!((pages(), store.poisoned()), (before_that + EXTENT, None));
            disk.fill_up(false);
            insert(true).await.unwrap();
            assert!(pages() >= before + 4 * EXTENT);
        });
        env.shutdown();
    }
}

/// Somebody who has waited for a growth, and has not asked what became of it.
async fn begun(store: &PageStore, pages: u32) -> disk::Wait {
    match store.extend_space(SPACE, pages) {
        Err(Interrupt::Wait(wait)) => {
            wait.event().wait().await;
            wait
        }
        other => panic!("it does not wait: {other:?}"),
    }
}

/// A rollback that wants less than an insert could not have gets what it wants; a failure that nobody waits
/// for any more is nobody's; and who did wait is told, each of them.
#[test]
fn a_failure_is_for_those_who_waited_and_want_as_much() {
    let machine = create(3);
    let disk = machine.env.disk().clone();
    let store = &machine.store;
    machine.env.run_until_complete(async {
        disk.leave_room(20 * PAGE_SIZE, FaultKind::Enospc);
        let insert = begun(store, PAGES + 30).await;
        // A rollback wants less.
        retry(|| store.extend_space(SPACE, PAGES + 8)).await.unwrap();
        assert_eq!(store.space(SPACE).unwrap().pages, PAGES + 8);
        drop(insert);

        // Two wait for one growth, and are told.
        let first = store.extend_space(SPACE, PAGES + 40).unwrap_err();
        let second = store.extend_space(SPACE, PAGES + 40).unwrap_err();
        let (Interrupt::Wait(first), Interrupt::Wait(second)) = (first, second) else { panic!("no wait") };
        first.event().wait().await;
        for _ in 0..2 {
            let told = store.extend_space(SPACE, PAGES + 40);
            assert!(matches!(told, Err(Interrupt::Error(Error::NoSpace { .. }))), "{told:?}");
        }
        let again = store.extend_space(SPACE, PAGES + 40);
        assert!(matches!(again, Err(Interrupt::Wait(_))), "not a third: {again:?}");
        drop((first, second, again));

        // Somebody stops waiting. There is room by the time the next comes.
        drop(begun(store, PAGES + 40).await);
        disk.fill_up(false);
        retry(|| store.extend_space(SPACE, PAGES + 40)).await.unwrap();
        disk.fill_up(true);
        drop(begun(store, PAGES + 50).await);
        disk.fill_up(false);
        store.environment().sleep(Duration::from_secs(10)).await;
        store.extend_space_ahead(SPACE, PAGES + 60);
        store.environment().sleep(Duration::from_secs(1)).await;
        assert_eq!(store.space(SPACE).unwrap().pages, PAGES + 60);
    });
    machine.env.shutdown();
}

/// What a growth found room for and cannot use is there for others; and ahead of its use nothing takes it for
/// a while.
#[test]
fn a_growth_that_fails_keeps_nothing() {
    for allocates in [false, true] {
        let machine = create(4);
        let (disk, store) = (machine.env.disk().clone(), &machine.store);
        if allocates {
            disk.offer_allocation();
        }
        let pages = || store.space(SPACE).unwrap().pages;
        machine.env.run_until_complete(async {
            // Longer than one write of zeros.
            let all = 3 * (1 << 20) / PAGE_SIZE as u32;
            disk.leave_room(all as usize * PAGE_SIZE, FaultKind::Enospc);
            retry(|| store.extend_space(SPACE, PAGES + 2 * all)).await.unwrap_err();
            let at_least = || match pages() < PAGES + all {
                true => store.extend_space_at_least(SPACE, PAGES + 2 * all, PAGES + all),
                false => Ok(()),
            };
            retry(at_least).await.unwrap();
            assert_eq!(pages(), PAGES + all, "all there was");

            // None is left. What somebody frees is not taken ahead, but is there for who needs it.
            disk.leave_room(2 * PAGE_SIZE, FaultKind::Enospc);
            let before = disk.counters().writes;
            store.extend_space_ahead(SPACE, pages() + 20);
            store.environment().sleep(Duration::from_secs(1)).await;
            assert_eq!(disk.counters().writes, before, "not so soon after a failure");
            retry(|| store.extend_space(SPACE, PAGES + all + 1)).await.unwrap();
            disk.fill_up(false);
            store.extend_space_ahead(SPACE, pages() + 20);
            store.environment().sleep(Duration::from_secs(1)).await;
            assert_eq!(pages(), PAGES + all + 21, "somebody's growth has succeeded");

            // One that fails ahead gives back too, and some time later it is tried again.
            disk.leave_room(10 * PAGE_SIZE, FaultKind::Enospc);
            store.extend_space_ahead(SPACE, pages() + 20);
            store.environment().sleep(Duration::from_secs(1)).await;
            let file = store.open_space_of(SPACE).unwrap().file().len().unwrap();
            assert_eq!(file, u64::from(pages()) * PAGE_SIZE as u64);
            disk.fill_up(false);
            store.environment().sleep(Duration::from_secs(10)).await;
            store.extend_space_ahead(SPACE, pages() + 20);
            store.environment().sleep(Duration::from_secs(1)).await;
            assert_eq!(pages(), PAGES + all + 41);
        });
        machine.env.shutdown();
    }
}

/// Does `work` in a mini-transaction, again after each wait.
async fn change<T>(
    store: &PageStore,
    mut work: impl FnMut(&mut Mtr<'_>) -> Result<T, Interrupt>,
) -> Result<T, Error> {
    retry(|| {
        let mut mtr = store.mtr_sized(256 << 10)?;
        let done = work(&mut mtr)?;
        mtr.commit();
        Ok(done)
    })
    .await
}
