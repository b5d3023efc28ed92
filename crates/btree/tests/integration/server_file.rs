//! A tablespace that a stock MariaDB wrote: its indexes pass our check, its rows read as the server read
//! them, and they can be changed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use crate::support::Fixture;
use pagestore::page::{u32_at, u64_at};
use untorn_btree::external::ExternalReader;
use untorn_btree::{
    Comparison, FieldDef, FieldRef, IndexDef, RecordBuffer, RecordRef, Reference, Seek, Tree,
};

fn gunzip(path: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

fn primary(id: u64) -> IndexDef {
    let text = |name, max| FieldDef::variable(name, max, Comparison::Utf8mb4Bin);
    let fields = vec![
        FieldDef::fixed("id", 4),
        FieldDef::fixed("DB_TRX_ID", 6),
        FieldDef::fixed("DB_ROLL_PTR", 7),
        FieldDef::fixed("u", 8),
        FieldDef::fixed("s", 2).nullable(),
        text("name", 320),
        text("code", 32),
        FieldDef::fixed("price", 6).nullable(),
        FieldDef::fixed("ratio", 8).nullable(),
        FieldDef::fixed("f", 4).nullable(),
        FieldDef::fixed("d", 3).nullable(),
        FieldDef::fixed("dt", 7).nullable(),
        FieldDef::fixed("ts", 4).nullable(),
        FieldDef::fixed("t", 3).nullable(),
        FieldDef::fixed("y", 1).nullable(),
        FieldDef::fixed("e", 1).nullable(),
        FieldDef::variable("bin", 300, Comparison::Binary).nullable(),
        text("note", 65535).nullable().blob(),
        FieldDef::variable("doc", u32::MAX, Comparison::Binary).nullable().blob(),
    ];
    IndexDef::new(id, "PRIMARY", true, true, fields, 1, 1)
}

fn secondaries(ids: [u64; 3]) -> [IndexDef; 3] {
    let id = || FieldDef::fixed("id", 4);
    let mut name = FieldDef::variable("name", 320, Comparison::Utf8mb4Bin);
    name.prefix_len = Some(80);
    let s = FieldDef::fixed("s", 2).nullable();
    let dt = FieldDef::fixed("dt", 7).nullable();
    [
        IndexDef::new(ids[0], "u_1", true, false, vec![FieldDef::fixed("u", 8), id()], 2, 1),
        IndexDef::new(ids[1], "name_1", false, false, vec![name, s, id()], 3, 2),
        IndexDef::new(ids[2], "dt_1", false, false, vec![dt, id()], 2, 1),
    ]
}

struct Sample {
    fixture: Fixture,
    primary: Tree,
    secondaries: Vec<Tree>,
}

fn open_sample() -> Sample {
    let bytes = gunzip("../pagestore/tests/fixtures/mariadb-crc32.ibd.gz");
    let space = u32_at(&bytes, 34);
    let index_id = |page: usize| u64_at(&bytes, page * 16384 + 66);
    let fixture = Fixture::without_space(16384, 64 << 20);
    let path = fixture.directory().join("sample.ibd");
    std::fs::write(&path, &bytes).unwrap();
    fixture.store.open_space(space, &path).unwrap();
    let open = |root: u32, def: IndexDef| {
        let def = Arc::new(def);
        fixture.run(|| Tree::open(&fixture.store, space, root, Arc::clone(&def))).unwrap()
    };
    let primary = open(3, primary(index_id(3)));
    let defs = secondaries([index_id(4), index_id(5), index_id(6)]);
    let secondaries = defs.into_iter().zip(4..).map(|(def, root)| open(root, def)).collect();
    Sample { fixture, primary, secondaries }
}

#[derive(Debug, PartialEq)]
struct Row {
    u: u64,
    s: Option<i16>,
    name: Vec<u8>,
    doc_len: Option<usize>,
}

fn wanted_rows() -> BTreeMap<i32, Row> {
    let text = String::from_utf8(gunzip("tests/fixtures/rows.tsv.gz")).unwrap();
    let unhex = |hex: &str| {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    };
    text.lines()
        .map(|line| {
            let column: Vec<&str> = line.split('\t').collect();
            let row = Row {
                u: column[1].parse().unwrap(),
                s: column[2].parse().ok(),
                name: unhex(column[3]),
                doc_len: column[4].parse().ok(),
            };
            (column[0].parse().unwrap(), row)
        })
        .collect()
}

fn signed(bytes: &[u8]) -> i64 {
    let value = bytes.iter().fold(0i64, |value, byte| value << 8 | i64::from(*byte));
    value - (1 << (8 * bytes.len() - 1))
}

/// Decodes a row; the document is fetched afterwards, when it is off-page.
fn decode(record: RecordRef<'_>) -> (i32, Row, Option<Reference>) {
    let fields: Vec<FieldRef<'_>> = record.fields().collect();
    let (doc_len, reference) = match fields[18] {
        FieldRef::Null => (None, None),
        FieldRef::Inline(doc) => (Some(doc.len()), None),
        FieldRef::External { reference, .. } => {
            let reference = Reference::read(reference);
            (Some(reference.len as usize), Some(reference))
        }
    };
    let row = Row {
        u: u64_at(fields[3].inline().unwrap(), 0),
        s: fields[4].inline().map(|bytes| signed(bytes) as i16),
        name: fields[5].inline().unwrap().to_vec(),
        doc_len,
    };
    (signed(fields[0].inline().unwrap()) as i32, row, reference)
}

#[test]
fn rows_of_a_stock_server_are_read_as_it_reads_them() {
    let sample = open_sample();
    let tree = &sample.primary;
    let mut cursor = sample.fixture.seek(tree, &[], Seek::First);
    let (mut rows, mut documents) = (BTreeMap::new(), Vec::new());
    let mut more = cursor.is_valid();
    while more {
        if !cursor.record().is_deleted() {
            let (id, row, reference) = decode(cursor.record());
            documents.extend(reference.map(|reference| (id, reference)));
            rows.insert(id, row);
        }
        more = sample.fixture.run(|| cursor.next()).unwrap();
    }
    drop(cursor);
    assert_eq!(rows, wanted_rows());
    assert!(documents.len() > 10);
    for (id, reference) in documents {
        let (mut reader, mut bytes) = (ExternalReader::new(reference), Vec::new());
        sample.fixture.run(|| reader.read(tree, &mut bytes)).unwrap();
        assert_eq!(bytes.len(), reference.len as usize);
        assert!(bytes.iter().all(|byte| *byte == b'a' + (id % 26) as u8), "document {id}");
    }
}

#[test]
fn indexes_of_a_stock_server_pass_the_check() {
    let sample = open_sample();
    let rows = wanted_rows().len() as u64;
    for tree in sample.secondaries.iter().chain([&sample.primary]) {
        let report = sample.fixture.check(tree);
        assert!(report.problems.is_empty(), "{:#?}", report.problems);
        assert_eq!(report.records - report.deleted_records, rows, "{}", tree.def().name);
    }
}

#[test]
fn a_file_of_a_stock_server_can_be_changed() {
    let sample = open_sample();
    let (fixture, tree) = (&sample.fixture, &sample.primary);
    let mut record = RecordBuffer::new();
    let ids: Vec<i32> = wanted_rows().into_keys().collect();
    for id in &ids {
        let key = (*id as u32 ^ 0x8000_0000).to_be_bytes();
        if id % 3 == 0 && !fixture.get(tree, &[Some(&key)], |record| record.has_external()).unwrap() {
            assert!(fixture.remove(tree, &[Some(&key)]));
            continue;
        }
        let copy = fixture.get(tree, &[Some(&key)], |record| record.to_owned()).unwrap();
        let mut fields: Vec<FieldRef<'_>> = copy.view(tree.def()).fields().collect();
        let name = vec![b'n'; 200];
        fields[5] = FieldRef::Inline(&name);
        record.encode(tree.def(), &fields).unwrap();
        fixture.put(tree, &[Some(&key)], &mut record, 5);
        let key = ((*id as u32 + 10_000) ^ 0x8000_0000).to_be_bytes();
        fields[0] = FieldRef::Inline(&key);
        fields[18] = FieldRef::Null;
        record.encode(tree.def(), &fields).unwrap();
        fixture.put(tree, &[Some(&key)], &mut record, 5);
    }
    let report = fixture.check(tree);
    assert!(report.problems.is_empty(), "{:#?}", report.problems);
    let space = fixture.run(|| pagestore::fsp::check(&fixture.store, tree.space())).unwrap();
    assert!(space.is_clean(), "{space}");
}
