//! Keys that outlive the page they came from.

use smallvec::SmallVec;

use crate::field::Field;
use crate::record::RecordRef;

/// Marks a NULL among the ends of an [`OwnedKey`].
const NULL: u32 = u32::MAX;

/// A copy of key fields: a saved position, a lock's key, a bound of a range. Short keys do not allocate.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct OwnedKey {
    bytes: SmallVec<[u8; 64]>,
    /// End of each field in `bytes`, or `NULL`.
    ends: SmallVec<[u32; 4]>,
}

/// The fields of an [`OwnedKey`] in the form a search wants.
pub type KeyFields<'a> = SmallVec<[Field<'a>; 8]>;

/// By copies of slices: what is derived goes byte by byte.
impl Clone for OwnedKey {
    fn clone(&self) -> OwnedKey {
        OwnedKey { bytes: SmallVec::from_slice(&self.bytes), ends: SmallVec::from_slice(&self.ends) }
    }

    fn clone_from(&mut self, other: &OwnedKey) {
        self.clear();
        self.bytes.extend_from_slice(&other.bytes);
        self.ends.extend_from_slice(&other.ends);
    }
}

impl OwnedKey {
    /// An empty key.
    pub fn new() -> OwnedKey {
        OwnedKey::default()
    }

    /// A copy of `fields`.
    pub fn from_fields(fields: &[Field<'_>]) -> OwnedKey {
        let mut key = OwnedKey::default();
        fields.iter().for_each(|field| key.push(*field));
        key
    }

    /// A copy of the fields that make `record` unique in its tree.
    pub fn from_record(record: RecordRef<'_>) -> OwnedKey {
        let mut key = OwnedKey::default();
        key.set_from_record(record, record.def().n_unique);
        key
    }

    /// Replaces the key by the first `n_fields` fields of `record`.
    pub fn set_from_record(&mut self, record: RecordRef<'_>, n_fields: usize) {
        self.clear();
        for field in record.fields().take(n_fields) {
            self.push(field.inline());
        }
    }

    /// Appends a field.
    pub fn push(&mut self, field: Field<'_>) {
        match field {
            Some(bytes) => {
                self.bytes.extend_from_slice(bytes);
                self.ends.push(self.bytes.len() as u32);
            }
            None => self.ends.push(NULL),
        }
    }

    /// Forgets all fields.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The fields, borrowed.
    pub fn fields(&self) -> KeyFields<'_> {
        let mut start = 0;
        self.ends
            .iter()
            .map(|end| {
                (*end != NULL).then(|| {
                    let field = &self.bytes[start..*end as usize];
                    start = *end as usize;
                    field
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_with_their_nulls() {
        let fields: [Field<'_>; 4] = [Some(b"ab"), None, Some(b""), Some(b"c")];
        let key = OwnedKey::from_fields(&fields);
        assert_eq!(&key.fields()[..], &fields);
        assert_eq!(key.len(), 4);
    }
}
