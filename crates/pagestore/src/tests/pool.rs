//! The pool over real files.

use std::sync::Arc;

use disk::{Environment, Random, block_on};
use page::PageId;

use super::support::{
    TempDir, create_page, new_store, options, real_environment, retry, update_page, value_of,
};
use crate::error::{Error, Interrupt};
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
            if random.below(3) == 0 {
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

/// Threads that move value between pages under one mini-transaction each; the sum never changes.
#[test]
fn concurrent_threads_keep_the_sum() {
    let (env, dir) = (real_environment(), TempDir::new("threads"));
    let pages = 300_u32;
    let store = small_store(&env, &dir, 96, pages);
    block_on(async {
        for page in 0..pages {
            retry(|| create_page(&store, PageId::new(SPACE, page), 1000)).await.unwrap();
        }
    });
    let transfer = |from: u32, to: u32, amount: u64| {
        let mut mtr = store.mtr()?;
        // In page order, as the latch order asks.
        let low = mtr.x(PageId::new(SPACE, from.min(to)))?;
        let high = mtr.x(PageId::new(SPACE, from.max(to)))?;
        let (from, to) = if from < to { (low, high) } else { (high, low) };
        let (a, b) = (page::u64_at(mtr.page(from), 100), page::u64_at(mtr.page(to), 100));
        if a < amount {
            return Ok(());
        }
        mtr.write_u64(from, 100, a - amount);
        mtr.write_u64(to, 100, b + amount);
        mtr.commit();
        Ok(())
    };
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let transfer = &transfer;
            scope.spawn(move || {
                let mut random = Random::new(seed);
                for _ in 0..3000 {
                    let from = (random.next_u64() % u64::from(pages)) as u32;
                    let to = (random.next_u64() % u64::from(pages)) as u32;
                    if from != to {
                        block_on(retry(|| transfer(from, to, random.next_u64() % 100))).unwrap();
                    }
                }
            });
        }
    });
    let mut sum = 0;
    block_on(async {
        for page in 0..pages {
            sum += retry(|| Ok(page::u64_at(&store.read(PageId::new(SPACE, page))?, 100))).await.unwrap();
        }
        store.shutdown().await.unwrap();
    });
    assert_eq!(sum, u64::from(pages) * 1000);
    let status = store.status();
    assert!(status.pages_evicted > 500, "{status:?}");
    assert_eq!(status.pages_in_flight, 0);
}

#[test]
fn a_damaged_page_fails_its_readers_and_nobody_else() {
    let (env, dir) = (real_environment(), TempDir::new("damage"));
    let pages = 200;
    let store = small_store(&env, &dir, 64, pages);
    block_on(async {
        for page in 0..pages {
            retry(|| create_page(&store, PageId::new(SPACE, page), u64::from(page))).await.unwrap();
        }
        store.flush_all().await.unwrap();
        store.close_space(SPACE).await.unwrap();
    });
    let path = dir.0.join("t.ibd");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[50 * 4096 + 2000] ^= 1;
    // A misdirected write: page 61 lies where page 60 belongs.
    bytes.copy_within(61 * 4096..62 * 4096, 60 * 4096);
    bytes[0..4096].fill(0);
    std::fs::write(&path, bytes).unwrap();
    store.open_space(SPACE, &path).unwrap();
    block_on(async {
        for page in 1..pages {
            let id = PageId::new(SPACE, page);
            // Twice: a failure is not remembered beyond those who waited for it, nor does it turn into
            // success.
            for _ in 0..2 {
                let result = retry(|| Ok(value_of(&store.read(id)?))).await;
                match result {
                    Ok(value) => assert!(value == u64::from(page) && page != 50 && page != 60),
                    Err(Error::Corrupt { file, page: found, why }) => {
                        assert!(page == 50 || page == 60, "{why}");
                        assert_eq!((file, found), (path.clone(), id));
                        assert!(page == 50 || why.contains("7:61"), "{why}");
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        }
        assert_eq!(store.status().corrupt_pages, 4);
        // A wait that holds nothing leads to the error as well, not to the same read for ever.
        let id = PageId::new(SPACE, 60);
        let Err(Interrupt::Wait(wait)) = store.read(id) else { panic!("the page is not in memory") };
        let mut light = wait.without_hold();
        drop(wait);
        light.done().await;
        assert!(matches!(store.read(id), Err(Interrupt::Error(Error::Corrupt { .. }))));
        // Beyond the end of the file.
        let beyond = retry(|| store.read(PageId::new(SPACE, pages)).map(drop)).await.unwrap_err();
        assert!(beyond.to_string().contains("only 200 pages"), "{beyond}");
        // The damaged page can be reinitialised without being read.
        retry(|| create_page(&store, PageId::new(SPACE, 50), 5)).await.unwrap();
        store.checkpoint().await.unwrap();
    });
    assert_eq!(store.poisoned(), None);
    assert_eq!(store.status().pending_reads, 0);
}

#[test]
fn writers_wait_when_the_log_is_full_and_none_fails() {
    let (env, dir) = (real_environment(), TempDir::new("full"));
    let store = new_store(&env, &dir.0, options(256, 16384), 1 << 20);
    store.create_space(SPACE, &dir.0.join("t.ibd"), 200).unwrap();
    let threads = 3;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let store = &store;
            scope.spawn(move || {
                let mut random = Random::new(thread);
                let bytes: Vec<u8> = (0..8000).map(|_| random.next_u64() as u8).collect();
                for step in 0..400_u32 {
                    let id = PageId::new(SPACE, (step * 3 + thread as u32) % 200);
                    let change = || {
                        let mut mtr = store.mtr()?;
                        let page = mtr.create(id)?;
                        mtr.write(page, 200, &bytes);
                        mtr.commit();
                        Ok(())
                    };
                    block_on(retry(change)).unwrap();
                }
            });
        }
    });
    let status = store.redo().status();
    assert!(status.bytes_written > 5 * status.capacity, "{status:?}");
    assert!(status.room_waits > 0 && status.checkpoints > 3, "{status:?}");
    assert_eq!(store.poisoned(), None);
}

#[test]
fn dropped_spaces_vanish_and_their_ids_can_be_used_again() {
    let (env, dir) = (real_environment(), TempDir::new("drop"));
    let store = new_store(&env, &dir.0, options(128, 4096), 8 << 20);
    block_on(async {
        for round in 1..8_u64 {
            let path = dir.0.join(format!("{round}.ibd"));
            store.create_space(3, &path, 50).unwrap();
            for page in 0..50 {
                retry(|| create_page(&store, PageId::new(3, page), round)).await.unwrap();
            }
            if round % 2 == 0 {
                store.flush_space(3).await.unwrap();
            }
            assert!(matches!(store.create_space(3, &path, 50), Err(Error::Tablespace { .. })));
            store.drop_space(3).await.unwrap();
            assert!(!path.exists());
            let gone = retry(|| store.read(PageId::new(3, 1)).map(drop)).await.unwrap_err();
            assert!(matches!(gone, Error::NoSuchSpace(3)));
            assert_eq!(store.status().pages_data, 0);
        }
        assert_eq!(store.status().pages_free, 128);
        store.checkpoint().await.unwrap();
    });
}

#[test]
fn files_grow_before_their_pages_are_used() {
    let (env, dir) = (real_environment(), TempDir::new("grow"));
    let store = small_store(&env, &dir, 64, 4);
    block_on(async {
        let beyond = PageId::new(SPACE, 600);
        assert!(retry(|| create_page(&store, beyond, 1)).await.is_err());
        retry(|| store.extend_space(SPACE, 601)).await.unwrap();
        assert_eq!(store.space(SPACE).unwrap().pages, 601);
        assert_eq!(std::fs::metadata(dir.0.join("t.ibd")).unwrap().len(), 601 * 4096);
        retry(|| create_page(&store, beyond, 1)).await.unwrap();
        // Never written: all zero, which is valid.
        assert!(page::is_all_zero(&retry(|| store.read(PageId::new(SPACE, 599))).await.unwrap()));
        retry(|| store.extend_space(SPACE, 10)).await.unwrap();
        assert_eq!(store.space(SPACE).unwrap().pages, 601);
    });
}

#[test]
fn a_tablespace_id_that_makes_no_sense_is_refused_before_memory_is_asked_for() {
    let (env, dir) = (real_environment(), TempDir::new("id"));
    let store = small_store(&env, &dir, 64, 4);
    for id in [1 << 28, 0xFFFE_FFFF] {
        let path = dir.0.join("other.ibd");
        let error = store.create_space(id, &path, 4).unwrap_err().to_string();
        assert!(error.contains("damaged") && !path.exists(), "{error}");
        let error = store.open_space(id, &dir.0.join("t.ibd")).unwrap_err().to_string();
        assert!(error.contains(&id.to_string()), "{error}");
    }
}

#[test]
fn read_ahead_brings_pages_in_one_batch() {
    let (env, dir) = (real_environment(), TempDir::new("ahead"));
    let store = small_store(&env, &dir, 256, 200);
    block_on(async {
        for page in 0..200 {
            retry(|| create_page(&store, PageId::new(SPACE, page), u64::from(page))).await.unwrap();
        }
        store.close_space(SPACE).await.unwrap();
        store.spaces.add(SPACE, &dir.0.join("t.ibd"), None).unwrap();
        let batches = env.storage().counters().batches;
        let wanted: Vec<PageId> = (64..128).map(|page| PageId::new(SPACE, page)).collect();
        store.prefetch(&wanted);
        assert_eq!(env.storage().counters().batches, batches + 1);
        for id in &wanted {
            assert_eq!(retry(|| Ok(value_of(&store.read(*id)?))).await.unwrap(), u64::from(id.page));
        }
        let status = store.status();
        assert_eq!((status.read_ahead, status.reads, status.pages_read), (64, 0, 64), "{status:?}");
    });
}

#[test]
fn a_scan_reads_the_next_area_ahead() {
    let (env, dir) = (real_environment(), TempDir::new("linear"));
    let store = small_store(&env, &dir, 512, 300);
    block_on(async {
        for page in 0..300 {
            retry(|| create_page(&store, PageId::new(SPACE, page), u64::from(page))).await.unwrap();
        }
        store.close_space(SPACE).await.unwrap();
        store.spaces.add(SPACE, &dir.0.join("t.ibd"), None).unwrap();
        let scan = async |from: u32, to: u32| {
            for page in from..to {
                let id = PageId::new(SPACE, page);
                assert_eq!(retry(|| Ok(value_of(&store.read(id)?))).await.unwrap(), u64::from(page));
                store.scan_reached(id);
            }
            store.status().read_ahead
        };
        // A short range across the middle of an area is no scan.
        assert_eq!(scan(90, 100).await, 0);
        assert_eq!(scan(128, 160).await, 0);
        // The middle: 192 to 255 are read ahead. The scan's next middle reads on, to the end of the file
        // only.
        assert_eq!(scan(160, 192).await, 64);
        let reads = store.status().reads;
        assert_eq!(scan(192, 256).await, 64 + 300 - 256);
        assert_eq!(scan(256, 300).await, 64 + 300 - 256);
        assert_eq!(store.status().reads, reads, "pages that were read ahead were read again");
    });
}

/// Puts zeros in the place of a page, as where a write was lost.
fn lose(dir: &TempDir, page: u64) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::options().write(true).open(dir.0.join("t.ibd")).unwrap();
    file.write_all_at(&[0; 4096], page * 4096).unwrap();
}

#[test]
fn a_page_whose_write_was_lost_is_not_changed() {
    let (env, dir) = (real_environment(), TempDir::new("lost"));
    let store = small_store(&env, &dir, 64, 10);
    block_on(async {
        for page in 0..10 {
            retry(|| create_page(&store, PageId::new(SPACE, page), 1)).await.unwrap();
        }
        store.close_space(SPACE).await.unwrap();
        lose(&dir, 5);
        store.spaces.add(SPACE, &dir.0.join("t.ibd"), None).unwrap();
        let lost = PageId::new(SPACE, 5);
        let error = retry(|| update_page(&store, lost, 2)).await.unwrap_err();
        assert!(matches!(error, Error::Corrupt { page, .. } if page == lost), "{error}");
        assert!(error.to_string().contains("only zeros"), "{error}");
        assert_eq!(store.status().corrupt_pages, 1);
        // The others are as good as ever.
        retry(|| update_page(&store, PageId::new(SPACE, 6), 2)).await.unwrap();
        store.checkpoint().await.unwrap();
    });
}

#[test]
fn recovery_does_not_change_a_page_whose_write_was_lost() {
    for skip_corrupt in [false, true] {
        let (env, dir) = (real_environment(), TempDir::new("lost-recovery"));
        let options = crate::store::Options { background: false, skip_corrupt, ..options(64, 4096) };
        let store = new_store(&env, &dir.0, options.clone(), 8 << 20);
        store.create_space(SPACE, &dir.0.join("t.ibd"), 10).unwrap();
        block_on(async {
            for page in 0..10 {
                retry(|| create_page(&store, PageId::new(SPACE, page), 1)).await.unwrap();
            }
            store.checkpoint().await.unwrap();
            let end = retry(|| update_page(&store, PageId::new(SPACE, 5), 2)).await.unwrap();
            store.redo.flush_async(end, redo::Flush::Sync).await.unwrap();
        });
        drop(store);
        lose(&dir, 5);
        let log = redo::RedoLog::open(&env, &dir.0, super::support::redo_options(8 << 20)).unwrap();
        let writer = Arc::new(super::support::PlainWriter(env.clone()));
        let store = PageStore::open(env.clone(), log, options, writer).unwrap();
        let recovered = store.recover(&[(SPACE, dir.0.join("t.ibd"))]);
        if skip_corrupt {
            assert_eq!(recovered.unwrap().corrupt_pages, [PageId::new(SPACE, 5)]);
        } else {
            assert_eq!(recovered.unwrap().pages_left, 1);
            let error = block_on(store.apply_the_rest()).unwrap_err().to_string();
            assert!(error.contains("only zeros"), "{error}");
        }
    }
}

/// Reads pages of a store whose table has 300 pages, none of them in memory at first.
fn with_a_cold_table(frames: usize, work: impl AsyncFnOnce(&PageStore)) {
    let (env, dir) = (real_environment(), TempDir::new("areas"));
    let store = small_store(&env, &dir, frames, 300);
    block_on(async {
        for page in 0..300 {
            retry(|| create_page(&store, PageId::new(SPACE, page), u64::from(page))).await.unwrap();
        }
        store.close_space(SPACE).await.unwrap();
        store.spaces.add(SPACE, &dir.0.join("t.ibd"), None).unwrap();
        work(&store).await;
    });
}

async fn read_each(store: &PageStore, pages: impl IntoIterator<Item = u32>, scans: bool) {
    for page in pages {
        let id = PageId::new(SPACE, page);
        assert_eq!(retry(|| Ok(value_of(&store.read(id)?))).await.unwrap(), u64::from(page));
        if scans {
            store.scan_reached(id);
        }
    }
}

#[test]
fn the_threshold_says_how_much_of_an_area_a_scan_must_touch() {
    let read_ahead = |threshold: Option<u32>, from: u32| {
        let mut read = 0;
        with_a_cold_table(512, async |store| {
            if let Some(threshold) = threshold {
                store.set_read_ahead_threshold(threshold);
            }
            read_each(store, from..161, true).await;
            read = store.status().read_ahead;
        });
        read
    };
    // Up to the middle of the area from 128 on, by default 28 of the 32 pages before.
    assert_eq!((read_ahead(None, 132), read_ahead(None, 133)), (64, 0));
    assert_eq!((read_ahead(Some(64), 128), read_ahead(Some(64), 129)), (64, 0));
    assert_eq!((read_ahead(Some(10), 155), read_ahead(Some(10), 156)), (64, 0));
    assert_eq!(read_ahead(Some(0), 128), 0, "off");
}

#[test]
fn random_read_ahead_reads_the_rest_of_an_area_of_which_13_pages_are_in_use() {
    let wanted: Vec<u32> = (64..128).step_by(4).collect();
    with_a_cold_table(512, async |store| {
        read_each(store, wanted.iter().copied(), false).await;
        assert_eq!(store.status().read_ahead_random, 0, "off unless it is switched on");
    });
    with_a_cold_table(512, async |store| {
        store.set_random_read_ahead(true);
        read_each(store, wanted[..13].iter().copied(), false).await;
        assert_eq!(store.status().read_ahead_random, 0);
        read_each(store, wanted[13..14].iter().copied(), false).await;
        assert_eq!(store.status().read_ahead_random, 50, "14 of 64 were asked for");
        let reads = store.status().reads;
        read_each(store, 64..128, false).await;
        let status = store.status();
        assert_eq!((status.reads, status.read_ahead_random, status.read_ahead), (reads, 50, 0));
        // What was only read ahead does not count: nobody has wanted 13 of these.
        let ahead: Vec<PageId> = (192..224).map(|page| PageId::new(SPACE, page)).collect();
        store.prefetch(&ahead);
        read_each(store, [230], false).await;
        assert_eq!(store.status().read_ahead_random, 50);
    });
}

#[test]
fn only_pages_that_nobody_wanted_are_evicted_in_vain() {
    with_a_cold_table(128, async |store| {
        let ahead: Vec<PageId> = (0..40).map(|page| PageId::new(SPACE, page)).collect();
        let before = store.status().reads;
        store.prefetch(&ahead);
        // The pool is too small for an old part: what is wanted is young all the time.
        read_each(store, 0..30, false).await;
        // The cleaner may have had some of these before they were wanted; then they were read again.
        let again = store.status().reads - before;
        read_each(store, 100..300, false).await;
        read_each(store, 100..300, false).await;
        assert_eq!(store.status().read_ahead_evicted, 10 + again);
    });
    with_a_cold_table(512, async |store| {
        let ahead: Vec<PageId> = (0..40).map(|page| PageId::new(SPACE, page)).collect();
        store.prefetch(&ahead);
        store.close_space(SPACE).await.unwrap();
        assert_eq!(store.status().read_ahead_evicted, 0, "they went with their tablespace");
    });
}
