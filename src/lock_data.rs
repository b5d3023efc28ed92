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
            text.push_str(
                &String::from_utf8_lossy(&kind.collation().charset().to_utf8(bytes)).replace('\'', "''"),
            );
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::types::encode;

    fn shown(value: Value<'_>, kind: &ColumnType) -> String {
        let mut bytes = Vec::new();
        encode(&value, kind, &mut bytes).unwrap();
        text(std::iter::once((Some(&bytes[..]), Some(kind))))
    }

    #[test]
    fn fields_are_written_by_their_type() {
        assert_eq!(shown(Value::Int(-7), &ColumnType::int()), "-7");
        assert_eq!(
            shown(Value::UInt(u64::MAX), &ColumnType::BigInt { unsigned: true }),
            u64::MAX.to_string()
        );
        assert_eq!(shown(Value::bytes("it's"), &ColumnType::varchar(9)), "'it''s'");
        assert_eq!(shown(Value::bytes("a"), &ColumnType::VarBinary { bytes: 4 }), "0x61");
        assert_eq!(shown(Value::Double(1.0), &ColumnType::Double), "0x000000000000F03F");
        let int = ColumnType::int();
        let key = [(Some(&[0x80, 0, 0, 1][..]), Some(&int)), (None, Some(&int)), (Some(&[0, 2][..]), None)];
        assert_eq!(text(key.into_iter()), "1, NULL, 0x0002");
    }
}
