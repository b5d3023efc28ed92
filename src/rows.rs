//! Rows by value: insert, get, update, delete and range reads with [`Value`]s, for programs that embed the engine.
//!
//! The functions here are `async` and block no thread; [`crate::BlockingTransaction`] has the same ones for
//! programs without an executor. A function that fails has undone its own changes; the transaction goes on,
//! except after a deadlock, which has rolled all of it back.

use std::ops::Bound;
use std::sync::Arc;

use btree::{Field, FieldRef, OwnedKey};
use txn::{Control, Direction, KeyRange, ReadMode, Row, Scan, ScanIndex, ScanState, WaitPolicy};

use crate::error::{Error, Result};
use crate::schema::KeyDef;
use crate::table::Table;
use crate::transaction::{NotUsable, Transaction};
use crate::types::{self, Value};

/// A row, a value per column.
pub type OwnedRow = Vec<Value<'static>>;

/// How a read treats rows that other transactions are changing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lock {
    /// See the committed state that the isolation level says, and lock nothing.
    #[default]
    None,
    /// Lock the rows against changes (`FOR SHARE`).
    Share,
    /// Lock the rows for a change (`FOR UPDATE`).
    Exclusive,
}

impl Lock {
    fn mode(self) -> ReadMode {
        match self {
            Lock::None => ReadMode::Consistent,
            Lock::Share => ReadMode::Locking { exclusive: false, wait: WaitPolicy::Wait },
            Lock::Exclusive => ReadMode::Locking { exclusive: true, wait: WaitPolicy::Wait },
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
    /// Lock the rows?
    pub lock: Lock,
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
        }
    }

    /// The same over this index.
    pub fn index(mut self, name: &'a str) -> Range<'a> {
        self.index = Some(name);
        self
    }

    /// Rows whose leading index columns equal these values.
    pub fn equal(mut self, key: Vec<Value<'a>>) -> Range<'a> {
        self.lower = Bound::Included(key.clone());
        self.upper = Bound::Included(key);
        self
    }

    /// Rows from these values on.
    pub fn from(mut self, key: Vec<Value<'a>>) -> Range<'a> {
        self.lower = Bound::Included(key);
        self
    }

    /// Rows up to these values, including them.
    pub fn to(mut self, key: Vec<Value<'a>>) -> Range<'a> {
        self.upper = Bound::Included(key);
        self
    }

    /// From the upper end down.
    pub fn descending(mut self) -> Range<'a> {
        self.descending = true;
        self
    }

    /// Locking the rows.
    pub fn lock(mut self, lock: Lock) -> Range<'a> {
        self.lock = lock;
        self
    }
}

/// Storage-encoded values of a row or key, in one buffer.
#[derive(Default)]
struct Encoded {
    bytes: Vec<u8>,
    ends: Vec<Option<usize>>,
}

impl Encoded {
    fn push(&mut self, table: &Table, column: u16, value: &Value<'_>) -> Result<()> {
        let def = &table.def.columns[usize::from(column)];
        if value.is_null() {
            if !def.nullable {
                return Err(Error::NullValue(def.name.clone()));
            }
            self.ends.push(None);
            return Ok(());
        }
        types::encode(value, &def.kind, &mut self.bytes)
            .map_err(|why| Error::Value { column: def.name.clone(), why })?;
        self.ends.push(Some(self.bytes.len()));
        Ok(())
    }

    fn fields(&self) -> Vec<Field<'_>> {
        let mut start = 0;
        self.ends
            .iter()
            .map(|end| {
                end.map(|end| {
                    let field = &self.bytes[start..end];
                    start = end;
                    field
                })
            })
            .collect()
    }
}

fn clustered_parts(table: &Table) -> Result<&KeyDef> {
    table.def.clustered_key().ok_or_else(|| {
        Error::Internal(format!("table '{}' has no primary key: find its rows by a range read", table.name))
    })
}

fn encode_key(table: &Table, key: &KeyDef, values: &[Value<'_>]) -> Result<OwnedKey> {
    if values.len() > key.parts.len() {
        return Err(Error::WrongRowLength { given: values.len(), columns: key.parts.len() });
    }
    let mut encoded = Encoded::default();
    for (part, value) in key.parts.iter().zip(values) {
        encoded.push(table, part.column, value)?;
    }
    Ok(OwnedKey::from_fields(&encoded.fields()))
}

/// A column that is stored off-page, to be fetched after the row was copied.
struct OffPage {
    column: usize,
    prefix: Vec<u8>,
    reference: [u8; 20],
}

/// Copies a row's values; long columns are noted for later.
fn copy_row(table: &Table, row: &Row<'_>, off_page: &mut Vec<OffPage>) -> Result<OwnedRow> {
    let mut values = Vec::with_capacity(table.def.columns.len());
    for (at, def) in table.def.columns.iter().enumerate() {
        values.push(match row.column(at as u16) {
            FieldRef::Null => Value::Null,
            FieldRef::Inline(bytes) => decode(table, at, bytes)?,
            FieldRef::External { prefix, reference } => {
                off_page.push(OffPage { column: at, prefix: prefix.to_vec(), reference: *reference });
                debug_assert!(def.kind.is_blob() || def.kind.bytes_max() > 255);
                Value::Null
            }
        });
    }
    Ok(values)
}

fn decode(table: &Table, column: usize, bytes: &[u8]) -> Result<Value<'static>> {
    let def = &table.def.columns[column];
    types::decode(bytes, &def.kind).map(Value::into_owned).ok_or_else(|| {
        Error::Internal(format!(
            "column '{}' of table '{}' holds bytes that are no value of it",
            def.name, table.name
        ))
    })
}

impl Transaction {
    /// Runs one change; on failure everything it did is undone.
    async fn undone_on_failure<T>(&mut self, mark: txn::UndoMark, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            match error {
                Error::Transaction(error @ (txn::Error::Deadlock | txn::Error::LockTableFull)) => {
                    self.after_error(error);
                }
                _ => self.rollback_to(mark).await?,
            }
        }
        result
    }

    /// Inserts a row, a value per column. For an AUTO_INCREMENT column NULL or 0 means the next number, which
    /// is returned.
    ///
    /// # Errors
    /// [`txn::Error::DuplicateKey`], values that do not fit, lock waits.
    pub async fn insert(&mut self, table: &Arc<Table>, values: &[Value<'_>]) -> Result<Option<u64>> {
        if values.len() != table.def.columns.len() {
            return Err(Error::WrongRowLength { given: values.len(), columns: table.def.columns.len() });
        }
        self.use_or_fail(table)?;
        let mut encoded = Encoded::default();
        let mut generated = None;
        for (at, value) in values.iter().enumerate() {
            let mut value = value.clone();
            if let (true, Some(counter)) = (table.def.columns[at].auto_increment, &table.auto_increment) {
                let store = self.database().store().clone();
                match value {
                    Value::Null | Value::Int(0) | Value::UInt(0) => {
                        let next = counter.take(&store, 1).await?;
                        generated = Some(next);
                        value = Value::UInt(next);
                    }
                    Value::Int(used) if used > 0 => counter.used(&store, used as u64).await?,
                    Value::UInt(used) => counter.used(&store, used).await?,
                    _ => {}
                }
            }
            encoded.push(table, at as u16, &value)?;
        }
        let mark = self.statement_mark();
        let result = txn::insert(self.rows(), &table.rows, &encoded.fields()).await;
        self.undone_on_failure(mark, result.map_err(Error::Transaction)).await?;
        table.note_rows(1);
        Ok(generated)
    }

    /// The row with this primary key.
    pub async fn get(
        &mut self,
        table: &Arc<Table>,
        key: &[Value<'_>],
        lock: Lock,
    ) -> Result<Option<OwnedRow>> {
        let mut found = None;
        let range = Range::all().equal(key.to_vec()).lock(lock);
        self.for_each(table, &range, |row| {
            found = Some(row);
            false
        })
        .await?;
        Ok(found)
    }

    /// Shows the rows of a range to `f` until it says `false`.
    pub async fn for_each(
        &mut self,
        table: &Arc<Table>,
        range: &Range<'_>,
        mut f: impl FnMut(OwnedRow) -> bool,
    ) -> Result<()> {
        self.use_or_fail(table)?;
        let mut scan = self.scan(table, range)?;
        loop {
            let mut off_page = Vec::new();
            let mut copied = None;
            let state = scan
                .run(self.rows(), &mut |row| {
                    match copy_row(table, row, &mut off_page) {
                        Ok(values) if off_page.is_empty() => {
                            if f(values) {
                                Control::Continue
                            } else {
                                Control::Stop
                            }
                        }
                        // Long columns are read outside the page latch.
                        other => {
                            copied = Some(other);
                            Control::Pause
                        }
                    }
                })
                .await?;
            let Some(copied) = copied else { return Ok(()) };
            let mut values = copied?;
            for field in off_page {
                let bytes =
                    txn::fetch_external(self.rows(), &table.rows, &field.prefix, &field.reference).await?;
                values[field.column] = decode(table, field.column, &bytes)?;
            }
            if !f(values) || state == ScanState::Finished {
                return Ok(());
            }
        }
    }

    fn scan(&self, table: &Arc<Table>, range: &Range<'_>) -> Result<Scan> {
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
        let bound = |bound: &Bound<Vec<Value<'_>>>| -> Result<Bound<OwnedKey>> {
            let encode = |values: &Vec<Value<'_>>| match key {
                Some(key) => encode_key(table, key, values),
                None => encode_key(table, clustered_parts(table)?, values),
            };
            Ok(match bound {
                Bound::Unbounded => Bound::Unbounded,
                Bound::Included(values) => Bound::Included(encode(values)?),
                Bound::Excluded(values) => Bound::Excluded(encode(values)?),
            })
        };
        let keys = KeyRange { lower: bound(&range.lower)?, upper: bound(&range.upper)? };
        let direction = if range.descending { Direction::Backward } else { Direction::Forward };
        Ok(Scan::new(table.rows.clone(), index, keys, direction, range.lock.mode(), false))
    }

    /// Sets columns of the row with this primary key; false if there is none.
    pub async fn update(
        &mut self,
        table: &Arc<Table>,
        key: &[Value<'_>],
        changes: &[(&str, Value<'_>)],
    ) -> Result<bool> {
        self.use_or_fail(table)?;
        let key = encode_key(table, clustered_parts(table)?, key)?;
        let mut encoded = Encoded::default();
        let mut columns = Vec::with_capacity(changes.len());
        for (name, value) in changes {
            let column = table
                .def
                .column_number(name)
                .ok_or_else(|| Error::Schema(crate::schema::SchemaError::NoSuchColumn((*name).to_owned())))?;
            encoded.push(table, column, value)?;
            columns.push(column);
        }
        let changes: Vec<(u16, Field<'_>)> = columns.into_iter().zip(encoded.fields()).collect();
        let mark = self.statement_mark();
        let result = txn::update(self.rows(), &table.rows, &key.fields(), &changes).await;
        found(self.undone_on_failure(mark, result.map_err(Error::Transaction)).await)
    }

    /// Deletes the row with this primary key; false if there is none.
    pub async fn delete(&mut self, table: &Arc<Table>, key: &[Value<'_>]) -> Result<bool> {
        self.use_or_fail(table)?;
        let key = encode_key(table, clustered_parts(table)?, key)?;
        let mark = self.statement_mark();
        let result = txn::delete(self.rows(), &table.rows, &key.fields()).await;
        let deleted = found(self.undone_on_failure(mark, result.map_err(Error::Transaction)).await)?;
        if deleted {
            table.note_rows(-1);
        }
        Ok(deleted)
    }

    /// Uses a table that the caller holds a handle of. DDL that is at work on it, or has replaced it, is an
    /// error here: get a new handle by [`Transaction::open_table`], which waits.
    fn use_or_fail(&mut self, table: &Arc<Table>) -> Result<()> {
        self.use_table(table).map_err(|why| match why {
            NotUsable::Discarded => table.discarded_error(),
            NotUsable::Deadlock => Error::Transaction(txn::Error::Deadlock),
            NotUsable::Wait(_) | NotUsable::Stale => {
                Error::NoSuchTable(table.database.clone(), table.name.clone())
            }
        })
    }
}

/// A missing row is an answer here, not an error.
fn found(result: Result<()>) -> Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(Error::Transaction(txn::Error::RowNotFound { .. })) => Ok(false),
        Err(error) => Err(error),
    }
}
