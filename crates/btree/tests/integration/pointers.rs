//! Descents that latch the leaf only: that there are any, and that they find what is there while everything
//! about them changes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pagestore::fsp;
use untorn_btree::{Comparison, FieldDef, FieldRef, IndexDef, RecordBuffer, RecordRef, Tree};

use crate::concurrency::{search, tree_of_even_keys, write};
use crate::support::{Fixture, SPACE};

const PAGE: usize = 4096;

/// A record of these says which tree it is of.
fn def(id: u64) -> IndexDef {
    let fields = vec![
        FieldDef::fixed("id", 4),
        FieldDef::fixed("DB_TRX_ID", 6),
        FieldDef::fixed("DB_ROLL_PTR", 7),
        FieldDef::variable("v", 200, Comparison::Binary),
    ];
    IndexDef::new(id, "PRIMARY", true, true, fields, 1, 1)
}

fn fill(fixture: &Fixture, tree: &Tree, keys: impl Iterator<Item = u32>) {
    let mut record = RecordBuffer::new();
    let value = [tree.def().id.to_be_bytes(); 12].concat();
    for n in keys {
        let key = n.to_be_bytes();
        record.encode(tree.def(), &[&key[..], &[0; 6], &[0; 7], &value].map(FieldRef::Inline)).unwrap();
        fixture.put(tree, &[Some(&key)], &mut record, 1);
    }
}

/// Whether the tree has the key, whose record must be this tree's.
fn has(fixture: &Fixture, tree: &Tree, n: u32) -> bool {
    let is_whole = |record: RecordRef<'_>| {
        let value = record.field(3).inline().unwrap();
        assert_eq!(record.field(0).inline().unwrap(), n.to_be_bytes());
        assert_eq!(value, [tree.def().id.to_be_bytes(); 12].concat(), "a record of another tree");
    };
    fixture.get(tree, &[Some(&n.to_be_bytes())], is_whole).is_some()
}

/// Point reads of a tree that is in memory and does not change latch nothing but the leaf, unless they seek
/// the very key of a node pointer; each counts as many pages as it went through.
#[test]
fn point_reads_of_a_warm_tree_go_by_pointers() {
    const KEYS: u32 = 40_000;
    let fixture = Fixture::new(PAGE, PAGE * 4000);
    let tree = fixture.tree(def(7));
    fill(&fixture, &tree, (0..KEYS).map(|n| n * 2));
    let levels = u64::from(fixture.check_clean(&tree).levels);
    assert_eq!(levels, 3);
    (0..2 * KEYS).for_each(|n| assert_eq!(has(&fixture, &tree, n), n % 2 == 0, "key {n}"));
    let before = fixture.store.status();
    (0..2 * KEYS).for_each(|n| assert_eq!(has(&fixture, &tree, n), n % 2 == 0, "key {n}"));
    let after = fixture.store.status();
    let (by_pointers, all) = (after.descents_by_pointers - before.descents_by_pointers, u64::from(2 * KEYS));
    assert!(by_pointers >= all * 24 / 25 && by_pointers <= all, "{by_pointers} of {all}");
    assert_eq!(after.read_requests - before.read_requests, all * levels);
}

/// Where the tree has just changed nobody goes by what was before: each change is seen by the very next read.
/// The tree grows by a level, shrinks to its root and is emptied.
#[test]
fn the_next_read_sees_each_change_of_the_structure() {
    let fixture = Fixture::new(PAGE, PAGE * 2000);
    let tree = fixture.tree(def(7));
    let mut heights = Vec::new();
    let descents = || fixture.store.status().descents_by_pointers;
    for round in 0..2 {
        for n in 0..12_000 {
            // Often enough that all on the way has heads before it changes.
            (0..3).for_each(|_| assert!(!has(&fixture, &tree, n)));
            fill(&fixture, &tree, n..=n);
            assert!(has(&fixture, &tree, n) && has(&fixture, &tree, n / 2) && !has(&fixture, &tree, n + 1));
        }
        heights.push(tree.height());
        let before = descents();
        for n in 0..12_000_u32 {
            let n = if round == 0 { n } else { n ^ 0xFF & (12_000 - 1) };
            if has(&fixture, &tree, n) {
                assert!(fixture.remove(&tree, &[Some(&n.to_be_bytes())]));
            }
            (0..4).for_each(|_| assert!(!has(&fixture, &tree, n)));
        }
        assert!(descents() > before, "nobody went by pointers");
        (0..12_000_u32).for_each(|n| _ = fixture.remove(&tree, &[Some(&n.to_be_bytes())]));
        heights.push(tree.height());
    }
    assert_eq!(heights, [3, 1, 3, 1]);
    fixture.check_clean(&tree);
}

/// A tree is made, read by two threads, and destroyed, again and again; its pages go to others and come back.
fn comes_and_goes(fixture: &Fixture, space: u32, id: u64) {
    let definition = Arc::new(def(id));
    let tree = fixture.change(|mtr| Tree::create(mtr, &fixture.store, space, Arc::clone(&definition)));
    fill(fixture, &tree, (0..1500).map(|n| n * 2));
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let tree = &tree;
            scope.spawn(move || {
                for n in (0..3000).chain(0..3000) {
                    let n = (n * 7 + reader * 1500) % 3000;
                    assert_eq!(has(fixture, tree, n), n % 2 == 0, "key {n} of tree {id}");
                }
            });
        }
        // Its leaves go one after the other, of which no reader knows anything.
        let tree = &tree;
        scope.spawn(move || fill(fixture, tree, (3000..5000).map(|n| n * 2)));
    });
    while !fixture.run(|| tree.destroy_step()).unwrap() {}
}

/// Readers of one tree, whose pages split and merge under them, in a pool that is too small for it, changes
/// its size and lets the pages of other trees into the same frames: of one that comes and goes in the same
/// tablespace, and of one in a tablespace that is dropped and made again.
#[test]
fn readers_by_pointers_find_what_is_there_whatever_happens_to_the_pages() {
    const FRAMES: usize = 150;
    let seed =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
    println!("seed {seed}");
    let fixture = Fixture::new(PAGE, PAGE * FRAMES);
    let tree = tree_of_even_keys(&fixture);
    let (done, rounds, resizes) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let is_over = || done.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        let (fixture, tree, is_over) = (&fixture, &tree, &is_over);
        let readers = [1, 2].map(|who| {
            scope.spawn({
                let done = &done;
                move || search(fixture, tree, done, seed + who)
            })
        });
        let (rounds, resizes) = (&rounds, &resizes);
        let others = [
            scope.spawn(move || {
                for id in (100..).take_while(|_| !is_over()) {
                    comes_and_goes(fixture, SPACE, id);
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            }),
            scope.spawn(move || {
                for space in (SPACE + 1..).take_while(|_| !is_over()) {
                    let file = fixture.directory().join(format!("{space}.ibd"));
                    fixture.store.create_space(space, &file, 7).unwrap();
                    fixture.change(|mtr| fsp::create_space_pages(mtr, space, 7));
                    comes_and_goes(fixture, space, u64::from(space) << 32);
                    disk::block_on(fixture.store.drop_space(space)).unwrap();
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            }),
            scope.spawn(move || {
                for size in [FRAMES * 2, FRAMES].into_iter().cycle().take_while(|_| !is_over()) {
                    let over = fixture.store.resize(PAGE * size).unwrap();
                    disk::block_on(over.wait());
                    resizes.fetch_add(1, Ordering::Relaxed);
                }
            }),
        ];
        let writers = [0, 1, 2].map(|who| scope.spawn(move || drop(write(fixture, tree, who, seed, 1000))));
        let writers = writers.map(|writer| writer.join());
        done.store(true, Ordering::Relaxed);
        writers.into_iter().chain(others.map(|other| other.join())).for_each(|ended| ended.unwrap());
        readers.into_iter().for_each(|reader| assert!(reader.join().unwrap() > 0));
    });
    disk::block_on(fixture.store.resize(PAGE * FRAMES).unwrap().wait());
    fixture.check_clean(&tree);
    let status = fixture.store.status();
    println!(
        "{} descents by pointers, {} pages evicted, {} relocated; {rounds:?} trees, {resizes:?} resizes",
        status.descents_by_pointers, status.pages_evicted, status.pages_relocated
    );
    assert!(status.descents_by_pointers > 1000 && status.pages_evicted > 1000, "{status:?}");
    assert!(rounds.into_inner() > 0 && resizes.into_inner() > 0);
}
