//! Functions of UUIDs.

use untorn::types::Collation;

use super::{Function, TextOf, any_null, function, owned_text};
use crate::errors;
use crate::expr::types::Type;
use crate::result::SqlError;
use crate::value::Value;

/// The functions.
pub(super) static FUNCTIONS: &[Function] = &[
    function!("IS_UUID", 1..=1, |_| Type::BOOL, |v, _| Ok(match v[0].is_null() {
        true => Value::Null,
        false => Value::truth_value(read(&v[0].to_text()).is_some()),
    })),
    function!("UUID_TO_BIN", 1..=2, |_| Type::bytes(16), |v, _| {
        if v[0].is_null() {
            return Ok(Value::Null);
        }
        let uuid = read(&v[0].to_text()).ok_or_else(|| wrong(&v[0], "uuid_to_bin"))?;
        let uuid = if swaps(v) { time_first(uuid) } else { uuid };
        Ok(owned_text(uuid.to_vec(), Collation::Binary))
    }),
    function!("BIN_TO_UUID", 1..=2, |_| Type::text(36), |v, _| {
        if v[0].is_null() {
            return Ok(Value::Null);
        }
        let uuid: [u8; 16] = v[0].to_text()[..].try_into().map_err(|_| wrong(&v[0], "bin_to_uuid"))?;
        Ok(Value::text(shown(if swaps(v) { time_last(uuid) } else { uuid })))
    })
    .with_text_of(TextOf::Connection),
];

fn wrong(value: &Value<'_>, function: &str) -> SqlError {
    errors::error(errors::WRONG_VALUE_FOR_TYPE, &[&"string", &value.to_string_lossy(), &function])
}

fn swaps(values: &[Value<'_>]) -> bool {
    values.get(1).is_some_and(|flag| !any_null(std::slice::from_ref(flag)) && flag.truth() == Some(true))
}

/// Thirty-two digits, with the four dashes or without them, in braces only with them.
fn read(text: &[u8]) -> Option<[u8; 16]> {
    let text = match text {
        [b'{', inner @ .., b'}'] if inner.len() == 36 => inner,
        text => text,
    };
    let mut digits = [0; 32];
    match text.len() {
        32 => digits.copy_from_slice(text),
        36 => {
            let mut at = 0;
            for (place, byte) in text.iter().enumerate() {
                match place {
                    8 | 13 | 18 | 23 if *byte == b'-' => {}
                    8 | 13 | 18 | 23 => return None,
                    _ => {
                        digits[at] = *byte;
                        at += 1;
                    }
                }
            }
        }
        _ => return None,
    }
    let mut uuid = [0; 16];
    for (byte, pair) in uuid.iter_mut().zip(digits.as_chunks::<2>().0) {
        let [high, low] = pair.map(|digit| char::from(digit).to_digit(16));
        *byte = (high? << 4 | low?) as u8;
    }
    Some(uuid)
}

fn shown(uuid: [u8; 16]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(36);
    for (at, byte) in uuid.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Version 1 has the low bits of its time first; so that later ones are greater, they are put last.
fn time_first(uuid: [u8; 16]) -> [u8; 16] {
    let mut made = uuid;
    made[..2].copy_from_slice(&uuid[6..8]);
    made[2..4].copy_from_slice(&uuid[4..6]);
    made[4..8].copy_from_slice(&uuid[..4]);
    made
}

fn time_last(uuid: [u8; 16]) -> [u8; 16] {
    let mut made = uuid;
    made[6..8].copy_from_slice(&uuid[..2]);
    made[4..6].copy_from_slice(&uuid[2..4]);
    made[..4].copy_from_slice(&uuid[4..8]);
    made
}
