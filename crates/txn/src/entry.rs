//! Secondary index entries made of rows.

use btree::external::ExternalReader;
use btree::{FieldRef, OwnedKey, Reference};

use crate::error::Interrupt;
use crate::table::{Secondary, SecondaryField, Table};

/// Bytes of a character at most (utf8mb4).
const CHARACTER_MAX: usize = 4;

/// Bytes of `value` that an index field with this prefix keeps.
fn cut(value: &[u8], bytes: Option<u16>, characters: Option<u16>) -> &[u8] {
    let mut end = value.len().min(bytes.map_or(usize::MAX, usize::from));
    if let Some(characters) = characters {
        // Characters begin with a byte that is not 10xxxxxx.
        let starts = value.iter().enumerate().filter(|(_, byte)| **byte & 0xC0 != 0x80);
        if let Some((after, _)) = starts.into_iter().nth(usize::from(characters)) {
            end = end.min(after);
        }
    }
    &value[..end]
}

/// Makes the entry of index `secondary` for the row whose clustered fields `field` gives. Values stored
/// off-page are read as far as their prefix is needed.
pub(crate) fn build_entry<'f>(
    table: &Table,
    secondary: &Secondary,
    field: impl Fn(usize) -> FieldRef<'f>,
    entry: &mut OwnedKey,
) -> Result<(), Interrupt> {
    entry.clear();
    for part in &secondary.columns {
        let external;
        let value = match field(table.field_of_column(part.column)) {
            FieldRef::Null => None,
            FieldRef::Inline(value) => Some(value),
            FieldRef::External { prefix, reference } => {
                external = read_external(table, prefix, reference, bytes_needed(part))?;
                Some(&external[..])
            }
        };
        entry.push(value.map(|value| cut(value, part.prefix_bytes, part.prefix_characters)));
    }
    Ok(())
}

/// Bytes of a column that its part of an index entry can need.
fn bytes_needed(part: &SecondaryField) -> usize {
    let of_characters = part.prefix_characters.map(|characters| usize::from(characters) * CHARACTER_MAX);
    let of_bytes = part.prefix_bytes.map(usize::from);
    [of_characters, of_bytes].into_iter().flatten().min().unwrap_or(usize::MAX)
}

/// Reads the first bytes of an off-page value, `enough` or more. An index has short prefixes of long columns,
/// so this is the first page of the chain, and reading it again after a wait costs nothing.
fn read_external(
    table: &Table,
    prefix: &[u8],
    reference: &[u8; 20],
    enough: usize,
) -> Result<Vec<u8>, Interrupt> {
    let mut value = prefix.to_vec();
    ExternalReader::new(Reference::read(reference)).read_until(&table.clustered, &mut value, enough)?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_between_characters() {
        let text = "aä€𝄞b".as_bytes();
        assert_eq!(cut(text, Some(40), Some(3)), "aä€".as_bytes());
        assert_eq!(cut(text, Some(40), Some(10)), text);
        assert_eq!(cut(text, Some(2), None), &text[..2]);
        assert_eq!(cut(text, None, None), text);
    }
}
