//! Iterating over a key-value table from both ends.
//!
//! Pairs are read in batches, by a search for the key behind the last one. Each batch makes the range that is
//! left smaller at its end, so that the two ends never meet the same pair, whatever others change meanwhile.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::Bound;
use std::sync::Arc;

use super::columns::Columns;
use super::key_value::pair;
use super::transaction::Transaction;
use crate::error::Result;
use crate::rows::{BATCH_BYTES, OwnedRow, Range, value_bytes};
use crate::table::Table;
use crate::types::Value;

/// Rows of the first batch; each one after has twice as many, up to the second number.
const BATCH_ROWS: (usize, usize) = (4, 128);

/// The pairs of a range of keys. At REPEATABLE READ they are those of one moment; at READ COMMITTED each
/// batch is a statement.
///
/// After an error there are no more pairs.
pub struct Pairs<'t, K, V> {
    transaction: &'t mut Transaction,
    table: Arc<Table>,
    /// Keys that were not read yet.
    lower: Bound<Vec<Value<'static>>>,
    upper: Bound<Vec<Value<'static>>>,
    /// There are none.
    exhausted: bool,
    /// Read and not shown, in order of keys: in front of the range that is left, and behind it.
    front: VecDeque<OwnedRow>,
    back: VecDeque<OwnedRow>,
    batch_rows: usize,
    types: PhantomData<fn() -> (K, V)>,
}

impl<'t, K: Columns, V: Columns> Pairs<'t, K, V> {
    pub(super) fn new(
        transaction: &'t mut Transaction,
        table: Arc<Table>,
        lower: Bound<Vec<Value<'static>>>,
        upper: Bound<Vec<Value<'static>>>,
    ) -> Pairs<'t, K, V> {
        let (front, back) = (VecDeque::new(), VecDeque::new());
        let (exhausted, batch_rows, types) = (false, BATCH_ROWS.0, PhantomData);
        Pairs { transaction, table, lower, upper, exhausted, front, back, batch_rows, types }
    }

    pub(super) fn of_prefix(
        transaction: &'t mut Transaction,
        table: Arc<Table>,
        prefix: &[u8],
    ) -> Pairs<'t, K, V> {
        let owned = |bytes: &[u8]| vec![Value::bytes(bytes).into_owned()];
        // The least key that is greater than all with the prefix: its last byte that is not the greatest one
        // goes up.
        let upper = match prefix.iter().rposition(|byte| *byte != u8::MAX) {
            Some(at) => {
                let mut end = prefix[..=at].to_vec();
                end[at] += 1;
                Bound::Excluded(owned(&end))
            }
            None => Bound::Unbounded,
        };
        Pairs::new(transaction, table, Bound::Included(owned(prefix)), upper)
    }

    /// Begins with a batch of one pair: a read that locks takes no more than it shows.
    pub(super) fn one_by_one(mut self) -> Self {
        self.batch_rows = 1;
        self
    }

    /// Reads the next rows at one end of the range that is left.
    fn read(&mut self, from_the_end: bool) -> Result<Vec<OwnedRow>> {
        let mut rows: Vec<OwnedRow> = Vec::new();
        if self.exhausted {
            return Ok(rows);
        }
        let mut range = Range::all();
        (range.lower, range.upper) = (self.lower.clone(), self.upper.clone());
        range.descending = from_the_end;
        let most = self.batch_rows;
        let read = self.transaction.scan(&self.table, &range).and_then(|scan| {
            let mut bytes = 0;
            for row in scan {
                let row = row?;
                bytes += row.iter().map(value_bytes).sum::<usize>();
                rows.push(row);
                if rows.len() == most || bytes >= BATCH_BYTES {
                    return Ok(true);
                }
            }
            Ok(false)
        });
        self.exhausted = !matches!(read, Ok(true));
        if let Err(error) = read {
            self.end();
            return Err(error);
        }
        self.batch_rows = (most * 2).min(BATCH_ROWS.1);
        let columns = self.table.def.clustered_key().map_or(1, |key| key.parts.len());
        if let Some(key) = rows.last().and_then(|row| row.get(..columns)) {
            let end = if from_the_end { &mut self.upper } else { &mut self.lower };
            *end = Bound::Excluded(key.to_vec());
        }
        Ok(rows)
    }

    /// There are no more pairs.
    fn end(&mut self) {
        self.exhausted = true;
        self.front.clear();
        self.back.clear();
    }

    fn shown(&mut self, row: Option<OwnedRow>) -> Option<Result<(K, V)>> {
        let pair = pair(&self.table, row?);
        if pair.is_err() {
            self.end();
        }
        Some(pair)
    }
}

impl<K: Columns, V: Columns> Iterator for Pairs<'_, K, V> {
    type Item = Result<(K, V)>;

    fn next(&mut self) -> Option<Result<(K, V)>> {
        if self.front.is_empty() {
            match self.read(false) {
                Ok(rows) => self.front.extend(rows),
                Err(error) => return Some(Err(error)),
            }
        }
        let row = self.front.pop_front().or_else(|| self.back.pop_front());
        self.shown(row)
    }
}

impl<K: Columns, V: Columns> DoubleEndedIterator for Pairs<'_, K, V> {
    fn next_back(&mut self) -> Option<Result<(K, V)>> {
        if self.back.is_empty() {
            match self.read(true) {
                Ok(rows) => self.back.extend(rows.into_iter().rev()),
                Err(error) => return Some(Err(error)),
            }
        }
        let row = self.back.pop_back().or_else(|| self.front.pop_back());
        self.shown(row)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Database;

    #[test]
    fn a_batch_is_bounded_by_bytes_too() {
        let db = Database::in_memory().unwrap();
        let values = db.key_value::<u32, Vec<u8>>("values").unwrap();
        db.transact(|t| (0..40).try_for_each(|key| values.put(t, key, &[7; 30_000]).map(drop))).unwrap();
        let mut t = db.begin();
        let mut pairs = values.iter(&mut t);
        pairs.batch_rows = BATCH_ROWS.1;
        assert_eq!(pairs.read(false).unwrap().len(), 3);
        assert_eq!(pairs.read(true).unwrap().len(), 3);
        assert_eq!(pairs.count(), 34);
    }
}
