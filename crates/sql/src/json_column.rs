//! What a value of a document is in a column of JSON_TABLE.
//!
//! It is what INSERT makes of it in strict mode, but for texts that say numbers: those say them wholly, and
//! without a fraction where integers are. What is refused is an error of the column, whatever the SQL mode.

use untorn::schema::ColumnDef;
use untorn::types::ColumnType;

use crate::context::SqlContext;
use crate::errors;
use crate::result::SqlError;
use crate::stored_values::{self, Storing};
use crate::value::Value;
use crate::value::convert::parse_number;
use crate::value::json::Json;

/// Longer spans are cut to this many hours, and are errors here.
const HOURS_END: u16 = 838;

/// What numbers a column has, as its errors name them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    Integer,
    Double,
    Decimal,
}

impl Numbers {
    fn of(kind: &ColumnType) -> Option<Numbers> {
        match kind {
            ColumnType::Decimal { .. } => Some(Numbers::Decimal),
            ColumnType::Float | ColumnType::Double => Some(Numbers::Double),
            ColumnType::Bit { .. } | ColumnType::Year => Some(Numbers::Integer),
            kind => kind.integer().map(|_| Numbers::Integer),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Numbers::Integer => "INTEGER",
            Numbers::Double => "DOUBLE",
            Numbers::Decimal => "DECIMAL",
        }
    }

    /// The number that a text says wholly.
    fn read(self, text: &str) -> Option<Value<'static>> {
        let number = || {
            let read = parse_number(text.as_bytes());
            let rest = text.get(read.length..).unwrap_or_default();
            let blank = rest.bytes().all(|byte| byte.is_ascii_whitespace());
            (read.length > 0 && !read.overflow && blank).then_some((read.value, rest.is_empty()))
        };
        match self {
            Numbers::Integer => match text.trim_ascii_start().parse::<i128>().ok()? {
                number if number < 0 => i64::try_from(number).ok().map(Value::Int),
                number => u64::try_from(number).ok().map(Value::UInt),
            },
            Numbers::Double if text.is_empty() => Some(Value::Double(0.0)),
            Numbers::Double => number().filter(|(_, whole)| *whole).map(|(value, _)| Value::Double(value)),
            Numbers::Decimal => number().map(|_| Value::Decimal(Value::text(text).to_decimal())),
        }
    }
}

/// A value of a document as one of a column.
///
/// # Errors
/// 3156 for what is no number, 3666 for an array or object, 3669 for what does not fit otherwise.
pub(crate) fn column_value(
    value: &Json,
    definition: &ColumnDef,
    state: &SqlContext,
) -> Result<Value<'static>, SqlError> {
    let kind = &definition.kind;
    match value {
        Json::Null => return Ok(Value::Null),
        value if *kind == ColumnType::Json => return value.clone().into_value(),
        Json::Array(_) | Json::Object(_) => {
            return Err(errors::error(errors::WRONG_JSON_TABLE_VALUE, &[&definition.name]));
        }
        _ => {}
    }
    let numbers = Numbers::of(kind);
    let number = match (numbers, value) {
        (Some(numbers), Json::Text(text)) => numbers.read(text),
        (Some(_), Json::Bool(_) | Json::Int(_) | Json::UInt(_) | Json::Double(_) | Json::Decimal(_)) => {
            value.scalar()
        }
        (None, Json::Bool(_)) if kind.is_temporal() => return Err(out_of_range(definition)),
        (None, Json::Time(_)) if kind.is_temporal() && !matches!(kind, ColumnType::Time { .. }) => {
            return Err(out_of_range(definition));
        }
        // What the digits of a day say as a time.
        (None, Json::Date(_)) if matches!(kind, ColumnType::Time { .. }) => {
            Some(Value::text(value.unquoted()))
        }
        (None, value) if kind.is_string() && !matches!(value, Json::Opaque(..)) => {
            Some(Value::text(value.unquoted()))
        }
        (None, value) => value.scalar(),
        (Some(_), _) => None,
    };
    match (number, numbers) {
        (Some(value), _) => match stored(&value, definition, state) {
            Err(error) if error.code == errors::JSON_TABLE_VALUE_OUT_OF_RANGE => {
                beginning(&value, kind, state).map_or(Err(error), |value| stored(&value, definition, state))
            }
            stored => stored,
        },
        (None, Some(numbers)) => Err(no_number(definition, numbers)),
        (None, None) => Ok(Value::Null),
    }
}

/// A default of a column: `null` is no number.
///
/// # Errors
/// Those of [`column_value`], 1067 for an array or object.
pub(crate) fn default_value(
    value: &Json,
    definition: &ColumnDef,
    state: &SqlContext,
) -> Result<Value<'static>, SqlError> {
    match (value, Numbers::of(&definition.kind)) {
        (value, _) if definition.kind == ColumnType::Json => value.clone().into_value(),
        (Json::Array(_) | Json::Object(_), _) => {
            Err(errors::error(errors::INVALID_DEFAULT, &[&definition.name]))
        }
        (Json::Null, Some(numbers)) => Err(no_number(definition, numbers)),
        _ => column_value(value, definition, state),
    }
}

/// A value as INSERT stores it.
///
/// # Errors
/// 3669 for what does not fit.
pub(crate) fn stored(
    value: &Value<'_>,
    definition: &ColumnDef,
    state: &SqlContext,
) -> Result<Value<'static>, SqlError> {
    let storing = Storing { state, table: "", row: 1, lenient: false };
    let mut bytes = Vec::new();
    match storing.encode(value, definition, &mut bytes) {
        Ok(()) => Ok(stored_values::decode(&bytes, &definition.kind, state.time_zone_offset()).into_owned()),
        Err(error) if is_of_value(error.code) => Err(out_of_range(definition)),
        Err(error) => Err(error),
    }
}

/// The day or time that a text begins with, whatever follows it.
fn beginning(value: &Value<'_>, kind: &ColumnType, state: &SqlContext) -> Option<Value<'static>> {
    match value {
        Value::Text(..) if matches!(kind, ColumnType::Time { .. }) => {
            let (span, digits) = value.to_time(state.today())?;
            (span.hours < HOURS_END).then_some(Value::Time(span, digits))
        }
        Value::Text(..) if kind.is_temporal() => {
            let (moment, digits) = value.to_datetime(state.today())?;
            Some(Value::DateTime(moment, digits))
        }
        _ => None,
    }
}

fn out_of_range(definition: &ColumnDef) -> SqlError {
    errors::error(errors::JSON_TABLE_VALUE_OUT_OF_RANGE, &[&definition.name])
}

fn no_number(definition: &ColumnDef, numbers: Numbers) -> SqlError {
    errors::error(errors::INVALID_JSON_VALUE_FOR_CAST, &[&numbers.name(), &definition.name, &1])
}

/// Whether an error says that a value does not fit its column.
fn is_of_value(code: u16) -> bool {
    matches!(
        code,
        errors::WARN_DATA_OUT_OF_RANGE
            | errors::WARN_DATA_TRUNCATED
            | errors::TRUNCATED_WRONG_VALUE
            | errors::TRUNCATED_WRONG_VALUE_FOR_FIELD
            | errors::DATA_TOO_LONG
    )
}
