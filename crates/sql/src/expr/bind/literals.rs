//! Values that stand in the text.

use untorn::types::Collation;

use super::Bound;
use crate::ast::TemporalKind;
use crate::context::SqlContext;
use crate::expr::types::Type;
use crate::expr::{Expr, functions};
use crate::result::SqlError;
use crate::sql_mode;
use crate::value::temporal::time_micros;
use crate::value::{DateTime, Time, Value, decimal, temporal, temporal_literal};

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

pub(super) fn temporal_value(kind: TemporalKind, text: &[u8], state: &SqlContext) -> Result<Bound, SqlError> {
    let wrong = || temporal_literal::wrong(kind, text);
    // What the catalog keeps may be of an older rule.
    let plain = temporal_literal::read(kind, text);
    let text = plain.as_deref().unwrap_or(text);
    let today = state.today();
    let taken = |moment: DateTime| {
        let zero = moment.date.month == 0 || moment.date.day == 0;
        // One with a time is not the zero date, though its date is.
        let midnight = DateTime { date: moment.date, ..DateTime::default() };
        let refused = match moment == midnight {
            true => state.refuses_zero_dates(moment.date),
            false => state.settings().sql_mode & sql_mode::NO_ZERO_IN_DATE != 0,
        };
        !(zero && refused)
    };
    Ok(match kind {
        TemporalKind::Date => {
            let day = temporal::parse_datetime(text, today).filter(|(moment, ..)| taken(*moment));
            let (moment, ..) = day.filter(|_| !temporal::has_offset(text)).ok_or_else(wrong)?;
            (Expr::Literal(Value::Date(moment.date)), Type::DATE.not_null())
        }
        TemporalKind::DateTime => {
            let read = temporal::parse_datetime(text, today).filter(|(moment, ..)| taken(*moment));
            let (moment, digits, _) = read.ok_or_else(wrong)?;
            if temporal::has_offset(text) {
                // Where it is depends on the zone of the session that executes it.
                let text = Expr::Literal(Value::text(String::from_utf8_lossy(text).into_owned()));
                return Ok((Expr::Call(&functions::IN_ZONE, vec![text]), Type::datetime(digits)));
            }
            (Expr::Literal(Value::DateTime(moment, digits)), Type::datetime(digits).not_null())
        }
        TemporalKind::Time => {
            let (span, digits, _) = temporal::parse_time(text, today).ok_or_else(wrong)?;
            // There is one zero.
            let span = Time { negative: span.negative && time_micros(span) != 0, ..span };
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
