//! Rows by value: insert, get, update, delete and range reads with [`Value`]s, for programs that embed the
//! engine.
//!
//! The functions here are `async` and block no thread; [`crate::Transaction`] has the same ones for
//! programs without an executor. A function that fails, or whose future is dropped, has undone its own
//! changes; the transaction goes on, except after a deadlock, which has rolled all of it back.
//!
//! Each function is a statement: at READ COMMITTED it sees what is committed when it begins. At SERIALIZABLE
//! a plain read inside a transaction locks what it reads, as `FOR SHARE` does.
//!
//! A [`Table`] handle stays good while DDL goes on: a function waits for DDL that is at work on the table,
//! and goes on with what the table has become (another index, another name, no rows). Only a dropped table is
//! an error.

use std::collections::VecDeque;
use std::ops::{self, Bound};
use std::sync::Arc;

use btree::{Field, OwnedKey};
use txn::{
    Control, Direction, KeyRange, OffPage, OnDuplicate, Put, ReadMode, Row, Scan, ScanIndex, ScanState,
    WaitPolicy,
};

use crate::error::{Error, Result};
use crate::row_values::{clustered_parts, copy_columns, decode, encode_bound_of, encode_row_key, push};
use crate::statement::Statement;
use crate::table::Table;
use crate::transaction::Transaction;
use crate::types::Value;
use crate::write::{EncodedRow, RowWriter, StatementSavepoint, StatementTime, Written};

/// A row: a value per column, in the order of the definition.
pub type OwnedRow = Vec<Value<'static>>;

/// How a read treats rows that other transactions are changing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lock {
    /// Read the committed state as of the isolation level, without locking.
    #[default]
    None,
    /// Lock the rows against changes (`FOR SHARE`).
    Share,
    /// Lock the rows for a change (`FOR UPDATE`).
    Exclusive,
}

impl Lock {
    pub(crate) fn mode(self, wait: WaitPolicy) -> ReadMode {
        match self {
            Lock::None => ReadMode::Consistent,
            Lock::Share => ReadMode::Locking { exclusive: false, wait },
            Lock::Exclusive => ReadMode::Locking { exclusive: true, wait },
        }
    }
}

/// Which rows a range read covers: values for the leading columns of an index.
#[derive(Debug, Clone, PartialEq)]
pub struct Range<'a> {
    /// Name of the index; `None` is the clustered one (`PRIMARY`).
    pub index: Option<&'a str>,
    /// Lower end.
    pub lower: Bound<Vec<Value<'a>>>,
    /// Upper end.
    pub upper: Bound<Vec<Value<'a>>>,
    /// From the upper end down.
    pub descending: bool,
    /// Whether to lock the rows.
    pub lock: Lock,
    /// What to do about rows locked by other transactions.
    pub wait: WaitPolicy,
}

impl<'a> Range<'a> {
    /// The whole table in the order of its key.
    pub fn all() -> Range<'a> {
        Range {
            index: None,
            lower: Bound::Unbounded,
            upper: Bound::Unbounded,
            descending: false,
            lock: Lock::None,
            wait: WaitPolicy::Wait,
        }
    }

    /// The same over this index.
    pub fn index(mut self, name: &'a str) -> Range<'a> {
        self.index = Some(name);
        self
    }

    /// Rows whose leading index columns equal these values: with the key (station, hour),
    /// `equal(vec![station])` covers one station.
    pub fn equal(mut self, key: Vec<Value<'a>>) -> Range<'a> {
        self.lower = Bound::Included(key.clone());
        self.upper = Bound::Included(key);
        self
    }

    /// Rows from these values on, inclusive. There may be fewer values than the index has columns.
    pub fn from(mut self, key: Vec<Value<'a>>) -> Range<'a> {
        self.lower = Bound::Included(key);
        self
    }

    /// Rows up to these values, inclusive. If there are fewer values than the index has columns, the range
    /// includes all rows that begin with them. For exclusive bounds set [`Range::upper`] and
    /// [`Range::lower`].
    pub fn to(mut self, key: Vec<Value<'a>>) -> Range<'a> {
        self.upper = Bound::Included(key);
        self
    }

    /// In descending order; the bounds stay the same.
    pub fn descending(mut self) -> Range<'a> {
        self.descending = true;
        self
    }

    /// Locking the rows.
    pub fn lock(mut self, lock: Lock) -> Range<'a> {
        self.lock = lock;
        self
    }

    /// Rows that another transaction has locked: wait for them (the default), fail with
    /// [`TransactionError::NoWaitLocked`](crate::TransactionError::NoWaitLocked), or skip them.
    pub fn wait(mut self, wait: WaitPolicy) -> Range<'a> {
        self.wait = wait;
        self
    }
}

/// Copies a row's values; long columns are noted for later.
fn copy_row(table: &Table, row: &Row<'_>, off_page: &mut OffPageColumns) -> Result<OwnedRow> {
    let columns = 0..table.def.visible_columns().len();
    let mut values = Vec::with_capacity(columns.len());
    copy_columns(table, row, columns, &mut values, noted(off_page))?;
    Ok(values)
}

/// Columns that are off-page, to be fetched after the row was copied.
type OffPageColumns = Vec<(usize, OffPage)>;

/// Notes what is off-page.
fn noted(off_page: &mut OffPageColumns) -> impl FnMut(usize, &[u8], &[u8; 20]) -> bool {
    |column, prefix, reference| {
        off_page.push((column, OffPage::new(prefix, reference)));
        true
    }
}

/// Rows copied under a page latch, to be shown when it is gone.
#[derive(Default)]
struct Batch {
    rows: VecDeque<(OwnedRow, OffPageColumns)>,
    rows_max: usize,
    bytes: usize,
    failure: Option<Error>,
}

/// Rows of the first batch; each one after may have twice as many, up to the second number.
const BATCH_ROWS: (usize, usize) = (4, 128);
/// A batch ends with the row that makes it so large.
pub(crate) const BATCH_BYTES: usize = 64 << 10;

impl Batch {
    fn take(&mut self, table: &Table, row: &Row<'_>) -> Control {
        let mut off_page = Vec::new();
        let values = match copy_row(table, row, &mut off_page) {
            Ok(values) => values,
            Err(error) => {
                self.failure = Some(error);
                return Control::Stop;
            }
        };
        self.bytes += values.iter().map(value_bytes).sum::<usize>();
        let full = self.rows.len() + 1 >= self.rows_max || self.bytes >= BATCH_BYTES || !off_page.is_empty();
        self.rows.push_back((values, off_page));
        if full { Control::Pause } else { Control::Continue }
    }
}

fn value_bytes(value: &Value<'_>) -> usize {
    match value {
        Value::Bytes(bytes) => bytes.len(),
        _ => size_of::<Value<'_>>(),
    }
}

impl Transaction {
    /// How a read locks: at SERIALIZABLE no read inside a transaction goes without.
    pub(crate) fn read_lock(&self, wanted: Lock) -> Result<Lock> {
        let lock = if self.reads_lock() && wanted == Lock::None { Lock::Share } else { wanted };
        if lock != Lock::None {
            self.may_write()?;
        }
        Ok(lock)
    }

    /// Inserts a row with one value per column. For an AUTO_INCREMENT column NULL or 0 means the next number,
    /// which is returned.
    ///
    /// # Errors
    /// [`txn::Error::DuplicateKey`], values that do not fit, lock waits.
    pub async fn insert(&mut self, table: &Arc<Table>, values: &[Value<'_>]) -> Result<Option<u64>> {
        self.insert_with(table, values, OnDuplicate::Refuse).await
    }

    /// Like [`Transaction::insert`]; `on_duplicate` says how an existing row is locked.
    pub(crate) async fn insert_with(
        &mut self,
        table: &Arc<Table>,
        values: &[Value<'_>],
        on_duplicate: OnDuplicate,
    ) -> Result<Option<u64>> {
        self.may_write()?;
        let (statement, table) = self.statement(table).await?;
        let mut writer = RowWriter::new(table)?;
        let generated = insert_row(&mut writer, statement.0, values, on_duplicate).await;
        let generated = generated.map_err(|error| statement.0.failed(error))?;
        writer.finish();
        Ok(generated)
    }

    /// Inserts rows as one statement: all of them or none. For an AUTO_INCREMENT column NULL or 0 means the
    /// next number; the rows get consecutive numbers, and the first one is returned.
    ///
    /// # Errors
    /// Those of [`Transaction::insert`].
    pub async fn insert_all<'v, R: AsRef<[Value<'v>]>>(
        &mut self,
        table: &Arc<Table>,
        rows: &[R],
    ) -> Result<Option<u64>> {
        self.may_write()?;
        let (statement, table) = self.statement(table).await?;
        let savepoint = StatementSavepoint::new(statement.0);
        let mut writer = RowWriter::new(table)?;
        writer.expect_rows(rows.len() as u64);
        let mut first = None;
        for row in rows {
            let inserted =
                insert_row(&mut writer, savepoint.transaction, row.as_ref(), OnDuplicate::Refuse).await;
            match inserted {
                Ok(generated) => first = first.or(generated),
                Err(error) => {
                    let error = savepoint.transaction.failed(error);
                    savepoint.undo().await?;
                    return Err(error);
                }
            }
        }
        savepoint.keep();
        writer.finish();
        Ok(first)
    }

    /// The row with this primary key: as the isolation level shows it, or locked, its newest state.
    ///
    /// # Errors
    /// No such table any more, [`Error::NoPrimaryKey`], a key of another length, lock waits, storage errors.
    pub async fn get(
        &mut self,
        table: &Arc<Table>,
        key: &[Value<'_>],
        lock: Lock,
    ) -> Result<Option<OwnedRow>> {
        self.get_or(table, key, lock, WaitPolicy::Wait).await
    }

    /// The row with this primary key, when another transaction has locked it as `wait` says: left out it is
    /// as if it were not there.
    ///
    /// # Errors
    /// Those of [`Transaction::get`], [`txn::Error::NoWaitLocked`].
    pub async fn get_or(
        &mut self,
        table: &Arc<Table>,
        key: &[Value<'_>],
        lock: Lock,
        wait: WaitPolicy,
    ) -> Result<Option<OwnedRow>> {
        let columns = 0..table.def.visible_columns().len();
        if lock == Lock::None
            && let Some(row) = self.get_at_once(table, key, columns.clone())
        {
            return Ok(row);
        }
        self.get_columns(table, key, lock, wait, columns).await
    }

    /// Some columns of the row that [`Transaction::get_or`] returns, by their numbers.
    pub(crate) async fn get_columns<V>(
        &mut self,
        table: &Arc<Table>,
        key: &[Value<'_>],
        lock: Lock,
        wait: WaitPolicy,
        columns: ops::Range<usize>,
    ) -> Result<Option<V>>
    where
        V: Default + Extend<Value<'static>> + AsMut<[Value<'static>]>,
    {
        let (statement, table) = self.statement(table).await?;
        let row = statement.0.get_waiting(&table, key, lock, wait, columns).await;
        row.map_err(|error| statement.0.failed(error))
    }

    async fn get_waiting<V>(
        &mut self,
        table: &Arc<Table>,
        key: &[Value<'_>],
        lock: Lock,
        wait: WaitPolicy,
        columns: ops::Range<usize>,
    ) -> Result<Option<V>>
    where
        V: Default + Extend<Value<'static>> + AsMut<[Value<'static>]>,
    {
        let mut encoded = EncodedRow::default();
        encode_row_key(table, key, &mut encoded)?;
        let key = encoded.fields();
        let first = columns.start;
        let mut off_page = Vec::new();
        let mut copy = |row: &Row<'_>| {
            let mut values = V::default();
            off_page.clear();
            copy_columns(table, row, columns.clone(), &mut values, noted(&mut off_page)).map(|_| values)
        };
        let lock = self.read_lock(lock)?;
        let copied = if lock == Lock::None {
            txn::get(self.engine_mut(), &table.rows, &key, copy).await?
        } else {
            let range = KeyRange::equal(OwnedKey::from_fields(&key));
            let (index, direction) = (ScanIndex::Clustered, Direction::Forward);
            let mut scan = Scan::new(table.rows.clone(), index, range, direction, lock.mode(wait), false);
            let mut copied = None;
            scan.run(self.engine_mut(), &mut |row| {
                copied = Some(copy(row));
                Control::Stop
            })
            .await?;
            copied
        };
        let Some(copied) = copied else { return Ok(None) };
        let mut values = copied?;
        self.complete_row(table, values.as_mut(), first, &off_page).await?;
        Ok(Some(values))
    }

    /// The rows of a range, one after the other. No page is latched between two rows. A locking scan locks
    /// each row when it returns it; other scans read in batches.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`], [`Error::NoSuchIndex`], values that are none of the index's columns, waits for
    /// DDL.
    pub async fn scan(&mut self, table: &Arc<Table>, range: &Range<'_>) -> Result<Rows<'_>> {
        let (statement, table) = self.statement(table).await?;
        let range = Range { lock: statement.0.read_lock(range.lock)?, ..range.clone() };
        let scan = statement.0.open_scan(&table, &range)?;
        let (first, most) = if range.lock == Lock::None { BATCH_ROWS } else { (1, 1) };
        let batch = Batch { rows_max: first, ..Batch::default() };
        Ok(Rows { statement, table, scan, batch, rows_max: most, finished: false })
    }

    /// Passes the rows of a range to `f` until it returns `false`, see [`Transaction::scan`]. No page is
    /// latched during the call: `f` may use the database through other transactions.
    ///
    /// # Errors
    /// Those of [`Transaction::scan`] and [`Rows::next`].
    pub async fn for_each(
        &mut self,
        table: &Arc<Table>,
        range: &Range<'_>,
        mut f: impl FnMut(OwnedRow) -> bool,
    ) -> Result<()> {
        let mut rows = self.scan(table, range).await?;
        while let Some(row) = rows.next().await? {
            if !f(row) {
                break;
            }
        }
        Ok(())
    }

    /// Reads the long columns of a row that was copied from column `first` on, with no page latched.
    async fn complete_row(
        &mut self,
        table: &Arc<Table>,
        values: &mut [Value<'static>],
        first: usize,
        off_page: &[(usize, OffPage)],
    ) -> Result<()> {
        for (column, value) in off_page {
            let bytes = value.fetch(self.engine_mut(), &table.rows).await?;
            values[*column - first] = decode(table, *column, &bytes)?;
        }
        Ok(())
    }

    fn open_scan(&self, table: &Arc<Table>, range: &Range<'_>) -> Result<Scan> {
        let (key, index) = match range.index {
            None | Some("PRIMARY") => (table.def.clustered_key(), ScanIndex::Clustered),
            Some(name) => {
                let mut keys = table.def.secondary_keys().iter().enumerate();
                let (at, key) = keys
                    .find(|(_, key)| key.name.eq_ignore_ascii_case(name))
                    .ok_or_else(|| Error::NoSuchIndex(name.to_owned()))?;
                (Some(key), ScanIndex::Secondary(at))
            }
        };
        let encode = |bound: &Bound<Vec<Value<'_>>>| {
            encode_bound_of(table, key, bound.as_ref().map(Vec::as_slice), &mut EncodedRow::default())
        };
        let keys = KeyRange { lower: encode(&range.lower)?, upper: encode(&range.upper)? };
        let direction = if range.descending { Direction::Backward } else { Direction::Forward };
        Ok(Scan::new(table.rows.clone(), index, keys, direction, range.lock.mode(range.wait), false))
    }

    /// Sets columns of the row with this primary key; false if there is none. Columns with ON UPDATE
    /// CURRENT_TIMESTAMP that are not set get the time, in UTC.
    ///
    /// # Errors
    /// No such column, values that do not fit, a duplicate key, lock waits.
    pub async fn update(
        &mut self,
        table: &Arc<Table>,
        key: &[Value<'_>],
        changes: &[(&str, Value<'_>)],
    ) -> Result<bool> {
        self.may_write()?;
        let (statement, table) = self.statement(table).await?;
        let table = &table;
        let mut encoded_key = EncodedRow::default();
        encode_row_key(table, key, &mut encoded_key)?;
        let mut encoded = EncodedRow::default();
        let mut columns = Vec::with_capacity(changes.len());
        for (name, value) in changes {
            let column = table
                .def
                .column_number(name)
                .ok_or_else(|| Error::Schema(crate::schema::SchemaError::NoSuchColumn((*name).to_owned())))?;
            push(&mut encoded, table, column, value)?;
            columns.push(column);
        }
        let mut writer = RowWriter::new(table.clone())?;
        let environment = statement.0.database().environment().clone();
        writer.assigns(|column| columns.contains(&column), || StatementTime::now(&*environment))?;
        let changes: Vec<(u16, Field<'_>)> = columns.iter().copied().zip(encoded.fields()).collect();
        let written = writer.update(statement.0, &encoded_key.fields(), &changes).await;
        match found(written).map_err(|error| statement.0.failed(error))? {
            Some(written) => done(written).map(|()| true),
            None => Ok(false),
        }
    }

    /// Inserts a row, a value per column, or sets the row with its primary key to these values; true if it is
    /// new. For an AUTO_INCREMENT column NULL or 0 means the next number, and with it a new row.
    ///
    /// **Dropped**, the future has put the row, or not, and may have locked it.
    ///
    /// # Errors
    /// A table without primary key, values that do not fit, a duplicate key of another unique index, lock
    /// waits.
    pub async fn put(&mut self, table: &Arc<Table>, values: &[Value<'_>]) -> Result<bool> {
        if values.len() != table.def.columns.len() {
            return Err(Error::WrongRowLength { given: values.len(), columns: table.def.columns.len() });
        }
        if let Some(is_new) = self.put_at_once(table, values).await? {
            return Ok(is_new);
        }
        let def = &table.def;
        let key: Vec<usize> =
            clustered_parts(table)?.parts.iter().map(|part| usize::from(part.column)).collect();
        let generated = |at: &usize| {
            def.columns[*at].auto_increment
                && matches!(values[*at], Value::Null | Value::Int(0) | Value::UInt(0))
        };
        if key.iter().any(generated) {
            return self.insert(table, values).await.map(|_| true);
        }
        let key_values: Vec<Value<'_>> = key.iter().map(|at| values[*at].clone()).collect();
        let others = (0..values.len()).filter(|at| !key.contains(at));
        let changes: Vec<(&str, Value<'_>)> =
            others.map(|at| (def.columns[at].name.as_str(), values[at].clone())).collect();
        loop {
            if self.update(table, &key_values, &changes).await? {
                return Ok(false);
            }
            // Else somebody has put it in between. It is locked now, so it stays to be updated.
            match self.insert_with(table, values, OnDuplicate::Change).await {
                Err(error) if error.is_duplicate_primary_key() => {}
                inserted => return inserted.map(|_| true),
            }
        }
    }

    /// Puts a row with one search for its place, if that can be done; whether it is new.
    async fn put_at_once(&mut self, handle: &Arc<Table>, values: &[Value<'_>]) -> Result<Option<bool>> {
        self.may_write()?;
        let (statement, table) = self.statement(handle).await?;
        // The values stand in the order of the handle's columns, by whose names an update finds them.
        if !Arc::ptr_eq(handle, &table) && handle.def.columns != table.def.columns {
            return Ok(None);
        }
        if clustered_parts(&table)?.parts.iter().any(|part| part.prefix_chars.is_some()) {
            return Ok(None);
        }
        let mut writer = RowWriter::new(table.clone())?;
        if !writer.puts_at_once(statement.0) {
            return Ok(None);
        }
        let mut encoded = EncodedRow::default();
        for (at, value) in values.iter().enumerate() {
            push(&mut encoded, &table, at as u16, value)?;
        }
        let put = writer.put(statement.0, &encoded.fields()).await;
        let put = put.map_err(|error| statement.0.failed(error))?;
        writer.finish();
        Ok(match put {
            Put::Inserted => Some(true),
            Put::Updated => Some(false),
            Put::NotAtOnce => None,
        })
    }

    /// Deletes the row with this primary key; false if there is none.
    ///
    /// # Errors
    /// Lock waits, storage errors.
    pub async fn delete(&mut self, table: &Arc<Table>, key: &[Value<'_>]) -> Result<bool> {
        self.may_write()?;
        let (statement, table) = self.statement(table).await?;
        let mut encoded = EncodedRow::default();
        encode_row_key(&table, key, &mut encoded)?;
        let mut writer = RowWriter::of_evaluated(table);
        let deleted = writer.delete(statement.0, &encoded.fields()).await;
        let deleted = found(deleted).map_err(|error| statement.0.failed(error))?;
        writer.finish();
        Ok(deleted.is_some())
    }
}

/// Encodes a row and inserts it; the AUTO_INCREMENT number that it was given.
async fn insert_row(
    writer: &mut RowWriter,
    transaction: &mut Transaction,
    values: &[Value<'_>],
    on_duplicate: OnDuplicate,
) -> Result<Option<u64>> {
    let table = writer.table().clone();
    if values.len() != table.def.columns.len() {
        return Err(Error::WrongRowLength { given: values.len(), columns: table.def.columns.len() });
    }
    let mut encoded = EncodedRow::default();
    let mut generated = None;
    for (at, value) in values.iter().enumerate() {
        let counts = table.def.columns[at].auto_increment;
        match value {
            Value::Null | Value::Int(0) | Value::UInt(0) if counts => {
                let next = writer.generate().await?;
                generated = Some(next);
                push(&mut encoded, &table, at as u16, &Value::UInt(next))?;
                continue;
            }
            Value::Int(used) if counts && *used > 0 => writer.use_value(*used as u64).await?,
            Value::UInt(used) if counts => writer.use_value(*used).await?,
            _ => {}
        }
        push(&mut encoded, &table, at as u16, value)?;
    }
    done(writer.insert(transaction, &encoded.fields(), on_duplicate).await?)?;
    Ok(generated)
}

/// The rows of a range, see [`Transaction::scan`]. A scan is one statement: at READ COMMITTED all of it reads
/// one snapshot.
pub struct Rows<'t> {
    statement: Statement<'t>,
    table: Arc<Table>,
    scan: Scan,
    batch: Batch,
    /// Rows that a batch may have.
    rows_max: usize,
    finished: bool,
}

impl Rows<'_> {
    /// The next row.
    ///
    /// # Errors
    /// Lock waits, storage errors; [`Error::Closed`] after a close, in the middle of a scan too. The scan is
    /// over then. Dropping the future changes nothing: the next call returns the row it would have returned.
    pub async fn next(&mut self) -> Result<Option<OwnedRow>> {
        if !self.finished || !self.batch.rows.is_empty() {
            // The files may be another process's now.
            let closed = self.statement.0.database().refuse_after_close();
            closed.inspect_err(|_| {
                self.batch.rows.clear();
                self.batch.failure = None;
                self.finished = true;
            })?;
        }
        loop {
            if let Some((values, off_page)) = self.batch.rows.front_mut() {
                // In its place: cut here, it is the next row still.
                let completed = self.statement.0.complete_row(&self.table, values, 0, off_page).await;
                let row = self.batch.rows.pop_front();
                if completed.is_err() {
                    self.batch.rows.clear();
                    self.finished = true;
                }
                return completed.map(|()| row.map(|(values, _)| values));
            }
            if let Some(error) = self.batch.failure.take() {
                self.finished = true;
                return Err(error);
            }
            if self.finished {
                return Ok(None);
            }
            let (table, batch) = (&self.table, &mut self.batch);
            let state = self.scan.run(self.statement.0.engine_mut(), &mut |row| batch.take(table, row)).await;
            self.finished = !matches!(state, Ok(state) if state != ScanState::Finished);
            state.map_err(|error| self.statement.0.failed(error.into()))?;
            let batch = &mut self.batch;
            batch.bytes = 0;
            batch.rows_max = (batch.rows_max * 2).min(self.rows_max);
        }
    }
}

/// A missing row is an answer here, not an error.
pub(crate) fn found<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(written) => Ok(Some(written)),
        Err(Error::Transaction(txn::Error::RowNotFound { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A duplicate key is an error here.
pub(crate) fn done(written: Written) -> Result<()> {
    match written {
        Written::Done => Ok(()),
        Written::Duplicate { index, entry } => {
            Err(Error::Transaction(txn::Error::DuplicateKey { index, entry }))
        }
    }
}
