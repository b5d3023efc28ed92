//! Reorganizing a page: its records in key order without garbage, so that all its free room is contiguous.
//!
//! Nothing is changed here: a new image is made, and the caller writes it to the page if it serves. Records
//! move, so what outlives a reorganisation is a record's ordinal, not its offset.

use super::builder::PageBuilder;
use super::{Malformed, header, insert, record_list, records};
use crate::definition::IndexDef;
use crate::record::{RecordBuffer, RecordRef};

/// An image of `page` whose records are in key order without garbage.
pub fn reorganized(page: &[u8], def: &IndexDef) -> Result<Vec<u8>, Malformed> {
    let mut builder = PageBuilder::like(page);
    for origin in record_list(page)? {
        builder.append_record(RecordRef::new(page, origin, def))?;
    }
    Ok(std::mem::take(builder.finish(false)))
}

/// Reorganizes a copy of `page` and inserts `record` there, behind the record that is at `predecessor` in
/// `page`. The image, and where the record is in it; `None` if there is not enough room even so.
pub(crate) fn insert_reorganized(
    page: &[u8],
    def: &IndexDef,
    predecessor: usize,
    record: &mut RecordBuffer,
) -> Result<(Vec<u8>, Option<usize>), Malformed> {
    let number = ordinal(page, predecessor)?;
    let mut image = reorganized(page, def)?;
    let predecessor = nth(&image, number)?;
    let offset = insert::insert_record(&mut image, def, predecessor, record)?;
    Ok((image, offset))
}

/// How many user records there are up to and including `origin` (0 for infimum).
pub(crate) fn ordinal(page: &[u8], origin: usize) -> Result<usize, Malformed> {
    if origin == header::INFIMUM {
        return Ok(0);
    }
    for (index, record) in records(page).enumerate() {
        if record? == origin {
            return Ok(index + 1);
        }
    }
    Err(Malformed("a record is not in the chain of its page"))
}

/// The record with this ordinal.
pub(crate) fn nth(page: &[u8], ordinal: usize) -> Result<usize, Malformed> {
    match ordinal.checked_sub(1) {
        None => Ok(header::INFIMUM),
        Some(index) => {
            records(page).nth(index).unwrap_or(Err(Malformed("a page has fewer records than it says")))
        }
    }
}
