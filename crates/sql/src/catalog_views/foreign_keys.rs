//! Foreign keys in KEY_COLUMN_USAGE and REFERENTIAL_CONSTRAINTS.

use untorn::Table;
use untorn::asynchronous::Database;
use untorn::schema::{ForeignKey, KeyKind};

use super::{number, text};
use crate::exec::Rows;
use crate::value::Value;

/// A table's foreign keys in KEY_COLUMN_USAGE.
pub(super) fn column_usage(table: &Table) -> Rows {
    let row = |key: &ForeignKey, at: usize| {
        vec![
            text("def"),
            text(&*table.database),
            text(&*key.name),
            text("def"),
            text(&*table.database),
            text(&*table.name),
            text(&*key.columns[at]),
            number(at + 1),
            number(at + 1),
            text(&*key.database),
            text(&*key.table),
            text(key.referenced.get(at).map_or("", String::as_str)),
        ]
    };
    let keys = table.def.foreign_keys.iter();
    keys.flat_map(|key| (0..key.columns.len()).map(move |at| row(key, at))).collect()
}

/// A table's rows of REFERENTIAL_CONSTRAINTS.
pub(super) fn constraints(table: &Table, database: &Database) -> Rows {
    let row = |key: &ForeignKey| {
        vec![
            text("def"),
            text(&*table.database),
            text(&*key.name),
            text("def"),
            text(&*key.database),
            unique_key(key, database).map_or(Value::Null, text),
            text("NONE"),
            text(key.on_update.text()),
            text(key.on_delete.text()),
            text(&*table.name),
            text(&*key.table),
        ]
    };
    table.def.foreign_keys.iter().map(row).collect()
}

/// The unique key of the parent that a foreign key refers to, if it is one.
fn unique_key(key: &ForeignKey, database: &Database) -> Option<String> {
    let parent = database.table(&key.database, &key.table).ok()?;
    let is_it = |index: &&untorn::schema::KeyDef| {
        let columns = index.parts.iter().map(|part| &parent.def.columns[usize::from(part.column)].name);
        index.kind != KeyKind::Secondary
            && index.parts.len() == key.referenced.len()
            && columns.zip(&key.referenced).all(|(column, name)| column.eq_ignore_ascii_case(name))
    };
    parent.def.keys.iter().find(is_it).map(|index| index.name.clone())
}
