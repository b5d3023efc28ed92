//! Rows that a batch has read.
//!
//! A batch reads ahead, and who wants a few pairs never looks at the rest of it. So rows are kept as the
//! records that they are, in one buffer, and are taken apart and become values when they are shown. Older
//! versions, and rows with values off-page, are kept field by field.

use std::sync::Arc;

use btree::{FieldRef, OwnedKey, RecordRef};
use txn::{Control, Direction, KeyRange, OffPage, ReadMode, Row, Scan, ScanIndex, ScanState, WaitPolicy};

use crate::error::{Error, Result};
use crate::row_values::decode_borrowed;
use crate::rows::{BATCH_BYTES, Lock};
use crate::statement::Statement;
use crate::table::Table;
use crate::transaction::Transaction;
use crate::types::Value;

/// Where a row is.
enum Kept {
    /// Its record is in the buffer.
    Record { start: usize, len: usize, origin: usize },
    /// Its fields are these, from one on.
    Fields(usize),
}

/// A field of a row that is kept field by field.
enum Stored {
    Null,
    /// In the buffer.
    Inline {
        start: usize,
        len: usize,
    },
    /// It was off-page.
    Fetched(Vec<u8>),
}

/// Rows of a table in the order in which they were read.
#[derive(Default)]
pub(super) struct ReadRows {
    /// As it was when they were read.
    table: Option<Arc<Table>>,
    bytes: Vec<u8>,
    /// Bytes of the fields that were off-page.
    fetched_bytes: usize,
    rows: Vec<Kept>,
    /// One for each column of the table, row after row.
    fields: Vec<Stored>,
    columns: usize,
    /// Those of the last row.
    off_page: Vec<(usize, OffPage)>,
    /// Rows that were shown at either end.
    shown: (usize, usize),
    most: usize,
    /// The key of the last row, if the batch was full before the range ended.
    end: OwnedKey,
}

impl ReadRows {
    /// Forgets all rows; the next ones are of `table`.
    fn begin(&mut self, table: &Arc<Table>) {
        self.forget();
        self.columns = table.def.columns.len();
        if !self.table.as_ref().is_some_and(|known| Arc::ptr_eq(known, table)) {
            self.table = Some(table.clone());
        }
    }

    /// There are no rows.
    fn forget(&mut self) {
        self.bytes.clear();
        self.fetched_bytes = 0;
        self.fields.clear();
        self.rows.clear();
        self.off_page.clear();
        self.shown = (0, 0);
    }

    /// Whether the batch has all rows that it may have.
    fn is_full(&self) -> bool {
        self.rows.len() >= self.most || self.bytes.len() + self.fetched_bytes >= BATCH_BYTES
    }

    /// How many rows the next batch may have.
    pub fn set_most(&mut self, most: usize) {
        self.most = most;
    }

    /// Work of the next batch, for the time slice.
    fn units(&self) -> u32 {
        u32::try_from(self.most).unwrap_or(u32::MAX)
    }

    /// Key of the last row, after [`Control::Pause`].
    pub fn end(&self) -> &OwnedKey {
        &self.end
    }

    /// Rows that were not shown yet.
    #[inline]
    pub fn len(&self) -> usize {
        self.rows.len() - self.shown.0 - self.shown.1
    }

    /// Takes a row; [`Control::Pause`] when the batch is full, or a field is to be fetched first.
    fn take(&mut self, row: &Row<'_>) -> Control {
        match row.clustered_record() {
            Some((record, origin)) => {
                let (start, len) = (self.bytes.len(), record.len());
                if self.rows.is_empty() {
                    // As if the others were as long as the first.
                    self.rows.reserve(self.most);
                    self.bytes.reserve((self.most * len).min(BATCH_BYTES).max(len));
                }
                self.bytes.extend_from_slice(record);
                self.rows.push(Kept::Record { start, len, origin });
            }
            None => self.take_fields(row),
        }
        if self.is_full() || !self.off_page.is_empty() {
            row.clustered_key(&mut self.end);
            return Control::Pause;
        }
        Control::Continue
    }

    fn take_fields(&mut self, row: &Row<'_>) {
        let first = self.fields.len();
        self.rows.push(Kept::Fields(first));
        self.fields.resize_with(first + self.columns, || Stored::Null);
        row.for_each_column(|column, field| {
            let at = first + usize::from(column);
            match field {
                FieldRef::Null => {}
                FieldRef::Inline(bytes) => {
                    let start = self.bytes.len();
                    self.bytes.extend_from_slice(bytes);
                    self.fields[at] = Stored::Inline { start, len: bytes.len() };
                }
                FieldRef::External { prefix, reference } => {
                    self.off_page.push((at, OffPage::new(prefix, reference)));
                }
            }
        });
    }

    /// A field of the last row to be fetched, to be given back by [`ReadRows::fetched`].
    fn next_off_page(&mut self) -> Option<(usize, OffPage)> {
        self.off_page.pop()
    }

    /// The value of a field that was off-page.
    fn fetched(&mut self, field: usize, value: Vec<u8>) {
        self.fetched_bytes += value.len();
        self.fields[field] = Stored::Fetched(value);
    }

    /// The values of the row that was read first or last of those not shown yet.
    pub fn show(&mut self, last: bool) -> Option<Shown<'_>> {
        let table = self.table.as_deref().filter(|_| self.len() > 0)?;
        let row = if last { self.rows.len() - self.shown.1 - 1 } else { self.shown.0 };
        *(if last { &mut self.shown.1 } else { &mut self.shown.0 }) += 1;
        let row = match self.rows[row] {
            Kept::Record { start, len, origin } => {
                let bytes = &self.bytes[start..start + len];
                ShownRow::Record(RecordRef::new(bytes, origin, table.rows.clustered.def()))
            }
            Kept::Fields(first) => ShownRow::Fields(&self.bytes, &self.fields[first..first + self.columns]),
        };
        Some(Shown { table, row, columns: self.columns, column: 0, failure: None })
    }
}

/// The values of a row, made as they are asked for.
pub(super) struct Shown<'r> {
    table: &'r Table,
    row: ShownRow<'r>,
    columns: usize,
    column: usize,
    failure: Option<Error>,
}

enum ShownRow<'r> {
    Record(RecordRef<'r>),
    /// Fields, and the buffer that has them.
    Fields(&'r [u8], &'r [Stored]),
}

impl Shown<'_> {
    /// Why there was no next value, if it was not the last.
    pub fn failure(self) -> Option<Error> {
        self.failure
    }
}

impl<'r> Iterator for Shown<'r> {
    type Item = Value<'r>;

    #[inline]
    fn next(&mut self) -> Option<Value<'r>> {
        let column = self.column;
        if column == self.columns {
            return None;
        }
        self.column += 1;
        let bytes = match &self.row {
            ShownRow::Record(record) => {
                match record.field(self.table.rows.field_of_column(column as u16)).inline() {
                    Some(bytes) => bytes,
                    None => return Some(Value::Null),
                }
            }
            ShownRow::Fields(buffer, fields) => match &fields[column] {
                Stored::Null => return Some(Value::Null),
                Stored::Inline { start, len } => &buffer[*start..*start + *len],
                Stored::Fetched(bytes) => bytes,
            },
        };
        decode_borrowed(self.table, column, bytes).map_err(|error| self.failure = Some(error)).ok()
    }
}

impl Transaction {
    /// [`Self::read_ahead`] where nothing has to be waited for; `None` where it has, or there is an error:
    /// there are no rows then.
    pub(super) fn read_at_once(
        &mut self,
        table: &Arc<Table>,
        keys: &KeyRange,
        direction: Direction,
        rows: &mut ReadRows,
    ) -> Option<bool> {
        if !self.reads_at_once(table) {
            return None;
        }
        self.forget_conflict();
        let statement = Statement(self);
        rows.begin(table);
        let units = rows.units();
        let mut take = |row: &Row<'_>| {
            let control = rows.take(row);
            rows.off_page.is_empty().then_some(control)
        };
        let engine = statement.0.engine_mut();
        let state = txn::scan_at_once(engine, &table.rows, keys, direction, units, &mut take);
        if state.is_none() {
            rows.forget();
        }
        state.map(|state| state != ScanState::Finished)
    }

    /// Reads rows of a range of primary keys, as one statement, until `rows` takes no more; whether there may
    /// be more.
    pub(super) async fn read_ahead(
        &mut self,
        table: &Arc<Table>,
        keys: KeyRange,
        direction: Direction,
        rows: &mut ReadRows,
    ) -> Result<bool> {
        let (statement, table) = self.statement(table).await?;
        // Small batches see no end of the time slice, and this may be why there is a future.
        let slice = statement.0.engine().slice().clone();
        let worked = slice.work(rows.units()).await.map_err(Error::Transaction);
        let read = match worked {
            Ok(()) => statement.0.read_rows(&table, keys, direction, rows).await,
            Err(error) => Err(error),
        };
        read.map_err(|error| statement.0.failed(error))
    }

    /// How many rows a table has, as one statement.
    pub(super) async fn count_rows(&mut self, table: &Arc<Table>) -> Result<u64> {
        let (statement, table) = self.statement(table).await?;
        let mode = statement.0.read_lock(Lock::None)?.mode(WaitPolicy::Wait);
        let engine = statement.0.engine_mut();
        let counted = match mode {
            ReadMode::Locking { .. } => count_locked(engine, &table, mode).await,
            _ => txn::count(engine, &table.rows).await,
        };
        counted.map_err(|error| statement.0.failed(error.into()))
    }

    async fn read_rows(
        &mut self,
        table: &Arc<Table>,
        keys: KeyRange,
        direction: Direction,
        rows: &mut ReadRows,
    ) -> Result<bool> {
        let mode = self.read_lock(Lock::None)?.mode(WaitPolicy::Wait);
        rows.begin(table);
        let mut scan = Scan::new(table.rows.clone(), ScanIndex::Clustered, keys, direction, mode, false);
        loop {
            self.database().refuse_after_close()?;
            let state = scan.run(self.engine_mut(), &mut |row| rows.take(row)).await?;
            while let Some((field, value)) = rows.next_off_page() {
                let value = value.fetch(self.engine_mut(), &table.rows).await?;
                rows.fetched(field, value);
            }
            if state == ScanState::Finished || rows.is_full() {
                return Ok(state != ScanState::Finished);
            }
        }
    }
}

/// How many rows a table has, each of them locked.
async fn count_locked(
    engine: &mut txn::Transaction,
    table: &Table,
    mode: ReadMode,
) -> std::result::Result<u64, txn::Error> {
    let (keys, index) = (KeyRange::all(), ScanIndex::Clustered);
    let mut scan = Scan::new(table.rows.clone(), index, keys, Direction::Forward, mode, true);
    let mut rows = 0;
    let mut count = |_: &Row<'_>| {
        rows += 1;
        Control::Continue
    };
    scan.run(engine, &mut count).await?;
    Ok(rows)
}
