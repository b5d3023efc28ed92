//! The synchronous face: the same operations for programs without an executor. The calling thread parks while it
//! waits, and leads the log write of its own commit.

use std::sync::Arc;
use std::time::Duration;

use disk::block_on;
use txn::{Durability, Isolation, OnDuplicate};

use crate::database::Database;
use crate::error::Result;
use crate::rows::{Lock, OwnedRow, Range};
use crate::schema::{KeyDef, TableDef};
use crate::table::Table;
use crate::transaction::Transaction;
use crate::types::Value;

/// How long DDL waits for transactions that use the table.
const DDL_TIMEOUT: Duration = Duration::from_secs(60);

/// A transaction of a thread. Dropped without [`BlockingTransaction::commit`] it is rolled back, in the background: its locks
/// may last a moment longer ([`BlockingTransaction::rollback`] returns when they are gone).
///
/// After [`engine::Error::Deadlock`](crate::engine::Error::Deadlock) nothing of it is left, and every further call fails, `commit`
/// included: roll it back and begin again.
#[must_use = "dropped without commit it is rolled back"]
pub struct BlockingTransaction(Transaction);

impl Database {
    /// Begins a transaction, REPEATABLE READ.
    pub fn begin(&self) -> BlockingTransaction {
        self.begin_at(Isolation::RepeatableRead)
    }

    /// Begins a transaction of this isolation level.
    pub fn begin_at(&self, isolation: Isolation) -> BlockingTransaction {
        let mut transaction = self.transaction();
        transaction.rows().set_isolation(isolation);
        transaction.begin();
        BlockingTransaction(transaction)
    }

    /// Makes a table and opens it; if there is one of this name already, opens that.
    pub fn create_table_if_missing(&self, database: &str, name: &str, def: TableDef) -> Result<Arc<Table>> {
        if let Ok(table) = self.table(database, name) {
            return Ok(table);
        }
        if self.database(database).is_none() {
            self.create_database(database, def.collation)?;
        }
        block_on(self.create_table(database, name, def))?;
        self.table(database, name)
    }

    /// [`Database::drop_table`] for callers without an executor.
    pub fn drop_table_blocking(&self, database: &str, name: &str) -> Result<()> {
        block_on(self.drop_table(database, name, None, DDL_TIMEOUT))
    }

    /// [`Database::create_index`] for callers without an executor.
    pub fn create_index_blocking(&self, database: &str, name: &str, key: KeyDef) -> Result<()> {
        block_on(self.create_index(database, name, key, None, DDL_TIMEOUT))
    }
}

impl BlockingTransaction {
    /// See [`Transaction::insert`].
    pub fn insert(&mut self, table: &Arc<Table>, values: &[Value<'_>]) -> Result<Option<u64>> {
        block_on(self.0.insert(table, values))
    }

    /// Inserts a row that is updated next if it is there already: it is locked for that.
    pub(crate) fn insert_to_put(&mut self, table: &Arc<Table>, values: &[Value<'_>]) -> Result<Option<u64>> {
        block_on(self.0.insert_with(table, values, OnDuplicate::Change))
    }

    /// The row with this primary key, as the isolation level shows it.
    pub fn get(&mut self, table: &Arc<Table>, key: &[Value<'_>]) -> Result<Option<OwnedRow>> {
        block_on(self.0.get(table, key, Lock::None))
    }

    /// The newest state of the row with this primary key, locked for a change.
    pub fn get_for_update(&mut self, table: &Arc<Table>, key: &[Value<'_>]) -> Result<Option<OwnedRow>> {
        block_on(self.0.get(table, key, Lock::Exclusive))
    }

    /// See [`Transaction::for_each`].
    pub fn for_each(
        &mut self,
        table: &Arc<Table>,
        range: &Range<'_>,
        f: impl FnMut(OwnedRow) -> bool,
    ) -> Result<()> {
        block_on(self.0.for_each(table, range, f))
    }

    /// The rows of a range.
    pub fn collect(&mut self, table: &Arc<Table>, range: &Range<'_>) -> Result<Vec<OwnedRow>> {
        let mut rows = Vec::new();
        self.for_each(table, range, |row| {
            rows.push(row);
            true
        })?;
        Ok(rows)
    }

    /// See [`Transaction::update`].
    pub fn update(
        &mut self,
        table: &Arc<Table>,
        key: &[Value<'_>],
        changes: &[(&str, Value<'_>)],
    ) -> Result<bool> {
        block_on(self.0.update(table, key, changes))
    }

    /// See [`Transaction::delete`].
    pub fn delete(&mut self, table: &Arc<Table>, key: &[Value<'_>]) -> Result<bool> {
        block_on(self.0.delete(table, key))
    }

    /// Sets a savepoint.
    pub fn savepoint(&mut self, name: &str) {
        self.0.rows().savepoint(name);
    }

    /// Undoes everything since the savepoint; false if there is none of that name.
    pub fn rollback_to_savepoint(&mut self, name: &str) -> Result<bool> {
        Ok(block_on(self.0.rows().rollback_to_savepoint(name))?)
    }

    /// Commits durably: when this returns, a power cut cannot undo it.
    pub fn commit(self) -> Result<()> {
        self.commit_with(Durability::Sync)
    }

    /// Commits with the durability wanted.
    pub fn commit_with(mut self, durability: Durability) -> Result<()> {
        self.0.commit_blocking(durability)
    }

    /// Undoes everything.
    pub fn rollback(mut self) -> Result<()> {
        block_on(self.0.rollback())
    }
}
