//! Bulk loading, off-page values, and trees that go away.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::{Fixture, SPACE};
use pagestore::fsp;
use proptest::prelude::*;
use untorn_btree::external::ExternalReader;
use untorn_btree::external::ExternalWriter;
use untorn_btree::{BulkLoader, Comparison, FieldDef, FieldRef, IndexDef, RecordBuffer, Reference, Seek};

fn secondary() -> IndexDef {
    let word = FieldDef::variable("word", 400, Comparison::Binary);
    IndexDef::new(11, "word_1", false, false, vec![word, FieldDef::fixed("id", 4)], 2, 1)
}

fn clustered() -> IndexDef {
    let fields = vec![
        FieldDef::fixed("id", 4),
        FieldDef::fixed("DB_TRX_ID", 6),
        FieldDef::fixed("DB_ROLL_PTR", 7),
        FieldDef::variable("doc", u32::MAX, Comparison::Binary).nullable().blob(),
    ];
    IndexDef::new(12, "PRIMARY", true, true, fields, 1, 1)
}

fn word(n: u32, len: usize) -> Vec<u8> {
    let mut word = format!("{n:07}").into_bytes();
    word.resize(7 + len, b'w');
    word
}

fn load(page_size: usize, lengths: impl Iterator<Item = usize>) {
    let fixture = Fixture::new(page_size, page_size * 4000);
    let tree = fixture.tree(secondary());
    let mut loader = BulkLoader::new(&tree);
    loader.set_max_trx_id(9);
    let mut record = RecordBuffer::new();
    let (mut count, mut bytes) = (0u32, 0);
    for len in lengths {
        record
            .encode(
                tree.def(),
                &[FieldRef::Inline(&word(count, len)), FieldRef::Inline(&count.to_be_bytes())],
            )
            .unwrap();
        fixture.run(|| loader.add(&record)).unwrap();
        count += 1;
        bytes += record.size();
    }
    fixture.run(|| loader.finish()).unwrap();
    let report = fixture.check_clean(&tree);
    assert_eq!(report.records, u64::from(count));
    if report.leaf_segment_pages.len() > 8 {
        // The last leaf has what was left.
        let fill = bytes as f64 / ((report.leaf_segment_pages.len() - 1) * page_size) as f64;
        assert!(fill > 0.8, "leaves are {:.0} % full", fill * 100.0);
    }
    // The tree takes inserts and removals afterwards.
    for n in (0..count).step_by(3) {
        let word = word(n, 0);
        record.encode(tree.def(), &[FieldRef::Inline(&word), FieldRef::Inline(&[0xFF; 4])]).unwrap();
        fixture.put(&tree, &[Some(&word), Some(&[0xFF; 4])], &mut record, 10);
    }
    fixture.check_clean(&tree);
    let cursor = fixture.seek(&tree, &[], Seek::First);
    assert_eq!(cursor.is_valid(), count > 0);
    assert!(count == 0 || cursor.page_max_trx_id() >= 9);
}

#[test]
fn bulk_loads_of_all_sizes() {
    for count in [0usize, 1, 5, 14, 15, 16, 30, 200, 5000] {
        load(4096, (0..count).map(|n| n * 31 % 390));
    }
    load(16384, (0..3000).map(|_| 300));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn any_bulk_load_makes_a_sound_tree(lengths in proptest::collection::vec(0usize..390, 0..1500)) {
        load(4096, lengths.into_iter());
    }
}

#[test]
fn values_off_page_come_back_and_go_away() {
    let fixture = Fixture::new(4096, 4096 * 4000);
    let tree = fixture.tree(clustered());
    let before = fixture.run(|| fsp::segment_usage(&fixture.store, tree.segments().0)).unwrap();
    let mut record = RecordBuffer::new();
    let mut references: Vec<Reference> = Vec::new();
    for (id, len) in [1usize, 4041, 4042, 4043, 100_000, 300_000].into_iter().enumerate() {
        let value: Vec<u8> = (0..len).map(|at| (at * 7 + len) as u8).collect();
        let mut writer = ExternalWriter::new(&tree, &value);
        let begun = fixture.change(|mtr| writer.begin(mtr));
        let reference = fixture.run(|| writer.finish()).unwrap();
        assert_eq!(reference, begun);
        assert_eq!((reference.len as usize, reference.space), (len, SPACE));
        let (mut reader, mut read) = (ExternalReader::new(reference), Vec::new());
        fixture.run(|| reader.read(&tree, &mut read)).unwrap();
        assert!(read == value);
        let (key, bytes) = ((id as u32).to_be_bytes(), reference.to_bytes());
        let fields = [
            FieldRef::Inline(&key),
            FieldRef::Inline(&[0; 6]),
            FieldRef::Inline(&[0; 7]),
            FieldRef::External { prefix: &[], reference: &bytes },
        ];
        record.encode(tree.def(), &fields).unwrap();
        fixture.put(&tree, &[Some(&key)], &mut record, 1);
        references.push(reference);
    }
    let report = fixture.check_clean(&tree);
    assert_eq!(report.leaf_segment_pages.len(), 1 + 1 + 1 + 2 + 25 + 75);
    for (id, reference) in references.into_iter().enumerate() {
        let steps = (0..).find(|_| fixture.run(|| tree.free_chain_step(reference)).unwrap()).unwrap();
        assert_eq!(steps, (reference.len as usize).div_ceil(4042).saturating_sub(2) / 8);
        assert!(fixture.run(|| tree.free_chain_step(reference)).unwrap(), "repeating is harmless");
        let key = (id as u32).to_be_bytes();
        fixture.change(|mtr| {
            let position = tree.seek_for_change(mtr, &[Some(&key)])?;
            tree.prepare_free_chain_head(mtr, reference)?;
            let removed = tree.remove_here(mtr, position.place)?;
            assert!(matches!(removed, untorn_btree::Outcome::Done(_)));
            tree.free_chain_head(mtr, reference)
        });
        fixture.check_clean(&tree);
    }
    let after = fixture.run(|| fsp::segment_usage(&fixture.store, tree.segments().0)).unwrap();
    assert_eq!(before.used, after.used);
}

#[test]
fn a_tree_that_is_dropped_leaves_nothing() {
    let fixture = Fixture::new(4096, 4096 * 4000);
    let used = || fixture.run(|| fsp::check(&fixture.store, SPACE)).unwrap().used_pages();
    let keep = fixture.tree(clustered());
    let before = used();
    let tree = fixture.tree(secondary());
    let mut record = RecordBuffer::new();
    for n in 0..20_000u32 {
        let word = word(n.wrapping_mul(2_654_435_761) % 1_000_000, 20);
        record.encode(tree.def(), &[FieldRef::Inline(&word), FieldRef::Inline(&n.to_be_bytes())]).unwrap();
        fixture.put(&tree, &[Some(&word), Some(&n.to_be_bytes())], &mut record, 1);
    }
    let report = fixture.check_clean(&tree);
    assert!(report.levels >= 3 && used() > before + 200);
    while !fixture.run(|| tree.destroy_step()).unwrap() {}
    assert_eq!(used(), before);
    fixture.check_clean(&keep);
}
