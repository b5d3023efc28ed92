//! Many sessions upsert and replace one row: each waits its turn, nobody is a deadlock's victim.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::*;
use disk::{Environment, RealEnvironment, RealOptions, block_on};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use untorn_txn::*;

type Work<'f> = Pin<Box<dyn Future<Output = Result<(), Error>> + 'f>>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum By {
    PrimaryKey,
    UniqueKey,
}

/// The row of the conflict, locked, as the SQL layer finds it.
async fn conflict(session: &mut Session, by: By) -> Result<Option<RowCopy>, Error> {
    let index = match by {
        By::PrimaryKey => ScanIndex::Clustered,
        By::UniqueKey => ScanIndex::Secondary(INDEX_U),
    };
    let rows = session.try_scan(index, KeyRange::equal(key(1)), Direction::Forward, for_update()).await?;
    Ok(rows.first().cloned())
}

async fn insert_changing(session: &mut Session, id: i32, k: i32, u: Option<i32>) -> Result<bool, Error> {
    let (id, k, u) = (int(id), int(k), u.map(int));
    let row = [Some(&id[..]), Some(&k[..]), u.as_ref().map(|u| &u[..]), None, Some(&id[..]), None];
    match insert_with(&mut session.trx, &session.table, &row, OnDuplicate::Change).await {
        Ok(()) => Ok(true),
        Err(Error::DuplicateKey { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// `INSERT … VALUES (…, 1) ON DUPLICATE KEY UPDATE k = k + 1`, and commits.
async fn upsert(session: &mut Session, by: By, own_id: i32) -> Result<(), Error> {
    let (id, u) = match by {
        By::PrimaryKey => (1, None),
        By::UniqueKey => (own_id, Some(1)),
    };
    session.begin();
    if !insert_changing(session, id, 1, u).await? {
        let row = conflict(session, by).await?.expect("the row in the way is locked");
        session.update(row.id, row.k + 1).await?;
    }
    session.commit().await;
    Ok(())
}

/// `REPLACE` with a value one more than the row's, and commits.
async fn replace(session: &mut Session, by: By, own_id: i32) -> Result<(), Error> {
    let (id, u) = match by {
        By::PrimaryKey => (1, None),
        By::UniqueKey => (own_id, Some(1)),
    };
    session.begin();
    let mut k = 1;
    while !insert_changing(session, id, k, u).await? {
        let row = conflict(session, by).await?.expect("the row in the way is locked");
        k = row.k + 1;
        session.delete(row.id).await?;
    }
    session.commit().await;
    Ok(())
}

/// All of them wait for one holder, which then lets go. With S locks first all would get the row together and
/// want X.
#[test]
fn sessions_that_wait_for_one_row_upsert_it_one_after_the_other() {
    const SESSIONS: i32 = 8;
    for by in [By::PrimaryKey, By::UniqueKey] {
        for replaces in [false, true] {
            for level in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
                let world = World::new(7);
                let mut holder = world.session();
                world.run(upsert(&mut holder, by, 1)).unwrap();
                holder.begin();
                world.run(holder.update(1, 1)).unwrap();
                world.run(holder.update(1, 2)).unwrap();
                let mut sessions: Vec<Session> = (0..SESSIONS).map(|_| world.session_at(level)).collect();
                let mut waits: Vec<Work<'_>> = Vec::new();
                for (session, number) in sessions.iter_mut().zip(0..) {
                    // Ids fall, so that a replaced entry goes before the one that others wait for.
                    let own_id = 100 - number;
                    waits.push(match replaces {
                        true => Box::pin(replace(session, by, own_id)),
                        false => Box::pin(upsert(session, by, own_id)),
                    });
                    assert!(world.settle(waits.last_mut().unwrap()).is_pending());
                }
                world.run(holder.commit());
                while !waits.is_empty() {
                    let before = waits.len();
                    waits.retain_mut(|wait| match world.settle(wait) {
                        Poll::Pending => true,
                        Poll::Ready(result) => {
                            let case = format!("{by:?}, replaces: {replaces}, {level:?}");
                            result.unwrap_or_else(|error| panic!("{case}: {error}"));
                            false
                        }
                    });
                    assert!(waits.len() < before, "somebody goes on");
                }
                drop(waits);
                let rows = world.run(holder.all());
                assert_eq!(rows.len(), 1);
                assert_eq!(rows[0].k, 2 + SESSIONS);
                assert_eq!(world.system.status().deadlocks, 0);
                world.check();
            }
        }
    }
}

/// The entry of a row that was replaced before is still there, delete-marked. Who puts that row in again and
/// waits for its turn must not be waited for at that entry by the one whose turn it is.
#[test]
fn who_waits_for_its_turn_is_waited_for_by_nobody() {
    for replaces in [false, true] {
        for level in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
            let world = World::new(12);
            let (mut holder, mut first, mut second) =
                (world.session(), world.session_at(level), world.session_at(level));
            world.run(replace(&mut holder, By::UniqueKey, 5)).unwrap();
            world.run(replace(&mut holder, By::UniqueKey, 3)).unwrap();
            holder.begin();
            world.run(holder.update(3, 1)).unwrap();
            let begun = |session, own_id| -> Work<'_> {
                let mut work: Work<'_> = match replaces {
                    true => Box::pin(replace(session, By::UniqueKey, own_id)),
                    false => Box::pin(upsert(session, By::UniqueKey, own_id)),
                };
                assert!(world.settle(&mut work).is_pending());
                work
            };
            // It has its turn, and waits at the first entry of the key, before it has seen that of row 5.
            let mut first = begun(&mut first, 4);
            let mut second = begun(&mut second, 5);
            world.run(holder.commit());
            for work in [&mut first, &mut second] {
                let Poll::Ready(result) = world.settle(work) else { panic!("it goes on") };
                result.unwrap_or_else(|error| panic!("replaces: {replaces}, {level:?}: {error}"));
            }
            drop((first, second));
            assert_eq!(world.run(holder.all()).iter().map(|row| row.k).collect::<Vec<_>>(), [3]);
            assert_eq!(world.system.status().deadlocks, 0);
            world.check();
        }
    }
}

#[test]
fn threads_upsert_one_row_without_a_deadlock() {
    const THREADS: i32 = 16;
    const ROUNDS: i32 = 40;
    let directory = std::env::temp_dir().join(format!("untorn-txn-upserts-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    let env: Arc<dyn Environment> = Arc::new(RealEnvironment::new(RealOptions::default()).unwrap());
    let engine = Engine::create(env, &directory, 4 << 20, true);
    for by in [By::PrimaryKey, By::UniqueKey] {
        for replaces in [false, true] {
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let mut session = engine.session();
                    let system = &engine.system;
                    scope.spawn(move || {
                        for round in 0..ROUNDS {
                            // Some ids come once, others again and again: those entries are delete-marked
                            // when they come.
                            let own_id = if thread % 2 == 0 { thread } else { thread + THREADS * round };
                            let result = match replaces {
                                true => block_on(replace(&mut session, by, own_id)),
                                false => block_on(upsert(&mut session, by, own_id)),
                            };
                            result.unwrap_or_else(|error| {
                                let deadlock = system.latest_deadlock();
                                panic!("{by:?}, replaces: {replaces}: {error}\n{deadlock:?}")
                            });
                        }
                    });
                }
            });
            let mut session = engine.session();
            let rows = block_on(session.all());
            assert_eq!(rows.len(), 1, "{rows:?}");
            assert_eq!(rows[0].k, THREADS * ROUNDS, "{by:?}, replaces: {replaces}");
            block_on(session.delete(rows[0].id)).unwrap();
            block_on(session.commit());
        }
    }
    assert_eq!(engine.system.status().deadlocks, 0);
    block_on(engine.system.purge_all()).unwrap();
    assert_eq!(engine.system.status().locks, 0);
    block_on(engine.system.shutdown()).unwrap();
    block_on(engine.store.shutdown()).unwrap();
    let _ = std::fs::remove_dir_all(&directory);
}

/// The holder of an entry may replace it itself while others wait for it.
#[test]
fn waiting_for_ones_turn_does_not_keep_the_holder_of_the_row_from_it() {
    let world = World::new(10);
    let (mut a, mut b, mut c) = (world.session(), world.session(), world.session());
    a.begin();
    world.run(a.insert_all(5, 1, Some(1), None)).unwrap();
    let mut second: Pin<Box<dyn Future<Output = _>>> = Box::pin(replace(&mut b, By::UniqueKey, 4));
    assert!(world.settle(&mut second).is_pending());
    let mut third: Pin<Box<dyn Future<Output = _>>> = Box::pin(upsert(&mut c, By::UniqueKey, 9));
    assert!(world.settle(&mut third).is_pending());
    assert!(!world.run(insert_changing(&mut a, 3, 2, Some(1))).unwrap());
    let row = world.run(conflict(&mut a, By::UniqueKey)).unwrap().unwrap();
    world.run(a.delete(row.id)).unwrap();
    assert!(world.run(insert_changing(&mut a, 3, 2, Some(1))).unwrap());
    world.run(a.commit());
    for wait in [&mut second, &mut third] {
        let Poll::Ready(result) = world.settle(wait) else { panic!("it goes on") };
        result.unwrap();
    }
    drop((second, third));
    assert_eq!(world.run(a.all()).iter().map(|row| row.k).collect::<Vec<_>>(), [4]);
    assert_eq!(world.system.status().deadlocks, 0);
    world.check();
}

/// The holder of an entry may put the same key in again while another waits for the entry.
#[test]
fn waiting_for_an_entry_does_not_keep_its_holder_from_its_key() {
    for holder_replaces in [false, true] {
        let world = World::new(9);
        let (mut a, mut b) = (world.session(), world.session());
        a.begin();
        world.run(a.insert_all(5, 1, Some(1), None)).unwrap();
        b.begin();
        let wait: Pin<Box<dyn Future<Output = _>>> = Box::pin(b.insert_all(6, 1, Some(1), None));
        let mut wait = wait;
        assert!(world.settle(&mut wait).is_pending());
        if holder_replaces {
            world.run(a.delete(5)).unwrap();
            world.run(a.insert_all(4, 2, Some(1), None)).unwrap();
        } else {
            let again = world.run(a.insert_all(7, 2, Some(1), None));
            assert!(matches!(again, Err(Error::DuplicateKey { .. })), "{again:?}");
        }
        world.run(a.commit());
        let Poll::Ready(result) = world.settle(&mut wait) else { panic!("it goes on") };
        assert!(matches!(result, Err(Error::DuplicateKey { .. })), "{result:?}");
        drop(wait);
        world.run(b.rollback());
        assert_eq!(world.system.status().deadlocks, 0);
        world.check();
    }
}

/// A deleted entry stands before the live one of the same key, which a locking read by that key must find at
/// every level.
#[test]
fn a_unique_key_is_found_behind_its_deleted_entry() {
    for level in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        let world = World::new(11);
        let (mut a, mut reader) = (world.session_at(level), world.session());
        a.begin();
        world.run(a.insert_all(1, 1, Some(1), None)).unwrap();
        world.run(a.commit());
        // A view that keeps purge from taking the entry.
        reader.begin();
        world.run(reader.read(1));
        world.run(a.delete(1)).unwrap();
        world.run(a.insert_all(2, 2, Some(1), None)).unwrap();
        world.run(a.commit());
        let row = world.run(conflict(&mut a, By::UniqueKey)).unwrap();
        assert_eq!(row.map(|row| row.id), Some(2), "{level:?}");
        world.run(a.commit());
        world.run(reader.commit());
    }
}
