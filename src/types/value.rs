//! A value as people and programs mean it, apart from how it is stored.

use std::borrow::Cow;

use super::temporal::{Date, DateTime, Time};

/// One value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// SQL NULL.
    Null,
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A FLOAT.
    Float(f32),
    /// A DOUBLE.
    Double(f64),
    /// An exact decimal, as text: optional `-`, digits, optional `.` and digits.
    Decimal(Cow<'a, str>),
    /// Text (UTF-8) or bytes; the column's type tells which.
    Bytes(Cow<'a, [u8]>),
    /// A calendar day.
    Date(Date),
    /// A day and time; for TIMESTAMP columns in UTC.
    DateTime(DateTime),
    /// A signed span.
    Time(Time),
}

impl<'a> Value<'a> {
    /// Text or bytes, borrowed.
    pub fn bytes(bytes: &'a (impl AsRef<[u8]> + ?Sized)) -> Value<'a> {
        Value::Bytes(Cow::Borrowed(bytes.as_ref()))
    }

    /// SQL NULL?
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The same value, owning its bytes.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Int(v) => Value::Int(v),
            Value::UInt(v) => Value::UInt(v),
            Value::Float(v) => Value::Float(v),
            Value::Double(v) => Value::Double(v),
            Value::Decimal(v) => Value::Decimal(Cow::Owned(v.into_owned())),
            Value::Bytes(v) => Value::Bytes(Cow::Owned(v.into_owned())),
            Value::Date(v) => Value::Date(v),
            Value::DateTime(v) => Value::DateTime(v),
            Value::Time(v) => Value::Time(v),
        }
    }
}

impl From<i32> for Value<'_> {
    fn from(v: i32) -> Self {
        Value::Int(i64::from(v))
    }
}
impl From<i64> for Value<'_> {
    fn from(v: i64) -> Self {
        Value::Int(v)
    }
}
impl From<u32> for Value<'_> {
    fn from(v: u32) -> Self {
        Value::UInt(u64::from(v))
    }
}
impl From<u64> for Value<'_> {
    fn from(v: u64) -> Self {
        Value::UInt(v)
    }
}
impl From<f64> for Value<'_> {
    fn from(v: f64) -> Self {
        Value::Double(v)
    }
}
impl<'a> From<&'a str> for Value<'a> {
    fn from(v: &'a str) -> Self {
        Value::Bytes(Cow::Borrowed(v.as_bytes()))
    }
}
impl From<String> for Value<'_> {
    fn from(v: String) -> Self {
        Value::Bytes(Cow::Owned(v.into_bytes()))
    }
}
impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(v: &'a [u8]) -> Self {
        Value::Bytes(Cow::Borrowed(v))
    }
}
impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(v: Option<T>) -> Self {
        v.map_or(Value::Null, Into::into)
    }
}
