//! Between values and the bytes that stand in records: integers, floats and strings here, the others in
//! `temporal.rs` and `decimal.rs`.

use std::borrow::Cow;

use btree::compare::compare_values;

use super::collation::{Charset, Collation};
use super::column_type::ColumnType;
use super::decimal::{self, DecimalError};
use super::temporal;
use super::value::Value;

/// Why a value does not fit its column. The SQL layer maps these to MySQL's error numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A number beyond the type's range.
    #[error("value is out of range for the column")]
    OutOfRange,
    /// Text or bytes longer than declared.
    #[error("value is longer than the column")]
    TooLong,
    /// Text that is not a value of the type (not a number, not UTF-8, not a member).
    #[error("value is not valid for the column's type")]
    Invalid,
    /// A value of a kind that the column does not take; convert it first.
    #[error("value is of another kind than the column")]
    WrongKind,
}

/// Appends an integer of `width` bytes in storage form (big-endian, sign bit flipped if signed). The value is
/// given as its two's-complement bits.
#[inline]
pub fn encode_int(bits: u64, width: usize, unsigned: bool, out: &mut Vec<u8>) {
    let flip = if unsigned { 0 } else { 1u64 << (8 * width - 1) };
    out.extend_from_slice(&(bits ^ flip).to_be_bytes()[8 - width..]);
}

fn integer(value: &Value<'_>, width: usize, unsigned: bool, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let wide: i128 = match value {
        Value::Int(v) => i128::from(*v),
        Value::UInt(v) => i128::from(*v),
        _ => return Err(EncodeError::WrongKind),
    };
    let bits = 8 * width as u32;
    let (min, max) =
        if unsigned { (0, (1i128 << bits) - 1) } else { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) };
    if wide < min || wide > max {
        return Err(EncodeError::OutOfRange);
    }
    encode_int(wide as u64, width, unsigned, out);
    Ok(())
}

/// A text as its column holds it, and how many characters it has.
fn characters(text: &[u8], collation: Collation) -> Result<(Cow<'_, [u8]>, usize), EncodeError> {
    if collation == Collation::Binary || text.is_ascii() {
        return Ok((Cow::Borrowed(text), text.len()));
    }
    let charset = collation.charset();
    if charset == Charset::Latin1 {
        let bytes = charset.from_utf8(text).map_err(|_| EncodeError::Invalid)?;
        let count = bytes.len();
        return Ok((bytes, count));
    }
    if charset.first_foreign(text).is_some() {
        return Err(EncodeError::Invalid);
    }
    let count = std::str::from_utf8(text).map_err(|_| EncodeError::Invalid)?.chars().count();
    Ok((Cow::Borrowed(text), count))
}

/// Bytes without trailing spaces.
fn trimmed(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|b| *b != b' ').map_or(0, |last| last + 1);
    &bytes[..end]
}

fn string(bytes: &[u8], kind: &ColumnType, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    match kind {
        ColumnType::Char { chars, collation } => {
            // Trailing spaces mean nothing in CHAR, so they never make a value too long.
            let (text, count) = characters(trimmed(bytes), *collation)?;
            if count > *chars as usize {
                return Err(EncodeError::TooLong);
            }
            out.extend_from_slice(&text);
            let pad = (*chars as usize).saturating_sub(text.len());
            out.resize(out.len() + pad, b' ');
        }
        ColumnType::VarChar { chars, collation } => {
            let (text, count) = characters(bytes, *collation)?;
            if count > *chars as usize {
                return Err(EncodeError::TooLong);
            }
            out.extend_from_slice(&text);
        }
        ColumnType::Binary { bytes: width } => {
            if bytes.len() > *width as usize {
                return Err(EncodeError::TooLong);
            }
            let end = out.len() + *width as usize;
            out.extend_from_slice(bytes);
            out.resize(end, 0);
        }
        ColumnType::VarBinary { bytes: most } => {
            if bytes.len() > *most as usize {
                return Err(EncodeError::TooLong);
            }
            out.extend_from_slice(bytes);
        }
        ColumnType::Text { size, collation } => {
            let (text, _) = characters(bytes, *collation)?;
            if text.len() as u64 > size.bytes_max() {
                return Err(EncodeError::TooLong);
            }
            out.extend_from_slice(&text);
        }
        ColumnType::Blob { size } => {
            if bytes.len() as u64 > size.bytes_max() {
                return Err(EncodeError::TooLong);
            }
            out.extend_from_slice(bytes);
        }
        ColumnType::Json => out.extend_from_slice(bytes),
        _ => return Err(EncodeError::WrongKind),
    }
    Ok(())
}

/// The member that a text names: itself, or else the first one that is equal to it.
fn member_of(members: &[String], name: &[u8], collation: Collation) -> Option<usize> {
    let equal = |member: &String| compare_values(collation.comparison(), member.as_bytes(), name).is_eq();
    let same = members.iter().position(|member| member.as_bytes() == name);
    same.or_else(|| members.iter().position(equal))
}

fn members(value: &Value<'_>, kind: &ColumnType, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let width = usize::from(kind.fixed_len().unwrap_or(1));
    let number = match (kind, value) {
        (ColumnType::Enum { members, collation }, Value::Bytes(name)) => {
            let at = member_of(members, trimmed(name), *collation);
            at.map(|at| at as u64 + 1).ok_or(EncodeError::Invalid)?
        }
        (ColumnType::Set { members, collation }, Value::Bytes(names)) => {
            let mut bits = 0;
            for name in names.split(|b| *b == b',').filter(|name| !name.is_empty()) {
                bits |= 1u64 << member_of(members, name, *collation).ok_or(EncodeError::Invalid)?;
            }
            bits
        }
        (_, Value::Int(v)) => u64::try_from(*v).map_err(|_| EncodeError::OutOfRange)?,
        (_, Value::UInt(v)) => *v,
        _ => return Err(EncodeError::WrongKind),
    };
    let most = match kind {
        ColumnType::Enum { members, .. } => members.len() as u64,
        ColumnType::Set { members, .. } => (1u128 << members.len()).wrapping_sub(1) as u64,
        ColumnType::Bit { bits } => ((1u128 << bits) - 1) as u64,
        _ => 0,
    };
    if number > most {
        return Err(EncodeError::OutOfRange);
    }
    encode_int(number, width, true, out);
    Ok(())
}

/// Appends the stored bytes of a value that is not NULL. The value must already be of the column's kind: text
/// for text, an integer for an integer column; only DECIMAL, ENUM and SET take text.
///
/// # Errors
/// What does not fit, see [`EncodeError`]; `out` may then hold a part of it.
pub fn encode(value: &Value<'_>, kind: &ColumnType, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    if let Some((width, unsigned)) = kind.integer() {
        return integer(value, width, unsigned, out);
    }
    match (kind, value) {
        (ColumnType::Float, Value::Float(v)) => out.extend_from_slice(&v.to_le_bytes()),
        (ColumnType::Float, Value::Double(v)) => out.extend_from_slice(&(*v as f32).to_le_bytes()),
        (ColumnType::Double, Value::Double(v)) => out.extend_from_slice(&v.to_le_bytes()),
        (ColumnType::Double, Value::Float(v)) => out.extend_from_slice(&f64::from(*v).to_le_bytes()),
        (ColumnType::Decimal { precision, scale }, value) => {
            let text: Cow<'_, str> = match value {
                Value::Decimal(text) => Cow::Borrowed(text),
                Value::Int(v) => Cow::Owned(v.to_string()),
                Value::UInt(v) => Cow::Owned(v.to_string()),
                Value::Bytes(text) => {
                    Cow::Borrowed(std::str::from_utf8(text).map_err(|_| EncodeError::Invalid)?)
                }
                _ => return Err(EncodeError::WrongKind),
            };
            decimal::encode(&text, *precision, *scale, out).map_err(|error| match error {
                DecimalError::Malformed => EncodeError::Invalid,
                DecimalError::OutOfRange => EncodeError::OutOfRange,
            })?;
        }
        (ColumnType::Date, Value::Date(v)) => temporal::encode_date(*v, out),
        (ColumnType::Date, Value::DateTime(v)) => temporal::encode_date(v.date, out),
        (ColumnType::DateTime { fraction }, Value::DateTime(v)) => {
            temporal::encode_datetime(*v, *fraction, out);
        }
        (ColumnType::DateTime { fraction }, Value::Date(v)) => {
            let midnight = temporal::DateTime { date: *v, ..Default::default() };
            temporal::encode_datetime(midnight, *fraction, out);
        }
        (ColumnType::Timestamp { fraction }, Value::DateTime(v)) => {
            temporal::encode_timestamp(*v, *fraction, out).ok_or(EncodeError::OutOfRange)?;
        }
        (ColumnType::Time { fraction }, Value::Time(v)) => temporal::encode_time(*v, *fraction, out),
        (ColumnType::Year, Value::Int(_) | Value::UInt(_)) => {
            let year = match value {
                Value::Int(v) => *v,
                Value::UInt(v) => i64::try_from(*v).map_err(|_| EncodeError::OutOfRange)?,
                _ => return Err(EncodeError::WrongKind),
            };
            match year {
                0 => out.push(0),
                1901..=2155 => out.push((year - 1900) as u8),
                _ => return Err(EncodeError::OutOfRange),
            }
        }
        (ColumnType::Enum { .. } | ColumnType::Set { .. } | ColumnType::Bit { .. }, value) => {
            members(value, kind, out)?;
        }
        (kind, Value::Bytes(bytes)) => string(bytes, kind, out)?,
        _ => return Err(EncodeError::WrongKind),
    }
    Ok(())
}

/// Reads an integer of 1 to 8 bytes in storage form.
#[inline]
pub(crate) fn decode_int(bytes: &[u8], unsigned: bool) -> Value<'static> {
    let raw = bytes.iter().fold(0u64, |sum, b| sum << 8 | u64::from(*b));
    if unsigned {
        return Value::UInt(raw);
    }
    let bits = 8 * bytes.len() as u32;
    let flipped = raw ^ (1u64 << (bits - 1));
    let shift = 64 - bits;
    Value::Int(((flipped << shift) as i64) >> shift)
}

/// The value that stored bytes mean. `None` if the bytes are not a value of the type, which is a sign of a
/// damaged page or of a wrong definition. CHAR comes without its trailing spaces.
pub fn decode<'a>(bytes: &'a [u8], kind: &ColumnType) -> Option<Value<'a>> {
    if let Some(len) = kind.fixed_len()
        && bytes.len() != usize::from(len)
    {
        return None;
    }
    if let Some((_, unsigned)) = kind.integer() {
        return Some(decode_int(bytes, unsigned));
    }
    Some(match kind {
        ColumnType::Float => Value::Float(f32::from_le_bytes(bytes.try_into().ok()?)),
        ColumnType::Double => Value::Double(f64::from_le_bytes(bytes.try_into().ok()?)),
        ColumnType::Decimal { precision, scale } => {
            let mut text = String::with_capacity(usize::from(*precision) + 3);
            decimal::decode(bytes, *precision, *scale, &mut text)?;
            Value::Decimal(Cow::Owned(text))
        }
        ColumnType::Date => Value::Date(temporal::decode_date(bytes)?),
        ColumnType::DateTime { .. } => Value::DateTime(temporal::decode_datetime(bytes)?),
        ColumnType::Timestamp { .. } => Value::DateTime(temporal::decode_timestamp(bytes)?),
        ColumnType::Time { .. } => Value::Time(temporal::decode_time(bytes)?),
        ColumnType::Year => match bytes[0] {
            0 => Value::UInt(0),
            year => Value::UInt(1900 + u64::from(year)),
        },
        ColumnType::Enum { members, .. } => {
            let Value::UInt(number) = decode_int(bytes, true) else { return None };
            let name = match number {
                0 => "",
                number => members.get(number as usize - 1)?,
            };
            Value::Bytes(Cow::Owned(name.as_bytes().to_vec()))
        }
        ColumnType::Set { members, .. } => {
            let Value::UInt(bits) = decode_int(bytes, true) else { return None };
            let mut names = Vec::new();
            for (_, name) in members.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1) {
                // As MySQL does: an empty name in front leaves no comma.
                if !names.is_empty() {
                    names.push(b',');
                }
                names.extend_from_slice(name.as_bytes());
            }
            Value::Bytes(Cow::Owned(names))
        }
        ColumnType::Char { collation, .. } => Value::Bytes(collation.charset().to_utf8(trimmed(bytes))),
        ColumnType::VarChar { collation, .. } | ColumnType::Text { collation, .. } => {
            Value::Bytes(collation.charset().to_utf8(bytes))
        }
        _ => Value::Bytes(Cow::Borrowed(bytes)),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::{Date, DateTime, Time};
    use super::*;

    fn stored(value: Value<'_>, kind: &ColumnType) -> Vec<u8> {
        let mut out = Vec::new();
        encode(&value, kind, &mut out).unwrap();
        out
    }

    #[test]
    fn documented_bytes() {
        assert_eq!(stored(Value::Int(1), &ColumnType::int()), [0x80, 0, 0, 1]);
        assert_eq!(stored(Value::Int(-1), &ColumnType::int()), [0x7f, 0xff, 0xff, 0xff]);
        let char5 = ColumnType::Char { chars: 5, collation: Collation::Utf8mb4Bin };
        assert_eq!(stored(Value::from("ab"), &char5), b"ab   ");
        let moment = DateTime { date: Date { year: 2024, month: 3, day: 1 }, ..Default::default() };
        let bytes = stored(Value::DateTime(moment), &ColumnType::DateTime { fraction: 0 });
        let packed = 0x80_0000_0000u64 + ((26315u64 << 22) | (1 << 17));
        assert_eq!(bytes, packed.to_be_bytes()[3..]);
    }

    #[test]
    fn times_round_trip_below_and_above_zero() {
        for fraction in 0..=6u8 {
            let unit = 10u32.pow(6 - u32::from(fraction));
            for negative in [false, true] {
                let time =
                    Time { negative, hours: 12, minutes: 34, seconds: 56, micros: 987_654 / unit * unit };
                let kind = ColumnType::Time { fraction };
                let bytes = stored(Value::Time(time), &kind);
                let back = decode(&bytes, &kind);
                let even = Time { micros: time.micros, ..time };
                assert_eq!(back, Some(Value::Time(even)), "fraction {fraction} negative {negative}");
            }
        }
    }

    #[test]
    fn unix_time_round_trips() {
        for seconds in [0i64, 1, 951_782_400, 1_709_251_199, 1_795_171_200, 4_294_967_295] {
            assert_eq!(DateTime::from_unix(seconds, 0).to_unix(), seconds);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut out = Vec::new();
        let tiny = ColumnType::TinyInt { unsigned: false };
        assert_eq!(encode(&Value::Int(128), &tiny, &mut out), Err(EncodeError::OutOfRange));
        assert_eq!(encode(&Value::from("abc"), &ColumnType::varchar(2), &mut out), Err(EncodeError::TooLong));
        assert_eq!(
            encode(&Value::bytes(b"\xff\xfe"), &ColumnType::varchar(2), &mut out),
            Err(EncodeError::Invalid)
        );
    }
}
