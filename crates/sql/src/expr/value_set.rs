//! Sets of values: results of subqueries, and long lists of constants.

use std::collections::HashSet;
use std::sync::OnceLock;

use untorn::types::Collation;

use super::NODE_BYTES;
use crate::background_drop::discard;
use crate::result::SqlError;
use crate::value::{Value, collation, compare, decimal};

/// Values that others are looked for among: the result of a subquery, executed before the statement that
/// holds it, or a long list of constants.
#[derive(Clone, Debug, Default)]
pub struct ValueSet {
    /// Of a subquery: the first column of every row.
    pub values: Vec<Value<'static>>,
    has_null: bool,
    index: Index,
    /// Of constants: where those that differ are, in their order, without NULL.
    order: Vec<u32>,
    /// Texts as a set under another collation, once somebody of that one is looked for.
    other: OnceLock<(Collation, HashSet<Vec<u8>>)>,
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

impl ValueSet {
    /// The result with these values.
    pub fn new(values: Vec<Value<'static>>) -> ValueSet {
        let has_null = values.iter().any(Value::is_null);
        ValueSet { values, has_null, index: Index::None, order: Vec::new(), other: OnceLock::new() }
    }

    /// The constants of a list, if they are of one kind: integers or texts of one collation, and NULLs. Many
    /// take a while: this is the parser's business, which has a thread of its own for long statements.
    pub fn of_constants(values: Vec<Value<'static>>) -> Option<ValueSet> {
        let mut set = ValueSet::new(values);
        set.index(|_| Ok(())).ok()?;
        let present = set.values.iter().zip(0u32..);
        match &set.index {
            Index::None => return None,
            Index::Integers(_) => {
                let mut order: Vec<_> =
                    present.filter_map(|(value, at)| Some((integer(value)?, at))).collect();
                order.sort_unstable();
                order.dedup_by_key(|(value, _)| *value);
                set.order = order.into_iter().map(|(_, at)| at).collect();
            }
            Index::Texts(rule, _) => {
                let key = |value| text_key(value, *rule);
                let mut order: Vec<_> = present.filter_map(|(value, at)| Some((key(value)?, at))).collect();
                order.sort_unstable();
                order.dedup_by(|(left, _), (right, _)| left == right);
                set.order = order.into_iter().map(|(_, at)| at).collect();
            }
        }
        Some(set)
    }

    /// How many constants differ.
    pub fn distinct(&self) -> usize {
        self.order.len()
    }

    /// The constant of this number, in their order.
    pub fn ordered(&self, number: usize) -> Option<&Value<'static>> {
        self.values.get(*self.order.get(number)? as usize)
    }

    /// Whether all constants are integers.
    pub fn is_integers(&self) -> bool {
        matches!(self.index, Index::Integers(_))
    }

    /// Whether all constants are texts of this collation.
    pub fn is_texts_of(&self, wanted: Collation) -> bool {
        matches!(self.index, Index::Texts(rule, _) if rule == wanted)
    }

    /// The collation of the constants, if all are texts of one.
    pub fn rule_of_texts(&self) -> Option<Collation> {
        match self.index {
            Index::Texts(rule, _) => Some(rule),
            _ => None,
        }
    }

    /// The same constants, which are texts, under another collation.
    pub fn under(&self, rule: Collation) -> ValueSet {
        let value = |value: &Value<'static>| match value {
            Value::Text(text, _) => Value::Text(text.clone(), rule),
            other => other.clone(),
        };
        ValueSet::of_constants(self.values.iter().map(value).collect()).unwrap_or_else(|| self.clone())
    }

    /// Makes the set, if there is one; `charge` says whether it may have this length.
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

    /// Whether the value is among them; `None` for unknown. `work` is told the bytes that are about to be
    /// worked on.
    pub fn contains(
        &self,
        value: &Value<'_>,
        work: &dyn Fn(usize) -> Result<(), SqlError>,
    ) -> Result<Option<bool>, SqlError> {
        if self.values.is_empty() {
            return Ok(Some(false));
        }
        if value.is_null() {
            return Ok(None);
        }
        let found = match (&self.index, value) {
            (Index::Integers(set), Value::Int(_) | Value::UInt(_)) => {
                integer(value).is_some_and(|value| set.contains(&value))
            }
            // A number with a fraction is none of them.
            (Index::Integers(set), Value::Decimal(number)) => {
                let whole = number.with_scale(0);
                whole == *number && set.contains(&decimal::to_integer(&whole))
            }
            // Compared as doubles: below this each integer is one of its own.
            (Index::Integers(set), Value::Double(_) | Value::Float(_) | Value::Text(..))
                if value.to_double().abs() < EXACT_MAX =>
            {
                let number = value.to_double();
                number.fract() == 0.0 && set.contains(&(number as i128))
            }
            (Index::Texts(rule, set), Value::Text(text, of_value)) => {
                let common = collation::common(*rule, *of_value);
                if common == *rule {
                    set.contains(&sort_key(text, common))
                } else {
                    if self.other.get().is_none() {
                        work(self.values.len() * NODE_BYTES)?;
                    }
                    let other = self.other.get_or_init(|| (common, self.keys(common)));
                    if other.0 != common {
                        return self.compare_all(value, work);
                    }
                    other.1.contains(&sort_key(text, common))
                }
            }
            _ => return self.compare_all(value, work),
        };
        Ok(if found || !self.has_null { Some(found) } else { None })
    }

    /// The texts' keys under a collation.
    fn keys(&self, rule: Collation) -> HashSet<Vec<u8>> {
        let key = |value: &Value<'_>| match value {
            Value::Text(text, _) => Some(sort_key(text, rule)),
            _ => None,
        };
        self.values.iter().filter_map(key).collect()
    }

    fn compare_all(
        &self,
        value: &Value<'_>,
        work: &dyn Fn(usize) -> Result<(), SqlError>,
    ) -> Result<Option<bool>, SqlError> {
        let value = compare::Wanted::new(value);
        let mut unknown = false;
        for item in &self.values {
            work(NODE_BYTES)?;
            if let Value::Text(text, _) = item {
                work(text.len())?;
            }
            match value.is_equal(item) {
                Some(true) => return Ok(Some(true)),
                None => unknown = true,
                Some(false) => {}
            }
        }
        Ok(if unknown { None } else { Some(false) })
    }
}

impl PartialEq for ValueSet {
    fn eq(&self, other: &ValueSet) -> bool {
        let same = |(one, other): (&Value<'_>, &Value<'_>)| {
            one.is_null() == other.is_null() && one.to_text() == other.to_text()
        };
        std::mem::discriminant(&self.index) == std::mem::discriminant(&other.index)
            && self.values.len() == other.values.len()
            && self.values.iter().zip(&other.values).all(same)
    }
}

/// Integers below are doubles without a loss: 2^53.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Texts from this number on are given back on a thread of their own.
const TEXTS_APART: usize = 65_536;

impl Drop for ValueSet {
    fn drop(&mut self) {
        if self.values.len() >= TEXTS_APART && !self.is_integers() {
            discard((std::mem::take(&mut self.values), std::mem::take(&mut self.index), self.other.take()));
        }
    }
}

/// The key of a text under its collation, if that is the one of all.
fn text_key(value: &Value<'_>, wanted: Collation) -> Option<Vec<u8>> {
    match value {
        Value::Text(text, rule) if *rule == wanted => Some(sort_key(text, wanted)),
        _ => None,
    }
}

fn sort_key(text: &[u8], rule: Collation) -> Vec<u8> {
    let mut key = Vec::new();
    collation::sort_key(text, rule, &mut key);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indexed(values: Vec<Value<'static>>) -> ValueSet {
        let mut result = ValueSet::new(values);
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
        looked_for.extend([3.5, -3.0, 57.0, 1e300, u64::MAX as f64, f64::NAN].map(Value::Double));
        looked_for.extend(
            ["3", "3.5", "57.000", "-3", "18446744073709551615"]
                .map(|number| Value::Decimal(decimal::parse(number).unwrap_or_default())),
        );
        looked_for.extend(["6.5", "57 apples", "", "9007199254740993"].map(Value::text));
        for rule in [Collation::Utf8mb4Bin, Collation::Binary] {
            let words = ["Word 3 ", "Word 3", "word 3 ", "6"];
            looked_for.extend(words.map(|word| Value::Text(word.as_bytes().to_vec().into(), rule)));
        }
        for values in [Vec::new(), integers, texts, with_null, mixed] {
            let plain = ValueSet::new(values.clone());
            let set = indexed(values);
            for value in &looked_for {
                let answers = || plain.values.iter().map(|item| compare::compare(value, item));
                let one_by_one = match answers().any(|answer| answer.is_some_and(|answer| answer.is_eq())) {
                    true => Some(true),
                    false => answers().all(|answer| answer.is_some()).then_some(false),
                };
                let wanted = if plain.values.is_empty() || !value.is_null() { one_by_one } else { None };
                assert_eq!(set.contains(value, &|_| Ok(())), Ok(wanted), "{value:?} in {:?}", set.values);
                assert_eq!(plain.contains(value, &|_| Ok(())), Ok(wanted), "{value:?} in {:?}", set.values);
            }
        }
    }
}
