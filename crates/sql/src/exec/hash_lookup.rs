//! Joining a table in memory (a derived table, a view) by equalities: finding its rows by the values of the
//! joined columns.
//!
//! Whether a column can be looked up depends on its values: it takes part when all its values are exact
//! numbers, or all are texts of one collation, so that equal values have the same key. The value that is
//! looked for is of that kind, or the join reads all rows as without a key. The conditions are checked on the
//! rows that are found, so a key may say less than they do, never more.

use std::collections::HashMap;

use untorn::types::Collation;

use super::{Executor, KeptRows};
use crate::background_drop::discard;
use crate::expr::{Context, Expr};
use crate::failure::Failure;
use crate::memory::Charge;
use crate::plan::Step;
use crate::plan::access_path::equalities;
use crate::result::SqlError;
use crate::value::{Value, collation, decimal};

/// Fewer rows than this are read one by one.
const ROWS_MIN: usize = 8;

/// Bytes that an entry takes beside its key.
const ENTRY_BYTES: usize = 64;

/// The end of a chain.
const END: u32 = u32::MAX;

/// What the values of a column are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    Number,
    Text(Collation),
}

impl Class {
    fn of(value: &Value<'_>) -> Option<Class> {
        match value {
            Value::Int(_) | Value::UInt(_) | Value::Decimal(_) => Some(Class::Number),
            Value::Text(_, rule) => Some(Class::Text(*rule)),
            _ => None,
        }
    }

    /// Appends the key of a value; `false` when it has none.
    fn key(self, value: &Value<'_>, key: &mut Vec<u8>) -> bool {
        match (self, value) {
            (Class::Number, Value::Int(v)) => whole(i128::from(*v), key),
            (Class::Number, Value::UInt(v)) => whole(i128::from(*v), key),
            (Class::Number, Value::Decimal(v)) => {
                let truncated = v.with_scale(0);
                if truncated == *v {
                    whole(decimal::to_integer(&truncated), key);
                } else {
                    key.push(2);
                    key.extend_from_slice(v.normalized().to_plain_string().as_bytes());
                    key.push(0);
                }
            }
            (Class::Text(rule), Value::Text(text, of_value))
                if collation::common(rule, *of_value) == rule =>
            {
                collation::sort_key(text, rule, key);
            }
            _ => return false,
        }
        true
    }
}

fn whole(value: i128, key: &mut Vec<u8>) {
    key.push(1);
    key.extend_from_slice(&value.to_be_bytes());
}

/// Rows by their keys.
pub(super) struct HashLookup<'p, 'e> {
    /// Column, the kind of its values, and what it is equal to.
    columns: Vec<(u16, Class, &'p Expr)>,
    /// The first row of each key.
    first: HashMap<Vec<u8>, u32>,
    /// The next row of the same key.
    next: Vec<u32>,
    key: Vec<u8>,
    _charge: Charge<'e>,
}

/// Where the rows for a key begin.
pub(super) enum Found {
    /// All rows are to be read.
    Unknown,
    /// At this one, if there is any.
    Chain(Option<usize>),
}

/// Keys from this number on are given back on a thread of their own.
const KEYS_APART: usize = 16_384;

impl Drop for HashLookup<'_, '_> {
    fn drop(&mut self) {
        if self.first.len() >= KEYS_APART {
            discard(std::mem::take(&mut self.first));
        }
    }
}

impl HashLookup<'_, '_> {
    /// The rows that may meet the equalities with the rows before.
    pub(super) fn find(&mut self, cx: &Context<'_>) -> Result<Found, SqlError> {
        self.key.clear();
        for (_, class, wanted) in &self.columns {
            let value = wanted.eval(cx)?;
            if value.is_null() {
                return Ok(Found::Chain(None));
            }
            if !class.key(&value, &mut self.key) {
                return Ok(Found::Unknown);
            }
        }
        Ok(Found::Chain(self.first.get(&self.key).map(|row| *row as usize)))
    }

    /// The next row of the same key.
    pub(super) fn next(&self, row: usize) -> Option<usize> {
        self.next.get(row).filter(|next| **next != END).map(|next| *next as usize)
    }
}

impl<'e> Executor<'e> {
    /// The rows of a step by the columns that its conditions look for; `None` when that does not help.
    pub(super) async fn hash_lookup<'p>(
        &self,
        step: &'p Step,
        rows: &KeptRows<'e>,
    ) -> Result<Option<HashLookup<'p, 'e>>, Failure> {
        let count = rows.len();
        if count < ROWS_MIN || count >= END as usize {
            return Ok(None);
        }
        let mut columns = Vec::new();
        for (column, wanted) in equalities(&step.all_conditions, step.source as u16) {
            if let Some(class) = self.class(rows, column).await? {
                columns.push((column, class, wanted));
            }
        }
        if columns.is_empty() {
            return Ok(None);
        }
        let mut charge = self.state.memory.charge();
        let mut bytes = count * size_of::<u32>();
        let mut first: HashMap<Vec<u8>, u32> = HashMap::new();
        let mut next = vec![END; count];
        let mut key = Vec::new();
        // From the end, so that each chain has its rows in their order.
        for at in (0..count).rev() {
            self.tick(1).await?;
            let Some(row) = rows.get(at) else { continue };
            key.clear();
            let has_key = columns.iter().all(|(column, class, _)| {
                row.get(usize::from(*column)).is_some_and(|value| class.key(value, &mut key))
            });
            // NULL equals nothing.
            if !has_key {
                continue;
            }
            match first.get_mut(&key) {
                Some(head) => next[at] = std::mem::replace(head, at as u32),
                None => {
                    bytes += key.len() + ENTRY_BYTES;
                    first.insert(key.clone(), at as u32);
                }
            }
            if !charge.reach(bytes) {
                return Ok(None);
            }
        }
        Ok(Some(HashLookup { columns, first, next, key, _charge: charge }))
    }

    /// The class of all values of a column, if they have one.
    async fn class(&self, rows: &KeptRows<'e>, column: u16) -> Result<Option<Class>, Failure> {
        let mut class = None;
        for at in 0..rows.len() {
            self.tick(1).await?;
            let value = rows.get(at).and_then(|row| row.get(usize::from(column)));
            let Some(value) = value.filter(|value| !value.is_null()) else { continue };
            let own = Class::of(value);
            if own.is_none() || class.is_some_and(|class| Some(class) != own) {
                return Ok(None);
            }
            class = own;
        }
        Ok(class)
    }
}
