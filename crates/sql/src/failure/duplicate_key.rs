//! "Duplicate entry '1-a' for key 't.k'": error 1062 with the values of the key.
//!
//! The engine has the entry in storage form; its values are shown as a SELECT would show them, joined by
//! dashes. Only who knows the table's definition can say that: an error that reaches [`super::transaction`]
//! without it has a question mark there.

use untorn::Table;
use untorn::schema::TableDef;
use untorn::types::ColumnType;

use crate::errors;
use crate::result::SqlError;
use crate::stored_values;

/// The message of a duplicate key: the key's columns joined by dashes.
pub fn duplicate(table: &Table, index: &str, entry: &[Option<Vec<u8>>], time_zone: i32) -> SqlError {
    duplicate_in(&table.def, &table.name, index, entry, time_zone)
}

/// The same of a table with this definition.
pub fn duplicate_in(
    def: &TableDef,
    table: &str,
    index: &str,
    entry: &[Option<Vec<u8>>],
    time_zone: i32,
) -> SqlError {
    let parts = def.key_named(index).map_or(&[][..], |key| &key.parts);
    let texts: Vec<String> = entry
        .iter()
        .zip(parts)
        .map(|(field, part)| match field {
            None => "NULL".to_owned(),
            Some(bytes) => {
                let kind = &def.columns[usize::from(part.column)].kind;
                match kind {
                    ColumnType::Binary { .. } | ColumnType::VarBinary { .. } | ColumnType::Blob { .. } => {
                        String::from_utf8_lossy(bytes).into_owned()
                    }
                    kind => stored_values::decode(bytes, kind, time_zone).to_string_lossy(),
                }
            }
        })
        .collect();
    errors::error(errors::DUP_ENTRY, &[&texts.join("-"), &format!("{table}.{index}")])
}
