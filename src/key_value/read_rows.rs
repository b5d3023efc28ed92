//! Rows that a batch has read.
//!
//! A batch reads ahead, and who wants a few pairs never looks at the rest of it. So rows are kept in storage
//! encoding, in one buffer, and become values when they are shown.

use std::sync::Arc;

use btree::{FieldRef, OwnedKey};
use txn::{Control, Direction, KeyRange, Row, Scan, ScanIndex, ScanState, WaitPolicy};

use super::columns::Values;
use crate::error::Result;
use crate::rows::{BATCH_BYTES, Lock, decode};
use crate::table::Table;
use crate::transaction::Transaction;
use crate::types::Value;

/// A field of a row.
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

/// A field that is off-page.
struct OffPage {
    field: usize,
    prefix: Vec<u8>,
    reference: [u8; 20],
}

/// Rows of a table in the order in which they were read.
#[derive(Default)]
pub(super) struct ReadRows {
    /// As it was when they were read.
    table: Option<Arc<Table>>,
    bytes: Vec<u8>,
    /// Bytes of the fields that were off-page.
    fetched_bytes: usize,
    /// One for each column of the table, row after row.
    fields: Vec<Stored>,
    /// Those of the last row.
    off_page: Vec<OffPage>,
    /// Rows that were shown at either end.
    shown: (usize, usize),
    most: usize,
    /// The key of the last row, if the batch was full before the range ended.
    end: OwnedKey,
}

impl ReadRows {
    /// Forgets all rows; the next ones are of `table`.
    fn begin(&mut self, table: &Arc<Table>) {
        self.table = Some(table.clone());
        self.bytes.clear();
        self.fetched_bytes = 0;
        self.fields.clear();
        self.off_page.clear();
        self.shown = (0, 0);
    }

    /// Whether the batch has all rows that it may have.
    fn is_full(&self) -> bool {
        let fetched = self.fetched_bytes;
        self.fields.len() / self.columns() >= self.most || self.bytes.len() + fetched >= BATCH_BYTES
    }

    /// How many rows the next batch may have.
    pub fn set_most(&mut self, most: usize) {
        self.most = most;
    }

    /// Key of the last row, after [`Control::Pause`].
    pub fn end(&self) -> &OwnedKey {
        &self.end
    }

    fn columns(&self) -> usize {
        self.table.as_ref().map_or(1, |table| table.def.columns.len())
    }

    /// Rows that were not shown yet.
    pub fn len(&self) -> usize {
        self.fields.len() / self.columns() - self.shown.0 - self.shown.1
    }

    /// Takes a row; [`Control::Pause`] when the batch is full, or a field is to be fetched first.
    fn take(&mut self, row: &Row<'_>) -> Control {
        let columns = self.columns();
        for column in 0..columns {
            let stored = match row.column(column as u16) {
                FieldRef::Null => Stored::Null,
                FieldRef::Inline(bytes) => {
                    let start = self.bytes.len();
                    self.bytes.extend_from_slice(bytes);
                    Stored::Inline { start, len: bytes.len() }
                }
                FieldRef::External { prefix, reference } => {
                    let field = self.fields.len();
                    self.off_page.push(OffPage { field, prefix: prefix.to_vec(), reference: *reference });
                    Stored::Null
                }
            };
            self.fields.push(stored);
        }
        if self.is_full() || !self.off_page.is_empty() {
            row.clustered_key(&mut self.end);
            return Control::Pause;
        }
        Control::Continue
    }

    /// A field of the last row to be fetched, to be given back by [`ReadRows::fetched`].
    fn next_off_page(&mut self) -> Option<OffPage> {
        self.off_page.pop()
    }

    /// The value of a field that was off-page.
    fn fetched(&mut self, field: &OffPage, value: Vec<u8>) {
        self.fetched_bytes += value.len();
        self.fields[field.field] = Stored::Fetched(value);
    }

    /// The values of the row that was read first or last of those not shown yet.
    pub fn show(&mut self, last: bool) -> Option<Result<Values<'static>>> {
        let table = self.table.as_ref().filter(|_| self.len() > 0)?;
        let columns = self.columns();
        let row = if last { self.fields.len() / columns - self.shown.1 - 1 } else { self.shown.0 };
        let fields = &self.fields[row * columns..(row + 1) * columns];
        let decoded = fields.iter().enumerate().map(|(column, field)| match field {
            Stored::Null => Ok(Value::Null),
            Stored::Inline { start, len } => decode(table, column, &self.bytes[*start..*start + *len]),
            Stored::Fetched(bytes) => decode(table, column, bytes),
        });
        let values = decoded.collect();
        *(if last { &mut self.shown.1 } else { &mut self.shown.0 }) += 1;
        Some(values)
    }
}

impl Transaction {
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
        let read = statement.0.read_rows(&table, keys, direction, rows).await;
        read.map_err(|error| statement.0.failed(error))
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
            let state = scan.run(self.engine_mut(), &mut |row| rows.take(row)).await?;
            while let Some(field) = rows.next_off_page() {
                let (prefix, reference) = (&field.prefix, &field.reference);
                let value = txn::fetch_external(self.engine_mut(), &table.rows, prefix, reference).await?;
                rows.fetched(&field, value);
            }
            if state == ScanState::Finished || rows.is_full() {
                return Ok(state != ScanState::Finished);
            }
        }
    }
}
