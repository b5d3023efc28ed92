//! The page directory: an array of record origins, growing down from the trailer.
//!
//! Slot i is at `P - 8 - 2(i+1)`. Slot 0 is infimum, the last slot is supremum. Each slot points at the
//! *last* record of its group, and that record's `n_owned` is the size of the group: 1 for infimum, 1 to 8
//! for supremum, 4 to 8 for all others. A slot is split by `insert.rs` and merged by `delete.rs`.

use pagestore::page::u16_at;

use super::header::{self, TRAILER_SIZE};
use super::{Malformed, PageEditor, next_record};
use crate::record::header as record_header;

/// Smallest group of a slot between infimum and supremum.
pub const OWNED_MIN: u8 = 4;
/// Largest group.
pub const OWNED_MAX: u8 = 8;

/// Address of slot `slot`.
#[inline]
pub fn slot_address(page_len: usize, slot: usize) -> usize {
    page_len - TRAILER_SIZE - 2 * (slot + 1)
}

/// Origin of the record slot `slot` points at; 0 if the slot would lie outside the page.
#[inline]
pub fn slot(page: &[u8], slot: usize) -> usize {
    match page.len().checked_sub(TRAILER_SIZE + 2 * (slot + 1)) {
        Some(address) if address >= header::HEAP => usize::from(u16_at(page, address)),
        _ => 0,
    }
}

const OUTSIDE: Malformed = Malformed("the directory does not fit the page");

/// All slots, those of the greatest records first; at least one.
#[inline]
pub(super) fn slots(page: &[u8]) -> Result<&[[u8; 2]], Malformed> {
    let end = page.len().checked_sub(TRAILER_SIZE).ok_or(OUTSIDE)?;
    let first = end.checked_sub(2 * header::n_dir_slots(page)).filter(|first| *first >= header::HEAP);
    let (slots, _) = page.get(first.ok_or(OUTSIDE)?..end).ok_or(OUTSIDE)?.as_chunks::<2>();
    if slots.is_empty() { Err(Malformed("the page has no directory")) } else { Ok(slots) }
}

/// The last record of the group that `origin` belongs to, and how many records are from `origin` to it,
/// inclusive.
pub fn owner_of(page: &[u8], origin: usize) -> Result<(usize, u8), Malformed> {
    let mut at = origin;
    for distance in 1..=OWNED_MAX + 1 {
        if record_header::n_owned(page, at) != 0 {
            return Ok((at, distance));
        }
        at = next_record(page, at)?;
    }
    Err(Malformed("a directory group is larger than eight records"))
}

/// Slots compared at once in [`slot_pointing_at`]: two vectors of the least x86-64.
const SLOTS_AT_ONCE: usize = 16;

/// Number of the slot that points at `owner`.
///
/// Deletes and steps backward ask this for every record, and a page of short records has hundreds of slots:
/// they are compared in blocks, without a branch for each. From the last slot on: supremum is the most
/// frequent owner (ascending inserts).
pub fn slot_pointing_at(page: &[u8], owner: usize) -> Result<usize, Malformed> {
    const MISSING: Malformed = Malformed("a record that owns others is not in the directory");
    let wanted = u16::try_from(owner).map_err(|_| MISSING)?.to_be_bytes();
    let slots = slots(page)?;
    let (blocks, _) = slots.as_chunks::<SLOTS_AT_ONCE>();
    let wanted_at_once = u16::from_ne_bytes(wanted);
    let has = |block: &[[u8; 2]; SLOTS_AT_ONCE]| {
        block.iter().fold(false, |has, slot| has | (u16::from_ne_bytes(*slot) == wanted_at_once))
    };
    let skipped = blocks.iter().position(has).unwrap_or(blocks.len()) * SLOTS_AT_ONCE;
    let at = slots[skipped..].iter().position(|slot| *slot == wanted).ok_or(MISSING)?;
    Ok(slots.len() - 1 - (skipped + at))
}

/// Number of the slot whose group has the record at `origin`.
pub fn slot_of(page: &[u8], origin: usize) -> Result<usize, Malformed> {
    slot_pointing_at(page, owner_of(page, origin)?.0)
}

pub(super) fn write_slot(editor: &mut impl PageEditor, number: usize, origin: usize) {
    let address = slot_address(editor.bytes().len(), number);
    editor.write(address, &(origin as u16).to_be_bytes());
}

pub(super) fn write_n_owned(editor: &mut impl PageEditor, origin: usize, n_owned: u8) {
    let byte = editor.bytes()[origin - 5] & 0xF0 | n_owned;
    editor.write(origin - 5, &[byte]);
}

/// Makes room for a new slot `number` by moving the slots from it on (towards lower addresses) and points it
/// at `origin`. `n_slots` is the number of slots before.
pub(super) fn add_slot(editor: &mut impl PageEditor, n_slots: usize, number: usize, origin: usize) {
    let len = editor.bytes().len();
    let lowest = slot_address(len, n_slots - 1);
    let moved = 2 * (n_slots - number);
    editor.copy_within(lowest - 2, lowest, moved);
    write_slot(editor, number, origin);
}

/// Takes slot `number` out of `n_slots` slots.
pub(super) fn remove_slot(editor: &mut impl PageEditor, n_slots: usize, number: usize) {
    let len = editor.bytes().len();
    let lowest = slot_address(len, n_slots - 1);
    let moved = 2 * (n_slots - number - 1);
    if moved > 0 {
        editor.copy_within(lowest + 2, lowest, moved);
    }
    // The slot that became unused is zeroed: stale bytes there would only make images differ.
    editor.write(lowest, &[0, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slot_is_found_by_what_it_points_at() {
        for n_slots in 2..70 {
            let mut page = vec![0; 4096];
            page[header::N_DIR_SLOTS..header::N_DIR_SLOTS + 2]
                .copy_from_slice(&(n_slots as u16).to_be_bytes());
            let origin = |slot: usize| 99 + 259 * slot % 3900;
            for slot in 0..n_slots {
                let address = slot_address(page.len(), slot);
                page[address..address + 2].copy_from_slice(&(origin(slot) as u16).to_be_bytes());
            }
            for slot in 0..n_slots {
                assert_eq!(slot_pointing_at(&page, origin(slot)), Ok(slot), "of {n_slots}");
            }
            assert!(slot_pointing_at(&page, 98).is_err());
        }
    }

    #[test]
    fn a_directory_that_does_not_fit_its_page_is_malformed() {
        for n_slots in [0, 2020, u16::MAX] {
            let mut page = vec![0; 4096];
            page[header::N_DIR_SLOTS..header::N_DIR_SLOTS + 2].copy_from_slice(&n_slots.to_be_bytes());
            assert!(slot_pointing_at(&page, 99).is_err(), "{n_slots}");
        }
    }
}
