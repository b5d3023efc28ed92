//! Readers and writers at once, on a small pool and small pages: no lost record, no order violated, no
//! dead-lock.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::Fixture;
use untorn_btree::{
    Comparison, FieldDef, FieldRef, IndexDef, RecordBuffer, RecordRef, SavedPosition, Seek, Tree,
};

const WRITERS: u32 = 3;
const KEYS: u32 = 2000;
const OPERATIONS: u32 = 4000;

fn def() -> IndexDef {
    let fields = vec![
        FieldDef::fixed("id", 4),
        FieldDef::fixed("DB_TRX_ID", 6),
        FieldDef::fixed("DB_ROLL_PTR", 7),
        FieldDef::variable("v", 2000, Comparison::Binary),
    ];
    IndexDef::new(7, "PRIMARY", true, true, fields, 1, 1)
}

/// A small generator, so that a failure can be repeated from the seed printed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as u32 % n
    }
}

fn id(record: RecordRef<'_>) -> u32 {
    u32::from_be_bytes(record.field(0).inline().unwrap().try_into().unwrap())
}

/// Writer `who` owns the keys that are `who` modulo the number of writers, so it knows what must be there.
pub fn write(fixture: &Fixture, tree: &Tree, who: u32, seed: u64, operations: u32) -> BTreeSet<u32> {
    let mut random = Random(seed + u64::from(who) + 1);
    let mut mine = BTreeSet::new();
    let mut record = RecordBuffer::new();
    // Even ids never change: readers rely on them. They are the odd ones' neighbours on every page.
    for _ in 0..operations {
        let n = (random.below(KEYS) * WRITERS + who) * 2 + 1;
        let key = n.to_be_bytes();
        if random.below(3) > 0 {
            let value = vec![b'v'; random.below(600) as usize];
            let fields = [&key[..], &[0; 6], &[0; 7], &value].map(FieldRef::Inline);
            record.encode(tree.def(), &fields).unwrap();
            fixture.put(tree, &[Some(&key)], &mut record, 1);
            mine.insert(n);
        } else {
            assert_eq!(fixture.remove(tree, &[Some(&key)]), mine.remove(&n), "key {n}");
        }
    }
    mine
}

/// Scans up and down, with saved positions now and then; every even id must be seen once and in order.
fn read(fixture: &Fixture, tree: &Tree, done: &AtomicBool, scans: &AtomicU64, forward: bool, seed: u64) {
    let mut random = Random(seed + 99);
    let mut saved = SavedPosition::new();
    let wanted: Vec<u32> = (0..KEYS).map(|n| n * 6).collect();
    while !done.load(Ordering::Relaxed) || scans.load(Ordering::Relaxed) == 0 {
        let mut cursor = fixture.seek(tree, &[], if forward { Seek::First } else { Seek::Last });
        let mut last: Option<u32> = None;
        let mut seen = Vec::new();
        let mut more = cursor.is_valid();
        while more {
            let id = id(cursor.record());
            assert!(
                last.is_none_or(|last| if forward { last < id } else { last > id }),
                "{last:?} then {id}"
            );
            last = Some(id);
            if id.is_multiple_of(6) {
                seen.push(id);
            }
            if random.below(50) == 0 {
                cursor.save(&mut saved);
                drop(cursor);
                std::thread::yield_now();
                cursor = fixture.run(|| tree.restore(&saved)).unwrap().0;
            }
            more = fixture.run(|| if forward { cursor.next() } else { cursor.prev() }).unwrap();
        }
        drop(cursor);
        if !forward {
            seen.reverse();
        }
        assert!(seen == wanted, "a scan missed records that were there all the time");
        scans.fetch_add(1, Ordering::Relaxed);
        let n = random.below(KEYS) * 6;
        assert!(fixture.get(tree, &[Some(&n.to_be_bytes())], |record| id(record) == n).unwrap());
    }
}

/// Searches for keys that are there, for keys that are not, and for the first keys of ranges, each often
/// enough that its pages get heads.
pub fn search(fixture: &Fixture, tree: &Tree, done: &AtomicBool, seed: u64) -> u64 {
    let (mut random, mut searches) = (Random(seed + 7), 0);
    while !done.load(Ordering::Relaxed) || searches == 0 {
        let first = random.below(KEYS - 20);
        for n in (first..first + 10).chain(first..first + 10) {
            let key = n * 6;
            let found = fixture.get(tree, &[Some(&key.to_be_bytes())], id);
            assert_eq!(found, Some(key), "a key that is there all the time");
            // The next even ones are never there.
            let found = fixture.get(tree, &[Some(&(key + 2).to_be_bytes())], id);
            assert_eq!(found, None, "a key that never was");
            let (from, how) = if n % 2 == 0 { (key + 2, Seek::AtLeast) } else { (key, Seek::After) };
            let mut cursor = fixture.seek(tree, &[Some(&from.to_be_bytes())], how);
            cursor.prefetch_rows(8);
            let mut last = key;
            while last < key + 6 {
                let next = id(cursor.record());
                assert!(next > last && next <= key + 6, "{next} behind {last}");
                last = next;
                fixture.run(|| cursor.next()).unwrap();
            }
            searches += 1;
        }
    }
    searches
}

/// Pages split, merge, are freed, made again and evicted under those who search them.
#[test]
fn searches_and_writers_at_once() {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
    println!("seed {seed}");
    let fixture = Fixture::new(4096, 4096 * 200);
    let tree = tree_of_even_keys(&fixture);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (fixture, tree, done) = (&fixture, &tree, &done);
        let readers = [1, 2].map(|who| scope.spawn(move || search(fixture, tree, done, seed + who)));
        let writers: Vec<_> = (0..WRITERS)
            .map(|who| scope.spawn(move || write(fixture, tree, who, seed, OPERATIONS)))
            .collect();
        writers.into_iter().for_each(|writer| drop(writer.join().unwrap()));
        done.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| assert!(reader.join().unwrap() > 0));
    });
    fixture.check_clean(&tree);
    let status = fixture.store.status();
    assert!(status.pages_evicted > 0 && status.heads_made > 100, "{status:?}");
}

/// A page that is searched again and again is found to have what was changed in between.
#[test]
fn a_search_finds_what_changed_since_the_last_ones() {
    let fixture = Fixture::new(4096, 4096 * 1200);
    let tree = tree_of_even_keys(&fixture);
    let mut record = RecordBuffer::new();
    let is_there = |n: u32| fixture.get(&tree, &[Some(&n.to_be_bytes())], id) == Some(n);
    let heads_made = || fixture.store.status().heads_made;
    for n in (1..600_u32).step_by(2) {
        let key = n.to_be_bytes();
        (0..8).for_each(|_| assert!(!is_there(n)));
        record.encode(tree.def(), &[&key[..], &[0; 6], &[0; 7], &[b'n'; 300]].map(FieldRef::Inline)).unwrap();
        fixture.put(&tree, &[Some(&key)], &mut record, 1);
        let before = heads_made();
        (0..8).for_each(|_| assert!(is_there(n) && is_there(n / 6 * 6), "{n} was inserted"));
        assert!(heads_made() > before, "the page of {n} has no heads");
        if n % 3 == 0 {
            assert!(fixture.remove(&tree, &[Some(&key)]));
            let before = heads_made();
            (0..8).for_each(|_| assert!(!is_there(n) && is_there(n / 6 * 6), "{n} was removed"));
            assert!(heads_made() > before, "the page of {n} has no heads");
        }
    }
    fixture.check_clean(&tree);
}

/// The keys that readers rely on.
pub fn tree_of_even_keys(fixture: &Fixture) -> Tree {
    let tree = fixture.tree(def());
    let mut record = RecordBuffer::new();
    for n in 0..KEYS {
        let key = (n * 6).to_be_bytes();
        record.encode(tree.def(), &[&key[..], &[0; 6], &[0; 7], &[b'e'; 40]].map(FieldRef::Inline)).unwrap();
        fixture.put(&tree, &[Some(&key)], &mut record, 1);
    }
    tree
}

#[test]
fn readers_and_writers_at_once() {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
    println!("seed {seed}");
    let fixture = Fixture::new(4096, 4096 * 1200);
    let tree = tree_of_even_keys(&fixture);
    let done = AtomicBool::new(false);
    let scans = [AtomicU64::new(0), AtomicU64::new(0)];
    let mine: usize = std::thread::scope(|scope| {
        let readers = [true, false].map(|forward| {
            let (fixture, tree, done, scans) = (&fixture, &tree, &done, &scans[usize::from(forward)]);
            scope.spawn(move || read(fixture, tree, done, scans, forward, seed))
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|who| {
                let (fixture, tree) = (&fixture, &tree);
                scope.spawn(move || write(fixture, tree, who, seed, OPERATIONS))
            })
            .collect();
        let mine = writers.into_iter().map(|writer| writer.join().unwrap().len()).sum();
        done.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        mine
    });
    let report = fixture.check_clean(&tree);
    assert_eq!(report.records, u64::from(KEYS) + mine as u64);
    assert!(report.levels >= 3);
}
