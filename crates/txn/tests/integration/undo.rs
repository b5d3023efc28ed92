//! The undo tablespace: as many transactions as there are sessions, history that is not in memory, rollback
//! beside clients, and purge that a crash or a damaged page does not end.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::*;
use pagestore::PageId;
use pagestore::PageSize;
use std::future::Future;
use std::task::Poll;
use untorn_txn::*;

const PAGE_TYPE: usize = 24;
const UNDO_PAGE: u16 = 2;

fn small_pages(seed: u64) -> World {
    World::with(seed, 8 << 20, PageSize::new(4096).unwrap(), false)
}

fn undo_page(page: u32) -> PageId {
    PageId { space: UNDO_SPACE, page }
}

/// Changes bytes of a page of the undo tablespace.
fn overwrite(world: &World, page: u32, at: usize, bytes: &[u8]) {
    world.run(again(|| {
        let mut mtr = world.store.mtr()?;
        let page = mtr.x(undo_page(page))?;
        mtr.write(page, at, bytes);
        mtr.commit();
        Ok(())
    }));
}

/// Many more transactions with changes at a time than one directory page has slots; some end each way, some
/// are cut off by a crash.
#[test]
fn thousands_of_transactions_can_have_changes_at_a_time() {
    const SESSIONS: i32 = 2100;
    let world = World::new(500);
    world.fill(&[(1_000_000, 0)]);
    let mut sessions: Vec<Session> = (0..SESSIONS).map(|_| world.session()).collect();
    world.run(async {
        for (id, session) in sessions.iter_mut().enumerate() {
            session.begin();
            session.insert(id as i32, 7).await.unwrap();
        }
    });
    assert_eq!(world.system.status().active, SESSIONS as usize);
    world.run(async {
        for (id, session) in sessions.iter_mut().enumerate() {
            match id % 3 {
                0 => session.commit().await,
                1 => session.rollback().await,
                _ => {}
            }
        }
        // The sync of a commit takes the changes of the others to the disk as well.
        sessions[0].begin();
        sessions[0].update(0, 8).await.unwrap();
        sessions[0].commit().await;
    });
    sessions.into_iter().for_each(std::mem::forget);
    let world = world.crash(501);
    assert_eq!(world.report.rolled_back, SESSIONS as usize / 3);
    let mut session = world.session();
    let rows = world.run(session.pairs());
    assert_eq!(rows.len(), SESSIONS as usize / 3 + 1);
    assert!(rows.iter().all(|(id, _)| id % 3 == 0 || *id == 1_000_000));
    // All slots can be used again.
    let mut sessions: Vec<Session> = (0..SESSIONS).map(|_| world.session()).collect();
    world.run(async {
        for (id, session) in sessions.iter_mut().enumerate() {
            session.begin();
            session.insert(id as i32 + 10_000, 7).await.unwrap();
        }
        for session in &mut sessions {
            session.commit().await;
        }
        world.system.purge_all().await.unwrap();
    });
    drop(session);
    world.check();
}

/// The directory as earlier versions wrote it: one page, without hints.
#[test]
fn a_directory_of_an_earlier_version_is_taken_over() {
    for page_size in [4096, 16384] {
        let world = World::with(510, 8 << 20, PageSize::new(page_size).unwrap(), false);
        world.fill(&[(1, 10), (2, 20)]);
        let mut lost = world.session();
        world.run(async {
            lost.begin();
            lost.update(1, 11).await.unwrap();
        });
        overwrite(&world, 3, 38, b"UTUNDO01");
        if page_size == 4096 {
            // As many slots as there was room for, so that there is none for hints.
            overwrite(&world, 3, 64, &502u16.to_be_bytes());
            overwrite(&world, 3, 72 + 251 * 8, &[0xFF; 251 * 8]);
        }
        world.fill(&[(3, 30)]);
        std::mem::forget(lost);
        let world = world.crash(510);
        let mut sessions: Vec<Session> = (0..600).map(|_| world.session()).collect();
        world.run(async {
            assert_eq!(sessions[0].pairs().await, [(1, 10), (2, 20), (3, 30)]);
            for (id, session) in sessions.iter_mut().enumerate() {
                session.begin();
                session.insert(100 + id as i32, 1).await.unwrap();
            }
            for session in &mut sessions {
                session.commit().await;
            }
        });
        sessions.clear();
        let world = world.crash(511);
        let mut session = world.session();
        assert_eq!(world.run(session.pairs()).len(), 603, "pages of {page_size} bytes");
    }
}

/// A session changes one row again and again (but for the first time, when it finds what it writes), and
/// nobody purges.
fn gather_history(world: &World, commits: i32) {
    let mut session = world.session();
    world.run(async {
        for round in 0..commits {
            session.begin();
            session.update(1, round).await.unwrap();
            session.commit().await;
        }
    });
}

#[test]
fn a_start_does_not_read_the_history() {
    const COMMITS: i32 = 8000;
    let world = small_pages(520);
    world.fill(&[(1, 0), (2, 0)]);
    gather_history(&world, COMMITS + 1);
    let pages = world.system.status().undo_pages;
    assert!(pages > 100, "{pages} pages");
    assert_eq!(world.system.status().history_length, COMMITS as u64);
    let mut lost = world.session();
    world.run(async {
        lost.begin();
        lost.update(2, 5).await.unwrap();
        lost.insert(3, 5).await.unwrap();
        world.store.flush_all().await.unwrap();
        world.store.checkpoint().await.unwrap();
    });
    std::mem::forget(lost);
    let mut world = world.crash(521);
    // Pages that redo brought are not read; so all that a start needs is.
    let read = world.store.status().pages_read;
    assert!(read < 80, "{read} pages read to open {pages} pages of undo");
    assert!(world.report.history < COMMITS as u64 / 2, "{:?}", world.report);
    assert_eq!(world.report.rolled_back, 1);
    for round in 0..3 {
        // Purge finds what the start did not look at, and goes on after another crash in between.
        gather_history(&world, 11);
        let mut session = world.session();
        assert_eq!(world.run(session.pairs()), [(1, 10), (2, 0)]);
        drop(session);
        world.run(async { assert!(for_polls(world.system.purge_all(), 20).await.is_none()) });
        world = world.crash(522 + round);
    }
    world.run(world.system.purge_all()).unwrap();
    assert_eq!(world.system.status().history_length, 0);
    assert_eq!(world.deleted_records(), 0);
    let left = world.system.status().undo_pages;
    assert!(left < 10, "{left} pages left");
    world.check();
}

/// A rollback after a start goes on beside clients, holds its rows, and a second crash loses little of it.
#[test]
fn a_rollback_after_a_start_goes_on_beside_clients_and_over_crashes() {
    const ROWS: i32 = 8000;
    let world = small_pages(530);
    let rows: Vec<(i32, i32)> = (0..ROWS).map(|id| (id, id)).collect();
    world.fill(&rows);
    let mut lost = world.session();
    world.run(async {
        lost.begin();
        for id in 0..ROWS - 10 {
            lost.update(id, -1).await.unwrap();
        }
        let mut other = world.session();
        other.begin();
        other.insert(ROWS, ROWS).await.unwrap();
        other.commit().await;
    });
    std::mem::forget(lost);
    let mut world = world.crash_and_open(531);
    let mut left = u64::MAX;
    for round in 0.. {
        let status = world.system.status();
        assert_eq!(status.unfinished_transactions, 1, "the start did not wait for it");
        let records = status.unfinished_records;
        if round == 0 {
            assert_eq!(records, ROWS as u64 - 10);
        } else {
            assert!(
                records < left,
                "round {round}: {records} of {left} undo records left after another start"
            );
        }
        left = records;
        let (mut reader, mut writer) = (world.session(), world.session());
        world.run(async {
            assert_eq!(reader.read(ROWS).await, Some(ROWS + round));
            assert_eq!(reader.read(5).await, Some(5), "nobody sees what had not committed");
            writer.begin();
            writer.update(ROWS, ROWS + round + 1).await.unwrap();
            writer.commit().await;
        });
        if round == 2 {
            // A row that it changed becomes available when it has ended, not before.
            let mut locking: std::pin::Pin<Box<dyn std::future::Future<Output = _> + '_>> =
                Box::pin(writer.lock(5));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(locking.as_mut().poll(&mut context).is_pending());
            world.run(world.system.rolled_back());
            assert!(matches!(world.settle(&mut locking), Poll::Ready(Ok(Some(5)))));
            break;
        }
        // Some thousand records on.
        while world.system.status().unfinished_records + 1500 > left {
            assert!(world.env.step(), "the rollback stands still");
        }
        world.run(async {
            // The sync takes what has been undone to the disk.
            writer.begin();
            writer.update(ROWS, 0).await.unwrap();
            writer.update(ROWS, ROWS + round + 1).await.unwrap();
            writer.commit().await;
        });
        drop((reader, writer));
        world = world.crash_and_open(532 + round as u64);
    }
    assert_eq!(world.system.status().unfinished_transactions, 0);
    assert_eq!(world.system.status().unfinished_records, 0);
    let mut reader = world.session();
    let mut shown = world.run(reader.pairs());
    assert_eq!(shown.pop(), Some((ROWS, ROWS + 3)));
    assert_eq!(shown, rows);
    drop(reader);
    world.run(world.system.purge_all()).unwrap();
    assert_eq!(world.deleted_records(), 0);
    world.check();
}

/// Entries of an index on a prefix of an off-page column are made of the off-page values, which purge frees.
#[test]
fn purge_that_a_crash_repeats_does_not_follow_values_that_are_gone() {
    const ROWS: i32 = 110;
    for update in [false, true] {
        let mut crashes = 0;
        let mut steps = 0;
        loop {
            steps += 1 + steps / 6;
            let world = World::with(540, 1 << 20, PageSize::new(4096).unwrap(), false);
            let (mut session, mut other) = (world.session(), world.session());
            world.run(async {
                session.begin();
                for id in 0..ROWS {
                    let long = vec![id as u8; 12_000];
                    session.insert_all(id, id, None, Some(&long)).await.unwrap();
                }
                session.commit().await;
                session.begin();
                for id in 0..ROWS {
                    if update {
                        // The first has the value among what only orders entries, the second frees it.
                        session.update(id, -id - 1).await.unwrap();
                        session.set_v(id, Some(&[1])).await.unwrap();
                    } else {
                        session.delete(id).await.unwrap();
                    }
                }
                session.commit().await;
            });
            // Pages that purge frees become pages of the index; the commits take what it did to the disk.
            let mut purging = Box::pin(world.system.purge_all());
            let mut inserting = Box::pin(async {
                for id in 0.. {
                    other.begin();
                    other.insert_all(1000 + id, id, None, Some(&[5; 500])).await.unwrap();
                    other.commit().await;
                }
            });
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            let mut done = false;
            for _ in 0..steps {
                done = done || purging.as_mut().poll(&mut context).is_ready();
                let _ = inserting.as_mut().poll(&mut context);
                world.env.step();
            }
            crashes += usize::from(!done);
            drop((purging, inserting));
            std::mem::forget((session, other));
            let world = world.crash(steps as u64);
            world.run(world.system.purge_all()).unwrap();
            let status = world.system.status();
            assert_eq!((status.history_length, status.purge_skipped), (0, 0), "{steps} steps");
            assert_eq!(world.deleted_records(), 0, "update {update}, {steps} steps");
            world.check();
            if done {
                break;
            }
        }
        assert!(crashes > 5, "update {update}: {crashes} crashes before the end of purge");
    }
}

/// Damage in one log: the others are purged, and the engine goes on.
#[test]
fn a_damaged_undo_page_does_not_end_purge() {
    let world = small_pages(550);
    world.fill(&(0..40).map(|id| (id, id)).collect::<Vec<_>>());
    // Sessions one and two have logs in different slots.
    let (mut one, mut two) = (world.session(), world.session());
    world.run(async {
        for (session, ids) in [(&mut one, 0..10), (&mut two, 10..20)] {
            session.begin();
            for id in ids {
                session.delete(id).await.unwrap();
            }
            session.commit().await;
        }
    });
    assert_eq!(world.system.status().history_length, 2);
    // The first log begins on the first undo page with a committed log; its first record's length becomes
    // nonsense.
    let log = (4..20).find(|page| {
        world.run(again(|| {
            let page = world.store.read(undo_page(*page))?;
            let is_undo = page[PAGE_TYPE..PAGE_TYPE + 2] == UNDO_PAGE.to_be_bytes();
            Ok(is_undo && page[56 + 22] == 2)
        }))
    });
    overwrite(&world, log.unwrap(), 56 + 24, &[0xFF, 0xFF]);
    let before = world.deleted_records();
    world.run(world.system.purge_all()).unwrap();
    let status = world.system.status();
    assert_eq!(status.purge_skipped, 1);
    let left = world.deleted_records();
    assert!(left > 0 && left < before, "{left} of {before} delete-marked records left");
    // Everything goes on, purge too.
    world.run(async {
        for session in [&mut one, &mut two] {
            session.begin();
            for id in 20..30 {
                if session.read(id).await.is_some() {
                    session.delete(id).await.unwrap();
                }
            }
            session.commit().await;
        }
        world.system.purge_all().await.unwrap();
    });
    assert_eq!(world.deleted_records(), left);
    world.check();
}

/// A snapshot reads a row whose versions since do not fit into the pool, while the row goes on being changed.
#[test]
fn a_version_chain_longer_than_the_pool_is_walked_once() {
    // Each change in a transaction, all in one, or one with half of them upon those.
    for (own_transactions, by_one_transaction) in [(5000, false), (0, true), (2500, true)] {
        let world = World::with(560, 1 << 20, PageSize::new(4096).unwrap(), false);
        world.fill(&[(1, 10), (2, 20)]);
        let (mut reader, mut writer) = (world.session(), world.session());
        world.run(async {
            reader.begin();
            assert_eq!(reader.read(2).await, Some(20));
            for round in 0..5000_u32 {
                if round <= own_transactions {
                    writer.begin();
                }
                let value = [round as u8; 300];
                writer.set_v(1, Some(&value)).await.unwrap();
                if round % 100 == 7 {
                    writer.update(1, round as i32).await.unwrap();
                }
                if round < own_transactions {
                    writer.trx.commit(Durability::NoSync).await.unwrap();
                }
            }
        });
        let pages = world.system.status().undo_pages;
        assert!(pages > 300, "{pages} pages of undo in a pool of 256");
        let before = world.store.status().pages_read;
        let read = world.run(for_polls(
            async {
                let mut reading = std::pin::pin!(reader.read(1));
                let mut polls = 0_u32;
                loop {
                    // The row is changed again and again meanwhile.
                    let polled = std::future::poll_fn(|context| Poll::Ready(reading.as_mut().poll(context)));
                    if let Poll::Ready(row) = polled.await {
                        break row;
                    }
                    polls += 1;
                    if !by_one_transaction && polls.is_multiple_of(10) {
                        writer.begin();
                        writer.update(1, -(polls as i32)).await.unwrap();
                        writer.trx.commit(Durability::NoSync).await.unwrap();
                    }
                    let mut yielded = false;
                    std::future::poll_fn(|context| {
                        if std::mem::replace(&mut yielded, true) {
                            return Poll::Ready(());
                        }
                        context.waker().wake_by_ref();
                        Poll::Pending
                    })
                    .await;
                }
            },
            200_000,
        ));
        assert_eq!(read, Some(Some(10)), "{own_transactions} changes in transactions of their own");
        let read = world.store.status().pages_read - before;
        assert!(read < 2 * pages, "{read} pages read for a chain on {pages}");
    }
}

/// An index entry goes only after the versions of its row were looked at, and its page is merged with another
/// one: neither drives the other's pages out of a small pool.
#[test]
fn a_rollback_ends_though_its_versions_do_not_fit_into_the_pool() {
    let world = World::with(561, 1 << 20, PageSize::new(4096).unwrap(), false);
    world.fill(&(1..=2000).map(|id| (id, id)).collect::<Vec<_>>());
    let mut session = world.session();
    let done = world.run(async {
        session.begin();
        for round in 0..5000_u32 {
            session.set_v(1, Some(&[round as u8; 300])).await.unwrap();
            if round % 500 == 7 {
                session.update(1, 1_000_000 + round as i32).await.unwrap();
            }
        }
        assert!(world.system.status().undo_pages > 300, "more than the pool's 256 pages");
        for_polls(session.rollback(), 1_000_000).await
    });
    assert!(done.is_some(), "it goes round in circles");
    world.check();
    assert_eq!(world.run(session.read(1)), Some(1));
}

/// All is in memory, so nothing makes it wait: it gives way of its own accord.
#[test]
fn a_long_rollback_lets_others_on_its_thread_go_on() {
    let world = World::new(570);
    world.fill(&[(0, 0)]);
    let mut session = world.session();
    world.run(async {
        session.begin();
        for id in 1..=4000 {
            session.insert(id, id).await.unwrap();
        }
        assert_eq!(for_polls(session.rollback(), 10).await, None, "4,000 rows are not one turn's work");
        session.rollback().await;
        assert_eq!(session.pairs().await, [(0, 0)]);
        session.commit().await;
    });
    world.check();
}
