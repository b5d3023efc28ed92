//! From a row to its entry in a secondary index, and entries as bytes to be sorted.

use std::cmp::Ordering;
use std::sync::Arc;

use btree::compare::compare_keys;
use btree::{Field, FieldRef, IndexDef, OwnedKey};
use smallvec::SmallVec;
use txn::{ROW_ID_COLUMN, Row, SecondaryField};

use crate::error::Result;
use crate::sort::Order;

/// What a row contributes to an index.
pub(crate) enum Entry<'a> {
    Whole(SmallVec<[Field<'a>; 8]>),
    OffPage(OffPage),
}

/// An entry with a field whose column is stored off-page: copied, to be completed outside the scan.
pub(crate) struct OffPage {
    fields: Vec<Option<Vec<u8>>>,
    /// Fields to fetch, by their numbers.
    fetch: Vec<(usize, txn::OffPage)>,
}

impl OffPage {
    /// The whole entry.
    pub async fn fetch(
        mut self,
        rows: &txn::Transaction,
        table: &txn::Table,
        sources: &[SecondaryField],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        for (at, value) in &self.fetch {
            let value = value.fetch(rows, table).await?;
            self.fields[*at] = Some(cut(&value, &sources[*at]).to_vec());
        }
        Ok(self.fields)
    }
}

/// The part of a column's value that an index keeps.
fn cut<'a>(value: &'a [u8], source: &SecondaryField) -> &'a [u8] {
    let Some(bytes) = source.prefix_bytes else { return value };
    let mut end = value.len().min(usize::from(bytes));
    if let Some(characters) = source.prefix_characters {
        // A character begins at every byte that does not continue one.
        let starts = value.iter().enumerate().filter(|(_, byte)| **byte & 0xc0 != 0x80);
        end = end.min(starts.map(|(at, _)| at).nth(usize::from(characters)).unwrap_or(value.len()));
    }
    &value[..end]
}

/// The entry of a row, whose clustered key is `key`.
pub(crate) fn entry_of<'a>(row: &Row<'a>, sources: &[SecondaryField], key: &'a OwnedKey) -> Entry<'a> {
    let mut whole = SmallVec::new();
    let mut fetch = Vec::new();
    for (at, source) in sources.iter().enumerate() {
        if source.column == ROW_ID_COLUMN {
            whole.push(key.fields().first().copied().flatten());
            continue;
        }
        match row.column(source.column) {
            FieldRef::Null => whole.push(None),
            FieldRef::Inline(value) => whole.push(Some(cut(value, source))),
            FieldRef::External { prefix, reference } => {
                fetch.push((at, txn::OffPage::new(prefix, reference)));
                whole.push(None);
            }
        }
    }
    if fetch.is_empty() {
        return Entry::Whole(whole);
    }
    let fields = whole.iter().map(|field| field.map(<[u8]>::to_vec)).collect();
    Entry::OffPage(OffPage { fields, fetch })
}

/// Length that stands for NULL.
const NULL: u32 = u32::MAX;

/// Appends an entry: each field's length and bytes.
pub(crate) fn encode(fields: &[Field<'_>], out: &mut Vec<u8>) {
    for field in fields {
        let length = field.map_or(NULL, |bytes| bytes.len() as u32);
        out.extend_from_slice(&length.to_ne_bytes());
        out.extend_from_slice(field.unwrap_or_default());
    }
}

/// The fields of an encoded entry.
pub(crate) fn fields(mut entry: &[u8]) -> SmallVec<[Field<'_>; 8]> {
    let mut fields = SmallVec::new();
    while let Some((length, rest)) = entry.split_first_chunk() {
        match u32::from_ne_bytes(*length) {
            NULL => {
                fields.push(None);
                entry = rest;
            }
            length => {
                let (field, rest) = rest.split_at(length as usize);
                fields.push(Some(field));
                entry = rest;
            }
        }
    }
    fields
}

/// The order of an index, of encoded entries.
#[derive(Clone)]
pub(crate) struct IndexOrder(pub Arc<IndexDef>);

impl Order for IndexOrder {
    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        compare_keys(&self.0, &fields(left), &fields(right))
    }
}
