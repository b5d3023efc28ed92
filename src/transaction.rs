//! A session's transaction, with the tables it uses.
//!
//! Wraps [`txn::Transaction`] and adds the metadata uses: a table that a transaction has touched stays as it is
//! until the transaction ends.

use std::sync::Arc;
use std::time::Duration;

use disk::Wait;
use smallvec::SmallVec;
use txn::{Durability, Error as TransactionError, UndoMark};

use crate::database::Database;
use crate::error::{Error, Result};
use crate::metadata_lock::MetadataUse;
use crate::table::Table;

/// Why a table cannot be used right now.
pub enum NotUsable {
    /// DDL is at work on it: await this and try again.
    Wait(Wait),
    /// DDL has replaced it: look the table up again.
    Stale,
}

/// A session's transaction object, one transaction at a time, reusable.
pub struct Transaction {
    database: Database,
    inner: txn::Transaction,
    uses: SmallVec<[(Arc<Table>, MetadataUse); 4]>,
}

impl Database {
    /// A transaction object; nothing is begun yet.
    pub fn transaction(&self) -> Transaction {
        Transaction {
            database: self.clone(),
            inner: txn::Transaction::new(&self.0.system),
            uses: SmallVec::new(),
        }
    }
}

impl Transaction {
    /// The database.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// The engine's transaction: scans, row changes, savepoints, isolation.
    pub fn rows(&mut self) -> &mut txn::Transaction {
        &mut self.inner
    }

    /// The engine's transaction, to look at.
    pub fn state(&self) -> &txn::Transaction {
        &self.inner
    }

    /// Uses a table to the end of the transaction. Free if it is in use by this one already.
    #[inline]
    pub fn use_table(&mut self, table: &Arc<Table>) -> std::result::Result<(), NotUsable> {
        if self.uses.iter().any(|(used, _)| Arc::ptr_eq(used, table)) {
            return Ok(());
        }
        let metadata_use = table.metadata.share().map_err(NotUsable::Wait)?;
        if !table.is_current() {
            return Err(NotUsable::Stale);
        }
        self.uses.push((table.clone(), metadata_use));
        Ok(())
    }

    /// Looks a table up and uses it, waiting for DDL at most so long.
    ///
    /// # Errors
    /// No such table, or [`Error::MetadataLockTimeout`].
    pub async fn open_table(&mut self, database: &str, name: &str, timeout: Duration) -> Result<Arc<Table>> {
        let environment = self.database.environment().clone();
        let deadline = environment.now() + timeout;
        loop {
            let table = self.database.table(database, name)?;
            match self.use_table(&table) {
                Ok(()) => return Ok(table),
                Err(NotUsable::Stale) => {}
                Err(NotUsable::Wait(wait)) => {
                    crate::timeout::wait_until(&*environment, wait, deadline).await?;
                }
            }
        }
    }

    /// How many uses of this table the transaction holds (for DDL of the same session).
    pub(crate) fn uses_of(&self, table: &Table) -> u32 {
        self.uses.iter().filter(|(used, _)| Arc::ptr_eq(&used.metadata, &table.metadata)).count() as u32
    }

    /// Begins a transaction that lasts until commit or rollback.
    pub fn begin(&mut self) {
        self.inner.begin();
    }

    /// Is one begun?
    pub fn is_active(&self) -> bool {
        self.inner.is_active()
    }

    /// Where the transaction is now, to roll a statement back to.
    pub fn statement_mark(&self) -> UndoMark {
        self.inner.statement_mark()
    }

    /// Commits, and ends the uses of tables.
    pub async fn commit(&mut self, durability: Durability) -> Result<()> {
        let result = self.inner.commit(durability).await;
        self.uses.clear();
        result.map_err(Error::Transaction)
    }

    /// Commits in the calling thread, which leads the log write itself when the log is idle.
    pub fn commit_blocking(&mut self, durability: Durability) -> Result<()> {
        let result = self.inner.commit_blocking(durability);
        self.uses.clear();
        result.map_err(Error::Transaction)
    }

    /// Rolls back, and ends the uses of tables.
    pub async fn rollback(&mut self) -> Result<()> {
        let result = self.inner.rollback().await;
        self.uses.clear();
        result.map_err(Error::Transaction)
    }

    /// Undoes what was done since the mark (a failed statement).
    pub async fn rollback_to(&mut self, mark: UndoMark) -> Result<()> {
        self.inner.rollback_to(mark).await.map_err(Error::Transaction)
    }

    /// To be called when a statement failed with this error: a deadlock has ended the whole transaction, so
    /// its uses of tables end too.
    pub fn after_error(&mut self, error: &TransactionError) {
        if matches!(error, TransactionError::Deadlock) {
            self.uses.clear();
        }
    }
}
