//! The point read.

use btree::Field;

use super::key_range::ScanIndex;
use super::view::{Row, Source};
use crate::error::{Error, Interrupt};
use crate::retry::retry;
use crate::table::Table;
use crate::transaction::Transaction;
use crate::version::{Version, Visible};

/// One try of [`get`].
///
/// # Errors
/// [`Interrupt::Wait`] for a page that is not in memory, or a frame for one, or a turn among others after
/// many versions of the row: await, call again. Storage errors and damaged pages.
pub fn get_step<R>(
    transaction: &mut Transaction,
    table: &Table,
    key: &[Field<'_>],
    f: impl FnOnce(&Row<'_>) -> R,
) -> Result<Option<R>, Interrupt> {
    transaction.check_settled()?;
    transaction.open_view_for(table, ScanIndex::Clustered)?;
    let mut older = false;
    let (system, shown, overlay) = transaction.reading();
    let found = table.clustered.get(key, |record| -> Result<Option<R>, Interrupt> {
        let overlay = match shown.of(&system.undo, record, overlay)? {
            Visible::Newest => None,
            Visible::Older => {
                older = true;
                Some(&*overlay)
            }
            Visible::Nothing => return Ok(None),
        };
        let source = Source::Clustered(Version { record, overlay });
        Ok(Some(f(&Row { table, source })))
    })?;
    // A walk over old versions has taken its turns already; the next scan does not pay for it.
    let _ = overlay.take_walked();
    let row = found.unwrap_or(Ok(None))?;
    transaction.counts.rows_read += u64::from(row.is_some());
    transaction.counts.versions_built += u64::from(older);
    Ok(row)
}

/// Reads one row by its clustered key as the transaction's read view shows it, or at READ UNCOMMITTED as it
/// is (a row with off-page values as it was last committed): without allocation when the newest version is
/// visible. `f` borrows the latched page. An operation that was dropped unfinished is undone first.
///
/// # Errors
/// [`Error::Killed`]; storage errors and damaged pages.
pub async fn get<R>(
    transaction: &mut Transaction,
    table: &Table,
    key: &[Field<'_>],
    mut f: impl FnMut(&Row<'_>) -> R,
) -> Result<Option<R>, Error> {
    transaction.begin_operation().await?;
    transaction.check_killed()?;
    retry(|| get_step(transaction, table, key, &mut f)).await
}

/// [`get`] where it waits for nothing, for an `f` that may not want the row after all. `None`: `f` did not,
/// or there is something to wait for or an error: it is left to [`get`].
pub fn get_at_once<R>(
    transaction: &mut Transaction,
    table: &Table,
    key: &[Field<'_>],
    f: impl FnOnce(&Row<'_>) -> Option<R>,
) -> Option<Option<R>> {
    transaction.check_killed().ok()?;
    match get_step(transaction, table, key, f).ok()? {
        Some(None) => {
            // It will be read again, and counted then.
            transaction.counts.rows_read -= 1;
            None
        }
        Some(taken) => Some(taken),
        None => Some(None),
    }
}
