//! Comparing values of different kinds, by MySQL's rules:
//!
//! text with text by collation; integers exactly, whatever their signs; exact numbers exactly; a date or time
//! with another, or with text that is one, as moments; a JSON document with anything as documents; anything
//! else as doubles.

use std::cmp::Ordering;

use untorn::types::{Collation, Date, DateTime, Time};

use super::json::{binary, compared};
use super::temporal::Today;
use super::{Value, collation, temporal};

/// Compares two values; `None` when one is NULL.
pub fn compare(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    use Value::{Decimal, Double, Float, Int, Json, Null, Text, UInt};
    Some(match (left, right) {
        (Null, _) | (_, Null) => return None,
        (Int(a), Int(b)) => a.cmp(b),
        (UInt(a), UInt(b)) => a.cmp(b),
        (Int(a), UInt(b)) => i128::from(*a).cmp(&i128::from(*b)),
        (UInt(a), Int(b)) => i128::from(*a).cmp(&i128::from(*b)),
        (Json(a), Json(b)) if a == b => Ordering::Equal,
        (Json(_), _) | (_, Json(_)) => compared(left).order(&compared(right)),
        (Text(a, ca), Text(b, cb)) => collation::compare(a, b, collation::common(*ca, *cb)),
        (Int(_) | UInt(_), Text(..)) => integer_and_text(left, right),
        (Text(..), Int(_) | UInt(_)) => integer_and_text(right, left).reverse(),
        (a, b) if a.is_temporal() || b.is_temporal() => compare_temporal(a, b),
        (Double(_) | Float(_) | Text(..), _) | (_, Double(_) | Float(_) | Text(..)) => doubles(left, right),
        (Decimal(a), Decimal(b)) => a.cmp(b),
        (a, b) => a.to_decimal().cmp(&b.to_decimal()),
    })
}

/// Integers below are doubles without a loss: 2^53.
const EXACT_MAX: u128 = 1 << 53;

/// An integer that a double cannot tell from its neighbours is compared with all its digits.
fn integer_and_text(integer: &Value<'_>, text: &Value<'_>) -> Ordering {
    if integer.to_integer().unsigned_abs() < EXACT_MAX {
        return doubles(integer, text);
    }
    integer.to_decimal().cmp(&text.to_decimal())
}

fn doubles(left: &Value<'_>, right: &Value<'_>) -> Ordering {
    left.to_double().partial_cmp(&right.to_double()).unwrap_or(Ordering::Equal)
}

fn compare_temporal(left: &Value<'_>, right: &Value<'_>) -> Ordering {
    use Value::Time;
    if let (Time(a, _), Time(b, _)) = (left, right) {
        return temporal::time_micros(*a).cmp(&temporal::time_micros(*b));
    }
    if right.is_number() {
        return temporal_and_number(left, right).unwrap_or_else(|| doubles(left, right));
    }
    if left.is_number() {
        return temporal_and_number(right, left).map_or_else(|| doubles(left, right), Ordering::reverse);
    }
    if matches!(left, Time(..)) || matches!(right, Time(..)) {
        let (a, b) = (left.to_time(Today::default()), right.to_time(Today::default()));
        return match (a, b) {
            (Some((a, _)), Some((b, _))) => temporal::time_micros(a).cmp(&temporal::time_micros(b)),
            _ => collation::compare(&left.to_text(), &right.to_text(), left.collation()),
        };
    }
    // A text that is no moment counts as the zero date.
    let moment = |value: &Value<'_>| key(value.to_datetime(Today::default()).unwrap_or_default().0);
    moment(left).cmp(&moment(right))
}

/// [`compare`] as `=` and its like do it: a text that is a day, or not a span as a whole, is none, so it and
/// a span are two texts.
pub fn compare_two(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    match (left, right) {
        (Value::Time(span, _), Value::Text(text, rule)) => Some(span_and_text(*span, left, (text, *rule))),
        (Value::Text(text, rule), Value::Time(span, _)) => {
            Some(span_and_text(*span, right, (text, *rule)).reverse())
        }
        _ => compare(left, right),
    }
}

fn span_and_text(span: Time, said: &Value<'_>, (text, rule): (&[u8], Collation)) -> Ordering {
    let read = temporal::parse_time(text, Today::default()).filter(|(.., cut)| !cut);
    match read.filter(|_| !temporal::is_only_day(text)) {
        Some((other, ..)) => temporal::time_micros(span).cmp(&temporal::time_micros(other)),
        None => collation::compare(&said.to_text(), text, rule),
    }
}

/// A number is the date or time that it spells, if it spells one.
fn temporal_and_number(left: &Value<'_>, number: &Value<'_>) -> Option<Ordering> {
    if let Value::Time(span, _) = left {
        let (other, _) = number.to_time(Today::default())?;
        return Some(temporal::time_micros(*span).cmp(&temporal::time_micros(other)));
    }
    let (moment, _) = left.to_datetime(Today::default())?;
    let (other, _) = number.to_datetime(Today::default())?;
    Some(key(moment).cmp(&key(other)))
}

/// Field order, which also orders dates with zero parts.
fn key(value: DateTime) -> (Date, u8, u8, u8, u32) {
    (value.date, value.hour, value.minute, value.second, value.micros)
}

/// `<=>`.
pub fn null_safe_equal(left: &Value<'_>, right: &Value<'_>) -> bool {
    match (left.is_null(), right.is_null()) {
        (true, true) => true,
        (false, false) => compare_two(left, right) == Some(Ordering::Equal),
        _ => false,
    }
}

/// A value that many others are compared with.
pub struct Wanted<'v> {
    value: Value<'v>,
    /// Length of a long text without the spaces at its end.
    trimmed: usize,
}

/// Texts from this length on are compared without what equality ignores.
const LONG_BYTES: usize = 256;

impl<'v> Wanted<'v> {
    /// The value, which stays where it is.
    pub fn new(value: &'v Value<'_>) -> Wanted<'v> {
        let trimmed = match value {
            Value::Text(text, rule) if text.len() >= LONG_BYTES => collation::trimmed(text, *rule).len(),
            _ => 0,
        };
        Wanted { value: value.borrowed(), trimmed }
    }

    /// Whether `other` equals it; `None` when one is NULL. The time it takes depends on `other`.
    pub fn is_equal(&self, other: &Value<'_>) -> Option<bool> {
        if let (Value::Text(left, a), Value::Text(right, b)) = (&self.value, other)
            && left.len() >= LONG_BYTES
        {
            let rule = collation::common(*a, *b);
            let left = if rule == Collation::Binary { left } else { &left[..self.trimmed] };
            return Some(collation::equal_to_trimmed(left, right, rule));
        }
        compare(&self.value, other).map(Ordering::is_eq)
    }
}

/// Orders for ORDER BY: NULL first.
pub fn order(left: &Value<'_>, right: &Value<'_>) -> Ordering {
    compare(left, right).unwrap_or_else(|| right.is_null().cmp(&left.is_null()))
}

/// Appends bytes that are equal for values that compare equal *within one column* (all of the same kind), for
/// GROUP BY, DISTINCT and hash tables.
pub fn group_key(value: &Value<'_>, key: &mut Vec<u8>) {
    match value {
        Value::Null => key.push(0),
        Value::Text(text, rule) => {
            key.push(1);
            collation::sort_key(text, *rule, key);
        }
        Value::Int(v) => {
            key.push(2);
            key.extend_from_slice(&i128::from(*v).to_be_bytes());
        }
        Value::UInt(v) => {
            key.push(2);
            key.extend_from_slice(&i128::from(*v).to_be_bytes());
        }
        Value::Decimal(v) => {
            key.push(3);
            key.extend_from_slice(v.normalized().to_plain_string().as_bytes());
            key.push(0);
        }
        Value::Float(_) | Value::Double(_) => {
            key.push(4);
            // Minus zero equals zero.
            key.extend_from_slice(&(value.to_double() + 0.0).to_bits().to_be_bytes());
        }
        Value::Json(bytes) => {
            key.push(6);
            binary::decoded(bytes).group_key(key);
        }
        Value::Date(_) | Value::DateTime(..) | Value::Time(..) => {
            key.push(5);
            match value.to_datetime(Today::of(Date { year: 1, month: 1, day: 1 })) {
                Some((moment, _)) => {
                    key.extend_from_slice(&temporal::datetime_number(moment).to_be_bytes());
                    key.extend_from_slice(&moment.micros.to_be_bytes());
                }
                None => key.extend_from_slice(&value.to_text()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_meet() {
        let text = |t: &'static str| Value::text(t);
        let equal = Some(Ordering::Equal);
        assert_eq!(compare(&text("abc"), &text("ABC  ")), equal);
        assert_eq!(compare(&text("10"), &Value::Int(10)), equal);
        assert_eq!(compare(&Value::Int(-1), &Value::UInt(u64::MAX)), Some(Ordering::Less));
        assert_eq!(compare(&Value::Null, &Value::Int(1)), None);
        let day = Value::Date(Date { year: 2024, month: 1, day: 2 });
        assert_eq!(compare(&day, &text("2024-1-2")), equal);
        assert_eq!(compare(&day, &Value::Int(20_240_102)), equal);
        let bytes = Value::Text(b"a ".as_slice().into(), Collation::Binary);
        assert_eq!(compare(&bytes, &text("a")), Some(Ordering::Greater));
        assert!(null_safe_equal(&Value::Null, &Value::Null));
        assert_eq!(order(&Value::Null, &Value::Int(i64::MIN)), Ordering::Less);
    }
}
