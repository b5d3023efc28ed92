//! Sorting: keys are encoded so that their plain byte order is the wanted order; rows go with them as bytes.
//! What does not fit in memory goes to a file in `untorn::engine`'s sorter (`src/sort/`).

use std::cmp::Ordering;

use bigdecimal::num_bigint::Sign;
use untorn::engine::TimeSlice;
use untorn::sort::{Order, Sorted, Sorter};

use super::spilled_values::{put_bytes, take_bytes};
use crate::context::SqlContext;
use crate::errors;
use crate::failure::Failure;
use crate::memory::Charge;
use crate::result::SqlError;
use crate::value::json::binary;
use crate::value::{Value, collation, temporal};

/// Appends the order-preserving form of a value: NULL first, all bytes inverted for a descending key.
pub fn push_key(value: &Value<'_>, descending: bool, key: &mut Vec<u8>) {
    let start = key.len();
    match value {
        Value::Null => key.push(0),
        value => {
            key.push(1);
            push_value(value, key);
        }
    }
    if descending {
        key[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

fn push_value(value: &Value<'_>, key: &mut Vec<u8>) {
    match value {
        Value::Null => {}
        Value::Int(v) => key.extend_from_slice(&wide(i128::from(*v))),
        Value::UInt(v) => key.extend_from_slice(&wide(i128::from(*v))),
        Value::Float(_) | Value::Double(_) => {
            // IEEE 754 orders like sign and magnitude.
            let bits = (value.to_double() + 0.0).to_bits();
            let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
            key.extend_from_slice(&ordered.to_be_bytes());
        }
        Value::Decimal(v) => push_decimal(v, key),
        Value::Text(text, rule) => collation::sort_key(text, *rule, key),
        Value::Json(bytes) => binary::decoded(bytes).sort_key(key),
        Value::Time(v, _) => key.extend_from_slice(&wide(i128::from(temporal::time_micros(*v)))),
        Value::Date(_) | Value::DateTime(..) => {
            if let Some((moment, _)) = value.to_datetime(temporal::Today::default()) {
                key.extend_from_slice(&temporal::datetime_number(moment).to_be_bytes());
                key.extend_from_slice(&moment.micros.to_be_bytes());
            }
        }
    }
}

fn wide(value: i128) -> [u8; 9] {
    let shifted = (value + (1 << 64)) as u128;
    let mut bytes = [0; 9];
    bytes.copy_from_slice(&shifted.to_be_bytes()[7..]);
    bytes
}

/// Sign, number of digits before the point, digits, end mark; inverted for negative numbers.
fn push_decimal(value: &bigdecimal::BigDecimal, key: &mut Vec<u8>) {
    let sign = value.sign();
    if sign == Sign::NoSign {
        key.push(1);
        return;
    }
    key.push(if sign == Sign::Minus { 0 } else { 2 });
    let start = key.len();
    let text = value.abs().normalized().to_plain_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let whole = whole.trim_start_matches('0');
    key.extend_from_slice(&(whole.len() as u16).to_be_bytes());
    key.extend_from_slice(whole.as_bytes());
    key.extend_from_slice(fraction.trim_end_matches('0').as_bytes());
    key.push(0);
    if sign == Sign::Minus {
        key[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// Entries of a [`RowSorter`]: the key with its length, then the row.
#[derive(Clone)]
pub struct ByKey;

fn key_and_row(mut entry: &[u8]) -> (&[u8], &[u8]) {
    let key = take_bytes(&mut entry).unwrap_or_default();
    (key, entry)
}

impl Order for ByKey {
    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        key_and_row(left).0.cmp(key_and_row(right).0)
    }

    /// The key's first eight bytes, zeros behind a shorter one.
    fn head(&self, entry: &[u8]) -> u64 {
        let key = key_and_row(entry).0;
        match key.first_chunk() {
            Some(first) => u64::from_be_bytes(*first),
            None => {
                key.iter().enumerate().fold(0, |head, (at, byte)| head | u64::from(*byte) << (56 - 8 * at))
            }
        }
    }
}

/// Most rows of a sort that keeps the first few only.
const FIRST_ROWS_MAX: u64 = 512;

/// Sorts rows by keys, charged to the statement's account, and on disk where its part of memory is used up.
/// Rows with equal keys keep their order: with empty keys it is a queue.
pub struct RowSorter<'a> {
    sorter: Sorter<ByKey>,
    charge: Charge<'a>,
    /// Only this many rows are wanted.
    first: Option<usize>,
    /// The key of the last of them: from it on a row is not wanted.
    beyond: Option<Vec<u8>>,
    key: Vec<u8>,
    count: u64,
}

impl<'a> RowSorter<'a> {
    /// A sorter of all rows.
    pub fn new(state: &'a SqlContext) -> RowSorter<'a> {
        let budget = state.sort_memory();
        RowSorter {
            sorter: Sorter::new(ByKey, state.sort_place(), budget),
            charge: state.memory.charge(),
            first: None,
            beyond: None,
            key: Vec::new(),
            count: 0,
        }
    }

    /// A sorter of which only the first `count` rows will be read.
    pub fn of_first(state: &'a SqlContext, count: u64) -> RowSorter<'a> {
        let first = (count <= FIRST_ROWS_MAX).then_some(count as usize);
        RowSorter { first, ..RowSorter::new(state) }
    }

    /// Adds a row: `key` appends its key, `row` the row.
    pub fn add(
        &mut self,
        key: impl FnOnce(&mut Vec<u8>) -> Result<(), SqlError>,
        row: impl FnOnce(&mut Vec<u8>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        self.key.clear();
        key(&mut self.key)?;
        if self.beyond.as_ref().is_some_and(|beyond| self.key >= *beyond) {
            return Ok(());
        }
        self.count += 1;
        let key = &self.key;
        self.sorter.add(|out| {
            put_bytes(key, out);
            row(out)
        })?;
        if let Some(first) = self.first
            && (self.sorter.in_memory() >= (2 * first).max(64) || self.sorter.is_full())
        {
            self.keep_first(first);
        }
        self.settle()
    }

    fn keep_first(&mut self, first: usize) {
        self.sorter.keep_first(first);
        if self.sorter.in_memory() == first {
            self.beyond = self.sorter.last().map(|entry| key_and_row(entry).0.to_vec());
        }
        self.charge.shrink_to(self.sorter.memory());
    }

    /// Charges what the sorter has grown to.
    fn settle(&mut self) -> Result<(), SqlError> {
        if self.charge.reach(self.sorter.memory()) {
            return Ok(());
        }
        Err(errors::error(errors::OUT_OF_SORTMEMORY, &[]))
    }

    /// How many rows there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether it is time for [`RowSorter::spill`].
    #[inline]
    pub fn is_full(&self) -> bool {
        self.sorter.is_full()
    }

    /// Writes what is in memory to disk.
    pub async fn spill(&mut self, slice: &TimeSlice) -> Result<(), Failure> {
        (self.first, self.beyond) = (None, None);
        self.sorter.spill(slice).await?;
        self.charge.shrink_to(self.sorter.memory());
        Ok(self.settle()?)
    }

    /// The rows in order.
    pub async fn finish(self) -> Result<SortedRows<'a>, Failure> {
        Ok(SortedRows { sorted: self.sorter.finish().await?, _charge: self.charge })
    }
}

/// Sorted rows, read once.
pub struct SortedRows<'a> {
    sorted: Sorted<ByKey>,
    _charge: Charge<'a>,
}

impl SortedRows<'_> {
    /// The next key and row.
    pub async fn next(&mut self) -> Result<Option<(&[u8], &[u8])>, Failure> {
        Ok(self.sorted.next().await?.map(key_and_row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{compare, decimal};

    fn key(value: &Value<'_>, descending: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        push_key(value, descending, &mut bytes);
        bytes
    }

    #[test]
    fn keys_order_like_values() {
        let number = |text: &str| Value::Decimal(decimal::parse(text).unwrap_or_default());
        let groups: Vec<Vec<Value<'static>>> = vec![
            vec![Value::Null, Value::Int(i64::MIN), Value::Int(-1), Value::Int(0), Value::UInt(u64::MAX)],
            vec![
                number("-100.5"),
                number("-2"),
                number("-1.25"),
                number("0"),
                number("0.05"),
                number("0.5"),
                number("10"),
            ],
            vec![Value::Double(-1e9), Value::Double(-0.5), Value::Double(0.0), Value::Double(3.5)],
            vec![Value::text(""), Value::text("A"), Value::text("ab"), Value::text("B")],
        ];
        for group in groups {
            for left in &group {
                for right in &group {
                    let wanted = compare::order(left, right);
                    assert_eq!(key(left, false).cmp(&key(right, false)), wanted, "{left:?} {right:?}");
                    assert_eq!(
                        key(right, true).cmp(&key(left, true)),
                        wanted,
                        "{left:?} {right:?} descending"
                    );
                }
            }
        }
    }
}
