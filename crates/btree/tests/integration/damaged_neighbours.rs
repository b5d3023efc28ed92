//! Leaves that name other neighbours than they have, as in a damaged file: reading along them ends.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::{Fixture, SPACE};
use pagestore::{Error, PageId};
use untorn_btree::{
    Comparison, FieldDef, FieldRef, IndexDef, LeafCursor, Outcome, RecordBuffer, Seek, StructureChange, Tree,
};

const ROWS: u32 = 300;
/// Of the FIL header.
const PREVIOUS: usize = 8;
const NEXT: usize = 12;

fn filled(fixture: &Fixture) -> Tree {
    let fields = vec![
        FieldDef::fixed("id", 4),
        FieldDef::fixed("DB_TRX_ID", 6),
        FieldDef::fixed("DB_ROLL_PTR", 7),
        FieldDef::variable("v", 2000, Comparison::Binary),
    ];
    let tree = fixture.tree(IndexDef::new(7, "PRIMARY", true, true, fields, 1, 1));
    let mut record = RecordBuffer::new();
    for id in 0..ROWS {
        let key = id.to_be_bytes();
        let fields = [&key[..], &[0; 6], &[0; 7], &[b'v'; 100]].map(FieldRef::Inline);
        record.encode(tree.def(), &fields).unwrap();
        fixture.put(&tree, &[Some(&key)], &mut record, 1);
    }
    tree
}

fn end(fixture: &Fixture, tree: &Tree, which: Seek) -> u32 {
    fixture.seek(tree, &[], which).leaf().unwrap().page
}

fn link(fixture: &Fixture, page: u32, at: usize, to: u32) {
    fixture.change(|mtr| {
        let handle = mtr.x(PageId { space: SPACE, page })?;
        mtr.write_u32(handle, at, to);
        Ok(())
    });
}

/// Goes on to the end, or to an error; more steps than there are rows are a circle.
fn walk(
    fixture: &Fixture,
    mut cursor: LeafCursor<'_>,
    step: impl Fn(&mut LeafCursor<'_>) -> Result<bool, pagestore::Interrupt>,
) -> Result<u32, Error> {
    let mut seen = 1;
    while fixture.run(|| step(&mut cursor))? {
        seen += 1;
        assert!(seen <= ROWS, "it goes round");
    }
    Ok(seen)
}

#[test]
fn a_circle_of_leaves_is_an_error() {
    let fixture = Fixture::new(4096, 4 << 20);
    let tree = filled(&fixture);
    let forward = || walk(&fixture, fixture.seek(&tree, &[], Seek::First), |cursor| cursor.next());
    let backward = || walk(&fixture, fixture.seek(&tree, &[], Seek::Last), |cursor| cursor.prev());
    assert_eq!((forward().unwrap(), backward().unwrap()), (ROWS, ROWS));
    let (first, last) = (end(&fixture, &tree, Seek::First), end(&fixture, &tree, Seek::Last));
    assert_ne!(first, last);
    link(&fixture, last, NEXT, first);
    let error = forward().unwrap_err().to_string();
    assert!(error.contains("its left neighbour is another page"), "{error}");
    link(&fixture, last, NEXT, u32::MAX);
    link(&fixture, first, PREVIOUS, last);
    let error = backward().unwrap_err().to_string();
    assert!(error.contains("its right neighbour is another page"), "{error}");
    // The fixture's own end wants a sound tree.
    link(&fixture, first, PREVIOUS, u32::MAX);
    assert_eq!(backward().unwrap(), ROWS);
}

/// Rows are saved by reading forward, which needs no link back.
#[test]
fn a_forced_recovery_reads_forward_over_a_damaged_link_back() {
    let fixture = Fixture::forced(4096, 4 << 20);
    let tree = filled(&fixture);
    let forward = || walk(&fixture, fixture.seek(&tree, &[], Seek::First), |cursor| cursor.next());
    let (first, last) = (end(&fixture, &tree, Seek::First), end(&fixture, &tree, Seek::Last));
    let previous = fixture.change(|mtr| {
        let handle = mtr.s(PageId { space: SPACE, page: last })?;
        let bytes = mtr.page(handle)[PREVIOUS..PREVIOUS + 4].try_into();
        Ok(u32::from_be_bytes(bytes.unwrap()))
    });
    link(&fixture, last, PREVIOUS, first);
    assert_eq!(forward().unwrap(), ROWS);
    link(&fixture, last, PREVIOUS, previous);
}

/// Whatever a split may change is looked at before anything is changed: the leaf on the right where the new
/// record may go there, and otherwise only the leaf itself.
#[test]
fn an_insert_looks_at_the_leaves_whose_records_it_may_change() {
    let fixture = Fixture::new(4096, 4 << 20);
    let tree = filled(&fixture);
    let first = end(&fixture, &tree, Seek::First);
    let mut cursor = fixture.seek(&tree, &[], Seek::First);
    let mut ids = Vec::new();
    while cursor.leaf().unwrap().page == first {
        let id = cursor.record().field(0).inline().unwrap().try_into().unwrap();
        ids.push(u32::from_be_bytes(id));
        assert!(fixture.run(|| cursor.next()).unwrap());
    }
    let second = cursor.leaf().unwrap().page;
    drop(cursor);
    let seek = |id: u32| {
        fixture.run(|| {
            let mut mtr = fixture.store.mtr_sized(tree.structure_redo_bytes())?;
            let key = id.to_be_bytes();
            let change = StructureChange::Insert { size: 150 };
            tree.seek_for_structure_change(&mut mtr, &[Some(&key)], change).map(drop)
        })
    };
    const RECORDS: usize = 54;
    let change = |by: i16| {
        fixture.change(|mtr| {
            let handle = mtr.x(PageId { space: SPACE, page: second })?;
            let records = i16::from_be_bytes(mtr.page(handle)[RECORDS..RECORDS + 2].try_into().unwrap());
            mtr.write_u16(handle, RECORDS, (records + by) as u16);
            Ok(())
        });
    };
    change(1);
    let last = *ids.last().unwrap();
    let error = seek(last).unwrap_err().to_string();
    assert!(error.contains("not what the page header says"), "{error}");
    seek(ids[0]).unwrap();
    change(-1);
    seek(last).unwrap();
}

/// What a removal may merge is looked at before anything is changed: a sibling that has room for what is left
/// of the leaf, and no other one.
#[test]
fn a_removal_looks_at_the_leaves_that_it_may_merge() {
    let fixture = Fixture::new(4096, 4 << 20);
    let tree = filled(&fixture);
    // The last leaf gets six rows.
    let full = end(&fixture, &tree, Seek::Last);
    let mut next = ROWS;
    let mut put = || {
        let mut record = RecordBuffer::new();
        let key = next.to_be_bytes();
        let fields = [&key[..], &[0; 6], &[0; 7], &[b'v'; 100]].map(FieldRef::Inline);
        record.encode(tree.def(), &fields).unwrap();
        fixture.put(&tree, &[Some(&key)], &mut record, 1);
        next += 1;
        end(&fixture, &tree, Seek::Last)
    };
    while put() == full {}
    (1..5).for_each(|_| _ = put());
    let last = put();
    let before = next - 7;
    let seek = || {
        fixture.run(|| {
            let mut mtr = fixture.store.mtr_sized(tree.structure_redo_bytes())?;
            let key = before.to_be_bytes();
            tree.seek_for_structure_change(&mut mtr, &[Some(&key)], StructureChange::Remove).map(drop)
        })
    };
    const RECORDS: usize = 54;
    let change = |by: i16| {
        fixture.change(|mtr| {
            let handle = mtr.x(PageId { space: SPACE, page: last })?;
            let records = i16::from_be_bytes(mtr.page(handle)[RECORDS..RECORDS + 2].try_into().unwrap());
            mtr.write_u16(handle, RECORDS, (records + by) as u16);
            Ok(())
        });
    };
    change(1);
    seek().unwrap();
    for id in before - 12..before {
        fixture.change(|mtr| {
            let position = tree.seek_for_change(mtr, &[Some(&id.to_be_bytes())])?;
            let outcome = tree.remove_here(mtr, position.place)?;
            assert!(matches!(outcome, Outcome::Done(_)), "row {id}");
            Ok(())
        });
    }
    let error = seek().unwrap_err().to_string();
    assert!(error.contains("not what the page header says"), "{error}");
    change(-1);
    seek().unwrap();
}
