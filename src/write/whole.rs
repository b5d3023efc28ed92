//! Several changes that are all made or none.

use txn::UndoMark;

use crate::error::Result;
use crate::transaction::Transaction;

/// Several changes that are all made or none: what is dropped before [`Whole::keep`] is undone before
/// anything else is done.
pub(crate) struct Whole<'t> {
    pub transaction: &'t mut Transaction,
    mark: UndoMark,
    kept: bool,
}

impl<'t> Whole<'t> {
    pub fn new(transaction: &'t mut Transaction) -> Whole<'t> {
        let mark = transaction.statement_mark();
        Whole { transaction, mark, kept: false }
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

impl Drop for Whole<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.transaction.engine_mut().cut_back_to(self.mark);
        }
    }
}
