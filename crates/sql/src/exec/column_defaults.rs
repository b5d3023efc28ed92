//! What a column gets that a statement gives no value: its default, or what stands in for one.
//!
//! Without a default the row is refused (error 1364). Where the mode is lenient, or the statement has IGNORE,
//! it gets the implicit default of its type instead: 0, the empty text, the first member of an ENUM. NULL
//! becomes the same in a NOT NULL column there, but for an ENUM, which becomes the empty text.

use untorn::schema::ColumnDef;
use untorn::types::{self, ColumnType};
use untorn::write::EncodedRow;

use crate::errors;
use crate::failure;
use crate::plan::change::ColumnDefault;
use crate::plan::source::Source;
use crate::result::SqlError;
use crate::stored_values::Storing;
use crate::value::Value;
use crate::value::json::Json;

/// What a NOT NULL column without default gets when the mode is lenient.
pub fn implicit_default(kind: &ColumnType) -> Value<'static> {
    match kind {
        ColumnType::Date | ColumnType::DateTime { .. } | ColumnType::Timestamp { .. } => {
            Value::Date(types::Date::default())
        }
        ColumnType::Time { .. } => Value::Time(types::Time::default(), 0),
        ColumnType::Enum { .. } => Value::Int(1),
        ColumnType::Json => Json::Null.into_value().unwrap_or(Value::Null),
        kind if kind.is_string() => Value::Text((&b""[..]).into(), kind.collation()),
        _ => Value::Int(0),
    }
}

/// Appends the implicit default of a type, which no mode refuses.
fn push_implicit(column: &ColumnDef, storing: &Storing<'_>, out: &mut Vec<u8>) -> Result<(), SqlError> {
    match implicit_default(&column.kind) {
        Value::Date(_) => storing.zero_moment(column, out),
        other => storing.encode(&other, column, out),
    }
}

/// Appends what NULL becomes in a NOT NULL column when the mode is lenient: the implicit default, but of an
/// ENUM the empty text.
pub(super) fn push_for_null(
    column: &ColumnDef,
    storing: &Storing<'_>,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    if let (ColumnType::Enum { .. }, Some(width)) = (&column.kind, column.kind.fixed_len()) {
        out.resize(out.len() + usize::from(width), 0);
        return Ok(());
    }
    push_implicit(column, storing, out)
}

/// What a row of LOAD DATA gets in a column whose field is missing: as in MySQL not its default, unless that
/// is NULL.
pub(super) fn push_for_nothing(
    default: &ColumnDefault,
    column: &ColumnDef,
    storing: &Storing<'_>,
    row: &mut EncodedRow,
) -> Result<(), SqlError> {
    match default {
        ColumnDefault::Null => {
            row.push_null();
            Ok(())
        }
        _ => row.push(|out| push_for_null(column, storing, out)),
    }
}

/// Error 1364.
fn no_default(column: &ColumnDef) -> SqlError {
    errors::error(errors::FIELD_HAS_NO_DEFAULT, &[&column.name])
}

/// What is said of a column without default: nothing of an ENUM, which falls back to its first member, or
/// NULL, even in strict mode.
fn complain(column: &ColumnDef, storing: &Storing<'_>, error: SqlError) -> Result<(), SqlError> {
    match (&column.kind, storing.lenient) {
        (ColumnType::Enum { .. }, _) => Ok(()),
        (_, true) => {
            storing.state.warn(error);
            Ok(())
        }
        (_, false) => Err(error),
    }
}

/// What `column = DEFAULT` of an UPDATE stores in a column without default: the implicit one also where the
/// column is nullable, as in MySQL, but for an ENUM. `None` is NULL.
pub(super) fn assigned_default(
    column: &ColumnDef,
    storing: &Storing<'_>,
) -> Result<Option<Vec<u8>>, SqlError> {
    complain(column, storing, no_default(column))?;
    if column.nullable && matches!(column.kind, ColumnType::Enum { .. }) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    push_implicit(column, storing, &mut bytes)?;
    Ok(Some(bytes))
}

/// What a row of an INSERT gets in a column that it leaves out.
pub(super) fn push_default(
    default: &ColumnDefault,
    column: &ColumnDef,
    storing: &Storing<'_>,
    source: &Source,
    row: &mut EncodedRow,
) -> Result<(), SqlError> {
    match default {
        ColumnDefault::Stored(bytes) => {
            row.push_bytes(bytes);
            Ok(())
        }
        ColumnDefault::Null => {
            row.push_null();
            Ok(())
        }
        ColumnDefault::Now => {
            let time = storing.state.statement_time();
            row.push(|out| time.encode(column, out)).map_err(|error| failure::engine(&error))
        }
        ColumnDefault::Expression(_) | ColumnDefault::Generated(_) => {
            row.push_null();
            Ok(())
        }
        ColumnDefault::AutoIncrement | ColumnDefault::Missing => {
            let error = match &source.mask {
                Some(_) => {
                    errors::error(errors::NO_DEFAULT_FOR_VIEW_FIELD, &[&source.database, &source.table])
                }
                None => no_default(column),
            };
            complain(column, storing, error)?;
            if column.nullable {
                row.push_null();
                return Ok(());
            }
            row.push(|out| push_implicit(column, storing, out))
        }
    }
}
