//! Going through a key-value table from both ends.
//!
//! Pairs are read in batches, by a search for the key behind the last one. Each batch makes the range that is
//! left smaller at its end, so that the two ends never meet the same pair, whatever others change meanwhile.
//! A batch whose future is dropped has made nothing smaller: it is read again.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::Bound;
use std::sync::Arc;

use super::columns::Columns;
use super::pair;
use crate::error::Result;
use crate::rows::{BATCH_BYTES, OwnedRow, Range, value_bytes};
use crate::table::Table;
use crate::transaction::Transaction;
use crate::types::Value;

/// Rows of the first batch; each one after has twice as many, up to the second number.
const BATCH_ROWS: (usize, usize) = (4, 128);

/// The pairs of a range of keys. At REPEATABLE READ they are those of one moment; at READ COMMITTED each
/// batch is a statement.
///
/// After an error there are no more pairs. A future that is dropped changes nothing: the next one gives the
/// pair that it would have given.
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
    async fn read(&mut self, from_the_end: bool) -> Result<Vec<OwnedRow>> {
        let mut rows: Vec<OwnedRow> = Vec::new();
        if self.exhausted {
            return Ok(rows);
        }
        let mut range = Range::all();
        (range.lower, range.upper) = (self.lower.clone(), self.upper.clone());
        range.descending = from_the_end;
        let most = self.batch_rows;
        match self.gather(&range, most, &mut rows).await {
            Ok(more) => self.exhausted = !more,
            Err(error) => {
                self.end();
                return Err(error);
            }
        }
        self.batch_rows = (most * 2).min(BATCH_ROWS.1);
        let columns = self.table.def.clustered_key().map_or(1, |key| key.parts.len());
        if let Some(key) = rows.last().and_then(|row| row.get(..columns)) {
            let end = if from_the_end { &mut self.upper } else { &mut self.lower };
            *end = Bound::Excluded(key.to_vec());
        }
        Ok(rows)
    }

    /// Reads up to `most` rows of a range; whether there may be more.
    async fn gather(&mut self, range: &Range<'_>, most: usize, rows: &mut Vec<OwnedRow>) -> Result<bool> {
        let mut scan = self.transaction.scan(&self.table, range).await?;
        let mut bytes = 0;
        while let Some(row) = scan.next().await? {
            bytes += row.iter().map(value_bytes).sum::<usize>();
            rows.push(row);
            if rows.len() == most || bytes >= BATCH_BYTES {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// There are no more pairs.
    fn end(&mut self) {
        self.exhausted = true;
        self.front.clear();
        self.back.clear();
    }

    /// The next pair from the front.
    ///
    /// # Errors
    /// Those of [`Transaction::scan`] and [`Rows::next`](crate::asynchronous::Rows::next).
    pub async fn next(&mut self) -> Result<Option<(K, V)>> {
        if self.front.is_empty() {
            let rows = self.read(false).await?;
            self.front.extend(rows);
        }
        let row = self.front.pop_front().or_else(|| self.back.pop_front());
        self.shown(row)
    }

    /// The next pair from the back.
    ///
    /// # Errors
    /// Those of [`Pairs::next`].
    pub async fn next_back(&mut self) -> Result<Option<(K, V)>> {
        if self.back.is_empty() {
            let rows = self.read(true).await?;
            self.back.extend(rows.into_iter().rev());
        }
        let row = self.back.pop_back().or_else(|| self.front.pop_back());
        self.shown(row)
    }

    fn shown(&mut self, row: Option<OwnedRow>) -> Result<Option<(K, V)>> {
        let pair = row.map(|row| pair(&self.table, row)).transpose();
        if pair.is_err() {
            self.end();
        }
        pair
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::database::Database;

    #[test]
    fn a_batch_is_bounded_by_bytes_too() {
        disk::block_on(async {
            let db = Database::in_memory().await.unwrap();
            let values = db.key_value::<u32, Vec<u8>>("values").await.unwrap();
            let mut t = db.begin();
            for key in 0..40 {
                values.put(&mut t, key, &[7; 30_000]).await.unwrap();
            }
            let mut pairs = values.iter(&mut t);
            pairs.batch_rows = BATCH_ROWS.1;
            assert_eq!(pairs.read(false).await.unwrap().len(), 3);
            assert_eq!(pairs.read(true).await.unwrap().len(), 3);
            let mut rest = 0;
            while pairs.next().await.unwrap().is_some() {
                rest += 1;
            }
            assert_eq!(rest, 34);
        });
    }
}
