//! Values as expressions compute with them, and MySQL's conversions between their kinds.
//!
//! A value borrows its bytes from the page, the statement or the parameters for as long as the row callback
//! runs; what outlives it is made owned with [`Value::into_owned`]. Text carries its collation, because a
//! comparison depends on it.

pub mod collation;
pub(crate) mod compare;
pub(crate) mod convert;
pub mod decimal;
pub mod json;
pub mod like;
pub mod regex;
pub(crate) mod temporal;
pub mod temporal_literal;
pub mod time_zones;

use std::borrow::Cow;

pub use bigdecimal::BigDecimal;
pub use untorn::types::{Collation, Date, DateTime, Time};

/// A value. Equal ones are the same constant; what SQL calls equal is decided in `compare.rs`.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// SQL NULL.
    Null,
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A FLOAT column's value; computed with as a DOUBLE.
    Float(f32),
    /// A DOUBLE.
    Double(f64),
    /// An exact number.
    Decimal(BigDecimal),
    /// Text (UTF-8), or bytes under [`Collation::Binary`].
    Text(Cow<'a, [u8]>, Collation),
    /// A day.
    Date(Date),
    /// A day and time, with the digits of a second it is shown with.
    DateTime(DateTime, u8),
    /// A span, with the digits of a second it is shown with.
    Time(Time, u8),
    /// A JSON document, in its binary form.
    Json(Cow<'a, [u8]>),
}

impl<'a> Value<'a> {
    /// Text in the default collation.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        let bytes = match text.into() {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        };
        Value::Text(bytes, Collation::Utf8mb4GeneralCi)
    }

    /// 1 or 0.
    pub fn truth_value(truth: bool) -> Self {
        Value::Int(i64::from(truth))
    }

    /// SQL NULL?
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The same value with its own bytes.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Int(v) => Value::Int(v),
            Value::UInt(v) => Value::UInt(v),
            Value::Float(v) => Value::Float(v),
            Value::Double(v) => Value::Double(v),
            Value::Decimal(v) => Value::Decimal(v),
            Value::Text(bytes, collation) => Value::Text(Cow::Owned(bytes.into_owned()), collation),
            Value::Date(v) => Value::Date(v),
            Value::DateTime(v, digits) => Value::DateTime(v, digits),
            Value::Time(v, digits) => Value::Time(v, digits),
            Value::Json(bytes) => Value::Json(Cow::Owned(bytes.into_owned())),
        }
    }

    /// What a user variable keeps of it: there it is an integer, a DOUBLE, a DECIMAL or a text. A day, moment
    /// or span is its text, in the collation of numbers' texts; a document is its text.
    pub fn into_variable(self) -> Value<'static> {
        match self {
            Value::Float(v) => Value::Double(f64::from(v)),
            Value::Json(_) => Value::Text(self.to_text().into_owned().into(), Collation::Utf8mb4Bin),
            moment if moment.is_temporal() => {
                Value::Text(moment.to_text().into_owned().into(), Collation::Latin1SwedishCi)
            }
            other => other.into_owned(),
        }
    }

    /// The same value, borrowing from this one.
    pub fn borrowed(&self) -> Value<'_> {
        match self {
            Value::Text(bytes, collation) => Value::Text(Cow::Borrowed(bytes), *collation),
            Value::Json(bytes) => Value::Json(Cow::Borrowed(bytes)),
            other => other.clone(),
        }
    }

    /// Bytes that a key made of a long text takes beside the text's own length.
    #[inline]
    pub fn key_bytes_max(&self) -> usize {
        match self {
            Value::Text(text, rule) => collation::key_bytes_max(text, *rule) - text.len(),
            _ => 0,
        }
    }

    /// Whether this is a date or time.
    pub fn is_temporal(&self) -> bool {
        matches!(self, Value::Date(_) | Value::DateTime(..) | Value::Time(..))
    }

    /// Whether this is an integer, exact or floating-point number.
    pub fn is_number(&self) -> bool {
        matches!(
            self,
            Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Double(_) | Value::Decimal(_)
        )
    }
}
