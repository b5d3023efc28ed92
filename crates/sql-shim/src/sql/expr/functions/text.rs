//! Functions of texts.

use std::borrow::Cow;

use memchr::memmem;
use untorn::types::Collation;

use super::{Function, any_null, function, index, owned_text, text_fits, text_sum};
use crate::result::SqlError;
use crate::sql::ast::TrimSide;
use crate::sql::expr::types::Type;
use crate::sql::expr::{Context, Evaluated};
use crate::sql::value::{Value, collation, compare, decimal};

/// Longest text of a list of types.
fn text_like(types: &[Type]) -> Type {
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
    function!("LOWER", 1..=1, text_like, |v, _| text(v, collation::lower)),
    function!("LCASE", 1..=1, text_like, |v, _| text(v, collation::lower)),
    function!("UPPER", 1..=1, text_like, |v, _| text(v, collation::upper)),
    function!("UCASE", 1..=1, text_like, |v, _| text(v, collation::upper)),
    function!("REVERSE", 1..=1, text_like, |v, _| text(v, |t| {
        String::from_utf8_lossy(t).chars().rev().collect::<String>().into_bytes()
    })),
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
        let separator = v[0].to_text();
        let parts: Vec<_> = v[1..].iter().filter(|x| !x.is_null()).map(Value::to_text).collect();
        let bytes: usize = parts.iter().map(|part| part.len() + separator.len()).sum();
        made(bytes, "concat_ws", v[0].collation(), cx, || parts.join(&separator[..]))
    }),
    function!("LEFT", 2..=2, text_like, |v, _| substring(v, 1, |v| Some(index(v, 1)))),
    function!("RIGHT", 2..=2, text_like, |v, _| {
        let count = collation::char_count(&v[0].to_text(), v[0].collation()) as i64;
        let wanted = index(v, 1).clamp(0, count);
        substring(v, count - wanted + 1, |_| None)
    }),
    function!("SUBSTRING", 2..=3, text_like, |v, _| {
        substring(v, index(v, 1), |v| v.get(2).map(Value::to_i64))
    }),
    function!("SUBSTRING_INDEX", 3..=3, text_like, |v, cx| substring_index(v, cx)),
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
        Ok(owned_text(replace(Places::new(&text, &from), &to, bytes, &work)?, rule))
    }),
    function!("REPEAT", 2..=2, |_| Type::text(65_535), |v, cx| {
        if any_null(v) {
            return Ok(Value::Null);
        }
        let (text, count) = (v[0].to_text(), usize::try_from(index(v, 1)).unwrap_or(0));
        let bytes = text.len().saturating_mul(count);
        made(bytes, "repeat", v[0].collation(), cx, || text.repeat(count))
    }),
    function!("SPACE", 1..=1, |_| Type::text(65_535), |v, cx| {
        if v[0].is_null() {
            return Ok(Value::Null);
        }
        let count = usize::try_from(index(v, 0)).unwrap_or(0);
        made(count, "space", Collation::Utf8mb4GeneralCi, cx, || vec![b' '; count])
    }),
    function!("LPAD", 3..=3, |_| Type::text(65_535), |v, cx| pad(v, true, cx)),
    function!("RPAD", 3..=3, |_| Type::text(65_535), |v, cx| pad(v, false, cx)),
    function!("INSERT", 4..=4, text_sum, |v, cx| insert(v, cx)),
    function!("ASCII", 1..=1, |_| Type::INT, |v, _| {
        Ok(length(&v[0], |text| usize::from(text.first().copied().unwrap_or(0))))
    }),
    function!("ORD", 1..=1, |_| Type::INT, |v, _| {
        Ok(length(&v[0], |text| {
            text.iter().take(if text.is_ascii() { 1 } else { 4 }).fold(0, |n, b| n << 8 | usize::from(*b))
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
                made(text.len().saturating_mul(2), "hex", Collation::Utf8mb4GeneralCi, cx, || {
                    text.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
                })
            }
            number => Ok(Value::text(format!("{:X}", number.to_bits()))),
        }
    }),
    function!("UNHEX", 1..=1, |t| Type::bytes(t.first().map_or(0, |t| t.length / 2)), |v, _| {
        let mut token = b"0x".to_vec();
        token.extend_from_slice(&v[0].to_text());
        let bytes = if v[0].is_null() { None } else { crate::sql::lexer::hex_value(&token) };
        Ok(bytes.map_or(Value::Null, |bytes| owned_text(bytes, Collation::Binary)))
    }),
    function!("BIN", 1..=1, |_| Type::text(64), |v, _| Ok(match v[0].is_null() {
        true => Value::Null,
        false => Value::text(format!("{:b}", v[0].to_bits())),
    })),
    function!("CONV", 3..=3, |_| Type::text(64), |v, _| conv(v)),
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
        let wanted = collation::trimmed(&wanted, rule);
        for (at, item) in list.split(|byte| *byte == b',').enumerate() {
            cx.state.work(item.len() + MATCH_BYTES)?;
            if collation::equal_to_trimmed(wanted, item, rule) {
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
    }),
    function!("FORMAT", 2..=3, |_| Type::text(64), |v, _| Ok(match v[0].is_null() {
        true => Value::Null,
        false => Value::text(grouped(&decimal::format(&decimal::round(
            &v[0].to_decimal(),
            index(v, 1).clamp(0, 30)
        )))),
    })),
    function!("JSON_EXTRACT", 2.., |_| Type::text(65_535), |_, _| Ok(Value::Null)),
    function!("JSON_UNQUOTE", 1..=1, |_| Type::text(65_535), |v, _| Ok(v[0].clone())),
];

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
    let places = || Places::new(&text, &delimiter);
    let work = |bytes| cx.state.work(bytes);
    let part = if count > 0 {
        nth_place(places(), wanted - 1, &work)?.0.map_or(&text[..], |at| &text[..at])
    } else {
        // Counted from the left, as those that do not overlap.
        let (_, all) = nth_place(places(), usize::MAX, &work)?;
        let nth = match all.checked_sub(wanted) {
            Some(before) => nth_place(places(), before, &work)?.0,
            None => None,
        };
        nth.map_or(&text[..], |at| &text[at + delimiter.len()..])
    };
    Ok(owned_text(part.to_vec(), rule))
}

/// Bytes that are searched in one go.
const BYTES_SEARCHED: usize = 1 << 20;

/// Bytes of work that finding a place counts for.
const MATCH_BYTES: usize = 16;

/// The places of a text that do not overlap, from left to right.
struct Places<'t> {
    text: &'t [u8],
    finder: memmem::Finder<'t>,
    from: usize,
}

impl<'t> Places<'t> {
    /// Those of `needle`, which is not empty.
    fn new(text: &'t [u8], needle: &'t [u8]) -> Places<'t> {
        Places { text, finder: memmem::Finder::new(needle), from: 0 }
    }

    /// The next place. `work` is told the bytes that were gone through, and may say that it is enough.
    fn next(&mut self, work: &dyn Fn(usize) -> Result<(), SqlError>) -> Result<Option<usize>, SqlError> {
        let needle = self.finder.needle().len();
        loop {
            let rest = self.text.get(self.from..).unwrap_or_default();
            let searched = &rest[..rest.len().min(BYTES_SEARCHED + needle - 1)];
            if let Some(at) = self.finder.find(searched) {
                let place = self.from + at;
                self.from = place + needle;
                work(at + MATCH_BYTES)?;
                return Ok(Some(place));
            }
            work(searched.len())?;
            if searched.len() == rest.len() {
                return Ok(None);
            }
            self.from += BYTES_SEARCHED;
        }
    }
}

/// Where the place with so many before it is, and how many there are up to it.
fn nth_place(
    mut places: Places<'_>,
    before: usize,
    work: &dyn Fn(usize) -> Result<(), SqlError>,
) -> Result<(Option<usize>, usize), SqlError> {
    let mut found = 0;
    while let Some(at) = places.next(work)? {
        if found == before {
            return Ok((Some(at), found));
        }
        found += 1;
    }
    Ok((None, found))
}

fn locate<'a>(values: &[Value<'_>], cx: &Context<'_>) -> Evaluated<'a> {
    if any_null(values) {
        return Ok(Value::Null);
    }
    let rule = collation::common(values[0].collation(), values[1].collation());
    let fold = |text: &[u8]| {
        if rule == Collation::Utf8mb4GeneralCi { collation::lower(text) } else { text.to_vec() }
    };
    let (needle, text) = (fold(&values[0].to_text()), fold(&values[1].to_text()));
    let from = values.get(2).map_or(1, Value::to_i64);
    if from < 1 {
        return Ok(Value::Int(0));
    }
    let from = collation::char_offset(&text, from as usize - 1, rule);
    let found = match needle.is_empty() {
        true => (from <= text.len()).then_some(from),
        false => Places { from, ..Places::new(&text, &needle) }.next(&|bytes| cx.state.work(bytes))?,
    };
    Ok(Value::Int(found.map_or(0, |at| collation::char_count(&text[..at], rule) as i64 + 1)))
}

/// The text with `to` in all places, made in a buffer of so many bytes.
fn replace(
    mut places: Places<'_>,
    to: &[u8],
    bytes: usize,
    work: &dyn Fn(usize) -> Result<(), SqlError>,
) -> Result<Vec<u8>, SqlError> {
    let mut result = Vec::with_capacity(bytes);
    let mut at = 0;
    while let Some(next) = places.next(work)? {
        work(to.len())?;
        result.extend_from_slice(&places.text[at..next]);
        result.extend_from_slice(to);
        at = places.from;
    }
    result.extend_from_slice(&places.text[at..]);
    Ok(result)
}

fn pad<'a>(values: &[Value<'a>], left: bool, cx: &Context<'_>) -> Evaluated<'a> {
    if any_null(values) || index(values, 1) < 0 {
        return Ok(Value::Null);
    }
    let rule = collation::common(values[0].collation(), values[2].collation());
    let (text, padding, wanted) = (values[0].to_text(), values[2].to_text(), index(values, 1) as usize);
    let have = collation::char_count(&text, rule);
    if have >= wanted {
        return Ok(owned_text(text[..collation::char_offset(&text, wanted, rule)].to_vec(), rule));
    }
    // Bytes that are no text in the collation may not begin a character anywhere.
    let unit = collation::char_count(&padding, rule);
    if unit == 0 {
        return Ok(if padding.is_empty() { owned_text(Vec::new(), rule) } else { Value::Null });
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

fn conv<'a>(values: &[Value<'a>]) -> Evaluated<'a> {
    let (from, to) = (index(values, 1), index(values, 2));
    if any_null(values) || !(2..=36).contains(&from.abs()) || !(2..=36).contains(&to.abs()) {
        return Ok(Value::Null);
    }
    let text = values[0].to_string_lossy();
    let text = text.trim();
    let negative = text.starts_with('-');
    let base = from.unsigned_abs() as u32;
    let digits = text.trim_start_matches('-').chars().map_while(|c| c.to_digit(base));
    let number = digits.fold(0u64, |n, d| n.saturating_mul(u64::from(base)).saturating_add(u64::from(d)));
    let mut number = if negative { (number as i64).wrapping_neg() as u64 } else { number };
    let minus = to < 0 && (number as i64) < 0;
    if minus {
        number = (number as i64).unsigned_abs();
    }
    let base = to.unsigned_abs();
    let mut result = Vec::new();
    while number > 0 || result.is_empty() {
        let digit = char::from_digit((number % base) as u32, 36).unwrap_or('0');
        result.push(digit.to_ascii_uppercase());
        number /= base;
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

/// Commas between groups of three digits.
fn grouped(number: &str) -> String {
    let (sign, rest) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, fraction) = rest.split_once('.').map_or((rest, None), |(w, f)| (w, Some(f)));
    let mut result = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            result.push(',');
        }
        result.push(digit);
    }
    if let Some(fraction) = fraction {
        result.push('.');
        result.push_str(fraction);
    }
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::errors;

    #[test]
    fn groups_of_digits() {
        assert_eq!(grouped("-1234567.50"), "-1,234,567.50");
    }

    #[test]
    fn what_goes_through_a_long_text_is_stopped_in_it() {
        let text = b"ab".repeat(100_000);
        let none = b"ab".repeat(2 * BYTES_SEARCHED);
        let stop = |stop_after: usize, told: &Cell<usize>, bytes: usize| {
            told.set(told.get() + bytes);
            match told.get() < stop_after {
                true => Ok(()),
                false => Err(errors::error(errors::QUERY_INTERRUPTED, &[])),
            }
        };
        for stop_after in [1_000, 100_000] {
            let told = Cell::new(0);
            let work = |bytes| stop(stop_after, &told, bytes);
            assert!(replace(Places::new(&text, b"b"), b"xx", 3 * text.len(), &work).is_err());
            assert!(told.get() < stop_after + 100, "{} bytes told", told.get());
            told.set(0);
            assert!(nth_place(Places::new(&text, b"b"), usize::MAX, &work).is_err());
            assert!(told.get() < stop_after + 100, "{} bytes told", told.get());
            // A text without the needle is searched by pieces.
            told.set(0);
            assert!(Places::new(&none, b"c").next(&work).is_err());
            assert!(told.get() <= BYTES_SEARCHED, "{} bytes told", told.get());
        }
    }

    #[test]
    fn places_are_found_across_pieces() {
        let good = |_| Ok(());
        fn places(text: &[u8], needle: &[u8]) -> Vec<usize> {
            let mut places = Places::new(text, needle);
            std::iter::from_fn(|| places.next(&|_| Ok(())).unwrap_or(None)).collect()
        }
        assert_eq!(places(b"aaaaa", b"aa"), [0, 2]);
        assert!(places(b"abc", b"abcd").is_empty());
        assert!(places(b"", b"a").is_empty());
        for needle in [&b"x"[..], b"xyz"] {
            for at in [0, 1, BYTES_SEARCHED - 2, BYTES_SEARCHED - 1, BYTES_SEARCHED, 2 * BYTES_SEARCHED] {
                let mut text = vec![b'-'; 3 * BYTES_SEARCHED];
                text[at..at + needle.len()].copy_from_slice(needle);
                assert_eq!(places(&text, needle), [at]);
            }
        }
        assert_eq!(nth_place(Places::new(b"a.bc..d", b"."), 2, &good), Ok((Some(5), 2)));
        assert_eq!(nth_place(Places::new(b"a.bc..d", b"."), 3, &good), Ok((None, 3)));
    }
}
