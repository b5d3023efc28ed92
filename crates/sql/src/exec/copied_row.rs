//! A row with needed columns off-page: copied from its latched page, and completed with nothing latched.
//!
//! The long columns have pages of their own, which may have to be read.

use untorn::Table;
use untorn::engine::{self, FieldRef, OffPage, Row};

use crate::failure::Failure;

/// A row copied from its page.
pub struct CopiedRow {
    fields: Vec<Option<Vec<u8>>>,
    off_page: Vec<(u16, OffPage)>,
}

/// Whether one of these columns is off-page.
#[inline]
pub fn has_off_page(row: &Row<'_>, columns: &[u16]) -> bool {
    columns.iter().any(|column| matches!(row.column(*column), FieldRef::External { .. }))
}

impl CopiedRow {
    /// Copies what is needed of a row.
    pub fn new(row: &Row<'_>, columns: usize, needed: &[u16]) -> CopiedRow {
        let mut copied = CopiedRow { fields: vec![None; columns], off_page: Vec::new() };
        for column in needed {
            let Some(place) = copied.fields.get_mut(usize::from(*column)) else { continue };
            match row.column(*column) {
                FieldRef::Null => {}
                FieldRef::Inline(bytes) => *place = Some(bytes.to_vec()),
                FieldRef::External { prefix, reference } => {
                    copied.off_page.push((*column, OffPage::new(prefix, reference)));
                }
            }
        }
        copied
    }

    /// Fetches the long columns.
    pub async fn complete(
        self,
        transaction: &engine::Transaction,
        table: &Table,
    ) -> Result<Vec<Option<Vec<u8>>>, Failure> {
        let CopiedRow { mut fields, off_page } = self;
        for (column, value) in off_page {
            let bytes = value.fetch(transaction, &table.rows).await?;
            if let Some(place) = fields.get_mut(usize::from(column)) {
                *place = Some(bytes);
            }
        }
        Ok(fields)
    }
}
