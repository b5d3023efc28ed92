//! Finding a key on a page: binary search over the directory, then along the records of one group.
//!
//! Most of what a search costs is looking at records, some twenty of them from the root to a row. So what a
//! comparison wants of a record is taken out of the page at once, with one check that it lies there: the
//! length of its first field, the info bits, where the next record is, and the first eight bytes of its key
//! (`Around`). These eight bytes decide nearly always, whatever the key is made of; only where they are
//! equal, or the key is shorter, is the record decoded.

use std::cmp::Ordering;

use super::header::{INFIMUM, TRAILER_SIZE};
use super::prefetch::prefetch;
use super::{LEAVES_HEAP, Malformed, directory};
use crate::compare::{SearchKey, Shape};
use crate::definition::IndexDef;
use crate::record::RecordRef;
use crate::record::header::{HEADER_SIZE, MIN_REC_FLAG};

/// Which record is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The last record below the key.
    Less,
    /// The last record not above the key.
    LessOrEqual,
}

impl Bound {
    /// The greatest order of a record relative to the key that is within.
    #[inline]
    pub(super) fn greatest(self) -> Ordering {
        match self {
            Bound::Less => Ordering::Less,
            Bound::LessOrEqual => Ordering::Equal,
        }
    }
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Origin of the record, infimum if all records are beyond the bound.
    pub offset: usize,
    /// Whether the record equals the key in all fields of the key (only with [`Bound::LessOrEqual`]).
    pub exact: bool,
}

/// Bytes of an [`Around`] in front of the record's origin.
const BEFORE: usize = HEADER_SIZE + 1;

/// The bytes around a record's origin.
///
/// | byte | content |
/// |---|---|
/// | 0 | first length byte, where no field is nullable |
/// | 1 | info bits in the high nibble |
/// | 2 | heap number and status |
/// | 4 | offset of the next record relative to this origin |
/// | 6 | first eight bytes of the key |
pub(super) struct Around<'p>(&'p [u8; BEFORE + 8]);

impl<'p> Around<'p> {
    /// The directory and the trailer lie behind all records, so a record has these bytes however short its
    /// key is.
    #[inline]
    pub(super) fn new(page: &'p [u8], origin: usize) -> Result<Around<'p>, Malformed> {
        let bytes = page.get(origin.wrapping_sub(BEFORE)..).and_then(<[u8]>::first_chunk);
        bytes.map(Around).ok_or(Malformed("a record lies outside its page"))
    }

    #[inline]
    fn first_length(&self) -> u8 {
        self.0[0]
    }

    /// Whether this is the node pointer that counts as minus infinity.
    #[inline]
    pub(super) fn is_min_rec(&self) -> bool {
        self.0[1] & MIN_REC_FLAG != 0
    }

    /// Origin of the next record; this one's is `origin`.
    #[inline]
    fn next(&self, page: &[u8], origin: usize) -> Result<usize, Malformed> {
        let relative = usize::from(u16::from_be_bytes([self.0[4], self.0[5]]));
        let next = (origin + relative) & 0xFFFF;
        let inside = relative != 0 && next >= INFIMUM && next < page.len() - TRAILER_SIZE;
        if inside { Ok(next) } else { Err(LEAVES_HEAP) }
    }

    /// The first bytes of the key as a number, and what follows if the key is shorter.
    #[inline]
    pub(super) fn head(&self) -> u64 {
        let [.., a, b, c, d, e, f, g, h] = *self.0;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}

/// Finds the last record of the page within `bound` of `key`.
pub fn search(page: &[u8], def: &IndexDef, key: &SearchKey<'_>, bound: Bound) -> Result<Found, Malformed> {
    let unique = key.complete;
    match key.shape {
        Shape::Word { value, len } => {
            let shift = 64 - 8 * u32::from(len);
            search_by(page, bound, unique, move |record, _| {
                if record.is_min_rec() { Ordering::Less } else { (record.head() >> shift).cmp(&value) }
            })
        }
        Shape::Fixed { head: Some(head) } => search_by(page, bound, unique, move |record, origin| {
            let stored = record.head();
            if stored != head && !record.is_min_rec() {
                return if stored < head { Ordering::Less } else { Ordering::Greater };
            }
            key.compare_fixed(page, origin)
        }),
        Shape::Fixed { head: None } => {
            search_by(page, bound, unique, |_, origin| key.compare_fixed(page, origin))
        }
        Shape::Bytes { lengths, head: Some(head) } => {
            search_by(page, bound, unique, move |record, origin| {
                let length = match lengths {
                    BEFORE => record.first_length(),
                    _ => page.get(origin.wrapping_sub(lengths)).copied().unwrap_or(0),
                };
                let stored = record.head();
                // Where a length takes two bytes the first of them has its highest bit, and the value is
                // longer.
                if stored != head && length >= 8 && !record.is_min_rec() {
                    return if stored < head { Ordering::Less } else { Ordering::Greater };
                }
                key.compare_varying(page, origin, def, lengths)
            })
        }
        Shape::Bytes { lengths, head: None } => {
            search_by(page, bound, unique, |_, origin| key.compare_varying(page, origin, def, lengths))
        }
        Shape::General => {
            search_by(page, bound, unique, |_, origin| key.compare_record(RecordRef::new(page, origin, def)))
        }
    }
}

/// A function for each kind of comparison: all of them in one would be short of registers.
#[inline(never)]
fn search_by(
    page: &[u8],
    bound: Bound,
    unique: bool,
    compare: impl Fn(&Around<'_>, usize) -> Ordering,
) -> Result<Found, Malformed> {
    let greatest = bound.greatest();
    // From the last slot, which is that of supremum, to the first, that of infimum.
    let slots = directory::slots(page)?;
    let origin_of = |slot: usize| slots.get(slot).map_or(0, |bytes| usize::from(u16::from_be_bytes(*bytes)));
    let mut beyond = 0;
    let mut below = slots.len() - 1;
    let mut found = Found { offset: INFIMUM, exact: false };
    while below - beyond > 1 {
        let middle = (beyond + below) / 2;
        let origin = origin_of(middle);
        prefetch(page, origin_of((beyond + middle) / 2));
        prefetch(page, origin_of((middle + below) / 2));
        let order = compare(&Around::new(page, origin)?, origin);
        if order <= greatest {
            found = Found { offset: origin, exact: order == Ordering::Equal };
            if found.exact && unique {
                return Ok(found);
            }
            below = middle;
        } else {
            beyond = middle;
        }
    }
    along(page, bound, unique, found, origin_of(beyond), usize::from(directory::OWNED_MAX) + 1, compare)
}

/// Goes on from a record within the bound to the last one, in front of `end`, which is not more than
/// `records_max` records away.
#[inline(always)]
pub(super) fn along(
    page: &[u8],
    bound: Bound,
    unique: bool,
    mut found: Found,
    end: usize,
    records_max: usize,
    compare: impl Fn(&Around<'_>, usize) -> Ordering,
) -> Result<Found, Malformed> {
    let greatest = bound.greatest();
    let mut next = Around::new(page, found.offset)?.next(page, found.offset)?;
    for _ in 0..records_max {
        if next == end {
            return Ok(found);
        }
        let record = Around::new(page, next)?;
        let order = compare(&record, next);
        if order > greatest {
            return Ok(found);
        }
        found = Found { offset: next, exact: order == Ordering::Equal };
        if found.exact && unique {
            return Ok(found);
        }
        next = record.next(page, next)?;
    }
    Err(Malformed("a record chain misses the end of its group"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pagestore::{HEADS_MAX, HEADS_MAX_ABOVE, HeadsMaker, HeadsRoom, HeadsRoomAbove, PageId};
    use proptest::prelude::*;

    use super::super::builder::PageBuilder;
    use super::super::heads::{self, FoundByHeads, search_by_heads};
    use super::super::record_list;
    use super::*;
    use crate::definition::HeadKind;
    use crate::field::{Comparison, Field, FieldDef, FieldRef};
    use crate::record::RecordBuffer;

    /// An index of these key fields, with a nullable field behind them or without.
    fn index(key: Vec<FieldDef>, nullable: bool) -> IndexDef {
        let n_key = key.len();
        let mut fields = key;
        fields.extend([FieldDef::fixed("DB_TRX_ID", 6), FieldDef::fixed("DB_ROLL_PTR", 7)]);
        let last = FieldDef::fixed("n", 1);
        fields.push(if nullable { last.nullable() } else { last });
        IndexDef::new(1, "PRIMARY", true, true, fields, n_key, n_key)
    }

    /// Keys of every shape that there is.
    fn shapes() -> Vec<(IndexDef, Vec<usize>)> {
        let varying = |name| FieldDef::variable(name, 700, Comparison::Binary);
        vec![
            (index(vec![FieldDef::fixed("a", 1)], false), vec![1]),
            (index(vec![FieldDef::fixed("a", 8)], false), vec![8]),
            (index(vec![FieldDef::fixed("a", 3), FieldDef::fixed("b", 2)], false), vec![3, 2]),
            (index(vec![FieldDef::fixed("a", 4), FieldDef::fixed("b", 5)], true), vec![4, 5]),
            (index(vec![varying("a")], false), vec![0]),
            (index(vec![varying("a")], true), vec![0]),
            (index(vec![varying("a"), FieldDef::fixed("b", 2)], false), vec![0, 2]),
            (index(vec![FieldDef::fixed("a", 2), varying("b")], false), vec![2, 0]),
            (index(vec![FieldDef::variable("a", 300, Comparison::BytesPadSpace)], false), vec![0]),
        ]
    }

    /// A key with fields of these lengths, 0 for any length; few bytes, so that keys often begin alike.
    fn key(lengths: &[usize]) -> impl Strategy<Value = Vec<Vec<u8>>> + use<> {
        let field = |len: &usize| {
            let lengths = if *len == 0 { vec![0, 1, 7, 8, 9, 24, 127, 128, 200] } else { vec![*len] };
            (proptest::sample::select(lengths), proptest::collection::vec(0..3u8, 9)).prop_map(
                |(len, bytes)| {
                    // The first and the last bytes differ, those between are alike.
                    (0..len)
                        .map(|at| if at < 2 || at + 2 >= len || at == 8 { bytes[at % 9] } else { 1 })
                        .collect()
                },
            )
        };
        lengths.iter().map(field).collect::<Vec<_>>()
    }

    fn fields(key: &[Vec<u8>]) -> Vec<Field<'_>> {
        key.iter().map(|field| Some(&field[..])).collect()
    }

    type Case = (IndexDef, Vec<Vec<Vec<u8>>>, Vec<Vec<u8>>);

    fn case(keys_max: usize) -> impl Strategy<Value = Case> {
        proptest::sample::select(shapes()).prop_flat_map(move |(def, lengths)| {
            (Just(def), proptest::collection::vec(key(&lengths), 0..keys_max), key(&lengths))
        })
    }

    /// What going through all records finds.
    fn expected(page: &[u8], def: &IndexDef, key: &SearchKey<'_>, bound: Bound) -> Found {
        let mut expected = Found { offset: INFIMUM, exact: false };
        for origin in record_list(page).unwrap() {
            match key.compare_record(RecordRef::new(page, origin, def)) {
                Ordering::Less => expected = Found { offset: origin, exact: false },
                Ordering::Equal if bound == Bound::LessOrEqual => {
                    expected = Found { offset: origin, exact: true };
                }
                _ => {}
            }
        }
        expected
    }

    /// A search by the heads of a page; `None` if it has none, or they say nothing of the key.
    fn by_heads(
        page: &[u8],
        def: &IndexDef,
        key: &SearchKey<'_>,
        bound: Bound,
    ) -> Option<Result<FoundByHeads, Malformed>> {
        let (small, large): (HeadsRoom, HeadsRoomAbove) =
            (std::array::from_fn(|_| 0.into()), std::array::from_fn(|_| 0.into()));
        let maker = if crate::page::header::level(page) == 0 {
            HeadsMaker::new(&small)
        } else {
            HeadsMaker::above(&large)
        };
        let heads = heads::make(page, def, maker)?;
        Some(search_by_heads(page, def, key, key.head(def)?, bound, &heads))
    }

    /// The records in order, as many as fit, without those whose keys are equal.
    fn page_of(def: &IndexDef, keys: &[Vec<Vec<u8>>], level: u16) -> Vec<u8> {
        let mut records: Vec<RecordBuffer> = Vec::new();
        for key in keys {
            let system: [&[u8]; 3] = [&[0; 6], &[0; 7], &[1]];
            let all = key.iter().map(|field| &field[..]).chain(system).map(FieldRef::Inline);
            let mut record = RecordBuffer::new();
            record.encode(def, &all.collect::<Vec<_>>()).unwrap();
            let key = fields(key);
            let key = SearchKey::new(def, &key);
            let place = records.partition_point(|other| key.compare_record(other.view(def)).is_lt());
            let equal = records.get(place).is_some_and(|other| key.compare_record(other.view(def)).is_eq());
            if !equal {
                records.insert(place, record);
            }
        }
        let mut left = 15_000;
        records.retain(|record| {
            left -= record.view(def).size().cast_signed() + 10;
            left > 0
        });
        let mut builder = PageBuilder::fresh(16384, PageId::new(1, 3), level, def.id);
        for (number, record) in records.iter().enumerate() {
            let mut pointer = RecordBuffer::new();
            let mut stored = record;
            if level > 0 {
                pointer.encode_node_pointer(record.view(def), number as u32).unwrap();
                stored = &pointer;
            }
            let (bytes, extra) = stored.view(def).raw().unwrap();
            let mut bytes = bytes.to_vec();
            if level > 0 && number == 0 {
                bytes[extra - HEADER_SIZE] |= MIN_REC_FLAG;
            }
            builder.append(&bytes, extra);
        }
        std::mem::take(builder.finish(false))
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_going_through_all_records_finds(
            (def, keys, wanted) in case(60), level in 0..2u16, prefix in any::<bool>(),
        ) {
            let page = page_of(&def, &keys, level);
            let mut wanted = fields(&wanted);
            if prefix {
                wanted.truncate(1);
            }
            let key = SearchKey::new(&def, &wanted);
            for bound in [Bound::Less, Bound::LessOrEqual] {
                let expected = expected(&page, &def, &key, bound);
                prop_assert_eq!(search(&page, &def, &key, bound), Ok(expected));
            }
        }

        /// With an entry for each record and for every few of them, keys that begin alike and keys shorter
        /// than a head.
        #[test]
        fn heads_find_what_going_through_all_records_finds(
            (def, keys, wanted) in case(350), level in 0..2u16, prefix in any::<bool>(),
        ) {
            let page = page_of(&def, &keys, level);
            let records = record_list(&page).unwrap();
            let mut wanted = fields(&wanted);
            if prefix {
                wanted.truncate(1);
            }
            let key = SearchKey::new(&def, &wanted);
            for bound in [Bound::Less, Bound::LessOrEqual] {
                let Some(found) = by_heads(&page, &def, &key, bound) else {
                    let has_none = records.is_empty() || def.head == HeadKind::None;
                    prop_assert!(has_none || key.head(&def).is_none());
                    continue;
                };
                let FoundByHeads { found, next } = found.unwrap();
                prop_assert_eq!(found, expected(&page, &def, &key, bound));
                let place = records.iter().position(|origin| *origin == found.offset).map_or(0, |at| at + 1);
                let most = if level == 0 { HEADS_MAX } else { HEADS_MAX_ABOVE };
                prop_assert_eq!(next, (records.len() <= most).then_some(place));
            }
        }

        #[test]
        fn a_damaged_page_is_searched_to_an_end(
            (def, keys, wanted) in case(60), damage in proptest::collection::vec((38..16384usize, any::<u8>()), 1..40),
        ) {
            let mut page = page_of(&def, &keys, 0);
            for (at, byte) in damage {
                page[at] = byte;
            }
            let wanted = fields(&wanted);
            let key = SearchKey::new(&def, &wanted);
            for bound in [Bound::Less, Bound::LessOrEqual] {
                // Whatever it finds: no panic, and nothing outside the page.
                prop_assert!(search(&page, &def, &key, bound).is_ok_and(|found| found.offset < 16384)
                    || search(&page, &def, &key, bound).is_err());
                let found = by_heads(&page, &def, &key, bound).and_then(Result::ok);
                prop_assert!(found.is_none_or(|found| found.found.offset < 16384));
            }
        }
    }
}
