//! Values that stand in the text.

use untorn::types::Collation;

use super::Bound;
use crate::ast::TemporalKind;
use crate::errors;
use crate::expr::Expr;
use crate::expr::types::Type;
use crate::result::SqlError;
use crate::value::{Value, decimal, temporal};

pub(super) fn integer_literal(value: u64) -> Bound {
    let length = value.to_string().len() as u32;
    match i64::try_from(value) {
        Ok(signed) => (Expr::Literal(Value::Int(signed)), Type { length, ..Type::INT }.not_null()),
        Err(_) => (Expr::Literal(Value::UInt(value)), Type { length, ..Type::UINT }.not_null()),
    }
}

pub(super) fn decimal_literal(text: &str) -> Bound {
    match decimal::parse(text) {
        Some(value) => {
            let scale = decimal::scale(&value);
            let precision = text.bytes().filter(u8::is_ascii_digit).count().clamp(1, 65) as u8;
            (Expr::Literal(Value::Decimal(value)), Type::decimal(precision.max(scale), scale).not_null())
        }
        None => (Expr::Literal(Value::Double(text.parse().unwrap_or(0.0))), Type::DOUBLE.not_null()),
    }
}

pub(super) fn text_literal(bytes: &[u8], rule: Collation) -> Bound {
    let length = crate::expr::collation::char_count(bytes, rule) as u32;
    let ty = Type { collation: rule, ..Type::text(length) }.not_null();
    (Expr::Literal(Value::Text(bytes.to_vec().into(), rule)), ty)
}

pub(super) fn temporal_literal(kind: TemporalKind, text: &[u8]) -> Result<Bound, SqlError> {
    let wrong = |kind: &str| {
        let mut error =
            errors::error(errors::TRUNCATED_WRONG_VALUE, &[&kind, &String::from_utf8_lossy(text)]);
        error.message = format!("Incorrect {kind} value: '{}'", String::from_utf8_lossy(text)).into();
        error
    };
    Ok(match kind {
        TemporalKind::Date => {
            let (moment, ..) = temporal::parse_datetime(text).ok_or_else(|| wrong("DATE"))?;
            (Expr::Literal(Value::Date(moment.date)), Type::DATE.not_null())
        }
        TemporalKind::DateTime => {
            let (moment, digits, _) = temporal::parse_datetime(text).ok_or_else(|| wrong("DATETIME"))?;
            (Expr::Literal(Value::DateTime(moment, digits)), Type::datetime(digits).not_null())
        }
        TemporalKind::Time => {
            let (span, digits, _) = temporal::parse_time(text).ok_or_else(|| wrong("TIME"))?;
            (Expr::Literal(Value::Time(span, digits)), Type::time(digits).not_null())
        }
    })
}

/// The type of a value at hand.
pub fn value_type(value: &Value<'_>) -> Type {
    match value {
        Value::Null => Type::NULL,
        Value::Int(_) => Type::INT,
        Value::UInt(_) => Type::UINT,
        Value::Float(_) | Value::Double(_) => Type::DOUBLE,
        Value::Decimal(v) => {
            let text = decimal::format(v);
            let digits = text.bytes().filter(u8::is_ascii_digit).count().clamp(1, 65) as u8;
            Type::decimal(digits, decimal::scale(v))
        }
        Value::Text(text, rule) => {
            Type { collation: *rule, ..Type::text(crate::expr::collation::char_count(text, *rule) as u32) }
        }
        Value::Date(_) => Type::DATE,
        Value::DateTime(_, digits) => Type::datetime(*digits),
        Value::Time(_, digits) => Type::time(*digits),
        Value::Json(_) => Type::JSON,
    }
}
