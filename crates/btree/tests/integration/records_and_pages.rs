//! The record codec and the page operations against plain models and against bytes of real files.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;

use pagestore::PageId;
use proptest::prelude::*;
use untorn_btree::compare::SearchKey;
use untorn_btree::page::builder::PageBuilder;
use untorn_btree::page::reorganize::reorganized;
use untorn_btree::page::search::{Bound, search};
use untorn_btree::page::validate::validate;
use untorn_btree::page::{delete, header, image, insert, record_list};
use untorn_btree::{Comparison, FieldDef, FieldRef, IndexDef, RecordBuffer, RecordRef};

fn sbtest() -> IndexDef {
    let fields = vec![
        FieldDef::fixed("id", 4),
        FieldDef::fixed("DB_TRX_ID", 6),
        FieldDef::fixed("DB_ROLL_PTR", 7),
        FieldDef::fixed("k", 4),
        FieldDef::fixed("c", 120),
        FieldDef::fixed("pad", 60),
    ];
    IndexDef::new(1, "PRIMARY", true, true, fields, 1, 1)
}

/// The first record of a table that sysbench made on a real server (innodb-format: golden leaf record).
#[test]
fn a_leaf_record_has_the_bytes_of_a_real_one() {
    let def = sbtest();
    let (c, pad) = ([b'3'; 120], [b'9'; 60]);
    let fields = [
        &[0x80, 0, 0, 1][..],
        &[0, 0, 0, 0, 0, 0x17],
        &[0x86, 0, 0, 1, 0x2D, 1, 0x10],
        &[0x80, 1, 0xEA, 0xED],
        &c,
        &pad,
    ];
    let mut first = RecordBuffer::new();
    first.encode(&def, &fields.map(FieldRef::Inline)).unwrap();
    let mut builder = PageBuilder::fresh(16384, PageId { space: 4, page: 4 }, 0, 1);
    builder.append_record(first.view(&def)).unwrap();
    let mut second = first.clone();
    second.set_system_fields(&def, 24, 0x0001_2345_6789_ABCD);
    builder.append_record(second.view(&def)).unwrap();
    let page = builder.finish(false).clone();
    let mut golden = vec![
        0, 0, 0x10, 0, 0xCE, 0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0x17, 0x86, 0, 0, 1, 0x2D, 1, 0x10, 0x80, 1, 0xEA,
        0xED,
    ];
    golden.extend(c);
    golden.extend(pad);
    assert_eq!(page[120..120 + 206], golden[..]);
    let record = RecordRef::new(&page, 331, &def);
    assert_eq!((record.trx_id(), record.roll_ptr(), record.size()), (24, 0x0001_2345_6789_ABCD, 206));
    assert_eq!(page[94..120], *b"\x01\x00\x02\x00\x1Ainfimum\x00\x03\x00\x0B\x00\x00supremum");
}

#[test]
fn an_empty_page_has_the_bytes_of_a_real_one() {
    let mut builder = PageBuilder::fresh(16384, PageId { space: 4, page: 3 }, 0, 1);
    let page = builder.finish(false);
    assert_eq!(page[38..56], [0, 2, 0, 120, 0x80, 2, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0]);
    assert_eq!(page[94..120], *b"\x01\x00\x02\x00\x0Dinfimum\x00\x01\x00\x0B\x00\x00supremum");
    assert_eq!(page[16384 - 12..16384 - 8], [0, 0x70, 0, 0x63]);
    assert_eq!(header::record_size_max(16384), 8125);
}

fn mixed_def() -> IndexDef {
    let fields = vec![
        FieldDef::fixed("id", 4),
        FieldDef::fixed("DB_TRX_ID", 6),
        FieldDef::fixed("DB_ROLL_PTR", 7),
        FieldDef::variable("short", 200, Comparison::Binary).nullable(),
        FieldDef::variable("long", 4000, Comparison::Binary),
        FieldDef::fixed("f", 3).nullable(),
        FieldDef::variable("blob", 65535, Comparison::Binary).nullable().blob(),
    ];
    IndexDef::new(2, "PRIMARY", true, true, fields, 1, 1)
}

proptest! {
    #[test]
    fn fields_round_trip(
        id: [u8; 4],
        short in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..200)),
        long in proptest::collection::vec(any::<u8>(), 0..400),
        f: Option<[u8; 3]>,
        blob in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..1000)),
        reference: [u8; 20],
        external: bool,
        trx_id in 0u64..1 << 48,
        roll_ptr in 0u64..1 << 56,
    ) {
        let def = mixed_def();
        let last = match &blob {
            _ if external => FieldRef::External { prefix: b"", reference: &reference },
            Some(blob) => FieldRef::Inline(blob),
            None => FieldRef::Null,
        };
        let fields = [
            FieldRef::Inline(&id), FieldRef::Inline(&[0; 6]), FieldRef::Inline(&[0; 7]),
            short.as_deref().into(), FieldRef::Inline(&long), f.as_ref().map(|f| &f[..]).into(), last,
        ];
        let mut buffer = RecordBuffer::new();
        buffer.encode(&def, &fields).unwrap();
        buffer.set_system_fields(&def, trx_id, roll_ptr);
        let record = buffer.view(&def);
        prop_assert_eq!(record.size(), buffer.size());
        prop_assert_eq!(record.raw().unwrap().0, buffer.as_bytes());
        prop_assert_eq!((record.trx_id(), record.roll_ptr()), (trx_id, roll_ptr));
        prop_assert_eq!(record.has_external(), external);
        for (index, field) in fields.iter().enumerate() {
            if !(1..3).contains(&index) {
                prop_assert_eq!(record.field(index), *field);
            }
        }
        let copy = record.to_owned();
        prop_assert_eq!(copy.view(&def).fields().collect::<Vec<_>>(), record.fields().collect::<Vec<_>>());
    }

    #[test]
    fn damaged_records_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 4096), origin in 0usize..4096) {
        let def = mixed_def();
        let record = RecordRef::new(&bytes, origin, &def);
        let _ = (record.fields().count(), record.raw(), record.to_owned(), record.child(), record.trx_id());
        let _ = validate(&bytes, &def);
        let key = [Some(&b"\0\0\0\x01"[..])];
        let _ = search(&bytes, &def, &SearchKey::new(&def, &key), Bound::LessOrEqual);
    }
}

#[derive(Debug, Clone)]
enum Op {
    Insert(u16, usize),
    Delete(u16),
    DeleteFrom(u16),
    Reorganize,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (0u16..300, 0usize..120).prop_map(|(key, len)| Op::Insert(key, len)),
        5 => (0u16..300).prop_map(Op::Delete),
        1 => (250u16..300).prop_map(Op::DeleteFrom),
        1 => Just(Op::Reorganize),
    ]
}

/// `general` keys go through the general comparison, the others through the integer one.
fn page_def(general: bool) -> IndexDef {
    let mut id = FieldDef::fixed("id", 2);
    if general {
        id = id.nullable();
    }
    IndexDef::new(3, "k", false, false, vec![id, FieldDef::variable("pad", 300, Comparison::Binary)], 2, 1)
}

fn run_page_ops(ops: &[Op], general: bool) {
    let def = page_def(general);
    let mut builder = PageBuilder::fresh(4096, PageId { space: 1, page: 9 }, 0, 3);
    let mut page = builder.finish(false).clone();
    let mut model: BTreeMap<u16, usize> = BTreeMap::new();
    let mut record = RecordBuffer::new();
    for op in ops {
        let find = |page: &[u8], key: u16, bound| {
            let bytes = key.to_be_bytes();
            let fields = [Some(&bytes[..])];
            search(page, &def, &SearchKey::new(&def, &fields), bound).unwrap()
        };
        match *op {
            Op::Insert(key, len) => {
                let found = find(&page, key, Bound::LessOrEqual);
                assert_eq!(found.exact, model.contains_key(&key));
                let before = find(&page, key, Bound::Less);
                assert!(!before.exact);
                if found.exact {
                    continue;
                }
                record
                    .encode(&def, &[FieldRef::Inline(&key.to_be_bytes()), FieldRef::Inline(&vec![7; len])])
                    .unwrap();
                let fits = record.size() <= header::max_insert(&page, 1);
                match insert::insert_record(&mut page, &def, found.offset, &mut record).unwrap() {
                    Some(_) => drop(model.insert(key, len)),
                    None => assert!(!fits),
                }
            }
            Op::Delete(key) => {
                let found = find(&page, key, Bound::LessOrEqual);
                assert_eq!(found.exact, model.remove(&key).is_some());
                if found.exact {
                    delete::delete_record(&mut page, &def, found.offset).unwrap();
                }
            }
            Op::DeleteFrom(key) => {
                let list = record_list(&page).unwrap();
                if let Some(first) = list.get(model.range(..key).count()) {
                    delete::delete_from(&mut page, &def, *first).unwrap();
                }
                model.split_off(&key);
            }
            Op::Reorganize => {
                let target = reorganized(&page, &def).unwrap();
                image::write_image(&mut page, &target);
                assert_eq!(header::garbage(&page), 0);
            }
        }
        let problems = validate(&page, &def);
        assert!(problems.is_empty(), "after {op:?}: {problems:?}");
        let stored: Vec<(u16, usize)> = record_list(&page)
            .unwrap()
            .into_iter()
            .map(|origin| {
                let record = RecordRef::new(&page, origin, &def);
                let id = record.field(0).inline().unwrap();
                (u16::from_be_bytes([id[0], id[1]]), record.field(1).inline().unwrap().len())
            })
            .collect();
        assert_eq!(stored, model.iter().map(|(key, len)| (*key, *len)).collect::<Vec<_>>());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_page_behaves_like_a_sorted_map(ops in proptest::collection::vec(op(), 1..300), general: bool) {
        run_page_ops(&ops, general);
    }
}
