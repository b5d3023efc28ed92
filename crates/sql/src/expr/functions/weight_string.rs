//! WEIGHT_STRING: the bytes by which a value is ordered.
//!
//! A text has the weights of its characters under its collation. `AS CHAR(n)` cuts it at n characters and
//! fills it up with spaces to as many where the collation pads; `AS BINARY(n)` takes its bytes, cut or filled
//! up with zeros. An integer, day or moment is ordered as MySQL keeps it in a sort; for other numbers there
//! is NULL. Three numbers behind a text say how many bytes there are at most, how many characters as
//! `AS CHAR` does (0: all), and flags, of which one fills the bytes up.

use std::borrow::Cow;

use untorn::engine::Comparison;
use untorn::types::{Charset, Collation, Date, DateTime, Time};

use super::{Function, any_null, function, owned_text, text_fits};
use crate::expr::types::Type;
use crate::expr::{Context, Evaluated};
use crate::value::{Value, collation};

/// The functions: with no length, `AS CHAR(n)`, `AS BINARY(n)`.
pub(super) static FUNCTIONS: &[Function] = &[
    function!("WEIGHT_STRING", 1..=4, result_type, |v, cx| match &v[0] {
        Value::Null => Ok(Value::Null),
        value => weights(value, Said::in_numbers(&v[1..]), cx),
    }),
    function!("WEIGHT_STRING AS CHAR", 2..=2, result_type, |v, cx| match any_null(v) {
        true => Ok(Value::Null),
        false => weights(&v[0], Said { characters: whole(v, 1), ..Said::default() }, cx),
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

/// What is said beside the value.
#[derive(Clone, Copy, Default)]
struct Said {
    /// As many characters, whatever the text has; 0: as many as it has.
    characters: usize,
    /// Bytes at most; 0: as many as the characters may weigh.
    bytes: usize,
    /// There are as many bytes, with the weights of spaces behind the others, or zeros.
    filled: bool,
}

impl Said {
    /// Three numbers, of which MySQL looks at 32 bits.
    fn in_numbers(numbers: &[Value<'_>]) -> Said {
        const FILLED: usize = 0x80;
        let number = |at: usize| whole(numbers, at) & 0xFFFF_FFFF;
        Said { bytes: number(0), characters: number(1), filled: number(2) & FILLED != 0 }
    }
}

fn whole(values: &[Value<'_>], at: usize) -> usize {
    usize::try_from(super::index(values, at)).unwrap_or(usize::MAX)
}

fn weights<'a>(value: &Value<'_>, said: Said, cx: &Context<'_>) -> Evaluated<'a> {
    let number = match value {
        Value::Text(text, rule) => return of_text(text, *rule, said, cx),
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

/// Most bytes that this many characters weigh: MySQL's estimate, which is seen where it fills them.
fn most_bytes(rule: Collation, characters: usize) -> usize {
    let each = match (rule.comparison(), rule.charset()) {
        (Comparison::Unicode(unicode), charset) if unicode.pads() => {
            charset.bytes_per_char_max() as usize * 8
        }
        (Comparison::Unicode(unicode), _) => unicode.level_count() * 16,
        (Comparison::Binary, Charset::Utf8mb4) => 4,
        _ => width(rule),
    };
    let between = match rule.comparison() {
        Comparison::Unicode(unicode) => (unicode.level_count() - 1) * 2,
        _ => 0,
    };
    characters.saturating_mul(each).saturating_add(between)
}

fn of_text<'a>(text: &[u8], rule: Collation, said: Said, cx: &Context<'_>) -> Evaluated<'a> {
    let length = match rule.charset() {
        Charset::Latin1 => collation::char_count(text, rule),
        _ => text.len(),
    };
    let most = match said.bytes {
        0 => most_bytes(rule, length.max(said.characters)),
        said => said,
    };
    if !text_fits(most, NAME, cx.state) {
        return Ok(Value::Null);
    }
    let (mut text, mut missing) = (text, 0);
    if said.characters > 0 {
        text = &text[..collation::char_offset(text, said.characters, rule)];
        let left = said.characters - collation::char_count(text, rule);
        // More than are kept need not be made.
        missing = if pads(rule) { left.min(most / width(rule) + 1) } else { 0 };
    }
    let length = text.len() + missing;
    let ratio = match rule.comparison() {
        Comparison::Unicode(unicode) => unicode.key_ratio(),
        _ => width(rule),
    };
    cx.state.hold(length.saturating_mul(ratio + 1).saturating_add(if said.filled { most } else { 0 }))?;
    cx.state.work(length)?;
    let mut text = Cow::Borrowed(text);
    if missing > 0 {
        text.to_mut().resize(length, b' ');
    }
    let mut made = weights_of(text, rule);
    made.truncate(most);
    if said.filled && made.len() < most {
        cx.state.work(most)?;
        let filling = if pads(rule) { weights_of(Cow::Borrowed(b" "), rule) } else { vec![0] };
        let behind = filling.iter().copied().cycle().take(most - made.len());
        made.extend(behind);
    }
    Ok(owned_text(made, Collation::Binary))
}

/// The weights of all characters of a text.
fn weights_of(text: Cow<'_, [u8]>, rule: Collation) -> Vec<u8> {
    let mut made = Vec::new();
    match rule.comparison() {
        Comparison::Binary => made = text.into_owned(),
        Comparison::Unicode(unicode) => {
            made.reserve(text.len().saturating_mul(width(rule)));
            unicode.weight_string(&text, &mut made);
        }
        _ => {
            let kept = width(rule);
            made.reserve(text.len().saturating_mul(kept));
            for character in String::from_utf8_lossy(&text).chars() {
                let weight = collation::character_weight(rule, character);
                made.extend_from_slice(&weight.to_be_bytes()[4 - kept..]);
            }
        }
    }
    made
}

/// Whether spaces at an end do not count.
fn pads(rule: Collation) -> bool {
    match rule.comparison() {
        Comparison::Unicode(unicode) => unicode.pads(),
        comparison => comparison != Comparison::Binary,
    }
}
