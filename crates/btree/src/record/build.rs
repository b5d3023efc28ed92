//! Writing a record: fields in, bytes of a page out.

use super::header::{self, DELETED_FLAG, HEADER_SIZE, MIN_REC_FLAG};
use super::{OwnedRecord, RecordRef, Status};
use crate::definition::{IndexDef, NOT_NULLABLE, ROLL_PTR_SIZE, TRX_ID_SIZE, VARIABLE};
use crate::field::{FieldRef, REFERENCE_SIZE};

/// A record cannot be stored: it, or one field of it, is larger than the format allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "row size too large: {size} bytes in the record, at most {max} are possible; make columns BLOB or TEXT or shorter"
)]
pub struct RecordTooBig {
    /// Bytes the record would need.
    pub size: usize,
    /// Bytes it may have.
    pub max: usize,
}

/// Longest value that a two-byte length can describe.
const INLINE_MAX: usize = 0x3FFF;

/// A record under construction. Keep one and fill it again: it does not allocate then.
#[derive(Debug, Clone, Default)]
pub struct RecordBuffer {
    bytes: Vec<u8>,
    origin: usize,
}

impl RecordBuffer {
    /// An empty buffer.
    pub fn new() -> RecordBuffer {
        RecordBuffer::default()
    }

    /// Fills the buffer with a leaf record of index `def`.
    ///
    /// # Errors
    /// A value is longer than a length can say. The limit of the page is checked on insertion.
    ///
    /// # Panics
    /// When the fields do not fit the definition (count, fixed sizes, NULL in a NOT NULL field).
    pub fn encode(&mut self, def: &IndexDef, fields: &[FieldRef<'_>]) -> Result<(), RecordTooBig> {
        assert_eq!(fields.len(), def.fields.len(), "fields of index {}", def.name);
        self.encode_fields(def, fields, Status::Ordinary)
    }

    /// Fills the buffer with a node pointer to `child`, whose key is that of `record`.
    pub(crate) fn encode_node_pointer(
        &mut self,
        record: RecordRef<'_>,
        child: u32,
    ) -> Result<(), RecordTooBig> {
        let def = record.def();
        let key: smallvec::SmallVec<[FieldRef<'_>; 16]> = record.fields().take(def.n_unique).collect();
        self.encode_fields(def, &key, Status::NodePointer)?;
        self.bytes.extend_from_slice(&child.to_be_bytes());
        Ok(())
    }

    fn encode_fields(
        &mut self,
        def: &IndexDef,
        fields: &[FieldRef<'_>],
        status: Status,
    ) -> Result<(), RecordTooBig> {
        let (extra, data) = sizes(def, fields);
        self.bytes.clear();
        self.bytes.resize(extra, 0);
        self.bytes.reserve(data + 4);
        self.origin = extra;
        self.bytes[extra - 4..extra - 2].copy_from_slice(&header::heap_bytes(0, status as u8));
        let mut lengths = extra - HEADER_SIZE - def.null_bytes();
        for (index, (field, layout)) in fields.iter().zip(&def.layout).enumerate() {
            let (value, reference) = match field {
                FieldRef::Null => {
                    assert!(
                        layout.null_bit != NOT_NULLABLE,
                        "NULL in NOT NULL field {index} of {}",
                        def.name
                    );
                    let bit = usize::from(layout.null_bit);
                    self.bytes[extra - HEADER_SIZE - 1 - bit / 8] |= 1 << (bit % 8);
                    continue;
                }
                FieldRef::Inline(value) => (*value, None),
                FieldRef::External { prefix, reference } => (*prefix, Some(*reference)),
            };
            let len = value.len() + reference.map_or(0, |reference| reference.len());
            if layout.fixed_len != VARIABLE {
                assert_eq!(len, usize::from(layout.fixed_len), "size of fixed field {index} of {}", def.name);
            } else if len > INLINE_MAX {
                return Err(RecordTooBig { size: len, max: INLINE_MAX });
            } else if layout.long_length && (len > 127 || reference.is_some()) {
                let external = if reference.is_some() { 0x40 } else { 0 };
                self.bytes[lengths - 1] = 0x80 | external | (len >> 8) as u8;
                self.bytes[lengths - 2] = len as u8;
                lengths -= 2;
            } else {
                assert!(len <= 255 && reference.is_none(), "size of field {index} of {}", def.name);
                self.bytes[lengths - 1] = len as u8;
                lengths -= 1;
            }
            self.bytes.extend_from_slice(value);
            if let Some(reference) = reference {
                self.bytes.extend_from_slice(&reference[..]);
            }
        }
        debug_assert_eq!((lengths, self.bytes.len()), (0, extra + data));
        Ok(())
    }

    /// A copy of an existing record.
    pub fn copy_record(&mut self, record: RecordRef<'_>) {
        self.bytes.clear();
        self.origin = HEADER_SIZE;
        match record.raw() {
            Some((bytes, origin)) => {
                self.bytes.extend_from_slice(bytes);
                self.origin = origin;
            }
            None => self.bytes.resize(HEADER_SIZE, 0),
        }
    }

    /// Size in bytes with header, which is what the record takes on a page.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes before the origin.
    pub fn extra_size(&self) -> usize {
        self.origin
    }

    /// All bytes; the record's origin is at [`Self::extra_size`].
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The buffer as a record of index `def`.
    pub fn view<'a>(&'a self, def: &'a IndexDef) -> RecordRef<'a> {
        RecordRef::new(&self.bytes, self.origin, def)
    }

    /// Sets or clears the delete mark.
    pub fn set_deleted(&mut self, deleted: bool) {
        self.set_info_bit(DELETED_FLAG, deleted);
    }

    pub(crate) fn set_min_rec(&mut self, min_rec: bool) {
        self.set_info_bit(MIN_REC_FLAG, min_rec);
    }

    fn set_info_bit(&mut self, bit: u8, set: bool) {
        let info = &mut self.bytes[self.origin - 5];
        *info = if set { *info | bit } else { *info & !bit };
    }

    /// Writes `DB_TRX_ID` and `DB_ROLL_PTR` into a finished clustered leaf record: they are often known only
    /// after the undo record was written, for which the size of this one had to be known.
    pub fn set_system_fields(&mut self, def: &IndexDef, trx_id: u64, roll_ptr: u64) {
        let Some(field) = def.trx_id_field() else { return };
        let at = self.view(def).field_offset(field);
        self.bytes[at..at + TRX_ID_SIZE + ROLL_PTR_SIZE].copy_from_slice(&system_fields(trx_id, roll_ptr));
    }

    /// Overwrites bytes of a finished record, from `at` behind the origin on.
    ///
    /// # Panics
    /// When the record ends before.
    pub fn overwrite(&mut self, at: usize, bytes: &[u8]) {
        let start = self.origin + at;
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
    }

    /// Fills in what depends on the place in the page.
    pub(crate) fn place(&mut self, n_owned: u8, heap_no: u16, next: [u8; 2]) {
        let at = self.origin;
        self.bytes[at - 5] = self.bytes[at - 5] & 0xF0 | n_owned;
        let status = self.bytes[at - 3] & 7;
        self.bytes[at - 4..at - 2].copy_from_slice(&header::heap_bytes(heap_no, status));
        self.bytes[at - 2..at].copy_from_slice(&next);
    }

    /// The record as an owned copy.
    pub fn to_owned(&self) -> OwnedRecord {
        OwnedRecord { bytes: self.bytes.clone(), origin: self.origin }
    }
}

/// `DB_TRX_ID` and `DB_ROLL_PTR` as stored: 6 and 7 bytes, big-endian.
pub(crate) fn system_fields(trx_id: u64, roll_ptr: u64) -> [u8; TRX_ID_SIZE + ROLL_PTR_SIZE] {
    let mut bytes = [0; TRX_ID_SIZE + ROLL_PTR_SIZE];
    bytes[..TRX_ID_SIZE].copy_from_slice(&trx_id.to_be_bytes()[8 - TRX_ID_SIZE..]);
    bytes[TRX_ID_SIZE..].copy_from_slice(&roll_ptr.to_be_bytes()[8 - ROLL_PTR_SIZE..]);
    bytes
}

/// Bytes before the origin and data bytes that `fields` would take.
fn sizes(def: &IndexDef, fields: &[FieldRef<'_>]) -> (usize, usize) {
    let mut extra = HEADER_SIZE + def.null_bytes();
    let mut data = 0;
    for (field, layout) in fields.iter().zip(&def.layout) {
        let (len, external) = match field {
            FieldRef::Null => continue,
            FieldRef::Inline(value) => (value.len(), false),
            FieldRef::External { prefix, .. } => (prefix.len() + REFERENCE_SIZE, true),
        };
        data += len;
        if layout.fixed_len == VARIABLE {
            extra += if layout.long_length && (len > 127 || external) { 2 } else { 1 };
        }
    }
    (extra, data)
}

/// Size in bytes of the leaf record that `fields` would make.
pub fn record_size(def: &IndexDef, fields: &[FieldRef<'_>]) -> usize {
    let (extra, data) = sizes(def, fields);
    extra + data
}
