//! The key of a lock as MySQL writes it in `LOCK_DATA`.
//!
//! Numbers, dates and members as the integers they are stored as, text in quotes, everything else in
//! hexadecimal; the fields of a key with a comma between them.

use std::fmt::Write;

use crate::types::{Collation, ColumnType, Value, decode_int};

/// Of a lock on the end of an index.
pub(crate) const END: &str = "supremum pseudo-record";

/// The text of a key: its fields with the types of their columns, which the hidden row id has not.
pub(crate) fn text<'f>(fields: impl Iterator<Item = (Option<&'f [u8]>, Option<&'f ColumnType>)>) -> String {
    let mut text = String::new();
    for (field, kind) in fields {
        if !text.is_empty() {
            text.push_str(", ");
        }
        match field {
            None => text.push_str("NULL"),
            Some(bytes) => write_field(&mut text, bytes, kind),
        }
    }
    text
}

fn write_field(text: &mut String, bytes: &[u8], kind: Option<&ColumnType>) {
    let unsigned = match kind {
        Some(kind) if kind.integer().is_some() => kind.integer().is_some_and(|(_, unsigned)| unsigned),
        Some(ColumnType::Date) => false,
        Some(ColumnType::Year | ColumnType::Enum { .. } | ColumnType::Set { .. }) => true,
        Some(kind) if kind.is_string() && kind.collation() != Collation::Binary => {
            text.push('\'');
            text.push_str(&String::from_utf8_lossy(bytes).replace('\'', "''"));
            return text.push('\'');
        }
        _ => {
            text.push_str("0x");
            return bytes.iter().for_each(|byte| {
                let _ = write!(text, "{byte:02X}");
            });
        }
    };
    let _ = match decode_int(bytes, unsigned) {
        Value::Int(number) => write!(text, "{number}"),
        Value::UInt(number) => write!(text, "{number}"),
        _ => Ok(()),
    };
}
