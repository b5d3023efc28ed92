//! Functions of texts.

use std::borrow::Cow;
use std::cmp::Ordering;

use untorn::engine::{Comparison, UnicodeRule};
use untorn::types::{Charset, Collation};

use super::chunks::{MATCH_BYTES, Places, in_chunks, nth_place, replaced};
use super::locale::Locale;
use super::numeric::round_double;
use super::{Function, TextOf, any_null, function, index, owned_text, text_fits, text_sum};
use crate::ast::TrimSide;
use crate::errors;
use crate::expr::types::Type;
use crate::expr::{Context, Evaluated};
use crate::value::{Value, collation, compare, decimal};

/// Longest text of a list of types.
pub(super) fn text_like(types: &[Type]) -> Type {
    let rule = types.first().map_or(Collation::Utf8mb4GeneralCi, |t| {
        if t.is_text() { t.collation } else { Collation::Utf8mb4GeneralCi }
    });
    Type { collation: rule, ..Type::text(types.first().map_or(0, |t| t.length)) }
}

/// A text of `bytes` bytes, which `make` makes, unless it would be larger than `max_allowed_packet`.
fn made<'a>(
    bytes: usize,
    name: &str,
    rule: Collation,
    cx: &Context<'_>,
    make: impl FnOnce() -> Vec<u8>,
) -> Evaluated<'a> {
    if !text_fits(bytes, name, cx.state) {
        return Ok(Value::Null);
    }
    cx.state.hold(bytes)?;
    cx.state.work(bytes)?;
    Ok(owned_text(make(), rule))
}

/// A function of one text that makes a text.
fn text<'a>(values: &[Value<'a>], apply: impl Fn(&[u8]) -> Vec<u8>) -> Evaluated<'a> {
    match values {
        [Value::Null] | [] => Ok(Value::Null),
        [value, ..] => Ok(owned_text(apply(&value.to_text()), value.collation())),
    }
}

/// LOWER and UPPER; bytes have no case.
fn cased<'a>(
    value: &Value<'a>,
    case: impl Fn(&[u8], Collation) -> Vec<u8>,
    cx: &Context<'_>,
) -> Evaluated<'a> {
    if matches!(value, Value::Null | Value::Text(_, Collation::Binary)) {
        return Ok(value.clone());
    }
    let each = |piece: &[u8], made: &mut Vec<u8>| made.extend(case(piece, value.collation()));
    let text = value.to_text();
    let made = in_chunks(&text, text.len(), &|bytes| cx.state.work(bytes), each)?;
    Ok(owned_text(made, value.collation()))
}

/// The functions.
pub(super) static FUNCTIONS: &[Function] = &[
    function!("LENGTH", 1..=1, |_| Type::INT, |v, _| Ok(length(&v[0], <[u8]>::len))),
    function!("OCTET_LENGTH", 1..=1, |_| Type::INT, |v, _| Ok(length(&v[0], <[u8]>::len))),
    function!("CHAR_LENGTH", 1..=1, |_| Type::INT, |v, _| {
        let rule = v[0].collation();
        Ok(length(&v[0], |text| collation::char_count(text, rule)))
    }),
    function!("CHARACTER_LENGTH", 1..=1, |_| Type::INT, |v, _| {
        let rule = v[0].collation();
        Ok(length(&v[0], |text| collation::char_count(text, rule)))
    }),
    function!("BIT_LENGTH", 1..=1, |_| Type::INT, |v, _| Ok(length(&v[0], |text| text.len() * 8))),
    function!("LOWER", 1..=1, text_like, |v, cx| cased(&v[0], collation::lower, cx)),
    function!("LCASE", 1..=1, text_like, |v, cx| cased(&v[0], collation::lower, cx)),
    function!("UPPER", 1..=1, text_like, |v, cx| cased(&v[0], collation::upper, cx)),
    function!("UCASE", 1..=1, text_like, |v, cx| cased(&v[0], collation::upper, cx)),
    function!("REVERSE", 1..=1, text_like, |v, cx| {
        cx.state.work(v[0].to_text().len())?;
        text(v, |t| reversed(t, v[0].collation()))
    }),
    function!("LTRIM", 1..=1, text_like, |v, _| text(v, |t| t
        [t.iter().take_while(|b| **b == b' ').count()..]
        .to_vec())),
    function!("RTRIM", 1..=1, text_like, |v, _| text(v, |t| {
        t[..t.iter().rposition(|b| *b != b' ').map_or(0, |last| last + 1)].to_vec()
    })),
    function!("CONCAT", 1.., text_sum, |v, cx| {
        if any_null(v) {
            return Ok(Value::Null);
        }
        let rule =
            v.iter().map(Value::collation).reduce(collation::common).unwrap_or(Collation::Utf8mb4GeneralCi);
        let texts: smallvec::SmallVec<[Cow<'_, [u8]>; 8]> = v.iter().map(Value::to_text).collect();
        let bytes = texts.iter().map(|text| text.len()).sum();
        made(bytes, "concat", rule, cx, || texts.concat())
    }),
    function!("CONCAT_WS", 2.., text_sum, |v, cx| {
        if v[0].is_null() {
            return Ok(Value::Null);
        }
        // The separator, too, has a say: beside bytes the whole is bytes.
        let texts = v.iter().filter(|x| matches!(x, Value::Text(..))).map(Value::collation);
        let rule = texts.reduce(collation::common).unwrap_or(Collation::Utf8mb4GeneralCi);
        let separator = v[0].to_text();
        let parts: Vec<_> = v[1..].iter().filter(|x| !x.is_null()).map(Value::to_text).collect();
        let between = separator.len().saturating_mul(parts.len().saturating_sub(1));
        let bytes = parts.iter().fold(between, |sum, part| sum.saturating_add(part.len()));
        made(bytes, "concat_ws", rule, cx, || parts.join(&separator[..]))
    }),
    function!("LEFT", 2..=2, text_like, |v, _| substring(v, 1, |v| Some(index(v, 1))))
        .with_text_of(TextOf::First),
    function!("RIGHT", 2..=2, text_like, |v, _| {
        let count = collation::char_count(&v[0].to_text(), v[0].collation()) as i64;
        let wanted = index(v, 1).clamp(0, count);
        substring(v, count - wanted + 1, |_| None)
    })
    .with_text_of(TextOf::First),
    function!("SUBSTRING", 2..=3, text_like, |v, _| {
        substring(v, index(v, 1), |v| v.get(2).map(Value::to_i64))
    })
    .with_text_of(TextOf::First),
    function!("SUBSTRING_INDEX", 3..=3, text_like, |v, cx| substring_index(v, cx))
        .with_text_of(TextOf::First),
    function!("LOCATE", 2..=3, |_| Type::INT, |v, cx| locate(v, cx)),
    function!("INSTR", 2..=2, |_| Type::INT, |v, cx| locate(&[v[1].borrowed(), v[0].borrowed()], cx)),
    function!("REPLACE", 3..=3, text_sum, |v, cx| {
        if any_null(v) {
            return Ok(Value::Null);
        }
        let (text, from, to) = (v[0].to_text(), v[1].to_text(), v[2].to_text());
        if from.is_empty() {
            return Ok(owned_text(text.to_vec(), v[0].collation()));
        }
        let mut bytes = text.len();
        let work = |bytes| cx.state.work(bytes);
        if to.len() > from.len() {
            let (_, places) = nth_place(Places::new(&text, &from), usize::MAX, &work)?;
            bytes = bytes.saturating_add(places.saturating_mul(to.len() - from.len()));
        }
        let rule = v[0].collation();
        if !text_fits(bytes, "replace", cx.state) {
            return Ok(Value::Null);
        }
        cx.state.hold(bytes)?;
        Ok(owned_text(replaced(Places::new(&text, &from), &to, bytes, &work)?, rule))
    })
    .with_text_of(TextOf::First),
    function!("REPEAT", 2..=2, |_| Type::text(65_535), |v, cx| {
        if any_null(v) {
            return Ok(Value::Null);
        }
        let (text, count) = (v[0].to_text(), usize::try_from(index(v, 1)).unwrap_or(0));
        let bytes = text.len().saturating_mul(count);
        made(bytes, "repeat", v[0].collation(), cx, || text.repeat(count))
    })
    .with_text_of(TextOf::First),
    function!("SPACE", 1..=1, |_| Type::text(65_535), |v, cx| {
        if v[0].is_null() {
            return Ok(Value::Null);
        }
        let count = usize::try_from(index(v, 0)).unwrap_or(0);
        made(count, "space", Collation::Utf8mb4GeneralCi, cx, || vec![b' '; count])
    }),
    function!("LPAD", 3..=3, |_| Type::text(65_535), |v, cx| pad(v, true, cx)).with_text_of(TextOf::First),
    function!("RPAD", 3..=3, |_| Type::text(65_535), |v, cx| pad(v, false, cx)).with_text_of(TextOf::First),
    function!("INSERT", 4..=4, text_sum, |v, cx| insert(v, cx)).with_text_of(TextOf::First),
    function!("ASCII", 1..=1, |_| Type::INT, |v, _| {
        Ok(length(&v[0], |text| usize::from(text.first().copied().unwrap_or(0))))
    }),
    function!("ORD", 1..=1, |_| Type::INT, |v, _| {
        let rule = v[0].collation();
        Ok(length(&v[0], |text| {
            // Four bytes are enough of a text whose first character is wanted.
            let beginning = &text[..text.len().min(4)];
            let first = &beginning[..collation::char_offset(beginning, 1, rule)];
            first.iter().fold(0, |number, byte| number << 8 | usize::from(*byte))
        }))
    }),
    function!("CHAR", 1.., |t| Type::bytes(4 * t.len() as u32), |v, _| {
        let mut bytes = Vec::new();
        for value in v.iter().filter(|value| !value.is_null()) {
            let code = (value.to_bits() as u32).to_be_bytes();
            let first = code.iter().position(|b| *b != 0).unwrap_or(3);
            bytes.extend_from_slice(&code[first..]);
        }
        Ok(owned_text(bytes, Collation::Binary))
    }),
    function!("HEX", 1..=1, |t| Type::text(t.first().map_or(0, |t| t.length.saturating_mul(8))), |v, cx| {
        match &v[0] {
            Value::Null => Ok(Value::Null),
            Value::Text(text, _) => {
                let digit = |four: u8| b"0123456789ABCDEF"[usize::from(four)];
                let bytes = text.len().saturating_mul(2);
                cx.state.hold(bytes)?;
                let each = |piece: &[u8], made: &mut Vec<u8>| {
                    made.extend(piece.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]))
                };
                let made = in_chunks(text, bytes, &|bytes| cx.state.work(bytes), each)?;
                Ok(owned_text(made, Collation::Utf8mb4GeneralCi))
            }
            moment if moment.is_temporal() => {
                let text = moment.to_text();
                Ok(Value::text(text.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02X}"))))
            }
            number => Ok(Value::text(format!("{:X}", number.to_bits()))),
        }
    })
    .with_text_of(TextOf::Connection),
    function!("UNHEX", 1..=1, |t| Type::bytes(t.first().map_or(0, |t| t.length / 2)), |v, cx| unhex(
        &v[0], cx
    )),
    function!("BIN", 1..=1, |_| Type::text(64), |v, cx| conv(&v[0], 10, 2, cx))
        .with_text_of(TextOf::Connection),
    function!("OCT", 1..=1, |_| Type::text(65), |v, cx| conv(&v[0], 10, 8, cx))
        .with_text_of(TextOf::Connection),
    function!("CONV", 3..=3, |_| Type::text(64), |v, cx| match any_null(v) {
        true => Ok(Value::Null),
        false => conv(&v[0], index(v, 1), index(v, 2), cx),
    })
    .with_text_of(TextOf::Connection),
    function!("STRCMP", 2..=2, |_| Type::INT, |v, _| {
        let (a, b) =
            (Value::Text(v[0].to_text(), v[0].collation()), Value::Text(v[1].to_text(), v[1].collation()));
        Ok(if any_null(v) {
            Value::Null
        } else {
            compare::compare(&a, &b).map_or(Value::Null, |o| Value::Int(o as i64))
        })
    }),
    function!("ELT", 2.., |t| text_sum(&t[1..]), |v, _| {
        let at = index(v, 0);
        Ok(usize::try_from(at)
            .ok()
            .filter(|at| *at > 0)
            .and_then(|at| v.get(at))
            .cloned()
            .unwrap_or(Value::Null))
    }),
    function!("FIELD", 2.., |_| Type::INT, |v, _| {
        // Where a number is among them, all are: two texts, too.
        let as_double = |value: &Value<'_>| match value {
            Value::Text(..) => Value::Double(value.to_double()),
            other => other.borrowed().into_owned(),
        };
        if v.iter().any(Value::is_number) && v.iter().any(|value| matches!(value, Value::Text(..))) {
            let wanted = as_double(&v[0]);
            let equal = |x: &Value<'_>| compare::compare(&wanted, &as_double(x)) == Some(Ordering::Equal);
            return Ok(Value::Int(v[1..].iter().position(equal).map_or(0, |at| at as i64 + 1)));
        }
        let wanted = compare::Wanted::new(&v[0]);
        let at = v[1..].iter().position(|x| wanted.is_equal(x) == Some(true));
        Ok(Value::Int(at.map_or(0, |at| at as i64 + 1)))
    }),
    function!("FIND_IN_SET", 2..=2, |_| Type::INT, |v, cx| {
        if any_null(v) {
            return Ok(Value::Null);
        }
        let (wanted, list) = (v[0].to_text(), v[1].to_text());
        let rule = collation::common(v[0].collation(), v[1].collation());
        // Spaces at an end count here, whatever the collation says of them.
        let spaces = |text: &[u8]| text.len() - collation::trimmed(text, rule).len();
        let (wanted, behind) = (collation::trimmed(&wanted, rule), spaces(&wanted));
        // Nothing is an empty list, and not one of an empty text.
        let items = list.split(|byte| *byte == b',').filter(|_| !list.is_empty());
        for (at, item) in items.enumerate() {
            cx.state.work(item.len() + MATCH_BYTES)?;
            if collation::equal_to_trimmed(wanted, item, rule) && spaces(item) == behind {
                return Ok(Value::Int(at as i64 + 1));
            }
        }
        Ok(Value::Int(0))
    }),
    function!("QUOTE", 1..=1, quoted_type, |v, cx| {
        if v[0].is_null() {
            return Ok(Value::text("NULL"));
        }
        let text = v[0].to_text();
        let escaped = text.iter().filter(|byte| matches!(byte, b'\'' | b'\\' | 0 | 26)).count();
        made(text.len() + escaped + 2, "quote", v[0].collation(), cx, || quote(&text))
    })
    .with_text_of(TextOf::First),
    function!("FORMAT", 2..=3, |_| Type::text(64), |v, cx| format_number(v, cx))
        .with_text_of(TextOf::Connection),
];

/// The bytes or characters from the last to the first.
fn reversed(text: &[u8], rule: Collation) -> Vec<u8> {
    match std::str::from_utf8(text) {
        Ok(text) if rule != Collation::Binary => text.chars().rev().collect::<String>().into_bytes(),
        _ => text.iter().rev().copied().collect(),
    }
}

/// FORMAT.
fn format_number<'a>(values: &[Value<'a>], cx: &Context<'_>) -> Evaluated<'a> {
    if any_null(&values[..2]) {
        return Ok(Value::Null);
    }
    let digits = index(values, 1).clamp(0, 30);
    let number = match &values[0] {
        value @ (Value::Double(_) | Value::Float(_) | Value::Text(..)) => {
            let rounded = round_double(value.to_double(), digits, f64::round_ties_even);
            with_digits(rounded, digits as usize)
        }
        value => decimal::format(&decimal::round(&value.to_decimal(), digits)),
    };
    let locale = match values.get(2) {
        None | Some(Value::Null) => Locale::DEFAULT,
        Some(name) => {
            let name = name.to_string_lossy();
            Locale::of_name(&name).unwrap_or_else(|| {
                cx.state.warn(errors::error(errors::UNKNOWN_LOCALE, &[&name]));
                Locale::DEFAULT
            })
        }
    };
    Ok(Value::text(locale.grouped(&number)))
}

/// A rounded double with this many digits behind the point. Behind the digits that tell it from its
/// neighbours there are zeros.
fn with_digits(number: f64, digits: usize) -> String {
    let shortest = format!("{number}");
    let (whole, fraction) = shortest.split_once('.').unwrap_or((&shortest, ""));
    match digits {
        0 => whole.to_owned(),
        _ => format!("{whole}.{fraction:0<digits$.digits$}"),
    }
}

/// UNHEX.
fn unhex<'a>(value: &Value<'_>, cx: &Context<'_>) -> Evaluated<'a> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    let text = value.to_text();
    cx.state.hold(text.len())?;
    cx.state.work(text.len())?;
    match crate::lexer::hex_digits(&text) {
        Some(bytes) => Ok(owned_text(bytes, Collation::Binary)),
        None => {
            let shown = format!("'{}'", String::from_utf8_lossy(&text[..text.len().min(SHOWN_BYTES)]));
            cx.state.warn(errors::error(errors::WRONG_VALUE_FOR_TYPE, &[&"string", &shown, &"unhex"]));
            Ok(Value::Null)
        }
    }
}

/// Bytes of a text that a warning shows.
const SHOWN_BYTES: usize = 512;

fn quoted_type(types: &[Type]) -> Type {
    Type::text(types.first().map_or(0, |ty| ty.length.saturating_mul(2).saturating_add(2)))
}

fn length<'a>(value: &Value<'_>, count: impl Fn(&[u8]) -> usize) -> Value<'a> {
    if value.is_null() { Value::Null } else { Value::Int(count(&value.to_text()) as i64) }
}

/// `from` counts characters from 1, or from the end when negative.
fn substring<'a>(
    values: &[Value<'a>],
    from: i64,
    count: impl Fn(&[Value<'a>]) -> Option<i64>,
) -> Evaluated<'a> {
    if any_null(values) {
        return Ok(Value::Null);
    }
    let rule = values[0].collation();
    let text = values[0].to_text();
    let characters = collation::char_count(&text, rule) as i64;
    let start = if from < 0 { characters + from } else { from - 1 };
    let wanted = count(values).unwrap_or(i64::MAX);
    if from == 0 || start < 0 || start >= characters || wanted <= 0 {
        return Ok(owned_text(Vec::new(), rule));
    }
    let end = start.saturating_add(wanted).min(characters);
    let from = collation::char_offset(&text, start as usize, rule);
    let to = collation::char_offset(&text, end as usize, rule);
    Ok(owned_text(text[from..to].to_vec(), rule))
}

fn substring_index<'a>(values: &[Value<'a>], cx: &Context<'_>) -> Evaluated<'a> {
    if any_null(values) {
        return Ok(Value::Null);
    }
    let (text, delimiter, count) = (values[0].to_text(), values[1].to_text(), index(values, 2));
    let rule = values[0].collation();
    if delimiter.is_empty() || count == 0 {
        return Ok(owned_text(Vec::new(), rule));
    }
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let work = |bytes| cx.state.work(bytes);
    let part = if count > 0 {
        nth_place(Places::new(&text, &delimiter), wanted - 1, &work)?.0.map_or(&text[..], |at| &text[..at])
    } else if matches!(rule.charset(), Charset::Utf8mb3 | Charset::Utf8mb4) {
        // Counted from the left, as those that do not overlap.
        let places = || Places::new(&text, &delimiter);
        let (_, all) = nth_place(places(), usize::MAX, &work)?;
        let nth = match all.checked_sub(wanted) {
            Some(before) => nth_place(places(), before, &work)?.0,
            None => None,
        };
        nth.map_or(&text[..], |at| &text[at + delimiter.len()..])
    } else {
        // MySQL counts from the right where a character is a byte, as those that do not overlap: from the
        // left of both the other way round.
        cx.state.hold(text.len() + delimiter.len())?;
        let turned = |text: &[u8]| text.iter().rev().copied().collect::<Vec<u8>>();
        let (text_turned, delimiter) = (turned(&text), turned(&delimiter));
        let nth = nth_place(Places::new(&text_turned, &delimiter), wanted - 1, &work)?.0;
        nth.map_or(&text[..], |at| &text[text.len() - at..])
    };
    Ok(owned_text(part.to_vec(), rule))
}

/// Characters that may stand for one of the needle: U+FDFA weighs as much as eight.
const CHARACTERS_FOR_ONE: usize = 8;

/// LOCATE under a Unicode collation: the place is where characters begin that are equal to the needle. They
/// do not end within characters that weigh as one.
fn locate_by_weights<'a>(values: &[Value<'_>], unicode: UnicodeRule, cx: &Context<'_>) -> Evaluated<'a> {
    let (needle, text) = (values[0].to_text(), values[1].to_text());
    let first = values.get(2).map_or(1, Value::to_i64);
    let places = |text: &[u8]| {
        let begins = text.iter().enumerate().filter(|(_, byte)| **byte & 0xC0 != 0x80).map(|(at, _)| at);
        begins.chain(std::iter::once(text.len())).collect::<Vec<usize>>()
    };
    cx.state.hold(size_of::<usize>().saturating_mul(text.len() + needle.len()))?;
    let (most, places) = (places(&needle).len().saturating_mul(CHARACTERS_FOR_ONE), places(&text));
    for (number, from) in (1i64..).zip(0..places.len()) {
        if number < first || first < 1 {
            continue;
        }
        if needle.is_empty() {
            return Ok(Value::Int(number));
        }
        let mut to = places[from];
        for _ in 0..most {
            to += match unicode.first_unit(&text[to..]) {
                0 => break,
                unit => unit,
            };
            let place = &text[places[from]..to];
            cx.state.work(MATCH_BYTES + place.len())?;
            // The end of a place is no space, as it is where whole texts are compared.
            if unicode.has_weights_of(place, &needle) {
                return Ok(Value::Int(number));
            }
            if !unicode.begins_like(place, &needle) {
                break;
            }
        }
    }
    Ok(Value::Int(0))
}

fn locate<'a>(values: &[Value<'_>], cx: &Context<'_>) -> Evaluated<'a> {
    if any_null(values) {
        return Ok(Value::Null);
    }
    // As in MySQL that of the text that is searched, whatever else decides between the two elsewhere.
    let rule = values[1].collation();
    if let Comparison::Unicode(unicode) = rule.comparison() {
        return locate_by_weights(values, unicode, cx);
    }
    let work = |bytes| cx.state.work(bytes);
    let weights = |text: &[u8]| {
        cx.state.hold(text.len())?;
        in_chunks(text, text.len(), &work, |piece, made| collation::push_weights(piece, rule, made))
    };
    let (needle, text) = (weights(&values[0].to_text())?, weights(&values[1].to_text())?);
    let from = values.get(2).map_or(1, Value::to_i64);
    if from < 1 {
        return Ok(Value::Int(0));
    }
    if from > collation::char_count(&text, rule) as i64 + 1 {
        return Ok(Value::Int(0));
    }
    let from = collation::char_offset(&text, from as usize - 1, rule);
    let found = match needle.is_empty() {
        true => (from <= text.len()).then_some(from),
        false => Places::new(&text, &needle).starting_at(from).next(&work)?,
    };
    Ok(Value::Int(found.map_or(0, |at| collation::char_count(&text[..at], rule) as i64 + 1)))
}

fn pad<'a>(values: &[Value<'a>], left: bool, cx: &Context<'_>) -> Evaluated<'a> {
    if any_null(values) || index(values, 1) < 0 {
        return Ok(Value::Null);
    }
    let rule = match &values[0] {
        Value::Text(_, rule) => *rule,
        _ => Collation::Utf8mb4GeneralCi,
    };
    let (text, padding, wanted) = (values[0].to_text(), values[2].to_text(), index(values, 1) as usize);
    let is_bytes = matches!(&values[2], Value::Text(_, Collation::Binary));
    if is_bytes && rule != Collation::Binary && std::str::from_utf8(&padding).is_err() {
        let shown = errors::printable(&padding);
        return Err(errors::error(errors::CANNOT_CONVERT_STRING, &[&shown, &"binary", &"utf8mb4"]));
    }
    let have = collation::char_count(&text, rule);
    if have >= wanted {
        return Ok(owned_text(text[..collation::char_offset(&text, wanted, rule)].to_vec(), rule));
    }
    // Bytes that are no text in the collation may not begin a character anywhere.
    let unit = collation::char_count(&padding, rule);
    if unit == 0 {
        return Ok(if padding.is_empty() { owned_text(text.into_owned(), rule) } else { Value::Null });
    }
    let missing = wanted - have;
    let (times, rest) = (missing / unit, collation::char_offset(&padding, missing % unit, rule));
    let bytes = padding.len().saturating_mul(times).saturating_add(rest).saturating_add(text.len());
    made(bytes, if left { "lpad" } else { "rpad" }, rule, cx, || {
        let mut whole = Vec::with_capacity(bytes);
        if !left {
            whole.extend_from_slice(&text);
        }
        whole.extend_from_slice(&padding.repeat(times));
        whole.extend_from_slice(&padding[..rest]);
        if left {
            whole.extend_from_slice(&text);
        }
        whole
    })
}

fn insert<'a>(values: &[Value<'a>], cx: &Context<'_>) -> Evaluated<'a> {
    if any_null(values) {
        return Ok(Value::Null);
    }
    let rule = values[0].collation();
    let text = values[0].to_text();
    let characters = collation::char_count(&text, rule) as i64;
    let (at, count) = (index(values, 1), index(values, 2));
    if at < 1 || at > characters {
        return Ok(owned_text(text.to_vec(), rule));
    }
    let rest = if count < 0 { characters } else { (at - 1).saturating_add(count).min(characters) };
    let from = collation::char_offset(&text, at as usize - 1, rule);
    let to = collation::char_offset(&text, rest as usize, rule);
    let put = values[3].to_text();
    let bytes = from.saturating_add(put.len()).saturating_add(text.len() - to);
    made(bytes, "insert", rule, cx, || [&text[..from], &put[..], &text[to..]].concat())
}

/// CONV: the text's number in one base, written in another. A negative base is of signed numbers.
fn conv<'a>(value: &Value<'_>, from: i64, to: i64, cx: &Context<'_>) -> Evaluated<'a> {
    let bases = 2..=36;
    let given = value.to_text();
    let (from_base, to_base) = (from.unsigned_abs(), to.unsigned_abs());
    if value.is_null() || given.is_empty() || !bases.contains(&from_base) || !bases.contains(&to_base) {
        return Ok(Value::Null);
    }
    let text = given.trim_ascii_start();
    let negative = text.starts_with(b"-");
    let digits = &text[usize::from(negative || text.starts_with(b"+"))..];
    let value_of = |byte: &u8| char::from(*byte).to_digit(from_base as u32).map(u64::from);
    let digits: &[u8] = &digits[..digits.iter().take_while(|byte| value_of(byte).is_some()).count()];
    // Beyond 64 bits it is cut.
    let magnitude = digits
        .iter()
        .filter_map(value_of)
        .try_fold(0u64, |number, digit| number.checked_mul(from_base)?.checked_add(digit));
    let most = i64::MIN.unsigned_abs();
    let (number, cut) = match (magnitude, from < 0, negative) {
        (Some(number), true, true) if number <= most => (number.wrapping_neg(), false),
        (Some(number), true, false) if number < most => (number, false),
        (_, true, true) => (most, true),
        (_, true, false) => (most - 1, true),
        (Some(number), false, true) => (number.wrapping_neg(), false),
        (Some(number), false, false) => (number, false),
        // As MySQL has it: below the least number of decimal digits there is nothing.
        (None, false, true) if digits.iter().all(u8::is_ascii_digit) => (0, true),
        (None, false, _) => (u64::MAX, true),
    };
    if cut || digits.is_empty() {
        let shown = String::from_utf8_lossy(&given[..given.len().min(SHOWN_BYTES)]);
        cx.state.warn(errors::error(errors::TRUNCATED_WRONG_VALUE, &[&"DECIMAL", &shown]));
    }
    let minus = to < 0 && (number as i64) < 0;
    let mut rest = if minus { number.wrapping_neg() } else { number };
    let mut result = Vec::new();
    while rest > 0 || result.is_empty() {
        let digit = char::from_digit((rest % to_base) as u32, 36).unwrap_or('0');
        result.push(digit.to_ascii_uppercase());
        rest /= to_base;
    }
    if minus {
        result.push('-');
    }
    Ok(Value::text(result.into_iter().rev().collect::<String>()))
}

fn quote(text: &[u8]) -> Vec<u8> {
    let mut result = vec![b'\''];
    for &byte in text {
        match byte {
            b'\'' | b'\\' => result.extend_from_slice(&[b'\\', byte]),
            0 => result.extend_from_slice(b"\\0"),
            26 => result.extend_from_slice(b"\\Z"),
            _ => result.push(byte),
        }
    }
    result.push(b'\'');
    result
}

/// TRIM.
pub fn trim<'a>(
    side: TrimSide,
    what: Option<Value<'a>>,
    operand: Value<'a>,
    cx: &Context<'_>,
) -> Evaluated<'a> {
    if operand.is_null() || what.as_ref().is_some_and(Value::is_null) {
        return Ok(Value::Null);
    }
    let what = what.map_or(Cow::Borrowed(&b" "[..]), |what| Cow::Owned(what.to_text().into_owned()));
    let rule = operand.collation();
    let text = operand.to_text();
    let mut rest: &[u8] = &text;
    if what.is_empty() {
        return Ok(owned_text(rest.to_vec(), rule));
    }
    if side != TrimSide::Trailing {
        while let Some(shorter) = rest.strip_prefix(&what[..]) {
            cx.state.work(what.len())?;
            rest = shorter;
        }
    }
    if side != TrimSide::Leading {
        while let Some(shorter) = rest.strip_suffix(&what[..]) {
            cx.state.work(what.len())?;
            rest = shorter;
        }
    }
    Ok(owned_text(rest.to_vec(), rule))
}
