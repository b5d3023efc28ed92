//! A typed key-value table, for programs that come from redb or LMDB: the futures. [`crate::KeyValue`] has
//! the same operations, which block.
//!
//! A [`KeyValue`] is an ordinary table: the columns of the key (`k`, or `k1`, `k2`, … for a tuple) are its
//! primary key, those of the value (`v`, …) follow. It has everything tables have: the file can be exported
//! and opened by MySQL, and SQL can look into it. Keys are ordered as their Rust values are.

mod columns;
mod key_value_type;
mod pairs;
mod read_rows;

use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use smallvec::SmallVec;
use txn::{OnDuplicate, WaitPolicy};

pub use self::columns::{Columns, Key};
pub use self::key_value_type::KeyValueType;
pub use self::pairs::Pairs;

use self::columns::Values;
use self::key_value_type::{KEY_BYTES_MAX, rust_types};
use self::read_rows::Shown;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::row_values::BorrowedColumns;
use crate::rows::Lock;
use crate::schema::TableDef;
use crate::sorted_rows::KeyIsThere;
use crate::table::Table;
use crate::transaction::Transaction;
use crate::types::{EncodeError, Value};

/// Database that key-value tables live in.
const DATABASE: &str = "untorn";

/// A table from keys to values.
///
/// Its futures may be dropped at any await: a change that was cut is undone, whole, before the transaction
/// does anything else.
///
/// ```
/// # fn main() -> untorn::Result<()> {
/// # untorn::asynchronous::block_on(async {
/// let db = untorn::asynchronous::Database::in_memory().await?;
/// let ages = db.key_value::<String, u32>("ages").await?;
/// db.transact(async |mut t| ages.put(&mut t, "Ada", 36).await).await?;
///
/// let mut t = db.begin();
/// let mut pairs = ages.prefix(&mut t, "A");
/// while let Some((name, age)) = pairs.next_back().await? {
///     println!("{name}: {age}");
/// }
/// # Ok(())
/// # })
/// # }
/// ```
pub struct KeyValue<K, V> {
    table: Arc<Table>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Clone for KeyValue<K, V> {
    fn clone(&self) -> Self {
        KeyValue { table: self.table.clone(), types: PhantomData }
    }
}

impl Database {
    /// Opens a key-value table, or creates it.
    ///
    /// # Errors
    /// [`Error::OtherDefinition`] for a table of this name with other types.
    pub async fn key_value<K: Key, V: Columns>(&self, name: &str) -> Result<KeyValue<K, V>> {
        let keys = K::key_columns("k");
        let names: Vec<&str> = keys.iter().map(|column| column.name.as_str()).collect();
        let columns = [keys.clone(), V::columns("v")].concat();
        let wanted = TableDef::new(columns.clone()).primary_key(&names);
        let table = self.definitions().open_or_create_table(DATABASE, name, wanted).await?;
        let key = table.def.clustered_key().map_or(&[][..], |key| &key.parts);
        let is_key = key.len() == keys.len()
            && key.iter().enumerate().all(|(at, part)| usize::from(part.column) == at);
        let same_columns = columns.len() == table.def.columns.len()
            && columns.iter().zip(&table.def.columns).all(|(asked, there)| {
                asked.name.eq_ignore_ascii_case(&there.name) && asked.difference_in(there).is_none()
            });
        if !same_columns || !is_key {
            // In the types of Rust, which is what was asked for.
            return Err(Error::OtherDefinition {
                table: format!("{DATABASE}.{name}"),
                difference: describe(&table),
            });
        }
        Ok(KeyValue { table, types: PhantomData })
    }
}

impl<K: Key, V: Columns> KeyValue<K, V> {
    /// The value of a key.
    ///
    /// # Errors
    /// Those of [`Transaction::get`], as for the other functions that read.
    pub async fn get(&self, transaction: &mut Transaction, key: K::Ref<'_>) -> Result<Option<V>> {
        match self.get_at_once(transaction, key) {
            Some(found) => found,
            None => self.find(transaction, key, Lock::None, WaitPolicy::Wait).await,
        }
    }

    /// The value of a key, if nothing has to be waited for.
    pub(crate) fn get_at_once(
        &self,
        transaction: &mut Transaction,
        key: K::Ref<'_>,
    ) -> Option<Result<Option<V>>> {
        let key = K::values(key);
        let columns = key.len()..self.table.def.columns.len();
        let wanted = columns.len();
        let found = transaction.look_at_once(&self.table, &key, |row| {
            let columns = BorrowedColumns::new(&self.table, row, columns);
            let values: SmallVec<[Value<'static>; 4]> = columns.map(Value::into_owned).collect();
            (values.len() == wanted).then_some(values)
        })?;
        // The type may be anybody's, and do what it likes: the page is not latched any more. What cannot be
        // made of the row the future says, too.
        let Some(values) = found else { return Some(Ok(None)) };
        V::take(&mut values.into_iter()).map(|value| Ok(Some(value)))
    }

    /// Shows the value of a key to `look` where it lies, without a copy; `None`, and `look` is not called, if
    /// the key is absent. While it looks, nobody changes what lies beside the value: it should be quick, and
    /// use the database in no way.
    ///
    /// ```
    /// # fn main() -> untorn::Result<()> {
    /// # untorn::asynchronous::block_on(async {
    /// # let db = untorn::asynchronous::Database::in_memory().await?;
    /// # let pages = db.key_value::<String, Vec<u8>>("pages").await?;
    /// # db.transact(async |mut t| pages.put(&mut t, "/", b"<html>").await).await?;
    /// let mut t = db.begin();
    /// let length = pages.look(&mut t, "/", |page| page.len()).await?;
    /// assert_eq!(length, Some(6));
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`KeyValue::get`].
    pub async fn look<R>(
        &self,
        transaction: &mut Transaction,
        key: K::Ref<'_>,
        look: impl FnOnce(V::Ref<'_>) -> R,
    ) -> Result<Option<R>> {
        let mut look = Some(look);
        match self.look_at_once(transaction, key, &mut look) {
            Some(found) => Ok(found),
            None => self.look_later(transaction, key, look).await,
        }
    }

    /// [`Self::look`], if nothing has to be waited for.
    pub(crate) fn look_at_once<R>(
        &self,
        transaction: &mut Transaction,
        key: K::Ref<'_>,
        look: &mut Option<impl FnOnce(V::Ref<'_>) -> R>,
    ) -> Option<Option<R>> {
        let key = K::values(key);
        let columns = key.len()..self.table.def.columns.len();
        transaction.look_at_once(&self.table, &key, |row| {
            let value = V::look(&mut BorrowedColumns::new(&self.table, row, columns))?;
            look.take().map(|look| look(value))
        })
    }

    /// [`Self::look`] at a copy.
    pub(crate) async fn look_later<R>(
        &self,
        transaction: &mut Transaction,
        key: K::Ref<'_>,
        look: Option<impl FnOnce(V::Ref<'_>) -> R>,
    ) -> Result<Option<R>> {
        let found = self.find(transaction, key, Lock::None, WaitPolicy::Wait).await?;
        Ok(found.zip(look).map(|(value, look)| look(value.given())))
    }

    /// The value that the columns behind the key are.
    fn value(&self, found: Option<Values<'static>>) -> Result<Option<V>> {
        found.map(|row| V::take(&mut row.into_iter()).ok_or_else(|| wrong_types(&self.table))).transpose()
    }

    /// The newest value of a key, locked for a change: to read, compute and [`KeyValue::put`] without losing
    /// what others put in between.
    ///
    /// If the key is absent, the gap around it is locked: other transactions cannot insert neighbouring keys
    /// until this one ends. Use [`KeyValue::insert`] or [`KeyValue::put`] where you can, and commit soon.
    ///
    /// # Errors
    /// Those of [`KeyValue::get_for_update_or`].
    pub async fn get_for_update(&self, transaction: &mut Transaction, key: K::Ref<'_>) -> Result<Option<V>> {
        self.get_for_update_or(transaction, key, WaitPolicy::Wait).await
    }

    /// Like [`KeyValue::get_for_update`], but does not wait: if another transaction has locked the row, fails
    /// with [`TransactionError::NoWaitLocked`](crate::TransactionError::NoWaitLocked) or treats it as absent,
    /// as `wait` says.
    ///
    /// # Errors
    /// Those of [`Transaction::get_or`].
    pub async fn get_for_update_or(
        &self,
        transaction: &mut Transaction,
        key: K::Ref<'_>,
        wait: WaitPolicy,
    ) -> Result<Option<V>> {
        self.find(transaction, key, Lock::Exclusive, wait).await
    }

    pub(crate) async fn find(
        &self,
        transaction: &mut Transaction,
        key: K::Ref<'_>,
        lock: Lock,
        wait: WaitPolicy,
    ) -> Result<Option<V>> {
        let key = K::values(key);
        let columns = key.len()..self.table.def.columns.len();
        let row = transaction.get_columns::<Values<'static>>(&self.table, &key, lock, wait, columns).await;
        self.value(row.map_err(|error| about_keys(&self.table, error))?)
    }

    /// Sets the value of a key, whether it is there or not; true if the key is new.
    ///
    /// # Errors
    /// Those of [`Transaction::update`].
    pub async fn put(
        &self,
        transaction: &mut Transaction,
        key: K::Ref<'_>,
        value: V::Ref<'_>,
    ) -> Result<bool> {
        let put = transaction.put(&self.table, &row(K::values(key), V::values(value))).await;
        put.map_err(|error| about_keys(&self.table, error))
    }

    /// Sets the value of a key that is not there yet; false, and nothing changes, if it is.
    ///
    /// # Errors
    /// Those of [`Transaction::insert`], but for the duplicate key.
    pub async fn insert(
        &self,
        transaction: &mut Transaction,
        key: K::Ref<'_>,
        value: V::Ref<'_>,
    ) -> Result<bool> {
        let inserted = transaction.insert(&self.table, &row(K::values(key), V::values(value))).await;
        is_new(inserted).map_err(|error| about_keys(&self.table, error))
    }

    /// Inserts pairs as one statement: all of them, or none.
    ///
    /// # Errors
    /// [`TransactionError::DuplicateKey`](crate::TransactionError::DuplicateKey) when one of the keys is
    /// there.
    pub async fn insert_all<'v>(
        &self,
        transaction: &mut Transaction,
        pairs: impl IntoIterator<Item = (K::Ref<'v>, V::Ref<'v>)>,
    ) -> Result<()> {
        self.write_all(transaction, pairs, KeyIsThere::Fail).await.map(drop)
    }

    /// Sets the values of many keys as one statement: of all of them, or of none. Returns how many keys are
    /// new. Of several values for the same key the last one is set.
    ///
    /// They are put in the order of their keys, which makes it faster than [`KeyValue::put`] for each, the
    /// more pairs there are. All of them are in memory meanwhile.
    ///
    /// # Errors
    /// Those of [`KeyValue::put`].
    pub async fn put_all<'v>(
        &self,
        transaction: &mut Transaction,
        pairs: impl IntoIterator<Item = (K::Ref<'v>, V::Ref<'v>)>,
    ) -> Result<u64> {
        self.write_all(transaction, pairs, KeyIsThere::Change).await
    }

    async fn write_all<'v>(
        &self,
        transaction: &mut Transaction,
        pairs: impl IntoIterator<Item = (K::Ref<'v>, V::Ref<'v>)>,
        key_is_there: KeyIsThere,
    ) -> Result<u64> {
        let rows = pairs.into_iter().map(|(key, value)| row(K::values(key), V::values(value)));
        let written = transaction.write_sorted(&self.table, rows, key_is_there).await;
        written.map_err(|error| about_keys(&self.table, error))
    }

    /// Sets, changes or removes the value of a key as `change` says, which is given the newest one. Nobody
    /// else changes the key meanwhile, so this is also compare-and-swap. If the key was absent
    /// and another transaction inserts it meanwhile, the closure runs again. Returns what is there now.
    ///
    /// If the key is absent, the gap around it is locked: other transactions cannot insert neighbouring keys
    /// until this one ends. Use [`KeyValue::insert`] or [`KeyValue::put`] where you can, and commit soon.
    ///
    /// # Errors
    /// Those of [`KeyValue::get_for_update`] and [`KeyValue::put`].
    pub async fn change(
        &self,
        transaction: &mut Transaction,
        key: K::Ref<'_>,
        mut change: impl FnMut(Option<V>) -> Option<V>,
    ) -> Result<Option<V>> {
        loop {
            let old = self.get_for_update(transaction, key).await?;
            let was_there = old.is_some();
            let new = change(old);
            match &new {
                Some(value) if was_there => _ = self.put(transaction, key, value.given()).await?,
                Some(value) if !self.put_new(transaction, key, value.given()).await? => continue,
                None if was_there => _ = self.remove(transaction, key).await?,
                _ => {}
            }
            return Ok(new);
        }
    }

    /// Puts a key that is not there; false if somebody was faster. The key is locked then.
    async fn put_new(
        &self,
        transaction: &mut Transaction,
        key: K::Ref<'_>,
        value: V::Ref<'_>,
    ) -> Result<bool> {
        let row = row(K::values(key), V::values(value));
        is_new(transaction.insert_with(&self.table, &row, OnDuplicate::Change).await)
            .map_err(|error| about_keys(&self.table, error))
    }

    /// Removes a key; false if it was not there.
    ///
    /// # Errors
    /// Those of [`Transaction::delete`].
    pub async fn remove(&self, transaction: &mut Transaction, key: K::Ref<'_>) -> Result<bool> {
        let removed = transaction.delete(&self.table, &K::values(key)).await;
        removed.map_err(|error| about_keys(&self.table, error))
    }

    /// Removes all pairs, as TRUNCATE does: outside any transaction, and at once however many there are.
    ///
    /// # Errors
    /// [`Error::ForeignTable`] when the table is one of another database; those of
    /// [`Database::truncate_table`].
    pub async fn clear(&self, database: &Database) -> Result<()> {
        // What tells versions of a table from other tables is unique in its own database only.
        if !database.owns(&self.table) {
            return Err(Error::ForeignTable(self.table.database.clone(), self.table.name.clone()));
        }
        // By the name that it has now.
        let table = database.successor(&self.table)?;
        database.truncate_table(&table.database, &table.name).await
    }

    /// The pair with the least key.
    ///
    /// # Errors
    /// Those of [`Pairs::next`].
    pub async fn first(&self, transaction: &mut Transaction) -> Result<Option<(K, V)>> {
        self.iter(transaction).one_by_one().next().await
    }

    /// The pair with the greatest key.
    ///
    /// # Errors
    /// Those of [`Pairs::next`].
    pub async fn last(&self, transaction: &mut Transaction) -> Result<Option<(K, V)>> {
        self.iter(transaction).one_by_one().next_back().await
    }

    /// How many pairs there are. That is mostly known. Where it is not (after a crash, for instance, until
    /// somebody has asked), and to a transaction that has read before others committed new pairs, it goes
    /// through all of them, and copies none.
    ///
    /// # Errors
    /// Those of [`Pairs::next`].
    pub async fn count(&self, transaction: &mut Transaction) -> Result<u64> {
        transaction.count_rows(&self.table).await
    }

    /// All pairs in the order of their keys, from both ends.
    pub fn iter<'t>(&self, transaction: &'t mut Transaction) -> Pairs<'t, K, V> {
        Pairs::new(transaction, self.table.clone(), Bound::Unbounded, Bound::Unbounded)
    }

    /// The pairs whose keys lie in a range, in order, from both ends: `range(t, "a".."c")`, `range(t,
    /// 5..=9)`, `range(t, (2026, "Ada")..(2027, ""))`.
    pub fn range<'t, 'k>(
        &self,
        transaction: &'t mut Transaction,
        keys: impl RangeBounds<K::Ref<'k>>,
    ) -> Pairs<'t, K, V> {
        let values = |bound: Bound<&K::Ref<'k>>| bound.map(|key| K::values(*key));
        let (lower, upper) = (values(keys.start_bound()), values(keys.end_bound()));
        Pairs::new(transaction, self.table.clone(), slice(&lower), slice(&upper))
    }
}

impl<V: Columns> KeyValue<String, V> {
    /// The pairs whose keys begin with `prefix`, in order, from both ends.
    pub fn prefix<'t>(&self, transaction: &'t mut Transaction, prefix: &str) -> Pairs<'t, String, V> {
        Pairs::of_prefix(transaction, self.table.clone(), prefix.as_bytes())
    }
}

impl<V: Columns> KeyValue<Vec<u8>, V> {
    /// The pairs whose keys begin with `prefix`, in order, from both ends.
    pub fn prefix<'t>(&self, transaction: &'t mut Transaction, prefix: &[u8]) -> Pairs<'t, Vec<u8>, V> {
        Pairs::of_prefix(transaction, self.table.clone(), prefix)
    }
}

impl<A: Key, B: Key, V: Columns> KeyValue<(A, B), V> {
    /// The pairs whose keys have this first member, in order of the second, from both ends.
    pub fn of<'t>(&self, transaction: &'t mut Transaction, first: A::Ref<'_>) -> Pairs<'t, (A, B), V> {
        let first = A::values(first);
        Pairs::new(transaction, self.table.clone(), Bound::Included(&first), Bound::Included(&first))
    }
}

impl<A: Key, B: Key, C: Key, V: Columns> KeyValue<(A, B, C), V> {
    /// The pairs whose keys have this first member, in order of the others, from both ends.
    pub fn of<'t>(&self, transaction: &'t mut Transaction, first: A::Ref<'_>) -> Pairs<'t, (A, B, C), V> {
        let first = A::values(first);
        Pairs::new(transaction, self.table.clone(), Bound::Included(&first), Bound::Included(&first))
    }
}

/// Whether a pair was inserted; that its key is there is an answer, and no error.
fn is_new(inserted: Result<Option<u64>>) -> Result<bool> {
    match inserted {
        Ok(_) => Ok(true),
        Err(error) if error.is_duplicate_primary_key() => Ok(false),
        Err(error) => Err(error),
    }
}

fn row<'v, 'k: 'v, 'w: 'v>(key: Values<'k>, value: Values<'w>) -> Values<'v> {
    let mut row = Values::new();
    key.into_iter().for_each(|value| row.push(value));
    value.into_iter().for_each(|value| row.push(value));
    row
}

fn slice<'b, 'v>(bound: &'b Bound<Values<'v>>) -> Bound<&'b [Value<'v>]> {
    bound.as_ref().map(|values| &values[..])
}

/// The key and the value of a row.
fn pair<K: Columns, V: Columns>(table: &Table, mut row: Shown<'_>) -> Result<(K, V)> {
    let mut values = row.by_ref().map(Value::into_owned);
    let key = K::take(&mut values);
    let value = V::take(&mut values);
    key.zip(value).ok_or_else(|| row.failure().unwrap_or_else(|| wrong_types(table)))
}

/// The same where they lie.
fn pair_in_place<'r, K: Columns, V: Columns>(
    table: &Table,
    mut row: Shown<'r>,
) -> Result<(K::Ref<'r>, V::Ref<'r>)> {
    let key = K::look(&mut row);
    let value = V::look(&mut row);
    key.zip(value).ok_or_else(|| row.failure().unwrap_or_else(|| wrong_types(table)))
}

/// The columns of a table that is no table of the wanted types.
fn describe(table: &Table) -> String {
    let columns = table.def.columns.iter().map(|column| {
        let rust = rust_types(&column.kind);
        let rust = if column.nullable { format!("Option of {rust}") } else { rust };
        format!("{} is {rust}", column.name)
    });
    let key = table.def.clustered_key().map_or(&[][..], |key| &key.parts);
    let parts = key.iter().filter_map(|part| table.def.columns.get(usize::from(part.column)));
    let parts: Vec<&str> = parts.map(|column| column.name.as_str()).collect();
    format!("{}; the key is {}", columns.collect::<Vec<_>>().join(", "), parts.join(", "))
}

/// That a key is too long, in words about keys: the caller knows nothing of columns.
fn about_keys(table: &Table, error: Error) -> Error {
    match error {
        // The columns of values are named `v`.
        Error::Value { column, why: EncodeError::TooLong } if column.starts_with('k') => {
            Error::KeyTooLong { table: table.name.clone(), limit: KEY_BYTES_MAX }
        }
        error => error,
    }
}

/// Strings and byte vectors are the same columns, so either may open what the other wrote.
fn wrong_types(table: &Table) -> Error {
    Error::UnreadablePair { table: table.name.clone() }
}
