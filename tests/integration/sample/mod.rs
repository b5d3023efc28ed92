//! The table that the fixtures hold, written by stock servers.

use untorn::schema::{ColumnDef, KeyDef, KeyKind, KeyPart, TableDef};
use untorn::types::{Collation, ColumnType, SizeClass};

/// The table of the fixture (its CREATE TABLE stands in the comments).
pub fn definition() -> TableDef {
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
    let parts = vec![KeyPart::prefix(3, 20), KeyPart::whole(2)];
    table.keys.push(KeyDef::new("name_1", KeyKind::Secondary, parts));
    table.key("dt_1", KeyKind::Secondary, &["dt"])
}
