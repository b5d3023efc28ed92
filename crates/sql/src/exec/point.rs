//! One row of a stored table by its whole clustered key, without a cursor.

use untorn::Table;
use untorn::engine::{self, OwnedKey, ReadMode, ScanIndex};

use super::Flow;
use super::copied_row::{CopiedRow, has_off_page};
use crate::expr::RowView;
use crate::failure::Failure;
use crate::handler_counts::{Handled, HandlerCounts};
use crate::plan::Step;

/// Whether the path is at most one row of the clustered index, read consistently.
pub fn is_point(step: &Step, mode: ReadMode) -> bool {
    step.path.index == ScanIndex::Clustered && step.path.unique && mode == ReadMode::Consistent
}

/// Shows the row with this key, if there is one, to `each`: with its page latched, or as a copy where needed
/// columns are off-page.
pub async fn show_row(
    (transaction, counts): (&mut engine::Transaction, &HandlerCounts),
    table: &Table,
    key: &OwnedKey,
    needed: &[u16],
    mut each: impl FnMut(RowView<'_>) -> Result<Flow, Failure>,
) -> Result<(), Failure> {
    counts.add(Handled::ReadKey, 1);
    let columns = &table.def.columns;
    let found = engine::get(transaction, &table.rows, &key.fields(), |row| {
        if has_off_page(row, needed) {
            return Err(CopiedRow::new(row, columns.len(), needed));
        }
        Ok(each(RowView::Stored(row, columns)))
    })
    .await?;
    match found {
        None => Ok(()),
        Some(Ok(shown)) => shown.map(|_| ()),
        Some(Err(copied)) => {
            let fields = copied.complete(transaction, table).await?;
            each(RowView::Fields(&fields, columns)).map(|_| ())
        }
    }
}
