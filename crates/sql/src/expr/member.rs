//! ENUM and SET where a number is wanted: the place of the member in its list, from 1 (0 for the empty text
//! of a value that was not one), or the members as bits, the first lowest. It is read from the row where that
//! is as stored, else made of the text.

use untorn::engine::FieldRef;
use untorn::types::ColumnType;

use super::{Context, Evaluated, Expr, RowView};
use crate::stored_values;
use crate::value::Value;

impl RowView<'_> {
    /// The number that an ENUM or SET column is stored as, where the row is as it is stored. The text does
    /// not say it where a member is the empty text.
    fn member_number(&self, column: u16) -> Option<Value<'static>> {
        let (bytes, def) = match self {
            RowView::Stored(row, columns) => match row.column(column) {
                FieldRef::Inline(bytes) => (bytes, columns.get(usize::from(column))?),
                _ => return None,
            },
            RowView::Fields(fields, columns) => {
                (fields.get(usize::from(column))?.as_deref()?, columns.get(usize::from(column))?)
            }
            RowView::Values(_) | RowView::Nulls => return None,
        };
        let has_members = matches!(def.kind, ColumnType::Enum { .. } | ColumnType::Set { .. });
        has_members.then(|| Value::UInt(stored_values::unsigned(bytes)))
    }
}

/// The number of a column's value, or of another text that is like one.
pub(super) fn number_of<'a>(operand: &'a Expr, kind: &ColumnType, cx: &Context<'a>) -> Evaluated<'a> {
    let stored = match operand.unshared() {
        Expr::Column { source, column } => {
            cx.rows.get(usize::from(*source)).and_then(|row| row.member_number(*column))
        }
        _ => None,
    };
    match stored {
        Some(number) => Ok(number),
        None => Ok(number(&operand.eval(cx)?, kind)),
    }
}

/// The number that a value of a BIT column is.
pub fn bits_as_number(value: &Value<'_>) -> Value<'static> {
    if value.is_null() { Value::Null } else { Value::UInt(stored_values::unsigned(&value.to_text())) }
}

/// The number behind a column's text.
fn number(value: &Value<'_>, kind: &ColumnType) -> Value<'static> {
    if value.is_null() {
        return Value::Null;
    }
    let text = value.to_text();
    if let ColumnType::Bit { .. } = kind {
        return Value::UInt(stored_values::unsigned(&text));
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
