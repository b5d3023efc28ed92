//! Descents by pointers under which the tree changes at the worst moment: when they have read which page is
//! next, and do not have it yet. Fails without the looks whether the pointers are still true.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../tests/integration/support/mod.rs"]
mod support;

use std::cell::Cell;

use self::support::Fixture;
use crate::compare::SearchKey;
use crate::page::search::Bound;
use crate::{Comparison, FieldDef, FieldRef, IndexDef, RecordBuffer, Tree};

const PAGE: usize = 4096;
/// Between the keys of the beginning.
const GAP: u32 = 100_000;
const KEYS: u32 = 20_000;
/// One of them that no node pointer has.
const KEY: u32 = 10_007 * GAP;

struct Case {
    fixture: Fixture,
    tree: Tree,
}

impl Case {
    fn new(keys: u32) -> Self {
        let fields = vec![
            FieldDef::fixed("id", 4),
            FieldDef::fixed("DB_TRX_ID", 6),
            FieldDef::fixed("DB_ROLL_PTR", 7),
            FieldDef::variable("v", 200, Comparison::Binary),
        ];
        let fixture = Fixture::new(PAGE, PAGE * 6000);
        let tree = fixture.tree(IndexDef::new(7, "PRIMARY", true, true, fields, 1, 1));
        let case = Self { fixture, tree };
        let first = KEY / GAP - keys / 2;
        case.insert((first..first + keys).map(|n| n * GAP));
        case
    }

    fn insert(&self, keys: impl Iterator<Item = u32>) {
        let mut record = RecordBuffer::new();
        for n in keys {
            let key = n.to_be_bytes();
            let fields = [&key[..], &[0; 6], &[0; 7], &[b'v'; 100]].map(FieldRef::Inline);
            record.encode(self.tree.def(), &fields).unwrap();
            self.fixture.put(&self.tree, &[Some(&key)], &mut record, 1);
        }
    }

    fn remove(&self, keys: impl Iterator<Item = u32>) {
        keys.for_each(|n| assert!(self.fixture.remove(&self.tree, &[Some(&n.to_be_bytes())]), "key {n}"));
    }

    /// Reads keys, more of them around the one, until all pages above the leaves have heads.
    fn warm(&self) {
        let near = (KEY - 40 * GAP..KEY + 40 * GAP).step_by(GAP as usize / 4);
        let all = (KEY - 10_000 * GAP..KEY + 10_000 * GAP).step_by(40 * GAP as usize);
        for n in near.chain(all) {
            (0..4).for_each(|_| _ = self.fixture.get(&self.tree, &[Some(&n.to_be_bytes())], |_| ()));
        }
    }

    /// Whether a descent to the key comes to its end by pointers although `change` happens when it has read
    /// the pointer on the page of `level`. It must come to where the key is, if it is.
    fn descends(&self, level: u16, change: impl Fn()) -> bool {
        self.warm();
        let bytes = KEY.to_be_bytes();
        let fields = [Some(&bytes[..])];
        let key = SearchKey::new(self.tree.def(), &fields);
        let changed = Cell::new(false);
        let leaf = self.tree.leaf_by_pointers_with(&key, |here| {
            if here == level {
                changed.set(true);
                change();
            }
        });
        assert!(changed.get(), "the descent did not come by level {level}");
        let Some(leaf) = leaf else { return false };
        let found = self.tree.search(&leaf, &key, Bound::LessOrEqual).unwrap().found;
        drop(leaf);
        let is_there = self.fixture.get(&self.tree, &[Some(&bytes)], |_| ()).is_some();
        assert_eq!(found.exact, is_there, "it came to another leaf");
        true
    }
}

/// The leaf splits, and the key is in its new neighbour; then its neighbours' records move in with it, or it
/// with them, and it is freed.
#[test]
fn a_leaf_that_split_or_merged_meanwhile_is_found_out() {
    let case = Case::new(KEYS);
    assert_eq!(case.tree.height(), 3);
    assert!(case.descends(1, || ()) && case.descends(2, || ()), "nothing changes");
    assert!(!case.descends(1, || case.insert(KEY - 200..KEY)), "a split");
    assert!(!case.descends(1, || case.remove(KEY - 200..KEY)), "merges");
    let around = || (1..60).flat_map(|n| [KEY - n * GAP, KEY + n * GAP]);
    assert!(!case.descends(1, || case.remove(around())), "a merge");
    case.insert(around());
    // The pages above are made heads of once more, and they lead elsewhere.
    let change = |change: &dyn Fn()| {
        change();
        case.warm();
    };
    assert!(!case.descends(1, || change(&|| case.insert(KEY - 300..KEY))), "a split");
    assert!(!case.descends(1, || change(&|| case.remove(KEY - 300..KEY))), "merges");
    case.fixture.check_clean(&case.tree);
}

/// Of three levels that in the middle splits, and all get their heads once more: the old way from the root
/// leads to a page that has pointers, and they do not lead to the key.
#[test]
fn a_page_above_the_leaves_that_split_meanwhile_is_found_out() {
    let case = Case::new(KEYS);
    let more = || KEY - 30_000..KEY;
    let grown = || {
        case.insert(more());
        case.warm();
    };
    assert!(!case.descends(2, grown), "splits");
    let shrunk = || {
        case.remove(more());
        case.warm();
    };
    assert!(!case.descends(2, shrunk), "merges");
    case.fixture.check_clean(&case.tree);
}

/// The tree gets a level more, or less, or loses all its records.
#[test]
fn a_root_of_another_level_is_found_out() {
    let case = Case::new(1000);
    assert_eq!(case.tree.height(), 2);
    let more = || KEY - 30_000..KEY;
    assert!(!case.descends(1, || case.insert(more())), "a level more");
    assert_eq!(case.tree.height(), 3);
    for level in [2, 1] {
        let shrunk = || {
            case.remove(more());
            case.warm();
        };
        assert!(!case.descends(level, shrunk), "a level less");
        assert_eq!(case.tree.height(), 2);
        case.insert(more());
    }
    case.remove(more());
    let first = KEY / GAP - 500;
    let empty = || case.remove((first..first + 1000).map(|n| n * GAP));
    assert!(!case.descends(1, empty), "no records");
    assert_eq!(case.tree.height(), 1);
    case.fixture.check_clean(&case.tree);
}
