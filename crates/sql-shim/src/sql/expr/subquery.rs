//! Results of subqueries.

use std::collections::HashSet;

use untorn::types::Collation;

use super::any_equal;
use crate::result::SqlError;
use crate::sql::value::{Value, collation, compare};

/// The result of a subquery, executed before the statement that holds it.
#[derive(Clone, Debug, Default)]
pub struct SubqueryResult {
    /// First column of every row.
    pub values: Vec<Value<'static>>,
    has_null: bool,
    index: Index,
}

/// The values as a set, where they are of one kind: `x IN (SELECT …)` then looks once for each row.
#[derive(Clone, Debug, Default)]
enum Index {
    #[default]
    None,
    Integers(HashSet<i128>),
    Texts(Collation, HashSet<Vec<u8>>),
}

/// Fewer values than this are compared one by one.
const INDEXED_MIN: usize = 8;

/// Bytes that an entry of the set takes beside its own.
const ENTRY_BYTES: usize = 48;

fn integer(value: &Value<'_>) -> Option<i128> {
    match value {
        Value::Int(v) => Some(i128::from(*v)),
        Value::UInt(v) => Some(i128::from(*v)),
        _ => None,
    }
}

impl SubqueryResult {
    /// The result with these values.
    pub fn new(values: Vec<Value<'static>>) -> SubqueryResult {
        let has_null = values.iter().any(Value::is_null);
        SubqueryResult { values, has_null, index: Index::None }
    }

    /// Makes the set, if there is one; `charge` says whether it may be so long.
    pub fn index(&mut self, mut charge: impl FnMut(usize) -> Result<(), SqlError>) -> Result<(), SqlError> {
        if self.values.len() < INDEXED_MIN {
            return Ok(());
        }
        let mut present = self.values.iter().filter(|value| !value.is_null());
        if present.clone().all(|value| integer(value).is_some()) {
            charge(self.values.len() * ENTRY_BYTES)?;
            self.index = Index::Integers(present.filter_map(integer).collect());
            return Ok(());
        }
        let Some(Value::Text(_, rule)) = present.next() else { return Ok(()) };
        let rule = *rule;
        let mut keys = HashSet::new();
        for value in self.values.iter().filter(|value| !value.is_null()) {
            let Some(key) = text_key(value, rule) else { return Ok(()) };
            charge(key.len() + ENTRY_BYTES)?;
            keys.insert(key);
        }
        self.index = Index::Texts(rule, keys);
        Ok(())
    }

    /// Whether the value is among them; `None` for unknown.
    pub fn contains(&self, value: &Value<'_>) -> Option<bool> {
        if self.values.is_empty() {
            return Some(false);
        }
        if value.is_null() {
            return None;
        }
        let found = match (&self.index, value) {
            (Index::Integers(set), Value::Int(_) | Value::UInt(_)) => {
                integer(value).is_some_and(|value| set.contains(&value))
            }
            (Index::Texts(rule, set), Value::Text(..)) => match text_key(value, *rule) {
                Some(key) => set.contains(&key),
                None => return self.compare_all(value),
            },
            _ => return self.compare_all(value),
        };
        if found || !self.has_null { Some(found) } else { None }
    }

    fn compare_all(&self, value: &Value<'_>) -> Option<bool> {
        any_equal(self.values.iter().map(|item| compare::compare(value, item)))
    }
}

/// The key of a text under its collation, if that is the one of all.
fn text_key(value: &Value<'_>, wanted: Collation) -> Option<Vec<u8>> {
    match value {
        Value::Text(text, rule) if *rule == wanted => {
            let mut key = Vec::new();
            collation::sort_key(text, wanted, &mut key);
            Some(key)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indexed(values: Vec<Value<'static>>) -> SubqueryResult {
        let mut result = SubqueryResult::new(values);
        assert_eq!(result.index(|_| Ok(())), Ok(()));
        result
    }

    #[test]
    fn a_set_answers_like_comparing_one_by_one() {
        let integers: Vec<_> = (0..20).map(|v| Value::Int(v * 3)).chain([Value::UInt(u64::MAX)]).collect();
        let texts: Vec<_> = (0..20).map(|v| Value::text(format!("Word {v} "))).collect();
        let mut with_null = integers.clone();
        with_null.push(Value::Null);
        let mixed: Vec<_> = integers.iter().chain(&texts).cloned().collect();
        let mut looked_for: Vec<Value<'static>> = (0..40).map(Value::Int).collect();
        looked_for.extend((0..25).map(|v| Value::text(format!("WORD {v}"))));
        looked_for.extend([Value::Null, Value::UInt(u64::MAX), Value::Double(3.0), Value::text("6")]);
        for values in [Vec::new(), integers, texts, with_null, mixed] {
            let plain = SubqueryResult::new(values.clone());
            let set = indexed(values);
            for value in &looked_for {
                let wanted = if plain.values.is_empty() { Some(false) } else { plain.compare_all(value) };
                assert_eq!(set.contains(value), wanted, "{value:?} in {:?}", set.values);
            }
        }
    }
}
