//! Putting a record onto a page, where there is contiguous room, and splitting a directory slot that owns too
//! many.
//!
//! Where the room is there but scattered, the caller reorganizes the page and puts the record onto the new
//! image: `Tree::insert_on_page`, with [`super::reorganize`].

use super::header::{self, HeapFields, direction};
use super::{Malformed, PageEditor, directory, next_record};
use crate::definition::IndexDef;
use crate::record::{RecordBuffer, RecordRef, header as record_header};

/// Where the bytes of a new record will go.
struct Room {
    start: usize,
    heap_no: u16,
    fields: HeapFields,
}

/// Finds contiguous room for `size` bytes: the head of the free list if it is large enough, else the top of
/// the heap. Only the head is looked at, as InnoDB does: anything more is the work of a reorganisation.
fn find_room(page: &[u8], def: &IndexDef, size: usize) -> Result<Option<Room>, Malformed> {
    let mut fields = HeapFields::read(page);
    if let Some(free) = header::free(page) {
        let record = RecordRef::new(page, free, def);
        let (bytes, _) = record.raw().ok_or(Malformed("a freed record leaves the page"))?;
        if bytes.len() >= size {
            let next = record_header::next(page, free).filter(|next| *next < page.len());
            fields.free = next.unwrap_or(0) as u16;
            // What is left over of a larger record stays garbage until the page is reorganised.
            fields.garbage = fields.garbage.saturating_sub(size as u16);
            return Ok(Some(Room { start: record.bounds().0, heap_no: record.heap_no(), fields }));
        }
    }
    if size > header::max_insert(page, 1) {
        return Ok(None);
    }
    let start = header::heap_top(page);
    let heap_no = header::n_heap(page) as u16;
    fields.heap_top += size as u16;
    fields.n_heap += 1;
    Ok(Some(Room { start, heap_no, fields }))
}

/// Keeps the statistics by which splits recognise sequential inserts.
fn note_direction(fields: &mut HeapFields, predecessor: usize, successor: usize, origin: usize) {
    let last = usize::from(fields.last_insert);
    if last != 0 && last == predecessor && fields.direction != direction::LEFT {
        fields.direction = direction::RIGHT;
        fields.n_direction = fields.n_direction.saturating_add(1);
    } else if last != 0 && last == successor && fields.direction != direction::RIGHT {
        fields.direction = direction::LEFT;
        fields.n_direction = fields.n_direction.saturating_add(1);
    } else {
        fields.direction = direction::NONE;
        fields.n_direction = 0;
    }
    fields.last_insert = origin as u16;
}

/// Inserts `record` behind the record at `predecessor`. Returns its origin, or `None`, with nothing changed,
/// when there is no contiguous room for it.
pub fn insert_record(
    editor: &mut impl PageEditor,
    def: &IndexDef,
    predecessor: usize,
    record: &mut RecordBuffer,
) -> Result<Option<usize>, Malformed> {
    let page = editor.bytes();
    let Some(Room { start, heap_no, mut fields }) = find_room(page, def, record.size())? else {
        return Ok(None);
    };
    let origin = start + record.extra_size();
    let successor = next_record(page, predecessor)?;
    let (owner, _) = directory::owner_of(page, successor)?;
    let n_owned = record_header::n_owned(page, owner) + 1;
    let lower_owner = |slot: usize| {
        let below =
            directory::slot(page, slot.checked_sub(1).ok_or(Malformed("infimum owns other records"))?);
        (0..n_owned / 2).try_fold(below, |at, _| match at {
            at if at == predecessor => Ok(origin),
            at if at == origin => Ok(successor),
            at => next_record(page, at),
        })
    };
    let split = if n_owned > directory::OWNED_MAX {
        let slot = directory::slot_pointing_at(page, owner)?;
        Some((slot, lower_owner(slot)?))
    } else {
        None
    };

    fields.n_recs += 1;
    note_direction(&mut fields, predecessor, successor, origin);
    record.place(0, heap_no, record_header::next_bytes(origin, Some(successor)));
    editor.write(start, record.as_bytes());
    editor.write(predecessor - 2, &record_header::next_bytes(predecessor, Some(origin)));
    match split {
        None => directory::write_n_owned(editor, owner, n_owned),
        Some((slot, lower_owner)) => {
            // Nine records: a new slot owns the lower four, the old one keeps five.
            directory::add_slot(editor, usize::from(fields.n_dir_slots), slot, lower_owner);
            directory::write_n_owned(editor, lower_owner, n_owned / 2);
            directory::write_n_owned(editor, owner, n_owned - n_owned / 2);
            fields.n_dir_slots += 1;
        }
    }
    fields.store(editor);
    Ok(Some(origin))
}
