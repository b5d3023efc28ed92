//! What a key and a value of a key-value table are made of: one column, or several.
//!
//! A [`KeyValueType`] is one column. An `Option` of one is a column that may be NULL, for values. A tuple is
//! a column for each of its members: `k1`, `k2`, … in a key, which is in order of the first, then of the
//! second.

use smallvec::SmallVec;

use super::key_value_type::KeyValueType;
use crate::schema::ColumnDef;
use crate::types::Value;

/// The values of a key or of a value, a column each.
pub type Values<'a> = SmallVec<[Value<'a>; 2]>;

/// A Rust type that can be the value of a [`KeyValue`](crate::KeyValue) table: a [`KeyValueType`], an
/// `Option` of one, or a tuple of up to four of these.
pub trait Columns: Sized {
    /// What is given to store it: `&str` for [`String`], `&[u8]` for `Vec<u8>`, integers themselves, tuples
    /// of such.
    type Ref<'a>: Copy;
    /// Definitions of the columns.
    #[doc(hidden)]
    fn columns(name: &str) -> Vec<ColumnDef>;
    /// As values to store.
    #[doc(hidden)]
    fn push<'a>(given: Self::Ref<'a>, values: &mut Values<'a>);
    /// From the next stored values.
    #[doc(hidden)]
    fn take(values: &mut dyn Iterator<Item = Value<'static>>) -> Option<Self>;
    /// From the next stored values where they lie.
    #[doc(hidden)]
    fn look<'v>(values: &mut dyn Iterator<Item = Value<'v>>) -> Option<Self::Ref<'v>>;
    /// As it is given.
    #[doc(hidden)]
    fn given(&self) -> Self::Ref<'_>;
    /// The values of one.
    #[doc(hidden)]
    fn values(given: Self::Ref<'_>) -> Values<'_> {
        let mut values = Values::new();
        Self::push(given, &mut values);
        values
    }
}

/// A Rust type that can be the key of a [`KeyValue`](crate::KeyValue) table: a [`KeyValueType`] or a tuple of
/// up to four.
pub trait Key: Columns {
    /// Definitions of the columns.
    #[doc(hidden)]
    fn key_columns(name: &str) -> Vec<ColumnDef>;
}

impl<T: KeyValueType> Columns for T {
    type Ref<'a> = T::Ref<'a>;
    fn columns(name: &str) -> Vec<ColumnDef> {
        vec![ColumnDef::new(name, T::value_type())]
    }
    fn push<'a>(given: T::Ref<'a>, values: &mut Values<'a>) {
        values.push(T::to_value(given));
    }
    fn take(values: &mut dyn Iterator<Item = Value<'static>>) -> Option<T> {
        values.next().and_then(T::from_value)
    }
    fn look<'v>(values: &mut dyn Iterator<Item = Value<'v>>) -> Option<T::Ref<'v>> {
        values.next().and_then(T::from_borrowed)
    }
    fn given(&self) -> T::Ref<'_> {
        self.borrowed()
    }
}

impl<T: KeyValueType> Key for T {
    fn key_columns(name: &str) -> Vec<ColumnDef> {
        vec![ColumnDef::new(name, T::key_type())]
    }
}

impl<T: KeyValueType> Columns for Option<T> {
    type Ref<'a> = Option<T::Ref<'a>>;
    fn columns(name: &str) -> Vec<ColumnDef> {
        vec![ColumnDef::new(name, T::value_type()).nullable()]
    }
    fn push<'a>(given: Self::Ref<'a>, values: &mut Values<'a>) {
        values.push(given.map_or(Value::Null, T::to_value));
    }
    fn take(values: &mut dyn Iterator<Item = Value<'static>>) -> Option<Option<T>> {
        match values.next()? {
            Value::Null => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
    fn look<'v>(values: &mut dyn Iterator<Item = Value<'v>>) -> Option<Self::Ref<'v>> {
        match values.next()? {
            Value::Null => Some(None),
            value => T::from_borrowed(value).map(Some),
        }
    }
    fn given(&self) -> Self::Ref<'_> {
        self.as_ref().map(T::borrowed)
    }
}

macro_rules! tuples {
    ($(($($member:ident $number:tt),*))*) => {$(
        impl<$($member: Columns),*> Columns for ($($member,)*) {
            type Ref<'a> = ($($member::Ref<'a>,)*);
            fn columns(name: &str) -> Vec<ColumnDef> {
                [$($member::columns(&format!("{name}{}", $number + 1))),*].concat()
            }
            fn push<'a>(given: Self::Ref<'a>, values: &mut Values<'a>) {
                $($member::push(given.$number, values);)*
            }
            fn take(values: &mut dyn Iterator<Item = Value<'static>>) -> Option<Self> {
                Some(($($member::take(values)?,)*))
            }
            fn look<'v>(values: &mut dyn Iterator<Item = Value<'v>>) -> Option<Self::Ref<'v>> {
                Some(($($member::look(values)?,)*))
            }
            fn given(&self) -> Self::Ref<'_> {
                ($(self.$number.given(),)*)
            }
        }

        impl<$($member: Key),*> Key for ($($member,)*) {
            fn key_columns(name: &str) -> Vec<ColumnDef> {
                [$($member::key_columns(&format!("{name}{}", $number + 1))),*].concat()
            }
        }
    )*};
}

tuples! {
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
}
