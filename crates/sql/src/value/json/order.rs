//! The order of documents, by MySQL's precedence of types.
//!
//! Numbers are compared as numbers, whatever their kinds; strings by their bytes; arrays element by element,
//! a beginning before the whole; objects by their number of members, then by keys, then by values.

use std::cmp::Ordering;

use bigdecimal::BigDecimal;

use super::{BIT, Json, key_order};
use crate::value::{Value, decimal, temporal};

impl Json {
    /// Values of different precedence are ordered by it.
    fn precedence(&self) -> u8 {
        match self {
            Json::Null => 0,
            Json::Int(_) | Json::UInt(_) | Json::Double(_) | Json::Decimal(_) => 1,
            Json::Text(_) => 2,
            Json::Object(_) => 3,
            Json::Array(_) => 4,
            Json::Bool(_) => 5,
            Json::Date(_) => 6,
            Json::Time(_) => 7,
            Json::DateTime(_) => 8,
            Json::Opaque(BIT, _) => 9,
            Json::Opaque(..) => 10,
        }
    }

    /// Which is first.
    pub(crate) fn order(&self, other: &Json) -> Ordering {
        match (self, other) {
            (Json::Int(a), Json::Int(b)) => a.cmp(b),
            (Json::Double(a), Json::Double(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
            (Json::Bool(a), Json::Bool(b)) => a.cmp(b),
            (Json::Text(a), Json::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Json::Opaque(_, a), Json::Opaque(_, b)) => {
                self.precedence().cmp(&other.precedence()).then_with(|| a.cmp(b))
            }
            (Json::Date(a), Json::Date(b)) => a.cmp(b),
            (Json::DateTime(a), Json::DateTime(b)) => {
                temporal::datetime_micros(*a).cmp(&temporal::datetime_micros(*b))
            }
            (Json::Time(a), Json::Time(b)) => temporal::time_micros(*a).cmp(&temporal::time_micros(*b)),
            (Json::Array(a), Json::Array(b)) => {
                let different = a.iter().zip(b).map(|(a, b)| a.order(b)).find(|order| order.is_ne());
                different.unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            (Json::Object(a), Json::Object(b)) => {
                let members = a.iter().zip(b.iter());
                let mut different = members.map(|((k, v), (l, w))| key_order(k, l).then_with(|| v.order(w)));
                a.len()
                    .cmp(&b.len())
                    .then_with(|| different.find(|order| order.is_ne()).unwrap_or(Ordering::Equal))
            }
            (a, b) => match (a.number(), b.number()) {
                (Some(a), Some(b)) => a.cmp(&b),
                _ => a.precedence().cmp(&b.precedence()),
            },
        }
    }

    /// A number with all its digits.
    fn number(&self) -> Option<BigDecimal> {
        match self {
            Json::Int(number) => Some(BigDecimal::from(*number)),
            Json::UInt(number) => Some(BigDecimal::from(*number)),
            Json::Double(number) => Some(Value::Double(*number).to_decimal()),
            Json::Decimal(number) => Some((**number).clone()),
            _ => None,
        }
    }

    /// Appends bytes in the order of the documents. Numbers count as doubles, arrays and objects by their
    /// length.
    pub(crate) fn sort_key(&self, key: &mut Vec<u8>) {
        key.push(self.precedence());
        match self {
            Json::Bool(truth) => key.push(u8::from(*truth)),
            Json::Array(_) | Json::Object(_) => key.extend_from_slice(&(self.length() as u64).to_be_bytes()),
            Json::Opaque(_, bytes) => ended(bytes, key),
            Json::Time(span) => {
                let micros = temporal::time_micros(*span) as u64 ^ 1 << 63;
                key.extend_from_slice(&micros.to_be_bytes());
            }
            other => match other.number() {
                Some(number) => {
                    // IEEE 754 orders like sign and magnitude.
                    let bits = (decimal::to_double(&number) + 0.0).to_bits();
                    let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
                    key.extend_from_slice(&ordered.to_be_bytes());
                }
                None => ended(other.unquoted().as_bytes(), key),
            },
        }
    }

    /// Appends bytes that are equal for equal documents.
    pub(crate) fn group_key(&self, key: &mut Vec<u8>) {
        let count = |length: usize, key: &mut Vec<u8>| key.extend_from_slice(&(length as u64).to_be_bytes());
        key.push(self.precedence());
        match self {
            Json::Array(list) => {
                count(list.len(), key);
                list.iter().for_each(|value| value.group_key(key));
            }
            Json::Object(members) => {
                count(members.len(), key);
                for (name, value) in members.iter() {
                    count(name.len(), key);
                    key.extend_from_slice(name.as_bytes());
                    value.group_key(key);
                }
            }
            other => {
                let text = match other.number() {
                    Some(number) => decimal::format(&number.normalized()),
                    None => other.unquoted(),
                };
                count(text.len(), key);
                key.extend_from_slice(text.as_bytes());
            }
        }
    }
}

/// Bytes with an end that is less than any byte: a beginning is before the whole, also when the order is
/// turned round and where another key follows.
fn ended(bytes: &[u8], key: &mut Vec<u8>) {
    for byte in bytes {
        key.push(*byte);
        if *byte == 0 {
            key.push(0xff);
        }
    }
    key.extend_from_slice(&[0, 0]);
}
