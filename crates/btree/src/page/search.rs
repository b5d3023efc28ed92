//! Finding a key on a page: binary search over the directory, then along the records of one group.

use std::cmp::Ordering;

use super::header::{self, INFIMUM};
use super::{Malformed, directory, next_record};
use crate::compare::{SearchKey, Shape, compare_heads, word_at};
use crate::definition::IndexDef;
use crate::record::{RecordRef, header as record_header};

/// Which record is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The last record below the key.
    Less,
    /// The last record not above the key.
    LessOrEqual,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Origin of the record, infimum if all records are beyond the bound.
    pub offset: usize,
    /// Whether the record equals the key in all fields of the key (only with [`Bound::LessOrEqual`]).
    pub exact: bool,
}

/// Finds the last record of the page within `bound` of `key`.
pub fn search(page: &[u8], def: &IndexDef, key: &SearchKey<'_>, bound: Bound) -> Result<Found, Malformed> {
    match key.shape {
        Shape::Word { value, len } => {
            let leaf = header::level(page) == 0;
            search_by(page, bound, key.complete, |origin| {
                if !leaf && record_header::info_bits(page, origin) & record_header::MIN_REC_FLAG != 0 {
                    return Ordering::Less;
                }
                word_at(page, origin, len).cmp(&value)
            })
        }
        Shape::Fixed => search_by(page, bound, key.complete, |origin| key.compare_fixed(page, origin)),
        Shape::Bytes { lengths, head: Some(head) } => {
            let leaf = header::level(page) == 0;
            search_by(page, bound, key.complete, |origin| {
                if !leaf && record_header::info_bits(page, origin) & record_header::MIN_REC_FLAG != 0 {
                    return Ordering::Less;
                }
                compare_heads(page, origin, lengths, head)
                    .unwrap_or_else(|| key.compare_varying(page, origin, def, lengths))
            })
        }
        Shape::Bytes { lengths, head: None } => {
            search_by(page, bound, key.complete, |origin| key.compare_varying(page, origin, def, lengths))
        }
        Shape::General => search_by(page, bound, key.complete, |origin| {
            key.compare_record(RecordRef::new(page, origin, def))
        }),
    }
}

#[inline]
fn search_by(
    page: &[u8],
    bound: Bound,
    unique: bool,
    compare: impl Fn(usize) -> Ordering,
) -> Result<Found, Malformed> {
    let within = |order: Ordering| match bound {
        Bound::Less => order == Ordering::Less,
        Bound::LessOrEqual => order != Ordering::Greater,
    };
    let mut low = 0;
    let mut high = header::n_dir_slots(page).checked_sub(1).ok_or(Malformed("the page has no directory"))?;
    let mut found = Found { offset: INFIMUM, exact: false };
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let origin = directory::slot(page, middle);
        let order = compare(origin);
        if within(order) {
            found = Found { offset: origin, exact: order == Ordering::Equal };
            if found.exact && unique {
                return Ok(found);
            }
            low = middle;
        } else {
            high = middle;
        }
    }
    let end = directory::slot(page, high);
    for _ in 0..=directory::OWNED_MAX {
        let next = next_record(page, found.offset)?;
        if next == end {
            return Ok(found);
        }
        let order = compare(next);
        if !within(order) {
            return Ok(found);
        }
        found = Found { offset: next, exact: order == Ordering::Equal };
        if found.exact && unique {
            return Ok(found);
        }
    }
    Err(Malformed("a directory group is larger than eight records"))
}
