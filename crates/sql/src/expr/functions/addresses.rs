//! Addresses of the Internet, versions 4 and 6.

use std::net::{Ipv4Addr, Ipv6Addr};

use untorn::types::Collation;

use super::{Function, TextOf, function, owned_text};
use crate::errors;
use crate::expr::types::Type;
use crate::expr::{Context, Evaluated};
use crate::value::Value;

/// The functions.
pub(super) static FUNCTIONS: &[Function] = &[
    function!("INET_ATON", 1..=1, |_| Type { length: 21, ..Type::UINT }, |v, cx| {
        match number(&v[0].to_text()) {
            Some(number) if !v[0].is_null() => Ok(Value::UInt(number)),
            _ => none(&v[0], "string", "inet_aton", cx),
        }
    }),
    function!("INET_NTOA", 1..=1, |_| Type::text(31), |v, cx| match u32::try_from(v[0].to_whole()) {
        Ok(number) if !v[0].is_null() => Ok(Value::text(Ipv4Addr::from_bits(number).to_string())),
        _ => none(&v[0], "integer", "inet_ntoa", cx),
    })
    .with_text_of(TextOf::Connection),
    function!("INET6_ATON", 1..=1, |_| Type::bytes(16), |v, cx| {
        let text = v[0].to_text();
        let address = version4(&text).map(|address| address.octets().to_vec());
        let address = address.or_else(|| version6(&text).map(|address| address.octets().to_vec()));
        match address {
            Some(bytes) if !v[0].is_null() => Ok(owned_text(bytes, Collation::Binary)),
            _ => none(&v[0], "string", "inet6_aton", cx),
        }
    }),
    function!("INET6_NTOA", 1..=1, |_| Type::text(39), |v, cx| {
        let bytes = v[0].to_text();
        let shown = match (<[u8; 4]>::try_from(&bytes[..]), <[u8; 16]>::try_from(&bytes[..])) {
            _ if !of_bytes(&v[0]) => None,
            (Ok(bytes), _) => Some(Ipv4Addr::from(bytes).to_string()),
            (_, Ok(bytes)) => Some(shown(Ipv6Addr::from(bytes))),
            _ => None,
        };
        shown.map_or_else(|| none(&v[0], "string", "inet6_ntoa", cx), |text| Ok(Value::text(text)))
    })
    .with_text_of(TextOf::Connection),
    function!("IS_IPV4", 1..=1, |_| Type::BOOL, |v, _| {
        Ok(test(&v[0], version4(&v[0].to_text()).is_some()))
    }),
    function!("IS_IPV6", 1..=1, |_| Type::BOOL, |v, _| {
        Ok(test(&v[0], version6(&v[0].to_text()).is_some()))
    }),
    function!("IS_IPV4_COMPAT", 1..=1, |_| Type::BOOL, |v, _| {
        // Nobody's address and one's own are not of version 4.
        let last = v[0].to_text().last_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        Ok(test(&v[0], begins(&v[0], &[0; 12]) && last > 1))
    }),
    function!("IS_IPV4_MAPPED", 1..=1, |_| Type::BOOL, |v, _| {
        Ok(test(&v[0], begins(&v[0], &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255])))
    }),
];

fn of_bytes(value: &Value<'_>) -> bool {
    matches!(value, Value::Text(_, Collation::Binary))
}

fn test<'a>(value: &Value<'_>, truth: bool) -> Value<'a> {
    if value.is_null() { Value::Null } else { Value::truth_value(truth) }
}

/// Whether a value is an address of version 6 that begins with these bytes, and goes on.
fn begins(value: &Value<'_>, prefix: &[u8; 12]) -> bool {
    let bytes = value.to_text();
    of_bytes(value) && bytes.len() == 16 && bytes.starts_with(prefix)
}

/// NULL, with a warning unless the argument is NULL too.
fn none<'a>(value: &Value<'_>, kind: &str, function: &str, cx: &Context<'_>) -> Evaluated<'a> {
    if !value.is_null() {
        // MySQL shows texts as they are written.
        let shown = value.to_string_lossy();
        let shown = if matches!(value, Value::Text(..)) { format!("'{shown}'") } else { shown };
        cx.state.warn(errors::error(errors::WRONG_VALUE_FOR_TYPE, &[&kind, &shown, &function]));
    }
    Ok(Value::Null)
}

/// What INET_ATON reads: up to four parts, of which those missing stand before the last.
fn number(text: &[u8]) -> Option<u64> {
    let parts = text.split(|byte| *byte == b'.').enumerate();
    let (mut number, mut count, mut last) = (0u64, 0, 0);
    for (at, part) in parts {
        // The last part must be there.
        if at > 3 || !part.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let value = part.iter().fold(0u64, |n, digit| n.saturating_mul(10) + u64::from(digit - b'0'));
        if value > 255 {
            return None;
        }
        if at > 0 {
            number = number << 8 | last;
        }
        (last, count) = (value, at + 1);
    }
    if text.is_empty() || text.ends_with(b".") {
        return None;
    }
    let missing = if count == 1 { 0 } else { 4 - count };
    Some(number << (8 * missing) << 8 | last)
}

/// Four parts of one to three digits.
fn version4(text: &[u8]) -> Option<Ipv4Addr> {
    let mut parts = [0u8; 4];
    let mut given = text.split(|byte| *byte == b'.');
    for part in &mut parts {
        let digits = given.next().filter(|digits| (1..=3).contains(&digits.len()))?;
        let digits = std::str::from_utf8(digits).ok().filter(|_| digits.iter().all(u8::is_ascii_digit))?;
        *part = digits.parse().ok()?;
    }
    given.next().is_none().then(|| Ipv4Addr::from(parts))
}

/// An address of version 4 may stand at its end, with zeros before its numbers.
fn version6(text: &[u8]) -> Option<Ipv6Addr> {
    let last = text.iter().rposition(|byte| *byte == b':')? + 1;
    let Some(address) = version4(&text[last..]) else { return std::str::from_utf8(text).ok()?.parse().ok() };
    let before = std::str::from_utf8(&text[..last]).ok()?;
    format!("{before}{address}").parse().ok()
}

/// The first of the longest runs of zeros is left out, of one zero too. Those with an address of version 4 at
/// their end show that as such.
fn shown(address: Ipv6Addr) -> String {
    let segments = address.segments();
    let (mut gap, mut run) = (0..0, 0..0);
    for (at, segment) in segments.iter().enumerate() {
        run = if *segment == 0 { run.start..at + 1 } else { at + 1..at + 1 };
        if run.len() > gap.len() {
            gap = run.clone();
        }
    }
    let [.., a, b] = segments.map(u16::to_be_bytes);
    let version4 = Ipv4Addr::new(a[0], a[1], b[0], b[1]);
    if gap == (0..6) {
        return format!("::{version4}");
    }
    if gap == (0..5) && segments[5] == 0xffff {
        return format!("::ffff:{version4}");
    }
    let joined = |segments: &[u16]| {
        segments.iter().map(|segment| format!("{segment:x}")).collect::<Vec<_>>().join(":")
    };
    match gap.is_empty() {
        true => joined(&segments),
        false => format!("{}::{}", joined(&segments[..gap.start]), joined(&segments[gap.end..])),
    }
}
