//! Dates and times in the text and the binary protocol.

use sql::result::{Date, DateTime, Time};

use super::number_text::put_padded;
use super::payload_reader::{Malformed, PayloadReader};

/// `YYYY-MM-DD`.
pub fn put_date_text(out: &mut Vec<u8>, value: Date) {
    put_padded(out, u32::from(value.year), 4);
    out.push(b'-');
    put_padded(out, u32::from(value.month), 2);
    out.push(b'-');
    put_padded(out, u32::from(value.day), 2);
}

fn put_fraction(out: &mut Vec<u8>, microsecond: u32, decimals: u8) {
    let decimals = u32::from(decimals.min(6));
    if decimals > 0 {
        out.push(b'.');
        put_padded(out, microsecond / 10u32.pow(6 - decimals), decimals as usize);
    }
}

/// `YYYY-MM-DD hh:mm:ss[.ffffff]`.
pub fn put_datetime_text(out: &mut Vec<u8>, value: DateTime, decimals: u8) {
    put_date_text(out, Date { year: value.year, month: value.month, day: value.day });
    out.push(b' ');
    put_padded(out, u32::from(value.hour), 2);
    out.push(b':');
    put_padded(out, u32::from(value.minute), 2);
    out.push(b':');
    put_padded(out, u32::from(value.second), 2);
    put_fraction(out, value.microsecond, decimals);
}

/// `[-]hh:mm:ss[.ffffff]`.
pub fn put_time_text(out: &mut Vec<u8>, value: Time, decimals: u8) {
    if value.negative {
        out.push(b'-');
    }
    put_padded(out, value.hours, 2);
    out.push(b':');
    put_padded(out, u32::from(value.minutes), 2);
    out.push(b':');
    put_padded(out, u32::from(value.seconds), 2);
    put_fraction(out, value.microseconds, decimals);
}

/// Binary DATE, DATETIME or TIMESTAMP: a length of 0, 4, 7 or 11 and that many bytes.
pub fn put_datetime_binary(out: &mut Vec<u8>, value: DateTime) {
    let length = if value.microsecond != 0 {
        11
    } else if (value.hour, value.minute, value.second) != (0, 0, 0) {
        7
    } else if (value.year, value.month, value.day) != (0, 0, 0) {
        4
    } else {
        0
    };
    out.push(length);
    if length >= 4 {
        out.extend_from_slice(&value.year.to_le_bytes());
        out.extend_from_slice(&[value.month, value.day]);
    }
    if length >= 7 {
        out.extend_from_slice(&[value.hour, value.minute, value.second]);
    }
    if length == 11 {
        out.extend_from_slice(&value.microsecond.to_le_bytes());
    }
}

/// Binary TIME: a length of 0, 8 or 12 and that many bytes.
pub fn put_time_binary(out: &mut Vec<u8>, value: Time) {
    let zero = (value.hours, value.minutes, value.seconds) == (0, 0, 0);
    let length = match (zero, value.microseconds) {
        (true, 0) => 0,
        (false, 0) => 8,
        _ => 12,
    };
    out.push(length);
    if length >= 8 {
        out.push(u8::from(value.negative));
        out.extend_from_slice(&(value.hours / 24).to_le_bytes());
        out.extend_from_slice(&[(value.hours % 24) as u8, value.minutes, value.seconds]);
    }
    if length == 12 {
        out.extend_from_slice(&value.microseconds.to_le_bytes());
    }
}

/// Reads a binary DATE, DATETIME or TIMESTAMP.
pub fn read_datetime(cursor: &mut PayloadReader<'_>) -> Result<DateTime, Malformed> {
    let length = cursor.u8()?;
    let mut fields = PayloadReader::new(cursor.take(usize::from(length))?);
    let mut value = DateTime::default();
    match length {
        0 => return Ok(value),
        4 | 7 | 11 => {}
        _ => return Err(Malformed),
    }
    (value.year, value.month, value.day) = (fields.u16()?, fields.u8()?, fields.u8()?);
    if length >= 7 {
        (value.hour, value.minute, value.second) = (fields.u8()?, fields.u8()?, fields.u8()?);
    }
    if length == 11 {
        value.microsecond = fields.u32()?;
    }
    let valid = value.month <= 12
        && value.day <= 31
        && value.hour <= 23
        && value.minute <= 59
        && value.second <= 59
        && value.microsecond <= 999_999
        && value.year <= 9999;
    if valid { Ok(value) } else { Err(Malformed) }
}

/// Reads a binary TIME.
pub fn read_time(cursor: &mut PayloadReader<'_>) -> Result<Time, Malformed> {
    let length = cursor.u8()?;
    let mut fields = PayloadReader::new(cursor.take(usize::from(length))?);
    let mut value = Time::default();
    match length {
        0 => return Ok(value),
        8 | 12 => {}
        _ => return Err(Malformed),
    }
    value.negative = fields.u8()? != 0;
    let days = fields.u32()?;
    value.hours = days
        .checked_mul(24)
        .and_then(|hours| hours.checked_add(u32::from(fields.u8().ok()?)))
        .ok_or(Malformed)?;
    (value.minutes, value.seconds) = (fields.u8()?, fields.u8()?);
    if length == 12 {
        value.microseconds = fields.u32()?;
    }
    if value.minutes <= 59 && value.seconds <= 59 && value.microseconds <= 999_999 {
        Ok(value)
    } else {
        Err(Malformed)
    }
}

fn number(text: &[u8]) -> Option<u32> {
    if text.is_empty() || text.len() > 9 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0')))
}

fn fraction(text: &[u8]) -> Option<u32> {
    let mut digits = [b'0'; 6];
    for (digit, given) in digits.iter_mut().zip(text) {
        *digit = *given;
    }
    number(&digits)
}

/// Parses the canonical text of a date or date and time (what our own session produces).
pub fn parse_datetime(text: &[u8]) -> Option<DateTime> {
    let (day, clock) = match text.iter().position(|byte| matches!(byte, b' ' | b'T')) {
        Some(at) => (text.get(..at)?, text.get(at + 1..)?),
        None => (text, &b""[..]),
    };
    let mut parts = day.split(|byte| *byte == b'-').map(number);
    let (year, month, date) = (parts.next()??, parts.next()??, parts.next()??);
    let mut value =
        DateTime { year: year as u16, month: month as u8, day: date as u8, ..DateTime::default() };
    if !clock.is_empty() {
        let time = parse_time(clock)?;
        (value.hour, value.minute, value.second) = (time.hours as u8, time.minutes, time.seconds);
        value.microsecond = time.microseconds;
    }
    Some(value)
}

/// Parses the canonical text of a TIME.
pub fn parse_time(text: &[u8]) -> Option<Time> {
    let (negative, text) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, text),
    };
    let (whole, part) = match text.iter().position(|byte| *byte == b'.') {
        Some(at) => (text.get(..at)?, text.get(at + 1..)?),
        None => (text, &b""[..]),
    };
    let mut parts = whole.split(|byte| *byte == b':').map(number);
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    Some(Time {
        negative,
        hours,
        minutes: minutes as u8,
        seconds: seconds as u8,
        microseconds: fraction(part)?,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn text_and_back() {
        let value =
            DateTime { year: 2024, month: 2, day: 29, hour: 23, minute: 5, second: 9, microsecond: 120_000 };
        let mut out = Vec::new();
        put_datetime_text(&mut out, value, 3);
        assert_eq!(out, b"2024-02-29 23:05:09.120");
        assert_eq!(parse_datetime(&out), Some(value));
        let time = Time { negative: true, hours: 838, minutes: 59, seconds: 1, microseconds: 0 };
        out.clear();
        put_time_text(&mut out, time, 0);
        assert_eq!(out, b"-838:59:01");
        assert_eq!(parse_time(&out), Some(time));
    }

    #[test]
    fn binary_lengths_follow_the_value() {
        let mut value = DateTime::default();
        let mut lengths = Vec::new();
        for step in 0..4 {
            match step {
                1 => value.day = 1,
                2 => value.second = 1,
                3 => value.microsecond = 1,
                _ => {}
            }
            let mut out = Vec::new();
            put_datetime_binary(&mut out, value);
            lengths.push(out[0]);
            assert_eq!(read_datetime(&mut PayloadReader::new(&out)), Ok(value));
        }
        assert_eq!(lengths, [0, 4, 7, 11]);
        let time = Time { negative: true, hours: 25, minutes: 1, seconds: 2, microseconds: 3 };
        let mut out = Vec::new();
        put_time_binary(&mut out, time);
        assert_eq!(out, [12, 1, 1, 0, 0, 0, 1, 1, 2, 3, 0, 0, 0]);
        assert_eq!(read_time(&mut PayloadReader::new(&out)), Ok(time));
    }

    #[test]
    fn nonsense_is_malformed() {
        assert_eq!(read_datetime(&mut PayloadReader::new(&[5, 1, 2, 3, 4, 5])), Err(Malformed));
        assert_eq!(read_datetime(&mut PayloadReader::new(&[4, 1, 2, 13, 4])), Err(Malformed));
        assert_eq!(read_time(&mut PayloadReader::new(&[8, 0, 255, 255, 255, 255, 1, 0, 0])), Err(Malformed));
    }
}
