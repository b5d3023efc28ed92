//! What may stand in `DATE '…'`, `TIME '…'` and `TIMESTAMP '…'`: a text that is read elsewhere may say more
//! or less than that, or end in something else.

use std::borrow::Cow;

use super::temporal::{Today, is_day_and_time, parse_datetime, parse_time, time_micros};
use crate::ast::TemporalKind;
use crate::errors;
use crate::result::SqlError;

/// 838:59:59.
const LONGEST_SPAN_MICROS: i64 = 3_020_399_000_000;
/// Digits from which on a number without signs between them is a moment where a span may stand.
const DIGITS_OF_MOMENT: usize = 12;
/// Digits of a number of a moment at most, but for those behind the point of its second.
const FIELD_DIGITS_MAX: usize = 6;

/// Error 1525.
pub fn wrong(kind: TemporalKind, text: &[u8]) -> SqlError {
    let named = match kind {
        TemporalKind::Date => "DATE",
        TemporalKind::Time => "TIME",
        TemporalKind::DateTime => "DATETIME",
    };
    errors::error(errors::WRONG_VALUE, &[&named, &String::from_utf8_lossy(text)])
}

/// The text of a literal as it is read, with the usual signs between its numbers; `None` if it is no literal
/// of this kind, whatever the SQL mode says of its day.
pub fn read(kind: TemporalKind, text: &[u8]) -> Option<Cow<'_, [u8]>> {
    let text = text.trim_ascii();
    let today = Today { any_day: true, ..Today::default() };
    if kind == TemporalKind::Time {
        let text = span(text)?;
        // Without what is rounded: the longest span has no fraction.
        let point = text.iter().position(|byte| *byte == b'.').unwrap_or(text.len());
        let exact = &text[..text.len().min(point + 7)];
        let (span, _, cut) = parse_time(exact, today)?;
        let fits = !cut && time_micros(span).abs() <= LONGEST_SPAN_MICROS;
        return (fits && parse_time(&text, today).is_some_and(|(.., rest)| !rest)).then_some(text);
    }
    let (fields, rest) = fields(text);
    let has_clock = fields.len() > 3;
    let has_offset = fields.len() > 5 && matches!(rest.first(), Some(b'+' | b'-'));
    if fields.len() < 3 || has_clock != (kind == TemporalKind::DateTime) || !rest.is_empty() && !has_offset {
        return None;
    }
    let mut plain = Vec::with_capacity(text.len() + 8);
    for (at, field) in fields.iter().enumerate() {
        plain.extend(at.checked_sub(1).map(|before| b"-- ::."[before]));
        plain.extend_from_slice(field);
    }
    plain.extend_from_slice(rest);
    parse_datetime(&plain, today).filter(|(.., rest)| !rest)?;
    Some(Cow::Owned(plain))
}

/// The numbers of a moment, and what is behind them. Without signs between them they have two digits each,
/// the year four in a number of 4, 8, 14 or more digits.
fn fields(text: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let run = text.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'T').count();
    let is_number = matches!(text.get(run), None | Some(b'.'));
    let year = if matches!(run, 4 | 8 | 14..) { 4 } else { 2 };
    let (mut found, mut rest) = (Vec::with_capacity(7), text);
    while found.len() < 7 {
        let most = match found.len() {
            6 => usize::MAX,
            _ if !is_number => FIELD_DIGITS_MAX,
            0 => year,
            _ => 2,
        };
        let length = digits(rest).min(most);
        if length == 0 {
            break;
        }
        let (field, behind) = rest.split_at(length);
        found.push(field);
        let skipped = match (found.len(), behind) {
            (3, [b'T', digit, ..]) if digit.is_ascii_digit() => 1,
            (6, [b'.', ..]) => 1,
            (6.., _) => 0,
            (count, _) => {
                let is_sign = |byte: &&u8| {
                    byte.is_ascii_punctuation() && **byte != b'+' || count == 3 && byte.is_ascii_whitespace()
                };
                behind.iter().take_while(is_sign).count()
            }
        };
        rest = &behind[skipped..];
    }
    (found, rest)
}

/// A span as it is read elsewhere: with a number before its sign, and its minus at the number.
fn span(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    let (minus, number) = match text.strip_prefix(b"-") {
        Some(number) => (true, number.trim_ascii_start()),
        None => (false, text),
    };
    if digits(number) >= DIGITS_OF_MOMENT || is_day_and_time(number) {
        return None;
    }
    let bare = matches!(number, [b'.' | b':', digit, ..] if digit.is_ascii_digit());
    if !bare && number.len() + usize::from(minus) == text.len() {
        return Some(Cow::Borrowed(text));
    }
    let before: &[u8] = match (minus, bare) {
        (true, true) => b"-0",
        (true, false) => b"-",
        (false, _) => b"0",
    };
    Some(Cow::Owned([before, number].concat()))
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_says_all_of_its_kind_and_no_more() {
        let read_as = |kind: TemporalKind, list: &[&str]| {
            let read = |text: &&str| {
                read(kind, text.as_bytes()).map(|text| String::from_utf8_lossy(&text).into_owned())
            };
            list.iter().map(|text| read(text).unwrap_or_default()).collect::<Vec<_>>()
        };
        let dates = [
            ("2001-01-01", "2001-01-01"),
            ("20010101", "2001-01-01"),
            ("2001:1:1", "2001-1-1"),
            (" 2001-01-01 ", "2001-01-01"),
            ("2001-01-01.", "2001-01-01"),
            ("2001-01-01 .", "2001-01-01"),
            ("2001--01-01", "2001-01-01"),
            ("010101", "01-01-01"),
            ("01011", "01-01-1"),
        ];
        let (texts, meant): (Vec<_>, Vec<_>) = dates.into_iter().unzip();
        assert_eq!(read_as(TemporalKind::Date, &texts), meant);
        let others = [
            "2001-01-01 00:00:00",
            "20010101101010",
            "2001-01-01xyz",
            "2001-01-01T",
            "",
            "2001011",
            "20010101.5",
            "-2001-01-01",
            "2001-01",
            "2001 01 01",
            "10000-01-01",
            "2001-01-01+01:00",
        ];
        assert_eq!(read_as(TemporalKind::Date, &others), [""; 12]);
        let moments = [
            ("2010-01-01 10", "2010-01-01 10"),
            ("2010-01-01T10:10:10", "2010-01-01 10:10:10"),
            ("100101101010", "10-01-01 10:10:10"),
            ("20100101101010.5", "2010-01-01 10:10:10.5"),
            ("010101T101010", "01-01-01 10:10:10"),
            ("0101011010", "01-01-01 10:10"),
            ("20010101.5", "2001-01-01 5"),
            ("2001-01-01 -10:10:10", "2001-01-01 10:10:10"),
            ("2010-01-01 10:10:10+01:00", "2010-01-01 10:10:10+01:00"),
        ];
        let (texts, meant): (Vec<_>, Vec<_>) = moments.into_iter().unzip();
        assert_eq!(read_as(TemporalKind::DateTime, &texts), meant);
        let others = [
            "2010-01-01",
            "20100101",
            "2010-01-01 ",
            "2010-01-01 10:10:10x",
            "2010-01-01 10:10:10 1",
            "2010-01-01 10:10:10-",
            "2010-01-01 25:00:00",
            "2010-01-01 10 10",
            "2010 01-01 10:10:10",
        ];
        assert_eq!(read_as(TemporalKind::DateTime, &others), [""; 9]);
        let spans = [
            ("838:59:59", "838:59:59"),
            ("1 10:10:10", "1 10:10:10"),
            ("10:10:10.1234567", "10:10:10.1234567"),
            ("10", "10"),
            (".5", "0.5"),
            (":10", "0:10"),
            ("- 10:10:10", "-10:10:10"),
            ("1 ", "1"),
        ];
        let (texts, meant): (Vec<_>, Vec<_>) = spans.into_iter().unzip();
        assert_eq!(read_as(TemporalKind::Time, &texts), meant);
        let others = [
            "838:59:59.5",
            "34 22:59:59.9999999",
            "2001-01-01 10:10:10",
            "20010101101010",
            "10:10:10.5x",
            "40 24:00:00",
            "",
            "-",
            "1 10:",
            "10:",
            "10:60:10",
            "2001-01-01",
        ];
        assert_eq!(read_as(TemporalKind::Time, &others), [""; 12]);
    }
}
