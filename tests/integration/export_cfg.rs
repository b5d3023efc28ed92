//! The `.cfg` that we make for a table equals the one MariaDB made for the same table.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use untorn::export::{cfg::Description, describe};
use untorn::schema::{ColumnDef, KeyKind, TableDef};
use untorn::types::ColumnType;

/// With the ids and roots of the fixture.
fn exported() -> TableDef {
    let mut table = crate::sample::definition();
    table.space = 11;
    for (at, key) in (0..).zip(&mut table.keys) {
        (key.id, key.root) = (0x24 + at, 3 + at as u32);
    }
    table
}

#[test]
fn our_description_of_a_table_equals_that_of_mariadb() {
    let bytes = include_bytes!("../fixtures/mariadb-crc32.cfg");
    let theirs = Description::from_bytes(bytes).unwrap();
    let ours = describe(&exported(), "smp", "sample", &theirs.host, 701, 16384);
    for (our, their) in ours.columns.iter().zip(&theirs.columns) {
        assert_eq!(our, their, "column {}", their.name);
    }
    for (our, their) in ours.indexes.iter().zip(&theirs.indexes) {
        assert_eq!(our, their, "index {}", their.name);
    }
    assert_eq!(ours, theirs);
    assert_eq!(ours.to_bytes(), bytes);
}

#[test]
fn a_table_without_primary_key_has_the_hidden_one() {
    let mut table = TableDef::new(vec![ColumnDef::new("a", ColumnType::int()).nullable()]);
    table = table.key("a_1", KeyKind::Secondary, &["a"]);
    table.hidden_clustered = Some((7, 3));
    let description = describe(&table, "d", "t", "h", 0, 16384);
    let [clustered, secondary] = &description.indexes[..] else { panic!("two indexes") };
    assert_eq!((clustered.kind, clustered.id, clustered.root, clustered.n_user_columns), (1, 7, 3, 0));
    let names = |index: usize| {
        description.indexes[index].fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(names(0), ["DB_ROW_ID", "DB_TRX_ID", "DB_ROLL_PTR", "a"]);
    assert_eq!(names(1), ["a", "DB_ROW_ID"]);
    assert_eq!((secondary.n_unique, secondary.n_nullable, clustered.trx_id_offset), (2, 1, 6));
    assert_eq!(description.columns.iter().map(|c| c.ord_part).collect::<Vec<_>>(), [1, 1, 0, 0]);
}
