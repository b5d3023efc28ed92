//! The order of keys.
//!
//! A search compares one key with some fifteen records. [`SearchKey`] looks at the key once: a key of fixed
//! NOT NULL fields that compare byte by byte is matched against the bytes at the record's origin, and a
//! single integer is matched as one machine word; only other keys walk the record's variable part.
//!
//! NULL is below every value. The first node pointer of a level (MIN_REC) is below every key.

use std::cmp::Ordering;
use std::hash::Hasher;

use crate::collation;
use crate::definition::{IndexDef, VARIABLE};
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
        Comparison::Latin1SwedishCi => collation::compare_swedish_ci(a, b),
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
        Comparison::Latin1SwedishCi => collation::hash_swedish_ci(bytes, hasher),
    }
    hasher.write_u8(0xFF);
}

/// How records are matched against the key.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// One field of up to 8 bytes, compared as an integer.
    Word { value: u64, len: u8 },
    /// All fields at constant offsets, compared byte by byte.
    Fixed,
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

impl<'k> SearchKey<'k> {
    /// Prepares `fields`, the first fields of a key of index `def`.
    #[inline]
    pub fn new(def: &IndexDef, fields: &'k [Field<'k>]) -> SearchKey<'k> {
        let fields = &fields[..fields.len().min(def.n_unique)];
        SearchKey { fields, shape: shape_of(def, fields), complete: fields.len() == def.n_unique }
    }

    /// Order of `record` relative to the key: `Less` when the record is below it.
    pub fn compare_record(&self, record: RecordRef<'_>) -> Ordering {
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
}

fn shape_of(def: &IndexDef, fields: &[Field<'_>]) -> Shape {
    let fits = |(value, (field, layout)): (
        &Field<'_>,
        (&crate::field::FieldDef, &crate::definition::FieldLayout),
    )| {
        field.compare == Comparison::Binary
            && !field.nullable
            && layout.fixed_len != VARIABLE
            && value.is_some_and(|value| value.len() == usize::from(layout.fixed_len))
    };
    if fields.is_empty() || !fields.iter().zip(def.fields.iter().zip(&def.layout)).all(fits) {
        return Shape::General;
    }
    match fields {
        [Some(value)] if (1..=8).contains(&value.len()) => {
            let word = value.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
            Shape::Word { value: word, len: value.len() as u8 }
        }
        _ => Shape::Fixed,
    }
}

/// The first `len` bytes at `at` as an integer; 0 outside the page.
#[inline]
pub(crate) fn word_at(page: &[u8], at: usize, len: u8) -> u64 {
    let len = usize::from(len);
    if let Some(bytes) = page.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        return u64::from_be_bytes(*bytes) >> (64 - 8 * len);
    }
    page.get(at..at + len).unwrap_or(&[]).iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn words_are_read_at_the_end_of_a_page_too() {
        assert_eq!(word_at(&[9, 1, 2, 3, 4, 5, 6, 7, 8, 0], 1, 4), 0x0102_0304);
        assert_eq!(word_at(&[1, 2, 3], 1, 2), 0x0203);
        assert_eq!(word_at(&[1, 2, 3], 2, 2), 0);
    }
}
