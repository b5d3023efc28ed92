//! WEIGHT_STRING: the bytes by which a value is ordered.
//!
//! A text has the weights of its characters under its collation. `AS CHAR(n)` cuts it at n characters and
//! fills it up with spaces to as many where the collation pads; `AS BINARY(n)` takes its bytes, cut or filled
//! up with zeros. An integer, day or moment is ordered as MySQL keeps it in a sort; for other numbers there
//! is NULL.

use std::borrow::Cow;

use untorn::engine::Comparison;
use untorn::types::{Charset, Collation, Date, DateTime, Time};

use super::{Function, any_null, function, owned_text, text_fits};
use crate::expr::types::Type;
use crate::expr::{Context, Evaluated};
use crate::value::{Value, collation};

/// The functions: with no length, `AS CHAR(n)`, `AS BINARY(n)`.
pub(super) static FUNCTIONS: &[Function] = &[
    function!("WEIGHT_STRING", 1..=1, result_type, |v, cx| match &v[0] {
        Value::Null => Ok(Value::Null),
        value => weights(value, None, cx),
    }),
    function!("WEIGHT_STRING AS CHAR", 2..=2, result_type, |v, cx| match any_null(v) {
        true => Ok(Value::Null),
        false => weights(&v[0], Some(super::index(v, 1)), cx),
    }),
    function!("WEIGHT_STRING AS BINARY", 2..=2, result_type, |v, cx| {
        let length = usize::try_from(super::index(v, 1)).unwrap_or(usize::MAX);
        if any_null(v) || !text_fits(length, "cast_as_binary", cx.state) {
            return Ok(Value::Null);
        }
        cx.state.hold(length)?;
        let mut bytes = v[0].to_text().into_owned();
        bytes.resize(length, 0);
        Ok(owned_text(bytes, Collation::Binary))
    }),
];

const NAME: &str = "weight_string";

/// Most bytes that a character weighs, as clients are told.
const BYTES_OF_CHARACTER: u32 = 8;

fn result_type(types: &[Type]) -> Type {
    Type { nullable: true, ..Type::bytes(types[0].length.saturating_mul(BYTES_OF_CHARACTER)) }
}

fn weights<'a>(value: &Value<'_>, characters: Option<i64>, cx: &Context<'_>) -> Evaluated<'a> {
    let number = match value {
        Value::Text(text, rule) => return of_text(text, *rule, characters, cx),
        Value::Int(number) => *number as u64 ^ SIGN,
        Value::UInt(number) => *number,
        Value::Date(date) => u64::from(day(*date)) ^ SIGN,
        Value::DateTime(moment, _) => of_moment(*moment),
        Value::Time(span, _) => of_span(*span) ^ SIGN,
        Value::Null | Value::Float(_) | Value::Double(_) | Value::Decimal(_) | Value::Json(_) => {
            return Ok(Value::Null);
        }
    };
    Ok(owned_text(number.to_be_bytes().into(), Collation::Binary))
}

const SIGN: u64 = 1 << 63;

fn day(date: Date) -> u32 {
    u32::from(date.year) << 9 | u32::from(date.month) << 5 | u32::from(date.day)
}

fn clock(hours: u64, minutes: u8, seconds: u8) -> u64 {
    hours << 12 | u64::from(minutes) << 6 | u64::from(seconds)
}

/// A moment as it is stored, with three bytes for the microseconds.
fn of_moment(moment: DateTime) -> u64 {
    let months = u64::from(moment.date.year) * 13 + u64::from(moment.date.month);
    let days = months << 5 | u64::from(moment.date.day);
    let stored = days << 17 | clock(moment.hour.into(), moment.minute, moment.second);
    (stored << 24 | u64::from(moment.micros)) ^ SIGN
}

/// A span as it is stored, with three bytes for the microseconds.
fn of_span(span: Time) -> u64 {
    let length = clock(span.hours.into(), span.minutes, span.seconds) << 24 | u64::from(span.micros);
    const ZERO: u64 = 1 << 47;
    if span.negative { ZERO - 1 - length } else { ZERO + length }
}

/// Bytes that each character weighs under a collation where they all weigh as much.
fn width(rule: Collation) -> usize {
    match (rule.comparison(), rule.charset()) {
        (Comparison::Binary, _) | (_, Charset::Ascii | Charset::Latin1) => 1,
        (Comparison::Utf8mb4Bin, Charset::Utf8mb4) => 3,
        _ => 2,
    }
}

fn of_text<'a>(text: &[u8], rule: Collation, characters: Option<i64>, cx: &Context<'_>) -> Evaluated<'a> {
    let (mut text, mut missing) = (text, 0);
    if let Some(count) = characters {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if !text_fits(count.saturating_mul(width(rule)), NAME, cx.state) {
            return Ok(Value::Null);
        }
        text = &text[..collation::char_offset(text, count, rule)];
        missing = if pads(rule) { count - collation::char_count(text, rule) } else { 0 };
    }
    let length = text.len() + missing;
    let unicode = matches!(rule.comparison(), Comparison::Unicode(_));
    let weighing = match rule.comparison() {
        Comparison::Binary => length,
        _ => (collation::char_count(text, rule) + missing).saturating_mul(width(rule)),
    };
    // What weights of Unicode take is known when they are there.
    if !unicode && !text_fits(weighing, NAME, cx.state) {
        return Ok(Value::Null);
    }
    let ratio = match rule.comparison() {
        Comparison::Unicode(unicode) => unicode.key_ratio(),
        _ => width(rule),
    };
    cx.state.hold(length.saturating_mul(ratio + 1))?;
    cx.state.work(length)?;
    let mut text = Cow::Borrowed(text);
    if missing > 0 {
        text.to_mut().resize(length, b' ');
    }
    let mut made = Vec::with_capacity(text.len().saturating_mul(width(rule)));
    if let Comparison::Unicode(unicode) = rule.comparison() {
        unicode.weight_string(&text, &mut made);
        if !text_fits(made.len(), NAME, cx.state) {
            return Ok(Value::Null);
        }
        return Ok(owned_text(made, Collation::Binary));
    }
    if rule.comparison() == Comparison::Binary {
        return Ok(owned_text(text.into_owned(), Collation::Binary));
    }
    let kept = width(rule);
    for character in String::from_utf8_lossy(&text).chars() {
        let weight = collation::character_weight(rule, character);
        made.extend_from_slice(&weight.to_be_bytes()[4 - kept..]);
    }
    Ok(owned_text(made, Collation::Binary))
}

/// Whether spaces at an end do not count.
fn pads(rule: Collation) -> bool {
    match rule.comparison() {
        Comparison::Unicode(unicode) => unicode.pads(),
        comparison => comparison != Comparison::Binary,
    }
}
