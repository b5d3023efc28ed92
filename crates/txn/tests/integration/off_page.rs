//! Values stored off-page: no page of theirs is lost, whatever comes between the value and its row.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common::*;
use btree::{FieldRef, Reference};
use pagestore::{PageSize, fsp};
use std::collections::BTreeSet;
use untorn_txn::*;

/// Pages of 4 KiB, so that a value has many, and a pool too small to hold them all.
fn small_world(seed: u64) -> World {
    World::with(seed, 1 << 20, PageSize::new(4096).unwrap(), false)
}

fn value(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at * 13) as u8 ^ seed).collect()
}

/// What a check says of the clustered index.
fn check_tree(world: &World) -> btree::CheckReport {
    let mut checker = btree::Checker::new(&world.table.clustered);
    while !world.run(again(|| checker.step())) {}
    checker.into_report()
}

/// Where the off-page value of a row is, whether the row is deleted or not.
fn chain_of(world: &World, id: i32) -> Reference {
    let reference = |record: btree::RecordRef<'_>| {
        record.fields().find_map(|field| match field {
            FieldRef::External { reference, .. } => Some(Reference::read(reference)),
            _ => None,
        })
    };
    let key = int(id);
    world.run(again(|| world.table.clustered.get(&[Some(&key)], reference))).flatten().unwrap()
}

/// Pages of the clustered leaf segment that the tree does not reach.
fn lost_pages(world: &World) -> Vec<u32> {
    let tree = &world.table.clustered;
    let report = check_tree(world);
    assert!(report.problems.is_empty(), "{report:?}");
    let reached: BTreeSet<u32> = report.leaf_segment_pages.into_iter().collect();
    let space = world.run(again(|| fsp::check(&world.store, SPACE)));
    assert!(space.is_clean(), "{:?}", space.problems);
    let segment = space.segment(tree.segments().0).unwrap();
    space.pages_of(segment).filter(|page| !reached.contains(page)).collect()
}

/// Crashes at every moment of an insertion and of an update that write a value of some 60 pages.
#[test]
fn a_crash_between_a_value_and_its_row_loses_no_page() {
    for update in [false, true] {
        let mut cut_short = BTreeSet::new();
        for polls in 1.. {
            let world = small_world(400);
            world.fill(&[(1, 10), (2, 20)]);
            let (mut lost, mut other) = (world.session(), world.session());
            let long = value(240_000, 7);
            let done = world.run(async {
                lost.begin();
                let change = async {
                    if update {
                        lost.set_v(1, Some(&long)).await.unwrap();
                    } else {
                        lost.insert_all(3, 30, None, Some(&long)).await.unwrap();
                    }
                };
                let done = for_polls(change, polls).await.is_some();
                // Its sync takes what there is of the value to the disk as well.
                other.begin();
                other.update(2, 21).await.unwrap();
                other.commit().await;
                done
            });
            cut_short.insert(lost_pages(&world).len());
            drop(other);
            std::mem::forget(lost);
            let world = world.crash(polls as u64);
            assert!(world.report.rolled_back <= 1, "{polls} polls");
            assert_eq!(lost_pages(&world), [], "update {update}, {polls} polls");
            world.check();
            let mut session = world.session();
            assert_eq!(world.run(session.pairs()), [(1, 10), (2, 21)]);
            if done {
                break;
            }
        }
        // Otherwise nothing was tested: values were there in several stages of completion.
        assert!(cut_short.len() > 3, "update {update}: {cut_short:?}");
    }
}

#[test]
fn rolled_back_and_failed_changes_give_their_pages_back() {
    let world = small_world(401);
    world.fill(&[(1, 10), (2, 20)]);
    let (mut session, long) = (world.session(), value(100_000, 1));
    world.run(async {
        session.begin();
        session.set_v(1, Some(&long)).await.unwrap();
        session.set_v(1, Some(&value(90_000, 2))).await.unwrap();
        assert_eq!(session.read_v(1).await.unwrap(), value(90_000, 2));
        session.insert_all(3, 30, None, Some(&long)).await.unwrap();
        session.rollback().await;
    });
    assert_eq!(lost_pages(&world), []);
    world.run(async {
        session.begin();
        session.set_v(2, Some(&long)).await.unwrap();
        let error = session.insert_all(1, 99, None, Some(&long)).await.unwrap_err();
        assert!(matches!(error, Error::DuplicateKey { .. }), "{error:?}");
        session.commit().await;
        // Replaced, so that purge has to do it.
        session.begin();
        session.set_v(2, Some(&value(50_000, 3))).await.unwrap();
        session.commit().await;
        world.system.purge_all().await.unwrap();
        world.system.purge_all().await.unwrap();
        assert_eq!(session.read_v(2).await.unwrap(), value(50_000, 3));
        assert_eq!(session.read_v(1).await, None);
    });
    assert_eq!(lost_pages(&world), []);
    world.check();
    let world = world.crash(9);
    assert_eq!(world.report.rolled_back, 0);
    // What purge did was not durable yet; it does it again.
    world.run(world.system.purge_all()).unwrap();
    assert_eq!(lost_pages(&world), []);
    let mut session = world.session();
    assert_eq!(world.run(session.read_v(2)).unwrap(), value(50_000, 3));
}

/// Freeing a long value takes several mini-transactions before its row goes; a crash between them leaves a
/// row whose value is cut.
#[test]
fn a_value_that_is_being_freed_is_no_damage_and_a_cut_one_of_a_live_row_is() {
    let world = small_world(402);
    let long = value(100_000, 5);
    let mut session = world.session();
    world.run(async {
        session.begin();
        for id in 1..=3 {
            session.insert_all(id, 10 * id, None, Some(&long)).await.unwrap();
        }
        session.commit().await;
        session.begin();
        session.delete(1).await.unwrap();
        session.delete(2).await.unwrap();
        session.commit().await;
    });
    let free_some = |world: &World, id: i32| {
        let chain = chain_of(world, id);
        world.run(again(|| world.table.clustered.free_chain_step(chain)))
    };
    assert!(!free_some(&world, 1), "one step is not all of it");
    assert_eq!(check_tree(&world).problems, [""; 0], "a part of the value is gone");
    while !free_some(&world, 2) {}
    assert_eq!(check_tree(&world).problems, [""; 0], "all but the value's first page is gone");
    assert_eq!(lost_pages(&world), []);

    let world = world.crash(11);
    world.run(world.system.purge_all()).unwrap();
    assert_eq!(lost_pages(&world), []);
    assert_eq!(world.deleted_records(), 0);

    assert!(!free_some(&world, 3));
    let problems = check_tree(&world).problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("not as long as its reference says"), "{problems:?}");
}
