//! The savepoint of a statement: several changes of rows that are all made or none.
//!
//! A failed or dropped statement takes back its own changes and no others; the transaction goes on.

use txn::UndoMark;

use crate::error::Result;
use crate::transaction::Transaction;

/// Changes that are all made or none: what is dropped before [`StatementSavepoint::keep`] is undone before
/// anything else is done.
pub(crate) struct StatementSavepoint<'t> {
    pub transaction: &'t mut Transaction,
    mark: UndoMark,
    kept: bool,
}

impl<'t> StatementSavepoint<'t> {
    pub fn new(transaction: &'t mut Transaction) -> StatementSavepoint<'t> {
        let mark = transaction.statement_mark();
        StatementSavepoint { transaction, mark, kept: false }
    }

    pub fn keep(mut self) {
        self.kept = true;
    }

    /// Undoes them now.
    pub async fn undo(self) -> Result<()> {
        let mark = self.mark;
        self.transaction.rollback_to(mark).await
    }
}

impl Drop for StatementSavepoint<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.transaction.engine_mut().cut_back_to(self.mark);
        }
    }
}
