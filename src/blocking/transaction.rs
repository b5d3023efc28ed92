//! A transaction of a thread.

use std::sync::Arc;
use std::time::Duration;

use disk::block_on;
use txn::{Durability, Isolation, Snapshot, WaitPolicy, Xid};

use crate::asynchronous;
use crate::error::Result;
use crate::rows::{Lock, OwnedRow, Range};
use crate::table::Table;
use crate::types::Value;

/// A transaction of a thread. Dropped without [`Transaction::commit`] it is rolled back, in the background:
/// its locks may last a moment longer ([`Transaction::rollback`] returns when they are gone).
///
/// After [`TransactionError::Deadlock`](crate::TransactionError::Deadlock) nothing of it is left, and every
/// further call fails, `commit` included: roll it back and begin again, or let
/// [`Database::transact`](crate::Database::transact) do so.
#[must_use = "dropped without commit it is rolled back"]
pub struct Transaction(asynchronous::Transaction);

impl Transaction {
    pub(super) fn begin(database: &asynchronous::Database, isolation: Isolation) -> Transaction {
        Transaction(database.begin_at(isolation))
    }

    pub(super) fn begin_in(database: &asynchronous::Database, snapshot: &Snapshot) -> Result<Transaction> {
        database.begin_in(snapshot).map(Transaction)
    }

    pub(super) fn inner(&self) -> &asynchronous::Transaction {
        &self.0
    }

    pub(super) fn inner_mut(&mut self) -> &mut asynchronous::Transaction {
        &mut self.0
    }

    /// Inserts a row, a value per column. For an AUTO_INCREMENT column NULL or 0 means the next number, which
    /// is returned.
    ///
    /// # Errors
    /// [`TransactionError::DuplicateKey`](crate::TransactionError::DuplicateKey), values that do not fit, lock waits.
    pub fn insert(&mut self, table: &Arc<Table>, values: &[Value<'_>]) -> Result<Option<u64>> {
        block_on(self.0.insert(table, values))
    }

    /// Inserts rows as one statement: all of them, or none. For an AUTO_INCREMENT column NULL or 0 means the
    /// next number; those of the rows follow each other, and the first is returned.
    ///
    /// # Errors
    /// Those of [`Transaction::insert`].
    pub fn insert_all<'v, R: AsRef<[Value<'v>]>>(
        &mut self,
        table: &Arc<Table>,
        rows: &[R],
    ) -> Result<Option<u64>> {
        block_on(self.0.insert_all(table, rows))
    }

    /// The row with this primary key, as the isolation level shows it.
    ///
    /// # Errors
    /// No such table any more, lock waits at SERIALIZABLE, storage errors.
    pub fn get(&mut self, table: &Arc<Table>, key: &[Value<'_>]) -> Result<Option<OwnedRow>> {
        let columns = 0..table.def.visible_columns().len();
        match self.0.get_at_once(table, key, columns.clone()) {
            Some(row) => Ok(row),
            None => block_on(self.0.get_columns(table, key, Lock::None, WaitPolicy::Wait, columns)),
        }
    }

    /// The newest state of the row with this primary key, locked for a change. If there is none, the gap
    /// where it would be is locked: other transactions cannot insert there until this one ends.
    ///
    /// # Errors
    /// Those of [`Transaction::get`], lock waits.
    pub fn get_for_update(&mut self, table: &Arc<Table>, key: &[Value<'_>]) -> Result<Option<OwnedRow>> {
        block_on(self.0.get(table, key, Lock::Exclusive))
    }

    /// Like [`Transaction::get_for_update`], but does not wait: if another transaction has locked the row,
    /// fails with [`TransactionError::NoWaitLocked`](crate::TransactionError::NoWaitLocked) or treats it as
    /// absent, as `wait` says.
    ///
    /// # Errors
    /// Those of [`Transaction::get_for_update`].
    pub fn get_for_update_or(
        &mut self,
        table: &Arc<Table>,
        key: &[Value<'_>],
        wait: WaitPolicy,
    ) -> Result<Option<OwnedRow>> {
        block_on(self.0.get_or(table, key, Lock::Exclusive, wait))
    }

    /// The rows of a range, one after the other. They are read in batches while the iterator goes on, and no
    /// page is held between two rows.
    ///
    /// # Errors
    /// No such table any more, no such index, values that are none of the index's columns.
    pub fn scan(&mut self, table: &Arc<Table>, range: &Range<'_>) -> Result<Rows<'_>> {
        block_on(self.0.scan(table, range)).map(|rows| Rows { rows, ended: false })
    }

    /// Sets columns of the row with this primary key; false if there is none. Columns with ON UPDATE
    /// CURRENT_TIMESTAMP that are not set get the time, in UTC.
    ///
    /// # Errors
    /// No such column, values that do not fit, a duplicate key, lock waits.
    pub fn update(
        &mut self,
        table: &Arc<Table>,
        key: &[Value<'_>],
        changes: &[(&str, Value<'_>)],
    ) -> Result<bool> {
        block_on(self.0.update(table, key, changes))
    }

    /// Inserts a row, a value per column, or sets the row with its primary key to these values; true if it is
    /// new. For an AUTO_INCREMENT column NULL or 0 means the next number, and with it a new row.
    ///
    /// ```
    /// # fn main() -> untorn::Result<()> {
    /// use untorn::schema::{ColumnDef, TableDef};
    /// use untorn::types::{ColumnType, Value};
    ///
    /// let db = untorn::Database::in_memory()?;
    /// let columns = vec![
    ///     ColumnDef::new("id", ColumnType::bigint()),
    ///     ColumnDef::new("stock", ColumnType::int()),
    /// ];
    /// let item = db.create_table_if_missing("shop", "item", TableDef::new(columns).primary_key(&["id"]))?;
    /// assert!(db.transact(|t| t.put(&item, &[Value::Int(1), Value::Int(10)]))?);
    /// assert!(!db.transact(|t| t.put(&item, &[Value::Int(1), Value::Int(9)]))?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A table without primary key, values that do not fit, a duplicate key of another unique index, lock
    /// waits.
    pub fn put(&mut self, table: &Arc<Table>, values: &[Value<'_>]) -> Result<bool> {
        block_on(self.0.put(table, values))
    }

    /// Deletes the row with this primary key; false if there is none.
    ///
    /// # Errors
    /// Lock waits, storage errors.
    pub fn delete(&mut self, table: &Arc<Table>, key: &[Value<'_>]) -> Result<bool> {
        block_on(self.0.delete(table, key))
    }

    /// How long an operation waits for a row or a table that another transaction keeps, from now on:
    /// `Options::lock_wait_timeout` unless set here.
    pub fn set_lock_wait_timeout(&mut self, timeout: Duration) {
        self.0.set_lock_wait_timeout(timeout);
    }

    /// Whether foreign keys are enforced from now on; they are by default. Without, rows may be written in
    /// any order, and they are not checked later. It also holds for definitions in the name of
    /// this transaction ([`Definitions::session`](crate::Definitions::session)): a parent may be missing, or
    /// be dropped.
    pub fn set_foreign_key_checks(&mut self, enforced: bool) {
        self.0.set_foreign_key_checks(enforced);
    }

    /// Sets a savepoint.
    pub fn savepoint(&mut self, name: &str) {
        self.0.savepoint(name);
    }

    /// Undoes everything since the savepoint; false if there is none of that name.
    ///
    /// # Errors
    /// Storage errors.
    pub fn rollback_to_savepoint(&mut self, name: &str) -> Result<bool> {
        block_on(self.0.rollback_to_savepoint(name))
    }

    /// Commits durably: when this returns, a power cut cannot undo it.
    ///
    /// # Errors
    /// A deadlock met before, [`Error::Closed`](crate::Error::Closed), or a log that cannot be written.
    pub fn commit(self) -> Result<()> {
        self.commit_with(Durability::Sync)
    }

    /// Commits with the durability wanted.
    ///
    /// # Errors
    /// Those of [`Transaction::commit`].
    pub fn commit_with(mut self, durability: Durability) -> Result<()> {
        self.0.commit_blocking(durability)
    }

    /// Prepares the transaction under a name, for a coordinator that commits in several databases or in none.
    /// When this returns, neither a crash nor a power cut can undo its changes; nobody sees them and its row
    /// locks stay, until [`Database::commit_prepared`](crate::Database::commit_prepared) or
    /// [`Database::rollback_prepared`](crate::Database::rollback_prepared) ends it, also after a restart.
    /// Definitions of the tables it has changed wait for that, too.
    ///
    /// ```
    /// use untorn::{Database, Options, Xid};
    ///
    /// # fn main() -> untorn::Result<()> {
    /// # let directory = untorn::doc_test_directory();
    /// let options = Options::new(&directory).buffer_pool_bytes(16 << 20);
    /// let db = Database::open(options.clone())?;
    /// let stock = db.key_value::<u32, u32>("stock")?;
    /// let xid = Xid::new(1, b"order 4711", b"stock").expect("64 bytes each at most");
    /// let mut t = db.begin();
    /// stock.put(&mut t, 1, 9)?;
    /// t.prepare(&xid)?;
    /// # drop(stock);
    /// db.close()?;
    /// # drop(db);
    ///
    /// let db = Database::open(options)?;
    /// let stock = db.key_value::<u32, u32>("stock")?;
    /// assert_eq!(db.prepared_transactions(), [xid.clone()]);
    /// assert_eq!(stock.get(&mut db.begin(), 1)?, None);
    /// // The others have prepared too: the coordinator has decided.
    /// db.commit_prepared(&xid)?;
    /// assert_eq!(stock.get(&mut db.begin(), 1)?, Some(9));
    /// # db.close()?;
    /// # std::fs::remove_dir_all(&directory).ok();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::XidInUse`](crate::Error::XidInUse), a deadlock met before, a full undo tablespace: it is then
    /// rolled back, in the background. When the log cannot be written it may be prepared all the same:
    /// [`Database::prepared_transactions`](crate::Database::prepared_transactions) tells, after the next
    /// start for good.
    pub fn prepare(mut self, xid: &Xid) -> Result<()> {
        block_on(self.0.prepare(xid, Durability::Sync))
    }

    /// Undoes everything.
    ///
    /// # Errors
    /// Storage errors; it is then rolled back in the background.
    pub fn rollback(mut self) -> Result<()> {
        block_on(self.0.rollback())
    }
}

/// The rows of a range, see [`Transaction::scan`]. After an error there are no more.
pub struct Rows<'t> {
    rows: asynchronous::Rows<'t>,
    ended: bool,
}

impl Iterator for Rows<'_> {
    type Item = Result<OwnedRow>;

    fn next(&mut self) -> Option<Result<OwnedRow>> {
        if self.ended {
            return None;
        }
        let next = block_on(self.rows.next()).transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}
