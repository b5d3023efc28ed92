//! From a row to its entry in a secondary index.

use btree::{Field, FieldRef, OwnedKey};
use smallvec::SmallVec;
use txn::{ROW_ID_COLUMN, Row, SecondaryField};

use crate::error::Result;

/// What a row contributes to an index.
pub(crate) enum Entry<'a> {
    Whole(SmallVec<[Field<'a>; 8]>),
    OffPage(OffPage),
}

/// An entry with a field whose column is stored off-page: copied, to be completed outside the scan.
pub(crate) struct OffPage {
    fields: Vec<Option<Vec<u8>>>,
    /// Fields to fetch: number, bytes in the record, reference.
    fetch: Vec<(usize, Vec<u8>, [u8; 20])>,
}

impl OffPage {
    /// The whole entry.
    pub async fn fetch(
        mut self,
        rows: &txn::Transaction,
        table: &txn::Table,
        sources: &[SecondaryField],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        for (at, prefix, reference) in &self.fetch {
            let value = txn::fetch_external(rows, table, prefix, reference).await?;
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
                fetch.push((at, prefix.to_vec(), *reference));
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
