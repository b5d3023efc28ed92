//! Taking records off a page.

use super::header::{self, HeapFields, direction};
use super::{Malformed, PageEditor, directory, next_record, previous_record};
use crate::definition::IndexDef;
use crate::record::{RecordRef, header as record_header};

/// Makes the page empty. Identity, level, MAX_TRX_ID and segment headers stay.
pub fn make_empty(editor: &mut impl PageEditor) {
    let len = editor.bytes().len();
    HeapFields {
        n_dir_slots: 2,
        heap_top: header::HEAP as u16,
        n_heap: 0x8002,
        free: 0,
        garbage: 0,
        last_insert: 0,
        direction: direction::NONE,
        n_direction: 0,
        n_recs: 0,
    }
    .store(editor);
    editor.write(header::FIXED_RECORDS, &header::EMPTY_RECORDS);
    let mut slots = [0; 4];
    slots[..2].copy_from_slice(&(header::SUPREMUM as u16).to_be_bytes());
    slots[2..].copy_from_slice(&(header::INFIMUM as u16).to_be_bytes());
    editor.write(directory::slot_address(len, 1), &slots);
}

/// Removes the record at `origin` from the page. Its bytes become the head of the free list.
pub fn delete_record(editor: &mut impl PageEditor, def: &IndexDef, origin: usize) -> Result<(), Malformed> {
    let page = editor.bytes();
    if header::n_recs(page) == 1 {
        make_empty(editor);
        return Ok(());
    }
    let size = RecordRef::new(page, origin, def).raw().ok_or(Malformed("a record leaves the page"))?.0.len();
    let predecessor = previous_record(page, origin)?;
    let successor = next_record(page, origin)?;
    let (owner, _) = directory::owner_of(page, origin)?;
    let slot = directory::slot_pointing_at(page, owner)?;
    let n_owned = record_header::n_owned(page, owner) - 1;
    if n_owned == 0 {
        return Err(Malformed("a directory slot owns only one record"));
    }
    let last_slot = header::n_dir_slots(page) - 1;
    if slot < last_slot {
        next_record(page, owner)?;
    }
    let mut fields = HeapFields::read(page);

    let free = header::free(page);
    fields.free = origin as u16;
    fields.garbage = fields.garbage.saturating_add(size as u16);
    fields.n_recs = fields.n_recs.saturating_sub(1);
    fields.last_insert = 0;
    editor.write(predecessor - 2, &record_header::next_bytes(predecessor, Some(successor)));
    editor.write(origin - 2, &record_header::next_bytes(origin, free));
    let owner = if owner == origin {
        directory::write_slot(editor, slot, predecessor);
        predecessor
    } else {
        owner
    };
    directory::write_n_owned(editor, owner, n_owned);
    if n_owned < directory::OWNED_MIN && slot != last_slot {
        fields.n_dir_slots -= u16::from(balance(editor, slot, owner, n_owned, last_slot)?);
    }
    fields.store(editor);
    Ok(())
}

/// Brings the group of `slot`, which has become too small, back to at least four records: it takes one from
/// the next group, or joins it. Returns whether the slot is gone.
fn balance(
    editor: &mut impl PageEditor,
    slot: usize,
    owner: usize,
    n_owned: u8,
    last_slot: usize,
) -> Result<bool, Malformed> {
    let page = editor.bytes();
    let upper = directory::slot(page, slot + 1);
    let upper_owned = record_header::n_owned(page, upper);
    let next = next_record(page, owner)?;
    directory::write_n_owned(editor, owner, 0);
    if upper_owned > directory::OWNED_MIN {
        directory::write_slot(editor, slot, next);
        directory::write_n_owned(editor, next, n_owned + 1);
        directory::write_n_owned(editor, upper, upper_owned - 1);
        return Ok(false);
    }
    directory::remove_slot(editor, last_slot + 1, slot);
    directory::write_n_owned(editor, upper, upper_owned + n_owned);
    Ok(true)
}

/// Removes all records from `first` on. They are added to the free list as they are linked, so little is
/// logged however many they are.
pub fn delete_from(editor: &mut impl PageEditor, def: &IndexDef, first: usize) -> Result<(), Malformed> {
    let page = editor.bytes();
    let predecessor = previous_record(page, first)?;
    if predecessor == header::INFIMUM {
        make_empty(editor);
        return Ok(());
    }
    let (mut count, mut size, mut last) = (0u16, 0, first);
    let mut at = first;
    while at != header::SUPREMUM {
        size += RecordRef::new(page, at, def).raw().ok_or(Malformed("a record leaves the page"))?.0.len();
        count += 1;
        last = at;
        at = next_record(page, at)?;
        if usize::from(count) > page.len() {
            return Err(Malformed("the record chain has a loop"));
        }
    }
    let slot = directory::slot_of(page, predecessor)?;
    let owner = directory::slot(page, slot);
    // Records of the group that stay: those up to the predecessor.
    let (group_stays, n_slots) = if owner == predecessor {
        (0, slot + 2)
    } else {
        let (_, distance) = directory::owner_of(page, predecessor)?;
        ((record_header::n_owned(page, owner) + 1).saturating_sub(distance), slot + 1)
    };
    let mut fields = HeapFields::read(page);
    let old_slots = usize::from(fields.n_dir_slots);
    let free = header::free(page);
    fields.free = first as u16;
    fields.garbage = fields.garbage.saturating_add(size as u16);
    fields.n_recs = fields.n_recs.saturating_sub(count);
    fields.last_insert = 0;
    fields.n_dir_slots = n_slots as u16;
    editor.write(last - 2, &record_header::next_bytes(last, free));
    editor.write(predecessor - 2, &record_header::next_bytes(predecessor, Some(header::SUPREMUM)));
    directory::write_n_owned(editor, header::SUPREMUM, group_stays + 1);
    directory::write_slot(editor, n_slots - 1, header::SUPREMUM);
    if old_slots > n_slots {
        let len = editor.bytes().len();
        editor.fill(directory::slot_address(len, old_slots - 1), 2 * (old_slots - n_slots), 0);
    }
    fields.store(editor);
    Ok(())
}
