//! Walking the fields of a stored record from the first to the last.

use super::Status;
use super::header;
use crate::definition::{FieldLayout, IndexDef, NOT_NULLABLE, VARIABLE};
use crate::field::{FieldRef, REFERENCE_SIZE};

/// A position inside a record: everything needed to decode the next field.
#[derive(Clone)]
pub(crate) struct FieldWalk<'a> {
    bytes: &'a [u8],
    def: &'a IndexDef,
    null_base: usize,
    /// Where the next length byte is; grows down.
    lengths: usize,
    /// Where the next field's data is; grows up.
    data: usize,
    field: usize,
    end: usize,
}

/// Where a field lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub start: usize,
    pub len: usize,
    pub null: bool,
    pub external: bool,
}

impl Extent {
    #[inline]
    pub(crate) fn read<'a>(self, bytes: &'a [u8]) -> FieldRef<'a> {
        if self.null {
            return FieldRef::Null;
        }
        let value = bytes.get(self.start..self.start + self.len).unwrap_or(&[]);
        match (self.external, value.split_last_chunk::<REFERENCE_SIZE>()) {
            (true, Some((prefix, reference))) => FieldRef::External { prefix, reference },
            _ => FieldRef::Inline(value),
        }
    }
}

impl<'a> FieldWalk<'a> {
    pub(crate) fn new(bytes: &'a [u8], origin: usize, def: &'a IndexDef) -> FieldWalk<'a> {
        let pointer = header::status(bytes, origin) == Status::NodePointer as u8;
        let end = if pointer { def.n_unique } else { def.fields.len() };
        FieldWalk { end, ..FieldWalk::of_key(bytes, origin, def) }
    }

    /// A walk over the fields that are the key in the tree.
    #[inline]
    pub(crate) fn of_key(bytes: &'a [u8], origin: usize, def: &'a IndexDef) -> FieldWalk<'a> {
        let null_base = origin.wrapping_sub(header::HEADER_SIZE + 1);
        let lengths = null_base.wrapping_sub(def.null_bytes());
        FieldWalk { bytes, def, null_base, lengths, data: origin, field: 0, end: def.n_unique }
    }

    #[inline]
    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// `nth(field)` of a walk that has not begun, when all fields before are fixed and NOT NULL and end at
    /// `offset`: they have no length bytes.
    pub(crate) fn after_fixed(&mut self, field: usize, offset: u16) -> Option<Extent> {
        self.field = field.min(self.end);
        self.data = self.data.wrapping_add(usize::from(offset));
        self.next()
    }

    /// `nth(field)` of a walk that has not begun.
    #[inline]
    pub(crate) fn at(&mut self, field: usize) -> Option<Extent> {
        self.pass_to(field.min(self.end));
        self.next()
    }

    /// Goes to the end.
    #[inline]
    pub(crate) fn pass_all(&mut self) {
        self.pass_to(self.end);
    }

    /// Passes over the fields before `field`, which the record has.
    #[inline]
    pub(crate) fn pass_to(&mut self, field: usize) {
        for layout in self.def.layout.get(self.field..field).unwrap_or(&[]) {
            if layout.null_bit != NOT_NULLABLE && self.is_null(layout.null_bit) {
                continue;
            }
            let (len, _) = self.length(*layout);
            self.data = self.data.wrapping_add(len);
        }
        self.field = field;
    }

    #[inline]
    fn is_null(&self, bit: u16) -> bool {
        self.byte(self.null_base.wrapping_sub(usize::from(bit / 8))) >> (bit % 8) & 1 != 0
    }

    /// Length of the next field, and whether it is off-page.
    #[inline]
    fn length(&mut self, layout: FieldLayout) -> (usize, bool) {
        if layout.fixed_len != VARIABLE {
            return (usize::from(layout.fixed_len), false);
        }
        let first = self.byte(self.lengths);
        self.lengths = self.lengths.wrapping_sub(1);
        if !layout.long_length || first & 0x80 == 0 {
            return (usize::from(first), false);
        }
        let second = self.byte(self.lengths);
        self.lengths = self.lengths.wrapping_sub(1);
        (usize::from(first & 0x3F) << 8 | usize::from(second), first & 0x40 != 0)
    }

    /// After the walk has ended: lowest address of the record and the address after its last field.
    pub(crate) fn bounds(&self) -> (usize, usize) {
        (self.lengths.wrapping_add(1), self.data)
    }
}

impl Iterator for FieldWalk<'_> {
    type Item = Extent;

    #[inline]
    fn next(&mut self) -> Option<Extent> {
        if self.field == self.end {
            return None;
        }
        let layout = self.def.layout[self.field];
        self.field += 1;
        let start = self.data;
        if layout.null_bit != NOT_NULLABLE && self.is_null(layout.null_bit) {
            return Some(Extent { start, len: 0, null: true, external: false });
        }
        let (len, external) = self.length(layout);
        self.data = start.wrapping_add(len);
        Some(Extent { start, len, null: false, external })
    }
}
