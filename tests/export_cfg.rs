//! The `.cfg` that we make for a table equals the one MariaDB made for the same table.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use untorn::export::{cfg::Description, describe};
use untorn::schema::{ColumnDef, KeyDef, KeyKind, KeyPart, TableDef};
use untorn::types::{Collation, ColumnType, SizeClass};

/// The table of the fixture (its CREATE TABLE stands in the comments).
fn sample() -> TableDef {
    let text = Collation::Utf8mb4Bin;
    let not_null = ColumnDef::new;
    let null = |name: &str, kind: ColumnType| ColumnDef::new(name, kind).nullable();
    let members = ["red", "green", "blue"].map(str::to_owned).to_vec();
    let columns = vec![
        not_null("id", ColumnType::int()).auto_increment(), // id int not null auto_increment
        not_null("u", ColumnType::BigInt { unsigned: true }),
        null("s", ColumnType::SmallInt { unsigned: false }),
        not_null("name", ColumnType::VarChar { chars: 80, collation: text }),
        not_null("code", ColumnType::Char { chars: 8, collation: text }),
        null("price", ColumnType::Decimal { precision: 12, scale: 4 }),
        null("ratio", ColumnType::Double),
        null("f", ColumnType::Float),
        null("d", ColumnType::Date),
        null("dt", ColumnType::DateTime { fraction: 3 }),
        null("ts", ColumnType::Timestamp { fraction: 0 }),
        null("t", ColumnType::Time { fraction: 0 }),
        null("y", ColumnType::Year),
        null("e", ColumnType::Enum { members, collation: text }),
        null("bin", ColumnType::VarBinary { bytes: 300 }),
        null("note", ColumnType::Text { size: SizeClass::Normal, collation: text }),
        null("doc", ColumnType::Blob { size: SizeClass::Long }),
    ];
    let mut table = TableDef::new(columns).primary_key(&["id"]).key("u_1", KeyKind::Unique, &["u"]);
    // key name_1 (name(20), s)
    let parts =
        vec![KeyPart { column: 3, prefix_chars: Some(20) }, KeyPart { column: 2, prefix_chars: None }];
    table.keys.push(KeyDef { name: "name_1".to_owned(), kind: KeyKind::Secondary, parts, id: 0, root: 0 });
    let mut table = table.key("dt_1", KeyKind::Secondary, &["dt"]);
    table.space = 11;
    for (at, key) in (0..).zip(&mut table.keys) {
        (key.id, key.root) = (0x24 + at, 3 + at as u32);
    }
    table
}

#[test]
fn our_description_of_a_table_equals_that_of_mariadb() {
    let bytes = include_bytes!("fixtures/mariadb-crc32.cfg");
    let theirs = Description::from_bytes(bytes).unwrap();
    let ours = describe(&sample(), "smp", "sample", &theirs.host, 701, 16384);
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
