//! How near estimates of ranges and of different keys come to a count.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::ops::Bound;

use crate::support::Fixture;
use untorn_btree::{
    BulkLoader, Comparison, Estimate, FieldDef, FieldRef, IndexDef, OwnedKey, RecordBuffer, Tree,
};

/// A secondary index of two columns and the primary key, of entries `(n / group, n % 7, n)`.
fn tree(fixture: &Fixture, rows: u32, group: u32) -> Tree {
    let fields = vec![
        FieldDef::fixed("a", 4).nullable(),
        FieldDef::variable("b", 40, Comparison::Utf8mb4GeneralCi),
        FieldDef::fixed("id", 4),
    ];
    let tree = fixture.tree(IndexDef::new(9, "by_a", false, false, fields, 3, 2));
    let mut loader = BulkLoader::new(&tree);
    let mut record = RecordBuffer::new();
    for n in 0..rows {
        let (a, id) = ((n / group).to_be_bytes(), n.to_be_bytes());
        // Texts that are equal, and not the same.
        let b = [&b"word"[..], b"WORD "][n as usize % 2];
        let fields = [FieldRef::Inline(&a), FieldRef::Inline(b), FieldRef::Inline(&id)];
        record.encode(tree.def(), &fields).unwrap();
        fixture.run(|| loader.add(&record)).unwrap();
    }
    fixture.run(|| loader.finish()).unwrap();
    tree
}

fn sampled(fixture: &Fixture, tree: &Tree) -> Estimate {
    let mut sample = tree.sample();
    while !fixture.run(|| tree.sample_step(&mut sample)).unwrap() {}
    sample.estimate()
}

fn key(n: u32) -> OwnedKey {
    OwnedKey::from_fields(&[Some(&n.to_be_bytes())])
}

fn near(found: u64, wanted: u64, percent: u64) {
    assert!(found.abs_diff(wanted) * 100 <= wanted * percent, "{found} instead of {wanted}");
}

#[test]
fn a_tree_of_few_pages_is_counted() {
    let fixture = Fixture::new(4096, 8 << 20);
    let tree = tree(&fixture, 1000, 10);
    let found = sampled(&fixture, &tree);
    assert_eq!((found.records, &found.distinct[..]), (1000, &[100, 100, 1000][..]));
    assert_eq!(found.sampled, found.leaf_pages);
}

#[test]
fn an_empty_tree_has_nothing() {
    let fixture = Fixture::new(4096, 8 << 20);
    let found = sampled(&fixture, &tree(&fixture, 0, 1));
    assert_eq!((found.records, &found.distinct[..], found.leaf_pages), (0, &[0, 0, 0][..], 1));
}

#[test]
fn a_sample_of_a_large_tree_is_near() {
    let fixture = Fixture::new(4096, 32 << 20);
    for group in [1, 3, 40] {
        let tree = tree(&fixture, 100_000, group);
        let found = sampled(&fixture, &tree);
        assert!(found.sampled < found.leaf_pages / 10, "{found:?}");
        near(found.records, 100_000, 10);
        near(found.distinct[0], 100_000 / u64::from(group), 25);
        near(found.distinct[2], 100_000, 10);
    }
}

#[test]
fn values_that_fill_pages_are_seen_above_the_leaves() {
    let fixture = Fixture::new(4096, 32 << 20);
    let tree = tree(&fixture, 100_000, 5000);
    near(sampled(&fixture, &tree).distinct[0], 20, 50);
}

#[test]
fn a_range_is_estimated_from_its_ends() {
    let fixture = Fixture::new(4096, 32 << 20);
    let tree = tree(&fixture, 100_000, 10);
    let range = |lower, upper| fixture.run(|| tree.estimate_range(&lower, &upper)).unwrap();
    let (included, excluded) = (|n| Bound::Included(key(n)), |n| Bound::Excluded(key(n)));
    for first in [0, 1, 777, 4999, 9990] {
        // Within a leaf or two it is counted.
        assert_eq!(range(included(first), included(first)), 10);
        assert_eq!(range(included(first), included(first + 3)), 40);
        assert_eq!(range(included(first), excluded(first + 40)), 400.min(10 * u64::from(10_000 - first)));
        assert_eq!(range(excluded(first), excluded(first + 3)), 20);
        assert_eq!(range(excluded(first), included(first)), 0);
        assert_eq!(range(included(first + 3), included(first)), 0);
    }
    for (lower, upper, wanted) in [
        (Bound::Unbounded, Bound::Unbounded, 100_000),
        (included(5000), Bound::Unbounded, 50_000),
        (Bound::Unbounded, excluded(2500), 25_000),
        (included(100), excluded(1100), 10_000),
    ] {
        near(range(lower, upper), wanted, 10);
    }
    assert_eq!(range(included(20_000), Bound::Unbounded), 0);
}
