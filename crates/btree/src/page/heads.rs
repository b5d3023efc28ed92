//! Searching a page by the heads of its records.
//!
//! The **head** of a record is the first eight bytes of its key as a number, for keys that begin with bytes
//! whose order is that of the values. Heads never fall from one record to the next, and where two differ so
//! do the keys, in the same way. A page that is searched again and again has the heads of its records beside
//! it, or of every n-th of them, each with the place of its record ([`pagestore::Heads`] keeps them, and
//! forgets them when the page changes). A search looks there first, and then only at the records that have
//! the head it looks for, mostly the one that it wants; where entries stand for several records, at the rest
//! of theirs.

use std::cmp::Ordering;

use pagestore::{Heads, HeadsMaker, Pointers};

use super::header::{INFIMUM, SUPREMUM};
use super::prefetch::{prefetch, prefetch_row};
use super::search::{Around, Bound, Found, along};
use super::{Malformed, directory, header, next_record};
use crate::compare::{HeadSought, SearchKey};
use crate::definition::{HeadKind, IndexDef};
use crate::record::RecordRef;
use crate::record::header::HEADER_SIZE;

/// Groups of a page that are gone through at once: more have pages of the shortest records only.
const GROUPS_MAX: usize = 256;

/// If more than one in this many entries has the head of the one before it, heads alone are not looked at:
/// where keys begin alike that would be for nothing.
const SAME_HEADS: usize = 8;

/// The head of a record. The node pointer that counts as minus infinity has the least one.
#[inline]
fn head_of(page: &[u8], def: &IndexDef, record: &Around<'_>, origin: usize) -> u64 {
    if record.is_min_rec() {
        return 0;
    }
    let bytes = match def.head {
        HeadKind::None => 0,
        HeadKind::Fixed(bytes) => bytes,
        // Where a length takes two bytes the first of them has its highest bit.
        HeadKind::Varying => {
            page.get(origin.wrapping_sub(HEADER_SIZE + 1 + def.null_bytes())).copied().unwrap_or(0).min(8)
        }
    };
    record.head() & first_bytes(bytes)
}

/// The bits of the first bytes of a number.
#[inline]
fn first_bytes(bytes: u8) -> u64 {
    u64::MAX.checked_shl(64 - 8 * u32::from(bytes)).unwrap_or(0)
}

/// Origins of all records of a page in order, if they can be told.
///
/// Each follows from the one before, and mostly none of them is in a cache. So the chains of all groups are
/// gone along side by side.
fn origins_of(page: &[u8]) -> Option<Vec<u16>> {
    let slots = directory::slots(page).ok()?;
    let origin_of = |slot: usize| u16::from_be_bytes(slots[slots.len() - 1 - slot]);
    let groups = slots.len() - 1;
    if groups > GROUPS_MAX {
        return None;
    }
    (0..=groups).for_each(|slot| prefetch(page, usize::from(origin_of(slot))));
    let mut chains = [[0; directory::OWNED_MAX as usize]; GROUPS_MAX];
    let mut lengths = [0; GROUPS_MAX];
    for round in 0..usize::from(directory::OWNED_MAX) {
        let mut went_on = false;
        for group in 0..groups {
            let at = if round == 0 { origin_of(group) } else { chains[group][round - 1] };
            if lengths[group] == round && at != origin_of(group + 1) {
                chains[group][round] = next_record(page, usize::from(at)).ok()? as u16;
                lengths[group] = round + 1;
                went_on = true;
            }
        }
        if !went_on {
            break;
        }
    }
    let mut origins = Vec::with_capacity(groups * usize::from(directory::OWNED_MAX));
    for group in 0..groups {
        let chain = &chains[group][..lengths[group]];
        if chain.last() != Some(&origin_of(group + 1)) {
            return None;
        }
        origins.extend_from_slice(chain);
    }
    (origins.pop() == Some(SUPREMUM as u16)).then_some(origins)
}

/// Makes the heads of a page; `None` if it is none that can have them.
pub(crate) fn make<'r>(page: &[u8], def: &IndexDef, mut maker: HeadsMaker<'r>) -> Option<Heads<'r>> {
    let origins = origins_of(page).filter(|origins| !origins.is_empty())?;
    let step = origins.len().div_ceil(maker.most());
    let level = header::level(page);
    let (mut least, mut same) = (0, 0);
    for origin in origins.iter().step_by(step) {
        let record = Around::new(page, usize::from(*origin)).ok()?;
        let head = head_of(page, def, &record, usize::from(*origin));
        let child = if level > 0 { RecordRef::new(page, usize::from(*origin), def).child() } else { 0 };
        // A damaged page is searched as it always was.
        if head < least || !maker.push(head, *origin, child) {
            return None;
        }
        same += usize::from(head == least);
        least = head;
    }
    let tells = level > 0 && step == 1 && same <= origins.len() / SAME_HEADS + 1;
    Some(maker.finish(u16::try_from(step).ok()?, tells.then_some(level)))
}

/// First of the entries from `from` to the end whose head is `sought` or above, or beyond `sought`.
#[inline]
fn first_from(heads: &Heads<'_>, from: usize, sought: HeadSought, beyond: bool) -> usize {
    let is_before = |at: usize| {
        let head = heads.head(at) >> sought.shift;
        if beyond { head <= sought.value } else { head < sought.value }
    };
    let (mut first, mut left) = (from, heads.len() - from);
    // Without a branch that nobody could foresee.
    while left > 0 {
        let half = left.div_ceil(2);
        first += if is_before(first + half - 1) { half } else { 0 };
        left -= half;
    }
    first
}

/// The page that the heads of one above the leaves lead to. `None`: a record has the very head that is
/// sought, and must be looked at.
#[inline]
pub(crate) fn child_by_heads(pointers: &Pointers<'_>, sought: HeadSought) -> Option<u32> {
    let heads = pointers.heads();
    let within = first_from(heads, 0, sought, false);
    if within < heads.len() && heads.head(within) >> sought.shift == sought.value {
        return None;
    }
    // Keys below the first node pointer belong to its child too.
    Some(pointers.page(within.saturating_sub(1)))
}

/// What was found, and, if there is an entry for each record, which one is next.
pub(crate) struct FoundByHeads {
    pub found: Found,
    pub next: Option<usize>,
}

/// [`search`](super::search::search) for a page that has heads.
#[inline]
pub(crate) fn search_by_heads(
    page: &[u8],
    def: &IndexDef,
    key: &SearchKey<'_>,
    sought: HeadSought,
    bound: Bound,
    heads: &Heads<'_>,
) -> Result<FoundByHeads, Malformed> {
    let greatest = bound.greatest();
    let len = heads.len();
    let mut within = first_from(heads, 0, sought, false);
    let mut found = Found { offset: INFIMUM, exact: false };
    // Only a record with this very head has to be looked at.
    let has_head = |at: usize| at < len && heads.head(at) >> sought.shift == sought.value;
    if has_head(within) {
        prefetch_row(page, heads.origin(within));
        let mut end = within + 1;
        if has_head(end) {
            end = first_from(heads, end, sought, true);
        }
        while within < end {
            let middle = (within + end) / 2;
            let offset = heads.origin(middle);
            let order = key.compare_record(RecordRef::new(page, offset, def));
            if order <= greatest {
                found = Found { offset, exact: order.is_eq() };
                within = middle + 1;
                if found.exact && key.complete {
                    break;
                }
            } else {
                end = middle;
            }
        }
    }
    if found.offset == INFIMUM && within > 0 {
        found.offset = heads.origin(within - 1);
    }
    let whole = heads.step() == 1;
    if !(whole || found.exact && key.complete) {
        let end = if within < len { heads.origin(within) } else { SUPREMUM };
        let by_head = |record: &Around<'_>, origin: usize| match (head_of(page, def, record, origin)
            >> sought.shift)
            .cmp(&sought.value)
        {
            Ordering::Equal => key.compare_record(RecordRef::new(page, origin, def)),
            order => order,
        };
        // A chain with a loop comes to an end too.
        let records_max = page.len() / HEADER_SIZE;
        found = along(page, bound, key.complete, found, end, records_max, by_head)?;
    }
    Ok(FoundByHeads { found, next: whole.then_some(within) })
}
