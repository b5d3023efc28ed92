//! Values as bytes, for rows that wait in a sorter or are spilled to disk: what is read back is what was
//! written, kind for kind.

use std::borrow::Cow;

use untorn::types::{Collation, Date, DateTime, Time};

use crate::value::{Value, decimal};

/// Appends a byte string with its length.
pub fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_ne_bytes());
    out.extend_from_slice(bytes);
}

/// Takes a byte string; `None` at the end.
pub fn take_bytes<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (length, tail) = rest.split_first_chunk()?;
    let (bytes, tail) = tail.split_at_checked(u32::from_ne_bytes(*length) as usize)?;
    *rest = tail;
    Some(bytes)
}

fn put_date(date: Date, out: &mut Vec<u8>) {
    out.extend_from_slice(&date.year.to_ne_bytes());
    out.extend_from_slice(&[date.month, date.day]);
}

/// Appends a value.
pub fn put(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(0),
        Value::Int(v) => {
            out.push(1);
            out.extend_from_slice(&v.to_ne_bytes());
        }
        Value::UInt(v) => {
            out.push(2);
            out.extend_from_slice(&v.to_ne_bytes());
        }
        Value::Float(v) => {
            out.push(3);
            out.extend_from_slice(&v.to_ne_bytes());
        }
        Value::Double(v) => {
            out.push(4);
            out.extend_from_slice(&v.to_ne_bytes());
        }
        Value::Decimal(v) => {
            out.push(5);
            put_bytes(decimal::format(v).as_bytes(), out);
        }
        Value::Text(text, collation) => {
            out.push(6);
            out.push(Collation::all().position(|known| known == *collation).unwrap_or(0) as u8);
            put_bytes(text, out);
        }
        Value::Date(v) => {
            out.push(7);
            put_date(*v, out);
        }
        Value::DateTime(v, digits) => {
            out.push(8);
            put_date(v.date, out);
            out.extend_from_slice(&[v.hour, v.minute, v.second, *digits]);
            out.extend_from_slice(&v.micros.to_ne_bytes());
        }
        Value::Time(v, digits) => {
            out.push(9);
            out.extend_from_slice(&[u8::from(v.negative), v.minutes, v.seconds, *digits]);
            out.extend_from_slice(&v.hours.to_ne_bytes());
            out.extend_from_slice(&v.micros.to_ne_bytes());
        }
        Value::Json(bytes) => {
            out.push(10);
            put_bytes(bytes, out);
        }
    }
}

fn chunk<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*bytes)
}

fn take_date(rest: &mut &[u8]) -> Option<Date> {
    let year = u16::from_ne_bytes(chunk(rest)?);
    let [month, day] = chunk(rest)?;
    Some(Date { year, month, day })
}

/// Takes a value; `None` at the end.
pub fn take<'b>(rest: &mut &'b [u8]) -> Option<Value<'b>> {
    let [kind] = chunk(rest)?;
    Some(match kind {
        1 => Value::Int(i64::from_ne_bytes(chunk(rest)?)),
        2 => Value::UInt(u64::from_ne_bytes(chunk(rest)?)),
        3 => Value::Float(f32::from_ne_bytes(chunk(rest)?)),
        4 => Value::Double(f64::from_ne_bytes(chunk(rest)?)),
        5 => Value::Decimal(decimal::parse(std::str::from_utf8(take_bytes(rest)?).ok()?)?),
        6 => {
            let [collation] = chunk(rest)?;
            Value::Text(Cow::Borrowed(take_bytes(rest)?), Collation::all().nth(usize::from(collation))?)
        }
        7 => Value::Date(take_date(rest)?),
        8 => {
            let date = take_date(rest)?;
            let [hour, minute, second, digits] = chunk(rest)?;
            let micros = u32::from_ne_bytes(chunk(rest)?);
            Value::DateTime(DateTime { date, hour, minute, second, micros }, digits)
        }
        10 => Value::Json(Cow::Borrowed(take_bytes(rest)?)),
        9 => {
            let [negative, minutes, seconds, digits] = chunk(rest)?;
            let hours = u16::from_ne_bytes(chunk(rest)?);
            let micros = u32::from_ne_bytes(chunk(rest)?);
            Value::Time(Time { negative: negative != 0, hours, minutes, seconds, micros }, digits)
        }
        _ => Value::Null,
    })
}

/// All values that are left.
pub fn take_all(mut rest: &[u8]) -> Vec<Value<'static>> {
    let mut values = Vec::new();
    while let Some(value) = take(&mut rest) {
        values.push(value.into_owned());
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let date = Date { year: 2024, month: 0, day: 31 };
        let moment = DateTime { date, hour: 23, minute: 59, second: 58, micros: 999_999 };
        let time = Time { negative: true, hours: 838, minutes: 1, seconds: 2, micros: 3 };
        let mut values = vec![
            Value::Null,
            Value::Int(i64::MIN),
            Value::UInt(u64::MAX),
            Value::Float(-0.5),
            Value::Double(1e300),
            Value::Date(date),
            Value::DateTime(moment, 6),
            Value::Time(time, 3),
        ];
        for text in ["0", "-1.50", "12345678901234567890.000"] {
            values.push(Value::Decimal(decimal::parse(text).unwrap_or_default()));
        }
        for collation in Collation::all() {
            values.push(Value::Text(Cow::Borrowed(b"\0a\xff"), collation));
        }
        let mut bytes = Vec::new();
        values.iter().for_each(|value| put(value, &mut bytes));
        let read = take_all(&bytes);
        assert_eq!(format!("{read:?}"), format!("{values:?}"));
    }
}
