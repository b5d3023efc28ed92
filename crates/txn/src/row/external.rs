//! Long values: written off-page before the row, read after it.

use btree::external::{ExternalReader, ExternalWriter};
use btree::{Reference, Tree};
use pagestore::page::NULL_PAGE;

use super::physical::free_chain_tails;
use crate::error::Error;
use crate::retry::retry;
use crate::table::Table;
use crate::transaction::Transaction;

/// Reads a column stored off-page: give it what [`super::Row::column`] showed, copied. Call it while the transaction's read
/// view (or lock) still protects the version it came from, that is before the statement ends.
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

/// Writes one value off-page.
pub(super) async fn store_external(tree: &Tree, value: &[u8]) -> Result<Reference, Error> {
    let mut writer = ExternalWriter::new(tree);
    let result = retry(|| Ok(writer.write(value)?)).await;
    if result.is_err()
        && let Some(written) = writer.written()
    {
        free_unused(tree, written).await;
    }
    result
}

/// Frees a value that no row refers to. Failing to is a leak, not damage.
pub(super) async fn free_unused(tree: &Tree, reference: Reference) {
    if reference.page == NULL_PAGE {
        return;
    }
    let mut result = free_chain_tails(tree, &[reference]).await;
    if result.is_ok() {
        result = retry(|| {
            let mut mtr = tree.store().mtr()?;
            tree.prepare_free_chain_head(&mut mtr, reference)?;
            tree.free_chain_head(&mut mtr, reference)?;
            mtr.commit();
            Ok(())
        })
        .await;
    }
    if let Err(error) = result {
        tracing::warn!(%error, "pages of an unused long value could not be freed");
    }
}
