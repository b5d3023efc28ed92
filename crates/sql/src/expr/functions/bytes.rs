//! Bytes as what they are: the bit operators on binary strings, and whether bytes are a text.
//!
//! `& | ^ ~ << >>` and BIT_COUNT are of numbers unless their operands are binary strings: addresses, masks,
//! UUIDs. Which of the two is decided when the operator is bound (`expr/bind/operators.rs`); the functions
//! here have no names that a statement could call.

use untorn::types::{Charset, Collation};

use super::{Function, any_null, function, owned_text};
use crate::errors;
use crate::expr::types::Type;
use crate::expr::{Context, Evaluated};
use crate::result::SqlError;
use crate::value::{Value, collation};

fn longest(types: &[Type]) -> Type {
    Type::bytes(types.iter().map(|ty| ty.length).max().unwrap_or(0))
}

fn pairwise<'a>(values: &[Value<'_>], cx: &Context<'_>, of: fn(u8, u8) -> u8) -> Evaluated<'a> {
    if any_null(values) {
        return Ok(Value::Null);
    }
    let (left, right) = (values[0].to_text(), values[1].to_text());
    if left.len() != right.len() {
        return Err(errors::error(errors::INVALID_BITWISE_OPERANDS_SIZE, &[]));
    }
    cx.state.hold(left.len())?;
    cx.state.work(left.len())?;
    let made = left.iter().zip(right.iter()).map(|(left, right)| of(*left, *right)).collect();
    Ok(owned_text(made, Collation::Binary))
}

/// The bytes moved by a number of bits; what is moved out is lost.
fn shifted<'a>(values: &[Value<'_>], cx: &Context<'_>, left: bool) -> Evaluated<'a> {
    if any_null(values) {
        return Ok(Value::Null);
    }
    let bytes = values[0].to_text();
    cx.state.hold(bytes.len())?;
    cx.state.work(bytes.len())?;
    let by = usize::try_from(values[1].to_bits()).unwrap_or(usize::MAX);
    let (whole, bits) = (by / 8, (by % 8) as u32);
    // Each byte is made of two neighbours.
    let byte = |at: Option<usize>| at.and_then(|at| bytes.get(at)).copied().map_or(0, u16::from);
    let made = (0..bytes.len()).map(|at| match left {
        true => {
            let from = at.checked_add(whole);
            let pair = byte(from) << 8 | byte(from.and_then(|from| from.checked_add(1)));
            (pair << bits >> 8) as u8
        }
        false => {
            let from = at.checked_sub(whole);
            let pair = byte(from.and_then(|from| from.checked_sub(1))) << 8 | byte(from);
            (pair >> bits) as u8
        }
    });
    Ok(owned_text(made.collect(), Collation::Binary))
}

/// `&` of binary strings.
pub static BYTES_AND: Function = function!("&", 2..=2, longest, |v, cx| pairwise(v, cx, |a, b| a & b));
/// `|` of binary strings.
pub static BYTES_OR: Function = function!("|", 2..=2, longest, |v, cx| pairwise(v, cx, |a, b| a | b));
/// `^` of binary strings.
pub static BYTES_XOR: Function = function!("^", 2..=2, longest, |v, cx| pairwise(v, cx, |a, b| a ^ b));
/// `<<` of a binary string.
pub static BYTES_LEFT: Function = function!("<<", 2..=2, longest, |v, cx| shifted(v, cx, true));
/// `>>` of a binary string.
pub static BYTES_RIGHT: Function = function!(">>", 2..=2, longest, |v, cx| shifted(v, cx, false));
/// `~` of a binary string.
pub static BYTES_NOT: Function = function!("~", 1..=1, longest, |v, cx| {
    if v[0].is_null() {
        return Ok(Value::Null);
    }
    let bytes = v[0].to_text();
    cx.state.hold(bytes.len())?;
    cx.state.work(bytes.len())?;
    Ok(owned_text(bytes.iter().map(|byte| !byte).collect(), Collation::Binary))
});
/// BIT_COUNT of a binary string.
pub static BYTES_COUNT: Function = function!("BIT_COUNT", 1..=1, |_| Type::INT, |v, cx| {
    if v[0].is_null() {
        return Ok(Value::Null);
    }
    let bytes = v[0].to_text();
    cx.state.work(bytes.len())?;
    Ok(Value::Int(bytes.iter().map(|byte| i64::from(byte.count_ones())).sum()))
});

/// A text, or NULL with warning 1300 for bytes that are none: what stands between a binary string and the
/// character set that it is said to be of.
pub static VALID_TEXT: Function = function!("CONVERT", 1..=1, super::widest, |v, cx| {
    if let Value::Text(bytes, Collation::Binary) = &v[0]
        && let Some(error) = invalid_text(bytes)
    {
        cx.state.warn(error);
        return Ok(Value::Null);
    }
    Ok(v[0].clone())
});

/// CONVERT to a character set with fewer characters.
pub static FITTED_TO_ASCII: Function =
    function!("CONVERT", 1..=1, super::widest, |v, _| Ok(fitted(&v[0], Charset::Ascii)));
/// See [`FITTED_TO_ASCII`].
pub static FITTED_TO_LATIN1: Function =
    function!("CONVERT", 1..=1, super::widest, |v, _| Ok(fitted(&v[0], Charset::Latin1)));
/// See [`FITTED_TO_ASCII`].
pub static FITTED_TO_UTF8MB3: Function =
    function!("CONVERT", 1..=1, super::widest, |v, _| Ok(fitted(&v[0], Charset::Utf8mb3)));

/// A parameter beside a text in `latin1`: error 3854 for a character that it does not have.
pub static ONLY_IN_LATIN1: Function = function!("CONVERT", 1..=1, super::widest, |v, _| {
    if let Value::Text(text, rule) = &v[0] {
        refuse_foreign(text, *rule, Charset::Latin1)?;
    }
    Ok(v[0].clone())
});

/// Error 3854 for a text with a character that a character set does not have.
pub fn refuse_foreign(text: &[u8], of_text: Collation, charset: Charset) -> Result<(), SqlError> {
    let from = of_text.charset();
    let wrong = match (from, charset) {
        // Bytes must be text there.
        (Charset::Binary, Charset::Utf8mb3 | Charset::Utf8mb4) => {
            invalid_text(text).is_some() || charset.first_foreign(text).is_some()
        }
        (Charset::Binary, Charset::Ascii) => !text.is_ascii(),
        _ => from > charset && charset.first_foreign(text).is_some(),
    };
    if !wrong {
        return Ok(());
    }
    let shown = errors::printable(text);
    Err(errors::error(errors::CANNOT_CONVERT_STRING, &[&shown, &from.name(), &charset.name()]))
}

fn fitted<'a>(value: &Value<'a>, charset: Charset) -> Value<'a> {
    match value {
        Value::Text(text, rule) if *rule != Collation::Binary => {
            Value::Text(collation::fitted(text.clone(), charset), *rule)
        }
        other => other.clone(),
    }
}

/// Error 1300 for bytes that are no text.
pub fn invalid_text(bytes: &[u8]) -> Option<SqlError> {
    let wrong = std::str::from_utf8(bytes).err()?.valid_up_to();
    let shown = bytes[wrong..].iter().take(3).map(|byte| format!("{byte:02X}")).collect::<String>();
    Some(errors::error(errors::INVALID_CHARACTER_STRING, &[&"utf8mb4", &shown]))
}
