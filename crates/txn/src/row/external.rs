//! Long values: written off-page before the row, read after it.

use btree::external::{ExternalReader, ExternalWriter};
use btree::field::REFERENCE_SIZE;
use btree::{FieldRef, RecordRef, Reference};
use smallvec::SmallVec;

use super::write::Writer;
use crate::error::Error;
use crate::retry::retry;
use crate::table::Table;
use crate::transaction::Transaction;
use crate::undo::UndoKind;
use crate::undo::record::UndoBuilder;

/// Reads a column stored off-page: give it what [`super::Row::column`] showed, copied. Call it while the
/// transaction's read view (or lock) still protects the version it came from, that is before the statement
/// ends.
///
/// # Errors
/// Storage errors; a chain that is damaged, or (READ UNCOMMITTED only) gone.
pub async fn fetch_external(
    transaction: &Transaction,
    table: &Table,
    prefix: &[u8],
    reference: &[u8; 20],
) -> Result<Vec<u8>, Error> {
    let _ = transaction;
    let mut value = prefix.to_vec();
    let mut reader = ExternalReader::new(Reference::read(reference));
    retry(|| Ok(reader.read(&table.clustered, &mut value)?)).await?;
    Ok(value)
}

/// Writes one value off-page. From its first page on the undo log knows of it: whatever happens before a row
/// refers to it (an error, a rollback, a crash), undoing the operation frees its pages.
pub(super) async fn store_external(
    transaction: &mut Transaction,
    table: &Table,
    value: &[u8],
) -> Result<Reference, Error> {
    let tree = &*table.clustered;
    let Writer { system, undo_log: log, buffers, .. } = transaction.writer()?;
    let mut chain = ExternalWriter::new(tree, value);
    retry(|| {
        loop {
            // As long as it will be: the reference is known only when the page is.
            note_chain(&mut buffers.undo, table.id, &[0; REFERENCE_SIZE]);
            if log.place_for(&system.undo, buffers.undo.len()).is_none() {
                log.make_room(&system.undo, buffers.undo.len())?;
                continue;
            }
            let mut mtr = system.store.mtr()?;
            let Some(undo_page) = log.latch(&mut mtr) else { continue };
            let reference = chain.begin(&mut mtr)?;
            note_chain(&mut buffers.undo, table.id, &reference.to_bytes());
            log.append(&mut mtr, undo_page, &buffers.undo, true);
            mtr.commit();
            return Ok(());
        }
    })
    .await?;
    retry(|| Ok(chain.finish()?)).await
}

/// The undo record of a chain that begins.
fn note_chain(bytes: &mut Vec<u8>, table: u64, reference: &[u8; REFERENCE_SIZE]) {
    let mut undo = UndoBuilder::new(bytes, UndoKind::OffPage, table);
    undo.key([FieldRef::External { prefix: &[], reference }].into_iter());
    undo.finish();
}

/// All off-page values of a record.
pub(crate) fn external_references(record: RecordRef<'_>) -> SmallVec<[Reference; 2]> {
    if !record.has_external() {
        return SmallVec::new();
    }
    let reference = |field: FieldRef<'_>| match field {
        FieldRef::External { reference, .. } => Some(Reference::read(reference)),
        _ => None,
    };
    record.fields().filter_map(reference).collect()
}
