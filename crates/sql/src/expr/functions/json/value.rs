//! JSON_VALUE: one value of a document, as a value of SQL.
//!
//! The call is bound to a function of nine arguments: document, path, which type and its two numbers, and
//! twice what is answered instead (where nothing is found, and where it does not fit), each with its default.

use untorn::types::Collation;

use super::{Call, call};
use crate::errors;
use crate::expr::Context;
use crate::expr::functions::{Function, function, round_datetime, round_time};
use crate::expr::types::Type;
use crate::result::SqlError;
use crate::value::convert::parse_number;
use crate::value::json::Json;
use crate::value::{Value, decimal};

/// Characters of a result whose type is not said.
pub const BYTES_MAX: u32 = 512;

pub const OF_SIGNED: i64 = 0;
pub const OF_UNSIGNED: i64 = 1;
pub const OF_TEXT: i64 = 2;
pub const OF_DECIMAL: i64 = 3;
pub const OF_DOUBLE: i64 = 4;
pub const OF_FLOAT: i64 = 5;
pub const OF_DATE: i64 = 6;
pub const OF_DATETIME: i64 = 7;
pub const OF_TIME: i64 = 8;
pub const OF_YEAR: i64 = 9;
pub const OF_JSON: i64 = 10;

/// Instead of a value: NULL, an error, the default.
pub const NULL: i64 = 0;
pub const ERROR: i64 = 1;
pub const DEFAULT: i64 = 2;

/// Names of the types in errors, by their numbers.
const NAMES: [&str; 11] = [
    "SIGNED", "UNSIGNED", "STRING", "DECIMAL", "DOUBLE", "FLOAT", "DATE", "DATETIME", "TIME", "YEAR", "JSON",
];

/// JSON_VALUE, bound.
pub static VALUE: Function = function!("JSON_VALUE", 9..=9, |_| Type::text(BYTES_MAX), |v, cx| {
    let found = call(v, cx, "json_value", |call| find(call, cx).map(Some), Ok)?;
    Ok(found)
});

fn find<'a>(call: &mut Call<'_, 'a>, cx: &Context<'_>) -> Result<Value<'a>, SqlError> {
    let values = call.values;
    let instead = |at: usize, error: SqlError| match values[at].to_i64() {
        NULL => Ok(Value::Null),
        DEFAULT => Ok(values[at + 1].clone()),
        _ => Err(error),
    };
    let (on_empty, on_error) = (5, 7);
    let document = match call.document(0) {
        Ok(document) => document,
        Err(error) => return instead(on_error, error),
    };
    let Some(path) = call.path(1)? else { return Ok(Value::Null) };
    let Some(document) = document else { return Ok(Value::Null) };
    let found = document.seek(&path, &mut call.room)?;
    let value = match found[..] {
        [] => return instead(on_empty, errors::error(errors::MISSING_JSON_VALUE, &[&call.name])),
        [value] => value,
        _ => return instead(on_error, errors::error(errors::MULTIPLE_JSON_VALUES, &[&call.name])),
    };
    if *value == Json::Null {
        return Ok(Value::Null);
    }
    let kind = values[2].to_i64();
    match as_type(value, kind, values[3].to_i64(), values[4].to_i64(), cx)? {
        Some(value) => Ok(value),
        None => {
            let name =
                usize::try_from(kind).ok().and_then(|kind| NAMES.get(kind)).copied().unwrap_or_default();
            instead(on_error, errors::error(errors::DATA_OUT_OF_RANGE, &[&name, &call.name]))
        }
    }
}

/// A value of a document as one of this type, if it is one.
fn as_type(
    json: &Json,
    kind: i64,
    first: i64,
    second: i64,
    cx: &Context<'_>,
) -> Result<Option<Value<'static>>, SqlError> {
    if kind == OF_JSON {
        return json.clone().into_value().map(|value| Some(value.into_owned()));
    }
    let nested = matches!(json, Json::Array(_) | Json::Object(_));
    let text = match json {
        Json::Bool(truth) if kind != OF_TEXT => u8::from(*truth).to_string(),
        other => other.unquoted(),
    };
    if kind == OF_TEXT {
        let fits = text.chars().count() as i64 <= first;
        return Ok(fits.then(|| Value::Text(text.into_bytes().into(), Collation::Utf8mb4Bin)));
    }
    if nested {
        return Ok(None);
    }
    let value = Value::text(text);
    let number = || {
        let bytes = value.to_text();
        let known = parse_number(&bytes);
        known.length > 0 && bytes[known.length..].iter().all(u8::is_ascii_whitespace)
    };
    let today = cx.state.today();
    Ok(match kind {
        OF_SIGNED | OF_UNSIGNED if number() => {
            let whole = decimal::to_integer(&decimal::round(&value.to_decimal(), 0));
            match kind {
                OF_SIGNED => i64::try_from(whole).ok().map(Value::Int),
                _ => u64::try_from(whole).ok().map(Value::UInt),
            }
        }
        OF_DECIMAL if number() => {
            let rounded = decimal::round(&value.to_decimal(), second);
            let limit = crate::expr::types::clamp_decimal(rounded.clone(), first as u8, second as u8);
            (limit == rounded).then_some(Value::Decimal(rounded))
        }
        OF_DOUBLE if number() => Some(Value::Double(value.to_double())),
        OF_FLOAT if number() => Some(Value::Float(value.to_double() as f32)).filter(|value| match value {
            Value::Float(float) => float.is_finite(),
            _ => false,
        }),
        OF_YEAR if number() => {
            let year = value.to_whole();
            (year == 0 || (1901..=2155).contains(&year)).then_some(Value::UInt(year as u64))
        }
        OF_DATE => value.to_datetime(today).map(|(moment, _)| Value::Date(moment.date)),
        OF_DATETIME => value
            .to_datetime(today)
            .map(|(moment, _)| Value::DateTime(round_datetime(moment, first as u8), first as u8)),
        OF_TIME => {
            value.to_time(today).map(|(span, _)| Value::Time(round_time(span, first as u8), first as u8))
        }
        _ => None,
    })
}
