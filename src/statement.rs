//! A statement of a transaction by value: its beginning on a table, and its end.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::metadata_lock_wait::wait_until;
use crate::table::Table;
use crate::transaction::{NotUsable, Transaction};

/// A statement under way: ended, also when its future is dropped, it gives up its read view where the level
/// says so, and after a deadlock the uses of tables.
pub(crate) struct Statement<'t>(pub(crate) &'t mut Transaction);

impl Drop for Statement<'_> {
    fn drop(&mut self) {
        self.0.engine_mut().end_statement();
        if self.0.engine().is_rolled_back() {
            self.0.release_ended();
        }
    }
}

impl Transaction {
    /// Begins a statement on a table: waits for DDL that is at work on it, and finds what it has become.
    pub(crate) async fn statement(&mut self, table: &Arc<Table>) -> Result<(Statement<'_>, Arc<Table>)> {
        self.database().refuse_after_close()?;
        if !self.database().owns(table) {
            return Err(Error::ForeignTable(table.database.clone(), table.name.clone()));
        }
        self.forget_conflict();
        let statement = Statement(self);
        let mut table = table.clone();
        let mut deadline = None;
        loop {
            match statement.0.use_table(&table) {
                Ok(()) => return Ok((statement, table)),
                Err(NotUsable::Discarded) => return Err(table.discarded_error()),
                Err(NotUsable::Deadlock) => {
                    // As after a deadlock of row locks: nothing of the transaction is left.
                    statement.0.engine_mut().roll_back_as_victim().await?;
                    return Err(statement.0.failed(Error::Transaction(txn::Error::Deadlock)));
                }
                Err(NotUsable::Stale) => table = statement.0.database().successor(&table)?,
                Err(NotUsable::Wait(wait)) => {
                    let environment = statement.0.database().environment().clone();
                    let patience = statement.0.engine().lock_wait_timeout();
                    let until = *deadline.get_or_insert_with(|| environment.now().saturating_add(patience));
                    let slice = statement.0.engine().slice().clone();
                    let waited = wait_until(&*environment, wait, until, Some(&slice)).await;
                    waited.map_err(|error| statement.0.failed(error))?;
                }
            }
        }
    }
}
