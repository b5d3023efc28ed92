//! Point reads that wait for nothing, for rows and for key-value tables; batches of pairs are in
//! `key_value/read_rows.rs`. (SQL chooses its point read in `crates/sql/src/exec/select.rs`.)
//!
//! Mostly all that such a read needs is there: no definition waits for the table, no lock is wanted, the
//! pages are in memory, and no column is off-page. Then it is done here, without a future: the key is encoded
//! into a buffer of the transaction, and the columns that are wanted are copied once, out of the page. Where
//! anything else is met, an error too, nothing has happened, and the future (`rows.rs`) does it all from the
//! beginning. Each face tries this by itself, so that the blocking ones make no future for nothing.

use std::ops::Range;
use std::sync::Arc;

use btree::KeyFields;
use txn::Row;

use crate::row_values::{copy_columns, encode_row_key};
use crate::statement::Statement;
use crate::table::Table;
use crate::transaction::Transaction;
use crate::types::Value;

impl Transaction {
    /// Whether a read of this table waits for nothing before it comes to the rows, and locks none.
    #[inline]
    pub(crate) fn reads_at_once(&mut self, table: &Arc<Table>) -> bool {
        !self.reads_lock() && self.database().refuse_after_close().is_ok() && self.uses_at_once(table)
    }

    /// Some columns of the row with this primary key, by their numbers, as a statement of its own that locks
    /// nothing: `Some(None)` where there is no such row, `None` where this has to be done by a future.
    pub(crate) fn get_at_once<V: Default + Extend<Value<'static>>>(
        &mut self,
        table: &Arc<Table>,
        key: &[Value<'_>],
        columns: Range<usize>,
    ) -> Option<Option<V>> {
        self.look_at_once(table, key, |row| {
            let mut values = V::default();
            // An error too is left to the future.
            let whole = copy_columns(table, row, columns, &mut values, |_, _, _| false);
            matches!(whole, Ok(true)).then_some(values)
        })
    }

    /// The same for what `look` makes of the row, or does not: then it is for the future too. `look` borrows
    /// the latched page.
    pub(crate) fn look_at_once<R>(
        &mut self,
        table: &Arc<Table>,
        key: &[Value<'_>],
        look: impl FnOnce(&Row<'_>) -> Option<R>,
    ) -> Option<Option<R>> {
        if !self.reads_at_once(table) {
            return None;
        }
        self.forget_conflict();
        let statement = Statement(self);
        let (encoded, rows) = statement.0.reading();
        encode_row_key(table, key, encoded).ok()?;
        let key: KeyFields<'_> = encoded.iter().collect();
        txn::get_at_once(rows, &table.rows, &key, look)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use txn::Isolation;

    use super::*;
    use crate::database::Database;
    use crate::rows::Lock;

    type Found = Option<Option<Vec<Value<'static>>>>;

    fn try_get(t: &mut Transaction, table: &Arc<Table>, key: u64) -> Found {
        t.get_at_once(table, &[Value::UInt(key)], 1..2)
    }

    #[test]
    fn only_what_waits_for_nothing_is_read_at_once() {
        disk::block_on(async {
            let db = Database::in_memory().await.unwrap();
            let pairs = db.key_value::<u64, Vec<u8>>("pairs").await.unwrap();
            let table = db.table("untorn", "pairs").unwrap();
            db.transact(async |mut t| {
                pairs.put(&mut t, 1, b"short").await?;
                pairs.put(&mut t, 2, &[7; 100_000]).await
            })
            .await
            .unwrap();
            let short = Some(Some(vec![Value::bytes(b"short").into_owned()]));

            let mut t = db.begin_at(Isolation::ReadCommitted);
            let mut request = table.metadata.request_exclusive(&db.0.tables.graph.owner());
            assert_eq!(try_get(&mut t, &table, 1), None, "a definition waits for the table");
            assert!(request.grant(0).is_ok(), "a read that was left to the future uses the table");
            drop(request);
            assert_eq!(try_get(&mut t, &table, 1), short, "the first read begins to use the table");
            let read = t.engine().rows_read();
            assert_eq!(try_get(&mut t, &table, 1), short);
            assert_eq!(try_get(&mut t, &table, 3), Some(None));
            assert_eq!(try_get(&mut t, &table, 2), None, "a value that is off-page");
            assert_eq!(t.engine().rows_read(), read + 1, "what is left to the future is not counted");
            assert_eq!(pairs.get(&mut t, 2).await.unwrap().map(|value| value.len()), Some(100_000));

            // Each is a statement: at READ COMMITTED it sees what was committed before it.
            let mut other = db.begin();
            pairs.put(&mut other, 3, b"new").await.unwrap();
            assert_eq!(try_get(&mut t, &table, 3), Some(None));
            other.commit(txn::Durability::NoSync).await.unwrap();
            assert_eq!(try_get(&mut t, &table, 3), Some(Some(vec![Value::bytes(b"new").into_owned()])));

            let mut locking = db.begin_at(Isolation::Serializable);
            locking.get(&table, &[Value::UInt(1)], Lock::Share).await.unwrap();
            assert_eq!(try_get(&mut locking, &table, 1), None, "at SERIALIZABLE it locks");
            locking.rollback().await.unwrap();

            t.engine_mut().kill_handle().kill();
            assert_eq!(try_get(&mut t, &table, 1), None, "it was killed");
            t.engine_mut().clear_kill();
            assert_eq!(try_get(&mut t, &table, 1), short);
            db.close().await.unwrap();
            assert_eq!(try_get(&mut t, &table, 1), None, "the database is closed");
        });
    }
}
