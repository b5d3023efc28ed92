//! The pins of undo pages in a small pool: what a change that failed or was cut leaves pinned is missing for
//! everybody else as long as its transaction is open.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::future::Future;

use crate::common::*;
use pagestore::PageSize;
use untorn_txn::*;

/// Frames of the pool, and more transactions than that.
const FRAMES: usize = 40;
const OPEN: i32 = 64;
/// Rows of a table that is several times the pool.
const ROWS: i32 = 3000;

fn world(seed: u64) -> World {
    let world = World::with(seed, FRAMES * 4096, PageSize::new(4096).unwrap(), false);
    let mut session = world.session();
    world.run(async {
        session.begin();
        for id in 0..ROWS {
            session.insert_all(id, id, None, Some(&[7; 300])).await.unwrap();
        }
        session.commit().await;
    });
    drop(session);
    world
}

/// Fails, instead of waiting for ever, where there is no frame.
async fn in_time<F: Future>(work: F) -> F::Output {
    for_polls(work, 2000).await.expect("frames are left for others")
}

/// Reads pages all over the table, so that each has to be read again.
async fn read_far_and_wide(session: &mut Session) {
    for id in (0..ROWS).step_by(60) {
        assert_eq!(in_time(session.read(id)).await, Some(id));
    }
}

#[test]
fn changes_that_failed_leave_no_undo_page_pinned() {
    let world = world(600);
    let (mut reader, mut open) = (world.session(), Vec::new());
    world.run(async {
        for id in 0..OPEN {
            let mut session = world.session();
            session.begin();
            // Again and again: each has its undo page for as long as it runs.
            for _ in 0..40 {
                let error = in_time(session.insert(id, 1)).await.unwrap_err();
                assert!(matches!(error, Error::DuplicateKey { .. }), "{error}");
            }
            open.push(session);
            read_far_and_wide(&mut reader).await;
        }
        for (id, session) in open.iter_mut().enumerate() {
            in_time(session.insert(ROWS + id as i32, 1)).await.unwrap();
        }
    });
}

#[test]
fn changes_that_are_cut_while_they_wait_leave_no_undo_page_pinned() {
    let world = world(601);
    let (mut reader, mut open) = (world.session(), Vec::new());
    world.run(async {
        for turn in 0..OPEN {
            let mut session = world.session();
            session.begin();
            // This one takes the slot and its page, and stays. Then one row after the other is changed, until
            // the page of one has to be read.
            in_time(session.insert(ROWS + turn, turn)).await.unwrap();
            let mut rows = (1..100).map(|row| (turn * 100 + row) * 997 % ROWS);
            let id = async {
                for id in rows.by_ref() {
                    if for_polls(session.set_n(id, Some(-1)), 1).await.is_none() {
                        return Some(id);
                    }
                }
                None
            };
            assert!(id.await.is_some(), "everything is in memory: nothing was tested");
            open.push(session);
            read_far_and_wide(&mut reader).await;
        }
    });
}
