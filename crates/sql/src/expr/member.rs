//! ENUM and SET where a number is wanted: the place of the member in its list, from 1 (0 for the empty text
//! of a value that was not one), or the members as bits, the first lowest.

use untorn::types::ColumnType;

use crate::value::Value;

/// The number behind a column's text.
pub(super) fn number(value: &Value<'_>, kind: &ColumnType) -> Value<'static> {
    if value.is_null() {
        return Value::Null;
    }
    let text = value.to_text();
    if let ColumnType::Bit { .. } = kind {
        return Value::UInt(text.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte)));
    }
    let place = |members: &[String], wanted: &[u8]| {
        members.iter().position(|member| member.as_bytes() == wanted).map(|at| at as u32)
    };
    match kind {
        ColumnType::Enum { members, .. } => {
            Value::UInt(place(members, &text).map_or(0, |at| u64::from(at) + 1))
        }
        // The empty text is no member, as where it is stored.
        ColumnType::Set { .. } if text.is_empty() => Value::UInt(0),
        ColumnType::Set { members, .. } => {
            let chosen = text.split(|byte| *byte == b',').filter_map(|name| place(members, name));
            Value::UInt(chosen.fold(0, |bits, at| bits | 1u64.checked_shl(at).unwrap_or(0)))
        }
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use untorn::types::Collation;

    #[test]
    fn places_and_bits() {
        let members: Vec<String> = ["a", "b", "c"].map(str::to_owned).into();
        let rule = Collation::Utf8mb4GeneralCi;
        let one = ColumnType::Enum { members: members.clone(), collation: rule };
        let many = ColumnType::Set { members, collation: rule };
        let shown = |text: &str, kind: &ColumnType| number(&Value::text(text.to_owned()), kind).to_integer();
        assert_eq!([shown("a", &one), shown("c", &one), shown("", &one)], [1, 3, 0]);
        assert_eq!([shown("a", &many), shown("a,c", &many), shown("", &many)], [1, 5, 0]);
        assert!(number(&Value::Null, &one).is_null());
    }
}
