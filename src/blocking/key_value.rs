//! A typed key-value table for programs without an executor, see [`crate::asynchronous::KeyValue`].

use std::ops::RangeBounds;

use disk::block_on;
use txn::WaitPolicy;

use super::database::Database;
use super::transaction::Transaction;
use crate::asynchronous;
use crate::error::Result;
use crate::key_value::{Columns, Key};
use crate::rows::Lock;

/// A table from keys to values.
///
/// ```
/// # fn main() -> untorn::Result<()> {
/// # let directory = untorn::doc_test_directory();
/// let db = untorn::Database::open(untorn::Options::new(&directory).buffer_pool_bytes(16 << 20))?;
/// let ages = db.key_value::<String, u32>("ages")?;
///
/// let mut t = db.begin();
/// ages.put(&mut t, "Ada", 36)?;
/// ages.put(&mut t, "Alan", 41)?;
/// t.commit()?;
///
/// let mut t = db.begin();
/// assert_eq!(ages.get(&mut t, "Ada")?, Some(36));
/// assert_eq!(ages.last(&mut t)?, Some(("Alan".to_owned(), 41)));
/// for pair in ages.range(&mut t, "A".."B").rev() {
///     let (name, age) = pair?;
///     println!("{name}: {age}");
/// }
/// # drop(t);
/// db.close()?;
/// # std::fs::remove_dir_all(directory).ok();
/// # Ok(())
/// # }
/// ```
pub struct KeyValue<K, V>(asynchronous::KeyValue<K, V>);

impl<K, V> Clone for KeyValue<K, V> {
    fn clone(&self) -> Self {
        KeyValue(self.0.clone())
    }
}

/// The pairs of a range of keys. At REPEATABLE READ they are those of one moment; at READ COMMITTED each
/// batch is a statement.
///
/// After an error there are no more pairs.
pub struct Pairs<'t, K, V>(asynchronous::Pairs<'t, K, V>);

impl<K: Columns, V: Columns> Pairs<'_, K, V> {
    /// The next pair from the front, where it lies among those that were read: for those who need no copy.
    ///
    /// # Errors
    /// Those of the iterator.
    pub fn next_in_place(&mut self) -> Result<Option<(K::Ref<'_>, V::Ref<'_>)>> {
        if self.0.is_read_at_once(false) {
            return self.0.shown_in_place(false);
        }
        block_on(self.0.next_in_place())
    }

    /// The next pair from the back, likewise.
    ///
    /// # Errors
    /// Those of the iterator.
    pub fn next_back_in_place(&mut self) -> Result<Option<(K::Ref<'_>, V::Ref<'_>)>> {
        if self.0.is_read_at_once(true) {
            return self.0.shown_in_place(true);
        }
        block_on(self.0.next_back_in_place())
    }
}

impl<K: Columns, V: Columns> Iterator for Pairs<'_, K, V> {
    type Item = Result<(K, V)>;

    fn next(&mut self) -> Option<Result<(K, V)>> {
        let found = self.0.next_at_once(false);
        found.unwrap_or_else(|| block_on(self.0.next())).transpose()
    }
}

impl<K: Columns, V: Columns> DoubleEndedIterator for Pairs<'_, K, V> {
    fn next_back(&mut self) -> Option<Result<(K, V)>> {
        let found = self.0.next_at_once(true);
        found.unwrap_or_else(|| block_on(self.0.next_back())).transpose()
    }
}

impl Database {
    /// Opens a key-value table, or creates it.
    ///
    /// # Errors
    /// A table of this name with other types.
    pub fn key_value<K: Key, V: Columns>(&self, name: &str) -> Result<KeyValue<K, V>> {
        block_on(self.asynchronous().key_value(name)).map(KeyValue)
    }
}

impl<K: Key, V: Columns> KeyValue<K, V> {
    /// The value of a key.
    ///
    /// # Errors
    /// Those of [`Transaction::get`], as for the other functions that read.
    pub fn get(&self, transaction: &mut Transaction, key: K::Ref<'_>) -> Result<Option<V>> {
        match self.0.get_at_once(transaction.inner_mut(), key) {
            Some(found) => found,
            None => block_on(self.0.find(transaction.inner_mut(), key, Lock::None, WaitPolicy::Wait)),
        }
    }

    /// Shows the value of a key to `look` where it lies, without a copy; `None`, and `look` is not called, if
    /// the key is absent. While it looks, nobody changes what lies beside the value: it should be quick, and
    /// use the database in no way.
    ///
    /// ```
    /// # fn main() -> untorn::Result<()> {
    /// # let db = untorn::Database::in_memory()?;
    /// # let pages = db.key_value::<String, Vec<u8>>("pages")?;
    /// # db.transact(|t| pages.put(t, "/", b"<html>"))?;
    /// let mut t = db.begin();
    /// assert_eq!(pages.look(&mut t, "/", |page| page.len())?, Some(6));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`KeyValue::get`].
    pub fn look<R>(
        &self,
        transaction: &mut Transaction,
        key: K::Ref<'_>,
        look: impl FnOnce(V::Ref<'_>) -> R,
    ) -> Result<Option<R>> {
        let mut look = Some(look);
        match self.0.look_at_once(transaction.inner_mut(), key, &mut look) {
            Some(found) => Ok(found),
            None => block_on(self.0.look_later(transaction.inner_mut(), key, look)),
        }
    }

    /// The newest value of a key, locked for a change: to read, compute and [`KeyValue::put`] without losing
    /// what others put in between.
    ///
    /// If the key is absent, the gap around it is locked: other transactions cannot insert neighbouring keys
    /// until this one ends. Use [`KeyValue::insert`] or [`KeyValue::put`] where you can, and commit soon.
    ///
    /// # Errors
    /// Those of [`Transaction::get_for_update`].
    pub fn get_for_update(&self, transaction: &mut Transaction, key: K::Ref<'_>) -> Result<Option<V>> {
        block_on(self.0.get_for_update(transaction.inner_mut(), key))
    }

    /// Like [`KeyValue::get_for_update`], but does not wait: if another transaction has locked the row, fails
    /// with [`TransactionError::NoWaitLocked`](crate::TransactionError::NoWaitLocked) or treats it as absent,
    /// as `wait` says.
    ///
    /// # Errors
    /// Those of [`Transaction::get_for_update_or`].
    pub fn get_for_update_or(
        &self,
        transaction: &mut Transaction,
        key: K::Ref<'_>,
        wait: WaitPolicy,
    ) -> Result<Option<V>> {
        block_on(self.0.get_for_update_or(transaction.inner_mut(), key, wait))
    }

    /// Sets the value of a key, whether it is there or not; true if the key is new.
    ///
    /// # Errors
    /// Those of [`Transaction::update`], as for the other functions that change.
    pub fn put(&self, transaction: &mut Transaction, key: K::Ref<'_>, value: V::Ref<'_>) -> Result<bool> {
        block_on(self.0.put(transaction.inner_mut(), key, value))
    }

    /// Sets the value of a key that is not there yet; false, and nothing changes, if it is.
    ///
    /// # Errors
    /// Those of [`Transaction::insert`], but for the duplicate key.
    pub fn insert(&self, transaction: &mut Transaction, key: K::Ref<'_>, value: V::Ref<'_>) -> Result<bool> {
        block_on(self.0.insert(transaction.inner_mut(), key, value))
    }

    /// Inserts pairs as one statement: all of them, or none.
    ///
    /// # Errors
    /// [`TransactionError::DuplicateKey`](crate::TransactionError::DuplicateKey) when one of the keys is
    /// there.
    pub fn insert_all<'v>(
        &self,
        transaction: &mut Transaction,
        pairs: impl IntoIterator<Item = (K::Ref<'v>, V::Ref<'v>)>,
    ) -> Result<()> {
        block_on(self.0.insert_all(transaction.inner_mut(), pairs))
    }

    /// Sets the values of many keys as one statement: of all of them, or of none. Returns how many keys are
    /// new. Of several values for the same key the last one is set.
    ///
    /// They are put in the order of their keys, which makes it faster than [`KeyValue::put`] for each, the
    /// more pairs there are. All of them are in memory meanwhile.
    ///
    /// ```
    /// # fn main() -> untorn::Result<()> {
    /// let db = untorn::Database::in_memory()?;
    /// let squares = db.key_value::<u64, u64>("squares")?;
    /// let mut t = db.begin();
    /// assert_eq!(squares.put_all(&mut t, (0..1000).map(|n| (n, n * n)))?, 1000);
    /// t.commit()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`KeyValue::put`].
    pub fn put_all<'v>(
        &self,
        transaction: &mut Transaction,
        pairs: impl IntoIterator<Item = (K::Ref<'v>, V::Ref<'v>)>,
    ) -> Result<u64> {
        block_on(self.0.put_all(transaction.inner_mut(), pairs))
    }

    /// Sets, changes or removes the value of a key as `change` says, which is given the newest one. Nobody
    /// else changes the key meanwhile, so this is also compare-and-swap. If the key was absent
    /// and another transaction inserts it meanwhile, the closure runs again. Returns what is there now.
    ///
    /// If the key is absent, the gap around it is locked: other transactions cannot insert neighbouring keys
    /// until this one ends. Use [`KeyValue::insert`] or [`KeyValue::put`] where you can, and commit soon.
    ///
    /// ```
    /// # fn main() -> untorn::Result<()> {
    /// let db = untorn::Database::in_memory()?;
    /// let owner = db.key_value::<String, u64>("owner")?;
    /// // Takes the lease where nobody has it, and leaves it with its holder.
    /// let holder = db.transact(|t| owner.change(t, "lease", |holder| holder.or(Some(7))))?;
    /// assert_eq!(holder, Some(7));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`KeyValue::get_for_update`] and [`KeyValue::put`].
    pub fn change(
        &self,
        transaction: &mut Transaction,
        key: K::Ref<'_>,
        change: impl FnMut(Option<V>) -> Option<V>,
    ) -> Result<Option<V>> {
        block_on(self.0.change(transaction.inner_mut(), key, change))
    }

    /// Removes a key; false if it was not there.
    ///
    /// # Errors
    /// Those of [`Transaction::delete`].
    pub fn remove(&self, transaction: &mut Transaction, key: K::Ref<'_>) -> Result<bool> {
        block_on(self.0.remove(transaction.inner_mut(), key))
    }

    /// Removes all pairs, as TRUNCATE does: outside any transaction, and at once however many there are.
    ///
    /// # Errors
    /// [`Error::ForeignTable`](crate::Error::ForeignTable) when the table is one of another database; those
    /// of [`Database::truncate_table`].
    pub fn clear(&self, database: &Database) -> Result<()> {
        block_on(self.0.clear(database.asynchronous()))
    }

    /// The pair with the least key.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn first(&self, transaction: &mut Transaction) -> Result<Option<(K, V)>> {
        block_on(self.0.first(transaction.inner_mut()))
    }

    /// The pair with the greatest key.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn last(&self, transaction: &mut Transaction) -> Result<Option<(K, V)>> {
        block_on(self.0.last(transaction.inner_mut()))
    }

    /// How many pairs there are. That is mostly known. Where it is not (after a crash, for instance, until
    /// somebody has asked), and to a transaction that has read before others committed new pairs, it goes
    /// through all of them, and copies none.
    ///
    /// # Errors
    /// Those of [`Transaction::get`].
    pub fn count(&self, transaction: &mut Transaction) -> Result<u64> {
        block_on(self.0.count(transaction.inner_mut()))
    }

    /// All pairs in the order of their keys, from both ends.
    pub fn iter<'t>(&self, transaction: &'t mut Transaction) -> Pairs<'t, K, V> {
        Pairs(self.0.iter(transaction.inner_mut()))
    }

    /// The pairs whose keys lie in a range, in order, from both ends: `range(t, "a".."c")`, `range(t,
    /// 5..=9)`, `range(t, (2026, "Ada")..(2027, ""))`.
    pub fn range<'t, 'k>(
        &self,
        transaction: &'t mut Transaction,
        keys: impl RangeBounds<K::Ref<'k>>,
    ) -> Pairs<'t, K, V> {
        Pairs(self.0.range(transaction.inner_mut(), keys))
    }
}

impl<V: Columns> KeyValue<String, V> {
    /// The pairs whose keys begin with `prefix`, in order, from both ends.
    pub fn prefix<'t>(&self, transaction: &'t mut Transaction, prefix: &str) -> Pairs<'t, String, V> {
        Pairs(self.0.prefix(transaction.inner_mut(), prefix))
    }
}

impl<V: Columns> KeyValue<Vec<u8>, V> {
    /// The pairs whose keys begin with `prefix`, in order, from both ends.
    pub fn prefix<'t>(&self, transaction: &'t mut Transaction, prefix: &[u8]) -> Pairs<'t, Vec<u8>, V> {
        Pairs(self.0.prefix(transaction.inner_mut(), prefix))
    }
}

impl<A: Key, B: Key, V: Columns> KeyValue<(A, B), V> {
    /// The pairs whose keys have this first member, in order of the second, from both ends.
    pub fn of<'t>(&self, transaction: &'t mut Transaction, first: A::Ref<'_>) -> Pairs<'t, (A, B), V> {
        Pairs(self.0.of(transaction.inner_mut(), first))
    }
}

impl<A: Key, B: Key, C: Key, V: Columns> KeyValue<(A, B, C), V> {
    /// The pairs whose keys have this first member, in order of the others, from both ends.
    pub fn of<'t>(&self, transaction: &'t mut Transaction, first: A::Ref<'_>) -> Pairs<'t, (A, B, C), V> {
        Pairs(self.0.of(transaction.inner_mut(), first))
    }
}
