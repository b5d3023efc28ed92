//! Going through a key-value table from both ends.
//!
//! Pairs are read in batches, by a search for the key behind the last one. Each batch makes the range that is
//! left smaller at its end, so that the two ends never meet the same pair, whatever others change meanwhile.
//! A batch whose future is dropped has made nothing smaller: it is read again.

use std::marker::PhantomData;
use std::ops::Bound;
use std::sync::Arc;

use txn::{Direction, KeyRange};

use super::columns::{Columns, Values};
use super::pair;
use super::read_rows::ReadRows;
use crate::error::Result;
use crate::rows::encode_bound;
use crate::table::Table;
use crate::transaction::Transaction;
use crate::types::Value;

/// Rows of the first batch; each one after has four times as many, up to the second number. A row that nobody
/// wants costs a copy, a batch a search.
const BATCH_ROWS: (usize, usize) = (16, 256);

/// The pairs of a range of keys. At REPEATABLE READ they are those of one moment; at READ COMMITTED each
/// batch is a statement.
///
/// After an error there are no more pairs. A future that is dropped changes nothing: the next one gives the
/// pair that it would have given.
pub struct Pairs<'t, K, V> {
    transaction: &'t mut Transaction,
    table: Arc<Table>,
    /// The range that was asked for.
    lower: Bound<Vec<Value<'static>>>,
    upper: Bound<Vec<Value<'static>>>,
    /// Keys that were not read yet, from the first batch on.
    left: Option<KeyRange>,
    /// There are none.
    exhausted: bool,
    /// Rows in front of the range that is left, and behind it, these from the last one down.
    front: ReadRows,
    back: ReadRows,
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
        let (front, back) = (ReadRows::default(), ReadRows::default());
        let (left, exhausted, batch_rows, types) = (None, false, BATCH_ROWS.0, PhantomData);
        Pairs { transaction, table, lower, upper, left, exhausted, front, back, batch_rows, types }
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
    async fn read(&mut self, from_the_end: bool) -> Result<()> {
        if self.exhausted {
            return Ok(());
        }
        let place = if from_the_end { &mut self.back } else { &mut self.front };
        // Cut here, the rows are lost, and read again.
        let mut rows = std::mem::take(place);
        match self.read_into(&mut rows, from_the_end).await {
            Ok(more) => self.exhausted = !more,
            Err(error) => {
                self.end();
                return Err(error);
            }
        }
        self.batch_rows = (self.batch_rows * 4).min(BATCH_ROWS.1);
        if let (false, Some(left)) = (self.exhausted, &mut self.left) {
            let end = if from_the_end { &mut left.upper } else { &mut left.lower };
            *end = Bound::Excluded(rows.end().clone());
        }
        *(if from_the_end { &mut self.back } else { &mut self.front }) = rows;
        Ok(())
    }

    /// Reads a batch; whether there may be more rows.
    async fn read_into(&mut self, rows: &mut ReadRows, from_the_end: bool) -> Result<bool> {
        let left = match &self.left {
            Some(left) => left.clone(),
            None => {
                let lower = encode_bound(&self.table, &self.lower)?;
                self.left.insert(KeyRange { lower, upper: encode_bound(&self.table, &self.upper)? }).clone()
            }
        };
        let direction = if from_the_end { Direction::Backward } else { Direction::Forward };
        rows.set_most(self.batch_rows);
        self.transaction.read_ahead(&self.table, left, direction, rows).await
    }

    /// There are no more pairs.
    fn end(&mut self) {
        self.exhausted = true;
        self.front = ReadRows::default();
        self.back = ReadRows::default();
    }

    /// The next pair from the front.
    ///
    /// # Errors
    /// Those of [`Transaction::scan`] and [`Rows::next`](crate::asynchronous::Rows::next).
    pub async fn next(&mut self) -> Result<Option<(K, V)>> {
        if self.front.len() == 0 {
            self.read(false).await?;
        }
        // The back was read from its end.
        let row = self.front.show(false).or_else(|| self.back.show(true));
        self.shown(row)
    }

    /// The next pair from the back.
    ///
    /// # Errors
    /// Those of [`Pairs::next`].
    pub async fn next_back(&mut self) -> Result<Option<(K, V)>> {
        if self.back.len() == 0 {
            self.read(true).await?;
        }
        let row = self.back.show(false).or_else(|| self.front.show(true));
        self.shown(row)
    }

    fn shown(&mut self, row: Option<Result<Values<'static>>>) -> Result<Option<(K, V)>> {
        let pair = row.map(|row| pair(&self.table, row?)).transpose();
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
            pairs.read(false).await.unwrap();
            assert_eq!(pairs.front.len(), 3);
            pairs.read(true).await.unwrap();
            assert_eq!(pairs.back.len(), 3);
            let mut all = 0;
            while let Some((key, _)) = pairs.next().await.unwrap() {
                assert_eq!(key, all);
                all += 1;
            }
            assert_eq!(all, 40);
        });
    }
}
