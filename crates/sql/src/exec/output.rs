//! From stored bytes and values to the client.

use untorn::types::{self, ColumnType};

use crate::result::{self, ResultSink};
use crate::stored_values;
use crate::value::{Value, convert};

fn date(value: types::Date) -> result::Date {
    result::Date { year: value.year, month: value.month, day: value.day }
}

fn datetime(value: types::DateTime) -> result::DateTime {
    result::DateTime {
        year: value.date.year,
        month: value.date.month,
        day: value.date.day,
        hour: value.hour,
        minute: value.minute,
        second: value.second,
        microsecond: value.micros,
    }
}

fn time(value: types::Time) -> result::Time {
    result::Time {
        negative: value.negative,
        hours: u32::from(value.hours),
        minutes: value.minutes,
        seconds: value.seconds,
        microseconds: value.micros,
    }
}

/// A column of a stored row: integers and text go straight from the page to the sink.
#[inline]
pub fn stored<S: ResultSink>(sink: &mut S, bytes: Option<&[u8]>, kind: &ColumnType, time_zone: i32) {
    let Some(bytes) = bytes else { return sink.null() };
    match kind {
        ColumnType::Int { unsigned: false } | ColumnType::BigInt { unsigned: false } => {
            sink.int(stored_values::signed_int(bytes));
        }
        ColumnType::Char { collation, .. } => {
            sink.bytes(&collation.charset().to_utf8(stored_values::trimmed(bytes)));
        }
        ColumnType::VarChar { collation, .. } | ColumnType::Text { collation, .. } => {
            sink.bytes(&collation.charset().to_utf8(bytes));
        }
        ColumnType::Binary { .. }
        | ColumnType::VarBinary { .. }
        | ColumnType::Blob { .. }
        | ColumnType::Bit { .. } => sink.bytes(bytes),
        ColumnType::Decimal { precision, scale } => {
            let mut text = String::with_capacity(usize::from(*precision) + 3);
            match types::decimal::decode(bytes, *precision, *scale, &mut text) {
                Some(()) => sink.bytes(text.as_bytes()),
                None => sink.null(),
            }
        }
        kind => value(sink, &stored_values::decode(bytes, kind, time_zone)),
    }
}

/// A computed value.
pub fn value<S: ResultSink>(sink: &mut S, value: &Value<'_>) {
    match value {
        Value::Null => sink.null(),
        Value::Int(v) => sink.int(*v),
        Value::UInt(v) => sink.uint(*v),
        Value::Float(v) => sink.float(*v),
        Value::Double(v) => sink.double(*v),
        Value::Decimal(_) => sink.bytes(&value.to_text()),
        Value::Text(text, _) => sink.bytes(text),
        Value::Json(_) => sink.bytes(&value.to_text()),
        Value::Date(v) => sink.date(date(*v)),
        Value::DateTime(v, digits) => sink.datetime(datetime(*v), *digits),
        Value::Time(v, digits) => sink.time(time(*v), *digits),
    }
}

/// A value in the form its column was announced with: exact numbers get the announced digits, integers that
/// were announced as exact or floating become so.
pub fn announced<S: ResultSink>(sink: &mut S, computed: &Value<'_>, ty: &crate::expr::types::Type) {
    use crate::result::kind;
    match (computed, ty.kind) {
        (Value::Null, _) => sink.null(),
        (Value::Decimal(_) | Value::Int(_) | Value::UInt(_), kind::DOUBLE | kind::FLOAT) => {
            sink.double(computed.to_double())
        }
        (Value::Int(_) | Value::UInt(_) | Value::Decimal(_), kind::NEWDECIMAL) => {
            let exact = computed.to_decimal();
            let exact = crate::value::decimal::round(&exact, i64::from(ty.decimals));
            sink.bytes(crate::value::decimal::format(&exact).as_bytes());
        }
        (Value::Decimal(_) | Value::Double(_), kind::LONGLONG | kind::LONG) => {
            let wide = computed.to_integer();
            match u64::try_from(wide) {
                Ok(v) if ty.unsigned => sink.uint(v),
                _ => sink.int(wide.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64),
            }
        }
        (Value::Double(v), kind::NEWDECIMAL) => sink.bytes(convert::format_double(*v).as_bytes()),
        (
            Value::Int(_) | Value::UInt(_) | Value::Double(_) | Value::Float(_) | Value::Decimal(_),
            kind::VAR_STRING | kind::BLOB,
        ) => {
            sink.bytes(&computed.to_text());
        }
        (Value::Date(_) | Value::DateTime(..) | Value::Time(..), kind::VAR_STRING | kind::BLOB) => {
            sink.bytes(&computed.to_text());
        }
        _ => value(sink, computed),
    }
}
