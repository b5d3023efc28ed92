//! A typed key-value table, for programs that come from redb or LMDB.
//!
//! A [`KeyValue`] is an ordinary table of two columns, `k` (primary key) and `v`, with everything tables have:
//! the file can be exported and opened by MySQL, and SQL can look into it. Keys are ordered as their Rust values
//! are.

use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use crate::blocking::BlockingTransaction;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::rows::{OwnedRow, Range};
use crate::schema::{ColumnDef, TableDef};
use crate::table::Table;
use crate::types::{Collation, ColumnType, SizeClass, Value};

/// Database that key-value tables live in.
const DATABASE: &str = "untorn";

/// Longest text or byte key.
const KEY_BYTES_MAX: u32 = 700;

/// A Rust type that can be a column of a key-value table.
pub trait KeyValueType: Sized {
    /// The column type when it is a key; its order must be that of the Rust values.
    fn key_type() -> ColumnType;
    /// The column type when it is a value.
    fn value_type() -> ColumnType;
    /// As a value to store.
    fn to_value(&self) -> Value<'_>;
    /// From a stored value; `None` if it is of another kind.
    fn from_value(value: Value<'static>) -> Option<Self>;
}

macro_rules! integers {
    ($($rust:ty, $variant:ident, $wide:ty, $kind:expr;)*) => {$(
        impl KeyValueType for $rust {
            fn key_type() -> ColumnType { $kind }
            fn value_type() -> ColumnType { $kind }
            fn to_value(&self) -> Value<'_> { Value::$variant(<$wide>::from(*self)) }
            fn from_value(value: Value<'static>) -> Option<Self> {
                match value {
                    Value::$variant(v) => <$rust>::try_from(v).ok(),
                    _ => None,
                }
            }
        }
    )*};
}

integers! {
    i32, Int, i64, ColumnType::Int { unsigned: false };
    i64, Int, i64, ColumnType::BigInt { unsigned: false };
    u32, UInt, u64, ColumnType::Int { unsigned: true };
    u64, UInt, u64, ColumnType::BigInt { unsigned: true };
}

impl KeyValueType for String {
    fn key_type() -> ColumnType {
        // Bytes order as Rust strings do; a text collation would ignore trailing spaces.
        ColumnType::VarBinary { bytes: KEY_BYTES_MAX }
    }
    fn value_type() -> ColumnType {
        ColumnType::Text { size: SizeClass::Long, collation: Collation::Utf8mb4Bin }
    }
    fn to_value(&self) -> Value<'_> {
        Value::bytes(self)
    }
    fn from_value(value: Value<'static>) -> Option<Self> {
        match value {
            Value::Bytes(bytes) => String::from_utf8(bytes.into_owned()).ok(),
            _ => None,
        }
    }
}

impl KeyValueType for Vec<u8> {
    fn key_type() -> ColumnType {
        ColumnType::VarBinary { bytes: KEY_BYTES_MAX }
    }
    fn value_type() -> ColumnType {
        ColumnType::Blob { size: SizeClass::Long }
    }
    fn to_value(&self) -> Value<'_> {
        Value::bytes(self)
    }
    fn from_value(value: Value<'static>) -> Option<Self> {
        match value {
            Value::Bytes(bytes) => Some(bytes.into_owned()),
            _ => None,
        }
    }
}

/// A table from keys to values.
///
/// ```
/// # fn main() -> untorn::Result<()> {
/// # let directory = untorn::doc_test_directory();
/// let db = untorn::Database::open(untorn::Options::new(&directory).buffer_pool_bytes(16 << 20))?;
/// let ages = db.key_value::<String, u32>("ages")?;
///
/// let mut t = db.begin();
/// ages.put(&mut t, &"Ada".to_owned(), &36)?;
/// ages.put(&mut t, &"Alan".to_owned(), &41)?;
/// t.commit()?;
///
/// let mut t = db.begin();
/// assert_eq!(ages.get(&mut t, &"Ada".to_owned())?, Some(36));
/// assert_eq!(ages.range(&mut t, .."Alan".to_owned())?.len(), 1);
/// # drop(t);
/// db.close_blocking()?;
/// # std::fs::remove_dir_all(directory).ok();
/// # Ok(())
/// # }
/// ```
pub struct KeyValue<K, V> {
    table: Arc<Table>,
    types: PhantomData<fn() -> (K, V)>,
}

impl Database {
    /// Opens a key-value table, or makes it.
    ///
    /// # Errors
    /// A table of this name with other types.
    pub fn key_value<K: KeyValueType, V: KeyValueType>(&self, name: &str) -> Result<KeyValue<K, V>> {
        let columns = vec![ColumnDef::new("k", K::key_type()), ColumnDef::new("v", V::value_type())];
        let table =
            self.create_table_if_missing(DATABASE, name, TableDef::new(columns.clone()).primary_key(&["k"]))?;
        if table.def.columns != columns {
            return Err(Error::Setting {
                setting: "key_value",
                why: format!("table '{DATABASE}.{name}' exists with other types of key or value"),
            });
        }
        Ok(KeyValue { table, types: PhantomData })
    }
}

impl<K: KeyValueType, V: KeyValueType> KeyValue<K, V> {
    /// The value of a key.
    pub fn get(&self, transaction: &mut BlockingTransaction, key: &K) -> Result<Option<V>> {
        match transaction.get(&self.table, &[key.to_value()])? {
            Some(row) => Ok(Some(self.pair(row)?.1)),
            None => Ok(None),
        }
    }

    /// The newest value of a key, locked for a change: to read, compute and [`KeyValue::put`] without losing what others
    /// put in between.
    pub fn get_for_update(&self, transaction: &mut BlockingTransaction, key: &K) -> Result<Option<V>> {
        match transaction.get_for_update(&self.table, &[key.to_value()])? {
            Some(row) => Ok(Some(self.pair(row)?.1)),
            None => Ok(None),
        }
    }

    /// Sets the value of a key, whether it is there or not; true if the key is new.
    pub fn put(&self, transaction: &mut BlockingTransaction, key: &K, value: &V) -> Result<bool> {
        loop {
            if transaction.update(&self.table, &[key.to_value()], &[("v", value.to_value())])? {
                return Ok(false);
            }
            match transaction.insert_to_put(&self.table, &[key.to_value(), value.to_value()]) {
                Ok(_) => return Ok(true),
                // Somebody else has put it in between. It is locked now, so it stays to be updated.
                Err(Error::Transaction(txn::Error::DuplicateKey { .. })) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Removes a key; false if it was not there.
    pub fn remove(&self, transaction: &mut BlockingTransaction, key: &K) -> Result<bool> {
        transaction.delete(&self.table, &[key.to_value()])
    }

    /// The pairs whose keys lie in a range, in order.
    pub fn range(
        &self,
        transaction: &mut BlockingTransaction,
        keys: impl RangeBounds<K>,
    ) -> Result<Vec<(K, V)>> {
        fn bound<'a, K: KeyValueType>(bound: Bound<&'a K>) -> Bound<Vec<Value<'a>>> {
            bound.map(|key| vec![key.to_value()])
        }
        let mut range = Range::all();
        range.lower = bound(keys.start_bound());
        range.upper = bound(keys.end_bound());
        transaction.collect(&self.table, &range)?.into_iter().map(|row| self.pair(row)).collect()
    }

    fn pair(&self, row: OwnedRow) -> Result<(K, V)> {
        let mut values = row.into_iter();
        let key = values.next().and_then(K::from_value);
        let value = values.next().and_then(V::from_value);
        key.zip(value).ok_or_else(|| {
            Error::Internal(format!("a row of '{}' is not of the types of the table", self.table.name))
        })
    }
}
