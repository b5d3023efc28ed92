//! A row in storage encoding.

use std::ops::Range;

use btree::Field;
use smallvec::SmallVec;

/// Fields of a row or a key, in one buffer.
#[derive(Debug, Default)]
pub struct EncodedRow {
    bytes: Vec<u8>,
    fields: SmallVec<[Option<Range<usize>>; 16]>,
}

impl EncodedRow {
    /// Removes all fields and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.fields.clear();
    }

    /// Bytes that it keeps, at least.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Appends NULL.
    pub fn push_null(&mut self) {
        self.fields.push(None);
    }

    /// Appends the field that `write` appends to the buffer it is given.
    ///
    /// # Errors
    /// Those of `write`; the row must then be cleared.
    pub fn push<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let start = self.bytes.len();
        write(&mut self.bytes)?;
        self.fields.push(Some(start..self.bytes.len()));
        Ok(())
    }

    /// Appends a field.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.fields.push(Some(start..self.bytes.len()));
    }

    /// Writes a field that is there already, as [`EncodedRow::push`] does it.
    ///
    /// # Errors
    /// Those of `write`; the row must then be cleared.
    pub fn set<E>(&mut self, at: usize, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let start = self.bytes.len();
        write(&mut self.bytes)?;
        let end = self.bytes.len();
        if let Some(field) = self.fields.get_mut(at) {
            *field = Some(start..end);
        }
        Ok(())
    }

    /// One of the fields; NULL too if there is none.
    pub fn field(&self, at: usize) -> Field<'_> {
        self.fields.get(at).cloned().flatten().map(|range| &self.bytes[range])
    }

    /// Memory that its fields take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.capacity() + self.fields.len() * size_of::<Option<Range<usize>>>()
    }

    /// The fields; `None` is NULL.
    pub fn fields(&self) -> SmallVec<[Field<'_>; 16]> {
        self.iter().collect()
    }

    /// The fields, one after the other.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.fields.iter().map(|field| field.clone().map(|range| &self.bytes[range]))
    }
}
