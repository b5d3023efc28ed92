//! The rules of a table's definition, applied to each row that a statement writes.

use std::ops::Range;
use std::sync::Arc;

use btree::Field;
use smallvec::SmallVec;
use txn::OnDuplicate;

use super::foreign_keys::ForeignKeys;
use super::row_operations::{delete_row, insert_row, put_row, update_row};
use crate::error::{Error, Result};
use crate::schema::ColumnDef;
use crate::table::Table;
use crate::transaction::Transaction;
use crate::types::{self, ColumnType, DateTime, Value};

/// Columns with their new fields; `None` is NULL.
pub type Changes<'c> = [(u16, Field<'c>)];

/// When a statement began.
#[derive(Debug, Clone, Copy)]
pub struct StatementTime {
    /// In UTC.
    pub utc: DateTime,
    /// Seconds that the session's time zone is ahead of UTC.
    pub zone: i32,
}

impl StatementTime {
    /// The environment's clock, in UTC.
    pub(crate) fn now(environment: &dyn disk::Environment) -> StatementTime {
        let since = environment.unix_time();
        let utc =
            DateTime::from_unix(i64::try_from(since.as_secs()).unwrap_or(i64::MAX), since.subsec_micros());
        StatementTime { utc, zone: 0 }
    }

    /// CURRENT_TIMESTAMP of a column: TIMESTAMP keeps UTC, all others the session's time. Digits of a second
    /// that the column does not have are cut off.
    ///
    /// # Errors
    /// A time beyond the column's range.
    pub fn encode(&self, column: &ColumnDef, out: &mut Vec<u8>) -> Result<()> {
        let time = match column.kind {
            ColumnType::Timestamp { .. } => self.utc,
            _ => DateTime::from_unix(self.utc.to_unix() + i64::from(self.zone), self.utc.micros),
        };
        types::encode(&Value::DateTime(time), &column.kind, out)
            .map_err(|why| Error::Value { column: column.name.clone(), why })
    }
}

/// What became of a row.
#[derive(Debug, PartialEq, Eq)]
pub enum Written {
    /// It is written.
    Done,
    /// Another row has the key. Nothing was changed; the other row is locked.
    Duplicate {
        /// The unique index.
        index: String,
        /// The key that both have.
        entry: Vec<Option<Vec<u8>>>,
    },
}

/// Writes the rows of one statement into a table. The transaction must be using the table.
///
/// Counts of rows reach the table's estimate by [`RowWriter::finish`]. A statement that fails, and is undone,
/// drops its writer instead.
pub struct RowWriter {
    table: Arc<Table>,
    /// Rows that the statement is to insert, if it knows: AUTO_INCREMENT values taken at first.
    rows_to_come: u64,
    /// How often values were taken: without knowing how many are needed, twice as many each time.
    takes: u32,
    /// Of the rows that values were taken for, those that have not come, whether they bring their own or not.
    reserved: u64,
    /// The row that comes has come before.
    again: bool,
    /// AUTO_INCREMENT values that were taken and not given out.
    generated: Range<u64>,
    /// They were not taken: the statement was told with which value to begin.
    told: bool,
    /// Increment and offset of the values that are generated.
    numbering: (u64, u64),
    /// Columns with ON UPDATE that the statement does not assign, with the statement's time.
    stamps: SmallVec<[(u16, Vec<u8>); 1]>,
    rows_added: i64,
    /// Rows inserted, updated and deleted.
    rows_changed: u64,
    /// For a table with foreign keys, or with some to it: what the statement knows of them.
    foreign_keys: Option<Box<ForeignKeys>>,
}

/// Values are taken in twos, fours and so on, up to this power of two.
const TAKES_DOUBLED: u32 = 16;

/// The first of `offset`, `offset + increment`, … that is not below `start`.
fn next_number(start: u64, increment: u64, offset: u64) -> u64 {
    match start.checked_sub(offset) {
        Some(beyond) if increment > 1 => {
            let next = beyond.checked_next_multiple_of(increment);
            next.map_or(u64::MAX, |next| start.saturating_add(next - beyond))
        }
        None if increment > 1 => offset,
        _ => start,
    }
}

impl RowWriter {
    /// A writer of a table's rows.
    ///
    /// # Errors
    /// [`Error::NeedsSql`] for a table with expressions that each row must be put through.
    pub fn new(table: Arc<Table>) -> Result<RowWriter> {
        if table.def.evaluates_rows() {
            return Err(Error::NeedsSql(table.database.clone(), table.name.clone()));
        }
        Ok(RowWriter::of_evaluated(table))
    }

    /// A writer of rows whose generated columns and CHECK constraints the caller evaluates: each row that it
    /// hands over has its generated values, and was checked.
    pub fn of_evaluated(table: Arc<Table>) -> RowWriter {
        RowWriter {
            table,
            rows_to_come: 0,
            takes: 0,
            reserved: 0,
            again: false,
            told: false,
            generated: 0..0,
            numbering: (1, 1),
            stamps: SmallVec::new(),
            rows_added: 0,
            rows_changed: 0,
            foreign_keys: None,
        }
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The statement assigns these columns when it updates a row: the other ones with ON UPDATE
    /// CURRENT_TIMESTAMP get `time`, which is asked for if there is such a column.
    ///
    /// # Errors
    /// A time beyond a column's range.
    pub fn assigns(
        &mut self,
        assigned: impl Fn(u16) -> bool,
        time: impl FnOnce() -> StatementTime,
    ) -> Result<()> {
        let mut stamped = self.table.def.columns_on_update().filter(|column| !assigned(*column)).peekable();
        if stamped.peek().is_none() {
            return Ok(());
        }
        let time = time();
        for column in stamped {
            let mut bytes = Vec::new();
            time.encode(&self.table.def.columns[usize::from(column)], &mut bytes)?;
            self.stamps.push((column, bytes));
        }
        Ok(())
    }

    /// The columns that [`RowWriter::update`] sets by itself, with the bytes they get.
    pub fn stamps(&self) -> &[(u16, Vec<u8>)] {
        &self.stamps
    }

    /// The statement is to insert `count` rows: that many AUTO_INCREMENT values are taken for it at first,
    /// also for rows that bring their own, as InnoDB does.
    pub fn expect_rows(&mut self, count: u64) {
        self.rows_to_come = count;
    }

    /// The next AUTO_INCREMENT value, for the next row that is inserted.
    ///
    /// # Errors
    /// [`Error::AutoIncrementExhausted`], also when the table has no such column. Storage errors.
    pub async fn generate(&mut self) -> Result<u64> {
        let (increment, offset) = self.numbering;
        if self.told {
            let value = self.generated.start;
            self.generated.start = next_number(value.saturating_add(1), increment, offset);
            self.use_value(value).await?;
            return Ok(value);
        }
        loop {
            let value = next_number(self.generated.start, increment, offset);
            if value < self.generated.end {
                self.generated.start = value + 1;
                return Ok(value);
            }
            let counter = self.table.auto_increment.as_ref().ok_or(Error::AutoIncrementExhausted)?;
            if self.reserved == 0 {
                self.reserved = match self.takes {
                    0 if self.rows_to_come > 0 => self.rows_to_come,
                    takes => 1 << takes.min(TAKES_DOUBLED),
                };
            }
            self.takes += 1;
            let count = self.reserved.saturating_mul(increment);
            self.generated = counter.take(self.table.rows.clustered.store(), count).await?;
        }
    }

    /// Generated values are `offset`, `offset + increment`, …: `auto_increment_increment` and
    /// `auto_increment_offset`, by which several servers share a table's numbers. An offset above the
    /// increment does not count, as in MySQL.
    pub fn number_by(&mut self, increment: u64, offset: u64) {
        let increment = increment.max(1);
        self.numbering = (increment, if offset > increment { 0 } else { offset });
    }

    /// The values that are generated begin with this one, whatever the table's counter says.
    pub fn begin_with(&mut self, value: u64) {
        (self.generated, self.told) = (value..u64::MAX, true);
    }

    /// The row that got this value from [`RowWriter::generate`] is not inserted after all: the next one gets
    /// it.
    pub fn give_back(&mut self, value: u64) {
        if value.checked_add(1) == Some(self.generated.start) {
            self.generated.start = value;
        }
    }

    /// The row that is inserted next is the one that met a duplicate: it was counted.
    pub fn goes_on_with_row(&mut self) {
        self.again = true;
    }

    /// A row is given this AUTO_INCREMENT value by the statement: counting goes on behind it.
    ///
    /// # Errors
    /// Storage errors.
    pub async fn use_value(&mut self, value: u64) -> Result<()> {
        // What this statement generates goes on behind it, too.
        if !self.told && !self.generated.is_empty() && value >= self.generated.start {
            self.generated.start = value.saturating_add(1).min(self.generated.end);
        }
        // The counter stands on a number that this increment gives, as in InnoDB.
        let (increment, offset) = self.numbering;
        let next = next_number(value.saturating_add(1), increment, offset);
        match &self.table.auto_increment {
            Some(counter) => counter.used(self.table.rows.clustered.store(), next - 1).await,
            None => Ok(()),
        }
    }

    /// Inserts a row, a field for each column. `on_duplicate` says how a row with its key is to be locked.
    ///
    /// # Errors
    /// [`Error::NullValue`], [`Error::ForeignKeyParentMissing`], lock waits, a row too large, storage errors;
    /// nothing of the row is left.
    pub async fn insert(
        &mut self,
        transaction: &mut Transaction,
        row: &[Field<'_>],
        on_duplicate: OnDuplicate,
    ) -> Result<Written> {
        check_row(row, &self.table.def.columns)?;
        if !std::mem::take(&mut self.again) {
            self.reserved = self.reserved.saturating_sub(1);
        }
        let written = match self.table.def.foreign_keys.is_empty() || !transaction.foreign_key_checks() {
            true => insert_row(transaction, &self.table, row, on_duplicate).await?,
            false => {
                let keys = self.foreign_keys.get_or_insert_default();
                // Boxed, so that rows without foreign keys do not carry it.
                Box::pin(keys.insert(transaction, &self.table, row, on_duplicate)).await?
            }
        };
        self.rows_added += i64::from(written == Written::Done);
        self.rows_changed += u64::from(written == Written::Done);
        Ok(written)
    }

    /// Changes columns of the row with this clustered key, and those with ON UPDATE. `changes` are real ones:
    /// a row that stays as it is has none, and gets no time. Counting goes on behind what an AUTO_INCREMENT
    /// column becomes.
    ///
    /// # Errors
    /// [`txn::Error::RowNotFound`], [`Error::ForeignKeyChildExists`] and those of [`RowWriter::insert`]; the
    /// row is as it was.
    pub async fn update(
        &mut self,
        transaction: &mut Transaction,
        key: &[Field<'_>],
        changes: &Changes<'_>,
    ) -> Result<Written> {
        self.rows_changed += 1;
        let mut number = None;
        for (column, field) in changes {
            let def = &self.table.def.columns[usize::from(*column)];
            check_null(*field, def)?;
            if def.auto_increment {
                number = field.and_then(|bytes| positive(bytes, def));
            }
        }
        if let Some(number) = number {
            self.use_value(number).await?;
        }
        if self.table.has_relations() && transaction.foreign_key_checks() {
            let stamps = self.stamps.iter().map(|(column, bytes)| (*column, Some(&bytes[..])));
            let stamps = stamps.filter(|_| !changes.is_empty());
            let changes: SmallVec<[(u16, Field<'_>); 8]> = changes.iter().copied().chain(stamps).collect();
            let keys = self.foreign_keys.get_or_insert_default();
            return Box::pin(keys.update(transaction, &self.table, key, &changes)).await;
        }
        match &self.stamps[..] {
            stamps if !stamps.is_empty() && !changes.is_empty() => {
                let stamps = stamps.iter().map(|(column, bytes)| (*column, Some(&bytes[..])));
                let changes: SmallVec<[(u16, Field<'_>); 8]> =
                    changes.iter().copied().chain(stamps).collect();
                update_row(transaction, &self.table, key, &changes).await
            }
            _ => update_row(transaction, &self.table, key, changes).await,
        }
    }

    /// Whether [`RowWriter::put`] may be tried: no column and no key asks whether the row is new.
    pub(crate) fn puts_at_once(&self, transaction: &Transaction) -> bool {
        let def = &self.table.def;
        !def.columns.iter().any(|column| column.auto_increment)
            && def.columns_on_update().next().is_none()
            && !(self.table.has_relations() && transaction.foreign_key_checks())
    }

    /// Inserts a row, or sets the row with its key to its values, with one search for the place. It may say
    /// that it cannot, and has done nothing then: an update and an insert are what has to be done.
    ///
    /// # Errors
    /// Those of [`RowWriter::update`] and [`RowWriter::insert`].
    pub(crate) async fn put(&mut self, transaction: &mut Transaction, row: &[Field<'_>]) -> Result<txn::Put> {
        assert!(self.puts_at_once(transaction), "a row whose values depend on whether it is new");
        check_row(row, &self.table.def.columns)?;
        let put = put_row(transaction, &self.table, row).await?;
        self.rows_added += i64::from(put == txn::Put::Inserted);
        self.rows_changed += 1;
        Ok(put)
    }

    /// Deletes the row with this clustered key.
    ///
    /// # Errors
    /// [`txn::Error::RowNotFound`], [`Error::ForeignKeyChildExists`], lock waits, storage errors.
    pub async fn delete(&mut self, transaction: &mut Transaction, key: &[Field<'_>]) -> Result<()> {
        if self.table.is_referenced() && transaction.foreign_key_checks() {
            let keys = self.foreign_keys.get_or_insert_default();
            Box::pin(keys.delete(transaction, &self.table, key)).await?;
        } else {
            delete_row(transaction, &self.table, key).await?;
        }
        self.rows_added -= 1;
        self.rows_changed += 1;
        Ok(())
    }

    /// The statement has succeeded: the table's estimate of its rows learns of them.
    pub fn finish(self) {
        if self.rows_changed != 0 {
            self.table.note_rows(self.rows_added, self.rows_changed);
        }
        if let Some(keys) = self.foreign_keys {
            keys.finish();
        }
    }
}

/// Whether a row has a field for each column, and none of them is NULL that may not be.
pub(crate) fn check_row(row: &[Field<'_>], columns: &[ColumnDef]) -> Result<()> {
    if row.len() != columns.len() {
        return Err(Error::WrongRowLength { given: row.len(), columns: columns.len() });
    }
    row.iter().zip(columns).try_for_each(|(field, column)| check_null(*field, column))
}

fn check_null(field: Field<'_>, column: &ColumnDef) -> Result<()> {
    match field {
        None if !column.nullable => Err(Error::NullValue(column.name.clone())),
        _ => Ok(()),
    }
}

/// The number above 0 that a column's stored bytes are.
fn positive(bytes: &[u8], column: &ColumnDef) -> Option<u64> {
    match types::decode(bytes, &column.kind)? {
        Value::Int(value) => u64::try_from(value).ok().filter(|value| *value > 0),
        Value::UInt(value) => Some(value),
        _ => None,
    }
}
