//! The order of keys.
//!
//! A search compares one key with some twenty records from the root to a row. [`SearchKey`] looks at the key
//! once: a key of fixed NOT NULL fields that compare byte by byte is matched against the bytes at the
//! record's origin, and a single integer is matched as one machine word. If some of these fields vary in
//! length, mostly the first eight bytes decide; where they do not, lengths are read from the record. Only
//! other keys decode the record's fields.
//!
//! NULL is below every value. The first node pointer of a level (MIN_REC) is below every key.

use std::cmp::Ordering;
use std::hash::Hasher;

use crate::collation;
use crate::definition::{HeadKind, IndexDef, VARIABLE};
use crate::field::{Comparison, Field};
use crate::record::{RecordRef, header};

/// Order of two values that are not NULL.
#[inline]
pub fn compare_values(comparison: Comparison, a: &[u8], b: &[u8]) -> Ordering {
    match comparison {
        Comparison::Binary => a.cmp(b),
        Comparison::Float => compare_floats(a, b, |bytes| f64::from(f32::from_le_bytes(le_image(bytes)))),
        Comparison::Double => compare_floats(a, b, |bytes| f64::from_le_bytes(le_image(bytes))),
        Comparison::Utf8mb4GeneralCi => collation::compare_general_ci(a, b),
        Comparison::Utf8mb4Bin | Comparison::BytesPadSpace => collation::compare_bytes_pad_space(a, b),
        Comparison::Latin1(rule) => rule.compare(a, b),
        Comparison::Latin1Utf8(rule) => rule.compare_utf8(a, b),
        Comparison::Unicode(rule) => rule.compare(a, b),
        Comparison::UnicodeTrimmed(rule) => {
            rule.compare(collation::without_trailing_spaces(a), collation::without_trailing_spaces(b))
        }
        Comparison::BytesTrimmed => {
            collation::without_trailing_spaces(a).cmp(collation::without_trailing_spaces(b))
        }
    }
}

fn le_image<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk::<N>().copied().unwrap_or([0; N])
}

fn compare_floats(a: &[u8], b: &[u8], decode: impl Fn(&[u8]) -> f64) -> Ordering {
    decode(a).partial_cmp(&decode(b)).unwrap_or_else(|| a.cmp(b))
}

/// Order of two values, NULL lowest.
#[inline]
pub fn compare_fields(comparison: Comparison, a: Field<'_>, b: Field<'_>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => compare_values(comparison, a, b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

/// Order of two keys of an index over the fields both have.
pub fn compare_keys(def: &IndexDef, a: &[Field<'_>], b: &[Field<'_>]) -> Ordering {
    for ((a, b), field) in a.iter().zip(b).zip(&def.fields) {
        let order = compare_fields(field.compare, *a, *b);
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

/// Feeds to `hasher` what a field's equality is made of: equal fields (in the sense of [`compare_fields`])
/// hash alike.
pub fn hash_field(comparison: Comparison, field: Field<'_>, hasher: &mut impl Hasher) {
    let Some(bytes) = field else {
        hasher.write_u8(0);
        return;
    };
    hasher.write_u8(1);
    match comparison {
        Comparison::Binary => hasher.write(bytes),
        Comparison::Float if f32::from_le_bytes(le_image(bytes)) == 0.0 => hasher.write_u8(0),
        Comparison::Double if f64::from_le_bytes(le_image(bytes)) == 0.0 => hasher.write_u8(0),
        Comparison::Float | Comparison::Double => hasher.write(bytes),
        Comparison::Utf8mb4GeneralCi => collation::hash_general_ci(bytes, hasher),
        Comparison::Utf8mb4Bin | Comparison::BytesPadSpace => collation::hash_bytes_pad_space(bytes, hasher),
        Comparison::Latin1(rule) => rule.hash(bytes, hasher),
        Comparison::Latin1Utf8(rule) => rule.hash_utf8(bytes, hasher),
        Comparison::Unicode(rule) => rule.hash(bytes, hasher),
        Comparison::UnicodeTrimmed(rule) => rule.hash(collation::without_trailing_spaces(bytes), hasher),
        Comparison::BytesTrimmed => hasher.write(collation::without_trailing_spaces(bytes)),
    }
    hasher.write_u8(0xFF);
}

/// How records are matched against the key.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// One field of up to 8 bytes, compared as an integer.
    Word { value: u64, len: u8 },
    /// All fields at constant offsets, compared byte by byte. With eight bytes or more: the first eight.
    Fixed { head: Option<u64> },
    /// No field is nullable and all compare byte by byte; the first length byte lies so far below the origin.
    /// With a first field that varies and a value of at least eight bytes for it: the first eight.
    Bytes { lengths: usize, head: Option<u64> },
    /// Anything else.
    General,
}

/// A key prepared for many comparisons with records of one index.
#[derive(Clone, Copy)]
pub struct SearchKey<'k> {
    pub(crate) fields: &'k [Field<'k>],
    pub(crate) shape: Shape,
    /// Whether it has all fields that make a key unique, so that at most one record equals it.
    pub(crate) complete: bool,
}

/// What the head of a record is compared with (see `page/heads.rs`).
#[derive(Clone, Copy)]
pub(crate) struct HeadSought {
    pub value: u64,
    /// Bits of a head that are behind those of the key.
    pub shift: u32,
}

impl<'k> SearchKey<'k> {
    /// The head that the key has, if heads say anything of it.
    #[inline]
    pub(crate) fn head(&self, def: &IndexDef) -> Option<HeadSought> {
        match self.shape {
            Shape::Word { value, len } => Some(HeadSought { value, shift: 64 - 8 * u32::from(len) }),
            Shape::Fixed { head: Some(value) } | Shape::Bytes { head: Some(value), .. } => {
                Some(HeadSought { value, shift: 0 })
            }
            Shape::Bytes { head: None, .. } => self.short_head(def),
            Shape::Fixed { head: None } | Shape::General => None,
        }
    }

    /// A number that never falls from one key of the index to the next, and is the same for keys that are
    /// equal: to put many keys roughly into their order. 0 for all where their bytes do not tell it.
    #[inline]
    pub fn rank(&self, def: &IndexDef) -> u64 {
        self.head(def).map_or(0, |head| head.value << head.shift)
    }

    /// The head of a first value that is shorter than one.
    #[cold]
    fn short_head(&self, def: &IndexDef) -> Option<HeadSought> {
        let first = self.fields.first().copied().flatten()?;
        if def.head != HeadKind::Varying || first.len() >= 8 {
            return None;
        }
        let mut bytes = [0; 8];
        bytes[..first.len()].copy_from_slice(first);
        Some(HeadSought { value: u64::from_be_bytes(bytes), shift: 0 })
    }

    /// Prepares `fields`, the first fields of a key of index `def`.
    #[inline]
    pub fn new(def: &IndexDef, fields: &'k [Field<'k>]) -> SearchKey<'k> {
        let fields = &fields[..fields.len().min(def.n_unique)];
        SearchKey { fields, shape: shape_of(def, fields), complete: fields.len() == def.n_unique }
    }

    /// Order of `record` relative to the key: `Less` when the record is below it.
    pub fn compare_record(&self, record: RecordRef<'_>) -> Ordering {
        match self.shape {
            Shape::Word { .. } | Shape::Fixed { .. } => self.compare_fixed(record.bytes(), record.origin()),
            Shape::Bytes { lengths, .. } => {
                self.compare_varying(record.bytes(), record.origin(), record.def(), lengths)
            }
            Shape::General => self.compare_general(record),
        }
    }

    fn compare_general(&self, record: RecordRef<'_>) -> Ordering {
        if record.is_min_rec() {
            return Ordering::Less;
        }
        for ((stored, wanted), field) in record.fields().zip(self.fields).zip(&record.def().fields) {
            let order = compare_fields(field.compare, stored.inline(), *wanted);
            if order != Ordering::Equal {
                return order;
            }
        }
        Ordering::Equal
    }

    /// As [`Self::compare_record`] for [`Shape::Fixed`], without decoding the record.
    #[inline]
    pub(crate) fn compare_fixed(&self, page: &[u8], origin: usize) -> Ordering {
        if header::info_bits(page, origin) & header::MIN_REC_FLAG != 0 {
            return Ordering::Less;
        }
        let mut at = origin;
        for field in self.fields {
            let wanted = field.unwrap_or(&[]);
            let stored = page.get(at..at + wanted.len()).unwrap_or(&[]);
            let order = stored.cmp(wanted);
            if order != Ordering::Equal {
                return order;
            }
            at += wanted.len();
        }
        Ordering::Equal
    }

    /// As [`Self::compare_record`] for [`Shape::Bytes`].
    #[inline(never)]
    pub(crate) fn compare_varying(
        &self,
        page: &[u8],
        origin: usize,
        def: &IndexDef,
        lengths: usize,
    ) -> Ordering {
        if header::info_bits(page, origin) & header::MIN_REC_FLAG != 0 {
            return Ordering::Less;
        }
        let mut length_at = origin.wrapping_sub(lengths);
        let mut length_byte = || {
            let byte = page.get(length_at).copied().unwrap_or(0);
            length_at = length_at.wrapping_sub(1);
            byte
        };
        let mut at = origin;
        for (wanted, layout) in self.fields.iter().zip(&def.layout) {
            let len = if layout.fixed_len != VARIABLE {
                usize::from(layout.fixed_len)
            } else {
                match length_byte() {
                    // A value of a key is never stored off-page, so there is no such flag to take off.
                    high if layout.long_length && high & 0x80 != 0 => {
                        usize::from(high & 0x3F) << 8 | usize::from(length_byte())
                    }
                    len => usize::from(len),
                }
            };
            let order = compare_bytes(page.get(at..at + len).unwrap_or(&[]), wanted.unwrap_or(&[]));
            if order != Ordering::Equal {
                return order;
            }
            at += len;
        }
        Ordering::Equal
    }
}

/// `a.cmp(b)`, without a call where the first eight bytes differ.
#[inline]
fn compare_bytes(a: &[u8], b: &[u8]) -> Ordering {
    if let (Some(first_of_a), Some(first_of_b)) = (a.first_chunk::<8>(), b.first_chunk::<8>()) {
        let order = u64::from_be_bytes(*first_of_a).cmp(&u64::from_be_bytes(*first_of_b));
        if order != Ordering::Equal {
            return order;
        }
    }
    a.cmp(b)
}

#[inline]
fn shape_of(def: &IndexDef, fields: &[Field<'_>]) -> Shape {
    if let ([Some(value)], [layout, ..], [field, ..]) = (fields, &def.layout[..], &def.fields[..])
        && layout.fixed_len == VARIABLE
        && field.compare == Comparison::Binary
        && !field.nullable
    {
        let head = value.first_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes));
        return Shape::Bytes { lengths: header::HEADER_SIZE + 1 + def.null_bytes(), head };
    }
    shape_of_any(def, fields)
}

/// The same, for keys that are not one value of a length that varies.
fn shape_of_any(def: &IndexDef, fields: &[Field<'_>]) -> Shape {
    if fields.is_empty() {
        return Shape::General;
    }
    let mut fixed = true;
    for (value, (field, layout)) in fields.iter().zip(def.fields.iter().zip(&def.layout)) {
        let Some(value) = value else { return Shape::General };
        if field.compare != Comparison::Binary || field.nullable {
            return Shape::General;
        }
        fixed &= layout.fixed_len != VARIABLE && value.len() == usize::from(layout.fixed_len);
    }
    if !fixed {
        let varies = def.layout.first().is_some_and(|layout| layout.fixed_len == VARIABLE);
        let first = fields.first().copied().flatten().filter(|_| varies);
        let head = first.and_then(<[u8]>::first_chunk::<8>).map(|bytes| u64::from_be_bytes(*bytes));
        return Shape::Bytes { lengths: header::HEADER_SIZE + 1 + def.null_bytes(), head };
    }
    match fields {
        [Some(value)] if (1..=8).contains(&value.len()) => {
            let word = value.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
            Shape::Word { value: word, len: value.len() as u8 }
        }
        _ => Shape::Fixed { head: head_of(fields) },
    }
}

/// The first eight bytes of all fields together.
fn head_of(fields: &[Field<'_>]) -> Option<u64> {
    let mut bytes = fields.iter().flat_map(|field| field.unwrap_or(&[]));
    (0..8).try_fold(0, |head, _| Some(head << 8 | u64::from(*bytes.next()?)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::collation::UnicodeRule;
    use crate::field::{FieldDef, FieldRef};
    use crate::record::RecordBuffer;

    #[test]
    fn numbers_compare_by_value_and_null_is_lowest() {
        let minus_one = (-1.0f64).to_le_bytes();
        let tiny = 1e-300f64.to_le_bytes();
        assert_eq!(compare_values(Comparison::Double, &minus_one, &tiny), Ordering::Less);
        let (half, two) = (0.5f32.to_le_bytes(), 2.0f32.to_le_bytes());
        assert_eq!(compare_values(Comparison::Float, &half, &two), Ordering::Less);
        assert_eq!(compare_fields(Comparison::Binary, None, Some(b"")), Ordering::Less);
        assert_eq!(compare_fields(Comparison::Binary, None, None), Ordering::Equal);
    }

    #[test]
    fn spaces_that_fill_a_char_up_do_not_count() {
        let [text, char] =
            [Comparison::Unicode, Comparison::UnicodeTrimmed].map(|of| of(UnicodeRule::Sensitive));
        assert_eq!(compare_values(text, b"a", b"a  "), Ordering::Less);
        for comparison in [char, Comparison::BytesTrimmed] {
            assert_eq!(compare_values(comparison, b"a", b"a  "), Ordering::Equal);
            assert_eq!(compare_values(comparison, b"a  ", b"a\t"), Ordering::Less);
            let hash = |text: &[u8]| {
                let mut hasher = std::collections::hash_map::DefaultHasher::new();
                hash_field(comparison, Some(text), &mut hasher);
                hasher.finish()
            };
            assert_eq!(hash(b"a"), hash(b"a  "));
        }
    }

    fn varying() -> IndexDef {
        let key = |name, max| FieldDef::variable(name, max, Comparison::Binary);
        let fields = vec![
            key("a", 700),
            FieldDef::fixed("b", 2),
            key("c", 200),
            FieldDef::fixed("DB_TRX_ID", 6),
            FieldDef::fixed("DB_ROLL_PTR", 7),
            FieldDef::fixed("n", 1).nullable(),
        ];
        IndexDef::new(1, "PRIMARY", true, true, fields, 3, 3)
    }

    /// Bytes that often share a beginning, of lengths around those where a length takes two bytes.
    fn value(lengths: &'static [usize]) -> impl Strategy<Value = Vec<u8>> {
        let last = proptest::option::of(proptest::sample::select(vec![0u8, 1, 254, 255]));
        (proptest::sample::select(lengths), last).prop_map(|(len, last)| {
            let mut bytes = vec![7; len];
            if let (Some(byte), Some(last)) = (last, bytes.last_mut()) {
                *last = byte;
            }
            bytes
        })
    }

    fn key() -> impl Strategy<Value = [Vec<u8>; 3]> {
        let first = value(&[0, 1, 7, 8, 9, 127, 128, 129, 255, 256, 257, 300]);
        [first.boxed(), value(&[2]).boxed(), value(&[0, 1, 7, 8, 127, 128, 200]).boxed()]
    }

    proptest! {
        #[test]
        fn binary_keys_of_any_length_are_compared_as_their_fields_are(
            stored in key(), wanted in key(), same in 0..4usize, fields in 1..4usize,
        ) {
            let def = varying();
            let mut wanted = wanted;
            wanted[..same.min(3)].clone_from_slice(&stored[..same.min(3)]);
            let [a, b, c] = &stored;
            let stored_fields = [&a[..], b, c, &[0; 6], &[0; 7], &[1]].map(FieldRef::Inline);
            let mut record = RecordBuffer::new();
            record.encode(&def, &stored_fields).unwrap();
            let wanted_first = wanted[0].clone();
            let wanted: Vec<Field<'_>> = wanted.iter().map(|field| Some(&field[..])).take(fields).collect();
            let key = SearchKey::new(&def, &wanted);
            let has_head = wanted_first.len() >= 8;
            let varies = matches!(key.shape, Shape::Bytes { head, .. } if head.is_some() == has_head);
            prop_assert!(varies);
            let fields = stored.iter().zip(&wanted);
            let expected = fields.map(|(stored, wanted)| Some(&stored[..]).cmp(wanted));
            let expected = expected.fold(Ordering::Equal, Ordering::then);
            prop_assert_eq!(key.compare_record(record.view(&def)), expected);
            let mut pointer = RecordBuffer::new();
            pointer.encode_node_pointer(record.view(&def), 77).unwrap();
            prop_assert_eq!(key.compare_record(pointer.view(&def)), expected);
            prop_assert_eq!(key.compare_general(pointer.view(&def)), expected);
        }
    }
}
