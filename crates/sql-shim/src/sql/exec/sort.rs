//! Sorting in memory: keys are encoded so that their plain byte order is the wanted order, and live in one buffer.

use bigdecimal::num_bigint::Sign;
use untorn::types::Date;

use crate::sql::value::{Value, collation, temporal};

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
        Value::Time(v, _) => key.extend_from_slice(&wide(i128::from(temporal::time_micros(*v)))),
        Value::Date(_) | Value::DateTime(..) => {
            if let Some((moment, _)) = value.to_datetime(Date::default()) {
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

/// Keys of rows to be sorted; row numbers are those of the caller.
#[derive(Default)]
pub struct Sorter {
    keys: Vec<u8>,
    entries: Vec<(u32, u32, u32)>,
}

impl Sorter {
    /// Adds the next row; `write` appends its key.
    pub fn add<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let start = self.keys.len() as u32;
        write(&mut self.keys)?;
        self.entries.push((start, self.keys.len() as u32, self.entries.len() as u32));
        Ok(())
    }

    /// Bytes held.
    pub fn len_bytes(&self) -> usize {
        self.keys.len()
    }

    fn key(&self, entry: (u32, u32, u32)) -> &[u8] {
        &self.keys[entry.0 as usize..entry.1 as usize]
    }

    /// Row numbers in order; with `distinct` one of those with equal keys only.
    pub fn finish(mut self, distinct: bool) -> Vec<u32> {
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_by(|left, right| self.key(*left).cmp(self.key(*right)).then(left.2.cmp(&right.2)));
        if distinct {
            entries.dedup_by(|left, right| self.key(*left) == self.key(*right));
        }
        entries.into_iter().map(|entry| entry.2).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::value::{compare, decimal};

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

    #[test]
    fn sorting_is_stable_and_removes_duplicates() {
        let mut sorter = Sorter::default();
        for value in [3, 1, 2, 1, 3] {
            let _ = sorter.add(|key| {
                push_key(&Value::Int(value), false, key);
                Ok::<(), ()>(())
            });
        }
        assert_eq!(sorter.finish(true), [1, 2, 0]);
    }
}
