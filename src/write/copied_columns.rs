//! Some columns of a row, copied from under a page's latch.

use std::sync::Arc;

use btree::FieldRef;
use txn::{OffPage, Row};

use crate::error::Result;
use crate::transaction::Transaction;

enum Column {
    Null,
    Whole(Vec<u8>),
    OffPage(OffPage),
}

/// Columns of a row; long ones are yet to be fetched.
pub(crate) struct Copied(Vec<Column>);

impl Copied {
    /// Copies these columns.
    pub fn of(row: &Row<'_>, columns: &[u16]) -> Copied {
        let copy = |column: &u16| match row.column(*column) {
            FieldRef::Null => Column::Null,
            FieldRef::Inline(bytes) => Column::Whole(bytes.to_vec()),
            FieldRef::External { prefix, reference } => Column::OffPage(OffPage::new(prefix, reference)),
        };
        Copied(columns.iter().map(copy).collect())
    }

    /// All of them, in the order asked for; no page is latched.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn complete(
        self,
        transaction: &mut Transaction,
        table: &Arc<txn::Table>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let mut fields = Vec::with_capacity(self.0.len());
        for column in self.0 {
            fields.push(match column {
                Column::Null => None,
                Column::Whole(bytes) => Some(bytes),
                Column::OffPage(value) => Some(value.fetch(transaction.engine_mut(), table).await?),
            });
        }
        Ok(fields)
    }
}
