//! The page directory: an array of record origins, growing down from the trailer.
//!
//! Slot i is at `P - 8 - 2(i+1)`. Slot 0 is infimum, the last slot is supremum. Each slot points at the *last*
//! record of its group, and that record's `n_owned` is the size of the group: 1 for infimum, 1 to 8 for supremum,
//! 4 to 8 for all others.

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

/// The last record of the group that `origin` belongs to, and how many records are from `origin` to it, inclusive.
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

/// Number of the slot that points at `owner`.
pub fn slot_pointing_at(page: &[u8], owner: usize) -> Result<usize, Malformed> {
    let n_slots = header::n_dir_slots(page);
    // Supremum is the most frequent owner (ascending inserts), and it is the last slot.
    (0..n_slots)
        .rev()
        .find(|n| slot(page, *n) == owner)
        .ok_or(Malformed("a record that owns others is not in the directory"))
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

/// Makes room for a new slot `number` by moving the slots from it on (towards lower addresses) and points it at
/// `origin`. `n_slots` is the number of slots before.
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
