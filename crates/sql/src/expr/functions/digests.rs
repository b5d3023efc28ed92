//! Functions that make digests of texts, and random bytes.

use md5::Digest;
use untorn::types::Collation;

use super::{Function, TextOf, any_null, function, index, owned_text};
use crate::errors;
use crate::expr::types::Type;
use crate::expr::{Context, Evaluated, functions::chunks};
use crate::value::Value;

/// The functions.
pub(super) static FUNCTIONS: &[Function] = &[
    function!("MD5", 1..=1, |_| Type::text(32), |v, cx| digest::<md5::Md5>(&v[0], cx))
        .with_text_of(TextOf::Connection),
    function!("SHA", 1..=1, |_| Type::text(40), |v, cx| digest::<sha1::Sha1>(&v[0], cx)),
    function!("SHA1", 1..=1, |_| Type::text(40), |v, cx| digest::<sha1::Sha1>(&v[0], cx))
        .with_text_of(TextOf::Connection),
    function!("SHA2", 2..=2, |_| Type::text(128), |v, cx| {
        if any_null(v) {
            return Ok(Value::Null);
        }
        match index(v, 1) {
            224 => digest::<sha2::Sha224>(&v[0], cx),
            0 | 256 => digest::<sha2::Sha256>(&v[0], cx),
            384 => digest::<sha2::Sha384>(&v[0], cx),
            512 => digest::<sha2::Sha512>(&v[0], cx),
            _ => {
                cx.state.warn(errors::error(errors::WRONG_PARAMETERS_TO_NATIVE_FCT, &[&"sha2"]));
                Ok(Value::Null)
            }
        }
    })
    .with_text_of(TextOf::Connection),
    Function {
        name: "RANDOM_BYTES",
        least: 1,
        most: 1,
        volatile: true,
        text_of: TextOf::Arguments,
        result: |_| Type::bytes(RANDOM_BYTES_MAX as u32),
        eval: |v, cx| random_bytes(&v[0], cx),
    },
];

/// Longest result of RANDOM_BYTES.
const RANDOM_BYTES_MAX: i64 = 1024;

/// A digest in hexadecimal digits.
fn digest<'a, D: Digest>(value: &Value<'_>, cx: &Context<'_>) -> Evaluated<'a> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    let mut digest = D::new();
    chunks::each_chunk(&value.to_text(), &|bytes| cx.state.work(bytes), |piece| digest.update(piece))?;
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|four| b"0123456789abcdef"[usize::from(four)]);
    let text = digest.finalize().iter().flat_map(digits).collect();
    Ok(owned_text(text, Collation::Utf8mb4GeneralCi))
}

/// Bytes that nobody can foresee: from the environment, where those of RAND are computed.
fn random_bytes<'a>(length: &Value<'_>, cx: &Context<'_>) -> Evaluated<'a> {
    if length.is_null() {
        return Ok(Value::Null);
    }
    let length = match length.to_i64() {
        length @ 1..=RANDOM_BYTES_MAX => length as usize,
        _ => return Err(errors::error(errors::DATA_OUT_OF_RANGE, &[&"length", &"random_bytes"])),
    };
    let environment = cx.state.database.environment();
    let words = (0..length.div_ceil(8)).map(|_| environment.random_u64().to_ne_bytes());
    let bytes = words.flatten().take(length).collect();
    Ok(owned_text(bytes, Collation::Binary))
}

/// Digits of a SHA2 of this many bits.
pub(super) fn sha2_digits(bits: i64) -> Option<u32> {
    matches!(bits, 224 | 256 | 384 | 512).then_some(bits as u32 / 4).or((bits == 0).then_some(64))
}
