//! LOAD_FILE: the bytes of a file of the server's machine.
//!
//! Which files may be read, and how no name leads to others, is as for LOAD DATA. Whatever speaks against
//! reading one is NULL, so that nobody learns from errors what exists. A function is evaluated in one go: it
//! reads piece by piece, at most `max_allowed_packet`, and ends between two pieces when the statement is to
//! stop.

use std::io::Read;

use untorn::types::Collation;

use super::{Function, TextOf, owned_text, text_fits};
use crate::expr::types::Type;
use crate::expr::{Context, Evaluated};
use crate::privilege::Privileges;
use crate::value::Value;

/// The function.
pub(super) static FUNCTIONS: &[Function] = &[Function {
    name: "LOAD_FILE",
    least: 1,
    most: 1,
    // A file may change.
    volatile: true,
    text_of: TextOf::Arguments,
    result: |_| Type { nullable: true, ..Type::bytes(u32::MAX) },
    eval: |v, cx| load(&v[0], cx),
}];

/// Bytes read at once.
const PIECE_BYTES: usize = 256 << 10;

fn load<'a>(name: &Value<'_>, cx: &Context<'_>) -> Evaluated<'a> {
    let may_read = cx.state.rights().global().has_any(Privileges::FILE);
    if name.is_null() || !may_read {
        return Ok(Value::Null);
    }
    let Some((mut file, length)) = cx.state.facts.open_file(&name.to_text()) else { return Ok(Value::Null) };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if !text_fits(length, "load_file", cx.state) {
        return Ok(Value::Null);
    }
    cx.state.hold(length)?;
    let mut bytes = Vec::with_capacity(length);
    // A file that grows meanwhile is read as far as it was long.
    while bytes.len() < length {
        let piece = (length - bytes.len()).min(PIECE_BYTES);
        cx.state.work(piece)?;
        match file.by_ref().take(piece as u64).read_to_end(&mut bytes) {
            Ok(1..) => {}
            Ok(0) => break,
            Err(_) => return Ok(Value::Null),
        }
    }
    Ok(owned_text(bytes, Collation::Binary))
}
