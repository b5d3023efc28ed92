//! JSON documents: the values, their text, their binary form, their order, and paths into them.
//!
//! A document travels through the executor in MySQL's binary form (`binary.rs`), one run of bytes that can be
//! borrowed, spooled and charged like a text. A function that looks into one reads it into a `Json`,
//! changes that, and writes it again. Members of an object are kept in MySQL's order, by the length of the
//! key and then by its bytes, and every key once.
//!
//! No document is nested more deeply than `DEPTH_MAX`: neither the reader of texts nor the writer of the
//! binary form lets one pass. So whatever recurses over a document recurses that far and no further. What a
//! document takes in memory, many times its text, is asked for through `Room` while it is read.

pub(crate) mod binary;
mod from_value;
mod order;
pub(crate) mod parse;
pub(crate) mod path;
pub(crate) mod print;
pub(crate) mod seek;
#[cfg(test)]
#[allow(clippy::panic)]
mod tests;

use bigdecimal::BigDecimal;
use untorn::types::{Date, DateTime, Time};

use crate::errors;
use crate::result::SqlError;

pub(crate) use from_value::{Source, compared};
pub use print::quote;

/// Arrays and objects that may stand in each other.
pub(crate) const DEPTH_MAX: usize = 100;

/// A document or a part of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    /// `null`.
    Null,
    /// `true` and `false`.
    Bool(bool),
    /// A number without a point.
    Int(i64),
    /// The same beyond `i64`.
    UInt(u64),
    /// A number with a point or an exponent.
    Double(f64),
    /// An exact number of SQL.
    Decimal(Box<BigDecimal>),
    /// A string.
    Text(String),
    /// A day of SQL.
    Date(Date),
    /// A moment of SQL.
    DateTime(DateTime),
    /// A span of SQL.
    Time(Time),
    /// Bytes of SQL, with the number of their type.
    Opaque(u8, Vec<u8>),
    /// `[…]`.
    Array(Vec<Json>),
    /// `{…}`; the keys in order.
    Object(Members),
}

/// The members of an object, in the order of their keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Members(Vec<(String, Json)>);

impl Members {
    /// Of a list in any order; of members of one name the last remains.
    pub(crate) fn of_list(mut list: Vec<(String, Json)>) -> Members {
        // Stable: of equal names the last one given stands last.
        list.sort_by(|(left, _), (right, _)| key_order(left, right));
        let mut kept: Vec<(String, Json)> = Vec::with_capacity(list.len());
        for member in list {
            match kept.last_mut() {
                Some(last) if last.0 == member.0 => *last = member,
                _ => kept.push(member),
            }
        }
        Members(kept)
    }

    fn place(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(name, _)| key_order(name, key))
    }

    /// The member of this name.
    pub(crate) fn get(&self, key: &str) -> Option<&Json> {
        self.place(key).ok().and_then(|at| self.0.get(at)).map(|(_, value)| value)
    }

    /// The same, to be changed.
    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Json> {
        self.place(key).ok().and_then(|at| self.0.get_mut(at)).map(|(_, value)| value)
    }

    /// Adds or replaces a member.
    pub(crate) fn set(&mut self, key: String, value: Json) {
        match self.place(&key) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (key, value)),
        }
    }

    /// Takes a member out.
    pub(crate) fn remove(&mut self, key: &str) -> Option<Json> {
        self.place(key).ok().map(|at| self.0.remove(at).1)
    }

    /// All of them, in order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Json)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// With the members of another object: `both` gives the value for each of its names from the one that
    /// was there and its own, or takes the name out. Takes time for the members of both together.
    pub(crate) fn merged(
        self,
        other: Members,
        mut both: impl FnMut(Option<Json>, Json) -> Option<Json>,
    ) -> Members {
        let mut kept = Vec::with_capacity(self.len() + other.len());
        let mut before = self.0.into_iter().peekable();
        for (key, value) in other.0 {
            while let Some(first) = before.next_if(|(name, _)| key_order(name, &key).is_lt()) {
                kept.push(first);
            }
            let same = before.next_if(|(name, _)| *name == key).map(|(_, value)| value);
            if let Some(value) = both(same, value) {
                kept.push((key, value));
            }
        }
        kept.extend(before);
        Members(kept)
    }

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

fn key_order(left: &str, right: &str) -> std::cmp::Ordering {
    left.len().cmp(&right.len()).then_with(|| left.as_bytes().cmp(right.as_bytes()))
}

impl Json {
    /// What JSON_TYPE calls it.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Json::Null => "NULL",
            Json::Bool(_) => "BOOLEAN",
            Json::Int(_) => "INTEGER",
            Json::UInt(_) => "UNSIGNED INTEGER",
            Json::Double(_) => "DOUBLE",
            Json::Decimal(_) => "DECIMAL",
            Json::Text(_) => "STRING",
            Json::Date(_) => "DATE",
            Json::DateTime(_) => "DATETIME",
            Json::Time(_) => "TIME",
            Json::Opaque(BIT, _) => "BIT",
            Json::Opaque(..) => "BLOB",
            Json::Array(_) => "ARRAY",
            Json::Object(_) => "OBJECT",
        }
    }

    /// Bytes that it takes in memory.
    pub(crate) fn weight(&self) -> usize {
        let more = match self {
            Json::Text(text) => text.len(),
            Json::Opaque(_, bytes) => bytes.len(),
            Json::Array(list) => LIST_BYTES + list.iter().map(Json::weight).sum::<usize>(),
            Json::Object(members) => {
                let member = |(key, value): (&str, &Json)| key.len() + VALUE_BYTES + value.weight();
                LIST_BYTES + members.iter().map(member).sum::<usize>()
            }
            _ => 0,
        };
        VALUE_BYTES + more
    }

    /// How many arrays and objects stand in each other, with the scalar in the middle.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Json::Array(list) => 1 + list.iter().map(Json::depth).max().unwrap_or(0),
            Json::Object(members) => 1 + members.iter().map(|(_, value)| value.depth()).max().unwrap_or(0),
            _ => 1,
        }
    }

    /// How many arrays and objects stand in each other.
    pub(crate) fn nesting(&self) -> usize {
        match self {
            Json::Array(list) => 1 + list.iter().map(Json::nesting).max().unwrap_or(0),
            Json::Object(members) => 1 + members.iter().map(|(_, value)| value.nesting()).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Elements or members; a scalar is one.
    pub(crate) fn length(&self) -> usize {
        match self {
            Json::Array(list) => list.len(),
            Json::Object(members) => members.len(),
            _ => 1,
        }
    }

    /// The elements: of a scalar or object itself.
    pub(crate) fn into_array(self) -> Vec<Json> {
        match self {
            Json::Array(list) => list,
            other => vec![other],
        }
    }
}

/// BIT among the numbers of types.
const BIT: u8 = crate::result::kind::BIT;

/// Memory that values take beside their texts, with what lists keep in reserve.
const VALUE_BYTES: usize = 2 * size_of::<Json>();
/// The same of a list that is not empty.
const LIST_BYTES: usize = 4 * size_of::<Json>();
/// Bytes that are asked for at a time.
const BYTES_ASKED: usize = 16 << 10;

/// Where the memory of documents is asked for.
pub(crate) struct Room<'a> {
    ask: &'a dyn Fn(usize) -> Result<(), SqlError>,
    unasked: usize,
}

impl<'a> Room<'a> {
    /// Asks with this function, some KiB at a time.
    pub(crate) fn new(ask: &'a dyn Fn(usize) -> Result<(), SqlError>) -> Room<'a> {
        Room { ask, unasked: 0 }
    }

    /// Takes room for this number of bytes.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), SqlError> {
        self.unasked = self.unasked.saturating_add(bytes);
        if self.unasked < BYTES_ASKED {
            return Ok(());
        }
        (self.ask)(std::mem::take(&mut self.unasked))
    }

    /// For a copy of a value.
    pub(crate) fn copy_of(&mut self, value: &Json) -> Result<(), SqlError> {
        self.take(value.weight())
    }
}

/// Error 3157.
pub(crate) fn too_deep() -> SqlError {
    errors::error(errors::JSON_DOCUMENT_TOO_DEEP, &[])
}
