//! Rust types that can be columns of a key-value table.

use std::borrow::Cow;

use crate::types::{Collation, ColumnType, SizeClass, Value};

/// Longest text or byte key.
pub(super) const KEY_BYTES_MAX: u32 = 700;

/// The Rust types that are stored so, for messages.
pub(super) fn rust_types(stored: &ColumnType) -> String {
    let known = match stored {
        ColumnType::TinyInt { unsigned: false } => "i8",
        ColumnType::TinyInt { unsigned: true } => "u8 or bool",
        ColumnType::SmallInt { unsigned: false } => "i16",
        ColumnType::SmallInt { unsigned: true } => "u16",
        ColumnType::Int { unsigned: false } => "i32",
        ColumnType::Int { unsigned: true } => "u32",
        ColumnType::BigInt { unsigned: false } => "i64",
        ColumnType::BigInt { unsigned: true } => "u64",
        ColumnType::Binary { bytes: 16 } => "u128, i128 or [u8; 16]",
        ColumnType::Binary { bytes } => return format!("[u8; {bytes}]"),
        ColumnType::VarBinary { bytes: KEY_BYTES_MAX } => "String or Vec<u8>",
        ColumnType::Text { size: SizeClass::Long, .. } => "String",
        ColumnType::Blob { size: SizeClass::Long } => "Vec<u8>",
        other => return format!("{other:?}"),
    };
    known.to_owned()
}

/// A Rust type that is a column of a [`KeyValue`](crate::KeyValue) table, in a key or in a value.
///
/// Integers of 8 to 128 bits, `bool`, [`String`], `Vec<u8>` and byte arrays are. Implement it for a type of
/// your own that is stored as one of these.
pub trait KeyValueType: Sized {
    /// What is given to store it or to look for it: `&str` for [`String`], `&[u8]` for `Vec<u8>`, integers
    /// themselves.
    type Ref<'a>: Copy;
    /// The column type when it is a key; its order must be that of the Rust values.
    fn key_type() -> ColumnType;
    /// The column type when it is a value.
    fn value_type() -> ColumnType {
        Self::key_type()
    }
    /// As a value to store.
    fn to_value<'a>(given: Self::Ref<'a>) -> Value<'a>;
    /// From a stored value; `None` if it is of another kind.
    fn from_value(value: Value<'static>) -> Option<Self>;
    /// From a stored value where it lies, as it would be given; `None` if it is of another kind, or cannot be
    /// shown without a copy. The value's page is latched meanwhile: it must be quick, and use no database.
    fn from_borrowed<'v>(value: Value<'v>) -> Option<Self::Ref<'v>> {
        let _ = value;
        None
    }
    /// As it is given.
    fn borrowed(&self) -> Self::Ref<'_>;
}

/// Bytes that lie elsewhere.
#[inline]
fn bytes_of(value: Value<'_>) -> Option<&[u8]> {
    match value {
        Value::Bytes(Cow::Borrowed(bytes)) => Some(bytes),
        _ => None,
    }
}

macro_rules! integers {
    ($($rust:ty, $variant:ident, $wide:ty, $kind:ident, $unsigned:literal;)*) => {$(
        impl KeyValueType for $rust {
            type Ref<'a> = $rust;
            fn key_type() -> ColumnType {
                ColumnType::$kind { unsigned: $unsigned }
            }
            fn to_value<'a>(given: Self::Ref<'a>) -> Value<'a> {
                Value::$variant(<$wide>::from(given))
            }
            fn from_value(value: Value<'static>) -> Option<Self> {
                match value {
                    Value::$variant(v) => <$rust>::try_from(v).ok(),
                    _ => None,
                }
            }
            fn from_borrowed<'v>(value: Value<'v>) -> Option<$rust> {
                Self::from_value(value.into_owned())
            }
            fn borrowed(&self) -> $rust {
                *self
            }
        }
    )*};
}

integers! {
    i8, Int, i64, TinyInt, false;
    i16, Int, i64, SmallInt, false;
    i32, Int, i64, Int, false;
    i64, Int, i64, BigInt, false;
    u8, UInt, u64, TinyInt, true;
    u16, UInt, u64, SmallInt, true;
    u32, UInt, u64, Int, true;
    u64, UInt, u64, BigInt, true;
}

macro_rules! wide_integers {
    ($($rust:ty, $flip:expr;)*) => {$(
        /// SQL has no integer of this width: the bytes, the highest first, in the order of the numbers.
        impl KeyValueType for $rust {
            type Ref<'a> = $rust;
            fn key_type() -> ColumnType {
                ColumnType::Binary { bytes: 16 }
            }
            fn to_value<'a>(given: Self::Ref<'a>) -> Value<'a> {
                Value::Bytes(((given as u128) ^ $flip).to_be_bytes().to_vec().into())
            }
            fn from_value(value: Value<'static>) -> Option<Self> {
                match value {
                    Value::Bytes(bytes) => {
                        Some((u128::from_be_bytes(bytes.as_ref().try_into().ok()?) ^ $flip) as $rust)
                    }
                    _ => None,
                }
            }
            fn from_borrowed<'v>(value: Value<'v>) -> Option<$rust> {
                Self::from_value(value.into_owned())
            }
            fn borrowed(&self) -> $rust {
                *self
            }
        }
    )*};
}

wide_integers! {
    u128, 0;
    i128, 1 << 127;
}

/// As TINYINT UNSIGNED, 0 and 1.
impl KeyValueType for bool {
    type Ref<'a> = bool;
    fn key_type() -> ColumnType {
        ColumnType::TinyInt { unsigned: true }
    }
    fn to_value<'a>(given: Self::Ref<'a>) -> Value<'a> {
        Value::UInt(given.into())
    }
    fn from_value(value: Value<'static>) -> Option<Self> {
        match value {
            Value::UInt(0) => Some(false),
            Value::UInt(1) => Some(true),
            _ => None,
        }
    }
    fn from_borrowed<'v>(value: Value<'v>) -> Option<bool> {
        Self::from_value(value.into_owned())
    }
    fn borrowed(&self) -> bool {
        *self
    }
}

impl KeyValueType for String {
    type Ref<'a> = &'a str;
    fn key_type() -> ColumnType {
        // Bytes order as Rust strings do; a text collation would ignore trailing spaces.
        ColumnType::VarBinary { bytes: KEY_BYTES_MAX }
    }
    fn value_type() -> ColumnType {
        ColumnType::Text { size: SizeClass::Long, collation: Collation::Utf8mb4Bin }
    }
    fn to_value<'a>(given: Self::Ref<'a>) -> Value<'a> {
        Value::bytes(given)
    }
    fn from_value(value: Value<'static>) -> Option<Self> {
        match value {
            Value::Bytes(bytes) => String::from_utf8(bytes.into_owned()).ok(),
            _ => None,
        }
    }
    fn from_borrowed<'v>(value: Value<'v>) -> Option<&'v str> {
        std::str::from_utf8(bytes_of(value)?).ok()
    }
    fn borrowed(&self) -> &str {
        self
    }
}

impl KeyValueType for Vec<u8> {
    type Ref<'a> = &'a [u8];
    fn key_type() -> ColumnType {
        ColumnType::VarBinary { bytes: KEY_BYTES_MAX }
    }
    fn value_type() -> ColumnType {
        ColumnType::Blob { size: SizeClass::Long }
    }
    fn to_value<'a>(given: Self::Ref<'a>) -> Value<'a> {
        Value::bytes(given)
    }
    fn from_value(value: Value<'static>) -> Option<Self> {
        match value {
            Value::Bytes(bytes) => Some(bytes.into_owned()),
            _ => None,
        }
    }
    fn from_borrowed<'v>(value: Value<'v>) -> Option<&'v [u8]> {
        bytes_of(value)
    }
    fn borrowed(&self) -> &[u8] {
        self
    }
}

/// Of 1 to 255 bytes.
impl<const N: usize> KeyValueType for [u8; N] {
    type Ref<'a> = &'a [u8; N];
    fn key_type() -> ColumnType {
        const { assert!(N >= 1 && N <= 255, "an array of a key-value table has 1 to 255 bytes") };
        ColumnType::Binary { bytes: N as u32 }
    }
    fn to_value<'a>(given: Self::Ref<'a>) -> Value<'a> {
        Value::bytes(given)
    }
    fn from_value(value: Value<'static>) -> Option<Self> {
        match value {
            Value::Bytes(bytes) => bytes.as_ref().try_into().ok(),
            _ => None,
        }
    }
    fn from_borrowed<'v>(value: Value<'v>) -> Option<&'v [u8; N]> {
        bytes_of(value)?.try_into().ok()
    }
    fn borrowed(&self) -> &[u8; N] {
        self
    }
}
