//! Reading a record where it lies.

use super::Status;
use super::header::{self, DELETED_FLAG, HEADER_SIZE, INSTANT_FLAGS, MIN_REC_FLAG};
use super::layout::{Extent, FieldWalk};
use crate::definition::{IndexDef, NOT_NULLABLE, ROLL_PTR_SIZE, TRX_ID_SIZE, UNKNOWN_OFFSET, VARIABLE};
use crate::field::{Field, FieldRef};

/// A view of one record inside a page or a buffer.
#[derive(Clone, Copy)]
pub struct RecordRef<'a> {
    bytes: &'a [u8],
    origin: usize,
    def: &'a IndexDef,
}

impl<'a> RecordRef<'a> {
    /// The record of index `def` whose origin is at `origin` of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8], origin: usize, def: &'a IndexDef) -> RecordRef<'a> {
        RecordRef { bytes, origin, def }
    }

    /// Offset of the origin in the page.
    #[inline]
    pub fn origin(&self) -> usize {
        self.origin
    }

    /// The page or buffer that the record lies in.
    #[inline]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The index the record belongs to.
    pub fn def(&self) -> &'a IndexDef {
        self.def
    }

    /// Whether the record is delete-marked.
    #[inline]
    pub fn is_deleted(&self) -> bool {
        header::info_bits(self.bytes, self.origin) & DELETED_FLAG != 0
    }

    /// Whether this is the node pointer that counts as minus infinity.
    #[inline]
    pub fn is_min_rec(&self) -> bool {
        header::info_bits(self.bytes, self.origin) & MIN_REC_FLAG != 0
    }

    /// Whether the record was written by an instantly altered table and cannot be read with this definition.
    pub fn is_instant(&self) -> bool {
        header::info_bits(self.bytes, self.origin) & INSTANT_FLAGS != 0
            || header::status(self.bytes, self.origin) > Status::Supremum as u8
    }

    /// Info bits in the high nibble.
    pub fn info_bits(&self) -> u8 {
        header::info_bits(self.bytes, self.origin)
    }

    /// Whether the record is a node pointer.
    #[inline]
    pub fn is_node_pointer(&self) -> bool {
        header::status(self.bytes, self.origin) == Status::NodePointer as u8
    }

    /// Number of the record in allocation order on its page.
    pub fn heap_no(&self) -> u16 {
        header::heap_no(self.bytes, self.origin)
    }

    /// Number of fields in this record (without a node pointer's child page number).
    pub fn n_fields(&self) -> usize {
        if self.is_node_pointer() { self.def.n_unique } else { self.def.fields.len() }
    }

    /// Whether a bit of the NULL bitmap is set, as [`FieldWalk`] reads it.
    #[inline]
    fn is_null(&self, bit: u16) -> bool {
        let at = self.origin.wrapping_sub(HEADER_SIZE + 1 + usize::from(bit / 8));
        self.bytes.get(at).is_some_and(|byte| byte >> (bit % 8) & 1 != 0)
    }

    fn extent(&self, field: usize) -> Extent {
        let layout = self.def.layout[field];
        let known = layout.offset != UNKNOWN_OFFSET;
        if known && layout.fixed_len != VARIABLE {
            let start = self.origin + usize::from(layout.offset);
            let null = layout.null_bit != NOT_NULLABLE && self.is_null(layout.null_bit);
            let len = if null { 0 } else { usize::from(layout.fixed_len) };
            return Extent { start, len, null, external: false };
        }
        let nothing = Extent { start: self.origin, len: 0, null: true, external: false };
        let mut walk = FieldWalk::new(self.bytes, self.origin, self.def);
        let found = if known { walk.after_fixed(field, layout.offset) } else { walk.at(field) };
        found.unwrap_or(nothing)
    }

    /// Value of field `field` in storage order. For many fields of one record [`Self::fields`] is cheaper.
    ///
    /// # Panics
    /// When the index has no such field.
    #[inline]
    pub fn field(&self, field: usize) -> FieldRef<'a> {
        self.extent(field).read(self.bytes)
    }

    /// Offset of field `field` in the page, for writes in place.
    pub fn field_offset(&self, field: usize) -> usize {
        self.extent(field).start
    }

    /// All fields in storage order, decoded in one pass.
    pub fn fields(&self) -> impl Iterator<Item = FieldRef<'a>> + 'a + use<'a> {
        let bytes = self.bytes;
        FieldWalk::new(self.bytes, self.origin, self.def).map(move |extent| extent.read(bytes))
    }

    /// Whether the first fields are these, byte for byte.
    #[inline]
    pub fn has_key(&self, key: &[Field<'_>]) -> bool {
        self.fields().map(FieldRef::inline).take(key.len()).eq(key.iter().copied())
    }

    /// Id of the transaction that wrote this version; 0 in a secondary index.
    #[inline]
    pub fn trx_id(&self) -> u64 {
        if !self.def.clustered {
            return 0;
        }
        // DB_ROLL_PTR follows.
        let bytes = self.bytes.get(self.key_end()..).and_then(<[u8]>::first_chunk::<8>);
        bytes.map_or(0, |bytes| u64::from_be_bytes(*bytes) >> (64 - 8 * TRX_ID_SIZE))
    }

    /// Offset in the page of what is behind the key: the system fields of a row, the child of a node pointer.
    #[inline]
    fn key_end(&self) -> usize {
        if let Some(size) = self.def.memcmp_key_size {
            return self.origin + usize::from(size);
        }
        let mut walk = FieldWalk::of_key(self.bytes, self.origin, self.def);
        walk.pass_all();
        walk.bounds().1
    }

    /// Pointer to the undo record that leads to the previous version; 0 in a secondary index.
    pub fn roll_ptr(&self) -> u64 {
        self.def
            .trx_id_field()
            .map_or(0, |field| self.big_endian(self.field_offset(field) + TRX_ID_SIZE, ROLL_PTR_SIZE))
    }

    fn big_endian(&self, at: usize, len: usize) -> u64 {
        let bytes = self.bytes.get(at..at + len).unwrap_or(&[]);
        bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
    }

    /// Page number of the child of a node pointer.
    #[inline]
    pub fn child(&self) -> u32 {
        let bytes = self.bytes.get(self.key_end()..).and_then(<[u8]>::first_chunk::<4>);
        bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
    }

    /// Offset in the page of a node pointer's child page number.
    pub(crate) fn child_offset(&self) -> usize {
        self.data_end_of_fields()
    }

    fn data_end_of_fields(&self) -> usize {
        self.bounds_of_fields().1
    }

    fn bounds_of_fields(&self) -> (usize, usize) {
        let size = if self.is_node_pointer() { self.def.memcmp_key_size } else { self.def.fixed_data_size };
        if let Some(size) = size {
            let extra = HEADER_SIZE + self.def.null_bytes();
            return (self.origin.wrapping_sub(extra), self.origin + usize::from(size));
        }
        let mut walk = FieldWalk::new(self.bytes, self.origin, self.def);
        walk.pass_all();
        walk.bounds()
    }

    /// First address of the record (of its last length byte) and the address after its last data byte.
    pub fn bounds(&self) -> (usize, usize) {
        let (start, end) = self.bounds_of_fields();
        (start, if self.is_node_pointer() { end + 4 } else { end })
    }

    /// Size in bytes of the whole record with its header.
    pub fn size(&self) -> usize {
        let (start, end) = self.bounds();
        end.wrapping_sub(start)
    }

    /// All bytes of the record and the position of the origin in them; `None` if they leave the page.
    pub fn raw(&self) -> Option<(&'a [u8], usize)> {
        let (start, end) = self.bounds();
        Some((self.bytes.get(start..end)?, self.origin.checked_sub(start)?))
    }

    /// As [`Self::raw`], if no field is stored off-page.
    #[inline]
    pub fn raw_inline(&self) -> Option<(&'a [u8], usize)> {
        let mut walk = FieldWalk::new(self.bytes, self.origin, self.def);
        if walk.by_ref().any(|extent| extent.external) {
            return None;
        }
        let (start, end) = walk.bounds();
        Some((self.bytes.get(start..end)?, self.origin.checked_sub(start)?))
    }

    /// Whether any field is stored off-page.
    pub fn has_external(&self) -> bool {
        self.def.layout.iter().any(|layout| layout.long_length)
            && FieldWalk::new(self.bytes, self.origin, self.def).any(|extent| extent.external)
    }

    /// A copy that outlives the page latch.
    pub fn to_owned(&self) -> OwnedRecord {
        match self.raw() {
            Some((bytes, origin)) => OwnedRecord { bytes: bytes.to_vec(), origin },
            None => OwnedRecord { bytes: vec![0; HEADER_SIZE], origin: HEADER_SIZE },
        }
    }
}

impl std::fmt::Debug for RecordRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut list = f.debug_list();
        list.entries(self.fields());
        if self.is_node_pointer() {
            list.entry(&self.child());
        }
        list.finish()
    }
}

/// A copy of a record: an old version, or a row kept after its page was left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnedRecord {
    pub(crate) bytes: Vec<u8>,
    pub(crate) origin: usize,
}

impl OwnedRecord {
    /// The copy as a record of index `def`, which must be the one it was copied from.
    pub fn view<'a>(&'a self, def: &'a IndexDef) -> RecordRef<'a> {
        RecordRef::new(&self.bytes, self.origin, def)
    }
}
