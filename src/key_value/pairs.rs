//! Going through a key-value table from both ends.
//!
//! Pairs are read in batches, by a search for the key behind the last one. Each batch makes the range that is
//! left smaller at its end, so that the two ends never meet the same pair, whatever others change meanwhile.
//! A batch whose future is dropped has made nothing smaller: it is read again.
//!
//! Where nothing has to be waited for there is no future, for a batch as little as for a pair that is read
//! already (see [`crate::point_read`]).

use std::marker::PhantomData;
use std::ops::Bound;
use std::sync::Arc;

use txn::{Direction, KeyRange};

use super::columns::Columns;
use super::read_rows::{ReadRows, Shown};
use super::{about_keys, pair, pair_in_place};
use crate::error::{Error, Result};
use crate::row_values::encode_bound;
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
    /// Keys that were not read yet.
    left: KeyRange,
    /// There are none.
    exhausted: bool,
    /// A pair could not be shown.
    failed: bool,
    /// Why there is no such range, for the first who asks.
    refused: Option<Error>,
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
        lower: Bound<&[Value<'_>]>,
        upper: Bound<&[Value<'_>]>,
    ) -> Pairs<'t, K, V> {
        let (encoded, _) = transaction.reading();
        let lower = encode_bound(&table, lower, encoded);
        let upper = encode_bound(&table, upper, encoded);
        let (left, refused) = match lower.and_then(|lower| Ok(KeyRange { lower, upper: upper? })) {
            Ok(left) => (left, None),
            Err(error) => (KeyRange::all(), Some(about_keys(&table, error))),
        };
        let (front, back) = (ReadRows::default(), ReadRows::default());
        let (exhausted, failed, batch_rows, types) = (false, false, BATCH_ROWS.0, PhantomData);
        Pairs { transaction, table, left, exhausted, failed, refused, front, back, batch_rows, types }
    }

    pub(super) fn of_prefix(
        transaction: &'t mut Transaction,
        table: Arc<Table>,
        prefix: &[u8],
    ) -> Pairs<'t, K, V> {
        let first = [Value::bytes(prefix)];
        let lower = Bound::Included(&first[..]);
        // The least key that is greater than all with the prefix: its last byte that is not the greatest one
        // goes up.
        let Some(at) = prefix.iter().rposition(|byte| *byte != u8::MAX) else {
            return Pairs::new(transaction, table, lower, Bound::Unbounded);
        };
        let mut end = prefix[..=at].to_vec();
        end[at] += 1;
        Pairs::new(transaction, table, lower, Bound::Excluded(&[Value::bytes(&end)]))
    }

    /// Begins with a batch of one pair: a read that locks takes no more than it shows.
    pub(super) fn one_by_one(mut self) -> Self {
        self.batch_rows = 1;
        self
    }

    /// Reads the next rows at one end of the range that is left, if nothing has to be waited for. False: it
    /// is left to [`Self::read`].
    fn read_at_once(&mut self, from_the_end: bool) -> bool {
        if self.exhausted {
            return true;
        }
        if self.refused.is_some() {
            return false;
        }
        let rows = if from_the_end { &mut self.back } else { &mut self.front };
        rows.set_most(self.batch_rows);
        let direction = direction(from_the_end);
        let Some(more) = self.transaction.read_at_once(&self.table, &self.left, direction, rows) else {
            return false;
        };
        self.has_read(more, from_the_end);
        true
    }

    /// Reads the next rows at one end of the range that is left.
    async fn read(&mut self, from_the_end: bool) -> Result<()> {
        if self.exhausted {
            return Ok(());
        }
        if let Some(error) = self.refused.take() {
            self.end();
            return Err(error);
        }
        let place = if from_the_end { &mut self.back } else { &mut self.front };
        // Cut here, the rows are lost, and read again.
        let mut rows = std::mem::take(place);
        rows.set_most(self.batch_rows);
        let left = self.left.clone();
        let read = self.transaction.read_ahead(&self.table, left, direction(from_the_end), &mut rows).await;
        *(if from_the_end { &mut self.back } else { &mut self.front }) = rows;
        match read {
            Ok(more) => self.has_read(more, from_the_end),
            Err(error) => {
                self.end();
                return Err(error);
            }
        }
        Ok(())
    }

    /// A batch is there; whether there may be more rows.
    fn has_read(&mut self, more: bool, from_the_end: bool) {
        self.exhausted = !more;
        self.batch_rows = (self.batch_rows * 4).min(BATCH_ROWS.1);
        if more {
            let (rows, end) = match from_the_end {
                true => (&self.back, &mut self.left.upper),
                false => (&self.front, &mut self.left.lower),
            };
            *end = Bound::Excluded(rows.end().clone());
        }
    }

    /// There are no more pairs.
    fn end(&mut self) {
        self.exhausted = true;
        self.front = ReadRows::default();
        self.back = ReadRows::default();
    }

    /// The next pair from one end, if nothing has to be waited for.
    #[inline]
    pub(crate) fn next_at_once(&mut self, from_the_end: bool) -> Option<Result<Option<(K, V)>>> {
        self.is_read_at_once(from_the_end).then(|| self.shown(from_the_end))
    }

    /// Whether the next pair from one end is there, or that there is none, with nothing waited for.
    #[inline]
    pub(crate) fn is_read_at_once(&mut self, from_the_end: bool) -> bool {
        let rows = if from_the_end { &self.back } else { &self.front };
        rows.len() > 0 || self.failed || self.read_at_once(from_the_end)
    }

    /// The next pair from the front, where it lies among those that were read.
    ///
    /// # Errors
    /// Those of [`Pairs::next`].
    pub async fn next_in_place(&mut self) -> Result<Option<(K::Ref<'_>, V::Ref<'_>)>> {
        if !self.is_read_at_once(false) {
            self.read(false).await?;
        }
        self.shown_in_place(false)
    }

    /// The next pair from the back, likewise.
    ///
    /// # Errors
    /// Those of [`Pairs::next`].
    pub async fn next_back_in_place(&mut self) -> Result<Option<(K::Ref<'_>, V::Ref<'_>)>> {
        if !self.is_read_at_once(true) {
            self.read(true).await?;
        }
        self.shown_in_place(true)
    }

    /// The next pair from the front.
    ///
    /// # Errors
    /// Those of [`Transaction::scan`] and [`Rows::next`](crate::asynchronous::Rows::next).
    pub async fn next(&mut self) -> Result<Option<(K, V)>> {
        self.next_from(false).await
    }

    /// The next pair from the back.
    ///
    /// # Errors
    /// Those of [`Pairs::next`].
    pub async fn next_back(&mut self) -> Result<Option<(K, V)>> {
        self.next_from(true).await
    }

    async fn next_from(&mut self, the_end: bool) -> Result<Option<(K, V)>> {
        if let Some(found) = self.next_at_once(the_end) {
            return found;
        }
        self.read(the_end).await?;
        self.shown(the_end)
    }

    /// The next of the pairs that are read.
    fn shown(&mut self, from_the_end: bool) -> Result<Option<(K, V)>> {
        self.show(from_the_end, pair)
    }

    /// The same where it lies.
    pub(crate) fn shown_in_place(&mut self, from_the_end: bool) -> Result<Option<(K::Ref<'_>, V::Ref<'_>)>> {
        self.show(from_the_end, pair_in_place::<K, V>)
    }

    #[inline]
    fn show<'s, R>(
        &'s mut self,
        from_the_end: bool,
        make: impl FnOnce(&'s Table, Shown<'s>) -> Result<R>,
    ) -> Result<Option<R>> {
        if self.failed {
            return Ok(None);
        }
        let (own, other) = match from_the_end {
            true => (&mut self.back, &mut self.front),
            false => (&mut self.front, &mut self.back),
        };
        // What the other end has read is in front of it, in the other order.
        let row = if own.len() > 0 { own.show(false) } else { other.show(true) };
        let shown = row.map(|row| make(&self.table, row)).transpose();
        self.failed = shown.is_err();
        shown
    }
}

fn direction(from_the_end: bool) -> Direction {
    if from_the_end { Direction::Backward } else { Direction::Forward }
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

    fn key_at_once<V: Columns>(pairs: &mut Pairs<'_, u32, V>, from_the_end: bool) -> Option<u32> {
        pairs.next_at_once(from_the_end)?.unwrap().map(|(key, _)| key)
    }

    #[test]
    fn a_batch_that_waits_for_nothing_has_no_future() {
        disk::block_on(async {
            let db = Database::in_memory().await.unwrap();
            let values = db.key_value::<u32, Vec<u8>>("values").await.unwrap();
            let mut t = db.begin();
            for key in 0..600 {
                let len = if key == 300 { 100_000 } else { 10 };
                values.put(&mut t, key, &vec![7; len]).await.unwrap();
            }
            t.commit(txn::Durability::NoSync).await.unwrap();

            let mut t = db.begin();
            t.engine().slice().measure_in_units(u32::MAX);
            let mut pairs = values.iter(&mut t);
            assert_eq!(key_at_once(&mut pairs, false), Some(0), "the first batch begins to use the table");
            drop(pairs);
            let read = t.engine().rows_read();
            let mut pairs = values.range(&mut t, 10..);
            assert!((10..90).all(|key| key_at_once(&mut pairs, false) == Some(key)));
            assert_eq!(key_at_once(&mut pairs, false), None, "the third batch has a value that is off-page");
            assert!((0..200).all(|back| key_at_once(&mut pairs, true) == Some(599 - back)));
            for key in 90..400 {
                assert_eq!(pairs.next().await.unwrap().unwrap().0, key);
            }
            assert_eq!(key_at_once(&mut pairs, false), None);
            assert!(pairs.exhausted);
            drop(pairs);
            assert_eq!(t.engine().rows_read(), read + 590, "what is left to the future is not counted");

            t.engine().slice().measure_in_units(1);
            let mut pairs = values.iter(&mut t);
            assert_eq!(key_at_once(&mut pairs, false), None, "others have their turn first");
            {
                let mut next = std::pin::pin!(pairs.next());
                let mut context = std::task::Context::from_waker(std::task::Waker::noop());
                assert!(std::future::Future::poll(next.as_mut(), &mut context).is_pending(), "their turn");
                assert_eq!(next.await.unwrap().unwrap().0, 0);
            }
            drop(pairs);
            t.engine().slice().measure_in_units(u32::MAX);
            t.engine_mut().kill_handle().kill();
            assert_eq!(key_at_once(&mut values.iter(&mut t), false), None, "it was killed");
            t.engine_mut().clear_kill();
            t.rollback().await.unwrap();

            let mut locking = db.begin_at(txn::Isolation::Serializable);
            assert_eq!(values.first(&mut locking).await.unwrap().unwrap().0, 0);
            assert_eq!(key_at_once(&mut values.iter(&mut locking), false), None, "it locks");
        });
    }

    #[test]
    fn a_range_with_an_end_that_is_no_key_is_refused_once() {
        disk::block_on(async {
            let db = Database::in_memory().await.unwrap();
            let values = db.key_value::<Vec<u8>, u32>("values").await.unwrap();
            let mut t = db.begin();
            values.put(&mut t, b"a", 1).await.unwrap();
            let long = [0; 701];
            let mut pairs = values.range(&mut t, &long[..]..);
            assert!(matches!(pairs.next().await, Err(Error::KeyTooLong { .. })));
            assert_eq!(pairs.next().await.unwrap(), None);
            assert_eq!(values.count(&mut t).await.unwrap(), 1);
        });
    }
}
