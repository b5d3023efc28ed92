//! Trees against sorted maps, on small pages so that splits and merges happen all the time.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::Ordering;

use crate::support::Fixture;
use proptest::prelude::*;
use untorn_btree::{
    Comparison, FieldDef, FieldRef, IndexDef, LastChange, Outcome, RecordBuffer, SavedPosition, Seek, Tree,
};

/// `short` keys are integers (fast path), others are strings of very different lengths (node pointers of all
/// sizes).
fn clustered(short: bool) -> IndexDef {
    let key =
        if short { FieldDef::fixed("id", 4) } else { FieldDef::variable("id", 600, Comparison::Binary) };
    let fields = vec![
        key,
        FieldDef::fixed("DB_TRX_ID", 6),
        FieldDef::fixed("DB_ROLL_PTR", 7),
        FieldDef::variable("v", 2000, Comparison::Binary).nullable(),
    ];
    IndexDef::new(7, "PRIMARY", true, true, fields, 1, 1)
}

fn key_of(short: bool, n: u32) -> Vec<u8> {
    if short {
        return n.to_be_bytes().to_vec();
    }
    let mut key = format!("{n:06}").into_bytes();
    key.resize(6 + (n as usize * 7919) % 500, b'k');
    key
}

fn encode(tree: &Tree, key: &[u8], value: Option<usize>, record: &mut RecordBuffer) {
    let value = value.map(|len| vec![b'v'; len]);
    let fields = [
        FieldRef::Inline(key),
        FieldRef::Inline(&[0; 6]),
        FieldRef::Inline(&[0; 7]),
        value.as_deref().into(),
    ];
    record.encode(tree.def(), &fields).unwrap();
    record.set_system_fields(tree.def(), 77, 0x0080_0000_0000_0001);
}

type Model = BTreeMap<Vec<u8>, Option<usize>>;

fn contents(fixture: &Fixture, tree: &Tree, backward: bool) -> Vec<(Vec<u8>, Option<usize>)> {
    let mut cursor = fixture.seek(tree, &[], if backward { Seek::Last } else { Seek::First });
    let mut rows = Vec::new();
    let mut on_record = cursor.is_valid();
    while on_record {
        let record = cursor.record();
        let value = record.field(3).inline().map(<[u8]>::len);
        assert_eq!(record.trx_id(), 77);
        rows.push((record.field(0).inline().unwrap().to_vec(), value));
        on_record = fixture.run(|| if backward { cursor.prev() } else { cursor.next() }).unwrap();
    }
    if backward {
        rows.reverse();
    }
    rows
}

fn compare(fixture: &Fixture, tree: &Tree, model: &Model) {
    let report = fixture.check_clean(tree);
    assert_eq!(report.records, model.len() as u64);
    let wanted: Vec<_> = model.iter().map(|(key, value)| (key.clone(), *value)).collect();
    assert_eq!(contents(fixture, tree, false), wanted);
    assert_eq!(contents(fixture, tree, true), wanted);
}

fn compare_seeks(fixture: &Fixture, tree: &Tree, model: &Model, key: &[u8]) {
    let fields = [Some(key)];
    let wanted = [
        (Seek::AtLeast, model.range::<[u8], _>((Bound::Included(key), Bound::Unbounded)).next()),
        (Seek::After, model.range::<[u8], _>((Bound::Excluded(key), Bound::Unbounded)).next()),
        (Seek::AtMost, model.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()),
        (Seek::Before, model.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(key))).next_back()),
    ];
    for (how, wanted) in wanted {
        let cursor = fixture.seek(tree, &fields, how);
        let found = cursor.is_valid().then(|| cursor.record().field(0).inline().unwrap().to_vec());
        assert_eq!(found.as_ref(), wanted.map(|(key, _)| key), "{how:?}");
    }
    let got = fixture.get(tree, &fields, |record| record.field(3).inline().map(<[u8]>::len));
    assert_eq!(got.as_ref(), model.get(key));
}

#[derive(Debug, Clone)]
enum Op {
    Put(u32, Option<usize>),
    Remove(u32),
    Ascending(u32, u8, usize),
    Descending(u32, u8, usize),
    RemoveRange(u32, u32),
    Seek(u32),
}

fn op() -> impl Strategy<Value = Op> {
    let key = 0u32..3000;
    let value = prop_oneof![Just(None), (0usize..60).prop_map(Some), (0usize..1400).prop_map(Some)];
    prop_oneof![
        6 => (key.clone(), value).prop_map(|(key, value)| Op::Put(key, value)),
        4 => key.clone().prop_map(Op::Remove),
        2 => (key.clone(), 1u8..60, 0usize..300).prop_map(|(key, n, len)| Op::Ascending(key, n, len)),
        1 => (key.clone(), 1u8..60, 0usize..300).prop_map(|(key, n, len)| Op::Descending(key, n, len)),
        1 => (key.clone(), 1u32..400).prop_map(|(key, n)| Op::RemoveRange(key, n)),
        3 => key.prop_map(Op::Seek),
    ]
}

fn run_ops(ops: &[Op], short: bool, pool_pages: usize) {
    let fixture = Fixture::new(4096, pool_pages * 4096);
    let tree = fixture.tree(clustered(short));
    let mut model = Model::new();
    let mut record = RecordBuffer::new();
    let mut put = |model: &mut Model, n: u32, value: Option<usize>| {
        let key = key_of(short, n);
        encode(&tree, &key, value, &mut record);
        fixture.put(&tree, &[Some(&key)], &mut record, 77);
        model.insert(key, value);
    };
    let remove = |model: &mut Model, n: u32| {
        let key = key_of(short, n);
        assert_eq!(fixture.remove(&tree, &[Some(&key)]), model.remove(&key).is_some());
    };
    for (step, op) in ops.iter().enumerate() {
        match *op {
            Op::Put(n, value) => put(&mut model, n, value),
            Op::Remove(n) => remove(&mut model, n),
            Op::Ascending(n, count, len) => {
                (0..u32::from(count)).for_each(|i| put(&mut model, n + i, Some(len)))
            }
            Op::Descending(n, count, len) => {
                (0..u32::from(count)).for_each(|i| put(&mut model, n.saturating_sub(i), Some(len)))
            }
            Op::RemoveRange(n, count) => (n..n + count).for_each(|n| remove(&mut model, n)),
            Op::Seek(n) => compare_seeks(&fixture, &tree, &model, &key_of(short, n)),
        }
        if step % 64 == 63 {
            compare(&fixture, &tree, &model);
        }
    }
    compare(&fixture, &tree, &model);
    let keys: Vec<Vec<u8>> = model.keys().cloned().collect();
    for key in keys.iter().rev() {
        assert!(fixture.remove(&tree, &[Some(key)]));
    }
    model.clear();
    compare(&fixture, &tree, &model);
    assert_eq!(fixture.check(&tree).levels, 1, "an empty tree is one page");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]
    #[test]
    fn a_tree_behaves_like_a_sorted_map(
        ops in proptest::collection::vec(op(), 50..300),
        short: bool,
        pool_pages in prop_oneof![Just(200usize), Just(4000)],
    ) {
        run_ops(&ops, short, pool_pages);
    }
}

#[test]
fn saved_positions_survive_changes() {
    let fixture = Fixture::new(4096, 8 << 20);
    let tree = fixture.tree(clustered(true));
    let mut record = RecordBuffer::new();
    let mut put = |n: u32| {
        let key = key_of(true, n);
        encode(&tree, &key, Some(100), &mut record);
        fixture.put(&tree, &[Some(&key)], &mut record, 77);
    };
    (0..500).for_each(|n| put(n * 10));
    let mut saved = SavedPosition::new();
    fixture.seek(&tree, &[Some(&key_of(true, 2000))], Seek::AtLeast).save(&mut saved);
    let id = |record: untorn_btree::RecordRef<'_>| {
        u32::from_be_bytes(record.field(0).inline().unwrap().try_into().unwrap())
    };

    let (cursor, same) = fixture.run(|| tree.restore(&saved)).unwrap();
    assert!(same && id(cursor.record()) == 2000);
    drop(cursor);
    (1990..2010).for_each(&mut put);
    let (mut cursor, same) = fixture.run(|| tree.restore(&saved)).unwrap();
    assert!(same && id(cursor.record()) == 2000);
    assert!(cursor.next().unwrap() && id(cursor.record()) == 2001);
    drop(cursor);
    fixture.remove(&tree, &[Some(&key_of(true, 2000))]);
    let (mut cursor, same) = fixture.run(|| tree.restore(&saved)).unwrap();
    assert!(!same && !cursor.is_valid());
    assert!(cursor.next().unwrap() && id(cursor.record()) == 2001);
    assert!(cursor.prev().unwrap() && id(cursor.record()) == 1999);
    drop(cursor);
    let (mut cursor, _) = fixture.run(|| tree.restore(&saved)).unwrap();
    assert!(cursor.prev().unwrap() && id(cursor.record()) == 1999);
}

/// What InnoDB does with rows in primary key order: pages 15/16 full, and little redo.
#[test]
fn ascending_inserts_fill_pages_and_log_little() {
    let fixture = Fixture::new(16384, 64 << 20);
    let tree = fixture.tree(clustered(true));
    let mut record = RecordBuffer::new();
    let (mut logged, mut bytes) = (0, 0);
    let rows = 20_000u32;
    for n in 0..rows {
        let key = key_of(true, n);
        encode(&tree, &key, Some(180), &mut record);
        logged += fixture.put(&tree, &[Some(&key)], &mut record, 77);
        bytes += record.size();
    }
    let report = fixture.check_clean(&tree);
    assert_eq!(report.records, u64::from(rows));
    let fill = bytes as f64 / (report.leaf_segment_pages.len() * 16384) as f64;
    assert!(fill > 0.90, "leaves are {:.0} % full", fill * 100.0);
    let overhead = (logged - bytes) / rows as usize;
    assert!(overhead < 60, "{overhead} bytes of redo beyond the record per insert");
}

/// A page between two full ones cannot be merged: it must not be tried at every removal. What can be merged
/// is.
#[test]
fn merges_are_tried_in_steps_and_leave_few_pages() {
    let fixture = Fixture::new(16384, 64 << 20);
    let tree = fixture.tree(clustered(true));
    let mut record = RecordBuffer::new();
    let rows = 20_000u32;
    for n in 0..rows {
        let key = key_of(true, n);
        encode(&tree, &key, Some(20), &mut record);
        fixture.put(&tree, &[Some(&key)], &mut record, 77);
    }
    let before = fixture.check_clean(&tree).leaf_segment_pages.len();
    let tries = || fixture.removals_in_structure.swap(0, Ordering::Relaxed);
    let remove = |n: u32| assert!(fixture.remove(&tree, &[Some(&key_of(true, n))]));
    // Some four pages, the inner ones down to nothing.
    (10_000..11_000).for_each(remove);
    let tried = tries();
    assert!((2..=5 * 17).contains(&tried), "{tried} structure changes in a thousand removals");
    let kept = |n: &u32| n.is_multiple_of(200);
    (0..10_000).chain(11_000..rows).filter(|n| !kept(n)).for_each(remove);
    let report = fixture.check_clean(&tree);
    let pages = report.leaf_segment_pages.len();
    assert!(pages <= 4, "{} records are left in {pages} of {before} leaves", report.records);
}

#[test]
fn a_secondary_index_keeps_equal_user_keys_and_the_newest_transaction() {
    let fixture = Fixture::new(4096, 8 << 20);
    let name = FieldDef::variable("name", 80, Comparison::Utf8mb4GeneralCi).nullable();
    let tree =
        fixture.tree(IndexDef::new(9, "name_1", false, false, vec![name, FieldDef::fixed("id", 4)], 2, 1));
    let mut record = RecordBuffer::new();
    let names: [Option<&str>; 4] = [Some("Anna"), Some("ANNA "), None, Some("berta")];
    for id in 0..800u32 {
        let name = names[id as usize % 4].map(str::as_bytes);
        let id = id.to_be_bytes();
        record.encode(tree.def(), &[name.into(), FieldRef::Inline(&id)]).unwrap();
        fixture.put(&tree, &[name, Some(&id)], &mut record, 1000 + u64::from(id[3]));
    }
    let report = fixture.check_clean(&tree);
    assert_eq!((report.records, report.levels), (800, 2));
    for (name, wanted) in [(Some(&b"anna"[..]), 400), (None, 200), (Some(b"BERTA"), 200)] {
        let mut cursor = fixture.seek(&tree, &[name], Seek::AtLeast);
        assert!(cursor.page_max_trx_id() >= 1000);
        let mut count = 0;
        let mut last = None;
        let mut more = cursor.is_valid();
        while more {
            let record = cursor.record();
            let key = [record.field(0).inline()];
            if untorn_btree::compare::compare_keys(tree.def(), &key, &[name]).is_ne() {
                break;
            }
            let id = record.field(1).inline().map(<[u8]>::to_vec);
            assert!(last < id);
            (last, count) = (id, count + 1);
            more = cursor.next().unwrap();
        }
        assert_eq!(count, wanted, "{name:?}");
        drop(cursor);
        let cursor = fixture.seek(&tree, &[name], Seek::AtMost);
        assert_eq!(cursor.record().field(1).inline().map(<[u8]>::to_vec), last);
    }
    assert!(!fixture.seek(&tree, &[Some(b"zoe")], Seek::AtLeast).is_valid());
    assert!(!fixture.seek(&tree, &[None], Seek::Before).is_valid());
}

/// Inserts a key that is not there, from where the last one was inserted if it is found from there. Returns
/// where it is if its page had room for it, and whether it was found so.
fn insert_behind(
    fixture: &Fixture,
    tree: &Tree,
    key: &[u8],
    last: Option<LastChange>,
) -> (Option<LastChange>, bool) {
    let fields = [Some(key)];
    let mut record = RecordBuffer::new();
    encode(tree, key, Some(20), &mut record);
    let inserted = fixture.run(|| {
        let behind = last.and_then(|last| {
            let mut mtr = fixture.store.mtr().ok()?;
            let found = tree.seek_behind(&mut mtr, &fields, &last)?;
            Some((mtr.page_id(found.place.page), found.place.offset, found.exact))
        });
        let mut mtr = fixture.store.mtr()?;
        let position = tree.seek_for_change(&mut mtr, &fields)?;
        let descended = (mtr.page_id(position.place.page), position.place.offset, position.exact);
        assert_eq!(behind.unwrap_or(descended), descended, "a descent finds the same place");
        if position.exact || !tree.insert_fits(&mtr, &position, record.size()) {
            return Ok((None, behind.is_some()));
        }
        let Outcome::Done(place) = tree.insert_here(&mut mtr, &position, &mut record, 0)? else { panic!() };
        Ok((Some(LastChange::at(mtr, place)), behind.is_some()))
    });
    let (place, found) = inserted.unwrap();
    if place.is_none() {
        fixture.put(tree, &fields, &mut record, 0);
    }
    (place, found)
}

/// Keys in order are found behind each other, in an empty tree and between others; not in a page that
/// somebody has changed since.
#[test]
fn a_place_shortly_behind_the_last_change_needs_no_descent() {
    for short in [true, false] {
        let fixture = Fixture::new(4096, 4 << 20);
        let tree = fixture.tree(clustered(short));
        let (mut keys, mut found) = (0, 0);
        // The second and third time between those that are there.
        for (first, step) in [(0, 50), (5, 10), (2, 50)] {
            let mut last = None;
            for n in (first..20_000).step_by(step) {
                let (place, behind) = insert_behind(&fixture, &tree, &key_of(short, n), last);
                (last, keys, found) = (place, keys + 1, found + u32::from(behind));
            }
        }
        // Long keys are a few to a page.
        let least = if short { 8 } else { 5 };
        assert!(found * 10 > keys * least, "{found} of {keys}");
        let (place, _) = insert_behind(&fixture, &tree, &key_of(short, 30_000), None);
        let mut record = RecordBuffer::new();
        encode(&tree, &key_of(short, 30_001), None, &mut record);
        fixture.put(&tree, &[Some(&key_of(short, 30_001))], &mut record, 0);
        assert!(!insert_behind(&fixture, &tree, &key_of(short, 30_002), place).1, "the page has changed");
        fixture.check_clean(&tree);
    }
}

/// Keys in order, but with others between each two: a page is searched where the one before was put. Without
/// that search every one of them needs a descent.
#[test]
fn a_place_further_behind_on_the_same_page_needs_no_descent() {
    let fixture = Fixture::new(4096, 4 << 20);
    let tree = fixture.tree(clustered(true));
    let mut record = RecordBuffer::new();
    for n in (0..20_000).step_by(10) {
        encode(&tree, &key_of(true, n), Some(20), &mut record);
        fixture.put(&tree, &[Some(&key_of(true, n))], &mut record, 0);
    }
    let (mut keys, mut found, mut last) = (0, 0, None);
    for n in (5..20_000).step_by(70) {
        let (place, behind) = insert_behind(&fixture, &tree, &key_of(true, n), last);
        (last, keys, found) = (place, keys + 1, found + u32::from(behind));
    }
    assert!(found * 10 > keys * 5, "{found} of {keys}");
    fixture.check_clean(&tree);
}
