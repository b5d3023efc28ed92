//! MySQL's binary form of documents.
//!
//! A byte for the type, then the value. An array is: number of elements, size in bytes, an entry for each
//! element, the values. An object has the entries of its keys (offset and length) before those of its values,
//! and the keys before the values. Numbers, sizes and offsets have two bytes (the small form) or four (the
//! large one, where the small one is not enough); offsets count from the number of elements. Of a value that
//! fits the entry has the value itself instead of the offset. All is little-endian.

use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::BigInt;
use untorn::types::{Date, DateTime, Time};

use super::{DEPTH_MAX, Json, Members, too_deep};
use crate::errors;
use crate::result::{SqlError, kind};

const SMALL_OBJECT: u8 = 0;
const LARGE_OBJECT: u8 = 1;
const SMALL_ARRAY: u8 = 2;
const LARGE_ARRAY: u8 = 3;
const LITERAL: u8 = 4;
const INT16: u8 = 5;
const UINT16: u8 = 6;
const INT32: u8 = 7;
const UINT32: u8 = 8;
const INT64: u8 = 9;
const UINT64: u8 = 10;
const DOUBLE: u8 = 11;
const TEXT: u8 = 12;
const OPAQUE: u8 = 15;

/// Longest key.
pub(crate) const KEY_BYTES_MAX: usize = u16::MAX as usize;

/// Why a value was not written.
enum Failure {
    /// The small form is not enough.
    TooLong,
    /// Nor is any other.
    Error(SqlError),
}

/// Writes a document.
pub(crate) fn encode(value: &Json) -> Result<Vec<u8>, SqlError> {
    let mut out = vec![0];
    let kind = put(value, false, 0, &mut out).map_err(|failure| match failure {
        Failure::Error(error) => error,
        Failure::TooLong => errors::error(errors::OUT_OF_RESOURCES, &[]),
    })?;
    out[0] = kind;
    Ok(out)
}

/// Appends a value without its type, which it returns. `inside_small`: in a list of the small form, which a
/// list of the large form cannot be in.
fn put(value: &Json, inside_small: bool, depth: usize, out: &mut Vec<u8>) -> Result<u8, Failure> {
    let (kind, bytes): (u8, &[u8]) = match value {
        Json::Null => (LITERAL, &[0]),
        Json::Bool(true) => (LITERAL, &[1]),
        Json::Bool(false) => (LITERAL, &[2]),
        Json::Int(number) => match (i16::try_from(*number), i32::try_from(*number)) {
            (Ok(number), _) => (INT16, &number.to_le_bytes()),
            (_, Ok(number)) => (INT32, &number.to_le_bytes()),
            _ => (INT64, &number.to_le_bytes()),
        },
        Json::UInt(number) => match (u16::try_from(*number), u32::try_from(*number)) {
            (Ok(number), _) => (UINT16, &number.to_le_bytes()),
            (_, Ok(number)) => (UINT32, &number.to_le_bytes()),
            _ => (UINT64, &number.to_le_bytes()),
        },
        Json::Double(number) => (DOUBLE, &number.to_le_bytes()),
        Json::Text(text) => {
            put_length(text.len(), out);
            (TEXT, text.as_bytes())
        }
        Json::Opaque(kind, bytes) => return Ok(put_opaque(*kind, bytes, out)),
        Json::Decimal(number) => return Ok(put_opaque(kind::NEWDECIMAL, &decimal_bytes(number), out)),
        Json::Date(date) => {
            let moment = DateTime { date: *date, ..DateTime::default() };
            return Ok(put_opaque(kind::DATE, &moment_bytes(moment), out));
        }
        Json::DateTime(moment) => return Ok(put_opaque(kind::DATETIME, &moment_bytes(*moment), out)),
        Json::Time(span) => return Ok(put_opaque(kind::TIME, &span_bytes(*span), out)),
        Json::Array(_) | Json::Object(_) => return put_list(value, inside_small, depth, out),
    };
    out.extend_from_slice(bytes);
    Ok(kind)
}

fn put_list(value: &Json, inside_small: bool, depth: usize, out: &mut Vec<u8>) -> Result<u8, Failure> {
    if depth >= DEPTH_MAX {
        return Err(Failure::Error(too_deep()));
    }
    let (small, large) = match value {
        Json::Array(_) => (SMALL_ARRAY, LARGE_ARRAY),
        _ => (SMALL_OBJECT, LARGE_OBJECT),
    };
    let start = out.len();
    match put_form(value, false, depth, out) {
        Ok(()) => Ok(small),
        Err(Failure::TooLong) if !inside_small => {
            out.truncate(start);
            put_form(value, true, depth, out).map(|()| large)
        }
        Err(failure) => Err(failure),
    }
}

/// Appends a list in one of the forms.
fn put_form(value: &Json, large: bool, depth: usize, out: &mut Vec<u8>) -> Result<(), Failure> {
    let start = out.len();
    let width = if large { 4 } else { 2 };
    put_number(value.length(), large, out)?;
    put_number(0, large, out)?;
    if let Json::Object(members) = value {
        let keys = members.len();
        let mut offset = 2 * width + keys * (width + 2) + keys * (1 + width);
        for (key, _) in members.iter() {
            if key.len() > KEY_BYTES_MAX {
                return Err(Failure::Error(errors::error(errors::JSON_KEY_TOO_BIG, &[])));
            }
            put_number(offset, large, out)?;
            out.extend_from_slice(&(key.len() as u16).to_le_bytes());
            offset += key.len();
        }
    }
    let mut entry = out.len();
    out.resize(entry + value.length() * (1 + width), 0);
    if let Json::Object(members) = value {
        members.iter().for_each(|(key, _)| out.extend_from_slice(key.as_bytes()));
    }
    let mut each = |value: &Json| {
        let (at, offset) = (out.len(), out.len() - start);
        let kind = put(value, !large, depth + 1, out)?;
        out[entry] = kind;
        let scalar = matches!(kind, LITERAL | INT16 | UINT16 | INT32 | UINT32);
        if scalar && out.len() - at <= width {
            // Beside the type, with the sign of a narrower number.
            let negative = kind == INT16 && out[out.len() - 1] & 0x80 != 0;
            for byte in 0..width {
                out[entry + 1 + byte] = match out.get(at + byte) {
                    Some(byte) => *byte,
                    None if negative => 0xff,
                    None => 0,
                };
            }
            out.truncate(at);
        } else {
            set_number(offset, large, entry + 1, out)?;
        }
        entry += 1 + width;
        Ok(())
    };
    match value {
        Json::Array(list) => list.iter().try_for_each(each)?,
        Json::Object(members) => members.iter().try_for_each(|(_, value)| each(value))?,
        _ => {}
    }
    let size = out.len() - start;
    set_number(size, large, start + width, out)
}

fn put_number(number: usize, large: bool, out: &mut Vec<u8>) -> Result<(), Failure> {
    let at = out.len();
    out.resize(at + if large { 4 } else { 2 }, 0);
    set_number(number, large, at, out)
}

fn set_number(number: usize, large: bool, at: usize, out: &mut [u8]) -> Result<(), Failure> {
    if large {
        let number = u32::try_from(number).map_err(|_| Failure::TooLong)?;
        out[at..at + 4].copy_from_slice(&number.to_le_bytes());
    } else {
        let number = u16::try_from(number).map_err(|_| Failure::TooLong)?;
        out[at..at + 2].copy_from_slice(&number.to_le_bytes());
    }
    Ok(())
}

/// Seven bits in a byte, the lowest first; the highest bit says that more follow.
fn put_length(mut length: usize, out: &mut Vec<u8>) {
    while length > 0x7f {
        out.push(0x80 | (length & 0x7f) as u8);
        length >>= 7;
    }
    out.push(length as u8);
}

fn put_opaque(kind: u8, bytes: &[u8], out: &mut Vec<u8>) -> u8 {
    out.push(kind);
    put_length(bytes.len(), out);
    out.extend_from_slice(bytes);
    OPAQUE
}

/// Digits of an exact number in four bytes.
const DIGITS_PER_WORD: usize = 9;
/// Bytes for fewer digits.
const DIGIT_BYTES: [usize; DIGITS_PER_WORD + 1] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/// Precision, scale, then the digits as a DECIMAL column stores them.
fn decimal_bytes(number: &BigDecimal) -> Vec<u8> {
    let (digits, scale) = number.as_bigint_and_exponent();
    let scale = usize::try_from(scale).unwrap_or(0);
    let negative = digits.sign() == bigdecimal::num_bigint::Sign::Minus;
    let digits = format!("{:0>width$}", digits.magnitude().to_string(), width = scale);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() && scale == 0 { "0" } else { whole };
    let mut out = vec![(whole.len() + scale) as u8, scale as u8];
    let word = |digits: &str, out: &mut Vec<u8>| {
        let bytes = digits.parse::<u32>().unwrap_or(0).to_be_bytes();
        out.extend_from_slice(&bytes[4 - DIGIT_BYTES[digits.len().min(DIGITS_PER_WORD)]..]);
    };
    let (mut first, mut rest) = whole.split_at(whole.len() % DIGITS_PER_WORD);
    while !first.is_empty() || !rest.is_empty() {
        word(first, &mut out);
        (first, rest) = rest.split_at(rest.len().min(DIGITS_PER_WORD));
    }
    let mut rest = fraction;
    while !rest.is_empty() {
        let (next, behind) = rest.split_at(rest.len().min(DIGITS_PER_WORD));
        word(next, &mut out);
        rest = behind;
    }
    if negative {
        out[2..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    if let Some(first) = out.get_mut(2) {
        *first ^= 0x80;
    }
    out
}

fn decimal_of(bytes: &[u8]) -> Option<BigDecimal> {
    let (precision, scale) = (usize::from(*bytes.first()?), usize::from(*bytes.get(1)?));
    let mut rest = bytes.get(2..)?.to_vec();
    let first = rest.first_mut()?;
    let negative = *first & 0x80 == 0;
    *first ^= 0x80;
    if negative {
        rest.iter_mut().for_each(|byte| *byte = !*byte);
    }
    let mut rest = &rest[..];
    let whole = precision.checked_sub(scale)?;
    let mut digits = String::new();
    let mut words = vec![whole % DIGITS_PER_WORD];
    words.extend(std::iter::repeat_n(DIGITS_PER_WORD, whole / DIGITS_PER_WORD + scale / DIGITS_PER_WORD));
    words.push(scale % DIGITS_PER_WORD);
    for count in words.into_iter().filter(|count| *count > 0) {
        let (word, behind) = rest.split_at_checked(DIGIT_BYTES[count])?;
        let number = word.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte));
        let digits_of_word = format!("{number:0count$}");
        if digits_of_word.len() > count {
            return None;
        }
        digits.push_str(&digits_of_word);
        rest = behind;
    }
    let number: BigInt = digits.parse().ok()?;
    Some(BigDecimal::new(if negative { -number } else { number }, scale as i64))
}

/// Moments and spans have 24 bits for the microseconds.
const MICROS_BITS: u32 = 24;

fn moment_bytes(moment: DateTime) -> [u8; 8] {
    let date = moment.date;
    let months = i64::from(date.year) * 13 + i64::from(date.month);
    let day = months << 5 | i64::from(date.day);
    let second = i64::from(moment.hour) << 12 | i64::from(moment.minute) << 6 | i64::from(moment.second);
    ((day << 17 | second) << MICROS_BITS | i64::from(moment.micros)).to_le_bytes()
}

fn span_bytes(span: Time) -> [u8; 8] {
    let second = i64::from(span.hours) << 12 | i64::from(span.minutes) << 6 | i64::from(span.seconds);
    let packed = second << MICROS_BITS | i64::from(span.micros);
    (if span.negative { -packed } else { packed }).to_le_bytes()
}

fn packed(bytes: &[u8]) -> Option<i64> {
    bytes.try_into().ok().map(i64::from_le_bytes)
}

fn moment_of(bytes: &[u8]) -> Option<DateTime> {
    let packed = packed(bytes)?;
    let (whole, micros) = (packed >> MICROS_BITS, (packed & ((1 << MICROS_BITS) - 1)) as u32);
    let (day, second) = (whole >> 17, whole & 0x1_ffff);
    let (months, day) = (day >> 5, (day & 31) as u8);
    let date = Date { year: u16::try_from(months / 13).ok()?, month: (months % 13) as u8, day };
    let (hour, minute, second) = ((second >> 12) as u8, (second >> 6 & 63) as u8, (second & 63) as u8);
    let sound = packed >= 0 && date.year <= 9999 && hour < 24 && is_sound(minute, second, micros);
    sound.then_some(DateTime { date, hour, minute, second, micros })
}

fn span_of(bytes: &[u8]) -> Option<Time> {
    let packed = packed(bytes)?;
    let magnitude = packed.unsigned_abs();
    let (second, micros) = (magnitude >> MICROS_BITS, (magnitude & ((1 << MICROS_BITS) - 1)) as u32);
    let hours = u16::try_from(second >> 12).ok()?;
    let (minutes, seconds) = ((second >> 6 & 63) as u8, (second & 63) as u8);
    let sound = hours <= 838 && is_sound(minutes, seconds, micros);
    sound.then_some(Time { negative: packed < 0, hours, minutes, seconds, micros })
}

fn is_sound(minutes: u8, seconds: u8, micros: u32) -> bool {
    minutes < 60 && seconds < 60 && micros < 1_000_000
}

/// Reads a document; `None` where the bytes are none.
pub(crate) fn decode(bytes: &[u8]) -> Option<Json> {
    let (kind, rest) = bytes.split_first()?;
    // Each value stands in bytes of its own. Damaged ones may share them, and grow without end.
    value(*kind, rest, 0, &mut bytes.len().clone())
}

/// What [`decode`] gives, and `null` for bytes that are no document, as a damaged file may have them: to
/// show, compare and sort them. Functions of documents refuse them ([`Json::decoded`]).
pub(crate) fn decoded(bytes: &[u8]) -> Json {
    decode(bytes).unwrap_or(Json::Null)
}

/// The text of a document in its binary form.
pub(crate) fn print(bytes: &[u8]) -> String {
    decoded(bytes).print()
}

fn array_of<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.first_chunk().copied()
}

/// A value at the beginning of `bytes`; `left` are the bytes that it and those behind it may still take.
fn value(kind: u8, bytes: &[u8], depth: usize, left: &mut usize) -> Option<Json> {
    spend(left, 1)?;
    Some(match kind {
        LITERAL => match bytes.first()? {
            0 => Json::Null,
            1 => Json::Bool(true),
            2 => Json::Bool(false),
            _ => return None,
        },
        INT16 => Json::Int(i64::from(i16::from_le_bytes(array_of(bytes)?))),
        INT32 => Json::Int(i64::from(i32::from_le_bytes(array_of(bytes)?))),
        INT64 => Json::Int(i64::from_le_bytes(array_of(bytes)?)),
        UINT16 => Json::UInt(u64::from(u16::from_le_bytes(array_of(bytes)?))),
        UINT32 => Json::UInt(u64::from(u32::from_le_bytes(array_of(bytes)?))),
        UINT64 => Json::UInt(u64::from_le_bytes(array_of(bytes)?)),
        DOUBLE => {
            Json::Double(Some(f64::from_le_bytes(array_of(bytes)?)).filter(|number| number.is_finite())?)
        }
        TEXT => Json::Text(std::str::from_utf8(run(bytes, left)?).ok()?.to_owned()),
        OPAQUE => {
            let (kind, rest) = bytes.split_first()?;
            opaque(*kind, run(rest, left)?)?
        }
        SMALL_ARRAY | LARGE_ARRAY | SMALL_OBJECT | LARGE_OBJECT if depth < DEPTH_MAX => {
            list(kind, bytes, depth, left)?
        }
        _ => return None,
    })
}

fn opaque(kind: u8, bytes: &[u8]) -> Option<Json> {
    Some(match kind {
        kind::NEWDECIMAL => Json::Decimal(Box::new(decimal_of(bytes)?)),
        kind::DATE => Json::Date(moment_of(bytes)?.date),
        kind::DATETIME | kind::TIMESTAMP => Json::DateTime(moment_of(bytes)?),
        kind::TIME => Json::Time(span_of(bytes)?),
        other => Json::Opaque(other, bytes.to_vec()),
    })
}

fn spend(left: &mut usize, bytes: usize) -> Option<()> {
    *left = left.checked_sub(bytes)?;
    Some(())
}

/// Bytes with their length before them.
fn run<'b>(bytes: &'b [u8], left: &mut usize) -> Option<&'b [u8]> {
    let mut length = 0usize;
    for (at, byte) in bytes.iter().take(5).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            spend(left, length)?;
            return bytes.get(at + 1..)?.get(..length);
        }
    }
    None
}

fn list(kind: u8, bytes: &[u8], depth: usize, left: &mut usize) -> Option<Json> {
    let large = matches!(kind, LARGE_ARRAY | LARGE_OBJECT);
    let width = if large { 4 } else { 2 };
    let number = |at: usize| {
        let bytes = bytes.get(at..)?;
        match large {
            true => array_of(bytes).map(|bytes| u32::from_le_bytes(bytes) as usize),
            false => array_of(bytes).map(|bytes| usize::from(u16::from_le_bytes(bytes))),
        }
    };
    let (count, is_object) = (number(0)?, matches!(kind, SMALL_OBJECT | LARGE_OBJECT));
    let keys = 2 * width;
    let entries = keys + if is_object { count.checked_mul(width + 2)? } else { 0 };
    // As many entries as it says, or it is none.
    bytes.get(entries..)?.get(..count.checked_mul(1 + width)?)?;
    let element = |number_of: usize, left: &mut usize| {
        let entry = entries + number_of * (1 + width);
        let kind = *bytes.get(entry)?;
        let inside = matches!(kind, LITERAL | INT16 | UINT16) || large && matches!(kind, INT32 | UINT32);
        let at = if inside { entry + 1 } else { number(entry + 1)? };
        value(kind, bytes.get(at..)?, depth + 1, left)
    };
    if !is_object {
        return Some(Json::Array((0..count).map(|at| element(at, left)).collect::<Option<Vec<_>>>()?));
    }
    let mut member = |number_of: usize| {
        let entry = keys + number_of * (width + 2);
        let length = usize::from(u16::from_le_bytes(array_of(bytes.get(entry + width..)?)?));
        let key = bytes.get(number(entry)?..)?.get(..length)?;
        spend(left, length)?;
        Some((std::str::from_utf8(key).ok()?.to_owned(), element(number_of, left)?))
    };
    Some(Json::Object(Members::of_list((0..count).map(&mut member).collect::<Option<Vec<_>>>()?)))
}
